"""Contents of the files: k-space of phantoms, known before it is written."""

from __future__ import annotations

from functools import cache

import numpy as np

from mri_design.operators.base import Array
from mri_design.scan.simulation.phantoms import load_phantom, load_phantom_shots
from mri_design.scan.trajectories.radial import equispaced_angles, golden_angles, radial_spokes
from mri_design.scan.trajectories.spiral import spiral_curve

NY, NX, COILS = 24, 32, 3
NZ = 6
SIDE = 16
"""Sides of the image where a trajectory was measured."""
_ELLIPSOIDS = ((1.0, (0.0, 0.0, 0.0), (0.38, 0.42, 0.4)), (-0.6, (0.05, -0.1, 0.08), (0.12, 0.2, 0.15)))


@cache
def scan(slices: int = 1, coils: int = COILS, shape: tuple[int, int] = (NY, NX)) -> Array:
    """K-space (slice, coil, ky, kx) of a head, with another phase and other coils in every slice."""
    heads = [
        load_phantom("brain", shape=shape, noise=0.0, n_coils=coils, rng=np.random.default_rng(10 + number)).kspace[0]
        for number in range(slices)
    ]
    return _fixed(np.stack(heads))


@cache
def volume(shape: tuple[int, int, int] = (NY, NZ, NX), coils: int = COILS) -> Array:
    """K-space (coil, ky, kz, kx) of ellipsoids, in closed form; a coil's map is a plane wave."""
    grids = np.meshgrid(*(np.arange(side) - side // 2 for side in shape), indexing="ij")
    k = np.stack(grids, axis=-1).astype(float)
    waves = np.random.default_rng(3).uniform(-1, 1, (coils, 3))
    return _fixed(np.stack([_ellipsoids(k - wave) for wave in waves]).astype(np.complex64))


def _ellipsoids(k: Array) -> Array:
    total = np.zeros(k.shape[:-1], np.complex128)
    for intensity, centre, axes in _ELLIPSOIDS:
        q = 2 * np.pi * np.linalg.norm(k * axes, axis=-1)
        q = np.where(q < 1e-3, 1e-3, q)
        ball = 4 * np.pi * (np.sin(q) - q * np.cos(q)) / q**3
        total += intensity * np.prod(axes) * ball * np.exp(-2j * np.pi * (k @ np.array(centre)))
    return total


def spokes(count: int, *, golden: bool = False) -> Array:
    """Columns (ky, kx) in cycles per field of view, (spoke, sample, 2)."""
    angles = golden_angles(count) if golden else equispaced_angles(count)
    return radial_spokes(SIDE, angles, oversampling=2)


def spirals(count: int) -> Array:
    """Interleaves of a spiral in the same layout."""
    curve = spiral_curve(SIDE, 3.0, points=40)
    angles = 2 * np.pi * np.arange(count)[:, None] / count
    wave = (curve[:, 1] + 1j * curve[:, 0]) * np.exp(1j * angles)
    return np.stack([wave.imag, wave.real], axis=-1)


def shots(trajectory: Array, slices: int = 1, coils: int = COILS) -> Array:
    """Samples (slice, coil, shot, sample) of a head along a trajectory (shot, sample, 2), in closed form."""
    heads = [_head(trajectory.tobytes(), coils, 10 + number) for number in range(slices)]
    return np.stack(heads).reshape(slices, coils, *trajectory.shape[:2])


@cache
def _head(trajectory: bytes, coils: int, seed: int) -> Array:
    points = np.frombuffer(trajectory).reshape(-1, 2)
    rng = np.random.default_rng(seed)
    return load_phantom_shots("brain", points, shape=SIDE, noise=0.0, n_coils=coils, rng=rng).kspace


def exact_noise(covariance: Array, length: int) -> Array:
    """Noise (coil, sample) whose sample covariance E[n n^H] / 2 is exactly the given one."""
    rng, coils = np.random.default_rng(1), len(covariance)
    white = rng.standard_normal((length, coils)) + 1j * rng.standard_normal((length, coils))
    orthonormal, _ = np.linalg.qr(white)
    return np.linalg.cholesky(2 * length * covariance) @ orthonormal.T.conj()


def _fixed(array: Array) -> Array:
    array.flags.writeable = False
    return array
