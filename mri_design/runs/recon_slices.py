"""Slices on their way through a reconstruction: measured, calibrated, reconstructed, kept; and those of other scans.

On the errors of other scans, a folder of complete scans of other subjects, error bars are calibrated.
"""

from __future__ import annotations

import filecmp
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MriDesignError, UsageError, option
from mri_design.evaluation.metrics import FEWEST, Coverage, error_beyond_noise, scores
from mri_design.evaluation.plots.pictures import ImagePanel
from mri_design.evaluation.run_folder import PROGRESS
from mri_design.evidence.regions import USUAL_DRAWS, distances_of_discs
from mri_design.experiment import volume
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.companion_images import readout_energies, same_readouts
from mri_design.experiment.extent import check_other_than_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import (
    InferenceOptions,
    image_rng,
    loops_shown,
    reconstruct_prepared,
    shared_frame,
)
from mri_design.experiment.volume import Shared, Slices, opened_slices, recipe_of_frame
from mri_design.kinds import KINDS, gridded_kinds
from mri_design.model.sparsity import MEMBERS, Companion, SharedFrame
from mri_design.operators.conventions import Chosen
from mri_design.runs.image_sections import CompanionPictures, Rows, companion_pictures, image_rows
from mri_design.runs.known_slice import GivenReference, KnownSlice, NamedImage
from mri_design.runs.provenance import account_of, phrase
from mri_design.runs.stored_run import ARRAYS, arrays_of
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.formats import mask_of_measured, read_mask
from mri_design.status import Status

REPORT = "report"
"""Name of the last stage."""
_LOOPS = "outer loops"


class Stages:
    """Show which part of a reconstruction is being done, and which are left.

    Parameters
    ----------
    show : callable
        Takes the name of a part, how many of its pieces are done, and of how many.
    method : str
        Of the recipe: only the posterior mean has outer loops and error bars.
    """

    def __init__(self, show: Callable[[str, int, int], None], method: str) -> None:
        middle = ("choosing the model", _LOOPS, "error bars") if method == "mean" else ("reconstructing",)
        self._show, self._left = show, dict.fromkeys(("reading", "calibrating", *middle, REPORT), 1)
        for name in self._left:
            show(name, 0, 1)

    def begin(self, name: str) -> None:
        """Say that a part begins: those before it are done. A name that the method does not have says nothing."""
        if name in self._left:
            for earlier in list(self._left)[: list(self._left).index(name)]:
                pieces = self._left.pop(earlier)
                self._show(earlier, pieces, pieces)
            self._show(name, 0, self._left[name])

    def loop(self, done: int, most: int) -> None:
        """Say that ``done`` outer loops are done, of ``most``."""
        if _LOOPS in self._left:
            self._left[_LOOPS] = most
            self._show(_LOOPS, done, most)


def what_is_used(data: volume.AnySlice, mask: Path | Chosen | None, recipe: Recipe) -> NDArray[np.bool_]:
    """Lines (ky,), samples (ky, kz) or readouts of a slice that are used: those of a mask or its file, or all measured.

    Samples where a plane is requested, lines have holes, or the mask is one of samples.

    Raises
    ------
    InputError
        For a mask that does not fit the slice.
    """
    if isinstance(data, TrajectoryData):
        every = np.ones(data.n_readouts, dtype=bool)
        if isinstance(mask, Path):
            return read_mask(mask, every)
        return every if mask is None else mask_of_measured(mask, every, unit="readout")
    sampling, in_plane = data.samplings[0], KINDS[recipe.design.encoding].square
    if mask is None:
        plane = in_plane or (data.volume and not sampling.whole_lines)
        return sampling.samples if plane or sampling.holes else data.measured
    known = data.measured, sampling.samples
    if isinstance(mask, Path):
        return read_mask(mask, *known, plane=in_plane or data.volume)
    return mask_of_measured(mask, *known, plane=in_plane or data.volume)


def recipe_for(mask: NDArray[np.bool_], data: volume.AnySlice, recipe: Recipe) -> Recipe:
    """The recipe for lines, or for samples of a plane, as a mask says.

    Raises
    ------
    InputError
        For settings that samples of a plane do not have.
    """
    if isinstance(data, TrajectoryData):
        return recipe
    encoding = next(name for name in gridded_kinds() if KINDS[name].axes == mask.ndim)
    recipe = recipe.replacing("design", encoding=encoding)
    check_other_than_lines(recipe)
    return recipe


@dataclass(frozen=True)
class MeasuredSlice:
    """A slice as read, with its mask, reference and other images.

    Parameters
    ----------
    number : int
        Of the image in the run, see `Slices`.
    data : KSpaceData or TrajectoryData
        As read.
    mask : bool array
        See `what_is_used`.
    reference : GivenReference, optional
        The user's image that errors are measured against.
    companions : sequence of Companion
        Other images of the object.
    frames : sequence of SharedFrame
        Other frames with which its prior shares sites.
    """

    number: int
    data: volume.AnySlice
    mask: NDArray[np.bool_]
    reference: GivenReference | None = None
    companions: Sequence[Companion] = ()
    frames: Sequence[SharedFrame] = ()


def calibrated(shared: Shared, measured: MeasuredSlice, *, neighbour: bool = False) -> KnownSlice:
    """A slice with noise and coil maps known, and no reference looked at yet.

    Raises
    ------
    InputError
        Where it cannot be calibrated, or is the only one, and no ``neighbour`` of it, and holds noise only.
    """
    recipe, data = shared.recipe, shared.known_by(measured.data)
    scan = calibrate(data, recipe, measured=measured.mask, ordinary=True, directions=shared.directions)
    model = scan.slice_model(0, **recipe.slice_settings)
    model = replace(model, companions=tuple(measured.companions), frames=tuple(measured.frames))
    lines = np.flatnonzero(measured.mask if scan.on_grid else model.measured).tolist()
    signal = (model.level if shared.several or neighbour else model.signal_level)(lines)
    given, number = measured.reference, measured.number
    return KnownSlice(scan=scan, slice_model=model, signal=signal, lines=lines, given=given, number=number)


def images_of(shared: Shared, known: KnownSlice, stages: Stages | None = None) -> tuple[KnownSlice, list[NamedImage]]:
    """The image by the recipe's method in the units of the input, one to compare it with, and what is known of it.

    Raises
    ------
    InputError
        Where a reference that was given has nothing in common with it.
    """
    recipe, model = shared.recipe, known.slice_model
    options = InferenceOptions(signal=known.signal, number=known.number)
    if stages is not None:
        options = replace(options, callback=loops_shown(stages.loop, recipe, model), watch=stages.begin)
    made = reconstruct_prepared(model, known.lines, None, recipe, image_rng(shared.seed), options=options)
    return known.judged(recipe.reconstruction.method, made.times(known.image_unit))


OTHER_IMAGES = "other images"
"""Column of metrics.csv: those that the prior of a slice knows, "none" where it was offered some and knows none."""
_OTHERS = "other_images"
_MODULUS = "modulus"


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """Facts of a reconstructed slice other than its arrays.

    Parameters
    ----------
    rows : list of mappings
        Of metrics.csv.
    image : mapping
        `Image.facts`.
    arrays : sequence of str
        Names of its arrays.
    noise_only : bool
        Whether the slice holds no more than noise.
    folded : bool
        Whether its field of view looks too small.
    unexplained : bool
        Whether its samples speak against its coil maps or its noise.
    without_noise : bool
        Whether a map of its noise was asked for that an image with two sets of coil maps does not have.
    account : mapping
        `account_of` the image.
    reference_scale : float, optional
        What its image of a file of references was multiplied by.
    others : sequence of (str, str)
        Titles and captions of pictures of its companions, whose moduli are the array ``other_images``.
    about_others : str
        What was made of them.
    lost : float, optional
        See `compression`; None where coils are not combined.
    """

    rows: Rows
    image: Mapping[str, Any]
    arrays: Sequence[str]
    noise_only: bool
    folded: bool
    unexplained: bool
    without_noise: bool
    account: Mapping[str, str]
    reference_scale: float | None = None
    others: Sequence[Sequence[str]] = ()
    about_others: str = ""
    lost: float | None = None

    @property
    def converged(self) -> bool:
        """Whether the reconstruction did."""
        return bool(self.image["status"] == Status.CONVERGED.value)


Finished = tuple[int, Mapping[str, NDArray[Any]], SliceFacts]
"""A reconstructed slice: its number, its arrays in the input's units as they are kept, and the rest.

The arrays are ``recon`` (ky, kx), and where there are some ``std``, ``noise``, ``g_factor``, ``reference``, ``draws``
(draw, ky, kx), ``coil_maps`` (coil, ky, kx) and ``other_images`` (picture, ky, kx).
"""


def finished(shared: Shared, known: KnownSlice, images: Sequence[NamedImage]) -> Finished:
    """What is kept of the images of a slice, see `images_of`."""
    made, combined = images[0].reconstruction, known.scan.provenance.combined
    arrays = arrays_of(known, made, None if made.draws is None else known.shown_reference)
    panels, about = companion_pictures(made)
    if panels:
        arrays[_OTHERS] = np.stack([np.abs(panel.image) for panel in panels]).astype(np.float32)
    place = shared.numbering.place(known.number) if shared.several else {}
    rows = [{**place, **row} for row in image_rows(known, images)]
    if made.companions is not None:
        rows[0][OTHER_IMAGES] = "; ".join(made.companions.used) or "none"
    facts = SliceFacts(
        rows=rows,
        image=made.facts,
        arrays=list(arrays),
        noise_only=not known.slice_model.shows_signal(known.lines),
        folded=known.folded,
        unexplained=known.unexplained,
        without_noise=shared.recipe.reconstruction.noise_map and made.noise is None,
        account=account_of(made),
        reference_scale=None if known.given is None else known.given.factor,
        others=[(panel.title, panel.caption) for panel in panels],
        about_others=about,
        lost=None if combined is None else float(f"{combined[2]:.6g}"),
    )
    return known.number, arrays, facts


def slice_image(shared: Shared, measured: MeasuredSlice) -> Finished:
    """Calibrate and reconstruct one of several slices."""
    made = finished(shared, *images_of(shared, calibrated(shared, measured)))
    gc.collect()  # models and operators hold each other in circles, which would wait for many slices to be let go
    return made


def neighbour_image(shared: Shared, measured: MeasuredSlice) -> tuple[int, Mapping[str, NDArray[Any]], None]:
    """As `slice_image`, of the modulus that the neighbours of a slice know."""
    known = calibrated(shared, measured, neighbour=True)
    modulus = volume.neighbour_modulus(known.slice_model, known.lines, shared.recipe, shared.seed)
    return measured.number, {_MODULUS: modulus}, None


def frame_image(shared: Shared, measured: MeasuredSlice) -> tuple[int, Mapping[str, NDArray[Any]], None]:
    """As `neighbour_image`, with what frames know that share its sites; of a slice of noise that is nothing."""
    known = calibrated(shared, measured, neighbour=True)
    if not known.slice_model.shows_signal(known.lines):
        return measured.number, {_MODULUS: np.zeros(known.slice_model.shape, dtype=np.float32)}, None
    frame = shared_frame(known.slice_model, known.lines, shared.recipe, image_rng(shared.seed), known.signal)
    return measured.number, {_MODULUS: np.abs(frame.image).astype(np.float32)} | frame.arrays, None


class KeptSlices:
    """Finished slices: the arrays of each, and a table of their facts.

    Parameters
    ----------
    keep : Keep
        Where they are kept, and found again.

    Attributes
    ----------
    facts : dict of int to SliceFacts
        By number of the slice.
    neighbours : set of int
        Slices whose moduli are kept for their neighbours.
    coverage : Coverage, optional
        Of the error bars, where they have been calibrated.

    Raises
    ------
    InputError
        For a damaged table.
    UsageError
        For that of another reconstruction.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self.facts, self.neighbours, self.coverage = dict[int, SliceFacts](), set[int](), None

        def parse(stored: Mapping[str, Any]) -> None:
            self.facts = {int(number): SliceFacts(**facts) for number, facts in stored["slices"].items()}
            self.neighbours = set(map(int, stored["neighbours"]))
            found = stored.get("coverage")
            self.coverage = Coverage.from_settings(found) if found else None

        keep.table(PROGRESS, "the progress of a reconstruction", parse)

    def add(self, number: int, arrays: Mapping[str, NDArray[Any]], facts: SliceFacts | None) -> None:
        """Keep a slice, or without ``facts`` what its neighbours know of it: first its arrays, then that they are."""
        self._keep.keep_arrays(_name(number, "slice" if facts else volume.NEIGHBOURS), arrays)
        if facts is None:
            self.neighbours.add(number)
        else:
            self.facts[number] = facts
        self.write()

    def write(self) -> None:
        """Keep the table of facts."""
        stored = {str(number): asdict(facts) for number, facts in sorted(self.facts.items())}
        kept: dict[str, Any] = {"slices": stored, "neighbours": sorted(self.neighbours)}
        self._keep.keep_table(PROGRESS, kept | ({"coverage": self.coverage.as_settings()} if self.coverage else {}))

    def modulus(self, number: int) -> NDArray[np.float32]:
        """The modulus of a slice that its neighbours know."""
        return self._keep.arrays(_name(number, volume.NEIGHBOURS), (_MODULUS,))[_MODULUS]

    def frames(self, numbers: Sequence[int]) -> list[SharedFrame]:
        """Those frames of which some are known to share sites, without those of noise."""
        every = (self._keep.arrays(_name(number, volume.NEIGHBOURS), MEMBERS) for number in numbers)
        return [SharedFrame.kept(arrays) for arrays in every if "frame" in arrays]

    def arrays(self, number: int) -> Mapping[str, NDArray[Any]]:
        """The arrays of a slice."""
        return self._keep.arrays(_name(number), (*ARRAYS, _OTHERS))

    def pictures(self, number: int) -> CompanionPictures:
        """Those of the companions of a slice; no panels where it was offered none."""
        facts, images = self.facts[number], self.arrays(number).get(_OTHERS, ())
        titles = zip(images, facts.others, strict=True)
        return [ImagePanel(image, title, caption) for image, (title, caption) in titles], facts.about_others

    @property
    def files(self) -> list[str]:
        """Names of all that is kept."""
        return [PROGRESS, *map(_name, self.facts), *(_name(number, volume.NEIGHBOURS) for number in self.neighbours)]


def _name(number: int, kind: str = "slice") -> str:
    return f"{kind}-{number:04d}.npz"


FIELD = "calibrated_on"
"""What errors about the folder are about."""
MOST = 64
"""Files that are looked at."""
_BESIDE = (".json", ".hdr", ".md", ".txt", ".csv", ".toml")
"""Endings of files next to scans that are no scans; the header of a BART pair is read with its samples."""
_NAMED = 3
"""Files that cannot serve which an error names."""
AHEAD = 2
"""Slices in memory for each process."""
_STAGE = "calibrating on other scans"


def other_scans(
    folder: Path, source: str, method: str, companions: Sequence[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Files of a folder that may be another scan than the source, and what is left out already, and why.

    Hidden files, folders, and files that are no scans are left out.

    Raises
    ------
    UsageError
        For a method without error bars, and for other images of the object, which those scans do not have.
    InputError
        Where it is no folder, or that of a run.
    """
    if method != "mean":
        raise UsageError(
            f"only the posterior mean has error bars: leave out {option('calibrated-on')}, or "
            f"{option('method', method)} (mean)"
        )
    if companions:
        raise UsageError(
            f"scans of {option('calibrated-on')} have no other images of their objects, and would have larger errors "
            f"than this one: leave out {option('calibrated-on')}, or {option('with')}"
        )
    wanted = f"a folder with at least {FEWEST} complete scans of other subjects"
    if not folder.is_dir():
        raise InputError(FIELD, f"{folder.name}, which is {'a file' if folder.exists() else 'not there'}", wanted)
    if (folder / "manifest.json").is_file():
        got = f"{folder.name}, the folder of a run, whose image is not a complete scan"
        raise InputError(FIELD, got, wanted, "Give a folder of the scans themselves.")
    found = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    files = [path for path in found if path.suffix.lower() not in _BESIDE]
    refused = [f"{len(files) - MOST} more files are left out, after the first {MOST}"] if len(files) > MOST else []
    own = [path for path in files[:MOST] if Path(source).is_file() and filecmp.cmp(path, source, shallow=False)]
    refused += [f"{path.name} is left out: it is the file of the scan itself" for path in own]
    return tuple(path for path in files[:MOST] if path not in own), tuple(refused)


def coverage_of(
    folder: Path,
    others: tuple[Sequence[Path], Sequence[str]],
    slices: Slices,
    masks: Mapping[int, NDArray[np.bool_]],
    work: Work,
    recipe: Recipe,
) -> Coverage:
    """Reconstruct the middle slice of every scan from the same samples, and hold its errors against its error bars.

    The noise is each scan's own, as are coil maps that its file does not bring: a noise that was given is that of the
    one scan, in its units. Scans that cannot serve are left out, and named in a warning.

    Parameters
    ----------
    folder : Path
        Its name stands in messages.
    others : sequence of Path and sequence of str
        See `other_scans`.
    slices : Slices
        Of the scan, which is recognised in the folder by its samples.
    masks : mapping of int to bool array, shape (ky,) or (ky, kz)
        What is used of each slice that is reconstructed; the same of all.
    work : Work
        Seed, processes and progress.
    recipe : Recipe
        For the lines or samples of the scan.

    Raises
    ------
    InputError
        Along a trajectory, where not the same is used of all slices, and where fewer than two scans are left.
    """
    numbers, name, mask = list(masks), folder.resolve().name, next(iter(masks.values()))
    like = _example(slices.read(numbers[0]), masks)
    files, refused = others[0], list(others[1])
    draws = USUAL_DRAWS if recipe.reconstruction.draws else 0
    recipe = recipe.replacing("reconstruction", draws=draws, noise_map=False)
    recipe = replace(recipe, input=replace(recipe.input, noise=None))
    own = [readout_energies(like)[0]]
    for number in {*numbers[1:], slices.count // 2}:
        with suppress(InputError):  # without signal
            own.append(readout_energies(slices.read(number))[0])

    def items() -> Iterator[tuple[str, MeasuredSlice]]:
        for number, path in enumerate(files):
            try:
                data = _middle(path, recipe, work.seed + 1 + number)
                why = _unfit(data, like, mask)
                if not why and any(same_readouts(readout_energies(data)[0], one) for one in own):
                    why = "it is the scan itself: the same samples"
            except MriDesignError as error:
                why = str(error)
            if why:
                refused.append(f"{path.name} is left out: {why}")
            else:
                yield path.name, MeasuredSlice(number, data, mask)

    found, discs, count = dict[str, NDArray[np.float32]](), list[NDArray[np.float64]](), len(files)
    work.progress.show(_STAGE, 0, count)
    shared = Shared(recipe, work.seed, Slices(1), several=False)
    with Workers(shared, max(1, min(work.jobs, count)), work.executor) as workers:
        for number, file, made in workers.map(_scores, items(), ahead=AHEAD * work.jobs):
            if isinstance(made, str):
                refused.append(f"{file} is left out: {made}")
            else:
                found[file] = made[0]
                discs.append(made[1])
            work.progress.show(_STAGE, number + 1, count)
    work.progress.show(_STAGE, count, count)
    if len(found) < FEWEST:
        rows, columns = like.grid_shape
        raise InputError(
            FIELD,
            "; ".join([f"{len(found)} of {count} files of {name} that can serve", *refused[:_NAMED], "..."]),
            f"at least {FEWEST} complete scans of other subjects, {rows} x {columns} pixels and coils: {like.n_coils}",
            "Put such scans there, all measured as this one but with every line.",
        )
    for why in refused:
        work.progress.warn(f"{name}: {why}")
    return Coverage.of(name, found, refused, discs)


def _example(data: KSpaceData | TrajectoryData, masks: Mapping[int, NDArray[np.bool_]]) -> KSpaceData:
    """A slice that other scans have to be like, refused where there are no such."""
    first, *others = masks.values()
    if any(not np.array_equal(one, first) for one in others):
        wanted = "the same of all, as scans are reconstructed from them"
        cure = f"Give a {option('mask')}, or take the slices one by one with {option('slices')}."
        raise InputError(FIELD, "slices of which different samples are used", wanted, cure)
    if not isinstance(data, KSpaceData):
        wanted = "lines, or samples of a plane, of which a complete scan is its own reference"
        raise InputError(FIELD, "samples along a trajectory", wanted, f"Leave out {option('calibrated-on')}.")
    return data


def _middle(path: Path, recipe: Recipe, seed: int) -> KSpaceData | TrajectoryData:
    """The middle slice of a file, of its first frame where the recipe requests all."""
    recipe = recipe_of_frame(recipe, None) if recipe.input.axis else recipe
    with opened_slices(str(path), recipe, seed) as slices:
        return slices.read(slices.count // 2)


def _unfit(data: KSpaceData | TrajectoryData, like: KSpaceData, mask: NDArray[np.bool_]) -> str:
    """Why a scan cannot serve: it is not complete, or not as large as the one; empty where it can."""
    if not isinstance(data, KSpaceData):
        return "samples along a trajectory have no complete image of their own"
    for text in ("{0.grid_shape[0]} x {0.grid_shape[1]} pixels", "coils: {0.n_coils}"):
        if text.format(data) != text.format(like):
            return f"it has {text.format(data)}, and this scan {text.format(like)}"
    if data.reference is None and not data.fully_sampled:
        return f"it is not complete ({phrase('missing', data.incomplete)})"
    held = data.samplings[0].samples if mask.ndim == 2 else data.samplings[0].lines
    if (mask & ~held).any():
        return "it holds no data in some of the lines that are used"
    if data.reference is None and mask.sum() >= held.sum():
        return f"its complete image is of the very lines that are used; give fewer with {option('mask')}"
    return ""


_Scores = tuple[NDArray[np.float32], NDArray[np.float64]]


def _scores(shared: Shared, item: tuple[str, MeasuredSlice]) -> tuple[int, str, _Scores | str]:
    """Errors of one slice in its standard deviations, and distances of discs; or why there are none."""
    name, measured = item
    try:
        known, images = images_of(shared, calibrated(shared, measured))
    except InputError as error:
        return measured.number, name, str(error)
    made, reference = images[0].reconstruction, known.shown_reference
    assert isinstance(known.scan, KSpaceData) and reference is not None and made.std is not None
    beyond = error_beyond_noise(made.image, made.std, known.scan, reference, known.image_unit, measured.mask)
    discs = np.empty((0, 2))
    if made.draws is not None:
        rng = np.random.default_rng(measured.number)
        discs = distances_of_discs(made.image, made.draws, reference, rng, made.pull)
    return measured.number, name, (scores(beyond, made.std), discs)
