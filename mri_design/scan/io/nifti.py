"""NIfTI images, compressed or not: magnitudes for simulations."""

from __future__ import annotations

import gzip
import logging
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.errors import InputError, optional_package
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import THICKNESS_UNKNOWN, SliceGeometry, SourceImage, impossible_sizes
from mri_design.scan.io import safe
from mri_design.scan.io.source import ReadOptions
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import to_complex64, to_float32

_GZIP = b"\x1f\x8b"
_MAGIC = (b"n+1\x00", b"n+2\x00")
_SAME_SIZE = 1e-3
_HEADER, _LARGEST_HEADER, _CHUNK = 352, 2**20, 2**20
_MILLIMETRES = {"mm": 1.0, "meter": 1e3, "micron": 1e-3, "unknown": 1.0}
"""Millimetres of a unit, by its name in nibabel."""
_SILENT = logging.Logger("mended headers")
_SILENT.disabled = True


def recognises(path: Path) -> bool:
    """Whether a file begins as a NIfTI-1 or NIfTI-2 image does, compressed or not."""
    try:
        with _opened(path) as stream:
            head = stream.read(348)
    except (OSError, EOFError, zlib.error):
        return False
    return head[344:348] in _MAGIC or head[4:8] in _MAGIC


def opened(path: Path, options: ReadOptions) -> ImageStack:
    """Images (x, y), (x, y, z) or the first volume of (x, y, z, time).

    Slices lie along z. Rows, the phase encode, are y, and columns x, in the order of the file: nothing is turned. A
    file without k-space and noise serves simulations only. A thickness of 1 mm counts as unknown if the description
    says so, as this package writes it. The JSON file of BIDS, of the same name, may give protocol, echo and repetition
    time in seconds, and flip angle.

    Raises
    ------
    MissingPackageError
        If nibabel is not installed.
    InputError
        For any other file, naming the field.
    """
    limits = options.limits
    size = safe.check_file(path)
    nibabel = optional_package("nibabel", "export")
    with safe.damage_named("header", "a damaged file", "a NIfTI image"), _opened(path) as stream:
        content = stream.read(_HEADER)
        kind = nibabel.Nifti2Image if content[4:8] in _MAGIC else nibabel.Nifti1Image
        if kind is nibabel.Nifti2Image:
            content += stream.read(544 - _HEADER)
        header, sides = _header(kind, content)
        shape = tuple(int(side) for side in header.get_data_shape())
        if len(shape) not in (2, 3, 4):
            raise InputError("dim", f"{shape}", "images (x, y), (x, y, z) or (x, y, z, time)")
        volume = (*shape, 1)[:3]
        safe.check_sides(limits, dict(zip("xyz", volume, strict=True)), field="dim: ")
        dtype = header.get_data_dtype()
        if dtype.kind not in "iufc":
            raise InputError("datatype", str(dtype), "numbers, one a pixel")
        needed = safe.check_declared_shape("dim", volume, dtype.itemsize, limits)
        safe.check_expansion("data", size, needed, limits)
        offset = int(header.get_data_offset())
        if not len(content) <= offset <= _LARGEST_HEADER:
            raise InputError("vox_offset", str(offset), f"{len(content)} to {_LARGEST_HEADER}")
        stream.read(offset - len(content))
        geometry = _geometry(header, sides, volume)
        impossible = impossible_sizes(sides[:2], (*sides, math.nan, math.nan)[2])
        unknown: dict[str, tuple[Any, ...]] = {} if geometry is not None or impossible else {"pixel_size": ()}
        several = len(shape) == 4 and shape[3] > 1
        series = {"volumes": (0, tuple(range(shape[3])))} if several else {}
        source, sidecar = _sidecar(path, limits)
        read = Provenance(series=series, left_out=impossible, read_as=unknown | sidecar)
        about = {"file": path.name, "format": "NIfTI"}
        data, most = stream.read(needed), limits.max_bytes
        if len(data) != needed:
            cure = "The file is truncated: copy or download it again."
            raise InputError("data", f"{len(data)} bytes", f"{needed} bytes", cure)
        while most > 0 and (passed := len(stream.read(_CHUNK))):  # to the checksum of a compressed file
            most -= passed
        stored, scaling = np.frombuffer(data, dtype).reshape(volume[::-1]), header.get_slope_inter()
        images = [_scaled(f"data, slice {number}", one, *scaling) for number, one in enumerate(stored)]
        return ImageStack(np.stack(images), _stem(path), about, geometry, source, read)


_PER_UNIT = {"EchoTime": 1e3, "RepetitionTime": 1e3, "FlipAngle": 1.0}
"""Factors from seconds and degrees in a BIDS file to milliseconds and degrees."""
_LARGEST = 1e6
"""Largest possible time or angle."""


def _sidecar(path: Path, limits: safe.ReadLimits) -> tuple[SourceImage | None, dict[str, tuple[Any, ...]]]:
    """How the images were measured, by the JSON file of BIDS, and whether it was read."""
    beside = path.with_name(f"{_stem(path)}.json")
    if not beside.is_file():
        return None, {}
    try:
        content = safe.read_json_table(beside, limits)
    except InputError as error:
        return None, {"sidecar": (beside.name, error.got[:80])}
    found = {}
    for name, factor in _PER_UNIT.items():
        value = content.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            found[name] = f"{factor * float(value):.6g}"
    protocol = content.get("ProtocolName") or content.get("SeriesDescription")
    found |= {"ProtocolName": protocol} if isinstance(protocol, str) else {}
    return SourceImage.of_elements(found, image=False)[0], {"sidecar": (beside.name, "")}


def _header(kind: Any, content: bytes) -> tuple[Any, list[float]]:
    """The header, checked and if possible mended by nibabel, and the sides of a voxel in millimetres.

    A side of 0, which nibabel replaces by 1, is NaN. Sizes without a unit count as millimetres, as in other programs.
    """
    header = kind.header_class(content[: kind.header_class.template_dtype.itemsize], check=False)
    stored = header["pixdim"][1:4].tolist()
    header.check_fix(logger=_SILENT)
    factor = _MILLIMETRES.get(header.get_xyzt_units()[0], math.nan)
    sizes = zip(header.get_zooms()[:3], stored, strict=False)
    return header, [float(side) * factor if one else math.nan for side, one in sizes]


def _geometry(header: Any, sides: list[float], volume: tuple[int, ...]) -> SliceGeometry | None:
    """Sizes, and place and directions if the header's affine leads to coordinates.

    Sides of 1 without a unit are the default of headers without sizes.
    """
    unit = header.get_xyzt_units()[0]
    if unit == "unknown" and all(side == 1 or math.isnan(side) for side in sides):
        return None
    along_x, along_y, along_z = (*sides, math.nan)[:3]
    place: list[Any] = []
    if int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0:
        factor = _MILLIMETRES[unit]
        affine = np.diag([-factor, -factor, factor, 1.0]) @ header.get_best_affine()
        lengths = np.linalg.norm(affine[:3, :3], axis=0)
        if np.allclose(lengths[: len(sides)], sides, rtol=_SAME_SIZE) and lengths.all():
            read, phase, normal = (affine[:3, :3] / lengths).T
            middle = affine @ [volume[0] // 2, volume[1] // 2, 0, 1]
            place = [middle[:3], phase, read, normal]
    if along_z == 1 and THICKNESS_UNKNOWN in bytes(header["descrip"]).decode("ascii", "replace"):
        along_z = math.nan
    return SliceGeometry.of_header((along_y, along_x), along_z, place)


def _opened(path: Path) -> Any:
    with path.open("rb") as stream:
        compressed = stream.read(2) == _GZIP
    return gzip.open(path) if compressed else path.open("rb")


def _scaled(field: str, stored: Any, slope: float | None, intercept: float | None) -> Any:
    """Values from stored numbers by the header's scaling; complex numbers stay complex."""
    factor, added = (1.0 if slope is None else float(slope)), (0.0 if intercept is None else float(intercept))
    convert = to_complex64 if stored.dtype.kind == "c" else to_float32
    if (factor, added) == (1.0, 0.0):
        return convert(field, stored)
    return convert(field, (stored if stored.dtype.kind == "c" else stored.astype(np.float64)) * factor + added)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".nii")
