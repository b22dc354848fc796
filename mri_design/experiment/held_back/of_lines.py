"""Squared error of an image of lines as the error model of designs predicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.decision import Choice, DesignStep, Forecast, LineOutcome
from mri_design.design.energies import expected_energies
from mri_design.design.recording import found_energies
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategy import DesignView
from mri_design.experiment.held_back.prediction import HeldBack
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.potentials.priors import Laplace

SHARE = 0.9
"""Squared error of a mean over what is predicted of it, on training masks (results/benchmarks/non-local.md)."""
BEFORE = 0.25
"""Weight of the prediction made before the lines held back were seen, in the logarithm of the predicted error."""
LOCAL_KINDS = {"pixels", "differences"}
"""Kinds of blocks under which the error model of `Calibrated` has learnt."""


def predicted_by_error_model(
    slice_model: MRSlice, lines: Sequence[int], local: GaussianPosterior, without: HeldBack | None, seed: int
) -> float:
    """Squared error of an image of lines as the error model of the strategy `Calibrated` predicts it.

    The error model has learnt on synthetic heads how wrong a posterior is about the energy of the error on every line
    that was not measured. Summed over all lines this is the squared error of the image. Some measured lines are held
    back and predicted from the others, and the error model learns from these innovations as it does in a design. Since
    they are few, the result is a weighted geometric mean of the predictions before and after them.

    Parameters
    ----------
    slice_model : MRSlice
        The slice.
    lines : sequence of int
        Lines behind the image, in the order of the posterior's data.
    local : GaussianPosterior
        Of the slice from the same lines, without non-local blocks: the kind that the error model knows.
    without : HeldBack, optional
        What the other lines say of those held back, under the model of ``local``; None where none can be.
    seed : int
        Of what it draws.

    Returns
    -------
    float
        NaN for lines with holes, other readouts, and other blocks than it has learnt of.
    """
    blocks = local.model.blocks
    learnt = {block.name for block in blocks} == LOCAL_KINDS and all(isinstance(b.potential, Laplace) for b in blocks)
    if slice_model.candidates.name != "lines" or slice_model.samples is not None or not learnt:
        return float("nan")
    steps = [] if without is None else _innovations(without, seed)
    order = tuple(lines) if without is None else (*without.known, *without.held)
    ordered = replace(local, model=_of_lines(local, slice_model, order))
    candidates = LineCandidates(slice_model.measured, order, len(order), readouts=slice_model.candidates)
    view = DesignView(candidates, [ordered], steps)
    strategy = Calibrated()
    expected = strategy.expected(view, np.random.default_rng(seed))
    after, before = strategy.corrected(view, expected), strategy.corrected(replace(view, steps=()), expected)
    return float(before.sum() ** BEFORE * after.sum() ** (1 - BEFORE) * SHARE)


def _of_lines(posterior: GaussianPosterior, slice_model: MRSlice, lines: Sequence[int]) -> GeneralizedLinearModel:
    """The posterior's model on other lines: the same sites, whatever signal those lines would show."""
    return replace(posterior.model, measurement=slice_model.measurement(lines), data=slice_model.acquire(lines))


def _innovations(without: HeldBack, seed: int) -> list[DesignStep]:
    """The lines held back as decisions of a design, measured together after one inference from the others."""
    before = without.posterior
    forecast = Forecast(
        expected_energies([before], without.slice_model.candidates, np.random.default_rng(seed), Calibrated().draws)
    )
    found = found_energies(without.slice_model, before.mean, without.held)
    return [
        DesignStep(Choice(line, forecast=forecast, pending=pending), LineOutcome(actual_energy=float(energy)))
        for pending, (line, energy) in enumerate(zip(without.held, found, strict=True))
    ]
