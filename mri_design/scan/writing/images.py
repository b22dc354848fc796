"""Images and arrays in the formats of other programs, as bytes: DICOM, NIfTI-1, and BART's pairs of files.

DICOM images are derived ones, of the patient and the study of their source, and of no patient where there is none.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.geometry import THICKNESS_UNKNOWN, SliceGeometry, SourceImage

_GREYS = 65535
_LONGEST, _FEWEST_DIGITS = 64, 12
"""Characters of a unique identifier, and digits that are enough to tell one from all others below the same root."""
_COSINE_DIGITS = 6
"""Behind the point of a direction's cosines: more is the round-off of other programs, by which viewers split series."""
_OF_PLACE = ("FrameOfReferenceUID", "PositionReferenceIndicator")


@dataclass(frozen=True)
class DicomLabels:
    """Labels of an image in its file.

    Parameters
    ----------
    series : str
        What is shown, at most 64 characters, as "standard deviation".
    derivation : str
        How it was made.
    study : str
        Anything that is the same for all images of one run, from which their study gets its identifier.
    number : int
        Of the series within the study.
    instance : int
        Of the image within the series.
    source : SourceImage, optional
        The DICOM image that this one is derived from, or what the header of its raw data says.
    """

    series: str
    derivation: str
    study: str
    number: int = 1
    instance: int = 1
    source: SourceImage | None = None


def dicom_bytes(
    image: NDArray[np.floating], geometry: SliceGeometry | None, labels: DicomLabels, brightest: float | None = None
) -> bytes:
    """A real image as a DICOM secondary capture of 16 bits, derived.

    Grey values times ``RescaleSlope`` are the image. The patient, the study and, for an image whose place is known, the
    frame of reference are those of the source, which the file refers to if it is an image. What the source does not say
    is empty, and the study, then, gets an identifier that is made from the contents. Protocol, echo and repetition time
    and flip angle are those of the source, where it says them. Series and image always have identifiers of their own
    that are made from the contents, so that equal images give equal bytes; that of the series begins with the root that
    raw data give for it, if they give one that leaves room.

    Parameters
    ----------
    image : real array, shape (ky, kx)
        Rows of the file are ky.
    geometry : SliceGeometry, optional
        Pixel size, and place and directions where they are known; None leaves them out.
    labels : DicomLabels
        For people.
    brightest : float, optional
        Largest pixel of the series, so that all of it has one scale; by default that of the image.

    Raises
    ------
    MissingPackageError
        Where pydicom is not installed.
    InputError
        For negative pixels.
    """
    if image.min() < 0:
        raise InputError(field="image", got=f"pixels down to {image.min():.4g}", wanted="a magnitude: none below 0")
    pydicom = optional_package("pydicom", "export")
    slope = float(image.max() if brightest is None else brightest) / _GREYS or 1.0
    slope = float(f"{slope:.9e}")  # a decimal string of DICOM has 16 characters
    pixels = np.minimum(np.rint(image / slope), _GREYS).astype("<u2")
    kind = optional_package("pydicom.uid", "export")
    identity = _identifier(pixels.tobytes(), repr((pixels.shape, slope, geometry, labels)).encode())
    made = pydicom.Dataset()
    made.file_meta = optional_package("pydicom.dataset", "export").FileMetaDataset()
    made.file_meta.TransferSyntaxUID = kind.ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = kind.SecondaryCaptureImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = identity
    made.StudyInstanceUID = _identifier(b"study", labels.study.encode())
    made.SeriesInstanceUID = _identifier(b"series", labels.study.encode(), labels.series.encode())
    for empty in (
        *("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID"),
        *("AccessionNumber", "ReferringPhysicianName", "Laterality", "PatientOrientation"),
    ):
        setattr(made, empty, "")
    made.ImageType = ["DERIVED", "SECONDARY", "OTHER"]
    made.Modality, made.ConversionType, made.BurnedInAnnotation = "MR", "WSD", "NO"
    made.SeriesDescription, made.DerivationDescription = labels.series[:64], labels.derivation[:1024]
    made.Manufacturer, made.ManufacturerModelName = "", "mri-design"
    made.SeriesNumber, made.InstanceNumber = labels.number, labels.instance
    made.SamplesPerPixel, made.PhotometricInterpretation, made.PixelRepresentation = 1, "MONOCHROME2", 0
    made.BitsAllocated, made.BitsStored, made.HighBit = 16, 16, 15
    made.Rows, made.Columns = pixels.shape
    made.RescaleIntercept, made.RescaleSlope, made.RescaleType = "0", f"{slope:.9e}", "US"
    made.VOILUTFunction = "LINEAR_EXACT"
    made.WindowCenter, made.WindowWidth = f"{slope * _GREYS / 2:.6e}", f"{slope * _GREYS:.6e}"
    if geometry is not None:
        made.PixelSpacing = [_decimal(size) for size in geometry.pixel]
        if geometry.thickness is not None:
            made.SliceThickness = _decimal(geometry.thickness)
    if geometry is not None and geometry.placed:
        _, phase, read, _ = geometry.vectors
        made.ImagePositionPatient = [_decimal(x) for x in geometry.first_pixel((pixels.shape[0], pixels.shape[1]))]
        made.ImageOrientationPatient = [f"{round(float(x), _COSINE_DIGITS) + 0.0:.8g}" for x in (*read, *phase)]
        made.FrameOfReferenceUID = _identifier(b"frame", labels.study.encode())
        made.PositionReferenceIndicator = ""
    if labels.source is not None:
        _derive(made, labels.source, pydicom)
    made.PixelData = pixels.tobytes()
    written = io.BytesIO()
    pydicom.dcmwrite(written, made, enforce_file_format=True)
    return written.getvalue()


def _derive(made: Any, source: SourceImage, pydicom: Any) -> None:
    """Whose image it is, and which one it was made from."""
    known = dict(source.identifiers)
    root, *image = (known.pop(name, "") for name in ("SeriesInstanceUIDRoot", "SOPClassUID", "SOPInstanceUID"))
    if root:
        made.SeriesInstanceUID = _below(root, made.SeriesInstanceUID)
    for name, text in known.items():
        if "FrameOfReferenceUID" in made or name not in _OF_PLACE:
            setattr(made, name, text)
    if not all(text.isascii() for text in known.values()):
        made.SpecificCharacterSet = "ISO_IR 192"  # UTF-8
    if not source.image:
        return
    purpose, referred = pydicom.Dataset(), pydicom.Dataset()
    purpose.CodeValue, purpose.CodingSchemeDesignator = "121322", "DCM"
    purpose.CodeMeaning = "Source image for image processing operation"
    referred.ReferencedSOPClassUID, referred.ReferencedSOPInstanceUID = image
    if source.frame is not None:
        referred.ReferencedFrameNumber = source.frame
    referred.PurposeOfReferenceCodeSequence = [purpose]
    made.SourceImageSequence = [referred]


def _decimal(number: float) -> str:
    return f"{float(number) + 0.0:.8g}"


def _below(root: str, identifier: str) -> str:
    """An identifier below a root, of digits that follow from another one; that one where there is too little room."""
    room = _LONGEST - len(root) - 1
    digits = str(int.from_bytes(hashlib.sha256(identifier.encode()).digest(), "big"))
    return identifier if room < _FEWEST_DIGITS else f"{root}.{digits[:room]}"


def _identifier(*parts: bytes) -> str:
    """A unique identifier below 2.25, the root of those that are made of a UUID, from some content."""
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
    return f"2.25.{UUID(bytes=digest[:16], version=5).int}"


_NO_SIZES = SliceGeometry((1.0, 1.0), None)
_LONGEST_TEXT = 79
_SCANNER, _UNKNOWN = 1, 0
"""Codes of what an affine leads to."""


def nifti_bytes(
    image: NDArray[np.floating] | NDArray[np.complexfloating],
    geometry: SliceGeometry | None,
    description: str,
    *,
    compressed: bool = True,
) -> bytes:
    """Images as a NIfTI volume (kx, ky, slice): real ones of float32, complex ones of complex64.

    Parameters
    ----------
    image : array, shape (ky, kx), (slice, ky, kx) or (volume, slice, ky, kx)
        Magnitude, standard deviation, or coil maps, coil after coil along the file's fourth axis. Slices follow one
        another at the distance of their thickness.
    geometry : SliceGeometry
        Pixel size, and place of the first slice where it is known: only then does the file say that its affine leads to
        the scanner's coordinates. None writes sizes of 1 without a unit, which is how NIfTI leaves them unknown. A
        thickness that is not known is written as 1 mm, because a volume has some, and the description says so.
    description : str
        At most 79 characters, or 54 where the thickness is not known.
    compressed : bool
        For ``.nii.gz``; equal images give equal bytes.

    Raises
    ------
    MissingPackageError
        Where nibabel is not installed.
    """
    nibabel = optional_package("nibabel", "export")
    rows, columns = image.shape[-2:]
    kind = np.complex64 if np.iscomplexobj(image) else np.float32
    shape = image.shape if image.ndim == 4 else (-1, rows, columns)
    volume = np.ascontiguousarray(image.reshape(shape).T, dtype=kind)
    affine = (geometry or _NO_SIZES).affine((rows, columns))
    made = nibabel.Nifti1Image(volume, affine)
    code = _SCANNER if geometry is not None and geometry.placed else _UNKNOWN
    made.set_sform(affine, code)
    made.set_qform(affine, code)
    made.header.set_xyzt_units("unknown" if geometry is None else "mm")
    unsaid = f"; {THICKNESS_UNKNOWN}" if geometry is not None and geometry.thickness is None else ""
    made.header["descrip"] = (description[: _LONGEST_TEXT - len(unsaid)] + unsaid).encode("ascii", "replace")
    made.header["cal_max"] = float(np.abs(volume).max())
    content: bytes = made.to_bytes()
    return gzip.compress(content, mtime=0) if compressed else content


_DIMENSIONS, _SLICE = 16, 13


def stacked_slices(slices: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Arrays of BART's first four axes, one of each slice, as one array whose 14th axis is the slice."""
    first, *_ = slices
    return np.stack(slices, axis=-1).reshape(*first.shape, *[1] * (_SLICE - first.ndim), len(slices))


def pair_files(stem: Path, array: NDArray[np.generic]) -> dict[Path, bytes]:
    """BART's NAME.hdr and NAME.cfl with their contents: the array as complex64.

    Parameters
    ----------
    stem : Path
        NAME.
    array : array of at most 16 axes
        In BART's order: readout, phase encoding, second phase encoding, coil, ...
    """
    sizes = [*array.shape, *[1] * (_DIMENSIONS - array.ndim)]
    header = f"# Dimensions\n{' '.join(map(str, sizes))}\n# Creator\nmri-design\n"
    samples = np.asarray(array, dtype="<c8").tobytes(order="F")
    return {stem.with_name(f"{stem.name}.hdr"): header.encode(), stem.with_name(f"{stem.name}.cfl"): samples}
