"""An export: the files of one format, made from what a run left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.evaluation.tables import csv_text
from mri_design.runs.made_files import (
    NO_SIZES,
    WITHOUT_UNIT,
    MadeFiles,
    ending_of,
    name_beside,
    what_is_unknown,
    where_is_unknown,
    whose_it_is,
)
from mri_design.runs.stored_run import (
    StoredImages,
    StoredPlane,
    StoredRun,
    read_images,
    read_manifest,
    read_plane,
    read_run,
    read_shots,
)
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.atomic import npy_bytes
from mri_design.scan.trajectories.exchange import maps_to_bart, planes_to_bart
from mri_design.scan.writing.cfl import pair_files
from mri_design.scan.writing.dicom import DicomLabels, dicom_bytes
from mri_design.scan.writing.mrd import mrd_skeleton_bytes
from mri_design.scan.writing.nifti import nifti_bytes
from mri_design.sequences.arms import largest_bandwidth
from mri_design.sequences.orders import LineOrder, Order, PlaneOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import PulseqFile, pulseq_file
from mri_design.sequences.scanner import Scanner
from mri_design.sequences.settings import SequenceKind, SequenceSettings
from mri_design.sequences.verification import Verified

_MILLI = 1e-3
_LARGEST_EXCITATION = 90.0
_WORDS = {
    "slice_thickness": ("slices of {} mm", 1e3),
    "echo_time": ("an echo time of {} ms", 1e3),
    "repetition_time": ("a repetition time of {} ms", 1e3),
    "flip_angle": ("a flip angle of {} degrees", 1.0),
}


@dataclass(frozen=True, kw_only=True)
class ScanParameters:
    """What is known of a scan, by the names of `SequenceSettings`; None where its file does not say.

    Parameters
    ----------
    slice_thickness : float or None
        Metres.
    echo_time, repetition_time : float or None
        Seconds; of a turbo spin echo the effective echo time.
    flip_angle : float or None
        Degrees.
    """

    slice_thickness: float | None = None
    echo_time: float | None = None
    repetition_time: float | None = None
    flip_angle: float | None = None

    @classmethod
    def of(cls, run: StoredImages) -> ScanParameters:
        """Those of a run's scan: of its geometry, and of the header that its source was made from."""
        said: Mapping[str, str] = {} if run.source is None else run.source.identifiers
        found = {name: float(said[word]) for word, name in _KEYWORDS.items() if word in said}
        known = {name: value * (1 if name == "flip_angle" else _MILLI) for name, value in found.items() if value > 0}
        thickness = None if run.geometry is None else run.geometry.thickness
        return cls(slice_thickness=None if thickness is None else thickness * _MILLI, **known)

    @property
    def known(self) -> dict[str, float]:
        """What is known, by name."""
        return {part.name: getattr(self, part.name) for part in fields(self) if getattr(self, part.name) is not None}

    def defaults(self, kind: SequenceKind) -> dict[str, float]:
        """Settings of a sequence of a kind, in the place of its usual defaults.

        Of a turbo spin echo the time between echoes and the angle of the refocusing pulses are asked for, which headers
        do not have: theirs are the effective echo time and the angle of the excitation. A gradient echo does not excite
        by more than 90 degrees.
        """
        if kind == "tse":
            return {name: value for name, value in self.known.items() if name in ("slice_thickness", "repetition_time")}
        too_large = self.flip_angle is not None and self.flip_angle > _LARGEST_EXCITATION
        return {name: value for name, value in self.known.items() if not (too_large and name == "flip_angle")}

    def differing(self, settings: SequenceSettings) -> str:
        """A sentence about what the scan had and the sequence has not; empty where that is nothing."""
        others = {
            name: value for name, value in self.known.items() if abs(getattr(settings, name) - value) > 1e-6 * value
        }
        if not others:
            return ""
        here, there = (
            [_WORDS[name][0].format(f"{float(values[name] * _WORDS[name][1]):.5g}") for name in others]
            for values in ({name: getattr(settings, name) for name in others}, others)
        )
        of_trains = settings.kind == "tse" and {"echo_time", "flip_angle"} & set(others)
        why = (
            " In a turbo spin echo they are the time between echoes and the angle of the refocusing."
            if of_trains
            else ""
        )
        return f"Other than in the scan: {', '.join(here)}, where it had {', '.join(there)}.{why}"


_KEYWORDS = {"EchoTime": "echo_time", "RepetitionTime": "repetition_time", "FlipAngle": "flip_angle"}
"""By the keywords of DICOM, whose times are milliseconds."""


ENDINGS = {
    "nifti": (".nii.gz", ".nii"),
    "dicom": (".dcm",),
    "cfl": (".cfl",),
    "csv": (".csv",),
    "npy": (".npy",),
    "mrd": (".h5", ".mrd"),
    "seq": (".seq",),
}
"""Formats, and how their files may be called."""
_STD, _MAPS = "_std", "_maps"
_UNKNOWN_SIZE = "The run does not say how large pixels are"


@dataclass(frozen=True)
class SequenceRequest:
    """How the lines are to be measured, as far as it is not known from the run.

    Parameters
    ----------
    scanner : Scanner
        Whose limits hold.
    settings : callable
        Takes the field of view (ky, kx) in metres, the number of samples of a readout, whether the lines come in echo
        trains, and what is known of the scan; gives the settings.
    resolution : float, optional
        Pixel size along the readout, metres; by default that of the run's image, or the one along phase encoding.
    slab : float, optional
        Thickness that is excited, metres, where it was given: along kz it is the field of view of a plane.
    bandwidth : float, optional
        Hz for each pixel, where it was given: arms of spirals have the largest one that the scanner can play without.
    train : int, optional
        Length of the echo trains into which lines of a run without any are put, one after the other in their order.
    """

    scanner: Scanner
    settings: Callable[[tuple[float, float], int, bool, ScanParameters], SequenceSettings]
    resolution: float | None = None
    slab: float | None = None
    bandwidth: float | None = None
    train: int | None = None


@dataclass(frozen=True)
class ExportRequest:
    """What is asked for.

    Parameters
    ----------
    folder : Path
        Of a design, a reconstruction or a protocol.
    form : str
        One of `ENDINGS`.
    out : Path
        The file.
    field_of_view : tuple of float, optional
        (ky, kx) in metres; by default that of the scan, where its file said.
    sequence : SequenceRequest, optional
        For ``seq``, which needs it.

    Raises
    ------
    UsageError
        For an unknown format or the wrong ending of the file's name.
    """

    folder: Path
    form: str
    out: Path
    _: KW_ONLY
    field_of_view: tuple[float, float] | None = None
    sequence: SequenceRequest | None = None

    def __post_init__(self) -> None:
        if self.form not in ENDINGS:
            raise UsageError(f"there is no format {self.form!r}; choose one of {', '.join(ENDINGS)}")
        if ending_of(self.out, ENDINGS[self.form]) is None:
            wanted = " or ".join(ENDINGS[self.form])
            raise UsageError(f"{self.out.name} is no file name ending in {wanted}, as the format {self.form} needs")

    def beside(self, mark: str) -> Path:
        """The name of a second file: the mark stands before the ending."""
        return name_beside(self.out, ending_of(self.out, ENDINGS[self.form]) or "", mark)


def export_run(request: ExportRequest) -> MadeFiles:
    """Make the files; nothing is written.

    Where the run was about one slice or series of several, a sentence says which.

    Raises
    ------
    UsageError
        Where the folder holds no finished run, or not what the format is about.
    InputError
        Where a file of the run cannot be used, or a sequence cannot be had on the scanner.
    SequenceError
        Where a sequence is not what was designed.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    made = _made_files(request)
    about = read_manifest(request.folder)["settings"].get("part_of_scan")
    return replace(made, sentences=(*made.sentences, f"Of the run's scan: {about}.")) if about else made


def _made_files(request: ExportRequest) -> MadeFiles:
    if request.form == "seq":
        plane, shots = read_plane(request.folder), read_shots(request.folder)
        if plane is not None and plane.chosen:
            return _seq_of_plane(request, read_images(request.folder), plane.order)
        if shots is not None:
            return _seq_of_shots(request, read_images(request.folder), *shots)
    if request.form in _OF_IMAGES:
        return _OF_IMAGES[request.form](request, read_images(request.folder))
    if request.form in _OF_PLANES:
        images, plane = read_images(request.folder), read_plane(request.folder)
        if plane is not None:
            return _OF_PLANES[request.form](request, images, plane)
        if request.form == "cfl" and images.counted != "lines" and images.maps is not None:
            return _maps_of_trajectory(request, images.maps)
    return _OF_LINES[request.form](request, read_run(request.folder))


def _geometry(request: ExportRequest, run: StoredImages, shape: tuple[int, int]) -> SliceGeometry | None:
    """Of the images; None where nobody says how large pixels are."""
    if request.field_of_view is None:
        return run.geometry
    return (run.geometry or NO_SIZES).with_field_of_view(request.field_of_view, shape)


def _images(request: ExportRequest, run: StoredImages) -> list[tuple[Path, str, NDArray[Any]]]:
    """File, name and values of the magnitude and, where there are error bars, of the standard deviation."""
    if run.image is None:
        raise UsageError(f"{run.name} holds no image; {request.form} is for runs of design and recon")
    images = [(request.out, "magnitude", np.abs(run.image))]
    return images if run.std is None else [*images, (request.beside(_STD), "standard deviation", run.std)]


def _nifti(request: ExportRequest, run: StoredImages) -> MadeFiles:
    images = _images(request, run)
    geometry = _geometry(request, run, images[0][2].shape)
    compressed = request.out.name.endswith(".gz")
    files = {
        path: nifti_bytes(image, geometry, f"{name}, mri-design", compressed=compressed) for path, name, image in images
    }
    said = [*(f"{name}: {path}" for path, name, _ in images), *what_is_unknown("The run", geometry, WITHOUT_UNIT)]
    if run.maps is not None:
        path, text = request.beside(_MAPS), f"{len(run.maps)} coil maps, mri-design"
        files[path] = nifti_bytes(run.maps[:, np.newaxis], geometry, text, compressed=compressed)
        said.append(f"coil maps, complex, coil after coil along the fourth axis: {path}")
    return MadeFiles(files, tuple(said))


def _dicom(request: ExportRequest, run: StoredImages) -> MadeFiles:
    images = _images(request, run)
    geometry = _geometry(request, run, images[0][2].shape)
    derivation = f"{run.measured}, reconstructed by mri-design"
    files = {
        path: dicom_bytes(image, geometry, DicomLabels(name, derivation, run.identity, number, source=run.source))
        for number, (path, name, image) in enumerate(images, 1)
    }
    said = [*(f"{name}: {path}" for path, name, _ in images), *whose_it_is(run.source)]
    if geometry is None:
        said.append(f"{_UNKNOWN_SIZE}, and neither does the file. --fov gives the field of view.")
    else:
        said += where_is_unknown(geometry)
    return MadeFiles(files, tuple(said))


def _cfl(request: ExportRequest, run: StoredRun) -> MadeFiles:
    columns = 1 if run.image is None else run.image.shape[1]
    mask = np.broadcast_to(run.mask, (columns, len(run.mask)))
    said = f"mask ({columns} x {len(run.mask)}, for bart pics -p): {request.out.with_suffix('')}"
    return _pairs(request, mask, said, None if run.maps is None else maps_to_bart(run.maps))


def _cfl_of_plane(request: ExportRequest, run: StoredImages, plane: StoredPlane) -> MadeFiles:
    rows, columns = plane.shape
    said = f"mask (1 x {rows} x {columns}, for bart pics -p): {request.out.with_suffix('')}"
    return _pairs(request, run.mask[np.newaxis], said, None if run.maps is None else planes_to_bart(run.maps))


def _maps_of_trajectory(request: ExportRequest, maps: NDArray[np.complex64]) -> MadeFiles:
    made = _pairs(request, None, "", maps_to_bart(maps))
    said = "There is no mask of a grid here: mri-design convert takes samples and trajectory to BART."
    return MadeFiles(made.files, (*made.sentences, said))


def _pairs(
    request: ExportRequest, mask: NDArray[np.bool_] | None, said: str, maps: NDArray[np.complex64] | None
) -> MadeFiles:
    """Mask and coil maps as BART's pairs, those that there are."""
    stem = request.out.with_suffix("")
    files = {} if mask is None else pair_files(stem, mask)
    sentences = [said] if said else []
    if maps is not None:
        beside = stem.with_name(f"{stem.name}{_MAPS}")
        files |= pair_files(beside, maps)
        sentences.append(f"coil maps ({' x '.join(map(str, maps.shape))}, for bart pics): {beside}")
    return MadeFiles(files, tuple(sentences))


def _csv(request: ExportRequest, run: StoredRun) -> MadeFiles:
    rows = _in_trains(run.order.trains, lambda line: {"line": line, "ky": line - run.order.n_lines // 2})
    return MadeFiles({request.out: csv_text(rows).encode()}, (f"{len(rows)} lines in their order: {request.out}",))


def _csv_of_plane(request: ExportRequest, _: StoredImages, plane: StoredPlane) -> MadeFiles:
    middle_y, middle_z = (side // 2 for side in plane.shape)

    def place(number: int) -> dict[str, int]:
        row, column = divmod(number, plane.shape[1])
        return {"sample": number, "ky": row - middle_y, "kz": column - middle_z}

    rows = _in_trains(plane.trains, place)
    return MadeFiles({request.out: csv_text(rows).encode()}, _counted(plane, request.out))


def _in_trains(trains: Sequence[Sequence[int]], place: Callable[[int], dict[str, int]]) -> list[Mapping[str, object]]:
    """Rows of a table: place in the order, what is measured, shot and echo."""
    found = [(number, shot, echo) for shot, train in enumerate(trains) for echo, number in enumerate(train, 1)]
    return [
        {"order": order, **place(number), "shot": shot, "echo": echo}
        for order, (number, shot, echo) in enumerate(found)
    ]


def _npy(request: ExportRequest, run: StoredRun) -> MadeFiles:
    lines = np.array(run.order.lines, dtype=np.int64)
    return _with_maps(request, run, lines, (f"{len(lines)} lines in their order: {request.out}",))


def _npy_of_plane(request: ExportRequest, run: StoredImages, plane: StoredPlane) -> MadeFiles:
    samples = np.array(plane.samples, dtype=np.int64)
    said = "Its columns are the row ky and the column kz of every sample, counted from 0."
    return _with_maps(request, run, samples, (*_counted(plane, request.out), said))


def _with_maps(request: ExportRequest, run: StoredImages, order: NDArray[np.int64], said: tuple[str, ...]) -> MadeFiles:
    files = {request.out: npy_bytes(order)}
    if run.maps is not None:
        beside = request.beside(_MAPS)
        files[beside] = npy_bytes(run.maps)
        said = (*said, f"coil maps (coil, row, column): {beside}")
    return MadeFiles(files, said)


def _counted(plane: StoredPlane, out: Path) -> tuple[str, ...]:
    rows, columns = plane.shape
    order = "in their order" if plane.chosen else "by their numbers, because the run chose no order"
    return (f"{len(plane.samples)} samples of a plane of {rows} x {columns}, {order}: {out}",)


def _mrd(request: ExportRequest, run: StoredRun) -> MadeFiles:
    shape = (len(run.mask), len(run.mask)) if run.image is None else run.image.shape
    known = _geometry(request, run, (shape[0], shape[1]))
    content = mrd_skeleton_bytes(run.order.trains, (shape[0], shape[1]), known)
    said = [f"{len(run.order.lines)} readouts with their labels, samples zero: {request.out}"]
    if run.image is None:
        said.append(f"The run does not know its readouts: they have {shape[1]} samples, as many as there are lines.")
    return MadeFiles({request.out: content}, (*said, *what_is_unknown("The run", known)))


def _seq(request: ExportRequest, run: StoredRun) -> MadeFiles:
    asked = _asked(request)
    extents = request.field_of_view or _known_extents(run)
    if extents is None:
        raise UsageError(f"{_UNKNOWN_SIZE.lower()}; give the field of view in metres, as --fov 0.24")
    order = _order_in_trains(run.order, asked.train)
    scan, samples = ScanParameters.of(run), _samples(extents, asked.resolution, run)
    settings = asked.settings(extents, samples, order.echoes > 1 or asked.train is not None, scan)
    if settings.kind == "tse" and order.echoes == 1 and asked.train is None:
        raise InputError(
            field="echo trains",
            got="tse of lines that come one by one",
            wanted="the length of echo trains",
            cure="Give it as --etl 8, or design in trains (--block 8).",
        )
    if settings.kind == "gre" and asked.train is not None:
        raise InputError(field="echo trains", got=f"--etl {asked.train} of gre", wanted="tse, which has echo trains")
    made = _made(order, settings, asked.scanner, scan)
    echoes = f", echo trains of {order.echoes}" if settings.kind == "tse" else ""
    effective = made.verified.echo_time * (order.dc_echo if settings.kind == "tse" else 1)
    size = " x ".join(f"{1e3 * x / n:.3g}" for x, n in zip(extents, (order.n_lines, settings.samples), strict=True))
    said = (
        f"{settings.kind}{echoes}, {len(order.lines)} lines: {request.out}",
        f"Pixels of {size} mm (ky x kx), slices of {1e3 * settings.slice_thickness:.3g} mm, "
        f"{_times(made.verified, effective)}.",
    )
    return _sequence(request, made, said, order, settings, scan)


def _order_in_trains(order: LineOrder, length: int | None) -> LineOrder:
    """The lines in echo trains of a length, one after the other in their order; as they are without one."""
    if length is None:
        return order
    if order.echoes > 1 and length != order.echoes:
        raise InputError(
            field="echo trains",
            got=f"{length} lines a train",
            wanted=f"{order.echoes}, because the run's lines come in such trains",
            cure="Leave out --etl.",
        )
    return order if order.echoes > 1 else LineOrder.in_trains(order.lines, length, order.n_lines)


def _made(order: Order, settings: SequenceSettings, scanner: Scanner, scan: ScanParameters) -> PulseqFile:
    """The file; a refusal says where a value is that of the scan and nobody asked for it."""
    try:
        return pulseq_file(order, settings, scanner)
    except InputError as error:
        name = error.field.replace(" ", "_")
        if name not in scan.known or getattr(settings, name) != scan.known[name]:
            raise
        cure = f"{error.cure} It is that of the scan: another one has to be given.".strip()
        raise InputError(field=error.field, got=error.got, wanted=error.wanted, cure=cure) from error


def _sequence(
    request: ExportRequest,
    made: PulseqFile,
    said: tuple[str, ...],
    order: Order,
    settings: SequenceSettings,
    scan: ScanParameters,
) -> MadeFiles:
    """The file with what is said of it, and what differs from the scan."""
    said = (*said, _labelled(order))
    differing = scan.differing(settings)
    asked = _asked(request)
    return MadeFiles(
        {request.out: made.content}, (*said, *filter(None, [differing]), _found(made.verified, asked.scanner))
    )


def _labelled(order: Order) -> str:
    """The largest label of each name, beside the count that an interpreter takes from it."""
    largest = {name: max(values) for name, values in order.labels.items()}
    sides = dict(zip(largest, order.matrix or (), strict=False))
    told = [
        f"{name} up to {value}" + (f", counted as {value + 1} of {sides[name]}" if name in sides else "")
        for name, value in largest.items()
    ]
    return f"Labels: {'; '.join(told)}."


def _seq_of_plane(request: ExportRequest, run: StoredImages, order: PlaneOrder) -> MadeFiles:
    asked, extents = _asked(request), request.field_of_view
    if extents is None:
        raise UsageError("the run does not say how large the volume is; give its extent along ky and kx, as --fov 0.24")
    if asked.slab is None:
        raise UsageError(
            "a plane needs the extent along kz, the thickness of the slab that is excited: as --thickness 0.16"
        )
    rows, partitions = order.shape
    count = _divided(extents[1], extents[0] / rows, asked.resolution)
    scan = replace(ScanParameters.of(run), slice_thickness=None)  # the slab holds all slices
    settings = asked.settings(extents, count, False, scan)
    made = _made(order, settings, asked.scanner, scan)
    lengths = (extents[0] / rows, asked.slab / partitions, extents[1] / count)
    size = " x ".join(f"{1e3 * length:.3g}" for length in lengths)
    said = (
        f"gre, {order.count} samples of a plane of {rows} x {partitions}: {request.out}",
        f"Voxels of {size} mm (ky x kz x kx), {_times(made.verified, made.verified.echo_time)}.",
    )
    return _sequence(request, made, said, order, settings, scan)


def _seq_of_shots(
    request: ExportRequest, run: StoredImages, order: SpokeOrder | SpiralOrder, samples: int
) -> MadeFiles:
    asked, extents, scan = _asked(request), request.field_of_view or _known_extents(run), ScanParameters.of(run)
    name = "spokes" if isinstance(order, SpokeOrder) else "spirals"
    if extents is None:
        raise UsageError(f"a run over {name} does not say how large pixels are; give the field of view, as --fov 0.24")
    if asked.resolution is not None:
        raise UsageError(f"the samples of {name} are those of the design: leave out --resolution")
    if isinstance(order, SpiralOrder):
        return _seq_of_arms(request, asked, order, extents, scan)
    if extents[0] != extents[1]:
        raise UsageError("spokes have one field of view: give one length, as --fov 0.24")
    whole = extents[0] * order.oversampling
    settings = asked.settings((whole, whole), samples, False, scan)
    made = _made(order, settings, asked.scanner, scan)
    size = 1e3 * whole / samples
    said = (
        f"gre, {order.count} spokes of {samples} samples: {request.out}",
        f"Pixels of {size:.3g} mm, {_times(made.verified, made.verified.echo_time)}.",
    )
    return _sequence(request, made, said, order, settings, scan)


def _seq_of_arms(
    request: ExportRequest,
    asked: SequenceRequest,
    order: SpiralOrder,
    extents: tuple[float, float],
    scan: ScanParameters,
) -> MadeFiles:
    settings = asked.settings(extents, order.samples, False, scan)
    if asked.bandwidth is None:
        settings = replace(settings, bandwidth=largest_bandwidth(order, extents, asked.scanner))
    made = _made(order, settings, asked.scanner, scan)
    size = " x ".join(f"{1e3 * extent / count:.3g}" for extent, count in zip(extents, order.grid, strict=True))
    said = (
        f"gre, {order.count} arms of spirals of {order.samples} samples in {1e3 / made.verified.bandwidth:.4g} ms: "
        f"{request.out}",
        f"Pixels of {size} mm (ky x kx), {_times(made.verified, made.verified.echo_time)}.",
    )
    return _sequence(request, made, said, order, settings, scan)


def _asked(request: ExportRequest) -> SequenceRequest:
    if request.sequence is None:
        raise UsageError("a sequence needs a scanner and settings")
    return request.sequence


def _times(found: Verified, effective: float) -> str:
    echo = f"effective echo time {1e3 * effective:.4g} ms"
    return f"{echo}, {found.bandwidth:.4g} Hz a pixel, {found.seconds:.4g} s"


def _found(found: Verified, scanner: Scanner) -> str:
    limits = f"{1e3 * found.gradient:.3g} mT/m, {found.slew:.3g} T/m/s and {1e6 * found.b1:.3g} uT"
    return (
        f"Read back: every sample within {found.largest_error:.1e} cycles for each field of view of its place; at most "
        f"{limits} on {scanner.name}."
    )


def _known_extents(run: StoredImages) -> tuple[float, float] | None:
    if run.geometry is None or run.image is None:
        return None
    along_y, along_x = (1e-3 * size * count for size, count in zip(run.geometry.pixel, run.image.shape, strict=True))
    return along_y, along_x


def _samples(extents: tuple[float, float], resolution: float | None, run: StoredRun) -> int:
    """Of a readout.

    Raises
    ------
    InputError
        Where the resolution does not divide the field of view.
    """
    if resolution is None and run.image is not None:
        return run.image.shape[1]
    return _divided(extents[1], extents[0] / run.order.n_lines, resolution)


def _divided(extent: float, otherwise: float, resolution: float | None) -> int:
    """Pixels along the readout, of a resolution where one is given; metres.

    Raises
    ------
    InputError
        Where the resolution does not divide the extent.
    """
    size = otherwise if resolution is None else resolution
    count = max(1, round(extent / size))
    if resolution is not None and abs(extent / size - count) > 1e-3 * count:
        raise InputError(
            field="resolution",
            got=f"{resolution:g} m in a field of view of {extent:g} m",
            wanted=f"a size of pixels that divides it, as {extent / count:.6g} m",
        )
    return count


_OF_IMAGES: Mapping[str, Callable[[ExportRequest, StoredImages], MadeFiles]] = {"nifti": _nifti, "dicom": _dicom}
"""Formats of images, which every run may have."""
_OF_PLANES: Mapping[str, Callable[[ExportRequest, StoredImages, StoredPlane], MadeFiles]] = {
    "cfl": _cfl_of_plane,
    "csv": _csv_of_plane,
    "npy": _npy_of_plane,
}
"""Formats of whatever was measured, for samples of a plane."""
_OF_LINES: Mapping[str, Callable[[ExportRequest, StoredRun], MadeFiles]] = {
    "cfl": _cfl,
    "csv": _csv,
    "npy": _npy,
    "mrd": _mrd,
    "seq": _seq,
}
"""Formats of whole lines."""
