"""What a posterior mean with standard deviations costs along spokes, and along lines of as many samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from trajectories.scenes import Scene, engine, model_of

from mri_design.evaluation.tables import Row
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.cartesian import cartesian
from mri_design.scan.trajectories.radial import equispaced_angles, radial_spokes


def cost_rows(scene: Scene, spokes: int, runs: int) -> list[Row]:
    """Medians of processor time, from the samples to mean and variances, the operator's own preparation included."""
    matrix = scene.shape[0]

    def along_spokes() -> GeneralizedLinearModel:
        return scene.along(radial_spokes(matrix, equispaced_angles(spokes)))

    def along_lines() -> GeneralizedLinearModel:
        X = cartesian(_lines(matrix, spokes), scene.shape)
        return model_of(X, X(scene.reference.astype(np.complex128)), 0)

    cases: dict[str, Callable[[], GeneralizedLinearModel]] = {"spokes": along_spokes, "lines": along_lines}
    engine().infer(along_lines(), np.random.default_rng(2))  # compiles
    rows: list[Row] = []
    for name, make in cases.items():
        seconds = []
        for _ in range(runs):
            model = make()
            began = time.process_time()
            posterior = engine().infer(model, np.random.default_rng(2))
            assert np.isfinite(posterior.image_variances).all()
            seconds.append(time.process_time() - began)
        rows.append(
            {
                "measured": name,
                "grid": matrix,
                "samples": int(np.prod(model.measurement.out_shape)),
                "CPU s": median(seconds),
                "products": posterior.convergence.matvecs,
                "outer loops": posterior.convergence.iterations,
                "runs": runs,
            }
        )
    return rows


def _lines(matrix: int, count: int) -> list[int]:
    """A centre and lines of variable density."""
    centre = range(matrix // 2 - count // 4, matrix // 2 + count // 4)
    others = [line for line in range(matrix) if line not in centre]
    weights = (1 - np.abs(np.array(others) - matrix // 2) / (matrix / 2 + 1)) ** 4
    rng = np.random.default_rng(0)
    drawn = rng.choice(others, count - len(centre), replace=False, p=weights / weights.sum())
    return sorted([*centre, *drawn.tolist()])
