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
# uncertain; the line whose data would shrink that uncertainty most is the answer. This notebook does it on a head
# whose truth is known, looks at the error bars, and compares with a density that looks at no data.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
MATRIX, LINES = (48, 16) if SMALL else (128, 40)
recipe = md.load_recipe(None)
recipe = recipe.replacing("simulation", matrix=MATRIX)

# %% [markdown]
# ## The scan
#
# `load` takes files and arrays too; `phantom:t2w` is a real 3 T magnitude image, given a smooth phase and noise.
# `prepared` is the scan with what was unknown (noise, and coil maps of several coils).

# %%
scan = md.load("phantom:t2w", recipe=recipe).prepared
one = scan.slice_model(0, recipe)
truth = scan.reference(0)
print(f"grid {one.shape}, noise sd {np.sqrt(one.noise_variance):.4f}, signal {np.percentile(abs(truth), 99.5):.2f}")

# %% [markdown]
# ## The design
#
# It starts from a few centre lines. At each step the double loop infers a Gaussian posterior, every remaining line is
# scored by log det(I + X A⁻¹ Xᴴ), and the best one is measured.

# %%
trace = md.run_design([one], "information-gain", LINES, recipe).trace
print("start lines", trace.start)
print("chosen     ", tuple(step.line for step in trace.steps))

# %%
figure = Figure(figsize=(9, 3), layout="constrained")
order, scores = figure.subplots(1, 2)
order.plot(np.array(trace.lines) - MATRIX // 2, ".")
order.set(xlabel="acquisition", ylabel="ky")
scores.imshow(np.array([step.choice.scores for step in trace.steps]).T, aspect="auto", interpolation="nearest")
scores.set(xlabel="step", ylabel="ky index", title="score of every candidate")
figure

# %% [markdown]
# ## The image and its error bars

# %%
result = md.reconstruct(one, trace.lines, recipe=recipe)
print(md.measure(result.image, truth), result.convergence.status.value)

figure = Figure(figsize=(9, 3), layout="constrained")
panels = figure.subplots(1, 3)
top = np.percentile(abs(result.image - truth), 99.5)
panels[0].imshow(abs(result.image), cmap="gray")
panels[1].imshow(result.std, cmap="magma", vmin=0, vmax=top)
panels[2].imshow(abs(result.image - truth), cmap="magma", vmin=0, vmax=top)
for panel, title in zip(panels, ("posterior mean", "posterior std", "actual error"), strict=True):
    panel.set(title=title, xticks=[], yticks=[])
figure

# %% [markdown]
# ## Against a variable density
#
# The same number of lines, the same reconstruction, five draws. Densities need tuning to be a fair competitor; the
# verb `mri-design compare --train` does that.

# %%
for name in ("vd-polynomial:4", "random", "low-pass"):
    errors = []
    for seed in range(2 if SMALL else 5):
        drawn = md.run_design([one], name, LINES, recipe, seed=seed).trace
        image = md.reconstruct(one, drawn.lines, recipe=recipe, with_std=False).image
        errors.append(md.measure(image, truth).relative_l2)
    print(f"{name:18s} {np.mean(errors):.4f} +- {np.std(errors):.4f}")
print(f"{'information-gain':18s} {md.measure(result.image, truth).relative_l2:.4f}")
