"""What a design is to do, and its calibrated slices with all that is known before a line is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.design.trace import StopRule
from mri_design.design.training import truth_or_none
from mri_design.errors import InputError, UsageError, option, require_numbers
from mri_design.evaluation.run_folder import InputFile
from mri_design.experiment import design, extent
from mri_design.experiment.calibration import calibrate, estimates_own_maps, truth_of, with_measured_maps, working_coils
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.inputs import (
    FIRST_SLICE,
    GivenMaps,
    SliceChoice,
    load_scan,
    require_grid_data,
    slices_text,
)
from mri_design.experiment.recipe import EVERY, Recipe
from mri_design.experiment.regions import NO_REGIONS, EchoFit, Regions, WantedRegions
from mri_design.experiment.strategies import ORACLES, TRAINING_RULES, make_strategy, strategy_files, strategy_label
from mri_design.experiment.volume import NeighbourCounts, Slices, names_neighbours, opened_slices, recipe_of_frame
from mri_design.kinds import KINDS
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array
from mri_design.operators.conventions import Chosen
from mri_design.operators.nonuniform import require_finufft
from mri_design.runs.companions import (
    OtherFrame,
    other_frames,
    steering_image,
)
from mri_design.runs.known_slice import knowing_oracle
from mri_design.runs.provenance import tell_calibration, tell_part, warn_of_noise
from mri_design.runs.store import Record
from mri_design.runs.work import Work
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import require_whole_lines
from mri_design.signals.models import SignalModel


@dataclass(frozen=True)
class DesignRequest:
    """Request for a design.

    Parameters
    ----------
    source : str
        File or phantom; it is replayed as the scanner.
    recipe : Recipe
        Strategy, start, stop rules, constraints, order, inference and reconstruction.
    lines : int or None
        Lines, samples of a plane, or shots in the end, at most where the recipe has a stop rule; None is as many as can
        be measured then. Shots are always counted: what there is to choose from depends on their number.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    acceleration : float, optional
        Instead of ``lines``: the grid divided by this, rounded; of shots one for so many lines of the grid.
    slices : SliceChoice
        The slice, or those that share the mask: the image is that of the one in their middle.
    companions : tuple of str
        Files of other images of the object, which the prior of the image may know (`CompanionImages.read`) and of which
        a repeat steers the mask (`steering_image`); and ``slices``, those around the image's among the slices that
        share the mask, or ``frames`` (`NeighbourCounts`).
    regions : WantedRegions
        What is to be known about the image, where the recipe has ``until_interval``; the image then has draws. With a
        fit about the map of a slice, whose frames, by default the contrasts, share the lines; the image is the first.

    Raises
    ------
    UsageError
        For an unknown strategy or one that learns from training scans, no end or two, a stop rule that the strategy
        cannot answer, or shots without a number of them.
    InputError
        For constraints and an order that contradict each other, or a strategy's file that cannot be used.
    """

    source: str
    recipe: Recipe
    lines: int | None = None
    _: KW_ONLY
    maps: GivenMaps | None = None
    acceleration: float | None = None
    slices: SliceChoice = FIRST_SLICE
    companions: tuple[str, ...] = ()
    regions: WantedRegions = NO_REGIONS

    def __post_init__(self) -> None:
        if self.of_shots and self.acceleration is None and self.lines is None:
            counts = f"{option('shots')}, or {option('acceleration')}"
            raise UsageError(f"how many spokes or arms? Give their number with {counts}")
        if self.acceleration is not None:
            require_numbers(least=1.0, acceleration=self.acceleration)
            counted = KINDS[self.recipe.design.encoding].counted
            extent.require_one_amount(self.lines, self.acceleration, counted)
        if self.recipe.design.strategy in TRAINING_RULES:
            raise UsageError(
                f"{self.recipe.design.strategy} learns from fully sampled training scans, for other scans than these: "
                "mri-design compare --train and mri-design protocol make a mask by it, and protocol --rule an order "
                "(--strategy trained:FILE)"
            )
        if self.regions.fit is not None or self.regions.times:
            self._require_echoes()
        object.__setattr__(self, "recipe", self.regions.recipe(self.recipe))
        _ = self.stop  # refuses what cannot end, and settings that contradict each other
        if self.around and self.of_shots:
            words = f"{option('with', 'slices')}, {option('with', 'frames')}"
            raise UsageError(f"{words}: other images for spokes and arms come from files; give one")

    def _require_echoes(self) -> None:
        """Refuse what a map cannot be made of, and let the recipe request all contrasts if it requests no series."""
        words = option("fit")
        if not self.regions:
            raise UsageError(f"{words}: what of the map is to be known? Give {option('region', 'MASK')}")
        if not self.regions.times or self.regions.fit is None:
            times = option("echo-times", "10,20,30")
            raise UsageError(f"what is fitted to the frames, and what do they differ by? Give both: {words}, {times}")
        if self.of_shots or self.companions:
            why = option("with") if self.companions else option("encoding", self.recipe.design.encoding)
            raise UsageError(
                f"{why}: lines of echoes are chosen without other images, and no spokes and arms: leave it out"
            )
        if not self.recipe.input.axis:
            series = {**(self.recipe.input.series or {}), "contrast": EVERY}
            object.__setattr__(self, "recipe", self.recipe.replacing("input", series=series))

    @property
    def of_shots(self) -> bool:
        """Whether spokes or arms of a spiral are chosen."""
        return KINDS[self.recipe.design.encoding].shots

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy that chooses lines; an oracle gets the truth later."""
        return make_strategy(self.recipe.design.strategy, self.recipe.design.encoding, but=TRAINING_RULES)

    @cached_property
    def stop(self) -> StopRule | None:
        """The rule that ends the design early; `checked_end` says what is refused."""
        return extent.checked_end(self.recipe, self.strategy, self.lines if self.acceleration is None else 1)

    def count(self, size: int) -> int | None:
        """Lines or samples in the end on a grid of ``size``; None where only a rule ends the design."""
        return self.lines if self.acceleration is None else extent.readouts_wanted(size, self.acceleration)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The recipe's, without the folders of a strategy's file."""
        settings = self.recipe.as_settings()
        settings["design"]["strategy"] = strategy_label(self.recipe.design.strategy)
        return settings

    def record(self, work: Work) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        scan, beside = InputFile.of_all([self.source]), InputFile.of_all(self.files)
        asked = {"slice": self.slices.named, **self.named_companions, **self.regions.named}
        checksums, of_files = ([file.sha256 for file in files] for files in (scan, beside))
        choices = {"recipe": self.settings, "input": checksums or self.source, "files": of_files, **asked}
        number = {"lines": self.lines, "acceleration": self.acceleration}
        wanted = {} if self.acceleration is None else {"acceleration_wanted": self.acceleration}
        settings = {"source": self.source, **wanted, **asked, **self.settings}
        identity, beginning = (work.identity("design", choices | more) for more in (number, {}))
        return Record(identity, [*scan, *beside], settings, beginning)

    @property
    def files(self) -> list[str]:
        """The other files: coil maps, a strategy's, other images of the object, and regions."""
        maps = [] if self.maps is None else [str(self.maps)]
        others = [companion_file(source) for source in self.companions if not names_neighbours(source)]
        return [*maps, *strategy_files([self.recipe.design.strategy]), *others, *self.regions.files]

    def regions_of(
        self,
        scans: Sequence[KSpaceData],
        slices: Sequence[SliceModel],
        start: Sequence[int],
        shows: Sequence[bool] = (True,),
        numbers: Sequence[int] = (0,),
        count: int = 1,
    ) -> Regions | None:
        """The regions over calibrated slices; None where none are to be known.

        Parameters
        ----------
        scans, slices : sequences of KSpaceData and of SliceModel
            Those that were to share the mask, that of the image first.
        start : sequence of int
            Their first lines, which show them.
        shows : sequence of bool
            Whether each shows more than noise.
        numbers, count : sequence of int, int
            Of the slices in the scan, and how many that has.

        Raises
        ------
        InputError
            As `WantedRegions.over`, `Regions.among` and `Regions.require`.
        """
        within = self.recipe.design.within
        if within is None:
            return None
        places = [None if scan.geometry is None else scan.geometry[0] for scan in scans]
        shape, level, model = (
            (scans[0].grid_shape[0], scans[0].grid_shape[1]),
            self.recipe.design.level,
            self.regions.fit,
        )
        if model is not None:
            found = self.regions.over(places[:1], shape, level)
            found = replace(found, fit=self._fit(model, scans))
        else:
            found = self.regions.over(places, shape, level, numbers, count).among(shows, numbers)
            slices = [*compress(slices, shows)]
        found.require(slices, start, within)
        return found

    def _fit(self, model: SignalModel, scans: Sequence[KSpaceData]) -> EchoFit:
        """The fit to calibrated echoes of one slice."""
        if model.complex_only and any(s.provenance.maps.source not in ("one coil", "given") for s in scans):
            got, wanted = "coil maps of every echo by itself", "coil maps that all echoes share, as their phases count"
            raise InputError("fit", got, wanted, f"Give them with {option('maps')}, or fit another model.")
        return EchoFit(model, model.times(self.regions.times, len(scans)))

    @cached_property
    def around(self) -> NeighbourCounts:
        """Which slices and frames of the scan itself are other images of the object.

        Raises
        ------
        UsageError
            See `NeighbourCounts.named`, and for frames that share sites.
        """
        found = NeighbourCounts.named(self.companions)
        if found.joint:
            words = option("with", "joint")
            raise UsageError(f"{words}: recon knows frames that share sites; a design takes {option('with', 'frames')}")
        return found

    @property
    def named_companions(self) -> dict[str, object]:
        """Their names for a manifest, if any."""
        return {"with": [Path(source).name for source in self.companions]} if self.companions else {}

    def read_companions(self, seed: int) -> list[CompanionImages]:
        """The other images of the object.

        Raises
        ------
        InputError
            Where a file cannot be used.
        """
        return [
            CompanionImages.read(source, self.recipe, seed)
            for source in self.companions
            if not names_neighbours(source)
        ]

    def numbers(self, count: int) -> list[int]:
        """The slices that share the mask, of ``count``; first that of the image.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        UsageError
            For several slices of shots.
        """
        chosen = self.slices.indices(count)
        middle = chosen[len(chosen) // 2]
        if len(chosen) > 1 and self.of_shots:
            why = "slices share lines, or samples of a plane; spokes and arms are those of one slice"
            raise UsageError(f"{why}: give {option('slices', middle)}")
        return [middle, *(number for number in chosen if number != middle)]


@dataclass(frozen=True, kw_only=True)
class DesignSlices:
    """Calibrated slices that share a mask, that of the image first, and what is known before a line is chosen.

    Parameters
    ----------
    plan : DesignPlan
        The strategy, as it is informed by an earlier scan or, an oracle, by the truth; the candidates and constraints.
    numbers : sequence of int
        Of the slices in their scan.
    scans, slices : sequences of KSpaceData and of SliceModel
        Calibrated, and as models take them.
    shown : sequence of SliceModel
        As the strategy sees them: an oracle with the coil maps of all lines.
    start : tuple of int
        Lines that the design begins with.
    most : int
        Lines that it can have in the end.
    calibration : int or None
        Requested number of centre lines for coil maps; None is the usual number.
    noise_only : sequence of int
        Numbers of slices that have no say in the mask, as their start shows noise only.
    companions : tuple of Companion
        Other images of the object over the slice of the image.
    near : mapping
        Slices around that of the image among those that share the mask (`NeighbourCounts.of`).
    frames : sequence of OtherFrame
        The slice of the image in other frames of the same file.
    steered_by : str
        The other image of the object that has a say in the mask; empty where none has.
    regions : Regions or None
        Those that are to be known.
    """

    plan: extent.DesignPlan
    numbers: Sequence[int]
    scans: Sequence[KSpaceData]
    slices: Sequence[SliceModel]
    shown: Sequence[SliceModel]
    start: tuple[int, ...]
    most: int
    calibration: int | None
    noise_only: Sequence[int]
    companions: tuple[Companion, ...]
    near: Mapping[str, Mapping[int, float]]
    frames: Sequence[OtherFrame]
    steered_by: str
    regions: Regions | None = None

    def seen_from(self, lines: Chosen) -> tuple[list[KSpaceData], list[Array | None]]:
        """The scans with the coil maps that some lines show, and the truth of each in the units of its model."""
        scans = [_with_maps_of(*known, lines) for known in zip(self.scans, self.slices, strict=True)]
        models = (one.calibrated(lines) for one in self.slices)
        return scans, [truth_or_none(one, truth_of(scan)) for one, scan in zip(models, scans, strict=True)]


DesignInput = tuple[list[KSpaceData], list[int], int, extent.DesignPlan, int | None]
"""The slices that share the mask, that of the image first, or the frames of one; their numbers, of how many; the plan,
and the number of lines in the end if it is known."""


def prepared(request: DesignRequest, work: Work, data: DesignInput | None = None) -> DesignSlices:
    """The slices of a design and its plan, with the other images of the object that steer it or serve its image.

    Parameters
    ----------
    request : DesignRequest
        Names the files.
    work : Work
        Its seed is that of simulations.
    data : tuple, optional
        What `read_input` made of the request, where it has been read.

    Raises
    ------
    UsageError, InputError
        Where a file cannot be used, and the scan cannot be calibrated or contradicts the request or its constraints.
    """
    recipe, seed = request.recipe, work.seed
    chosen, numbers, count, plan, lines = data or read_input(request, work)
    frames = other_frames(request.source, recipe, request.maps, numbers[0], request.around, seed)
    given = request.read_companions(seed)
    scans, slices, plan, asked = _calibrated(chosen, request, plan, lines, work)
    start, most = _beginning(scans[0], slices, plan, lines, work, recipe)
    shows = [
        place == 0 or request.regions.fit is not None or one.calibrated(start, rough=True).shows_signal(start)
        for place, one in enumerate(slices)
    ]
    if empty := sorted(number for number, signal in zip(numbers, shows, strict=True) if not signal):
        work.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
    regions = request.regions_of(scans, slices, start, shows, numbers, count)
    numbers, scans, slices = [*compress(numbers, shows)], [*compress(scans, shows)], [*compress(slices, shows)]
    places = {
        number: None if scan.geometry is None else scan.geometry[0] for number, scan in zip(numbers, scans, strict=True)
    }
    companions = companions_over(given, chosen[0], numbers[0], count)
    strategy, shown, steered_by = request.strategy, slices, ""
    if recipe.design.strategy in ORACLES:
        shown = [one.calibrated(one.measured) for one in slices]
        truths = [truth_of(_with_maps_of(*known, known[1].measured)) for known in zip(scans, slices, strict=True)]
        strategy = knowing_oracle(strategy, shown, truths, recipe, seed)
    offered = list(zip(given, companions, strict=True))
    steered = steering_image(offered, slices, numbers, count, start, recipe, seed)
    if steered is not None:
        strategy, steered_by = steered
        unit = plan.readouts.unit
        work.progress.say(f"{steered_by} shows the same as the first {unit}s: it has a say in the mask")
    return DesignSlices(
        plan=replace(plan, strategy=strategy),
        numbers=numbers,
        scans=scans,
        slices=slices,
        shown=shown,
        start=start,
        most=most,
        calibration=asked,
        noise_only=empty,
        companions=companions,
        near=request.around.of(numbers[0], Slices(count), places),
        frames=frames,
        steered_by=steered_by,
        regions=regions,
    )


def read_input(request: DesignRequest, work: Work, scan: KSpaceData | None = None) -> DesignInput:
    """Read the scan of a request, where it is not loaded already, and refuse a request that it contradicts."""
    if request.of_shots:
        require_finufft()
    recipe, kind = request.recipe, KINDS[request.recipe.design.encoding]
    if request.regions.fit is not None:
        slices, count = _frames(request, work), 1
        numbers, recipe = list(range(len(slices))), recipe_of_frame(recipe, None)
    else:
        scan = require_grid_data(scan or load_scan(request.source, recipe, work.seed, request.maps), request.source)
        numbers, count = request.numbers(scan.n_slices), scan.n_slices
        slices = [scan.select_slice(number) for number in numbers]
    data = slices[0]
    if request.around.slices and len(slices) == 1:
        raise UsageError(
            f"{option('with', 'slices')}: the mask is for one slice alone, and no other is measured with it; "
            f"give several with {option('slices')}, or leave it out"
        )
    if data.reference is not None and not np.any(data.reference):
        cure = f"Give a slice that shows the object with {option('slices', 'N')}."
        raise InputError("reference", f"nothing but zeros in slice {numbers[0]}", "an image with signal", cure)
    tell_part(data, recipe, work.progress)
    for each in slices if not kind.square else ():
        require_whole_lines(each.name, each.samplings[0])  # before the calibration, which would ask for less
    lines = request.count(kind.whole(data.grid_shape))
    readouts = extent.candidates_of(recipe, request.strategy, data.grid_shape, lines, data.n_coils)
    plan = extent.DesignPlan.of(request.strategy, recipe, readouts)
    extent.require_lines(readouts.measured_flags(data.samplings[0].samples), lines, plan.rules, readouts)
    design.require_room(readouts, data.n_coils, lines, recipe, slices=len(slices))
    return slices, numbers, count, plan, lines


def _frames(request: DesignRequest, work: Work) -> list[KSpaceData]:
    """All frames of the slice of a request.

    Raises
    ------
    UsageError
        For several slices.
    InputError
        As `opened_slices`, and for one frame.
    """
    field = f"{request.source}: {request.recipe.input.axis}"
    cure = f"{option('fit')} needs several echoes: give a scan of them, or leave it out."
    try:
        with opened_slices(request.source, request.recipe, work.seed, request.maps) as frames:
            number, *others = request.numbers(frames.count)
            if others:
                one = option("slices", number)
                raise UsageError(f"{option('fit')}: lines are chosen for the echoes of one slice: give {one}")
            found = [require_grid_data(frames.read(image), request.source) for image in frames.images([number])]
    except InputError as error:
        if error.field != field:
            raise
        raise error.about(field, cure) from error
    if len(found) < 2:
        raise InputError(request.recipe.input.axis, "one image of every slice", "two or more, to fit", cure)
    return found


def _calibrated(
    chosen: Sequence[KSpaceData], request: DesignRequest, plan: extent.DesignPlan, lines: int | None, work: Work
) -> tuple[list[KSpaceData], list[SliceModel], extent.DesignPlan, int | None]:
    """All slices with noise and coil maps, their models, the plan, and how many centre lines maps were to have."""
    recipe, kind, scans = request.recipe, plan.readouts.kind, list[KSpaceData]()
    grows = kind.centre_first and estimates_own_maps(chosen[0])
    asked = extent.calibration_for(recipe, lines)
    if grows:
        asked = extent.centre_for_maps(plan.strategy, recipe, lines, n_coils=len(working_coils(chosen[0])[0]))
    for each in chosen:
        scans.append(calibrate(each, recipe, calibration_lines=asked, ordinary=True, growing=grows))
        if each is chosen[0]:
            warn_of_noise(scans[0], work.progress)
    slices = list[SliceModel]()
    for scan in scans:
        on_grid, truth = scan.slice_model(0, **recipe.slice_settings), partial(truth_of, scan)
        slices.append(extent.slice_of(on_grid, plan.readouts, request.source, truth, recipe, work.seed))
    rules = plan.rules.with_calibration(scans[0].provenance.maps.calibration_lines)
    return scans, slices, replace(plan, rules=rules), asked


def _beginning(
    scan: KSpaceData,
    slices: Sequence[SliceModel],
    plan: extent.DesignPlan,
    lines: int | None,
    work: Work,
    recipe: Recipe,
) -> tuple[tuple[int, ...], int]:
    """The lines that a design begins with, and how many it can have; what coil maps rest on is reported."""
    kind, calibration, rules = plan.readouts.kind, scan.provenance.maps.calibration_lines, plan.rules
    measurable = np.logical_and.reduce([each.measured for each in slices])
    # A plane's is among the constraints, and shots take the maps of the scan that they are simulated from.
    start = plan.start_lines(measurable, lines, calibration if kind.centre_first else 0, slices[0].n_coils)
    most = lines or rules.most_lines(measurable, start)
    if kind.square and calibration:
        side = rules.calibration
        work.progress.say(
            f"{side} x {side} samples at the centre are measured first, for the coil maps, of {most} "
            f"altogether; {option('start')} sets how many"
        )
    grows = slices[0].own_maps is not None
    growing = f"the lines as they are measured, beginning with {len(start)} at the centre" if grows else ""
    tell_calibration(calibration, most, recipe, plan.readouts, work.progress, growing)
    return start, most


def _with_maps_of(scan: KSpaceData, one: SliceModel, lines: Chosen) -> KSpaceData:
    """A scan with the coil maps that some lines show, where these had to be estimated."""
    return with_measured_maps(scan, one.coil_map_estimate(lines))
