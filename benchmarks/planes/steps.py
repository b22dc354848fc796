"""Processor time of a warm design step, by samples of a plane and by lines, with as many samples measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from study.scans import Scan

from mri_design.design.engine import DesignEngine, DesignState
from mri_design.evaluation.tables import Row
from mri_design.experiment.phase_choice import candidate_models
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import EncodingName

BEGIN = 16
"""Designs begin at this acceleration."""
NOT_COUNTED = 2
"""Steps at the beginning: the first is cold, and in the second the last loops may be compiled."""


@dataclass
class _Design:
    """A design that goes on step by step, each for as many samples as a line has."""

    engine: DesignEngine
    mr_slice: MRSlice
    state: DesignState
    per_step: int
    seconds: list[float] = field(default_factory=list)
    products: list[int] = field(default_factory=list)

    @classmethod
    def begin(cls, scan: Scan, encoding: EncodingName) -> _Design:
        columns = scan.prepared.data.grid_shape[1]
        recipe = load_recipe("local").replacing("design", encoding=encoding, block=columns)
        mr_slice = scan.prepared.slice_model(0, recipe)
        engine = DesignEngine(
            make_strategy("calibrated", encoding),
            recipe.inference.engine(extrapolated=False),
            first_loops=recipe.design.first_loops,
            step_loops=recipe.design.step_loops,
            block=recipe.design.block_of(mr_slice.candidates),
            constraints=recipe.constraints.rules_of(mr_slice.candidates),
            models=candidate_models(recipe),
        )
        start = engine.constraints.start(mr_slice.measured, mr_slice.candidates.size // BEGIN, 0)
        return cls(engine, mr_slice, engine.begin([mr_slice], start), columns if encoding == "plane" else 1)

    def step(self) -> None:
        """Infer, choose, measure."""
        lines = self.state.trace.lines
        began = time.process_time()
        self.state = self.engine.run([self.mr_slice], self.state, len(lines) + self.per_step)
        self.seconds.append(time.process_time() - began)
        self.products.append(sum(step.cost.matvecs for step in self.state.trace.steps[-self.per_step :]))

    @property
    def samples(self) -> int:
        """Measured so far, of one coil."""
        rows = self.mr_slice.measurement(self.state.trace.lines)
        return rows.out_size // (2 * self.mr_slice.n_coils)


def step_rows(scan: Scan, steps: int) -> list[Row]:
    """Medians over the warm steps of two designs by `calibrated`, which take turns; one row for each."""
    encodings: tuple[EncodingName, ...] = ("lines", "plane")
    designs = {encoding: _Design.begin(scan, encoding) for encoding in encodings}
    first = {encoding: design.samples for encoding, design in designs.items()}
    for _ in range(NOT_COUNTED + steps):
        for design in designs.values():
            design.step()
    return [
        {
            "measured": encoding,
            "grid": scan.n_lines,
            "coils": scan.prepared.data.n_coils,
            "samples": f"{first[encoding]} to {design.samples}",
            "CPU s per step": median(design.seconds[NOT_COUNTED:]),
            "products per step": median(design.products[NOT_COUNTED:]),
            "steps": steps,
        }
        for encoding, design in designs.items()
    ]


def cost_ratio(coils: int) -> Callable[[Sequence[Row]], float | None]:
    """Processor time of a step in the plane over that of a line step; None where it was not measured."""

    def measure(rows: Sequence[Row]) -> float | None:
        seconds = {str(row["measured"]): float(str(row["CPU s per step"])) for row in rows if _coils(row) == coils}
        return seconds["plane"] / seconds["lines"] if seconds else None

    return measure


def _coils(row: Row) -> int:
    return int(str(row["coils"]))
