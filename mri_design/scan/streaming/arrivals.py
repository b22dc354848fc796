"""What has arrived of a scan: the lines on their grid, and the noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.mrd.noise import noise_covariance, noise_scale
from mri_design.scan.io.mrd.readouts import calibration_data, is_unsaid
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.left_out import with_part
from mri_design.scan.sampling import ROUND_OFF, strongest_component
from mri_design.scan.streaming.messages import (
    STREAM_LIMITS,
    LeftOut,
    LineReadout,
    Message,
    NoiseReadout,
    ScanHeader,
)

RepeatPolicy = Literal["first", "last"]
"""Which readout of a line that comes more than once is the line's."""
_NOISE_BYTES = 64 * 2**20


class Arrivals:
    """The grid of one slice, filled readout by readout in any order.

    Parameters
    ----------
    repeated : {"first", "last"}
        Which readout counts where a line comes again. The last may come after decisions were made with the first.
    limits : ReadLimits
        Bounds of the grid.

    Attributes
    ----------
    header : ScanHeader or None
        None before it came.
    arrived : bool array, shape (ky,)
        Lines that are here.
    changed : set of int
        Lines that came, or came again, since somebody emptied it.
    counts : dict of str to int
        How many readouts were "repeated" or "left out".

    Notes
    -----
    Calibration readouts are data by `calibration_data`, as from a file. Where the header does not say how calibration
    is acquired, the rest of the stream may show that it is a scan of its own: they wait until `settle` is called.
    """

    def __init__(self, repeated: RepeatPolicy = "first", limits: ReadLimits = STREAM_LIMITS) -> None:
        self._repeated, self._limits = repeated, limits
        self.header: ScanHeader | None = None
        self.arrived = np.zeros(0, dtype=bool)
        self.changed = set[int]()
        self.counts = {"repeated": 0, "left out": 0}
        self._kspace: NDArray[np.complex64] | None = None
        self._geometry: SliceGeometry | None = None
        self._noise, self._dwells = list[NoiseReadout](), list[float]()
        self._peaks = np.zeros(0)
        self._imaged, self._calibration = set[int](), dict[int, LineReadout]()

    def take(self, message: Message) -> str:
        """Put a message in its place; what is worth saying about it, empty where nothing is."""
        if isinstance(message, ScanHeader):
            self.header, self.arrived = message, np.zeros(message.shape[0], dtype=bool)
            self._peaks = np.zeros(message.shape[0])
            return ""
        if isinstance(message, LineReadout | NoiseReadout) and not np.isfinite(message.samples).all():
            message = LeftOut("a readout with NaN or infinite samples")
        if isinstance(message, LineReadout):
            message = self._waiting(message) if message.calibration else self._placed(message)
        elif isinstance(message, NoiseReadout):
            message = self._kept(message)
        if isinstance(message, LeftOut) and message.why:
            self.counts["left out"] += 1
            return f"left out: {message.why}"
        return ""

    def settle(self, lines: Iterable[int] | None = None) -> None:
        """Take calibration readouts that wait as data, because what has come is all that is to be judged by.

        Parameters
        ----------
        lines : iterable of int, optional
            Those that are known to be data, from decisions that were made with them; by default `calibration_data`
            says which are.
        """
        if self.header is None:
            return
        chosen = (
            calibration_data(self.header.calibration_mode, self._imaged, self._calibration) if lines is None else lines
        )
        for line in sorted(set(chosen).intersection(self._calibration)):
            self._fill(self._calibration[line])

    def _waiting(self, readout: LineReadout) -> LeftOut:
        """Keep a calibration readout, which is data at once where the header says that it may be."""
        assert self.header is not None
        mode = self.header.calibration_mode
        if not calibration_data(mode, (), (readout.line,)):
            return LeftOut("a readout of a calibration scan of its own, which is not the image's")
        why = self._misfit(readout)
        if why:
            return LeftOut(why)
        if readout.line in self._calibration:
            self.counts["repeated"] += 1
            if self._repeated == "first":
                return LeftOut()
        self._calibration[readout.line] = readout
        if not is_unsaid(mode) and readout.line not in self._imaged:
            self._fill(readout)
        return LeftOut()

    def _placed(self, readout: LineReadout) -> LeftOut:
        why = self._misfit(readout)
        if why:
            return LeftOut(why)
        if readout.line in self._imaged:
            self.counts["repeated"] += 1
            if self._repeated == "first":
                return LeftOut()
        self._imaged.add(readout.line)
        self._fill(readout)
        return LeftOut()

    def _misfit(self, readout: LineReadout) -> str:
        """Why a readout cannot be put on the grid, which the first one makes; empty where it can."""
        coils = readout.samples.shape[0]
        if self._kspace is None:
            assert self.header is not None  # protocols place no readout before the header
            shape = (coils, *self.header.shape)
            try:
                if coils > self._limits.max_coils:
                    raise InputError(field="readout", got=f"{coils} coils", wanted=f"at most {self._limits.max_coils}")
                check_declared_shape("grid", shape, 8, self._limits)
            except InputError as error:
                return str(error)
            self._kspace = np.zeros(shape, np.complex64)
        if coils != len(self._kspace):
            return f"line {readout.line} with {coils} coils in the place of {len(self._kspace)}"
        if strongest_component(readout.samples) <= ROUND_OFF * self._peaks.max():
            return f"line {readout.line} with zeros alone, which is no measurement"
        return ""

    def _fill(self, readout: LineReadout) -> None:
        assert self._kspace is not None
        self._kspace[:, readout.line] = readout.samples
        self.arrived[readout.line] = True
        self._peaks[readout.line] = strongest_component(readout.samples)
        self.changed.add(readout.line)
        self._drop_round_off()
        self._dwells.append(readout.dwell)
        self._geometry = self._geometry or readout.geometry

    def _kept(self, noise: NoiseReadout) -> LeftOut:
        held = sum(one.samples.nbytes for one in self._noise)
        if held + noise.samples.nbytes > _NOISE_BYTES:
            return LeftOut("a noise readout after more of them than are needed")
        self._noise.append(noise)
        return LeftOut()

    def _drop_round_off(self) -> None:
        """Lines that turn out to hold the round-off of zeros, beside the strongest sample so far, were not measured."""
        empty = set(np.flatnonzero(self.arrived & (self._peaks <= ROUND_OFF * self._peaks.max())).tolist())
        if empty:
            self.arrived[list(empty)] = False
            self._kspace[:, list(empty)] = 0  # type: ignore[index]
            self._imaged -= empty
            self.counts["left out"] += len(empty)

    @property
    def coils(self) -> int | None:
        """Receive coils: of the lines here, else of the noise, else what the header says; None where nobody does."""
        if self._kspace is not None:
            return len(self._kspace)
        if self._noise:
            return len(self._noise[0].samples)
        return None if self.header is None else self.header.coils

    def lines(self, lines: Sequence[int]) -> NDArray[np.complex64]:
        """Samples (coil, line, kx) of lines that are here."""
        assert self._kspace is not None
        return self._kspace[:, list(lines)]

    def data(self, name: str, lines: Sequence[int] | None = None) -> KSpaceData:
        """The scan as far as it has arrived, or some lines of it, and its noise as far as that is known.

        Raises
        ------
        InputError
            Where these hold no signal.
        """
        chosen = self.arrived.copy()
        if lines is not None:
            chosen[:] = False
            chosen[list(lines)] = True
        if self._kspace is None or self.header is None:
            raise InputError(field=name, got="no readout", wanted="at least one line")
        covariance, notes = self._noise_covariance(len(self._kspace))
        return KSpaceData(
            np.where(chosen[:, np.newaxis], self._kspace, 0)[np.newaxis],
            chosen,
            name=name,
            noise_variance=self.header.noise_variance,
            noise_covariance=covariance,
            card=with_part(
                {"file": name, "format": "readouts as they came", **self._calibration_notes, **notes},
                *self.header.place,
            ),
            geometry=None if self._geometry is None else (self._geometry,),
            source=self.header.source,
        )

    @property
    def _calibration_notes(self) -> dict[str, str]:
        """As from a file: how many calibration readouts are data."""
        within = sum(bool(self.arrived[line]) and line not in self._imaged for line in self._calibration)
        return {"calibration_lines": f"{within} readouts within the scan, used as data"} if within else {}

    def _noise_covariance(self, coils: int) -> tuple[NDArray[np.complex128] | None, dict[str, str]]:
        alike = [one for one in self._noise if len(one.samples) == coils]
        if not self._noise or self.header is None:
            return None, {}
        covariance, samples = noise_covariance(one.samples for one in alike)
        if covariance is None:
            why = "too few samples" if alike else "other channels than the data"
            return None, {"noise_readouts": f"{len(self._noise)}, not used: {why}"}
        dwells = np.array([one.dwell for one in alike])
        scale, reason = noise_scale(dwells, np.array(self._dwells), self.header.noise_bandwidth)
        return covariance * scale, {"noise_readouts": f"{len(alike)}, {samples} samples a channel; {reason}"}
