"""Scenes of ellipses, or ellipsoids, read from JSON, with every row checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError
from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.sampling import volume_note
from mri_design.scan.simulation.ellipses import EllipsePhantom, EllipsoidPhantom
from mri_design.scan.simulation.fields import checked_shape
from mri_design.scan.simulation.scanner import (
    EllipsePhase,
    SimulatedShots,
    bright_level,
    drawn_object,
    noisy_scan,
    settings_text,
    simulate_ellipse_scan,
    simulate_scan,
    with_noise,
)

_LARGEST_TABLE = 1 << 20  # bytes
_MOST_ELLIPSES = 1000


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
    read = _table(path, "ellipses", {"centre": (2,), "semi_axes": (2,), "angle_degrees": (1,), "intensity": (1, 2)})
    centres, axes, angles = (
        np.array(read["centre"]),
        np.array(read["semi_axes"]),
        np.deg2rad(read["angle_degrees"])[:, 0],
    )
    cosine, sine = np.cos(angles), np.sin(angles)
    reach = np.hypot(axes[:, 0] * [sine, cosine], axes[:, 1] * [cosine, sine]).T
    _refuse_outside(f"{path.name}: ellipses", centres, reach)  # k-space would wrap them around
    return EllipsePhantom(centres, axes, angles, _intensities(read["intensity"]), name or path.stem)


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
    read = _table(path, "ellipsoids", {"centre": (3,), "semi_axes": (3,), "intensity": (1, 2)})
    centres, axes = np.array(read["centre"]), np.array(read["semi_axes"])
    _refuse_outside(f"{path.name}: ellipsoids", centres, axes)
    return EllipsoidPhantom(centres, axes, _intensities(read["intensity"]), name or path.stem)


def _table(path: Path, key: str, counts: Mapping[str, tuple[int, ...]]) -> dict[str, list[list[float]]]:
    """The rows of a table by the names of their fields: lists of so many finite numbers."""
    rows = read_json_object(path).get(key)
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_ELLIPSES:
        got = f"{len(rows)} rows" if isinstance(rows, list) else "none"
        raise InputError(f"{path.name}: {key}", got, f"a list of 1 to {_MOST_ELLIPSES}")
    read: dict[str, list[list[float]]] = {name: [] for name in counts}
    for number, row in enumerate(rows):
        where = f"{path.name}: {key}[{number}]"
        if not isinstance(row, dict):
            raise InputError(where, type(row).__name__, "an object with " + ", ".join(counts))
        for name, lengths in counts.items():
            given = row.get(name)
            numbers: list[Any] = given if isinstance(given, list) else [given]
            # The bound also refuses integers that no float can hold.
            finite = (isinstance(n, int | float) and not isinstance(n, bool) and abs(n) < 1e6 for n in numbers)
            if len(numbers) not in lengths or not all(finite):
                wanted = " or ".join(map(str, lengths)) + " finite number(s)"
                raise InputError(f"{where}.{name}", repr(given)[:80], wanted)
            read[name].append([float(n) for n in numbers])
    return read


def _intensities(rows: list[list[float]]) -> NDArray[Any]:
    return np.array([row[0] if all(len(one) == 1 for one in rows) else complex(*row) for row in rows])


def _refuse_outside(field: str, centres: NDArray[np.float64], reach: NDArray[np.float64]) -> None:
    outside = (np.abs(centres) + reach > 0.5).any(axis=1)
    if outside.any():
        wanted = "all of it within -0.5 to 0.5 along every axis"
        raise InputError(f"{field}[{int(np.flatnonzero(outside)[0])}]", "a part that leaves the field of view", wanted)


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file of at most 1 MiB.

    Raises
    ------
    InputError
        Where the file is missing, larger, or anything else.
    """
    try:
        if path.stat().st_size > _LARGEST_TABLE:
            raise InputError(path.name, f"{path.stat().st_size} bytes", f"at most {_LARGEST_TABLE}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, str(error), "a readable JSON file") from error
    if not isinstance(content, dict):
        raise InputError(path.name, type(content).__name__, "a JSON object")
    return content


PhantomKind = Literal["ellipses", "ellipsoids", "images", "kspace"]
"""A table of ellipses or of ellipsoids, a magnitude slice from which k-space is simulated, or raw measured k-space."""


_ENTRIES: dict[str, tuple[str, str, PhantomKind]] = {
    "shepp-logan": ("shepp_logan.json", "shepp_logan.header.json", "ellipses"),
    "brain": ("brain.json", "brain.header.json", "ellipses"),
    "head-3d": ("head_3d.json", "head_3d.header.json", "ellipsoids"),
    "t2w": ("t2w_6A_slice.npz", "t2w_6A_slice.json", "images"),
    "t1w": ("t1w_7A_slice.npz", "t1w_7A_slice.json", "images"),
    "t1w-6a": ("t1w_6A_slice.npz", "t1w_6A_slice.json", "images"),
    "lf-gre": ("lf_6A_gre_slice.npy", "lf_6A_gre_slice.json", "kspace"),
    "lf-fse": ("lf_7A_fse_volume.npz", "lf_7A_fse_volume.json", "kspace"),
    "head-16ch": ("head_16ch_slice.npz", "head_16ch_slice.json", "kspace"),
}
"""Files of a phantom's data and of its header, and its kind."""


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
    return _entry(name)[2]


def phantoms_folder() -> Path:
    """The folder of the shipped phantoms, in a checkout or in an installed package.

    Raises
    ------
    InputError
        Where neither place has it: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "phantoms", package.parent / "phantoms"):
        if (folder / _ENTRIES["shepp-logan"][0]).is_file():
            return folder
    got = "no folder with phantoms beside or inside the package"
    raise InputError("phantoms", got, "the data files that belong to it", "Install mri-design again.")


def phantom_path(name: str) -> Path:
    """Path of a shipped phantom's data file; raw scans are read with the package's file readers.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return phantoms_folder() / _entry(name)[0]


def phantom_header(name: str) -> dict[str, Any]:
    """The phantom's header: source, licence, checksum (``sha256``), caveats.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    return read_json_object(phantoms_folder() / _entry(name)[1])


def read_shipped(name: str) -> EllipsePhantom | EllipsoidPhantom | ImageStack:
    """A shipped scene or magnitude slice, by name; a slice has the text of its header.

    Raises
    ------
    InputError
        On an unknown name, a measured scan, or a file that does not match its header.
    """
    kind, path, header = phantom_kind(name), phantom_path(name), phantom_header(name)
    if kind == "kspace":
        cure = f"Read {path.name} like any scan file."
        raise InputError("phantom", f"{name}, a measured scan", "a phantom to simulate", cure)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != header.get("sha256"):
        cure = "The file was changed or damaged; install mri-design again."
        raise InputError(path.name, f"checksum {checksum[:12]}...", "the checksum on its header", cure)
    if kind == "ellipses":
        return read_ellipse_table(path, name=name)
    if kind == "ellipsoids":
        return read_ellipsoid_table(path, name=name)
    with np.load(path, allow_pickle=False) as archive:
        images = archive[header["key"]].astype(np.float32)
    return ImageStack(images=images, name=name, header=text_of_header(header))


def text_of_header(header: dict[str, Any]) -> dict[str, str]:
    """The entries of a header that people read, as text."""
    wanted = ("title", "anatomy", "subject", "sequence", "licence", "citation", "caveat")
    return {key: str(header[key]) for key in wanted if key in header}


def _entry(name: str) -> tuple[str, str, PhantomKind]:
    if not isinstance(name, str) or name not in _ENTRIES:
        raise InputError("phantom", repr(name), "one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


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
        ellipsoids in one coil without phase, a plane (ky, kz) for every readout position, the others are magnitude
        slices of 3 T scans (`simulate_scan`).
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
    scene, header = read_shipped(name), text_of_header(phantom_header(name))
    grid = _USUAL_SIDE if shape is None else shape
    if isinstance(scene, ImageStack):
        return simulate_scan(scene, matrix=grid, noise=noise, phase=phase, n_coils=n_coils, rng=rng)
    if isinstance(scene, EllipsePhantom):
        own = cast("EllipsePhase", phase)
        return simulate_ellipse_scan(scene, grid, noise=noise, phase=own, n_coils=n_coils, rng=rng, header=header)
    if n_coils != 1:
        got = f"{n_coils} for {name}, whose k-space is known in closed form for one coil"
        raise InputError("coils", got, "1", "Several coils: phantom:brain, or an image.")
    grid = checked_shape(_VOLUME_SIDE if shape is None else shape)
    truth = scene.image(grid[0], grid)
    level = bright_level(truth, scene.name)
    planes = scene.planes(grid[0], grid)[:, np.newaxis] / level
    header |= {"simulated": "from ellipsoids, k-space in closed form", "volume": volume_note(grid[0], grid)}
    return noisy_scan(planes, truth / level, None, noise, scene.name, header, rng)


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
    """Simulate a scan of a shipped ellipse scene along any trajectory, phase and coils included, in closed form.

    Reference and maps mean what they mean in `simulate_ellipse_scan`, and of one state of the generator both are scans
    of one object. No image on the grid explains noise-free samples exactly: see `EllipsePhantom.samples`.

    Parameters
    ----------
    name : {"shepp-logan", "brain"}
        The scenes whose k-space is known in closed form; images would have to be transformed by what reconstructs them.
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view: of `radial_spokes`, or `spiral_readout`. Shots follow one another.
    shape, noise, phase, n_coils, rng
        As for `simulate_ellipse_scan`; the grid sets the scale of the samples.

    Raises
    ------
    InputError
        On a name that is no ellipse scene, a wrong setting, and a trajectory that leaves the grid or is in other units.
    """
    scene = read_shipped(name)
    if not isinstance(scene, EllipsePhantom):
        fitting = ", ".join(other for other, entry in _ENTRIES.items() if entry[2] == "ellipses")
        raise InputError("phantom", f"{name} ({phantom_kind(name)})", f"one of {fitting}")
    grid = checked_shape(shape)
    k = checked_trajectory(trajectory, grid).reshape(-1, 2)
    drawn = drawn_object(scene, grid, phase=phase, n_coils=n_coils, rng=rng)
    simulated = {"simulated": "from ellipses, samples in closed form", "phase": phase, "samples": str(len(k))}
    return SimulatedShots(
        kspace=with_noise(scene.samples(k, grid, drawn.modulations) / drawn.level, noise, rng),
        trajectory=k,
        reference=drawn.reference.astype(np.complex64),
        coil_maps=drawn.maps,
        noise_variance=noise * noise if noise > 0 else None,
        name=scene.name,
        header={**text_of_header(phantom_header(name)), **simulated, **settings_text(noise, n_coils, grid)},
    )
