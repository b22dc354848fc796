"""Logistic regression in chunks: models, their MAP by Newton's method, and how far every sweep is from it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

import mri_design as md
from mri_design.glm import LaplacePropagation
from mri_design.operators import Dense
from mri_design.operators.base import LinearOperator
from mri_design.sites import Gaussian, Logistic

from . import data as sets

Values = NDArray[np.float64]
SIMULATED = "simulated data stand in for Adult and Web at this size"
UNSTATED = "The paper does not say when it takes sweeps for converged, and the number of sweeps depends on it."


def cases_of(folder: Path | None, name: str, count: int, seed: int = 0) -> tuple[sets.Rows, sets.Labels]:
    """So many cases of `a9a` or `w8a`; binary rows of that width and density from a logistic model without a folder."""
    rng = np.random.default_rng(seed)
    if folder is not None:
        rows, labels = sets.data_set(folder, name)
        chosen = np.sort(rng.permutation(len(labels))[:count])
        return rows[chosen], labels[chosen]
    rows, labels = sets.words_like(count, sets.FEATURES[name], 14.0 if name == "a9a" else 12.0, rng, 0.25)
    rows.data[:] = 1.0
    return rows, labels


def logistic_model(rows: LinearOperator | Values, labels: Values, prior: float = 1.0) -> md.GeneralizedLinearModel:
    """Logistic sites on the rows, and a Gaussian prior of that precision."""
    rows = rows if isinstance(rows, LinearOperator) else Dense(rows)
    weights = md.SiteBlock("weights", Dense(np.eye(rows.in_size)), Gaussian(prior))
    return md.GeneralizedLinearModel.of_sites([md.SiteBlock("labels", rows, Logistic(labels)), weights])


@dataclass(frozen=True)
class Mode:
    """The MAP, the Hessian there, Newton steps and seconds of the processor."""

    theta: Values
    hessian: Values
    steps: int
    seconds: float


def newton_on_all(rows: Values, labels: Values, prior: float = 1.0) -> Mode:
    """MAP of logistic regression by full Newton steps on all rows at once, written apart from the engine."""
    began = time.process_time()
    theta = np.zeros(rows.shape[1])
    for steps in range(1, 51):  # noqa: B007 (reported)
        chance = 1 / (1 + np.exp(-labels * (rows @ theta)))
        hessian = (rows.T * (chance * (1 - chance))) @ rows + prior * np.eye(len(theta))
        step = scipy.linalg.solve(hessian, rows.T @ (labels * (1 - chance)) - prior * theta, assume_a="pos")
        theta = theta + step
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(theta):
            break
    return Mode(theta, hessian, steps, time.process_time() - began)


@dataclass(frozen=True)
class Trace:
    """Per sweep: |theta - MAP| / |MAP|, its largest coordinate, and processor seconds since the start."""

    errors: list[float]
    largest: list[float]
    seconds: list[float]

    def sweeps_to(self, goal: float) -> int | None:
        """How many sweeps reach a relative error; None where they do not."""
        return next((k + 1 for k, found in enumerate(self.errors) if found <= goal), None)


def traced(model: md.GeneralizedLinearModel, theta: Values, engine: LaplacePropagation, seed: int = 0) -> Trace:
    """Sweep, and hold every sweep's mean against the MAP; the posterior after the last sweep is not made."""
    began = time.process_time()
    stamps: list[float] = []
    state = engine.init(model, np.random.default_rng(seed))
    engine.iterate(state, lambda info: stamps.append(time.process_time() - began))
    away = [np.asarray(mean) - theta for mean in state.sweeps.means]
    scale = float(np.linalg.norm(theta))
    return Trace(
        [float(np.linalg.norm(one)) / scale for one in away], [float(np.abs(one).max()) for one in away], stamps
    )
