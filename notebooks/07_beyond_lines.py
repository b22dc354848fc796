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
# # Beyond lines
#
# A 3-D scan encodes phase along two directions, so that it may measure any samples of a plane; other scans run along
# spokes or spirals. This notebook designs a mask of a plane, looks at what spokes and spirals do to a point,
# reconstructs along both with error bars, and asks the posterior which spoke should come next. Trajectories other than
# lines need FINUFFT: `pip install .[nonuniform]`.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
MATRIX, SPOKES, ARMS, DRAWS = (48, 12, 4, 2) if SMALL else (128, 32, 12, 5)
recipe = md.load_recipe("local").replacing("input", matrix=MATRIX)


def panels(titles, pictures, **drawn):
    """Side by side."""
    figure = Figure(figsize=(3 * len(pictures), 3.2), layout="constrained")
    for axes, title, picture in zip(figure.subplots(1, len(pictures)), titles, pictures, strict=True):
        axes.imshow(picture, **drawn)
        axes.set(title=title, xticks=[], yticks=[])
    return figure


# %% [markdown]
# ## A mask of a plane that grows
#
# Rows and columns of the image stand for ky and kz. Samples are chosen in blocks: the posterior is inferred, expects an
# error at every sample, and a block of the largest ones, thinned out among neighbours, is measured. What is found
# there corrects the next expectation. No model was trained beforehand.

# %%
plane = recipe.replacing("design", encoding="plane")
scan = md.load("phantom:t2w", recipe=plane).calibrated
one, truth = scan.slice_model(0, **plane.slice_settings), md.experiment.truth_of(scan)
samples = MATRIX**2 // 6


def designed(name, seed):
    """Samples in the order of choice."""
    strategy = md.make_strategy(name, "plane")
    start = strategy.default_start(one.candidates, samples)
    return md.run_design([one], strategy, samples, plane, seed=seed, start=start).trace.lines


counts = samples // 4, samples // 2, samples
order = designed("calibrated", 0)
growth = [np.isin(np.arange(MATRIX**2), order[:count]).reshape(MATRIX, MATRIX) for count in counts]
panels([f"{count} samples" for count in counts], growth, cmap="gray")

# %% [markdown]
# ## Against masks that look at nothing
#
# As many samples, the same reconstruction; mean and spread over draws. Densities need tuning to be a fair competitor;
# `mri-design compare --encoding plane --train` does that.

# %%
for name in ("calibrated", "vd-polynomial:8", "poisson-disc", "low-pass"):
    errors = []
    for seed in range(DRAWS):
        image = md.reconstruct(one, designed(name, seed), "mean", plane, np.random.default_rng(0), with_std=False).image
        errors.append(md.measure(image, truth).relative_l2)
    print(f"{name:16s} {np.mean(errors):.4f} +- {np.std(errors):.4f}")

# %% [markdown]
# ## Spokes and spirals, and what they do to a point
#
# An even number of spiral arms over the full turn measures k and -k: of a real image both tell the same. Half a turn
# puts the mirror images between the arms. A point-spread function does not show this, since it assumes nothing about
# the image; it shows how far from the point its artefacts begin.

# %%
limits = md.scan.GradientLimits(amplitude=0.04, slew=150.0)  # T/m, T/m/s
turns = md.scan.nyquist_turns(MATRIX, 4 * ARMS, density=1.5)
arm = md.scan.spiral_readout(MATRIX, turns, limits, field_of_view=0.24, density=1.5).samples
sets = {
    "golden spokes": md.operators.radial_spokes(MATRIX, md.operators.golden_angles(SPOKES)),
    "spiral, even full turn": md.operators.turned(arm, md.operators.interleaf_angles(ARMS, "full-turn")),
    "spiral, half turn": md.operators.turned(arm, md.operators.interleaf_angles(ARMS, "half-turn")),
}
figure = Figure(figsize=(9, 6), layout="constrained")
for (curves, spread), (title, shots) in zip(figure.subplots(2, 3).T, sets.items(), strict=True):
    for shot in shots:
        curves.plot(shot[:, 1], shot[:, 0], color="0.3", linewidth=0.5)
    curves.set(title=f"{title}: {shots.shape[0]} x {shots.shape[1]}", aspect="equal", xlabel="kx", ylabel="ky")
    point = abs(md.scan.point_spread(shots, (MATRIX, MATRIX)))
    spread.imshow(20 * np.log10(point + 1e-3), vmin=-60, vmax=0)
    spread.set(title="point spread, -60 to 0 dB", xticks=[], yticks=[])
figure

# %% [markdown]
# ## The image and its error bars
#
# The scan is of ellipses whose transform is known at every k, so that nothing is measured by the operator that
# reconstructs it. Standard deviations are the posterior's own: they show where to doubt the image, and are too small.

# %%
results = {}
for title, shots in sets.items():
    made = md.scan.load_phantom_shots("brain", shots, shape=MATRIX, rng=np.random.default_rng(0))
    data = md.TrajectoryData(made.kspace, made.trajectory, (MATRIX, MATRIX), noise_variance=made.noise_variance)
    along = md.calibrate(data, recipe).slice_model(0, **recipe.slice_settings)
    found = md.reconstruct(along, None, "mean", recipe, np.random.default_rng(0))
    results[title] = along, found, made.reference[0]
    score = md.measure(found.image, made.reference[0]).relative_l2
    print(f"{title:24s} error {score:.4f}", found.convergence.status.value)

# %%
_, found, reference = results["golden spokes"]
print(f"mean of |error|^2 / std^2: {np.mean(abs(found.image - reference) ** 2 / found.std**2):.2f}")
pictures = [abs(found.image), 4 * found.std, 4 * abs(found.image - reference)]
panels(["posterior mean", "posterior std, x 4", "actual error, x 4"], pictures, cmap="gray", vmin=0, vmax=1)

# %% [markdown]
# ## Which spoke next?
#
# Draws of the posterior tell how much information any spoke would bring (a few draws tell too little, but of all spokes
# alike), and its gradient in the angle; from the best candidate it goes uphill to an angle that is no candidate.

# %%
model = results["golden spokes"][0].model()
root = md.glm.drawn_root(recipe.inference.engine().infer(model, np.random.default_rng(0)), np.random.default_rng(1))
angles = np.linspace(0, np.pi, 4 * SPOKES, endpoint=False)
family = md.glm.rotations(md.operators.radial_spokes(MATRIX, [0.0])[0])
best = md.glm.best_shot(
    root, family, angles, lambda k: md.operators.NonUniformFourier(k, (MATRIX, MATRIX)), radius=angles[1]
)
print(f"best candidate {best.candidate_gains.max() / 2:.2f} nats, after its gradient {best.gain / 2:.2f}")
axes = (figure := Figure(figsize=(7, 2.6), layout="constrained")).subplots()
axes.plot(np.degrees(angles), best.candidate_gains / 2, ".-")
axes.plot(np.degrees(best.parameters), [best.gain / 2], "*", markersize=12)
axes.vlines(np.degrees(md.operators.golden_angles(SPOKES) % np.pi), *axes.get_ylim(), color="0.8", zorder=0)
axes.set(xlabel="angle (degrees); grey: measured", ylabel="information (nats)")
figure
