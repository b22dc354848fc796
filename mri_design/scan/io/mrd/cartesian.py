"""Cartesian acquisitions become k-space on a grid: slices, or a volume as one plane for every readout position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.coils import only_coils, working_coils
from mri_design.scan.io.mrd.acquisitions import Acquisitions
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader
from mri_design.scan.io.mrd.noise import noise_of_data
from mri_design.scan.io.mrd.purposes import Purposes
from mri_design.scan.io.mrd.readouts import Readout, ReadoutPlan, plan_readouts
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.samples import measured_lines, readout_positions, volume_note, within_single_precision
from mri_design.scan.outline import ScanOutline, middle_slice
from mri_design.scan.sampling import ROUND_OFF, Sampling, index_runs, strongest_component

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
    plan = _planned(acquisitions, header, purposes, limits, duplicates)
    read = _read(acquisitions, header, purposes, plan, GridImages(purposes.encoding), duplicates, plan.times)
    if not read["kspace"].any():
        raise InputError(
            field=acquisitions.field,
            got=f"zeros in all {len(plan.readouts)} readouts",
            wanted="measured samples",
            cure="Labels without samples, as of a design that was exported, say what to measure: mri-design info lists "
            "their lines.",
        )
    return KSpaceData(**read)


def outline_cartesian(
    acquisitions: Acquisitions, header: MrdHeader, purposes: Purposes, limits: ReadLimits, duplicates: str
) -> ScanOutline:
    """The same scan with the samples of one slice, or of a volume with those of one plane; the rest from headers.

    Parameters
    ----------
    acquisitions, header, purposes, limits, duplicates
        As for `read_cartesian`.

    Raises
    ------
    InputError
        As `read_cartesian`, where samples that are read do not fit.
    """
    plan = _planned(acquisitions, header, purposes, limits, duplicates)
    images = GridImages(purposes.encoding)
    samplings = images.samplings(plan)
    index = middle_slice(samplings)
    alone = GridImages(purposes.encoding, images.columns.start + index) if images.volume else images
    chosen = plan if images.volume else plan.of_slice(index)
    read = _read(acquisitions, header, purposes, chosen, alone, duplicates, plan.times)
    if images.volume:
        read["card"]["volume"] = volume_note(len(samplings), read["kspace"].shape[2:])
    part = KSpaceData(**read) if read["kspace"].any() else None
    return ScanOutline(
        samplings if part is None else _looked_at(acquisitions, plan, samplings, index, part, images),
        read["kspace"].shape[1],
        name=read["name"],
        index=index,
        part=part,
        geometry=images.geometry(acquisitions.heads, plan, header),
        by_headers=len(samplings) > 1,
        card=read["card"],
    )


def _looked_at(
    acquisitions: Acquisitions,
    plan: ReadoutPlan,
    samplings: Sequence[Sampling],
    index: int,
    part: KSpaceData,
    images: GridImages,
) -> tuple[Sampling, ...]:
    """Samplings by the headers, less the readouts of zeros that the samples of one slice or plane lead to.

    A readout of a volume brings a sample to every plane, so that what is empty in one plane is empty in all. Lines that
    are empty in the slice that was read, although a readout is there, are looked at in the other slices too: zeros
    fill the edges of k-space in all slices alike.
    """
    (held,) = part.samplings
    if images.volume:
        return (held,) * len(samplings)
    empty = samplings[index].lines & ~held.lines
    suspects = {at.index: at for at in plan.readouts if empty[at.line] and at.slice != index}
    full = {(at.slice, at.line) for at in plan.readouts if at.index not in suspects}
    limit = ROUND_OFF * strongest_component(part.kspace)
    for number, samples in acquisitions.samples(list(suspects)):
        if strongest_component(samples) > limit:
            full.add((suspects[number].slice, suspects[number].line))
    lines = np.zeros((len(samplings), len(empty)), dtype=bool)
    lines[tuple(np.transpose(sorted(full)))] = True
    looked = (
        Sampling(one.samples & held_lines[:, np.newaxis]) for one, held_lines in zip(samplings, lines, strict=True)
    )
    return tuple(held if number == index else one for number, one in enumerate(looked))


def _planned(
    acquisitions: Acquisitions, header: MrdHeader, purposes: Purposes, limits: ReadLimits, duplicates: str
) -> ReadoutPlan:
    once = duplicates == "error"
    plan = plan_readouts(acquisitions.field, acquisitions.heads, header, purposes, limits, repeats_allowed=not once)
    check_declared_shape("encodedSpace.matrixSize", plan.shape, 8, limits)
    return plan


def _read(
    acquisitions: Acquisitions,
    header: MrdHeader,
    purposes: Purposes,
    plan: ReadoutPlan,
    images: GridImages,
    duplicates: str,
    times: NDArray[np.intp],
) -> dict[str, Any]:
    """What `KSpaceData` is made of; ``times`` is how often each line of the whole scan was measured."""
    with within_single_precision(acquisitions.field) as sums:
        stored = _filled(acquisitions, plan, plan.readouts, duplicates, images)
        coils, coil_notes = working_coils(stored)
        kspace = images.kspace(only_coils(stored, coils), plan.readouts)
        sums.append(kspace)
        calibration = None
        if plan.calibration:
            stored = _filled(acquisitions, plan, plan.calibration, "average", images)
            calibration = images.kspace(only_coils(stored, coils), plan.calibration)
            sums.append(calibration)
    repeats = int(times[times > 0].min()) if duplicates == "average" else 1
    places = [readout.index for readout in plan.readouts]
    covariance, noise_notes = noise_of_data(
        acquisitions, purposes.noise, places, coils, bandwidth=header.noise_bandwidth, repeats=repeats
    )
    notes = {**purposes.notes, **plan.notes, **coil_notes, **noise_notes, **images.notes(plan, kspace)}
    notes |= header.identifier_notes
    if acquisitions.dimensions[purposes.imaging].any():
        notes["coordinates_skipped"] = "those of the samples: by the header the scan is cartesian"
    if times.max() > 1:
        counts = f"up to {times.max()} readouts a line, at least {times[times > 0].min()}"
        notes["duplicates"] = f"{duplicates} of {counts}"
    return {
        "kspace": kspace,
        "measured": measured_lines("data", kspace),
        "name": acquisitions.path.stem,
        "card": {**acquisitions.provenance, **notes},
        "noise_covariance": covariance,
        "calibration": calibration,
        "geometry": images.geometry(acquisitions.heads, plan, header),
        "source": header.source_of(int(acquisitions.heads["idx"]["contrast"][purposes.imaging[0]])),
    }


@dataclass(frozen=True)
class GridImages:
    """How the grid that was filled becomes images' k-space.

    Parameters
    ----------
    encoding : MrdEncoding
        Of the image.
    only : int, optional
        Of a volume, the one readout position (encoded column) that is made; all within the field of view by default.
    """

    encoding: MrdEncoding
    only: int | None = None

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return self.encoding.encoded.matrix[2] > 1

    @property
    def columns(self) -> slice:
        """Readout positions within the field of view of the image; all where the header does not say otherwise."""
        nx = self.encoding.encoded.matrix[0]
        if self.only is not None:
            return slice(self.only, self.only + 1)
        encoded, wanted = self.encoding.encoded.field_of_view[0], self.encoding.reconstructed.field_of_view[0]
        if math.isnan(encoded) or math.isnan(wanted) or wanted >= encoded:
            return slice(0, nx)
        keep = min(nx, max(4, round(nx * wanted / encoded)))
        first = nx // 2 - keep // 2
        return slice(first, first + keep)

    @property
    def weights(self) -> NDArray[np.complex64] | None:
        """By what the samples of a readout are multiplied and summed to give the one position; None where all are made.

        Row ``only`` of the centred orthonormal inverse Fourier transform.
        """
        if self.only is None:
            return None
        nx = self.encoding.encoded.matrix[0]
        turns = (np.arange(nx) - nx // 2) * (self.only - nx // 2) / nx
        return np.asarray(np.exp(2j * np.pi * turns) / math.sqrt(nx), dtype=np.complex64)

    def kspace(self, filled: NDArray[np.complex64], readouts: Sequence[Readout]) -> NDArray[np.complex64]:
        """(slice, coil, kz, ky, kx) as (slice, coil, ky, kx), of a volume as (x, coil, ky, kz); no oversampling."""
        if self.volume:
            planes = filled[0].transpose(3, 0, 2, 1)
            return np.ascontiguousarray(planes if self.only is not None else readout_positions(planes)[self.columns])
        return _cropped(filled[:, :, 0], readouts, self.columns)

    def samplings(self, plan: ReadoutPlan) -> tuple[Sampling, ...]:
        """Which samples were measured, by the headers alone, of every slice or every plane of a volume."""
        keep = self.columns.stop - self.columns.start
        if not self.volume:
            return tuple(Sampling(held) for held in _held(plan.readouts, plan.shape, keep))
        plane = np.zeros((plan.shape[3], plan.shape[2]), dtype=bool)
        for readout in plan.readouts:
            plane[readout.line, readout.partition] = True
        return (Sampling(plane),) * keep

    def notes(self, plan: ReadoutPlan, kspace: NDArray[np.complex64]) -> dict[str, str]:
        """Where the file's counters have the centre, what was cut off the readouts, and what became of a volume."""
        notes = self._centre_and_cut
        if not self.volume:
            return notes
        held = np.zeros(plan.shape[-1], dtype=bool)
        for readout in plan.readouts:
            held[readout.start : readout.start + readout.n_samples] = True
        notes["volume"] = volume_note(len(kspace), kspace.shape[2:])
        if not held.all():
            notes["partial_echo"] = (
                f"columns {index_runs(~held)} of the readouts count as zeros: images are blurred along the readout"
            )
        return notes

    @property
    def _centre_and_cut(self) -> dict[str, str]:
        encoded, wanted = self.encoding.encoded, self.encoding.reconstructed
        counters = [("kspace_encode_step_1", self.encoding.centre_line)]
        counters += [("kspace_encode_step_2", self.encoding.centre_partition)] if self.volume else []
        said = ", ".join(f"{name} = {centre}" for name, centre in counters if centre is not None)
        notes = {"centre_in_file": said} if said else {}
        keep = GridImages(self.encoding).columns
        if keep.stop - keep.start < encoded.matrix[0]:
            notes["oversampling_removed"] = (
                f"readouts of {encoded.matrix[0]} samples over {encoded.field_of_view[0]:g} mm were cut to the "
                f"{keep.stop - keep.start} of {wanted.field_of_view[0]:g} mm"
            )
        return notes

    def geometry(self, heads: NDArray[Any], plan: ReadoutPlan, header: MrdHeader) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice or plane, by the header's field of view and the slice's first readout.

        Images are made by the inverse Fourier transform: from samples that go with exp(-2πi k·r) along the directions
        of a readout they grow along these, and from samples that go with the conjugate along the opposite ones, through
        the same pixel in the middle. That holds for all axes that are encoded, the slice's own only in a volume.
        """
        encoded = self.encoding.encoded
        sizes = [length / count for length, count in zip(encoded.field_of_view, encoded.matrix, strict=True)]
        vectors = [name for name in _VECTORS if name in (heads.dtype.names or ()) and heads.dtype[name].shape == (3,)]
        first = {readout.slice: readout.index for readout in reversed(plan.readouts)}
        places = []
        for number in range(plan.shape[0]):
            place = list[Vector]()
            if len(vectors) == len(_VECTORS) and not header.unknown_place:
                place = self._along_image([tuple(heads[name][first[number]]) for name in vectors], header.fourier_sign)
            places += self._planes(sizes, place, header) if self.volume else [_slice(sizes, place, header)]
        known = tuple(place for place in places if place is not None)
        return known if len(known) == len(places) else None

    def _along_image(self, place: Sequence[Vector], fourier_sign: int | None) -> list[Vector]:
        """Centre, and directions of the image's ky, kx and slice, from those of a readout."""
        turned = (False, True, True, self.volume)
        return [
            tuple(0.0 - x for x in vector) if against and fourier_sign == 1 else vector
            for vector, against in zip(place, turned, strict=True)
        ]

    def _planes(self, sizes: Sequence[float], place: Sequence[Vector], header: MrdHeader) -> list[SliceGeometry | None]:
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
            planes.append(SliceGeometry.of_header(pixel, sizes[0], vectors, header.unsettled))
        return planes


def _slice(sizes: Sequence[float], place: Sequence[Vector], header: MrdHeader) -> SliceGeometry | None:
    return SliceGeometry.of_header((sizes[1], sizes[0]), sizes[2], place, header.unsettled)


def _filled(
    acquisitions: Acquisitions,
    plan: ReadoutPlan,
    readouts: Sequence[Readout],
    duplicates: str,
    images: GridImages,
) -> NDArray[np.complex64]:
    """K-space (slice, coil, kz, ky, kx); of the images' one readout position (slice, coil, kz, ky, 1)."""
    weights = images.weights
    kspace = np.zeros(plan.shape if weights is None else (*plan.shape[:-1], 1), np.complex64)
    times = np.zeros((plan.shape[0], *plan.shape[2:4]), dtype=np.intp)
    by_index = {readout.index: readout for readout in readouts}
    for at, samples in acquisitions.samples(list(by_index)):
        readout = by_index[at]
        row = kspace[readout.slice, :, readout.partition, readout.line]
        if times[readout.place] and duplicates == "last":
            row[:] = 0
        columns = slice(readout.start, readout.start + readout.n_samples)
        new = samples[:, readout.first_sample : readout.first_sample + readout.n_samples]
        new = new[:, ::-1] if readout.reversed else new
        if weights is None:
            row[:, columns] += new
        else:
            row[:, 0] += new @ weights[columns]
        times[readout.place] += 1
    if duplicates == "average":
        kspace /= np.maximum(times, 1)[:, np.newaxis, ..., np.newaxis]
    return kspace


def _cropped(kspace: NDArray[np.complex64], readouts: Sequence[Readout], columns: slice) -> NDArray[np.complex64]:
    """The same lines (slice, coil, ky, kx) of the image's part between ``columns``, cut out in the image domain.

    What a partial echo leaves out stays empty, however far the transform spreads its neighbours.
    """
    nx, keep = kspace.shape[-1], columns.stop - columns.start
    if keep == nx:
        return kspace
    held = _held(readouts, (*kspace.shape[:2], 1, *kspace.shape[2:]), keep)
    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index in np.ndindex(kspace.shape[:2]):  # one coil of one slice at a time: the transform needs several copies
        lines = np.fft.ifft(np.fft.ifftshift(kspace[index], axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., columns]
        lines = np.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1) * held[index[0]]
    return cropped


def _held(readouts: Sequence[Readout], shape: Sequence[int], keep: int) -> NDArray[np.bool_]:
    """Which samples (slice, ky, kx) readouts of slices hold, on ``keep`` columns: those nearest to the encoded ones."""
    n_slices, nx = shape[0], shape[-1]
    nearest = np.clip(np.rint((np.arange(keep) - keep // 2) * nx / keep).astype(int) + nx // 2, 0, nx - 1)
    held = np.zeros((n_slices, shape[-2], keep), dtype=bool)
    for readout in readouts:
        within = (nearest >= readout.start) & (nearest < readout.start + readout.n_samples)
        held[readout.slice, readout.line] |= within
    return held
