"""Sites on vectors with a covariance against dense matrices with full blocks."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import mri_design as md
from mri_design.estimation import IRLS
from mri_design.operators import Dense, Identity, Mixing
from mri_design.sites import Laplace
from mri_design.variances import Exact
from tests.refusals import refused

TAU, SIGMA, SIDE, VECTORS = 0.8, 0.3, 3, 4


def covariances(rng: np.random.Generator, count: int) -> np.ndarray:
    roots = rng.standard_normal((count, SIDE, SIDE))
    return roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(SIDE)


@pytest.mark.parametrize("shared", [True, False])
def test_they_reach_the_minimum_of_the_criterion_with_full_blocks(shared, rng):
    """phi = log|X^T X + B^T Gamma^-1 B| + tau^2 sum gamma_i + fit with Gamma = blockdiag(gamma_i C_i)."""
    n = SIDE * VECTORS
    X, C = rng.standard_normal((8, n)), covariances(rng, 1 if shared else VECTORS)
    y = X @ rng.standard_normal(n) + SIGMA * rng.standard_normal(8)
    block = md.SiteBlock.on_vectors(
        "vectors", Identity((SIDE, VECTORS), is_complex=False), Laplace(TAU), C[0] if shared else C
    )
    measurement = Dense(X) @ _Flat((SIDE, VECTORS))
    model = md.GeneralizedLinearModel(measurement, y, SIGMA**2, (block,))
    inner = IRLS(tolerance=1e-12, max_iterations=200, solver_tolerance=1e-2)
    made = md.DoubleLoop(Exact(), inner, outer_iterations=60, tolerance=1e-9).infer(model, rng)
    order = np.arange(n).reshape(SIDE, VECTORS).T.ravel()  # vector by vector
    each = np.broadcast_to(C, (VECTORS, SIDE, SIDE))

    def of(log_gamma: np.ndarray) -> tuple[float, np.ndarray]:
        blocks = scipy.linalg.block_diag(
            *(np.linalg.inv(g * one) for g, one in zip(np.exp(log_gamma), each, strict=True))
        )
        A = X[:, order].T @ X[:, order] + blocks
        u = np.linalg.solve(A, X[:, order].T @ y)
        fit = (np.sum((y - X[:, order] @ u) ** 2) + u @ blocks @ u) / SIGMA**2
        return float(np.linalg.slogdet(A)[1] + TAU**2 * np.exp(log_gamma).sum() + fit), u

    found = scipy.optimize.minimize(lambda g: of(g)[0], np.zeros(VECTORS), method="BFGS", options={"gtol": 1e-8})
    assert made.criterion[-1] == pytest.approx(found.fun, rel=1e-8)
    widths = 1 / made.precision.site_precisions[0].ravel()
    value, mean = of(np.log(widths))
    assert value == pytest.approx(made.criterion[-1], rel=1e-8)
    np.testing.assert_allclose(made.mean.ravel()[order], mean, atol=1e-8)


class _Flat(md.operators.LinearOperator):
    """A grid as a vector."""

    def __init__(self, shape):
        super().__init__(shape, (int(np.prod(shape)),), in_complex=False, out_complex=False)

    def _apply(self, u):
        return u.reshape(*u.shape[: u.ndim - len(self.in_shape)], -1)

    def _adjoint(self, v):
        return v.reshape(*v.shape[:-1], *self.in_shape)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_mixing_has_its_adjoint_along_every_axis(axis, is_complex, rng):
    shape = (3, 5, 3)
    others = (5, 3) if axis == 0 else (3, 5)
    for matrix in (
        rng.standard_normal((3, 3)) + 1j * is_complex,
        rng.standard_normal((*others, 3, 3)) + 1j * is_complex,
    ):
        A = Mixing(matrix, shape, axis, is_complex=is_complex)
        u, v = (rng.standard_normal((2, *shape)) + 1j * is_complex * rng.standard_normal((2, *shape)) for _ in range(2))
        assert np.vdot(v, A(u)) == pytest.approx(np.vdot(A.adjoint(v), u))
        one = np.moveaxis(u[0], axis, -1)[1, 2]
        np.testing.assert_allclose(
            np.moveaxis(A(u)[0], axis, -1)[1, 2], (matrix if matrix.ndim == 2 else matrix[1, 2]) @ one
        )


def test_blocks_that_are_not_positive_definite_are_refused():
    B = Identity((2, 5), is_complex=False)
    for matrix in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.eye(3), np.full((5, 2, 2), np.nan), np.ones((4, 2, 2))):
        with refused("block 'pairs': covariance"):
            md.SiteBlock.on_vectors("pairs", B, Laplace(1.0), matrix)


@pytest.mark.parametrize("axis", [2, -3, 0.5])
def test_vectors_lie_along_an_axis_of_the_coefficients(axis):
    with refused("block 'pairs': axis"):
        md.SiteBlock.on_vectors("pairs", Identity((2, 5), is_complex=False), Laplace(1.0), np.eye(2), axis=axis)
