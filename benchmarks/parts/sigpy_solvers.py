"""SigPy's reconstructions, stepped by hand so that the objective can be looked at off the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import sigpy
import sigpy.mri
from parts.problem import Problem

from mri_design.operators.base import Array, LinearOperator

MakeApp = Callable[[], sigpy.app.LinearLeastSquares]
ENDLESS = 10**7


class SigPyWavelet(LinearOperator):
    """SigPy's own db4 wavelets: padded with zeros, more coefficients than pixels, and an isometry."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.transform = sigpy.linop.Wavelet(shape, wave_name="db4")
        super().__init__(shape, tuple(self.transform.oshape))

    def _apply(self, u: Array) -> Array:
        return self._each(self.transform, u, self.out_shape)

    def _adjoint(self, v: Array) -> Array:
        return self._each(self.transform.H, v, self.in_shape)

    def _each(self, one: sigpy.linop.Linop, batch: Array, shape: tuple[int, ...]) -> Array:
        images = [one(image) for image in batch.reshape(-1, *batch.shape[-2:])]
        return np.reshape(images, (*batch.shape[:-2], *shape))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array:
        """B^H diag(w) B as a multiple of the identity, which it is for equal weights."""
        return np.full(self.in_shape, float(np.mean(weights)))

    def gram_spectrum(self) -> Array:
        """B^H B is the identity."""
        return np.ones(self.in_shape)


def total_variation(problem: Problem, **settings: object) -> MakeApp:
    """TotalVariationRecon on the problem; settings are SigPy's."""
    kspace, maps, weight = problem.zero_filled_kspace(), problem.maps(), problem.weight
    return lambda: sigpy.mri.app.TotalVariationRecon(kspace, maps, weight, show_pbar=False, **settings)


def l1_wavelet(problem: Problem, **settings: object) -> MakeApp:
    """L1WaveletRecon on the problem."""
    kspace, maps, weight = problem.zero_filled_kspace(), problem.maps(), problem.weight
    return lambda: sigpy.mri.app.L1WaveletRecon(kspace, maps, weight, show_pbar=False, **settings)


def primal_dual(problem: Problem, *, double: bool = False, **settings: object) -> MakeApp:
    """SigPy's primal-dual hybrid gradient on exactly f; for wavelets L1WaveletRecon has no such solver."""
    precision = np.complex128 if double else np.complex64
    kspace, maps = problem.zero_filled_kspace().astype(precision), problem.maps().astype(precision)
    measured = np.any(kspace != 0, axis=0).astype(precision)
    if isinstance(problem.analysis, SigPyWavelet):
        G = sigpy.linop.Wavelet(problem.scan.shape, wave_name="db4")
    else:
        G = sigpy.linop.FiniteDifference(problem.scan.shape)
    soft = sigpy.prox.L1Reg(G.oshape, problem.weight)

    def make() -> sigpy.app.LinearLeastSquares:
        encoding = sigpy.mri.linop.Sense(maps, weights=measured)
        return sigpy.app.LinearLeastSquares(encoding, kspace, proxg=soft, G=G, show_pbar=False, **settings)

    return make


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


def lowest_value(problem: Problem, f: Callable[[Array], float], iterations: int, seed: int) -> tuple[float, float]:
    """f* from a long run in double precision, and by how much its last tenth lowered it, relative.

    The dual step 0.01 was the fastest of 1, 0.1, ... 0.0001 on these problems.
    """
    np.random.seed(seed)
    app = primal_dual(problem, double=True, sigma=0.01)()
    for iteration in range(iterations):
        if iteration == iterations - iterations // 10:
            before = f(app.x)
        app.alg.update()
    after = f(app.x)
    return min(before, after), abs(before - after) / after
