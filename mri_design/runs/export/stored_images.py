"""The images that a run of any kind left in its folder, and what was measured for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.runs.counted import counted
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.npy import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.scan.source_image import SourceImage

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
