"""Coil maps that a slice estimates from those of its lines that have been measured, and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mri_design.brief import briefly
from mri_design.calibration.maps import MapEstimate, MapMethod, maps_from_lines
from mri_design.operators.base import Array

_KEPT = 2
"""Estimates that are remembered: those of the decision at hand and of the one before."""


@briefly
@dataclass(frozen=True)
class OwnMaps:
    """Estimates of the coil maps of one slice, by which of its samples had been measured.

    Maps depend on the measured samples alone, so that whoever asks, in whichever process and order, gets the same bits.
    The last ones are remembered.

    Parameters
    ----------
    method : {"auto", "espirit", "nlinv"}
        As `maps_from_lines` takes it.
    noise_variance : float
        Of the samples, likewise.
    """

    method: MapMethod = "auto"
    noise_variance: float = 0.0
    _made: dict[bytes, MapEstimate] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, kspace: Array, measured: Array, *, rough: bool = False, check: bool = False) -> MapEstimate:
        """The maps of a slice from its ``measured`` samples.

        Parameters
        ----------
        kspace : complex array, shape (coil, ky, kx)
            Of white coils, always of the same slice.
        measured : bool array, shape (ky,) or (ky, kx)
            Lines or samples to look at.
        rough : bool
            Whether the maps are those of a step on the way to an image, see `maps_from_lines`.
        check : bool
            Whether the estimate has to say how well it predicts lines that are held back.

        Raises
        ------
        InputError
            Where these are too few for any maps.
        """
        which = np.packbits(measured).tobytes() + bytes([rough])
        if not check and which + b"checked" in self._made:
            check = True
        key = which + (b"checked" if check else b"")
        if key not in self._made:
            estimate = maps_from_lines(
                kspace,
                measured,
                method=self.method,
                noise_variance=self.noise_variance,
                check=check,
                rough=rough,
            )
            while len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = estimate
        return self._made[key]

    def __getstate__(self) -> dict[str, object]:
        """Without what is remembered: another process makes its own."""
        return {"method": self.method, "noise_variance": self.noise_variance, "_made": {}}
