"""Gaussian-process classification through a low-rank factor, by serial and parallel sweeps (Table 1 of the paper)."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from glm.chunk_sweeps import logistic_model, newton_on_all, traced
from glm.low_rank_kernel import incomplete_cholesky

from mri_design import LaplacePropagation
from mri_design.evaluation.tables import Row
from mri_design.operators.base import Array
from mri_design.operators.dense import Dense

CHUNK = 500
RANK = 750
GOALS = (1e-3, 1e-6)
"""Relative distances from the MAP; the paper does not say what its sweeps converged to."""
PUBLISHED = {
    ("Adult1", "factor"): 16.38, ("Adult1", "serial"): 25.72, ("Adult1", "parallel"): 53.90,
    ("Adult2", "factor"): 20.07, ("Adult2", "serial"): 33.02, ("Adult2", "parallel"): 75.76,
    ("Adult3", "factor"): 24.41, ("Adult3", "serial"): 47.05, ("Adult3", "parallel"): 106.88,
    ("Adult4", "factor"): 36.29, ("Adult4", "serial"): 75.71, ("Adult4", "parallel"): 202.88,
    ("Web1", "factor"): 20.33, ("Web1", "serial"): 34.33, ("Web1", "parallel"): 93.47,
    ("Web2", "factor"): 36.27, ("Web2", "serial"): 67.65, ("Web2", "parallel"): 88.37,
    ("Web3", "factor"): 37.09, ("Web3", "serial"): 92.36, ("Web3", "parallel"): 212.04,
    ("Web4", "factor"): 69.90, ("Web4", "serial"): 168.88, ("Web4", "parallel"): 251.92,
}  # fmt: skip
"""Seconds of Table 1, one 2.4 GHz processor of 2003."""


def kernel_rows(cases: Mapping[str, tuple[Array, Array]], rank: int = RANK, chunk: int = CHUNK) -> list[Row]:
    """For every data set: the factor, both schedules, and Newton's method on all rows at once."""
    table: list[Row] = []
    for name, (rows, labels) in cases.items():
        began = time.process_time()
        factor, left = incomplete_cholesky(rows, rank)
        shared: Row = {
            "section": "kernel", "data": name, "cases": len(labels), "rank": factor.shape[1],
            "chunks": -(-len(labels) // chunk), "trace left": float(left.mean()),
        }  # fmt: skip
        seconds = time.process_time() - began
        table.append({**shared, "schedule": "factor", "seconds": seconds, "paper s": PUBLISHED.get((name, "factor"))})
        whole = newton_on_all(factor, labels)
        table.append({**shared, "schedule": "Newton on all rows", "sweep": whole.steps, "seconds": whole.seconds})
        for schedule in ("serial", "parallel"):
            engine = LaplacePropagation(chunk_size=chunk, schedule=schedule, max_sweeps=8, tolerance=1e-5)
            trace = traced(logistic_model(Dense(factor), labels), whole, engine)
            table.append(
                {
                    **shared, "schedule": schedule, "sweep": len(trace.errors), "seconds": trace.seconds[-1],
                    "relative error": trace.errors[-1], "Newton steps": sum(trace.newton_steps),
                    **{f"sweeps to {goal:g}": trace.sweeps_to(goal) for goal in GOALS},
                    **{f"seconds to {goal:g}": trace.seconds_to(goal) for goal in GOALS},
                    "paper s": PUBLISHED.get((name, schedule)),
                }
            )  # fmt: skip
    return table


def subset(rows: Array, labels: Array, size: int, seed: int = 0) -> tuple[Array, Array]:
    """``size`` cases drawn without replacement, columns that are zero throughout left out."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(labels))[:size])
    part = rows[chosen]
    return part[:, part.any(axis=0)], labels[chosen]
