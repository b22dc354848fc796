"""An export: the files of one format, made from what a run left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UnknownNameError, UsageError, option
from mri_design.evaluation.tables import csv_text
from mri_design.runs.provenance import words
from mri_design.runs.stored_run import (
    MadeFiles,
    StoredRun,
    ending_of,
    listed,
    name_beside,
    read_run,
    sentences,
    sized,
)
from mri_design.scan.geometry import SliceGeometry, stacked
from mri_design.scan.io.atomic import npy_bytes
from mri_design.scan.trajectories import maps_to_bart, planes_to_bart
from mri_design.scan.writing import (
    DicomLabels,
    dicom_bytes,
    mrd_skeleton_bytes,
    nifti_bytes,
    pair_files,
    stacked_slices,
)
from mri_design.sequences.events import largest_bandwidth
from mri_design.sequences.orders import LineOrder, Order, PlaneOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import Scanner, SequenceKind, SequenceSettings

_MILLI = 1e-3
_LARGEST_EXCITATION = 90.0
_KEYWORDS = {"EchoTime": "echo_time", "RepetitionTime": "repetition_time", "FlipAngle": "flip_angle"}
"""By the keywords of DICOM, whose times are milliseconds."""
DEFAULTS: dict[SequenceKind, dict[str, Any]] = {
    "gre": {"echo_time": 0.010, "repetition_time": 0.030, "flip_angle": 15.0, "bandwidth": 250.0, "dummies": 20},
    "tse": {"echo_time": 0.016, "repetition_time": 3.0, "flip_angle": 180.0, "bandwidth": 250.0, "dummies": 1},
}
"""In SI units, angles in degrees; within the limits of the scanner `generic` up to 256 lines and samples."""


def scan_parameters(run: StoredRun) -> dict[str, float]:
    """Known parameters of a run's scan, by the names of `SequenceSettings`: metres, seconds and degrees.

    They are read from the geometry and the header that the run stored. Of a turbo spin echo the echo time is the
    effective one.
    """
    said: Mapping[str, str] = {} if run.source is None else run.source.identifiers
    found = {name: float(said[word]) for word, name in _KEYWORDS.items() if word in said}
    known = {name: value * (1 if name == "flip_angle" else _MILLI) for name, value in found.items() if value > 0}
    thickness = None if run.geometry is None else run.geometry.thickness
    return known if thickness is None else {"slice_thickness": thickness * _MILLI, **known}


_UNKNOWN_SIZE = "The run does not say how large pixels are"


@dataclass(frozen=True)
class SequenceRequest:
    """Settings of a sequence that are not known from the run.

    Parameters
    ----------
    scanner : Scanner
        Whose limits hold.
    kind : str, optional
        By default ``tse`` where lines come in echo trains, else ``gre``.
    wanted : mapping of str to object
        Settings that were asked for, by the names of `SequenceSettings`; the others are the scan's, or `DEFAULTS`. The
        thickness of a plane's slab is its field of view along kz.
    resolution : float, optional
        Pixel size along the readout, metres; by default that of the run's image, or the one along phase encoding.
    train : int, optional
        Length of the echo trains into which lines of a run without any are put, one after the other in their order.
    """

    scanner: Scanner
    kind: SequenceKind | None = None
    wanted: Mapping[str, Any] = field(default_factory=dict)
    resolution: float | None = None
    train: int | None = None

    def settings(
        self, extents: tuple[float, float], samples: int, scan: Mapping[str, float], *, in_trains: bool = False
    ) -> SequenceSettings:
        """Settings for a field of view (ky, kx) in metres, a number of samples a readout, and what the scan had.

        Of a turbo spin echo the time between echoes and the angle of the refocusing pulses are asked for, which headers
        do not have: theirs are the effective echo time and the angle of the excitation. A gradient echo does not excite
        by more than 90 degrees.
        """
        kind: SequenceKind = self.kind or ("tse" if in_trains else "gre")
        unfit = {"echo_time", "flip_angle"} if kind == "tse" else set()
        if scan.get("flip_angle", 0.0) > _LARGEST_EXCITATION:
            unfit.add("flip_angle")
        known = {name: value for name, value in scan.items() if name not in unfit}
        chosen = {**DEFAULTS[kind], **known, **self.wanted}
        return SequenceSettings(kind=kind, field_of_view=extents, samples=samples, **chosen)


Extents = tuple[float, float] | None
"""Field of view (ky, kx), metres; None is that of the scan, where its file said."""


def export_run(
    source: Path | StoredRun,
    form: str,
    out: Path,
    *,
    field_of_view: Extents = None,
    sequence: SequenceRequest | None = None,
) -> MadeFiles:
    """Make the files; nothing is written.

    Where the run was about one slice or series of several, a sentence says which.

    Parameters
    ----------
    source : Path or StoredRun
        Folder of a design, a reconstruction or a protocol; or a run that has been read, or was never stored.
    form : str
        One of `FORMATS`.
    out : Path
        The file.
    field_of_view : tuple of float, optional
        (ky, kx) in metres; by default that of the scan, where its file said.
    sequence : SequenceRequest, optional
        For ``seq``, which needs it.

    Raises
    ------
    UsageError
        For an unknown format or the wrong ending of the file's name; where the folder holds no finished run, or not
        what the format is about.
    InputError
        Where a file of the run cannot be used, or a sequence cannot be had on the scanner.
    SequenceError
        Where a sequence is not what was designed.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    endings, write = FORMATS[form]
    if ending_of(out, endings) is None:
        raise UsageError(f"{out.name} is no file name ending in {' or '.join(endings)}, as the format {form} needs")
    run = read_run(source) if isinstance(source, Path) else source
    return write(run, out, field_of_view, sequence)


def _made(form: str, files: Mapping[Path, bytes], run: StoredRun, **facts: object) -> MadeFiles:
    """Files, and what the template says of them: macro of the format, then which part of its scan the run is about."""
    said = sentences(getattr(words("export"), form)(run, listed, option("fov"), **facts))
    part = [f"Of the run's scan: {run.part_of_scan}."] if run.part_of_scan else []
    return MadeFiles(files, (*said, *part))


def _images(run: StoredRun, out: Path, form: str) -> list[tuple[Path, str, NDArray[Any]]]:
    """File, name and values of the magnitude and of what else the run knows of its pixels."""
    if run.image is None:
        raise UsageError(f"{run.name} holds no image; {form} is for runs of design and recon")
    images = (
        ("", "magnitude", np.abs(run.image)),
        ("_std", "standard deviation", run.std),
        ("_noise", "standard deviation of the noise", run.noise),
        ("_g_factor", "g-factor", run.g_factor),
    )
    return [(name_beside(out, mark), name, values) for mark, name, values in images if values is not None]


def _nifti(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    images, volume, compressed = _images(run, out, "nifti"), bool(run.numbers), out.name.endswith(".gz")
    known, order = run.geometry, list(range(max(len(run.numbers), 1)))
    if run.geometry is not None and len(run.numbers) > 1:
        known, order = stacked(_places(run) or (run.geometry,) * len(run.numbers), run.numbers)
    geometry = sized(known, extents, images[0][2].shape[-2:])
    stacks = [(path, name, values[..., order, :, :] if volume else values) for path, name, values in images]
    if run.maps is not None:
        maps = np.moveaxis(run.maps[order], 1, 0) if volume else run.maps[:, np.newaxis]
        stacks.append((name_beside(out, "_maps"), f"{len(maps)} coil maps", maps))
    files = {
        path: nifti_bytes(values, geometry, f"{name}, mri-design", compressed=compressed)
        for path, name, values in stacks
    }
    numbers = [run.numbers[place] for place in order] if volume else []
    return _made("nifti", files, run, images=images, numbers=numbers, geometry=geometry, maps=name_beside(out, "_maps"))


def _places(run: StoredRun) -> tuple[SliceGeometry, ...]:
    """Of the slices, which are the same in all frames.

    Raises
    ------
    InputError
        Where they are not.
    """
    count = len(run.numbers)
    for number, place in enumerate(run.places):
        if place != run.places[number % count]:
            field = f"{run.axis} {run.frames[number // count]}, slice {run.numbers[number % count]}"
            wanted = f"slices that lie alike in every {run.axis}"
            cure = f"Reconstruct frames one by one, with --{run.axis} N, and export each."
            raise InputError(field, "another place than in the first frame", wanted, cure)
    return run.places[:count]


def _dicom(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    images, files = _images(run, out, "dicom"), dict[Path, bytes]()
    if run.frames:
        raise UsageError(
            f"{run.name} holds {len(run.frames)} {run.axis}s, and --to dicom writes one: --to nifti takes all of "
            f"them, and recon --{run.axis} N makes a run of one"
        )
    derivation, names = f"{run.measured}, reconstructed by mri-design", list[tuple[str, list[Path]]]()
    for series, (path, name, image) in enumerate(images, 1):
        stack = image if run.numbers else image[np.newaxis]
        paths = [name_beside(path, f"_{n:04d}") if run.numbers else path for n in range(1, len(stack) + 1)]
        names.append((name, paths))
        for number, (file, one) in enumerate(zip(paths, stack, strict=True)):
            place = sized(run.places[number] if run.places else run.geometry, extents, one.shape)
            source = run.sources[number] if run.sources else run.source
            labels = DicomLabels(name, derivation, run.identity, series, number + 1, source)
            files[file] = dicom_bytes(one, place, labels, float(stack.max()))
    return _made("dicom", files, run, names=names, geometry=sized(run.geometry, extents, images[0][2].shape[-2:]))


def _cfl(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    """Mask and coil maps as BART's pairs, those that there are."""
    stem, pairs = out.with_suffix(""), dict[Path, NDArray[np.generic]]()
    if run.kind.on_grid or run.maps is None:
        run.trains()  # refuses damaged folders, and those without lines or samples
        pairs[stem] = (
            run.mask[np.newaxis] if run.plane else np.broadcast_to(run.mask, (run.columns or 1, len(run.mask)))
        )
    if run.maps is not None:
        beside = stem.with_name(f"{stem.name}_maps")
        if run.plane:
            pairs[beside] = planes_to_bart(run.maps)
        elif run.numbers:
            pairs[beside] = stacked_slices([maps_to_bart(one) for one in run.maps])
        else:
            pairs[beside] = maps_to_bart(run.maps)
    files = {path: content for name, values in pairs.items() for path, content in pair_files(name, values).items()}
    return _made("cfl", files, run, pairs=pairs, stem=stem)


def _csv(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    """A table: place in the order, what is measured, shot and echo."""
    middle = [side // 2 for side in run.mask.shape]
    unit, rows = run.kind.unit, list[Mapping[str, object]]()
    for shot, train in enumerate(run.trains()):
        for echo, number in enumerate(train, 1):
            at = np.unravel_index(number, run.mask.shape)
            k = {name: int(i) - m for name, i, m in zip(("ky", "kz"), at, middle, strict=False)}
            rows.append({"order": len(rows), unit: number, **k, "shot": shot, "echo": echo})
    return _made("csv", {out: csv_text(rows).encode()}, run, out=out)


def _npy(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    numbers = np.array([number for train in run.trains() for number in train], dtype=np.int64)
    if run.plane:
        numbers = np.stack(np.unravel_index(numbers, run.mask.shape), axis=1)
    files, beside = {out: npy_bytes(numbers)}, name_beside(out, "_maps")
    if run.maps is not None:
        files[beside] = npy_bytes(run.maps)
    return _made("npy", files, run, out=out, beside=beside)


def _mrd(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    plane, trains = run.plane, run.trains()
    if plane and extents is not None:
        raise UsageError("--fov: an MRD file of the samples of a plane has no sizes; leave it out")
    shape = (len(run.mask), len(run.mask) if plane else run.columns or len(run.mask))
    known = None if plane else sized(run.geometry, extents, shape)
    content = mrd_skeleton_bytes(trains, shape, known, run.mask.shape[1] if plane else 1)
    return _made("mrd", {out: content}, run, out=out, columns=shape[1], geometry=known)


_Plan = tuple[Order, SequenceSettings, tuple[float, ...]]
"""A sequence before it is made: its order, its settings, and sizes of pixels, metres."""


def _seq(run: StoredRun, out: Path, extents: Extents, asked: SequenceRequest | None) -> MadeFiles:
    if asked is None:
        raise UsageError("a sequence needs a scanner and settings")
    scan = scan_parameters(run)
    plane = run.plane and run.designed
    if extents is None and not plane and run.geometry is not None and run.image is not None:
        along_y, along_x = 1e-3 * np.multiply(run.geometry.pixel, run.image.shape[-2:])
        extents = float(along_y), float(along_x)
    if extents is None:
        raise UsageError(f"{_UNKNOWN_SIZE.lower()}; give the field of view along ky and kx in metres, as --fov 0.24")
    if plane:
        scan.pop("slice_thickness", None)  # the slab holds all slices
    plan = _plan_of_shots if run.kind.shots else _plan_of_plane if plane else _plan_of_lines
    order, settings, lengths = plan(asked, extents, run, scan)
    content, found = pulseq_file(order, settings, asked.scanner)
    facts = {
        "out": out,
        "samples": settings.samples,
        "sizes": " x ".join(f"{1e3 * length:.3g}" for length in lengths),
        "echo": order.dc_echo if isinstance(order, LineOrder) and settings.kind == "tse" else 1,
        "scan": scan,
        "scanner": asked.scanner,
    }
    facts |= {"order": order, "kind": type(order).__name__, "settings": settings, "found": found}
    return _made("seq", {out: content}, run, **facts)


def _plan_of_lines(
    asked: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    order = run.line_order()
    if asked.train is not None and order.echoes == 1:
        order = LineOrder.in_trains(order.lines, asked.train, order.n_lines)
    elif asked.train not in (None, order.echoes):
        wanted = f"{order.echoes}, because the run's lines come in such trains"
        raise InputError("echo trains", f"{asked.train} lines a train", wanted, "Leave out --etl.")
    if asked.resolution is None and run.columns is not None:
        samples = run.columns
    else:
        samples = _divided(extents[1], extents[0] / order.n_lines, asked.resolution)
    in_trains = order.echoes > 1 or asked.train is not None
    settings = asked.settings(extents, samples, scan, in_trains=in_trains)
    if settings.kind == "tse" and order.echoes == 1 and asked.train is None:
        cure = "Give it as --etl 8, or design in trains (--block 8)."
        raise InputError("echo trains", "tse of lines that come one by one", "the length of echo trains", cure)
    if settings.kind == "gre" and asked.train is not None:
        raise InputError(field="echo trains", got=f"--etl {asked.train} of gre", wanted="tse, which has echo trains")
    return order, settings, (extents[0] / order.n_lines, extents[1] / settings.samples)


def _plan_of_plane(
    asked: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    rows, partitions = run.mask.shape
    numbers = [number for train in run.trains() for number in train]  # samples are taken one by one
    order = PlaneOrder(tuple(divmod(number, partitions) for number in numbers), (rows, partitions))
    slab = asked.wanted.get("slice_thickness")
    if slab is None:
        raise UsageError(
            "a plane needs the extent along kz, the thickness of the slab that is excited: as --thickness 0.16"
        )
    count = _divided(extents[1], extents[0] / rows, asked.resolution)
    sizes = (extents[0] / rows, slab / partitions, extents[1] / count)
    return order, asked.settings(extents, count, scan), sizes


def _plan_of_shots(
    asked: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    order, samples = run.shot_order()
    name = "spokes" if isinstance(order, SpokeOrder) else "spirals"
    if asked.resolution is not None:
        raise UsageError(f"the samples of {name} are those of the design: leave out --resolution")
    if isinstance(order, SpiralOrder):
        settings = asked.settings(extents, samples, scan)
        if "bandwidth" not in asked.wanted:
            settings = replace(settings, bandwidth=largest_bandwidth(order, extents, asked.scanner))
        return order, settings, (extents[0] / order.grid[0], extents[1] / order.grid[1])
    if extents[0] != extents[1]:
        raise UsageError("spokes have one field of view: give one length, as --fov 0.24")
    whole = extents[0] * order.oversampling
    return order, asked.settings((whole, whole), samples, scan), (whole / samples,)


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
        wanted = f"a size of pixels that divides it, as {extent / count:.6g} m"
        raise InputError("resolution", f"{resolution:g} m in a field of view of {extent:g} m", wanted)
    return count


_Writer = Callable[[StoredRun, Path, Extents, SequenceRequest | None], MadeFiles]
FORMATS: Mapping[str, tuple[tuple[str, ...], _Writer]] = {
    "nifti": ((".nii.gz", ".nii"), _nifti),
    "dicom": ((".dcm",), _dicom),
    "cfl": ((".cfl",), _cfl),
    "csv": ((".csv",), _csv),
    "npy": ((".npy",), _npy),
    "mrd": ((".h5", ".mrd"), _mrd),
    "seq": ((".seq",), _seq),
}
"""Formats: how their files may be called, and what makes them."""
