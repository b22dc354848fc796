"""Lanczos variances: lower bounds that rise to the exact values."""

import numpy as np
import pytest

from mri_design import Exact, Lanczos
from tests.variances.running import run_on


@pytest.mark.parametrize("name", ["coils", "wavelet", "real image", "matrix"])
def test_they_rise_to_the_exact_values(name, tiny_model, random_precisions):
    model = tiny_model(name)
    pi = random_precisions(model, 1)
    exact = run_on(Exact(), model, pi)
    n = int(np.prod(model.image_shape))
    last = tuple(np.zeros(b.analysis.out_shape) for b in model.blocks)
    for steps in sorted({1, 2, 3, 5, n // 4, n // 2, n - 1, n}):
        result = run_on(Lanczos(steps), model, pi)
        assert result.kind == "lower_bound" and result.convergence.matvecs == steps
        for low, value, high in zip(last, result.values, exact.values, strict=True):
            assert (value >= low - 1e-9).all()
            assert (value <= high + 1e-9).all()
        last = result.values
    for value, high in zip(last, exact.values, strict=True):
        np.testing.assert_allclose(value, high, rtol=1e-6)
    assert result.log_determinant == pytest.approx(exact.log_determinant, abs=1e-7)
    assert result.factors is not None and len(result.factors.basis) == n
