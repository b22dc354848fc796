"""Time to a relative objective gap of total-variation MAP: ours beside BART and SigPy, everybody at their best.

    OMP_NUM_THREADS=1 python benchmarks/tv_map.py

measures everything (some forty minutes) and puts tv-map.csv and a table of inference.md into results/benchmarks.
``--quick`` is the same on a toy in seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import scipy.fft
import sigpy
import sigpy.mri
from parts.bart_solver import MOST_ITERATIONS, BartTotalVariation, bart_path
from parts.pages import put_conditions, put_table
from parts.problem import Problem, scan_of
from threadpoolctl import threadpool_limits

from mri_design.estimation.admm import ADMM
from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.evaluation.tables import Row, write_csv
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.differences import FiniteDifferences

MakeApp = Callable[[], sigpy.app.LinearLeastSquares]
SEED = 0
GOAL = 1e-3
AS_SHIPPED = "as shipped"
BART_RHO = (0.001, 0.003, 0.01, 0.03, 0.1)
COIL_RHO = (0.003, 0.01, 0.03)
"""With several coils BART's runs are long; the fastest with one coil is among these, too."""
SIGPY_TUNED: dict[str, dict[str, object]] = {
    "PDHG, sigma 0.01": {"sigma": 0.01},
    "PDHG, sigma 0.003": {"sigma": 0.003},
    "PDHG, sigma 0.03": {"sigma": 0.03},
    "PDHG, sigma 0.1": {"sigma": 0.1},
    "ADMM, rho 0.01": {"solver": "ADMM", "rho": 0.01},
}


def our_settings() -> dict[str, MapEstimate]:
    """Who of us runs; the first that reaches the goal is not always the fastest."""
    settings = {
        AS_SHIPPED: MapEstimate(),
        "IRLS, smoothing 1e-4": MapEstimate(1e-4, 6, IRLS(tolerance=1e-4, solver_tolerance=0.2)),
        "IRLS, smoothing 1e-5": MapEstimate(1e-5, 6, IRLS(tolerance=3e-5, solver_tolerance=0.2)),
        "L-BFGS, smoothing 1e-4": MapEstimate(1e-4, 3, LBFGS(tolerance=1e-4)),
    }
    for tolerance in (1e-3, 5e-4, 3e-4, 2e-4, 1e-4):  # hardly smoothed, in one stage
        settings[f"ADMM, tolerance {tolerance:g}"] = MapEstimate(1e-6, 1, ADMM(tolerance=tolerance))
    return settings


@dataclass(frozen=True)
class TotalVariationProblem:
    """minimise f(u) = 1/2 ||y - X u||^2 + lambda TV(u), periodic differences, moduli of complex values.

    Parameters
    ----------
    problem : Problem
        Data, lambda and the anisotropic f.
    isotropic : bool
        One modulus for both differences of a pixel together.
    """

    problem: Problem
    isotropic: bool

    @property
    def name(self) -> str:
        """For tables."""
        return "isotropic TV" if self.isotropic else "anisotropic TV"

    def model(self) -> GeneralizedLinearModel:
        """The problem as sites, J = 2 f / sigma^2."""
        model = self.problem.model()
        if not self.isotropic:
            return model
        (block,) = model.blocks
        return replace(model, blocks=(SiteBlock(block.name, block.analysis, block.potential, (-3,)),))

    def value(self, u: Array) -> float:
        """f in double precision, without smoothing."""
        if not self.isotropic:
            return self.problem.objective()(u)
        u = u.astype(np.complex128)
        scan, lines = self.problem.scan, self.problem.lines
        fit = 0.5 * np.sum(np.abs(scan.acquire(lines).astype(np.complex128) - scan.encoding(lines)(u)) ** 2)
        s = self.problem.analysis(u)
        return float(fit + self.problem.weight * np.sum(np.sqrt(np.sum(np.abs(s) ** 2, axis=0))))


def certified_value(tv: TotalVariationProblem) -> tuple[float, float]:
    """f* of any problem, and how far it may be off, relative: by MAP without smoothing and its duality gap."""
    found = MapEstimate(0.0, inner=ADMM(tolerance=1e-6)).estimate(tv.model())
    if found.gap is None:
        raise RuntimeError("the minimum has no certificate")
    return tv.value(found.image), found.gap.absolute / found.gap.primal


def smallest_value(tv: TotalVariationProblem, iterations: int) -> tuple[float, float]:
    """f* of a single-coil problem, from ADMM in double precision with exact FFT steps, and the last tenth's decrease.

    The penalty parameter that comes lowest in a twentieth of the iterations is taken.
    """
    trials = {rho: admm_value(tv, rho, max(iterations // 20, 2)) for rho in (0.003, 0.01, 0.03, 0.1)}
    rho = min(trials, key=lambda r: trials[r][1])
    before, after = admm_value(tv, rho, iterations)
    return min(before, after), abs(before - after) / after


def admm_value(tv: TotalVariationProblem, rho: float, iterations: int) -> tuple[float, float]:
    """f after nine tenths of the iterations, and after all of them."""
    scan, lines, weight = tv.problem.scan, tv.problem.lines, tv.problem.weight
    B = FiniteDifferences(scan.shape)
    mask = np.zeros(scan.shape)
    mask[list(lines)] = 1
    spectrum = scipy.fft.ifftshift(mask) + rho * B.circulant_spectrum()
    rhs = scan.encoding(lines).adjoint(scan.acquire(lines).astype(np.complex128))
    split = np.zeros(B.out_shape, dtype=complex)
    dual = np.zeros_like(split)
    early = np.inf
    for iteration in range(1, iterations + 1):
        u = scipy.fft.ifft2(scipy.fft.fft2(rhs + rho * B.adjoint(split - dual)) / spectrum)
        s = B(u) + dual
        size = np.sqrt(np.sum(np.abs(s) ** 2, axis=0)) if tv.isotropic else np.abs(s)
        split = s * np.maximum(1 - weight / rho / np.maximum(size, 1e-30), 0)
        dual = s - split
        if iteration == iterations - max(iterations // 10, 1):
            early = tv.value(u)
    return early, tv.value(u)


def peer_rows(
    grid: int, coils: int, lowest_from: int, runs: int, limit: float, seed: int, rhos: Sequence[float] = BART_RHO
) -> list[Row]:
    """Rows of everybody on both kinds of total variation, a quarter of the lines; SigPy with one coil only.

    Where somebody gave up before the goal, ``times our fastest`` and ``times as shipped`` are lower bounds.
    """
    rows: list[Row] = []
    for isotropic in (False, True):
        tv = TotalVariationProblem(Problem.of(scan_of(grid, coils, seed), seed, FiniteDifferences), isotropic)
        lowest, drift = smallest_value(tv, lowest_from) if coils == 1 else certified_value(tv)
        found = our_rows(tv, lowest, runs)
        fastest = min((float(row["s"]) for row in found if row["s"] is not None), default=None)  # type: ignore[arg-type]
        shipped = next(row["s"] for row in found if row["settings"] == AS_SHIPPED)
        found += bart_rows(tv, lowest, runs, rhos)
        if not isotropic and coils == 1:
            found += sigpy_rows(tv, lowest, runs, limit, seed)
        for row in found:
            seconds = row["gave up after s"] if row["s"] is None else row["s"]
            rows.append(
                {"objective": tv.name, "grid": grid, "coils": coils, "lines": len(tv.problem.lines)}
                | dict(row)
                | {"times our fastest": _ratio(seconds, fastest), "times as shipped": _ratio(seconds, shipped)}
                | {"f* known to": drift}
            )
    return rows


def _ratio(seconds: object, ours: object) -> float | None:
    return None if seconds is None or ours is None else float(seconds) / float(ours)  # type: ignore[arg-type]


def our_rows(tv: TotalVariationProblem, lowest: float, runs: int) -> list[Row]:
    """One row per setting of ours; seconds only where the call as a whole ends at the goal."""
    rows: list[Row] = []
    for name, solve in our_settings().items():
        u, convergence = solve(tv.model())  # compiles
        seconds = [_seconds(lambda solve=solve: solve(tv.model())) for _ in range(runs)]  # type: ignore[misc]
        gap = tv.value(u) / lowest - 1
        rows.append(_row("ours", name, median(seconds) if gap <= GOAL else None, convergence.matvecs, gap))
    return rows


def bart_rows(tv: TotalVariationProblem, lowest: float, runs: int, rhos: Sequence[float]) -> list[Row]:
    """BART's ADMM with the rho that is fastest, stopped at the first iteration that reaches the goal."""
    if bart_path() is None:
        return [_row("BART pics -R T", "not installed: row skipped", None, None, None)]
    with tempfile.TemporaryDirectory() as folder:
        bart = BartTotalVariation(tv.problem, tv.isotropic, Path(folder))
        best: tuple[int, float] | None = None
        least = np.inf
        for rho in rhos:
            count, gap = first_reaching(lambda n, rho=rho: tv.value(bart.run(n, rho).image) / lowest - 1, best)
            least = min(least, gap)
            if count is not None and (best is None or count < best[0]):
                best = (count, rho)
        if best is None:
            spent = bart.run(MOST_ITERATIONS, rhos[0]).seconds
            return [_row("BART pics -R T", "ADMM, not reached", None, MOST_ITERATIONS, least, spent)]
        count, rho = best
        several = [bart.run(count, rho) for _ in range(runs)]
        gap = tv.value(several[0].image) / lowest - 1
        return [_row("BART pics -R T", f"ADMM, rho {rho:g}", median(run.seconds for run in several), count, gap)]


def first_reaching(gap_after: Callable[[int], float], best: tuple[int, float] | None) -> tuple[int | None, float]:
    """Fewest iterations (to 5 %) with a gap at the goal, doubling and halving; None where others were faster."""
    limit = MOST_ITERATIONS if best is None else best[0]
    low, high = 0, min(16, limit)
    while (gap := gap_after(high)) > GOAL:
        if high >= limit:
            return None, gap
        low, high = high, min(2 * high, limit)
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        tried = gap_after(middle)
        low, high, gap = (low, middle, tried) if tried <= GOAL else (middle, high, gap)
    return high, gap


def sigpy_app(problem: Problem, **settings: object) -> MakeApp:
    """SigPy's TotalVariationRecon on the problem."""
    kspace, maps, weight = problem.zero_filled_kspace(), problem.maps(), problem.weight
    return lambda: sigpy.mri.app.TotalVariationRecon(kspace, maps, weight, show_pbar=False, **settings)


@dataclass(frozen=True)
class Arrival:
    """When an objective value was first reached."""

    iterations: int
    seconds: float


def arrivals(
    make: MakeApp, f: Callable[[Array], float], goals: Sequence[float], limit: float, seed: int
) -> tuple[list[Arrival | None], float]:
    """First arrival at each goal (None where not within ``limit`` seconds), and the lowest value seen.

    Building the app counts (SigPy estimates its step size there), looking at the objective does not; it is looked at
    in every iteration at first, later so often that an arrival is late by 2 % at most.
    """
    np.random.seed(seed)  # of SigPy's power iterations
    began = time.perf_counter()
    app = make()
    spent, lowest, iteration, look = time.perf_counter() - began, np.inf, 0, 1
    found: list[Arrival | None] = [None] * len(goals)
    while spent < limit and None in found:
        began = time.perf_counter()
        app.alg.update()
        spent += time.perf_counter() - began
        iteration += 1
        if iteration < look:
            continue
        look = iteration + max(1, iteration // 50)
        value = f(app.x)
        lowest = min(lowest, value)
        for i, goal in enumerate(goals):
            if found[i] is None and value <= goal:
                found[i] = Arrival(iteration, spent)
    return found, lowest


def median_arrivals(make: MakeApp, iterations: Sequence[int], runs: int, seed: int) -> dict[int, float]:
    """Median seconds to each iteration number over ``runs`` further runs, on which nothing is looked at."""
    samples: dict[int, list[float]] = {k: [] for k in iterations}
    for _ in range(runs if iterations else 0):
        np.random.seed(seed)
        began = time.perf_counter()
        app = make()
        for iteration in range(1, max(iterations) + 1):
            app.alg.update()
            if iteration in samples:
                samples[iteration].append(time.perf_counter() - began)
    return {k: median(seconds) for k, seconds in samples.items()}


def sigpy_rows(tv: TotalVariationProblem, lowest: float, runs: int, limit: float, seed: int) -> list[Row]:
    """SigPy as shipped and with tuned steps, stepped until the goal is reached."""
    rows: list[Row] = []
    goal = lowest * (1 + GOAL)
    for name, settings in ({"PDHG, as shipped": {}} | SIGPY_TUNED).items():
        make = sigpy_app(tv.problem, **settings)
        (arrival,), least = arrivals(make, tv.value, [goal], limit, seed)
        if arrival is not None and settings:
            limit = min(limit, 2 * arrival.seconds)  # whoever is much slower than the fastest so far is not waited for
        if arrival is None:
            rows.append(_row("SigPy TV", f"{name}, not reached", None, None, least / lowest - 1, limit))
            continue
        seconds = median_arrivals(make, [arrival.iterations], runs, seed)[arrival.iterations]
        rows.append(_row("SigPy TV", name, seconds, arrival.iterations, least / lowest - 1))
    return rows


def _row(
    who: str,
    settings: str,
    seconds: float | None,
    iterations: int | None,
    gap: float | None,
    gave_up: float | None = None,
) -> Row:
    return {
        "solver": who,
        "settings": settings,
        "s": seconds,
        "gave up after s": gave_up,
        "iterations or MVMs": iterations,
        "gap": gap,
    }


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for the tables")
    parser.add_argument("--quick", action="store_true", help="a smoke run on a toy")
    chosen = parser.parse_args()
    cases = ((256, 1, BART_RHO), (128, 8, COIL_RHO), (256, 8, COIL_RHO))
    with threadpool_limits(1):
        if chosen.quick:
            rows = [row for coils in (1, 2) for row in peer_rows(32, coils, 200, 1, 0.2, SEED, (0.003,))]
        else:
            rows = [row for *case, rhos in cases for row in peer_rows(*case, 1000, 3, 60.0, SEED, rhos)]
    chosen.out.mkdir(parents=True, exist_ok=True)
    page, formats = chosen.out / "inference.md", {name: ".3g" for row in rows for name in row}
    write_csv(chosen.out / "tv-map.csv", rows)
    put_table(page, "TV MAP", rows, None, formats | {"gap": ".1e", "f* known to": ".1e"})
    put_conditions(page, "numpy", "scipy", "numba", "sigpy")


if __name__ == "__main__":
    main()
