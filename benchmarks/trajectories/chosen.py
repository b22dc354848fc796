"""Interleaf angles chosen one after the other by the posterior's information, as the papers do."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from trajectories.scenes import Scene, engine
from trajectories.sets import ACCELERATION, error_row, interleaf

from mri_design.active_learning.shots import drawn_root, shot_gain
from mri_design.evaluation.tables import Row
from mri_design.inference.base import WarmStart
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.scan.trajectories.radial import equispaced_angles, turned

CHOSEN = "chosen by information"
START = 2
DRAWS = 12


def chosen_shots(scene: Scene, one: Array, count: int, candidates: int, seed: int = 0) -> Array:
    """Greedy design (shot, sample, 2): the first two candidates a quarter turn apart, then the most informative each.

    Every decision sees the data of the shots so far only. Candidates are angles over the full turn.
    """
    every = turned(one, equispaced_angles(candidates, turn=2 * np.pi))
    taken = [0, candidates // 4][:START]
    rng, posterior = np.random.default_rng([seed, 3]), None
    while len(taken) < count:
        warm = None if posterior is None else WarmStart.from_posterior(posterior)
        posterior = engine().infer(scene.along(every[taken], seed), rng, warm_start=warm)
        root = drawn_root(posterior, rng, DRAWS)
        gains = [
            -np.inf if i in taken else shot_gain(root, shot, lambda k: NonUniformFourier(k, scene.shape)).gain
            for i, shot in enumerate(every)
        ]
        taken.append(int(np.argmax(gains)))
    return every[taken]


def chosen_rows(matrix: int, interleaves: int, scenes: Sequence[Scene], densities: Sequence[float]) -> list[Row]:
    """Designed sets on every scene, as rows of the fixed sets."""
    rows: list[Row] = []
    for density in densities:
        one = interleaf(matrix, interleaves, density)
        for scene in scenes:
            began = time.process_time()
            shots = chosen_shots(scene, one, interleaves, ACCELERATION * interleaves)
            spent = time.process_time() - began
            rows.append({"set": CHOSEN, "density": density} | dict(error_row(scene, shots)) | {"design CPU s": spent})
    return rows
