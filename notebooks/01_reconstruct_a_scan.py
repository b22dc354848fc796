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
# A head was measured at 3 T with sixteen receive coils, all 128 lines of it. This notebook keeps every third line and
# those at the centre, and reconstructs the image four ways, from filling in zeros to the posterior mean, which comes
# with error bars. The image from all lines is there to hold them against.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
scan = md.load("phantom:head-16ch", recipe="local" if SMALL else None)
print(scan)

# %% [markdown]
# `md.load` reads k-space from files of many formats; this scan comes with the package. Neither the noise nor the
# sensitivity maps of the coils are in its file. Both are estimated: the noise from the scan, after which the coils are
# mixed so that their noise is independent (prewhitening), and the maps from the lines at the centre (ACS lines,
# autocalibration).

# %%
maps = scan.calibrated.maps_as_read[0]
figure = Figure(figsize=(9, 2.6), layout="constrained")
for number, panel in enumerate(figure.subplots(1, 4)):
    panel.imshow(abs(maps[4 * number]).T, cmap="gray", vmin=0)
    panel.set(title=f"coil {4 * number + 1}", xticks=[], yticks=[])
figure

# %% [markdown]
# ## The mask
#
# A boolean for every line. Regular undersampling by three with 24 lines at the centre is what a scanner offers; 59
# lines are left.

# %%
mask = np.zeros(128, dtype=bool)
mask[::3] = True
mask[52:76] = True
print(f"{mask.sum()} of {mask.size} lines: acceleration {mask.size / mask.sum():.1f}")

# %% [markdown]
# ## Four reconstructions of the same data
#
# - **zero-filled**: lines that are missing count as zero;
# - **least squares**: what fits the data of all coils best, which is SENSE without a prior;
# - **MAP**: the most probable image under a sparse prior (dark background, piecewise smooth): compressed sensing;
# - **posterior mean**: the average over all images that agree with data and prior, with a standard deviation for every
#   pixel.

# %%
methods = ("zero-filled", "least-squares", "map", "mean")
found = {method: scan.reconstruct(mask, method=method) for method in methods}
print(f"{'':14s}  PSNR  SSIM  error")
for method, image in found.items():
    score = image.errors
    print(f"{method:14s} {score.psnr:5.1f} {score.ssim:5.3f}  {image.error}")

# %% [markdown]
# The error is that of the complex image: as the error bars predict it, and as it was found by the image from all lines.
# That image has noise of its own, which no reconstruction from fewer lines can reproduce: it is taken off. PSNR and
# SSIM are of magnitudes inside the object, and hold it.

# %%
figure = Figure(figsize=(11, 5.4), layout="constrained")
full = abs(found["mean"].reference)
top = np.percentile(full, 99.5)
for (shown, error), (method, image) in zip(figure.subplots(2, 4).T, found.items(), strict=True):
    shown.imshow(abs(image.array).T, cmap="gray", vmin=0, vmax=top)
    error.imshow(abs(abs(image.array) - full).T, cmap="magma", vmin=0, vmax=0.15 * top)
    shown.set(title=method, xticks=[], yticks=[])
    error.set(xlabel="error", xticks=[], yticks=[])
figure

# %% [markdown]
# ## Error bars
#
# `std` is the standard deviation of every complex pixel. It tells best *where* to doubt an image: sort the pixels by
# it, and the error should grow. Where the coils tell pixels apart less well it is larger, as the g-factor is.

# %%
mean = found["mean"]
error = abs(mean.array - mean.reference)
print("pixels      mean std   rms error")
for rank, group in enumerate(np.array_split(np.argsort(mean.std, axis=None), 4)):
    rms = np.sqrt(np.mean(error.ravel()[group] ** 2))
    print(f"quarter {rank + 1}   {mean.std.ravel()[group].mean():8.2e}    {rms:8.2e}")
mean.plot()

# %% [markdown]
# `mean.report("folder")` writes the report that the command `mri-design recon` leaves, and
# `mean.to_nifti("image.nii.gz")` takes image and error bars to other programs.
