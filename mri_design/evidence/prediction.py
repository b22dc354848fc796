"""The posterior of a slice without some of its measured lines, against which these lines can be held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mri_design.evidence.choosing import held_back
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.phase import PhasePrior
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array

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
