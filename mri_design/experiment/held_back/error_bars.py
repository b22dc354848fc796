"""Error bars that hold: the squared error of an image is predicted line by line, and its variances are scaled to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.decision import Choice, DesignStep, Forecast, LineOutcome
from mri_design.design.energies import expected_energies
from mri_design.design.recording import found_energies
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategy import DesignView
from mri_design.experiment.held_back.evidence import ErrorEvidence
from mri_design.experiment.held_back.prediction import HeldBack
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.potentials.priors import Laplace
from mri_design.priors import BLOCKS
from mri_design.registry import Shipped

SHARE = 0.9
"""Squared error of a mean over what is predicted of it, on training masks (results/benchmarks/non-local.md)."""
BEFORE = 0.25
"""Weight of the prediction made before the lines held back were seen, in the logarithm of the predicted error."""
BOUNDS = (1 / 3, 30.0)
"""Bounds of the factor on variances: beyond them the prediction is trusted less than the posterior."""
FEWEST = 2
"""Lines held back that make a factor for blocks under which nothing has been learnt."""
FALLS = 0.6
"""How much of the logarithm of a companion's gain on lines held back is found in the squared error, too."""
LOCAL_KINDS = {"pixels", "differences"}
"""Kinds of blocks under which the error model of `Calibrated` has learnt."""


@dataclass(frozen=True)
class StdFactor:
    """Factor on the standard deviations of an image.

    Parameters
    ----------
    factor : float
        On the standard deviation of every pixel.
    held_back : int
        Lines that were held back to learn it; 0 where there were too few, so that only synthetic heads stand behind it.
    """

    factor: float
    held_back: int

    evidence: ErrorEvidence | None = None

    def with_companions(self, gain: float) -> StdFactor:
        """The factor of an image whose prior knows companions, from that which is right without them.

        The squared error falls as the energy does that is left unpredicted on lines held back, but less.

        Parameters
        ----------
        gain : float
            Mean logarithm of the energy left without the companions over that with them; NaN where it is not known.
        """
        return replace(self, factor=self.factor * float(np.exp(-FALLS * gain / 2))) if np.isfinite(gain) else self

    def __str__(self) -> str:
        after = f"after {self.held_back} lines held back" if self.held_back else "no lines could be held back"
        return f"scaled by {self.factor:.2f}, {after}"


def std_factor(evidence: ErrorEvidence) -> StdFactor | None:
    """The factor that makes the standard deviations of an image as large as its predicted error.

    Returns
    -------
    StdFactor or None
        None where nothing predicts it.
    """
    if evidence.innovations is None:
        return None
    seen = evidence.innovations
    ratio = seen.found / seen.expected * evidence.local_variance * np.exp(-FALLS * evidence.gain) / evidence.variance
    return StdFactor(float(np.sqrt(np.clip(ratio, *BOUNDS))), seen.count, evidence)


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
