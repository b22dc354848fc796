"""Marginal variances z = diag(B A^-1 B^H): their interface, exact ones, Lanczos bounds, and the bias of samples.

`Exact` takes a dense Cholesky factor; it is the reference, and the best choice for small problems. `Lanczos` sums a
low-rank representation of A^-1; it is cheap, and a lower bound.

Estimators by samples draw b ~ N(0, A) and solve A u = b by conjugate gradients to a tolerance. The error of the
solutions is a bias of z that more samples do not reduce. `SolvedDraws` solves a few of them further and estimates the
bias from the change of z. If a control variate leaves little to the solver, one more step along the next search
direction removes most of the error without a product with A (`ConjugateGradients.extrapolated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, require_choice, require_counts, require_random, require_working
from mri_design.krylov import ConjugateGradients, ReOrthogonalisation, lanczos
from mri_design.model.circulant import circulant_inverse
from mri_design.model.posterior import PosteriorPrecision, Variances
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.operators.elementary import MatrixOperator
from mri_design.status import Convergence, Status

SHARE = 8  # of so many draws one goes on, and at least one does
LEAST, LIMIT = 2, 10  # iterations that it goes on for
HALF = 0.5  # and between these, until the residual is at most this fraction of what it was
MOST_LEFT = 0.9  # of the residual, even where it did not become smaller: limits the extrapolation
GROUP, GROUPS = 64, 16  # coefficients, at least, that share a relative bias, and groups of them, at most
LOOKED_AT = 4096  # coefficients, at most, from which the limits between groups are taken


class VarianceEstimator(Protocol):
    """An estimator of marginal variances: settings, and a call that takes the precision A of a posterior."""

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        """Return z for each operator B of ``analyses``, in units of the noise variance.

        ``like`` is an image of the shape and precision to compute in.

        ``previous`` may be the result for a nearby precision from an equal ``rng``; its samples start the solver.
        """
        ...


def require_estimator(**settings: Any) -> None:
    """Refuse anything but a variance estimator, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(takes=5, wanted="a variance estimator, as Exact() or ControlVariate(samples=8)", **settings)


@dataclass
class RunningMean:
    """Mean over draws, of which some are added at a time.

    Parameters
    ----------
    count : int
        Draws so far.
    mean, scatter : arrays
        Their mean, and the sum of their squared distances from it.
    """

    count: int = 0
    mean: Array | float = 0.0
    scatter: Array | float = 0.0

    def add(self, mean: Array, count: int, scatter: Array | float = 0.0) -> None:
        """``count`` further draws, by their own mean and scatter (Chan, Golub & LeVeque 1983)."""
        if self.count == 0:
            self.count, self.mean, self.scatter = count, mean, scatter
            return
        total, change = self.count + count, mean - self.mean
        self.mean = self.mean + change * (count / total)
        self.scatter = self.scatter + scatter + np.square(change) * (self.count * count / total)
        self.count = total

    @property
    def error(self) -> Array:
        """Standard error of the mean."""
        return np.asarray(np.sqrt(self.scatter / (self.count - 1)) / float(np.sqrt(self.count)))


def mean_over_draws(parts: Iterable[Array]) -> RunningMean:
    """Mean over draws along the first axis of arrays that come one after the other."""
    running = RunningMean()
    for part in parts:
        mean = part.mean(axis=0)
        running.add(mean, len(part), np.square(part - mean).sum(axis=0))
    return running


def starting_draws(previous: Variances | None, rhs: Array) -> Array | None:
    """Earlier draws to start the solver for ``rhs`` from; None if there are none of that shape."""
    made = None if previous is None else previous.samples
    return made.astype(rhs.dtype, copy=False) if made is not None and made.shape == rhs.shape else None


def not_positive_definite() -> InputError:
    """The error to raise if A has no inverse."""
    return InputError(
        "posterior precision",
        "a matrix that is not positive definite",
        "X and B without a common null space, and site precisions that are not lost in the rounding of X^H X",
        "Add a block of sites on the pixels; or, where the noise variance is tiny, give a larger one.",
    )


@dataclass(frozen=True)
class SolvedDraws:
    """Solutions of A u = b for several b.

    Parameters
    ----------
    draws : array, shape (count, *image shape)
        As they were when the tolerance was met, or extrapolated from there.
    convergence : Convergence
        Of ``draws``; ``matvecs`` counts the products for ``further`` too.
    going_on : int array, optional
        The numbers of those draws that were solved further; None where no bias is wanted, or it is zero.
    further : array, shape (len(going_on), *image shape), optional
        The same draws after that, extrapolated if the others are.
    left : float
        The residuals of ``further`` relative to those of the same draws before, below 1.
    """

    draws: Array
    convergence: Convergence
    going_on: NDArray[np.intp] | None = None
    further: Array | None = None
    left: float = 0.0

    @classmethod
    def exact(cls, draws: Array) -> SolvedDraws:
        """Draws that are known without any product with A."""
        return cls(draws, Convergence(Status.CONVERGED, 0, 0.0))

    @classmethod
    def of(
        cls,
        solver: ConjugateGradients,
        convergence: Convergence,
        max_iterations: int,
        *,
        with_bias: bool,
        extrapolated: bool = False,
    ) -> SolvedDraws:
        """The draws of a solver that has met its tolerance, or its limit of iterations.

        With ``with_bias`` some go on, from a copy: every eighth by its residual, the largest first.

        Parameters
        ----------
        solver : ConjugateGradients
            Left as it is.
        convergence : Convergence
            How it ended.
        max_iterations : int
            Limit for those that go on.
        with_bias : bool
            Whether the bias will be requested.
        extrapolated : bool
            Whether draws are moved on along the direction of the next iteration, which takes no product.
        """
        draws = solver.extrapolated() if extrapolated else solver.x
        if not with_bias or convergence.status is Status.BREAKDOWN:
            return cls(draws, convergence)
        going_on = np.argsort(-solver.residuals, kind="stable")[::SHARE][: max(1, len(solver.x) // SHARE)]
        part = solver.part(going_on)
        before = float(np.linalg.norm(part.residuals))
        spent, left = part.reduce(0.0, min(LEAST, max_iterations)).matvecs, 0.0
        if before > 0:
            reached = float(np.linalg.norm(part.residuals)) / before
            if reached > HALF:
                spent += part.reduce(HALF / reached, min(LIMIT - LEAST, max_iterations)).matvecs
            left = min(float(np.linalg.norm(part.residuals)) / before, MOST_LEFT)
        convergence = replace(convergence, matvecs=convergence.matvecs + spent)
        return cls(draws, convergence, going_on, part.extrapolated() if extrapolated else part.x, left)

    def bias(
        self, terms: Callable[[NDArray[np.intp]], Callable[[Array], Array]], typical: Array, values: Array
    ) -> Array:
        """How far off ``values`` are because the draws were not solved exactly.

        Parameters
        ----------
        terms : callable
            Numbers of draws -> a function of these draws, which gives the terms, a set for every draw, whose mean is in
            ``values``.
        typical : float array, shape of ``values``
            Mean over `draws` of the moduli of their ``terms``.
        values : float array
            z.

        Returns
        -------
        float array, shape of ``values``
            Zero or positive, in units of ``values``: some two to four times the root mean square of the bias over
            coefficients of similar size, so that the bias of nearly all of them is smaller. Where draws are
            extrapolated it is two to eight times what these draws lack, and more of the bias, which is part of that.

        Notes
        -----
        The bias is, nearly, linear in what the solutions lack, and that falls like the residual or faster. So where
        further iterations leave a fraction of the residual, the whole bias is taken to be what they change in z over
        one minus that fraction, which is on the safe side.

        A few draws show next to nothing of one coefficient, but much of many. So coefficients are sorted into groups by
        their size, the geometric mean of z and of its sampled part (all of z, without a control), and the bias of a
        group is taken to be proportional to it. The mean square over a group of the change relative to the size,
        averaged over D draws, is beta^2 + nu^2 / D, where beta^2 is the mean square of the bias, and nu is the scatter
        of a single draw about it, one to two times beta for draws that are solved to ordinary tolerances, and more
        where they are extrapolated, which takes most of beta away and little of nu. This mean square is multiplied by
        4 - 3 / D: of many draws twice beta is left, and of a single one, whose own scatter is margin enough, nothing is
        added. Signs are not kept, since coefficients of one size differ in sign: most of the largest z are too small,
        and many of the others too large.
        """
        if self.going_on is None or self.further is None:
            return np.zeros_like(values)
        of_these = terms(self.going_on)
        change = of_these(self.further) - of_these(self.draws[self.going_on])
        mean_change = change.mean(axis=0, dtype=np.float64).ravel()
        size = np.sqrt(np.abs(values) * typical).ravel()
        groups = min(max(size.size // GROUP, 1), GROUPS)
        limits = np.quantile(size[:: max(size.size // LOOKED_AT, 1)], np.arange(1, groups) / groups)
        group = np.searchsorted(limits, size)
        powers, sizes = (np.bincount(group, weights=v**2, minlength=groups) for v in (mean_change, size))
        margin = np.sqrt(4 - 3 / len(self.going_on)) / (1 - self.left)
        relative = margin * np.sqrt(powers / np.where(sizes > 0, sizes, 1))
        return np.asarray((relative[group] * size).reshape(values.shape), dtype=values.dtype)


def gain_from_values(values: Array) -> NDArray[np.float64]:
    """log det(I + C), C the covariance of a few values estimated from draws: twice the information in nats.

    Parameters
    ----------
    values : real or complex array, shape (..., value, draw)
        Deviations from the mean in units of sigma. Where they are complex, i times a draw counts as a draw, too, and
        real and imaginary parts as two values.

    Returns
    -------
    float array, shape (...)
        Of the values of every group together; too small where there are fewer draws than values.

    Notes
    -----
    TR-175, equation (12). det(I + W W^H) = det(I + W^H W), of which the smaller one is computed.
    """
    n_values, count = values.shape[-2:]
    root = values.mT if n_values > count else values
    times = 2 if np.iscomplexobj(values) else 1
    overlaps = root @ np.conj(root.mT) / (times * count) + np.eye(root.shape[-2], dtype=root.dtype)
    return np.asarray(times * np.linalg.slogdet(overlaps)[1], dtype=np.float64)


@dataclass(frozen=True)
class Exact:
    """z by dense linear algebra on the real unknowns.

    Parameters
    ----------
    limit : int
        Largest number of real unknowns accepted (memory 8 limit^2 bytes, time limit^3).

    Raises
    ------
    InputError
        On a larger problem, or where A is not positive definite (X and B share a null space).
    """

    limit: int = 9000

    def __post_init__(self) -> None:
        require_counts(limit=self.limit, least=1)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        matrix = precision.dense_real(self.limit).T  # symmetric, and in the memory order of LAPACK
        norm = scipy.linalg.lapack.dlange("1", matrix)
        try:
            lower = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=True)
        except (scipy.linalg.LinAlgError, ValueError) as error:
            raise not_positive_definite() from error
        if scipy.linalg.lapack.dpocon(lower, norm, uplo="L")[0] < np.finfo(float).eps:
            raise not_positive_definite()  # rounding had hidden a null space from the factorisation
        values = []
        inverse_root: Array | None = None
        for analysis in analyses:
            if isinstance(analysis, MatrixOperator) and not analysis.in_complex:
                if inverse_root is None:
                    inverse_root = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
                values.append(analysis.spread(inverse_root).astype(like.real.dtype))
                continue
            rows = analysis.to_dense_real(self.limit)
            root = scipy.linalg.solve_triangular(lower, rows.T, lower=True, overwrite_b=True)
            z = np.einsum("ij,ij->j", root, root)
            if analysis.out_complex:
                z = z[: z.size // 2] + z[z.size // 2 :]
            values.append(z.reshape(analysis.out_shape).astype(like.real.dtype))
        return Variances(
            tuple(values),
            "exact",
            Convergence(Status.CONVERGED, 1, 0.0),
            log_determinant=2 * float(np.log(np.diag(lower)).sum()),
        )


@dataclass(frozen=True)
class Lanczos:
    """z_k = sum over j <= k of |B v_j|^2, rising monotonically to z (TR-175 section 4.5, appendix B).

    Parameters
    ----------
    steps : int
        k; memory k images, k multiplications with A. At the dimension of u, to which more are cut, the values are exact
        where A has no repeated eigenvalues; with some it ends early, below.
    preconditioned : bool
        Whether steps are made with C^(-1/2) A C^(-1/2), C the circulant nearest to A. That helps log|A| much, and the
        values little (results/papers/tr175-lanczos.md).
    reorthogonalisation : {"complete", "selective"}
        As in `krylov.lanczos`; selective costs less where there are many steps on large images.

    Raises
    ------
    InputError
        For no step or another choice; for a circulant where X or B know none; where A is not positive definite; where A
        is only real-linear on a complex image (sites on parts of complex pairs): use perturb-and-solve.

    Notes
    -----
    Always lower bounds. In image reconstruction they are far too small unless k is close to the dimension; they rank
    lines better than they measure them.
    """

    steps: int = 100
    preconditioned: bool = False
    reorthogonalisation: ReOrthogonalisation = "complete"

    def __post_init__(self) -> None:
        require_counts(least=1, **{"Lanczos steps": self.steps})
        require_choice(get_args(ReOrthogonalisation), reorthogonalisation=self.reorthogonalisation)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        require_random(rng)
        is_complex = precision.measurement.in_complex
        if is_complex and not precision.complex_linear:
            raise InputError(
                "Lanczos",
                "sites on real and imaginary parts of a complex image",
                "sites on moduli, or a real image",
                "Use MonteCarlo, which is 'perturb-and-solve' in a recipe.",
            )
        start = rng.standard_normal(like.shape, dtype=like.real.dtype.type)
        if is_complex:
            start = start + 1j * rng.standard_normal(like.shape, dtype=like.real.dtype.type)
        spectrum = precision.circulant_spectrum if self.preconditioned else np.ones((1, 1))
        if spectrum is None:
            raise InputError(
                "Lanczos: preconditioned", "True", "X and B that know the circulant nearest to A", "Leave it out."
            )
        factors = lanczos(
            precision,
            start.astype(like.dtype),
            min(self.steps, like.size),
            preconditioner=circulant_inverse(np.sqrt(spectrum)) if self.preconditioned else None,
            reorthogonalisation=self.reorthogonalisation,
        )
        if factors.convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()
        components = 2 if is_complex else 1  # real unknowns per entry of u
        root = factors.inverse_root()
        values = []
        for analysis in analyses:
            z = np.zeros(analysis.out_shape, dtype=like.real.dtype)
            for v in root:
                z += squared_modulus(analysis(v))
            values.append(components * z)
        return Variances(
            tuple(values),
            "lower_bound",
            factors.convergence,
            factors=factors,
            log_determinant=components * (factors.log_determinant() + float(np.log(spectrum).sum())),
        )
