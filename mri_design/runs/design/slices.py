"""Slices that share the mask of a design: calibrated, as the strategy sees them, and what it may measure of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.design.trials import truth_or_none
from mri_design.errors import option
from mri_design.experiment import extent
from mri_design.experiment.calibration import PreparedScan, estimates_own_maps, prepare
from mri_design.experiment.inputs import slices_text
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.shots import slice_of
from mri_design.experiment.strategies import ORACLES
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Readouts
from mri_design.runs.design.request import DesignInput, DesignRequest
from mri_design.runs.known_slice import knowing_oracle
from mri_design.runs.provenance import tell_calibration, warn_of_maps, warn_of_noise
from mri_design.runs.work import Progress, Work
from mri_design.scan.data import KSpaceData


@dataclass(frozen=True, kw_only=True)
class SharedSlices:
    """Calibrated slices that share a mask, that of the image first.

    Parameters
    ----------
    recipe : Recipe
        In force.
    numbers : sequence of int
        Of the slices in their scan.
    data : KSpaceData
        The slice of the image, as read.
    scans, slices : sequences of PreparedScan and of SliceModel
        Calibrated, and as models take them.
    seen : sequence of SliceModel
        As the strategy sees them, see `informed`.
    start : tuple of int
        Lines that the design begins with.
    most : int
        Lines that it can have in the end.
    calibration : int or None
        Centre lines that coil maps were asked to be estimated from; None is the usual number.
    """

    recipe: Recipe
    numbers: Sequence[int] = (0,)
    data: KSpaceData
    scans: Sequence[PreparedScan]
    slices: Sequence[SliceModel]
    seen: Sequence[SliceModel] = ()
    start: tuple[int, ...] = ()
    most: int
    calibration: int | None = None

    @property
    def readouts(self) -> Readouts:
        """What there is to choose from."""
        return self.slices[0].candidates

    def measured(self, lines: Sequence[int], progress: Progress) -> SharedSlices:
        """The slices with the coil maps that ``lines`` show, where these had to be estimated."""
        known = zip(self.scans, self.slices, strict=True)
        scans = [scan.knowing(one.coil_map_estimate(lines)) for scan, one in known]
        warn_of_maps(scans[0], progress)
        return replace(self, scans=scans)

    def truths(self, lines: Sequence[int]) -> list[Array | None]:
        """What is known of the image behind each slice (`truth_or_none`), with the maps of these lines."""
        known = zip(self.scans, self.slices, strict=True)
        return [truth_or_none(one.calibrated(lines), scan.reference(0)) for scan, one in known]


def calibrated(given: DesignInput, request: DesignRequest, work: Work) -> SharedSlices:
    """The slices that share the mask, with noise and coil maps, and with them the lines that the design begins with.

    Raises
    ------
    InputError
        Where the scan cannot be calibrated, or contradicts the constraints.
    """
    recipe, strategy, progress = request.recipe, request.strategy, work.progress
    data, readouts, lines, kind = given.slices[0], given.readouts, given.lines, given.readouts.kind
    grows = kind.centre_first and estimates_own_maps(data)
    asked = extent.centre_for_maps(strategy, recipe, lines) if grows else extent.calibration_for(recipe, lines)
    scans = list[PreparedScan]()
    for each in given.slices:
        scans.append(prepare(each, recipe, calibration_lines=asked, ordinary=True, growing=grows))
        if each is data:
            warn_of_noise(scans[0], progress)
            recipe = extent.with_calibration(recipe, scans[0].calibration_lines)
    on_grid = recipe.replacing("design", encoding="lines") if kind.shots else recipe
    slices = [
        slice_of(one.slice_model(0, on_grid), readouts, request.source, partial(one.reference, 0), recipe, work.seed)
        for one in scans
    ]
    measurable = np.logical_and.reduce([each.measured for each in slices])
    # A plane's is among the constraints, and shots take the maps of the scan that they are made of.
    calibration = scans[0].calibration_lines
    centre = calibration if kind.centre_first else 0
    start = extent.start_lines(measurable, strategy, lines, recipe, centre, slices[0].n_coils, readouts)
    most = lines or recipe.constraints.rules(readouts).most_lines(measurable, start)
    if kind.square and calibration:
        side = recipe.constraints.calibration or 0
        progress.say(
            f"{side} x {side} samples at the centre are measured first, for the coil maps, of {most} "
            f"altogether; {option('constraints.calibration')} sets how many"
        )
    growing = f"the lines as they are measured, beginning with {len(start)} at the centre" if grows else ""
    tell_calibration(calibration, most, recipe, readouts, progress, growing)
    return SharedSlices(
        recipe=recipe,
        numbers=given.numbers,
        data=data,
        scans=scans,
        slices=slices,
        start=start,
        most=most,
        calibration=asked,
    )


def without_air(shared: SharedSlices, work: Work) -> tuple[SharedSlices, list[int]]:
    """Without slices whose start shows noise only, which have no say, and their numbers; that of the image stays."""
    shows = [one.calibrated(shared.start, rough=True).shows_signal(shared.start) for one in shared.slices[1:]]
    shown = [0, *(place for place, signal in enumerate(shows, 1) if signal)]
    numbers, scans = [shared.numbers[place] for place in shown], [shared.scans[place] for place in shown]
    empty = sorted(set(shared.numbers).difference(numbers))
    if empty:
        work.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
    return replace(shared, numbers=numbers, scans=scans, slices=[shared.slices[place] for place in shown]), empty


def informed(shared: SharedSlices, strategy: Strategy, seed: int) -> tuple[SharedSlices, Strategy]:
    """The slices as the strategy sees them, and the strategy: an oracle sees the truth, and the maps of all lines."""
    recipe, slices = shared.recipe, shared.slices
    if recipe.design.strategy not in ORACLES:
        return replace(shared, seen=slices), strategy
    seen = [one.calibrated(one.measured) for one in slices]
    known = zip(shared.scans, slices, strict=True)
    truths = [scan.knowing(one.coil_map_estimate(one.measured)).reference(0) for scan, one in known]
    return replace(shared, seen=seen), knowing_oracle(strategy, seen, truths, recipe, seed)


def depends_on(shared: SharedSlices, strategy: Strategy, request: DesignRequest) -> dict[str, object]:
    """What a design that goes on has to have in common with its beginning, beside input and settings."""
    most, unseen = shared.most, 0
    if shared.readouts.thinned and request.stop is None:
        unseen = strategy.unseen(shared.readouts, most, min(one.n_coils for one in shared.slices))
    limited = shared.recipe.constraints.max_jump is not None
    foreseen = most if request.of_shots or not strategy.needs_posterior or limited else None
    return {"start": shared.start, "calibration": shared.calibration, "unseen": unseen, "most": foreseen}
