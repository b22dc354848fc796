"""Files of other formats: exports of what a run left, and conversions of what another file holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.tables import csv_text
from mri_design.experiment.inputs import (
    ALL_SLICES,
    PHANTOM_PREFIX,
    SliceChoice,
    load_scan,
    require_no_slices,
    with_given,
)
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS
from mri_design.runs.provenance import centre_words, left_out_text, phrase, sentences
from mri_design.runs.stored_run import (
    NO_SIZES,
    MadeFiles,
    StoredRun,
    ending_of,
    listed,
    marked_name,
    read_run,
    sized,
)
from mri_design.scan.data import ImageStack, KSpaceData, Scan, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, stacked
from mri_design.scan.io.atomic import npy_bytes, npz_bytes
from mri_design.scan.io.bart import is_bart, pair_of
from mri_design.scan.io.formats import read
from mri_design.scan.io.source import counter_option
from mri_design.scan.sampling import readouts_of_positions, refused_samples
from mri_design.scan.trajectories import maps_to_bart, planes_to_bart, samples_to_bart, to_bart
from mri_design.scan.writing import (
    DicomLabels,
    dicom_bytes,
    mrd_scan_bytes,
    mrd_skeleton_bytes,
    nifti_bytes,
    pair_files,
    stacked_slices,
)
from mri_design.sequences.events import largest_bandwidth
from mri_design.sequences.orders import GridOrder, Order, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import Scanner, SequenceKind, SequenceSettings

_MILLI, _TRAINS = 1e-3, ("etl", "sequence")
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
    header: Mapping[str, str] = {} if run.source is None else run.source.identifiers
    found = {name: float(header[word]) for word, name in _KEYWORDS.items() if word in header}
    known = {name: value * (1 if name == "flip_angle" else _MILLI) for name, value in found.items() if value > 0}
    thickness = None if run.geometry is None else run.geometry.thickness
    return known if thickness is None else {"slice_thickness": thickness * _MILLI, **known}


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
        Requested settings, by the names of `SequenceSettings`; the others are the scan's, or `DEFAULTS`. The
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

        Of a turbo spin echo the time between echoes and the angle of the refocusing pulses must be given, which headers
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
"""Field of view (ky, kx), metres; None is that of the scan, if its file states one."""


def export_run(
    source: Path | StoredRun,
    out: Path,
    *,
    form: str = "",
    field_of_view: Extents = None,
    sequence: SequenceRequest | None = None,
) -> MadeFiles:
    """Make the files; nothing is written.

    Where the run was about one slice or series of several, a sentence says which.

    Parameters
    ----------
    source : Path or StoredRun
        Folder of a design, a reconstruction or a protocol; or a run that has been read, or was never stored.
    out : Path
        The file; the ending of its name is the format, one of `FORMATS`.
    form : str
        The only format that is wanted, by its name; any by default.
    field_of_view : tuple of float, optional
        (ky, kx) in metres; by default that of the scan, if its file states one.
    sequence : SequenceRequest, optional
        For ``seq``, which needs it.

    Raises
    ------
    UsageError
        For an ending of another format or of none; where the folder holds no finished run, or not
        what the format is about.
    InputError
        Where a file of the run cannot be used, or a sequence cannot be had on the scanner.
    SequenceError
        Where a sequence is not what was designed.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    formats = {form: FORMATS[form]} if form else FORMATS
    write = next((write for endings, write in formats.values() if ending_of(out, endings) is not None), None)
    if write is None:
        every = [ending for endings, _ in formats.values() for ending in endings]
        raise UsageError(f"{out.name} has no ending of a format: end it in {' or '.join(every)}")
    run = read_run(source) if isinstance(source, Path) else source
    return write(run, out, field_of_view, sequence)


def _described(form: str, files: Mapping[Path, bytes], run: StoredRun, **facts: object) -> MadeFiles:
    """The files, with a description by the template of the format, and which part of its scan the run is about."""
    text = sentences("export", form, run, listed, option("fov"), **facts)
    part = [f"Of the run's scan: {run.part_of_scan}."] if run.part_of_scan else []
    return MadeFiles(files, (*text, *part))


def _images(run: StoredRun, out: Path, form: str) -> list[tuple[Path, str, NDArray[Any]]]:
    """File, name and values of the magnitude and of what else the run knows of its pixels."""
    if run.image is None:
        raise UsageError(f"{run.name} holds no image; {form} is for runs of design and recon")
    images = (
        ("", "magnitude", np.abs(run.image) if np.iscomplexobj(run.image) else run.image),
        ("_std", "standard deviation", run.std),
        ("_noise", "standard deviation of the noise", run.noise),
        ("_g_factor", "g-factor", run.g_factor),
    )
    return [(marked_name(out, mark), name, values) for mark, name, values in images if values is not None]


def _nifti(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    images, volume, compressed = _images(run, out, "nifti"), bool(run.numbers), out.name.endswith(".gz")
    known, order = run.geometry, list(range(max(len(run.numbers), 1)))
    if run.geometry is not None and len(run.numbers) > 1:
        known, order = stacked(_places(run), run.numbers)
    geometry = sized(known, extents, images[0][2].shape[-2:])
    stacks = [(path, name, values[..., order, :, :] if volume else values) for path, name, values in images]
    if run.maps is not None:
        maps = np.moveaxis(run.maps[order], 1, 0) if volume else run.maps[:, np.newaxis]
        stacks.append((marked_name(out, "_maps"), f"{len(maps)} coil maps", maps))
    files = {
        path: nifti_bytes(values, geometry, f"{name}, mri-design", compressed=compressed)
        for path, name, values in stacks
    }
    numbers = [run.numbers[place] for place in order] if volume else []
    return _described(
        "nifti", files, run, images=images, numbers=numbers, geometry=geometry, maps=marked_name(out, "_maps")
    )


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
            cure = f"Reconstruct frames one by one, with {counter_option(run.axis, 'N')}, and export each."
            raise InputError(field, "another place than in the first frame", wanted, cure)
    return run.places[:count]


def _dicom(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    images, files = _images(run, out, "dicom"), dict[Path, bytes]()
    if run.frames:
        raise UsageError(
            f"{run.name} holds {len(run.frames)} {run.axis}s, and .dcm files hold one: .nii.gz takes all of "
            f"them, and recon with {counter_option(run.axis, 'N')} makes a run of one"
        )
    derivation, names = f"{run.measured}, reconstructed by mri-design", list[tuple[str, list[Path]]]()
    for series, (path, name, image) in enumerate(images, 1):
        stack = image if run.numbers else image[np.newaxis]
        paths = [marked_name(path, f"_{n:04d}") if run.numbers else path for n in range(1, len(stack) + 1)]
        names.append((name, paths))
        for number, (file, one) in enumerate(zip(paths, stack, strict=True)):
            place = sized(run.places[number] if run.places else None, extents, one.shape)
            source = run.sources[number] if run.sources else None
            labels = DicomLabels(name, derivation, run.identity, series, number + 1, source)
            files[file] = dicom_bytes(one, place, labels, float(stack.max()))
    return _described("dicom", files, run, names=names, geometry=sized(run.geometry, extents, images[0][2].shape[-2:]))


def _cfl(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    """Mask, or trajectory, and coil maps as BART's pairs, as far as the run has them."""
    stem, pairs = out.with_suffix(""), dict[Path, NDArray[np.generic]]()
    if run.shots is not None:
        pairs[stem] = to_bart(run.shots)
    elif run.kind.on_grid or run.maps is None:
        run.trains()  # refuses damaged folders, and those without lines or samples
        pairs[stem] = (
            run.mask[np.newaxis] if run.plane else np.broadcast_to(run.mask, (run.columns or 1, len(run.mask)))
        )
    if run.maps is not None:
        maps = run.maps.reshape(-1, *run.maps.shape[-3:])
        pairs[stem.with_name(f"{stem.name}_maps")] = _for_bart(maps, planes=run.plane)
    files = {path: content for name, values in pairs.items() for path, content in pair_files(name, values).items()}
    return _described("cfl", files, run, pairs=pairs, stem=stem)


def _for_bart(arrays: NDArray[np.complex64], *, planes: bool) -> NDArray[np.generic]:
    """K-space or coil maps (slice, coil, ky, kx) in the order of BART, those of planes with their own axes."""
    return planes_to_bart(arrays) if planes else stacked_slices([maps_to_bart(one) for one in arrays])


def _csv(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    """A table: place in the order, what is measured, shot and echo."""
    middle = [side // 2 for side in run.mask.shape]
    unit, rows = run.kind.unit, list[Mapping[str, object]]()
    for shot, train in enumerate(run.trains()):
        for echo, number in enumerate(train, 1):
            at = np.unravel_index(number, run.mask.shape)
            k = {name: int(i) - m for name, i, m in zip(("ky", "kz"), at, middle, strict=False)}
            rows.append({"order": len(rows), unit: number, **k, "shot": shot, "echo": echo})
    return _described("csv", {out: csv_text(rows).encode()}, run, out=out)


def _npy(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    numbers = np.array([number for train in run.trains() for number in train], dtype=np.int64)
    if run.plane:
        numbers = np.stack(np.unravel_index(numbers, run.mask.shape), axis=1)
    files, beside = {out: npy_bytes(numbers)}, marked_name(out, "_maps")
    if run.maps is not None:
        files[beside] = npy_bytes(run.maps)
    return _described("npy", files, run, out=out, beside=beside)


def _mrd(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    plane, trains = run.plane, run.trains()
    if plane and extents is not None:
        raise UsageError("--fov: an MRD file of the samples of a plane has no sizes; leave it out")
    shape = (len(run.mask), len(run.mask) if plane else run.columns or len(run.mask))
    known = None if plane else sized(run.geometry, extents, shape)
    content = mrd_skeleton_bytes(trains, shape, known, run.mask.shape[1] if plane else 1)
    return _described("mrd", {out: content}, run, out=out, columns=shape[1], geometry=known)


_Plan = tuple[Order, SequenceSettings, tuple[float, ...]]
"""A planned sequence: its order, its settings, and sizes of pixels, metres."""


def _seq(run: StoredRun, out: Path, extents: Extents, request: SequenceRequest | None) -> MadeFiles:
    if request is None:
        raise UsageError("a sequence needs a scanner and settings")
    scan = scan_parameters(run)
    plane = run.plane and run.designed
    if extents is None and not plane and run.geometry is not None and run.image is not None:
        along_y, along_x = 1e-3 * np.multiply(run.geometry.pixel, run.image.shape[-2:])
        extents = float(along_y), float(along_x)
    if extents is None:
        raise UsageError(
            "the run does not say how large pixels are; give the field of view along ky and kx in metres, as --fov 0.24"
        )
    if plane:
        scan.pop("slice_thickness", None)  # the slab holds all slices
    plan = _plan_of_shots if run.kind.shots else _plan_of_plane if plane else _plan_of_lines
    order, settings, lengths = plan(request, extents, run, scan)
    content, found = pulseq_file(order, settings, request.scanner)
    sizes = " x ".join(f"{1e3 * length:.3g}" for length in lengths)
    facts = {"order": order, "settings": settings, "found": found, "scan": scan, "scanner": request.scanner, "out": out}
    return _described("seq", {out: content}, run, kind=type(order).__name__, sizes=sizes, **facts)


def _plan_of_lines(
    request: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    order = run.grid_order()
    if request.train is not None and order.echoes == 1:
        order = GridOrder.in_trains(order.numbers, request.train, order.rows)
    elif request.train not in (None, order.echoes):
        wanted = f"{order.echoes}, because the run's lines come in such trains"
        raise InputError("echo trains", f"{request.train} lines a train", wanted, "Leave out --etl.", _TRAINS)
    if request.resolution is None and run.columns is not None:
        samples = run.columns
    else:
        samples = _divided(extents[1], extents[0] / order.rows, request.resolution)
    in_trains = order.echoes > 1 or request.train is not None
    settings = request.settings(extents, samples, scan, in_trains=in_trains)
    if settings.kind == "tse" and order.echoes == 1 and request.train is None:
        cure = "Give it as --etl 8, or design in trains (--block 8)."
        raise InputError("echo trains", "tse of lines that come one by one", "the length of echo trains", cure, _TRAINS)
    if settings.kind == "gre" and request.train is not None:
        raise InputError("echo trains", f"--etl {request.train} of gre", "tse, which has echo trains", behind=_TRAINS)
    return order, settings, (extents[0] / order.rows, extents[1] / settings.samples)


def _plan_of_plane(
    request: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    order, slab = run.grid_order(), request.wanted.get("slice_thickness")
    if slab is None:
        raise UsageError(
            "a plane needs the extent along kz, the thickness of the slab that is excited: as --thickness 0.16"
        )
    count = _divided(extents[1], extents[0] / order.rows, request.resolution)
    sizes = (extents[0] / order.rows, slab / order.partitions, extents[1] / count)
    return order, request.settings(extents, count, scan), sizes


def _plan_of_shots(
    request: SequenceRequest, extents: tuple[float, float], run: StoredRun, scan: Mapping[str, float]
) -> _Plan:
    order, samples = run.shot_order()
    name = "spokes" if isinstance(order, SpokeOrder) else "spirals"
    if request.resolution is not None:
        raise UsageError(f"the samples of {name} are those of the design: leave out --resolution")
    if isinstance(order, SpiralOrder):
        settings = request.settings(extents, samples, scan)
        if "bandwidth" not in request.wanted:
            settings = replace(settings, bandwidth=largest_bandwidth(order, extents, request.scanner))
        return order, settings, (extents[0] / order.grid[0], extents[1] / order.grid[1])
    if extents[0] != extents[1]:
        raise UsageError("spokes have one field of view: give one length, as --fov 0.24")
    whole = extents[0] * order.oversampling
    return order, request.settings((whole, whole), samples, scan), (whole / samples,)


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


_PARTS = (
    *("coil_maps", "noise_variance", "noise_covariance", "calibration", "density", "geometry", "reference", "source"),
    "phase",
)
"""What not every format holds, by the names of a scan's attributes."""
_NOISE = ("noise_variance", "noise_covariance")
_COMPANIONS = ("coil_maps", *_NOISE, "reference")
Content = KSpaceData | TrajectoryData | ImageStack
Written = tuple[dict[Path, bytes], tuple[str, ...]]
"""Files with their contents, and what they hold of `_PARTS`."""


def _header_file(stem: Path, scan: Scan, **facts: object) -> dict[Path, bytes]:
    """NAME.json, with the noise and other facts that the arrays do not hold, if any."""
    covariance = scan.noise_covariance
    pairs = None if covariance is None else np.stack([covariance.real, covariance.imag], axis=-1).tolist()
    facts = {"noise_variance": scan.noise_variance, "noise_covariance": pairs, **facts}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return {stem.with_name(f"{stem.name}.json"): f"{json.dumps(known)}\n".encode()} if known else {}


def _npz(scan: KSpaceData | TrajectoryData, out: Path) -> Written:
    arrays: dict[str, Any] = {name: getattr(scan, name) for name in _COMPANIONS if getattr(scan, name) is not None}
    if isinstance(scan, KSpaceData):
        arrays |= {"kspace": scan.kspace, "measured": scan.measured}
    else:
        arrays |= {"kspace": scan.by_readout, "trajectory": scan.readouts.shots, "matrix": np.array(scan.grid_shape)}
        arrays |= {} if scan.readouts.weights is None else {"density": scan.readouts.weights}
    return {out: npz_bytes(arrays)}, (*_COMPANIONS, "density")


def _grid_npy(scan: KSpaceData, out: Path) -> Written:
    return {out: npy_bytes(scan.kspace), **_header_file(out.with_suffix(""), scan)}, _NOISE


def _scan_cfl(scan: KSpaceData | TrajectoryData, out: Path) -> Written:
    """BART's pairs of files: samples, trajectory and coil maps, which has the axes of planes or of slices."""
    stem, header, planes = out.with_suffix(""), dict[str, object](), scan.volume
    trajectory, maps = (stem.with_name(f"{stem.name}_{part}") for part in ("traj", "maps"))
    if isinstance(scan, TrajectoryData):
        files = pair_files(stem, stacked_slices([samples_to_bart(one) for one in scan.by_readout]))
        files |= pair_files(trajectory, to_bart(scan.readouts.shots))
        header["matrix"] = list(scan.grid_shape)
    else:
        kspace = readouts_of_positions(scan.kspace) if planes else scan.kspace
        files = pair_files(stem, _for_bart(kspace, planes=planes))
        header |= {"encoding": "plane"} if planes and scan.n_slices == 1 else {}
    files |= {} if scan.coil_maps is None else pair_files(maps, _for_bart(scan.coil_maps, planes=planes))
    return files | _header_file(stem, scan, **header), ("coil_maps", *_NOISE)


def _grid_mrd(scan: KSpaceData, out: Path) -> Written:
    if scan.volume:
        raise UsageError(
            f"{scan.header.get('file', scan.name)} is a volume, which was transformed along its readout into planes "
            f"(ky, kz); {out.suffix} files hold lines. Give a name that ends in .cfl, .npz or .npy"
        )
    return {out: mrd_scan_bytes(scan, scan.geometry)}, ("geometry", "noise_covariance")


def _image_nifti(stack: ImageStack, out: Path) -> Written:
    content = nifti_bytes(stack.magnitude, stack.geometry, "image, mri-design", compressed=out.name.endswith(".gz"))
    return {out: content}, ("geometry",)


def _image_dicom(stack: ImageStack, out: Path) -> Written:
    images, files = stack.magnitude, dict[Path, bytes]()
    study = hashlib.sha256(images.tobytes()).hexdigest()
    derivation = f"converted by mri-design from {stack.header.get('file', stack.name)}"
    for number, image in enumerate(images):
        place = None if stack.geometry is None else stack.geometry.slice_after(number)
        source = None if stack.source is None else stack.source.of_frame(number)
        name = out if len(images) == 1 else marked_name(out, f"_{number + 1:04d}")
        labels = DicomLabels("image", derivation, study, instance=number + 1, source=source)
        files[name] = dicom_bytes(image, place, labels)
    return files, ("geometry", "source")


def _image_array(stack: ImageStack, out: Path) -> Written:
    if out.suffix == ".npz":
        return {out: npz_bytes({"image": stack.images})}, ("phase",)
    if np.iscomplexobj(stack.images):
        raise UsageError(f"a complex array in {out.name} would be read as k-space; give a name that ends in .npz")
    return {out: npy_bytes(stack.images)}, ()


def _with_sizes(data: Content, extents: tuple[float, float] | None) -> Content:
    """A scan or images with the given field of view, if any, in metres."""
    if extents is None or isinstance(data, TrajectoryData):
        return data
    if isinstance(data, ImageStack):
        return replace(data, geometry=sized(data.geometry, extents, data.images.shape[1:]))
    places = data.geometry or (NO_SIZES,) * data.n_slices
    return replace(data, geometry=tuple(place.with_field_of_view(extents, data.grid_shape) for place in places))


WRITERS: Mapping[type, Mapping[str, Callable[[Any, Path], Written]]] = {
    KSpaceData: {".npz": _npz, ".npy": _grid_npy, ".h5": _grid_mrd, ".mrd": _grid_mrd, ".cfl": _scan_cfl},
    TrajectoryData: {".npz": _npz, ".cfl": _scan_cfl},
    ImageStack: {
        ".nii.gz": _image_nifti,
        ".nii": _image_nifti,
        ".dcm": _image_dicom,
        ".npz": _image_array,
        ".npy": _image_array,
    },
}
"""By what the input holds, and by the ending of the file's name."""


ENDINGS = tuple(dict.fromkeys(ending for writers in WRITERS.values() for ending in writers))
"""Endings of the files that a conversion writes."""
_WITH_HEADER = (".npy", ".npz", ".cfl")
_SIZED = (".h5", ".mrd", ".nii.gz", ".nii", ".dcm")


def convert_file(
    source: str,
    out: Path,
    recipe: Recipe,
    *,
    field_of_view: tuple[float, float] | None = None,
    slices: SliceChoice = ALL_SLICES,
) -> MadeFiles:
    """Read a file and make those of another format; nothing is written.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    out : Path
        The ending of its name, one of `ENDINGS`, is the format.
    recipe : Recipe
        Its ``input`` applies to files, its ``simulation`` to phantoms. Images stay images. Where its ``design`` is one
        over a plane, rows and columns of the one slice are ky and kz.
    field_of_view : tuple of float, optional
        (ky, kx) in metres, for formats that have sizes of pixels; by default that of the input, where it says one.
    slices : SliceChoice
        Those to take; by default all.

    Raises
    ------
    UsageError
        For another ending, a format that does not take what the input holds, slices, and names whose files would
        replace the input or be read with the header of another file.
    InputError
        Where the input cannot be used, or the format cannot hold it.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    require_no_slices(source, "give {0} --slices {1}")
    ending = ending_of(out, ENDINGS)
    if ending is None:
        raise UsageError(f"{out.name} has no ending that says a format: end it in {_listed(ENDINGS)}")
    if field_of_view is not None and ending not in _SIZED:
        raise UsageError(f"--fov is for files with sizes of pixels: {_listed(_SIZED)}")
    phantom = source.startswith(PHANTOM_PREFIX)
    data = load_scan(source, recipe) if phantom else read(source, **recipe.input.reading | {"noise": True})
    if isinstance(data, ImageStack):
        if recipe.input.noise_samples is not None:
            raise UsageError(f"{source} holds images, which no coil measured: leave out {option('noise')}")
    else:
        data = with_given(data, recipe)
    data = data if slices == ALL_SLICES else data.select_slices(slices.indices(data.n_slices))
    if KINDS[recipe.design.encoding].square:
        data = _as_plane(data, source)
    writers = WRITERS[type(data)]
    if ending not in writers:
        holds = {
            TrajectoryData: "samples along a trajectory",
            ImageStack: "images, from which no k-space is simulated here",
        }
        cure = f"end the name of the file in {_listed(writers)}"
        if isinstance(data, KSpaceData) and ending in WRITERS[ImageStack]:
            image = f"mri-design recon {source} --out run"
            cure = f"reconstruct it ({image}) and export the run (mri-design export run {out.name})"
        raise UsageError(f"{source} holds {holds.get(type(data), 'k-space')}: {cure}")
    data, header = _with_sizes(data, field_of_view), out.with_suffix(".json")
    files, kept = writers[ending](data, out)
    if not phantom:
        given = Path(source)
        read_ones = pair_of(given) if is_bart(given) else (given,)
        inputs = {path.resolve() for path in (*read_ones, given.with_suffix(".json"))}
        for path in files:
            if path.resolve() in inputs:
                raise UsageError(f"{path} belongs to the input, which stays as it is; take another name")
    if out.suffix in _WITH_HEADER and header.exists() and header not in files:  # it is about something else
        raise UsageError(f"{header} would be read as the header of {out.name}; take another name")
    refused = "" if isinstance(data, ImageStack) else refused_samples(data.kspace)  # by recon and design
    centre = (text := centre_words(data)) and f"its centre of k-space is {text}"
    warnings = [left_out_text(data, recipe.input.counters), centre, refused and f"samples {refused}"]
    warning = f"{data.name}: {'. '.join(filter(None, warnings))}" if any(warnings) else ""
    return MadeFiles(files, tuple(_sentences(data, out, ending, list(files), kept)), warning=warning)


def _sentences(data: Content, out: Path, ending: str, files: list[Path], kept: tuple[str, ...]) -> list[str]:
    """What is written where, and what is not."""
    complex_images = isinstance(data, ImageStack) and np.iscomplexobj(data.images)
    held = [part for part in _PARTS if getattr(data, part, None) is not None] + ["phase"] * complex_images
    lost = [part for part in held if part not in kept]
    sizes = "" if isinstance(data, ImageStack) else phrase("sizes", data)
    places = data.geometry if isinstance(data, ImageStack) else None if data.geometry is None else data.geometry[0]
    return sentences("export", "converted", data, sizes, ending, out, files, lost, complex_images, places)


def _as_plane(data: KSpaceData | TrajectoryData | ImageStack, source: str) -> KSpaceData:
    """The scan with rows and columns as ky and kz."""
    if not isinstance(data, KSpaceData):
        raise UsageError(f"{source} holds no k-space on a grid, and so no plane (ky, kz): leave out --encoding")
    if data.volume:
        return data
    if data.n_slices > 1:
        raise UsageError(f"{source} holds {data.n_slices} slices, and a plane (ky, kz) is one: choose it with --slices")
    return replace(data, volume=True)


def _listed(endings: Collection[str]) -> str:
    *first, last = endings
    return f"{', '.join(first)} or {last}"
