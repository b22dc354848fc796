"""Conjugate gradients and Lanczos against dense algebra, and how they say that they failed."""

import numpy as np
import pytest

from mri_design import Status
from mri_design.krylov import ConjugateGradients, LanczosFactors, conjugate_gradients, lanczos, quick_inner, real_inner
from tests.refusals import refused


class Counted:
    """x -> A x on a batch of vectors, counting them."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix, self.vectors = matrix, 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.vectors += len(x)
        return x @ self.matrix.T


@pytest.mark.parametrize("axes", [1, 3])
def test_inner_products_sum_the_last_axes(axes, vectors):
    a, b = vectors((2, 3, 4, 500), 1), vectors((2, 3, 4, 500), 2)
    expected = (a.conj() * b).real.sum(axis=tuple(range(-axes, 0)))
    np.testing.assert_allclose(real_inner(a, b, axes), expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(quick_inner(a, b, axes), expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("inner", "exact"), [(real_inner, 1e-12), (quick_inner, 1e-6)])
def test_inner_products_of_single_precision_are_summed_in_double(inner, exact):
    single = (1e4 + np.arange(4_000_123) % 2).astype(np.float32)
    assert inner(single, single, 1).dtype == np.float64
    assert inner(single, single, 1) == pytest.approx(np.sum(single.astype(float) ** 2), rel=exact)


def test_equals_the_dense_solution(matrix, vectors):
    rhs = vectors((5, 12), 3)
    x, convergence = conjugate_gradients(Counted(matrix), rhs, n_axes=1, tolerance=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, rhs.T).T, atol=1e-10)
    assert convergence.converged
    assert convergence.residual <= 1e-12
    rhs = vectors((2, 3, 4), 4)  # vectors may have axes
    x, _ = conjugate_gradients(
        lambda u: (u.reshape(-1, 12) @ matrix.T).reshape(u.shape), rhs, n_axes=2, tolerance=1e-12
    )
    np.testing.assert_allclose(x.reshape(2, 12), np.linalg.solve(matrix, rhs.reshape(2, 12).T).T, atol=1e-10)


def test_real_linear_operators_on_complex_vectors():
    """u -> D u + R Re(u) + I Im(u) is positive definite in the real inner product only."""
    rng = np.random.default_rng(5)
    d, re, im = rng.uniform(0.5, 2, (3, 8))
    rhs = rng.standard_normal((1, 8)) + 1j * rng.standard_normal((1, 8))
    x, convergence = conjugate_gradients(
        lambda u: d * u + re * u.real + 1j * im * u.imag, rhs, n_axes=1, tolerance=1e-12
    )
    assert convergence.converged
    np.testing.assert_allclose(x, rhs.real / (d + re) + 1j * rhs.imag / (d + im), atol=1e-10)


def test_every_right_hand_side_stops_by_itself_and_the_worst_residual_counts(matrix, vectors):
    rhs = vectors((3, 12), 6)
    x, convergence = conjugate_gradients(Counted(matrix), rhs, n_axes=1, tolerance=1e-2)
    true = np.linalg.norm(rhs - x @ matrix.T, axis=1) / np.linalg.norm(rhs, axis=1)
    assert convergence.residual == pytest.approx(true.max(), rel=1e-6)
    assert true.max() <= 1e-2
    # An eigenvector is done after one iteration; the batch counts exactly the vectors it multiplied
    eigenvector = np.linalg.eigh(matrix)[1][:, 3]
    rhs = np.stack([vectors(12, 7), eigenvector.astype(vectors(1, 0).dtype), vectors(12, 8) * 1e-6, 0 * vectors(12, 9)])
    apply = Counted(matrix)
    x, together = conjugate_gradients(apply, rhs, n_axes=1, tolerance=1e-2)
    assert together.matvecs == apply.vectors
    alone = [conjugate_gradients(Counted(matrix), one[None], n_axes=1, tolerance=1e-2) for one in rhs]
    assert [info.iterations for _, info in alone[1:]] == [1, alone[2][1].iterations, 0]
    assert together.iterations == max(info.iterations for _, info in alone)
    assert together.matvecs == sum(info.matvecs for _, info in alone) == sum(info.iterations for _, info in alone)
    for row, (solution, _) in zip(x, alone, strict=True):
        np.testing.assert_allclose(row, solution[0], atol=1e-4)


def test_zero_has_the_solution_zero_from_any_start(matrix, vectors):
    rhs = np.stack([0 * vectors(12, 0), vectors(12, 1)])
    for start in (None, vectors((2, 12), 2)):
        x, convergence = conjugate_gradients(Counted(matrix), rhs, n_axes=1, start=start, tolerance=1e-9)
        assert convergence.converged
        assert not x[0].any()
        np.testing.assert_allclose(x[1], np.linalg.solve(matrix, rhs[1]), atol=1e-7)
    nothing, convergence = conjugate_gradients(Counted(matrix), 0 * rhs, n_axes=1)
    assert convergence.converged and convergence.iterations == 0 and convergence.matvecs == 0 and not nothing.any()


def test_a_warm_start_saves_iterations_and_costs_one_multiplication(matrix, vectors):
    rhs = vectors((2, 12), 10)
    exact = np.linalg.solve(matrix, rhs.T).T
    cold = conjugate_gradients(Counted(matrix), rhs, n_axes=1, tolerance=1e-5)[1]
    near = exact + 1e-4 * vectors((2, 12), 11)
    kept, apply = near.copy(), Counted(matrix)
    x, warm = conjugate_gradients(apply, rhs, n_axes=1, start=near, tolerance=1e-5)
    assert warm.matvecs == apply.vectors < cold.matvecs
    np.testing.assert_allclose(x, exact, atol=1e-3)
    np.testing.assert_array_equal(near, kept)
    there = conjugate_gradients(Counted(matrix), rhs, n_axes=1, start=exact, tolerance=1e-5)[1]
    assert (there.iterations, there.matvecs) == (0, 2)


def test_a_preconditioner_changes_the_path_not_the_solution(matrix, vectors):
    scales = np.geomspace(1e-3, 1e3, 12)
    stretched = scales[:, None] * matrix * scales
    rhs = vectors((3, 12), 12) * scales
    exact = np.linalg.solve(stretched, rhs.T).T
    plain = conjugate_gradients(Counted(stretched), rhs, n_axes=1, tolerance=1e-8, max_iterations=2000)[1]
    x, scaled = conjugate_gradients(
        Counted(stretched), rhs, n_axes=1, preconditioner=lambda r: r / scales**2, tolerance=1e-8
    )
    assert scaled.converged and scaled.iterations <= 13 < plain.iterations
    np.testing.assert_allclose(x * scales, exact * scales, atol=1e-6)
    perfect = conjugate_gradients(
        Counted(matrix), rhs, n_axes=1, preconditioner=lambda r: np.linalg.solve(matrix, r.T).T, tolerance=1e-8
    )[1]
    assert perfect.iterations == 1


def test_single_precision_stays_single(vectors):
    rhs = vectors((2, 12), 13)
    single = rhs.astype(np.complex64 if np.iscomplexobj(rhs) else np.float32)
    diagonal = np.linspace(1, 3, 12, dtype=np.float32)
    x, convergence = conjugate_gradients(lambda u: diagonal * u, single, n_axes=1, start=rhs, tolerance=1e-5)
    assert convergence.converged and x.dtype == single.dtype
    np.testing.assert_allclose(x, rhs / diagonal, atol=1e-4)


def test_the_iteration_limit_is_flagged(matrix, vectors):
    apply = Counted(matrix)
    _, convergence = conjugate_gradients(apply, vectors((2, 12), 14), n_axes=1, tolerance=1e-10, max_iterations=3)
    assert convergence.status is Status.MAX_ITERATIONS and not convergence.converged
    assert convergence.iterations == 3
    assert convergence.matvecs == apply.vectors == 6
    assert convergence.residual > 1e-10
    none = conjugate_gradients(apply, vectors((2, 12), 14), n_axes=1, max_iterations=0)[1]
    assert none.status is Status.MAX_ITERATIONS and none.residual == pytest.approx(1)
    _, convergence = conjugate_gradients(lambda u: 2 * u, vectors((1, 12), 15), n_axes=1, max_iterations=1)
    assert convergence.converged and convergence.iterations == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_and_indefinite_preconditioners_break_down(value, vectors, matrix):
    bad = vectors((2, 12), 17)
    bad[1, 3] = value
    with np.errstate(invalid="ignore"):
        for rhs, start in [(bad, None), (vectors((2, 12), 18), bad)]:
            convergence = conjugate_gradients(lambda u: 2 * u, rhs, n_axes=1, start=start)[1]
            assert convergence.status is Status.BREAKDOWN
    for sign in (-np.ones(12), np.where(np.arange(12) < 6, 1.0, -1.0)):
        convergence = conjugate_gradients(
            Counted(matrix),
            vectors((2, 12), 19),
            n_axes=1,
            preconditioner=lambda r, sign=sign: sign * r,
            tolerance=1e-6,
        )[1]
        assert convergence.status is Status.BREAKDOWN


def test_what_goes_on_later_ends_where_an_uninterrupted_run_ends(matrix, vectors):
    rhs = vectors((5, 12), 11)
    counted, diagonal = Counted(matrix), np.diag(matrix).real

    def preconditioner(r: np.ndarray) -> np.ndarray:
        return r / diagonal

    solver = ConjugateGradients(counted, rhs.copy(), n_axes=1, start=0.1 * rhs, preconditioner=preconditioner)
    first = solver.solve(1e-2, 50)
    second = solver.solve(1e-8, 50)
    x, whole = conjugate_gradients(
        Counted(matrix), rhs, n_axes=1, start=0.1 * rhs, preconditioner=preconditioner, tolerance=1e-8
    )
    np.testing.assert_allclose(solver.x, x, rtol=1e-12)
    assert first.converged and second.converged and first.residual > second.residual
    assert first.matvecs + second.matvecs == whole.matvecs == counted.vectors


def test_some_may_go_on_without_the_others(matrix, vectors):
    rhs = vectors((5, 12), 12)
    solver = ConjugateGradients(Counted(matrix), rhs.copy(), n_axes=1)
    solver.solve(0.1, 50)
    before, residuals = solver.x.copy(), solver.residuals.copy()
    which = np.array([3, 1])
    part = solver.part(which)
    found = part.reduce(0.01, 50)
    np.testing.assert_array_equal(solver.x, before)
    np.testing.assert_array_equal(solver.residuals, residuals)
    lacking = np.linalg.norm(rhs[which] - part.x @ matrix.T, axis=-1) / np.linalg.norm(rhs[which], axis=-1)
    np.testing.assert_allclose(part.residuals, lacking, rtol=1e-6)
    assert (part.residuals <= 0.01 * residuals[which]).all()
    assert found.residual == pytest.approx((part.residuals / residuals[which]).max())
    assert 0 < found.matvecs <= 2 * found.iterations


def preconditioned(matrix: np.ndarray, rhs: np.ndarray, iterations: int) -> tuple[ConjugateGradients, np.ndarray]:
    """A solver from zero with the diagonal as a preconditioner, and P^-1."""
    diagonal = np.diag(matrix).real
    solver = ConjugateGradients(Counted(matrix), rhs.copy(), n_axes=1, preconditioner=lambda r: r / diagonal)
    solver.solve(0.0, iterations)
    return solver, diagonal


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_extrapolating_moves_along_the_next_direction_without_a_product(iterations, matrix, vectors):
    rhs = vectors((4, 12), 21)
    solver, _ = preconditioned(matrix, rhs, iterations)
    x, residuals, spent = solver.x.copy(), solver.residuals.copy(), solver._apply.vectors
    moved = solver.extrapolated()
    assert solver._apply.vectors == spent
    np.testing.assert_array_equal(solver.x, x)
    np.testing.assert_array_equal(solver.residuals, residuals)
    step = preconditioned(matrix, rhs, iterations + 1)[0].x - x
    ahead = moved - x
    cosine = real_inner(ahead, step, 1) / np.sqrt(real_inner(ahead, ahead, 1) * real_inner(step, step, 1))
    np.testing.assert_allclose(cosine, 1, rtol=1e-9)
    np.testing.assert_array_equal(solver.part(np.array([2, 0])).extrapolated(), moved[[2, 0]])
    some_at_once = ConjugateGradients(
        Counted(matrix), rhs.copy(), n_axes=1, preconditioner=lambda r: r / np.diag(matrix).real, at_once=3
    )
    some_at_once.solve(0.0, iterations)
    np.testing.assert_allclose(some_at_once.extrapolated(), moved, rtol=1e-9)


def test_extrapolating_goes_as_far_as_the_mean_step_over_one_less_the_mean_momentum(matrix, vectors):
    """Means over the last three iterations of a textbook recurrence; momenta above one half count as that."""
    rhs = vectors((1, 12), 22)
    for iterations in (1, 2, 3, 6):
        x, r = np.zeros_like(rhs), rhs.copy()
        p, steps, momenta = r.copy(), [], []
        for _ in range(iterations):
            before = real_inner(r, r, 1)
            steps.append(before / real_inner(p, p @ matrix.T, 1))
            x, r = x + steps[-1] * p, r - steps[-1] * (p @ matrix.T)
            momenta.append(real_inner(r, r, 1) / before)
            p = r + momenta[-1] * p
        solver = ConjugateGradients(Counted(matrix), rhs.copy(), n_axes=1)
        solver.solve(0.0, iterations)
        far = np.mean(steps[-3:]) / (1 - min(np.mean(momenta[-3:]), 0.5))
        np.testing.assert_allclose(solver.extrapolated(), x + far * p, rtol=1e-9)


def test_what_is_solved_already_is_neither_extrapolated_nor_reduced(matrix, vectors):
    rhs = vectors((3, 12), 24)
    start = np.linalg.solve(matrix, rhs.T).T
    rhs[1] = 0
    solver = ConjugateGradients(Counted(matrix), rhs.copy(), n_axes=1, start=start)
    np.testing.assert_array_equal(solver.extrapolated(), solver.x)
    assert solver.solve(1e-6, 5).iterations == 0
    np.testing.assert_array_equal(solver.extrapolated(), solver.x)
    assert not solver.x[1].any()
    with refused("factor"):
        solver.reduce(-0.1, 5)
    nothing = ConjugateGradients(Counted(matrix), np.zeros((2, 12)), n_axes=1)
    assert nothing.solve(0.1, 5).converged and nothing.reduce(0.1, 5).matvecs == 0


def tridiagonal(factors: LanczosFactors) -> np.ndarray:
    return np.diag(factors.diagonal) + np.diag(factors.off_diagonal, 1) + np.diag(factors.off_diagonal, -1)


@pytest.mark.parametrize("steps", [1, 5, 12])
def test_basis_is_orthonormal_and_projects_to_the_tridiagonal_matrix(steps, matrix, vectors):
    start = vectors((3, 4), 1)
    calls: list[int] = []

    def apply(u: np.ndarray) -> np.ndarray:
        calls.append(1)
        return (matrix @ u.ravel()).reshape(u.shape)

    factors = lanczos(apply, start, steps)
    assert factors.basis.shape == (steps, 3, 4)
    Q = factors.basis.reshape(steps, 12).T  # columns q_j
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(steps), atol=1e-12)
    np.testing.assert_allclose(Q.conj().T @ matrix @ Q, tridiagonal(factors), atol=1e-11)
    np.testing.assert_allclose(Q[:, 0], start.ravel() / np.linalg.norm(start), rtol=1e-12)
    assert factors.convergence.status is Status.CONVERGED
    assert factors.convergence.iterations == factors.convergence.matvecs == len(calls) == steps
    e, d = factors.cholesky()
    lower = np.diag(e) + np.diag(d, -1)
    np.testing.assert_allclose(lower @ lower.T, tridiagonal(factors), atol=1e-11)


def test_orthogonality_survives_many_steps(vectors):
    """Without reorthogonalisation well separated eigenvalues ruin it after a few dozen steps."""
    eigenvalues = np.concatenate([np.linspace(1, 2, 150), [1e3, 1e4]])
    factors = lanczos(lambda u: eigenvalues * u, vectors(152, 2), 152)
    Q = factors.basis.T
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(Q.shape[1]), atol=1e-10)


def test_selective_reorthogonalisation_gives_the_same_with_less_work(vectors):
    """Many Ritz vectors converge, at both ends of the spectrum."""
    eigenvalues = np.concatenate([np.geomspace(1e-3, 1e-2, 20), np.linspace(1, 2, 360), [1e2, 1e3]])
    complete, selective = (
        lanczos(lambda u: eigenvalues * u, vectors(382, 2), 140, reorthogonalisation=kind)
        for kind in ("complete", "selective")
    )
    np.testing.assert_allclose(selective.diagonal, complete.diagonal, rtol=1e-7)
    powers = [np.sum(np.abs(factors.inverse_root()) ** 2, axis=0) for factors in (complete, selective)]
    np.testing.assert_allclose(powers[1], powers[0], rtol=1e-6)
    assert selective.log_determinant() == pytest.approx(complete.log_determinant(), abs=1e-9)
    assert 0 < selective.deflations < 0.5 * complete.deflations
    Q = selective.basis
    assert np.abs(Q.conj() @ Q.T - np.eye(len(Q))).max() < 1e-6
    with refused("reorthogonalisation"):
        lanczos(lambda u: u, vectors(3, 2), 2, reorthogonalisation="none")
    with refused("steps"):
        lanczos(lambda u: u, vectors(3, 2), 4)


def test_preconditioned_vectors_are_those_of_the_matrix_itself(matrix, vectors):
    C = np.diag(np.sqrt(np.diag(matrix).real))
    inverse = np.linalg.inv(C)
    factors = lanczos(lambda u: matrix @ u, vectors(12, 5), 12, preconditioner=lambda v: v @ inverse)
    V = factors.inverse_root()
    np.testing.assert_allclose(np.einsum("ji,jk->ik", V, V.conj()), np.linalg.inv(matrix), atol=1e-9)
    whole = factors.log_determinant() + 2 * np.linalg.slogdet(C)[1]
    assert whole == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)


def test_full_length_reproduces_inverse_and_determinant_also_in_single_precision(matrix, vectors):
    factors = lanczos(lambda u: matrix @ u, vectors(12, 5), 12)
    assert len(factors.basis) == 12
    V = factors.inverse_root()
    np.testing.assert_allclose(np.einsum("ji,jk->ik", V, V.conj()), np.linalg.inv(matrix), atol=1e-9)
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
    start = vectors(12, 9)
    single = start.astype(np.complex64 if np.iscomplexobj(start) else np.float32)
    A = matrix.astype(single.dtype)
    factors = lanczos(lambda u: A @ u, single, 12)
    assert factors.basis.dtype == factors.inverse_root().dtype == single.dtype
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-3)


def test_the_inverse_is_approached_from_below(matrix, vectors):
    """A^-1 - Q T^-1 Q^H is positive semidefinite for every k, so the inverse's diagonal rises with k."""
    inverse, last = np.linalg.inv(matrix), np.zeros(12)
    for steps in range(1, 13):
        V = lanczos(lambda u: matrix @ u, vectors(12, 6), steps).inverse_root()
        low_rank = np.einsum("ji,jk->ik", V, V.conj())
        assert np.linalg.eigvalsh(inverse - low_rank).min() > -1e-9
        diagonal = low_rank.diagonal().real
        assert (diagonal >= last - 1e-10).all()
        last = diagonal
    np.testing.assert_allclose(last, inverse.diagonal().real, rtol=1e-9)


def test_an_invariant_subspace_ends_it_early(vectors):
    eigenvalues = np.geomspace(0.1, 10, 12)
    start = np.where(np.isin(np.arange(12), [2, 5, 9]), vectors(12, 7), 0)
    factors = lanczos(lambda u: eigenvalues * u, start, 12)
    assert len(factors.basis) == factors.convergence.iterations == 3
    assert factors.convergence.status is Status.CONVERGED
    np.testing.assert_allclose(np.linalg.eigvalsh(tridiagonal(factors)), eigenvalues[[2, 5, 9]], rtol=1e-9)
    assert len(lanczos(lambda u: 3 * u, vectors(12, 8), 12).basis) == 1


@pytest.mark.parametrize("least", [-0.5, 0.0, np.nan], ids=["indefinite", "singular", "nan"])
def test_both_break_down_on_what_is_not_positive_definite(least, matrix, vectors):
    eigenvalues, basis = np.linalg.eigh(matrix)
    eigenvalues[0] = least
    A = (basis * eigenvalues) @ basis.conj().T
    factors = lanczos(lambda u: A @ u, vectors(12, 10), 12)
    assert factors.convergence.status is Status.BREAKDOWN
    assert len(factors.basis) == factors.convergence.iterations <= 12
    if len(factors.basis):
        assert np.isfinite(factors.inverse_root()).all() and np.isfinite(factors.log_determinant())
    diagonal = np.linspace(least, least + 2 * (least != 0), 12)  # 0 everywhere where it is singular
    x, convergence = conjugate_gradients(lambda u: diagonal * u, vectors((2, 12), 16), n_axes=1, tolerance=1e-10)
    assert convergence.status is Status.BREAKDOWN and np.isfinite(x).all()
