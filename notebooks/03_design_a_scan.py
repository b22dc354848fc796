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
# # Designing a scan, line by line
#
# A scanner measures lines of k-space. Which one should come next? The posterior over the image knows where it is still
# uncertain, and the lines measured so far show how right it was. This notebook replays a real scan: a head at 0.055 T,
# measured with one coil, of which the design may look at a line only after it has chosen it.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
LINES = 48
scan = md.load("phantom:lf-gre", recipe="local" if SMALL else None)
print(scan)

# %% [markdown]
# ## The design
#
# It begins with a few lines at the centre. Then a Gaussian posterior over the image is inferred, the energy that the
# image still misses on every line is predicted from it, and the line with the most is measured; here two lines at a
# time, to save time. The strategy is the default one, `calibrated`, which corrects the posterior's predictions by what
# the lines measured so far have shown.

# %%
design = scan.design(lines=LINES, block=4 if SMALL else 2)
print(design)

# %%
design.plot()

# %% [markdown]
# Every line was predicted before it was measured, by the posterior and the strategy's correction of it. The energy
# found should scatter around the energy predicted:

# %%
predicted = np.array([step.predicted_energy for step in design.trace.steps])
actual = np.array([step.actual_energy for step in design.trace.steps])
figure = Figure(figsize=(4, 4), layout="constrained")
panel = figure.subplots()
panel.loglog(predicted, actual, "o")
panel.loglog([actual.min(), actual.max()], [actual.min(), actual.max()], color="grey", linewidth=1)
panel.set(xlabel="energy predicted", ylabel="energy found", title="one dot for each line chosen")
figure

# %% [markdown]
# ## The image and its error bars
#
# The actual error, on the right, is the difference to the image from all lines, which holds that image's noise, too.

# %%
image = design.reconstruct()
print(image)
image.plot()

# %% [markdown]
# ## Against masks that look at no data
#
# The same number of lines, the same reconstruction. A density has a power that says how quickly lines become rarer away
# from the centre, and should be tuned on other subjects to be a fair competitor (`mri-design compare --train` does
# that); here are three powers, and the lines nearest to the centre.

# %%
DRAWS = 1 if SMALL else 5
print(f"{'designed':18s} {image.error.found:.4f}")
for name in ("low-pass", "vd-polynomial:3", "vd-polynomial:5", "vd-polynomial:8"):
    draws = range(1 if name == "low-pass" else DRAWS)
    errors = [scan.design(lines=LINES, strategy=name, seed=seed).reconstruct().error.found for seed in draws]
    print(f"{name:18s} {np.mean(errors):.4f} +- {np.std(errors):.4f} over {len(errors)}")
