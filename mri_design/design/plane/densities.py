"""Densities of random samples that fall off from the centre of the plane: what the drawn masks share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.plane.start import start_for_samples
from mri_design.errors import require_numbers
from mri_design.operators.encodings import PlaneEncoding

LEAST = 1e-4
"""Density at the corners of the plane, beside 1 at its centre: every sample can be drawn."""


@dataclass(frozen=True, kw_only=True)
class SampleDensity:
    """Density (1 - r / r_max)^power, r the distance from DC in units of the plane's edges. It chooses nothing.

    Parameters
    ----------
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of samples and coils.

    Raises
    ------
    InputError
        For a power that is not a number of zero or more.
    """

    power: float = 8.0
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        require_numbers(**{"density power": self.power})

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """As designed masks begin with: see `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def density(self, plane: PlaneEncoding) -> NDArray[np.float64]:
        """Relative density of every sample, (size,)."""
        share = 1 - plane.radius / plane.radius.max()
        return np.asarray(np.maximum(share, 0) ** self.power + LEAST**self.power if self.power else np.ones(plane.size))
