"""What the folder of a finished run holds, and files that verbs write beside it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.metrics import Coverage, RelativeError
from mri_design.evaluation.plots.panels import Frame, layout_of
from mri_design.evaluation.run_folder import read_manifest
from mri_design.evaluation.tables import read_csv
from mri_design.kinds import KINDS, Kind, kind_counted
from mri_design.scan.data import TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.atomic import require_folder_of, write_bytes
from mri_design.scan.io.numpy_files import opened_npy, read_npy
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file, read_small
from mri_design.scan.io.source import COUNTERS
from mri_design.sequences.orders import GridOrder, SpiralOrder, SpokeOrder

if TYPE_CHECKING:
    from mri_design.experiment.reconstruction import Image
    from mri_design.operators.base import Array
    from mri_design.runs.known_slice import KnownSlice, NamedImage

_ACQUISITION, _MAPS, TRAJECTORY = "acquisition.csv", "coil_maps.npy", "trajectory.npz"
ARRAYS = {"recon": "image", "coil_maps": "maps"} | {
    name: name for name in ("std", "noise", "g_factor", "draws", "reference")
}
"""Files of arrays, and the parts of a `StoredRun` that they hold."""
_REAL, _OF_SEVERAL = ("std", "noise", "g_factor"), ("coil_maps", "draws")
_MOST_TEXT = 64 * 2**20
_LONGEST_HEADER = 10_000  # characters


def mask_axes(folder: Path) -> int | None:
    """Axes of the mask of a run; None where there is none that can be read."""
    with suppress(InputError, OSError), opened_npy(folder / "mask.npy", DEFAULT_LIMITS) as mask:
        return len(mask.shape)
    return None


def kind_of_run(folder: Path, settings: Mapping[str, object]) -> Kind:
    """What a run measured, of designs and of reconstructions alike; settings are of its manifest."""
    axes = mask_axes(folder)
    plane = (kind for kind in KINDS.values() if kind.axes > 1 and kind.axes == axes)
    listed = (kind for kind in KINDS.values() if (folder / f"{kind.counted}.csv").is_file())
    return next(chain(plane, listed), kind_counted("readouts" if "readouts" in settings else "lines"))


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRun:
    """What a run leaves of its image and its mask: read from its folder, or of a run in memory.

    Parameters
    ----------
    name : str
        Of the folder.
    folder : Path, optional
        Of a run that was stored.
    mask : bool array, shape (ky,), (ky, kz), (shot,) or (readout,)
        True where measured.
    chosen : tuple of int
        The same in the order of choice; none of readouts, and by number where nothing was chosen.
    kind : Kind
        What the mask is over.
    image : complex64 array, shape (ky, kx) or (ky, kz), of a volume (slice, ky, kx), of frames (frame, slice, ky, kx)
        The reconstruction; None where there is none.
    std : float32 array, shape as ``image``, or None
        Its error bars.
    noise, g_factor : float32 arrays, shape as ``image``, or None
        What noise alone does to it, and the g-factor of the coils.
    draws : complex64 array, shape (draw, ky, kx), of a volume (slice, draw, ky, kx), or None
        Images that the posterior holds possible; of a folder they are not loaded before they are looked at.
    reference : complex64 array, shape as ``image``, or None
        What errors are measured against; a folder has it beside draws.
    maps : complex64 array, shape (coil, ky, kx), of a volume (slice, coil, ky, kx), or None
        Coil maps of the scan's own coils, of the first frame where there are several; None where it has one coil.
    geometry : SliceGeometry or None
        Pixel size and place, where the scan's file said.
    source : SourceImage or None
        The DICOM image that the scan was simulated from, or what the header of its raw data says.
    identity : str
        Checksum that differs from run to run.
    part_of_scan : str
        Which slice or series the run is about, where the scan has several.
    numbers : tuple of int
        Of the slices of a volume in their scan; none where ``image`` is one slice.
    places : tuple of SliceGeometry
        Of the slices of a volume, frame after frame; none where they are not known.
    sources : tuple of SourceImage
        Of the slices of a volume, frame after frame, where they are made from several images.
    axis : str
        What the frames are: "contrast", "phase", "repetition" or "set"; empty where there is one.
    frames : tuple of int
        Their numbers.
    status : str
        How the run ended.
    settings : mapping
        Of its manifest.
    seed : int
        Of everything random.
    acquired : tuple of tuples of int, optional
        Lines or samples in the order of measurement, of a run in memory.
    shots : float array, shape (shot, sample, 2), optional
        Spokes or arms in the order of choice, of a run in memory.
    grid : tuple of int, optional
        Pixels (ky, kx) of a run without an image.
    """

    name: str
    mask: NDArray[np.bool_]
    chosen: tuple[int, ...]
    kind: Kind
    folder: Path | None = None
    image: NDArray[np.complex64] | None = None
    std: NDArray[np.float32] | None = None
    noise: NDArray[np.float32] | None = None
    g_factor: NDArray[np.float32] | None = None
    draws: NDArray[np.complex64] | None = None
    reference: NDArray[np.complex64] | None = None
    maps: NDArray[np.complex64] | None = None
    geometry: SliceGeometry | None = None
    source: SourceImage | None = None
    identity: str = ""
    part_of_scan: str = ""
    numbers: tuple[int, ...] = ()
    places: tuple[SliceGeometry, ...] = ()
    sources: tuple[SourceImage, ...] = ()
    axis: str = ""
    frames: tuple[int, ...] = ()
    status: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    acquired: tuple[tuple[int, ...], ...] | None = None
    shots: NDArray[np.float64] | None = None
    grid: tuple[int, int] | None = None

    @property
    def counted(self) -> str:
        """Name of what the mask is over: "lines", "samples", "shots" or "readouts"."""
        return self.kind.counted

    @property
    def plane(self) -> bool:
        """Whether it is over the samples of a plane."""
        return self.kind.axes > 1

    @property
    def scan(self) -> str:
        """Name of the scan."""
        return str(self.settings["shown"]["scan"])

    @property
    def frame(self) -> Frame:
        """How its images lie on a page, and how large their pixels are."""
        return Frame(self.settings["shown"]["layout"], None if self.geometry is None else self.geometry.pixel)

    @property
    def error(self) -> RelativeError:
        """Of the image, over all slices."""
        return RelativeError.from_settings(self.settings) or RelativeError()

    @property
    def coverage(self) -> Coverage | None:
        """Of the error bars, where they are calibrated on other scans."""
        found = self.settings.get("coverage")
        return None if found is None else Coverage.from_settings(found)

    @property
    def columns(self) -> int | None:
        """Samples of a readout, without oversampling; None where nothing says them."""
        if self.image is not None:
            return self.image.shape[-1]
        return None if self.grid is None else self.grid[1]

    @property
    def measured(self) -> str:
        """How many of the candidates are measured, in words."""
        return f"{np.count_nonzero(self.mask)} of {self.mask.size} {self.counted}"

    @property
    def designed(self) -> bool:
        """Whether a plane's samples were chosen, so that their order is one of measurement."""
        listed = self.folder is not None and (self.folder / f"{self.counted}.csv").is_file()
        return not self.plane or self.acquired is not None or listed

    def without_lines(self) -> UsageError:
        """Says what can be had of a run that measured no whole lines."""
        return UsageError(
            f"{self.name} is a run over {self.counted}, not lines: --to nifti and dicom take its image, --to cfl, "
            "csv, mrd and npy samples of a plane, --to seq a design over shots or samples; mri-design convert takes a "
            "trajectory to other formats"
        )

    def trains(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of lines or samples in the order of measurement, in echo trains; one by one where there are none.

        Raises
        ------
        UsageError
            Of a run that measured anything else.
        InputError
            Where the files are damaged or contradict each other.
        """
        if not self.kind.on_grid:
            raise self.without_lines()
        if self.acquired is not None:
            return self.acquired
        if self.mask.ndim != self.kind.axes:
            raise InputError(f"{self.name}/mask.npy", f"bool {self.mask.shape}", "bool (ky, kz), as of a plane")
        unit = self.kind.unit
        field, wanted = f"{self.name}/manifest.json: lines", f"{unit}s and trains of a run"
        trains: tuple[tuple[int, ...], ...] = tuple((number,) for number in self.chosen)
        if self.folder is not None and (path := self.folder / _ACQUISITION).is_file():
            field = f"{self.name}/{_ACQUISITION}"
            try:
                read_small(path, _MOST_TEXT)
                rows = [(int(str(row["train"])), int(str(row[unit]))) for row in read_csv(path)]
            except (OSError, ValueError, KeyError) as error:
                raise InputError(field, str(error), wanted) from error
            trains = tuple(tuple(number for _, number in train) for _, train in groupby(rows, key=lambda row: row[0]))
        if self.kind.axes == 1:
            try:
                GridOrder(trains, len(self.mask))
            except InputError as error:
                raise InputError(field, str(error), wanted) from error
        numbers = sorted(number for train in trains for number in train)
        if numbers != np.flatnonzero(self.mask).tolist():
            got = f"{len(numbers)} {self.counted} other than those of mask.npy"
            raise InputError(field, got, f"the same {self.counted}")
        return trains

    def grid_order(self) -> GridOrder:
        """Lines, or samples of a plane one by one, in the order of measurement, for a sequence; raises as `trains`."""
        if not self.designed:
            raise self.without_lines()
        trains = self.trains()
        if self.plane:
            trains = tuple((number,) for train in trains for number in train)
        return GridOrder(trains, *self.mask.shape)

    def shot_order(self) -> tuple[SpokeOrder | SpiralOrder, int]:
        """Spokes or arms in the order of choice, for a sequence, and the samples of each.

        Arms are readouts whose first sample is the one nearest to the centre of k-space.

        Raises
        ------
        InputError
            Where the trajectory cannot be read, is none of spokes or arms, or one of spokes on a grid that is not
            square.
        """
        shots, grid = self.trajectory()
        if not np.linalg.norm(shots, axis=2).argmin(axis=1).any():
            return SpiralOrder(shots, grid), shots.shape[1]
        if grid[0] != grid[1]:
            name = "shape" if self.folder is None else f"{self.folder / TRAJECTORY}: matrix"
            raise InputError(field=name, got=str(grid), wanted="a square, for spokes")
        return SpokeOrder.of_trajectory(shots), shots.shape[1]

    def trajectory(self) -> tuple[NDArray[np.float64], tuple[int, int]]:
        """Shots (shot, sample, 2) in the order of choice, and pixels (ky, kx) of their grid; raises as `shot_order`."""
        if self.folder is None:
            assert self.shots is not None and self.grid is not None
            return self.shots, self.grid
        from mri_design.scan.io.formats import read  # here, because all readers are imported with it

        scan = read(path := self.folder / TRAJECTORY)
        if not isinstance(scan, TrajectoryData):
            raise InputError(field=str(path), got="a scan on a grid", wanted="the trajectory of a run")
        return scan.readouts.shots, scan.grid_shape


def shown_settings(known: KnownSlice, named: NamedImage, number: int | None = None) -> dict[str, object]:
    """For a manifest: the image that a run shows, of several slices that of a ``number``, beside its arrays."""
    candidates, name = known.slice_model.candidates, known.scan.name
    return {
        "shown": {
            "scan": name if number is None else name.partition("[")[0],
            "slice": number,
            "readouts": candidates.name,
            "layout": layout_of(candidates, known.scan.orientation),
            "method": named.name,
            "error": asdict(named.error),
            "errors": None if named.errors is None else asdict(named.errors),
            "image": named.reconstruction.facts,
        }
    }


def read_run(folder: Path) -> StoredRun:
    """Read the folder of a finished design, reconstruction or protocol, of lines or of anything else.

    Raises
    ------
    UsageError
        Where it is no folder of such a run, or of one that has not ended.
    InputError
        Where its files are damaged or contradict each other.
    """
    if not (folder / "manifest.json").is_file() or not (folder / "mask.npy").is_file():
        unfinished = (folder / "checkpoint.npz").exists()
        cure = "finish it with --resume first" if unfinished else "give a folder of design, recon or protocol"
        raise UsageError(f"{folder} holds no finished run with a mask; {cure}")
    manifest, field = read_manifest(folder, lines=list, settings=dict), f"{folder.name}/manifest.json"
    settings, lines = manifest["settings"], manifest["lines"]
    if not all(type(line) is int for line in lines) or not (lines or "readouts" in settings):
        raise InputError(field=field, got="no list of lines", wanted="the manifest of a run about one mask")
    numbers, _, frames = _extent(settings, field)
    arrays = _arrays(folder, bool(numbers) + bool(frames))
    shown = settings.get("shown")
    kind = KINDS.get(str(shown.get("readouts")) if isinstance(shown, dict) else "") or kind_of_run(folder, settings)
    name, mask = folder.resolve().name, _array(folder / "mask.npy", "b", 1, 2)
    run = run_of(name, settings, mask, lines, arrays, kind)
    return replace(run, folder=folder, status=str(manifest.get("status", "")), seed=manifest.get("seed", 0))


def run_of(
    name: str,
    settings: Mapping[str, Any],
    mask: NDArray[np.bool_],
    lines: Sequence[int],
    arrays: Mapping[str, Any],
    kind: Kind,
    **more: Any,
) -> StoredRun:
    """A run by the settings of its manifest and its arrays, by the names of their files; ``more`` are further fields.

    Raises
    ------
    InputError
        Where they contradict each other.
    """
    field = f"{name}/manifest.json"
    numbers, axis, frames = _extent(settings, field)
    counts = (len(frames),) * bool(frames) + (len(numbers),) * bool(numbers)
    if (image := arrays.get("recon")) is not None:
        sides, pixels = mask.shape if kind.axes else (), image.shape[len(counts) :]
        _require_shape(f"{name}/recon.npy", image.shape, (*counts, *sides, *pixels[len(sides) :]), "mask.npy")
        for file, values in arrays.items():
            between = values.shape[len(counts) : -2]  # coils, draws
            _require_shape(f"{name}/{file}.npy", values.shape, (*counts, *between, *pixels), "recon.npy")
    parts = {ARRAYS[file]: values[0] if file == "coil_maps" and frames else values for file, values in arrays.items()}
    place, source = settings.get("geometry"), settings.get("source_image")
    return StoredRun(
        name=name,
        mask=mask,
        chosen=tuple(lines),
        kind=kind,
        geometry=None if place is None else SliceGeometry.from_settings(field, place),
        source=None if source is None else SourceImage.from_settings(field, source),
        identity=str(settings.get("identity", "")),
        part_of_scan=str(settings.get("part_of_scan", "")),
        numbers=numbers,
        places=_described(settings, "slice_geometries", SliceGeometry, field, math.prod(counts)),
        sources=_described(settings, "source_images", SourceImage, field, math.prod(counts)),
        axis=axis,
        frames=frames,
        settings=settings,
        **parts,
        **more,
    )


def arrays_of(known: KnownSlice, made: Image, reference: Array | None) -> dict[str, NDArray[Any]]:
    """The arrays of an image that there are, by the names of their files."""
    noise, maps = made.noise, known.scan.maps_as_read
    found = {
        "recon": made.image,
        "std": made.std,
        "noise": None if noise is None else noise.std,
        "g_factor": None if noise is None else noise.g_factor,
        "draws": made.draws,
        "reference": reference,
        "coil_maps": None if maps is None else maps[0],
    }
    types = {name: np.float32 if name in _REAL else np.complex64 for name in found}
    return {name: np.asarray(one, types[name]) for name, one in found.items() if one is not None}


def _extent(settings: Mapping[str, Any], field: str) -> tuple[tuple[int, ...], str, tuple[int, ...]]:
    """Numbers of the slices of a volume, what its frames are, and their numbers."""
    of_frames = settings.get("frames", {"axis": "", "numbers": []})
    if not isinstance(of_frames, dict) or of_frames.get("axis") not in ("", *COUNTERS):
        raise InputError(field=f"{field}: frames", got="another type", wanted=f"an axis of {', '.join(COUNTERS)}")
    frames = _numbers(of_frames, "numbers", f"{field}: frames")
    return _numbers(settings, "slice_numbers", field), of_frames["axis"], frames


def _numbers(settings: Mapping[str, Any], name: str, field: str) -> tuple[int, ...]:
    """Of the slices of a volume, or its frames; none of a run about one."""
    numbers = settings.get(name, [])
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise InputError(field=f"{field}: {name}", got="another type", wanted="whole numbers")
    return tuple(numbers)


Described = TypeVar("Described", SliceGeometry, SourceImage)


def _described(
    settings: Mapping[str, Any], name: str, kind: type[Described], field: str, count: int
) -> tuple[Described, ...]:
    """Entries for every slice; none where the manifest has none."""
    entries = settings.get(name, [])
    if not isinstance(entries, list) or len(entries) not in (0, count):
        raise InputError(f"{field}: {name}", "another number of entries", f"{count}, one a slice")
    return tuple(kind.from_settings(field, entry) for entry in entries)


def _arrays(folder: Path, further: int) -> dict[str, NDArray[Any]]:
    """The arrays of a run that there are, along so many ``further`` axes; draws are mapped, and unchecked."""
    found = dict[str, NDArray[Any]]()
    for name in ARRAYS:
        kind, axes = "f" if name in _REAL else "c", 3 if name in _OF_SEVERAL else 2
        if (path := folder / f"{name}.npy").is_file():
            found[name] = _array(path, kind, axes + further, mapped=name == "draws")
    return found


def _require_shape(field: str, found: tuple[int, ...], wanted: tuple[int, ...], other: str) -> None:
    if found != wanted:
        raise InputError(field=field, got=f"shape {found}", wanted=f"{wanted}, as {other}")


def _array(path: Path, kind: str, *axes: int, mapped: bool = False) -> NDArray[Any]:
    field = f"{path.parent.name}/{path.name}"
    names = {"b": "bool", "c": "finite complex", "f": "finite real"}
    wanted = f"{names[kind]} values along {' or '.join(map(str, axes))} axes"
    if mapped:
        check_file(path)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=_LONGEST_HEADER)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(field, str(error), wanted) from error
    else:
        array = read_npy(path, DEFAULT_LIMITS, field=field)
    if array.dtype.kind != kind or array.ndim not in axes or not (mapped or np.isfinite(array).all()):
        raise InputError(field=field, got=f"{array.dtype} {array.shape}", wanted=wanted)
    return array


def listed(numbers: Sequence[int], most: int = 12) -> str:
    """Numbers in words, the first of them where there are many."""
    return ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")


NO_SIZES = SliceGeometry((1.0, 1.0), None)
"""Geometry that takes a field of view where sizes of pixels are not known."""


@dataclass(frozen=True)
class MadeFiles:
    """Files with their contents; nothing is written yet.

    Parameters
    ----------
    files : mapping of Path to bytes
        Contents.
    sentences : tuple of str
        Contents in words, and facts that nobody knows.
    warning : str
        Parts of the input that were not read, and samples that recon refuses; empty where there are none.
    """

    files: Mapping[Path, bytes]
    sentences: tuple[str, ...]
    warning: str = ""


def write_made_files(made: MadeFiles, *, overwrite: bool = False) -> None:
    """Write the files.

    Parameters
    ----------
    made : MadeFiles
        Files and contents.
    overwrite : bool
        Whether files that are there may be replaced.

    Raises
    ------
    UsageError
        Where one of the files is there already; then none is written.
    InputError
        For a symbolic link in a file's place, and a folder that does not exist.
    OSError
        Where the disk does not take a file.
    """
    there = [path for path in made.files if path.exists()]
    if there and not overwrite:
        raise UsageError(f"{there[0]} is there already; take another name, or add {option('overwrite')}")
    for path in made.files:
        require_folder_of(path)
    for path, content in made.files.items():
        write_bytes(path, content)


def ending_of(path: Path, endings: Collection[str]) -> str | None:
    """The ending of a file's name among these, behind at least one other character; None where it has none."""
    return next((ending for ending in endings if path.name.endswith(ending) and path.name != ending), None)


def name_beside(path: Path, mark: str) -> Path:
    """The name of a second file: the mark stands before the ending."""
    ending = ".nii.gz" if path.name.endswith(".nii.gz") else path.suffix
    return path.with_name(path.name.removesuffix(ending) + mark + ending)


def sized(
    geometry: SliceGeometry | None, extents: tuple[float, float] | None, shape: tuple[int, ...]
) -> SliceGeometry | None:
    """Geometry of an image (rows, columns) with the field of view that was asked for, where one was, in metres."""
    return geometry if extents is None else (geometry or NO_SIZES).with_field_of_view(extents, (shape[0], shape[1]))


def sentences(text: str) -> list[str]:
    """The lines of a macro's text that are not empty."""
    return [line for line in text.splitlines() if line]
