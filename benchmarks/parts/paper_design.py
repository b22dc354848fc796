"""The sequential design of the package beside the papers' own algorithm: seconds, and how good the lines are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from parts.dense_posterior import DensePosterior, converged_posterior
from parts.paper_algorithm import PaperModel, PaperSettings, PaperStep, paper_step
from parts.problem import recipe_for, scan_of

from mri_design.design.constraints import centre_lines
from mri_design.design.engine import DesignEngine, DesignState
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.inference.base import WarmStart, cold_start
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.variances.columns import ExactByColumns

STRATEGY = "information-gain"


@dataclass(frozen=True)
class OurDesign:
    """A design of ours, with the state that inference left after every line."""

    scan: MRSlice
    signal: float
    states: dict[int, DesignState]
    seconds: float

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines in order."""
        return self.states[max(self.states)].trace.lines

    def model(self, count: int) -> GeneralizedLinearModel:
        """After the first ``count`` lines."""
        return self.scan.model(self.lines[:count], self.signal)


def engine_for(recipe: Recipe, seed: int) -> DesignEngine:
    """The engine as `run_design` builds it."""
    return DesignEngine(
        make_strategy(STRATEGY),
        recipe.inference.engine(extrapolated=False),
        first_loops=recipe.design.first_loops,
        step_loops=recipe.design.step_loops,
        seed=seed,
    )


def design_recipe(grid: int) -> Recipe:
    """The recipe our designs run with in all of this benchmark: the shipped `fast`, one coil."""
    return recipe_for(grid, 1, "fast")


@cache
def our_design(grid: int, start: int, target: int, seed: int) -> OurDesign:
    """From ``start`` centre lines to ``target``; the clock covers everything from the scan on. Run once."""
    recipe = design_recipe(grid)
    scan = scan_of(grid, 1, seed, recipe)
    engine = engine_for(recipe, seed)
    began = time.perf_counter()
    states: dict[int, DesignState] = {}
    state = engine.begin([scan], centre_lines(scan.measured, start))
    states[start] = state
    engine.run([scan], state, target, lambda state: states.__setitem__(len(state.trace.lines), state))
    return OurDesign(scan, states[start].signals[0], states, time.perf_counter() - began)


def paper_model(model: GeneralizedLinearModel) -> PaperModel:
    """The same model in the reference's plain terms."""
    pixels, differences = model.blocks
    rates = [float(block.potential.scale) for block in (pixels, differences, differences)]  # type: ignore[attr-defined]
    lines = [int(line) for line in model.measurement.lines]  # type: ignore[attr-defined]
    return PaperModel(lines, model.data[0].astype(complex), model.noise_variance, np.reshape(rates, (3, 1, 1)))


def stacked(z: tuple[Array, ...]) -> Array:
    """z of pixels and both differences as one array."""
    return np.concatenate([z[0][None], z[1]]).astype(float)


def seconds_rows(grid: int, start: int, target: int, k: int, timed: list[int], seed: int) -> list[Row]:
    """Our whole design; the reference's steps at a few line counts, each from the state our design has there.

    The last row adds up: the reference's seconds between the counts are interpolated linearly.
    """
    ours = our_design(grid, start, target, seed)
    steps = ours.states[target].trace.steps
    rows: list[Row] = []
    for count in timed:
        warm = ours.states[count].warm[0] if count > start else _first_state(ours)
        settings = PaperSettings(lanczos_steps=k)
        rng = np.random.default_rng(seed)
        taken = paper_step(paper_model(ours.model(count)), warm.mean.astype(complex), stacked(warm.z), settings, rng)
        own = steps[count - start].cost
        rows.append(_seconds_row(grid, f"after {count} lines", taken, own.seconds, own.matvecs, settings))
    decisions = np.arange(start, target)
    paper_seconds = float(np.sum(np.interp(decisions, timed, [float(row["paper s"]) for row in rows])))  # type: ignore[arg-type]
    paper_products = float(np.sum(np.interp(decisions, timed, [float(row["paper MVMs"]) for row in rows])))  # type: ignore[arg-type]
    rows.append(
        {
            "grid": grid,
            "what": f"whole design, {start} to {target} lines",
            "paper s": paper_seconds,
            "paper MVMs": round(paper_products),
            "k": k,
            "s": ours.seconds,
            "MVMs": sum(step.cost.matvecs for step in steps),
            "times ours": paper_seconds / ours.seconds,
        }
    )
    return rows


def _seconds_row(grid: int, what: str, taken: PaperStep, seconds: float, matvecs: int, settings: PaperSettings) -> Row:
    return {
        "grid": grid,
        "what": what,
        "paper s": taken.seconds,
        "paper MVMs": taken.products,
        "k": settings.lanczos_steps,
        "s": seconds,
        "MVMs": matvecs,
        "times ours": taken.seconds / seconds,
    }


def _first_state(ours: OurDesign) -> WarmStart:
    """What the reference starts from where our design has no posterior yet: the one our first decision left."""
    first = min(count for count in ours.states if ours.states[count].warm)
    return ours.states[first].warm[0]


def paper_lines(design: OurDesign, start: int, target: int, k: int, first_loops: int, seed: int) -> list[int]:
    """The reference's whole design on the same scan, from the same start."""
    lines = list(design.lines[:start])
    rng = np.random.default_rng(seed)
    begin = cold_start(design.model(start))
    z = stacked(
        tuple(np.broadcast_to(a, b.site_shape) for a, b in zip(begin.z, design.model(start).blocks, strict=True))
    )
    u = begin.mean.astype(complex)
    while len(lines) < target:
        model = paper_model(design.scan.model(lines, design.signal))
        step = paper_step(model, u, z, PaperSettings(k), rng, 1 if len(lines) > start else first_loops)
        u, z = step.u, step.z
        lines.append(step.line)
    return lines


def regret_rows(grid: int, start: int, target: int, k: int, every: int, seeds: Sequence[int]) -> list[Row]:
    """Our designs of all seeds, and the papers' of the first, whole; every so many-th decision held to exact scores.

    A decision's regret is what its line's exact information gain lacks to the largest one's, under the converged
    posterior with exact variances at the lines that this design had then.
    """
    rows: list[Row] = []
    for seed in seeds:
        rows += _regrets_of(grid, start, target, k if seed == seeds[0] else None, every, seed)
    return rows


def _regrets_of(grid: int, start: int, target: int, k: int | None, every: int, seed: int) -> list[Row]:
    """Rows of one seed; without ``k`` of our design alone."""
    recipe = design_recipe(grid)
    ours = our_design(grid, start, target, seed)
    found = {"ours": list(ours.lines)}
    if k is not None:
        found["paper"] = paper_lines(ours, start, target, k, recipe.design.first_loops, seed)
    known: dict[frozenset[int], Array] = {}
    rows: list[Row] = []
    for name, lines in found.items():
        chosen, best, worst = 0.0, 0.0, 0.0
        warm: WarmStart | None = None
        for count in range(start, target, every):
            key = frozenset(lines[:count])
            if key not in known:
                known[key], warm = exact_scores(ours.scan.model(lines[:count], ours.signal), ours.scan, warm)
            scores = np.where(np.isin(np.arange(grid), lines[:count]), -np.inf, known[key])
            gain, largest = scores[lines[count]], scores.max()
            chosen, best, worst = chosen + gain, best + largest, max(worst, 1 - gain / largest)
        rows.append(
            {
                "grid": grid,
                "seed": seed,
                "design": name,
                "k": k if name == "paper" else None,
                "lines chosen": target - start,
                "of which in both": None
                if k is None
                else len(set(found["ours"][start:]) & set(found["paper"][start:])),
                "decisions judged": len(range(start, target, every)),
                "regret": 1 - chosen / best,
                "worst regret": worst,
            }
        )
    return rows


def exact_scores(model: GeneralizedLinearModel, scan: MRSlice, warm: WarmStart | None) -> tuple[Array, WarmStart]:
    """Exact gains of all lines under the converged exact posterior, and a start for a neighbouring one."""
    posterior = converged_posterior(model, warm, variances=ExactByColumns(), tolerance=1e-3)
    gains = DensePosterior.of(posterior.precision).gains(scan.encoding())
    z = tuple(block.pooled(v) for block, v in zip(model.blocks, posterior.marginals.values, strict=True))
    return gains, WarmStart(posterior.mean, z)
