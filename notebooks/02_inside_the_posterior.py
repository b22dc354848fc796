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
# # Inside the posterior
#
# The model is P(u | y) ∝ N(y | X u, σ² I) ∏ t(s), s = B u, with Laplace sites t(s) = exp(-(τ/σ)|s|). The double loop
# replaces every site by a Gaussian of its own width; the widths minimise a convex criterion φ that bounds the evidence.
# On a small image everything can be computed exactly, so the fast methods can be held against the truth.

# %%
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure

import mri_design as md

N = 16
rng = np.random.default_rng(3)
image = np.zeros((N, N), dtype=complex)
image[4:12, 5:13] = 1 + 0.3j
image[6:9, 7:10] = 0.4j
noise_sd = 0.05
lines = [6, 7, 8, 9, 10, 3, 13]
X = md.operators.cartesian(lines, (N, N))
data = X(image) + noise_sd * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
model = md.GeneralizedLinearModel(
    X,
    data,
    noise_sd**2,
    (
        md.SiteBlock("pixels", md.operators.Identity((N, N)), md.sites.Laplace(3 * noise_sd)),
        md.SiteBlock("differences", md.operators.FiniteDifferences((N, N)), md.sites.Laplace(6 * noise_sd)),
    ),
)

# %% [markdown]
# ## Convex: the criterion only falls
#
# With exact variances φ goes down in every outer loop, and -φ/2 (plus constants) is a lower bound of log P(y).

# %%
inner = md.estimation.IRLS(tolerance=1e-9, max_iterations=200, solver_tolerance=1e-3)
exact = md.DoubleLoop(md.variances.Exact(), inner, outer_iterations=15, tolerance=1e-4).infer(model, rng)
print("phi:", np.round(exact.criterion, 3), exact.criterion_kind)
print(
    "evidence bound:",
    round(md.inference.evidence_bound(model, exact.criterion[-1]), 3),
    "-",
    exact.convergence.status.value,
)

# %% [markdown]
# ## Three ways to the variances
#
# Exact ones need dense algebra. Lanczos is always too small (it says so: `lower_bound`). Samples are right on average,
# with a standard error that they report.

# %%
reference = exact.variances.values[1]
analyses = [block.analysis for block in model.blocks]
for estimator in (
    md.variances.Lanczos(20),
    md.variances.Lanczos(80),
    md.variances.Lanczos(N * N),
    md.variances.MonteCarlo(12, tolerance=1e-3),
    md.variances.MonteCarlo(200, tolerance=1e-3),
):
    found = estimator(exact.precision, analyses, np.random.default_rng(0), exact.mean)
    ratio = found.values[1] / reference
    print(f"{estimator!s:75.75s} {found.kind:12s} z / exact: {ratio.mean():.3f} +- {ratio.std():.3f}")

# %% [markdown]
# ## Mean and mode
#
# The posterior mean is smoother than MAP: the variances z enter the penalty as sqrt(|s|² / σ² + z).

# %%
mode, how = md.estimation.MaximumAPosteriori()(model)
for name, found in (("mean", exact.mean), ("MAP", mode), ("zero-filled", md.estimation.zero_filled(model))):
    print(f"{name:12s} relative error {md.measure(found, image).relative_l2:.4f}")
print("MAP:", how.status.value, "in", how.matvecs, "multiplications")

# %% [markdown]
# The mean comes with a width for every pixel; the mode has none. Doubt is largest within the object.

# %%
width = noise_sd * np.sqrt(exact.variances.values[0])
figure = Figure(figsize=(9, 2.6), layout="constrained")
shown = {"truth": image, "mean": exact.mean, "MAP": mode, "standard deviation": width}
for panel, (name, pixels) in zip(figure.subplots(1, 4), shown.items(), strict=True):
    colours = {"cmap": "inferno"} if pixels is width else {"cmap": "gray", "vmax": abs(image).max()}
    panel.imshow(np.abs(pixels).reshape(N, N), vmin=0, **colours)
    panel.set(title=name, xticks=[], yticks=[])
figure
