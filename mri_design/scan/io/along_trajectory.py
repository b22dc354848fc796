"""Archives of samples along a trajectory: which array is what, and on which grid the image lies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.operators.trajectory import ROUNDING, look_of_trajectory
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.samples import to_complex64

TRAJECTORY_MEMBERS = ("trajectory", "matrix", "density")
"""Members of an archive beside ``kspace`` that only samples along a trajectory have."""

_PER_FIELD_OF_VIEW, _PER_PIXEL, _RADIANS = "cycles per field of view", "cycles per pixel", "radians per pixel"
_EDGES = {_PER_PIXEL: 0.5, _RADIANS: np.pi}
"""How far a trajectory reaches, in other units, that fills k-space whatever the grid."""
_LOOKS = {_PER_PIXEL: 0.0, _RADIANS: 0.8 * np.pi}
"""From which reach on, up to that edge, a trajectory without ``matrix`` looks like one in these units."""
_COLUMNS = ("ky", "kx", "kz")
_AXES = {1: "sample", 2: "readout, sample"}
_LIKE_SQUARE = 0.05
"""Relative difference of the reach along ky and kx up to which the image is taken for a square one."""
_LARGER_GRID, _NEAR = "cycles per field of view of a larger grid", 20
"""How many times as far as the grid a trajectory reaches, at most, for which the matrix may be the mistake."""
_LEAST_REACH = 4
"""Cycles per field of view: a trajectory that reaches less far does not tell the pixels, fewer than 8, of the image."""


def along_trajectory(
    arrays: Mapping[str, NDArray[Any]],
    limits: ReadLimits,
    *,
    name: str,
    noise_variance: float | None,
    header: Mapping[str, str],
) -> TrajectoryData:
    """Samples with their trajectory from the arrays of an archive.

    A trajectory in cycles or radians per pixel is translated where the header says so (``trajectory_unit``), unless its
    values cannot be in that unit; what it looks like proves nothing. Every sample is a measurement of its own, also
    where several are at one place: none is averaged or left out, and the more often a place was measured the more it
    counts.

    Parameters
    ----------
    arrays : mapping of str to array
        ``kspace`` (sample), (coil, sample) or (slice, coil, sample) and ``trajectory`` (sample, 2), columns ky and kx,
        or (sample, 3) with a third column kz of zeros; the header's ``trajectory_axes`` names the columns in another
        order, as ``["kx", "ky", "kz"]``. In the place of the axis of samples both may have two, (readout, sample).
        ``matrix``, the pixels (ky, kx) or one number for both, may stand in the header, or be left out where the
        trajectory reaches equally far along ky and kx, four cycles or more: then it is twice that far. ``density``, of
        the axes of samples, are density compensation weights of any scale. ``coil_maps`` and ``reference`` lie on the
        grid, (slice, coil, ky, kx) and (slice, ky, kx); without an axis of slices they are the same for all.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the image.
    name, noise_variance, header
        As `TrajectoryData` has them.

    Raises
    ------
    InputError
        For arrays that do not fit together, a matrix that is none or cannot be told, positions that cannot be in the
        header's unit, and as `TrajectoryData`.
    """
    kspace, trajectory = arrays["kspace"], _in_order(arrays["trajectory"], header)
    if trajectory.shape[-1:] == (3,) and not trajectory[..., 2].any():  # kz of a plane
        trajectory = trajectory[..., :2]
    axes = trajectory.shape[:-1]
    if len(axes) not in (1, 2) or trajectory.shape[-1] != 2 or trajectory.dtype.kind not in "fiu":
        three = trajectory.shape[-1:] == (3,)
        third = ", whose column kz is not zero" if three else ""
        cure = 'If its columns have another order, the header says it: "trajectory_axes": ["kx", "ky", "kz"].'
        raise InputError(
            field="trajectory",
            got=f"{trajectory.dtype} {trajectory.shape}{third}",
            wanted="real numbers (sample, 2) or (readout, sample, 2): ky and kx in cycles per field of view",
            cure=cure if three else "",
        )
    lead = kspace.shape[: kspace.ndim - len(axes)]
    if kspace.shape[len(lead) :] != axes or len(lead) > 2:
        raise InputError(
            field="kspace",
            got=f"shape {kspace.shape} beside a trajectory of {trajectory.shape}",
            wanted=f"(slice, coil, {', '.join(map(str, axes))}), a sample for each point of the trajectory",
        )
    slices, coils = (1, 1, *lead)[-2:]
    if not (1 <= slices <= limits.max_slices and 1 <= coils <= limits.max_coils):
        wanted = f"up to {limits.max_slices} slices and {limits.max_coils} coils"
        raise InputError(field="kspace", got=f"shape {kspace.shape}", wanted=wanted)
    points = trajectory.reshape(-1, 2).astype(np.float64)
    matrix = arrays.get("matrix")
    if matrix is None and "matrix" in header:
        matrix = _matrix(header["matrix"])
    grid = _grid(matrix, points, limits, f"{coils} x {' x '.join(map(str, axes))} samples (coil, {_AXES[len(axes)]})")
    return TrajectoryData(
        to_complex64("kspace", kspace).reshape(slices, coils, -1),
        _per_field_of_view(points, _unit(header), grid),
        grid,
        n_readouts=axes[0] if len(axes) == 2 else 1,
        name=name,
        noise_variance=noise_variance,
        coil_maps=_on_grid("coil_maps", arrays, (slices, coils, *grid)),
        reference=_on_grid("reference", arrays, (slices, *grid)),
        header=header,
        density=_density(arrays.get("density"), axes),
    )


def _density(stored: NDArray[Any] | None, axes: tuple[int, ...]) -> NDArray[np.float64] | None:
    """Weights of the samples, one behind the other; None where the archive has none."""
    if stored is None:
        return None
    if stored.shape != axes or stored.dtype.kind not in "fiu":
        raise InputError(
            field="density",
            got=f"{stored.dtype} {stored.shape}",
            wanted=f"real numbers {axes}, a density compensation weight for each point of the trajectory",
            cure="Leave the array out: the weights are then computed from the trajectory.",
        )
    return stored.reshape(-1).astype(np.float64)


def _in_order(trajectory: NDArray[Any], header: Mapping[str, str]) -> NDArray[Any]:
    """The columns ky, kx and perhaps kz of a trajectory whose header may name them in another order."""
    if "trajectory_axes" not in header:
        return trajectory
    named = re.findall(r"k[xyz]", header["trajectory_axes"])
    wanted = _COLUMNS[: trajectory.shape[-1]]
    if sorted(named) != sorted(wanted) or len(wanted) < 2:
        raise InputError(
            field="trajectory_axes",
            got=header["trajectory_axes"][:60],
            wanted=f"the names of the {trajectory.shape[-1]} columns of the trajectory, kx and ky, and kz of a third",
            cure='As in "trajectory_axes": ["kx", "ky", "kz"].',
        )
    return trajectory[..., [named.index(name) for name in wanted]]


def _unit(header: Mapping[str, str]) -> str:
    """The unit of the trajectory that a header says, or the usual one."""
    unit = header.get("trajectory_unit", _PER_FIELD_OF_VIEW)
    if unit not in (_PER_FIELD_OF_VIEW, *_EDGES):
        wanted = f"{_PER_FIELD_OF_VIEW!r}, {_PER_PIXEL!r} or {_RADIANS!r}"
        raise InputError(field="trajectory_unit", got=repr(unit)[:60], wanted=wanted)
    return unit


def _per_field_of_view(points: NDArray[np.float64], unit: str, grid: tuple[int, int]) -> NDArray[np.float64]:
    """Positions (sample, 2) of the unit that the header says, translated where they can be in it."""
    if unit not in _EDGES:
        _refuse_other_units(points, grid)
        return points
    edge, largest = _EDGES[unit], np.abs(points).max(initial=0)  # values that are not finite are refused later
    too_small = unit == _RADIANS and 0 < largest <= _EDGES[_PER_PIXEL] * (1 + ROUNDING)
    if too_small or edge * (1 + ROUNDING) < largest < np.inf:
        look = look_of_trajectory(points, grid)
        leave_out = 'leave "trajectory_unit" out of the header.'
        cure = f"{look.cure} Then {leave_out}" if look.cure else leave_out.capitalize()
        if look.convention in _EDGES:
            cure = f'Say "trajectory_unit": "{look.convention}" in the header.'
        raise InputError(
            field="trajectory",
            got=f"{unit}, by its header, but values up to {largest:.4g}, which look like {look.convention}",
            wanted="values in [-pi, pi], not all within 1/2" if unit == _RADIANS else "values in [-1/2, 1/2]",
            cure=cure,
        )
    return points * grid / (2 * edge)


def _refuse_other_units(points: NDArray[np.float64], grid: tuple[int, int]) -> None:
    """Refuse positions beyond the grid, or in a unit per pixel, with what can be said of a file."""
    if not np.isfinite(points).all():
        return  # refused later, by number
    look, limits = look_of_trajectory(points, grid), np.array(grid) / 2
    reach = np.abs(points).max(axis=0)
    if look.convention in _EDGES:
        looks = str(look.convention)
        cure = f'Say "trajectory_unit": "{looks}" in the JSON header beside the file. In Python: {look.cure}'
    elif look.convention.endswith((_LARGER_GRID, "per metre")) and (reach < _NEAR * limits).all():
        looks = _LARGER_GRID
        sides = np.maximum(grid, 2 * np.ceil(reach * (1 - ROUNDING))).astype(int).tolist()
        larger = str(sides[0]) if sides[0] == sides[1] else ",".join(map(str, sides))
        cure = f"Give a larger matrix (ky, kx): {option('matrix', larger)} holds every sample."
        if look.convention != _LARGER_GRID:
            cure += f" If the trajectory is in {look.convention} instead, {look.cure[0].lower()}{look.cure[1:]}"
    else:
        return
    raise InputError(
        field="trajectory",
        got=f"values up to {look.largest:.4g}, which looks like {looks}",
        wanted=f"columns (ky, kx) in {_PER_FIELD_OF_VIEW}, up to {limits[0]:g} and {limits[1]:g} on a matrix of "
        f"{grid[0]} x {grid[1]} pixels",
        cure=cure,
    )


def _matrix(text: str) -> NDArray[np.float64]:
    """Sizes that a header gives as a number or a list of numbers."""
    try:
        return np.array([float(word) for word in text.strip("[]").split(",")])
    except ValueError:
        raise InputError(field="matrix", got=text[:40], wanted="one or two whole numbers") from None


def _grid(matrix: NDArray[Any] | None, points: NDArray[np.float64], limits: ReadLimits, held: str) -> tuple[int, int]:
    """The pixels of the image, as said or by the reach of the trajectory; ``held`` names the samples in messages."""
    if matrix is not None:
        sides = np.atleast_1d(matrix).ravel()
        whole = sides.dtype.kind in "iuf" and sides.size in (1, 2) and np.all(sides == np.floor(sides))
        if not whole or not np.all((sides >= 4) & (sides <= limits.max_side)):
            wanted = f"one or two whole numbers, 4 to {limits.max_side}"
            raise InputError(field="matrix", got=str(sides.tolist()[:4]), wanted=wanted)
        return int(sides[0]), int(sides[-1])
    reach = np.abs(points[np.isfinite(points).all(axis=1)]).max(axis=0, initial=0)
    told = f"{held} along a trajectory that reaches {reach[0]:.4g} along ky and {reach[1]:.4g} along kx"
    cure = (
        f'Give the pixels (ky, kx) of the image: as {option("matrix", "N")}, an array matrix, or "matrix": '
        "[N, N] in the JSON header beside the file."
    )
    looks = next((unit for unit in _LOOKS if _LOOKS[unit] < reach.max() <= _EDGES[unit] * (1 + ROUNDING)), None)
    if looks is not None:
        told += f", which looks like {looks}"
        cure += f' If these are {looks}, the header has to say "trajectory_unit": "{looks}" too.'
    if reach.max() < _LEAST_REACH or abs(reach[0] - reach[1]) > _LIKE_SQUARE * reach.max():
        raise InputError(field="matrix", got=f"none beside {told}", wanted="the pixels of the image", cure=cure)
    side = 2 * int(np.ceil(reach.max() * (1 - ROUNDING)))
    if not 4 <= side <= limits.max_side:
        raise InputError(field="matrix", got=f"none beside {told}", wanted=f"4 to {limits.max_side} pixels", cure=cure)
    return side, side


def _on_grid(name: str, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.complex64] | None:
    if name not in arrays:
        return None
    stored = arrays[name]
    if stored.shape != shape and stored.shape != shape[1:]:
        raise InputError(field=name, got=f"shape {stored.shape}", wanted=f"{shape[1:]} or {shape}")
    single = to_complex64(name, stored.astype(np.complex128) if stored.dtype.kind in "iuf" else stored)
    return np.broadcast_to(single, shape).copy()
