"""What a design, a reconstruction or a protocol left in its folder, read back and held against itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.evaluation.output.tables import read_csv
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.numpy_files.npy_stream import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.scan.source_image import SourceImage
from mri_design.sequences.orders import LineOrder

__all__ = ["StoredRun", "read_run"]

_MOST_TEXT = 64 * 2**20
_WANTED = "a folder of design, recon or protocol"


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """The results of one run.

    Parameters
    ----------
    name : str
        Of the folder.
    order : LineOrder
        Lines in the order of measurement, in echo trains.
    mask : bool array, shape (ky,)
        Lines that are measured.
    image : complex64 array, shape (ky, kx), or None
        The reconstruction.
    std : float32 array, shape (ky, kx), or None
        Its error bars.
    geometry : SliceGeometry or None
        Pixel size and place, where the scan's file said.
    source : SourceImage or None
        The DICOM image that the scan was simulated from, or what the header of its raw data says.
    identity : str
        What tells this run from others.
    """

    name: str
    order: LineOrder
    mask: NDArray[np.bool_]
    image: NDArray[np.complex64] | None
    std: NDArray[np.float32] | None
    geometry: SliceGeometry | None
    source: SourceImage | None
    identity: str


def read_run(folder: Path) -> StoredRun:
    """Read a run's folder.

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
    if not (folder / "manifest.json").is_file() or not (folder / "mask.npy").is_file():
        unfinished = (folder / "checkpoint.npz").exists()
        cure = "finish it with --resume first" if unfinished else f"give {_WANTED}"
        raise UsageError(f"{folder} holds no finished run with a mask; {cure}")
    manifest = _manifest(folder / "manifest.json")
    settings = manifest["settings"]
    if (folder / "shots.csv").is_file():
        raise UsageError(
            f"{folder} is a design over shots, which chose no lines; --to seq makes a sequence of them, and "
            "mri-design convert takes its trajectory.npz to other formats"
        )
    plane = (folder / "samples.csv").is_file()
    also = "; --to seq makes a sequence of it" if plane else ""
    for other, chosen in (("samples along a trajectory", "readouts" in settings), ("samples of a plane", plane)):
        if chosen:
            raise UsageError(f"{folder} is a run over {other}; only runs over whole lines can be exported so{also}")
    mask = _array(folder / "mask.npy", "b", 1)
    order = _order(folder, manifest, mask)
    image, std = (_image(folder / name, kind, len(mask)) for name, kind in (("recon.npy", "c"), ("std.npy", "f")))
    if image is not None and std is not None and image.shape != std.shape:
        raise InputError(
            field=f"{folder.name}/std.npy", got=f"shape {std.shape}", wanted=f"{image.shape}, as recon.npy"
        )
    stored, source = settings.get("geometry"), settings.get("source_image")
    field = f"{folder.name}/manifest.json"
    return StoredRun(
        name=folder.resolve().name,
        order=order,
        mask=mask,
        image=image,
        std=std,
        geometry=None if stored is None else SliceGeometry.from_settings(field, stored),
        source=None if source is None else SourceImage.from_settings(field, source),
        identity=str(settings.get("identity", "")),
    )


def _manifest(path: Path) -> dict[str, Any]:
    field = f"{path.parent.name}/{path.name}"
    try:
        if check_file(path) > _MOST_TEXT:
            raise InputError(field=field, got="a very long file", wanted=f"at most {_MOST_TEXT} bytes")
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


def _array(path: Path, kind: str, axes: int) -> NDArray[Any]:
    field = f"{path.parent.name}/{path.name}"
    size = check_file(path)
    with path.open("rb") as stream:
        array = read_npy_stream(stream, size, field, DEFAULT_LIMITS)
    if array.dtype.kind != kind or array.ndim != axes or not np.isfinite(array).all():
        names = {"b": "bool", "c": "finite complex", "f": "finite real"}
        raise InputError(
            field=field, got=f"{array.dtype} {array.shape}", wanted=f"{names[kind]} values along {axes} axes"
        )
    return array


def _image(path: Path, kind: str, n_lines: int) -> NDArray[Any] | None:
    if not path.is_file():
        return None
    image = _array(path, kind, 2)
    if len(image) != n_lines:
        raise InputError(
            field=f"{path.parent.name}/{path.name}", got=f"shape {image.shape}", wanted=f"{n_lines} rows, as mask.npy"
        )
    return image


def _order(folder: Path, manifest: dict[str, Any], mask: NDArray[np.bool_]) -> LineOrder:
    """Lines and trains of acquisition.csv where the order of measurement is another one, else those of the manifest."""
    path = folder / "acquisition.csv"
    if path.is_file():
        field = f"{folder.name}/acquisition.csv"
        try:
            if check_file(path) > _MOST_TEXT:
                raise ValueError("a very long file")
            rows = [(int(str(row["train"])), int(str(row["line"]))) for row in read_csv(path)]
            trains = tuple(tuple(line for _, line in train) for _, train in groupby(rows, key=lambda row: row[0]))
            order = LineOrder(trains, len(mask))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(field=field, got=str(error), wanted="lines and trains of a run") from error
    else:
        field = f"{folder.name}/manifest.json: lines"
        order = LineOrder.of_lines(manifest["lines"], len(mask))
    if sorted(order.lines) != np.flatnonzero(mask).tolist():
        raise InputError(
            field=field, got=f"{len(order.lines)} lines other than those of mask.npy", wanted="the same lines"
        )
    return order
