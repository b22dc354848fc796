"""Measured lines that are held back: which they are, what the others predict of them, and which model does it best.

The first model is the safe one: it is kept unless another is clearly better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.phase import PhasePrior
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

FEWEST = 4
"""Lines that a choice between models takes."""
NARROW_CENTRE = 8
"""Lines nearest to DC that stand in the place of the unbroken run where companions are judged and that run leaves fewer
than `FEWEST` to hold back, but half as many (results/companions/few-held-back.md)."""


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


def held_back(
    lines: Sequence[int], readouts: Readouts, centre: int | None = None, *, fold: int = 0
) -> tuple[list[int], list[int]]:
    """The lines to infer from, and those held back: a third of the lines outside the unbroken run around DC.

    Of other readouts they are a third of the candidates that it lets be predicted (`Readouts.predictable`). Which
    third does not depend on the order of ``lines``, so that a mask without one is treated like a design; no line is
    held back together with its mirror image, since each says much about the other. With fewer than 12 such lines it is
    a half of them. With ``centre`` that many lines nearest to DC stand in the place of the unbroken run. Another
    ``fold`` is another third, or the other half.
    """
    outer = readouts.predictable(lines)
    if centre is not None:
        outer = sorted(set(lines).difference(readouts.nearest_to_centre(lines, centre)))
    step = ONE_IN if len(outer) >= FEWEST * ONE_IN else 2
    count = len(outer) // step
    held: dict[int, None] = {}  # in their order
    for line in (line for first in range(step) for line in outer[(first + 1 + fold) % step :: step]):
        if len(held) < count and readouts.opposite_of(line) not in held:
            held[line] = None
    return [line for line in lines if line not in held], list(held)


LOOPS = 2
"""Outer loops of the inference without the lines held back."""


@dataclass(frozen=True)
class HeldBack:
    """Lines held back, and what is inferred from the others.

    Parameters
    ----------
    slice_model : MRSlice
        The slice without non-local blocks.
    known, held : tuple of int
        The lines that are inferred from, and those that are held back.
    engine : DoubleLoop
        Infers in two outer loops, once it is asked.
    seed : int
        Of what it draws.
    signal : float
        Signal level that the prior's scales follow: that of all lines.
    """

    slice_model: MRSlice
    known: tuple[int, ...]
    held: tuple[int, ...]
    engine: DoubleLoop
    seed: int
    signal: float

    @cached_property
    def posterior(self) -> GaussianPosterior:
        """Posterior of the lines that are not held back."""
        model = self.slice_model.model(self.known, self.signal)
        return self.engine.cut_short(LOOPS).infer(model, np.random.default_rng(self.seed))

    def under(self, phase: PhasePrior | None) -> HeldBack:
        """A copy that predicts the lines held back under another model of the phase."""
        if phase is self.slice_model.phase:
            return self
        return replace(self, slice_model=replace(self.slice_model, phase=phase))

    def data(self, line: int) -> Array:
        """Measured samples of a line, (coil, kx)."""
        return self.slice_model.acquire([line])

    def predicted(self, image: Array, line: int) -> Array:
        """Samples of a line as an image predicts them, (coil, kx)."""
        return self.slice_model.measurement([line])(image)


def hold_back(
    slice_model: MRSlice,
    lines: Sequence[int],
    engine: DoubleLoop,
    seed: int,
    signal: float | None = None,
    centre: int | None = None,
    *,
    fold: int = 0,
) -> HeldBack | None:
    """Hold back about a third of the lines outside the centre (`choosing.held_back`).

    In a plane these are samples, along trajectories readouts.

    Parameters
    ----------
    slice_model : MRSlice
        Its non-local blocks are left out: they are known from an image only.
    lines : sequence of int
        Measured lines.
    engine : DoubleLoop
        Infers from those that are left.
    seed : int
        Of what it draws.
    signal : float, optional
        As in `MRSlice.model`; by default that of all lines.
    centre, fold : int, optional
        As `choosing.held_back`.

    Returns
    -------
    HeldBack or None
        None where none can be held back.
    """
    level = slice_model.signal_level(lines) if signal is None else signal
    known, held = held_back(lines, slice_model.candidates, centre, fold=fold)
    if not held:
        return None
    return HeldBack(replace(slice_model, alike=None), tuple(known), tuple(held), engine, seed, level)
