"""Control variates: exact moments, no bias beyond their own standard error, and far less noise than plain sampling."""

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    Exact,
    FiniteDifferences,
    Identity,
    Laplace,
    MonteCarlo,
    SiteBlock,
    Wavelet,
    cartesian,
)
from mri_design.model import PosteriorPrecision
from mri_design.variances import CirculantControl
from tests.variances.running import run_on, together


def test_the_moments_of_the_circulant_control_are_those_of_dense_matrices():
    shape, rng = (12, 16), np.random.default_rng(0)
    operators = [Identity(shape), FiniteDifferences(shape), Wavelet(shape, "db2", 2)]
    blocks = tuple(SiteBlock(f"block {i}", B, Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(rng.uniform(0.1, 3, B.out_shape) for B in operators)
    precision = PosteriorPrecision(cartesian([6, 5, 7, 1, 9], shape), blocks, pi)
    control = CirculantControl.of(precision)
    unit = np.eye(192).reshape(192, *shape) + 0j
    A, P = (f(unit).reshape(192, 192).T for f in (precision, control.image))
    for operator in operators:
        B = operator.to_dense()
        first, second = control.moments(operator)
        np.testing.assert_allclose(first.ravel(), np.diag(B @ P @ B.conj().T).real, rtol=1e-10)
        np.testing.assert_allclose(second.ravel(), np.diag(B @ P @ A @ P @ B.conj().T).real, rtol=1e-10)


@pytest.mark.parametrize("prior", ["differences", "db2"])
def test_few_samples_and_few_products_come_within_two_percent(prior, scan_like):
    model, pi = scan_like([*range(9, 15), 1, 4, 6, 18, 21], (24, 24), prior)
    exact = together(run_on(Exact(), model, pi).values)
    few = [run_on(ControlVariate(8, tolerance=0.1), model, pi, seed) for seed in range(3)]
    plain = run_on(MonteCarlo(samples=8), model, pi)
    errors = [np.median(np.abs(together(r.values) / exact - 1)) for r in few]
    assert max(errors) < 0.02
    assert np.median(np.abs(together(plain.values) / exact - 1)) > 10 * max(errors)
    assert all(r.convergence.converged for r in few)
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    for seed, made in enumerate(few):
        draws = ControlVariate(8, tolerance=0.1)(precision, (), np.random.default_rng(seed), model.back_projection())
        assert draws.convergence.matvecs <= 50
        assert made.convergence.matvecs <= 1.1 * draws.convergence.matvecs  # with what the bias takes
