"""The parts of an ISMRMRD XML header that place readouts, read without trusting it."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import date, time
from typing import Any

from mri_design.errors import InputError
from mri_design.scan.geometry import SourceImage
from mri_design.scan.io.safe import ReadLimits

UNKNOWN_SIZES = "unknownSizes"
"""User parameter (a string) of headers that this package writes: axes, of "x y z", along which ``fieldOfView_mm`` has a
number only because the schema asks for one, and the length is not known."""
UNKNOWN_PLACE = "unknownPlace"
"""User parameter (a string) of headers that this package writes where nobody says where slices lie: readouts then have
directions only because other readers ask for some."""
FOURIER_SIGN = "fourierSign"
"""User parameter (a whole number) of headers that this package writes: the sign s in ∑ u(r) exp(2πi s k·r), which a
sample at k is, k growing along the directions that readouts give; -1 or 1."""
_MAX_ENCODINGS, _LONGEST_NAME = 64, 64
_FIELDS, _ACROSS = (2.0, 2000.0), (0.1, 2000.0)
"""Millimetres between which fields of view can be, in the plane and across it (a slice, or a slab)."""
_STRONGEST = 50.0
"""Tesla: what is said beyond is no field of a scanner."""
_COUNT = re.compile(r"[1-9][0-9]{0,4}")
_SCANNER, _BANDWIDTH = ("systemVendor", "systemModel"), "relativeReceiverNoiseBandwidth"
_ABOUT = ("subjectInformation", "studyInformation", "measurementInformation")
"""Elements whose parts are called as in DICOM, but for the case of letters and the sex of the patient."""
_IDENTIFIERS = (
    *("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyDate", "StudyTime"),
    *("StudyID", "AccessionNumber", "ReferringPhysicianName", "FrameOfReferenceUID", "ProtocolName"),
    "SeriesInstanceUIDRoot",
)
_MEASURED = {"RepetitionTime": "TR", "EchoTime": "TE", "FlipAngle": "flipAngle_deg"}
"""Parameters of the sequence, of which the header may have several."""
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:\d{2})$")
_CONJUGATED = ("siemens",)
"""How names of makers begin whose samples are known to go with exp(2πi k·r) along the directions of their headers, see
docs/left-and-right.md."""
_ZERO = re.compile(r"[+-]?0+(?:\.0*)?(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class EncodedSpace:
    """One matrix of the header.

    Parameters
    ----------
    matrix : tuple of int
        Samples (x, y, z): readout, phase encode, partition.
    field_of_view : tuple of float
        Millimetres (x, y, z); NaN where the header gives none or 0, or says that it is not known (`UNKNOWN_SIZES`).
        What cannot be is taken as metres where that can be, and counts as unknown otherwise.
    doubt : (bool, tuple of float) or ()
        Lengths of the header that cannot be, 0 where it gives none, and whether they were taken as metres.
    """

    matrix: tuple[int, int, int]
    field_of_view: tuple[float, float, float]
    doubt: tuple[()] | tuple[bool, tuple[float, ...]] = ()


@dataclass(frozen=True)
class MrdEncoding:
    """One encoding of an ISMRMRD header: the image, or a scan that serves its calibration.

    Parameters
    ----------
    encoded, reconstructed : EncodedSpace
        What was measured and what the image is cut to.
    centres : tuple of (int or None)
        Values of the first and second phase-encode counter at the centre of k-space; None where the header gives none.
    trajectory : str
        "cartesian", "radial", ... in lower case; empty where the header gives none.
    calibration_mode : str
        Of parallel imaging: "embedded", "interleaved", "separate", "external" or "other"; empty where there is none.
    slices : int
        As many as the limits of the slice counter announce; 1 where the header gives none.
    """

    encoded: EncodedSpace
    reconstructed: EncodedSpace
    centres: tuple[int | None, int | None]
    trajectory: str
    calibration_mode: str = ""
    slices: int = 1

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return self.encoded.matrix[2] > 1

    @property
    def columns(self) -> slice:
        """Readout positions within the field of view of the image; all where the header does not say otherwise."""
        nx, encoded, wanted = self.encoded.matrix[0], self.encoded.field_of_view[0], self.reconstructed.field_of_view[0]
        if math.isnan(encoded) or math.isnan(wanted) or wanted >= encoded:
            return slice(0, nx)
        keep = min(nx, max(4, round(nx * wanted / encoded)))
        return slice(nx // 2 - keep // 2, nx // 2 - keep // 2 + keep)

    def centre(self, step: int) -> int:
        """The phase-encode counter 1 or 2 at the centre of k-space; the middle where the header gives none."""
        centre = self.centres[step - 1]
        return self.encoded.matrix[step] // 2 if centre is None else centre


@dataclass(frozen=True)
class MrdHeader:
    """An ISMRMRD header.

    Parameters
    ----------
    encodings : tuple of MrdEncoding
        Readouts name theirs by its place (``encoding_space_ref``).
    noise_bandwidth : float, optional
        Noise that the receiver's filter lets through over that of white noise, 0 to 1
        (``relativeReceiverNoiseBandwidth``); None where the header gives none.
    channels : int, optional
        Receive coils (``receiverChannels``); None where the header gives no count. Readouts have the last word.
    source : SourceImage, optional
        Identifiers of the patient, the study and the sequence; None where the header does not say.
    wrong_identifiers : tuple of str
        Names, as DICOM has them, of what the header says of that in a form that DICOM does not take.
    vendor : str
        Who made the scanner (``systemVendor``); empty where the header does not say.
    model, field_strength : str, float
        Of the scanner (``systemModel``, ``systemFieldStrength_T``); empty and NaN where the header does not say.
    fourier_sign : int, optional
        The sign s with which samples go, ∑ u(r) exp(2πi s k·r), k growing along the directions of readouts: what the
        header says (`FOURIER_SIGN`), or what is known of its maker; None where that is not settled.
    unknown_place : bool
        Whether the header says that places and directions of readouts mean nothing (`UNKNOWN_PLACE`).
    echo_times : tuple of float
        Milliseconds, by the number of the contrast; NaN where one is not known, empty where none is.
    """

    encodings: tuple[MrdEncoding, ...]
    noise_bandwidth: float | None = None
    _: KW_ONLY
    channels: int | None = None
    source: SourceImage | None = None
    wrong_identifiers: tuple[str, ...] = ()
    vendor: str = ""
    model: str = ""
    field_strength: float = math.nan
    fourier_sign: int | None = None
    unknown_place: bool = False
    echo_times: tuple[float, ...] = ()

    def source_of(self, contrast: int) -> SourceImage | None:
        """`source`, with the echo time of one contrast (echo, counted from 0) where echo times differ."""
        if contrast >= len(self.echo_times) or sole_value(self.echo_times):
            return self.source
        said = {} if self.source is None else self.source.identifiers
        return SourceImage.of_raw_data({**said, "EchoTime": sole_value(self.echo_times[contrast : contrast + 1])})[0]

    @property
    def unsettled(self) -> str:
        """Why nobody can tell where images lie, however well readouts say where; empty where it can be told."""
        if self.fourier_sign is not None:
            return ""
        who = f"names {self.vendor!r} as the maker of the scanner" if self.vendor else "names no maker of the scanner"
        return (
            f"the header {who} (systemVendor) and has no {FOURIER_SIGN}: whether its samples go with exp(-2πi k·r) or "
            "with the conjugate along the directions that it gives is not settled, and images could be turned by half"
        )

    @property
    def notes(self) -> dict[str, str]:
        """For a header: the scanner, where it is named."""
        named = " ".join(filter(None, (self.vendor, self.model)))
        field = f"{self.field_strength:.4g} T" if 0 < self.field_strength < _STRONGEST else ""
        return {"scanner": text} if (text := ", ".join(filter(None, (named, field)))) else {}

    @property
    def left_out(self) -> dict[str, tuple[Any, ...]]:
        """Lengths that cannot be, and identifiers that were not kept, as `Provenance` has them."""
        image = self.encodings[0]
        facts = {"field_of_view_in_file": image.encoded.doubt or image.reconstructed.doubt}
        return {code: held for code, held in {**facts, "identifiers_left_out": self.wrong_identifiers}.items() if held}

    def encoding(self, field: str, number: int) -> MrdEncoding:
        """The encoding that readouts call ``number``.

        Raises
        ------
        InputError
            Where the header has none of that number.
        """
        if not 0 <= number < len(self.encodings):
            wanted = f"0 to {len(self.encodings) - 1}, the encodings of the header"
            raise InputError(f"{field}: encoding_space_ref", str(number), wanted)
        return self.encodings[number]


def parse_mrd_header(field: str, text: str, limits: ReadLimits) -> MrdHeader:
    """The encodings of an ISMRMRD XML header.

    Parameters
    ----------
    field : str
        File and dataset, for messages.
    text : str
        The XML.
    limits : ReadLimits
        Matrix sizes must lie within ``max_side``.

    Raises
    ------
    InputError
        On bad XML, a document type (which could define entities that expand without bound), a missing
        matrix, and numbers that are not sizes.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(field, "XML with a document type", "a plain ISMRMRD header")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise InputError(field, f"bad XML ({error})", "an ISMRMRD header") from error
    for element in root.iter():  # whatever the namespace
        element.tag = element.tag.rpartition("}")[2]
    encodings = root.findall("encoding")
    if not 1 <= len(encodings) <= _MAX_ENCODINGS:
        wanted = f"an ISMRMRD header with 1 to {_MAX_ENCODINGS} encodings"
        raise InputError(field, f"{len(encodings) or 'no'} <encoding>", wanted)

    system = {part.tag: part.text or "" for part in reversed(root.findall("acquisitionSystemInformation/*"))}
    vendor, model = (" ".join(system.get(name, "").split())[:_LONGEST_NAME] for name in _SCANNER)
    bandwidth = system.get(_BANDWIDTH)
    sign = set(_user_values(root, "Long", FOURIER_SIGN))
    if sign and sign not in ({"-1"}, {"1"}):
        got, wanted = ", ".join(sorted(sign))[:40], "-1 or 1: the sign of samples' exp(2πi s k·r)"
        raise InputError(f"{field}: {FOURIER_SIGN}", got, wanted)
    known_sign = 1 if vendor.lower().startswith(_CONJUGATED) else None
    share, place = "a share above 0, 1 at most", f"{field}: {_BANDWIDTH}"
    unknown = {axis for value in _user_values(root, "String", UNKNOWN_SIZES) for axis in value.split()}
    unknown = unknown if unknown <= set("xyz") else set()
    source, wrong = SourceImage.of_raw_data(_identifiers(root))
    return MrdHeader(
        tuple(
            _encoding(field if not i else f"{field}: encoding {i}", encoding, limits, unknown)
            for i, encoding in enumerate(encodings)
        ),
        None if bandwidth is None else _number(place, bandwidth, 1 + 1e-6, share),
        channels=int(channels) if _COUNT.fullmatch(channels := system.get("receiverChannels", "")) else None,
        source=source,
        wrong_identifiers=wrong,
        vendor=vendor,
        model=model,
        field_strength=as_number(system.get("systemFieldStrength_T", "")),
        fourier_sign=int(sign.pop()) if sign else known_sign,
        unknown_place=bool(_user_values(root, "String", UNKNOWN_PLACE)),
        echo_times=tuple(_sequence_values(root, _MEASURED["EchoTime"])),
    )


def _user_values(root: ET.Element, kind: str, name: str) -> list[str]:
    """Values of the user parameters of one kind and name, with no spaces around them."""
    found = root.findall(f"userParameters/userParameter{kind}")
    return [
        (parameter.findtext("value") or "").strip()
        for parameter in found
        if (parameter.findtext("name") or "").strip() == name
    ]


def _identifiers(root: ET.Element) -> dict[str, str]:
    """Identifiers of patient, study and measurement, by DICOM's names and with dates and times in its form."""
    parts = [part for about in _ABOUT for part in reversed(root.findall(f"{about}/*"))]
    held = {part.tag.lower(): (part.text or "").strip() for part in parts}
    held["patientsex"] = held.get("patientgender", "")
    said = {name: held.get(name.lower(), "") for name in _IDENTIFIERS}
    for name in ("PatientBirthDate", "StudyDate"):
        with suppress(ValueError):  # another text stays as it is
            said[name] = date.fromisoformat(_ZONE.sub("", said[name])).strftime("%Y%m%d")
    with suppress(ValueError):
        said["StudyTime"] = time.fromisoformat(said["StudyTime"]).strftime("%H%M%S.%f").rstrip("0").rstrip(".")
    return said | {name: sole_value(_sequence_values(root, parameter)) for name, parameter in _MEASURED.items()}


def _sequence_values(root: ET.Element, parameter: str) -> list[float]:
    """All values of a parameter of the sequence; NaN for those that are no numbers."""
    return [as_number(found.text or "") for found in root.findall(f"sequenceParameters/{parameter}")]


def as_number(text: str) -> float:
    """The number that a text of a header says; NaN where it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def sole_value(numbers: Iterable[float]) -> str:
    """The one value of a parameter of the sequence, as DICOM writes it.

    Parameters
    ----------
    numbers : iterable of float
        What a header says: milliseconds or degrees.

    Returns
    -------
    str
        Empty where values differ, and where there is none or one that means nothing.
    """
    distinct = set(numbers)
    number = distinct.pop() if len(distinct) == 1 else math.nan
    return f"{number:.9g}" if 1e-3 <= number < 1e6 else ""


def _encoding(field: str, encoding: ET.Element, limits: ReadLimits, unknown: set[str]) -> MrdEncoding:
    """One encoding; lengths along ``unknown`` axes are not known."""

    def limit(counter: str, which: str) -> int | None:
        text = encoding.findtext(f"encodingLimits/{counter}/{which}")
        return None if text is None else _whole(f"{field}: {counter}.{which}", text, 0, 65535)

    def space(name: str) -> EncodedSpace:
        sizes, lengths = list[int](), list[float]()
        for axis in "xyz":
            size = encoding.findtext(f"{name}/matrixSize/{axis}")
            if size is None:
                raise InputError(f"{field}: {name}.matrixSize", "nothing", "x, y and z")
            sizes.append(_whole(f"{field}: {name}.matrixSize.{axis}", size, 1, limits.max_side))
        for axis in "xyz":
            text = encoding.findtext(f"{name}/fieldOfView_mm/{axis}")
            if axis in unknown or text is None or _ZERO.fullmatch(text.strip()):  # writers leave 0 that know none
                lengths.append(math.nan)
            else:
                wanted = "a positive length in millimetres, or 0 where it is not known"
                lengths.append(_number(f"{field}: {name}.fieldOfView_mm.{axis}", text, 1e6, wanted))
        return EncodedSpace((sizes[0], sizes[1], sizes[2]), *_possible((lengths[0], lengths[1], lengths[2])))

    return MrdEncoding(
        encoded=space("encodedSpace"),
        reconstructed=space("reconSpace"),
        centres=(limit("kspace_encoding_step_1", "center"), limit("kspace_encoding_step_2", "center")),
        trajectory=(encoding.findtext("trajectory") or "").strip().lower(),
        calibration_mode=(encoding.findtext("parallelImaging/calibrationMode") or "").strip().lower(),
        slices=(limit("slice", "maximum") or 0) + 1,
    )


def _possible(lengths: tuple[float, float, float]) -> tuple[tuple[float, float, float], Any]:
    """Fields of view that can be: those of the header, the same in metres, or unknown; and what is to be said of it."""

    def can_be(factor: float) -> list[bool]:
        limits = (_FIELDS, _FIELDS, _ACROSS)
        return [math.isnan(v) or low <= factor * v <= high for v, (low, high) in zip(lengths, limits, strict=True)]

    if all(can_be(1)):
        return lengths, ()
    metres = not all(can_be(1)[:2]) and all(can_be(1e3))
    goods, factor = (can_be(1e3), 1e3) if metres else (can_be(1), 1.0)
    x, y, z = (factor * length if good else math.nan for length, good in zip(lengths, goods, strict=True))
    return (x, y, z), (metres, tuple(0.0 if math.isnan(length) else length for length in lengths))


def _whole(field: str, text: str, low: int, high: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and low <= int(digits) <= high):
        raise InputError(field, repr(text[:40]), f"a whole number from {low} to {high}")
    return int(digits)


def _number(field: str, text: str, most: float, wanted: str) -> float:
    number = as_number(text)
    if not 0 < number < most:
        raise InputError(field, repr(text[:40]), wanted)
    return number
