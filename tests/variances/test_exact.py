"""Exact variances: against the inverse, as a gradient, and within their bounds."""

import numpy as np
import pytest

from mri_design import (
    Exact,
    Identity,
)
from mri_design.model import PosteriorPrecision
from mri_design.operators import RealAndImaginary
from tests.variances.running import run_on


def test_they_are_the_diagonal_of_the_dense_covariance(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    result = run_on(Exact(), model, pi)
    covariance = np.linalg.inv(PosteriorPrecision(model.measurement, model.blocks, pi).dense_real())
    assert result.kind == "exact" and result.convergence.converged and result.std_error is None
    assert result.log_determinant == pytest.approx(-np.linalg.slogdet(covariance)[1], rel=1e-12)
    for block, values in zip(model.blocks, result.values, strict=True):
        B = block.analysis.to_dense_real()
        diagonal = np.einsum("ij,jk,ik->i", B, covariance, B)
        if block.analysis.out_complex:
            diagonal = diagonal.reshape(2, -1).sum(axis=0)
        np.testing.assert_allclose(values, diagonal.reshape(block.analysis.out_shape), rtol=1e-9)


@pytest.mark.parametrize("model_name", ["groups", "parts", "matrix"])
def test_pooled_they_are_the_gradient_of_the_log_determinant(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 2)
    result, step = run_on(Exact(), model, pi), 1e-5
    rng = np.random.default_rng(3)
    for number, block in enumerate(model.blocks):
        z = block.pooled(result.values[number])
        assert z.shape == block.site_shape
        for _ in range(4):
            site = tuple(int(rng.integers(n)) for n in block.site_shape)
            ends = []
            for sign in (1, -1):
                moved = tuple(p.copy() for p in pi)
                moved[number][site] += sign * step
                ends.append(run_on(Exact(), model, moved).log_determinant)
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(z[site], rel=1e-6)


def test_they_cover_any_operator_and_ill_conditioned_matrices(tiny_model, random_precisions):
    """The variance of the image itself, and of its real and imaginary parts, which add up to it."""
    model = tiny_model("parts")
    precision = PosteriorPrecision(model.measurement, model.blocks, random_precisions(model, 5))
    shape = model.image_shape
    whole, parts = Exact()(
        precision, [Identity(shape), RealAndImaginary(shape)], np.random.default_rng(0), np.zeros(shape, complex)
    ).values
    np.testing.assert_allclose(parts.sum(axis=-1), whole, rtol=1e-12)
    assert np.abs(parts[..., 0] - parts[..., 1]).max() > 1e-3
    # Site precisions over twelve decades are legitimate
    model = tiny_model("matrix")
    pi = tuple(np.geomspace(1e-6, 1e6, int(np.prod(b.site_shape))).reshape(b.site_shape) for b in model.blocks)
    assert all((z > 0).all() for z in run_on(Exact(), model, pi).values)
