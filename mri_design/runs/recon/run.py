"""A reconstruction run: images and error bars of the slices of a scan, from measured lines or along a trajectory.

One slice is a volume of one, but for what only a volume has: slices share noise and the basis of coil maps, some may
hold noise only, and each is kept in the run's folder as soon as it is finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, option
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.metrics import RelativeError
from mri_design.evaluation.run_folder import PROGRESS
from mri_design.experiment import volume
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.inputs import names_file
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import check_draws, check_size_of_draws
from mri_design.experiment.sources import ALL_SLICES, GivenMaps, MapsOfScan, SliceChoice, maps_origin
from mri_design.model.companion import Companion
from mri_design.operators.conventions import Chosen
from mri_design.runs import scan_facts
from mri_design.runs.given_reference import GivenReference
from mri_design.runs.recon.calibrated_on import FIELD, Group, check_calibrated_on, coverage_of
from mri_design.runs.recon.slices import (
    OTHER_IMAGES,
    REPORT,
    CalibratedSlice,
    KeptSlices,
    MeasuredSlice,
    SliceFacts,
    SliceWork,
    Stages,
    facts_of,
    neighbour_image,
    recipe_for,
    slice_image,
    what_is_used,
)
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import KnownSamples, KnownScan, NamedImage
from mri_design.runs.workers import LOCAL, Workers
from mri_design.scan.data import TrajectoryData, without_part
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.status import Status

SLICES = "slices"
"""Name of the stage in which slices are reconstructed, after that in which neighbours are."""
_AHEAD = 2
"""Slices in memory for each process."""


@dataclass(frozen=True)
class ReconRequest:
    """Request for a reconstruction.

    Parameters
    ----------
    source : str
        File or phantom.
    recipe : Recipe
        Method, prior, inference.
    mask : Path or array, optional
        Of the lines to use, bool (ky,), of the readouts of a trajectory, or of the samples of a plane, bool (ky, kz),
        as `read_mask` and `mask_of_measured` take it. All measured ones by default.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    slices : SliceChoice
        All by default; several make a volume.
    loaded : KSpaceData or TrajectoryData, optional
        The scan, where it has been read already; ``source`` still says where it is from.
    reference : Path or GivenReference, optional
        Images that errors are measured against, or a file of such (`read_images`); by default what the scan knows of
        itself.
    companions : tuple of str
        Files of other images of the object, which the prior may know (`CompanionImages.read`); ``slices`` and
        ``frames`` are the scan's own (`Around`).
    calibrated_on : Path, optional
        Folder of complete scans of other subjects, on which error bars are calibrated (`coverage_of`).
    """

    source: str
    recipe: Recipe
    mask: Path | Chosen | None = None
    maps: GivenMaps | None = None
    _: KW_ONLY
    slices: SliceChoice = ALL_SLICES
    loaded: volume.AnySlice | None = None
    reference: Path | GivenReference | None = None
    companions: tuple[str, ...] = ()
    calibrated_on: Path | None = None

    @property
    def companion_files(self) -> list[str]:
        """Those of ``companions`` that are no neighbours within the scan."""
        return [source for source in self.companions if not volume.is_around(source)]

    def opened(self, seed: int) -> AbstractContextManager[volume.Slices]:
        """The slices of the scan, which are read one by one unless it is in memory."""
        if self.loaded is not None:
            return nullcontext(volume.Slices.of(self.loaded))
        return volume.opened_slices(self.source, self.recipe, seed, self.maps)

    def record(self, run: Run, group: Group | None = None) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Parameters
        ----------
        run : Run
            Seed.
        group : Group, optional
            Files of ``calibrated_on``.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        maps = {} if self.maps is None else {maps_origin(self.maps): self.maps}
        files = {"mask": self.mask, **maps, "reference": self.reference}
        beside = {name: str(path) for name, path in files.items() if isinstance(path, Path | MapsOfScan)}
        beside |= {f"with {place}": companion_file(source) for place, source in enumerate(self.companion_files, 1)}
        if group is not None:
            beside |= {f"calibrated on {place}": str(path) for place, path in enumerate(group.files, 1)}
        inputs = InputFile.of_all([self.source, *beside.values()])
        choices = {
            "recipe": self.recipe.as_settings(),
            "phantom": "" if names_file(self.source) else self.source,
            "inputs": [file.sha256 for file in inputs],
            "beside": list(beside),
            "slices": self.slices.text,
            **({"around": repr(around)} if (around := volume.Around.named(self.companions)) else {}),
        }
        settings = {"source": self.source, "slices": self.slices.text, **self.recipe.as_settings()}
        return Record(run.identity("reconstruction", choices), inputs, settings)


@briefly
@dataclass(frozen=True, kw_only=True)
class ReconResult:
    """Result of a reconstruction.

    Parameters
    ----------
    record : Record
        For the manifest.
    ending : Ending
        Status, and lines that are used, of several slices in any; there are none along a trajectory.
    known : KnownScan or KnownSamples
        The slice, of several that which is shown, and what was known about it.
    mask : bool array, shape (ky,), (ky, kz) or (readout,)
        The lines used, the samples of a plane, or the readouts of a trajectory; of several slices in any.
    images : sequence of NamedImage
        The image, and the zero-filled or gridded one to compare it with.
    numbers : sequence of int
        The slices, in the order of the arrays; of several frames the images, as `numbering` has them.
    count : int
        Slices of the input, in each frame.
    numbering : Frames
        How images are numbered.
    alike : bool
        Whether the same is used in all.
    kept : KeptSlices
        What is known of each; of several the images too.
    shown : int
        Number of the slice that the report shows in detail, of the first frame where there are several.
    places : sequence of (SliceGeometry or None)
        Of every slice.
    sources : sequence of (SourceImage or None)
        Likewise.
    """

    record: Record
    ending: Ending
    known: KnownScan | KnownSamples
    mask: NDArray[np.bool_]
    images: Sequence[NamedImage]
    numbers: Sequence[int]
    count: int
    numbering: volume.Frames
    alike: bool
    kept: KeptSlices
    shown: int
    places: Sequence[SliceGeometry | None]
    sources: Sequence[SourceImage | None]

    @property
    def several(self) -> bool:
        """Whether it is a volume, or a series of frames."""
        return len(self.numbers) > 1 or bool(self.numbering.axis)

    @property
    def coverage(self) -> Coverage | None:
        """Of the error bars, where they are calibrated on other scans."""
        return self.kept.coverage

    @property
    def first_frame(self) -> Sequence[int]:
        """The slices, of the first frame where there are several."""
        return [number for number in self.numbers if number < self.count]

    @property
    def facts(self) -> list[SliceFacts]:
        """Of the slices in their order."""
        return [self.kept.facts[number] for number in self.numbers]

    @property
    def error(self) -> RelativeError:
        """Predicted and found; of several slices means."""
        return self.images[0].error.over(facts.rows[0] for facts in self.facts)

    @property
    def account(self) -> dict[str, str]:
        """`Reconstruction.account` of the image."""
        return dict(self.kept.facts[self.shown].account)

    @property
    def matvecs(self) -> int:
        """Multiplications with A, of all slices."""
        return sum(one.matvecs for one in self.facts)

    def stack(self, name: str) -> Iterator[NDArray[Any]]:
        """The arrays of a name, slice by slice."""
        for number in self.numbers:
            yield self.kept.arrays(number)[name]


@dataclass
class _Looked:
    """What a first look at the slices found: the first that is asked for, what all share, what is used of each, where
    they lie, and the images that they are simulated from."""

    first: volume.AnySlice
    shared: volume.Shared
    masks: dict[int, NDArray[np.bool_]]
    places: dict[int, SliceGeometry | None]
    sources: dict[int, SourceImage | None]


def reconstruct_scan(request: ReconRequest, run: Run) -> ReconResult | Ending:
    """Reconstruct the slices that are asked for, of lines or along a trajectory.

    Returns
    -------
    ReconResult or Ending
        An `Ending` where the folder holds this very run, finished, and was to resume it.

    Raises
    ------
    UsageError
        Where the folder holds another run, or draws are asked for of an image that has no posterior.
    InputError
        Where the input or the mask cannot be used, before any slice is reconstructed.
    """
    recipe, show = request.recipe, run.progress.show
    show("reading", 0, 1)
    check_draws(recipe.reconstruction)
    group = None
    if request.calibrated_on is not None:
        check_calibrated_on(recipe, request.companions)
        group = Group.of(request.calibrated_on, request.source)
    record = request.record(run, group)
    references = request.reference
    references = GivenReference.read(references) if isinstance(references, Path) else references
    around = volume.Around.named(request.companions)
    files = [CompanionImages.read(source, recipe, run.seed) for source in request.companion_files]
    with request.opened(run.seed) as slices:
        numbering, count = slices.numbering, slices.count
        numbers = numbering.images(request.slices.indices(count))
        several = len(numbers) > 1 or slices.frames is not None
        around.require(numbering)
        before = run.finished(record.identity, checkpoint=PROGRESS, resumed="reconstruction")
        if before is not None:
            return before
        stages = Stages(show, recipe.reconstruction.method) if not several else None
        if slices.frames is not None:
            recipe = volume.recipe_of_frame(recipe, slices.frames.numbers[0])
        looked = _look(replace(request, recipe=recipe), slices, numbers, bool(around), run)
        mask, grid = looked.masks[numbers[0]], looked.first.grid_shape
        alike = all(np.array_equal(looked.masks[number], mask) for number in numbers)
        if group is not None and not alike:
            raise InputError(
                FIELD,
                "slices of which different samples are used",
                "the same of all, as scans are reconstructed from them",
                f"Give a {option('mask')}, or take the slices one by one with {option('slices')}.",
            )
        recipe = recipe_for(mask, looked.first, recipe)
        first_frame = [number for number in numbers if number < count]  # whose references are those of all
        given = {} if references is None else references.of_slices(first_frame, count, grid)
        check_size_of_draws(recipe.reconstruction, len(numbers), grid)

        def measured(number: int, *near: Companion) -> MeasuredSlice:
            data, own = looked.first if number == numbers[0] else slices.read(number), number % count
            known = companions_over(files, data, own, count, several=len(first_frame) > 1)
            return MeasuredSlice(number, data, looked.masks[number], given.get(own), (*known, *near))

        work = SliceWork(recipe, run.seed, looked.shared, numbering)
        if stages is not None:
            stages.begin("calibrating")
            ready = CalibratedSlice.of(replace(work, numbering=None), measured(numbers[0]))
            _warn_of(ready, run)
        run.begin()
        kept = KeptSlices.open(run.folder, record.identity)
        if group is not None and kept.coverage is None:
            kept.calibrate(coverage_of(group, slices, numbers, run, recipe, mask))
        left = [number for number in numbers if number not in kept.facts]
        places = {number: looked.places.get(number) for number in range(count)}
        near = {number: around.of(number, numbering, places) for number in left}
        asked = sorted({other for found in near.values() for weights in found.values() for other in weights})
        untold = [number for number in asked if number not in kept.told]
        jobs = max(1, min(run.jobs, max(len(left), len(untold))))
        with Workers(work, jobs, run.executor if several or untold else LOCAL) as workers:
            told = workers.map(neighbour_image, map(measured, untold), ahead=_AHEAD * run.jobs)
            for done, modulus in enumerate(told, len(asked) - len(untold) + 1):
                kept.tell(*modulus)
                show(volume.NEIGHBOURS, done, len(asked))
            if stages is not None:
                ready = ready.beside(volume.neighbours(near[numbers[0]], kept.modulus))
                known, images = ready.images(stages)
                kept.facts[numbers[0]] = one = facts_of(ready, known, images)
                if one.left_out:
                    run.progress.say(one.left_out)
                stages.begin(REPORT)
            else:
                show(SLICES, len(numbers) - len(left), len(numbers))
                items = (measured(number, *volume.neighbours(near[number], kept.modulus)) for number in left)
                for made in workers.map(slice_image, items, ahead=_AHEAD * run.jobs):
                    kept.add(*made)
                    show(SLICES, len(kept.facts), len(numbers))
                show(REPORT, 0, 1)
        facts = [kept.facts[number] for number in numbers]
        seen = [number for number in first_frame if not kept.facts[number].noise_only] or first_frame
        shown = seen[len(seen) // 2]
        if several:
            place = MeasuredSlice(shown, slices.read(shown), looked.masks[shown], given.get(shown))
            ready = CalibratedSlice.of(work, place)
            _warn_of(ready, run)
            known, images = ready.read_back(kept.arrays(shown), kept.facts[shown])
    _say_of_images(kept, numbers, numbering, run)
    if known.given is not None and known.given.doubt:
        run.progress.warn(f"{numbering.name(shown)}: {known.given.doubt}")
    union = np.logical_or.reduce([looked.masks[number] for number in numbers])
    lines = () if isinstance(looked.first, TrajectoryData) else tuple(np.flatnonzero(union).tolist())
    return ReconResult(
        record=record,
        ending=Ending(_status(facts, numbering.unit), lines),
        numbers=numbers,
        count=count,
        numbering=numbering,
        mask=union,
        alike=alike,
        kept=kept,
        shown=shown,
        known=known,
        images=images,
        places=[looked.places[number] for number in numbers],
        sources=[looked.sources[number] for number in numbers],
    )


def _look(request: ReconRequest, slices: volume.Slices, numbers: Sequence[int], around: bool, run: Run) -> _Looked:
    """Read once all slices that are asked for, with those ``around`` them, where these inform them, all of the scan."""
    numbering, several = slices.numbering, len(numbers) > 1 or slices.frames is not None
    every = numbering.images(range(slices.count)) if around else numbers
    survey, shape, first = volume.Survey(request.recipe, numbering.unit), None, None
    masks = dict[int, NDArray[np.bool_]]()
    places, sources = dict[int, SliceGeometry | None](), dict[int, SourceImage | None]()
    for done, number in enumerate(every):
        run.progress.show("reading", done, len(every))
        try:
            data = slices.read(number)
            masks[number] = what_is_used(data, request.mask, request.recipe)
            if several:
                survey.add(data, masks[number])
        except InputError as error:
            raise _of_slice(numbering, number, error) if len(every) > 1 else error from error
        if number == numbers[0]:
            first = data
            told = replace(data, header=without_part(data.header)) if several else data
            scan_facts.tell_part(told, request.recipe, run.progress)
        size = (data.n_coils, *data.grid_shape, masks[number].ndim)
        if shape not in (None, size):
            raise InputError(
                field=numbering.name(number),
                got=f"{size[0]} coils and {size[1]} x {size[2]} pixels",
                wanted="the same as of the slices before, to lie in one volume",
                cure=f"Reconstruct them in runs of their own, with --{numbering.axis or 'slices'}.",
            )
        shape = size
        geometry = getattr(data, "geometry", None)
        places[number] = None if geometry is None else geometry[0]
        sources[number] = getattr(data, "source", None)
    run.progress.show("reading", len(every), len(every))
    assert first is not None
    return _Looked(first, survey.shared() if several else volume.NOTHING_SHARED, masks, places, sources)


def _of_slice(numbering: volume.Frames, number: int, error: InputError) -> InputError:
    field = error.field
    for name, counter in reversed(numbering.place(number).items()):
        field = field if f"{name} {counter}" in field else f"{name} {counter}: {field}"
    return InputError(field, error.got, error.wanted, error.cure or f"Leave the slice out with {option('slices')}.")


def _warn_of(ready: CalibratedSlice, run: Run) -> None:
    scan_facts.warn_of_noise(ready.scan, run.progress)
    scan_facts.warn_of_maps(ready.scan, run.progress)


def _say_of_images(kept: KeptSlices, numbers: Sequence[int], numbering: volume.Frames, run: Run) -> None:
    """Say what became of other images, and which slices hold noise only or are too large for their field of view."""
    used, facts = dict[str, list[int]](), {number: kept.facts[number] for number in numbers}
    for number, one in facts.items():
        if OTHER_IMAGES in one.rows[0]:
            used.setdefault(str(one.rows[0][OTHER_IMAGES]), []).append(number)
    if used:
        told = "; ".join(f"{names} in {numbering.names(where)}" for names, where in used.items())
        told = told if len(numbers) > 1 else facts[numbers[0]].account["companions"]
        run.progress.say(f"other images: {told}")
    if noise_only := [number for number, one in facts.items() if one.noise_only]:
        words = "hold noise only: their images show" if len(noise_only) > 1 else "holds noise only: its image shows"
        run.progress.warn(f"{numbering.names(noise_only)} {words} noise")
    if folded := [number for number, one in facts.items() if one.folded]:
        run.progress.warn(f"{numbering.names(folded)}: {scan_facts.FOLDED}")


def _status(facts: Sequence[SliceFacts], unit: str) -> str:
    """ "converged", or of how many slices or images the reconstruction did not, and why that of the first did not."""
    missed = [one.status for one in facts if not one.converged]
    count = f"{len(missed)} of {len(facts)} {unit}: " if len(facts) > 1 else ""
    return f"not converged ({count}{missed[0]})" if missed else Status.CONVERGED.value
