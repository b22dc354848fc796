"""Lanczos variances: lower bounds that rise to the exact values."""

import numpy as np
import pytest

from mri_design import Exact, GeneralizedLinearModel, InputError, Lanczos
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.variances.base import VarianceEstimator

COMPLEX_LINEAR_OR_REAL = ["moduli", "groups", "coils", "wavelet", "real image", "matrix"]


def run(
    estimator: VarianceEstimator, model: GeneralizedLinearModel, pi: tuple[np.ndarray, ...], seed: int = 0
) -> Variances:
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    analyses = [b.analysis for b in model.blocks]
    return estimator(precision, analyses, np.random.default_rng(seed), model.back_projection())


@pytest.mark.parametrize("name", COMPLEX_LINEAR_OR_REAL)
def test_they_rise_to_the_exact_values(name, tiny_model, random_precisions):
    model = tiny_model(name)
    pi = random_precisions(model, 1)
    exact = run(Exact(), model, pi)
    n = int(np.prod(model.image_shape))
    last = tuple(np.zeros(b.analysis.out_shape) for b in model.blocks)
    for steps in sorted({1, 2, 3, 5, n // 4, n // 2, n - 1, n}):
        result = run(Lanczos(steps), model, pi)
        assert result.kind == "lower_bound" and result.convergence.matvecs == steps
        for low, value, high in zip(last, result.values, exact.values, strict=True):
            assert (value >= low - 1e-9).all()
            assert (value <= high + 1e-9).all()
        last = result.values
    for value, high in zip(last, exact.values, strict=True):
        np.testing.assert_allclose(value, high, rtol=1e-6)
    assert result.log_determinant == pytest.approx(exact.log_determinant, abs=1e-7)
    assert result.factors is not None and len(result.factors.basis) == n


@pytest.mark.parametrize("name", ["moduli", "real image"])
def test_few_steps_fall_far_short(name, tiny_model, random_precisions):
    model = tiny_model(name)
    pi = random_precisions(model, 2)
    few, exact = run(Lanczos(4), model, pi), run(Exact(), model, pi)
    assert few.values[0].sum() < 0.5 * exact.values[0].sum()


def test_single_precision_stays_single(tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 3))
    single, exact = run(Lanczos(30), model, pi), run(Exact(), model, pi)
    assert single.values[0].dtype == np.float32 and single.factors.basis.dtype == np.complex64
    np.testing.assert_allclose(single.values[0], exact.values[0], rtol=1e-3)


def test_sites_on_parts_of_complex_pairs_are_refused(tiny_model, random_precisions):
    model = tiny_model("parts")
    with pytest.raises(InputError, match=r"real and imaginary parts.*perturb-and-solve"):
        run(Lanczos(5), model, random_precisions(model, 4))


def test_no_step_is_refused():
    with pytest.raises(InputError, match=r"Lanczos steps.*0"):
        Lanczos(0)
