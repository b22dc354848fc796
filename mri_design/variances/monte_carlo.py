"""Variances from posterior samples: draw b ~ N(0, A), solve A u = b, average |B u|^2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.errors import require_counts, require_numbers, require_random
from mri_design.krylov.chunks import chunks
from mri_design.krylov.conjugate_gradients import ConjugateGradients
from mri_design.model.marginals import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.model.working_memory import DEFAULT_MEMORY, draws_at_once
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.moduli import squared_modulus
from mri_design.status import Status
from mri_design.variances.base import mean_over_draws, not_positive_definite, starting_draws
from mri_design.variances.solved_draws import SolvedDraws


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
