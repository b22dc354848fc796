"""Modulus or phase-aware model for a mask that is already there: lines held back are predicted under each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mri_design.design.slices import found_energies
from mri_design.evidence.held_back import FEWEST, HeldBack, best_model
from mri_design.inference.base import WarmStart, pooled_variances
from mri_design.inference.double_loop import DoubleLoop
from mri_design.kinds import count_text
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import phase_variants
from mri_design.model.phase import PhasePrior
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, Readouts

_FAR = 8
"""Lines from DC that a mask has to reach until it has sides."""
CLEARLY = 1.5
"""Standard errors by which a model has to predict the lines held back better than moduli do."""


@dataclass(frozen=True)
class PhaseChoice:
    """The model of a slice's phase that its own lines have chosen.

    Parameters
    ----------
    phase : PhasePrior, optional
        None for moduli.
    held_back : int
        Lines (or samples, shots, readouts) held back that it was judged by; 0 where there were too few, or no phase to
        see.
    gain : float
        By how much less energy than under moduli was left unpredicted on them, as a fraction (geometric mean).
    image : complex array, shape (ky, kx), optional
        The image that predicted them; None where nothing was compared.
    unit : str
        What was held back, in the singular (`Readouts.unit`).
    one_sided : bool
        Whether nothing was held back because one side of k-space is missing (`is_one_sided`).
    """

    phase: PhasePrior | None = None
    held_back: int = 0
    gain: float = 0.0
    image: Array | None = field(default=None, compare=False, repr=False)
    unit: str = "line"
    one_sided: bool = False

    def __str__(self) -> str:
        if self.phase is not None and self.one_sided:
            return f"phase-aware {self.phase.imaginary_ratio:g}: one side of k-space was not measured"
        held = f"{count_text(self.held_back, self.unit)} held back"
        if self.phase is None:
            return f"modulus, {f'after {held}' if self.held_back else 'nothing to choose by'}"
        better = f"{100 * self.gain:.0f} % less of {held} is left unpredicted"
        return f"phase-aware {self.phase.imaginary_ratio:g}: {better}"


def is_one_sided(lines: Sequence[int], readouts: Readouts) -> bool:
    """Whether lines reach at most half as far from DC on one side of k-space as on the other (partial Fourier).

    There moduli lose (results/coils/everyday.md), and no lines can tell: those that could be held back lie on the side
    that was measured.
    """
    if not isinstance(readouts, LineReadouts):
        return False
    places = readouts.frequencies[list(lines), 0]
    short, far = sorted((-int(places.min(initial=0)), int(places.max(initial=0))))
    return far >= _FAR and 2 * short <= far + 1  # of an even grid one side has a line less


def choose_phase(
    without: HeldBack | None, imaginary_ratios: Sequence[float], engine: DoubleLoop, *, one_sided: bool = False
) -> PhaseChoice:
    """The candidate model that predicts the lines held back best from the others.

    Candidates are compared at the marginal variances of the modulus model, so that each takes no more than one inner
    problem.

    Parameters
    ----------
    without : HeldBack, optional
        The modulus model's prediction; None where there is none.
    imaginary_ratios : sequence of float
        Of the phase-aware candidates (`PhasePrior`).
    engine : DoubleLoop
        Solves the inner problems.
    one_sided : bool
        Whether one side of k-space is missing (`is_one_sided`): then nothing is compared, and the first candidate
        is taken.

    Returns
    -------
    PhaseChoice
        Moduli where no other model is clearly better (`best_model`), where fewer than four lines are held back, or
        where the image shows no phase.
    """
    if one_sided:
        return PhaseChoice(PhasePrior(None, imaginary_ratios[0]), one_sided=True)
    if without is None or len(without.held) < FEWEST:
        return PhaseChoice()
    posterior = without.posterior
    start = WarmStart(posterior.mean, pooled_variances(posterior.model, posterior.marginals))
    candidates = phase_variants(without.slice_model, posterior.mean, imaginary_ratios=imaginary_ratios)
    if len(candidates) == 1:
        return PhaseChoice()
    images, energies = [], []
    for candidate in candidates:
        model = candidate.model(without.known, without.signal)
        images.append(engine.image_at(model, WarmStart(start.mean, _shared_out(start.z, model))))
        energies.append(found_energies(without.slice_model, images[-1], without.held))
    table = np.transpose(energies)
    number = best_model(table, margin=CLEARLY)
    gain = 1 - float(np.exp(np.mean(np.log(table[:, number]) - np.log(table[:, 0]))))
    return PhaseChoice(
        candidates[number].phase, len(without.held), gain, images[number], without.slice_model.candidates.unit
    )


def _shared_out(z: tuple[Array, ...], model: GeneralizedLinearModel) -> tuple[Array, ...]:
    """Variances of moduli -> those of the sites of ``model``: as they are, or for the parts of a phased coefficient."""
    shared: list[Array] = []
    for block, variance in zip(model.blocks, z, strict=True):
        like = block.pooled(np.ones(block.analysis.out_shape, dtype=variance.dtype))
        if like.ndim == variance.ndim:
            shared.append(variance)
        else:
            shared.append(np.ascontiguousarray(np.broadcast_to(variance[..., None] / like.shape[-1], like.shape)))
    return tuple(shared)
