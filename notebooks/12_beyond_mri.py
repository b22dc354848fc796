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
# # Beyond MRI
#
# Data that are linear in something sparse: noisy, blurred or coarse pictures, a signal with gaps, a network of genes.
# Seeger and Nickisch name them as what the method is for (TR-175, section 7). Each is a model of a few lines here: an
# operator X for what was measured, an operator B whose coefficients are mostly small, and sites on these. The engine is
# the one that reconstructs scans, and gives every unknown an error bar.

# %%
# %matplotlib inline
import os

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter
from scipy.sparse.linalg import LinearOperator

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
N, GENES = (48, 10) if SMALL else (128, 30)
rng = np.random.default_rng(0)
picture = np.abs(md.load_phantom("t2w", shape=N, phase="none", rng=rng).reference[0]).astype(float)
picture /= picture.max()


def prior(rate, sd):
    """Small differences of neighbouring pixels, exp(-rate |difference|); rates of a model count in noise levels."""
    differences = md.operators.FiniteDifferences((N, N), is_complex=False)
    return md.SiteBlock("differences", differences, md.sites.Laplace(rate * sd))


def posterior_of(X, data, sd, *blocks):
    """Mean and standard deviation of every unknown."""
    model = md.GeneralizedLinearModel(X, data, sd**2, blocks)
    found = md.DoubleLoop(md.variances.MonteCarlo(32)).infer(model, rng)
    return found.mean, np.sqrt(found.image_variances)


def show(truth, data, mean, std, name):
    """Pictures, and how often the truth lies within two standard deviations."""
    inside = np.mean(abs(mean - truth) < 2 * std)
    print(
        f"root mean square error {np.sqrt(np.mean((mean - truth) ** 2)):.3f}, mean standard deviation {std.mean():.3f}"
    )
    print(f"within two standard deviations: {inside:.0%} of the pixels")
    figure = Figure(figsize=(9, 2.5), layout="constrained")
    panels = {"truth": truth, name: data, "posterior mean": mean, "standard deviation": std}
    for panel, (title, image) in zip(figure.subplots(1, 4), panels.items(), strict=True):
        panel.imshow(image, cmap="inferno" if image is std else "gray", vmin=0, vmax=None if image is std else 1)
        panel.set(title=title, xticks=[], yticks=[])
    return figure


# %% [markdown]
# ## Denoising
# X is the identity.

# %%
X, sd = md.operators.Identity((N, N), is_complex=False), 0.1
noisy = X(picture) + sd * rng.standard_normal((N, N))
show(picture, noisy, *posterior_of(X, noisy, sd, prior(12.0, sd)), "noisy")

# %% [markdown]
# ## Deblurring
# X is SciPy's Gaussian filter: any operator of SciPy will do. Edges come back sharp, and the doubt stays with them.


# %%
def blur(pixels):
    return gaussian_filter(pixels.reshape(N, N), 1.2, mode="wrap").ravel()


scipy_blur = LinearOperator((N * N, N * N), matvec=blur, rmatvec=blur, dtype=float)
X, sd = md.operators.from_linop(scipy_blur, in_shape=(N, N), out_shape=(N, N)), 0.02
blurred = X(picture) + sd * rng.standard_normal((N, N))
show(picture, blurred, *posterior_of(X, blurred, sd, prior(12.0, sd)), "blurred")

# %% [markdown]
# ## Super-resolution
# Four pictures of a quarter of the pixels, each shifted by one pixel of the fine grid: X averages blocks of 2 x 2.

# %%
pairs = sp.kron(sp.eye_array(N // 2), np.full((1, 2), 0.5)).toarray()
shifted = [np.roll(pairs, shift, axis=1) for shift in (0, 1)]
coarse = sp.vstack([sp.kron(rows, columns) for rows in shifted for columns in shifted])
X, sd = md.operators.from_linop(sp.linalg.aslinearoperator(coarse.tocsr()), in_shape=(N, N)), 0.02
pictures = X(picture) + sd * rng.standard_normal(X.out_shape)
first = pictures[: N * N // 4].reshape(N // 2, N // 2)
show(picture, first, *posterior_of(X, pictures, sd, prior(12.0, sd)), "one of four")

# %% [markdown]
# ## A time series
# A level that jumps now and then, seen with noise and with gaps: X picks the times that were observed, the differences
# of neighbouring times are mostly small. Error bars grow in the gaps.

# %%
T, sd = 200, 0.3
level = np.repeat([0.0, 1.5, 1.0, 2.5, 0.5], [50, 30, 40, 50, 30])
times = np.setdiff1d(np.arange(T), np.r_[60:75, 112:130])
X = md.operators.SparseMatrix(sp.eye_array(T, format="csr")[times])
observed = X(level) + sd * rng.standard_normal(len(times))
steps = md.operators.SparseMatrix(sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(T - 1, T)))
jumps = md.SiteBlock("jumps", steps, md.sites.Laplace(4.0 * sd))
mean, std = posterior_of(X, observed, sd, jumps)
print(f"within two standard deviations: {np.mean(abs(mean - level) < 2 * std):.0%} of the times")
panel = (figure := Figure(figsize=(9, 2.6), layout="constrained")).subplots()
panel.fill_between(np.arange(T), mean - 2 * std, mean + 2 * std, alpha=0.3, label="two standard deviations")
panel.plot(mean, label="posterior mean")
panel.plot(level, "k", lw=0.8, label="truth")
panel.plot(times, observed, "k.", ms=2, label="observed")
panel.legend(fontsize=7)
figure

# %% [markdown]
# ## A network of genes
# Near its steady state a network obeys A x = u: x is how expressions change under a disturbance u of known strength
# (Steinke, Seeger and Tsuda 2007). Few genes act on a gene, so each row of A is a sparse linear regression of u on x.
# An edge is found where its interval leaves out zero.

# %%
A = np.eye(GENES) + np.where(rng.random((GENES, GENES)) < 0.12, rng.normal(0, 0.5, (GENES, GENES)), 0.0)
np.fill_diagonal(A, 1.0)
disturbances = rng.standard_normal((4 * GENES, GENES))
expressions = disturbances @ np.linalg.inv(A).T
seen = disturbances + 0.2 * rng.standard_normal(disturbances.shape)
fits = [md.linear_regression(expressions, seen[:, gene], noise_variance=0.2**2) for gene in range(GENES)]
mean, std = (np.stack(each) for each in zip(*((fit.mean, fit.sd) for fit in fits), strict=True))
edges, said = (A != 0) & ~np.eye(GENES, dtype=bool), (abs(mean) > 2 * std) & ~np.eye(GENES, dtype=bool)
print(f"edges: {edges.sum()}; found {np.sum(said & edges)}, and {np.sum(said & ~edges)} that are none")
print(f"within two standard deviations: {np.mean(abs(mean - A) < 2 * std):.0%} of the entries of A")
panels = (figure := Figure(figsize=(9, 2.8), layout="constrained")).subplots(1, 3)
for panel, (title, matrix) in zip(
    panels, {"truth": A, "posterior mean": mean, "standard deviation": std}.items(), strict=True
):
    panel.imshow(
        matrix,
        cmap="inferno" if matrix is std else "RdBu",
        vmin=0 if matrix is std else -1.2,
        vmax=None if matrix is std else 1.2,
    )
    panel.set(title=title, xlabel="acts", ylabel="on")
figure

# %% [markdown]
# ## How far to trust it
# Two standard deviations would hold the truth in 95 % of the cases if the priors were right. Of pictures they hold it
# less often: a Laplace prior does not know that edges continue. Of images of scans the program therefore predicts the
# error by samples that are held back, and scales the error bars.
#
# - One coefficient with several parts (both differences of a pixel): `group_axes` of `md.SiteBlock`.
# - Rates that are not known: `md.inference.learn_hyperparameters`; the regressions learn theirs.
# - Other sites, labels and counts: [one model, five engines](06_one_model_five_engines.py).
