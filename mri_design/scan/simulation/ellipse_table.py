"""Scenes of ellipses, or ellipsoids, read from JSON, with every row checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.ellipsoids import EllipsoidPhantom

_LARGEST_TABLE = 1 << 20  # bytes
_MOST_ELLIPSES = 1000
_ROW_NUMBERS = {"centre": (2,), "semi_axes": (2,), "angle_degrees": (1,), "intensity": (1, 2)}
_VOLUME_NUMBERS = {"centre": (3,), "semi_axes": (3,), "intensity": (1, 2)}


def read_ellipse_table(path: Path, *, name: str | None = None) -> EllipsePhantom:
    """Read a scene of ellipses from JSON.

    Parameters
    ----------
    path : Path
        A JSON object ``{"ellipses": [row, ...]}``; a row has ``centre`` [y, x] and ``semi_axes`` [first,
        second] in fields of view, ``angle_degrees`` (first semi-axis from +x towards +y, downwards) and
        ``intensity`` (a number, or [real, imaginary]); other entries are comments.
    name : str, optional
        Name of the scene; by default the file's stem.

    Returns
    -------
    EllipsePhantom

    Raises
    ------
    InputError
        Naming file, row and field: not readable as JSON, larger than 1 MiB, no or more than 1000 rows,
        something else than finite numbers, or an ellipse that leaves the field of view.
    """
    read = _rows(path, "ellipses", _ROW_NUMBERS)
    phantom = EllipsePhantom(
        centres=np.array([row["centre"] for row in read]),
        semi_axes=np.array([row["semi_axes"] for row in read]),
        angles=np.deg2rad([row["angle_degrees"][0] for row in read]),
        intensities=_intensities([row["intensity"] for row in read]),
        name=name or path.stem,
    )
    _refuse_outside(phantom, path.name)
    return phantom


def read_ellipsoid_table(path: Path, *, name: str | None = None) -> EllipsoidPhantom:
    """Read a scene of ellipsoids from JSON.

    Parameters
    ----------
    path : Path
        As for `read_ellipse_table`: ``{"ellipsoids": [row, ...]}``, a row has ``centre`` [x, y, z], ``semi_axes`` along
        x, y and z, and ``intensity``.
    name : str, optional
        Name of the scene; by default the file's stem.

    Raises
    ------
    InputError
        As `read_ellipse_table`.
    """
    read = _rows(path, "ellipsoids", _VOLUME_NUMBERS)
    phantom = EllipsoidPhantom(
        centres=np.array([row["centre"] for row in read]),
        semi_axes=np.array([row["semi_axes"] for row in read]),
        intensities=_intensities([row["intensity"] for row in read]),
        name=name or path.stem,
    )
    outside = (np.abs(phantom.centres) + phantom.semi_axes > 0.5).any(axis=1)
    if outside.any():
        raise InputError(
            field=f"{path.name}: ellipsoids[{int(np.flatnonzero(outside)[0])}]",
            got="an ellipsoid that leaves the field of view",
            wanted="all of it within -0.5 to 0.5 along x, y and z",
        )
    return phantom


def _rows(path: Path, key: str, numbers: Mapping[str, tuple[int, ...]]) -> list[dict[str, list[float]]]:
    rows = read_json_object(path).get(key)
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_ELLIPSES:
        got = f"{len(rows)} rows" if isinstance(rows, list) else "none"
        raise InputError(field=f"{path.name}: {key}", got=got, wanted=f"a list of 1 to {_MOST_ELLIPSES}")
    return [_read_row(row, f"{path.name}: {key}[{i}]", numbers) for i, row in enumerate(rows)]


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file of at most 1 MiB.

    Raises
    ------
    InputError
        Where the file is missing, larger, or anything else.
    """
    try:
        if path.stat().st_size > _LARGEST_TABLE:
            raise InputError(field=path.name, got=f"{path.stat().st_size} bytes", wanted=f"at most {_LARGEST_TABLE}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(field=path.name, got=str(error), wanted="a readable JSON file") from error
    if not isinstance(content, dict):
        raise InputError(field=path.name, got=type(content).__name__, wanted="a JSON object")
    return content


def _read_row(row: object, where: str, wanted_numbers: Mapping[str, tuple[int, ...]]) -> dict[str, list[float]]:
    """The fields of one row as lists of finite floats."""
    if not isinstance(row, dict):
        raise InputError(field=where, got=type(row).__name__, wanted="an object with " + ", ".join(wanted_numbers))
    read: dict[str, list[float]] = {}
    for field, counts in wanted_numbers.items():
        given = row.get(field)
        numbers: list[Any] = given if isinstance(given, list) else [given]
        if len(numbers) not in counts or not all(_is_finite_number(n) for n in numbers):
            wanted = " or ".join(str(n) for n in counts) + " finite number(s)"
            raise InputError(field=f"{where}.{field}", got=repr(given)[:80], wanted=wanted)
        read[field] = [float(n) for n in numbers]
    return read


def _is_finite_number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) < 1e6 and math.isfinite(value)  # the bound also refuses integers no float can hold


def _intensities(rows: list[list[float]]) -> NDArray[Any]:
    if all(len(row) == 1 for row in rows):
        return np.array([row[0] for row in rows])
    return np.array([complex(*row) for row in rows])


def _refuse_outside(phantom: EllipsePhantom, file: str) -> None:
    """Refuse ellipses that reach beyond the field of view: k-space would wrap them around."""
    cosine, sine = np.cos(phantom.angles), np.sin(phantom.angles)
    first, second = phantom.semi_axes.T
    reach = np.stack([np.hypot(first * sine, second * cosine), np.hypot(first * cosine, second * sine)], axis=1)
    outside = (np.abs(phantom.centres) + reach > 0.5).any(axis=1)
    if outside.any():
        raise InputError(
            field=f"{file}: ellipses[{int(np.flatnonzero(outside)[0])}]",
            got="an ellipse that leaves the field of view",
            wanted="all of it within -0.5 to 0.5 along y and x",
        )
