"""
The paper's methods by exact counts
===================================

*Sarah Frank-Wolfe* (Beznosikov, Dobre, Gidel, ICML 2024) has two stochastic methods without
projections. We run both beside the method of Negiar and others (2020), plain Frank-Wolfe, and
this library's default. Costs are component gradients and calls of the linear minimisation oracle.
Wrappers count them; no method can go around these wrappers.
"""

# %%
# One problem, five methods
# -------------------------
# Logistic regression on sparse binary rows, with a budget on the l1 norm. Every method may use as
# many component gradients as 60 passes over the data cost. Stochastic methods take their own
# default batch. Each starts at zero.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

import extremal as ex

rng = np.random.default_rng(0)
n, d = 8000, 120
A = sp.csr_array((rng.random((n, d)) < 0.1).astype(float))
truth = np.where(rng.random(d) < 0.2, rng.normal(0, 2, d), 0)
y = np.where(A @ truth + rng.logistic(size=n) > 0, 1.0, -1.0)
f, C = ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(20.0)

methods = {
    "Sarah Frank-Wolfe": ex.SarahFW(),
    "Saga-Sarah Frank-Wolfe": ex.SagaSarahFW(),
    "Negiar and others": ex.NegiarSFW(),
    "Frank-Wolfe": ex.FrankWolfe(),
    "default": None,
}
runs = {
    name: ex.minimize(f, C, method, max_grads=60 * n, tol=0, atol=1e-9, record=0.5, seed=0)
    for name, method in methods.items()
}

# %%
# The bill
# --------
# Gradients that only serve a certificate are counted apart. The gap is exact for all of them: it
# bounds how far each value is above the minimum.
best = min(run.value - run.gap for run in runs.values() if run.gap < 1e-8)
rows = {
    name: {
        "passes (component gradients / n)": f"{run.calls.grads / n:.1f}",
        "oracle calls": run.calls.lmos,
        "value - minimum": f"{run.value - best:.1e}",
        "gap": f"{run.gap:.1e}",
        "l1 norm": f"{np.abs(run.x).sum():.4f}",
    }
    for name, run in runs.items()
}
pd.DataFrame(rows).T

# %%
# The same runs over passes and over oracle calls
# -----------------------------------------------
# Which method is best depends on what is expensive: gradients or the oracle.
styles = dict(
    zip(
        methods,
        (("C0", "-"), ("C1", "-"), ("0.6", "-"), ("black", ":"), ("black", "-")),
        strict=True,
    )
)
fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.6), sharey=True, layout="constrained")
for name, run in runs.items():
    colour, line = styles[name]
    error = np.maximum(np.minimum.accumulate(run.trace.value) - best, 1e-9)
    left.semilogy(run.trace.passes, error, line, color=colour, label=name)
    right.loglog(np.maximum(run.trace.lmos, 1), error, line, color=colour)
left.set(xlabel="passes over the data", ylabel="value - minimum")
right.set(xlabel="oracle calls")
fig.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
plt.show()

# %%
# The batch decides
# -----------------
# Small batches make many cheap iterations, large batches few expensive ones. The counts say what
# each one costs.
print(" batch   passes   oracle calls   value - minimum")
for batch in (8, 80, 800):
    run = ex.minimize(f, C, ex.SarahFW(batch=batch), max_grads=60 * n, tol=0, atol=0, seed=0)
    print(
        f"{batch:6d}   {run.calls.grads / n:6.1f}   {run.calls.lmos:12d}   {run.value - best:15.1e}"
    )
