"""Convexity of the relaxation, its bound on the evidence, and the implicit functions of the appendix.

Theorem 2 by h'(gamma) = t / gamma^2 along t, where gamma = -1 / (2 g'(t)): it rises where h is convex. The criterion
phi by the excess of its value half way along random segments over the mean of their ends, with h found by a search
that uses g alone. The evidence by quadrature over two weights. Derivatives of h* by differences.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mri_design.glm.dense import exact_criterion, minimise_exact_criterion
from mri_design.inference.evidence import evidence_bound
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.elementary import Dense, Identity
from mri_design.sites.base import SuperGaussian
from mri_design.sites.likelihoods import Logistic
from mri_design.sites.priors import ExponentialPower, Laplace, Sech2, StudentT

from .runner import Claim, Outcome

PLACE = "sections 2 and 2.1, theorem 2, appendix"
SIZES = {
    "tiny": {"models": 2, "segments": 10, "evidences": 2},
    "small": {"models": 4, "segments": 40, "evidences": 4},
    "full": {"models": 10, "segments": 150, "evidences": 20},
}
Array = NDArray[np.float64]
SITES: dict[str, SuperGaussian] = {
    "Laplace, tau 1.3": Laplace(1.3),
    "Bernoulli, tau 2": Logistic(1.0, 2.0),
    "sech^2, tau 1": Sech2(1.0),
    "exponential power 1.5": ExponentialPower(1.5, 1.0),
    "exponential power 0.5": ExponentialPower(0.5, 1.0),
    "Student t, nu 3": StudentT(3.0, 1.0),
}


def width_slopes(site: SuperGaussian) -> tuple[Array, Array]:
    """gamma and h'(gamma) along t."""
    t = np.geomspace(1e-4, 1e4, 400)
    gamma = 1 / site.site_precision(t)
    return gamma, t / gamma**2


def random_model(rng: np.random.Generator, concave: bool) -> GeneralizedLinearModel:
    """Four measurements of six weights, six labels, and sites on the weights."""
    labels = np.where(rng.random(6) < 0.5, -1.0, 1.0)
    prior = Laplace(1.0) if concave else StudentT(3.0, 1.0)
    blocks = (
        SiteBlock("labels", Dense(rng.normal(size=(6, 6))), Logistic(labels)),
        SiteBlock("weights", Identity((6,), is_complex=False), prior),
    )
    return GeneralizedLinearModel(Dense(rng.normal(size=(4, 6))), rng.normal(size=4), 0.5, blocks)


def excesses(models: int, segments: int, concave: bool) -> Array:
    """phi half way less the mean of the ends, over the range; positive where phi is not convex."""
    found = []
    for seed in range(models):
        rng = np.random.default_rng(seed)
        model = random_model(rng, concave)
        for _ in range(segments):
            ends = np.exp(rng.normal(scale=2.0, size=(2, 2, 6)))
            first, middle, last = (
                exact_criterion(model, tuple(1 / gamma)) for gamma in (ends[0], ends.mean(0), ends[1])
            )
            found.append((middle - (first + last) / 2) / (1 + abs(first - last)))
    return np.array(found)


def evidence_gaps(count: int) -> Array:
    """log P(D) by quadrature less the bound at its best, two weights with a Gaussian prior and six labels."""
    grid = np.linspace(-9, 9, 361)
    u = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1)
    gaps = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        B, labels = rng.normal(size=(6, 2)) * 1.5, np.where(rng.random(6) < 0.5, -1.0, 1.0)
        log_p = -0.5 * (u**2).sum(-1) - np.log(2 * np.pi) - np.logaddexp(0, -(u @ B.T) * labels).sum(-1)
        truth = np.log(np.exp(log_p).sum() * (grid[1] - grid[0]) ** 2)
        block = SiteBlock("labels", Dense(B), Logistic(labels))
        model = GeneralizedLinearModel(Identity((2,), is_complex=False), np.zeros(2), 1.0, (block,))
        phi, _ = minimise_exact_criterion(model, (np.ones(6),))
        gaps.append(truth - evidence_bound(model, phi))
    return np.array(gaps)


def appendix(rng: np.random.Generator) -> dict[str, float]:
    """Largest relative differences of the appendix's formulas for Bernoulli sites, sigma = 1."""
    tau = rng.uniform(0.5, 3, 60)
    s, z = rng.normal(size=60) * 2, np.exp(rng.normal(size=60))
    site, C = Logistic(1.0, tau), (tau / 2) ** 2 / 2
    x = s**2
    v = tau / 2 * np.abs(s)
    printed = -C * np.tanh(v) / v, C / 2 / x * (np.tanh(v) / v + np.tanh(v) ** 2 - 1)
    gamma = 1 / site.site_precision(x + z)
    t = x + z  # of the minimising gamma: t = x_*, so that gamma^2 h' = x_* and gamma^3 h'' = 1 / (2 gamma g'') - 2 x_*
    bend = 2 * (z + x) + 1 / (2 * gamma * site.d2g(t)) - 2 * t
    curvature = (1 - 2 * x / bend) / gamma

    def h_star(moved: Array) -> Array:
        """(min over gamma of (z + x) / gamma + h) / 2 - b s, over gamma on a fine grid of t = x_*."""
        grid = (moved**2 + z) * np.exp(np.linspace(-0.3, 0.3, 6001))[:, None]
        widths = 1 / site.site_precision(grid)
        return (0.5 * ((z + moved**2) / widths + site.h_at_optimum(grid))).min(0) - tau / 2 * moved

    step = 1e-3
    up, here, down = (h_star(s + d) for d in (step, 0.0, -step))
    slope = (up - down) / (2 * step)
    closed = -site.g(x + z) - tau / 2 * s
    at_zero = 1 / site.site_precision(np.zeros(60))
    xi = -site.dg(np.zeros(60)) / site.d2g(np.full(60, 1e-9))
    return {
        "g' as printed": float(np.abs(printed[0] / site.dg(x) - 1).max()),
        "g'' as printed": float(np.abs(printed[1] / site.d2g(x) - 1).max()),
        "gamma_0 = 1 / (2 C)": float(np.abs(at_zero * 2 * C - 1).max()),
        "xi_0 = 3 / (2 C)": float(np.abs(xi / (3 / (2 * C)) - 1).max()),
        "h* = -sigma^2 g(x + z) - b s": float(np.abs(closed - here).max()),
        "(h*)' = s / gamma - b": float(np.abs(slope - (s / gamma - tau / 2)).max()),
        "(h*)''": float(np.abs((up - 2 * here + down) / step**2 - curvature).max()),
    }


def run(data: Path | None, models: int, segments: int, evidences: int) -> Outcome:
    """Measure."""
    claims, shapes = [], []
    for name, site in SITES.items():
        gamma, slope = width_slopes(site)
        falls = np.diff(slope) < -1e-9 * slope[1:]
        shapes.append(
            {
                "site": name,
                "log-concave": site.log_concave,
                "h' falls on": f"{falls.sum()} of {falls.size} steps",
                "gamma from": gamma[0],
                "to": gamma[-1],
            }
        )
        holds = bool(falls.any()) != site.log_concave
        claims.append(
            Claim(
                "theorem 2",
                f"h is convex if and only if the site is log-concave: {name}",
                "convex" if site.log_concave else "not convex",
                f"h' falls on {falls.sum()} of {falls.size} steps of gamma",
                holds,
                "" if holds else "h bends the other way.",
            )
        )
    kept, broken = (excesses(models, segments, concave) for concave in (True, False))
    holds = bool((kept <= 1e-9).all() and (broken > 1e-9).any())
    claims.append(
        Claim(
            "section 2.1",
            "phi is convex if all sites are log-concave, and may fail to be where one is not",
            "proved",
            f"{np.sum(kept > 1e-9)} of {len(kept)} segments rise above their chord with Laplace and Bernoulli sites, "
            f"{np.sum(broken > 1e-9)} with Student-t ones",
            holds,
            "" if holds else "Segments of the convex model rise, or none of the other.",
        )
    )
    gaps = evidence_gaps(evidences)
    claims.append(
        Claim(
            "equation (4)",
            "exp(-phi / 2), with its constant, is a lower bound on P(D)",
            "log P(D) is at least the bound",
            f"quadrature lies {gaps.min():.3f} to {gaps.max():.3f} nats above, {len(gaps)} models",
            bool(gaps.min() >= 0),
            "" if gaps.min() >= 0 else "The bound lies above the quadrature.",
        )
    )
    rng = np.random.default_rng(0)
    s = rng.normal(size=200) * 3
    site = Logistic(1.0, 1.5)
    gamma = np.geomspace(1e-2, 1e5, 4000)
    h = np.interp(gamma, *_h_of(site))
    touching = (0.75 * s - s**2 / (2 * gamma[:, None]) - h[:, None] / 2).max(0)
    off = np.log(expit(1.5 * s)) - touching
    claims.append(
        Claim(
            "section 2",
            "Bernoulli sites are the largest of Gaussian-shaped lower bounds, with b = c tau sigma / 2",
            "equality at the best gamma",
            f"log t above the best of 4,000 widths by {off.min():.0e} to {off.max():.0e}",
            bool(off.min() > -1e-4 and off.max() < 1e-3),
            "" if off.min() > -1e-4 and off.max() < 1e-3 else "The bounds do not touch.",
        )
    )
    formulas = appendix(rng)
    for name, difference in formulas.items():
        limit = 1e-3 if name == "(h*)''" else 1e-5
        claims.append(
            Claim(
                "appendix",
                f"Bernoulli sites: {name}",
                "formula",
                f"largest difference {difference:.1e} of 60 random sites",
                difference < limit,
                "" if difference < limit else "The formula differs from ours.",
            )
        )
    tables = {
        "Theorem 2": shapes,
        "Appendix: largest differences": [{"formula": n, "difference": f"{d:.1e}"} for n, d in formulas.items()],
    }
    return Outcome(tables, claims)


def _h_of(site: SuperGaussian) -> tuple[Array, Array]:
    """gamma and h on a grid; below the first gamma h is constant."""
    t = np.geomspace(1e-8, 1e12, 20000)
    return 1 / site.site_precision(t), site.h_at_optimum(t)
