"""The control variate where X^H X is no circulant (spokes, spirals, masks, several coils), beside exact variances."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    Exact,
    FiniteDifferences,
    Identity,
    Laplace,
    LinearOperator,
    NonUniformFourier,
    SiteBlock,
    cartesian,
)
from mri_design.model import PosteriorPrecision
from mri_design.operators import CartesianSamples
from mri_design.variances import CirculantControl, ColumnControl
from tests.variances.running import run, together

N = 16
SHAPE = (N, N)


def maps(coils: int) -> np.ndarray | None:
    """Smooth maps around the image, of unit root-sum-of-squares."""
    if not coils:
        return None
    y, x = np.meshgrid(*2 * (np.linspace(-1, 1, N),), indexing="ij")
    angles = 2 * np.pi * np.arange(coils) / coils
    seen = np.array([np.exp(-((y - np.sin(a)) ** 2) - (x - np.cos(a)) ** 2 + 1j * a) for a in angles])
    return seen / np.sqrt(np.sum(np.abs(seen) ** 2, axis=0))


def spokes(count: int) -> np.ndarray:
    radius, angles = np.arange(-N, N) / 2, np.pi * np.arange(count) / count
    return np.stack([np.outer(np.sin(angles), radius), np.outer(np.cos(angles), radius)], axis=-1).reshape(-1, 2)


def spirals(count: int) -> np.ndarray:
    along = np.linspace(0, 1, 120)
    angles = 6 * np.pi * along + 2 * np.pi * np.arange(count)[:, None] / count
    radius = N / 2 * along**1.5
    return np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1).reshape(-1, 2)


def mask() -> np.ndarray:
    chosen = np.random.default_rng(0).random(SHAPE) < 0.2
    chosen[6:10, 6:10] = True
    return chosen


MEASUREMENTS: dict[str, Callable[[int], LinearOperator]] = {
    "spokes": lambda coils: NonUniformFourier(spokes(6), SHAPE, maps(coils)),
    "spirals": lambda coils: NonUniformFourier(spirals(3), SHAPE, maps(coils)),
    "mask": lambda coils: CartesianSamples(mask(), maps(coils)),
    "lines": lambda coils: cartesian([1, 4, 6, 7, 8, 9, 11, 14], SHAPE, maps(coils)),
}
CASES = [("spokes", 0), ("spirals", 4), ("mask", 4), ("lines", 4)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}, {case[1] or 1} coils")
def precision(request: pytest.FixtureRequest) -> PosteriorPrecision:
    """Site precisions as inference leaves them: data decide inside the object, the sites in flat parts and outside."""
    name, coils = request.param
    if name in ("spokes", "spirals"):
        pytest.importorskip("finufft")
    y, x = np.meshgrid(*2 * (np.arange(N) - N // 2,), indexing="ij")
    image = np.hypot(y / 6, x / 5) < 1
    blocks = tuple(SiteBlock(str(B), B, Laplace(1.0)) for B in (Identity(SHAPE), FiniteDifferences(SHAPE)))
    pi = tuple(
        rate / (0.1 + 3 * np.abs(block.analysis(image))) for rate, block in zip((0.01, 0.1), blocks, strict=True)
    )
    return PosteriorPrecision(MEASUREMENTS[name](coils), blocks, pi)


def test_unbiased_and_far_nearer_than_plain_draws(precision):
    exact = together(run(Exact(), precision).values)
    accurate = ControlVariate(samples=8, tolerance=1e-6, column_limit=0)
    results = [run(accurate, precision, seed) for seed in range(16)]
    assert all(r.kind == "unbiased" and r.convergence.converged for r in results)
    values = np.array([together(r.values) for r in results])
    scatter = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    scores = (values.mean(axis=0) - exact) / scatter
    assert abs(np.mean(scores)) < 0.2  # coefficients scatter together
    assert np.abs(scores).max() < 7
    assert np.sqrt(np.mean(scores**2)) < 1.25
    stated = np.array([together(r.std_error) for r in results])
    assert 0.7 < np.sqrt(np.mean(stated**2)) / np.sqrt(np.mean(values.var(axis=0, ddof=1))) < 1.3


def test_the_known_moment_is_that_of_the_dense_matrix(precision):
    control = CirculantControl.of(precision)
    P = control.image(np.eye(N * N).reshape(-1, *SHAPE) + 0j).reshape(N * N, N * N).T
    for block in precision.blocks:
        B = block.analysis.to_dense()
        first, second = control.moments(block.analysis)
        np.testing.assert_allclose(first.ravel(), np.einsum("ij,jk,ik->i", B, P, B.conj()).real, rtol=1e-9)
        assert second is None


def test_lines_of_several_coils_keep_their_columns():
    blocks = (SiteBlock("pixels", Identity(SHAPE), Laplace(1.0)),)
    precision = PosteriorPrecision(cartesian([6, 7, 8, 9, 3], SHAPE, maps(3)), blocks, (np.ones(SHAPE),))
    assert isinstance(ControlVariate()._control(precision), ColumnControl)
    assert isinstance(ControlVariate(column_limit=0)._control(precision), CirculantControl)
    assert ControlVariate(column_limit=0, extrapolated=False)._control(precision) is None
    assert isinstance(ControlVariate(control="circulant")._control(precision), CirculantControl)
