"""Which candidate model of a slice a design uses: the one that predicted the lines so far best.

Everything is read from the steps of the trace, so that a resumed design is the same design. Models are compared on
paired lines only: those that every candidate predicted from the same lines before. The first candidate is the safe one:
it is used until another is clearly better (`best_model`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.design.decision import DesignStep
from mri_design.errors import InputError
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.operators.readouts import Readouts

FEWEST = 4
"""Lines that a choice between models takes."""


def best_model(energies: ArrayLike, *, margin: float = 1.0) -> int:
    """The model with the smallest mean log innovation energy; the first one unless another is clearly better.

    Parameters
    ----------
    energies : float array, shape (lines, models)
        Sum of |measured - predicted|^2 over every measured line, under every model; the first model is the safe one.
    margin : float
        Standard errors of the mean paired difference by which another model has to be better than the first.

    Returns
    -------
    int
        Index of the model; 0 on fewer than four lines.

    Raises
    ------
    InputError
        For energies that are not a table of positive finite numbers.
    """
    table = np.asarray(energies, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] or not (np.isfinite(table).all() and (table > 0).all()):
        raise InputError(
            field="innovation energies", got=f"shape {table.shape}", wanted="positive numbers (lines, models)"
        )
    if len(table) < FEWEST:
        return 0
    gains: NDArray[np.float64] = np.log(table[:, :1]) - np.log(table)
    mean, error = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(len(table))
    eligible = np.where(mean > margin * error, mean, -np.inf)
    eligible[0] = 0
    return int(np.argmax(eligible))


ONE_IN = 3
"""Of the lines outside the centre one in so many is held back, from one edge to the other."""


def held_back(lines: Sequence[int], readouts: Readouts) -> tuple[list[int], list[int]]:
    """The lines to infer from, and those held back: a third of the lines outside the unbroken run around DC.

    Of another readouts they are a third of the candidates that it lets be predicted (`Readouts.predictable`). Which
    third does not depend on the order of ``lines``, so that a mask without one is treated like a design; no line is
    held back together with its mirror image, since each says much about the other. With fewer than 12 such lines it is
    a half of them.
    """
    outer = readouts.predictable(lines)
    step = ONE_IN if len(outer) >= FEWEST * ONE_IN else 2
    count = len(outer) // step
    held: dict[int, None] = {}  # in their order
    for line in (line for first in range(step) for line in outer[(first + 1) % step :: step]):
        if len(held) < count and readouts.opposite_of(line) not in held:
            held[line] = None
    return [line for line in lines if line not in held], list(held)


CandidateModels = Callable[[MRSlice, Array], Sequence[MRSlice]]
"""A slice and its image so far -> its candidate models, the safe one first, always in the same order; there may be
fewer where the image does not show what they need."""

FEWEST_PAIRED = 8
CLEAR = 2.0
"""Paired lines, and standard errors of the mean difference in log energy, from which a choice is no longer watched at
every inference."""


def paired_energies(steps: Sequence[DesignStep], index: int) -> NDArray[np.float64]:
    """Innovation energies (lines, models) of slice ``index`` on the lines that every candidate predicted."""
    rows = [s.outcome.model_energies[index] for s in steps if s.outcome.model_energies is not None]
    most = max((len(row) for row in rows), default=1)
    table = np.full((len(rows), most), np.nan)
    for row, energies in zip(table, rows, strict=True):
        row[: len(energies)] = energies
    return np.asarray(table[(np.isfinite(table) & (table > 0)).all(axis=1)])


def model_in_use(steps: Sequence[DesignStep], index: int, available: int) -> int:
    """Candidate that slice ``index`` is inferred with after ``steps``; 0 where that one is not ``available`` now."""
    return ModelPlan(best_model(paired_energies(steps, index))).in_use(available)


def rivals_due(steps: Sequence[DesignStep], index: int, every: int) -> bool:
    """Whether the models that are not in use are to predict the next lines too.

    They do at every inference until the evidence is clear, then at every ``every``-th, with one outer loop more
    (`ModelPlan.another_loop`). What this costs in accuracy is measured in results/design-study/measurements.md.
    """
    paired = paired_energies(steps, index)
    if every == 1 or len(paired) < FEWEST_PAIRED or not _clear(paired):
        return True
    rests = 0
    for step in reversed(steps):
        energies = None if step.outcome.model_energies is None else step.outcome.model_energies[index]
        if energies is not None and len(energies) == paired.shape[1] and np.isfinite(energies).all():
            break
        rests += step.choice.pending == 0
    return rests + 1 >= every


@dataclass(frozen=True)
class ModelPlan:
    """Which candidate models of one slice are inferred next; it says so without the steps that it was made from.

    Parameters
    ----------
    best : int
        The model that predicted best so far.
    watched : bool
        Whether the others are inferred too, see `rivals_due`.
    inferred : tuple of bool, optional
        Which models the last inference had: one that it left out starts further from its posterior, and takes one outer
        loop more before its prediction counts. None before the first measurement.
    """

    best: int = 0
    watched: bool = True
    inferred: tuple[bool, ...] | None = None

    def in_use(self, available: int) -> int:
        """The model that the strategy sees of ``available`` ones; 0 where the best is not among them now."""
        return self.best if self.best < available else 0

    def due(self, available: int) -> list[int]:
        """The models to infer of ``available`` ones."""
        return list(range(available)) if self.watched and available > 1 else [self.in_use(available)]

    def another_loop(self, model: int) -> bool:
        """Whether a model was left out of the last inference and takes one outer loop more."""
        return self.inferred is not None and (model >= len(self.inferred) or not self.inferred[model])


def plan_models(steps: Sequence[DesignStep], index: int, every: int) -> ModelPlan:
    """The plan for slice ``index`` after ``steps``, see `rivals_due` for ``every``."""
    last = steps[-1].outcome.model_energies if steps else None
    inferred = None if last is None else tuple(bool(known) for known in ~np.isnan(last[index]))
    return ModelPlan(best_model(paired_energies(steps, index)), rivals_due(steps, index, every), inferred)


def _clear(paired: NDArray[np.float64]) -> bool:
    """Whether the choice is settled: the best model leads clearly.

    Over the first model or, if it is the first, over every other.
    """
    best = best_model(paired)
    logs = np.log(paired)
    others = [0] if best else list(range(1, paired.shape[1]))
    losses = logs[:, others] - logs[:, [best]]
    error = losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
    return bool((losses.mean(axis=0) > CLEAR * error).all())
