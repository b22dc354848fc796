"""Krylov methods on callables x -> A x: conjugate gradients, and the Lanczos process.

Conjugate gradients are preconditioned and take several right-hand sides at once, some at a time where memory is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import require_choice, require_counts, require_numbers
from mri_design.status import Convergence, Status

Array = NDArray[Any]


def chunks(count: int, at_once: int | None) -> Iterator[slice]:
    """The numbers from 0 to ``count``, ``at_once`` at a time; all of them where it is None."""
    step = max(count, 1) if at_once is None else at_once
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def in_chunks(function: Callable[[Array], Array], batch: Array, at_once: int | None) -> Array:
    """``function(batch)``, for a function that takes the vectors of a batch one by one anyway.

    Parameters
    ----------
    function : callable
        Array (some, ...) -> array (some, ...), whose shape and type behind the first axis are always the same.
    batch : array, shape (count, ...)
        Vectors along the first axis.
    at_once : int or None
        How many of them ``function`` gets at a time; None is all.
    """
    if at_once is None or at_once >= len(batch):
        return function(batch)
    out: Array | None = None
    for some in chunks(len(batch), at_once):
        part = function(batch[some])
        if out is None:
            out = np.empty((len(batch), *part.shape[1:]), dtype=part.dtype)
        out[some] = part
    assert out is not None  # a batch of none has no chunk and is left to ``function``
    return out


RUN = 256
"""Numbers whose products the iteration adds up in their own precision."""
RECENT = 3
"""Iterations whose mean step and mean momentum decide how far `ConjugateGradients.extrapolated` goes."""
MOST_MOMENTUM = 0.5
"""Largest momentum that the extrapolation uses: with twice the step the error in the norm of A stays the same."""


def real_inner(a: Array, b: Array, n_axes: int) -> NDArray[np.float64]:
    """Re<a, b> over the last ``n_axes`` axes, accumulated in double precision.

    Parameters
    ----------
    a, b : arrays of equal shape
        Real or complex.
    n_axes : int
        Trailing axes that make up one vector; the others are a batch.
    """
    flat_a, flat_b = _real_rows(a, n_axes), _real_rows(b, n_axes)
    return np.einsum("...i,...i->...", flat_a, flat_b, dtype=np.float64)


def quick_inner(a: Array, b: Array, n_axes: int) -> NDArray[np.float64]:
    """`real_inner` to the rounding of the vectors: runs of numbers are added up in their precision, then in double."""
    flat_a, flat_b = _real_rows(a, n_axes), _real_rows(b, n_axes)
    batch, whole = flat_a.shape[:-1], flat_a.shape[-1] // RUN * RUN
    runs_a, runs_b = (v[..., :whole].reshape(*batch, -1, RUN) for v in (flat_a, flat_b))
    runs = np.einsum("...i,...i->...", runs_a, runs_b).sum(axis=-1, dtype=np.float64)
    rest = np.einsum("...i,...i->...", flat_a[..., whole:], flat_b[..., whole:], dtype=np.float64)
    return np.asarray(runs + rest)


def _real_rows(a: Array, n_axes: int) -> Array:
    """A batch of vectors as a matrix of reals, one row a vector; complex entries are viewed as pairs."""
    flat = a.reshape(*a.shape[: a.ndim - n_axes], -1)
    return np.ascontiguousarray(flat).view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def squared_norm(a: Array) -> float:
    """||a||^2 of the whole array, accumulated in double precision."""
    return float(real_inner(a, a, a.ndim))


def conjugate_gradients(
    apply: Callable[[Array], Array],
    rhs: Array,
    *,
    n_axes: int,
    start: Array | None = None,
    preconditioner: Callable[[Array], Array] | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 200,
) -> tuple[Array, Convergence]:
    """Solve A x = rhs for a positive definite A with respect to Re<., .>, many right-hand sides side by side.

    Parameters
    ----------
    apply : callable
        x -> A x on a batch (batch, *shape).
    rhs : array, shape (batch, *shape)
        Right-hand sides, real or complex.
    n_axes : int
        Number of axes of one vector (``len(shape)``).
    start : array, optional
        Starting point of the shape of ``rhs``; zeros without one.
    preconditioner : callable, optional
        r -> P r, an approximation of A^-1, positive definite.
    tolerance : float
        A right-hand side is done when ||P^(1/2) r|| <= tolerance ||P^(1/2) rhs||.
    max_iterations : int
        Limit for each.

    Returns
    -------
    x : array
        Solutions; finished ones are frozen while others go on.
    convergence : Convergence
        Worst right-hand side; ``residual`` is relative in the preconditioned norm, ``matvecs`` counts vectors.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a limit below 0.

    Notes
    -----
    Vectors keep the precision of ``rhs``; scalars are double, and as exact as the vectors. Breakdown (a direction of
    non-positive curvature, an indefinite preconditioner, a non-finite value) is reported, not raised. Golub & Van
    Loan, Matrix Computations, section 11.5.
    """
    solver = ConjugateGradients(apply, rhs.copy(), n_axes=n_axes, start=start, preconditioner=preconditioner)
    convergence = solver.solve(tolerance, max_iterations)
    return solver.x, convergence


class ConjugateGradients:
    """The iteration behind `conjugate_gradients`, which can go on from where it stopped.

    Parameters
    ----------
    apply, n_axes, start, preconditioner
        As in `conjugate_gradients`.
    rhs : array, shape (batch, *shape)
        Right-hand sides; their memory becomes that of the residuals.
    preconditioned : array, optional
        P rhs, where it is known already.
    at_once : int, optional
        Right-hand sides that are iterated side by side, all by default. Memory holds the products of so many, and
        solutions, residuals and directions of all.

    Attributes
    ----------
    x : array, shape of ``rhs``
        The solutions so far.
    """

    def __init__(
        self,
        apply: Callable[[Array], Array],
        rhs: Array,
        *,
        n_axes: int,
        start: Array | None = None,
        preconditioner: Callable[[Array], Array] | None = None,
        preconditioned: Array | None = None,
        at_once: int | None = None,
    ) -> None:
        self._apply, self._n_axes, self._at_once = apply, n_axes, at_once
        self._precondition = preconditioner or (lambda r: r)
        if preconditioned is None:
            preconditioned = in_chunks(self._precondition, rhs, at_once)
        self._scale = real_inner(rhs, preconditioned, n_axes)
        self._uncounted = 0
        if start is None:
            self.x = np.zeros_like(rhs)
            self._r, z = rhs, preconditioned
        else:
            self.x = start.astype(rhs.dtype, copy=True)
            self.x[self._scale == 0] = 0  # a right-hand side of zero: no relative residual would reach its solution
            product = in_chunks(apply, self.x, at_once)
            self._r = np.subtract(rhs, product, out=rhs)
            del product
            self._uncounted = len(rhs)
            z = in_chunks(self._precondition, self._r, at_once)
        self._rz = real_inner(self._r, z, n_axes)
        self._p = z.copy() if np.may_share_memory(z, self._r) else z
        self._steps, self._momenta = np.full((2, len(rhs), RECENT), np.nan)

    @property
    def residuals(self) -> NDArray[np.float64]:
        """||P^(1/2) r|| of every right-hand side, relative to ||P^(1/2) rhs||."""
        return _relative(self._rz, self._scale)

    def extrapolated(self) -> Array:
        """The solutions so far, moved on along the direction of the iteration that would come next, without a product.

        Returns
        -------
        array, shape of ``x``
            x + c p, where c is alpha / (1 - beta), with the mean step alpha and the mean momentum beta of the last few
            iterations, and beta at most 1/2; x itself where there was no iteration. `residuals` are those of x.

        Notes
        -----
        Directions p_j = P r_j + beta_j p_(j-1) are at acute angles in the norm of P^-1, so x - start is too short, and
        quadratic functions of it are too small to first order in what x lacks (Hestenes & Stiefel, Methods of conjugate
        gradients for solving linear systems, 1952, section 6). What x lacks is sum_j alpha_j p_j over the iterations to
        come, from j = 0. As the P r_j are orthogonal in that norm, c p with c = alpha_0 + beta_1 (alpha_1 + beta_2
        (alpha_2 + ...)) is all of it that is not orthogonal to x - start. With steps and momenta as they were last, c
        is alpha / (1 - beta).
        """
        taken = np.isfinite(self._steps)
        count = np.maximum(taken.sum(axis=-1), 1)
        step, momentum = (np.where(taken, v, 0).sum(axis=-1) / count for v in (self._steps, self._momenta))
        spread = (...,) + (None,) * self._n_axes
        far = (step / (1 - np.minimum(momentum, MOST_MOMENTUM))).astype(self.x.real.dtype)[spread]
        moved = np.empty_like(self.x)
        for some in chunks(len(moved), self._at_once):
            np.multiply(far[some], self._p[some], out=moved[some])
            moved[some] += self.x[some]
        return moved

    def solve(self, tolerance: float, max_iterations: int) -> Convergence:
        """Iterate until ||P^(1/2) r|| <= tolerance ||P^(1/2) rhs|| for every right-hand side.

        Parameters
        ----------
        tolerance, max_iterations : float, int
            As in `conjugate_gradients`; the limit is that of this call.

        Returns
        -------
        convergence : Convergence
            Of this call: ``matvecs`` and ``iterations`` are those it took, the product for a start among the first's.

        Raises
        ------
        InputError
            For a tolerance that is negative or not finite, or a limit below 0.
        """
        require_numbers(tolerance=tolerance)
        return self._until(tolerance, self._scale, max_iterations)

    def reduce(self, factor: float, max_iterations: int) -> Convergence:
        """Iterate until every ||P^(1/2) r|| is at most ``factor`` times what it is now; with 0, up to the limit.

        As `solve` otherwise; ``residual`` of the result is relative to what it is now, too.
        """
        require_numbers(factor=factor)
        return self._until(factor, self._rz.copy(), max_iterations)

    def part(self, which: NDArray[np.integer] | slice) -> ConjugateGradients:
        """Some of the right-hand sides to go on with.

        By number they are a copy, which leaves this one as it is; a slice of them goes on in this one's place.
        """
        some = copy(self)
        some._uncounted = 0
        some.x, some._r, some._p, some._rz, some._scale, some._steps, some._momenta = (
            v[which] for v in (self.x, self._r, self._p, self._rz, self._scale, self._steps, self._momenta)
        )
        return some

    def _until(self, tolerance: float, scale: NDArray[np.float64], max_iterations: int) -> Convergence:
        """Iterate until every <r, P r> is at most tolerance^2 times its ``scale``."""
        require_counts(max_iterations=max_iterations, least=0)
        goal, rz = tolerance**2 * scale, self._rz
        matvecs, self._uncounted = self._uncounted, 0
        status, iterations = Status.CONVERGED, 0
        for some in chunks(len(rz), self._at_once):
            status, taken, spent = self.part(some)._iterate(goal[some], max_iterations)
            iterations, matvecs = max(iterations, taken), matvecs + spent
            if status is Status.BREAKDOWN:
                break
        residual = float(_relative(rz, scale).max()) if rz.size else 0.0
        indefinite = np.minimum(scale, rz) < -np.abs(goal)  # rounding may take rz a little below zero
        if not np.isfinite(residual) or indefinite.any():
            status = Status.BREAKDOWN
        elif status is Status.CONVERGED and (rz > goal).any():
            status = Status.MAX_ITERATIONS
        return Convergence(status, iterations, residual, matvecs)

    def _iterate(self, goal: NDArray[np.float64], max_iterations: int) -> tuple[Status, int, int]:
        """Take all of them to their ``goal`` side by side: converged unless broken down, iterations and products."""
        spread = (...,) + (None,) * self._n_axes
        x, r, p, rz = self.x, self._r, self._p, self._rz
        scratch = np.empty_like(p)
        active = np.flatnonzero(rz > goal)
        iterations, matvecs = 0, 0
        while active.size and iterations < max_iterations:
            iterations += 1
            every = active.size == len(x)
            p_active = p if every else p[active]
            a_p = self._apply(p_active)
            matvecs += active.size
            curvature = quick_inner(p_active, a_p, self._n_axes)
            if not (np.isfinite(curvature).all() and (curvature > 0).all()):
                return Status.BREAKDOWN, iterations, matvecs
            exact_step = rz[active] / curvature
            step = exact_step.astype(x.real.dtype)[spread]
            if every:
                x += np.multiply(step, p, out=scratch)
                r -= np.multiply(step, a_p, out=scratch)
                z = self._precondition(r)
            else:
                x[active] += step * p_active
                r[active] -= step * a_p
                z = self._precondition(r[active])
            rz_new = quick_inner(r if every else r[active], z, self._n_axes)
            exact_momentum = rz_new / rz[active]
            momentum = exact_momentum.astype(x.real.dtype)[spread]
            for recent, last in ((self._steps, exact_step), (self._momenta, exact_momentum)):
                recent[active] = np.column_stack((recent[active, 1:], last))
            if every:
                p *= momentum
                p += z
            else:
                p[active] = z + momentum * p_active
            rz[active] = rz_new
            active = np.flatnonzero(rz > goal)
        return Status.CONVERGED, iterations, matvecs


def _relative(rz: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root of |rz| relative to that of ``scale``, or as it is where that is zero."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.abs(rz / np.where(scale == 0, 1, scale))))


def orthogonalised(r: Array, basis: Array) -> Array:
    """The vector r (n,) less its part along the orthonormal rows of ``basis`` (k, n).

    Gram-Schmidt, and a second time where the first has cancelled much: "twice is enough". Daniel, Gragg, Kaufman &
    Stewart, Math. Comp. 30 (1976).
    """
    return _gram_schmidt(r, basis)[0]


def _gram_schmidt(r: Array, basis: Array) -> tuple[Array, int]:
    """`orthogonalised`, and how many vectors were read for it: twice the basis for each pass."""
    for passes in (1, 2):  # noqa: B007 (counted)
        before = np.linalg.norm(r)
        r = r - np.conj(np.conj(r) @ basis.T) @ basis  # without a conjugated copy of the basis
        if np.linalg.norm(r) > 0.7 * before:
            break
    return r, 2 * passes * len(basis)


PAUSE, SHORT = 4, 32
"""Steps between two looks for Ritz vectors that have converged, and how many begin with a look at each."""


class _RitzVectors:
    """Ritz vectors that have converged, along which rounding lets Lanczos vectors lose their orthogonality."""

    def __init__(self, basis: Array, diagonal: Array, off_diagonal: Array) -> None:
        self.basis, self.diagonal, self.off_diagonal = basis, diagonal, off_diagonal
        self.vectors = basis[:0]
        self.values, self.overlap, self.before = np.zeros((3, 0))
        self.eps = float(np.finfo(basis.dtype).eps)
        self.half, self.lost = float(np.sqrt(self.eps)), False

    def deflated(self, r: Array, k: int) -> tuple[Array, int]:
        """The residual r of step k (from 0) without what has come back of them, and the vectors read for it."""
        size, norm = float(np.linalg.norm(r)), float(self.diagonal[: k + 1].max())
        if size < self.eps * norm:
            return r, 0
        # <y, q> obeys the recurrence of the q up to rounding, so that no product with y has to be made to know it.
        last = self.off_diagonal[k - 1] if k else 0.0
        overlap = (np.abs(self.values - self.diagonal[k]) * self.overlap + last * self.before + self.eps * norm) / size
        due, work = overlap > self.half, 0
        overlap[due] = self.eps
        self.before, self.overlap = self.overlap, overlap
        if k < SHORT or k % PAUSE == 0:
            work = self._look(k, size, self.half * norm)
            due = np.concatenate([due, np.ones(len(self.values) - len(due), dtype=bool)])
        back = self.vectors[due]
        r, work = r - np.conj(np.conj(r) @ back.T) @ back, work + 2 * len(back)
        if k % PAUSE == 0 or k + 1 == len(self.basis):
            self.lost = bool(np.abs(np.conj(r) @ self.basis[: k + 1].T).max() > np.cbrt(self.eps) * size)
            work += k + 1
        return r, work

    def _look(self, k: int, size: float, enough: float) -> int:
        """Take in Ritz vectors whose residual is at most ``enough``; those that are known are not made again."""
        values, s = scipy.linalg.eigh_tridiagonal(self.diagonal[: k + 1], self.off_diagonal[:k])
        new = np.flatnonzero(size * np.abs(s[-1]) <= enough)
        for value in self.values:  # assigned to the nearest, which is the same vector
            apart = np.abs(values[new] - value)
            if apart.min(initial=np.inf) <= 2 * enough:
                new = np.delete(new, apart.argmin())
        made = s[:, new].T.astype(self.basis.real.dtype) @ self.basis[: k + 1]
        self.vectors = np.concatenate([self.vectors, made / np.linalg.norm(made, axis=1, keepdims=True)])
        self.values = np.concatenate([self.values, values[new]])
        self.overlap = np.concatenate([self.overlap, np.full(len(new), self.eps)])
        self.before = np.concatenate([self.before, np.full(len(new), self.half)])  # as much as q_k may have lost
        return len(new) * (k + 1)


ReOrthogonalisation = Literal["complete", "selective"]


@dataclass(frozen=True)
class LanczosFactors:
    """Q and T with Q^H C^-1 A C^-1 Q = T, and T = L L^T with L bidiagonal; C is 1 without a preconditioner.

    Parameters
    ----------
    basis : array, shape (k, *shape)
        Rows are the orthonormal Lanczos vectors q_1 ... q_k.
    diagonal, off_diagonal : float arrays, shapes (k,) and (k - 1,)
        The tridiagonal matrix T.
    convergence : Convergence
        Status; ``residual`` is the last off-diagonal entry relative to the largest diagonal one.
    deflations : int
        Inner products and multiples of vectors that re-orthogonalisation took, Ritz vectors included.
    preconditioner : callable, optional
        v -> C^-1 v.
    """

    basis: Array
    diagonal: NDArray[np.float64]
    off_diagonal: NDArray[np.float64]
    convergence: Convergence
    deflations: int = 0
    preconditioner: Callable[[Array], Array] | None = None

    def cholesky(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Diagonal e and sub-diagonal d of L (TR-175 appendix B)."""
        e = np.empty_like(self.diagonal)
        d = np.empty_like(self.off_diagonal)
        e[0] = np.sqrt(self.diagonal[0])
        for i in range(1, len(e)):
            d[i - 1] = self.off_diagonal[i - 1] / e[i - 1]
            e[i] = np.sqrt(self.diagonal[i] - d[i - 1] ** 2)
        return e, d

    def inverse_root(self) -> Array:
        """V of shape (k, *shape) with A^-1 near sum_j v_j v_j^H: the rows of L^-1 Q^T C^-1 (TR-175 section 6.1)."""
        e, d = self.cholesky()
        root = self.basis.copy() if self.preconditioner is None else self.preconditioner(self.basis)
        root[0] /= e[0].astype(root.real.dtype)
        for i in range(1, len(e)):
            root[i] = (root[i] - d[i - 1].astype(root.real.dtype) * root[i - 1]) / e[i].astype(root.real.dtype)
        return root

    def log_determinant(self) -> float:
        """log|T|: an underestimate of log|C^-1 A C^-1| for k below the dimension (when the rest of it is above 1)."""
        return 2 * float(np.sum(np.log(self.cholesky()[0])))


def lanczos(
    apply: Callable[[Array], Array],
    start: Array,
    steps: int,
    *,
    preconditioner: Callable[[Array], Array] | None = None,
    reorthogonalisation: ReOrthogonalisation = "complete",
) -> LanczosFactors:
    """Run ``steps`` Lanczos steps with a Hermitian positive definite A from a starting vector.

    Parameters
    ----------
    apply : callable
        x -> A x for one vector of the shape of ``start``.
    start : array
        Any non-zero vector, real or complex; it is normalised.
    steps : int
        k, at most the dimension n.
    preconditioner : callable, optional
        v -> C^-1 v on one vector or a batch, Hermitian: steps are made with C^-1 A C^-1.
    reorthogonalisation : {"complete", "selective"}
        Against all previous vectors, a second time where needed: memory k vectors, time O(n k^2). Or against Ritz
        vectors that have converged, as far as they have come back: memory for these as well, an eigendecomposition of T
        at every fourth step, and vectors that are orthogonal to half the digits. Orthogonality is looked at; where it
        is lost, as with eigenvalues of very different size, all steps are made again, completely.

    Returns
    -------
    LanczosFactors
        Fewer than ``steps`` vectors where an invariant subspace was found. Status breakdown, and vectors up to there,
        where A is not positive definite.

    Raises
    ------
    InputError
        For more steps than n, and for another kind of re-orthogonalisation.

    Notes
    -----
    Seeger & Nickisch 2008 (TR-175), Algorithm 1 and B.1. Selective: Parlett & Scott, Math. Comp. 33 (1979); lazy as in
    the report, in that a Ritz vector is made once and taken to stay, and looked for at every fourth step only.
    """
    require_choice(get_args(ReOrthogonalisation), reorthogonalisation=reorthogonalisation)
    shape = start.shape
    n = start.size
    require_counts(steps=steps, least=1, most=n)
    basis = np.empty((steps, n), dtype=start.dtype)
    diagonal = np.empty(steps)
    off_diagonal = np.empty(max(steps - 1, 0))
    basis[0] = start.ravel() / np.linalg.norm(start)
    status, residual, done, pivot = Status.CONVERGED, 0.0, steps, np.inf
    rounding = 10 * np.finfo(start.real.dtype).eps
    selected = _RitzVectors(basis, diagonal, off_diagonal) if reorthogonalisation == "selective" else None
    deflations = 0
    for k in range(steps):
        q = basis[k].reshape(shape)
        r = (apply(q) if preconditioner is None else preconditioner(apply(preconditioner(q)))).ravel()
        if k:  # before the product with q: after it the recurrence would not be stable (Paige 1976)
            r = r - off_diagonal[k - 1].astype(r.real.dtype) * basis[k - 1]
        diagonal[k] = float(np.real(np.vdot(basis[k], r)))
        # The last pivot of T's Cholesky factor: all are positive where A is positive definite on the basis.
        pivot = diagonal[k] - (off_diagonal[k - 1] ** 2 / pivot if k else 0.0)
        if not pivot > 0:
            status, done = Status.BREAKDOWN, k
            break
        r = r - diagonal[k].astype(r.real.dtype) * basis[k]
        r, work = selected.deflated(r, k) if selected else _gram_schmidt(r, basis[: k + 1])
        deflations += work
        if selected and selected.lost:
            break
        size = float(np.linalg.norm(r))
        residual = size / float(diagonal[: k + 1].max())
        if k + 1 == steps:
            break
        if residual < rounding:
            done = k + 1
            break
        off_diagonal[k] = size
        basis[k + 1] = r / np.asarray(size, dtype=r.real.dtype)
    if selected and (selected.lost or done < steps):
        made = lanczos(apply, start, steps, preconditioner=preconditioner)
        spent = replace(made.convergence, matvecs=made.convergence.matvecs + k + 1)
        return replace(made, convergence=spent, deflations=made.deflations + deflations)
    if done and _numerically_singular(diagonal[:done], off_diagonal[: done - 1], start.real.dtype):
        status = Status.BREAKDOWN
    return LanczosFactors(
        basis[:done].reshape(done, *shape),
        diagonal[:done],
        off_diagonal[: max(done - 1, 0)],
        Convergence(status, done, residual, matvecs=min(done + (status is Status.BREAKDOWN), steps)),
        deflations,
        preconditioner,
    )


def _numerically_singular(diagonal: Array, off_diagonal: Array, dtype: np.dtype[Any]) -> bool:
    """True where T's smallest eigenvalue is rounding: in double precision, or of vectors in single."""
    smallest = scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(0, 0))[0]
    return bool(smallest <= max(np.finfo(dtype).eps, 100 * np.finfo(float).eps) * diagonal.max())
