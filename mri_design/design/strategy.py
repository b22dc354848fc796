"""One face for everything that decides which line comes next, Bayesian or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.errors import MriDesignError
from mri_design.model import GaussianPosterior

__all__ = ["Choice", "NoUsableScoreError", "Strategy", "best_line"]


class NoUsableScoreError(MriDesignError):
    """Every candidate's score is NaN: the posterior broke down."""


@dataclass(frozen=True)
class Choice:
    """A decision.

    Parameters
    ----------
    line : int
        Line to measure next.
    scores : float array, shape (ky,), optional
        Score of every candidate, NaN where a line is not one; None for rules without scores.
    """

    line: int
    scores: NDArray[np.float64] | None = None


class Strategy(Protocol):
    """Which line next.

    ``needs_posterior`` tells the engine whether to infer before asking; ``default_start`` is the number of centre
    lines the rule is at its best with.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs_posterior(self) -> bool: ...

    def default_start(self, n_lines: int, target: int) -> int:
        """Centre lines to begin with, for a grid of ``n_lines`` and a design of ``target`` lines."""
        ...

    def choose(
        self, posteriors: Sequence[GaussianPosterior], candidates: LineCandidates, rng: np.random.Generator
    ) -> Choice:
        """The next line; several posteriors (slices, subjects) share one mask. ``rng`` is fresh for every step."""
        ...


def best_line(scores: NDArray[np.float64], candidates: LineCandidates) -> Choice:
    """The candidate with the largest score; ties go to the lowest line, NaN is never chosen.

    Raises
    ------
    NoUsableScoreError
        Where no candidate has a finite score.
    """
    usable = np.where(candidates.remaining & np.isfinite(scores), scores, -np.inf)
    line = int(np.argmax(usable))
    if not np.isfinite(usable[line]):
        raise NoUsableScoreError("no candidate line has a finite score")
    return Choice(line, np.where(candidates.remaining, scores, np.nan))
