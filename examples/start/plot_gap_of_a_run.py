"""
What the certificate says during a run
======================================

Most solvers stop when a step changes little. That says nothing about how far away the best answer
is. This library computes a *gap* instead: a proven bound on how much better any other feasible
point could be. Here we look at both during one run.
"""

# %%
# A slow run on purpose
# ---------------------
# A logistic model of the breast cancer data, with a budget of 20 on the sum of the absolute
# coefficients. The classic Frank-Wolfe method is slow, and so there is much to see. The trace
# records the value and the gap after every pass over the data.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import extremal as ex

X, y = load_breast_cancer(return_X_y=True)
f = ex.LinearModel(ex.Logistic(), scale(X), np.where(y == 1, 1.0, -1.0))
C = ex.L1Ball(20.0)
run = ex.minimize(
    f, C, method=ex.FrankWolfe(step=ex.steps.LineSearch()), max_iter=2000, tol=1e-4, record=1
)
best = ex.minimize(f, C, tol=1e-10)  # the default method: nearly exact, to compare with
chosen = best.why.split(":")[0]
print(f"slow run: value {run.value:.6f}, gap {run.gap:.1e}, {run.n_iter} iterations")
print(f"default:  value {best.value:.6f}, gap {best.gap:.1e}, {best.n_iter} iterations ({chosen})")

# %%
# The gap is never below the true error
# -------------------------------------
# Only the second run tells us the true error of the first. The gap needs no second run.
error, gap = run.trace.value - best.value, run.trace.gap
low, high = np.maximum.accumulate(run.trace.value - gap), np.minimum.accumulate(run.trace.value)
print("gap >= true error in every row of the trace:", bool((gap >= error - 1e-12).all()))

fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.loglog(run.trace.iter[1:], gap[1:], color="C0", lw=1, alpha=0.5, label="gap of the point")
ax.loglog(run.trace.iter[1:], (high - low)[1:], color="C0", lw=2, label="best value - best bound")
ax.loglog(
    run.trace.iter[1:],
    error[1:],
    color="black",
    lw=1.5,
    ls="--",
    label="true error, known afterwards",
)
ax.set(xlabel="iteration", ylabel="distance to the minimum")
fig.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
plt.show()

# %%
# Stopping when little changes
# ----------------------------
# The habit is to stop when the value changes by less than a tolerance. The table shows the true
# error at that point, beside the error at which the gap meets the same tolerance. A dash means
# that this run did not get there.
change = np.abs(np.diff(run.trace.value))
print("tolerance   stop by change: true error     stop by gap: true error")
for tol in (1e-2, 1e-3, 1e-4):
    by_change = error[1:][change < tol][0]
    by_gap = f"{error[gap < tol][0]:.1e}" if (gap < tol).any() else "-"
    print(f"{tol:9.0e}   {by_change:.1e} ({by_change / tol:6.1f} x tolerance)     {by_gap}")

# %%
# Value and gap together enclose the minimum
# ------------------------------------------
# The minimum lies between value - gap and value, at every moment. Each new point can only make
# this interval tighter.
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ax.fill_between(
    run.trace.iter,
    np.maximum(low, 0),
    high,
    color="C0",
    alpha=0.25,
    lw=0,
    label="the minimum is in here",
)
ax.axhline(best.value, color="black", lw=1, ls="--", label="minimum")
ax.set(xlabel="iteration", ylabel="mean loss", xscale="log", xlim=(1, None))
ax.legend(frameon=False)
plt.show()
