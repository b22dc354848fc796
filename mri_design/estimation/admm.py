"""The alternating direction method of multipliers, one copy s_j of every block's coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.duality import DualityGap, duality_gap
from mri_design.estimation.excess import RemainingExcess
from mri_design.estimation.line_search import Coefficients
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.estimation.proximal import odd_part, shrinkage
from mri_design.estimation.splitting import balancing_factor, linear_step
from mri_design.krylov.conjugate_gradients import squared_norm
from mri_design.operators.base import Array
from mri_design.operators.kernels.suitable import laid_out
from mri_design.status import Convergence, Status


@dataclass(frozen=True)
class ADMM:
    """Minimise J by ADMM: in turns over the image u and over copies s_j of its coefficients B_j u - offset_j.

    Multipliers draw the copies and the coefficients together until they agree.

    The step in u is one pair of FFTs where X^H X and every B_j^H B_j are circulant (Cartesian lines of one coil,
    pixels, differences, orthonormal wavelets), one product with X^H X where there are several coils, elsewhere a few
    iterations of preconditioned conjugate gradients from the last u (`splitting`). The step in s_j is a scalar problem
    a site. Every block has a weight rho_j of its own. It is adjusted in each of the first ``balanced`` iterations and
    ever more rarely after, so that the relative primal and dual residuals shrink together.

    Parameters
    ----------
    tolerance : float
        Stop when J is within this of its minimum, per real unknown, as estimated from its fall in the last iterations;
        what the copies still differ from the coefficients must have no larger effect on J.
    max_iterations : int
        Pairs of steps.
    relaxation : float
        Over-relaxation, between 1 and 2.
    balanced : int
        Iterations that each adjust the weights; after them the pauses between adjustments double.
    check : int
        Iterations between two evaluations of J, each of which costs one or two products with A.
    solver_tolerance, solver_iterations : float, int
        Of the conjugate gradients, where the step in u needs them.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a count that is too small.

    Notes
    -----
    Boyd et al., Found. Trends Mach. Learn. 3 (2011), sections 3.4 and 4; relative residuals: Wohlberg (2017),
    arXiv:1704.06209. For log-concave sites. With others the iteration may cycle, or u and its copies may disagree;
    it then reports that it has not converged, because J at u must agree with J at the copies to the tolerance and must
    not exceed its value at the start.
    Iterations are counted as a product each, as their FFTs and B cost as much.
    """

    tolerance: float = 1e-4
    max_iterations: int = 1000
    relaxation: float = 1.7
    balanced: int = 100
    check: int = 5
    solver_tolerance: float = 0.1
    solver_iterations: int = 4

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance, solver_tolerance=self.solver_tolerance)
        require_numbers(relaxation=self.relaxation, least=1.0, most=2.0)
        require_counts(max_iterations=self.max_iterations, balanced=self.balanced, least=0)
        require_counts(check=self.check, solver_iterations=self.solver_iterations, least=1)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            ``residual`` is the estimated excess of J per real unknown (`RemainingExcess`), or the penalty of what the
            equalities still miss, whichever is larger.
        """
        return self.going_on(problem, StartingPoint.of(problem, start))

    def going_on(self, problem: PenalisedProblem, start: StartingPoint) -> tuple[Array, Convergence]:
        """The same where it is known already what the problem looks like at the start."""
        u, convergence, _ = self._run(problem, start, by_gap=False)
        return u, convergence

    def certified(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence, DualityGap | None]:
        """Minimise from ``start``, stopped by the duality gap, or by the estimate where there is no certificate.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            With a certificate ``residual`` is what it says of ``u``: ``gap.absolute`` per real unknown.
        gap : DualityGap or None
            The certificate of ``u`` itself, however the loop ended. None where conjugates are not known, where no
            feasible point of the dual problem was found, and after a breakdown.
        """
        return self._run(problem, StartingPoint.of(problem, start), by_gap=True)

    def _run(
        self, problem: PenalisedProblem, start: StartingPoint, *, by_gap: bool
    ) -> tuple[Array, Convergence, DualityGap | None]:
        size = problem.model.measurement.in_size
        state, convex = _State(self, problem, start), problem.model.log_concave
        excess, certificate = RemainingExcess(state.first), _Certificate(state)
        status, iteration, residual, looks = Status.MAX_ITERATIONS, 0, np.inf, 1
        next_gap = next_balance = 0
        for iteration in range(1, self.max_iterations + 1):
            look = iteration % self.check == 0
            state.advance(look)
            if look and not state.healthy:
                break
            if look:
                looks += 1
                value = state.value()
                residual = max(excess.after(value), state.equality_penalty()) / size
                if not convex:
                    looks += 1
                    residual = max(residual, state.value_error(value) / size)
                converged = residual < self.tolerance
                if by_gap and converged and iteration >= next_gap:
                    gap = certificate.at(iteration)
                    next_gap = iteration * 5 // 4
                    converged = gap is None or gap.absolute / size < self.tolerance
                elif by_gap and certificate.gap is not None:
                    converged = False  # the estimate was too hopeful before: only another certificate ends the loop
                if converged:
                    status = Status.CONVERGED
                    break
                if iteration >= next_balance:
                    state.balance()
                    next_balance = iteration + 1 if iteration < self.balanced else 2 * iteration
        if not state.healthy:
            status, residual = Status.BREAKDOWN, np.inf
        elif by_gap:
            gap = certificate.at(iteration)
            if gap is not None:
                residual = gap.absolute / size
                status = Status.CONVERGED if residual < self.tolerance else Status.MAX_ITERATIONS
        matvecs = state.linear.matvecs + looks + certificate.matvecs
        gap = certificate.gap if by_gap and status is not Status.BREAKDOWN else None
        return state.u, Convergence(status, iteration, float(residual), matvecs), gap


@dataclass(frozen=True)
class StartingPoint:
    """Where a run begins, and what the sites are like there.

    Parameters
    ----------
    u : array
        The image.
    coefficients, powers, precisions : tuples of arrays
        s = B u - offset, x = |s|^2 / sigma^2 and pi per block.
    typical : tuple of float
        `typical_precision` per block.
    """

    u: Array
    coefficients: Coefficients
    powers: tuple[Array, ...]
    precisions: tuple[Array, ...]
    typical: tuple[float, ...]

    @classmethod
    def of(cls, problem: PenalisedProblem, u: Array) -> StartingPoint:
        """That of a problem at u, in the precision of X^H y."""
        model = problem.model
        u = u.astype(model.rotated.back_projection().dtype, copy=False)
        coefficients = model.analysis_coefficients(u)
        powers = problem.site_powers(coefficients)
        precisions = problem.site_precisions(coefficients, powers)
        typical = tuple(typical_precision(x, pi) for x, pi in zip(powers, precisions, strict=True))
        return cls(u, coefficients, powers, precisions, typical)


class _Certificate:
    """The duality gap of a state, made once for an iteration, with the best lower bound of min J found on the way."""

    def __init__(self, state: _State) -> None:
        self.gap: DualityGap | None = None
        self.matvecs = 0
        self._state = state
        self._bound, self._iteration = -np.inf, -1

    def at(self, iteration: int) -> DualityGap | None:
        """The gap at the state's u, which is that of this iteration."""
        if iteration != self._iteration:
            self._iteration = iteration
            self.gap = duality_gap(self._state.problem, self._state.u, self._state.multipliers())
            if self.gap is not None:
                self.matvecs += self.gap.matvecs
                self._bound = max(self._bound, self.gap.dual)  # of min J, whatever u it was found at
                self.gap = replace(self.gap, dual=self._bound)
        return self.gap


class _State:
    """u, the copies s_j, the scaled multipliers and the weights."""

    def __init__(self, settings: ADMM, problem: PenalisedProblem, start: StartingPoint) -> None:
        model = problem.model.rotated
        problem = replace(problem, model=model)
        self.settings, self.problem = settings, problem
        self.u = start.u.copy()
        self.s = [np.array(s, order="C") for s in start.coefficients]
        self.rho, self.scaled = list(start.typical), []
        for block, s, pi, rho in zip(model.blocks, self.s, start.precisions, self.rho, strict=True):
            force = problem.site_slope(block, s, pi)
            self.scaled.append(np.multiply(force, s.real.dtype.type(1 / rho)).astype(s.dtype, copy=False))
        self.linear = linear_step(
            model, self.u, settings.relaxation, settings.solver_tolerance, settings.solver_iterations
        )
        self.linear.set_weights(self.rho)
        self._pull()
        self.missed = [0.0] * len(self.s)
        residual = model.data - model.measurement(self.u)
        self.first = problem.value(residual, start.coefficients, start.powers)
        self._factors = [1.0] * len(self.s)

    def advance(self, look: bool = True) -> None:
        """One pair of steps; with ``look`` it is seen how well the linear step keeps its own equalities."""
        gathered: Array | None = None  # in the memory of the first pull at most: `_renew` makes new ones
        for block, pull, rho in zip(self.problem.model.blocks, self._pulls, self.rho, strict=True):
            if block.offset is not None:
                pull += pull.real.dtype.type(rho) * block.offset.astype(pull.dtype)
            drawn = block.analysis.adjoint(pull)
            gathered = drawn if gathered is None else np.add(gathered, drawn, out=gathered)
        self.u = self.linear(np.zeros_like(self.u) if gathered is None else gathered, self.u, look)
        for j in range(len(self.s)):
            self._renew(j)

    def _pull(self) -> None:
        """Where copies and multipliers draw the coefficients, times the weights of that; `_renew` keeps it so."""
        from mri_design.operators.kernels.copies import pulled

        self._pulls = [pulled(*each) for each in zip(self.s, self.scaled, self.rho, strict=True)]

    def _renew(self, j: int) -> None:
        """Copies and multipliers of one block, how well it keeps its equality, and what that says about its weight."""
        from mri_design.operators.kernels.copies import pulled, relax, split

        model, s, scaled, rho = self.problem.model, self.s[j], self.scaled[j], self.rho[j]
        block, noise_variance = model.blocks[j], model.noise_variance
        a = np.require(block.coefficients(self.u), requirements=["C", "W"])
        if np.may_share_memory(a, self.u):  # B may be the identity
            a = a.copy()
        power = relax(a, s, scaled, self.settings.relaxation)
        odd = odd_part(block, noise_variance, rho, s.real.dtype)
        if odd is not None:
            scaled += odd
        power = block.pooled(power) if odd is None else block.site_power(scaled)
        factor = shrinkage(block, self.problem.penalties[j], noise_variance, rho, power)
        missed, moved, of_a, of_s, of_scaled = split(a, s, scaled, laid_out(factor, s.shape, s), rho)
        self._pulls[j] = a
        if odd is not None:
            scaled -= odd
            of_scaled = squared_norm(scaled)
            self._pulls[j] = pulled(s, scaled, rho)
        self.missed[j] = missed
        self._factors[j] = balancing_factor(missed, moved, max(of_a, of_s), of_scaled)

    def balance(self) -> None:
        """Weights up where copies lag behind, down where they hardly move."""
        for j, factor in enumerate(self._factors):
            self.rho[j] *= factor
            self.scaled[j] /= self.scaled[j].real.dtype.type(factor)
        self.linear.balance()
        self.linear.set_weights(self.rho)
        self._pull()

    def multipliers(self) -> Coefficients:
        """w_j: slopes of the sites at s_j."""
        return tuple(scaled * scaled.real.dtype.type(r) for scaled, r in zip(self.scaled, self.rho, strict=True))

    def value(self) -> float:
        """J at u."""
        model = self.problem.model
        return self.problem.value(model.data - model.measurement(self.u), model.analysis_coefficients(self.u))

    def equality_penalty(self) -> float:
        """The penalty in J for what the equalities s_j = B_j u still miss."""
        missed = sum(rho * m for rho, m in zip(self.rho, self.missed, strict=True))
        return missed / self.problem.model.noise_variance

    def value_error(self, value: float) -> float:
        """The larger of two: |J(u) - J at the copies|, and J(u), the ``value``, minus its first value."""
        model = self.problem.model
        at_copies = self.problem.value(model.data - model.measurement(self.u), tuple(self.s))
        error = max(abs(value - at_copies), value - self.first)
        return error if np.isfinite(error) else np.inf

    @property
    def healthy(self) -> bool:
        """False after a breakdown."""
        finite = all(np.isfinite(m) for m in self.missed) and bool(np.isfinite(self.u).all())
        return finite and self.linear.healthy


def typical_precision(power: Array, precision: Array, exponent: float = 0.7) -> float:
    """Mean of pi over the sites, those of large |s| counting more."""
    weights = np.exp(power.dtype.type(exponent) * np.log(np.maximum(power, np.finfo(power.dtype).tiny)))
    total = float(np.sum(weights, dtype=np.float64))
    if not (np.isfinite(total) and power.any()):
        return 1.0
    return max(float(np.sum(precision * weights, dtype=np.float64)) / total, 1e-12)
