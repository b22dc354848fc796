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
# # A volume and one mask for its slices
#
# Most scans have many slices, and a sequence measures the same lines of all of them. This notebook takes a head of four
# slices, measured at 0.055 T with one coil, designs one mask for all slices together, and reconstructs the volume.

# %%
# %matplotlib inline
import os

import numpy as np

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
LINES = 40
scan = md.load("phantom:lf-fse", recipe="local" if SMALL else None)
print(scan)

# %% [markdown]
# ## One mask
#
# The posterior is inferred for every slice, and the scores of a line are summed over them. A third of the lines is
# left.

# %%
design = scan.design(lines=LINES, block=8 if SMALL else 4, slices="all")
print(design)
design.plot()

# %% [markdown]
# ## All slices
#
# Noise is estimated once for the whole volume. The `array` and `std` of the result have the slices along
# their first axis, and `to_nifti` writes one file of it.

# %%
volume = scan.reconstruct(design.mask, slices="all")
print(volume, volume.array.shape)
volume.plot()

# %% [markdown]
# ## Is one mask enough?
#
# The same number of lines, chosen on a single slice and used for all: each row is a mask, each column the slice whose
# error it is. What a mask gains on the slice it was made for, it may lose on others. The low-pass mask has the lines
# nearest to the centre.


# %%
def errors(mask):
    return [scan.reconstruct(mask, slices=one).errors.relative_l2 for one in range(scan.data.n_slices)]


masks = {"all slices": design.mask, "slice 0 alone": scan.design(lines=LINES, block=8, slices=0).mask}
masks["low-pass"] = np.abs(np.arange(design.mask.size) - design.mask.size // 2 + 0.5) < LINES / 2
print("mask chosen on    " + "".join(f"slice {one}   " for one in range(scan.data.n_slices)) + "mean")
for name, mask in masks.items():
    found = errors(mask)
    print(f"{name:16s}" + "".join(f"{error:9.3f} " for error in (*found, np.mean(found))))
