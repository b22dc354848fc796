"""MRD files as scanners' converters write them, by the ismrmrd package or field by field with h5py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import ismrmrd
import numpy as np
from ismrmrd.hdf5 import acquisition_dtype, acquisition_header_dtype

from mri_design.operators.base import Array

_XML = """<?xml version="1.0" encoding="UTF-8"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
 <acquisitionSystemInformation><systemVendor>none</systemVendor>{bandwidth}</acquisitionSystemInformation>
 <experimentalConditions><H1resonanceFrequency_Hz>123200000</H1resonanceFrequency_Hz></experimentalConditions>
 {encodings}
</ismrmrdHeader>
"""
_STEPS = {1: "kspace_encoding_step_1", 2: "kspace_encoding_step_2"}


@dataclass(frozen=True)
class Space:
    """Matrix and field of view (x, y, z); millimetres, None where the header leaves them out."""

    matrix: tuple[int, int, int]
    field_of_view: tuple[float, float, float] | None = (220.0, 200.0, 5.0)

    def xml(self) -> str:
        """Its element's content."""
        sides = "".join(f"<{axis}>{side}</{axis}>" for axis, side in zip("xyz", self.matrix, strict=True))
        lengths = zip("xyz", self.field_of_view or (), strict=False)
        view = "".join(f"<{axis}>{length:g}</{axis}>" for axis, length in lengths)
        return f"<matrixSize>{sides}</matrixSize>" + (f"<fieldOfView_mm>{view}</fieldOfView_mm>" if view else "")


@dataclass(frozen=True)
class Encoding:
    """One encoding of the header.

    Parameters
    ----------
    encoded, reconstructed : Space
        The second is the first where it is None.
    centres : dict of int to int
        Centre of the counter of phase encode 1 and 2, where the header has limits of it.
    trajectory : str
        Empty where the header names none.
    calibration : str
        Mode of parallel imaging; empty where the header has no such section.
    """

    encoded: Space
    reconstructed: Space | None = None
    centres: dict[int, int] = field(default_factory=dict)
    trajectory: str = "cartesian"
    calibration: str = ""

    def xml(self) -> str:
        """The whole element."""
        limits = "".join(
            f"<{_STEPS[step]}><minimum>0</minimum><maximum>{self.encoded.matrix[step] - 1}</maximum>"
            f"<center>{centre}</center></{_STEPS[step]}>"
            for step, centre in self.centres.items()
        )
        parallel = (
            "<parallelImaging><accelerationFactor><kspace_encoding_step_1>2</kspace_encoding_step_1>"
            "<kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>"
            f"<calibrationMode>{self.calibration}</calibrationMode></parallelImaging>"
        )
        return (
            f"<encoding><encodedSpace>{self.encoded.xml()}</encodedSpace>"
            f"<reconSpace>{(self.reconstructed or self.encoded).xml()}</reconSpace>"
            f"<encodingLimits>{limits}</encodingLimits>"
            + (f"<trajectory>{self.trajectory}</trajectory>" if self.trajectory else "")
            + (parallel if self.calibration else "")
            + "</encoding>"
        )


@dataclass
class RawFile:
    """An MRD file to be written.

    Parameters
    ----------
    encodings : sequence of Encoding
        Of the header.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver.
    """

    encodings: Sequence[Encoding]
    bandwidth: float | None = None
    acquisitions: list[ismrmrd.Acquisition] = field(default_factory=list)

    def add(
        self, samples: Array, coordinates: Array | None = None, flags: Iterable[int] = (), **fields: float
    ) -> ismrmrd.Acquisition:
        """Append one readout (coil, sample), with coordinates (sample, dimension) where there are any.

        Fields are counters or other numbers of the acquisition's header.
        """
        channels, length = samples.shape
        acquisition = ismrmrd.Acquisition()
        acquisition.resize(length, channels, 0 if coordinates is None else coordinates.shape[1])
        acquisition.version, acquisition.available_channels = 1, channels
        acquisition.scan_counter = len(self.acquisitions)
        acquisition.center_sample, acquisition.sample_time_us = length // 2, 5.0
        acquisition.data[:] = samples
        if coordinates is not None:
            acquisition.traj[:] = coordinates
        for flag in flags:
            acquisition.set_flag(flag)
        for name, value in fields.items():
            setattr(acquisition.idx if hasattr(acquisition.idx, name) else acquisition, name, value)
        self.acquisitions.append(acquisition)
        return acquisition

    def add_lines(
        self, kspace: Array, order: Sequence[int] | None = None, flags: Iterable[int] = (), **fields: float
    ) -> None:
        """Append lines of (slice, coil, ky, kx), slice after slice; all of them in sequence, or some in an order."""
        for rank, stack in enumerate(kspace):
            for line in range(kspace.shape[2]) if order is None else order:
                self.add(stack[:, line], flags=flags, **{"slice": rank, "kspace_encode_step_1": line, **fields})

    @property
    def header(self) -> str:
        """The XML header."""
        share = self.bandwidth
        bandwidth = "" if share is None else f"<relativeReceiverNoiseBandwidth>{share}</relativeReceiverNoiseBandwidth>"
        encodings = "".join(encoding.xml() for encoding in self.encodings)
        return _XML.format(bandwidth=bandwidth, encodings=encodings)

    def write(self, path: Path) -> None:
        """By the ismrmrd package."""
        with ismrmrd.Dataset(str(path), "dataset", mode="w") as file:
            file.write_xml_header(self.header.encode())
            for acquisition in self.acquisitions:
                file.append_acquisition(acquisition)

    def write_by_hand(self, path: Path, *, group: str = "dataset", trajectories: bool = True) -> None:
        """By h5py alone, all acquisitions at once; the header as one text of fixed length.

        Without trajectories, acquisitions have neither coordinates nor their number, as in files of the first years.
        """
        kept = [name for name in acquisition_header_dtype.names if trajectories or name != "trajectory_dimensions"]
        head = np.dtype([(name, acquisition_header_dtype[name]) for name in kept])
        parts = [("head", head), *([("traj", acquisition_dtype["traj"])] if trajectories else [])]
        rows = np.empty(len(self.acquisitions), np.dtype([*parts, ("data", acquisition_dtype["data"])]))
        for row, acquisition in zip(rows, self.acquisitions, strict=True):
            stored = np.frombuffer(acquisition.getHead(), acquisition_header_dtype)[0]
            for name in kept:
                row["head"][name] = stored[name]
            if trajectories:
                row["traj"] = acquisition.traj.ravel()
            row["data"] = acquisition.data.ravel().view(np.float32)
        with h5py.File(path, "w") as file:
            file[f"{group}/xml"] = np.bytes_(self.header)
            file.create_dataset(
                f"{group}/data", data=rows, chunks=(min(7, len(rows)),), compression="gzip", shuffle=True
            )
