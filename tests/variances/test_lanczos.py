"""Lanczos variances: lower bounds that rise to the exact values."""

import numpy as np
import pytest

from mri_design import Exact, InputError, Lanczos
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


def test_single_precision_stays_single(tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 3))
    single, exact = run_on(Lanczos(30), model, pi), run_on(Exact(), model, pi)
    assert single.values[0].dtype == np.float32 and single.factors.basis.dtype == np.complex64
    np.testing.assert_allclose(single.values[0], exact.values[0], rtol=1e-3)


def test_sites_on_parts_of_complex_pairs_and_no_steps_are_refused(tiny_model, random_precisions):
    model = tiny_model("parts")
    with pytest.raises(InputError, match=r"real and imaginary parts.*perturb-and-solve"):
        run_on(Lanczos(5), model, random_precisions(model, 4))
    with pytest.raises(InputError, match=r"Lanczos steps.*0"):
        Lanczos(0)
