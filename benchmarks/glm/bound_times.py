"""The double loop on a9a with a Gaussian prior: its bound, and the time it takes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mri_design.design import LabelPool
from mri_design.evaluation.tables import Row
from mri_design.inference import DoubleLoop, evidence_bound
from mri_design.variances import Exact

ENGINE = DoubleLoop(Exact(), outer_iterations=30, tolerance=1e-5)
REPEATS = 3
PEER = {1000: (385.386, 386.948401, 2.95), 4000: (1408.755, 1415.899700, 12.9)}
"""Rows to glm-ie v1.5's reported value by Lanczos, its converged bound with exact variances, and its seconds (Octave,
measured once on a loaded machine of the same kind)."""


def bound_rows(features: csr_array, labels: NDArray[np.float64], sizes: Sequence[int]) -> list[Row]:
    """One row per number of cases (all where there are fewer): the shortest of three calls from a cold start."""
    rows: list[Row] = []
    for size in sizes:
        count = min(size, len(labels))
        model = LabelPool(features[:count]).model(np.arange(count), labels[:count])
        seconds = []
        for _ in range(REPEATS):
            began = perf_counter()
            posterior = ENGINE.infer(model, np.random.default_rng(0))
            seconds.append(perf_counter() - began)
        _, bound, theirs = PEER.get(count, (None, None, None))
        rows.append(
            {
                "rows": count,
                "bound on -log Z": -evidence_bound(model, posterior.criterion[-1]),
                "glm-ie's bound": bound,
                "outer loops": posterior.convergence.iterations,
                "products with A": posterior.convergence.matvecs,
                "seconds": min(seconds),
                "glm-ie's seconds": theirs,
                "times faster": None if theirs is None else theirs / min(seconds),
            }
        )
    return rows
