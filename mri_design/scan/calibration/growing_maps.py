"""Coil maps from the lines measured so far: what they rest on, and how well they predict lines that were held back."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.calibration.espirit import central, coil_directions, espirit

MapMethod = Literal["auto", "espirit", "nlinv"]
"""How maps are estimated; see `maps_from_lines`."""

_BLOCK, _USUAL_CENTRE, _FEWEST = 32, 24, 8


@dataclass(frozen=True)
class MapEstimate:
    """Coil maps of one slice, and what they rest on.

    Parameters
    ----------
    maps : complex64 array, shape (coil, ky, kx)
        Unit root-sum-of-squares at every pixel.
    method : {"espirit", "completed", "nlinv"}
        ESPIRiT on the gapless centre, ESPIRiT on a completed central block, or joint estimation of image and maps.
    centre : int
        Side of the gapless square at the centre of k-space.
    lines : int
        Measured lines of the central block that they rest on.
    rank : int, optional
        Rank that the block was completed with.
    prediction_error : float
        Relative error with which measured lines of the block are predicted from the others; NaN where none could be
        held back.
    """

    maps: NDArray[np.complex64]
    method: str
    centre: int
    lines: int
    rank: int | None = None
    prediction_error: float = float("nan")

    @property
    def text(self) -> str:
        """One sentence on what the maps rest on and how well they predict lines that were held back."""
        rests = {
            "espirit": f"ESPIRiT on {self.centre} gapless centre lines",
            "completed": f"ESPIRiT on a central block that was completed from {self.lines} measured lines",
            "nlinv": f"joint estimation of image and maps (NLINV) from {self.lines} central lines",
        }[self.method]
        if isnan(self.prediction_error):
            return rests
        return f"{rests}; lines held back were predicted with an error of {self.prediction_error:.0%}"


def maps_from_lines(
    kspace: NDArray[np.complex64],
    measured: NDArray[np.bool_],
    *,
    method: MapMethod = "auto",
    directions: NDArray[np.complex128] | None = None,
    before: MapEstimate | None = None,
) -> MapEstimate:
    """Coil maps of one slice from the lines, or samples, that were measured; nothing else is looked at.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils (`prewhiten`). What stands where nothing was measured is of no account.
    measured : bool array, shape (ky,) or (ky, kx)
        Which lines or samples were measured.
    method : {"auto", "espirit", "nlinv"}
        Method, chosen by how well lines that were held back are predicted by default.
    directions : complex array, shape (coil, coil), optional
        `coil_directions`, so that the phase of the maps runs on from slice to slice; by default those of this slice.
    before : MapEstimate, optional
        Maps of fewer lines of the same scan, which make the estimate faster.

    Raises
    ------
    InputError
        Where fewer than eight gapless lines around the centre were measured, or they hold no signal.
    """
    samples = measured if measured.ndim == 2 else np.repeat(measured[:, None], kspace.shape[-1], axis=1)
    kspace = np.where(samples, kspace, 0)
    side = min(samples.shape)
    centre = max((n for n in range(1, side + 1) if central(samples, n).all()), default=0)
    if centre < _FEWEST:
        raise InputError(
            field="measured",
            got=f"{centre} gapless lines and columns around the centre of k-space",
            wanted=f"at least {_FEWEST} for coil calibration",
            cure="Give coil maps, or measure a centre.",
        )
    width = min(centre, _USUAL_CENTRE)
    square = central(kspace, width).reshape(len(kspace), -1).astype(np.complex128)
    if not square.any():
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to calibrate with")
    if directions is None:
        directions = coil_directions(square @ square.conj().T)
    lines = int(central(samples, min(side, _BLOCK)).any(axis=1).sum())
    return MapEstimate(espirit(kspace, directions, width), "espirit", centre, lines)
