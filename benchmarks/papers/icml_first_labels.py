"""Figure 2 on a9a, its first 400 labels with ten seeds: what four seeds to 3,200 labels leave open.

Training and test cases, judge and queries are those of the [whole figure](icml-active-learning.md): errors of the first
labels differ most between scores, and between seeds. The Laplace prior has the rate that was found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.stats
from matplotlib.figure import Figure

from .icml_active_learning import SCORES, asked, converged, scores_claims, splits
from .pools import error_rate
from .runner import Claim, Outcome

PLACE = "section 5, figure 2"
NEEDS = ("a9a",)
SIZES = {
    "tiny": {"train": 200, "seeds": 2, "at": (20, 24)},
    "small": {"train": 2000, "seeds": 2, "at": (100, 112)},
    "full": {"train": 16000, "seeds": 10, "at": (100, 150, 200, 300, 400)},
}
LAPLACE = 2.0
BLOCK = 3


def run(data: Path | None, train: int, seeds: int, at: Sequence[int]) -> Outcome:
    """Ask the first labels, by S_CU, S_IG and by chance."""
    errors = {}
    for prior, rate in (("Gaussian", None), ("Laplace", LAPLACE)):
        for part in splits(data, train, seeds):
            judged = [error_rate(part.test, part.test_labels, converged(part, count, rate).mean) for count in at]
            errors.setdefault((prior, "random"), []).append(judged)
            for score in SCORES:
                errors.setdefault((prior, score), []).append(asked(part, score, BLOCK, at, rate)[0])
    found = {name: np.array(each) for name, each in errors.items()}
    rows = [
        {"prior": prior, "cases": name}
        | {str(count): f"{100 * e:.2f}" for count, e in zip(at, each.mean(0), strict=True)}
        | {"standard error of the last": f"{100 * scipy.stats.sem(each[:, -1]):.2f}"}
        for (prior, name), each in found.items()
    ]
    claims: list[Claim] = scores_claims(found, at, at)
    if data is None:
        claims = [replace(claim, holds=None, because="Simulated rows stand in for a9a.") for claim in claims]
    return Outcome({f"Test error in per cent, mean of {seeds} seeds": rows}, claims, partial(draw, found, at))


def draw(errors: dict[tuple[str, str], np.ndarray], at: Sequence[int], figure: Figure) -> None:
    """Mean errors with their standard errors, a panel a prior."""
    for axes, prior in zip(figure.subplots(1, 2, sharey=True), ("Gaussian", "Laplace"), strict=True):
        for (of, name), each in errors.items():
            if of == prior:
                axes.errorbar(at, 100 * each.mean(0), 100 * scipy.stats.sem(each), label=name, capsize=2)
        axes.set(title=f"{prior} prior", xlabel="labels")
    figure.axes[0].set_ylabel("test error, per cent")
    figure.axes[0].legend()
