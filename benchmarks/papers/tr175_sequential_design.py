"""The report's sequential design beside ours.

Both choose line after line by the information gain, from the same centre lines of a simulated head: the report's
algorithm as `benchmarks/papers/algorithm.py` has it (double precision, no preconditioner, k Lanczos vectors, one outer
loop a step), and `information-gain` under the recipe `fast`. The regret of a decision is what the exact gain of its
line lacks to the largest one's, relative, under the converged posterior with exact variances at the lines that the
design had then. Seconds are the processor's, one thread; on the larger grid one step of each is timed after a number of
lines.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.scans import simulated, simulating

import mri_design as md
from mri_design.design import exact_gains
from mri_design.estimation import IRLS
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import load_recipe
from mri_design.model import SliceModel
from mri_design.readouts import LineReadouts
from mri_design.variances import ExactByColumns

from .algorithm import ReportModel, report_step
from .runner import Claim, Outcome

PLACE = "sections 4.4, 4.5 and 6.1"
SIZES = {
    "tiny": {"grid": 16, "start": 4, "lines": 5, "k": 30, "judged": 2, "seeds": 1, "timed": (32, 4, 8, 30)},
    "small": {"grid": 24, "start": 6, "lines": 10, "k": 60, "judged": 3, "seeds": 1, "timed": (64, 12, 16, 100)},
    "full": {"grid": 40, "start": 8, "lines": 20, "k": 100, "judged": 3, "seeds": 3, "timed": (256, 32, 96, 500)},
}
RECIPE = load_recipe("fast")
FIRST_LOOPS = 5
"""Outer loops before the first line."""


@dataclass(frozen=True)
class Design:
    """Lines in their order, and what they cost."""

    lines: list[int]
    products: int
    seconds: float


def head(grid: int) -> SliceModel:
    """A simulated head whose noise is known."""
    [scan] = simulated("phantom:t2w", [0], simulating(grid))
    return scan.prepared.slice_model(0, **RECIPE.slice_settings)


def by_the_report(one: SliceModel, start: list[int], lines: int, k: int, seed: int) -> Design:
    """The report's design, from z = 1/20 and u = 0 (section 4.4), `FIRST_LOOPS` outer loops before the first line."""
    chosen, products, began = list(start), 0, time.process_time()
    signal, rng = one.signal_level(start), np.random.default_rng(seed)
    u, z = np.zeros(one.shape, dtype=complex), np.full((3, *one.shape), 0.05)
    while len(chosen) < lines:
        model = ReportModel.of(one.model(chosen, signal))
        for _ in range(FIRST_LOOPS if len(chosen) == len(start) else 1):
            step = report_step(model, u, z, k, rng)
            u, z, products = step.u, step.z, products + step.products
        chosen.append(step.line)
    return Design(chosen, products, time.process_time() - began)


def by_us(one: SliceModel, start: list[int], lines: int, seed: int) -> Design:
    """`information-gain` as it is shipped."""
    began = time.process_time()
    state = md.run_design([one], "information-gain", lines, RECIPE, seed=seed, start=start)
    products = sum(step.matvecs for step in state.trace.steps)
    return Design([int(line) for line in state.trace.lines], products, time.process_time() - began)


def regrets(one: SliceModel, design: Design, start: int, judged: int) -> list[float]:
    """Of every ``judged``-th decision."""
    found, warm = [], None
    for count in range(start, len(design.lines), judged):
        model = one.model(design.lines[:count], one.signal_level(design.lines[:start]))
        engine = md.DoubleLoop(ExactByColumns(), IRLS(tolerance=1e-8, max_iterations=500), 30, 1e-4)
        posterior = engine.infer(model, np.random.default_rng(0), warm_start=warm)
        gains = exact_gains(posterior.precision, LineReadouts(one.shape))
        open_ = np.setdiff1d(np.arange(len(gains)), design.lines[:count])
        found.append(float(1 - gains[design.lines[count]] / gains[open_].max()))
    return found


def run(
    data: Path | None,
    grid: int,
    start: int,
    lines: int,
    k: int,
    judged: int,
    seeds: int,
    timed: tuple[int, int, int, int],
) -> Outcome:
    """Designs and their regrets; a step of both on a larger grid."""
    one = head(grid)
    centre = list(range((grid - start) // 2, (grid + start) // 2))
    rows: list[Row] = []
    kept: dict[str, list[tuple[Design, list[float]]]] = {"report": [], "ours": []}
    for seed in range(seeds):
        for name in kept:
            design = by_us(one, centre, lines, seed) if name == "ours" else by_the_report(one, centre, lines, k, seed)
            lost = regrets(one, design, start, judged)
            kept[name].append((design, lost))
            row = {"design": name, "seed": seed, "lines": lines, "products": design.products, "s": design.seconds}
            rows.append(row | {"mean regret, %": 100 * np.mean(lost), "worst, %": 100 * max(lost)})
    regret = {name: 100 * float(np.mean([lost for _, lost in each])) for name, each in kept.items()}
    spent = {name: float(np.median([design.products for design, _ in each])) for name, each in kept.items()}
    large, ratio = timed_steps(*timed)
    share = timed[3] / float(large[0]["products"])  # type: ignore[arg-type]
    cold = k * (lines - start + FIRST_LOOPS - 1) / spent["report"]
    enough = regret["report"] < 5
    claims = [
        Claim(
            "6.1",
            "Scores from the Lanczos vectors of the last outer loop choose good lines",
            "no number",
            f"mean regret {regret['report']:.2f} % with k = {k}; ours {regret['ours']:.2f} %",
            enough,
            "" if enough else "Lines are lost by scores that see a small part of the variance.",
        ),
        Claim(
            "4.5",
            "Variances are the most expensive computation of the method",
            "no number",
            f"{100 * share:.0f} % of the products of a step at {timed[0]} x {timed[0]}; {100 * cold:.0f} % of a "
            f"design, whose first loops begin at z = 1/20; ours {spent['ours']:.0f} products a design for "
            f"{spent['report']:.0f}, and 1 / {ratio:.0f} of the seconds of the step",
            share > 0.5,
            "" if share > 0.5 else "Inner loops without a preconditioner take more products here.",
        ),
    ]
    return Outcome({"Designs": rows, "One step on a larger grid": large}, claims)


def timed_steps(grid: int, start: int, lines: int, k: int) -> tuple[list[Row], float]:
    """Seconds and products of the step after so many lines, from the state that our design has there."""
    one = head(grid)
    centre = list(range((grid - start) // 2, (grid + start) // 2))
    state = md.run_design([one], "information-gain", lines + 1, RECIPE, start=centre)
    warm, ours = state.warm[0], state.trace.steps[-1]
    before = [int(line) for line in state.trace.lines[:lines]]
    model = ReportModel.of(one.model(before, one.signal_level(centre)))
    z = np.concatenate([np.broadcast_to(warm.z[0], (1, *one.shape)), warm.z[1]]).astype(float)
    began = time.process_time()
    step = report_step(model, warm.mean.astype(complex), z, k, np.random.default_rng(0))
    seconds = time.process_time() - began
    rows: list[Row] = [
        {"grid": grid, "after lines": lines, "step": "report", "products": step.products, "s": seconds},
        {"grid": grid, "after lines": lines, "step": "ours", "products": ours.matvecs, "s": ours.seconds},
    ]
    return rows, seconds / ours.seconds
