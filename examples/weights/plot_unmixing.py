"""
Spectral unmixing: thousands of small problems in one call
==========================================================

A pixel of a satellite image mixes a few materials. Its spectrum is a weighted mean of theirs, and
the weights, the abundances, are non-negative and sum to one. That is one small least-squares
problem for each pixel. People loop over the pixels. :func:`extremal.least_squares_many` solves
all of them in one call, and certifies each.
"""

# %%
# An image
# --------
# Five materials with smooth spectra over 80 bands, and 80 x 80 pixels in which they mix.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize, nnls
from threadpoolctl import threadpool_limits

import extremal as ex

threadpool_limits(1)  # one thread for all tools: a fair clock

rng = np.random.default_rng(0)
side, bands, materials = 80, 80, 5
spectra = gaussian_filter(rng.random((bands, materials)), (5, 0)) * 3
depth = np.stack(
    [gaussian_filter(rng.standard_normal((side, side)), 7) for _ in range(materials)], axis=2
)
truth = np.exp(80 * depth)
truth /= truth.sum(axis=2, keepdims=True)
pixels = truth.reshape(-1, materials) @ spectra.T + 0.02 * rng.standard_normal((side * side, bands))

# %%
# One call
# --------
result = ex.least_squares_many(spectra, pixels)
print(result)

# %%
# Beside a loop
# -------------
# ``nnls`` knows no sum: a heavy row asks for it. SLSQP is run for 50 pixels only, and its time is
# scaled up. The first call above has loaded the compiled code of this library.
heavy = 100 * np.linalg.norm(spectra, axis=0).max()
A = np.vstack([spectra, np.full(materials, heavy)])
total = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}


def by_slsqp(b):
    def loss(w):
        r = spectra @ w - b
        return 0.5 * np.mean(r * r), r @ spectra / bands

    start, bounds = np.full(materials, 1 / materials), [(0, 1)] * materials
    return minimize(loss, start, jac=True, bounds=bounds, constraints=total).x


def normalised(b):
    w = nnls(spectra, b)[0]
    return w / w.sum()


tools = {
    "least_squares_many": lambda B: ex.least_squares_many(spectra, B).x,
    "nnls, divided by the sum": lambda B: np.array([normalised(b) for b in B]),
    "nnls, heavy row": lambda B: np.array([nnls(A, np.append(b, heavy))[0] for b in B]),
    "SLSQP, 50 pixels": lambda B: np.array([by_slsqp(b) for b in B[:50]]),
}
bound = result.value - result.gap
rows, seconds = {}, {}
for name, solve in tools.items():
    start = time.process_time()
    W = solve(pixels)
    seconds[name] = (time.process_time() - start) / len(W)
    loss = 0.5 * np.mean(np.square(W @ spectra.T - pixels[: len(W)]), axis=1)
    rows[name] = {
        "violation": f"{max(-W.min(), np.abs(W.sum(axis=1) - 1).max()):.1e}",
        "worst loss above the bound": f"{np.max(loss / bound[: len(W)] - 1):.1e}",
        "microseconds per pixel": f"{1e6 * seconds[name]:.0f}",
        "time as a multiple": f"{seconds[name] / seconds['least_squares_many']:.0f}",
    }
pd.DataFrame(rows).T

# %%
# The abundances of three materials, above as they are in truth and below as found.
found = result.x.reshape(side, side, materials)
fig, axes = plt.subplots(2, 3, figsize=(6.4, 4.3), layout="constrained")
for j in range(3):
    for ax, image in zip(axes[:, j], (truth, found), strict=True):
        shown = ax.imshow(image[:, :, j], vmin=0, vmax=1, cmap="viridis")
        ax.set(xticks=[], yticks=[])
    axes[0, j].set_title(f"material {j + 1}")
axes[0, 0].set_ylabel("truth")
axes[1, 0].set_ylabel("found")
fig.colorbar(shown, ax=axes, label="abundance", shrink=0.8)
plt.show()
