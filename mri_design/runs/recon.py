"""A reconstruction run: images and error bars of the slices of a scan, of lines or along a trajectory, and its report.

One slice is a volume of one, but for what only a volume has: slices share noise and the basis of coil maps, some may
hold noise only, and each is kept in the run's folder as soon as it is finished. Error bars can be held against the
errors of complete scans of other subjects, which are reconstructed as the scan is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, option
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import Coverage, RelativeError
from mri_design.evaluation.page import Page
from mri_design.evaluation.plots.pictures import ImagePanel, object_top, scale_top
from mri_design.evaluation.run_folder import PROGRESS, InputFile, RunFolder
from mri_design.experiment import volume
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.effort import Effort
from mri_design.experiment.inputs import (
    ALL_SLICES,
    GivenMaps,
    MapsOfScan,
    SliceChoice,
    maps_origin,
    names_file,
    slices_text,
)
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Image, check_draws, check_shared, check_size_of_draws
from mri_design.kinds import KINDS
from mri_design.model.sparsity import Companion, SharedFrame
from mri_design.operators.conventions import Chosen
from mri_design.runs import image_sections
from mri_design.runs.beginnings import LOCAL, load_ahead
from mri_design.runs.image_sections import StoredImage, run_of
from mri_design.runs.known_slice import GivenReference, KnownSlice, NamedImage
from mri_design.runs.provenance import (
    phrase,
    simulated_from,
    simulation_summary,
    tell_part,
    warn_of_maps,
    warn_of_noise,
)
from mri_design.runs.recon_slices import (
    AHEAD,
    OTHER_IMAGES,
    REPORT,
    KeptSlices,
    MeasuredSlice,
    SliceFacts,
    Stages,
    calibrated,
    coverage_of,
    finished,
    frame_image,
    images_of,
    neighbour_image,
    other_scans,
    recipe_for,
    slice_image,
    what_is_used,
)
from mri_design.runs.store import Record, Report, Run, carry_out
from mri_design.runs.stored_run import ARRAYS, Stored
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.formats import read_images
from mri_design.scan.io.source import counter_option
from mri_design.status import Status

T = TypeVar("T")
SLICES = "slices"
"""Name of the stage in which slices are reconstructed, after that in which neighbours are."""


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
    reference : Path or GivenReference, optional
        Images that errors are measured against, or a file of such (`read_images`); by default what the scan knows of
        itself.
    companions : tuple of str
        Files of other images of the object, which the prior may know (`CompanionImages.read`); ``slices`` and
        ``frames`` are the scan's own (`NeighbourCounts`).
    calibrated_on : Path, optional
        Folder of complete scans of other subjects, on which error bars are calibrated (`coverage_of`).
    """

    source: str
    recipe: Recipe
    mask: Path | Chosen | None = None
    maps: GivenMaps | None = None
    _: KW_ONLY
    slices: SliceChoice = ALL_SLICES
    reference: Path | GivenReference | None = None
    companions: tuple[str, ...] = ()
    calibrated_on: Path | None = None

    @property
    def companion_files(self) -> list[str]:
        """Those of ``companions`` that are no neighbours within the scan."""
        return [source for source in self.companions if not volume.names_neighbours(source)]

    @cached_property
    def others(self) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        """Files of ``calibrated_on`` and what is left out of it, see `other_scans`; none without a folder."""
        if self.calibrated_on is None:
            return (), ()
        return other_scans(self.calibrated_on, self.source, self.recipe.reconstruction.method, self.companions)

    def record(self, work: Work) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Raises
        ------
        UsageError
            For draws of an image that has no posterior, and frames that cannot share their sites.
        InputError
            Where a file cannot be read.
        """
        check_draws(self.recipe.reconstruction)
        if volume.NeighbourCounts.named(self.companions).joint:
            check_shared(self.recipe)
        maps = {} if self.maps is None else {maps_origin(self.maps): self.maps}
        files = {"mask": self.mask, **maps, "reference": self.reference}
        beside = {name: str(path) for name, path in files.items() if isinstance(path, Path | MapsOfScan)}
        beside |= {f"with {place}": companion_file(source) for place, source in enumerate(self.companion_files, 1)}
        beside |= {f"calibrated on {place}": str(path) for place, path in enumerate(self.others[0], 1)}
        inputs = InputFile.of_all([self.source, *beside.values()])
        choices = {
            "recipe": self.recipe.as_settings(),
            "phantom": "" if names_file(self.source) else self.source,
            "inputs": [file.sha256 for file in inputs],
            "beside": list(beside),
            "slices": self.slices.text,
            **({"around": repr(around)} if (around := volume.NeighbourCounts.named(self.companions)) else {}),
        }
        held = {"mask": self.mask, "reference": getattr(self.reference, "images", None)}
        arrays = {name: np.asarray(one) for name, one in held.items() if one is not None and not isinstance(one, Path)}
        for name, array in arrays.items():
            choices[name] = sha256(array.tobytes()).hexdigest()
        settings = {"source": self.source, "slices": self.slices.text, **self.recipe.as_settings()}
        return Record(work.identity("reconstruction", choices), inputs, settings)


@briefly
@dataclass(frozen=True, kw_only=True)
class ReconResult:
    """Result of a reconstruction.

    Parameters
    ----------
    scan : ScanSlices
        What was requested of the scan, and what is used of it.
    kept : KeptSlices
        Images and facts of every slice.
    known : KnownSlice
        The slice that the report shows in detail, of several one in the middle, and what was known about it.
    images : sequence of NamedImage
        Its image, and the zero-filled or gridded one to compare it with.
    """

    scan: ScanSlices
    kept: KeptSlices
    known: KnownSlice
    images: Sequence[NamedImage]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Lines used (ky,), samples of a plane (ky, kz), or readouts of a trajectory; of several slices in any."""
        return np.asarray(np.logical_or.reduce(list(self.scan.used.values())))

    @property
    def shown(self) -> int:
        """Number of the slice that is shown, of the first frame where there are several."""
        return self.known.number

    @property
    def lines(self) -> tuple[int, ...]:
        """Lines or samples that are used, of several slices in any; there are none along a trajectory."""
        return tuple(np.flatnonzero(self.mask).tolist()) if self.known.scan.on_grid else ()

    @property
    def acceleration(self) -> float | None:
        """Size of the grid over what is used; None along a trajectory, which has no such number."""
        return self.known.acceleration(self.lines) if self.known.scan.on_grid else None

    @property
    def status(self) -> str:
        """ "converged", or of how many slices the reconstruction did not, and why that of the first did not."""
        missed = [one.image["status"] for one in self.facts if not one.converged]
        scan = self.scan
        count = f"{len(missed)} of {len(scan.numbers)} {scan.numbering.unit}: " if len(scan.numbers) > 1 else ""
        return f"not converged ({count}{missed[0]})" if missed else Status.CONVERGED.value

    @property
    def coverage(self) -> Coverage | None:
        """Of the error bars, where they are calibrated on other scans."""
        return self.kept.coverage

    @property
    def facts(self) -> list[SliceFacts]:
        """Of the slices in their order."""
        return [self.kept.facts[number] for number in self.scan.numbers]

    @property
    def error(self) -> RelativeError:
        """Predicted and found; of several slices means."""
        return self.images[0].error.over(facts.rows[0] for facts in self.facts)

    @property
    def account(self) -> dict[str, str]:
        """`account_of` the image."""
        return dict(self.kept.facts[self.shown].account)

    @property
    def settings(self) -> dict[str, Any]:
        """What was found out, for a manifest: of one slice all that is known of it, of several what is true of all."""
        known, scan, numbering, kept = self.known, self.scan, self.scan.numbering, self.kept.facts
        found = known.settings() | image_sections.account_settings(self.account) | self.error.settings
        found |= {} if self.coverage is None else {"coverage": self.coverage.as_settings()}
        if not scan.several:
            return found
        for name in ("part_of_scan", "geometry", "source_image"):  # the others have their own
            found.pop(name, None)
        found |= {"slice_numbers": scan.first_frame, "slices_of_scan": numbering.count}
        if numbering.axis:
            joint = {"joint": True} if scan.joint else {}
            found["frames"] = {"axis": numbering.axis, "numbers": list(numbering.numbers), **joint}
        if places := [place.as_settings() for place in scan.places]:
            found |= {"geometry": places[0], "slice_geometries": places}
        if sources := [source.as_settings() for source in scan.sources]:
            found["source_image"] = sources[0]
            found |= {"source_images": sources} if any(one != sources[0] for one in sources) else {}
        if of_others := [(numbering.place(n), kept[n]) for n in scan.numbers if kept[n].about_others]:
            found["companions_of_slices"] = [
                {**place, "used": one.rows[0][OTHER_IMAGES], "companions": one.account["companions"]}
                for place, one in of_others
            ]
        if noise_only := [number for number in scan.numbers if kept[number].noise_only]:
            found["slices_of_noise"] = [numbering.place(number) if numbering.axis else number for number in noise_only]
        if lost := [one.lost for one in self.facts if one.lost is not None]:
            found["coil_compression_lost"] = lost
        if known.given is not None:
            scales = [one.reference_scale for one in self.facts if one.reference_scale is not None]
            found["reference_scales"] = scales
            found["reference_source"] = phrase("given_reference", known.given.name, scales)
        return found

    def stored(self, *, arrays: bool = True) -> StoredImage:
        """The run as its folder has it, of several slices with their ``arrays`` or without."""
        scan, found = self.scan, self.kept.arrays(self.shown)
        parts: dict[str, Any] = {"mask": self.mask, "chosen": self.lines, "status": self.status, "error": self.error}
        parts |= {"coverage": self.coverage, "acceleration": self.acceleration}
        if scan.several:
            found = {name: np.stack([*self.stack(name)]) for name in self.names if arrays}
            found = {name: array.reshape(*self.counts, *array.shape[1:]) for name, array in found.items()}
            if scan.numbering.axis and "coil_maps" in found:
                found["coil_maps"] = found["coil_maps"][0]
            parts |= dict.fromkeys(ARRAYS.values()) | {
                "scan": self.known.scan.name.partition("[")[0],
                "part_of_scan": "",
                "shown": self.shown,
                "numbers": tuple(scan.first_frame),
                "of_scan": scan.numbering.count,
                "axis": scan.numbering.axis,
                "frames": tuple(scan.numbering.numbers),
                "same_lines": scan.same_lines,
                "places": scan.places,
                "sources": scan.sources,
            }
        parts |= {ARRAYS[name]: found[name] for name in ARRAYS if name in found}
        return run_of(self.known, self.images[0], **parts)

    @property
    def counts(self) -> tuple[int, ...]:
        """Frames, if there are several, and slices: the first axes of the arrays of a volume."""
        frames, slices = self.scan.numbering.numbers, len(self.scan.first_frame)
        return (len(frames), slices) if frames else (slices,) if self.scan.several else ()

    @property
    def names(self) -> list[str]:
        """Names of the arrays that every slice has: incomplete frames have no reference, dark ones no map of noise."""
        return [name for name in ARRAYS if all(name in one.arrays for one in self.facts)]

    def stack(self, name: str) -> Iterator[NDArray[Any]]:
        """The arrays of a name, slice by slice."""
        for number in self.scan.numbers:
            yield self.kept.arrays(number)[name]


def reconstruct_scan(slices: volume.Slices, request: ReconRequest, work: Work, keep: Keep) -> ReconResult:
    """Reconstruct the slices that are requested, of lines or along a trajectory.

    Slices that are finished are kept, and an interrupted reconstruction goes on with the others.

    Parameters
    ----------
    slices : Slices
        Of the scan, which are read one by one.
    request : ReconRequest
        What is requested.
    work : Work
        Seed, processes and progress.
    keep : Keep
        What is finished.

    Raises
    ------
    UsageError
        Where what is kept is another reconstruction's.
    InputError
        Where the input or the mask cannot be used, before any slice is reconstructed.
    """
    scan = ScanSlices(slices, request, work)
    scan.look()
    one = None if scan.several else scan.calibrated(scan.measured(scan.numbers[0]))
    keep.begin()
    kept = KeptSlices(keep)
    if request.calibrated_on is not None and kept.coverage is None:
        kept.coverage = coverage_of(request.calibrated_on, request.others, slices, scan.used, work, scan.recipe)
        kept.write()
    if left := sum(number not in kept.facts for number in scan.numbers):
        work.progress.expect(scan.effort(left, one))
    known, images = scan.reconstruct(kept, one)
    scan.report_images(kept.facts)
    if (given := known.given) is not None and given.turned:
        work.progress.warn(phrase("given_turned", slices.numbering.name(known.number), given.name, given.turned))
    return ReconResult(scan=scan, kept=kept, known=known, images=images)


def recon_effort(request: ReconRequest, work: Work) -> Effort:
    """What `reconstruct_scan` will take; the scan is read, and one slice of it calibrated.

    Raises
    ------
    UsageError, InputError
        As the reconstruction, before any slice is reconstructed.
    """
    request.record(work)
    with volume.opened_slices(request.source, request.recipe, work.seed, request.maps) as slices:
        scan = ScanSlices(slices, request, work)
        scan.look()
        return scan.effort(len(scan.numbers))


def _of_all(found: Mapping[int, T | None], numbers: Sequence[int]) -> tuple[T, ...]:
    """What is known of each slice; none where it is not known of all."""
    every = [one for number in numbers if (one := found[number]) is not None]
    return tuple(every) if len(every) == len(numbers) else ()


class ScanSlices:
    """The slices of a scan that are reconstructed: checked, calibrated, then made into images one by one.

    Attributes
    ----------
    recipe : Recipe
        In force.
    numbering : Slices
        How images are numbered.
    numbers, first_frame : list of int
        Of the images that are requested, slice by slice and frame after frame; and of the slices of the first frame.
    several : bool
        Whether they are a volume, or a series of frames.
    first : KSpaceData or TrajectoryData
        The first of them, as read.
    masks, used : dict of int to bool array
        What is used of each and of those that inform them, see `what_is_used`; and of each that is requested.
    places, sources : tuple of SliceGeometry, tuple of SourceImage
        Of each that is requested; none where not all have one.
    alike, same_lines : bool
        Whether the same is used of all, and of every slice in all frames.
    shared : Shared
        What the slices have in common.
    joint : bool
        Whether frames share the sites of their prior.

    Raises
    ------
    InputError
        Where slices or frames are to inform each other that the scan does not have.
    """

    def __init__(self, slices: volume.Slices, request: ReconRequest, work: Work) -> None:
        self._request, self._work, self._slices = request, work, slices
        self.numbering, self._count = slices.numbering, slices.count
        work.progress.show("reading", 0, 1)
        given = request.reference
        self._references = GivenReference(given.name, read_images(given).images) if isinstance(given, Path) else given
        self._files = [CompanionImages.read(source, request.recipe, work.seed) for source in request.companion_files]
        self._around = volume.NeighbourCounts.named(request.companions)
        self._around.require(self.numbering)
        self.joint = bool(self._around.joint)
        self.numbers = self.numbering.images(request.slices.indices(slices.count))
        self.first_frame = [number for number in self.numbers if number < slices.count]
        self.several = len(self.numbers) > 1 or bool(self.numbering.axis)
        if self.several or self._around:  # a single slice stays in this process
            load_ahead(work.jobs, work.executor)
        frames, recipe = self.numbering.numbers, request.recipe
        self.recipe = volume.recipe_of_frame(recipe, frames[0]) if frames else recipe

    def look(self) -> None:
        """Read all slices once, and where neighbours inform them all of the scan, and find what they share."""
        progress, recipe, numbering = self._work.progress, self.recipe, self.numbering
        self._stages = None if self.several else Stages(progress.show, recipe.reconstruction.method)
        every = numbering.images(range(self._count)) if self._around else self.numbers
        shape, self.shared = None, volume.Shared(recipe, self._work.seed, numbering, several=self.several)
        self.masks = dict[int, NDArray[np.bool_]]()
        self._places, sources = dict[int, SliceGeometry | None](), dict[int, SourceImage | None]()
        for done, number in enumerate(every):
            progress.show("reading", done, len(every))
            try:
                data = self._slices.read(number)
                mask = self.masks[number] = what_is_used(data, self._request.mask, recipe)
                self.shared.look(data, mask)
            except InputError as error:
                if len(every) == 1:
                    raise
                raise numbering.named(number, error) from error
            if number == self.numbers[0]:
                self.first = data
                whole = data.known(slice=None) if self.several else data
                tell_part(whole, recipe, progress)
            size = (data.n_coils, *data.grid_shape, mask.ndim)
            if shape not in (None, size):
                only = counter_option(numbering.axis, "N") if numbering.axis else option("slices")
                got, wanted = f"{size[0]} coils and {size[1]} x {size[2]} pixels", "the same as of the slices before"
                cure = f"Reconstruct them in runs of their own, with {only}."
                raise InputError(numbering.name(number), got, f"{wanted}, to lie in one volume", cure)
            shape, geometry = size, getattr(data, "geometry", None)
            self._places[number] = None if geometry is None else geometry[0]
            sources[number] = getattr(data, "source", None)
        progress.show("reading", len(every), len(every))
        mask, grid, references = self.masks[self.numbers[0]], self.first.grid_shape, self._references
        self.places, self.sources = _of_all(self._places, self.numbers), _of_all(sources, self.numbers)
        self.used = {number: self.masks[number] for number in self.numbers}
        self.alike = all(np.array_equal(one, mask) for one in self.used.values())
        self.same_lines = all(np.array_equal(self.used[n % self._count], one) for n, one in self.used.items())
        self.recipe = recipe = recipe_for(mask, self.first, recipe)
        given = {} if references is None else references.of_slices(self.first_frame, self._count, grid)
        self._given: Mapping[int, GivenReference] = given  # of the first frame, for all of them
        check_size_of_draws(recipe.reconstruction, len(self.numbers), grid)
        self.shared.settle()
        self.shared.recipe = recipe

    def measured(
        self, number: int, near: Sequence[Companion] = (), frames: Sequence[SharedFrame] = ()
    ) -> MeasuredSlice:
        """A slice with other images of the object, of files and ``near`` it, and ``frames`` that share its sites."""
        data, own = self.first if number == self.numbers[0] else self._slices.read(number), number % self._count
        known = companions_over(self._files, data, own, self._count, several=len(self.first_frame) > 1)
        return MeasuredSlice(number, data, self.masks[number], self._given.get(own), (*known, *near), frames)

    def calibrated(self, measured: MeasuredSlice) -> KnownSlice:
        """A slice with its noise and coil maps; doubts about them are reported. A single slice has to show signal."""
        if self._stages is not None:
            self._stages.begin("calibrating")
        known = calibrated(self.shared, measured)
        warn_of_noise(known.scan, self._work.progress)
        warn_of_maps(known.scan, self._work.progress)
        return known

    def effort(self, left: int, one: KnownSlice | None = None) -> Effort:
        """What the images of ``left`` slices will take, of which ``one`` is calibrated, or else one in the middle."""
        number = self.numbers[len(self.numbers) // 2]
        scan, mask = (one or calibrated(self.shared, self.measured(number), neighbour=True)).scan, self.masks[number]
        kind = KINDS["lines" if mask.ndim == 1 else "plane"] if scan.on_grid else KINDS["readouts"]
        used, jobs = (int(mask.sum()), mask.size), min(self._work.jobs, left)
        return Effort.of(scan, self.first.grid_shape, kind, self.recipe, used, slices=left, jobs=jobs)

    def reconstruct(self, kept: KeptSlices, one: KnownSlice | None) -> tuple[KnownSlice, list[NamedImage]]:
        """Reconstruct what is left, neighbours first: what is known of a slice to show, and its images.

        Each is kept as soon as it is finished, and of several one in the middle that shows signal is shown. ``one`` is
        the only slice, calibrated: its image is returned with all that is only known in memory.
        """
        work, numbers, show = self._work, self.numbers, self._work.progress.show
        made: tuple[KnownSlice, list[NamedImage]] | None = None
        left = [number for number in numbers if number not in kept.facts]
        places = {number: self._places.get(number) for number in range(self._count)}
        near = {number: self._around.of(number, self.numbering, places) for number in left}
        sharing = {number: self._around.sharing(number, self.numbering) for number in left}
        seen = {other for found in near.values() for weights in found.values() for other in weights}
        wanted = sorted(seen.union(*sharing.values()))
        missing = [number for number in wanted if number not in kept.neighbours]
        jobs, ahead = max(1, min(work.jobs, max(len(left), len(missing)))), AHEAD * work.jobs
        with Workers(self.shared, jobs, work.executor if self.several or missing else LOCAL) as workers:
            made_ahead = frame_image if self.joint else neighbour_image
            moduli = workers.map(made_ahead, map(self.measured, missing), ahead)
            for done, modulus in enumerate(moduli, len(wanted) - len(missing) + 1):
                kept.add(*modulus)
                show(volume.NEIGHBOURS, done, len(wanted))
            items = (
                self.measured(number, volume.neighbours(near[number], kept.modulus), kept.frames(sharing[number]))
                for number in left
            )
            if one is not None and left:
                model = replace(one.slice_model, companions=tuple(next(items).companions))
                made = images_of(self.shared, replace(one, slice_model=model), self._stages)
                kept.add(*finished(self.shared, *made))
            if self.several:
                show(SLICES, len(numbers) - len(left), len(numbers))
            for image in workers.map(slice_image, items, ahead):
                kept.add(*image)
                show(SLICES, len(kept.facts), len(numbers))
        if self._stages is not None:
            self._stages.begin(REPORT)
        show(REPORT, 0, 1)
        if made is not None:
            return made
        bright = [number for number in self.first_frame if not kept.facts[number].noise_only] or self.first_frame
        shown = bright[len(bright) // 2]
        known = one or self.calibrated(replace(self.measured(shown), companions=()))
        again = Image.kept(kept.arrays(shown), kept.facts[shown].image)
        return known.judged(self.recipe.reconstruction.method, again)

    def report_images(self, facts: Mapping[int, SliceFacts]) -> None:
        """Report which other images were used, which slices are doubted, and which have no map of their noise."""
        progress, names, first = self._work.progress, self.numbering.names, facts[self.numbers[0]]
        numbers, used = self.numbers, dict[str, list[int]]()
        if not self.several and first.image["left_out"]:
            progress.say(phrase("non_local_left_out", first.image["left_out"]))
        for number in numbers:
            if OTHER_IMAGES in facts[number].rows[0]:
                used.setdefault(str(facts[number].rows[0][OTHER_IMAGES]), []).append(number)
        if used:
            everywhere = {name: names(where) for name, where in used.items()}
            progress.say(phrase("other_images", everywhere if len(numbers) > 1 else first.account["companions"]))
        for fact in ("noise_only", "folded", "unexplained", "without_noise"):
            if found := [number for number in numbers if getattr(facts[number], fact)]:
                progress.warn(phrase(f"{fact}_slices", names(found), len(found)))


COVERAGE = "coverage.csv"
_MOST_BYTES = 4_000_000
"""Bytes of the pictures of slices on a page, at most; of larger volumes every second slice is there, and so on."""
_MONTAGE = 24
"""Slices of the montage at most."""


def reconstruct_in_folder(request: ReconRequest, run: Run) -> Stored:
    """Reconstruct and report in a run's folder; see `carry_out`."""

    def compute(keep: Keep) -> ReconResult:
        with volume.opened_slices(request.source, request.recipe, run.seed, request.maps) as slices:
            return reconstruct_scan(slices, request, run, keep)

    record = request.record(run)
    ended = carry_out(run, record, compute, report_kept, checkpoint=PROGRESS, resumed="reconstruction")
    run.progress.show(REPORT, 1, 1)
    return ended


def report_kept(folder: RunFolder, result: ReconResult) -> Report:
    """`report_reconstruction` of a run in a folder: without what one would not know that goes on from its files."""
    made = report_reconstruction(folder, result)
    assert isinstance(made.result, StoredImage)
    judged = made.result.judged
    kept = replace(judged, reconstruction=judged.reconstruction.as_kept)
    return replace(made, result=replace(made.result, judged=kept))


def report_reconstruction(folder: RunFolder, result: ReconResult) -> Report:
    """Write the images and tables of a reconstruction into the run's folder, and what its page shows.

    Arrays of an earlier run are removed.
    """
    scan, known, kept = result.scan, result.known, result.kept
    several = scan.several
    rows = [row for one in result.facts for row in one.rows]
    for name in ARRAYS:
        if name in result.names:
            folder.write_stack(f"{name}.npy", result.stack(name), *result.counts)
        else:
            folder.remove(f"{name}.npy")
    folder.write_array("mask.npy", result.mask)
    tables = {"metrics.csv": [*rows, *(totals(rows) if several else ())]}
    tables |= {COVERAGE: list(result.coverage.radii) if result.coverage else []}
    for name, table in tables.items():
        if table:
            folder.write_table(name, table)
        else:
            folder.remove(name)
    facts = image_sections.shown_facts(known, result.images, kept.facts[result.shown].rows)
    # `known` holds all that is used of a trajectory
    used = result.mask if known.scan.on_grid else np.ones(known.slice_model.candidates.shape, dtype=bool)
    facts |= {"result": result, "used": used, "acceleration": result.acceleration, "errors": {}}
    facts |= {"coverage_rows": tables[COVERAGE], "others": kept.pictures(result.shown)}
    settings = result.settings
    facts["summary"] = summary = simulation_summary([simulated_from(known.scan)]) | known.summary() | result.account
    if several:
        _describe(result, summary, settings)
        facts |= _volume_facts(result, rows, facts["frame"].layout) if folder.reported else {}
    return Report(result=result.stored(arrays=False), page=Page("recon", facts), found=settings, done=kept.files)


def _volume_facts(result: ReconResult, rows: image_sections.Rows, layout: plots.Layout) -> dict[str, Any]:
    """What the page shows of several slices, whose rows of metrics.csv are ``rows``."""
    scan, numbering = result.scan, result.scan.numbering
    own = [row for row in rows if row["method"] == result.images[0].name]
    errors = {numbering.name(number): one.rows[0]["found_error"] for number, one in result.kept.facts.items()}
    in_frames = [number for number in scan.numbers if number % numbering.count == result.shown]
    return {
        "slice_numbers": slices_text(scan.first_frame).partition(" ")[2],
        "every": [*own, *totals(own)],
        "errors": {name: float(str(error)) for name, error in errors.items() if error is not None},
        "slices": _montage(result, scan.first_frame, "slice"),
        "frames": _montage(result, in_frames, numbering.axis) if numbering.axis else [],
        "slider": _slider(result, layout),
        "others": _companions(result),
    }


def _montage(result: ReconResult, numbers: Sequence[int], axis: str) -> list[ImagePanel]:
    """As many images as fit, by their numbers in the scan."""
    return [
        ImagePanel(np.abs(result.kept.arrays(number)["recon"]), f"{axis} {result.scan.numbering.place(number)[axis]}")
        for number in _spread(numbers, _MONTAGE)
    ]


def _slider(result: ReconResult, layout: plots.Layout) -> dict[str, Any]:
    """Pictures at the images' own size, of as many slices as fit."""
    top = max(object_top([np.abs(image)]) for image in result.stack("recon"))
    has_std = "std" in result.kept.arrays(result.shown)
    wrong = max(scale_top([std]) for std in result.stack("std")) if has_std else 0.0

    def explored(number: int) -> dict[str, Any]:
        arrays, facts = result.kept.arrays(number), result.kept.facts[number]
        picture = plots.pixels_png(np.abs(arrays["recon"]), top, layout)
        std = plots.pixels_png(arrays["std"], wrong, layout, error=True) if has_std else b""
        text = "noise only" if facts.noise_only else str(result.images[0].error.over(facts.rows[:1]))
        return {"number": number, "text": text, "image": picture, "deviation": std}

    shown = explored(result.shown)
    most = max(2, _MOST_BYTES // (4 * (len(shown["image"]) + len(shown["deviation"])) // 3))
    numbers = _spread(result.scan.first_frame, most)
    nearest = min(range(len(numbers)), key=lambda at: abs(numbers[at] - result.shown))
    return {"slices": [explored(number) for number in numbers], "count": len(result.scan.first_frame), "start": nearest}


def _spread(numbers: Sequence[int], most: int) -> list[int]:
    """At most so many numbers of a stack, from the first to the last one, evenly."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place] for place in sorted({round(place) for place in np.linspace(0, len(numbers) - 1, most)})]


def _companions(result: ReconResult) -> image_sections.CompanionPictures:
    """Pictures of the other images of one slice, with its own: the slice nearest to the shown one that uses some."""

    def far(number: int) -> tuple[bool, int]:
        return result.kept.facts[number].rows[0].get(OTHER_IMAGES, "none") == "none", abs(number - result.shown)

    number = min(result.scan.numbers, key=far)
    panels, about = result.kept.pictures(number)
    image = ImagePanel(result.kept.arrays(number)["recon"], result.scan.numbering.name(number), "as it is")
    return [image, *panels] if panels else [], about


def _describe(result: ReconResult, summary: dict[str, object], settings: Mapping[str, Any]) -> None:
    """Replace facts of the slice that is shown by those of all slices."""
    summary.pop("part of the scan", None)
    if noise_only := [number for number in result.scan.numbers if result.kept.facts[number].noise_only]:
        summary["noise only"] = result.scan.numbering.names(noise_only)
    if lost := settings.get("coil_compression_lost"):
        summary["coils"] = f"{summary['coils']}; all slices {min(lost):.2%} to {max(lost):.2%}"
    if "reference_scales" in settings:
        summary["reference"] = settings["reference_source"]


def totals(rows: image_sections.Rows) -> image_sections.Rows:
    """Rows over all images, one for each method: means of the errors, whether all converged, and what all cost."""
    table = image_sections.Rows()
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        named = list(own[0])
        total: dict[str, object] = dict.fromkeys(named[: named.index("method")], "all") | {"method": method}
        for name in (*RelativeError().columns, "relative_l2", "psnr", "ssim"):
            numbers = [float(str(row[name])) for row in own if row[name] is not None]
            total[name] = float(np.mean(numbers)) if numbers else None
        total["converged"] = all(row["converged"] for row in own)
        total["matvecs"] = sum(int(str(row["matvecs"])) for row in own)
        table.append(total)
    return table
