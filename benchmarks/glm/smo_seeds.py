"""Does a sweep of Laplace propagation give SMO a head start? (Tables 2 and 3 of the paper.)"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from glm.low_rank_kernel import gaussian_kernel, incomplete_cholesky
from glm.small_smo import Machine, smo, usable_start

from mri_design import GeneralizedLinearModel, Hinge, LaplacePropagation, SiteBlock
from mri_design.evaluation.tables import Row
from mri_design.operators.base import Array
from mri_design.operators.dense import Dense
from mri_design.potentials.priors import Gaussian

OFFSET = 10.0
"""Standard deviation of the offset b under the seeding model's prior: wide, where the machine has none."""
PUBLISHED = {
    ("Adult1", 0.1): (2.84, 2.04, 7.65), ("Adult1", 0.5): (5.57, 3.99, 9.215),
    ("Adult1", 1.0): (5.48, 7.25, 10.885), ("Adult1", 5.0): (107.37, 110.07, 307.135),
    ("Adult4", 0.1): (20.42, 13.26, 59.935), ("Adult4", 0.5): (46.29, 40.82, 63.645),
    ("Adult4", 1.0): (80.33, 64.37, 107.475), ("Adult4", 5.0): (1921.19, 1500.42, 1427.925),
    ("Web1", 0.1): (21.36, 15.65, 27.34), ("Web1", 0.5): (34.64, 35.66, 60.12),
    ("Web1", 1.0): (61.15, 38.56, 63.745), ("Web1", 5.0): (224.15, 62.41, 519.67),
    ("Web4", 0.1): (63.76, 77.05, 95.10), ("Web4", 0.5): (140.61, 149.80, 156.525),
    ("Web4", 1.0): (254.84, 298.59, 232.12), ("Web4", 5.0): (1959.08, 3188.75, 2223.225),
}  # fmt: skip
"""Seconds with a parallel seed, a serial seed, and none."""
ORDER = ("parallel", "serial", "none")


def hinge_seed(factor: Array, labels: Array, price: float, chunks: int, schedule: str) -> Array:
    """alpha after one sweep over chunks of hinge sites on the rows (factor, offset)."""
    rows = np.column_stack([factor, np.full(len(factor), OFFSET)])
    model = GeneralizedLinearModel.of_sites(
        [
            SiteBlock("labels", Dense(rows), Hinge(labels, price)),
            SiteBlock("weights", Dense(np.eye(rows.shape[1])), Gaussian(1.0)),
        ]
    )
    engine = LaplacePropagation(chunk_size=-(-len(labels) // chunks), schedule=schedule, max_sweeps=1, newton_steps=200)
    found = engine.propagate(model, np.random.default_rng(0))
    alpha = np.empty(len(labels))
    for chunk, message in zip(found.chunks, found.messages, strict=True):
        alpha[chunk.sites] = message.slope[:, 0] * labels[chunk.sites]
    return alpha


def seed_rows(
    cases: Mapping[str, tuple[Array, Array]],
    prices: Mapping[str, Sequence[float]],
    chunks: Mapping[str, int],
    rank: int,
) -> list[Row]:
    """Steps and seconds of SMO from nothing and from the seed of either schedule, with the seed's own time.

    Of two ways to choose pairs, that of libraries now and one nearer to the paper's.
    """
    table: list[Row] = []
    for name, (rows, labels) in cases.items():
        K = gaussian_kernel(rows, rows)
        began = time.process_time()
        factor = incomplete_cholesky(rows, rank)[0]
        factor_seconds = time.process_time() - began
        for price in prices[name]:
            starts: dict[str, tuple[Array | None, float]] = {"none": (None, 0.0)}
            for schedule in ("serial", "parallel"):
                began = time.process_time()
                seed = hinge_seed(factor, labels, price, chunks[name], schedule)
                starts[schedule] = usable_start(seed, labels, price), time.process_time() - began
            for pairs in ("second order", "first order"):
                plain: Machine | None = None
                plain_seconds = 0.0
                for schedule, (start, seeding) in starts.items():
                    began = time.process_time()
                    machine = smo(K, labels, price, start, second_order=pairs == "second order")
                    seconds = time.process_time() - began
                    plain, plain_seconds = (plain, plain_seconds) if plain else (machine, seconds)
                    table.append(
                        {
                            "section": "seeds", "data": name, "cases": len(labels), "rank": factor.shape[1],
                            "chunks": chunks[name], "C": price, "schedule": schedule, "pairs": pairs,
                            "steps": machine.steps, "seconds": seconds,
                            "seed seconds": None if start is None else seeding,
                            "factor seconds": None if start is None else factor_seconds,
                            "steps saved, times": plain.steps / max(machine.steps, 1),
                            "seconds saved, times": plain_seconds / max(seconds, 1e-9),
                            "objective difference": abs(machine.objective / plain.objective - 1), "gap": machine.gap,
                            "paper s": PUBLISHED.get((name, price), (None,) * 3)[ORDER.index(schedule)],
                        }
                    )  # fmt: skip
    return table
