"""Total-variation MAP along spokes and spirals: ours with its certificate, and BART's ``pics`` where it is there."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from parts.bart_solver import BartRun, bart_path, read_cfl, write_cfl
from parts.problem import RATE
from trajectories.scenes import Scene
from trajectories.sets import HALF, spiral_sets

from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.evaluation.tables import Row
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.differences import FiniteDifferences
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.potentials.priors import Laplace
from mri_design.scan.trajectories.exchange import maps_to_bart, samples_to_bart, to_bart
from mri_design.scan.trajectories.radial import equispaced_angles, radial_spokes

BART = "BART pics -R T"
RIM = 1.5
"""Cycles from the grid's rim within which ``bart nufft`` is wrong; samples there are left out for everybody."""
BART_RUNS = ((0.01, 200), (0.1, 200), (0.03, 200), (0.03, 1600))
BART_COIL_RUNS = ((0.03, 100), (0.03, 400))
"""ADMM's penalty parameter, and conjugate-gradient iterations in all."""
OURS = {
    "as shipped": MapEstimate(),
    "L-BFGS, smoothing 1e-4": MapEstimate(1e-4, 3, LBFGS(tolerance=1e-4)),
    "IRLS, smoothing 1e-4": MapEstimate(1e-4, 6, IRLS(tolerance=1e-4, solver_tolerance=0.2)),
    "IRLS, smoothing 3e-5": MapEstimate(3e-5, 8, IRLS(tolerance=1e-4, solver_tolerance=0.2)),
}


@dataclass(frozen=True)
class Problem:
    """minimise f(u) = 1/2 ||y - X u||^2 + lambda TV(u), anisotropic, periodic differences.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The same as sites, J = 2 f / sigma^2.
    weight : float
        lambda.
    """

    model: GeneralizedLinearModel
    weight: float

    @classmethod
    def of(cls, scene: Scene, shots: Array, coils: int = 1) -> Problem:
        """Noisy samples of a scene, seen by one uniform coil or by several."""
        k = shots.reshape(-1, 2)
        k = k[(np.abs(k) <= np.array(scene.shape) / 2 - RIM).all(axis=1)]
        made = scene.along(k) if coils == 1 else scene.seen_by_coils(k, coils)
        weight = RATE * made.noise_variance
        block = SiteBlock("penalty", FiniteDifferences(scene.shape), Laplace(weight / np.sqrt(made.noise_variance)))
        return cls(GeneralizedLinearModel(made.measurement, made.data, made.noise_variance, (block,)), weight)

    def value(self, u: Array) -> float:
        """f in double precision, without smoothing."""
        u = u.astype(np.complex128)
        fit = 0.5 * np.sum(np.abs(self.model.data.astype(np.complex128) - self.model.measurement(u)) ** 2)
        return float(fit + self.weight * np.sum(np.abs(self.model.blocks[0].analysis(u))))


def total_variation_rows(
    scene: Scene,
    spokes: int,
    interleaves: int,
    coils: Sequence[int],
    runs: int,
    bart: Sequence[tuple[float, int]] | None = None,
) -> list[Row]:
    """Everybody on both trajectories; gaps are those to the smallest value that anybody found.

    Without settings for BART it has few with several coils, because it takes minutes.
    """
    matrix = scene.shape[0]
    sets = {
        f"{spokes} spokes": radial_spokes(matrix, equispaced_angles(spokes)),
        f"{interleaves} spirals": spiral_sets(matrix, interleaves, 1.5)[HALF],
    }
    rows: list[Row] = []
    for number in coils:
        for name, shots in sets.items():
            problem = Problem.of(scene, shots, number)
            lowest = problem.value(MapEstimate(1e-6, 6, LBFGS(tolerance=1e-5)).estimate(problem.model).image)
            settings = bart or (BART_RUNS if number == 1 else BART_COIL_RUNS)
            found = [*our_rows(problem, runs), *bart_rows(problem, settings)]
            lowest = min([lowest, *(float(str(row["f"])) for row in found if row["f"] is not None)])
            samples = problem.model.measurement.out_shape[-1]
            common = {"measured": name, "coils": number, "grid": matrix, "samples": samples}
            gaps = ({"gap": None if row["f"] is None else float(str(row["f"])) / lowest - 1} for row in found)
            rows += [common | dict(row) | gap for row, gap in zip(found, gaps, strict=True)]
    return rows


def our_rows(problem: Problem, runs: int) -> list[Row]:
    """One row per setting of ours."""
    rows: list[Row] = []
    for name, solve in OURS.items():
        seconds = []
        for _ in range(runs):
            began = time.process_time()
            u, how = solve(problem.model)
            seconds.append(time.process_time() - began)
        gap = solve.estimate(problem.model, u).gap
        certified = None if gap is None else gap.relative
        rows.append(_row("ours", name, median(seconds), how.matvecs, problem.value(u), certified))
    return rows


def bart_rows(problem: Problem, settings: Sequence[tuple[float, int]]) -> list[Row]:
    """BART's ADMM with penalty parameters and numbers of iterations."""
    if bart_path() is None:
        return [_row(BART, "not installed: row skipped", None, None, None, None)]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for rho, iterations in settings:
            run = bart_run(problem, iterations, rho, Path(folder))
            value = problem.value(run.image)
            rows.append(_row(BART, f"ADMM, rho {rho:g}", run.seconds, iterations, value, None))
    return rows


def bart_run(problem: Problem, iterations: int, rho: float, folder: Path) -> BartRun:
    """``pics`` on the same samples and the same objective; ``iterations`` of conjugate gradients in all.

    Seconds are the processor time of the whole process, as a clock on the wall would count other programs, too.
    """
    program, X = bart_path(), problem.model.measurement
    if program is None or not isinstance(X, NonUniformFourier):
        raise FileNotFoundError("bart is not installed")
    write_cfl(folder / "trajectory", to_bart(X.trajectory))
    write_cfl(folder / "kspace", samples_to_bart(problem.model.data))
    write_cfl(folder / "maps", maps_to_bart(np.ones((1, *X.grid)) if X.maps is None else X.maps))
    weight = f"{problem.weight:.9g}"
    command = [program, "pics", "-t", "trajectory", "-w", "1", "-m", "-u", f"{rho:g}", "-i", str(iterations)]
    command += ["-R", f"T:1:0:{weight}", "-R", f"T:2:0:{weight}", "kspace", "maps", "image"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    before = os.times()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return BartRun(read_cfl(folder / "image").T, seconds)


def _row(
    who: str,
    settings: str,
    seconds: float | None,
    iterations: int | None,
    value: float | None,
    certified: float | None,
) -> Row:
    return {
        "solver": who,
        "settings": settings,
        "s": seconds,
        "iterations or MVMs": iterations,
        "f": value,
        "certified gap": certified,
    }
