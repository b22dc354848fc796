"""Images as DICOM files: derived, of the patient and the study of their source, and of nobody where there is none."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.source_image import SourceImage

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
