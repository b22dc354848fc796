"""log|A| by Lanczos quadrature against the dense one."""

import numpy as np
import pytest

from mri_design import Identity, InputError, Laplace, SiteBlock, cartesian
from mri_design.inference.criterion import LogDeterminant
from mri_design.model.precision import PosteriorPrecision
from tests.slow_cases import slow_case


def dense(precision: PosteriorPrecision) -> float:
    return float(np.linalg.slogdet(precision.dense_real())[1])


@pytest.mark.parametrize(
    "model_name", ["groups", "coils", slow_case("parts"), slow_case("real image"), slow_case("wavelet")]
)
def test_within_its_standard_error(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    precision = PosteriorPrecision(model.measurement, model.blocks, random_precisions(model, 3))
    like = model.back_projection()
    found = LogDeterminant(probes=60, steps=40)(precision, np.random.default_rng(0), like)
    assert abs(found.value - dense(precision)) < 4 * found.std_error + 1e-9
    assert found.std_error < 0.15 * np.sqrt(model.measurement.in_size)
    assert found.convergence.matvecs <= 60 * 40


def test_the_circulant_alone_is_exact_where_a_is_circulant(tiny_model):
    model = tiny_model("moduli")
    pi = (np.full((1, 1), 0.7), np.full((2, 1, 1), 1.3))
    precision = PosteriorPrecision(cartesian(range(6), (6, 5)), model.blocks, pi)
    found = LogDeterminant(2, 3)(precision, np.random.default_rng(0), model.back_projection())
    assert found.value == pytest.approx(dense(precision), rel=1e-10)
    assert found.std_error < 1e-9


def test_too_few_steps_are_said_to_be_that():
    shape = (12, 12)
    block = SiteBlock("pixels", Identity(shape), Laplace(1.0))
    pi = np.exp(np.random.default_rng(0).normal(0, 2.5, shape))
    precision = PosteriorPrecision(cartesian([5, 6], shape), (block,), (pi,))
    like = np.zeros(shape, complex)
    short, long = (LogDeterminant(40, steps)(precision, np.random.default_rng(0), like) for steps in (4, 60))
    assert not short.convergence.converged and long.convergence.converged
    assert short.value > long.value + 4 * long.std_error
    assert abs(long.value - dense(precision)) < 4 * long.std_error


def test_single_precision(tiny_model, random_precisions):
    model = tiny_model("groups", real=np.float32)
    precision = PosteriorPrecision(model.measurement, model.blocks, random_precisions(model, 3))
    like = model.back_projection()
    assert like.dtype == np.complex64
    found = LogDeterminant(60, 40)(precision, np.random.default_rng(0), like)
    assert abs(found.value - dense(precision)) < 4 * found.std_error + 1e-3


def test_settings_and_matrices_that_cannot_be_are_refused(tiny_model):
    with pytest.raises(InputError, match="probes: got 1; wanted a whole number, 2 or more"):
        LogDeterminant(probes=1)
    with pytest.raises(InputError, match="steps: got 0; wanted a whole number, 1 or more"):
        LogDeterminant(steps=0)
    model = tiny_model("matrix")
    broken = PosteriorPrecision(
        model.measurement, model.blocks, tuple(np.full(b.site_shape, -9.0) for b in model.blocks)
    )
    with pytest.raises(InputError, match="positive definite"):
        LogDeterminant()(broken, np.random.default_rng(0), model.back_projection())
