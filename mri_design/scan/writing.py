"""Scans, images and designs in the formats of other programs, as bytes: ISMRMRD, DICOM, NIfTI-1, and BART's pairs.

DICOM images are derived images with the patient and the study of their source, if there is one.
ISMRMRD files hold scans, or the headers and empty readouts of a design.
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
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import THICKNESS_UNKNOWN, SliceGeometry, SourceImage
from mri_design.scan.io.raw_data import FOURIER_SIGN, UNKNOWN_PLACE, UNKNOWN_SIZES
from mri_design.templates import environment

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
        The DICOM image that this one is derived from, or the identifiers in the header of its raw data.
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
    frame of reference are those of the source, which the file refers to if it is an image. What it does not state
    stays empty; the study then gets an identifier that is made from the contents. Protocol, echo and repetition time
    and flip angle are those of the source, if it states them. Series and image always have identifiers of their own
    that are made from the contents, so that equal images give equal bytes; that of the series begins with the root that
    raw data give for it, if they give a root that leaves room.

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
        raise InputError("image", f"pixels down to {image.min():.4g}", "a magnitude: none below 0")
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
    """A unique identifier below 2.25, the root of identifiers made of a UUID, from some content."""
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
        Pixel size, and place of the first slice where it is known: only then does the file mark its affine as that of
        the scanner's coordinates. None writes sizes of 1 without a unit, which is how NIfTI leaves them unknown. A
        thickness that is not known is written as 1 mm, because a volume needs one, and the description notes it.
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
    made.header["cal_max"] = float(np.nanmax(np.abs(volume)))
    content: bytes = made.to_bytes()
    return gzip.compress(content, mtime=0) if compressed else content


_DIMENSIONS, _SLICE = 16, 13


def stacked_slices(slices: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Arrays of BART's first four axes, one of each slice, as one array whose 14th axis is the slice; one stays so."""
    first, *others = slices
    if not others:
        return first
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


_FIRST_IN_SLICE, _LAST_IN_SLICE, _NOISE, _LAST_IN_MEASUREMENT = (np.uint64(1 << (n - 1)) for n in (7, 8, 19, 25))
"""Flags of readouts."""
_NOISE_SAMPLES = 8
"""Of a noise readout for every coil."""
_MOST = 65535  # the labels have 16 bits
_MASK_BITS, _MOST_COILS = 64, 1024


Places = Sequence[SliceGeometry | None]
"""Size of pixels, the same for all, and place of every slice; None if unknown."""


def _placed(places: Places) -> bool:
    """Whether the place of every slice is known."""
    return all(place is not None and place.placed for place in places)


def mrd_header(shape: tuple[int, int], places: Places, partitions: int = 1, shots: int = 1, echoes: int = 1) -> str:
    """The XML header of a file.

    What is not known is written as 1 mm, because the schema requires a number, and marked as unknown (`UNKNOWN_SIZES`).
    Without a place of every slice, all have the directions of the identity and lie at the origin, because readers ask
    for directions, and the header marks these as meaningless (`UNKNOWN_PLACE`).

    Parameters
    ----------
    shape : tuple of int
        Grid (ky, kx).
    places : sequence of (SliceGeometry or None)
        Of every slice.
    partitions : int
        Of a volume, along kz; 1 for slices.
    shots, echoes : int
        Echo trains, and lines of the longest one.

    Raises
    ------
    InputError
        For a grid or numbers that the labels cannot hold, and for slices with pixels of different sizes.
    """
    if max(*shape, shots, partitions, len(places)) > _MOST:
        got = f"{shape}, {shots} trains, {len(places)} slices, {partitions} partitions"
        raise InputError("grid", got, f"at most {_MOST} along each")
    if len({None if place is None else (place.pixel, place.thickness) for place in places}) != 1:
        raise InputError("geometry", "slices with pixels of different sizes", "one size")
    (n_y, n_x), place = shape, places[0]
    pixel, thickness = ((1.0, 1.0), None) if place is None else (place.pixel, place.thickness)
    extents = (n_x * pixel[1], n_y * pixel[0], partitions * (thickness or 1.0))
    unknown = {
        UNKNOWN_SIZES: "x y z" if place is None else "z" if thickness is None else "",
        UNKNOWN_PLACE: "" if _placed(places) else "directions",
    }
    sizes = {"n_x": n_x, "n_y": n_y, "n_z": partitions, "extents": extents, "slices": len(places)}
    template = environment("mri_design.scan", keep_trailing_newline=True).get_template("mrd_header.xml.j2")
    return template.render(**sizes, shots=shots, echoes=echoes, sign=FOURIER_SIGN, unknown=unknown)


def readout_heads(
    shape: tuple[int, int], places: Places, lines: Sequence[tuple[int, int]], coils: int = 1, *, noise: bool = False
) -> NDArray[Any]:
    """Headers of readouts of full length.

    What is not known is zero: the dwell time and, without a place, the position; directions are then the identity.

    Parameters
    ----------
    shape, places
        As for `mrd_header`.
    lines : sequence of (slice, line)
        In the order of measurement, all of a slice in one run.
    coils : int
        Receive channels.
    noise : bool
        Whether they hold noise alone, and have no centre.

    Returns
    -------
    structured array, shape (readout,)

    Raises
    ------
    InputError
        For more coils than a header can name.
    """
    from ismrmrd.hdf5 import acquisition_header_dtype  # here and below: the import takes longer than the others

    if coils > _MOST_COILS:
        raise InputError("coils", str(coils), f"at most {_MOST_COILS}")
    slices = np.array([number for number, _ in lines])
    heads = np.zeros(len(lines), dtype=acquisition_header_dtype)
    heads["version"], heads["scan_counter"] = 1, np.arange(len(lines))
    heads["number_of_samples"], heads["center_sample"] = shape[1], shape[1] // 2
    heads["available_channels"] = heads["active_channels"] = coils
    for coil in range(coils):
        heads["channel_mask"][:, coil // _MASK_BITS] |= np.uint64(1 << coil % _MASK_BITS)
    heads["idx"]["kspace_encode_step_1"] = [line for _, line in lines]
    heads["idx"]["slice"] = slices
    ends = np.flatnonzero(np.diff(slices))
    heads["flags"][[0, *(ends + 1)]] |= _FIRST_IN_SLICE
    heads["flags"][[*ends, -1]] |= _LAST_IN_SLICE
    heads["flags"][-1] |= _LAST_IN_MEASUREMENT
    if noise:
        heads["flags"], heads["center_sample"] = _NOISE, 0
    for number, place in enumerate(places):
        vectors = (place if place is not None and _placed(places) else _NO_SIZES).vectors
        for name, vector in zip(("position", "phase_dir", "read_dir", "slice_dir"), vectors, strict=True):
            heads[name][slices == number] = vector
    return heads


def mrd_file_bytes(header: str, heads: NDArray[Any], samples: Sequence[NDArray[np.complexfloating]]) -> bytes:
    """The file.

    Parameters
    ----------
    header : str
        Of `mrd_header`.
    heads : structured array, shape (readout,)
        Of `readout_heads`.
    samples : sequence of complex arrays, shape (coil, sample)
        Of every readout.
    """
    import h5py
    from ismrmrd.hdf5 import acquisition_dtype

    readouts = np.empty(len(heads), dtype=acquisition_dtype)
    readouts["head"] = heads
    for readout, measured in zip(readouts, samples, strict=True):
        readout["traj"] = np.zeros(0, np.float32)
        readout["data"] = np.ascontiguousarray(measured, dtype=np.complex64).reshape(-1).view(np.float32)
    written, text = io.BytesIO(), h5py.special_dtype(vlen=bytes)
    with h5py.File(written, "w") as file:
        file.create_dataset("dataset/data", data=readouts, maxshape=(None,), chunks=(min(len(heads), 64),))
        file.create_dataset("dataset/xml", data=np.array([header.encode()], dtype=text))
    return written.getvalue()


def mrd_scan_bytes(scan: KSpaceData, places: Sequence[SliceGeometry] | None) -> bytes:
    """An MRD file with one readout for every measured line, slice by slice and line by line.

    Columns that are empty at one end of all readouts are left out, as a scanner leaves them out of a partial echo:
    ``center_sample`` is the sample of DC. The order in which lines were measured is not known, nor are the resonance
    frequency and the dwell time, which are zero. Without a place, directions are the identity, marked as unknown.

    Parameters
    ----------
    scan : KSpaceData
        Slices may hold lines of their own. A covariance of the noise becomes a noise readout that has exactly it. Coil
        maps, noise variance, calibration scan and reference have no place in such a file.
    places : sequence of SliceGeometry, optional
        Of every slice. None if the size of pixels is unknown: the file then has 1 mm, marked as unknown.

    Raises
    ------
    InputError
        For pixels of different sizes, and what the labels cannot hold.
    """
    held = np.stack([sampling.samples for sampling in scan.samplings])
    lines = [(int(number), int(line)) for number, line in np.argwhere(held.any(axis=2))]
    shape, known = scan.grid_shape, (None,) * scan.n_slices if places is None else places
    header, heads = mrd_header(shape, known), readout_heads(shape, known, lines, scan.n_coils)
    columns, centre = np.flatnonzero(held.any(axis=(0, 1))), scan.grid_shape[1] // 2
    window = slice(min(int(columns[0]), centre), max(int(columns[-1]), centre) + 1)
    heads["number_of_samples"], heads["center_sample"] = window.stop - window.start, centre - window.start
    readouts = [scan.kspace[number, :, line, window] for number, line in lines]
    if scan.noise_covariance is not None:
        noise = noise_with(scan.noise_covariance)
        head = readout_heads(shape, known, lines[:1], scan.n_coils, noise=True)
        head["number_of_samples"] = noise.shape[1]
        heads, readouts = np.concatenate([head, heads]), [noise, *readouts]
        heads["scan_counter"] = np.arange(len(heads))
    return mrd_file_bytes(header, heads, readouts)


def noise_with(covariance: NDArray[np.complex128]) -> NDArray[np.complex64]:
    """Samples (coil, sample) whose covariance E[n n^H] / 2 is exactly this one."""
    coils, count = len(covariance), _NOISE_SAMPLES * len(covariance)
    power, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(power, 0))
    waves = np.exp(2j * np.pi * np.outer(np.arange(1, coils + 1), np.arange(count)) / count)  # orthogonal rows
    return np.asarray(np.sqrt(2) * (root @ waves), dtype=np.complex64)


def mrd_skeleton_bytes(
    trains: Sequence[Sequence[int]], shape: tuple[int, int], geometry: SliceGeometry | None, partitions: int = 1
) -> bytes:
    """An MRD file with one readout of zeros for every line, or sample of a plane, in the order of measurement.

    ``kspace_encode_step_1`` is the line, ``segment`` the echo train, and the header has the matrix, the field of view
    and the centre of k-space. Of a plane ``kspace_encode_step_1`` is the row ky and ``kspace_encode_step_2`` the column
    kz, and there are no segments. What a design does not know is zero: the resonance frequency and the dwell time.
    Without a place, directions are the identity, marked as unknown.

    Parameters
    ----------
    trains : sequence of sequences of int
        Lines of every echo train, numbered from 0; of a plane samples, numbered row by row.
    shape : tuple of int
        Grid (ky, kx).
    geometry : SliceGeometry or None
        Pixel size, and place where it is known. None writes 1 mm, marked as not known.
    partitions : int
        Columns kz of a plane; 1 for lines.

    Raises
    ------
    InputError
        For a grid or a number of trains that the labels cannot hold.
    """
    lines, columns = np.divmod([number for train in trains for number in train], partitions)
    of_trains = {"shots": len(trains), "echoes": max(map(len, trains))} if partitions == 1 else {}
    header = mrd_header(shape, (geometry,), partitions, **of_trains)
    heads = readout_heads(shape, (geometry,), [(0, line) for line in lines])
    heads["idx"]["kspace_encode_step_2"] = columns
    if of_trains:
        heads["idx"]["segment"] = [shot for shot, train in enumerate(trains) for _ in train]
    return mrd_file_bytes(header, heads, [np.zeros((1, shape[1]), np.complex64)] * len(heads))
