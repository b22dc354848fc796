"""Siemens readouts as acquisitions with the names, counters and flags of ISMRMRD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.io.mrd.acquisitions import Acquisitions
from mri_design.scan.io.mrd.purposes import has_flag
from mri_design.scan.io.twix.measurements import Readouts, flag_of
from mri_design.scan.io.twix.protocol import Protocol

_FLAGS = (
    *(("NOISEADJSCAN", 19), ("PATREFSCAN", 20), ("PATREFANDIMASCAN", 21), ("REFLECT", 22), ("PACE", 23)),
    *(("PHASCOR", 24), ("SLICE_ACCEL_PHASCOR", 24), ("HPFEEDBACK", 26), ("RETRO_DUMMYSCAN", 27), ("noname60", 27)),
    *(("RTFEEDBACK", 28), ("REFPHASESTABSCAN", 30), ("PHASESTABSCAN", 31)),
)
"""Names of Siemens flags and the numbers of ISMRMRD flags that mean the same; flag n of ISMRMRD is bit n - 1."""
_COUNTERS = {
    "kspace_encode_step_1": "Lin",
    "kspace_encode_step_2": "Par",
    "slice": "Sli",
    "contrast": "Eco",
    "phase": "Phs",
    "repetition": "Rep",
    "set": "Set",
}
_VECTOR = ("<f8", (3,))
_HEAD = np.dtype(
    [
        *((name, "<u8") for name in ("flags", "encoding_space_ref")),
        *((name, "<i8") for name in ("number_of_samples", "active_channels", "center_sample")),
        *((name, "<i8") for name in ("discard_pre", "discard_post")),
        ("sample_time_us", "<f8"),
        ("idx", [(name, "<i8") for name in _COUNTERS]),
        *((name, *_VECTOR) for name in ("position", "phase_dir", "read_dir", "slice_dir")),
    ]
)
_NOISE = 19
_NOISE_BANDWIDTH, _ADJUSTMENT_DWELL = 130.0, 5.0
"""Hertz over a whole noise readout, and microseconds from sample to sample where coil sensitivities are adjusted."""


@dataclass(frozen=True)
class TwixAcquisitions(Acquisitions):
    """The readouts of a file.

    Parameters
    ----------
    path, field, heads
        As `Acquisitions` has them.
    stream : binary stream
        The file.
    places : int array, shape (acquisition,)
        Where each readout begins.
    first, between : int
        As `Readouts` has them.
    """

    stream: IO[bytes]
    places: NDArray[np.int64]
    first: int
    between: int
    format: ClassVar[str] = "Siemens raw data (twix)"

    def numbers(self, name: str, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[Any]]]:
        """(position, samples as real numbers), see `Acquisitions.numbers`; there are no coordinates."""
        for at in sorted(wanted):
            channels, samples = (int(self.heads[key][at]) for key in ("active_channels", "number_of_samples"))
            self.stream.seek(int(self.places[at]) + self.first)
            stored = self.stream.read(channels * (self.between + 8 * samples))
            words = np.frombuffer(stored, "<f4").reshape(channels, -1)
            yield at, words[:, self.between // 4 :].reshape(-1)


def heads_of(readouts: Readouts, protocol: Protocol) -> NDArray[Any]:
    """The headers of readouts as those of acquisitions.

    Lines and partitions are counted so that the centre of k-space is where ``protocol.header`` says: a readout says
    itself which of its counters is at the centre. Noise readouts, whose bandwidth no protocol tells, are taken to last
    1/130 s, which is how scanners of this maker measure noise.

    Parameters
    ----------
    readouts : Readouts
        Of a measurement.
    protocol : Protocol
        Of the same.
    """
    stored, encoding = readouts.heads, protocol.header.encodings[0]
    heads = np.zeros(len(stored), _HEAD)
    for name, number in _FLAGS:
        bits = (stored["EvalInfoMask"] >> np.uint64(flag_of(name))) & np.uint64(1)
        heads["flags"] |= bits << np.uint64(number - 1)
    for name, own in (("number_of_samples", "SamplesInScan"), ("active_channels", "UsedChannels")):
        heads[name] = stored[own]
    heads["center_sample"] = stored["CenterCol"]
    heads["discard_pre"], heads["discard_post"] = stored["CutOff"]["Pre"], stored["CutOff"]["Post"]
    for name, own in _COUNTERS.items():
        heads["idx"][name] = stored["Counter"][own]
    noise = has_flag(heads["flags"], _NOISE)
    steps = (("kspace_encode_step_1", "CenterLin", 1), ("kspace_encode_step_2", "CenterPar", 2))
    for (name, own, axis), unsaid in zip(steps, protocol.centre, strict=True):
        centre = stored[own].astype(np.int64)
        heads["idx"][name] += encoding.encoded.matrix[axis] // 2 - (centre if centre[~noise].any() else unsaid)
    samples = np.maximum(heads["number_of_samples"], 1)
    of_noise = _ADJUSTMENT_DWELL if protocol.adjustment else 1e6 / (_NOISE_BANDWIDTH * samples)
    heads["sample_time_us"] = np.where(noise, of_noise, protocol.dwell)
    place = stored["SliceData"]["SlicePos"]
    heads["position"] = np.stack([place["Sag"], place["Cor"], place["Tra"]], axis=-1)
    directions = _directions(stored["SliceData"]["Quaternion"].astype(np.float64))
    for name, vectors in zip(("phase_dir", "read_dir", "slice_dir"), directions, strict=True):
        heads[name] = vectors
    return heads


def noise_of(heads: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the readouts that hold noise alone."""
    return np.flatnonzero(has_flag(heads["flags"], _NOISE))


def _directions(quaternions: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Directions of phase encoding, readout and slice of unit quaternions (readout, 4) whose real part comes first."""
    w, x, y, z = quaternions.T
    with np.errstate(over="ignore", invalid="ignore"):  # a place that makes no sense is left out later
        phase = [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)]
        read = [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)]
        across = [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]
    return tuple(np.stack(columns, axis=-1) for columns in (phase, read, across))
