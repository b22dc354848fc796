"""Knowledge of `Calibrated` designs before they see a scan, learnt from random heads, without any real data.

    OMP_NUM_THREADS=1 python benchmarks/error_model.py --jobs 2

draws heads, measures each along masks of many kinds, records what the posterior expected of every line and what its
error really was, and fits the mean and the covariance over heads of the weights in `line_features`. It
writes mri_design/design/error_model.json and results/error-model/README.md with the fit's own account:
errors on heads that it did not see. Half an hour on two cores; ``--heads`` makes it shorter. Finished heads are kept
in ``--work``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from mri_design.design.calibrated import FEATURES, ErrorModel, LineKnowledge, line_features
from mri_design.design.greedy import energies
from mri_design.evaluation.tables import markdown_text
from mri_design.experiment.stored_designs import fingerprint
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.slice import SliceModel, phase_refined
from mri_design.model.sparsity import DEFAULT_PRIOR, PhasePrior
from mri_design.readouts import centre_lines
from mri_design.scan.data import ImageStack
from mri_design.scan.io.atomic import write_text
from mri_design.scan.scenes import random_head
from mri_design.scan.simulation import simulate_scan
from mri_design.variances.control_variate import ControlVariate, MonteCarlo

Numbers = NDArray[np.float64]
Table = tuple[Numbers, Numbers]
"""Features of unmeasured lines, (rows, features), and the logarithm of what the errors were, (rows,)."""
State = dict[str, NDArray[np.generic]]
"""`LineKnowledge` at one moment of one scan, and the energy of the error on every line."""

SIDES = (128, 64, 128, 192)
"""Grids, head by head; masks grow to half of the lines."""
NOISES = (0.004, 0.007, 0.015, 0.03)
ENGINE = DoubleLoop(ControlVariate(4, 0.07), outer_iterations=1, tolerance=0.03)
SAMPLED = replace(ENGINE, variances=MonteCarlo(6, 0.02))
RATIO = 2.0
"""Imaginary ratio of the phase-aware model: the default recipe's."""


@dataclass(frozen=True)
class Kind:
    """A kind of scan and of model: its name, how many heads to draw, how many coils, whether it knows the phase."""

    name: str
    heads: int
    coils: int = 1
    aware: bool = False


TEMPER = 0.05
"""A line's error is nearly the same after the next line: of twenty states of a scan one counts."""
ROUNDS = 60
START = {"k near": 0.001}
"""First variances of weights, where not 1: with so few heads places should take no more than they need."""


def measured(seed: int, kind: Kind) -> list[State]:
    """What was known along one mask of one head, and what the error was."""
    rng = np.random.default_rng([seed, kind.coils])
    side = SIDES[seed % len(SIDES)]
    stack = ImageStack(random_head(side, rng)[None], name=f"head {seed}")
    data = simulate_scan(stack, matrix=None, noise=float(rng.choice(NOISES)), phase="own", n_coils=kind.coils, rng=rng)
    one, truth = data.slice_model(), data.reference[0]
    every = one.encoding()
    aim = every(truth.astype(np.complex64))
    lines = list(centre_lines(one.measured, int(rng.integers(4, 12))))
    blind, sharpness, tilt = rng.uniform() < 1 / 3, rng.uniform(1.5, 9), rng.normal()
    signal, warm = one.signal_level(lines), None
    if kind.aware:
        one = replace(one, phase=PhasePrior(None, RATIO).seen_in(one.central_image(lines), one.noise_variance))
    k = np.arange(side) - side // 2
    blindly = (1 - np.abs(k) / (side // 2 + 1)) ** sharpness * np.exp(tilt * np.sign(k))
    states: list[State] = []
    while len(lines) <= side // 2:
        engine = replace(SAMPLED if kind.aware or kind.coils > 1 else ENGINE, outer_iterations=3 if warm is None else 1)
        posterior = engine.infer(one.model(lines, signal), np.random.default_rng(0), warm_start=warm)
        warm, one = WarmStart.from_posterior(posterior), phase_refined(one, posterior.mean)
        error = np.sum(np.abs(every(posterior.mean) - aim) ** 2, axis=(0, 2), dtype=np.float64)
        if len(lines) % 2 == seed % 2:
            expected = energies(posterior, one.candidates, np.random.default_rng(1), 12)
            states.append(vars(knowledge(one, lines, expected)) | {"error": error})
        left = np.ones(side, dtype=bool)
        left[lines] = False
        weight = np.where(left, blindly if blind else error**1.5, 0)
        lines.append(int(rng.choice(side, p=weight / weight.sum())))
    return states


def table(states: Sequence[State]) -> Table:
    """Rows for the regression: all lines of all states that were not measured."""
    features, found = [], []
    for state in states:
        known = LineKnowledge(**{name: value for name, value in state.items() if name != "error"})
        left = ~known.measured
        features.append(line_features(known)[left])
        found.append(np.log(state["error"][left] / known.unit))
    return np.concatenate(features), np.concatenate(found)


def knowledge(one: SliceModel, lines: Sequence[int], expected: Numbers) -> LineKnowledge:
    """Features that a design would know of a slice."""
    flags = np.zeros(one.shape[0], dtype=bool)
    flags[list(lines)] = True
    energies = np.sum(np.abs(one.kspace) ** 2, axis=(0, 2), dtype=np.float64)
    noise = 2 * one.noise_variance * one.kspace.shape[0] * one.shape[1]
    return LineKnowledge(flags, energies * flags, noise, expected)


def fitted(tables: Sequence[Table]) -> tuple[Numbers, Numbers, float]:
    """Mean and covariance over heads of the weights, and the spread within a head: expectation maximisation.

    Laird & Ware, "Random-effects models for longitudinal data", Biometrics 38 (1982).
    """
    n = len(FEATURES)
    mean, covariance, spread2 = np.zeros(n), np.diag([START.get(name[:6], 1.0) for name in FEATURES]), 0.25
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(covariance + 1e-6 * np.eye(n))
        each, doubts, squares = [], [], 0.0
        for x, y in tables:
            doubt = np.linalg.inv(TEMPER * x.T @ x / spread2 + inverse)
            weights = doubt @ (TEMPER * x.T @ y / spread2 + inverse @ mean)
            each.append(weights)
            doubts.append(doubt)
            squares += float(np.sum((y - x @ weights) ** 2))
        mean = np.mean(each, axis=0)
        apart = np.array(each) - mean
        covariance = np.mean(doubts, axis=0) + apart.T @ apart / len(each)
        spread2 = squares / sum(len(y) for _, y in tables)
    return mean, covariance, float(np.sqrt(spread2))


def judged(tables: Sequence[Table]) -> dict[str, float]:
    """Errors of what the model predicts for heads that it was not fitted to, in two halves."""
    ranks, ratios = [], []
    halves = [[t for i, t in enumerate(tables) if i // len(SIDES) % 2 == half] for half in (0, 1)]  # all grids in each
    for seen, unseen in (halves, halves[::-1]):
        model = ErrorModel(*fitted(seen))
        for x, y in unseen:
            predicted = model.energies(x)
            ranks.append(spearmanr(predicted, y)[0])
            ratios.append(predicted.sum() / np.exp(y).sum())
    return {
        "heads": len(tables),
        "rank correlation within a head, mean": float(np.mean(ranks)),
        "predicted / actual energy, median": float(np.median(ratios)),
        "share within a factor of 2": float(np.mean(np.abs(np.log(ratios)) < np.log(2))),
    }


MADE_BY = (Path(inspect.getfile(random_head)).read_text("utf-8"), inspect.getsource(measured))
IDENTITY = fingerprint({"code": MADE_BY, "settings": repr((SAMPLED, ENGINE, DEFAULT_PRIOR, NOISES, SIDES))})[:12]
"""Checksum of the measurement of heads: kept ones of another kind are not taken."""

KINDS = (Kind("one coil", 60), Kind("one coil, phase-aware", 16, aware=True), Kind("several coils", 12, coils=4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=60, help="of each kind, at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/error-model"))
    parser.add_argument("--model", type=Path, default=Path("mri_design/design/error_model.json"))
    parser.add_argument("--report", type=Path, default=Path("results/error-model/README.md"))
    chosen = parser.parse_args()
    models: dict[str, dict[str, object]] = {}
    rows = []
    for kind in KINDS:
        heads = min(kind.heads, chosen.heads)
        tables = collected(chosen.work, kind, heads, chosen.jobs)
        mean, covariance, spread = fitted(tables)
        models[kind.name] = {
            "features": list(FEATURES),
            "mean": mean.round(5).tolist(),
            "covariance": covariance.round(6).tolist(),
            "spread": round(spread, 5),
        }
        rows.append({"scans": kind.name, **judged(tables), "spread within a head (nats)": spread})
    write_text(chosen.model, rows_on_lines(models))
    weights = [
        {"feature": f, **{n: f"{m['mean'][i]:.2f} ± {m['covariance'][i][i] ** 0.5:.2f}" for n, m in models.items()}}
        for i, f in enumerate(FEATURES)
    ]
    chosen.report.parent.mkdir(parents=True, exist_ok=True)
    write_text(chosen.report, TEXT + markdown_text(rows) + "\n\n" + markdown_text(weights) + "\n")


def rows_on_lines(models: dict[str, dict[str, object]]) -> str:
    """JSON with a line for every row of a matrix, so that changes can be read."""
    text = json.dumps(models, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda row: json.dumps(json.loads(row[0])), text) + "\n"


TEXT = """# What a calibrated design knows before it sees a scan

`OMP_NUM_THREADS=1 python benchmarks/error_model.py --jobs 2` made
`mri_design/design/error_model.json` and this page, from random heads
(`mri_design.scan.scenes`) and nothing else. Weights are mean ± standard deviation over
heads; the first table judges them on heads that they were not fitted to, before any line of those is seen.

"""


def collected(work: Path, kind: Kind, heads: int, jobs: int) -> list[Table]:
    """A table for every head; what is in the folder already is not measured again."""
    work.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool:
        return [table(states) for states in pool.map(partial(kept, work, kind), range(heads))]


def kept(work: Path, kind: Kind, seed: int) -> list[State]:
    """One head, from its file where there is one."""
    path = work / f"{kind.name}-{seed}-{IDENTITY}.npz"
    if not path.exists():
        with threadpool_limits(1):
            states = measured(seed, kind)
        together = {name: np.array([state[name] for state in states]) for name in states[0]}
        np.savez(path.with_suffix(".part.npz"), **together)
        path.with_suffix(".part.npz").replace(path)
        print(f"{kind.name}, head {seed}", flush=True)
    with np.load(path, allow_pickle=False) as stored:
        together = dict(stored)
    return [{name: values[i] for name, values in together.items()} for i in range(len(together["noise"]))]


if __name__ == "__main__":
    main()
