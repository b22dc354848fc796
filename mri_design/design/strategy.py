"""Candidates of the next measurement, and the strategies, Bayesian or not, that choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.trace import Choice, DesignStep, Forecast
from mri_design.errors import InputError, MriDesignError
from mri_design.readouts import Constraints, LineConstraints, LineReadouts, Readouts, open_moves
from mri_design.readouts.base import refusal

if TYPE_CHECKING:  # masks that look at no data are made without inference
    from mri_design.model.posterior import GaussianPosterior


@briefly
@dataclass(frozen=True)
class LineCandidates:
    """The state of a design: what may be measured, what has been measured, and how many lines it will have.

    Parameters
    ----------
    measurable : bool array, shape (ky,)
        Lines that can be acquired at all (zero-filled ones cannot).
    acquired : tuple of int
        Lines so far, in acquisition order.
    target : int
        Lines the finished design will have, those at the start included.
    n_start : int
        How many of ``acquired`` were there before the first decision.
    constraints : LineConstraints
        Constraints of the sequence; every choice from ``remaining`` fulfils them.
    readouts : Readouts, optional
        The kind of candidates, lines by default; "lines" below stands for these candidates.

    Attributes
    ----------
    allowed : bool array, shape (ky,)
        Lines that hold data and may be measured.
    remaining : bool array, shape (ky,)
        Lines that may come next. Where jumps are limited, those from which the target stays within reach: choosing
        among them never ends before it.

    Raises
    ------
    InputError
        Where an acquired line is outside the grid, repeated, not measurable or not allowed, a required one is missing,
        the lines break the maximum jump, or the target cannot be reached.
    """

    measurable: NDArray[np.bool_]
    acquired: tuple[int, ...]
    target: int
    n_start: int = 0
    constraints: Constraints = field(default_factory=LineConstraints)
    readouts: Readouts = None  # type: ignore[assignment]  # LineReadouts by default
    allowed: NDArray[np.bool_] = field(init=False)
    remaining: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        if self.readouts is None:
            object.__setattr__(self, "readouts", LineReadouts((self.n_lines, self.n_lines)))
        n = len(self.measurable)
        whole = all(isinstance(line, Integral) and not isinstance(line, bool) for line in self.acquired)
        if not whole or len(set(self.acquired)) < len(self.acquired) or not set(self.acquired) <= set(range(n)):
            raise InputError(field="lines", got=str(self.acquired), wanted=f"different line numbers from 0 to {n - 1}")
        if not all(self.measurable[line] for line in self.acquired):
            raise InputError(field="lines", got=str(self.acquired), wanted="lines that hold data")
        allowed = self.measurable & self.constraints.allowed(n)
        broken = [line for line in self.acquired if not allowed[line]]
        needed = set(self.constraints.needed(self.measurable))
        missing = sorted(needed - set(self.acquired)) if self.acquired else []
        jump = self.constraints.max_jump
        far = [f"{a} to {b}" for a, b in pairwise(self.acquired) if jump is not None and abs(b - a) > jump]
        for name, found, wanted in (
            ("lines", broken, "lines that the constraints allow"),
            ("required lines", missing, "all of them among the first lines"),
            ("max_jump", far, f"at most {jump} between consecutive lines"),
        ):
            if found:
                cure = "Begin with the lines of `LineConstraints.start`, or ask less of the lines."
                raise refusal(name, ", ".join(map(str, found)), wanted, cure)
        available = self.constraints.most_lines(self.measurable, self.acquired)
        if not len(self.acquired) <= self.target <= available:
            kind, cure = "with data", "Ask for fewer lines, or start with fewer."
            if (allowed != self.measurable).any():
                kind = "with data that the constraints allow"
            if self.constraints.max_jump is not None:
                kind = f"within jumps of {self.constraints.max_jump}"
                cure = (
                    "Ask for fewer lines, allow larger jumps, or start with fewer centre lines than a jump spans: a "
                    "wider block closes the way to its other side."
                )
            if self.target < len(self.acquired):
                cure = "Ask for more lines, or begin with fewer: those at the centre and those required."
            wanted = f"{len(self.acquired)} (start lines) to {available} (lines {kind})"
            raise refusal("number of lines", str(self.target), wanted, cure)
        left = allowed.copy()
        left[list(self.acquired)] = False
        if self.constraints.max_jump is not None:
            here = self.acquired[-1] if self.acquired else None
            left = open_moves(here, left, self.constraints.max_jump, self.target - len(self.acquired))
        object.__setattr__(self, "allowed", allowed)
        object.__setattr__(self, "remaining", left)

    @property
    def n_lines(self) -> int:
        """Lines of the grid."""
        return len(self.measurable)

    @property
    def frequencies(self) -> NDArray[np.int_]:
        """k of every line, DC = 0."""
        return np.arange(self.n_lines) - self.n_lines // 2

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Acquired lines, (ky,)."""
        return np.isin(np.arange(self.n_lines), self.acquired)

    @property
    def chosen(self) -> tuple[int, ...]:
        """Acquired lines without those of the start."""
        return self.acquired[self.n_start :]

    @property
    def wanted(self) -> int:
        """How many lines the finished design will have besides those of the start."""
        return self.target - self.n_start

    @property
    def outside_start(self) -> NDArray[np.intp]:
        """Numbers of the allowed lines that are not at the start, ascending."""
        outside = self.allowed.copy()
        outside[list(self.acquired[: self.n_start])] = False
        return np.flatnonzero(outside)

    def after(self, *lines: int) -> LineCandidates:
        """The candidates once ``lines`` have been measured."""
        return replace(self, acquired=(*self.acquired, *lines))


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
    expected : int, optional
        How many lines the design is expected to have in the end, where a rule may end it before its target.
    """

    candidates: LineCandidates
    posteriors: Sequence[GaussianPosterior] = ()
    steps: Sequence[DesignStep] = field(default=())
    pending: int = 0
    expected: int | None = None

    @property
    def readouts(self) -> Readouts:
        """Kind of the candidates."""
        return self.candidates.readouts


class Strategy:
    """Which candidate next. A subclass has a ``name`` and `choose` or `choose_block`; the rest has defaults.

    A strategy keeps no state: what it learns, it learns anew from `DesignView.steps`, so that a resumed design is the
    same one.
    """

    name: str
    needs_posterior: bool = True
    """Whether the engine infers before the strategy chooses."""
    start_lines: ClassVar[tuple[int, int] | None] = None
    """Lines around DC that a design begins with of one coil and of several; None for what posteriors need."""
    rough_for: tuple[str, ...] = ()
    """Sorts of readouts (`Kind.sort`) for which rough posteriors suffice, because it corrects their predictions."""
    predicts: bool = False
    """Whether it predicts the error of the image, also where no line is left to choose (`predicted`)."""

    def growing_start(self, n_coils: int) -> int | None:
        """Centre lines to begin with where coil maps are those of the lines measured; None: by the number of lines."""
        return None

    def plans_ahead(self, readouts: Readouts, n_coils: int) -> bool:
        """Whether choices depend on how many there will be, so that no mask is the beginning of a larger one."""
        return False

    @property
    def chooses_blocks(self) -> bool:
        """Whether it chooses several candidates of a plane from one look: whether it has a `choose_block`."""
        return type(self).choose_block is not Strategy.choose_block

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """How many of the ``readouts`` around DC a design of ``target`` begins with, for ``n_coils`` coils."""
        if self.start_lines is None:
            return readouts.start_for_posterior(target)
        return readouts.start(target, self.start_lines[n_coils > 1])

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """How many candidates of a mask of ``target`` are chosen without a posterior, the start included.

        The engine infers nothing before this part has been measured, and shows the strategy no posterior
        (`choose_block`). 0 where all is chosen by posteriors.

        Parameters
        ----------
        readouts : Readouts
            The candidates.
        target : int
            Candidates in the end.
        n_coils : int
            Receive coils, of several slices the fewest.
        """
        return 0

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next line. ``rng`` is fresh for every step.

        Raises
        ------
        InputError
            For a class with neither `choose` nor `choose_block`.
        """
        if not self.chooses_blocks:
            raise InputError(f"strategy {self.name}", "neither choose nor choose_block", "a class with one of them")
        return self.choose_block(view, rng, 1)[0]

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The next ``count`` candidates from one look, all different, in the order of measurement.

        The first choice has the scores and the forecast, which hold for the whole block.
        """
        return [self.choose(view, rng)]

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """``expected`` and, where the strategy corrects the posterior, ``corrected``; see `predicts`."""
        return Forecast()


def rng_of_step(seed: int, step: int, slices: int = 1) -> np.random.Generator:
    """The generator that a strategy gets for a decision: of the same seed, step and number of slices it is the same."""
    return np.random.default_rng([seed, step, slices])


def best_line(scores: NDArray[np.float64], candidates: LineCandidates) -> Choice:
    """The candidate with the largest score; ties go to the lowest line, NaN is never chosen.

    Raises
    ------
    MriDesignError
        Where no candidate has a finite score: the posterior broke down.
    """
    usable = np.where(candidates.remaining & np.isfinite(scores), scores, -np.inf)
    line = int(np.argmax(usable))
    if not np.isfinite(usable[line]):
        raise MriDesignError("no candidate line has a finite score")
    return Choice(line, np.where(candidates.remaining, scores, np.nan))
