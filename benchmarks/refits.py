"""Error models of `Calibrated` learnt in other ways than the shipped ones; `mask_rules.py` judges their masks.

Objects are random heads, random heads cut so that they fill the field of view, and such with water and fat of different
phase; masks are drawn blindly, drawn by the error's energy, or designed by the shipped model with its rule of
neighbours; several coils are 2 to 16, and the weights may depend on the logarithm of their number.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from error_model import NOISES, ROUNDS, START, TEMPER, Numbers, State, Table, knowledge, table
from mri_design.design.line_variances import expected_energies
from numpy.typing import NDArray

from mri_design.design.constraints import centre_lines
from mri_design.design.neighbourhood import neighbourhood
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategies.error_model import (
    FEATURES,
    ErrorModel,
    ErrorModelName,
    line_features,
    shipped_error_model,
)
from mri_design.experiment.checkpoint import fingerprint
from mri_design.experiment.designing import design_inference
from mri_design.experiment.recipe import load_recipe
from mri_design.inference.base import WarmStart
from mri_design.model.mr_image import MRSlice
from mri_design.scan.data import ImageStack
from mri_design.scan.simulation.phase import smooth_phase
from mri_design.scan.simulation.random_head import random_head
from mri_design.scan.simulation.scanner import simulate_scan

SIDES = (128, 64, 128, 96)
"""Grids, object by object; masks grow to half of the lines."""
COILS = (4, 8, 2, 16)
NEIGHBOURS = (0.5, 0.25)
WITH_COILS = (
    "constant",
    "log(0.1 + smaller gap)",
    "measured at distance 1",
    "log expected energy of the error",
)
"""Features whose weights may depend on the number of coils."""
SLOPE = 0.3
"""Standard deviation that the change of such a weight per unit of log(coils / 4) has before anything is seen."""


@dataclass(frozen=True)
class Learnt:
    """Objects of one kind: heads alone or others among them, one coil or several."""

    several: bool
    others: bool
    sides: tuple[int, ...] = SIDES

    @property
    def shipped(self) -> ErrorModelName:
        """The model that designs a third of the masks."""
        return "several coils" if self.several else "one coil"


def random_object(side: int, rng: np.random.Generator, head: bool) -> NDArray[np.complex128]:
    """A head; or one whose middle fills the field of view; or this with the phase of fat and water."""
    if head:
        return random_head(side, rng)
    middle = slice(side // 2, side // 2 + side)
    image = random_head(2 * side, rng)[middle, middle]
    image /= np.percentile(np.abs(image), 99.5)
    if rng.uniform() < 0.5:
        other = np.abs(random_head(side, rng, phase="flat"))
        fat = other > np.quantile(other, rng.uniform(0.4, 0.8))
        phase = rng.uniform(0.5, np.pi) * fat + smooth_phase((side, side), rng, amplitude=rng.uniform(0, np.pi))
        image = np.abs(image) * np.exp(1j * phase)
    return image


def measured(seed: int, learnt: Learnt) -> tuple[int, list[State]]:
    """Number of coils; and what was known along one mask of one object, and what the error was."""
    rng = np.random.default_rng([seed, learnt.several, 17])
    side, coils = learnt.sides[seed % len(learnt.sides)], COILS[(seed + seed // 4) % 4] if learnt.several else 1
    head = not learnt.others or seed % 2 == 0
    stack = ImageStack(random_object(side, rng, head)[None], name=f"object {seed}")
    data = simulate_scan(stack, noise=float(rng.choice(NOISES)), phase="own", n_coils=coils, rng=rng)
    one, truth = MRSlice.from_data(data), data.reference[0]
    every = one.encoding()
    aim = every(truth.astype(np.complex64))
    way = ("blind", "error", "rule")[seed // 2 % 3]
    lines = list(centre_lines(one.measured, int(rng.integers(4, 12))))
    sharpness, tilt = rng.uniform(1.5, 9), rng.normal()
    k = np.arange(side) - side // 2
    blindly = (1 - np.abs(k) / (side // 2 + 1)) ** sharpness * np.exp(tilt * np.sign(k))
    signal, warm = one.signal_level(lines), None
    engine = design_inference(Calibrated(), load_recipe("local"))
    start, rows, found = shipped_error_model(learnt.shipped), [], []
    states: list[State] = []
    while len(lines) <= side // 2:
        posterior = engine.infer(one.model(lines, signal), np.random.default_rng(len(lines)), warm_start=warm)
        warm = WarmStart.from_posterior(posterior)
        error = np.sum(np.abs(every(posterior.mean) - aim) ** 2, axis=(0, 2), dtype=np.float64)
        now = None
        if way == "rule" or len(lines) % 2 == seed % 2:
            now = knowledge(one, lines, expected_energies([posterior], np.random.default_rng(1), 12))
        if now is not None and len(lines) % 2 == seed % 2:
            states.append(vars(now) | {"error": error})
        left = np.ones(side, dtype=bool)
        left[lines] = False
        if way == "rule":
            assert now is not None
            features = line_features(now)
            model = start.given(np.array(rows), np.array(found), np.full(len(rows), 0.01)) if rows else start
            scores = neighbourhood(np.where(left, model.marginal_energies(features), 0), NEIGHBOURS)
            line = int(np.argmax(np.where(left, scores, -np.inf)))
            rows.append(features[line])
            found.append(float(np.log(error[line] / now.unit)))
        else:
            weight = np.where(left, blindly if way == "blind" else error**1.5, 0)
            line = int(rng.choice(side, p=weight / weight.sum()))
        lines.append(line)
    return coils, states


@dataclass(frozen=True)
class Refit:
    """A mean of the weights for every number of coils, one covariance, and the spread within an object."""

    mean: Numbers
    slope: Numbers
    covariance: Numbers
    spread: float

    def model(self, coils: int) -> ErrorModel:
        """The error model of a scan."""
        return ErrorModel(self.mean + np.log(coils / 4) * self.slope, self.covariance, self.spread)


def fitted(tables: Sequence[Table], coils: Sequence[int], with_slope: bool) -> Refit:
    """Expectation maximisation as in `error_model.fitted`, with some means that are linear in log(coils / 4).

    Mean weights and slopes are generalised least squares over objects, whose weights differ by the covariance.
    """
    n = len(FEATURES)
    chosen = np.eye(n)[:, [FEATURES.index(name) for name in WITH_COILS] if with_slope else []]
    designs = [np.hstack([np.eye(n), np.log(count / 4) * chosen]) for count in coils]
    known = np.diag(np.append(np.zeros(n), np.full(chosen.shape[1], SLOPE**-2)))
    both = np.zeros(n + chosen.shape[1])
    covariance, spread2 = np.diag([START.get(name[:6], 1.0) for name in FEATURES]), 0.25
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(covariance + 1e-6 * np.eye(n))
        each, doubts, squares = [], [], 0.0
        for (x, y), design in zip(tables, designs, strict=True):
            doubt = np.linalg.inv(TEMPER * x.T @ x / spread2 + inverse)
            weights = doubt @ (TEMPER * x.T @ y / spread2 + inverse @ design @ both)
            each.append(weights)
            doubts.append(doubt)
            squares += float(np.sum((y - x @ weights) ** 2))
        precision = known + sum(design.T @ inverse @ design for design in designs)
        both = np.linalg.solve(precision, sum(d.T @ inverse @ w for d, w in zip(designs, each, strict=True)))
        apart = np.array([weights - design @ both for weights, design in zip(each, designs, strict=True)])
        covariance = np.mean(doubts, axis=0) + apart.T @ apart / len(each)
        spread2 = squares / sum(len(y) for _, y in tables)
    return Refit(both[:n], chosen @ both[n:], covariance, float(np.sqrt(spread2)))


IDENTITY = fingerprint({"code": [inspect.getsource(each) for each in (random_object, measured)]})[:12]
"""Of how objects are measured: kept ones of another kind are not taken."""


def kept(work: Path, seed: int, learnt: Learnt) -> tuple[int, Table]:
    """One object, from its file where there is one."""
    kind = f"{'several' if learnt.several else 'one'}-{'others' if learnt.others else 'heads'}-{max(learnt.sides)}"
    name = f"{kind}-{seed}-{IDENTITY}.npz"
    if not (work / name).exists():
        work.mkdir(parents=True, exist_ok=True)
        coils, states = measured(seed, learnt)
        x, y = table(states)
        np.savez(work / name, x=x, y=y, coils=coils)
        print(name, flush=True)
    with np.load(work / name) as stored:
        return int(stored["coils"]), (stored["x"], stored["y"])
