"""What a design is asked for, and the scan that it is asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.design.trace import StopRule
from mri_design.errors import InputError, UsageError, option, require_numbers
from mri_design.evaluation.run_folder import InputFile
from mri_design.experiment import extent
from mri_design.experiment.companion_images import CompanionImages, companion_file
from mri_design.experiment.design import require_room
from mri_design.experiment.extent import candidates_of
from mri_design.experiment.inputs import FIRST_SLICE, GivenMaps, SliceChoice, load_scan, require_grid_data
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import TRAINING_RULES, make_strategy, strategy_files, strategy_label
from mri_design.experiment.volume import NeighbourCounts, names_neighbours
from mri_design.kinds import KINDS
from mri_design.operators.nonuniform import require_finufft
from mri_design.runs.companions import (
    OtherFrame,
    other_frames,
)
from mri_design.runs.provenance import tell_part
from mri_design.runs.store import Record
from mri_design.runs.work import Work
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import require_whole_lines

_OF_ONE_SLICE = "slices share lines, or samples of a plane; spokes and arms are those of one slice"


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
        _ = self.stop  # refuses what cannot end, and settings that contradict each other
        if self.around and self.of_shots:
            words = f"{option('with', 'slices')}, {option('with', 'frames')}"
            raise UsageError(f"{words}: other images for spokes and arms come from files; give one")

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
        asked = {"slice": self.slices.named, **self.named_companions}
        checksums, of_files = ([file.sha256 for file in files] for files in (scan, beside))
        choices = {"recipe": self.settings, "input": checksums or self.source, "files": of_files, **asked}
        number = {"lines": self.lines, "acceleration": self.acceleration}
        wanted = {} if self.acceleration is None else {"acceleration_wanted": self.acceleration}
        settings = {"source": self.source, **wanted, **asked, **self.settings}
        identity, beginning = (work.identity("design", choices | more) for more in (number, {}))
        return Record(identity, [*scan, *beside], settings, beginning)

    @property
    def files(self) -> list[str]:
        """The other files: coil maps, a strategy's, and other images of the object."""
        maps = [] if self.maps is None else [str(self.maps)]
        others = [companion_file(source) for source in self.companions if not names_neighbours(source)]
        return [*maps, *strategy_files([self.recipe.design.strategy]), *others]

    @cached_property
    def around(self) -> NeighbourCounts:
        """Which slices and frames of the scan itself are other images of the object.

        Raises
        ------
        UsageError
            See `NeighbourCounts.named`.
        """
        return NeighbourCounts.named(self.companions)

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
            raise UsageError(f"{_OF_ONE_SLICE}: give {option('slices', middle)}")
        return [middle, *(number for number in chosen if number != middle)]


@dataclass(frozen=True, kw_only=True)
class DesignInput:
    """The data of a design, as read, and the lines, samples or shots that it chooses from.

    Parameters
    ----------
    scan : KSpaceData
        All slices; it is replayed as the scanner.
    numbers : sequence of int
        Of the slices that share the mask, that of the image first.
    slices : sequence of KSpaceData
        These slices.
    plan : DesignPlan
        What is chosen from, and within which constraints.
    lines : int or None
        Lines, samples or shots in the end; None where only a rule ends the design.
    frames : sequence of OtherFrame
        The slice of the image in other frames of the same file.
    companions : sequence of CompanionImages
        Files of other images of the object.
    """

    scan: KSpaceData
    numbers: Sequence[int]
    slices: Sequence[KSpaceData]
    plan: extent.DesignPlan
    lines: int | None
    frames: Sequence[OtherFrame] = ()
    companions: Sequence[CompanionImages] = ()

    @classmethod
    def read(cls, request: DesignRequest, work: Work, scan: KSpaceData | None = None) -> DesignInput:
        """Read the files of a request, but for a scan that is there already.

        Raises
        ------
        UsageError, InputError
            Where a file cannot be used, or the scan cannot be designed by the request.
        """
        if request.of_shots:
            require_finufft()
        recipe, maps, seed = request.recipe, request.maps, work.seed
        scan = require_grid_data(scan or load_scan(request.source, recipe, seed, maps), request.source)
        numbers = request.numbers(scan.n_slices)
        slices = [scan.select_slice(number) for number in numbers]
        data, kind = slices[0], KINDS[recipe.design.encoding]
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
        readouts = candidates_of(recipe, request.strategy, data.grid_shape, lines, data.n_coils)
        plan = extent.DesignPlan.of(request.strategy, recipe, readouts)
        extent.require_lines(readouts.measured_flags(data.samplings[0].samples), lines, plan.rules, readouts)
        require_room(readouts, data.n_coils, lines, recipe, slices=len(slices))
        return cls(
            scan=scan,
            numbers=numbers,
            slices=slices,
            plan=plan,
            lines=lines,
            frames=other_frames(request.source, recipe, maps, numbers[0], request.around, seed),
            companions=request.read_companions(seed),
        )
