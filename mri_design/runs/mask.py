"""A mask without a scan, by a strategy that looks at no data: its lines, its picture and its point-spread function."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from mri_design.evaluation.page import Page
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.extent import amount_wanted, check_other_than_lines, in_acquisition_order, require_amount
from mri_design.experiment.masks import DrawnMask, draw_mask, named_kind
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import explained, strategy_label
from mri_design.kinds import KINDS
from mri_design.runs.design_report import acquisition_facts
from mri_design.runs.provenance import sentences
from mri_design.runs.store import Record, Report, Run, carry_out
from mri_design.runs.stored_run import StoredRun
from mri_design.scan.trajectories import decibels, largest_side_lobe
from mri_design.status import Status


@dataclass(frozen=True)
class MaskRequest:
    """Request for a mask.

    Parameters
    ----------
    kind : str
        See `named_kind`.
    shape : tuple of int
        Sides of the grid: (ky, kx), of a plane (ky, kz), or one for both.
    recipe : Recipe
        Constraints and order.
    encoding : str, optional
        What is chosen, where the kind knows several.
    count : int, optional
        Lines, samples or shots.
    acceleration : float, optional
        Instead of the count: one in so many lines of the grid, or samples; of shots one for so many lines.
    start : int, optional
        See `draw_mask`.

    Raises
    ------
    UsageError
        For neither count nor acceleration or both, and as `named_kind`.
    """

    kind: str
    shape: tuple[int, ...]
    recipe: Recipe
    _: KW_ONLY
    encoding: str | None = None
    count: int | None = None
    acceleration: float | None = None
    start: int | None = None
    strategy: str = field(init=False)

    def __post_init__(self) -> None:
        strategy, encoding = named_kind(self.kind, len(self.shape), self.encoding)
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "recipe", self.recipe.replacing("design", encoding=encoding))
        check_other_than_lines(self.recipe)
        require_amount(self.count, self.acceleration, self.recipe)

    @property
    def grid(self) -> tuple[int, int]:
        """Sides of the grid."""
        return self.shape[0], self.shape[-1]

    def record(self, run: Run) -> Record:
        """Settings for the manifest."""
        choices = {"grid": list(self.grid), "lines": self.count, "acceleration_wanted": self.acceleration}
        settings = self.recipe.replacing("design", strategy=strategy_label(self.strategy)).as_settings()
        settings |= {name: value for name, value in choices.items() if value is not None}
        return Record(run.identity("mask", {"recipe": settings, "start": self.start}), (), settings)


def mask_in_folder(request: MaskRequest, run: Run) -> StoredRun:
    """Draw the mask and report it in a run's folder; see `carry_out`.

    Raises
    ------
    UsageError, InputError
        As `draw_mask`; along shots, where FINUFFT is not installed.
    """
    whole = KINDS[request.recipe.design.encoding].whole(request.grid)
    count = amount_wanted(request.count, request.acceleration, whole)
    drawn = draw_mask(request.strategy, request.grid, count, request.recipe, start=request.start, seed=run.seed)

    def report(folder: RunFolder, drawn: DrawnMask) -> Report:
        return _report(folder, request, drawn, run.seed)

    ended = carry_out(run, request.record(run), lambda keep: drawn, report)
    assert isinstance(ended, StoredRun)
    return ended


def _report(folder: RunFolder, request: MaskRequest, drawn: DrawnMask, seed: int) -> Report:
    """Write mask.npy and the lines, samples or shots in their order; the page has the picture."""
    readouts, shots = drawn.readouts, drawn.trajectory
    lobe = largest_side_lobe(drawn.spread)
    lines = sentences("mask", "mask", request, drawn, seed, *lobe, decibels(lobe[0]))
    folder.write_array("mask.npy", drawn.mask)
    folder.write_table(f"{readouts.kind.counted}.csv", _rows(drawn))
    acquisition = in_acquisition_order(drawn.order, readouts, request.recipe)
    acquisition_facts(folder, acquisition)
    if shots is not None:
        folder.write_archive("trajectory.npz", {"trajectory": shots, "matrix": np.array(readouts.grid)})
    result = StoredRun(
        mask=drawn.mask,
        chosen=drawn.order,
        readouts=readouts.name,
        grid=readouts.grid,
        acquired=tuple((line,) for line in drawn.order) if acquisition is None else acquisition.trains,
        shots=shots,
        acceleration=readouts.kind.whole(readouts.grid) / len(drawn.order),
        status=Status.CONVERGED.value,
    )
    facts = {"lines": lines, "drawn": drawn, "shots": shots, "meaning": explained(request.strategy)}
    return Report(result=result, page=Page("mask", facts))


def _rows(drawn: DrawnMask) -> list[dict[str, Any]]:
    """What is measured, in its order: places in k-space, or angles."""
    readouts = drawn.readouts
    if not readouts.kind.on_grid:
        degrees = np.degrees(readouts.angles or ())
        return [{"order": n, "shot": shot, "angle_degrees": float(degrees[shot])} for n, shot in enumerate(drawn.order)]
    places = [zip(("ky", "kz"), readouts.frequencies[number].tolist(), strict=False) for number in drawn.order]
    return [
        {"order": n, readouts.unit: number, **dict(place)}
        for n, (number, place) in enumerate(zip(drawn.order, places, strict=True))
    ]
