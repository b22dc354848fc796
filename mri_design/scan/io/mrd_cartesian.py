"""Cartesian acquisitions become k-space on a grid: slices, or a volume as one plane for every readout position.

First the headers alone place every readout (`plan_readouts`). Then the samples fill the grid (slice, coil, kz, ky, kx).
Finally readouts are cut to the field of view or, in a volume, transformed to one plane (ky, kz) for every position.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import ROUND_OFF, strongest_component
from mri_design.errors import InputError
from mri_design.scan import sampling
from mri_design.scan.data import KSpaceData, ScanSummary, middle_slice
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io import raw_data
from mri_design.scan.io.raw_data import Acquisitions, MrdEncoding, MrdHeader, Places, Purposes, RawSource
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.source import COUNTERS, ENCODING, SlicedSource, duplicates_cure

_REVERSED = 22  # number of the MRD acquisition flag
_OWN_SCAN = ("separate", "external")
"""Values of ``calibrationMode`` of a separate scan, perhaps with another contrast: for coil maps, never data."""
UNSAID = ("", "other")
"""Values of ``calibrationMode`` that leave open whether calibration is a separate scan."""
_ALIKE = ("encoding_space_ref", "number_of_samples", "discard_pre", "discard_post")
_SAME_FIELD_OF_VIEW = 0.01
_MOST_TURNED, _MUCH_BETTER = 4, 1.3
"""Largest rotation of reversed readouts, in samples, that headers do not give, and how much better it has to fit."""
_MANY = 4
"""Counters 1 to N count from 1 if more than one in four of them occurs."""
_VECTORS = ("position", "phase_dir", "read_dir", "slice_dir")
Place = TypeVar("Place")

_PLACE = ["slice", "partition", "line"]
_One = namedtuple("_One", ["at", "slice", "partition", "line", "first", "count", "start", "turn", "reversed"])
"""One readout: its position in the file's list of acquisitions; its slice (counted over those that occur), kz (0 in
slices) and row ky on the grid; its ``first`` kept sample and the ``count`` of kept samples; the column kx where they
start; the rotation in samples that brings the centre of a reversed whole readout to that of the others; and whether it
ran from high to low kx."""
_READOUT = np.dtype([(name, "?" if name == "reversed" else "p") for name in _One._fields])
Readouts = np.recarray[Any, np.dtype[np.record]]
"""Structured array, one element a readout; a loop takes tuples, because a field of a record takes a microsecond."""


@dataclass(frozen=True)
class ReadoutPlan:
    """The place of every readout on the grid.

    Parameters
    ----------
    readouts : structured array, see `Readouts`
        Data, in the file's order.
    calibration : structured array
        For coil maps alone, in the file's order.
    shape : tuple of int
        Grid (slice, coil, kz, ky, kx); slices have one kz.
    read_as, left_out : dict of str to tuple
        See `Provenance`.
    """

    readouts: Readouts
    calibration: Readouts
    shape: tuple[int, int, int, int, int]
    read_as: dict[str, tuple[Any, ...]]
    left_out: dict[str, tuple[Any, ...]]

    @property
    def times(self) -> NDArray[np.intp]:
        """Number of data readouts of each line, shape (slice, kz, ky)."""
        times = np.zeros((self.shape[0], *self.shape[2:4]), dtype=np.intp)
        np.add.at(times, tuple(self.readouts[name] for name in _PLACE), 1)
        return times

    def of_slice(self, number: int) -> ReadoutPlan:
        """The plan of one slice alone, as slice 0 of its grid."""
        data, calibration = (part[part.slice == number] for part in (self.readouts, self.calibration))
        data["slice"] = calibration["slice"] = 0
        return replace(self, readouts=data, calibration=calibration, shape=(1, *self.shape[1:]))


def plan_readouts(raw: Acquisitions, purposes: Purposes, limits: ReadLimits, *, repeats_allowed: bool) -> ReadoutPlan:
    """Place the readouts of slices, or of one volume.

    A line is placed at ``counter - centre + N // 2``, and so is a partition of a volume; or at its counter, from 0 or
    1, if that fits the grid and the header's centre does not. Calibration lines that were acquired within the scan are
    data too, if they fill a row of the grid that no other readout fills; those of a separate scan, or that repeat a
    row, serve the coil maps alone.

    Parameters
    ----------
    raw : Acquisitions
        Of the file or stream.
    purposes : Purposes
        Which of the acquisitions are the image's, and which calibration.
    limits : ReadLimits
        Bounds on slices and coils.
    repeats_allowed : bool
        Whether a line may come more than once.

    Raises
    ------
    InputError
        Naming the acquisition if headers disagree with each other or with the file's header, a counter leads out of the
        grid, a line comes again, or a volume has several slabs.
    """
    heads, header = raw.heads, raw.header
    # First, the channels and slices.
    read_as, left_out = dict[str, tuple[Any, ...]](), dict[str, tuple[Any, ...]]()
    chosen, encoding = purposes.imaging, purposes.encoding
    channels, slices, ranks = raw_data.channels_and_slices(raw, chosen, encoding, limits)
    if encoding.volume:
        wanted, cure = f"one volume, slab {slices[ranks[0]]}, or matrixSize.z 1", "Export each to a file of its own."
        raw.require(chosen, ranks == ranks[0], "slice", slices[ranks], wanted, cure)
    if int(slices[-1]) != slices.size - 1:
        read_as["slices_present"] = tuple(slices.tolist())
    # Second, the centre of k-space along all axes.
    stored, echo = (heads[name][chosen] for name in ("number_of_samples", "center_sample"))
    if (echo >= stored).any():
        at = int(np.argmax(echo >= stored))
        read_as["centre_beyond_samples"] = int(echo[at]), int(chosen[at]), int(stored[at])
    possible = _with_possible_centres(encoding, heads["idx"][chosen], left_out)
    encodings = [possible if one is encoding else one for one in header.encodings]
    # Third, the place of every readout of the image, and of the calibration readouts that fit its grid.
    readouts = _placed(raw, chosen, encodings, possible, slices)
    own, places = heads["encoding_space_ref"][purposes.calibration], purposes.calibration
    like = np.array([_same_grid(one, possible) for one in encodings])
    fit = like[np.minimum(own, len(like) - 1)] & (own < len(like)) & (heads["active_channels"][places] == channels)
    fit &= np.isin(heads["idx"]["slice"][places], slices)
    calibration = _placed(raw, places[fit], encodings, possible, slices, leave_out=True)
    # Fourth, the calibration readouts that are data as well.
    kind = kind_of(heads, int(chosen[0]))
    alike = np.array([kind_of(heads, at) == kind for at in calibration.at.tolist()], dtype=bool)
    data = calibration_data(
        possible.calibration_mode, set(readouts[_PLACE].tolist()), set(calibration[_PLACE][alike].tolist())
    )
    within = alike & np.array([place in data for place in calibration[_PLACE].tolist()], dtype=bool)
    counts = {"calibration_lines": int(within.sum()), "calibration_scan": int((~within).sum())}
    read_as |= {code: (count,) for code, count in counts.items() if count}
    if skipped := len(places) - len(within):
        left_out["calibration_skipped"] = skipped, False
    readouts = np.sort(np.concatenate([readouts, calibration[within]]), order="at").view(np.recarray)
    # Finally, refuse lines that come twice, unless that is allowed.
    _, first, inverse = np.unique(readouts[_PLACE], return_index=True, return_inverse=True)
    again = first[inverse] != np.arange(len(readouts))
    if again.any() and not repeats_allowed:
        one, before = readouts[again][0], readouts.at[first[inverse]][again][0]
        partition = f" and partition {one.partition}" if one.partition else ""
        got = f"row {one.line}{partition} of slice {one.slice}, as acquisition {before}"
        raise InputError(f"{raw.field}[{one.at}]: kspace_encode_step_1", got, "each line once", duplicates_cure())
    nx, ny, nz = possible.encoded.matrix
    return ReadoutPlan(readouts, calibration[~within], (int(slices.size), channels, nz, ny, nx), read_as, left_out)


def _with_possible_centres(
    encoding: MrdEncoding, counters: NDArray[Any], left_out: dict[str, tuple[Any, ...]]
) -> MrdEncoding:
    """The encoding with new centres instead of those that lead readouts out of a grid which their counters fit.

    The samples then show the centre (`find_centre`); the change is recorded in ``left_out``.
    """
    centres = list(encoding.centres)
    for step in (1, 2):
        counter, rows = f"kspace_encode_step_{step}", encoding.encoded.matrix[step]
        numbers = np.unique(counters[counter])
        first, last = int(numbers[0]), int(numbers[-1])
        centre = encoding.centre(step)
        starts = (0, 1) if len(numbers) > rows // _MANY else (0,)
        start = next((number for number in starts if number <= first and last < number + rows), None)
        if rows == 1 or start is None or (centre - rows // 2 <= first and last < centre - rows // 2 + rows):
            continue
        centres[step - 1] = rows // 2 + start
        taken = counter, first, last, rows, start, centre
        left_out["centre_beyond_grid"] = (taken, *left_out.get("centre_beyond_grid", ()))
    return replace(encoding, centres=(centres[0], centres[1]))


def _placed(
    raw: Acquisitions,
    at: Places,
    encodings: Sequence[MrdEncoding],
    image: MrdEncoding,
    slices: NDArray[Any],
    *,
    leave_out: bool = False,
) -> Readouts:
    """The readouts at some places, each with an encoding of its own, on the image's grid.

    A readout that leads out of the grid by its line, partition, number of samples or centre is refused or left out.
    """
    heads = raw.heads
    nx = image.encoded.matrix[0]
    readouts, own = np.zeros(len(at), _READOUT).view(np.recarray), heads["encoding_space_ref"][at]
    readouts["at"], readouts["slice"] = at, np.searchsorted(slices, heads["idx"]["slice"][at])
    fits = list[tuple[str, NDArray[np.bool_], NDArray[Any] | str, str, str]]()
    for name, step in (("line", 1), ("partition", 2))[: 1 + image.volume]:
        rows, centres = image.encoded.matrix[step], np.array([encoding.centre(step) for encoding in encodings])
        counter = heads["idx"][f"kspace_encode_step_{step}"][at].astype(np.intp)
        readouts[name] = row = counter - centres[own] + rows // 2
        wanted = f"one of rows 0 to {rows - 1}, of which {rows // 2} has the centre of k-space, {image.centre(step)}"
        cure = f"Compare encodedSpace.matrixSize.{'xyz'[step]} and the encoding limits with the scan."
        within = (row >= 0) & (row < rows)
        outside = [f"{counter[one]}, which is row {row[one]}" for one in np.flatnonzero(~within)[:1]]
        fits.append((f"kspace_encode_step_{step}", within, "".join(outside), wanted, cure))
    stored, before, after, echoes = (
        heads[name].astype(np.intp) for name in ("number_of_samples", "discard_pre", "discard_post", "center_sample")
    )
    all_kept, all_echoes, all_reversed = (
        stored - before - after,
        echoes - before,
        raw_data.has_flag(heads["flags"], _REVERSED),
    )
    kept, echo, backwards = all_kept[at], all_echoes[at], all_reversed[at]
    whole, from_start = kept == nx, np.where(backwards, kept - 1 - echo, echo)
    # The usual centre of whole readouts that run forwards; the middle if none of them has one.
    given = all_echoes[~all_reversed & (all_kept == nx) & (all_echoes > 0) & (all_echoes < nx)]
    usual = int(np.bincount(given).argmax()) if len(given) else nx // 2
    readouts["turn"] = np.where(backwards & whole & (echo > 0) & (echo < kept), usual - from_start, 0)
    # A partial echo: the sample at the centre of k-space goes to the centre of the grid.
    start = np.where(whole, 0, nx // 2 - from_start)
    readouts["first"], readouts["count"], readouts["start"], readouts["reversed"] = before[at], kept, start, backwards
    wanted = f"1 to {nx} samples, the encoded matrix, not counting those that are discarded"
    fits.append(("number_of_samples", (kept >= 1) & (kept <= nx), stored[at], wanted, ""))
    within, wanted = (start >= 0) & (start <= nx - kept), f"a centre that keeps all samples within {nx} columns"
    fits.append(("center_sample", within, echoes[at], wanted, ""))
    for name, good, got, wanted, cure in () if leave_out else fits:
        raw.require(at, good, name, got, wanted, cure)
    keep = np.logical_and.reduce([good for _, good, _, _, _ in fits])
    return readouts[keep].view(np.recarray)


def _same_grid(own: MrdEncoding, image: MrdEncoding) -> bool:
    """Whether calibration with another encoding lies on the image's grid."""
    axes = 3 if image.volume else 2  # the thickness of slices may differ
    lengths = zip(own.encoded.field_of_view[:axes], image.encoded.field_of_view[:axes], strict=True)
    alike = own.volume == image.volume and all(abs(a - b) <= _SAME_FIELD_OF_VIEW * b for a, b in lengths)
    return own is image or alike


def calibration_data(mode: str, imaging: Collection[Place], calibration: Collection[Place]) -> set[Place]:
    """Places on the grid where calibration readouts are data of the image, in a file or a stream.

    Calibration that was acquired within the scan is data at places without a readout of the image. If the header does
    not say how it was acquired, calibration that repeats a place of the image is taken for a separate scan.

    Parameters
    ----------
    mode : str
        ``calibrationMode`` of the header; may be empty.
    imaging, calibration : collection
        Places of the readouts of the image, and of the calibration readouts of the same kind (`kind_of`).
    """
    others = set(calibration).difference(imaging)
    return set() if mode in _OWN_SCAN or (mode in UNSAID and len(others) < len(set(calibration))) else others


def kind_of(heads: NDArray[Any], at: int) -> tuple[int, ...]:
    """What calibration readouts have to share with those of the image to be data.

    Encoding, samples, discarded samples, contrast, phase, repetition and set.
    """
    counters = (int(heads["idx"][name][at]) for name in COUNTERS)
    return (*(int(heads[name][at]) for name in _ALIKE), *counters)


@dataclass(frozen=True)
class CartesianSource(RawSource, SlicedSource):
    """One series of lines on a grid, whose headers are read before any samples.

    Raises
    ------
    InputError
        When it is read: as `plan_readouts`, for samples that do not fit their header, and as `KSpaceData`.
    """

    @property
    def encoding(self) -> MrdEncoding:
        """The encoding of the image."""
        return self.purposes.encoding

    @cached_property
    def plan(self) -> ReadoutPlan:
        """The place of every readout.

        Reversed whole readouts are rotated as the samples show: as their headers say; or not at all, because many files
        give the middle as the centre of readouts that run backwards too; or by a few samples, if the energies of the
        nearest forward readouts then agree much better.
        """
        limits = self.options.limits
        plan = plan_readouts(self.raw, self.purposes, limits, repeats_allowed=self.options.duplicates != "refuse")
        check_declared_shape("encodedSpace.matrixSize", plan.shape, 8, limits)
        whole = plan.readouts[plan.readouts.count == plan.shape[-1]]
        turned = whole[whole.reversed]
        if not turned.size:
            return plan
        away = np.abs(turned.slice - plan.shape[0] // 2) + np.abs(turned["partition"] - plan.shape[2] // 2)
        plane = turned[int(np.argmin(away))]
        here = whole[(whole.slice == plane.slice) & (whole["partition"] == plane.partition)]
        energies = [
            (one, np.sum(np.abs(kept).astype(np.float64) ** 2, axis=0)) for one, kept in _with_samples(self.raw, here)
        ]
        forwards, lags = [pair for pair in energies if not pair[0].reversed], range(-_MOST_TURNED, _MOST_TURNED + 1)
        by_header, agreement = 0.0, np.zeros(len(lags))
        for one, energy in (pair for pair in energies if pair[0].reversed):
            near = sorted(forwards, key=lambda pair, line=one.line: abs(pair[0].line - line))  # type: ignore[misc]
            for _, other in near[:2]:
                by_header += float(np.vdot(other, np.roll(energy[::-1], one.turn)))
                agreement += [np.vdot(other, np.roll(energy[::-1], lag)) for lag in lags]
        plain, best = agreement[lags.index(0)], int(agreement.argmax())
        much_better = agreement[best] > _MUCH_BETTER * max(by_header, plain)
        if much_better or plain > by_header:
            for part in (plan.readouts, plan.calibration):
                part["turn"][part.reversed & (part.count == plan.shape[-1])] = lags[best] if much_better else 0
        return plan

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice, or of every plane of a volume."""
        return geometry_of(self.encoding, self.raw.heads, self.plan.readouts, self.raw.header)

    @property
    def one_by_one(self) -> bool:
        """Whether these are slices: a readout of a volume has a sample in every plane."""
        return not self.encoding.volume

    def load(self) -> KSpaceData:
        """All slices, or planes."""
        read = self._read(self.plan)
        if not read["kspace"].any():
            cure = "If it is an exported design, labels without samples, mri-design info lists its lines."
            raise InputError(self.raw.field, "zeros in all readouts", "measured samples", cure)
        return KSpaceData(**read)

    def slice(self, index: int) -> KSpaceData:
        """One slice; planes of a volume are read together."""
        return KSpaceData(**self._read(self.plan.of_slice(index)))

    def samplings(self) -> tuple[sampling.Sampling, ...]:
        """Which samples were measured, by the headers alone."""
        plan, keep = self.plan, self.encoding.columns.stop - self.encoding.columns.start
        if not self.encoding.volume:
            return tuple(sampling.Sampling(held) for held in _held(plan.readouts, plan.shape, keep))
        plane = np.zeros((plan.shape[3], plan.shape[2]), dtype=bool)
        plane[plan.readouts.line, plan.readouts["partition"]] = True
        return (sampling.Sampling(plane),) * keep

    def summary(self) -> ScanSummary:
        """The samples of one slice, or of one plane of a volume, and the rest from headers."""
        samplings, volume = self.samplings(), self.encoding.volume
        index = middle_slice(samplings)
        read = self._read(self.plan if volume else self.plan.of_slice(index))
        part = KSpaceData(**read) if read["kspace"].any() else None
        if part is not None:
            samplings = part.samplings if volume else self._without_zero_readouts(samplings, index, part)
        return ScanSummary(
            samplings,
            read["kspace"].shape[1],
            index=index,
            part=part.select_slice(index) if part is not None and volume else part,
            geometry=self.geometry,
            by_headers=len(samplings) > 1,
            **{name: read[name] for name in ("name", "header", "provenance", "volume")},
        )

    def _without_zero_readouts(
        self, samplings: Sequence[sampling.Sampling], index: int, part: KSpaceData
    ) -> tuple[sampling.Sampling, ...]:
        """Samplings of slices by the headers, without readouts that hold zeros.

        Zeros usually fill the edges of k-space in all slices alike: lines that are empty in the slice that was read,
        although they have a readout, are read in the other slices too.
        """
        (held,) = part.samplings
        empty, readouts = samplings[index].lines & ~held.lines, self.plan.readouts
        suspect = empty[readouts.line] & (readouts.slice != index)
        lines = np.zeros((len(samplings), len(empty)), dtype=bool)
        lines[readouts.slice[~suspect], readouts.line[~suspect]] = True
        limit = ROUND_OFF * strongest_component(part.kspace)
        for one, kept in _with_samples(self.raw, readouts[suspect]):
            lines[one.slice, one.line] |= strongest_component(kept) > limit
        found = [sampling.Sampling(one.samples & there[:, None]) for one, there in zip(samplings, lines, strict=True)]
        return (*found[:index], held, *found[index + 1 :])

    def _read(self, plan: ReadoutPlan) -> dict[str, Any]:
        """Fields of a `KSpaceData` of all slices or planes, or of one slice."""
        raw, purposes, duplicates = self.raw, self.purposes, self.options.duplicates
        with sampling.within_single_precision(raw.field) as sums:
            stored = _filled(raw, plan, plan.readouts, duplicates)
            coils, dropped = sampling.working_coils(stored)
            kspace = images_kspace(self.encoding, sampling.only_coils(stored, coils), plan.readouts)
            sums.append(kspace)
            calibration = None
            if len(plan.calibration):
                calibration = self._on_grid(plan, plan.calibration, "average", coils)
                sums.append(calibration)
            times = self.plan.times
            least, most = int(times[times > 0].min()), int(times.max())
            read_as, left_out = {**plan.read_as, **self._cuts(plan)}, {**plan.left_out, **dropped}
            if raw.dimensions[purposes.imaging].any():
                left_out["coordinates_skipped"] = ()
            if most > 1:
                read_as["duplicates"] = duplicates, most, "line", least
            repeats = least if duplicates == "average" else 1
            covariance, provenance = self.noise(plan.readouts.at, coils, repeats, read_as, left_out)
            repeat = None
            if covariance is None and not self.encoding.volume:
                repeat = self._repeat(plan, kspace, coils, least)
                sums += [] if repeat is None else [repeat]
        return {
            "kspace": kspace,
            "measured": sampling.measured_lines("data", kspace),
            "name": raw.path.stem,
            "header": {"file": raw.path.name, "format": raw.format, **raw.header.notes},
            "provenance": provenance,
            "volume": self.encoding.volume,
            "noise_covariance": covariance,
            "calibration": calibration,
            "repeat": repeat,
            "geometry": geometry_of(self.encoding, raw.heads, plan.readouts, raw.header),
            "source": raw.header.source_of(int(raw.heads["idx"]["contrast"][purposes.imaging[0]])),
        }

    def _repeat(
        self, plan: ReadoutPlan, kspace: NDArray[np.complex64], coils: NDArray[np.intp], least: int
    ) -> NDArray[np.complex64] | None:
        """A second measurement of the same slices, whose difference from ``kspace`` shows the noise; None without one.

        For lines that came several times in this series it is the readout next to the first or last one that counts,
        or of an average the difference of two halves of its readouts, scaled to that of two averages of ``least``
        readouts. Otherwise it is the next repetition of the series, if that has the same readouts.

        Parameters
        ----------
        plan : ReadoutPlan
            Of the slices.
        kspace : complex64 array, shape (slice, coil, ky, kx)
            The coils that are read.
        coils : int array, shape (coil,)
            Their channels.
        least : int
            Number of readouts of a line, at least.
        """
        policy = self.options.duplicates
        _, place, counts = np.unique(plan.readouts[_PLACE], return_inverse=True, return_counts=True)
        rank, count = np.empty_like(place), counts[place]
        rank[np.argsort(place, kind="stable")] = np.concatenate([np.arange(times) for times in counts])
        uncounted = {"last": rank < count - 1, "first": rank > 0}.get(policy, rank % 2 == 1)
        if uncounted.any():
            again = replace(plan, readouts=plan.readouts[uncounted])
            once_more = self._on_grid(again, again.readouts, policy, coils)
            if policy != "average":
                return once_more
            n, half = (part.times[:, 0][:, np.newaxis, :, np.newaxis] for part in (plan, again))
            scale = np.sqrt(2 * half * n / (np.maximum(n - half, 1) * least)).astype(np.float32)
            return np.where(half > 0, kspace + scale * (once_more - kspace), 0).astype(np.complex64)
        numbers = self.purposes.series.get("repetition", ())
        if len(numbers) < 2:
            return None
        heads, at = self.raw.heads, int(plan.readouts.at[0])
        chosen = {name: int(raw_data.numbers_of(heads[at], name)) for name in (*COUNTERS, ENCODING)}
        nth = numbers.index(chosen["repetition"])
        chosen["repetition"] = (*numbers[nth + 1 :], numbers[nth - 1])[0]
        try:
            purposes = raw_data.sort_by_purpose(self.raw, chosen)
            other = replace(self, purposes=replace(purposes, calibration=purposes.calibration[:0])).plan
        except InputError:  # a repetition with other sizes, or repeated lines
            return None
        if other.shape != self.plan.shape:
            return None
        if plan.shape != other.shape:  # one slice of several
            other = other.of_slice(int(self.plan.readouts.slice[self.plan.readouts.at == at][0]))
        return self._on_grid(other, other.readouts, policy, coils)

    def _on_grid(
        self, plan: ReadoutPlan, readouts: Readouts, policy: str, coils: NDArray[np.intp]
    ) -> NDArray[np.complex64]:
        """K-space of some coils from some readouts, see `images_kspace`."""
        stored = _filled(self.raw, plan, readouts, policy)
        return images_kspace(self.encoding, sampling.only_coils(stored, coils), readouts)

    def _cuts(self, plan: ReadoutPlan) -> dict[str, tuple[Any, ...]]:
        """The centre by the file's counters, the oversampling that was removed, and empty samples of a volume."""
        encoding, columns, volume = self.encoding, self.encoding.columns, self.encoding.volume
        centres = [(n, centre) for n, centre in enumerate(encoding.centres[: 1 + volume], 1) if centre is not None]
        read_as: dict[str, tuple[Any, ...]] = {"centre_in_file": tuple(centres)} if centres else {}
        whole, keep = encoding.encoded.matrix[0], columns.stop - columns.start
        if keep < whole:
            length, shorter = (space.field_of_view[0] for space in (encoding.encoded, encoding.reconstructed))
            read_as["oversampling_removed"] = whole, length, keep, shorter
        held = np.zeros(whole, dtype=bool)
        for start, count in np.unique(plan.readouts[["start", "count"]]).tolist():
            held[start : start + count] = True
        return read_as | ({} if held.all() or not volume else {"partial_echo": (sampling.index_runs(~held),)})


def geometry_of(
    encoding: MrdEncoding, heads: NDArray[Any], readouts: Readouts, header: MrdHeader
) -> tuple[SliceGeometry, ...] | None:
    """Size and place of every slice or plane, by the header's field of view and the slice's first readout.

    Images are inverse Fourier transforms. If samples go with exp(-2πi k·r) along the directions of a readout, the rows
    and columns of the image run along these; if they go with the conjugate, along the opposite directions, through the
    same middle pixel. That holds for all encoded axes, for the slice's own only in a volume.
    """
    encoded, columns = encoding.encoded, encoding.columns
    sizes = [length / count for length, count in zip(encoded.field_of_view, encoded.matrix, strict=True)]
    stored = all(name in (heads.dtype.names or ()) and heads.dtype[name].shape == (3,) for name in _VECTORS)
    vectors = _VECTORS if stored and not header.unknown_place else ()
    against = ("phase_dir", "read_dir", "slice_dir")[: 2 + encoding.volume] if header.fourier_sign == 1 else ()
    _, first = np.unique(readouts.slice, return_index=True)
    places = []
    for at in readouts.at[first].tolist():
        place = [0.0 - heads[name][at] if name in against else heads[name][at] for name in vectors]
        if not encoding.volume:
            places.append(SliceGeometry.of_header((sizes[1], sizes[0]), sizes[2], place, header.unsettled))
            continue
        for column in range(columns.start, columns.stop):  # a plane (ky, kz) at each readout position
            offset = (column - encoded.matrix[0] // 2) * sizes[0]
            plane = [place[0] + offset * place[2], place[1], place[3], place[2]] if place else []
            places.append(SliceGeometry.of_header((sizes[1], sizes[2]), sizes[0], plane, header.unsettled))
    found = tuple(place for place in places if place is not None)
    return found if len(found) == len(places) else None


def _with_samples(raw: Acquisitions, readouts: Readouts) -> Iterator[tuple[Any, NDArray[np.complex64]]]:
    """Readouts in the file's order, each with its kept samples (coil, sample)."""
    by_place: dict[int, Any] = dict(zip(readouts.at.tolist(), map(_One._make, readouts.tolist()), strict=True))
    for at, samples in raw.samples(list(by_place)):
        one = by_place[at]
        yield one, samples[:, one.first : one.first + one.count]


def _filled(raw: Acquisitions, plan: ReadoutPlan, readouts: Readouts, duplicates: str) -> NDArray[np.complex64]:
    """K-space (slice, coil, kz, ky, kx)."""
    kspace, times = np.zeros(plan.shape, np.complex64), np.zeros_like(plan.times)
    for one, kept in _with_samples(raw, readouts):
        place, row = (one.slice, one.partition, one.line), kspace[one.slice, :, one.partition, one.line]
        times[place] += 1
        if times[place] > 1 and duplicates == "first":
            continue
        if duplicates == "last":
            row[:] = 0
        row[:, one.start : one.start + one.count] += upright(one, kept)
    if duplicates == "average":
        kspace /= np.maximum(times, 1)[:, np.newaxis, ..., np.newaxis]
    return kspace


def upright(readout: Any, kept: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """The samples (coil, sample) of a readout from low to high kx."""
    return np.roll(kept[:, ::-1], readout.turn, -1) if readout.reversed else kept


def images_kspace(encoding: MrdEncoding, filled: NDArray[np.complex64], readouts: Readouts) -> NDArray[np.complex64]:
    """(slice, coil, kz, ky, kx) as (slice, coil, ky, kx), or of a volume (x, coil, ky, kz), without oversampling.

    Lines are cut in the image domain, to the columns of the image. Samples that a partial echo leaves out stay empty.
    """
    nx, columns = filled.shape[-1], encoding.columns
    keep = columns.stop - columns.start
    if encoding.volume:
        return np.ascontiguousarray(sampling.readout_positions(filled[0].transpose(3, 0, 2, 1))[columns])
    kspace = filled[:, :, 0]
    if keep == nx:
        return kspace
    held = _held(readouts, filled.shape, keep)
    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index in np.ndindex(kspace.shape[:2]):  # one coil of one slice at a time: the transform needs several copies
        lines = np.fft.ifft(np.fft.ifftshift(kspace[index], axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., columns]
        lines = np.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1) * held[index[0]]
    return cropped


def _held(readouts: Readouts, shape: Sequence[int], keep: int) -> NDArray[np.bool_]:
    """Samples (slice, ky, kx) that readouts of slices hold on ``keep`` columns, each the nearest encoded column."""
    n_slices, nx = shape[0], shape[-1]
    nearest = np.clip(np.rint((np.arange(keep) - keep // 2) * nx / keep).astype(int) + nx // 2, 0, nx - 1)
    held = np.zeros((n_slices, shape[-2], keep), dtype=bool)
    for start, count in np.unique(readouts[["start", "count"]]).tolist():
        these = readouts[(readouts.start == start) & (readouts.count == count)]
        held[these.slice, these.line] |= (nearest >= start) & (nearest < start + count)
    return held
