"""How families of readouts are drawn: what is measured, how a design grew, its scores, and an order of measurement.

A family is a class and a line of `FAMILIES`; one without a line is drawn by the cells of k-space that it measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.plots import kspace, style
from mri_design.evaluation.predictions import score_unit
from mri_design.kinds import count_text
from mri_design.readouts import Readouts
from mri_design.scan.sampling import gapless_run, line_pattern
from mri_design.scan.trajectories import compensated_spread

Masks = Mapping[str, tuple[Readouts, NDArray[np.bool_]]]
"""Title to readouts and flags of those measured, shape (size,)."""
MEASURED_ORDER = "line number in the order of measurement"


class Drawn:
    """How readouts are drawn, by the cells of k-space that they measure."""

    def masks(self, masks: Masks) -> Figure:
        """What is measured, of several masks side by side or one above the other."""
        named = {title: f"{title}\n{style.size_of(mask, each.kind.counted)}" for title, (each, mask) in masks.items()}
        return kspace.plane_flags({named[title]: each.cells(mask) for title, (each, mask) in masks.items()})

    def spacing(self, mask: NDArray[np.bool_]) -> dict[str, Any]:
        """Of lines, the ``pattern`` in which they lie if any, those around the ``centre``, and the largest ``gap``."""
        return {}

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        """What was measured from the start of a design to its end."""
        panels = {}
        for before, count in pairwise((0, *_counts_shown(trace, 6))):
            mask, new = trace.mask(count), trace.mask(count) & ~trace.mask(before) & (before > 0)
            panels[style.size_of(mask, readouts.kind.counted)] = readouts.cells(mask).astype(int) + readouts.cells(new)
        return kspace.plane_flags(panels, ("measured before", "added since the panel before"))

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        """Figures of a design by the names of their files."""
        return {"mask-growth": self.growth(readouts, trace)}

    def acquisition(self, made: Acquisition) -> Figure:
        """The order of measurement, train after train."""
        return kspace.acquisition_order(made.lines, made.readouts.size, axis=MEASURED_ORDER)


class DrawnLines(Drawn):
    """How lines are drawn, over ky."""

    def masks(self, masks: Masks) -> Figure:
        return kspace.mask_barcodes({title: mask for title, (_, mask) in masks.items()})

    def spacing(self, mask: NDArray[np.bool_]) -> dict[str, Any]:
        dc, gaps = len(mask) // 2, np.diff(np.flatnonzero(mask)) - 1
        low, high = gapless_run(mask, dc)
        centre = (low - dc, high - dc) if mask[dc] else None
        return {"pattern": line_pattern(mask), "centre": centre, "gap": int(gaps.max(initial=0))}

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        return kspace.mask_growth(trace.lines, trace.n_lines, len(trace.start))

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        size, first = trace.n_lines, len(trace.start)
        figures = {
            "mask": self.masks({trace.strategy: (readouts, trace.mask())}),
            "mask-growth": self.growth(readouts, trace),
            "order": kspace.acquisition_order(trace.lines, size, first),
        }
        if moments := _moments(readouts, trace):
            steps, unit = [step for step in trace.steps if step.choice.scores is not None], score_unit(trace)
            scores, chosen = np.array([step.choice.scores for step in steps]), [step.line for step in steps]
            figures["scores"] = kspace.score_map(scores, chosen, unit, first + 1)
            ky = style.ky_coordinates(np.arange(size), size)
            figures["score-profiles"] = kspace.score_profiles(ky, moments, style.KY_LABEL, unit)
        return figures


class DrawnPlane(Drawn):
    """How samples of a plane are drawn, over ky and kz."""

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        figures = {"mask-growth": self.growth(readouts, trace)}
        blocks = [step.choice.scores for step in trace.steps if step.choice.pending == 0]
        scored = [(number, scores) for number, scores in enumerate(blocks, 1) if scores is not None]
        if scored:
            chosen = [scored[at] for at in sorted({0, len(scored) // 2, len(scored) - 1})]
            maps = {f"block {number}": scores.reshape(readouts.grid) for number, scores in chosen}
            figures["scores"] = kspace.plane_maps(maps, score_unit(trace))
        return figures

    def acquisition(self, made: Acquisition) -> Figure:
        panels = {name: np.full(made.readouts.size, np.nan) for name in ("train", "echo")}
        for number, train in enumerate(made.trains, 1):
            panels["train"][list(train)], panels["echo"][list(train)] = number, np.arange(1, len(train) + 1)
        if len(made.trains) == len(made.lines):
            panels = {"order": panels["train"]}
        return kspace.plane_maps({name: panel.reshape(made.readouts.grid) for name, panel in panels.items()})


class DrawnShots(Drawn):
    """How shots are drawn, along their trajectory."""

    def masks(self, masks: Masks) -> Figure:
        readouts = next(iter(masks.values()))[0]
        shots = {title: _shots(each, mask) for title, (each, mask) in masks.items()}
        first = f"the measured {readouts.unit} with the lowest number among the candidates"
        return kspace.trajectory_curves(shots, readouts.grid, first)

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        counts, lines = _counts_shown(trace, 4), list(trace.lines)
        shots = {count_text(count, readouts.unit): _shots(readouts, lines[:count]) for count in counts}
        return kspace.trajectory_curves(shots, readouts.grid, f"the first {readouts.unit} of the start")

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        figures = {"trajectory": self.growth(readouts, trace)}
        if readouts.angles is not None and (moments := _moments(readouts, trace)):
            degrees = np.degrees(readouts.angles)
            figures["scores"] = kspace.score_profiles(degrees, moments, "angle (degrees)", score_unit(trace))
        return figures | {"point-spread": shots_with_spread(_shots(readouts, list(trace.lines)), readouts.grid)}


FAMILIES: dict[str, Drawn] = {"lines": DrawnLines(), "plane": DrawnPlane()}
"""By `Kind.sort`, of those on a grid."""


def drawn(readouts: Readouts) -> Drawn:
    """How these readouts are drawn."""
    kind = readouts.kind
    return FAMILIES.get(kind.sort, Drawn()) if kind.on_grid else DrawnShots()


def shots_with_spread(
    shots: NDArray[np.floating], grid: tuple[int, int], density: NDArray[np.float64] | None = None
) -> Figure:
    """Shots (shot, sample, 2), and what they make of a point, with the density that came with the scan or their own."""
    spread = compensated_spread(shots.reshape(-1, 2), grid, density)
    return kspace.mask_with_spread("", np.ones(len(shots), dtype=bool), spread, shots)


def _shots(readouts: Readouts, ids: Sequence[int] | NDArray[np.bool_]) -> NDArray[np.float64]:
    """Samples (shot, sample, 2) of what runs along a trajectory."""
    shots = readouts.trajectory(ids)
    assert shots is not None
    return shots


def _moments(readouts: Readouts, trace: DesignTrace) -> dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Scores, and what had been measured, at the start, after a quarter, at half and at the end of what has scores."""
    scored = [(count, s) for count, s in enumerate(trace.steps, len(trace.start)) if s.choice.scores is not None]
    last, unit = len(scored) - 1, readouts.unit
    chosen = [scored[at] for at in sorted({0, last // 4, last // 2, last})] if scored else []
    return {f"{count_text(n, unit)} measured": (np.asarray(s.choice.scores), trace.mask(n)) for n, s in chosen}


def _counts_shown(trace: DesignTrace, panels: int) -> list[int]:
    """Numbers of candidates, from the start to the end of the design, at which a picture is drawn."""
    counts = np.linspace(len(trace.start), len(trace.lines), panels)
    return sorted({round(count) for count in counts if count >= 1})
