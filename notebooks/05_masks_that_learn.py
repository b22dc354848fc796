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
# # Masks that learn
#
# A posterior says how uncertain every line of k-space is, but it errs; every line that is measured shows by how much.
# The strategy `calibrated` has a model of that error, which starts from random heads and learns from the scan itself.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
MATRIX, LINES = (32, 12) if SMALL else (128, 40)
recipe = md.load_recipe(None).replacing("input", matrix=MATRIX).replacing("simulation", phase="rough")


def slice_of(name, seed=0):
    scan = md.load(name, recipe=recipe, seed=seed).calibrated
    return scan.slice_model(0, **recipe.slice_settings), md.experiment.truth_of(scan)


one, truth = slice_of("phantom:t2w")

# %% [markdown]
# ## What it knows beforehand
#
# No real scan: heads like these, drawn at random, measured along all kinds of masks. On the right is the head of this
# notebook, a 3 T image with a rough phase, which is not one of them.

# %%
heads = [md.scan.random_head(MATRIX, np.random.default_rng(seed)) for seed in range(3)]
figure = Figure(figsize=(9, 2.6), layout="constrained")
for panel, image in zip(figure.subplots(1, 4), (*heads, truth), strict=True):
    panel.imshow(abs(image), cmap="gray", vmax=1.1)
    panel.set(xticks=[], yticks=[], title="this scan" if image is truth else "random head")
figure

# %% [markdown]
# ## Four designs
#
# The papers' rule, the one that learns, a density that looks at nothing (one draw), an oracle that looks at the truth:
# their masks, and the relative error of the image.


# %%
def design(strategy, slices=(one,), stop=None, lines=LINES):
    start = strategy.default_start(one.candidates, lines)
    options = md.experiment.DesignOptions(stop=stop)
    return md.run_design(slices, strategy, lines, recipe, seed=0, start=start, options=options).trace


def error(lines):
    image = md.reconstruct(one, lines, "mean", recipe, np.random.default_rng(0), with_std=False).image
    return md.measure(image, truth).relative_l2


learner, oracle = md.design.Calibrated(), md.design.OracleResidual(truths=(truth,))
rules = [md.make_strategy("information-gain"), learner, md.make_strategy("vd-polynomial:4"), oracle]
traces = {rule.name: design(rule) for rule in rules}
errors = {name: error(trace.lines) for name, trace in traces.items()}

figure = Figure(figsize=(9, 2), layout="constrained")
axes = figure.subplots()
axes.imshow([trace.mask() for trace in traces.values()], aspect="auto", interpolation="nearest", cmap="gray_r")
axes.set(xlabel="ky index", yticks=range(len(traces)), yticklabels=[f"{n}: {errors[n]:.3f}" for n in traces])
figure

# %% [markdown]
# ## Predicted and found
#
# The energy of what a line adds to the image so far, predicted before it is measured, and found. It takes no truth.

# %%
trace = traces["calibrated"]
noise = 2 * one.noise_variance * MATRIX  # in one line
found = np.array([step.actual_energy for step in trace.steps])
figure = Figure(figsize=(9, 3), layout="constrained")
cloud, course = figure.subplots(1, 2)
for name in ("expected", "corrected"):
    predicted = np.array([getattr(step.forecast, name)[step.line] for step in trace.steps]) + noise
    cloud.loglog(predicted, found, ".", label=name)
    course.semilogy(predicted / found, ".-", label=name)
cloud.axline((noise, noise), (100 * noise, 100 * noise), color="grey")
cloud.set(xlabel="predicted energy", ylabel="found energy")
course.axhline(1, color="grey")
course.set(xlabel="step", ylabel="predicted / found")
cloud.legend()
figure

# %% [markdown]
# ## What the scan taught
#
# Left: the weights of the error model, from random heads (with their spread between heads) and after this scan's lines.
# Right: the error that is really left on every unmeasured line, and what three parties think of it.

# %%
posterior = md.DoubleLoop(md.variances.ControlVariate()).infer(one.model(trace.lines), np.random.default_rng(0))
view = md.design.DesignView(md.design.LineCandidates(one.measured, trace.lines, LINES), [posterior], trace.steps)
before, after = learner.error_models(view)
forecast = learner.predicted(view, np.random.default_rng(0))
untaught = md.design.Calibrated(online=False).predicted(view, np.random.default_rng(0))
actual = np.sum(abs(one.encoding()(posterior.mean - truth)) ** 2, axis=(0, 2))
predictions = {
    "posterior": forecast.expected,
    "random heads": untaught.corrected,
    "and this scan": forecast.corrected,
}

figure = Figure(figsize=(9, 4.5), layout="constrained")
weights, lines = figure.subplots(1, 2)
for shift, (model, name) in enumerate(((before, "random heads"), (after, "and this scan"))):
    places, spread = np.arange(len(md.design.FEATURES)) + 0.3 * shift, np.sqrt(np.diag(model.covariance))
    weights.errorbar(model.mean, places, xerr=spread, fmt=".", label=name)
weights.set(yticks=range(len(md.design.FEATURES)), yticklabels=md.design.FEATURES, xlabel="weight")
weights.legend(loc="upper left")
left = ~trace.mask()
lines.semilogy(np.where(left, actual, np.nan), "k.", label="actual")
for name, energies in predictions.items():
    lines.semilogy(np.where(left, energies, np.nan), label=name)
    print(f"{name:13s} predicted / actual, median {np.median(energies[left] / actual[left]):.2f}")
lines.set(xlabel="ky index", ylabel="energy of the error")
lines.legend()
figure

# %% [markdown]
# ## When to stop, and a mask for many
#
# The corrected energies of the unmeasured lines add up to the error that is left: a design can end by it. And scores of
# several scans can be added, for one mask that serves others too; `mri-design protocol` does it for whole data sets.

# %%
rule = md.design.StopRule(error=0.15 if SMALL else 0.1)
ended = design(learner, stop=rule, lines=MATRIX)
last = (ended.declined or ended.steps[-1]).forecast
print(f"{len(ended.lines)} lines; predicted error {last.predicted_error:.3f}, actual {error(ended.lines):.3f}")
shared = design(learner, slices=[slice_of("phantom:t1w", seed)[0] for seed in (1, 2)])
print(f"mask designed on another head {error(shared.lines):.3f}, on this scan itself {errors['calibrated']:.3f}")
