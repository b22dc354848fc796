"""Products with A = X^H X + B^H diag(pi) B: ours, a plain NumPy and PyWavelets one, and the floor under both."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pywt

from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian import cartesian
from mri_design.operators.differences import FiniteDifferences
from mri_design.operators.elementary import Identity
from mri_design.operators.wavelet import Wavelet
from mri_design.potentials.priors import Laplace

LEVELS = 4
PRIORS: dict[str, tuple[str, ...]] = {
    "none": (),
    "pixels+differences": ("pixels", "differences"),
    "wavelet": ("wavelet",),
    "pixels+differences+wavelet": ("pixels", "differences", "wavelet"),
}
ANALYSES: dict[str, Callable[[tuple[int, int]], LinearOperator]] = {
    "pixels": Identity,
    "differences": FiniteDifferences,
    "wavelet": lambda shape: Wavelet(shape, "db4", LEVELS),
}
CASES = (
    (128, 1, "pixels+differences"),
    (256, 1, "none"),
    (256, 1, "pixels+differences"),
    (256, 1, "wavelet"),
    (256, 1, "pixels+differences+wavelet"),
    (256, 8, "none"),
    (256, 8, "pixels+differences"),
    (512, 1, "pixels+differences"),
    (512, 8, "pixels+differences"),
)


def plain_product(mask: Array, maps: Array | None, weights: dict[str, Array]) -> Callable[[Array], Array]:
    """A as one writes it down first: 2-D FFTs of every coil image, `np.roll`, PyWavelets, double precision.

    Parameters
    ----------
    mask : bool array, shape (ky,)
        Measured lines, in FFT order.
    maps : complex array, shape (coil, ky, kx), or None
        Coil sensitivities.
    weights : dict of float arrays
        pi of each block, shaped as its coefficients.
    """
    rows = mask.astype(float)[:, None]

    def apply(u: Array) -> Array:
        if maps is None:
            total = np.fft.ifft2(rows * np.fft.fft2(u))
        else:
            spectra = rows * np.fft.fft2(maps * u)
            total = (np.conj(maps) * np.fft.ifft2(spectra)).sum(axis=0)
        if "pixels" in weights:
            total += weights["pixels"] * u
        if "differences" in weights:
            for axis, pi in zip((-2, -1), weights["differences"], strict=True):
                slope = pi * (np.roll(u, -1, axis) - u)
                total += np.roll(slope, 1, axis) - slope
        if "wavelet" in weights:
            bands = pywt.wavedec2(u, "db4", mode="periodization", level=LEVELS)
            array, slices = pywt.coeffs_to_array(bands)
            bands = pywt.array_to_coeffs(weights["wavelet"] * array, slices, output_format="wavedec2")
            total += pywt.waverec2(bands, "db4", mode="periodization")
        return total

    return apply


@cache
def bandwidth(megabytes: int = 16) -> float:
    """Bytes a second of ``np.copyto`` between two arrays of this size together, reads and writes counted."""
    source = np.ones(megabytes << 17, dtype=np.float32)
    target = np.empty_like(source)
    (seconds,) = _best_seconds(lambda: np.copyto(target, source))
    return 2 * source.nbytes / seconds


@cache
def flop_rate(n: int = 512) -> float:
    """Float32 operations a second of one thread in the library's matrix product."""
    a = np.ones((n, n), dtype=np.float32)
    (seconds,) = _best_seconds(lambda: a @ a)
    return 2 * n**3 / seconds


def floor_seconds(grid: int, coils: int, prior: tuple[str, ...], batch: int) -> float:
    """Seconds a vector that no program on this machine can undercut, the larger of two, float32.

    Memory: the batch is read and written once, weights and coil maps are read once a batch, at `bandwidth`.
    Arithmetic, at `flop_rate`: 5 N log2 N for each FFT of length N along ky, forth and back in every coil, and 14
    for coil products and the sum; 2 a pixel weight, 16 the differences; filters of 8 taps along both axes
    in both directions, levels summed, and 2 for the weights of wavelets; complex numbers count twice where weights
    are real. Neither FFTs nor stencils reach the rate of matrix products: the floor is strict.
    """
    pixels = grid**2
    weights = {"pixels": 1, "differences": 2, "wavelet": 1}
    floats = batch * 4 + sum(weights[block] for block in prior) + (2 * coils if coils > 1 else 0)
    memory = 4 * pixels * floats / batch / bandwidth()
    flops = coils * 10 * np.log2(grid) + (14 * coils if coils > 1 else 0)
    levels = sum(4.0**-level for level in range(LEVELS))
    flops += sum({"pixels": 4, "differences": 16, "wavelet": 2 * 2 * 2 * 16 * levels + 2}[block] for block in prior)
    return float(max(memory, pixels * flops / flop_rate()))


def transform_seconds(grid: int, coils: int, batch: int) -> float:
    """Seconds a vector of the FFTs along ky alone, forth and back, complex64, by pyFFTW with measured plans."""
    import pyfftw

    one = pyfftw.empty_aligned((batch, grid, grid), "complex64")
    both = [
        pyfftw.FFTW(one, one, axes=(1,), direction=way, flags=("FFTW_MEASURE",))
        for way in ("FFTW_FORWARD", "FFTW_BACKWARD")
    ]
    one[...] = 0
    (seconds,) = _best_seconds(lambda: [plan.execute() for plan in both])
    return coils * seconds / batch


def mvm_row(grid: int, coils: int, prior: str, batch: int = 16, runs: int = 15, seed: int = 0) -> dict[str, object]:
    """One case: milliseconds a vector (least of ``runs``) and the ratios, results compared first.

    Raises
    ------
    AssertionError
        Where ours and the plain product differ by more than single precision explains.
    """
    rng = np.random.default_rng(seed)
    shape = (grid, grid)
    maps = None
    if coils > 1:
        maps = _complex_noise(rng, (coils, *shape))
        maps /= np.sqrt((np.abs(maps) ** 2).sum(axis=0))
    lines = np.sort(rng.permutation(grid)[: grid // 4])
    blocks = PRIORS[prior]
    weights = {name: np.exp(rng.standard_normal(ANALYSES[name](shape).out_shape)) for name in blocks}
    u = _complex_noise(rng, (batch, *shape))

    encoding = cartesian(lines.tolist(), shape, None if maps is None else maps.astype(np.complex64))
    sites = tuple(SiteBlock(name, ANALYSES[name](shape), Laplace(1.0)) for name in blocks)
    ours = PosteriorPrecision(encoding, sites, tuple(weights[name].astype(np.float32) for name in blocks))
    plain = plain_product(np.fft.ifftshift(encoding.mask), maps, weights)

    single = u.astype(np.complex64)
    expected, found = plain(u[0]), ours(single)
    assert found.dtype == np.complex64
    assert np.linalg.norm(found[0] - expected) <= 1e-6 * np.linalg.norm(expected)
    plain_time, our_time = _best_seconds(lambda: plain(u[0]), lambda: ours(single), runs=runs)
    our_time /= batch
    floor, transforms = floor_seconds(grid, coils, blocks, batch), transform_seconds(grid, coils, batch)
    return {
        "grid": grid,
        "coils": coils,
        "prior": prior,
        "batch": batch,
        "plain ms": 1e3 * plain_time,
        "ours ms": 1e3 * our_time,
        "floor ms": 1e3 * floor,
        "FFTs by FFTW ms": 1e3 * transforms,
        "plain / ours": plain_time / our_time,
        "ours / floor": our_time / floor,
    }


def mvm_rows(cases: tuple[tuple[int, int, str], ...] = CASES, runs: int = 15) -> list[dict[str, object]]:
    """All cases; one thread."""
    return [mvm_row(*case, runs=runs) for case in cases]


def _best_seconds(*calls: Callable[[], object], runs: int = 15) -> list[float]:
    """Least wall time of each call, taken in turns: other work on the machine only ever adds."""
    least = [np.inf] * len(calls)
    for _ in range(runs):
        for k, call in enumerate(calls):
            began = time.perf_counter()
            call()
            least[k] = min(least[k], time.perf_counter() - began)
    return least


def _complex_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.standard_normal((*shape, 2)).view(complex)[..., 0])
