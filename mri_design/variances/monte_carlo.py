"""Variances from posterior samples: draw b ~ N(0, A), solve A u = b, average |B u|^2; and their bias.

A draw A^-1 b that is solved to a tolerance lacks some of what converges slowly, and more draws do not bring it back.
Where a control leaves little to the solver, moving every draw on along its next direction makes up for most of that
without a product with A (`ConjugateGradients.extrapolated`). And a few draws go on for some iterations: what that
changes in z tells the bias that all of them have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import require_counts, require_numbers, require_random
from mri_design.krylov import ConjugateGradients, chunks
from mri_design.model.memory import DEFAULT_MEMORY, draws_at_once
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.status import Convergence, Status
from mri_design.variances.base import mean_over_draws, not_positive_definite, starting_draws

SHARE = 8  # of so many draws one goes on, and at least one does
LEAST, LIMIT = 2, 10  # iterations that it goes on for
HALF = 0.5  # and between these, until the residual is at most this fraction of what it was
MOST_LEFT = 0.9  # of the residual, even where it did not become smaller: limits the extrapolation
GROUP, GROUPS = 64, 16  # coefficients, at least, that share a relative bias, and groups of them, at most
LOOKED_AT = 4096  # coefficients, at most, from which the limits between groups are taken


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
        The numbers of those draws that were solved further; None where the bias is not asked for, or is zero.
    further : array, shape (len(going_on), *image shape), optional
        The same draws after that, extrapolated if the others are.
    left : float
        The residuals of ``further`` relative to what they were, below 1.
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
            Whether the bias will be asked for.
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

        A few draws tell next to nothing of one coefficient, but much of many. So coefficients are sorted into groups by
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


@dataclass(frozen=True)
class MonteCarlo:
    """z as the mean power of posterior samples, with relative standard error sqrt(2 / K), sqrt(1 / K) if complex.

    Parameters
    ----------
    samples : int
        K, at least 2; all are solved side by side.
    tolerance, max_iterations : float, int
        Of the conjugate gradients, see `krylov.conjugate_gradients`.
    memory : float
        MiB that the process should stay within: draws are solved some at a time where all of them together would take
        more (`model.working_memory`).
    with_bias : bool
        Whether ``bias`` of the result is estimated, which takes a few products; without it, it is None.

    Raises
    ------
    InputError
        For fewer than 2 samples or a senseless tolerance or limit; where A is found not to be positive definite.

    Notes
    -----
    Papandreou & Yuille, NIPS 2010. ``std_error`` of the result is the standard error estimated from the K draws
    themselves, and shrinks as there are more of them. ``bias`` does not: every solve stops at the tolerance, and z is
    off by what all of them lack, mostly too low, in proportion to the tolerance. It is estimated from an eighth of the
    draws (at least one), which are solved a little further (`SolvedDraws`); ``convergence.matvecs`` counts the products
    that this takes. Where the iterations ended at their limit, ``convergence`` says so,
    and the bias may be larger than stated. How the estimate compares to the truth is tabulated in
    results/benchmarks/variances.md.
    """

    samples: int = 12
    tolerance: float = 1e-2
    max_iterations: int = 500
    memory: float = DEFAULT_MEMORY
    with_bias: bool = True

    def __post_init__(self) -> None:
        require_counts(least=2, **{"variance samples": self.samples})
        require_numbers(tolerance=self.tolerance, memory=self.memory)
        require_counts(max_iterations=self.max_iterations, least=1)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        require_random(rng)
        at_once = draws_at_once(self.memory, self.samples, precision.measurement, analyses, like.real.dtype)
        b = precision.perturbations(rng, self.samples, like, at_once=at_once)
        solver = ConjugateGradients(
            precision,
            b,
            n_axes=b.ndim - 1,
            start=starting_draws(previous, b),
            preconditioner=precision.preconditioner,
            at_once=at_once,
        )
        convergence = solver.solve(self.tolerance, self.max_iterations)
        solved = SolvedDraws.of(
            solver, convergence, self.max_iterations, with_bias=self.with_bias and len(analyses) > 0
        )
        if solved.convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()

        def estimate(analysis: LinearOperator) -> tuple[Array, Array, Array | None]:
            """z, its standard error and its bias, where that is asked for."""

            def terms(draws: Array) -> Array:
                return squared_modulus(analysis(draws))

            z = mean_over_draws(terms(solved.draws[some]) for some in chunks(self.samples, at_once))
            value = np.asarray(z.mean)
            return value, z.error, solved.bias(lambda _: terms, value, value) if self.with_bias else None

        estimates = [estimate(analysis) for analysis in analyses]
        return Variances(
            tuple(value for value, _, _ in estimates),
            "unbiased",
            solved.convergence,
            std_error=tuple(error for _, error, _ in estimates),
            bias=tuple(bias for _, _, bias in estimates if bias is not None) if self.with_bias else None,
            samples=solved.draws,
        )
