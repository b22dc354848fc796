"""The slowly varying phase phi of an image, seen in a reconstruction of low resolution, and the prior that it makes.

With a known phase e^{-i phi} u is nearly real, so that k-space nearly has conjugate symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.errors import InputError, require_choice
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.elementary import PhasedParts

WIDTH = 5.0
"""Standard deviation of the Gaussian in k-space samples: phase is slow over the field of view, whatever its matrix.

A wider one follows the phase more closely, and the image's own errors."""

LEAST_SIGNAL = 6.0
"""Peak of the smoothed image over the noise in it (per component) below which a phase is none: noise alone, as many
independent values as the Gaussian leaves, reaches 4 to 5."""


@briefly
@dataclass(frozen=True)
class PhaseMap:
    """e^{i phi} of an image, and how far it can be trusted.

    Parameters
    ----------
    rotation : complex array, shape (ky, kx)
        e^{i phi}.
    confidence : float array, shape (ky, kx)
        From 0 (nothing known) to 1: how much of the image's modulus around a pixel the phase accounts for.

    Raises
    ------
    InputError
        For shapes that differ, moduli other than one, or confidences outside 0 to 1.
    """

    rotation: Array
    confidence: Array

    def __post_init__(self) -> None:
        if self.rotation.ndim != 2 or self.confidence.shape != self.rotation.shape:
            raise InputError(
                "phase map", f"{self.rotation.shape} and {self.confidence.shape}", "two images (ky, kx) of one shape"
            )
        if not np.allclose(np.abs(self.rotation), 1, rtol=0, atol=1e-4):
            raise InputError("phase map", "rotations of other moduli than one", "e^{i phi}")
        if not ((self.confidence >= 0) & (self.confidence <= 1)).all():
            raise InputError("phase map", "confidences beyond 0 to 1, or NaN", "0 to 1")

    @classmethod
    def known(cls, angle: Array) -> PhaseMap:
        """A phase in radians, (ky, kx), trusted everywhere."""
        return cls(np.exp(1j * np.asarray(angle, dtype=float)), np.ones(np.shape(angle)))


def estimate_phase(image: Array, noise_variance: float) -> PhaseMap:
    """phi of an image smoothed by a Gaussian in k-space: each pixel counts by its own modulus.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        The image so far: coil-combined, a posterior mean or the central lines' own image.
    noise_variance : float
        Per real component of a fully sampled image: what the image could hold at most of it.

    Returns
    -------
    PhaseMap
        The confidence is that of a smoothed value above its noise, times its coherence |G u| / G |u|.

    Raises
    ------
    InputError
        Where the image is real, not finite, or shows nothing above the noise: then it has no phase.

    Notes
    -----
    The homodyne phase: Noll, Nishimura & Macovski, IEEE TMI 10 (1991), with a Gaussian for the window and the current
    reconstruction for the central lines.
    """
    if image.ndim != 2 or not np.iscomplexobj(image):
        raise InputError("image", f"{image.dtype} {image.shape}", "a complex image (ky, kx)")
    if not np.isfinite(image).all():
        raise InputError("image", "NaN or infinite values", "finite numbers")
    if not (np.isfinite(noise_variance) and noise_variance >= 0):
        raise InputError("noise_variance", repr(noise_variance), "a finite number, not negative")
    along_y, along_x = (np.exp(-0.5 * (np.fft.fftfreq(n, 1 / n) / WIDTH) ** 2) for n in image.shape)
    gaussian = along_y[:, None] * along_x
    smooth = scipy.fft.ifft2(gaussian * scipy.fft.fft2(image.astype(np.complex128)))
    around = scipy.fft.ifft2(gaussian * scipy.fft.fft2(np.abs(image).astype(float))).real
    noise = noise_variance * float(np.mean(gaussian**2))
    peak = float(np.abs(smooth).max())
    if not peak > LEAST_SIGNAL * np.sqrt(noise):
        raise InputError(
            "phase",
            "an image with nothing above the noise at low resolution",
            "a signal to take the phase from",
            "Use the modulus model, or measure more central lines first.",
        )
    power = np.abs(smooth) ** 2
    floor = np.finfo(float).tiny
    coherence = np.abs(smooth) / np.maximum(around, floor)
    confidence = np.clip(coherence, 0, 1) * power / np.maximum(power + 2 * noise, floor)
    turn = np.where(power > 0, smooth / np.maximum(np.abs(smooth), floor), 1)
    return PhaseMap(turn, confidence)


PhaseSites = Literal["shared", "apart"]


@dataclass(frozen=True)
class PhasePrior:
    """Sites on a + i b = B e^{-i phi} u that hold b to be smaller than a.

    Parameters
    ----------
    phase : PhaseMap, optional
        phi; None has it estimated from the central lines' own image wherever a model is made (`SliceModel.model`).
    imaginary_ratio : float
        R, by how much more the imaginary part is penalised where the phase is certain; where the map's confidence c is
        less, rho = 1 + (R - 1) c.
    sites : {"shared", "apart"}
        One site on sqrt(a^2 + rho^2 b^2), which is the site on the modulus for R = 1 or where nothing is known of the
        phase; or two, with rates tau for a and rho tau for b.

    Notes
    -----
    What ratios and kinds of sites do to the error of the posterior mean is tabulated in
    results/benchmarks/measured-once.md. A scan whose phase is not smooth loses by it: let the scan decide.

    Raises
    ------
    InputError
        For a ratio that is not positive and finite, or an unknown kind of sites.
    """

    phase: PhaseMap | None = None
    imaginary_ratio: float = 2.0
    sites: PhaseSites = "shared"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.imaginary_ratio) and self.imaginary_ratio > 0):
            raise InputError("imaginary_ratio", repr(self.imaginary_ratio), "a positive finite number")
        require_choice(get_args(PhaseSites), **{"phase sites": self.sites})

    def seen_in(self, image: Array, noise_variance: float) -> PhasePrior:
        """This prior with phi estimated from an image; see `estimate_phase` for the images that it refuses."""
        return replace(self, phase=estimate_phase(image, noise_variance))

    @property
    def _known(self) -> PhaseMap:
        if self.phase is None:
            raise InputError("phase", "none yet", "a PhaseMap", "Use `PhasePrior.seen_in` first.")
        return self.phase

    def emphasis(self, analysis: LinearOperator) -> Array:
        """rho, broadcastable to the coefficients; those that are on no pixel grid take the image's median."""
        rho = 1 + (self.imaginary_ratio - 1) * self._known.confidence
        on_pixels = analysis.out_shape[-2:] == rho.shape
        constant = self.imaginary_ratio == 1 or not on_pixels
        return np.asarray(np.median(rho)) if constant else rho

    def on(
        self, analysis: LinearOperator, rates: Array | float, group_axes: tuple[int, ...]
    ) -> tuple[LinearOperator, Array | float, tuple[int, ...]]:
        """Analysis, rates and group axes of sites on moduli -> those of sites that know the phase."""
        rho = self.emphasis(analysis)
        moved = tuple(axis - 1 for axis in group_axes)
        if self.sites == "shared":
            spread = rates if np.ndim(rates) == 0 else np.expand_dims(rates, -1)
            return PhasedParts(analysis, self._known.rotation, rho), spread, (-1, *moved)
        each = np.stack(np.broadcast_arrays(rates, rates * rho), axis=-1)
        if moved and each.ndim > len(analysis.out_shape):  # a group has one rate
            each = each.mean(axis=moved, keepdims=True)
        return PhasedParts(analysis, self._known.rotation), each, moved
