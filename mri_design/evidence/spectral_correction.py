"""Spectral correction: the posterior mean's bias in bands of k-space, corrected as far as lines held back agree.

The mean of a sparse model shrinks what was not measured: near the centre of k-space it is too small, and on the
outermost lines, where little is left to find, too large. The bias is alike on most images. One real factor for every
band of (|ky|, |kx|) has been learnt from random heads (results/benchmarks/band-factors.md); how much of it a scan
takes, from nothing to all, is found by least squares on the lines held back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evidence.held_back import FEWEST, HeldBack
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

Numbers = NDArray[np.float64]
ModelName = Literal["modulus", "phase-aware"]
MODELS: tuple[ModelName, ...] = ("modulus", "phase-aware")
"""Models whose means are biased differently."""

KY_EDGES = (0.0, 0.0625, 0.125, 0.25, 0.5, 0.75, 1.0)
KX_EDGES = (0.0, 0.125, 0.5, 1.0)
"""Edges of the bands, |k| in units of half the grid."""
SHARES = (1 / 8, 1 / 4, 1 / 2)
"""Fractions of the lines measured for which factors have been learnt."""


@dataclass(frozen=True)
class SpectralCorrection:
    """Real factors on the k-space of a posterior mean.

    Parameters
    ----------
    table : float array, shape (fractions, |ky| bands, |kx| bands)
        For `SHARES` of the lines measured; between them factors are interpolated in the logarithm of the fraction.

    Raises
    ------
    InputError
        For another shape, or factors that are not positive and finite.
    """

    table: Numbers

    def __post_init__(self) -> None:
        wanted = (len(SHARES), len(KY_EDGES) - 1, len(KX_EDGES) - 1)
        if self.table.shape != wanted:
            raise InputError(field="band factors", got=f"shape {self.table.shape}", wanted=f"{wanted}")
        if not (np.isfinite(self.table).all() and (self.table > 0).all()):
            raise InputError(field="band factors", got="values that are no factors", wanted="positive finite numbers")

    def on(self, shape: tuple[int, int], lines: int) -> Array:
        """The factor of every sample of a grid (ky, kx) of which so many lines were measured."""
        at = np.interp(np.log(lines / shape[0]), np.log(SHARES), np.arange(len(SHARES)))
        low = int(min(at, len(SHARES) - 2))
        table = self.table[low] + (at - low) * (self.table[low + 1] - self.table[low])
        return np.asarray(table.ravel()[bands(shape)])

    def applied(self, slice_model: MRSlice, lines: Sequence[int], image: Array, strength: float) -> Array:
        """The image with the factors on its lines that were not measured.

        Parameters
        ----------
        slice_model : MRSlice
            The slice, of one coil.
        lines : sequence of int
            Measured lines, which stay as they are.
        image : complex array, shape (ky, kx)
            The posterior mean.
        strength : float
            Fraction of the correction, 0 to 1.
        """
        encoding, left = slice_model.encoding(), unmeasured(slice_model, lines)
        excess = strength * (self.on(slice_model.shape, len(lines)) - 1)
        excess[~left] = 0
        correction = encoding.adjoint(encoding(image) * excess.astype(image.real.dtype))
        return np.asarray(image + correction)


def bands(shape: tuple[int, int]) -> NDArray[np.intp]:
    """Number of the band that each sample of a grid (ky, kx) is in, counted along |kx| first."""
    places = []
    for n, edges in zip(shape, (KY_EDGES, KX_EDGES), strict=True):
        k = np.abs(np.arange(n) - n // 2) / (n / 2)
        places.append(np.minimum(np.searchsorted(edges, k, side="right") - 1, len(edges) - 2))
    return np.asarray(places[0][:, None] * (len(KX_EDGES) - 1) + places[1])


def unmeasured(slice_model: MRSlice, lines: Sequence[int]) -> NDArray[np.bool_]:
    """Samples (ky, kx) on none of the lines."""
    left = np.ones(slice_model.shape, dtype=bool)
    left[list(lines)] = False
    return left


@cache
def shipped_spectral_correction(model: ModelName = "modulus") -> SpectralCorrection:
    """Factors that ``benchmarks/band_factors.py`` learnt from random heads for the mean under one model."""
    text = resources.files("mri_design.evidence").joinpath("spectral_correction.json").read_text("utf-8")
    return SpectralCorrection(np.array(json.loads(text)[model], dtype=float))


def strength(without: HeldBack | None, factors: SpectralCorrection, image: Array | None = None) -> float:
    """Fraction of the factors' correction that a scan takes, 0 to 1, by least squares on its lines held back.

    Parameters
    ----------
    without : HeldBack, optional
        The lines held back; None where there are none.
    factors : SpectralCorrection
        Of the model in use.
    image : complex array, shape (ky, kx), optional
        Predicts the lines held back; by default the posterior mean of ``without``.

    Notes
    -----
    The posterior that predicts them has seen fewer lines and is further off than the one to be corrected, so that
    fractions above 1 are common; scans whose bias is of another kind have negative ones. Both are cut off. Fewer than
    four lines held back, several coils and samples in holes are not corrected at all.
    """
    if without is None or len(without.held) < FEWEST:
        return 0.0
    one = without.slice_model
    if one.candidates.name != "lines" or one.maps is not None or one.samples is not None:
        return 0.0
    excess = factors.on(one.shape, len(without.known) + len(without.held)) - 1
    image = without.posterior.mean if image is None else image
    asked = possible = 0.0
    for line in without.held:
        predicted = without.predicted(image, line)
        change = predicted * excess[line]
        asked += float(np.sum((change.conj() * (without.data(line) - predicted)).real, dtype=np.float64))
        possible += float(np.sum(np.abs(change) ** 2, dtype=np.float64))
    return float(np.clip(asked / possible, 0, 1)) if possible > 0 else 0.0
