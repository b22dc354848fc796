"""The piecewise bound on log(1 + e^x) of 20 pieces beside quadrature.

The paper computes expectations by the bound of Marlin, Khan and Murphy (2011), pieces of which are constant, linear or
quadratic and whose Gaussian averages have a closed form. It prints no coefficients: the 20 pieces are fitted here, nine
quadratic ones and a constant on either side, each the best uniform approximation of its interval (four alternating
errors), raised so that it lies above, with ends at which all have one largest error. Gaussian process classification of
the USPS threes and fives follows, log s = 5 and log sigma = 2.5, with either expectation.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtr

from mri_design.glm.variational import VariationalGaussian
from mri_design.sites.base import Expectation
from mri_design.sites.likelihoods import Logistic, expected_softplus
from mri_design.variances.base import Exact

from .digits import classification, digits, kernel
from .runner import Claim, Outcome

PLACE = "section 6, reference 14"
NEEDS = ("usps_3v5.npz",)
SIZES = {
    "tiny": {"counts": (20,), "seeds": 1, "calls": 2},
    "small": {"counts": (100,), "seeds": 2, "calls": 5},
    "full": {"counts": (200, 500), "seeds": 3, "calls": 30},
}
Array = NDArray[np.float64]
PIECES = 20


def uniform_quadratic(low: float, high: float) -> tuple[Array, float]:
    """Coefficients (c, b, a) of the best uniform approximation of log(1 + e^x), and its error: Remez exchange.

    The third derivative has one sign on either side of zero: errors alternate at both ends and two points within.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    points = middle + half * np.array([-1.0, -0.5, 0.5, 1.0])
    grid = np.linspace(low, high, 801)
    for _ in range(20):
        system = np.column_stack([np.ones(4), points, points**2, [1, -1, 1, -1]])
        *coefficients, error = np.linalg.solve(system, np.logaddexp(0, points))
        off = np.logaddexp(0, grid) - np.polynomial.polynomial.polyval(grid, coefficients)
        inner = np.sign(error) * off[1:-1]
        moved = np.array([low, grid[1 + np.argmin(inner)], grid[1 + np.argmax(inner)], high])
        if np.allclose(moved, points, atol=1e-12):
            break
        points = moved
    return np.array(coefficients), float(np.abs(off).max())


def march(largest: float, count: int) -> tuple[list[float], list[Array]]:
    """Ends and pieces from -T towards zero, each as long as its bound's error allows."""
    end = float(np.log(np.expm1(largest)))  # the constant piece ends where log(1 + e^x) is the error
    ends, pieces = [end], []
    while len(pieces) < count and end < 0:
        low, high = end, 0.0
        if 2 * uniform_quadratic(end, high)[1] > largest:
            for _ in range(18):
                half = (low + high) / 2
                low, high = (half, high) if 2 * uniform_quadratic(end, half)[1] <= largest else (low, half)
            high = low
        coefficients, error = uniform_quadratic(end, high)
        pieces.append(coefficients + np.array([error, 0, 0]))
        end = high
        ends.append(end)
    return ends, pieces


@cache
def bound(count: int = PIECES) -> tuple[Array, Array, float]:
    """Ends (one more than pieces, infinite at either side), coefficients (count, 3) and the largest error."""
    low, high = 1e-6, 0.5
    for _ in range(22):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if march(middle, count // 2 - 1)[0][-1] >= 0 else (middle, high)
    ends, pieces = march(high, count // 2 - 1)
    left = np.array([[high, 0.0, 0.0], *pieces])
    right = (left * np.array([1, -1, 1]) + np.array([0, 1, 0]))[::-1]  # log(1 + e^x) = x + log(1 + e^-x)
    edges = np.array([-np.inf, *ends[:-1], 0.0])
    return np.concatenate([edges, -edges[::-1][1:]]), np.concatenate([left, right]), high


def piecewise_softplus(mean: Array, spread: Array) -> Expectation:
    """Average of the bound over N(mean, spread^2), and its derivatives in mean and variance, in closed form."""
    ends, pieces, _ = bound()
    shape = np.broadcast_shapes(np.shape(mean), np.shape(spread))
    m, sd = (np.broadcast_to(a, shape).ravel().astype(float) for a in (mean, spread))
    u = np.clip((ends[:, None] - m) / sd, -40, 40)
    density = np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
    moments = [np.where(u[:-1] > 0, ndtr(-u[:-1]) - ndtr(-u[1:]), ndtr(u[1:]) - ndtr(u[:-1]))]
    moments.append(density[:-1] - density[1:])
    for k in range(2, 5):
        edge = u ** (k - 1) * density
        moments.append(edge[:-1] - edge[1:] + (k - 1) * moments[k - 2])
    c, b, a = pieces.T[:, :, None]
    constant, linear, quadratic = (a * m + b) * m + c, sd * (2 * a * m + b), a * sd**2
    parts = (constant, linear, quadratic)
    value = sum(part * moments[k] for k, part in enumerate(parts))
    slope = sum(part * moments[k + 1] for k, part in enumerate(parts)) / sd
    bend = sum(part * (moments[k + 2] - moments[k]) for k, part in enumerate(parts)) / (2 * sd**2)
    return Expectation(*(np.asarray(each).sum(0).reshape(shape) for each in (value, slope, bend)))


class PiecewiseLogistic(Logistic):
    """Bernoulli sites, tau = 1, whose expectation is that of the piecewise bound."""

    def expected_log_t(self, mean: Array, variance: Array, dimensions: int = 1) -> Expectation:
        soft = piecewise_softplus(-self.labels * mean, np.sqrt(np.maximum(variance, 1e-14)))
        return Expectation(-soft.value, self.labels * soft.d_mean, -soft.d_variance)


def fitted(data: Path | None, count: int, seed: int) -> dict[str, float]:
    """The two optima on one random subset, and how far apart they are."""
    points, labels = digits(data, count, seed)
    K = kernel(points, np.exp(5.0), 2.5)
    engine = VariationalGaussian(Exact(), tolerance=1e-4, iterations=200)
    exact, other = (
        engine.infer(classification(K, labels, site), np.random.default_rng(0))
        for site in (Logistic, PiecewiseLogistic)
    )
    rows = other.model.blocks[0].analysis
    mean, spread = -labels * rows(other.mean), np.sqrt(other.marginals.values[0])
    excess = float(np.sum(piecewise_softplus(mean, spread).value - expected_softplus(mean, spread).value))
    best, reported = exact.criterion[-1] / 2, other.criterion[-1] / 2
    return {
        "N": count,
        "seed": seed,
        "negative bound": best,
        "by pieces": reported,
        "of its posterior, exact": reported - excess,
        "means apart, relative": float(np.linalg.norm(other.mean - exact.mean) / np.linalg.norm(exact.mean)),
        "updates": exact.convergence.iterations,
        "updates by pieces": other.convergence.iterations,
    }


def run(data: Path | None, counts: tuple[int, ...], seeds: int, calls: int) -> Outcome:
    """Fit the pieces, and measure."""
    ends, pieces, largest = bound()
    x = np.linspace(-20, 20, 40001)
    at = np.clip(np.searchsorted(ends, x, side="right") - 1, 0, PIECES - 1)
    c, b, a = pieces[at].T
    excess = (a * x + b) * x + c - np.logaddexp(0, x)
    mean, spread = (g.ravel() for g in np.meshgrid(np.linspace(-15, 15, 121), np.geomspace(0.05, 100, 60)))
    ours, theirs = expected_softplus(mean, spread), piecewise_softplus(mean, spread)
    off = theirs.value - ours.value
    slope = float(np.abs(theirs.d_mean - ours.d_mean).max())
    bend = float(np.abs(2 * (theirs.d_variance - ours.d_variance)).max())
    seconds = []
    for function in (expected_softplus, piecewise_softplus):
        began = time.process_time()
        for _ in range(calls):
            function(mean, spread)
        seconds.append(time.process_time() - began)
    fits = [fitted(data, count, seed) for count in counts for seed in range(seeds)]
    rise = max((row["by pieces"] - row["negative bound"]) / row["N"] for row in fits)
    lost = max(row["of its posterior, exact"] - row["negative bound"] for row in fits)
    relative = max(row["of its posterior, exact"] / row["negative bound"] - 1 for row in fits)
    errors = {count: bound(count)[2] for count in (6, 10, 20)}
    rate = float(np.log(errors[6] / errors[20]) / np.log((20 / 2 - 1) / (6 / 2 - 1)))
    claims = [
        Claim(
            PLACE,
            "20 pieces bound log(1 + e^x) from above to a reasonable accuracy",
            "reasonable accuracy",
            f"excess {excess.min():.0e} to {excess.max():.1e} over 40,001 points",
            bool(excess.min() > -1e-9 and excess.max() < 1e-2),
            "" if excess.min() > -1e-9 and excess.max() < 1e-2 else "The fit is worse.",
        ),
        Claim(
            PLACE,
            "Its average over any Gaussian is as near",
            "reasonable accuracy",
            f"excess {off.min():.0e} to {off.max():.1e} over {off.size:,} means and variances; "
            f"slopes off by at most {slope:.1e}, curvatures by {bend:.1e}",
            bool(off.min() > -1e-9 and off.max() <= 1.001 * largest),
            "" if off.min() > -1e-9 and off.max() <= 1.001 * largest else "The closed form loses digits.",
        ),
        Claim(
            PLACE,
            "The lower bound stays one, a little lower",
            "lower bound",
            f"negative bound larger by at most {rise:.1e} a digit, {len(fits)} fits",
            bool(0 <= rise <= largest),
            "" if 0 <= rise <= largest else "It moved by more than the pieces' error, or the other way.",
        ),
        Claim(
            PLACE,
            "The optimum by pieces is the optimum of the bound",
            "not compared",
            f"its posterior has a negative bound {lost:.1e} nats ({relative:.0e} of it) above the best",
            bool(relative < 1e-3),
            "" if relative < 1e-3 else "The pieces move the optimum.",
        ),
        Claim(
            PLACE,
            "Pieces are cheaper than quadrature to rounding",
            "used for speed",
            f"{seconds[0] / seconds[1]:.2f} times as fast as our quadrature, {mean.size:,} Gaussians a call",
            seconds[1] < seconds[0],
            ""
            if seconds[1] < seconds[0]
            else "Twenty pieces take more error functions than the quadrature takes points.",
        ),
    ]
    tables = {
        "Largest error of a bound of so many pieces": [
            {"pieces": count, "largest error": f"{error:.2e}"} for count, error in errors.items()
        ]
        + [{"pieces": "error as quadratic pieces to the power", "largest error": f"-{rate:.2f}"}],
        "The pieces below zero: log(1 + e^x) <= c + b x + a x^2": [
            {"from": f"{low:.4f}", "to": f"{high:.4f}", "c": f"{c:.6f}", "b": f"{b:.6f}", "a": f"{a:.6f}"}
            for low, high, (c, b, a) in zip(ends[:10], ends[1:11], pieces[:10], strict=True)
        ],
        "Optima": fits,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(x, excess)
        left.set(xlabel="x", title="excess of 20 pieces")
        for sd in (0.3, 1.0, 3.0, 10.0):
            m = np.linspace(-15, 15, 601)
            difference = piecewise_softplus(m, np.full(601, sd)).value - expected_softplus(m, np.full(601, sd)).value
            right.plot(m, difference, label=f"sd {sd:g}")
        right.set(xlabel="mean", title="excess of the average")
        right.legend()

    return Outcome(tables, claims, draw)
