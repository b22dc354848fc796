"""Theorem 1, all seven parts, on random models.

Second differences of log|A| on random segments, relative to the function's range there: positive where a function is
convex, negative where it is concave. Beside each part stands a function that breaks its condition, which must be found
out. X has fewer rows than columns, B more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .runner import Claim, Outcome

PLACE = "section 3.1, theorem 1"
SIZES = {
    "tiny": {"models": 2, "segments": 20, "n": 8},
    "small": {"models": 10, "segments": 100, "n": 12},
    "full": {"models": 50, "segments": 500, "n": 16},
}
Vector = NDArray[np.float64]
Weights = Callable[[Vector], Vector]
ROUNDING = 1e-9
PARTS: dict[str, tuple[str, int, Weights, Weights, bool]] = {
    "1": ("pi -> log|A|", -1, lambda t: t, lambda t: t**4, False),
    "2": ("gamma -> log|A|", 1, lambda t: 1 / t, lambda t: 1 + t, False),
    "3": ("gamma -> log|A| + log|Gamma|", -1, lambda t: t, lambda t: np.exp(2 * t), True),
    "4": ("concave rho(pi)", -1, lambda t: np.sqrt(t), lambda t: np.exp(t), False),
    "5": ("rho'' rho >= rho'^2, as exp(gamma)", 1, lambda t: np.exp(t), lambda t: t**0.5, False),
    "6": ("concave rho: log|rho| + log|A|", -1, lambda t: np.log1p(t), lambda t: np.exp(2 * t), True),
}
"""By number: what it is about, the sign of its curvature, rho as the part allows, rho that it does not, whether 1 / rho
weighs the sites and log|rho| is added."""


def bend(X: Vector, B: Vector, rho: Weights, inverse: bool, ends: tuple[Vector, Vector]) -> float:
    """Second difference along a segment between two vectors, over the range on it."""
    values = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        weights = rho(ends[0] + share * (ends[1] - ends[0]))
        pi = 1 / weights if inverse else weights
        value = np.linalg.slogdet(X.T @ X + (B.T * pi) @ B)[1]
        values.append(value + (np.log(weights).sum() if inverse else 0.0))
    bends = np.diff(values, 2)
    return float(bends[np.argmax(np.abs(bends))] / (np.ptp(values) + 1))


def run(data: Path | None, models: int, segments: int, n: int) -> Outcome:
    """Measure bends of all parts, and the slack of part 7."""
    rows, claims = [], []
    found: dict[str, tuple[list[float], list[float]]] = {number: ([], []) for number in PARTS}
    slack = []
    for seed in range(models):
        rng = np.random.default_rng(seed)
        X, B = rng.normal(size=(n // 2, n)), rng.normal(size=(2 * n, n))
        for _ in range(segments):
            ends = tuple(np.exp(rng.normal(scale=0.5, size=(2, 2 * n))))
            for number, (_, _, kept, broken, inverse) in PARTS.items():
                found[number][0].append(bend(X, B, kept, inverse, ends))
                found[number][1].append(bend(X, B, broken, inverse, ends))
            gamma = ends[0]
            A = X.T @ X + (B.T / gamma) @ B
            slack.append(float((np.einsum("in,ni->i", B, np.linalg.solve(A, B.T)) / gamma).max()))
    for number, (what, sign, *_) in PARTS.items():
        kept, broken = (sign * np.array(bends) for bends in found[number])
        rows.append(
            {"part": number, "function": what, "least bend": kept.min(), "least bend, condition broken": broken.min()}
        )
        shape = "convex" if sign > 0 else "concave"
        holds = bool(kept.min() >= -ROUNDING and broken.min() < -ROUNDING)
        claims.append(
            Claim(
                f"theorem 1 ({number})",
                f"{what} is {shape}; not so where its condition is broken",
                "proved",
                f"{np.sum(kept < -ROUNDING)} of {len(kept)} segments bend the other way, "
                f"{np.sum(broken < -ROUNDING)} where the condition is broken",
                holds,
                "" if holds else "Segments bend the other way, or none do where the condition is broken.",
            )
        )
    largest = max(slack)
    rows.append({"part": "7", "function": "z_i / gamma_i, largest", "least bend": largest})
    holds = largest <= 1 + ROUNDING
    claims.append(
        Claim(
            "theorem 1 (7)",
            "Var[s_i | y] / sigma^2 is at most gamma_i",
            "proved",
            f"largest ratio {largest:.4f} of {len(slack)} models",
            holds,
            "" if holds else "A ratio is above one.",
        )
    )
    return Outcome({"Bends": rows}, claims)
