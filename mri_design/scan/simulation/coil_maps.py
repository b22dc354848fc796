"""Simulated receive coils: fields of current loops around the object, as maps and as short series."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import require_counts, require_random
from mri_design.scan.simulation.ellipses import TrigonometricSeries
from mri_design.scan.simulation.settings import MOST_COILS, checked_shape, pixel_positions

_HALF_WIDTH = 4  # waves up to two cycles per field of view
_FIT_POINTS = 40
_RING_RADIUS = 0.8  # fields of view: outside the corners, where a loop's field would be singular
_LOOP_SEGMENTS = 48
_RIDGE = 1e-7


def coil_series(n_coils: int, rng: np.random.Generator) -> tuple[TrigonometricSeries, ...]:
    """Draw the complex sensitivities of a ring of coils, each as a short trigonometric series.

    Circular loops stand on a ring around the field of view, facing inwards, with jittered places and a random
    constant phase. Each sensitivity is the loop's transverse field (law of Biot and Savart) divided by the
    ring's root-sum-of-squares, then fitted by waves of up to two cycles per field of view.

    Parameters
    ----------
    n_coils : int
        1 to 128. One coil has the constant sensitivity 1.
    rng : numpy Generator
        Source of the jitter and the phases.

    Returns
    -------
    tuple of TrigonometricSeries
        One per coil. Their root-sum-of-squares is one only to within a per cent (it is what the fit leaves):
        see `root_sum_of_squares`.

    Raises
    ------
    InputError
        On a wrong number of coils.

    Notes
    -----
    No coupling, no loading, no dependence on the object. The form is of the kind used by Guerquin-Kern et
    al., IEEE Trans. Med. Imaging 31(3):626-636, 2012.
    """
    require_counts(least=1, most=MOST_COILS, n_coils=n_coils)
    if n_coils == 1:
        return (TrigonometricSeries(np.ones((1, 1), np.complex128)),)
    points = (np.arange(_FIT_POINTS) + 0.5) / _FIT_POINTS - 0.5
    start = rng.uniform(0, 2 * np.pi)
    spacing = 2 * np.pi / n_coils
    places = start + spacing * (np.arange(n_coils) + rng.uniform(-0.1, 0.1, n_coils))
    loop_radius = min(max(1.2 * _RING_RADIUS * np.sin(spacing / 2), 0.2), 0.45)
    fields = np.stack([_loop_field(place, loop_radius, points) for place in places])
    fields *= np.exp(1j * rng.uniform(-np.pi, np.pi, n_coils))[:, None, None]
    fields /= np.sqrt((np.abs(fields) ** 2).sum(axis=0))
    return tuple(_fitted(field, points) for field in fields)


def root_sum_of_squares(
    series: tuple[TrigonometricSeries, ...], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Root-sum-of-squares over coils on the rectangle of positions ``y`` by ``x`` (fields of view)."""
    total: NDArray[np.float64] = reduce(np.add, (np.abs(s.values(y, x)) ** 2 for s in series))
    return np.sqrt(total)


def simulate_coil_maps(shape: int | tuple[int, int], n_coils: int, rng: np.random.Generator) -> NDArray[np.complex64]:
    """Draw coil sensitivity maps with unit root-sum-of-squares in every pixel.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx). The same generator state gives the same coils on every grid.
    n_coils : int
        1 to 128; one coil has the constant map 1.
    rng : numpy Generator
        Source of the coils' places and phases.

    Returns
    -------
    complex64 array, shape (coil, ky, kx)

    Raises
    ------
    InputError
        On a wrong shape or number of coils.
    """
    require_random(rng)
    rows, columns = checked_shape(shape)
    return normalised_maps(coil_series(n_coils, rng), (rows, columns))


def normalised_maps(series: tuple[TrigonometricSeries, ...], shape: tuple[int, int]) -> NDArray[np.complex64]:
    """The series at the pixels' centres, divided by their root-sum-of-squares: (coil, ky, kx)."""
    y, x = pixel_positions(shape[0]), pixel_positions(shape[1])
    maps = np.stack([s.values(y, x) for s in series])
    return (maps / root_sum_of_squares(series, y, x)).astype(np.complex64)


def _loop_field(place: float, radius: float, points: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Transverse field Bx - i By of a loop of unit current at angle ``place``, on the slice z = 0."""
    turn = 2 * np.pi * np.arange(_LOOP_SEGMENTS) / _LOOP_SEGMENTS
    outwards = np.array([np.cos(place), np.sin(place), 0.0])
    sideways = np.array([-np.sin(place), np.cos(place), 0.0])
    upwards = np.array([0.0, 0.0, 1.0])
    wire = _RING_RADIUS * outwards + radius * (np.cos(turn)[:, None] * sideways + np.sin(turn)[:, None] * upwards)
    current = np.cos(turn)[:, None] * upwards - np.sin(turn)[:, None] * sideways
    x, y = np.meshgrid(points, points)  # rows are y
    dx, dy = x[..., None] - wire[:, 0], y[..., None] - wire[:, 1]
    dz = -wire[:, 2]
    cube = (dx * dx + dy * dy + dz * dz) ** 1.5
    field_x = ((current[:, 1] * dz - current[:, 2] * dy) / cube).sum(axis=-1)
    field_y = ((current[:, 2] * dx - current[:, 0] * dz) / cube).sum(axis=-1)
    field: NDArray[np.complex128] = field_x - 1j * field_y
    return field


def _fitted(field: NDArray[np.complex128], points: NDArray[np.float64]) -> TrigonometricSeries:
    """Ridge fit of the field by waves: separable, so one small pseudo-inverse serves both axes."""
    waves = np.exp(1j * np.pi * np.outer(points, np.arange(-_HALF_WIDTH, _HALF_WIDTH + 1)))
    gram = waves.conj().T @ waves
    solver = np.linalg.solve(gram + _RIDGE * points.size * np.eye(gram.shape[0]), waves.conj().T)
    return TrigonometricSeries(solver @ field @ solver.T)
