"""The double loop on a9a with a Gaussian prior: its bound, and the time it takes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mri_design.active_learning.labels import LabelPool
from mri_design.evaluation.tables import Row
from mri_design.inference.criterion import evidence_bound
from mri_design.inference.double_loop import DoubleLoop
from mri_design.variances.exact import Exact
from mri_design.variances.lanczos import Lanczos

ENGINES = {
    "exact": DoubleLoop(Exact(), outer_iterations=30, tolerance=1e-5),
    "Lanczos, 80 steps": DoubleLoop(Lanczos(80), outer_iterations=5, tolerance=1e-3),
}
REPEATS = 3
PEER = {1000: (386.948401, 2.95), 4000: (1415.899700, 12.9)}
"""Rows to glm-ie v1.5's converged bound with exact variances, and its seconds (Octave, measured once on a loaded
machine of the same kind)."""


def bound_rows(features: csr_array, labels: NDArray[np.float64], sizes: Sequence[int]) -> list[Row]:
    """One row per estimator and number of cases (all where there are fewer): the shortest of three cold calls."""
    rows: list[Row] = []
    for name, engine in ENGINES.items():
        for size in sizes:
            count = min(size, len(labels))
            model = LabelPool(features[:count]).model(np.arange(count), labels[:count])
            wall, seconds = [], []
            for _ in range(REPEATS):
                began, spent = perf_counter(), process_time()
                posterior = engine.infer(model, np.random.default_rng(0))
                seconds.append(process_time() - spent)
                wall.append(perf_counter() - began)
            bound, theirs = PEER.get(count, (None, None)) if name == "exact" else (None, None)
            rows.append(
                {
                    "variances": name,
                    "rows": count,
                    "-log Z": -evidence_bound(model, posterior.criterion[-1]),
                    "which is": "a bound" if posterior.criterion_kind == "exact" else "an estimate",
                    "glm-ie's bound": bound,
                    "outer loops": posterior.convergence.iterations,
                    "products with A": posterior.convergence.matvecs,
                    "CPU s": min(seconds),
                    "wall s": min(wall),
                    "glm-ie's s": theirs,
                    "times faster": None if theirs is None else theirs / min(seconds),
                }
            )
    return rows
