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
# # How many lines until a lesion is known
#
# A scan has a purpose, and that is seldom the error of the whole image. Here it is the brightness of one lesion: the
# scan is to stop when it is known to within three per cent, in nine of ten cases. We plant a lesion in a head, let the
# program choose lines until its interval is short enough, and compare with the truth, which only we know.

# %%
# %matplotlib inline
import os
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import mri_design as md
from mri_design.operators.conventions import to_kspace

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
MATRIX, WITHIN = (64, "6%") if SMALL else (128, "3%")
head = md.load("phantom:t2w", matrix=MATRIX, recipe="local" if SMALL else None)
truth = head.data.reference[0]
y, x = np.indices(truth.shape) / MATRIX
lesion = np.hypot(y - 0.55, x - 0.4) < 0.05
added = 0.3 * np.percentile(np.abs(truth), 90) * lesion * np.exp(1j * np.angle(truth))
scan = md.load(
    replace(head.data, kspace=head.data.kspace + to_kspace(added), reference=head.data.reference + added[None]),
    recipe=head.recipe,
)

# %% [markdown]
# ## Until the region is known
#
# The region is an array of flags on the grid of the image; a file that was drawn on an exported image does as well.

# %%
design = scan.design(region=lesion, until_interval=WITHIN)
(mean,) = design.image.measure(lesion)
low, high = mean.interval(0.9)
print(
    f"{len(design.lines)} of {MATRIX} lines: {mean.middle:.4f}, between {low:.4f} and {high:.4f}; true {mean.true:.4f}"
)
print(f"error of the whole image: {design.image.error}")

# %% [markdown]
# ## How the interval shrank
#
# The design looked at its image now and then. Every look has the intervals of all regions: the middle, half of the
# length, and the brightness that per cents refer to.

# %%
steps = [*design.trace.steps, design.trace.declined]
start = len(design.trace.start)
looks = {
    start + at: step.forecast.intervals[0]
    for at, step in enumerate(steps)
    if step and step.forecast.intervals is not None
}
counts, (middles, halves, _) = list(looks), np.transpose(list(looks.values()))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=(1, 2))
left.imshow(np.abs(design.image.array), cmap="gray", vmin=0)
left.contour(lesion, [0.5], colors="C1")
left.set_axis_off()
right.fill_between(counts, middles - halves, middles + halves, alpha=0.3, label="interval of 90 %")
right.plot(counts, middles, "o-")
right.axhline(mean.true, color="C1", linestyle="--", label="true")
right.set(xlabel="measured lines", ylabel="mean of the lesion")
right.legend()

# %% [markdown]
# ## What to think of it
#
# One interval either holds or it does not. `results/regions` has what intervals do over many regions and subjects, and
# how many lines a region needs compared with an image. Ask for a difference of two regions with `difference=(a, b)`. At
# a scanner, `mri-design adapt --region lesion.nii.gz --until-interval 3%` stops the scan.
