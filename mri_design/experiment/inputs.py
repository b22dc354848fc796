"""Scans from what the user names (``INPUT#SLICES``, maps, noise): reading, simulation, given maps and noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import (
    InputError,
    UsageError,
    did_you_mean,
    number_array,
    number_ranges,
    option,
    require_counts,
    require_instance,
    whole_number,
)
from mri_design.experiment.calibration import calibrate, folds
from mri_design.experiment.recipe import Recipe, recipe_from
from mri_design.scan.calibration import AnyScan, measure_noise, with_volume_noise
from mri_design.scan.data import ImageStack, KSpaceData, ScanSummary, TrajectoryData, summarised
from mri_design.scan.io.formats import mask_of_measured, read, read_noise, summary, with_maps
from mri_design.scan.io.layouts import looks_signed
from mri_design.scan.io.raw_data import Noise, noise_of_data, noise_of_samples
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits
from mri_design.scan.io.source import Content
from mri_design.scan.io.stored_arrays import ArrayHeader, scan_of_arrays
from mri_design.scan.provenance import LEAST_EXPLAINED, MapsOrigin, NoiseOrigin
from mri_design.scan.sampling import require_dynamic_range

if TYPE_CHECKING:
    from mri_design.model.generalized_linear import GeneralizedLinearModel
    from mri_design.operators.base import Array
    from mri_design.scan.data import KSpaceData


@dataclass(frozen=True)
class MapsOfScan:
    """A scan, such as a prescan or an earlier one, whose coil maps another scan uses.

    Parameters
    ----------
    path : Path
        Its file, with the same coils in the same order.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file without its folders."""
        return self.path.name

    def __str__(self) -> str:
        return str(self.path)


GivenMaps = Path | MapsOfScan


def maps_origin(maps: GivenMaps) -> str:
    """Words in front of the file name of maps: ``maps``, or ``maps of`` a scan."""
    return "maps of" if isinstance(maps, MapsOfScan) else "maps"


MIDDLE, EVERY = "middle", "all"
_MOST_SPANS = 8


@dataclass(frozen=True)
class SliceChoice:
    """Slices by number, or one of the words ``middle`` and ``all``.

    Parameters
    ----------
    text : str
        ``0,3,6-9``, ``middle``, ``all``, or one number that counts from the end: ``-1``.

    Raises
    ------
    UsageError
        For anything else.
    """

    text: str

    def __post_init__(self) -> None:
        if self.text in (MIDDLE, EVERY) or self._from_the_end is not None:
            return
        ranges = number_ranges(self.text)
        if ranges is None:
            raise UsageError(f"slices {self.text!r}: give numbers as 0,3,6-9, or 'middle', or 'all'")
        for first, last in ranges:
            if last < first:
                raise UsageError(f"slices {self.text!r}: {first}-{last} holds no slice; write {last}-{first}")

    def indices(self, n_slices: int) -> list[int]:
        """The chosen slices of a scan, in order, each once.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        """
        if self.text in (EVERY, MIDDLE):
            return list(range(n_slices)) if self.text == EVERY else [n_slices // 2]
        back = self._from_the_end
        ranges = number_ranges(self.text) if back is None else [(n_slices - back, n_slices - back)]
        ranges = ranges or []
        if any(first < 0 or last >= n_slices for first, last in ranges):
            least = 0 if back is None else -n_slices
            raise InputError("slices", self.text, f"{least} to {n_slices - 1}", behind=("slices", "sources"))
        return list(dict.fromkeys(number for first, last in ranges for number in range(first, last + 1)))

    @property
    def named(self) -> int | str:
        """The number of a single slice, else the text."""
        number = whole_number(self.text.removeprefix("-"))
        return self.text if number is None else int(self.text)

    @property
    def _from_the_end(self) -> int | None:
        number = whole_number(self.text[1:]) if self.text.startswith("-") else None
        return number or None


ALL_SLICES, FIRST_SLICE = SliceChoice(EVERY), SliceChoice("0")


@dataclass(frozen=True)
class ScanSource:
    """One input as the user named it.

    Parameters
    ----------
    path : str
        File or ``phantom:NAME``.
    slices : SliceChoice
        Which of its slices.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    loaded : KSpaceData, optional
        The scan, where it has been read already; ``path`` still says where it is from.
    companions : tuple of str
        Files of other images of the object.
    """

    path: str
    slices: SliceChoice
    maps: GivenMaps | None = None
    loaded: KSpaceData | None = None
    companions: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The input without its folders, for manifests."""
        given = [] if self.maps is None else [f"{maps_origin(self.maps)} {self.maps.name}"]
        given += [f"the image {Path(companion).name}" for companion in self.companions]
        suffix = f" with {' and '.join(given)}" if given else ""
        return f"{Path(self.path).name}#{self.slices.text}{suffix}"


def scan_sources(
    inputs: Sequence[str],
    slices: str,
    maps: Sequence[str] = (),
    maps_from: Sequence[str] = (),
    companions: Sequence[str] = (),
) -> list[ScanSource]:
    """The inputs of a command as sources, ``scan.h5#0,3-5``, with the maps and other images that belong to each.

    Parameters
    ----------
    inputs : sequence of str
        Files or phantoms, each with its slices behind ``#`` if wanted.
    slices : str
        Of inputs that do not name their own.
    maps : sequence of str
        ``INPUT=FILE`` for each input with a file of coil maps; FILE alone where there is one input.
    maps_from : sequence of str
        ``INPUT=SCAN`` likewise, for each input with the coil maps of another scan.
    companions : sequence of str
        ``INPUT=FILE`` likewise, for other images of an input's object, which may have several.

    Raises
    ------
    UsageError
        For slices that are no numbers, maps of an input that is none of these, or maps twice for one.
    """
    split = [_split(text, slices) for text in inputs]
    paths = list(dict.fromkeys(path for path, _ in split))
    known: dict[str, GivenMaps] = {}
    for flag, text in [*(("--maps", text) for text in maps), *(("--maps-from", text) for text in maps_from)]:
        path, file = _named_input(flag, text, paths)
        if path in known:
            raise UsageError(f"{flag} {text}: {path} has maps already")
        known[path] = Path(file) if flag == "--maps" else MapsOfScan(Path(file))
    beside: dict[str, tuple[str, ...]] = {}
    for text in companions:
        path, file = _named_input("--with", text, paths)
        beside[path] = (*beside.get(path, ()), file)
    return [ScanSource(path, choice, known.get(path), companions=beside.get(path, ())) for path, choice in split]


def require_no_slices(source: str, option: str) -> None:
    """Refuse ``scan.npz#2`` where one input is named and its slice is an option; a file of that name may exist.

    Raises
    ------
    UsageError
        With the option to give instead.
    """
    path, mark, slices = source.rpartition("#")
    if mark and not Path(source).exists():
        slices = "N" if whole_number(slices) is None else slices
        raise UsageError(f"{source}: slices behind # belong to verbs that take several; {option.format(path, slices)}")


def source_files(sources: Iterable[ScanSource]) -> list[str]:
    """Inputs and maps of some sources, each once; phantoms among them."""
    files = [name for source in sources for name in (source.path, source.maps) if name is not None]
    return list(dict.fromkeys(str(name) for name in files))


def _split(text: str, default: str) -> tuple[str, SliceChoice]:
    name, mark, slices = text.rpartition("#")
    return (name, SliceChoice(slices)) if mark else (text, SliceChoice(default))


def _named_input(flag: str, text: str, paths: Sequence[str]) -> tuple[str, str]:
    """The input that ``INPUT=FILE`` names, and the file."""
    path, mark, file = text.partition("=")
    if not mark and len(paths) == 1:
        path, file = paths[0], text
    matches = [named for named in paths if path in (named, Path(named).name)]
    if not file or len(matches) != 1:
        what = "SCAN" if flag == "--maps-from" else "FILE"
        raise UsageError(f"{flag} {text}: give INPUT={what}, with one of the inputs {', '.join(paths)}")
    return matches[0], file


def slices_text(numbers: Sequence[int]) -> str:
    """Numbers of slices in words, runs of them as ranges: "slices 0-9 and 12"."""
    runs = [list(group) for _, group in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])]
    spans = [f"{run[0][1]}-{run[-1][1]}" if len(run) > 1 else str(run[0][1]) for run in runs]
    if len(spans) > _MOST_SPANS:
        spans = [*spans[:_MOST_SPANS], f"{len(spans) - _MOST_SPANS} more ranges"]
    listed = " and ".join(filter(None, [", ".join(spans[:-1]), spans[-1]]))
    return f"slice{'s' * (len(numbers) > 1)} {listed}"


PHANTOM_PREFIX = "phantom:"
"""``phantom:NAME`` on the command line is one of the embedded scenes."""


MEMORY_PREFIX = "memory:"
"""Begins the name of a scan that a script made of arrays, and which lies in no file."""


def names_file(source: str) -> bool:
    """Whether an input is a file, and neither an embedded phantom nor a scan of arrays."""
    return not source.startswith((PHANTOM_PREFIX, MEMORY_PREFIX))


def require_grid_data(data: KSpaceData | TrajectoryData, source: str) -> KSpaceData:
    """The scan, refused where its samples lie along a trajectory.

    Raises
    ------
    InputError
        Naming the source.
    """
    if isinstance(data, TrajectoryData):
        got = "samples along a trajectory"
        raise InputError(source, got, "k-space on a grid, line by line", "recon and info take such files.")
    return data


def load_scan(
    source: str | Path,
    recipe: Recipe | None = None,
    seed: int = 0,
    maps: GivenMaps | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> KSpaceData | TrajectoryData:
    """Load a scan from a file or an embedded phantom: k-space on a grid, or samples along a trajectory.

    Images become simulated k-space by the recipe.

    Parameters
    ----------
    source : str or Path
        A path, or ``phantom:NAME``.
    recipe : Recipe, optional
        Its ``simulation`` applies to images and simulated phantoms, its ``input`` to files; the default recipe without
        one.
    seed : int
        Of the simulation.
    maps : Path or MapsOfScan, optional
        File of coil maps (`with_maps`), or a scan to estimate them from, instead of the input's own.
    limits : ReadLimits
        Bounds that a file is held to before anything is allocated.

    Raises
    ------
    InputError
        Where the input or the maps cannot be used, or no receiver can have measured the samples; the message says why.
    """
    require_instance((str, PathLike), wanted="a path, or phantom:NAME", source=source)
    recipe = recipe_from(recipe)
    require_counts(seed=seed, least=0)
    data = _loaded(str(source), recipe, seed, limits)
    require_dynamic_range(data.kspace, f"{source}: kspace")
    return with_given(data, recipe, maps)


def load_summary(
    source: str | Path, recipe: Recipe, maps: GivenMaps | None = None
) -> ScanSummary | TrajectoryData | ImageStack:
    """Summary of an input: of raw data without reading all samples; images are their own.

    Where no receiver can have measured the samples of the slice that is read, all are read: the numbers in the summary
    are those with which `load_scan` refuses them.

    Parameters
    ----------
    source, recipe, maps
        As for `load_scan`. With maps, all samples of a scan are read; images do not take any.

    Raises
    ------
    InputError
        Where the input or the maps cannot be used; the message says why.
    """
    phantom = str(source).startswith(PHANTOM_PREFIX)
    found = None if phantom else summary(source, **recipe.input.reading)
    refused = isinstance(found, ScanSummary) and bool(found.refused)
    unread = maps is None and recipe.input.noise_samples is None and not refused
    if isinstance(found, ImageStack) or (found is not None and unread):
        return found
    return summarised(with_given(_loaded(str(source), recipe, 0), recipe, None if refused else maps))


def with_given(data: AnyScan, recipe: Recipe, maps: GivenMaps | None = None) -> AnyScan:
    """The scan with the noise samples of the recipe and the given coil maps; raises as these."""
    data = data if recipe.input.noise_samples is None else with_noise_samples(data, recipe.input.noise_samples)
    return data if maps is None else with_given_maps(data, maps, recipe)


def with_given_maps(data: AnyScan, maps: GivenMaps | KSpaceData | Array, recipe: Recipe | None = None) -> AnyScan:
    """The scan with the coil maps of a file or of another scan, which on a grid have to be those of its coils.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        The scan.
    maps : Path, MapsOfScan, KSpaceData or array
        File of coil maps, a scan to estimate them from, in a file or in memory, or the maps (`with_maps`).
    recipe : Recipe, optional
        By which the other scan is calibrated, but for its noise.

    Raises
    ------
    InputError
        Where they cannot be used, or explain too little of the centre of k-space.
    """
    from mri_design.scan.calibration import explained_by_maps

    recipe, name = recipe_from(recipe), getattr(maps, "name", "coil_maps")
    if isinstance(maps, MapsOfScan):
        maps = require_grid_data(_loaded(str(maps), recipe.of_another_file(), 0), name)
    known = _with_maps_of(data, maps, name, recipe) if isinstance(maps, KSpaceData) else with_maps(data, maps)
    if not isinstance(known, KSpaceData):
        return known
    noisy = _with_noise_variance(known, recipe)
    explained = explained_by_maps(noisy)
    if explained < LEAST_EXPLAINED:
        cure = "Compare the order of the coils, and rows and columns, with the scan's."
        if folds(noisy):
            cure = (
                "The object reaches beyond its field of view, which one set of maps does not explain. "
                "Leave them out: two sets are then estimated from the scan."
            )
        elif isinstance(maps, KSpaceData):
            cure = (
                "Were the same coils connected, in the same order, and did the subject not move? "
                f"A file of coil maps is given as {option('maps', 'FILE')}. "
                f"Without {option('maps-from')} maps are estimated from the scan itself."
            )
        got = f"coil maps that explain {explained:.0%} of the energy of the central samples"
        wanted = f"at least {LEAST_EXPLAINED:.0%}; the right maps explain nearly all"
        raise InputError(name, got, wanted, cure)
    return known.known(maps=replace(known.provenance.maps, explained=explained))


def _with_noise_variance(data: KSpaceData, recipe: Recipe) -> KSpaceData:
    """The scan with the variance of its noise, estimated if it is not known and the scan shows some."""
    variance = recipe.input.noise_variance
    if variance is None and data.noise_variance is None and data.noise_covariance is None:
        with suppress(InputError):  # the check does without
            variance = measure_noise(data).variance
    return data if variance is None else replace(data, noise_variance=variance, noise_covariance=None)


def _with_maps_of(data: AnyScan, scanned: KSpaceData, name: str, recipe: Recipe) -> AnyScan:
    """The scan with coil maps that are estimated from another one, on its own grid."""
    from mri_design.calibration.coils import maps_on_grid

    require_dynamic_range(scanned.kspace, f"{name}: kspace")
    one = scanned.n_slices == 1
    slices = "one slice" if data.n_slices == 1 else f"one slice or {data.n_slices}"
    if scanned.n_coils != data.n_coils or not (one or scanned.n_slices == data.n_slices):
        got = f"coils: {scanned.n_coils}, slices: {scanned.n_slices}"
        cure = f"Give a scan with the same coils, or coil maps as {option('maps', 'FILE')}."
        raise InputError(name, got, f"the {data.n_coils} coils of the scan, and {slices}", cure)
    prepared = calibrate(scanned, recipe.of_another_file())
    maps = prepared.maps_as_read
    if maps is None or not isinstance(data, KSpaceData):
        cure = f"Give coil maps as {option('maps', 'FILE')}, or leave {option('maps-from')} out."
        raise InputError(
            name, "a scan that yields no coil maps", "a scan of several coils on a grid, for a scan on a grid", cure
        )
    ratio, placed = (1.0, 1.0), False
    if data.geometry is not None and scanned.geometry is not None:
        here, there = (
            np.multiply(d.geometry[0].pixel, d.grid_shape) for d in (data, scanned) if d.geometry is not None
        )
        ratio, placed = (float(here[0] / there[0]), float(here[1] / there[1])), True
    laid = np.stack([maps_on_grid(stack, data.grid_shape, ratio) for stack in maps])
    every = np.broadcast_to(laid, data.kspace.shape) if one else laid
    origin = MapsOrigin(source="given", file=name, of=prepared.provenance.maps, placed=placed)
    return replace(data, coil_maps=np.ascontiguousarray(every)).known(maps=origin)


def with_noise_samples(data: AnyScan, samples: str | PathLike[str] | NDArray[Any]) -> AnyScan:
    """The scan with the noise of samples that its coils measured without excitation, instead of its own noise.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        The scan.
    samples : path or complex array, shape (coil, sample)
        Samples in units of the scan; those of noise readouts in raw data are scaled to the dwell time of the scan,
        where both are known, and all to its averages.

    Raises
    ------
    InputError
        For a file that cannot be read, or other than enough samples of the coils of the scan.
    """
    if isinstance(samples, str | PathLike):
        path = Path(samples)
        named = path.name
        found = _noise_of_file(path, data.n_coils, path.stat().st_mtime_ns if path.exists() else 0)
    else:
        named, found = "an array", noise_of_samples("noise", np.asarray(samples), data.n_coils)
    covariance, measured = noise_of_data(found, data.provenance.dwell, data.provenance.averages)
    origin = NoiseOrigin(source="samples", measured=replace(measured, file=named))
    return replace(data, noise_variance=None, noise_covariance=covariance).known(noise=origin)


@lru_cache(maxsize=4)
def _noise_of_file(path: Path, channels: int, _changed: int) -> Noise:
    """Read once for all slices of a scan."""
    return read_noise(path, channels)


VOLUME_PART = 4
"""A volume has this part of the recipe's matrix along each of its three axes."""


def _loaded(source: str, recipe: Recipe, seed: int, limits: ReadLimits = DEFAULT_LIMITS) -> KSpaceData | TrajectoryData:
    if source.startswith(PHANTOM_PREFIX):
        from mri_design.scan.simulation import PHANTOMS, load_phantom, shipped_phantom

        name = source.removeprefix(PHANTOM_PREFIX)
        if name not in PHANTOMS:
            known = ", ".join(PHANTOM_PREFIX + n for n in PHANTOMS)
            near = did_you_mean(name, PHANTOMS).replace("mean ", f"mean {PHANTOM_PREFIX}")
            raise InputError(field="input", got=repr(source), wanted=f"a file, or one of: {known}", cure=near)
        kind, path, _ = shipped_phantom(name)
        if kind != "kspace":
            part = VOLUME_PART if kind == "ellipsoids" else 1
            rows, columns = recipe.input.simulated
            shape = (rows // part, columns // part)
            return load_phantom(name, shape=shape, **recipe.simulation.of_scene(seed))
        source = str(path)
    held = read(source, **recipe.input.reading, limits=limits)
    return scan_of(held, recipe, seed)


def scan_of(loaded: Content, recipe: Recipe, seed: int) -> KSpaceData | TrajectoryData:
    """The content of a file as a scan: images become simulated k-space, and volumes with holes get their noise."""
    if isinstance(loaded, ImageStack):
        from mri_design.scan.simulation import simulate_scan

        how = recipe.simulation.of_scene(seed) | {"phase": recipe.simulation.phase}
        return simulate_scan(loaded, matrix=recipe.input.simulated, **how)
    return with_volume_noise(loaded) if isinstance(loaded, KSpaceData) else loaded


def mr_image_model(
    kspace: KSpaceData | Array,
    mask: Array | None = None,
    *,
    index: int = 0,
    noise_variance: float | None = None,
    coil_maps: Array | None = None,
    recipe: Recipe | None = None,
) -> GeneralizedLinearModel:
    """The model of one MR slice, measured on the lines of a mask; unknown noise and maps are estimated from the data.

    Parameters
    ----------
    kspace : KSpaceData or complex array
        From `load`; or an array (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx).
    mask : array, optional
        Lines to use, as flags or zeros and ones (ky,), or by number; all measured ones by default.
    index : int
        Slice.
    noise_variance : float, optional
        Per real component.
    coil_maps : complex array, shape (coil, ky, kx), optional
        Sensitivities of the slice, for several coils.
    recipe : Recipe, optional
        Prior and calibration; the default recipe without it.

    Raises
    ------
    InputError
        Where the arrays do not fit, or there is too little data to calibrate.
    """
    settings = recipe or Recipe()
    data = (kspace if isinstance(kspace, KSpaceData) else data_of_array(kspace)).select_slice(index)
    if noise_variance is not None:
        data = replace(data, noise_variance=noise_variance)
    if coil_maps is not None:
        data = replace(data, coil_maps=number_array("coil_maps", coil_maps).astype(np.complex64)[None])
    flags = data.measured if mask is None else mask_of_measured(mask, data.measured, field="mask")
    return calibrate(data, settings, measured=flags).slice_model(0, **settings.slice_settings).model(flags)


def data_of_array(kspace: Array, dims: Sequence[str] | None = None) -> KSpaceData:
    """k-space as an array (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx) as a scan; lines of zeros are not measured.

    Other axes, and pairs of real numbers, are taken where the samples show them or ``dims`` names them.

    Raises
    ------
    InputError
        For anything else, and samples that single precision cannot hold.
    """
    array = number_array("kspace", kspace)
    if dims is None and (array.ndim not in (2, 3, 4, 5) or not (np.iscomplexobj(array) or looks_signed(array))):
        raise InputError("kspace", f"{array.dtype} {array.shape}", "complex (ky, kx), (coil, ky, kx) or more")
    if np.isfinite(array).all() and np.abs(array).max(initial=0) > np.finfo(np.float32).max:
        got, wanted = f"samples up to {np.abs(array).max():.0e}", "samples that single precision can hold, below 3e38"
        raise InputError("kspace", got, wanted, "Divide the data by a constant; images are divided by it too.")
    named = None if dims is None else tuple(dims)
    made = scan_of_arrays(Path("scan"), "kspace", {"kspace": array}, ArrayHeader(dims=named), DEFAULT_LIMITS)
    assert isinstance(made, KSpaceData)
    return replace(made, header={name: text for name, text in made.header.items() if name != "file"})
