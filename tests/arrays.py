"""Arrays for tests: unit noise, maps of smooth coils, spokes and spirals, and arrays as real vectors."""

import numpy as np
from numpy.typing import DTypeLike

from mri_design.operators import equispaced_angles, radial_spokes


def noise(shape: tuple[int, ...], dtype: DTypeLike = "D", seed: int = 0) -> np.ndarray:
    """Unit noise, of each part where the type is complex."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def smooth_maps(shape: tuple[int, int], coils: int) -> np.ndarray | None:
    """Maps (coil, ky, kx) of coils around the image, of unit root-sum-of-squares; None for one coil."""
    if coils < 2:
        return None
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    angles = 2 * np.pi * np.arange(coils) / coils
    maps = np.array([np.exp(-((y - np.sin(a)) ** 2) - (x - np.cos(a)) ** 2 + 1j * a) for a in angles])
    return maps / np.sqrt(np.sum(np.abs(maps) ** 2, axis=0))


def spokes(count: int, n: int) -> np.ndarray:
    """Points (sample, 2) of spokes over half a turn of an n x n grid, two samples a cycle."""
    return radial_spokes(n, equispaced_angles(count), oversampling=2).reshape(-1, 2)


def spiral(n: int, power: float, turns: float, leaves: int, count: int) -> np.ndarray:
    """Points (sample, 2) of spirals whose distance from the centre grows with a power of the way along them."""
    along = np.linspace(0, 1, count)[:, None]
    radius, angles = n / 2 * along**power, 2 * np.pi * (turns * along + np.arange(leaves) / leaves)
    return np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1).reshape(-1, 2)


def as_real(values: np.ndarray, is_complex: bool, batch: int = 0) -> np.ndarray:
    """(real parts, imaginary parts) along one axis, or the real array itself, behind ``batch`` leading axes."""
    flat = values.reshape(*values.shape[:batch], -1)
    return np.concatenate([flat.real, flat.imag], axis=-1) if is_complex else flat.real
