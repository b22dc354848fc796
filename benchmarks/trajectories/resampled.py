"""Spirals through the k-space of a measured scan with coils: fixed sets, and angles that `design` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from trajectories.scenes import RECIPE

from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import run_design, start_lines
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.reconstruction import InferenceOptions, reconstruct
from mri_design.experiment.strategy_names import make_strategy, strategy_names
from mri_design.experiment.trajectories.shots import shot_candidates, shot_slice


def resampled_rows(source: str | Path, count: int, densities: Sequence[float]) -> list[Row]:
    """Errors of every set of arms, as ``design --encoding spiral`` makes them of a scan, against the scan's image."""
    plain = RECIPE.replacing("simulation", matrix=16)  # of phantoms; files keep their size
    scan = prepare(load_input(source, plain).select_slice(0), plain, ordinary=True)
    on_grid, reference = scan.slice_model(0, plain), scan.reference(0)
    assert reference is not None
    rows: list[Row] = []
    for density in densities:
        for name in strategy_names("spiral"):
            recipe = plain.replacing("design", encoding="spiral", strategy=name).replacing("shots", density=density)
            rule = make_strategy(name, "spiral")
            shots = shot_candidates(recipe, rule, on_grid.shape, count, on_grid.n_coils)
            slice_model = shot_slice(on_grid, shots, np.random.default_rng(0), truth=None)
            first = start_lines(slice_model.measured, rule, count, recipe, 0, on_grid.n_coils, shots)
            lines = run_design([slice_model], rule, count, recipe, seed=0, start=first).trace.lines
            options = InferenceOptions(signal=slice_model.signal_level(lines))
            rng = np.random.default_rng(2)
            made = reconstruct(slice_model, lines, "mean", recipe, rng, with_std=False, options=options)
            rows.append(
                {
                    "scan": Path(source).stem,
                    "coils": on_grid.n_coils,
                    "noise": float(np.sqrt(on_grid.noise_variance) / np.percentile(np.abs(reference), 99.5)),
                    "set": name,
                    "density": density,
                    "arms": count,
                    "error": measure(made.image, reference).relative_l2,
                    "converged": made.convergence.converged,
                }
            )
    return rows
