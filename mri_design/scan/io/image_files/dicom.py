"""DICOM images: magnitudes to simulate scans from."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.image_files.nifti import WITHOUT_KSPACE
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_declared_shape, check_file, errors_named
from mri_design.scan.io.samples import to_float32
from mri_design.scan.source_image import SourceImage

__all__ = ["is_dicom", "read"]

_START, _MAGIC = 128, b"DICM"
_ANSWERS = 2**16
"""Longest element, in bytes, that is read with the header: pixels are not among them."""


def is_dicom(path: Path) -> bool:
    """Whether a file has the mark of DICOM behind its preamble."""
    with path.open("rb") as stream:
        stream.seek(_START)
        return stream.read(len(_MAGIC)) == _MAGIC


def read(path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS) -> ImageStack:
    """Read the frames of one DICOM file, rescaled as it says.

    There is neither k-space, phase nor noise in such a file, so it serves simulations only. The card has the modality,
    the kind of image and the size of pixels, and nothing about the patient. Identifiers of the patient, the study and
    the image come along apart (`ImageStack.source`), for DICOM files that are made from it.

    Parameters
    ----------
    path : path
        A file with uncompressed grey pixels; one of a series is one slice.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.

    Raises
    ------
    MissingPackageError
        Where pydicom is not installed.
    InputError
        On anything else than such a file, naming the file and the element.
    """
    path = Path(path)
    size = check_file(path)
    pydicom = optional_package("pydicom", "export")
    with errors_named(path):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of values that are not as the standard has them
                file = pydicom.dcmread(path, defer_size=_ANSWERS)
                return _images(file, path, size, limits)
        except InputError:
            raise
        except MemoryError as error:  # pydicom makes room for as much as an element declares
            wanted = f"elements within the {size} bytes of the file, and room for them"
            raise InputError(field="elements", got="one that memory cannot hold", wanted=wanted) from error
        except Exception as error:  # a damaged file may fail anywhere in the parser
            got = f"{type(error).__name__}: {error}"[:120]
            raise InputError(field="elements", got=got, wanted="a DICOM image") from error


def _images(file: Any, path: Path, size: int, limits: ReadLimits) -> ImageStack:
    syntax = file.file_meta.TransferSyntaxUID
    if syntax.is_compressed:
        cure = "Decompress it first, for example by `dcmdjpeg` or `gdcmconv --raw`."
        raise InputError(field="TransferSyntaxUID", got=str(syntax.name)[:60], wanted="uncompressed pixels", cure=cure)
    if int(file.SamplesPerPixel) != 1:
        raise InputError(field="SamplesPerPixel", got=str(file.SamplesPerPixel), wanted="1: grey pixels")
    frames, rows, columns = int(file.get("NumberOfFrames") or 1), int(file.Rows), int(file.Columns)
    for name, side, bound in (
        ("NumberOfFrames", frames, limits.max_slices),
        ("Rows", rows, limits.max_side),
        ("Columns", columns, limits.max_side),
    ):
        if not 1 <= side <= bound:
            raise InputError(field=name, got=str(side), wanted=f"1 to {bound}")
    bits = int(file.BitsAllocated)
    if bits not in (8, 16, 32):
        raise InputError(field="BitsAllocated", got=str(bits), wanted="8, 16 or 32")
    check_declared_shape("PixelData", (frames, rows, columns), bits // 8, limits, available=size)
    stored = np.asarray(file.pixel_array).reshape(frames, rows, columns)
    slope, intercept = (
        float(file.get(name) or other) for name, other in (("RescaleSlope", 1), ("RescaleIntercept", 0))
    )
    pixels = to_float32("PixelData", stored.astype(np.float64) * slope + intercept)
    elements = {name: str(file.get(name) or "").strip() for name in SourceImage.keywords()}
    source, wrong = SourceImage.of_elements(elements, frames)
    card = _card(file, path, pixels)
    if wrong:
        left = f"without {', '.join(wrong)}, which DICOM has in another form"
        card["identifiers_left_out"] = left if source is not None else f"none, {left}"
    geometry = _geometry(file, rows, columns)
    return ImageStack(pixels, name=path.stem, card=card, geometry=geometry, source=source)


def _geometry(file: Any, rows: int, columns: int) -> SliceGeometry | None:
    """Sizes, and place and directions where the file has them."""
    spacing = file.get("PixelSpacing")
    if not spacing:
        return None
    along_y, along_x = map(float, spacing)
    corner, directions = file.get("ImagePositionPatient"), file.get("ImageOrientationPatient")
    place: list[Any] = []
    if corner and directions:
        read, phase = np.array(directions, dtype=float).reshape(2, 3)
        centre = np.array(corner, dtype=float) + rows // 2 * along_y * phase + columns // 2 * along_x * read
        place = [centre, phase, read, np.cross(read, phase)]
    return SliceGeometry.of_header((along_y, along_x), float(file.get("SliceThickness") or np.nan), place)


def _card(file: Any, path: Path, pixels: NDArray[np.float32]) -> dict[str, str]:
    card = {"file": path.name, "format": "DICOM", "kind": WITHOUT_KSPACE}
    kinds = "\\".join(str(word) for word in file.get("ImageType") or [])
    said = {"modality": file.get("Modality"), "image_type": kinds, "slice_thickness_mm": file.get("SliceThickness")}
    card |= {name: str(value)[:80] for name, value in said.items() if value}
    spacing = file.get("PixelSpacing")
    if spacing:
        card["pixel_mm"] = " x ".join(f"{float(side):g}" for side in spacing)
    if pixels.min() < 0:
        card["values"] = f"from {pixels.min():g}: negative ones are no magnitudes"
    return card
