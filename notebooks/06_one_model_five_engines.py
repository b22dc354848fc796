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
# # One model, five engines
#
# Labels are logistic in two weights, and the weights have a Gaussian prior: sites on linear projections, as in every
# image of the other notebooks. Each engine replaces every site by a Gaussian; they differ in how they choose
# it. With two weights the exact posterior can be summed on a grid, and every engine be held against it.

# %%
# %matplotlib inline
import os
import time

import numpy as np
from matplotlib.figure import Figure

import mri_design as md

COUNT = 30 if os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small" else 60
rng, truth = np.random.default_rng(4), np.array([2.5, -1.0])
inputs = rng.standard_normal((COUNT, 2))
response = md.sites.BernoulliResponse()
labels = response.draw(inputs @ truth, rng)
prior = md.SiteBlock("weights", md.operators.Identity((2,), is_complex=False), md.sites.Gaussian(0.1))
likelihood = md.SiteBlock("labels", md.operators.Dense(inputs), md.sites.Logistic(labels))
model = md.GeneralizedLinearModel.of_sites([likelihood, prior])

# %% [markdown]
# ## The exact posterior, on a grid
# `log_t` of the sites is all it takes: log Z is the log of the integral of their product.

# %%
axis = np.linspace(-4, 9, 521)
grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
log_joint = sum(block.potential.log_t(grid @ block.analysis.to_dense().T).sum(axis=-1) for block in model.blocks)
weights = np.exp(log_joint - log_joint.max())
log_z = np.log(weights.sum() * (axis[1] - axis[0]) ** 2) + log_joint.max()
weights /= weights.sum()
exact_mean = np.einsum("ij,ijk->k", weights, grid)
exact_std = np.sqrt(np.einsum("ij,ijk->k", weights, (grid - exact_mean) ** 2))

# %% [markdown]
# ## The engines
# - `DoubleLoop`: tangents to every site from below, widths by convex optimisation. A lower bound on log Z.
# - `VariationalGaussian`: the Gaussian nearest in relative entropy. A lower bound, never below the double loop's.
# - `DecoupledGaussian`: the same optimum by another road, one small problem per site.
# - `LaplacePropagation`: mode and curvature, from chunks of sites that never meet. No bound.
# - `LaplaceFilter`: every site once, in order, as in an experiment that runs. No bound.

# %%
engines = {
    "double loop": md.DoubleLoop(md.variances.Exact(), outer_iterations=60, tolerance=1e-6),
    "variational Gaussian": md.glm.VariationalGaussian(md.variances.Exact(), tolerance=1e-6),
    "decoupled": md.glm.DecoupledGaussian(tolerance=1e-3),
    "Laplace propagation": md.glm.LaplacePropagation(chunk_size=10),
    "Laplace filter": md.glm.LaplaceFilter(),
}
found = {}
print(f"{'':21s} {'mean':>14s}   {'std':>12s}   bound on log Z   seconds")
for name, engine in engines.items():
    began = time.perf_counter()
    posterior = found[name] = engine.infer(model, np.random.default_rng(0))
    seconds, std = time.perf_counter() - began, np.sqrt(posterior.image_variances)
    bound = f"{md.inference.evidence_bound(model, posterior.criterion[-1]):.4f}" if posterior.criterion else "none"
    print(f"{name:21s} {posterior.mean.round(3)!s:>14s}   {std.round(3)!s:>12s}   {bound:>14s}   {seconds:.3f}")
print(f"{'exact':21s} {exact_mean.round(3)!s:>14s}   {exact_std.round(3)!s:>12s}   {log_z:>14.4f}")

# %% [markdown]
# The posterior leans towards large weights: its mean lies beyond its mode. The variational Gaussian sees that, engines
# that look at one point do not. The double loop's bound is the looser one, and its widths are the most confident.

# %%
panels = (figure := Figure(figsize=(10, 2.6), layout="constrained")).subplots(1, 5, sharex=True, sharey=True)
angles = np.linspace(0, 2 * np.pi, 100)
circle = np.stack([np.cos(angles), np.sin(angles)])
for panel, (name, posterior) in zip(panels, found.items(), strict=True):
    panel.contour(axis, axis, log_joint.T - log_joint.max(), levels=[-4.5, -2, -0.5], colors="0.6", linestyles="solid")
    root = np.linalg.cholesky(md.glm.FilterState.from_posterior(posterior).covariance)
    for radius in (1, 2):
        panel.plot(*(posterior.mean[:, None] + radius * root @ circle), "C0", lw=1)
    panel.plot(*posterior.mean, "C0.")
    panel.plot(*exact_mean, "kx")
    panel.set(title=name, xlim=(0.5, 6), ylim=(-3, 1), xlabel="weight 1")
panels[0].set_ylabel("weight 2")
figure

# %% [markdown]
# ## Sites that not every engine takes
# Counts have no super-Gaussian bound. The double loop says so and names the engines that do take them.

# %%
counts = rng.poisson(np.exp(inputs @ [0.5, -0.5]))
small = md.SiteBlock("weights", md.operators.Identity((2,), is_complex=False), md.sites.Gaussian(1.0))
spikes = md.GeneralizedLinearModel.of_sites(
    [md.SiteBlock("counts", md.operators.Dense(inputs), md.sites.Poisson(counts)), small]
)
try:
    engines["double loop"].infer(spikes, rng)
except md.InputError as error:
    print(error)
for name in list(engines)[1:]:
    posterior = engines[name].infer(spikes, rng)
    print(f"{name:21s} {posterior.mean.round(3)} +- {np.sqrt(posterior.image_variances).round(3)}")

# %% [markdown]
# ## What to ask next
# A posterior is a state to design from, whoever made it: the input within a power whose label would tell most.

# %%
search = md.glm.InfomaxQuery(3.0, response=response)
for name, posterior in found.items():
    query = search.propose(md.glm.FilterState.from_posterior(posterior))
    x = query.x * np.sign(query.x[0])
    print(f"{name:21s} ask at {x.round(2)}, expected gain {query.score:.3f}, log odds {abs(query.mean):.2f}")

# %% [markdown]
# ## Which to use when
#
# | for | use |
# |---|---|
# | images, sparse priors, convex and fast | `DoubleLoop` |
# | the tightest bound, counts, honest widths | `VariationalGaussian`; `DecoupledGaussian` to check it |
# | more data than memory, or data in pieces | `LaplacePropagation` |
# | one response after another, while the experiment runs | `LaplaceFilter` with `InfomaxQuery` |
