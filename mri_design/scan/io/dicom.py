"""DICOM images: magnitudes for simulations.

Enhanced images have the scaling, size and place of frames in functional groups (of one frame, or shared by all), other
images in the file itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry, SourceImage, impossible_sizes
from mri_design.scan.io.safe import ReadLimits, check_declared_shape, check_file, check_sides, damage_named
from mri_design.scan.io.source import ReadOptions
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import to_float32

_PER_FRAME, _SHARED = "PerFrameFunctionalGroupsSequence", "SharedFunctionalGroupsSequence"
_MACROS = {
    "RescaleSlope": "PixelValueTransformationSequence",
    "RescaleIntercept": "PixelValueTransformationSequence",
    "PixelSpacing": "PixelMeasuresSequence",
    "SliceThickness": "PixelMeasuresSequence",
    "ImagePositionPatient": "PlanePositionSequence",
    "ImageOrientationPatient": "PlaneOrientationSequence",
    "ComplexImageComponent": "MRImageFrameTypeSequence",
    "FrameType": "MRImageFrameTypeSequence",
}
_USUAL = {"RescaleSlope": 1.0, "RescaleIntercept": 0.0}
_SAME = 1e-3
"""Fraction of a distance by which the same places may differ."""


def _facts(file: Any, frame: int) -> dict[str, Any]:
    """The elements of `_MACROS` that the file has for one frame."""
    groups = [part[index] for name, index in ((_PER_FRAME, frame), (_SHARED, 0)) if (part := file.get(name))]
    facts = dict[str, Any]()
    for name, macro in _MACROS.items():
        values = [group[macro][0].get(name) for group in groups if group.get(macro)] + [file.get(name)]
        facts |= next(({name: value} for value in values if value not in (None, "", [])), {})
    return facts


def _kind(facts: Mapping[str, Any]) -> str:
    """Magnitude, phase or another part of complex pixels ("MAGNITUDE", "M"); empty if a frame does not say."""
    words = list(facts.get("FrameType", []))
    return str(facts.get("ComplexImageComponent") or (words[2] if len(words) > 2 else ""))


def _geometry(
    frames: Sequence[Mapping[str, Any]], shape: tuple[int, int], grouped: bool
) -> tuple[SliceGeometry | None, dict[str, tuple[Any, ...]]]:
    """Sizes and place of the first frame, and facts about the others for `Provenance.read_as`.

    If frames do not follow each other at the distance of their thickness, the thickness is left out, so that no places
    are made up. Without one size of pixels there is no geometry.
    """
    first, *others = [_place(facts, shape) for facts in (frames if grouped else frames[:1])]
    if first is None or not others:
        return first, {}
    if any(other is None or not np.allclose(other.pixel, first.pixel, rtol=_SAME) for other in others):
        return None, {"frames": ("sizes", 0.0)}
    if not first.placed:
        return first, {}
    centre, _, _, normal = first.vectors
    if others[0] is not None and others[0].placed and (others[0].vectors[0] - centre) @ normal < 0:
        x, y, z = (-normal).tolist()  # towards the second frame
        first = replace(first, normal=(x, y, z))
    if all(_alike(other, first.slice_after(number)) for number, other in enumerate(others, 1)):
        return first, {}
    return replace(first, thickness=None), {"frames": ("distances", first.thickness or 0.0)}


def _place(facts: Mapping[str, Any], shape: tuple[int, int]) -> SliceGeometry | None:
    if "PixelSpacing" not in facts:
        return None
    along_y, along_x = map(float, facts["PixelSpacing"])
    place: list[Any] = []
    if "ImagePositionPatient" in facts and "ImageOrientationPatient" in facts:
        rows, columns = shape
        read, phase = np.array(facts["ImageOrientationPatient"], dtype=float).reshape(2, 3)
        corner = np.array(facts["ImagePositionPatient"], dtype=float)
        centre = corner + rows // 2 * along_y * phase + columns // 2 * along_x * read
        place = [centre, phase, read, np.cross(read, phase)]
    return SliceGeometry.of_header((along_y, along_x), _thickness(facts), place)


def _thickness(facts: Mapping[str, Any]) -> float:
    """Millimetres; NaN if a frame has none, or 0."""
    return float(facts.get("SliceThickness") or np.nan)


def _alike(place: SliceGeometry | None, wanted: SliceGeometry) -> bool:
    """Whether two frames lie at one known place, in one orientation."""
    if place is None or not place.placed or not wanted.placed:
        return False
    near = _SAME * (wanted.thickness or 1.0)
    (centre, *directions), (there, *others) = place.vectors, wanted.vectors
    along_ky_and_kx = np.allclose(directions[:2], others[:2], atol=_SAME)
    return bool(np.abs(centre - there).max() <= near and along_ky_and_kx)


_START, _MAGIC = 128, b"DICM"
_ANSWERS = 2**16
"""Longest element, in bytes, that is read with the header."""
_PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_NEEDED = ("SamplesPerPixel", "PhotometricInterpretation", "Rows", "Columns", "BitsAllocated", "PixelRepresentation")
_GREY = "MONOCHROME2"
_BASE = "1.2.840.10008.1.2"
_DECODERS = {
    f"{_BASE}.5": "dcmdrle",
    **dict.fromkeys((f"{_BASE}.4.{number}" for number in (50, 51, 53, 55, 57, 70)), "dcmdjpeg"),
    **dict.fromkeys((f"{_BASE}.4.80", f"{_BASE}.4.81"), "dcmdjpls"),
    **dict.fromkeys((f"{_BASE}.4.90", f"{_BASE}.4.91"), "gdcmconv --raw"),
}
"""Transfer syntaxes (run lengths, JPEG, JPEG-LS, JPEG 2000) and the programs of DCMTK and GDCM that decode them."""
_AS_NIFTI = "Write it as NIfTI first: dcm2niix FOLDER."
_ABOUT_OTHERS = "Give the images of the series; reports, spectra and presentation states have none."
_ABOUT_INVERTED = "In this file larger values are darker: have the program that wrote it write MONOCHROME2."
_ABOUT_COLOUR = "Pictures in colour, as of maps and screens, hold no values of a magnitude: give the images themselves."


def recognises(path: Path) -> bool:
    """Whether a file has the mark of DICOM after its preamble."""
    with path.open("rb") as stream:
        stream.seek(_START)
        return stream.read(len(_MAGIC)) == _MAGIC


def opened(path: Path, options: ReadOptions) -> ImageStack:
    """The frames of one DICOM file, rescaled.

    Scaling, sizes and places come from the frame, else from the shared functional groups, else from the file itself. A
    file without k-space, phase and noise serves simulations only. The header has modality, kind of image and size of
    pixels, and nothing about the patient. `ImageStack.source` has the identifiers of patient, study and image, for
    DICOM files that are derived from it.

    Raises
    ------
    MissingPackageError
        If pydicom is not installed.
    InputError
        For any other than uncompressed grey pixels, naming the element.
    """
    size = check_file(path)
    pydicom = optional_package("pydicom", "export")
    with damage_named("elements", "damaged", "a DICOM image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about values that break the standard
        return _frames(pydicom.dcmread(path, defer_size=_ANSWERS), path, size, options.limits)


def _frames(file: Any, path: Path, size: int, limits: ReadLimits) -> ImageStack:
    _require_grey(file)
    count, rows, columns = int(file.get("NumberOfFrames") or 1), int(file.Rows), int(file.Columns)
    check_sides(limits, {"NumberOfFrames": count, "Rows": rows, "Columns": columns})
    bits = int(file.BitsAllocated)
    if bits not in (8, 16, 32):
        raise InputError("BitsAllocated", str(bits), "8, 16 or 32")
    shape = (count, rows, columns)
    check_declared_shape("PixelData", shape, bits // 8, limits, available=size)
    groups = file.get(_PER_FRAME) or []
    if groups and len(groups) != count:
        raise InputError(_PER_FRAME, f"{len(groups)} items", f"{count}, one for each frame")
    frames = [_facts(file, frame) for frame in range(count)]
    if len(kinds := sorted(set(map(_kind, frames)))) > 1:
        raise InputError("FrameType", f"frames of {' and '.join(kinds)}", "frames of one kind", _AS_NIFTI)
    geometry, read_as = _geometry(frames, (rows, columns), bool(groups))
    spacing = [float(side) for side in frames[0].get("PixelSpacing", ())]
    left_out: dict[str, tuple[Any, ...]] = {**impossible_sizes(spacing, _thickness(frames[0]))}
    elements = {name: str(file.get(name) or "").strip() for name in SourceImage.keywords()}
    source, wrong = SourceImage.of_elements(elements, count)
    if wrong:
        left_out["identifiers_left_out"] = wrong
    images, known = list(_rescaled(file, frames, (rows, columns))), Provenance(left_out=left_out, read_as=read_as)
    return ImageStack(np.stack(images), path.stem, _header(file, path), geometry, source, known)


def _require_grey(file: Any) -> None:
    """Refuse a file without uncompressed grey pixels."""
    if not any(name in file for name in _PIXELS):
        kind = getattr(file.get("SOPClassUID"), "name", "an object of unknown kind")
        raise InputError("PixelData", f"none: {kind}"[:120], "a DICOM image", _ABOUT_OTHERS)
    if "PixelData" not in file:
        raise InputError("PixelData", "pixels in floating point", "whole numbers, 8, 16 or 32 bits")
    missing = next((name for name in _NEEDED if file.get(name) in (None, "")), None)
    syntax = file.file_meta.get("TransferSyntaxUID")
    if missing is not None or syntax is None:
        name = missing or "TransferSyntaxUID"
        raise InputError(name, "none", "a DICOM image that says it, as the standard asks")
    if syntax.is_compressed:
        cure = f"Decompress it first: `{_DECODERS.get(str(syntax), 'PROGRAM')} compressed.dcm plain.dcm`."
        raise InputError("TransferSyntaxUID", str(syntax.name)[:60], "uncompressed pixels", cure)
    colours = str(file.PhotometricInterpretation).strip()
    if colours != _GREY:
        cure = _ABOUT_INVERTED if colours == "MONOCHROME1" else _ABOUT_COLOUR
        raise InputError("PhotometricInterpretation", colours[:60], f"{_GREY}: larger values brighter", cure)
    if int(file.SamplesPerPixel) != 1:
        raise InputError("SamplesPerPixel", str(file.SamplesPerPixel), "1: grey pixels")
    if "MOSAIC" in (file.get("ImageType") or []):
        got, wanted = "a mosaic of slices in one image", "one slice an image, or a volume in NIfTI"
        raise InputError("ImageType", got, wanted, "Convert the series: dcm2niix FOLDER.")
    if file.get("ModalityLUTSequence"):
        raise InputError("ModalityLUTSequence", "a table of values", "RescaleSlope and RescaleIntercept")


def _rescaled(file: Any, frames: Sequence[Mapping[str, Any]], shape: tuple[int, int]) -> Iterator[NDArray[np.float32]]:
    """Rescaled values of every frame."""
    for number, stored in enumerate(optional_package("pydicom.pixels", "export").iter_pixels(file, raw=True)):
        slope, intercept = (float(frames[number].get(name, usual)) for name, usual in _USUAL.items())
        values = np.asarray(stored).reshape(shape).astype(np.float64) * slope + intercept
        yield to_float32(f"PixelData, frame {number}", values)


def _header(file: Any, path: Path) -> dict[str, str]:
    header = {"file": path.name, "format": "DICOM"}
    kinds = "\\".join(str(word) for word in file.get("ImageType") or [])
    facts = {"modality": file.get("Modality"), "image_type": kinds}
    if maker := file.get("Manufacturer"):  # otherwise the model is that of a program
        tesla = file.get("MagneticFieldStrength")
        named = f"{maker} {file.get('ManufacturerModelName') or ''}".strip()
        facts["scanner"] = f"{named}, {tesla} T" if tesla else named
    header |= {name: str(value)[:80] for name, value in facts.items() if value}
    return header
