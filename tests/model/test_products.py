"""Products of coefficients without the coefficients, against those made one by one."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, Laplace, LinearOperator, SiteBlock, Wavelet
from mri_design.model import pooled_products
from mri_design.operators import GraphDifferences, PhasedParts

N = (9, 13)
GRAPH = GraphDifferences(np.random.default_rng(0).integers(N[0] * N[1], size=(3, *N)))


def images(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return tuple((rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(dtype) for _ in range(2))


def behind(operator: LinearOperator, factors: np.ndarray | float) -> PhasedParts:
    return PhasedParts(operator, np.exp(1j * np.linspace(0, 3, N[0] * N[1]).reshape(N)), factors)


FACTORS = np.random.default_rng(2).uniform(0.5, 2, N)
CASES = [
    (operator, factors, axes)
    for operator, groups in ((Identity(N), [()]), (FiniteDifferences(N), [(), (-3,)]), (GRAPH, [(), (-3,)]))
    for axes in groups
    for factors in (None, 1.5, FACTORS)
]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("operator", "factors", "axes"), CASES)
def test_products_are_those_of_the_coefficients(operator, factors, axes, dtype):
    a, b = images(dtype)
    if factors is None:
        block = SiteBlock("block", operator, Laplace(1.0), axes)
    else:
        block = SiteBlock("block", behind(operator, factors), Laplace(1.0), (-1, *(n - 1 for n in axes)))
    s, d = block.analysis(a), block.analysis(b)
    exact = 1e-5 if dtype is np.complex64 else 1e-12
    for second, of_second in ((b, d), (a, s)):
        ((cross, power),) = pooled_products([block], a, second)
        assert cross.shape == power.shape == block.site_shape
        assert cross.dtype == np.dtype(dtype).type(0).real.dtype
        wanted = block.pooled(np.real(np.conj(s) * of_second))
        np.testing.assert_allclose(cross, wanted, atol=exact * np.abs(wanted).max())
        np.testing.assert_allclose(power, block.site_power(of_second), rtol=10 * exact, atol=exact)


def test_blocks_whose_coefficients_have_to_be_made_are_named():
    a, b = images(np.complex128)
    apart = SiteBlock("apart", behind(Identity(N), 1.5), Laplace(1.0))
    wavelet = SiteBlock("wavelet", Wavelet((8, 8), "db2", 1), Laplace(1.0))
    known = SiteBlock("known", Identity(N), Laplace(1.0))
    found = pooled_products([apart, wavelet, known], a, b)
    assert found[0] is None and found[1] is None and found[2] is not None
    real = SiteBlock("real", Identity(N, is_complex=False), Laplace(1.0))
    assert pooled_products([real], a.real.copy(), b.real.copy()) == (None,)


def test_weights_before_the_adjoint_are_those_of_the_parts():
    rng = np.random.default_rng(3)
    for operator in (Identity(N), FiniteDifferences(N), GRAPH):
        parts = behind(operator, FACTORS)
        v = rng.standard_normal((2, *parts.out_shape))
        for weights in (rng.uniform(1, 2, parts.out_shape), rng.uniform(1, 2, (*parts.out_shape[:-1], 1))):
            np.testing.assert_allclose(parts.weighted_adjoint(weights, v), parts.adjoint(weights * v), atol=1e-12)
