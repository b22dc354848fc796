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
# # Which inference, which variances
#
# A sparse model is Gaussian data times **sites** t(s), one per coefficient s = B u. Inference replaces every site by a
# Gaussian of its own width, found from the **variances** z = Var[s] / σ², which are what costs. Here every way to them
# is held against one exact answer; a table at the end says what to use when.

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

N = 32 if os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small" else 64
s = np.linspace(-4, 4, 201)
axes = (figure := Figure(figsize=(6, 3), layout="constrained")).subplots()
for site in (
    md.sites.Gaussian(1),
    md.sites.Laplace(1),
    md.sites.ExponentialPower(0.5, 1),
    md.sites.StudentT(3, 1),
    md.sites.Logistic(1, 2),
):
    axes.plot(s, site.log_t(s), label=f"{type(site).__name__}, {'' if site.log_concave else 'not '}log-concave")
axes.set(xlabel="s / σ", ylabel="log t(s)", ylim=(-5, 1))
axes.legend(fontsize=7)
figure

# %% [markdown]
# ## The exact answer, for once
# A quarter of the lines of one coil, Laplace sites on pixels and differences. For such models `ExactByColumns` knows z
# by elimination, one image column after the other; `Exact` is dense algebra for any model of some thousand unknowns.

# %%
recipe = md.load_recipe(None).replacing("input", matrix=N)
scan = md.load("phantom:t2w", recipe=recipe).calibrated
truth, one = md.experiment.truth_of(scan), scan.slice_model(0, **recipe.slice_settings)
rule = md.make_strategy("vd-polynomial:4")
lines = md.run_design([one], rule, N // 4, recipe, seed=0, start=rule.default_start(one.candidates, N // 4)).trace.lines
model, inner, rng = one.model(lines), md.estimation.Automatic(1e-6), np.random.default_rng(0)
posteriors = {
    name: md.DoubleLoop(md.variances.ExactByColumns(), inner, 20, tolerance=1e-3, algorithm=name).infer(model, rng)
    for name in ("second", "hybrid", "first")
}
exact = posteriors["second"]

# %% [markdown]
# ## Variances: what a product with A buys
# Every estimator says its **kind**: a `lower_bound` is too small by an unknown amount; `unbiased` has a standard error
# and, as its draws are solved to a tolerance, a `bias`. A formula tells what the nearest circulant explains of control
# variates. Right: double loops, tangents to one convex criterion φ: all must meet; the hybrid is the second class.

# %%
analyses, z = [block.analysis for block in model.blocks], exact.marginals.values[1]
families = {
    "Lanczos": [md.variances.Lanczos(k) for k in (10, 30, 100, 300)],
    "perturb-and-solve": [md.variances.MonteCarlo(k) for k in (2, 8, 32)],
    "control variate": [md.variances.ControlVariate(k) for k in (2, 8, 32)],
}
left, right = (figure := Figure(figsize=(9, 3), layout="constrained")).subplots(1, 2)
print(f"{'':18s} {'kind':12s} products  median error  stated standard error, bias")
for name, family in families.items():
    found = [estimator(exact.precision, analyses, np.random.default_rng(0), exact.mean) for estimator in family]
    errors = [np.median(abs(f.values[1] / z - 1)) for f in found]
    for f, error in zip(found, errors, strict=True):
        stated = "none" if f.bias is None else ", ".join(f"{np.median(v[1] / z):.1%}" for v in (f.std_error, f.bias))
        print(f"{name:18s} {f.kind:12s} {f.convergence.matvecs:8d} {error:13.1%}  {stated}")
    left.loglog([f.convergence.matvecs for f in found], errors, ".-", label=name)
for name, found in posteriors.items():
    print(f"{name:6s} class: {found.convergence.iterations} loops, criterion {found.criterion_kind}")
    right.semilogy(np.array(found.criterion) / exact.criterion[-1] - 1 + 1e-9, ".-", label=name)
left.set(xlabel="products with A", ylabel="median relative error of z")
right.set(xlabel="outer loop", ylabel="(φ - φ*) / φ*")
left.legend()
right.legend()
figure

# %% [markdown]
# ## Solvers, and MAP with a certificate
# Each loop solves a penalised problem whose corners are rounded by z; MAP is the same with z = 0. The sharper the
# corners, the more ADMM gains over L-BFGS and IRLS: `Automatic` looks and picks one. At smoothing 0 the duality gap
# proves how far MAP's objective can be from its minimum.

# %%
for what, shrink in (("posterior", 1.0), ("nearly MAP", 1e-4)):
    problem = md.estimation.PenalisedProblem.smoothed(model, tuple(shrink * v for v in exact.marginals.values))
    for solver in (
        md.estimation.IRLS(max_iterations=500),
        md.estimation.LBFGS(),
        md.estimation.ADMM(),
        md.estimation.Automatic(),
    ):
        how = solver(problem, model.back_projection())[1]
        print(f"{what:10s} {type(solver).__name__:9s} {how.matvecs:5d} products, {how.status.value}")
point = md.map_estimate(model, smoothing=0.0)
print(f"MAP: {point.convergence.status.value}, relative excess at most {point.gap.relative:.1e}")
errors = [md.measure(image, truth).relative_l2 for image in (point.image, exact.mean)]
print(f"relative errors: MAP {errors[0]:.4f}, posterior mean {errors[1]:.4f}")

# %% [markdown]
# ## Learning the scales, and what it costs
# The data know something of how sparse the image is: `learn_hyperparameters` moves every rate to where the variational
# evidence is largest. The posterior then knows which unmeasured lines it gets wrong, and errs on the safe side in sum,
# where the default prior promises too much. The image itself loses: evidence gives up the dark background.

# %%
learnt = md.inference.learn_hyperparameters(
    model, md.DoubleLoop(md.variances.ControlVariate(8), None, 10, 0.02), rng, tolerance=0.05
)
print({name: f"rate x {rate:.2g}" for name, rate in learnt.trace[-1].rates.items()}, learnt.convergence.status.value)
every, rest = one.encoding(), np.setdiff1d(np.arange(N), lines)
panels = (figure := Figure(figsize=(9, 3), layout="constrained")).subplots(1, 2, sharey=True)
for panel, name, found in zip(panels, ("before", "after"), (exact, learnt.posterior), strict=True):
    power = np.mean(abs(every(found.deviations(np.random.default_rng(0), 64))) ** 2, axis=(0, 1))
    predicted = model.noise_variance * power.sum(axis=1)[rest]
    actual = np.sum(abs(every(found.mean - truth)) ** 2, axis=(0, 2))[rest]
    order = np.corrcoef(predicted.argsort().argsort(), actual.argsort().argsort())[0, 1]
    inside = np.mean(abs(found.mean - truth) ** 2 < 4 * found.image_variances)
    print(f"{name:6s} predicted / actual {predicted.sum() / actual.sum():.2f}, rank correlation {order:.2f},", end=" ")
    print(f"{inside:.1%} within 2 sd (98.2 if right), image {md.measure(found.mean, truth).relative_l2:.3f}")
    panel.semilogy(rest - N // 2, actual, "k.", label=f"actual error, {name} learning")
    panel.semilogy(rest - N // 2, predicted, "C1.", label="predicted")
    panel.set(xlabel="unmeasured line (ky)", ylabel="energy of the error")
    panel.legend()
figure

# %% [markdown]
# ## The same engine without an image
# Logistic sites on labels, Gaussian ones on weights. The bounds on log P(labels) see that feature three does nothing.

# %%
inputs = (rng := np.random.default_rng(1)).standard_normal((80, 3))
labels = np.where(rng.random(80) < 1 / (1 + np.exp(-inputs @ [2.0, -1.0, 0.0])), 1, -1)
for count in (1, 2, 3):
    likelihood = md.SiteBlock("labels", md.operators.Dense(inputs[:, :count]), md.sites.Logistic(labels))
    weights = md.SiteBlock("weights", md.operators.Identity((count,), is_complex=False), md.sites.Gaussian(0.25))
    regression = md.GeneralizedLinearModel.of_sites([likelihood, weights])
    found = md.DoubleLoop(md.variances.Exact(), outer_iterations=50, tolerance=1e-5).infer(regression, rng)
    print(found.mean.round(2), "+-", np.sqrt(found.image_variances).round(2), md.inference.log_evidence(found))

# %% [markdown]
# ## Which to use when
# | for | use |
# |---|---|
# | any scan | `ControlVariate()`, 2 to 8 samples; several coils up to 128 x 128 take columns by themselves |
# | bounds and Bayes factors | `ExactByColumns()` (pixels and differences), `Exact()` (small) |
# | real images, matrices | `MonteCarlo(samples)`; and `Lanczos(steps)` to repeat the papers |
# | sites that are not log-concave | `algorithm="hybrid"`, for a local optimum; the second class otherwise |
# | an image; cautious error bars | `map_estimate`; `learn_hyperparameters` |
