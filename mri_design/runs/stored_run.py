"""What a run left in its folder, read back and held against itself: images, lines, samples of a plane, shots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.evaluation.tables import read_csv
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.formats import read
from mri_design.scan.io.npy import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.scan.source_image import SourceImage
from mri_design.scan.trajectory_data import TrajectoryData
from mri_design.sequences.orders import LineOrder, PlaneOrder, SpiralOrder, SpokeOrder

SAMPLES, SHOTS = "samples.csv", "shots.csv"
"""Files by which folders are known of designs over samples of a plane, and over spokes or arms of spirals."""


def counted(folder: Path, settings: Mapping[str, object], mask_axes: int | None) -> str:
    """The word for what was measured, of designs and of reconstructions alike.

    Parameters
    ----------
    folder : Path
        Of the run.
    settings : mapping
        Of its manifest.
    mask_axes : int, optional
        Axes of ``mask.npy``; None where there is none that can be read.
    """
    if mask_axes == 2 or (folder / SAMPLES).is_file():
        return "samples"
    if (folder / SHOTS).is_file():
        return "shots"
    return "readouts" if "readouts" in settings else "lines"


MOST_TEXT = 64 * 2**20
"""Longest text file of a run, in bytes, that is read."""
COIL_MAPS = "coil_maps.npy"
_WANTED = "a folder of design, recon or protocol"


@dataclass(frozen=True, kw_only=True)
class StoredImages:
    """The image and the error bars of one run.

    Parameters
    ----------
    name : str
        Of the folder.
    mask : bool array, shape (ky,), (ky, kz), (shot,) or (readout,)
        What is measured.
    counted : str
        What the mask counts: "lines", "samples", "shots" or "readouts".
    image : complex64 array, shape (ky, kx) or (ky, kz), or None
        The reconstruction.
    std : float32 array, shape as ``image``, or None
        Its error bars.
    maps : complex64 array, shape (coil, ky, kx), or None
        Coil maps of the scan's own coils; None where it has one coil.
    geometry : SliceGeometry or None
        Pixel size and place, where the scan's file said.
    source : SourceImage or None
        The DICOM image that the scan was simulated from, or what the header of its raw data says.
    identity : str
        What tells this run from others.
    """

    name: str
    mask: NDArray[np.bool_]
    counted: str
    image: NDArray[np.complex64] | None
    std: NDArray[np.float32] | None
    maps: NDArray[np.complex64] | None = None
    geometry: SliceGeometry | None
    source: SourceImage | None
    identity: str

    @property
    def measured(self) -> str:
        """How much of what there was to choose from is measured, in words."""
        return f"{np.count_nonzero(self.mask)} of {self.mask.size} {self.counted}"


def read_images(folder: Path) -> StoredImages:
    """Read the images of a run's folder.

    Parameters
    ----------
    folder : Path
        Of a finished design, reconstruction or protocol, of lines or of anything else.

    Returns
    -------
    StoredImages

    Raises
    ------
    UsageError
        Where it is no folder of such a run, or of one that has not ended.
    InputError
        Where its files are damaged or contradict each other.
    """
    if not (folder / "manifest.json").is_file() or not (folder / "mask.npy").is_file():
        unfinished = (folder / "checkpoint.npz").exists()
        cure = "finish it with --resume first" if unfinished else f"give {_WANTED}"
        raise UsageError(f"{folder} holds no finished run with a mask; {cure}")
    settings = read_manifest(folder)["settings"]
    mask = _array(folder / "mask.npy", "b", 1, 2)
    what = counted(folder, settings, mask.ndim)
    image, std = (_image(folder / name, kind) for name, kind in (("recon.npy", "c"), ("std.npy", "f")))
    sides = {"lines": mask.shape, "samples": mask.shape}.get(what, ())
    if image is not None and image.shape[: len(sides)] != sides:
        wanted = f"{' x '.join(map(str, sides))} {'rows' if len(sides) == 1 else 'pixels'}, as mask.npy"
        raise InputError(field=f"{folder.name}/recon.npy", got=f"shape {image.shape}", wanted=wanted)
    if image is not None and std is not None and image.shape != std.shape:
        raise InputError(
            field=f"{folder.name}/std.npy", got=f"shape {std.shape}", wanted=f"{image.shape}, as recon.npy"
        )
    maps = _image(folder / COIL_MAPS, "c", 3)
    if maps is not None and image is not None and maps.shape[1:] != image.shape:
        wanted = f"(coil, {image.shape[0]}, {image.shape[1]}), as recon.npy"
        raise InputError(field=f"{folder.name}/{COIL_MAPS}", got=f"shape {maps.shape}", wanted=wanted)
    stored, source = settings.get("geometry"), settings.get("source_image")
    field = f"{folder.name}/manifest.json"
    return StoredImages(
        name=folder.resolve().name,
        mask=mask,
        counted=what,
        image=image,
        std=std,
        maps=maps,
        geometry=None if stored is None else SliceGeometry.from_settings(field, stored),
        source=None if source is None else SourceImage.from_settings(field, source),
        identity=str(settings.get("identity", "")),
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run about one mask.

    Raises
    ------
    InputError
        Where it is damaged, or that of another run.
    """
    field, path = f"{folder.name}/manifest.json", folder / "manifest.json"
    try:
        if check_file(path) > MOST_TEXT:
            raise InputError(field=field, got="a very long file", wanted=f"at most {MOST_TEXT} bytes")
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lines = manifest["lines"]
        known = isinstance(manifest["settings"], dict) and all(type(line) is int for line in lines)
        if not known or not (lines or "readouts" in manifest["settings"]):
            raise TypeError("no list of lines, or no settings")
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(field=field, got=f"{error}", wanted="the manifest of a run about one mask") from error
    return manifest


def _array(path: Path, kind: str, *axes: int) -> NDArray[Any]:
    field = f"{path.parent.name}/{path.name}"
    size = check_file(path)
    with path.open("rb") as stream:
        array = read_npy_stream(stream, size, field, DEFAULT_LIMITS)
    if array.dtype.kind != kind or array.ndim not in axes or not np.isfinite(array).all():
        names = {"b": "bool", "c": "finite complex", "f": "finite real"}
        wanted = f"{names[kind]} values along {' or '.join(map(str, axes))} axes"
        raise InputError(field=field, got=f"{array.dtype} {array.shape}", wanted=wanted)
    return array


def _image(path: Path, kind: str, axes: int = 2) -> NDArray[Any] | None:
    return _array(path, kind, axes) if path.is_file() else None


ACQUISITION = "acquisition.csv"


def read_trains(folder: Path, unit: str) -> tuple[tuple[int, ...], ...] | None:
    """The trains of acquisition.csv; None where the order of measurement is that of choice, one after the other.

    Parameters
    ----------
    folder : Path
        Of the run.
    unit : str
        The column with the numbers: "line" or "sample".

    Raises
    ------
    InputError
        Where the file is damaged.
    """
    path = folder / ACQUISITION
    if not path.is_file():
        return None
    try:
        if check_file(path) > MOST_TEXT:
            raise ValueError("a very long file")
        rows = [(int(str(row["train"])), int(str(row[unit]))) for row in read_csv(path)]
    except (OSError, ValueError, KeyError) as error:
        field = f"{folder.name}/{ACQUISITION}"
        raise InputError(field=field, got=str(error), wanted=f"{unit}s and trains of a run") from error
    return tuple(tuple(number for _, number in train) for _, train in groupby(rows, key=lambda row: row[0]))


@dataclass(frozen=True)
class StoredPlane:
    """The samples of a plane that a run chose or reconstructed.

    Parameters
    ----------
    trains : tuple of tuple of int
        Numbers of the samples, row after row of the plane, in the order of measurement and in echo trains.
    shape : tuple of int
        Of the plane (ky, kz).
    chosen : bool
        Whether the run chose them, so that their order is one of measurement; a reconstruction has them by number.
    """

    trains: tuple[tuple[int, ...], ...]
    shape: tuple[int, int]
    chosen: bool

    @property
    def samples(self) -> tuple[tuple[int, int], ...]:
        """Row and column (ky, kz) of every sample, in the order of measurement."""
        return tuple(divmod(number, self.shape[1]) for train in self.trains for number in train)

    @property
    def order(self) -> PlaneOrder:
        """The same for a sequence, which takes them one by one."""
        return PlaneOrder(self.samples, self.shape)


def read_plane(folder: Path) -> StoredPlane | None:
    """The samples of a plane in the order of measurement; None where the folder is of another run.

    Raises
    ------
    InputError
        Where the files are damaged or contradict each other.
    """
    path, mask_path = folder / SAMPLES, folder / "mask.npy"
    chosen = path.is_file()
    if not mask_path.is_file():
        return None
    field, size = f"{folder.name}/{SAMPLES}", check_file(mask_path)
    with mask_path.open("rb") as stream:
        mask = read_npy_stream(stream, size, f"{folder.name}/mask.npy", DEFAULT_LIMITS)
    if not chosen and mask.ndim != 2:
        return None
    if mask.dtype != np.bool_ or mask.ndim != 2:
        got = f"{mask.dtype} {mask.shape}"
        raise InputError(field=f"{folder.name}/mask.npy", got=got, wanted="bool (ky, kz), as of a plane")
    rows, columns = mask.shape
    held = np.flatnonzero(mask).tolist()
    if not chosen:
        return StoredPlane(tuple((number,) for number in held), (rows, columns), False)
    trains = read_trains(folder, "sample")
    if trains is None:
        trains = _one_by_one(path, field)
    else:
        field = f"{folder.name}/{ACQUISITION}"
    numbers = sorted(number for train in trains for number in train)
    if numbers != held:
        raise InputError(field=field, got=f"{len(numbers)} samples other than those of mask.npy", wanted="the same")
    return StoredPlane(trains, (rows, columns), True)


def _one_by_one(path: Path, field: str) -> tuple[tuple[int, ...], ...]:
    try:
        check_file(path)
        return tuple((int(str(row["sample"])),) for row in read_csv(path))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(field=field, got=str(error)[:120], wanted="the samples of a run") from error


def read_shots(folder: Path) -> tuple[SpokeOrder | SpiralOrder, int] | None:
    """The spokes or arms in the order of choice, and the samples of each; None where the folder is of another design.

    Arms are readouts whose first sample is the one nearest to the centre of k-space.

    Raises
    ------
    InputError
        Where the trajectory cannot be read, is none of spokes or arms, or one of spokes on a grid that is not square.
    """
    if not (folder / SHOTS).is_file():
        return None
    path = folder / "trajectory.npz"
    scan = read(path)
    if not isinstance(scan, TrajectoryData):
        raise InputError(field=str(path), got="a scan on a grid", wanted="the trajectory of a run")
    trajectory = scan.trajectory.reshape(scan.readouts, -1, 2)
    if not np.linalg.norm(trajectory, axis=2).argmin(axis=1).any():
        return SpiralOrder(trajectory, scan.grid_shape), trajectory.shape[1]
    if scan.grid_shape[0] != scan.grid_shape[1]:
        raise InputError(field=f"{path}: matrix", got=str(scan.grid_shape), wanted="a square, for spokes")
    return SpokeOrder.of_trajectory(trajectory), trajectory.shape[1]


_IMAGE = "--to nifti and --to dicom take its image"
_WITHOUT_LINES = {
    "shots": "is a design over shots, which chose no lines: {image}, --to seq makes a sequence of them, and mri-design "
    "convert takes its trajectory.npz to other formats",
    "samples": "is a run over samples of a plane, which are no lines: {image}, --to cfl, csv and npy its samples, and "
    "--to seq makes a sequence of the design that chose them",
    "readouts": "is a reconstruction of samples along a trajectory, which are no lines: {image}, mri-design convert "
    "takes the trajectory to other formats, and --to seq makes a sequence of the design that chose it",
}
"""What can be had of runs that measured something else, by `StoredImages.counted`."""


@dataclass(frozen=True, kw_only=True)
class StoredRun(StoredImages):
    """The results of one run over whole lines: its images, and its lines.

    Parameters
    ----------
    order : LineOrder
        Lines in the order of measurement, in echo trains.
    """

    order: LineOrder


def read_run(folder: Path) -> StoredRun:
    """Read the folder of a run over lines.

    Parameters
    ----------
    folder : Path
        Of a finished design, reconstruction or protocol.

    Returns
    -------
    StoredRun

    Raises
    ------
    UsageError
        Where it is no folder of such a run, or of one that has not ended or chose no whole lines.
    InputError
        Where its files are damaged or contradict each other.
    """
    images = read_images(folder)
    if images.counted != "lines":
        raise UsageError(f"{folder} {_WITHOUT_LINES[images.counted].format(image=_IMAGE)}")
    return StoredRun(order=_order(folder, read_manifest(folder), images.mask), **vars(images))


def _order(folder: Path, manifest: dict[str, Any], mask: NDArray[np.bool_]) -> LineOrder:
    """Lines and trains of acquisition.csv where the order of measurement is another one, else those of the manifest."""
    trains = read_trains(folder, "line")
    if trains is None:
        field = f"{folder.name}/manifest.json: lines"
        order = LineOrder.of_lines(manifest["lines"], len(mask))
    else:
        field = f"{folder.name}/{ACQUISITION}"
        try:
            order = LineOrder(trains, len(mask))
        except InputError as error:
            raise InputError(field=field, got=str(error), wanted="lines and trains of a run") from error
    if sorted(order.lines) != np.flatnonzero(mask).tolist():
        raise InputError(
            field=field, got=f"{len(order.lines)} lines other than those of mask.npy", wanted="the same lines"
        )
    return order
