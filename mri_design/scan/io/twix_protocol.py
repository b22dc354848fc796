"""The parts of a Siemens protocol that place readouts, read without trusting it.

A measurement's header holds the protocol twice: as assignments (``sKSpace.lBaseResolution = 160``) and as nested
parameters (``<ParamLong."iNoOfFourierLines"> { 160 }``). Only the numbers that are asked for are looked up, because
arrays in it may declare any length."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from mri_design.errors import InputError
from mri_design.scan.io.mrd_header import EncodedSpace, MrdEncoding, MrdHeader, as_number, sole_value
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.source_image import SourceImage

_TRAJECTORIES = {1: "cartesian", 2: "radial", 4: "spiral", 8: "propeller (BLADE)"}
_CALIBRATION = {2: "embedded", 4: "separate", 8: "separate", 16: "interleaved", 32: "interleaved", 64: "interleaved"}
"""Meanings of ``sPat.ucRefScanMode``."""
_VOLUME = 4
RECEIVER_BANDWIDTH = 0.793
"""Noise that the receiver's filter lets through over that of white noise: what the ISMRMRD converter writes."""
_FOURIER_SIGN = 1
"""Samples of this maker go with exp(2πi k·r) along the directions of readouts, see docs/left-and-right.md."""
_MICROSECONDS = 1e3  # a millisecond
_MOST_CONTRASTS = 1024
_LARGEST_LENGTH = 1e5  # millimetres
_WHOLE = re.compile(r"0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,17}")
_VALUE = r"[ \t]*=[ \t]*([^\s]{1,40})"
_CONVERT = "Convert it to ISMRMRD, with the coordinates of every sample where it is no line of a grid."


@dataclass(frozen=True)
class Protocol:
    """Parts of a protocol that place readouts.

    Parameters
    ----------
    header : MrdHeader
        The one encoding of a measurement: a readout is as long as the matrix says, oversampling included, and lines
        and partitions are counted so that the centre of k-space is at half the matrix.
    centre : tuple of int
        Line and partition at the centre of k-space as the scanner's own counters have it, for sequences that do not
        write it into their readouts.
    dwell : float
        Microseconds from sample to sample, 0 where the protocol does not say.
    adjustment : bool
        Whether the measurement is the scanner's adjustment of coil sensitivities.
    """

    header: MrdHeader
    centre: tuple[int, int]
    dwell: float
    adjustment: bool


def read_protocol(field: str, text: str, limits: ReadLimits) -> Protocol:
    """Read the parts of a measurement's header that place its readouts.

    Parameters
    ----------
    field : str
        File and measurement, for messages.
    text : str
        The header.
    limits : ReadLimits
        Matrix sizes must lie within ``max_side``.

    Raises
    ------
    InputError
        For sizes that are missing or make no sense, and measurements that are not lines of a grid, by name.
    """
    read = _Assignments(field, text, limits.max_side)
    _refuse_other_kinds(read)
    volume = read.whole("sKSpace.ucDimension", 2) == _VOLUME
    lines = read.whole("sKSpace.lPhaseEncodingLines")
    partitions = read.whole("sKSpace.lPartitions") if volume else 1
    over = read.nested("flReadoutOSFactor", 2.0)
    pixels = read.whole("sKSpace.lBaseResolution")
    columns = round(pixels * over) if 1 <= over <= 16 else 0
    if not 1 <= columns <= limits.max_side:
        wanted = f"a factor from 1 to 16 with which {pixels} pixels take up to {limits.max_side} samples"
        raise InputError(field=f"{field}: flReadoutOSFactor", got=f"{over:g}", wanted=wanted)
    along_x, along_y, along_z = (read.length(name) for name in ("dReadoutFOV", "dPhaseFOV", "dThickness"))
    more_y = 1 + read.share("sKSpace.dPhaseOversampling")
    more_z = 1 + read.share("sKSpace.dSliceOversampling") if volume else 1.0
    encoding = MrdEncoding(
        encoded=EncodedSpace(
            (columns, lines, partitions), (along_x * columns / pixels, along_y * more_y, along_z * more_z)
        ),
        reconstructed=EncodedSpace((pixels, lines, partitions), (along_x, along_y, along_z)),
        centre_line=lines // 2,
        centre_partition=partitions // 2,
        trajectory="cartesian",
        calibration_mode=_CALIBRATION.get(read.whole("sPat.ucRefScanMode", 1), ""),
    )
    fourier = read.nested("iNoOfFourierLines", lines), read.nested("iNoOfFourierPartitions", partitions)
    centre = [size // 2 - (size - round(count)) for size, count in zip((lines, partitions), fourier, strict=True)]
    echo_times = _echo_times(read)
    source, wrong = SourceImage.of_raw_data(
        {
            "ProtocolName": read.quoted("tProtocolName"),
            "RepetitionTime": sole_value(time / _MICROSECONDS for time in read.series("alTR").values() if time),
            "EchoTime": sole_value(echo_times),
            "FlipAngle": sole_value(read.series("adFlipAngleDegree").values()),
        }
    )
    return Protocol(
        MrdHeader(
            (encoding,),
            RECEIVER_BANDWIDTH,
            source=source,
            wrong_identifiers=wrong,
            vendor="SIEMENS",
            fourier_sign=_FOURIER_SIGN,
            echo_times=echo_times,
        ),
        (max(centre[0], 0), max(centre[1], 0)),
        read.whole("sRXSPEC.alDwellTime[0]", 0, 10**9) / 1000,
        "AdjCoilSens" in read.quoted("tProtocolName"),
    )


def _echo_times(read: _Assignments) -> tuple[float, ...]:
    """Milliseconds of every contrast that is measured; protocols keep times of others behind them."""
    times = read.series("alTE")
    contrasts = range(read.whole("lContrasts", 1, _MOST_CONTRASTS))
    return tuple(times.get(contrast, math.nan) / _MICROSECONDS for contrast in contrasts)


def _refuse_other_kinds(read: _Assignments) -> None:
    """Refuse what is measured in another way than line by line on a grid, one slice at a time."""
    number = read.whole("sKSpace.ucTrajectory", 1)
    kind = _TRAJECTORIES.get(number, f"number {number}")
    if kind != "cartesian":
        field = f"{read.field}: sKSpace.ucTrajectory"
        raise InputError(field=field, got=f"a {kind} trajectory", wanted="Cartesian lines", cure=_CONVERT)
    if read.whole("sFastImaging.lEPIFactor", 1) > 1:
        raise InputError(
            field=f"{read.field}: sFastImaging.lEPIFactor",
            got="echo-planar imaging (EPI), whose echoes need a phase correction that is not done here",
            wanted="Cartesian lines",
            cure="Correct and grid the echoes first, and write them as lines, for example of an ISMRMRD file.",
        )
    bands = read.whole("sSliceAcceleration.lMultiBandFactor", 1)
    if bands > 1:
        raise InputError(
            field=f"{read.field}: sSliceAcceleration.lMultiBandFactor",
            got=f"{bands} slices measured at once",
            wanted="one slice at a time",
            cure="Separate the slices first, and write them to an ISMRMRD file.",
        )


@dataclass(frozen=True)
class _Assignments:
    """Single numbers of a header, by name."""

    field: str
    text: str
    largest: int

    def word(self, name: str) -> str:
        """Word behind ``name =``; empty where there is no such line."""
        found = re.search(rf"^{re.escape(name)}{_VALUE}", self.text, re.MULTILINE)
        return "" if found is None else found[1]

    def quoted(self, name: str) -> str:
        """The text, of up to 256 characters, in quotation marks behind ``name =``; empty where there is none."""
        found = re.search(rf'^{re.escape(name)}[ \t]*=[ \t]*"{{1,2}}([^"\r\n]{{1,256}})"', self.text, re.MULTILINE)
        return "" if found is None else found[1].strip()

    def series(self, name: str) -> dict[int, float]:
        """The numbers behind ``name[0] =``, ``name[1] =``, ..., by index; NaN for what is no number."""
        found = re.finditer(rf"^{re.escape(name)}\[(\d{{1,4}})\]{_VALUE}", self.text, re.MULTILINE | re.ASCII)
        numbers: dict[int, float] = {}
        for one in found:  # headers say a protocol more than once
            numbers.setdefault(int(one[1]), as_number(one[2]))
        return numbers

    def whole(self, name: str, default: int | None = None, largest: int | None = None) -> int:
        """A whole number, decimal or hexadecimal, from 0 (or, without a default, 1)."""
        word, most = self.word(name), self.largest if largest is None else largest
        if not word and default is not None:
            return default
        number = int(word, 0) if _WHOLE.fullmatch(word) else -1
        least = 1 if default is None else 0
        if not least <= number <= most:
            got = repr(word) if word else "nothing"
            raise InputError(field=f"{self.field}: {name}", got=got, wanted=f"a whole number from {least} to {most}")
        return number

    def length(self, name: str) -> float:
        """Millimetres of the first slice or slab; NaN where the protocol does not say."""
        word = self.word(f"sSliceArray.asSlice[0].{name}")
        return self._real(name, word, 1e-3, _LARGEST_LENGTH) if word else math.nan

    def share(self, name: str) -> float:
        """A share of oversampling, 0 where the protocol does not say."""
        word = self.word(name)
        return self._real(name, word, 0.0, 100.0) if word else 0.0

    def nested(self, name: str, default: float) -> float:
        """A parameter of the nested part."""
        gap = r"\s{0,99}"
        precision = rf"(?:<Precision>\s{{0,9}}\d{{1,9}}{gap})?"
        pattern = rf'<Param(?:Long|Double)\."{name}">{gap}\{{{gap}{precision}([^\s}}]{{1,40}})'
        found = re.search(pattern, self.text)
        return default if found is None else self._real(name, found[1], 0.0, float(self.largest))

    def _real(self, name: str, word: str, least: float, most: float) -> float:
        number = as_number(word)
        if not least <= number <= most:
            wanted = f"a number from {least:g} to {most:g}"
            raise InputError(field=f"{self.field}: {name}", got=repr(word), wanted=wanted)
        return number
