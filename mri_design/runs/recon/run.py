"""A reconstruction run: images and error bars of the slices of a scan, from measured lines or along a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.run_folder import PROGRESS
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.inputs import names_file
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import check_draws
from mri_design.experiment.sources import ALL_SLICES, GivenMaps, SliceChoice, maps_origin
from mri_design.experiment.volume import (
    NEIGHBOURS,
    AnySlice,
    Around,
    Slices,
    is_around,
    neighbours,
    opened_slices,
    recipe_of_frame,
)
from mri_design.model.companion import Companion
from mri_design.runs.given_reference import GivenReference, GivenReferences
from mri_design.runs.recon.calibrated_on import Group, check_calibrated_on, coverage_of
from mri_design.runs.recon.one_slice import REPORT, ReadySlice, Stages, recipe_for, what_is_used
from mri_design.runs.recon.volume import Beside, ReconResult, VolumeResult, reconstruct_volume
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import (
    FOLDED,
    KnownSamples,
    simulated_from,
    tell_part,
    warn_of_maps,
    warn_of_noise,
)
from mri_design.scan.data import TrajectoryData
from mri_design.status import Status


@dataclass(frozen=True)
class ReconRequest:
    """Request for a reconstruction.

    Parameters
    ----------
    source : str
        File or phantom.
    recipe : Recipe
        Method, prior, inference.
    mask : Path, optional
        Of the lines to use, bool (ky,), of the readouts of a trajectory, or of the samples of a plane, bool (ky, kz),
        as `read_mask` takes it. All measured ones by default.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    slices : SliceChoice
        All by default; several make a volume.
    loaded : KSpaceData or TrajectoryData, optional
        The scan, where it has been read already; ``source`` still says where it is from.
    reference : Path, optional
        File of images that errors are measured against (`read_images`); by default what the scan knows of itself.
    companions : tuple of str
        Files of other images of the object, which the prior may know (`CompanionImages.read`); ``slices`` and
        ``frames`` are the scan's own (`Around`).
    calibrated_on : Path, optional
        Folder of complete scans of other subjects, on which error bars are calibrated (`coverage_of`).
    """

    source: str
    recipe: Recipe
    mask: Path | None = None
    maps: GivenMaps | None = None
    _: KW_ONLY
    slices: SliceChoice = ALL_SLICES
    loaded: AnySlice | None = None
    reference: Path | None = None
    companions: tuple[str, ...] = ()
    calibrated_on: Path | None = None

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
        beside = {name: str(path) for name, path in files.items() if path is not None}
        others = [source for source in self.companions if not is_around(source)]
        beside |= {f"with {place}": companion_file(source) for place, source in enumerate(others, 1)}
        if group is not None:
            beside |= {f"calibrated on {place}": str(path) for place, path in enumerate(group.files, 1)}
        inputs = InputFile.of_all([self.source, *beside.values()])
        choices = {
            "recipe": self.recipe.as_settings(),
            "phantom": "" if names_file(self.source) else self.source,
            "inputs": [file.sha256 for file in inputs],
            "beside": list(beside),
            "slices": self.slices.text,
            **({"around": repr(around)} if (around := Around.named(self.companions)) else {}),
        }
        settings = {"source": self.source, "slices": self.slices.text, **self.recipe.as_settings()}
        return Record(run.identity("reconstruction", choices), inputs, settings)


def reconstruct_scan(request: ReconRequest, run: Run) -> ReconResult | VolumeResult | Ending:
    """Reconstruct the slices that are asked for, of lines or along a trajectory.

    Returns
    -------
    ReconResult, VolumeResult or Ending
        Of one slice, or of several; an `Ending` where the folder holds this very run, finished, and was to resume it.

    Raises
    ------
    UsageError
        Where the folder holds another run, or draws are asked for of an image that has no posterior.
    InputError
        Where the input or the mask cannot be used.
    """
    run.progress.show("reading", 0, 1)
    check_draws(request.recipe.reconstruction)
    group = None
    if request.calibrated_on is not None:
        check_calibrated_on(request.recipe, request.companions)
        group = Group.of(request.calibrated_on, request.source)
    record = request.record(run, group)
    references = None if request.reference is None else GivenReferences.read(request.reference)
    files, around = [one for one in request.companions if not is_around(one)], Around.named(request.companions)
    companions = [CompanionImages.read(source, request.recipe, run.seed) for source in files]
    opened: AbstractContextManager[Slices]
    if request.loaded is not None:
        opened = nullcontext(Slices.of(request.loaded))
    else:
        opened = opened_slices(request.source, request.recipe, run.seed, request.maps)
    with opened as slices:
        numbers = slices.numbering.images(request.slices.indices(slices.count))
        if len(numbers) == 1 and slices.frames is None:
            data = slices.read(numbers[0])
            given = None if references is None else references.of_slices(numbers, slices.count, data.grid_shape)
            reference = None if given is None else given[numbers[0]]
            beside = companions_over(companions, data, numbers[0], slices.count)
            near = _neighbours(request, slices, numbers[0], around, run)
            calibrated = partial(coverage_of, group, slices, numbers, run)
            return _one_slice(request, record, data, run, reference, (*beside, *near), calibrated)
        before = run.finished(record.identity, checkpoint=PROGRESS, resumed="reconstruction")
        recipe, frames = request.recipe, slices.frames
        recipe = recipe if frames is None else recipe_of_frame(recipe, frames.numbers[0])
        return before or reconstruct_volume(
            recipe, request.mask, record, slices, numbers, run, Beside(references, companions, around, group)
        )


def _neighbours(request: ReconRequest, slices: Slices, number: int, around: Around, run: Run) -> tuple[Companion, ...]:
    """The slices around one, each with noise and coil maps of its own."""
    around.require(slices.numbering)
    if not around:
        return ()
    geometries = {other: getattr(slices.read(other), "geometry", None) for other in range(slices.count)}
    places = {other: None if found is None else found[0] for other, found in geometries.items()}
    near = around.of(number, slices.numbering, places)
    asked = [other for weights in near.values() for other in weights]

    def modulus(other: int) -> NDArray[np.float32]:
        run.progress.show(NEIGHBOURS, asked.index(other), len(asked))
        data = slices.read(other)
        mask = what_is_used(data, request.mask, request.recipe)
        return ReadySlice.of(data, mask, recipe_for(mask, data, request.recipe), of_volume=True).modulus(run.seed)

    return neighbours(near, modulus)


def _one_slice(
    request: ReconRequest,
    record: Record,
    data: AnySlice,
    run: Run,
    reference: GivenReference | None,
    companions: Sequence[Companion],
    calibrated: Callable[[Recipe, NDArray[np.bool_]], Coverage | None],
) -> ReconResult | Ending:
    recipe, stages = request.recipe, Stages(run.progress.show, request.recipe.reconstruction.method)
    tell_part(data, recipe, run.progress)
    stages.begin("calibrating")
    mask = what_is_used(data, request.mask, recipe)
    recipe = recipe_for(mask, data, recipe)
    before = run.finished(record.identity, checkpoint=PROGRESS, resumed="reconstruction")
    if before is not None:
        return before
    ready = ReadySlice.of(data, mask, recipe, reference=reference, companions=companions)
    warn_of_noise(ready.scan, run.progress)
    warn_of_maps(ready.scan, run.progress)
    if simulated_from(data):
        run.progress.say(f"simulated k-space {simulated_from(data)}")
    run.begin()
    coverage = calibrated(recipe, mask)
    result = ready.reconstructed(run.seed, stages)
    if result.left_out:
        run.progress.say(result.left_out)
    if result.companions is not None:
        run.progress.say(f"other images: {result.companions}")
    known = ready.known(result.image)
    if isinstance(known, KnownSamples) and known.folded:
        run.progress.warn(f"{data.name}: {FOLDED}")
    if known.given is not None and known.given.doubt:
        run.progress.warn(known.given.doubt)
    converged = result.convergence.converged
    status = Status.CONVERGED.value if converged else f"not converged ({result.convergence.status.value})"
    images = known.judged(ready.recipe.reconstruction.method, result, ready.lines)
    stages.begin(REPORT)
    lines = () if isinstance(data, TrajectoryData) else tuple(ready.lines)
    ending = Ending(status, lines)
    return ReconResult(record=record, ending=ending, known=known, mask=mask, images=images, coverage=coverage)
