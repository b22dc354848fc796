"""Theorem 4.1, the conjugates and the gradient of the dual, on small models.

Models have 12 weights seen through 15 rows of a random W, a Gaussian prior with correlations, and Bernoulli, Poisson,
Laplace or Student-t sites (for the quartic term: 4 weights, 5 rows). The optimum is found over the mean and a
Cholesky factor of the covariance, by L-BFGS, and by the engines. Conjugates are compared with a search over both of
their arguments, gradients with central differences. The paper's own outer loop takes sigma of the last sub-problem,
ours the marginal standard deviation: both are run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
from numpy.typing import NDArray

from mri_design.glm.dense import DualState, PriorAndSites
from mri_design.glm.variational import (
    Anchor,
    DecoupledGaussian,
    VariationalGaussian,
    conjugate,
    linearised_dual,
    open_range,
)
from mri_design.inference.double_loop import DoubleLoop
from mri_design.inference.evidence import evidence_bound
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.elementary import Dense, Identity
from mri_design.sites.base import Site
from mri_design.sites.likelihoods import Logistic, Poisson
from mri_design.sites.priors import Laplace, StudentT
from mri_design.variances.base import Exact

from .digits import cholesky
from .runner import Claim, Outcome

PLACE = "section 4, theorem 4.1; section 5, equations (10) to (21)"
SIZES = {
    "tiny": {"seeds": 1, "points": 5, "loops": 3, "deltas": (0.01,), "outliers": (0.0,)},
    "small": {"seeds": 2, "points": 20, "loops": 8, "deltas": (0.01,), "outliers": (0.0,)},
    "full": {"seeds": 3, "points": 50, "loops": 8, "deltas": (0.01, 1.0), "outliers": (0.0, 2.0)},
}
Array = NDArray[np.float64]
ROWS, WEIGHTS = 15, 12
RESIDUALS = ("V", "m", "sd lambda", "curvature", "engine", "restart")


def model_of(kind: str, seed: int) -> GeneralizedLinearModel:
    """A random model with sites of one kind; X whitens the prior, so that sigma = 1."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(WEIGHTS, WEIGHTS)) / 2 + np.eye(WEIGHTS)
    W = rng.normal(size=(ROWS, WEIGHTS)) @ root / 2
    s = W @ rng.normal(size=WEIGHTS)
    site: Site
    offset = None
    if kind == "Bernoulli":
        site = Logistic(np.where(s + rng.logistic(size=ROWS) > 0, 1.0, -1.0))
    elif kind == "Poisson":
        site = Poisson(rng.poisson(np.exp(np.clip(s, -3, 3))).astype(float))
    else:
        site, offset = (Laplace(1.5) if kind == "Laplace" else StudentT(3.0, 4.0)), s + rng.laplace(size=ROWS) / 1.5
        offset = offset + (5 * (rng.random(ROWS) < 0.2) if kind == "Student t" else 0)
    block = SiteBlock("data", Dense(W), site, offset=offset)
    return GeneralizedLinearModel(Identity((WEIGHTS,), is_complex=False), np.zeros(WEIGHTS), 1.0, (block,))


def quiet(_: float) -> None:
    """Hears of every step of a minimiser."""


def optimum(model: GeneralizedLinearModel, seed: int) -> tuple[PriorAndSites, Array, Array, float]:
    """The split model, mean and covariance of its whitened weights at the optimum, and half the criterion."""
    split = PriorAndSites.of(model)
    flat = cholesky(model, np.random.default_rng(seed), quiet, 1e-9)
    w, root = flat[:WEIGHTS], np.zeros((WEIGHTS, WEIGHTS))
    root[np.tril_indices(WEIGHTS)] = flat[WEIGHTS:]
    mean, variance = split.means + split.rows @ w, np.sum((split.rows @ root) ** 2, 1)
    divergence = w @ w + np.sum(root**2) - WEIGHTS - 2 * np.sum(np.log(np.abs(np.diag(root))))
    half_phi = 0.5 * (divergence + split.constant) - split.expectation(mean, variance)[0]
    return split, w, root @ root.T, float(half_phi)


def identities(kind: str, seed: int) -> dict[str, float]:
    """Residuals of (8) to (10) at the optimum, the least lambda, and the engines' and the double loop's bounds."""
    model = model_of(kind, seed)
    split, w, V, half_phi = optimum(model, seed)
    G = split.rows
    mean, variance = split.means + G @ w, np.einsum("ij,jk,ik->i", G, V, G)
    _, d_mean, d_variance = split.expectation(mean, variance)
    alpha, weights, sd, step = -d_mean, -2 * d_variance, np.sqrt(variance), 1e-4

    def slope(h: Array, spread: Array) -> Array:
        return -split.expectation(h, spread**2)[1]

    def value(spread: Array) -> float:
        return -split.expectation(mean, spread**2)[0]

    by_sd = np.array([(value(sd + step * unit) - value(sd - step * unit)) / (2 * step) for unit in np.eye(ROWS)])
    curvature = (slope(mean + step, sd) - slope(mean - step, sd)) / (2 * step)
    other = np.linalg.inv(np.eye(WEIGHTS) + (G.T * weights) @ G)
    natural = VariationalGaussian(Exact(), tolerance=1e-9, iterations=500).infer(model, np.random.default_rng(0))
    restart = optimum(model, seed + 100)[3]
    return {
        "V": float(np.abs(V - other).max() / np.abs(V).max()),
        "m": float(np.abs(w + G.T @ alpha).max()),
        "sd lambda": float(np.abs(by_sd - sd * weights).max()),
        "curvature": float(np.abs(curvature - weights).max()),
        "least lambda": float(weights.min()),
        "engine": natural.criterion[-1] / 2 - half_phi,
        "restart": abs(restart - half_phi),
        "bound": evidence_bound(model, 2 * half_phi),
    }


def evidence(kind: str, seed: int, draws: int = 10_000) -> tuple[float, float, float]:
    """log P(y) by importance sampling from the optimum, its standard error, and the double loop's bound."""
    model = model_of(kind, seed)
    split, w, V, _ = optimum(model, seed)
    root, rng = np.linalg.cholesky(V), np.random.default_rng(seed)
    noise = rng.standard_t(6, size=(draws, WEIGHTS))
    u = w + noise @ root.T
    proposal = scipy.stats.t.logpdf(noise, 6).sum(1) - np.log(np.diag(root)).sum()
    prior = scipy.stats.norm.logpdf(u).sum(1)
    (part,) = split.parts
    ratios = prior + part.block.potential.log_t(split.means + u @ split.rows.T).sum(1) - proposal
    largest = ratios.max()
    masses = np.exp(ratios - largest)
    loop = DoubleLoop(Exact(), outer_iterations=60, tolerance=1e-8).infer(model, np.random.default_rng(0))
    error = masses.std() / np.sqrt(draws) / masses.mean()
    return float(largest + np.log(masses.mean())), float(error), evidence_bound(model, loop.criterion[-1])


def falling(flat: Array, kind: str, own: float, alpha: float, weight: float, anchor: Anchor) -> float:
    """Minus what (12) maximises, of mean and log standard deviation, for a count or a rate."""
    h, sd, a = flat[0], np.exp(flat[1]), anchor.spread.item()
    if kind == "Poisson":
        f = -own * h + np.exp(h + sd**2 / 2) + scipy.special.gammaln(own + 1)
    else:
        f = own * (h * (2 * scipy.stats.norm.cdf(h / sd) - 1) + 2 * sd * scipy.stats.norm.pdf(h / sd))
    tied = 0.5 * weight * a * (2 * sd - a) - 0.5 * anchor.weight.item() * (sd - a) ** 2
    return float(f - alpha * h - tied)


def conjugates(points: int) -> dict[str, float]:
    """Closed forms of Poisson and Laplace sites against a search over mean and standard deviation."""
    rng, worst = np.random.default_rng(0), {"Poisson": 0.0, "Laplace": 0.0}
    for _ in range(points):
        anchor, weight = Anchor(rng.uniform(0.3, 2, 1), rng.uniform(0.2, 2, 1)), rng.uniform(0.05, 2)
        for kind in worst:
            own = float(rng.poisson(2)) if kind == "Poisson" else 1.5
            alpha = rng.uniform(-own + 0.1, 3) if kind == "Poisson" else rng.uniform(-0.9, 0.9) * own
            site = Poisson(own) if kind == "Poisson" else Laplace(own)
            h, sd, value = conjugate(site, np.array([alpha]), np.array([weight]), anchor, None)
            if sd[0] > 1e-6:
                options = {"gtol": 1e-9}
                arguments = (kind, own, alpha, weight, anchor)
                found = scipy.optimize.minimize(falling, [0.0, 0.0], arguments, method="BFGS", options=options)
                worst[kind] = max(worst[kind], abs(-found.fun - value[0]), (found.x[0] - h[0]) ** 2)
    return worst


def dual_gradient(points: int) -> tuple[float, float]:
    """Largest relative difference of (13) from central differences, and least second difference of the dual."""
    model = model_of("Bernoulli", 0)
    split = PriorAndSites.of(model)
    S, rng = split.rows @ split.rows.T, np.random.default_rng(1)
    low, high = open_range(split)
    worst, least = 0.0, np.inf
    for _ in range(points):
        anchor = Anchor(rng.uniform(0.5, 2, ROWS), rng.uniform(0.05, 0.25, ROWS))
        dual = linearised_dual(split, S, anchor)
        alpha = low + (high - low) * rng.uniform(0.2, 0.8, ROWS)
        flat, way = np.concatenate([alpha, rng.uniform(0.05, 0.2, ROWS)]), rng.normal(size=2 * ROWS)
        step = 1e-4 * way / np.linalg.norm(way)
        (up, _), (here, gradient), (down, _) = dual(flat + step), dual(flat), dual(flat - step)
        worst = max(worst, abs((up - down) / 2 - gradient @ step) / np.abs(gradient @ step))
        wide = 100 * step
        least = min(least, dual(flat + wide)[0] + dual(flat - wide)[0] - 2 * here)
    return float(worst), float(least)


def outer_loops(model: GeneralizedLinearModel, loops: int, printed: bool, best: Array) -> Array:
    """Distance of lambda from its end after every sub-problem, with the paper's next sigma or the marginal one."""
    split = PriorAndSites.of(model)
    S = split.rows @ split.rows.T
    (part,) = split.parts
    low, high = open_range(split)
    _, d_mean, d_variance = split.expectation(split.means, np.minimum(np.diag(S), 1.0))
    alpha, weights = np.clip(-d_mean, low, high), np.maximum(-2 * d_variance, 1e-4)
    spread, off = np.sqrt(DualState.of(S, split.means, alpha, weights).variance), []
    limits = list(zip(np.r_[low, np.full(ROWS, 1e-10)], np.r_[high, np.full(ROWS, np.inf)], strict=True))
    options = {"maxiter": 300, "maxfun": 400, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-8}
    for _ in range(loops):
        anchor = Anchor(spread, np.maximum(weights, 1e-4))
        here = DualState.of(S, split.means, alpha, weights)
        dual = linearised_dual(split, S, anchor, here.mean)
        begin = np.concatenate([alpha, weights])
        flat = scipy.optimize.minimize(dual, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options).x
        alpha, weights = np.split(flat, 2)
        after = DualState.of(S, split.means, alpha, weights)
        spread = np.sqrt(after.variance)
        if printed:
            start = (after.mean, spread, spread)
            spread = conjugate(part.block.potential, alpha, weights, anchor, start)[1]
        off.append(np.abs(weights - best).max() / np.abs(best).max())
    return np.array(off)


def rates(seeds: int, loops: int) -> dict[bool, tuple[float, float, float]]:
    """Ratio of successive distances at the end, order of convergence, and the last distance: medians over seeds."""
    found = {}
    for printed in (True, False):
        ratios, orders, ends = [], [], []
        for seed in range(seeds):
            model = model_of("Bernoulli", seed)
            split, w, V, _ = optimum(model, seed)
            G = split.rows
            best = -2 * split.expectation(split.means + G @ w, np.einsum("ij,jk,ik->i", G, V, G))[2]
            off = outer_loops(model, loops, printed, best)
            usable = off[off > 1e-6]
            ends.append(off[-1])
            if len(usable) > 2:
                falls = np.log(usable[1:] / usable[:-1])
                ratios.append(float(np.exp(falls[-1])))
                orders.append(float(falls[-1] / falls[-2]))
        found[printed] = (float(np.median(ratios)), float(np.median(orders)), float(np.median(ends)))
    return found


def heavy(seeds: int, deltas: tuple[float, ...], outliers: tuple[float, ...]) -> list[dict[str, Any]]:
    """Student-t sites on five data with and without an outlier: whether loops end where the natural gradient does."""
    rows = []
    for outlier in outliers:
        for delta in deltas:
            ended, gaps, least, loops = 0, [], np.inf, []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                W = rng.normal(size=(5, 4)) / 3
                y = W @ rng.normal(size=4) + 0.3 * rng.standard_normal(5) + outlier * np.eye(5)[0]
                block = SiteBlock("data", Dense(W), StudentT(4.0, 4.0), offset=y)
                model = GeneralizedLinearModel(Identity((4,), is_complex=False), np.zeros(4), 1.0, (block,))
                natural = VariationalGaussian(Exact(), tolerance=1e-8, iterations=500).infer(model, rng)
                least = min(least, float(natural.precision.site_precisions[0].min()))
                posterior = DecoupledGaussian(tolerance=1e-3, iterations=15, delta=delta).infer(model, rng)
                ended += posterior.convergence.converged
                gaps.append((posterior.criterion[-1] - natural.criterion[-1]) / 2)
                loops.append(len(posterior.criterion) - 1)
            rows.append(
                {
                    "outlier": outlier,
                    "delta": delta,
                    "least lambda at the maximum": least,
                    "converged": f"{ended} of {seeds}",
                    "sub-problems, median": float(np.median(loops)),
                    "nats above the natural gradient, worst": max(gaps),
                    "all": ended == seeds,
                }
            )
    return rows


def in_range(points: int) -> tuple[float, int]:
    """Largest slope left by Newton's method at random alpha in the open range and lambda > 0, Bernoulli sites."""
    rng = np.random.default_rng(2)
    site, alpha = Logistic(np.ones(points)), -rng.uniform(1e-3, 1 - 1e-3, points)
    weights, spread, own = np.exp(rng.uniform(-7, 1, (3, points)))
    anchor = Anchor(3 * spread, own)
    h, sd, _ = conjugate(site, alpha, weights, anchor, None)
    here = site.expected_log_t(h, sd**2)
    by_sd = 2 * sd * here.d_variance + weights * anchor.spread - anchor.weight * (sd - anchor.spread)
    left = np.maximum(np.abs(here.d_mean + alpha), np.abs(by_sd) / (1 + weights * anchor.spread))
    return float(left.max()), int(np.sum(left > 1e-6))


def run(
    data: Path | None, seeds: int, points: int, loops: int, deltas: tuple[float, ...], outliers: tuple[float, ...]
) -> Outcome:
    """Measure."""
    kinds = ("Bernoulli", "Poisson", "Laplace", "Student t")
    found = {kind: [identities(kind, seed) for seed in range(seeds)] for kind in kinds}
    worst = {kind: {name: max(abs(one[name]) for one in some) for name in some[0]} for kind, some in found.items()}
    least = {kind: min(one["least lambda"] for one in some) for kind, some in found.items()}
    claims = []
    for name, place, says, limit in (
        ("V", "equation (8)", "At the maximum V = (Sigma^-1 + W^T diag(lambda) W)^-1", 1e-5),
        ("m", "equation (8)", "At the maximum m = mu - Sigma W^T alpha", 1e-5),
        ("sd lambda", "equation (9)", "The slope of f in sigma is sigma lambda", 1e-5),
        ("curvature", "equation (10)", "lambda is the curvature of f in its mean", 1e-5),
    ):
        most = max(each[name] for each in worst.values())
        claims.append(
            Claim(
                place,
                says,
                "proved",
                f"largest residual {most:.0e}: {', '.join(kinds)} sites, {seeds} models each",
                most < limit,
                "" if most < limit else "The maximum was not found to that accuracy.",
            )
        )
    concave = min(least[kind] for kind in kinds[:3])
    claims.append(
        Claim(
            "equation (10)",
            "lambda is positive for log-concave likelihoods",
            "positive",
            f"least lambda {concave:.1e}; with Student-t sites {least['Student t']:.1e}",
            concave > 0,
            "" if concave > 0 else "A lambda is not positive.",
        )
    )
    restart = max(worst[kind]["restart"] for kind in kinds[:3])
    engine = max(worst[kind]["engine"] for kind in kinds[:3])
    claims.append(
        Claim(
            "theorem 4.1 (4)",
            "Log-concave likelihoods have one maximum, whatever the start and the method",
            "one",
            f"bounds of two random starts differ by {restart:.0e} nats, of the natural gradient by {engine:.0e}",
            max(restart, engine) < 1e-6,
            "" if max(restart, engine) < 1e-6 else "Two ends differ.",
        )
    )
    tightness = []
    for kind in ("Bernoulli", "Laplace"):
        for seed in range(seeds):
            log_p, error, local = evidence(kind, seed)
            tightness.append((found[kind][seed]["bound"], log_p, error, local))
    bound, log_p, error, local = np.array(tightness).T
    claims += [
        Claim(
            "equation (3)",
            "The bound is below log P(y)",
            "lower bound",
            f"{(log_p - bound).min():.3f} to {(log_p - bound).max():.3f} nats below importance sampling "
            f"(standard error at most {error.max():.3f})",
            bool((bound <= log_p + 3 * error).all()),
            "" if (bound <= log_p + 3 * error).all() else "It lies above the estimate.",
        ),
        Claim(
            "section 3.1",
            "The local variational bound is less tight",
            "provably",
            f"the double loop's lies {(bound - local).min():.3f} to {(bound - local).max():.3f} nats below",
            bool((local <= bound + 1e-9).all()),
            "" if (local <= bound + 1e-9).all() else "It is tighter on a model.",
        ),
    ]
    closed = conjugates(points)
    claims += [
        Claim(
            "equation (21)" if kind == "Poisson" else "section 5 (Laplace, in its supplement)",
            f"The conjugate of {kind} sites has a closed form",
            "formula" if kind == "Poisson" else "formula that is not at hand",
            f"largest difference from a search {value:.0e}, {points} random arguments",
            value < 1e-8,
            "" if value < 1e-8 else "The search stopped elsewhere.",
        )
        for kind, value in closed.items()
    ]
    gradient, bend = dual_gradient(points)
    left, failed = in_range(points)
    claims += [
        Claim(
            "equation (13)",
            "The dual's gradient is a prediction of a linear model beside the conjugates' arguments",
            "formula",
            f"largest relative difference from central differences {gradient:.0e}, {points} random places",
            gradient < 1e-4,
            "" if gradient < 1e-4 else "The gradient differs.",
        ),
        Claim(
            "section 5.1",
            "Sub-problems are convex",
            "convex",
            f"least second difference of (11) along {points} random segments {bend:.1e}",
            bend > -1e-9,
            "" if bend > -1e-9 else "A segment bends downwards.",
        ),
        Claim(
            "section 5.1",
            "With alpha in the range of slopes and lambda > 0, conjugates are finite and Newton's method finds them",
            "left open",
            f"{failed} of {points} Bernoulli sites keep a slope above 1e-6, largest {left:.0e}",
            failed == 0,
            "" if failed == 0 else "Newton's method stopped early on some.",
        ),
    ]
    speed = rates(seeds, loops)
    quadratic = speed[True][1] > 1.5
    words = [
        f"{name}: order {order:.2f}, distances {ratio:.2f} times the last, {end:.0e} after {loops}"
        for name, (ratio, order, end) in zip(("sigma as printed", "marginal sigma"), speed.values(), strict=True)
    ]
    claims.append(
        Claim(
            "section 5.1",
            "Outer loops converge quadratically when they converge",
            "quadratic",
            "; ".join(words),
            quadratic,
            "" if quadratic else "Distances shrink by a constant factor: linearly.",
        )
    )
    rows = heavy(min(seeds, 3), deltas, outliers)
    holds = all(any(row["all"] for row in rows if row["outlier"] == outlier) for outlier in outliers)
    claims.append(
        Claim(
            "equations (19) and (20)",
            "With a large enough delta the algorithm converges where likelihoods are not log-concave",
            "for some delta",
            "; ".join(
                f"outlier {row['outlier']:g}, delta {row['delta']:g}: {row['converged']} models "
                f"(least lambda {row['least lambda at the maximum']:.2f})"
                for row in rows
            ),
            holds or None,
            "" if holds else "Fifteen sub-problems were allowed; and lambda > 0 keeps a negative lambda out.",
        )
    )
    tables = {
        "Largest residuals at the maximum": [
            {"sites": kind}
            | {name: f"{value:.1e}" for name, value in each.items() if name not in ("bound", "least lambda")}
            for kind, each in worst.items()
        ],
        "Student-t sites": [{name: value for name, value in row.items() if name != "all"} for row in rows],
    }
    return Outcome(tables, claims)
