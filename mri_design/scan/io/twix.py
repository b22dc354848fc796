"""Siemens raw data (twix, .dat) of the software lines VB, VD, VE and XA: Cartesian slices and volumes.

Files of VE and XA have the layout of VD. twixtools gives the layouts of the binary headers. Its own reader loads all
samples when it opens a file, so readouts are found here; they become acquisitions with the names, counters and flags
of ISMRMRD.

A measurement's header holds the protocol twice: as assignments (``sKSpace.lBaseResolution = 160``) and as nested
parameters (``<ParamLong."iNoOfFourierLines"> { 160 }``). Only the needed values are read.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.geometry import SourceImage
from mri_design.scan.io import raw_data
from mri_design.scan.io.mrd_cartesian import CartesianSource
from mri_design.scan.io.raw_data import Acquisitions, EncodedSpace, MrdEncoding, MrdHeader
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.source import CORRECT_ECHOES, Loaded, ReadOptions, Source

_MOST_MEASUREMENTS, _ENTRY = 64, struct.Struct("<IIQQ64s64s")
"""Entry of the list of measurements at the start of a file of VD or later: number, file, place, length, two names."""
_SMALLEST_VB_HEADER = 10_000
_FIRST_TEXT = re.compile(rb"\w{4,40}\x00")
_LENGTH_BITS = 2**25 - 1
_COPY_AGAIN = "The file is cut short: copy or download it again."
_SEPARATE = "Separate the slices, and write them as ISMRMRD."
_CONVERT = "Convert it to ISMRMRD, with the centre (center_sample) and, off the grid, the coordinates (traj)."


@dataclass(frozen=True)
class Measurement:
    """One measurement of a file.

    Parameters
    ----------
    field : str
        File and measurement, for messages.
    end : int
        Where it ends in the file.
    text : str
        Its header: the protocol as the scanner wrote it.
    data : int
        Where its first readout begins.
    several_headers : bool
        Whether each channel of a readout follows a whole header (VB) or a short one (VD and later).
    limits : ReadLimits
        Sizes must lie within ``max_side``, and there are at most ``max_readouts``.
    """

    field: str
    end: int
    text: str
    data: int
    several_headers: bool
    limits: ReadLimits

    @property
    def layouts(self) -> tuple[np.dtype[Any], int, int]:
        """The header of a readout, and the bytes of headers before its channels and before each of them."""
        known = optional_package("twixtools.mdh_def", "twix")
        if self.several_headers:
            return (whole := np.dtype(known.VB17_header)), 0, whole.itemsize
        return (whole := np.dtype(known.Scan_header)), whole.itemsize, np.dtype(known.Channel_header).itemsize

    def text_of(self, name: str) -> str:
        """The text, of up to 256 characters, in quotation marks behind ``name =``; may be empty."""
        return self._behind(rf'^{re.escape(name)}[ \t]*=[ \t]*"{{1,2}}([^"\r\n]{{1,256}})"').strip()

    def series(self, name: str) -> dict[int, float]:
        """The numbers behind ``name[0] =``, ``name[1] =``, ..., by index; NaN for what is no number."""
        found = re.finditer(rf"^{re.escape(name)}\[(\d{{1,4}})\]{_VALUE}", self.text, re.MULTILINE | re.ASCII)
        numbers: dict[int, float] = {}
        for one in found:  # headers contain a protocol more than once
            numbers.setdefault(int(one[1]), raw_data.as_number(one[2]))
        return numbers

    def whole(self, name: str, default: int | None = None, largest: int | None = None) -> int:
        """The whole number behind ``name =``, decimal or hexadecimal; at least 1 if it has no default."""
        word, most = self._behind(rf"^{re.escape(name)}{_VALUE}"), self.limits.max_side if largest is None else largest
        if not word and default is not None:
            return default
        number, least = int(word, 0) if _WHOLE.fullmatch(word) else -1, int(default is None)
        if not least <= number <= most:
            got = repr(word) if word else "nothing"
            raise InputError(f"{self.field}: {name}", got, f"a whole number from {least} to {most}")
        return number

    def real(self, name: str, default: float, least: float, most: float) -> float:
        """The number behind ``name =``, within bounds."""
        return self._bounded(name, self._behind(rf"^{re.escape(name)}{_VALUE}"), default, least, most)

    def nested(self, name: str, default: float) -> float:
        """The number of a nested parameter."""
        gap = r"\s{0,99}"
        precision = rf"(?:<Precision>\s{{0,9}}\d{{1,9}}{gap})?"
        word = self._behind(rf'<Param(?:Long|Double)\."{name}">{gap}\{{{gap}{precision}([^\s}}]{{1,40}})')
        return self._bounded(name, word, default, 0.0, float(self.limits.max_side))

    def _behind(self, pattern: str) -> str:
        found = re.search(pattern, self.text, re.MULTILINE)
        return "" if found is None else found[1]

    def _bounded(self, name: str, word: str, default: float, least: float, most: float) -> float:
        number = raw_data.as_number(word) if word else default
        if word and not least <= number <= most:
            raise InputError(f"{self.field}: {name}", repr(word), f"a number from {least:g} to {most:g}")
        return number


def recognises(path: Path) -> bool:
    """Whether a file begins as Siemens raw data of the software lines VB, VD, VE and XA do."""
    with path.open("rb") as stream:
        head = stream.read(8 + _ENTRY.size)
        if len(head) < 8 + _ENTRY.size:
            return False
        first, count = struct.unpack_from("<II", head)
        old, start = first >= _SMALLEST_VB_HEADER, int(_ENTRY.unpack_from(head, 8)[2])
        if not old and (start >= path.stat().st_size or not 1 <= count <= _MOST_MEASUREMENTS):
            return False
        stream.seek(0 if old else start)
        return _FIRST_TEXT.match(stream.read(64)[8:]) is not None


def find_measurements(path: Path, stream: IO[bytes], limits: ReadLimits) -> list[Measurement]:
    """The measurements of a file in its order: adjustments, and last the measurement itself.

    Raises
    ------
    InputError
        If a measurement or its header leads out of the file, or a header is longer than the limits allow.
    """
    size = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(8 + _MOST_MEASUREMENTS * _ENTRY.size)
    first, count = struct.unpack_from("<II", head)
    old, found = first >= _SMALLEST_VB_HEADER, list[Measurement]()
    for number in range(1 if old else count):
        field, start, end = f"{path}: measurement {number + 1}", 0, size
        if not old:
            if 8 + (number + 1) * _ENTRY.size > len(head):
                raise InputError(field, f"{size} bytes", "its place in the file", _COPY_AGAIN)
            start, length = _ENTRY.unpack_from(head, 8 + number * _ENTRY.size)[2:4]
            end = start + length if length or count > 1 else size
        if end > size or end - start < 8:
            raise InputError(field, f"{size} bytes of file", f"a header and readouts up to {end}", _COPY_AGAIN)
        stream.seek(start)
        length, _ = struct.unpack("<II", stream.read(8))
        if not 8 < length <= min(limits.max_text_bytes, end - start):
            wanted = f"9 to {limits.max_text_bytes} bytes, of {end - start} in the file"
            raise InputError(f"{field}: header", f"{length} bytes declared", wanted, _COPY_AGAIN)
        text = stream.read(length - 8).decode("latin-1")
        found.append(Measurement(field, end, text, start + length, old, limits))
    return found


def flag_of(name: str) -> int:
    """The number of a readout's flag (from 0) by its name in twixtools."""
    return int(optional_package("twixtools.mdh_def", "twix").mask_dict[name])


def find_readouts(stream: IO[bytes], measurement: Measurement) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The readouts of a measurement up to its end mark, without records that hold no samples.

    Returns
    -------
    places : int array, shape (readout,)
        Where each begins in the file, its header included.
    heads : structured array, shape (readout,)
        Their headers, with the names of twixtools.

    Raises
    ------
    InputError
        Naming the readout if the file ends before the end mark, one holds nothing, or there are too many.
    """
    whole, first, between = measurement.layouts
    fields: Any = whole.fields
    at_flags, at_samples = int(fields["EvalInfoMask"][1]), int(fields["SamplesInScan"][1])
    end_mark, no_samples = flag_of("ACQEND"), flag_of("SYNCDATA")
    places, heads, place = list[int](), list[bytes](), measurement.data
    while True:
        field = f"{measurement.field}: readouts[{len(heads)}]"
        stream.seek(place)
        head = stream.read(whole.itemsize) if place + whole.itemsize <= measurement.end else b""
        if len(head) < whole.itemsize:
            raise InputError(field, "no end mark", "a measurement with its end", _COPY_AGAIN)
        flags = struct.unpack_from("<Q", head, at_flags)[0]
        if flags >> end_mark & 1:
            break
        samples, channels = struct.unpack_from("<HH", head, at_samples)
        if flags >> no_samples & 1:
            length = struct.unpack_from("<I", head)[0] & _LENGTH_BITS
        else:
            length = first + channels * (between + 8 * samples) if samples and channels else 0
            places.append(place)
            heads.append(head)
        if not whole.itemsize <= length <= measurement.end - place:
            got = f"{channels} channels of {samples} samples, {length} bytes, of {measurement.end - place} in the file"
            raise InputError(field, got, "a whole readout", _COPY_AGAIN)
        if len(heads) > measurement.limits.max_readouts:
            raise InputError(field, "more readouts", f"at most {measurement.limits.max_readouts}")
        place += length
    return np.array(places, np.int64), np.frombuffer(b"".join(heads), whole)


_FLAGS = (
    *(("NOISEADJSCAN", 19), ("PATREFSCAN", 20), ("PATREFANDIMASCAN", 21), ("REFLECT", 22), ("PACE", 23)),
    *(("PHASCOR", 24), ("SLICE_ACCEL_PHASCOR", 24), ("HPFEEDBACK", 26), ("RETRO_DUMMYSCAN", 27), ("noname60", 27)),
    *(("RTFEEDBACK", 28), ("REFPHASESTABSCAN", 30), ("PHASESTABSCAN", 31)),
)
"""Names of Siemens flags and the numbers of ISMRMRD flags that mean the same; flag n of ISMRMRD is bit n - 1."""
_COUNTERS = {"kspace_encode_step_1": "Lin", "kspace_encode_step_2": "Par", "slice": "Sli", "contrast": "Eco"}
_COUNTERS |= {"phase": "Phs", "repetition": "Rep", "set": "Set"}
_NOISE = 19
_NOISE_BANDWIDTH, _ADJUSTMENT_DWELL = 130.0, 5.0
"""Hertz over a whole noise readout, and microseconds between samples in the adjustment of coil sensitivities."""


def heads_of(stored: NDArray[Any], measured: Measurement) -> NDArray[Any]:
    """The headers of the readouts of a measurement as headers of acquisitions.

    Lines and partitions are counted so that the centre of k-space is at half the matrix: a readout says which of its
    counters is at the centre. No protocol has the bandwidth of noise readouts; scanners of this maker take 1/130 s for
    one.
    """
    heads, (header, centres) = np.zeros(len(stored), raw_data.HEAD), read_protocol(measured)
    encoding = header.encodings[0]
    for name, number in _FLAGS:
        bits = (stored["EvalInfoMask"] >> np.uint64(flag_of(name))) & np.uint64(1)
        heads["flags"] |= bits << np.uint64(number - 1)
    for name, own in (("number_of_samples", "SamplesInScan"), ("active_channels", "UsedChannels")):
        heads[name] = stored[own]
    heads["center_sample"] = stored["CenterCol"]
    heads["discard_pre"], heads["discard_post"] = stored["CutOff"]["Pre"], stored["CutOff"]["Post"]
    for name, own in _COUNTERS.items():
        heads["idx"][name] = stored["Counter"][own]
    noise = raw_data.has_flag(heads["flags"], _NOISE)
    steps = (("kspace_encode_step_1", "CenterLin", 1), ("kspace_encode_step_2", "CenterPar", 2))
    for (name, own, axis), default in zip(steps, centres, strict=True):
        centre = stored[own].astype(np.int64)
        heads["idx"][name] += encoding.encoded.matrix[axis] // 2 - (centre if centre[~noise].any() else default)
    samples = np.maximum(heads["number_of_samples"], 1)
    adjustment = "AdjCoilSens" in measured.text_of("tProtocolName")  # of coil sensitivities
    of_noise = _ADJUSTMENT_DWELL if adjustment else 1e6 / (_NOISE_BANDWIDTH * samples)
    heads["sample_time_us"] = np.where(noise, of_noise, measured.whole("sRXSPEC.alDwellTime[0]", 0, 10**9) / 1000)
    place = stored["SliceData"]["SlicePos"]
    heads["position"] = np.stack([place["Sag"], place["Cor"], place["Tra"]], axis=-1)
    w, x, y, z = stored["SliceData"]["Quaternion"].astype(np.float64).T  # a unit quaternion, its real part first
    with np.errstate(over="ignore", invalid="ignore"):  # impossible places are left out later
        for name, columns in (
            ("phase_dir", [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)]),
            ("read_dir", [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)]),
            ("slice_dir", [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]),
        ):
            heads[name] = np.stack(columns, axis=-1)
    return heads


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """One image series of the last measurement in an open file.

    Earlier measurements of the file are adjustments; their noise readouts are taken if the last measurement has none
    and they have its number of channels. Everything else is as for ISMRMRD files (`ismrmrd.opened`).

    Raises
    ------
    MissingPackageError
        Without the package twixtools.
    InputError
        With the index of the readout that does not fit, and if the file is cut short.

    Notes
    -----
    NOT done: EPI, other trajectories than lines, several slices measured at once, and the scanner's own corrections of
    single channels. The relative noise bandwidth of the receiver and the dwell time of noise readouts are not in such
    files; they are those that the ISMRMRD converter takes (github.com/ismrmrd/siemens_to_ismrmrd).
    """
    with path.open("rb") as stream:
        *earlier, last = find_measurements(path, stream, options.limits)
        (header, _), (places, stored) = read_protocol(last), find_readouts(stream, last)
        heads, (_, first, between) = heads_of(stored, last), last.layouts
        channels = np.unique(heads["active_channels"])
        for adjustment in reversed(earlier):  # the nearest one with noise readouts
            if raw_data.has_flag(heads["flags"], _NOISE).any():
                break
            others, stored = find_readouts(stream, adjustment)
            theirs = heads_of(stored, adjustment)
            noise = raw_data.has_flag(theirs["flags"], _NOISE) & np.isin(theirs["active_channels"], channels)
            heads, places = np.concatenate([heads, theirs[noise]]), np.concatenate([places, others[noise]])

        def numbers(_: str, positions: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
            for at in positions:
                channels, samples = (int(heads[key][at]) for key in ("active_channels", "number_of_samples"))
                stream.seek(int(places[at]) + first)
                words = np.frombuffer(stream.read(channels * (between + 8 * samples)), "<f4").reshape(channels, -1)
                yield at, words[:, between // 4 :].reshape(-1)

        none, field = np.zeros(len(heads), np.intp), f"{path}: readouts"
        raw = Acquisitions(path, field, header, heads, "Siemens raw data (twix)", numbers, none)
        if options.only_noise:
            yield Loaded(raw.noise())
            return
        purposes = raw_data.sort_by_purpose(raw, options.counters)
        images, columns = heads[purposes.imaging], header.encodings[0].encoded.matrix[0]
        kept = images["number_of_samples"] - images["discard_pre"] - images["discard_post"]
        given, wanted = images["center_sample"] > 0, f"the sample at the centre of k-space, of less than {columns}"
        raw.require(purposes.imaging, given | (kept >= columns), "CenterCol", "0", wanted, _CONVERT)
        yield CartesianSource(raw, purposes, options, series=purposes.series)


_TRAJECTORIES = {2: "radial", 4: "spiral", 8: "propeller (BLADE)"}
_CALIBRATION = {2: "embedded", 4: "separate", 8: "separate", 16: "interleaved", 32: "interleaved", 64: "interleaved"}
"""Meanings of ``sPat.ucRefScanMode``."""
_VOLUME = 4
RECEIVER_BANDWIDTH = 0.793
"""Share of white noise that the receiver's filter lets through, as the ISMRMRD converter writes it."""
_FOURIER_SIGN = 1
"""Samples of this maker go with exp(2πi k·r) along the directions of readouts, see docs/left-and-right.md."""
_MICROSECONDS = 1e3  # a millisecond
_MOST_CONTRASTS = 1024
_LARGEST_LENGTH = 1e5  # millimetres
_WHOLE = re.compile(r"0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,17}")
_VALUE = r"[ \t]*=[ \t]*([^\s]{1,40})"


def read_protocol(read: Measurement) -> tuple[MrdHeader, tuple[int, int]]:
    """The header of a measurement, as far as it places readouts.

    Returns
    -------
    header : MrdHeader
        With one encoding: a readout is as long as the matrix says, oversampling included, and lines and partitions are
        counted so that the centre of k-space is at half the matrix.
    centre : tuple of int
        Line and partition at the centre of k-space by the scanner's own counters, for sequences that do not write it
        into their readouts.

    Raises
    ------
    InputError
        For sizes that are missing or impossible, and measurements that are not lines of a grid.
    """
    # First, that it is lines of a grid, one slice at a time.
    trajectory = read.whole("sKSpace.ucTrajectory", 1)
    kind = f"a trajectory of the kind {_TRAJECTORIES.get(trajectory, trajectory)}"
    for name, allowed, got, wanted, cure in (
        ("sKSpace.ucTrajectory", (1,), kind, "Cartesian lines", _CONVERT),
        ("sFastImaging.lEPIFactor", (0, 1), "echo-planar imaging", "lines", CORRECT_ECHOES),
        ("sSliceAcceleration.lMultiBandFactor", (0, 1), "several slices at once", "one slice at a time", _SEPARATE),
    ):
        if read.whole(name, 1) not in allowed:
            raise InputError(f"{read.field}: {name}", got, wanted, cure)
    # Second, the grid and its centre by the scanner's counters.
    encoding = _encoding(read)
    _, *sizes = encoding.encoded.matrix
    names = ("iNoOfFourierLines", "iNoOfFourierPartitions")
    counts = [round(read.nested(name, size)) for name, size in zip(names, sizes, strict=True)]
    line, partition = (max(size // 2 - (size - count), 0) for size, count in zip(sizes, counts, strict=True))
    # Finally, how it was measured.
    times, contrasts = read.series("alTE"), range(read.whole("lContrasts", 1, _MOST_CONTRASTS))
    echo_times = tuple(times.get(contrast, math.nan) / _MICROSECONDS for contrast in contrasts)
    identifiers = {
        "ProtocolName": read.text_of("tProtocolName"),
        "RepetitionTime": raw_data.sole_value(time / _MICROSECONDS for time in read.series("alTR").values() if time),
        "EchoTime": raw_data.sole_value(echo_times),
        "FlipAngle": raw_data.sole_value(read.series("adFlipAngleDegree").values()),
    }
    source, wrong = SourceImage.of_elements(identifiers, image=False)
    header = MrdHeader(
        (encoding,),
        RECEIVER_BANDWIDTH,
        source=source,
        wrong_identifiers=wrong,
        vendor="SIEMENS",
        fourier_sign=_FOURIER_SIGN,
        echo_times=echo_times,
    )
    return header, (line, partition)


def _encoding(read: Measurement) -> MrdEncoding:
    """The grid of a measurement: oversampled readouts, and lines and partitions whose centre is at half the matrix."""
    volume = read.whole("sKSpace.ucDimension", 2) == _VOLUME
    lines = read.whole("sKSpace.lPhaseEncodingLines")
    partitions = read.whole("sKSpace.lPartitions") if volume else 1
    over = read.nested("flReadoutOSFactor", 2.0)
    pixels = read.whole("sKSpace.lBaseResolution")
    columns = round(pixels * over) if 1 <= over <= 16 else 0
    if not 1 <= columns <= read.limits.max_side:
        wanted = f"a factor from 1 to 16 with which {pixels} pixels take up to {read.limits.max_side} samples"
        raise InputError(f"{read.field}: flReadoutOSFactor", f"{over:g}", wanted)
    along_x, along_y, along_z = (  # millimetres of the first slice or slab
        read.real(f"sSliceArray.asSlice[0].{name}", math.nan, 1e-3, _LARGEST_LENGTH)
        for name in ("dReadoutFOV", "dPhaseFOV", "dThickness")
    )
    more_y = 1 + read.real("sKSpace.dPhaseOversampling", 0.0, 0.0, 100.0)
    more_z = 1 + read.real("sKSpace.dSliceOversampling", 0.0, 0.0, 100.0) if volume else 1.0
    measured = along_x * columns / pixels, along_y * more_y, along_z * more_z
    return MrdEncoding(
        encoded=EncodedSpace((columns, lines, partitions), measured),
        reconstructed=EncodedSpace((pixels, lines, partitions), (along_x, along_y, along_z)),
        centres=(lines // 2, partitions // 2),
        trajectory="cartesian",
        calibration_mode=_CALIBRATION.get(read.whole("sPat.ucRefScanMode", 1), ""),
    )
