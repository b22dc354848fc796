"""A reconstruction run: images and error bars of the slices of a scan, from measured lines or along a trajectory.

One slice is a volume of one, but for what only a volume has: slices share noise and the basis of coil maps, some may
hold noise only, and each is kept in the run's folder as soon as it is finished. Error bars can be held against the
errors of complete scans of other subjects, which are reconstructed as the scan is.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, MriDesignError, UsageError, option
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.metrics import RelativeError, error_beyond_noise
from mri_design.evaluation.run_folder import PROGRESS
from mri_design.experiment import volume
from mri_design.experiment.companion_images import (
    CompanionImages,
    companion_file,
    companions_over,
    readout_energies,
    same_readouts,
)
from mri_design.experiment.coverage import FEWEST, Coverage, scores
from mri_design.experiment.inputs import names_file
from mri_design.experiment.recipe import NoiseRecipe, Recipe
from mri_design.experiment.reconstruction import check_draws, check_size_of_draws
from mri_design.experiment.sources import ALL_SLICES, GivenMaps, MapsOfScan, SliceChoice, maps_origin
from mri_design.model.companion import Companion
from mri_design.operators.conventions import Chosen
from mri_design.runs import scan_facts
from mri_design.runs.given_reference import GivenReference
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
from mri_design.runs.scan_facts import KnownSamples, KnownScan, NamedImage
from mri_design.runs.store import Ending, Record, Run
from mri_design.runs.workers import LOCAL, Workers
from mri_design.scan.data import KSpaceData, TrajectoryData, without_part
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.status import Status

FIELD = "calibrated_on"
"""What errors about the folder are about."""
MOST = 64
"""Files that are looked at."""
_BESIDE = (".json", ".hdr", ".md", ".txt", ".csv", ".toml")
"""Ends of the names of files that lie beside scans and are none; the header of a BART pair is read with its samples."""
_SAID = 3
"""Files that cannot serve which an error names."""
SLICES = "slices"
"""Name of the stage in which slices are reconstructed, after that in which neighbours are."""
_AHEAD = 2
"""Slices in memory for each process."""


@dataclass(frozen=True)
class Group:
    """The files of a folder of scans.

    Parameters
    ----------
    name : str
        Of the folder.
    files : tuple of Path
        By name.
    refused : tuple of str
        What is left out already, and why.
    """

    name: str
    files: tuple[Path, ...]
    refused: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, source: str, method: str, companions: Sequence[str]) -> Group:
        """What may be another scan than the source: no hidden file, no folder, and nothing that lies beside scans.

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
                f"scans of {option('calibrated-on')} have no other images beside them, and would be wrong by more than "
                f"this one: leave out {option('calibrated-on')}, or {option('with')}"
            )
        wanted = f"a folder with at least {FEWEST} complete scans of other subjects"
        if not folder.is_dir():
            got = f"{folder.name}, which is {'a file' if folder.exists() else 'not there'}"
            raise InputError(FIELD, got, wanted)
        if (folder / "manifest.json").is_file():
            raise InputError(
                FIELD,
                f"{folder.name}, the folder of a run, whose image is not a complete scan",
                wanted,
                "Give a folder of the scans themselves.",
            )
        found = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
        files = [path for path in found if path.suffix.lower() not in _BESIDE]
        refused = [f"{len(files) - MOST} more files are left out, after the first {MOST}"] if len(files) > MOST else []
        own = [path for path in files[:MOST] if Path(source).is_file() and filecmp.cmp(path, source, shallow=False)]
        refused += [f"{path.name} is left out: it is the file of the scan itself" for path in own]
        return cls(folder.resolve().name, tuple(path for path in files[:MOST] if path not in own), tuple(refused))


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
        held = {"mask": self.mask, "reference": getattr(self.reference, "images", None)}
        arrays = {name: np.asarray(one) for name, one in held.items() if one is not None and not isinstance(one, Path)}
        for name, array in arrays.items():
            choices[name] = sha256(array.tobytes()).hexdigest()
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
        """`Image.account` of the image."""
        return dict(self.kept.facts[self.shown].account)

    @property
    def matvecs(self) -> int:
        """Multiplications with A, of all slices."""
        return sum(one.matvecs for one in self.facts)

    def stack(self, name: str) -> Iterator[NDArray[Any]]:
        """The arrays of a name, slice by slice."""
        for number in self.numbers:
            yield self.kept.arrays(number)[name]


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
    run.progress.show("reading", 0, 1)
    recipe, group = request.recipe, None
    check_draws(recipe.reconstruction)
    if request.calibrated_on is not None:
        method = recipe.reconstruction.method
        group = Group.of(request.calibrated_on, request.source, method, request.companions)
    record = request.record(run, group)
    references = request.reference
    references = GivenReference.read(references) if isinstance(references, Path) else references
    companions = [CompanionImages.read(source, recipe, run.seed) for source in request.companion_files]
    with request.opened(run.seed) as slices:
        scan = OpenScan(request, run, slices, companions)
        before = run.finished(record.identity, checkpoint=PROGRESS, resumed="reconstruction")
        if before is not None:
            return before
        scan.look(references)
        if group is not None and not scan.alike:
            raise InputError(
                FIELD,
                "slices of which different samples are used",
                "the same of all, as scans are reconstructed from them",
                f"Give a {option('mask')}, or take the slices one by one with {option('slices')}.",
            )
        one = None if scan.several else scan.only_one()
        run.begin()
        kept = KeptSlices.open(run.folder, record.identity)
        if group is not None and kept.coverage is None:
            mask = scan.masks[scan.numbers[0]]
            kept.calibrate(coverage_of(group, slices, scan.numbers, run, scan.recipe, mask))
        return scan.result(record, kept, *scan.reconstructed(kept, one))


class OpenScan:
    """A scan on its way through a reconstruction: looked at, calibrated, reconstructed slice by slice.

    Attributes
    ----------
    recipe : Recipe
        In force.
    numbers : list of int
        Of the images that are asked for, slice by slice and frame after frame (`Frames`).
    several : bool
        Whether they are a volume, or a series of frames.
    first : KSpaceData or TrajectoryData
        The first of them, as read.
    masks : dict of int to bool array
        What is used of each, see `what_is_used`.
    alike : bool
        Whether the same is used of all.
    work : SliceWork
        What every slice needs: recipe, seed, and what the slices share.

    Raises
    ------
    InputError
        Where slices or frames are to inform each other that the scan does not have.
    """

    def __init__(
        self, request: ReconRequest, run: Run, slices: volume.Slices, companions: Sequence[CompanionImages]
    ) -> None:
        self._request, self._run, self._slices, self._companions = request, run, slices, companions
        self._numbering, self._count = slices.numbering, slices.count
        self._around = volume.Around.named(request.companions)
        self._around.require(self._numbering)
        self.numbers = self._numbering.images(request.slices.indices(slices.count))
        self._first_frame = [number for number in self.numbers if number < slices.count]
        self.several = len(self.numbers) > 1 or slices.frames is not None
        frames, recipe = slices.frames, request.recipe
        self.recipe = recipe if frames is None else volume.recipe_of_frame(recipe, frames.numbers[0])

    def look(self, references: GivenReference | None) -> None:
        """Read all slices once, and where neighbours inform them all of the scan, and find what they share."""
        run, recipe, numbering = self._run, self.recipe, self._numbering
        self._stages = None if self.several else Stages(run.progress.show, recipe.reconstruction.method)
        every = numbering.images(range(self._count)) if self._around else self.numbers
        survey, shape = volume.Survey(recipe, numbering.unit), None
        self.masks = dict[int, NDArray[np.bool_]]()
        self._places, self._sources = dict[int, SliceGeometry | None](), dict[int, SourceImage | None]()
        for done, number in enumerate(every):
            run.progress.show("reading", done, len(every))
            try:
                data = self._slices.read(number)
                mask = self.masks[number] = what_is_used(data, self._request.mask, recipe)
                if self.several:
                    survey.add(data, mask)
            except InputError as error:
                if len(every) == 1:
                    raise
                raise _of_slice(numbering, number, error) from error
            if number == self.numbers[0]:
                self.first = data
                whole = replace(data, header=without_part(data.header)) if self.several else data
                scan_facts.tell_part(whole, recipe, run.progress)
            size = (data.n_coils, *data.grid_shape, mask.ndim)
            if shape not in (None, size):
                raise InputError(
                    field=numbering.name(number),
                    got=f"{size[0]} coils and {size[1]} x {size[2]} pixels",
                    wanted="the same as of the slices before, to lie in one volume",
                    cure=f"Reconstruct them in runs of their own, with --{numbering.axis or 'slices'}.",
                )
            shape = size
            geometry = getattr(data, "geometry", None)
            self._places[number] = None if geometry is None else geometry[0]
            self._sources[number] = getattr(data, "source", None)
        run.progress.show("reading", len(every), len(every))
        mask, grid = self.masks[self.numbers[0]], self.first.grid_shape
        self.alike = all(np.array_equal(self.masks[number], mask) for number in self.numbers)
        self.recipe = recipe = recipe_for(mask, self.first, recipe)
        given = references.of_slices(self._first_frame, self._count, grid) if references is not None else {}
        self._given: Mapping[int, GivenReference] = given  # of the first frame, for all of them
        check_size_of_draws(recipe.reconstruction, len(self.numbers), grid)
        shared = survey.shared() if self.several else volume.NOTHING_SHARED
        self.work = SliceWork(recipe, run.seed, shared, numbering)

    def measured(self, number: int, *near: Companion) -> MeasuredSlice:
        """A slice with other images of the object: those of files, and those ``near`` it in the scan."""
        data, own = self.first if number == self.numbers[0] else self._slices.read(number), number % self._count
        known = companions_over(self._companions, data, own, self._count, several=len(self._first_frame) > 1)
        return MeasuredSlice(number, data, self.masks[number], self._given.get(own), (*known, *near))

    def only_one(self) -> CalibratedSlice:
        """The only slice, which has to show signal."""
        assert self._stages is not None
        self._stages.begin("calibrating")
        ready = CalibratedSlice.of(replace(self.work, numbering=None), self.measured(self.numbers[0]))
        self._warn_of(ready)
        return ready

    def _warn_of(self, ready: CalibratedSlice) -> None:
        scan_facts.warn_of_noise(ready.scan, self._run.progress)
        scan_facts.warn_of_maps(ready.scan, self._run.progress)

    def reconstructed(
        self, kept: KeptSlices, one: CalibratedSlice | None
    ) -> tuple[int, KnownScan | KnownSamples, list[NamedImage]]:
        """Reconstruct what is left, neighbours first: the number of a slice to show, what is known of it, its images.

        Of several slices each is kept as soon as it is finished; of ``one`` that is left to the report.
        """
        run, numbers, show = self._run, self.numbers, self._run.progress.show
        left = [number for number in numbers if number not in kept.facts]
        places = {number: self._places.get(number) for number in range(self._count)}
        near = {number: self._around.of(number, self._numbering, places) for number in left}
        asked = sorted({other for found in near.values() for weights in found.values() for other in weights})
        missing = [number for number in asked if number not in kept.neighbours]
        jobs = max(1, min(run.jobs, max(len(left), len(missing))))
        with Workers(self.work, jobs, run.executor if self.several or missing else LOCAL) as workers:
            moduli = workers.map(neighbour_image, map(self.measured, missing), ahead=_AHEAD * run.jobs)
            for done, modulus in enumerate(moduli, len(asked) - len(missing) + 1):
                kept.add_modulus(*modulus)
                show(volume.NEIGHBOURS, done, len(asked))
            if one is not None and self._stages is not None:
                one = one.beside(volume.neighbours(near[numbers[0]], kept.modulus))
                known, images = one.images(self._stages)
                kept.facts[numbers[0]] = facts_of(one, known, images)
                self._stages.begin(REPORT)
                return numbers[0], known, images
            show(SLICES, len(numbers) - len(left), len(numbers))
            items = (self.measured(number, *volume.neighbours(near[number], kept.modulus)) for number in left)
            for made in workers.map(slice_image, items, ahead=_AHEAD * run.jobs):
                kept.add(*made)
                show(SLICES, len(kept.facts), len(numbers))
        show(REPORT, 0, 1)
        bright = [number for number in self._first_frame if not kept.facts[number].noise_only] or self._first_frame
        shown = bright[len(bright) // 2]
        data, mask = self._slices.read(shown), self.masks[shown]
        ready = CalibratedSlice.of(self.work, MeasuredSlice(shown, data, mask, self._given.get(shown)))
        self._warn_of(ready)
        return shown, *ready.read_back(kept.arrays(shown), kept.facts[shown])

    def result(
        self,
        record: Record,
        kept: KeptSlices,
        shown: int,
        known: KnownScan | KnownSamples,
        images: Sequence[NamedImage],
    ) -> ReconResult:
        """What the run came to, and a line about slices of noise and about other images."""
        facts, numbering = {number: kept.facts[number] for number in self.numbers}, self._numbering
        _say_of_images(facts, numbering, self._run)
        if known.given is not None and known.given.doubt:
            self._run.progress.warn(f"{numbering.name(shown)}: {known.given.doubt}")
        union = np.logical_or.reduce([self.masks[number] for number in self.numbers])
        lines = () if isinstance(self.first, TrajectoryData) else tuple(np.flatnonzero(union).tolist())
        return ReconResult(
            record=record,
            ending=Ending(_status(list(facts.values()), numbering.unit), lines),
            numbers=self.numbers,
            count=self._count,
            numbering=numbering,
            mask=union,
            alike=self.alike,
            kept=kept,
            shown=shown,
            known=known,
            images=images,
            places=[self._places[number] for number in self.numbers],
            sources=[self._sources[number] for number in self.numbers],
        )


def _of_slice(numbering: volume.Frames, number: int, error: InputError) -> InputError:
    field = error.field
    for name, counter in reversed(numbering.place(number).items()):
        field = field if f"{name} {counter}" in field else f"{name} {counter}: {field}"
    return InputError(field, error.got, error.wanted, error.cure or f"Leave the slice out with {option('slices')}.")


def _say_of_images(facts: Mapping[int, SliceFacts], numbering: volume.Frames, run: Run) -> None:
    """Say what became of other images, and which slices hold noise only or are too large for their field of view."""
    used, first = dict[str, list[int]](), next(iter(facts.values()))
    if len(facts) == 1 and first.left_out:
        run.progress.say(first.left_out)
    for number, one in facts.items():
        if OTHER_IMAGES in one.rows[0]:
            used.setdefault(str(one.rows[0][OTHER_IMAGES]), []).append(number)
    if used:
        text = "; ".join(f"{names} in {numbering.names(where)}" for names, where in used.items())
        text = text if len(facts) > 1 else first.account["companions"]
        run.progress.say(f"other images: {text}")
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


def coverage_of(
    group: Group,
    slices: volume.Slices,
    numbers: Sequence[int],
    run: Run,
    recipe: Recipe,
    mask: NDArray[np.bool_],
) -> Coverage:
    """Reconstruct the middle slice of every scan from the same samples, and hold its errors against its error bars.

    The noise is each scan's own, as are coil maps that its file does not bring: a noise that was given is that of the
    one scan, in its units. Scans that cannot serve are left out, and named in a warning.

    Parameters
    ----------
    group : Group
        The files.
    slices : Slices
        Of the scan, which is recognised in the group by its samples.
    numbers : sequence of int
        Those that are reconstructed.
    run : Run
        Seed, processes and progress.
    recipe : Recipe
        For the lines or samples of the scan.
    mask : bool array, shape (ky,) or (ky, kz)
        Which of them are used.

    Raises
    ------
    InputError
        Along a trajectory, and where fewer than two scans are left.
    """
    like = slices.read(numbers[0])
    if not isinstance(like, KSpaceData):
        raise InputError(
            FIELD,
            "samples along a trajectory",
            "lines, or samples of a plane, of which a complete scan is its own reference",
            f"Leave out {option('calibrated-on')}.",
        )
    refused = list(group.refused)
    recipe = replace(recipe.replacing("reconstruction", draws=0, noise_map=False), noise=NoiseRecipe())
    own = [readout_energies(like)[0]]
    for number in {*numbers[1:], slices.count // 2}:
        with suppress(InputError):  # without signal
            own.append(readout_energies(slices.read(number))[0])

    def items() -> Iterator[tuple[str, MeasuredSlice]]:
        for number, path in enumerate(group.files):
            try:
                data = _middle(path, recipe, run.seed + 1 + number, like, mask)
                if any(same_readouts(readout_energies(data)[0], one) for one in own):
                    raise _UnfitError("it is the scan itself: the same samples")
                yield path.name, MeasuredSlice(number, data, mask)
            except MriDesignError as error:
                refused.append(f"{path.name} is left out: {error}")

    found, count = dict[str, NDArray[np.float32]](), len(group.files)
    run.progress.show("calibrating on other scans", 0, count)
    with Workers(SliceWork(recipe, run.seed), max(1, min(run.jobs, count)), run.executor) as workers:
        for number, name, made in workers.map(_scores, items(), ahead=_AHEAD * run.jobs):
            if isinstance(made, str):
                refused.append(f"{name} is left out: {made}")
            else:
                found[name] = made
            run.progress.show("calibrating on other scans", number + 1, count)
    run.progress.show("calibrating on other scans", count, count)
    if len(found) < FEWEST:
        rows, columns = like.grid_shape
        raise InputError(
            FIELD,
            f"{len(found)} of {count} files of {group.name} that can serve"
            + "".join(f"; {why}" for why in refused[:_SAID])
            + ("; ..." if len(refused) > _SAID else ""),
            f"at least {FEWEST} complete scans of other subjects, {rows} x {columns} pixels and coils: {like.n_coils}",
            "Put such scans there, all measured as this one but with every line.",
        )
    for why in refused:
        run.progress.warn(f"{group.name}: {why}")
    return Coverage.of(group.name, found, refused)


class _UnfitError(MriDesignError):
    """Why a scan cannot serve."""


def _middle(path: Path, recipe: Recipe, seed: int, like: KSpaceData, mask: NDArray[np.bool_]) -> KSpaceData:
    """The middle slice of a file, of its first frame where the recipe asks for all; complete, and as large as the scan.

    Raises
    ------
    _UnfitError
        Where it is not.
    """
    recipe = volume.recipe_of_frame(recipe, None) if recipe.input.axis else recipe
    with volume.opened_slices(str(path), recipe, seed) as slices:
        data = slices.read(slices.count // 2)
    if not isinstance(data, KSpaceData):
        raise _UnfitError("samples along a trajectory have no complete image of their own")
    for text in ("{0.grid_shape[0]} x {0.grid_shape[1]} pixels", "coils: {0.n_coils}"):
        if text.format(data) != text.format(like):
            raise _UnfitError(f"it has {text.format(data)}, and this scan {text.format(like)}")
    if data.reference is None and not data.fully_sampled:
        raise _UnfitError(f"it is not complete ({data.missing})")
    held = data.samplings[0].samples if mask.ndim == 2 else data.samplings[0].lines
    if (mask & ~held).any():
        raise _UnfitError("it holds no data in some of the lines that are used")
    if data.reference is None and mask.sum() >= held.sum():
        raise _UnfitError(f"its complete image is of the very lines that are used; give fewer with {option('mask')}")
    return data


def _scores(work: SliceWork, item: tuple[str, MeasuredSlice]) -> tuple[int, str, NDArray[np.float32] | str]:
    """Errors of one slice in its standard deviations, or why there are none."""
    name, measured = item
    try:
        known, images = CalibratedSlice.of(work, measured).images()
    except InputError as error:
        return measured.number, name, str(error)
    made, reference = images[0].reconstruction, known.shown_reference
    assert isinstance(known, KnownScan) and reference is not None and made.std is not None
    beyond = error_beyond_noise(made.image, made.std, known.scan.data, reference, known.image_unit, measured.mask)
    return measured.number, name, scores(beyond, made.std)
