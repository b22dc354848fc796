"""What the folder of a finished run holds, and files that verbs write beside it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.run_folder import read_manifest
from mri_design.evaluation.tables import read_csv
from mri_design.scan.data import TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.atomic import require_folder_of, write_bytes
from mri_design.scan.io.numpy_files import opened_npy, read_npy
from mri_design.scan.io.safe import DEFAULT_LIMITS, read_small
from mri_design.scan.io.source import COUNTERS
from mri_design.sequences.orders import LineOrder, SpiralOrder, SpokeOrder

SAMPLES, SHOTS = "samples.csv", "shots.csv"
"""Files by which folders are known of designs over samples of a plane, and over spokes or arms of spirals."""
_ACQUISITION, _MAPS = "acquisition.csv", "coil_maps.npy"
_MOST_TEXT = 64 * 2**20


def mask_axes(folder: Path) -> int | None:
    """Axes of the mask of a run; None where there is none that can be read."""
    with suppress(InputError, OSError), opened_npy(folder / "mask.npy", DEFAULT_LIMITS) as mask:
        return len(mask.shape)
    return None


def counted(folder: Path, settings: Mapping[str, object]) -> str:
    """The word for what a run measured, of designs and of reconstructions alike; settings are of its manifest."""
    if mask_axes(folder) == 2 or (folder / SAMPLES).is_file():
        return "samples"
    if (folder / SHOTS).is_file():
        return "shots"
    return "readouts" if "readouts" in settings else "lines"


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """The image and the error bars of one run, and what was measured for them.

    Parameters
    ----------
    folder : Path
        Of the run.
    mask : bool array, shape (ky,), (ky, kz), (shot,) or (readout,)
        True where measured.
    chosen : tuple of int
        The same in the order of choice; none of readouts, and by number where nothing was chosen.
    counted : str
        Name of what the mask is over: "lines", "samples", "shots" or "readouts".
    image : complex64 array, shape (ky, kx) or (ky, kz), of a volume (slice, ky, kx), of frames (frame, slice, ky, kx)
        The reconstruction; None where there is none.
    std : float32 array, shape as ``image``, or None
        Its error bars.
    noise, g_factor : float32 arrays, shape as ``image``, or None
        What noise alone does to it, and the g-factor of the coils.
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
    """

    folder: Path
    mask: NDArray[np.bool_]
    chosen: tuple[int, ...]
    counted: str
    image: NDArray[np.complex64] | None = None
    std: NDArray[np.float32] | None = None
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
    noise: NDArray[np.float32] | None = None
    g_factor: NDArray[np.float32] | None = None

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.resolve().name

    @property
    def columns(self) -> int | None:
        """Samples of a readout, without oversampling; None where nothing says them."""
        return None if self.image is None else self.image.shape[-1]

    @property
    def measured(self) -> str:
        """How many of the candidates are measured, in words."""
        return f"{np.count_nonzero(self.mask)} of {self.mask.size} {self.counted}"

    @property
    def designed(self) -> bool:
        """Whether a plane's samples were chosen, so that their order is one of measurement."""
        return self.counted != "samples" or (self.folder / SAMPLES).is_file()

    def without_lines(self) -> UsageError:
        """Says what can be had of a run that measured no whole lines."""
        return UsageError(
            f"{self.folder} is a run over {self.counted}, not lines: --to nifti and dicom take its image, --to cfl, "
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
        if self.counted not in ("lines", "samples"):
            raise self.without_lines()
        if self.counted == "samples" and self.mask.ndim != 2:
            got = f"bool {self.mask.shape}"
            raise InputError(field=f"{self.folder.name}/mask.npy", got=got, wanted="bool (ky, kz), as of a plane")
        path, unit = self.folder / _ACQUISITION, self.counted.removesuffix("s")
        field, wanted = f"{self.folder.name}/{_ACQUISITION}", f"{unit}s and trains of a run"
        if path.is_file():
            try:
                read_small(path, _MOST_TEXT)
                rows = [(int(str(row["train"])), int(str(row[unit]))) for row in read_csv(path)]
            except (OSError, ValueError, KeyError) as error:
                raise InputError(field, str(error), wanted) from error
            trains = tuple(tuple(number for _, number in train) for _, train in groupby(rows, key=lambda row: row[0]))
        else:
            field, trains = f"{self.folder.name}/manifest.json: lines", tuple((number,) for number in self.chosen)
        if self.counted == "lines":
            try:
                LineOrder(trains, len(self.mask))
            except InputError as error:
                raise InputError(field, str(error), wanted) from error
        numbers = sorted(number for train in trains for number in train)
        if numbers != np.flatnonzero(self.mask).tolist():
            got = f"{len(numbers)} {self.counted} other than those of mask.npy"
            raise InputError(field=field, got=got, wanted=f"the same {self.counted}")
        return trains

    def line_order(self) -> LineOrder:
        """Lines in the order of measurement, for a sequence; raises as `trains`."""
        if self.counted != "lines":
            raise self.without_lines()
        return LineOrder(self.trains(), len(self.mask))

    def shot_order(self) -> tuple[SpokeOrder | SpiralOrder, int]:
        """Spokes or arms in the order of choice, and the samples of each.

        Arms are readouts whose first sample is the one nearest to the centre of k-space.

        Raises
        ------
        InputError
            Where the trajectory cannot be read, is none of spokes or arms, or one of spokes on a grid that is not
            square.
        """
        from mri_design.scan.io.formats import read  # here, because all readers are imported with it

        path = self.folder / "trajectory.npz"
        scan = read(path)
        if not isinstance(scan, TrajectoryData):
            raise InputError(field=str(path), got="a scan on a grid", wanted="the trajectory of a run")
        return order_of_shots(scan.readouts.shots, scan.grid_shape, str(path))


def order_of_shots(
    trajectory: NDArray[np.float64], grid: tuple[int, int], name: str
) -> tuple[SpokeOrder | SpiralOrder, int]:
    """Spokes or arms (shot, sample, 2) for a sequence, and the samples of each; raises as `StoredRun.shot_order`."""
    if not np.linalg.norm(trajectory, axis=2).argmin(axis=1).any():
        return SpiralOrder(trajectory, grid), trajectory.shape[1]
    if grid[0] != grid[1]:
        raise InputError(field=f"{name}: matrix", got=str(grid), wanted="a square, for spokes")
    return SpokeOrder.of_trajectory(trajectory), trajectory.shape[1]


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
    mask = _array(folder / "mask.npy", "b", 1, 2)
    what = counted(folder, settings)
    of_frames = settings.get("frames", {"axis": "", "numbers": []})
    if not isinstance(of_frames, dict) or of_frames.get("axis") not in ("", *COUNTERS):
        raise InputError(field=f"{field}: frames", got="another type", wanted=f"an axis of {', '.join(COUNTERS)}")
    numbers, axis = _numbers(settings, "slice_numbers", field), of_frames["axis"]
    frames = _numbers(of_frames, "numbers", f"{field}: frames")
    counts = (len(frames),) * bool(frames) + (len(numbers),) * bool(numbers)
    further = len(counts)

    def found(name: str, kind: str, axes: int) -> NDArray[Any] | None:
        return _array(folder / name, kind, axes + further) if (folder / name).is_file() else None

    image, maps = found("recon.npy", "c", 2), found(_MAPS, "c", 3)
    of_pixels = {name: found(f"{name}.npy", "f", 2) for name in ("std", "noise", "g_factor")}
    sides = mask.shape if what in ("lines", "samples") else ()
    if image is not None:
        pixels = image.shape[further:]
        _require_shape(folder / "recon.npy", image.shape, (*counts, *sides, *pixels[len(sides) :]), "mask.npy")
        for name, beside in {_MAPS: maps, **{f"{name}.npy": values for name, values in of_pixels.items()}}.items():
            if beside is not None:
                coils = beside.shape[further:-2]
                _require_shape(folder / name, beside.shape, (*counts, *coils, *pixels), "recon.npy")
    stored, source = settings.get("geometry"), settings.get("source_image")
    places, sources = settings.get("slice_geometries", []), settings.get("source_images", [])
    for name, entries in (("slice_geometries", places), ("source_images", sources)):
        if not isinstance(entries, list) or len(entries) not in (0, count := math.prod(counts)):
            raise InputError(f"{field}: {name}", "another number of entries", f"{count}, one a slice")
    return StoredRun(
        folder=folder,
        mask=mask,
        chosen=tuple(lines),
        counted=what,
        image=image,
        **of_pixels,
        maps=maps[0] if maps is not None and frames else maps,
        geometry=None if stored is None else SliceGeometry.from_settings(field, stored),
        source=None if source is None else SourceImage.from_settings(field, source),
        identity=str(settings.get("identity", "")),
        part_of_scan=str(settings.get("part_of_scan", "")),
        numbers=numbers,
        places=tuple(SliceGeometry.from_settings(field, place) for place in places),
        sources=tuple(SourceImage.from_settings(field, image) for image in sources),
        axis=axis,
        frames=frames,
    )


def _numbers(settings: Mapping[str, Any], name: str, field: str) -> tuple[int, ...]:
    """Of the slices of a volume, or its frames; none of a run about one."""
    numbers = settings.get(name, [])
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise InputError(field=f"{field}: {name}", got="another type", wanted="whole numbers")
    return tuple(numbers)


def _require_shape(path: Path, found: tuple[int, ...], wanted: tuple[int, ...], other: str) -> None:
    if found != wanted:
        raise InputError(field=f"{path.parent.name}/{path.name}", got=f"shape {found}", wanted=f"{wanted}, as {other}")


def _array(path: Path, kind: str, *axes: int) -> NDArray[Any]:
    field = f"{path.parent.name}/{path.name}"
    array = read_npy(path, DEFAULT_LIMITS, field=field)
    if array.dtype.kind != kind or array.ndim not in axes or not np.isfinite(array).all():
        names = {"b": "bool", "c": "finite complex", "f": "finite real"}
        wanted = f"{names[kind]} values along {' or '.join(map(str, axes))} axes"
        raise InputError(field=field, got=f"{array.dtype} {array.shape}", wanted=wanted)
    return array


@cache
def words(name: str) -> Any:
    """The macros of a template of this package, which say in words what verbs about files found and made."""
    from jinja2 import StrictUndefined, Template  # here: scans are described without

    text = resources.files("mri_design.runs").joinpath(f"{name}.txt.j2").read_text("utf-8")
    return Template(text, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).module


def listed(numbers: Sequence[int], most: int = 12) -> str:
    """Numbers in words, the first of them where there are many."""
    return ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")


WITHOUT_UNIT = "the file has sizes of 1 without a unit"
"""Statement about a NIfTI file without sizes of pixels."""
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


def what_is_unknown(
    whose: str, geometry: SliceGeometry | None, instead: str = "those of 1 mm are written, marked as not known"
) -> list[str]:
    """Sentences about sizes and places that a format asks for and nobody knows.

    Parameters
    ----------
    whose : str
        Who should have said it, as the beginning of a sentence: "The run".
    geometry : SliceGeometry or None
        Known sizes and places.
    instead : str
        Content of the file in the place of sizes of pixels.
    """
    if geometry is None:
        return [f"{whose} does not say how large pixels are: {instead}. {option('fov')} gives the field of view."]
    unknown = []
    if geometry.thickness is None:
        unknown.append("The thickness of the slice is not known: 1 mm is written, marked as not known.")
    return [*unknown, *where_is_unknown(geometry)]


def where_is_unknown(geometry: SliceGeometry) -> list[str]:
    """A sentence about a place and directions that the file does not have, and why; none where it has them."""
    if geometry.placed:
        return []
    why = f" ({geometry.unplaced})" if geometry.unplaced else ""
    return [f"Where the slice lies is not known: the file has sizes of pixels, but no place or directions{why}."]


def whose_it_is(source: SourceImage | None) -> list[str]:
    """A sentence about whom a DICOM file names; none where there is no source that names anybody."""
    if source is None or not source.names_somebody:
        return []
    if not source.image:
        return ["Patient and study are those of the header of the raw data, as far as it names them."]
    return ["Patient and study are those of the DICOM image that it was made from, which the file names as its source."]
