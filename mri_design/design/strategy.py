"""Protocol of strategies, Bayesian or not: each sees a `DesignView` and returns a `Choice`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.candidate import LineCandidates
from mri_design.design.trace import Choice, DesignStep, Forecast
from mri_design.errors import MriDesignError
from mri_design.readouts import Readouts

if TYPE_CHECKING:  # masks that look at no data are made without inference
    from mri_design.model.posterior import GaussianPosterior


class NoUsableScoreError(MriDesignError):
    """Every candidate's score is NaN: the posterior broke down."""


@briefly
@dataclass(frozen=True)
class DesignView:
    """State of a design as a strategy sees it.

    Parameters
    ----------
    candidates : LineCandidates
        Lines that may be chosen, and those that were.
    posteriors : sequence of GaussianPosterior
        One per slice (slices and subjects share one mask); empty for rules that need none.
    steps : sequence of DesignStep
        Decisions so far, with what was predicted and what was measured.
    pending : int
        How many of the last acquired lines were chosen since the last inference: the posteriors know that these lines
        will be measured, and do not know their data.
    """

    candidates: LineCandidates
    posteriors: Sequence[GaussianPosterior] = ()
    steps: Sequence[DesignStep] = field(default=())
    pending: int = 0

    @property
    def readouts(self) -> Readouts:
        """Kind of the candidates."""
        return self.candidates.readouts


class Strategy(Protocol):
    """Which line next.

    ``needs_posterior`` tells the engine whether to infer before asking; ``default_start`` is the number of centre
    lines that the rule is at its best with.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs_posterior(self) -> bool: ...

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """How many of the ``readouts`` around DC a design of ``target`` begins with, for ``n_coils`` coils."""
        ...

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next line. ``rng`` is fresh for every step."""
        ...


@runtime_checkable
class ChoosesBlocks(Protocol):
    """A strategy that chooses several candidates from one look, as those of a plane do.

    The first choice has the scores and the forecast, which hold for the whole block. A class that subclasses this one
    writes `choose_block` alone.
    """

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """See `Readouts.start_for_posterior`."""
        return readouts.start_for_posterior(target)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The next ``count`` candidates, all different, in the order in which they are to be measured."""
        ...

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block of one."""
        return self.choose_block(view, rng, 1)[0]


@runtime_checkable
class BeginsUnseen(Protocol):
    """A strategy that chooses the first part of a mask from no posterior, where it is known how large the mask will be.

    The engine infers nothing before this part has been measured, and shows the strategy no posterior (`choose_block`).
    """

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """How large that part is of a mask of ``target``, the start included; 0 where all is chosen by posteriors.

        Parameters
        ----------
        readouts : Readouts
            The candidates.
        target : int
            Candidates in the end.
        n_coils : int
            Receive coils, of several slices the fewest.
        """
        ...


@runtime_checkable
class Predicts(Protocol):
    """A strategy that predicts the error of the image, also where no line is left to choose."""

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """``expected`` and, where the strategy corrects the posterior, ``corrected``."""
        ...


@runtime_checkable
class Corrects(Protocol):
    """A strategy that corrects what posteriors expect by what was found: a rough posterior is enough for it."""

    def corrected(self, view: DesignView, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """Energy of the error on every line, (ky,), from what the posteriors expect."""
        ...


def rng_of_step(seed: int, step: int, slices: int = 1) -> np.random.Generator:
    """The generator that a strategy gets for a decision: of the same seed, step and number of slices it is the same."""
    return np.random.default_rng([seed, step, slices])


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
