"""Samples along a trajectory from named arrays: the unit of the positions and the grid of the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.operators.trajectory import ROUNDING, look_of_trajectory
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io.safe import ReadLimits, check_sides
from mri_design.scan.sampling import to_complex64

Arrays = Mapping[str, NDArray[Any]]
_PER_FIELD_OF_VIEW, _PER_PIXEL, _RADIANS = "cycles per field of view", "cycles per pixel", "radians per pixel"
_EDGES = {_PER_PIXEL: 0.5, _RADIANS: np.pi}
"""Reach of a trajectory that fills k-space, in units that do not depend on the grid."""
_LOOKS = {_PER_PIXEL: 0.0, _RADIANS: 0.8 * np.pi}
"""Least reach, up to that edge, of a trajectory without ``matrix`` that looks like one in these units."""
_COLUMNS = ("ky", "kx", "kz")
_NAME_COLUMNS = 'Name the columns in the header file: "trajectory_axes": ["kx", "ky", "kz"].'
_LIKE_SQUARE = 0.05
"""Largest relative difference of the reach along ky and kx of a square image."""
_LARGER_GRID, _NEAR = "cycles per field of view of a larger grid", 20
"""Largest reach over the grid's for which the matrix may be the mistake."""
_LEAST_REACH = 4
"""Cycles per field of view: a trajectory that reaches less far does not show the pixels of the image."""


def read_samples(
    arrays: Arrays, content: Mapping[str, Any], matrix: tuple[int, int] | None, limits: ReadLimits, **known: Any
) -> TrajectoryData:
    """Samples with their trajectory from named arrays.

    A trajectory in cycles or radians per pixel is converted if the header says so (``trajectory_unit``) and its values
    can be in that unit; its look proves nothing. Every sample is a measurement of its own, also where several lie at
    one place: none is averaged or left out.

    Parameters
    ----------
    arrays : mapping of str to array
        ``kspace`` (sample), (coil, sample) or (slice, coil, sample) and ``trajectory`` (sample, 2), columns ky and kx,
        or (sample, 3) with a third column kz of zeros; the header's ``trajectory_axes`` names the columns in another
        order, as ``["kx", "ky", "kz"]``. Both may have two axes of samples, (readout, sample). ``matrix``, the pixels
        (ky, kx) or one number for both, may stand in the header, or be left out if the trajectory reaches equally far
        along ky and kx, four cycles or more: then it is twice that far. ``density``, of the axes of samples, are
        density compensation weights of any scale. ``coil_maps`` and ``reference`` lie on the grid, (slice, coil, ky,
        kx) and (slice, ky, kx); without an axis of slices they are the same for all.
    content : mapping
        Fields of the header file: unit and columns of the trajectory, and the matrix.
    matrix : tuple of int, optional
        Requested pixels (ky, kx) of the image.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the image.
    **known
        Further fields of a `TrajectoryData`.

    Raises
    ------
    InputError
        For arrays that do not fit together, a matrix that is unknown or impossible, positions that cannot be in the
        header's unit, and as `TrajectoryData`.
    """
    kspace, trajectory = arrays["kspace"], _in_order(arrays["trajectory"], content)
    if trajectory.shape[-1:] == (3,) and not trajectory[..., 2].any():  # kz of a plane
        trajectory = trajectory[..., :2]
    axes = trajectory.shape[:-1]
    if len(axes) not in (1, 2) or trajectory.shape[-1] != 2 or trajectory.dtype.kind not in "fiu":
        three = trajectory.shape[-1:] == (3,)
        got = f"{trajectory.dtype} {trajectory.shape}" + (", whose column kz is not zero" if three else "")
        wanted = "real numbers (sample, 2) or (readout, sample, 2): ky and kx in cycles per field of view"
        raise InputError("trajectory", got, wanted, _NAME_COLUMNS if three else "")
    lead = kspace.shape[: kspace.ndim - len(axes)]
    if kspace.shape[len(lead) :] != axes or len(lead) > 2:
        raise InputError("kspace", f"shape {kspace.shape}", f"(slice, coil, {', '.join(map(str, axes))}) of samples")
    slices, coils = (1, 1, *lead)[-2:]
    check_sides(limits, {"slice": slices, "coil": coils}, field="kspace: ")
    points = trajectory.reshape(-1, 2).astype(np.float64)
    named = "coil, readout, sample" if len(axes) == 2 else "coil, sample"
    given = (matrix, arrays.get("matrix"), content.get("matrix"))
    pixels = next((one for one in given if one is not None), None)
    grid = _grid(pixels, points, limits, f"{coils} x {' x '.join(map(str, axes))} samples ({named})")
    density = arrays.get("density")
    if density is not None and (density.shape != axes or density.dtype.kind not in "fiu"):
        cure = "Leave the array out: the weights are then computed from the trajectory."
        raise InputError("density", f"{density.dtype} {density.shape}", f"real numbers {axes}, as trajectory", cure)
    on_grid = dict[str, Any]()
    for name, shape in (("coil_maps", (slices, coils, *grid)), ("reference", (slices, *grid))):
        if name in arrays:
            if arrays[name].shape not in (shape, shape[1:]):
                raise InputError(name, f"shape {arrays[name].shape}", f"{shape[1:]} or {shape}")
            on_grid[name] = np.broadcast_to(complex_or_real(name, arrays[name]), shape).copy()
    return TrajectoryData(
        to_complex64("kspace", kspace).reshape(slices, coils, -1),
        _per_field_of_view(points, content.get("trajectory_unit", _PER_FIELD_OF_VIEW), grid),
        grid,
        n_readouts=axes[0] if len(axes) == 2 else 1,
        density=None if density is None else density.reshape(-1).astype(np.float64),
        **known,
        **on_grid,
    )


def complex_or_real(name: str, stored: NDArray[Any]) -> NDArray[np.complex64]:
    """Complex or real samples as complex64."""
    return to_complex64(name, stored.astype(np.complex128) if stored.dtype.kind in "iuf" else stored)


def _in_order(trajectory: NDArray[Any], content: Mapping[str, Any]) -> NDArray[Any]:
    """The columns of a trajectory in the order ky, kx and perhaps kz; the header may name another order."""
    if (named := content.get("trajectory_axes")) is None:
        return trajectory
    columns = _COLUMNS[: trajectory.shape[-1]]
    if not isinstance(named, list) or sorted(map(str, named)) != sorted(columns) or len(columns) < 2:
        wanted = f"the names of the {trajectory.shape[-1]} columns of the trajectory"
        raise InputError("trajectory_axes", str(named)[:60], wanted, _NAME_COLUMNS)
    return trajectory[..., [named.index(name) for name in columns]]


def _per_field_of_view(points: NDArray[np.float64], unit: str, grid: tuple[int, int]) -> NDArray[np.float64]:
    """Positions (sample, 2) converted from the header's unit, which their values have to fit."""
    if unit not in (_PER_FIELD_OF_VIEW, *_EDGES):
        raise InputError("trajectory_unit", repr(unit)[:60], " or ".join((_PER_FIELD_OF_VIEW, *_EDGES)))
    if not np.isfinite(points).all():
        return points  # refused later, by its number
    looks, largest, known_cure = look_of_trajectory(points, grid)
    if unit in _EDGES:
        too_small = unit == _RADIANS and 0 < largest <= _EDGES[_PER_PIXEL] * (1 + ROUNDING)
        if not too_small and largest <= _EDGES[unit] * (1 + ROUNDING):
            return points * grid / (2 * _EDGES[unit])
        cure = f'{known_cure} Leave "trajectory_unit" out of the header.'.lstrip()
        if looks in _EDGES:
            cure = f'Say "trajectory_unit": "{looks}" in the header.'
        got = f"{unit}, by its header, but values up to {largest:.4g}, which look like {looks}"
        wanted = "values in [-pi, pi], not all within 1/2" if unit == _RADIANS else "values in [-1/2, 1/2]"
        raise InputError("trajectory", got, wanted, cure)
    limits, reach = np.array(grid) / 2, np.abs(points).max(axis=0)
    if looks in _EDGES:
        cure = f'Say "trajectory_unit": "{looks}" in the JSON header next to the file. In Python: {known_cure}'
    elif looks.endswith((_LARGER_GRID, "per metre")) and (reach < _NEAR * limits).all():
        sides = np.maximum(grid, 2 * np.ceil(reach * (1 - ROUNDING))).astype(int).tolist()
        larger = str(sides[0]) if sides[0] == sides[1] else ",".join(map(str, sides))
        cure = f"Give a larger matrix (ky, kx): {option('matrix', larger)} holds every sample."
        if looks != _LARGER_GRID:
            cure += f" If the trajectory is in {looks} instead, {known_cure[0].lower()}{known_cure[1:]}"
        looks = _LARGER_GRID
    else:
        return points
    wanted = f"columns (ky, kx) in {_PER_FIELD_OF_VIEW}, up to {limits[0]:g} and {limits[1]:g} on a matrix of "
    got = f"values up to {largest:.4g}, which looks like {looks}"
    raise InputError("trajectory", got, f"{wanted}{grid[0]} x {grid[1]} pixels", cure)


def _grid(matrix: Any, points: NDArray[np.float64], limits: ReadLimits, held: str) -> tuple[int, int]:
    """The given pixels of the image, or those that the trajectory reaches; ``held`` names the samples in messages."""
    if matrix is not None:
        sides = np.array(matrix, dtype=object).ravel()
        real = [side for side in sides if isinstance(side, int | float | np.integer | np.floating)]
        whole = [int(side) for side in real if 4 <= side <= limits.max_side and side == np.floor(side)]
        if not len(whole) == sides.size in (1, 2):
            raise InputError("matrix", str(sides[:4]), f"one or two whole numbers, 4 to {limits.max_side}")
        return whole[0], whole[-1]
    reach = np.abs(points[np.isfinite(points).all(axis=1)]).max(axis=0, initial=0)
    got = f"none for {held} along a trajectory that reaches {reach[0]:.4g} along ky and {reach[1]:.4g} along kx"
    cure = f'Give the pixels (ky, kx) of the image: as {option("matrix", "N")}, an array matrix, or "matrix": '
    cure += "[N, N] in the JSON header next to the file."
    looks = next((unit for unit in _LOOKS if _LOOKS[unit] < reach.max() <= _EDGES[unit] * (1 + ROUNDING)), None)
    if looks is not None:
        got += f", which looks like {looks}"
        cure += f' If these are {looks}, the header has to say "trajectory_unit": "{looks}" too.'
    side = 2 * int(np.ceil(reach.max() * (1 - ROUNDING)))
    lopsided = abs(reach[0] - reach[1]) > _LIKE_SQUARE * reach.max()
    if lopsided or not 2 * reach.max() >= 2 * _LEAST_REACH or side > limits.max_side:
        raise InputError("matrix", got, "the pixels of the image", cure)
    return side, side
