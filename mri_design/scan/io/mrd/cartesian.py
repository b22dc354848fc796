"""Cartesian acquisitions become k-space on a grid: slices, or a volume as one plane for every readout position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.coils import only_coils, working_coils
from mri_design.scan.io.mrd.acquisitions import Acquisitions
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader
from mri_design.scan.io.mrd.noise import noise_of_data
from mri_design.scan.io.mrd.purposes import Purposes
from mri_design.scan.io.mrd.readouts import Readout, ReadoutPlan, plan_readouts
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.samples import measured_lines, readout_positions, volume_note
from mri_design.scan.sampling import index_runs

__all__ = ["GridImages", "read_cartesian"]

Vector = tuple[float, ...]
_VECTORS = ("position", "phase_dir", "read_dir", "slice_dir")


def read_cartesian(
    acquisitions: Acquisitions, header: MrdHeader, purposes: Purposes, limits: ReadLimits, duplicates: str
) -> KSpaceData:
    """K-space on a grid from the acquisitions of one series.

    Parameters
    ----------
    acquisitions : Acquisitions
        Of the open file.
    header : MrdHeader
        The file's header.
    purposes : Purposes
        Which acquisitions are read, and as what.
    limits : ReadLimits
        Bounds on the grid.
    duplicates : {"error", "average", "last"}
        What to do with a line that comes again.

    Raises
    ------
    InputError
        As `plan_readouts`, for samples that do not fit their header, and as `KSpaceData`.
    """
    encoding, heads = purposes.encoding, acquisitions.heads
    plan = plan_readouts(acquisitions.field, heads, header, purposes, limits, repeats_allowed=duplicates != "error")
    check_declared_shape("encodedSpace.matrixSize", plan.shape, 8, limits)
    images = GridImages(encoding)
    stored, times = _filled(acquisitions, plan.shape, plan.readouts, duplicates)
    coils, coil_notes = working_coils(stored)
    kspace = images.kspace(only_coils(stored, coils), plan.readouts)
    calibration = _filled(acquisitions, plan.shape, plan.calibration, "average")[0] if plan.calibration else None
    repeats = int(times[times > 0].min()) if duplicates == "average" else 1
    places = [readout.index for readout in plan.readouts]
    covariance, noise_notes = noise_of_data(
        acquisitions, purposes.noise, places, coils, bandwidth=header.noise_bandwidth, repeats=repeats
    )
    notes = {**purposes.notes, **plan.notes, **coil_notes, **noise_notes, **images.notes(plan, kspace)}
    if acquisitions.dimensions[purposes.imaging].any():
        notes["coordinates"] = "those of the samples were not read: by the header the scan is cartesian"
    if times.max() > 1:
        counts = f"up to {times.max()} readouts a line, at least {times[times > 0].min()}"
        notes["duplicates"] = f"{duplicates} of {counts}"
    return KSpaceData(
        kspace=kspace,
        measured=measured_lines("data", kspace),
        name=acquisitions.path.stem,
        card={**acquisitions.provenance, **notes},
        noise_covariance=covariance,
        calibration=None if calibration is None else images.kspace(only_coils(calibration, coils), plan.calibration),
        geometry=images.geometry(heads, plan),
    )


@dataclass(frozen=True)
class GridImages:
    """How the grid that was filled becomes images' k-space.

    Parameters
    ----------
    encoding : MrdEncoding
        Of the image.
    """

    encoding: MrdEncoding

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return self.encoding.encoded.matrix[2] > 1

    @property
    def columns(self) -> slice:
        """Readout positions within the field of view of the image; all where the header does not say otherwise."""
        nx = self.encoding.encoded.matrix[0]
        encoded, wanted = self.encoding.encoded.field_of_view[0], self.encoding.reconstructed.field_of_view[0]
        if math.isnan(encoded) or math.isnan(wanted) or wanted >= encoded:
            return slice(0, nx)
        keep = min(nx, max(4, round(nx * wanted / encoded)))
        first = nx // 2 - keep // 2
        return slice(first, first + keep)

    def kspace(self, filled: NDArray[np.complex64], readouts: Sequence[Readout]) -> NDArray[np.complex64]:
        """(slice, coil, kz, ky, kx) as (slice, coil, ky, kx), of a volume as (x, coil, ky, kz); no oversampling."""
        if self.volume:
            positions = readout_positions(filled[0].transpose(3, 0, 2, 1))
            return np.ascontiguousarray(positions[self.columns])
        return _cropped(filled[:, :, 0], readouts, self.columns)

    def notes(self, plan: ReadoutPlan, kspace: NDArray[np.complex64]) -> dict[str, str]:
        """What became of a volume, for the card."""
        if not self.volume:
            return {}
        held = np.zeros(plan.shape[-1], dtype=bool)
        for readout in plan.readouts:
            held[readout.start : readout.start + readout.n_samples] = True
        notes = {"volume": volume_note(kspace)}
        if not held.all():
            notes["partial_echo"] = (
                f"columns {index_runs(~held)} of the readouts count as zeros: images are blurred along the readout"
            )
        return notes

    def geometry(self, heads: NDArray[Any], plan: ReadoutPlan) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice or plane, by the header's field of view and the slice's first readout."""
        encoded = self.encoding.encoded
        sizes = [length / count for length, count in zip(encoded.field_of_view, encoded.matrix, strict=True)]
        vectors = [name for name in _VECTORS if name in (heads.dtype.names or ()) and heads.dtype[name].shape == (3,)]
        first = {readout.slice: readout.index for readout in reversed(plan.readouts)}
        places = []
        for number in range(plan.shape[0]):
            place = [tuple(heads[name][first[number]]) for name in vectors] if len(vectors) == len(_VECTORS) else []
            places += self._planes(sizes, place) if self.volume else [_slice(sizes, place)]
        known = tuple(place for place in places if place is not None)
        return known if len(known) == len(places) else None

    def _planes(self, sizes: Sequence[float], place: Sequence[Vector]) -> list[SliceGeometry | None]:
        """Planes (ky, kz) at the readout positions of a volume whose centre and directions are ``place``."""
        pixel, middle = (sizes[1], sizes[2]), self.encoding.encoded.matrix[0] // 2
        planes = []
        for column in range(self.columns.start, self.columns.stop):
            vectors = list[Vector]()
            if place:
                centre, phase, read, across = place
                offset = (column - middle) * sizes[0]
                at = tuple(x + offset * step for x, step in zip(centre, read, strict=True))
                vectors = [at, phase, across, read]
            planes.append(SliceGeometry.of_header(pixel, sizes[0], vectors))
        return planes


def _slice(sizes: Sequence[float], place: Sequence[Vector]) -> SliceGeometry | None:
    return SliceGeometry.of_header((sizes[1], sizes[0]), sizes[2], place)


def _filled(
    acquisitions: Acquisitions, shape: tuple[int, ...], readouts: Sequence[Readout], duplicates: str
) -> tuple[NDArray[np.complex64], NDArray[np.intp]]:
    """K-space (slice, coil, kz, ky, kx), and how many readouts each line (slice, kz, ky) is from."""
    kspace = np.zeros(shape, np.complex64)
    times = np.zeros((shape[0], *shape[2:4]), dtype=np.intp)
    by_index = {readout.index: readout for readout in readouts}
    for at, samples in acquisitions.samples(list(by_index)):
        readout = by_index[at]
        row = kspace[readout.slice, :, readout.partition, readout.line]
        if times[readout.place] and duplicates == "last":
            row[:] = 0
        new = samples[:, readout.first_sample : readout.first_sample + readout.n_samples]
        row[:, readout.start : readout.start + readout.n_samples] += new[:, ::-1] if readout.reversed else new
        times[readout.place] += 1
    if duplicates == "average":
        kspace /= np.maximum(times, 1)[:, np.newaxis, ..., np.newaxis]
    return kspace, times


def _cropped(kspace: NDArray[np.complex64], readouts: Sequence[Readout], columns: slice) -> NDArray[np.complex64]:
    """The same lines (slice, coil, ky, kx) of the image's part between ``columns``, cut out in the image domain.

    What a partial echo leaves out stays empty, however far the transform spreads its neighbours.
    """
    nx, keep = kspace.shape[-1], columns.stop - columns.start
    if keep == nx:
        return kspace
    nearest = np.clip(np.rint((np.arange(keep) - keep // 2) * nx / keep).astype(int) + nx // 2, 0, nx - 1)
    held = np.zeros((kspace.shape[0], *kspace.shape[2:]), dtype=bool)
    for readout in readouts:
        held[readout.slice, readout.line, readout.start : readout.start + readout.n_samples] = True
    import scipy.fft  # here, because a process that reads one file would spend half of its time on the import

    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index, stored in enumerate(kspace):  # slice by slice: the transform needs several copies
        lines = scipy.fft.ifft(np.fft.ifftshift(stored, axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., columns]
        lines = scipy.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1)
        cropped[index] *= held[index][:, nearest]
    return cropped
