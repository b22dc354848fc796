"""Contents of the folder of a finished run, and files that verbs write elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.metrics import Coverage, RelativeError
from mri_design.evaluation.plots.pictures import Frame, Layout
from mri_design.evaluation.run_folder import MANIFEST, RunFolder, read_manifest
from mri_design.evaluation.tables import Row
from mri_design.kinds import KINDS, Kind
from mri_design.runs.error_tables import StudyErrors
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.atomic import require_folder_of, write_bytes
from mri_design.scan.io.numpy_files import read_npy
from mri_design.scan.io.records import read_record, write_record
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.sequences.orders import GridOrder, SpiralOrder, SpokeOrder

if TYPE_CHECKING:
    from mri_design.experiment.reconstruction import Image
    from mri_design.operators.base import Array
    from mri_design.runs.known_slice import KnownSlice

RESULT = "result.npz"
"""File of a run's result other than its arrays and tables, to be read again."""
ARRAYS = {"recon": "image", "coil_maps": "maps"} | {
    name: name for name in ("std", "noise", "g_factor", "draws", "pull", "reference")
}
"""Files of arrays, and the parts of a `StoredRun` that they hold."""
FILES = ARRAYS | {"mask": "mask"}
_REAL = ("std", "noise", "g_factor", "pull")
_OF_SEVERAL = ("draws", "maps")
"""Parts with a further axis before those of pixels."""
_OF_ONE_MASK = "design, recon or protocol"
_LONGEST_HEADER = 10_000  # characters


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """How a run ended, of one mask or of many.

    Parameters
    ----------
    readouts : str
        Name of the kind of what masks are over, see `KINDS`.
    status : str
        "converged", or what did not converge or was out of reach, in words.
    chosen : tuple of int
        Lines, samples of a plane, or shots in the order of choice, and by number where nothing was chosen; none of
        readouts, and of many masks.
    acceleration : float, optional
        Samples of the grid over samples measured; none along a trajectory that was read, and of many masks.
    error : RelativeError
        Of the image, over all slices.
    verdict : str
        Which mask is best, of a comparison that was made just now.
    identity : str
        Checksum that differs from run to run.
    seed : int
        Of everything random.
    """

    readouts: str
    status: str = ""
    chosen: tuple[int, ...] = ()
    acceleration: float | None = None
    error: RelativeError = field(default_factory=RelativeError)
    verdict: str = field(default="", compare=False)
    identity: str = ""
    seed: int = 0

    @property
    def kind(self) -> Kind:
        """What masks are over."""
        return KINDS[self.readouts]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StoredRun(Stored):
    """What a run leaves of its image and its mask: read from its folder, or of a run in memory.

    Parameters
    ----------
    name : str
        Of the folder.
    folder : Path, optional
        Of a run that was stored.
    mask : bool array, shape (ky,), (ky, kz), (shot,) or (readout,)
        True where measured.
    image : complex64 array, shape (ky, kx) or (ky, kz), of a volume (slice, ky, kx), of frames (frame, slice, ky, kx)
        The reconstruction, if any.
    std : float32 array, shape as ``image``, or None
        Its error bars.
    noise, g_factor : float32 arrays, shape as ``image``, or None
        What noise alone does to it, and the g-factor of the coils.
    draws : complex64 array, shape (draw, ky, kx), of a volume (slice, draw, ky, kx), or None
        Images that the posterior holds possible; those of a folder are loaded on first access.
    pull : float32 array, shape as ``image``, or None
        By how much the prior makes moduli too small; kept together with draws.
    reference : complex64 array, shape as ``image``, or None
        What errors are measured against; of a volume it is kept together with draws.
    maps : complex64 array, shape (coil, ky, kx), of a volume (slice, coil, ky, kx), or None
        Coil maps of the scan's own coils, of the first frame where there are several; None where it has one coil.
    part_of_scan : str
        Which slice or series the run is about, where the scan has several.
    numbers : tuple of int
        Of the slices of a volume in their scan; none where ``image`` is one slice.
    places : tuple of SliceGeometry
        Pixel size and place of every slice, frame after frame; none where the scan's file did not say them of all.
    sources : tuple of SourceImage
        The DICOM images that the slices were simulated from, or what the header of their raw data says, likewise.
    axis : str
        What the frames are: "contrast", "phase", "repetition" or "set"; empty where there is one.
    frames : tuple of int
        Their numbers.
    same_lines : bool
        Whether every frame of a slice is made of the same lines, samples or readouts.
    acquired : tuple of tuples of int
        Lines or samples in the order of measurement, in echo trains; none where it is one by one as they were chosen.
    shots : float array, shape (shot, sample, 2), optional
        Spokes or arms in the order of choice.
    grid : tuple of int, optional
        Pixels (ky, kx).
    scan : str
        Name of the scan.
    layout : {"ky-rows", "ky-columns", "plane-rows", "plane-columns", "no-lines"}
        How its images lie on a page.
    coverage : Coverage, optional
        Of the error bars, where they are calibrated on other scans.
    trace : DesignTrace, optional
        Every decision of a design or a protocol, with what was predicted and what was measured.
    ended : str
        Why a design ended with that many lines, or else its status.
    """

    name: str = field(default="the image", compare=False)
    folder: Path | None = field(default=None, compare=False)
    mask: NDArray[np.bool_]
    image: NDArray[np.complex64] | None = None
    std: NDArray[np.float32] | None = None
    noise: NDArray[np.float32] | None = None
    g_factor: NDArray[np.float32] | None = None
    draws: NDArray[np.complex64] | None = None
    pull: NDArray[np.float32] | None = None
    reference: NDArray[np.complex64] | None = None
    maps: NDArray[np.complex64] | None = None
    part_of_scan: str = ""
    numbers: tuple[int, ...] = ()
    places: tuple[SliceGeometry, ...] = ()
    sources: tuple[SourceImage, ...] = ()
    axis: str = ""
    frames: tuple[int, ...] = ()
    same_lines: bool = True
    acquired: tuple[tuple[int, ...], ...] = ()
    shots: NDArray[np.float64] | None = None
    grid: tuple[int, int] | None = None
    scan: str = ""
    layout: Layout = "ky-rows"
    coverage: Coverage | None = None
    trace: DesignTrace | None = None
    ended: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.measured}, {self.status or 'done'})"

    @property
    def counted(self) -> str:
        """Name of what the mask is over: "lines", "samples", "shots" or "readouts"."""
        return self.kind.counted

    @property
    def plane(self) -> bool:
        """Whether it is over the samples of a plane."""
        return self.kind.axes > 1

    @property
    def geometry(self) -> SliceGeometry | None:
        """Pixel size and place of the first slice; None where they are not known."""
        return next(iter(self.places), None)

    @property
    def source(self) -> SourceImage | None:
        """The DICOM image of the first slice, or what the header of its raw data says; None where neither is."""
        return next(iter(self.sources), None)

    @property
    def frame(self) -> Frame:
        """How its images lie on a page, and how large their pixels are."""
        return Frame(self.layout, None if self.geometry is None else self.geometry.pixel)

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
        return not self.plane or self.trace is not None or bool(self.acquired)

    def without_lines(self) -> UsageError:
        """Says what can be had of a run that measured no whole lines."""
        return UsageError(
            f"{self.name} is a run over {self.counted}, not lines: .nii.gz and .dcm take its image, .cfl, .csv, .h5 "
            "and .npy samples of a plane, .seq a design over shots or samples; of a trajectory export its "
            "trajectory.npz"
        )

    def trains(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of lines or samples in the order of measurement, in echo trains, or one by one.

        Raises
        ------
        UsageError
            Of a run that measured anything else.
        InputError
            Where the files are damaged or contradict each other.
        """
        if not self.kind.on_grid:
            raise self.without_lines()
        trains = self.acquired or tuple((number,) for number in self.chosen)
        numbers = sorted(number for train in trains for number in train)
        if self.mask.ndim != max(1, self.kind.axes) or numbers != np.flatnonzero(self.mask).tolist():
            got = f"{len(numbers)} {self.counted} other than those of mask.npy"
            raise InputError(f"{self.name}/{RESULT}", got, f"the same {self.counted}")
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
            Where it is none of spokes or arms, or one of spokes on a grid that is not square.
        """
        shots, grid = self.trajectory()
        if not np.linalg.norm(shots, axis=2).argmin(axis=1).any():
            return SpiralOrder(shots, grid), shots.shape[1]
        if grid[0] != grid[1]:
            raise InputError(f"{self.name}: matrix", str(grid), "a square, for spokes")
        return SpokeOrder.of_trajectory(shots), shots.shape[1]

    def trajectory(self) -> tuple[NDArray[np.float64], tuple[int, int]]:
        """Shots (shot, sample, 2) in the order of choice, and pixels (ky, kx) of their grid.

        Raises
        ------
        InputError
            Of a run that chose none.
        """
        if self.shots is None or self.grid is None:
            raise InputError(f"{self.name}/{RESULT}", "none", "the trajectory of a design of shots")
        return self.shots, self.grid


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredComparison(Stored):
    """What a comparison of strategies leaves: read from its folder, or of one in memory.

    Parameters
    ----------
    tables : StudyErrors
        Errors of every mask, and what follows from them.
    methods : sequence of mappings
        Mean errors of every method on the masks of each strategy, as methods.csv has them; empty without methods.
    """

    tables: StudyErrors
    methods: Sequence[Row] = ()


def write_result(folder: RunFolder, result: Stored) -> None:
    """Write what is read again into the folder of a run, whose arrays lie there already."""
    path = folder.output_path(RESULT)
    if not isinstance(result, StoredRun):
        return write_record(path, result)
    files = {part: stored for name, part in FILES.items() if (stored := folder.existing(f"{name}.npy")) is not None}
    own = [(stored.stem, array) for part, stored in files.items() if (array := getattr(result, part)) is not None]
    mapped = {part: np.load(stored, mmap_mode="r", allow_pickle=False) for part, stored in files.items()}
    beside = [(files[part].stem, array) for part, array in mapped.items()]
    write_record(path, replace(result, **mapped), [*beside, *own])


def read_result(
    folder: Path, image: type[StoredRun] = StoredRun, verbs: str = "design, recon, protocol or compare"
) -> Stored:
    """Read the folder of a finished design, reconstruction, protocol or comparison.

    What is read of a run with an image is an ``image``: `StoredImage` has all of it. ``verbs`` are those whose folders
    are wanted, for messages.

    Raises
    ------
    UsageError
        Where it is no folder of such a run, or of one that has not ended.
    InputError
        Where its files are damaged or contradict each other, or the one with its result is missing.
    """
    name, wanted = folder.resolve().name, "what a run of this version leaves"
    if _lost_its_result(folder):
        cure = f"Copy the folder again, or make the run again with {option('overwrite')}."
        raise InputError(f"{name}/{RESULT}", "no file", wanted, cure)
    if not (folder / MANIFEST).is_file() or not (folder / RESULT).is_file():
        unfinished = (folder / "checkpoint.npz").exists()
        cure = "finish it with --resume first" if unfinished else f"give a folder of {verbs}"
        raise UsageError(f"{folder} holds no finished run with a mask; {cure}")
    result = _result(folder, partial(_array, folder), image)
    if not isinstance(result, StoredRun):
        return result
    if got := _contradiction(result):
        cure = f"Copy the folder again, or make the run again with {option('overwrite')}."
        raise InputError(f"{name}/{RESULT}", f"{got}, which contradicts its other parts", wanted, cure)
    maps = result.maps[0] if result.frames and result.maps is not None else result.maps
    return replace(result, name=name, folder=folder, maps=maps)


def _lost_its_result(folder: Path) -> bool:
    """Whether a folder holds a finished run without the file of its result, which was removed or not copied."""
    if (folder / RESULT).exists() or not (folder / MANIFEST).is_file():
        return False
    with suppress(InputError):  # it is no manifest of this program, or a damaged one
        return "identity" in read_manifest(folder, settings=dict)["settings"]
    return False


def _contradiction(run: StoredRun) -> str:
    """The part of a run, as its folder has it, that contradicts another part; empty if none does."""
    axes, image = tuple(len(numbers) for numbers in (run.frames, run.numbers) if numbers), run.image
    counts, flags = (0, math.prod(axes)), np.flatnonzero(run.mask).tolist()
    for wrong, got in (
        (image is None and type(run) is not StoredRun, "no image"),  # which more than a `StoredRun` is about
        (image is not None and (image.ndim, image.shape[:-2]) != (len(axes) + 2, axes), "an image of another shape"),
        (bool(run.frames) != bool(run.axis), f"frames along {run.axis or 'nothing'}"),
        (len(run.places) not in counts, f"places of {len(run.places)} slices"),
        (len(run.sources) not in counts, f"sources of {len(run.sources)} slices"),
        (run.trace is not None and run.acceleration is None, "a design without its acceleration"),
        (run.trace is not None and run.trace.lines != run.chosen, "decisions about others than were chosen"),
        (run.kind.on_grid and bool(run.chosen) and sorted(run.chosen) != flags, "a mask of others than were chosen"),
        (run.shots is not None and (run.shots.ndim, run.shots.shape[-1:]) != (3, (2,)), "shots of another shape"),
    ):
        if wrong:
            return got
    pixels = () if image is None else image.shape[-2:]
    if image is not None and pixels[: run.kind.axes] != run.mask.shape[: run.kind.axes]:
        return f"a mask of shape {run.mask.shape}"
    for part in ARRAYS.values():
        array, first = getattr(run, part), len(axes)
        if array is not None:
            between = array.shape[first : first + 1] if part in _OF_SEVERAL else ()
            if array.shape != (*axes, *between, *pixels):
                return f"{part} of shape {array.shape}"
    return ""


def _result(
    folder: Path, array: Callable[[str, str, tuple[int, ...]], NDArray[Any]], image: type[StoredRun] = StoredRun
) -> Stored:
    """Content of `RESULT`, with the arrays of the folder."""
    kinds: dict[str, type[Stored]] = {
        "StoredImage": image,
        "StoredRun": StoredRun,
        "StoredComparison": StoredComparison,
    }
    result = read_record(folder / RESULT, kinds, array)
    if result.readouts not in KINDS:
        field, got = f"{folder.resolve().name}/{RESULT}", f"readouts {result.readouts[:40]!r}"
        raise InputError(field, got, f"a run over {', '.join(KINDS)}")
    return result


def read_ending(folder: Path) -> Stored:
    """How a run ended, whose arrays are not looked at; errors as of `read_result`."""
    return _result(folder, lambda *form: np.zeros(0))


def kind_of_run(folder: Path) -> Kind | None:
    """What the masks of a run are over; None where an earlier version made it, which did not leave `RESULT`."""
    return read_ending(folder).kind if (folder / RESULT).is_file() else None


def read_run(folder: Path) -> StoredRun:
    """`read_result` of a run about one mask; a UsageError for a comparison."""
    found = read_result(folder, verbs=_OF_ONE_MASK)
    if not isinstance(found, StoredRun):
        raise UsageError(f"{folder} holds a comparison of many masks; give a folder of {_OF_ONE_MASK}")
    return found


def arrays_of(known: KnownSlice, made: Image, reference: Array | None) -> dict[str, NDArray[Any]]:
    """The arrays of an image that there are, by the names of their files."""
    noise, maps = made.noise, known.scan.maps_as_read
    found = {
        "recon": made.image,
        "std": made.std,
        "noise": None if noise is None else noise.std,
        "g_factor": None if noise is None else noise.g_factor,
        "draws": made.draws,
        "pull": None if made.draws is None else made.pull,
        "reference": reference,
        "coil_maps": None if maps is None else maps[0],
    }
    types = {name: np.float32 if name in _REAL else np.complex64 for name in found}
    return {name: np.asarray(one, types[name]) for name, one in found.items() if one is not None}


def _array(folder: Path, stem: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of a run, which it has left in this type and shape; draws are mapped, and not read before."""
    path, field = folder / f"{stem}.npy", f"{folder.resolve().name}/{stem}.npy"
    wanted = f"{kind} {shape}, all finite, as the run has left it"
    cure = f"Copy the folder again, or make the run again with {option('overwrite')}."
    if stem not in FILES or not path.is_file():
        raise InputError(field, "no file", wanted, cure)
    try:
        if stem == "draws":
            check_file(path)
            array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r", max_header_size=_LONGEST_HEADER)
        else:
            array = read_npy(path, DEFAULT_LIMITS, field=field)
    except InputError as error:
        raise InputError(field, error.got, wanted, cure) from error
    except (OSError, ValueError, EOFError) as error:
        raise InputError(field, "no array that can be mapped", wanted, cure) from error
    if array.dtype.name != kind or array.shape != shape or not (stem == "draws" or np.isfinite(array).all()):
        raise InputError(field, f"{array.dtype} {array.shape}", wanted, cure)
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
        Contents in words, and facts that are not known.
    warning : str
        Parts of the input that were not read, and samples that recon refuses, if any.
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


def marked_name(path: Path, mark: str) -> Path:
    """The name of a second file: the mark stands before the ending."""
    ending = ".nii.gz" if path.name.endswith(".nii.gz") else path.suffix
    return path.with_name(path.name.removesuffix(ending) + mark + ending)


def sized(
    geometry: SliceGeometry | None, extents: tuple[float, float] | None, shape: tuple[int, ...]
) -> SliceGeometry | None:
    """Geometry of an image (rows, columns) with the field of view that was requested, where one was, in metres."""
    return geometry if extents is None else (geometry or NO_SIZES).with_field_of_view(extents, (shape[0], shape[1]))
