"""Scenes of ellipses, or ellipsoids, read from JSON, with every row checked."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.simulation.ellipses import EllipsePhantom, EllipsoidPhantom
from mri_design.scan.simulation.scanner import (
    EllipsePhase,
    SimulatedShots,
    simulate_ellipse_scan,
    simulate_ellipse_shots,
    simulate_scan,
    simulate_volume_scan,
)

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


PhantomKind = Literal["ellipses", "ellipsoids", "images", "kspace"]
"""A table of ellipses or of ellipsoids, a magnitude slice from which k-space is simulated, or raw measured k-space."""


@dataclass(frozen=True)
class _Entry:
    file: str
    header: str
    kind: PhantomKind


_ENTRIES = {
    "shepp-logan": _Entry("shepp_logan.json", "shepp_logan.header.json", "ellipses"),
    "brain": _Entry("brain.json", "brain.header.json", "ellipses"),
    "head-3d": _Entry("head_3d.json", "head_3d.header.json", "ellipsoids"),
    "t2w": _Entry("t2w_6A_slice.npz", "t2w_6A_slice.json", "images"),
    "t1w": _Entry("t1w_7A_slice.npz", "t1w_7A_slice.json", "images"),
    "t1w-6a": _Entry("t1w_6A_slice.npz", "t1w_6A_slice.json", "images"),
    "lf-gre": _Entry("lf_6A_gre_slice.npy", "lf_6A_gre_slice.json", "kspace"),
    "lf-fse": _Entry("lf_7A_fse_volume.npz", "lf_7A_fse_volume.json", "kspace"),
    "head-16ch": _Entry("head_16ch_slice.npz", "head_16ch_slice.json", "kspace"),
}


def phantom_names() -> tuple[str, ...]:
    """Names of the shipped phantoms."""
    return tuple(_ENTRIES)


def phantom_kind(name: str) -> PhantomKind:
    """Kind of a shipped phantom: "ellipses", "ellipsoids", "images" or "kspace".

    Raises
    ------
    InputError
        On an unknown name.
    """
    return _entry(name).kind


def phantoms_folder() -> Path:
    """The folder of the shipped phantoms, in a checkout or in an installed package.

    Raises
    ------
    InputError
        Where neither place has it: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "phantoms", package.parent / "phantoms"):
        if (folder / _ENTRIES["shepp-logan"].file).is_file():
            return folder
    raise InputError(
        field="phantoms",
        got="no folder with phantoms beside or inside the package",
        wanted="the data files that belong to it",
        cure="Install mri-design again.",
    )


def phantom_path(name: str) -> Path:
    """Path of a shipped phantom's data file; raw scans are read with the package's file readers.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return phantoms_folder() / _entry(name).file


def phantom_header(name: str) -> dict[str, Any]:
    """The phantom's header: source, licence, checksum (``sha256``), caveats.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return read_json_object(phantoms_folder() / _entry(name).header)


def read_shipped_ellipses(name: str) -> EllipsePhantom:
    """A shipped ellipse scene, by name.

    Raises
    ------
    InputError
        On an unknown name, a name that is no ellipse scene, or a file that does not match its header.
    """
    return read_ellipse_table(_checked_file(name, "ellipses"), name=name)


def read_shipped_ellipsoids(name: str) -> EllipsoidPhantom:
    """A shipped scene of ellipsoids, by name.

    Raises
    ------
    InputError
        As `read_shipped_ellipses`.
    """
    return read_ellipsoid_table(_checked_file(name, "ellipsoids"), name=name)


def read_shipped_images(name: str) -> ImageStack:
    """A shipped magnitude slice, by name, with the text of its header.

    Raises
    ------
    InputError
        On an unknown name, a name that is no image, or a file that does not match its header.
    """
    path = _checked_file(name, "images")
    header = phantom_header(name)
    with np.load(path, allow_pickle=False) as archive:
        images = archive[header["key"]].astype(np.float32)
    return ImageStack(images=images, name=name, header=text_of_header(header))


def text_of_header(header: dict[str, Any]) -> dict[str, str]:
    """The entries of a header that people read, as text."""
    wanted = ("title", "anatomy", "subject", "sequence", "licence", "citation", "caveat")
    return {key: str(header[key]) for key in wanted if key in header}


def _entry(name: str) -> _Entry:
    if not isinstance(name, str) or name not in _ENTRIES:
        raise InputError(field="phantom", got=repr(name), wanted="one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


def _checked_file(name: str, kind: PhantomKind) -> Path:
    """Path of the data file after its kind and its checksum were compared with the header."""
    if phantom_kind(name) != kind:
        fitting = [n for n, entry in _ENTRIES.items() if entry.kind == kind]
        raise InputError(field="phantom", got=f"{name} ({phantom_kind(name)})", wanted="one of " + ", ".join(fitting))
    path = phantom_path(name)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != phantom_header(name).get("sha256"):
        raise InputError(
            field=path.name,
            got=f"checksum {checksum[:12]}...",
            wanted="the checksum on its header",
            cure="The file was changed or damaged; install mri-design again.",
        )
    return path


_USUAL_SIDE, _VOLUME_SIDE = 256, 64


def load_phantom(
    name: str,
    *,
    shape: int | tuple[int, int] | None = None,
    noise: float = 0.007,
    phase: Literal["smooth", "rough", "none"] = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> KSpaceData:
    """Simulate a scan of a shipped phantom.

    Parameters
    ----------
    name : {"shepp-logan", "brain", "head-3d", "t2w", "t1w", "t1w-6a"}
        The first two are ellipse scenes with closed-form k-space (`simulate_ellipse_scan`), the third is a volume of
        ellipsoids (`simulate_volume_scan`), without phase, the others are magnitude slices of 3 T scans
        (`simulate_scan`).
    shape : int or (int, int), optional
        Grid (ky, kx); 256 x 256 where None, of the volume 64 x 64 (ky, kz) at 64 positions. One field of view
        whatever the grid for ellipses; slices are padded to its aspect.
    noise : float
        Standard deviation per real component, relative to a 99.5th percentile of 1.
    phase : {"smooth", "rough", "none"}
        Phase to draw; ellipse scenes know no rough one.
    n_coils : int
        Receive coils, 1 to 128.
    rng : numpy Generator
        Drawn from in the order phase, coils, noise.

    Returns
    -------
    KSpaceData
        With reference, noise variance and, for several coils, coil maps.

    Raises
    ------
    InputError
        On an unknown name, a raw scan's name, or a wrong setting.
    """
    kind = phantom_kind(name)
    grid = _USUAL_SIDE if shape is None else shape
    if kind == "ellipses":
        return simulate_ellipse_scan(
            read_shipped_ellipses(name),
            grid,
            noise=noise,
            phase=cast("EllipsePhase", phase),
            n_coils=n_coils,
            rng=rng,
            header=text_of_header(phantom_header(name)),
        )
    if kind == "ellipsoids":
        if n_coils != 1:
            raise InputError(
                field="coils",
                got=f"{n_coils} for {name}, whose k-space is known in closed form for one coil",
                wanted="1",
                cure="Several coils: phantom:brain, or an image.",
            )
        volume = read_shipped_ellipsoids(name)
        side = _VOLUME_SIDE if shape is None else shape
        return simulate_volume_scan(volume, side, noise=noise, rng=rng, header=text_of_header(phantom_header(name)))
    if kind == "images":
        images = read_shipped_images(name)
        return simulate_scan(images, matrix=grid, noise=noise, phase=phase, n_coils=n_coils, rng=rng)
    raise InputError(
        field="phantom",
        got=f"{name}, a measured scan",
        wanted="a phantom to simulate",
        cure=f"Read {phantom_path(name).name} like any scan file.",
    )


def load_phantom_shots(
    name: str,
    trajectory: ArrayLike,
    *,
    shape: int | tuple[int, int] = _USUAL_SIDE,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> SimulatedShots:
    """Simulate a scan of a shipped ellipse scene along any trajectory.

    Parameters
    ----------
    name : {"shepp-logan", "brain"}
        The scenes whose k-space is known in closed form; images would have to be transformed by what reconstructs them.
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view: of `radial_spokes`, or `spiral_readout`.
    shape, noise, phase, n_coils, rng
        As for `shots.simulate_ellipse_shots`.

    Raises
    ------
    InputError
        On a name that is no ellipse scene, or a wrong setting.
    """
    scan = simulate_ellipse_shots(
        read_shipped_ellipses(name), trajectory, shape, noise=noise, phase=phase, n_coils=n_coils, rng=rng
    )
    return replace(scan, header={**text_of_header(phantom_header(name)), **scan.header})
