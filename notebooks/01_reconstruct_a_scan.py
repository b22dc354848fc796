# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reconstructing a scan
#
# Some lines of k-space were measured, the others were not, and all are noisy. This notebook takes one mask and
# reconstructs the image four ways, from filling in zeros to the posterior mean, which comes with error bars. The truth
# is known, so everything can be checked.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
MATRIX, CENTRE, OUTER = (48, 8, 10) if SMALL else (128, 16, 28)
recipe = md.load_recipe(None).replacing("simulation", matrix=MATRIX, noise=0.01)

# %% [markdown]
# ## The scan and its mask
#
# `phantom:t2w` is a real 3 T magnitude image, given a smooth phase and noise; `load` takes files and arrays too, and
# finds what is unknown. The mask holds the centre lines and some of the outer ones, drawn once, more of them near the
# centre.

# %%
scan = md.load("phantom:t2w", recipe=recipe)
truth = scan.data.reference[0]
ky = np.arange(MATRIX) - MATRIX // 2
centre = abs(ky + 0.5) < CENTRE / 2
weight = np.where(centre, 0, (1 - abs(ky) / MATRIX) ** 4)
outer = np.random.default_rng(1).choice(MATRIX, OUTER, replace=False, p=weight / weight.sum())
lines = sorted({*np.flatnonzero(centre).tolist(), *outer.tolist()})
print(f"{len(lines)} of {MATRIX} lines: acceleration {MATRIX / len(lines):.1f}")
print(
    f"noise sd {np.sqrt(scan.data.noise_variance):.4f} per real component, signal {np.percentile(abs(truth), 99.5):.2f}"
)

# %% [markdown]
# ## Four reconstructions of the same data
#
# - **zero-filled**: lines that are missing count as zero;
# - **least squares**: fit the data, a little damped. For one coil nothing speaks about the missing lines, so this is
#   zero filling again; several coils would fill some of them;
# - **MAP**: the most probable image under the sparse prior (dark background, piecewise smooth);
# - **posterior mean**: the average over all images that agree with data and prior, with a standard deviation for every
#   pixel.

# %%
methods = ("zero-filled", "least-squares", "map", "mean")
found = {method: scan.reconstruct(lines, method=method) for method in methods}
print(f"{'':14s} rel. error  PSNR  SSIM")
for method, result in found.items():
    score, status = result.errors, result.reconstruction.convergence.status.value
    print(f"{method:14s} {score.relative_l2:10.4f} {score.psnr:5.1f} {score.ssim:5.3f}", status)

# %% [markdown]
# The relative error is that of the magnitude, and the last column says whether the algorithm reached its tolerance:
# read the other numbers only where it did.

# %%
figure = Figure(figsize=(11, 5), layout="constrained")
top = np.percentile(abs(truth), 99.5)
for (image, error), (method, result) in zip(figure.subplots(2, 4).T, found.items(), strict=True):
    image.imshow(abs(result.array), cmap="gray", vmin=0, vmax=top)
    error.imshow(abs(abs(result.array) - abs(truth)), cmap="magma", vmin=0, vmax=0.2 * top)
    image.set(title=method, xticks=[], yticks=[])
    error.set(xlabel="error", xticks=[], yticks=[])
figure

# %% [markdown]
# ## Reading the error bars
#
# `std` is sqrt(E|u - mean|²) of the complex pixel. Were it right everywhere, the mean of |error|² / std² would be 1;
# above that the bars promise too much, below it too little. What they tell better is *where* to doubt: sort the pixels
# by std, and the error should grow with it.

# %%
mean = found["mean"]
error = abs(mean.array - truth)
print(f"mean of |error|^2 / std^2: {np.mean(error**2 / mean.std**2):.2f}")
print(f"correlation of std and |error|: {np.corrcoef(mean.std.ravel(), error.ravel())[0, 1]:.2f}")
print("pixels      mean std   rms error")
for rank, group in enumerate(np.array_split(np.argsort(mean.std, axis=None), 4)):
    rms = np.sqrt(np.mean(error.ravel()[group] ** 2))
    print(f"quarter {rank + 1}   {mean.std.ravel()[group].mean():8.4f}    {rms:8.4f}")

# %%
figure = Figure(figsize=(6, 3), layout="constrained")
for panel, title, values in zip(figure.subplots(1, 2), ("std", "|error|"), (mean.std, error), strict=True):
    panel.imshow(values, cmap="magma", vmin=0, vmax=np.percentile(error, 99.5))
    panel.set(title=title, xticks=[], yticks=[])
figure
