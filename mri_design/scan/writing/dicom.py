"""Images as DICOM files: derived, with nothing about a patient that was not known."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import optional_package
from mri_design.scan.geometry import SliceGeometry

__all__ = ["DicomLabels", "dicom_bytes"]

_GREYS = 65535


@dataclass(frozen=True)
class DicomLabels:
    """What a file says about its image in words.

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
    """

    series: str
    derivation: str
    study: str
    number: int = 1


def dicom_bytes(image: NDArray[np.floating], geometry: SliceGeometry | None, labels: DicomLabels) -> bytes:
    """A real image as a DICOM secondary capture of 16 bits, derived.

    Grey values times ``RescaleSlope`` are the image. Identifiers are made from the contents, so that equal images give
    equal bytes; name, number, birth date and sex of the patient are empty, as are all dates.

    Parameters
    ----------
    image : real array, shape (ky, kx)
        Not negative; rows of the file are ky.
    geometry : SliceGeometry, optional
        Pixel size, and place and directions where they are known; None leaves them out.
    labels : DicomLabels
        For people.

    Raises
    ------
    MissingPackageError
        Where pydicom is not installed.
    """
    pydicom = optional_package("pydicom", "export")
    slope = float(image.max()) / _GREYS or 1.0
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
    made.SeriesNumber, made.InstanceNumber = labels.number, 1
    made.SamplesPerPixel, made.PhotometricInterpretation, made.PixelRepresentation = 1, "MONOCHROME2", 0
    made.BitsAllocated, made.BitsStored, made.HighBit = 16, 16, 15
    made.Rows, made.Columns = pixels.shape
    made.RescaleIntercept, made.RescaleSlope, made.RescaleType = "0", f"{slope:.9e}", "US"
    made.VOILUTFunction = "LINEAR_EXACT"
    made.WindowCenter, made.WindowWidth = f"{slope * _GREYS / 2:.6e}", f"{slope * _GREYS:.6e}"
    if geometry is not None:
        made.PixelSpacing = [_decimal(size) for size in geometry.pixel]
        made.SliceThickness = _decimal(geometry.thickness)
    if geometry is not None and geometry.placed:
        _, phase, read, _ = geometry.vectors
        made.ImagePositionPatient = [_decimal(x) for x in geometry.first_pixel((pixels.shape[0], pixels.shape[1]))]
        made.ImageOrientationPatient = [_decimal(x) for x in (*read, *phase)]
        made.FrameOfReferenceUID = _identifier(b"frame", labels.study.encode())
        made.PositionReferenceIndicator = ""
    made.PixelData = pixels.tobytes()
    written = io.BytesIO()
    pydicom.dcmwrite(written, made, enforce_file_format=True)
    return written.getvalue()


def _decimal(number: float) -> str:
    return f"{float(number) + 0.0:.8g}"


def _identifier(*parts: bytes) -> str:
    """A unique identifier below 2.25, the root of those that are made of a UUID, from some content."""
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
    return f"2.25.{UUID(bytes=digest[:16], version=5).int}"
