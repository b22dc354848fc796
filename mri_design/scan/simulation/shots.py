"""A simulated scanner that samples k-space along any trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.simulation.ellipse_object import EllipsePhase, drawn_object
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.settings import checked_noise, checked_shape


@dataclass(frozen=True)
class SimulatedShots:
    """Samples along a trajectory, and everything that is known about them.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, sample)
        Scaled as the orthonormal FFT of the grid: sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) of each coil image u.
    trajectory : float64 array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    reference : complex64 array, shape (ky, kx)
        True image on the grid.
    coil_maps : complex64 array, shape (coil, ky, kx), optional
        Unit root-sum-of-squares; None for one coil, which sees the image itself.
    noise_variance : float, optional
        Per real component of a sample; None for noise-free data.
    name : str
        Short name for tables and figures.
    card : mapping of str to str
        Provenance and settings.
    """

    kspace: NDArray[np.complex64]
    trajectory: NDArray[np.float64]
    reference: NDArray[np.complex64]
    coil_maps: NDArray[np.complex64] | None = None
    noise_variance: float | None = None
    name: str = "shots"
    card: Mapping[str, str] = field(default_factory=dict)


def simulate_ellipse_shots(
    phantom: EllipsePhantom,
    trajectory: ArrayLike,
    shape: int | tuple[int, int],
    *,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> SimulatedShots:
    """Sample ellipses along any trajectory, phase and coils included, in closed form: no image is ever transformed.

    Parameters
    ----------
    phantom : EllipsePhantom
        The scene; its field of view is the scan's.
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view, on the grid of ``shape``; shots follow one another.
    shape : int or (int, int)
        Grid (ky, kx) of reference and maps; it sets the scale of the samples.
    noise : float
        Standard deviation of the white noise per real component of a sample, where the reference's magnitude has a
        99.5th percentile of 1. Zero makes noise-free data with ``noise_variance=None``.
    phase, n_coils
        As for `scanner.simulate_ellipse_scan`.
    rng : numpy Generator
        Drawn from in the order phase, coils, noise: a Cartesian scan of the same state is of the same object.

    Raises
    ------
    InputError
        On a wrong setting, a trajectory that leaves the grid or is in other units, or a scene too dark to scale.

    Notes
    -----
    Reference and maps mean what they mean in `scanner.simulate_ellipse_scan`. No image on the grid explains noise-free
    samples exactly: see `EllipsePhantom.samples`.
    """
    grid, noise = checked_shape(shape), checked_noise(noise)
    k = checked_trajectory(trajectory, grid).reshape(-1, 2)
    drawn = drawn_object(phantom, grid, phase=phase, n_coils=n_coils, rng=rng)
    kspace = phantom.samples(k, grid, drawn.modulations) / drawn.level
    kspace = kspace + noise * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    return SimulatedShots(
        kspace=kspace.astype(np.complex64),
        trajectory=k,
        reference=drawn.reference.astype(np.complex64),
        coil_maps=drawn.maps,
        noise_variance=noise * noise if noise > 0 else None,
        name=phantom.name,
        card={
            "simulated": "from ellipses, samples in closed form",
            "phase": phase,
            "noise": f"white, standard deviation {noise:g} per real component",
            "coils": str(n_coils),
            "matrix": f"{grid[0]} x {grid[1]}",
            "samples": str(len(k)),
        },
    )
