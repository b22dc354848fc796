"""The preconditioner of a phase-aware model: circulants of the real and the imaginary part, between two turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.fft

from mri_design.model.circulant_inverse import PhasedCirculantInverse
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.phased import PhasedParts

LARGEST_LEAK = 10.0
"""How many times stiffer than A a frequency may become by what the phase spreads to it."""


def phased_preconditioner(
    measurement: LinearOperator, blocks: Sequence[SiteBlock], site_precisions: Sequence[Array]
) -> PhasedCirculantInverse | None:
    """r -> (something near A)^-1 r where blocks know a phase; None where a circulant of the image itself serves better.

    That is where no block knows a phase, where a spectrum is not known, and where there is little noise.

    Notes
    -----
    In the image turned back, real and imaginary part each have the circulant nearest to their own sites' share of A.
    The measurement and sites on moduli treat real and imaginary parts alike, so that a circulant of the image itself
    approximates them; after division by the phase its spectrum is convolved with the power spectrum of exp(i phi).
    It pays where the imaginary part is held tighter than the real one; what it saves is said in
    results/benchmarks/measured-once.md.

    The convolution spreads some of what was measured to frequencies that were not. Where there is little noise, sites
    hold these by far less than that, and steps there would be too short to lead anywhere. A circulant of the image
    itself, the two parts' mean, is then exact on the data and off by the parts' ratio at most.
    """
    first = next((block.analysis for block in blocks if isinstance(block.analysis, PhasedParts)), None)
    straight = None if first is None else measurement.circulant_spectrum()
    if first is None or straight is None or len(measurement.in_shape) != 2:
        return None
    real, imaginary = np.zeros(straight.shape), np.zeros(straight.shape)
    for block, pi in zip(blocks, site_precisions, strict=True):
        operator = block.analysis
        if not (isinstance(operator, PhasedParts) and operator.rotation is first.rotation):
            spectrum = operator.circulant_spectrum(np.broadcast_to(pi, operator.out_shape))
            if spectrum is None:
                return None
            straight = straight + spectrum
            continue
        each = operator.part_weights(np.asarray(pi, dtype=float))
        pair = [operator.analysis.circulant_spectrum(each[..., k]) for k in (0, 1)]
        if pair[0] is None or pair[1] is None:
            return None
        real += pair[0]
        imaginary += pair[1]
    floor = np.finfo(np.float32).tiny
    turned = np.maximum(_convolved(straight, first.rotation), 0)
    mean = np.maximum((real + imaginary) / 2, floor)
    if np.any(turned + mean > LARGEST_LEAK * (straight + mean)):
        return None
    return PhasedCirculantInverse.of(turned, np.maximum(real, floor), np.maximum(imaginary, floor), first.rotation)


def _convolved(spectrum: Array, rotation: Array) -> Array:
    """Spectrum of the circulant nearest to R^H C R: at k the mean of C's at k + q, weighted by |FFT of R at q|^2."""
    power = np.abs(scipy.fft.fft2(rotation.astype(np.complex128))) ** 2 / rotation.size**2
    return np.asarray(scipy.fft.ifft2(scipy.fft.fft2(spectrum) * np.conj(scipy.fft.fft2(power))).real)
