"""The calibrated slices of a design: their readouts, models, companions and what is known of the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mri_design.design.engine import DesignEngine
from mri_design.design.training import truth_or_none
from mri_design.errors import option
from mri_design.experiment import extent
from mri_design.experiment.calibration import calibrate, estimates_own_maps, truth_of, with_measured_maps
from mri_design.experiment.companion_images import companions_over
from mri_design.experiment.design import design_engine
from mri_design.experiment.extent import slice_of
from mri_design.experiment.inputs import slices_text
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import ORACLES
from mri_design.experiment.volume import Slices
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array
from mri_design.readouts import Readouts
from mri_design.runs.companions import (
    steering_image,
)
from mri_design.runs.design_request import DesignInput, DesignRequest
from mri_design.runs.known_slice import knowing_oracle
from mri_design.runs.provenance import tell_calibration, warn_of_maps, warn_of_noise
from mri_design.runs.work import Progress, Work
from mri_design.scan.data import KSpaceData


@dataclass(frozen=True, kw_only=True)
class DesignSlices:
    """Calibrated slices that share a mask, that of the image first, and what is known before a line is chosen.

    Parameters
    ----------
    recipe : Recipe
        Of the design.
    plan : DesignPlan
        The strategy, the candidates and their constraints.
    engine : DesignEngine, optional
        Of the design, with the strategy as it is informed by an earlier scan or, an oracle, by the truth.
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
    steered_by : str
        The other image of the object that has a say in the mask; empty where none has.
    """

    recipe: Recipe
    plan: extent.DesignPlan
    engine: DesignEngine | None = None
    numbers: Sequence[int] = (0,)
    scans: Sequence[KSpaceData]
    slices: Sequence[SliceModel]
    shown: Sequence[SliceModel] = ()
    start: tuple[int, ...] = ()
    most: int
    calibration: int | None = None
    noise_only: Sequence[int] = ()
    companions: tuple[Companion, ...] = ()
    near: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    steered_by: str = ""

    @property
    def readouts(self) -> Readouts:
        """What there is to choose from."""
        return self.plan.readouts

    def depends_on(self, request: DesignRequest) -> dict[str, object]:
        """Values that have to be equal for a design to be resumed, as well as input and settings."""
        most, unseen, strategy, rules = self.most, 0, self.plan.strategy, self.plan.rules
        if self.readouts.thinned and request.stop is None:
            unseen = strategy.unseen(self.readouts, most, min(one.n_coils for one in self.slices))
        limited = rules.max_jump is not None
        foreseen = most if request.of_shots or not strategy.needs_posterior or limited else None
        return {"start": self.start, "calibration": self.calibration, "unseen": unseen, "most": foreseen}

    def measured(self, lines: Sequence[int], progress: Progress) -> DesignSlices:
        """The slices with the coil maps that ``lines`` show, where these had to be estimated."""
        known = zip(self.scans, self.slices, strict=True)
        scans = [with_measured_maps(scan, one.coil_map_estimate(lines)) for scan, one in known]
        warn_of_maps(scans[0], progress)
        return replace(self, scans=scans)

    def truths(self, lines: Sequence[int]) -> list[Array | None]:
        """What is known of the image behind each slice (`truth_or_none`), with the maps of these lines."""
        known = zip(self.scans, self.slices, strict=True)
        return [truth_or_none(one.calibrated(lines), truth_of(scan)) for scan, one in known]


def prepared(given: DesignInput, request: DesignRequest, work: Work) -> DesignSlices:
    """The slices of a design and its plan, with the other images of the object that steer it or serve its image.

    Raises
    ------
    InputError
        Where the scan cannot be calibrated, or contradicts the constraints.
    """
    all_slices, recipe, seed, count = _calibrated(given, request, work), request.recipe, work.seed, given.scan.n_slices
    start, later = all_slices.start, all_slices.slices[1:]
    shows = [one.calibrated(start, rough=True).shows_signal(start) for one in later]
    with_signal = [0, *(place for place, signal in enumerate(shows, 1) if signal)]
    numbers = [given.numbers[place] for place in with_signal]
    scans = [all_slices.scans[place] for place in with_signal]
    slices = [all_slices.slices[place] for place in with_signal]
    empty = sorted(set(given.numbers).difference(numbers))
    if empty:
        work.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
    geometry = given.scan.geometry
    places = {number: None if geometry is None else geometry[number] for number in numbers}
    companions = companions_over(given.companions, given.slices[0], numbers[0], count)
    strategy, shown, steered_by = request.strategy, slices, ""
    if recipe.design.strategy in ORACLES:
        shown, known = [one.calibrated(one.measured) for one in slices], zip(scans, slices, strict=True)
        truths = [truth_of(with_measured_maps(scan, one.coil_map_estimate(one.measured))) for scan, one in known]
        strategy = knowing_oracle(strategy, shown, truths, recipe, seed)
    offered = list(zip(given.companions, companions, strict=True))
    steered = steering_image(offered, slices, numbers, count, start, recipe, seed)
    if steered is not None:
        strategy, steered_by = steered
        unit = all_slices.readouts.unit
        work.progress.say(f"{steered_by} shows the same as the first {unit}s: it has a say in the mask")
    plan = replace(all_slices.plan, strategy=strategy)
    return replace(
        all_slices,
        plan=plan,
        engine=design_engine(plan, recipe, extent.design_seed(seed)),
        numbers=numbers,
        scans=scans,
        slices=slices,
        shown=shown,
        noise_only=empty,
        companions=companions,
        near=request.around.of(numbers[0], Slices(count), places),
        steered_by=steered_by,
    )


def _calibrated(given: DesignInput, request: DesignRequest, work: Work) -> DesignSlices:
    """All slices with noise and coil maps, and with them the lines that the design begins with."""
    recipe, plan, progress, lines = request.recipe, given.plan, work.progress, given.lines
    data, readouts, kind = given.slices[0], plan.readouts, plan.readouts.kind
    grows = kind.centre_first and estimates_own_maps(data)
    asked = extent.centre_for_maps(plan.strategy, recipe, lines) if grows else extent.calibration_for(recipe, lines)
    scans = list[KSpaceData]()
    for each in given.slices:
        scans.append(calibrate(each, recipe, calibration_lines=asked, ordinary=True, growing=grows))
        if each is data:
            warn_of_noise(scans[0], progress)
    slices = list[SliceModel]()
    for scan in scans:
        on_grid, truth = scan.slice_model(0, **recipe.slice_settings), partial(truth_of, scan)
        slices.append(slice_of(on_grid, readouts, request.source, truth, recipe, work.seed))
    measurable = np.logical_and.reduce([each.measured for each in slices])
    # A plane's is among the constraints, and shots take the maps of the scan that they are simulated from.
    calibration = scans[0].provenance.maps.calibration_lines
    plan = replace(plan, rules=plan.rules.with_calibration(calibration))
    start = plan.start_lines(measurable, lines, calibration if kind.centre_first else 0, slices[0].n_coils)
    most = lines or plan.rules.most_lines(measurable, start)
    if kind.square and calibration:
        side = plan.rules.calibration
        progress.say(
            f"{side} x {side} samples at the centre are measured first, for the coil maps, of {most} "
            f"altogether; {option('start')} sets how many"
        )
    growing = f"the lines as they are measured, beginning with {len(start)} at the centre" if grows else ""
    tell_calibration(calibration, most, recipe, readouts, progress, growing)
    return DesignSlices(
        recipe=recipe,
        plan=plan,
        numbers=given.numbers,
        scans=scans,
        slices=slices,
        start=start,
        most=most,
        calibration=asked,
    )
