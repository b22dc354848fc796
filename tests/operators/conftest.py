"""One of every operator, and of the ways to combine them, on grids of even, odd and unequal sizes."""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

import mri_design as md
from mri_design.operators import (
    CartesianSamples,
    CentredFFT,
    Coils,
    Diagonal,
    GraphDifferences,
    LineSampling,
    RealAndImaginary,
    RealImage,
    ScalarOperator,
)
from tests.operators.noise import noise

SHAPES = [(8, 8), (9, 7), (6, 11)]


def in_precision(real: type, is_complex: bool) -> np.dtype:
    """The real or complex type of single or double precision."""
    return np.result_type(real, np.complex64) if is_complex else np.dtype(real)


def lines_of(shape: tuple[int, int]) -> list[int]:
    """Some lines, out of order, the first among them."""
    n = shape[0]
    return [n // 2, 0, n - 2, n // 2 - 1]


def mask_of(shape: tuple[int, int]) -> np.ndarray:
    """A third of the samples of a grid, in no pattern."""
    return np.random.default_rng(4).random(shape) < 0.3


def points_of(shape: tuple[int, int]) -> np.ndarray:
    """Points between those of the grid, one of them twice, up to the edges."""
    points = np.random.default_rng(8).uniform(-0.5, 0.5, (30, 2)) * shape
    points[0], points[1] = points[2], np.divide(shape, 2)
    return points


def maps_of(shape: tuple[int, int], real: type, coils: int = 3) -> np.ndarray:
    return noise((coils, *shape), in_precision(real, True), seed=3)


def neighbours_of(shape: tuple[int, int], count: int = 3) -> np.ndarray:
    """Any pixels: some chosen often, some never, some by themselves."""
    return np.random.default_rng(6).integers(0, shape[0] * shape[1], (count, *shape))


ZOO: dict[str, Callable[[tuple[int, int], type], md.LinearOperator]] = {
    "identity": lambda shape, real: md.Identity(shape),
    "identity, real": lambda shape, real: md.Identity(shape, is_complex=False),
    "complex scalar": lambda shape, real: ScalarOperator(0.5 - 2j, shape),
    "real scalar": lambda shape, real: ScalarOperator(-1.5, shape, is_complex=False),
    "diagonal": lambda shape, real: Diagonal(noise(shape, in_precision(real, True), 1)),
    "diagonal, real": lambda shape, real: Diagonal(noise(shape, real, 1), is_complex=False),
    "Fourier": lambda shape, real: CentredFFT(shape),
    "Fourier by pyfftw": lambda shape, real: CentredFFT(shape, "pyfftw"),
    "sampling": lambda shape, real: LineSampling(lines_of(shape), (2, *shape)),
    "coils": lambda shape, real: Coils(maps_of(shape, real)),
    "lines, one coil": lambda shape, real: md.cartesian(lines_of(shape), shape),
    "lines, three coils": lambda shape, real: md.cartesian(lines_of(shape), shape, maps_of(shape, real)),
    "lines by pyfftw": lambda shape, real: md.cartesian(lines_of(shape), shape, maps_of(shape, real), "pyfftw"),
    "samples, one coil": lambda shape, real: CartesianSamples(mask_of(shape)),
    "samples, three coils": lambda shape, real: CartesianSamples(mask_of(shape), maps_of(shape, real)),
    "any points, one coil": lambda shape, real: md.NonUniformFourier(points_of(shape), shape),
    "any points, three coils": lambda shape, real: md.NonUniformFourier(points_of(shape), shape, maps_of(shape, real)),
    "no lines": lambda shape, real: md.cartesian([], shape, maps_of(shape, real)),
    "differences": lambda shape, real: md.FiniteDifferences(shape),
    "differences, real": lambda shape, real: md.FiniteDifferences(shape, is_complex=False),
    "graph": lambda shape, real: GraphDifferences(neighbours_of(shape)),
    "graph, real": lambda shape, real: GraphDifferences(neighbours_of(shape), is_complex=False),
    "wavelet db2": lambda shape, real: md.Wavelet(shape, "db2", 2),
    "wavelet haar": lambda shape, real: md.Wavelet(shape, "haar", 1),
    "wavelet db4, real": lambda shape, real: md.Wavelet(shape, "db4", 2, is_complex=False),
    "real image": lambda shape, real: RealImage(shape),
    "real and imaginary": lambda shape, real: RealAndImaginary(shape),
    "dense": lambda shape, real: md.Dense(noise((5, shape[0]), in_precision(real, True), 2)),
    "dense, real": lambda shape, real: md.Dense(noise((5, shape[0]), real, 2)),
    "sampling @ Fourier": lambda shape, real: LineSampling(lines_of(shape), shape) @ CentredFFT(shape),
    "lines of a real image": lambda shape, real: (
        md.cartesian(lines_of(shape), shape, maps_of(shape, real)) @ RealImage(shape)
    ),
    "parts of differences": lambda shape, real: RealAndImaginary((2, *shape)) @ md.FiniteDifferences(shape),
    "sum": lambda shape, real: CentredFFT(shape) + Diagonal(noise(shape, in_precision(real, True), 1)),
    "multiple": lambda shape, real: (0.3 + 1j) * md.FiniteDifferences(shape),
    "adjoint": lambda shape, real: md.cartesian(lines_of(shape), shape, maps_of(shape, real)).H,
    "adjoint of a real image": lambda shape, real: RealImage(shape).H,
    "Toeplitz Gram": lambda shape, real: md.NonUniformFourier(points_of(shape), shape, maps_of(shape, real)).gram,
    "fused Gram": lambda shape, real: md.cartesian(lines_of(shape), shape, maps_of(shape, real)).gram,
    "Gram of samples": lambda shape, real: CartesianSamples(mask_of(shape), maps_of(shape, real)).gram,
    "Gram of a real image": lambda shape, real: (md.cartesian(lines_of(shape), shape) @ RealImage(shape)).gram,
    "three in a row": lambda shape, real: (
        md.Wavelet(shape, "db2", 1).H
        @ Diagonal(noise(md.Wavelet(shape, "db2", 1).out_shape, in_precision(real, True), 5))
        @ md.Wavelet(shape, "db2", 1)
    ),
}
NON_UNIFORM = ("any points, one coil", "any points, three coils", "Toeplitz Gram")
"""Those of the zoo that need an optional dependency."""
if not find_spec("finufft"):
    ZOO = {name: build for name, build in ZOO.items() if name not in NON_UNIFORM}


@pytest.fixture(params=list(ZOO))
def built(request: pytest.FixtureRequest) -> Callable[[type], md.LinearOperator]:
    """Precision -> an operator whose own arrays are in it; the grids come one after the other."""
    number = list(ZOO).index(request.param)
    return lambda real: ZOO[request.param](SHAPES[(number + (real is np.float64)) % 3], real)


@pytest.fixture
def draw() -> Callable[..., np.ndarray]:
    """(operator, seed, real, batch) -> an input; ``side="out"`` for an output."""

    def one(
        operator: md.LinearOperator,
        seed: int,
        real: type = np.float64,
        batch: tuple[int, ...] = (),
        side: str = "in",
    ) -> np.ndarray:
        shape = operator.in_shape if side == "in" else operator.out_shape
        is_complex = operator.in_complex if side == "in" else operator.out_complex
        return noise((*batch, *shape), in_precision(real, is_complex), seed)

    return one


@pytest.fixture
def coil_lines() -> Callable[..., md.CartesianLines]:
    """(shape, coils) -> lines seen by random coils, in double precision."""
    return lambda shape, coils: md.cartesian(lines_of(shape), shape, maps_of(shape, np.float64, coils))
