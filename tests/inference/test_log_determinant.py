"""log|A| by Lanczos quadrature against the dense one."""

import numpy as np
import pytest

from mri_design import Identity, Laplace, SiteBlock, cartesian
from mri_design.inference import LogDeterminant
from mri_design.model import PosteriorPrecision
from tests.slow_cases import slow_case


def dense(precision: PosteriorPrecision) -> float:
    return float(np.linalg.slogdet(precision.dense_real())[1])


@pytest.mark.parametrize(
    ("model_name", "real"),
    [
        ("groups", np.float64),
        ("groups", np.float32),
        ("coils", np.float64),
        *(slow_case(name, np.float64) for name in ("parts", "real image", "wavelet")),
    ],
)
def test_within_its_standard_error(tiny_model, model_name, real, random_precisions):
    model = tiny_model(model_name, real=real)
    precision = PosteriorPrecision(model.measurement, model.blocks, random_precisions(model, 3))
    like = model.back_projection()
    found = LogDeterminant(probes=60, steps=40)(precision, np.random.default_rng(0), like)
    assert abs(found.value - dense(precision)) < 4 * found.std_error + (1e-9 if real is np.float64 else 1e-3)
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
