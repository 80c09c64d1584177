"""
Counts with relations between effects
=====================================

Calls to a help line depend on the shift and on advertising. We know relations between effects:
nights are not busier than evenings, evenings not busier than days, and radio and TV work alike.
statsmodels has ``fit_constrained`` for equations. It has no inequalities. This page needs
statsmodels, which ``pip install ".[examples]"`` in a clone of the repository installs.
"""

# %%
# Calls
# -----
# Few nights are in the data, and their rate is nearly that of evenings. The data alone may get
# the order wrong.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import statsmodels.api as sm

from extremal.sklearn import ConstrainedGLM

rng = np.random.default_rng(2)
n = 300
shift = rng.choice(3, n, p=[0.55, 0.35, 0.10])
X = pd.DataFrame(np.eye(3)[shift][:, 1:], columns=["evening", "night"])
X[["radio", "tv", "rain"]] = rng.gamma(2, 0.3, (n, 3))
truth = pd.Series({"evening": -0.3, "night": -0.35, "radio": 0.4, "tv": 0.4, "rain": 0.1})
calls = rng.poisson(np.exp(1.0 + X @ truth))

# %%
# An equation: both tools
# -----------------------
# With the equation alone, the two agree. Ours carries a certificate.
equal = ConstrainedGLM("poisson", "radio == tv").fit(X, calls)
glm = sm.GLM(calls, sm.add_constant(X), family=sm.families.Poisson())
theirs = glm.fit_constrained("radio = tv")
both = pd.DataFrame({"statsmodels": theirs.params.iloc[1:], "ours": equal.coef_}, index=X.columns)
print(both.round(4))
print(f"largest difference {(both['statsmodels'] - both['ours']).abs().max():.1e}")
print(f"certified: at most {equal.dual_gap_:.1e} above the minimum")

# %%
# Inequalities by name
# --------------------
# One string holds the equation and the order. The common way out is to fit with the equation,
# look which order is broken, and put it in as one more equation. That works for one relation. For
# many, one has to try all combinations.
relations = "radio == tv & night <= evening & evening <= 0 & rain >= 0"
model = ConstrainedGLM("poisson", relations).fit(X, calls)
free = glm.fit()
by_hand = glm.fit_constrained(["radio = tv", "night = evening"])
effects = {
    "GLM": free.params.iloc[1:].to_numpy(),
    "GLM, radio = tv": theirs.params.iloc[1:].to_numpy(),
    "GLM, radio = tv, night = evening": by_hand.params.iloc[1:].to_numpy(),
    "ConstrainedGLM, all relations": model.coef_,
}


def half_deviance(w):  # with the best intercept
    z = X.to_numpy() @ w
    z += np.log(calls.mean() / np.exp(z).mean())
    return sm.families.Poisson().deviance(calls, np.exp(z)) / (2 * n)


rows, bound = {}, model.objective_ - model.dual_gap_
for name, w in effects.items():
    broken = {"night": w[1] - w[0], "evening": w[0], "radio": abs(w[2] - w[3]), "rain": -w[4]}
    worst = max(broken, key=broken.get)
    rows[name] = {
        "violation": f"{broken[worst]:.1e} ({worst})" if broken[worst] > 0 else "0",
        "loss above the bound": f"{half_deviance(w) / bound - 1:+.1e}",
        "error of the effects": f"{np.sqrt(np.mean((w - truth) ** 2)):.3f}",
    }
pd.DataFrame(rows).T

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
at = np.arange(5)
error = 2 * free.bse.iloc[1:]
ax.errorbar(at - 0.1, effects["GLM"], error, fmt="o", color="0.6", capsize=3, label="free, +- 2 se")
ax.plot(at + 0.1, model.coef_, "s", color="C0", label="with relations")
ax.plot(at, truth, "_", color="black", ms=24, label="truth")
ax.axhline(0, color="black", lw=0.8)
ax.set_xticks(at, X.columns)
ax.set_ylabel("effect on the log of the calls")
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
