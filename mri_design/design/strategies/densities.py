"""Densities of random lines that fall off from the centre of k-space: what the variable-density strategies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts, require_numbers

GOLDEN = (np.sqrt(5) - 1) / 2
"""The golden ratio less one."""


@dataclass(frozen=True, kw_only=True)
class DensitySettings:
    """A density that falls off with |k|, around a centre that is always sampled. It is no strategy: it chooses nothing.

    Parameters
    ----------
    family : {"polynomial", "gaussian"}
        polynomial: (1 - |k| / k_max)^power (Lustig, Donoho & Pauly 2007); gaussian: exp(-power (|k| / k_max)^2 / 2).
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of lines.
    centre : int
        Lines always sampled at the centre.

    Raises
    ------
    InputError
        For another family, a power that is not a number of zero or more, or a centre of no line.
    """

    family: Literal["polynomial", "gaussian"] = "polynomial"
    power: float = 4.0
    centre: int = 8
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.family not in ("polynomial", "gaussian"):
            raise InputError(field="density family", got=repr(self.family), wanted="polynomial or gaussian")
        require_numbers(**{"density power": self.power})
        require_counts(least=1, **{"density centre": self.centre})

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """The forced centre."""
        return min(target, self.centre)

    def density(self, frequencies: NDArray[np.int_]) -> NDArray[np.float64]:
        """Relative density at the given k."""
        radius = np.abs(frequencies) / (np.abs(frequencies).max() + 1)
        if self.family == "polynomial":
            return np.asarray((1 - radius) ** self.power, dtype=float)
        return np.asarray(np.exp(-0.5 * self.power * radius**2), dtype=float)


def inclusion_masses(density: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """min(1, c density) with a sum of ``count``: how probable it is that each line is among ``count`` drawn ones.

    Parameters
    ----------
    density : float array
        Positive.
    count : int
        At most as many as there are entries.
    """
    full = np.zeros(len(density), dtype=bool)
    while True:
        left = count - int(full.sum())
        masses = np.where(full, 1.0, 0.0)
        if left > 0:
            masses[~full] = density[~full] * (left / density[~full].sum())
        over = ~full & (masses >= 1)
        if not over.any():
            return masses
        full |= over
