"""Measured scans: each m-th arm of a spiral one against all of them, and spirals run through a Cartesian one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from trajectories.sets import RECIPE

from mri_design.errors import InputError
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.design import run_design
from mri_design.experiment.extent import DesignPlan, arm, candidates_of, register_trajectory, shot_slice
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.reconstruction import InferenceOptions, Method, reconstruct, reconstruct_prepared
from mri_design.experiment.strategies import make_strategy, strategy_names
from mri_design.operators.base import Array
from mri_design.operators.trajectory import interleaf_angles, turned
from mri_design.scan.data import TrajectoryData
from mri_design.scan.simulation import load_phantom_shots
from mri_design.scan.trajectories import nyquist_turns, spiral_curve

MATRIX = 320
"""Pixels of the scan's own size; on fewer the bottles beside the phantom would not fit."""
EVERY = (2, 3, 4, 6)
METHODS: tuple[Method, ...] = ("mean", "map", "least-squares", "zero-filled")
NAMES = {"zero-filled": "gridded"}
OWN, ALL = "of these arms", "of all arms"


def measured_spirals(file: Path, matrix: int = MATRIX) -> TrajectoryData:
    """The scan: ``kspace`` (coil, arm, sample) and ``trajectory`` (arm, sample, 2) in cycles per pixel."""
    with np.load(file) as stored:
        kspace, trajectory = stored["kspace"], stored["trajectory"].astype(np.float64)
    coils, arms = kspace.shape[:2]
    points = (matrix * trajectory).reshape(-1, 2)
    return TrajectoryData(kspace.reshape(1, coils, -1), points, (matrix, matrix), n_readouts=arms, name=file.stem)


def toy_spirals() -> TrajectoryData:
    """Twelve arms of ellipses with two coils, for a run in seconds."""
    arm = spiral_curve(24, nyquist_turns(24, 12), points=160)
    arms = turned(arm, interleaf_angles(12, "full-turn"))
    made = load_phantom_shots("brain", arms, shape=24, n_coils=2, rng=np.random.default_rng(0))
    return TrajectoryData(made.kspace, made.trajectory, (24, 24), n_readouts=12, name="toy")


def measured_rows(data: TrajectoryData, every: Sequence[int] = EVERY) -> list[Row]:
    """One row for each m, kind of maps and method; the gridded image is that of the method "zero-filled"."""
    whole = calibrate(data, RECIPE)
    references = {method: _made(whole.data, method)[0] for method in METHODS}
    rows: list[Row] = []
    for m in every:
        every_mth = np.arange(data.n_readouts) % m == 0
        chosen = data.only(every_mth)
        known = replace(chosen, **{name: getattr(whole.data, name) for name in ("noise_variance", "coil_maps")})
        cases = [(ALL, method, known) for method in METHODS]
        with suppress(InputError):  # too few arms around DC
            cases.append((OWN, "mean", calibrate(data, RECIPE, measured=every_mth)))
        for maps, method, used in cases:
            began = time.process_time()
            image, converged = _made(used, method)
            rows.append(
                {
                    "scan": data.name,
                    "grid": data.grid_shape[0],
                    "arms": f"{used.n_readouts} of {data.n_readouts}",
                    "m": m,
                    "maps": maps,
                    "method": NAMES.get(method, method),
                    "vs least squares": measure(image, references["least-squares"]).relative_l2,
                    "vs same method": measure(image, references[method]).relative_l2,
                    "converged": converged,
                    "CPU s": time.process_time() - began,
                }
            )
    return rows


def _made(data: TrajectoryData, method: Method) -> tuple[Array, bool]:
    slice_model = calibrate(data, RECIPE).slice_model(0, **RECIPE.slice_settings)
    made = reconstruct(slice_model, None, method, RECIPE, np.random.default_rng(2))
    return made.image, made.convergence.converged


def resampled_rows(source: str | Path, count: int, densities: Sequence[float]) -> list[Row]:
    """Errors of every set of arms, as ``design --encoding spiral`` makes them of a scan, against the scan's image."""
    plain = RECIPE.replacing("input", matrix=16)  # of phantoms; files keep their size
    scan = calibrate(load_scan(source, plain).select_slice(0), plain, ordinary=True)
    on_grid, reference = scan.slice_model(0, **plain.slice_settings), truth_of(scan)
    assert reference is not None
    rows: list[Row] = []
    for density in densities:
        encoding = f"spiral-{round(100 * density)}"
        register_trajectory(encoding, partial(arm, density=density), unit="arm")
        for name in strategy_names("spiral"):
            recipe = plain.replacing("design", encoding=encoding, strategy=name)
            rule = make_strategy(name, "spiral")
            shots = candidates_of(recipe, rule, on_grid.shape, count, on_grid.n_coils)
            slice_model = shot_slice(on_grid, shots, np.random.default_rng(0), truth=None)
            first = DesignPlan.of(rule, recipe, shots).start_lines(slice_model.measured, count, 0, on_grid.n_coils)
            lines = run_design([slice_model], rule, count, recipe, seed=0, start=first).trace.lines
            options = InferenceOptions(signal=slice_model.signal_level(lines))
            rng = np.random.default_rng(2)
            made = reconstruct_prepared(slice_model, lines, "mean", recipe, rng, with_std=False, options=options)
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
