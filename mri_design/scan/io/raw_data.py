"""Raw data in any format: the header, the acquisitions with their purposes, and the noise.

The header is the XML of ISMRMRD, read without trusting it; other formats fill in the same fields. Noise is also read
from arrays of samples that were measured without an excitation, and from the readouts of a stream.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.geometry import SourceImage
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.source import COUNTERS, ENCODING, ReadOptions, Source, counter_option
from mri_design.scan.provenance import NoiseOrigin, NoiseSamples, Provenance
from mri_design.scan.sampling import require_finite

ACQUISITION_COUNTERS = ("kspace_encode_step_1", "kspace_encode_step_2", "slice", *COUNTERS)
"""Counters of an acquisition that are used."""
_VECTORS = ("position", "phase_dir", "read_dir", "slice_dir")
HEAD = np.dtype(
    [
        *((name, "<u8") for name in ("flags", "encoding_space_ref")),
        *((name, "<i8") for name in ("number_of_samples", "active_channels", "center_sample")),
        *((name, "<i8") for name in ("discard_pre", "discard_post")),
        ("sample_time_us", "<f8"),
        ("idx", [(name, "<i8") for name in ACQUISITION_COUNTERS]),
        *((name, "<f8", (3,)) for name in _VECTORS),
    ]
)
"""Header of an acquisition, with the names of ISMRMRD, for readers of other formats."""
UNKNOWN_SIZES = "unknownSizes"
"""User parameter (a string) of headers that this package writes: axes, of "x y z", whose length is not known although
``fieldOfView_mm`` has one, as the schema requires."""
UNKNOWN_PLACE = "unknownPlace"
"""User parameter (a string) of headers that this package writes for slices of unknown place: readouts then have
directions only because other readers require them."""
FOURIER_SIGN = "fourierSign"
"""User parameter (a whole number) of headers that this package writes: the sign s in ∑ u(r) exp(2πi s k·r), which a
sample at k is, k growing along the directions that readouts give; -1 or 1."""
_MAX_ENCODINGS, _LONGEST_NAME = 64, 64
_FIELDS, _ACROSS = (2.0, 2000.0), (0.1, 2000.0)
"""Millimetres between which fields of view can be, in the plane and across it (a slice, or a slab)."""
_STRONGEST = 50.0
"""Tesla: no scanner has a stronger field."""
_COUNT = re.compile(r"[1-9][0-9]{0,4}")
_SCANNER, _BANDWIDTH = ("systemVendor", "systemModel"), "relativeReceiverNoiseBandwidth"
_ABOUT = ("subjectInformation", "studyInformation", "measurementInformation")
"""Elements whose parts have DICOM's names, except for the case of letters and the sex of the patient."""
_IDENTIFIERS = (
    *("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyDate", "StudyTime"),
    *("StudyID", "AccessionNumber", "ReferringPhysicianName", "FrameOfReferenceUID", "ProtocolName"),
    "SeriesInstanceUIDRoot",
)
_MEASURED = {"RepetitionTime": "TR", "EchoTime": "TE", "FlipAngle": "flipAngle_deg"}
"""Parameters of the sequence, which the header may give several times."""
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:\d{2})$")
_CONJUGATED = ("siemens",)
"""Names of makers whose samples are known to go with exp(2πi k·r) along the directions of their headers, see
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
        Millimetres (x, y, z); NaN if the header gives none or 0, or marks it as unknown (`UNKNOWN_SIZES`). Impossible
        lengths are taken as metres if that is possible, and otherwise count as unknown.
    doubt : (bool, tuple of float) or ()
        Impossible lengths of the header, 0 for missing ones, and whether they were taken as metres.
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
        The measured space, and the space of the image.
    centres : tuple of (int or None)
        Values of the first and second phase-encode counter at the centre of k-space; None if not in the header.
    trajectory : str
        "cartesian", "radial", ... in lower case; may be empty.
    calibration_mode : str
        Of parallel imaging: "embedded", "interleaved", "separate", "external" or "other"; may be empty.
    slices : int
        Number of slices by the limits of the slice counter; 1 without limits.
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
        """Readout positions within the field of view of the image; by default all."""
        nx, encoded, wanted = self.encoded.matrix[0], self.encoded.field_of_view[0], self.reconstructed.field_of_view[0]
        if math.isnan(encoded) or math.isnan(wanted) or wanted >= encoded:
            return slice(0, nx)
        keep = min(nx, max(4, round(nx * wanted / encoded)))
        return slice(nx // 2 - keep // 2, nx // 2 - keep // 2 + keep)

    def centre(self, step: int) -> int:
        """The phase-encode counter 1 or 2 at the centre of k-space; by default the middle."""
        centre = self.centres[step - 1]
        return self.encoded.matrix[step] // 2 if centre is None else centre


@dataclass(frozen=True)
class MrdHeader:
    """An ISMRMRD header.

    Parameters
    ----------
    encodings : tuple of MrdEncoding
        In the order of the numbers by which readouts refer to them (``encoding_space_ref``).
    noise_bandwidth : float, optional
        Share of white noise that the receiver's filter lets through, 0 to 1 (``relativeReceiverNoiseBandwidth``).
    channels : int, optional
        Receive coils (``receiverChannels``); readouts may have another number, which counts.
    source : SourceImage, optional
        Identifiers of the patient, the study and the sequence.
    wrong_identifiers : tuple of str
        DICOM's names of identifiers that DICOM does not take in the form of the header.
    vendor : str
        Maker of the scanner (``systemVendor``); may be empty.
    model, field_strength : str, float
        Of the scanner (``systemModel``, ``systemFieldStrength_T``); may be empty and NaN.
    fourier_sign : int, optional
        The sign s in ∑ u(r) exp(2πi s k·r), which samples are, k growing along the directions of readouts: by the
        header (`FOURIER_SIGN`) or its maker; None if neither settles it.
    unknown_place : bool
        Whether places and directions of readouts mean nothing (`UNKNOWN_PLACE`).
    echo_times : tuple of float
        Milliseconds, by the number of the contrast; NaN if one is not known, empty if none is.
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
        """`source` with the echo time of one contrast (counted from 0), if echo times differ."""
        if contrast >= len(self.echo_times) or sole_value(self.echo_times):
            return self.source
        known = {} if self.source is None else self.source.identifiers
        known = {**known, "EchoTime": sole_value(self.echo_times[contrast : contrast + 1])}
        return SourceImage.of_elements(known, image=False)[0]

    @property
    def unsettled(self) -> str:
        """Why the place of images is not known, although readouts give places; empty if it is known."""
        if self.fourier_sign is not None:
            return ""
        who = f"names {self.vendor!r} as the maker of the scanner" if self.vendor else "names no maker of the scanner"
        return (
            f"the header {who} (systemVendor) and has no {FOURIER_SIGN}: whether its samples go with exp(-2πi k·r) or "
            "with the conjugate along the directions that it gives is not settled, and images could be turned by half"
        )

    @property
    def notes(self) -> dict[str, str]:
        """The scanner in words, if the header names it."""
        named = " ".join(filter(None, (self.vendor, self.model)))
        field = f"{self.field_strength:.4g} T" if 0 < self.field_strength < _STRONGEST else ""
        return {"scanner": text} if (text := ", ".join(filter(None, (named, field)))) else {}

    @property
    def left_out(self) -> dict[str, tuple[Any, ...]]:
        """Impossible lengths and identifiers that were dropped, for `Provenance`."""
        image = self.encodings[0]
        facts = {"field_of_view_in_file": image.encoded.doubt or image.reconstructed.doubt}
        return {code: held for code, held in {**facts, "identifiers_left_out": self.wrong_identifiers}.items() if held}

    def encoding(self, field: str, number: int) -> MrdEncoding:
        """The encoding with a number.

        Raises
        ------
        InputError
            If the header has none with that number.
        """
        if not 0 <= number < len(self.encodings):
            wanted = f"0 to {len(self.encodings) - 1}, the encodings of the header"
            raise InputError(f"{field}: encoding_space_ref", str(number), wanted)
        return self.encodings[number]


def parse_mrd_header(field: str, text: str, limits: ReadLimits) -> MrdHeader:
    """Parse an ISMRMRD XML header.

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
        For bad XML, a document type (which could define entities that expand without bound), a missing matrix, and
        numbers that are no sizes.
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
    source, wrong = SourceImage.of_elements(_identifiers(root), image=False)
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
    """Values of the user parameters of one kind and name, stripped."""
    found = root.findall(f"userParameters/userParameter{kind}")
    return [
        (parameter.findtext("value") or "").strip()
        for parameter in found
        if (parameter.findtext("name") or "").strip() == name
    ]


def _identifiers(root: ET.Element) -> dict[str, str]:
    """Identifiers of patient, study and measurement, with DICOM's names and its form of dates and times."""
    parts = [part for about in _ABOUT for part in reversed(root.findall(f"{about}/*"))]
    held = {part.tag.lower(): (part.text or "").strip() for part in parts}
    held["patientsex"] = held.get("patientgender", "")
    found = {name: held.get(name.lower(), "") for name in _IDENTIFIERS}
    for name in ("PatientBirthDate", "StudyDate"):
        with suppress(ValueError):  # another text stays as it is
            found[name] = date.fromisoformat(_ZONE.sub("", found[name])).strftime("%Y%m%d")
    with suppress(ValueError):
        found["StudyTime"] = time.fromisoformat(found["StudyTime"]).strftime("%H%M%S.%f").rstrip("0").rstrip(".")
    return found | {name: sole_value(_sequence_values(root, parameter)) for name, parameter in _MEASURED.items()}


def _sequence_values(root: ET.Element, parameter: str) -> list[float]:
    """All values of a parameter of the sequence; NaN for texts that are no numbers."""
    return [as_number(found.text or "") for found in root.findall(f"sequenceParameters/{parameter}")]


def as_number(text: str) -> float:
    """The number in a text of a header; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def sole_value(numbers: Iterable[float]) -> str:
    """The one value of a parameter of the sequence, as DICOM writes it.

    Parameters
    ----------
    numbers : iterable of float
        Values in the header, milliseconds or degrees.

    Returns
    -------
    str
        Empty if values differ, or none is possible.
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
    """Possible fields of view: those of the header, the same in metres, or unknown; and `EncodedSpace.doubt`."""

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


Places = NDArray[np.intp]
"""Positions in the file's list of acquisitions."""
Facts = Mapping[str, tuple[Any, ...]]
Noise = tuple[NDArray[np.complex128], NoiseSamples]
"""Noise covariance E[n n^H] / 2 over channels, in the units of the samples squared, and the samples it is from."""
SAMPLES_PER_COIL = 4
"""Noise samples per channel, times the number of channels, below which no covariance is estimated."""
_MOST_NAMED = 12
# Numbers of the MRD acquisition flags; flag n is bit n - 1.
_NOISE, _CALIBRATION, _CALIBRATION_AND_IMAGING = 19, 20, 21
# Navigation, phase correction, feedback, dummy, surface-coil correction, phase stabilisation.
_NEITHER = (23, 24, 26, 27, 28, 29, 30, 31)


def kept_samples(head: NDArray[Any] | np.void, samples: NDArray[Any]) -> NDArray[Any]:
    """Samples (..., sample) of an acquisition without those that its header discards."""
    before, after = int(head["discard_pre"]), int(head["discard_post"])
    return samples[..., before : max(samples.shape[-1] - after, 0)]


def numbers_of(heads: Any, name: str) -> Any:
    """Values of a counter, or of the encoding space, in the headers of acquisitions."""
    return heads["encoding_space_ref"] if name == ENCODING else heads["idx"][name]


def has_flag(flags: NDArray[Any], number: int) -> NDArray[np.bool_]:
    """Which acquisitions, by their flags as integers, have flag ``number`` (from 1) set."""
    has: NDArray[np.bool_] = (flags.astype(np.uint64) >> np.uint64(number - 1)) & np.uint64(1) != 0
    return has


def by_flags(heads: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Which readouts are noise, calibration alone, and the image's; navigation, correction and dummies are none."""
    flags = heads["flags"]
    noise = has_flag(flags, _NOISE)
    left = ~noise & ~np.logical_or.reduce([has_flag(flags, flag) for flag in _NEITHER])
    calibration = left & has_flag(flags, _CALIBRATION) & ~has_flag(flags, _CALIBRATION_AND_IMAGING)
    return noise, calibration, left & ~calibration


@dataclass(frozen=True)
class Acquisitions:
    """The acquisitions of a file in any format: headers with the names of ISMRMRD, and samples on request.

    Parameters
    ----------
    path : Path
        The file.
    field : str
        File and list, for messages.
    header : MrdHeader
        The file's header.
    heads : structured array, shape (acquisition,)
        Headers of the acquisitions.
    format : str
        The file's format in words.
    numbers : function of (str, list of int)
        Yields (position, real numbers) as stored, of the acquisitions at some positions in the file's order: of "data",
        samples by channel, or of "traj", coordinates by sample.
    dimensions : int array, shape (acquisition,)
        Coordinates of a sample in each acquisition; 0 if it has none.
    """

    path: Path
    field: str
    header: MrdHeader
    heads: NDArray[Any]
    format: str
    numbers: Callable[[str, list[int]], Iterator[tuple[int, NDArray[Any]]]]
    dimensions: NDArray[np.intp]

    def samples(self, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.complex64]]]:
        """(position, samples (channel, sample)) of the acquisitions at some positions, in the file's order.

        Raises
        ------
        InputError
            If an acquisition has more or fewer samples than its header says, or samples that are not finite.
        """
        for at, floats in self.numbers("data", sorted(wanted)):
            shape = int(self.heads["active_channels"][at]), int(self.heads["number_of_samples"][at])
            yield at, self._checked(at, "data", floats, (*shape, 2)).view(np.complex64)[..., 0]

    def coordinates(self, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """(position, coordinates (sample, dimension)) in the same way."""
        for at, floats in self.numbers("traj", sorted(wanted)):
            shape = int(self.heads["number_of_samples"][at]), int(self.dimensions[at])
            yield at, self._checked(at, "traj", floats, shape)

    def kept(self, wanted: Places) -> Iterator[NDArray[np.complex64]]:
        """Samples (channel, sample) of the acquisitions at some positions, without those to be discarded."""
        return (kept_samples(self.heads[at], samples) for at, samples in self.samples(wanted.tolist()))

    def noise(self) -> Noise:
        """Covariance of the noise readouts with the most channels, whatever else the file holds.

        Raises
        ------
        InputError
            If they are too few, or some combination of channels holds no noise.
        """
        channels, (noise, _, _) = self.heads["active_channels"], by_flags(self.heads)
        alike = np.flatnonzero(noise & (channels == channels[noise].max(initial=0)))
        covariance, count = noise_covariance(self.kept(alike))
        if covariance is None:
            wanted = f"{SAMPLES_PER_COIL} samples or more a channel, in readouts flagged ACQ_IS_NOISE_MEASUREMENT"
            cure = "Give the samples as an array (coil, sample) in a .npy file."
            raise InputError(f"{self.field}: noise readouts", f"{count} samples in {len(alike)}", wanted, cure)
        dwell = float(np.median(self.heads["sample_time_us"][alike]))
        return covariance, NoiseSamples(samples=count, dwells=(dwell, 0.0), bandwidth=self.header.noise_bandwidth)

    def require(
        self, places: Places, good: NDArray[np.bool_], name: str, got: NDArray[Any] | str, wanted: str, cure: str = ""
    ) -> None:
        """Refuse the first acquisition at some places that is not ``good``, by a name of its header.

        Raises
        ------
        InputError
            With ``got``, one value for each acquisition or one text for all.
        """
        if not good.all():
            first = int(np.argmin(good))
            had = got if isinstance(got, str) else str(got[first])
            raise InputError(f"{self.field}[{places[first]}]: {name}", had, wanted, cure)

    def _checked(self, at: int, name: str, floats: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
        field = f"{self.field}[{at}]: {name}"
        if floats.size != math.prod(shape):
            raise InputError(field, f"{floats.size} numbers", f"{' x '.join(map(str, shape))}, by its header")
        require_finite(field, floats)
        return np.ascontiguousarray(floats, np.float32).reshape(shape)


@dataclass(frozen=True)
class Purposes:
    """The acquisitions of one series by purpose; navigation, phase correction and the like belong to none.

    Parameters
    ----------
    imaging, calibration, noise : int array, shape (acquisition,)
        Positions in the file's list. Calibration that also serves the image counts as imaging.
    encoding : MrdEncoding
        Of the image.
    left_out : mapping of str to tuple
        Readouts that belong to none, see `Provenance`.
    taken : mapping of str to (int, tuple of int)
        The value that is read of each counter, and all values in the file.
    """

    imaging: Places
    calibration: Places
    noise: Places
    encoding: MrdEncoding
    left_out: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    taken: Mapping[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def series(self) -> dict[str, tuple[int, ...]]:
        """All values of each counter."""
        return {name: numbers for name, (_, numbers) in self.taken.items()}


def sort_by_purpose(raw: Acquisitions, counters: Mapping[str, int] | None = None) -> Purposes:
    """The acquisitions of one series of images, with the noise and calibration that belong to it.

    Parameters
    ----------
    raw : Acquisitions
        Of the file.
    counters : mapping of str to int, optional
        Which contrast, phase, repetition, set and encoding to read; by default the first of each.

    Raises
    ------
    InputError
        If there is no imaging readout, none with a requested number, or no such encoding.
    """
    # First, the purpose of each readout.
    heads, wanted, taken = raw.heads, dict(counters or {}), dict[str, tuple[int, tuple[int, ...]]]()
    noise, calibration, imaging = by_flags(heads)
    skipped = int((~(noise | calibration | imaging)).sum())
    left_out: dict[str, tuple[Any, ...]] = {"readouts_skipped": (skipped, len(heads))} if skipped else {}
    if not imaging.any():
        raise InputError(raw.field, f"no imaging readout among {len(heads)}", "at least one")
    # Second, the series. Calibration may be a scan with counters of its own, so a number that it lacks is no error.
    there = {name: number for name, number in wanted.items() if (numbers_of(heads, name)[calibration] == number).any()}
    calibration, _ = _of_one_series(heads, calibration, there, COUNTERS)
    imaging, present = _of_one_series(heads, imaging, wanted, (ENCODING, *COUNTERS))
    for name, numbers in present.items():
        number = wanted.get(name, int(numbers[0]))
        if number not in numbers:
            some = ", ".join(map(str, numbers[:_MOST_NAMED])) + (", ..." if numbers.size > _MOST_NAMED else "")
            cure = f"Change {counter_option(name)}; without it the first is read."
            got, behind = f"no image with number {number}", ("encoding_space",) * (name == ENCODING)
            raise InputError(f"{raw.field}: {name}", got, f"one of {some}", cure, behind)
        taken[name] = number, tuple(map(int, numbers))
    # Third, leave out readouts with fewer channels than most have, as of a body coil; more channels are refused later.
    channels, counts = np.unique(heads["active_channels"][imaging], return_counts=True)
    usual = int(channels[counts == counts.max()].max())
    fewer = imaging & (heads["active_channels"] < usual)
    if fewer.any():
        dropped = int(fewer.sum()), int(imaging.sum()), tuple(channels[channels < usual].tolist())
        left_out["readouts_of_fewer_channels"] = (*dropped, usual)
        imaging &= ~fewer
    first = int(np.argmax(imaging))
    encoding = raw.header.encoding(f"{raw.field}[{first}]", int(heads["encoding_space_ref"][first]))
    image, maps, alone = map(np.flatnonzero, (imaging, calibration, noise))
    return Purposes(image, maps, alone, encoding, left_out, taken)


def _of_one_series(
    heads: NDArray[Any], keep: NDArray[np.bool_], wanted: Mapping[str, int], names: Sequence[str]
) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]]]:
    """Those of ``keep`` with the wanted counters and the first remaining value of the others.

    The second result has all values of each counter, up to one of which no readout is left.
    """
    present = dict[str, NDArray[Any]]()
    for name in (*wanted, *(name for name in names if name not in wanted)):
        if not keep.any():
            break
        counter = numbers_of(heads, name)
        present[name] = np.unique(counter[keep])
        keep = keep & (counter == wanted.get(name, present[name][0]))
    return keep, present


def channels_and_slices(
    raw: Acquisitions, chosen: Places, encoding: MrdEncoding, limits: ReadLimits
) -> tuple[int, NDArray[Any], NDArray[np.intp]]:
    """Number of channels of the readouts at some places, the slices that occur, and the slice of each readout.

    Raises
    ------
    InputError
        Naming the first acquisition whose channels or number of samples, both stored and kept, differ from those of the
        first, that has none, or that has a second phase encode without one in the header; and for too many channels or
        slices.
    """
    stored, before, after, channels = (
        raw.heads[name][chosen].astype(np.int64)
        for name in ("number_of_samples", "discard_pre", "discard_post", "active_channels")
    )
    kept, partition = stored - before - after, raw.heads["idx"]["kspace_encode_step_2"][chosen]
    for name, values, alike in (
        ("number_of_samples", stored, (stored == stored[0]) | (kept == kept[0])),
        ("active_channels", channels, channels == channels[0]),
    ):
        raw.require(chosen[:1], values[:1] >= 1, name, values, "at least 1")
        raw.require(chosen, alike, name, values, f"{values[0]}, as acquisition {chosen[0]}")
    few, most = channels[:1] <= limits.max_coils, f"at most {limits.max_coils}"
    raw.require(chosen[:1], few, "active_channels", channels, most)
    one = (partition == partition[0]) | encoding.volume
    raw.require(chosen, one, "kspace_encode_step_2", "a second partition", "2-D encoding")
    slices, ranks = np.unique(raw.heads["idx"]["slice"][chosen], return_inverse=True)
    if slices.size > limits.max_slices:
        raise InputError(f"{raw.field}: slices", str(slices.size), f"at most {limits.max_slices}")
    return int(channels[0]), slices, ranks


@dataclass(frozen=True)
class RawSource(Source):
    """One series of the raw data in an open file.

    Parameters
    ----------
    raw : Acquisitions
        Of the open file.
    purposes : Purposes
        Which acquisitions are read, and as what.
    options : ReadOptions
        Bounds on the grid, and the policy for lines or shots that come again.
    """

    raw: Acquisitions
    purposes: Purposes
    options: ReadOptions

    def noise(
        self, data: Places, coils: NDArray[np.intp], repeats: int, read_as: Facts, left_out: Facts
    ) -> tuple[NDArray[np.complex128] | None, Provenance]:
        """Noise covariance of the data from the noise readouts, if any, and the provenance of the data.

        Parameters
        ----------
        data : int array
            Positions of the readouts of the image.
        coils : int array, shape (coil,)
            Channels that are read.
        repeats : int
            Number of readouts that the data average, at least.
        read_as, left_out : mapping of str to tuple
            What else is known about the reading, see `Provenance`.
        """
        header, heads, noise = self.raw.header, self.raw.heads, self.purposes.noise
        dwell = heads["sample_time_us"]
        of_data = float(np.median(dwell[data])) if dwell[data[0]] > 0 else 0.0
        left_out = {**self.purposes.left_out, **header.left_out, **left_out}
        several = {name: taken for name, taken in self.purposes.taken.items() if len(taken[1]) > 1}
        known = Provenance(series=several, dwell=of_data, averages=repeats, read_as=read_as, left_out=left_out)
        if not len(noise):
            return None, known
        channels, wanted = heads["active_channels"][noise], int(heads["active_channels"][data[0]])
        alike = noise[channels == wanted]
        kept = (samples[coils] for samples in self.raw.kept(alike))
        dwells, bandwidth = (dwell[alike], dwell[data]), header.noise_bandwidth
        found, origin = covariance_of_data(kept, channels, dwells, wanted=wanted, bandwidth=bandwidth, repeats=repeats)
        return found, replace(known, noise=origin)


def noise_covariance(readouts: Iterable[NDArray[np.complex64]]) -> tuple[NDArray[np.complex128] | None, int]:
    """Covariance E[n n^H] / 2 over channels, and the number of samples of each channel that it is from.

    Parameters
    ----------
    readouts : iterable of complex arrays, shape (channel, sample)
        Noise; they may differ in length.

    Returns
    -------
    complex128 array, shape (channel, channel), or None
        Per real component, in the units of the samples squared; None if the samples are too few, or some combination of
        channels holds no noise.
    """
    total, samples = None, 0
    for readout in readouts:
        noise = readout.astype(np.complex128)
        total = noise @ noise.conj().T if total is None else total + noise @ noise.conj().T
        samples += noise.shape[1]
    if total is None or samples < SAMPLES_PER_COIL * len(total):
        return None, samples
    covariance = total / (2 * samples)
    power = np.linalg.eigvalsh(covariance)
    return (covariance if power[0] > 1e-12 * power[-1] else None), samples


def noise_of_samples(field: str, samples: NDArray[Any], channels: int) -> Noise:
    """Noise covariance from an array of samples that were measured without an excitation.

    Parameters
    ----------
    field : str
        The file or argument, for messages.
    samples : complex array
        The coils along the first axis, or along the last if only that has their number.
    channels : int
        Coils of the scan.

    Raises
    ------
    InputError
        For other arrays, samples that are not finite, too few samples, coils without noise of their own, and samples
        whose mean is most of them, as noise has no mean.
    """
    shape = samples.shape
    if samples.ndim > 1 and shape[0] != channels and shape[-1] == channels:
        samples = np.moveaxis(samples, -1, 0)
    by_coil = samples[np.newaxis] if samples.ndim == channels == 1 else samples
    if not samples.size or len(by_coil) != channels or by_coil.ndim < 2 or samples.dtype.kind != "c":
        coils = "1 coil" if channels == 1 else f"{channels} coils"
        real = samples.dtype.kind != "c"
        cure = "Join pairs of real numbers with numpy: samples[..., 0] + 1j * samples[..., 1]." if real else ""
        raise InputError(field, f"{samples.dtype} {shape}", f"complex samples ({coils}, sample)", cure)
    require_finite(field, samples)
    by_coil = by_coil.reshape(channels, -1)
    if (np.abs(by_coil.mean(axis=1)) ** 2 > np.mean(np.abs(by_coil) ** 2, axis=1) / 2).any():
        raise InputError(field, "samples that are alike", "noise, whose mean is zero", "Give samples without a signal.")
    covariance, count = noise_covariance([by_coil])
    if covariance is None:
        wanted = f"at least {SAMPLES_PER_COIL * channels}, and no coil that is silent or the copy of another"
        cure = "Measure for longer, or leave the noise samples out: noise is then estimated from the scan itself."
        raise InputError(field, f"{count} samples a coil", wanted, cure)
    return covariance, NoiseSamples(samples=count)


def noise_of_data(noise: Noise, dwell: float, averages: int) -> Noise:
    """Noise of data that average ``averages`` readouts, from noise that was measured with another dwell time.

    The variance of white noise is proportional to the bandwidth, the inverse of the dwell time. The receiver's filter
    removes some of it from the noise readouts; ``bandwidth`` is the share that it leaves.

    Parameters
    ----------
    noise : Noise
        As measured.
    dwell : float
        Dwell time of the data in the same unit; 0 if the file does not say.
    averages : int
        Number of readouts that the data average, at least.

    Notes
    -----
    Kellman and McVeigh, Magn. Reson. Med. 54 (2005) 1439-1447.
    """
    covariance, measured = noise
    scale = measured.dwells[0] / dwell if measured.dwells[0] > 0 and dwell > 0 else 1.0
    scale = (scale if measured.bandwidth is None else scale / measured.bandwidth) / averages
    return covariance * scale, replace(measured, dwells=(measured.dwells[0], dwell), averages=averages)


def covariance_of_data(
    kept: Iterable[NDArray[np.complex64]],
    channels: NDArray[np.integer],
    dwells: tuple[NDArray[Any], NDArray[Any]],
    *,
    wanted: int,
    bandwidth: float | None,
    repeats: int = 1,
) -> tuple[NDArray[np.complex128] | None, NoiseOrigin]:
    """Noise covariance of the data from the noise readouts of a file or a stream, and its origin.

    Parameters
    ----------
    kept : iterable of complex arrays, shape (coil, sample)
        The noise readouts that have the channels of the data.
    channels : int array, shape (readout,)
        Channels of all noise readouts.
    dwells : tuple of float arrays
        Dwell times of the readouts in ``kept`` and of those of the data, see `noise_of_data`.
    wanted : int
        Channels of the data.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver, see `noise_of_data`.
    repeats : int
        Number of readouts that the data average, at least.
    """
    covariance, samples = noise_covariance(kept)
    if covariance is None:
        if (channels == wanted).any():
            return None, NoiseOrigin(measured=NoiseSamples(readouts=len(channels), unused="few samples"))
        numbers = (*map(int, np.unique(channels)), wanted)
        return None, NoiseOrigin(measured=NoiseSamples(readouts=len(channels), unused="channels", channels=numbers))
    measured = NoiseSamples(
        readouts=int(np.count_nonzero(channels == wanted)),
        samples=samples,
        dwells=(float(np.median(dwells[0])), 0.0),
        bandwidth=bandwidth,
    )
    found, measured = noise_of_data((covariance, measured), float(np.median(dwells[1])), repeats)
    return found, NoiseOrigin(source="readouts", measured=measured)
