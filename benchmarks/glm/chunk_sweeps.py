"""Logistic regression in chunks: how far every sweep of Laplace propagation is from the MAP, and what it costs."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg

from mri_design import GeneralizedLinearModel, LaplacePropagation, SiteBlock
from mri_design.evaluation.tables import Row
from mri_design.inference.laplace_propagation import Schedule
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.dense import Dense, RowsOnDisk
from mri_design.potentials.likelihoods import Logistic
from mri_design.potentials.priors import Gaussian

PRIOR = 1.0
SEED = 0


@dataclass(frozen=True)
class WholeNewton:
    """MAP of logistic regression by Newton's method on all rows at once.

    Parameters
    ----------
    theta, hessian : arrays
        The minimiser and the second derivative there.
    steps : int
        Newton steps.
    seconds : float
        Of the processor, for them.
    """

    theta: Array
    hessian: Array
    steps: int
    seconds: float


def newton_on_all(rows: Array, labels: Array, prior: float = PRIOR) -> WholeNewton:
    """The reference of this part, written apart from the engine: full steps, to rounding."""
    began = time.process_time()
    theta = np.zeros(rows.shape[1])
    for steps in range(1, 51):  # noqa: B007 (reported)
        chance = 1 / (1 + np.exp(-labels * (rows @ theta)))
        weights = chance * (1 - chance)
        hessian = (rows.T * weights) @ rows + prior * np.eye(len(theta))
        step = scipy.linalg.solve(hessian, rows.T @ (labels * (1 - chance)) - prior * theta, assume_a="pos")
        theta = theta + step
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(theta):
            break
    return WholeNewton(theta, hessian, steps, time.process_time() - began)


def logistic_model(rows: LinearOperator, labels: Array, prior: float = PRIOR) -> GeneralizedLinearModel:
    """Logistic regression with independent Gaussian weights."""
    n = rows.in_size
    return GeneralizedLinearModel.of_sites(
        [SiteBlock("labels", rows, Logistic(labels)), SiteBlock("weights", Dense(np.eye(n)), Gaussian(prior))]
    )


@dataclass(frozen=True)
class SweepTrace:
    """One run of the engine.

    Parameters
    ----------
    errors : list of float
        Per sweep |theta - MAP| / |MAP|.
    largest : list of float
        Per sweep the largest coordinate of |theta - MAP|.
    seconds : list of float
        Processor seconds since the start, after every sweep.
    newton_steps : tuple of int
        Per sweep, summed over chunks.
    covariance_error : float
        Largest entry of the covariance less the inverse Hessian, relative to the latter's largest.
    """

    errors: list[float]
    largest: list[float]
    seconds: list[float]
    newton_steps: tuple[int, ...]
    covariance_error: float

    def sweeps_to(self, error: float) -> int | None:
        """How many sweeps reach a relative error; None where they do not."""
        return next((k + 1 for k, found in enumerate(self.errors) if found <= error), None)

    def seconds_to(self, error: float) -> float | None:
        """When that was."""
        sweeps = self.sweeps_to(error)
        return None if sweeps is None else self.seconds[sweeps - 1]


def traced(
    model: GeneralizedLinearModel, whole: WholeNewton, engine: LaplacePropagation, seed: int = SEED
) -> SweepTrace:
    """Run the engine and hold every sweep's mean against the MAP."""
    stamps: list[float] = []
    began = time.process_time()
    found = engine.propagate(
        model, np.random.default_rng(seed), callback=lambda info: stamps.append(time.process_time() - began)
    )
    away = [mean - whole.theta for mean in found.sweep_means]
    scale = float(np.linalg.norm(whole.theta))
    inverse = np.linalg.inv(whole.hessian)
    covariance = np.linalg.inv(found.posterior.precision.dense_real())
    return SweepTrace(
        [float(np.linalg.norm(one)) / scale for one in away],
        [float(np.abs(one).max()) for one in away],
        stamps,
        found.newton_steps,
        float(np.abs(covariance - inverse).max() / np.abs(inverse).max()),
    )


@dataclass(frozen=True)
class SweepRun:
    """A schedule, how often, and how much of a new message is taken."""

    label: str
    schedule: Schedule
    sweeps: int
    damping: float = 1.0


def sweep_rows(
    name: str, rows: Array, labels: Array, chunks: int, runs: Sequence[SweepRun], seed: int = SEED
) -> tuple[list[Row], dict[str, SweepTrace]]:
    """A table of some runs on the partition of one seed, and their traces."""
    whole = newton_on_all(rows, labels)
    model = logistic_model(Dense(rows), labels)
    table: list[Row] = []
    traces: dict[str, SweepTrace] = {}
    for one in runs:
        size = -(-len(labels) // chunks)
        engine = LaplacePropagation(
            chunk_size=size, schedule=one.schedule, max_sweeps=one.sweeps, tolerance=0.0, damping=one.damping
        )
        trace = traces[one.label] = traced(model, whole, engine, seed)
        for sweep, (error, largest, seconds) in enumerate(
            zip(trace.errors, trace.largest, trace.seconds, strict=True), start=1
        ):
            table.append(
                {
                    "section": "sweeps", "data": name, "partition": seed, "schedule": one.label, "chunks": chunks,
                    "sweep": sweep,
                    "relative error": error, "largest error": largest, "seconds": seconds,
                    "Newton steps": trace.newton_steps[sweep - 1], "covariance error": trace.covariance_error,
                }
            )  # fmt: skip
    table.append(
        {
            "section": "sweeps", "data": name, "partition": seed, "schedule": "Newton on all rows", "chunks": 1,
            "sweep": whole.steps,
            "seconds": whole.seconds,
        }
    )  # fmt: skip
    return table, traces


def memory_rows(name: str, rows: Array, labels: Array, chunks: int, folder: Path) -> list[Row]:
    """Peak of numbers held while B is in memory, and while it stays in a file."""
    path = folder / "rows.npy"
    np.save(path, rows)
    size = -(-len(labels) // chunks)
    found: list[Row] = []
    for where, operator in (("file", RowsOnDisk(path, slab_rows=size)), ("memory", None)):
        tracemalloc.start()
        analysis = Dense(np.array(rows)) if operator is None else operator
        LaplacePropagation(chunk_size=size, max_sweeps=4).infer(
            logistic_model(analysis, labels), np.random.default_rng(SEED)
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found.append({"section": "memory", "data": name, "rows in": where, "chunks": chunks, "peak MB": peak / 1e6})
    path.unlink()
    return found
