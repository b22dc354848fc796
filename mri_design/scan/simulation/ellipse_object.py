"""Ellipses as a scanner meets them: with a phase, seen through coils, scaled to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance, require_random
from mri_design.scan.simulation.brightness import bright_level
from mri_design.scan.simulation.coil_maps import coil_series, normalised_maps, root_sum_of_squares
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.series import TrigonometricSeries, phase_series
from mri_design.scan.simulation.settings import checked_coil_count, checked_shape

EllipsePhase = Literal["smooth", "none"]


@dataclass(frozen=True)
class EllipseObject:
    """What every simulated scan of one scene shares, however it samples k-space.

    Parameters
    ----------
    modulations : tuple of TrigonometricSeries
        Phase times sensitivity of each coil; k-space of the scene times these, divided by ``level``, is the scan's.
    level : float
        99.5th percentile of the magnitude of the scene's pixel averages.
    reference : float64 or complex128 array, shape (ky, kx)
        Pixel averages of scene x phase x rho, divided by ``level``, with rho the root-sum-of-squares of the coils.
    maps : complex64 array, shape (coil, ky, kx), or None
        Sensitivities divided by rho at the pixels' centres; None for one coil, which has the sensitivity 1.
    """

    modulations: tuple[TrigonometricSeries, ...]
    level: float
    reference: NDArray[Any]
    maps: NDArray[np.complex64] | None


def drawn_object(
    phantom: EllipsePhantom,
    shape: int | tuple[int, int],
    *,
    phase: EllipsePhase,
    n_coils: int,
    rng: np.random.Generator,
) -> EllipseObject:
    """Draw phase and coils, in this order.

    Parameters
    ----------
    phantom : EllipsePhantom
        The scene.
    shape : int or (int, int)
        Grid (ky, kx) of reference and maps. The same generator state gives the same object on every grid.
    phase : {"smooth", "none"}
        Smooth phase as a trigonometric series (`series.phase_series`), or none.
    n_coils : int
        Receive coils, 1 to 128; their sensitivities are trigonometric series (`coil_maps.coil_series`).
    rng : numpy Generator
        Source of both.

    Raises
    ------
    InputError
        On a wrong setting, or a scene too dark to scale.
    """
    require_instance(EllipsePhantom, wanted="an EllipsePhantom", phantom=phantom)
    require_random(rng)
    grid, n_coils = checked_shape(shape), checked_coil_count(n_coils)
    if phase not in ("smooth", "none"):
        raise InputError(field="phase", got=repr(phase), wanted="smooth or none for ellipses")
    wave = phase_series(rng) if phase == "smooth" else None
    coils = coil_series(n_coils, rng)

    def weight(y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.complex128]:
        rho = root_sum_of_squares(coils, y, x)
        return rho.astype(np.complex128) if wave is None else rho * wave.values(y, x)

    truth = phantom.image(grid, weight=weight)
    level = bright_level(truth, phantom.name)
    modulations = tuple(s if wave is None else s * wave for s in coils)
    return EllipseObject(modulations, level, truth / level, None if n_coils == 1 else normalised_maps(coils, grid))
