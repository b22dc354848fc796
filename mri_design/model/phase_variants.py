"""Candidate models of one slice, with and without its phase; which is right, the scan itself has to tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mri_design.errors import InputError
from mri_design.model.mr_image import MRSlice
from mri_design.model.phase_map import estimate_phase
from mri_design.model.phase_prior import PhasePrior, PhaseSites
from mri_design.operators import Array

__all__ = ["phase_refined", "phase_variants"]


def phase_variants(
    one: MRSlice, image: Array, *, imaginary_ratios: Sequence[float] = (2.0,), sites: PhaseSites = "shared"
) -> list[MRSlice]:
    """The slice with moduli, then phase-aware, once for every imaginary ratio.

    Parameters
    ----------
    one : MRSlice
        Its own phase prior, if any, is left out.
    image : complex array, shape (ky, kx)
        The image so far, to take the phase from: a posterior mean, or `MRSlice.central_image`.
    imaginary_ratios : sequence of float
        See `PhasePrior`.
    sites : {"shared", "apart"}
        See `PhasePrior`.

    Returns
    -------
    list of MRSlice
        The modulus model alone where the image shows no phase.

    Raises
    ------
    InputError
        For a senseless ratio, or an image of another shape.
    """
    modulus = replace(one, phase=None)
    priors = [PhasePrior(None, ratio, sites) for ratio in imaginary_ratios]
    if image.shape != one.shape:
        raise InputError(field="image", got=f"shape {image.shape}", wanted=f"{one.shape}")
    try:
        phase = estimate_phase(image, one.noise_variance)
    except InputError:
        return [modulus]
    return [modulus, *(replace(one, phase=replace(prior, phase=phase)) for prior in priors)]


def phase_refined(one: MRSlice, image: Array) -> MRSlice:
    """The slice with its phase estimated anew from the image so far; kept where that shows none, or without a prior.

    Alternating this with inference refines image and phase together: each maximises, or nearly, for the other fixed.
    """
    if one.phase is None:
        return one
    try:
        return replace(one, phase=one.phase.seen_in(image, one.noise_variance))
    except InputError:
        return one
