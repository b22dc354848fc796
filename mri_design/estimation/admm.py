"""The alternating direction method of multipliers, and the duality gap, a certificate of how good an image is.

ADMM holds one copy s_j of the coefficients of every block. The proximal step minimises
penalty(s) + rho / 2 |s - v|^2, one scalar problem a site (`shrinkage`). The linear step minimises
||y - X u||^2 / 2 + sum_j rho_j / 2 ||B_j u - target_j||^2, by one pair of FFTs if X^H X and every B_j^H B_j are
circulant, and else by conjugate gradients.

The gap says how far J is above its minimum at most, by a feasible point of the dual problem. With
f = sigma^2 J / 2 = 1/2 ||y - X u||^2 + sum_j phi_j(B_j u - offset_j), any nu and w_j with X^H nu = sum_j B_j^H w_j
give the lower bound

    D = Re<nu, y> - 1/2 ||nu||^2 - sum_j (Re<w_j, offset_j> + phi_j*(w_j))  <=  min f

(Fenchel-Rockafellar; Rockafellar, Convex Analysis, 1970, theorem 31.1). The conjugate phi*(w) = max over s of
Re<w, s> - phi(s) is known for Laplace sites, smoothed or not, which require |w| <= tau sigma, and for Gaussian sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.penalised import Coefficients, PenalisedProblem, SitePenalty, Smoothed, remaining_excess
from mri_design.krylov import real_inner, squared_norm
from mri_design.model.circulant import circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.operators.conventions import laid_out
from mri_design.status import Convergence, Status


@dataclass(frozen=True)
class PenaltyConjugate:
    """phi* of phi(s) = level sqrt(|s|^2 + epsilon) - shift s, or (for ``precision``) precision |s|^2 / 2 - shift s.

    Parameters
    ----------
    block : SiteBlock
        Groups.
    level : float array, optional
        tau sigma of Laplace sites.
    epsilon : float array
        sigma^2 z.
    precision : float array, optional
        Of Gaussian sites.
    shift : float array
        sigma b of the odd part.
    constant : float
        Added to phi.
    """

    block: SiteBlock
    level: Array | None = None
    epsilon: Array | float = 0.0
    precision: Array | None = None
    shift: Array | float = 0.0
    constant: float = 0.0

    def value(self, w: Array) -> float:
        """Sum of phi*(w) over the sites; w is taken to lie in the domain."""
        power = self.block.site_power(w + self.shift)
        if self.precision is not None:
            return float(np.sum(power / (2 * self.precision))) - self.constant
        assert self.level is not None
        return -float(np.sum(np.sqrt(self.epsilon * np.maximum(self.level**2 - power, 0)))) - self.constant

    def into_domain(self, w: Array) -> Array:
        """The nearest point with |w + shift| <= level."""
        if self.level is None:
            return w
        moved = w + self.shift
        modulus = np.sqrt(self.block.site_power(moved))
        return np.asarray(moved * np.minimum(self.level / np.maximum(modulus, 1e-300), 1) - self.shift)

    def longest(self, w: Array) -> float:
        """The largest c with c w in the domain."""
        if self.level is None:
            return np.inf
        modulus = np.sqrt(self.block.site_power(w))
        room = self.level - self.shift * np.sign(w.real) if np.any(self.shift) else self.level
        return float(np.min(room / np.maximum(modulus, 1e-300)))

    @property
    def weight(self) -> float:
        """How far w may move: the square of its typical size."""
        return float(np.mean((self.level if self.level is not None else self.precision) ** 2))  # type: ignore[operator]


def conjugate_of(block: SiteBlock, penalty: SitePenalty, noise_variance: float) -> PenaltyConjugate | None:
    """phi* of one block's sites; None where it is not known here."""
    if not isinstance(penalty, Smoothed):
        return None
    sigma, slope = float(np.sqrt(noise_variance)), penalty.potential.shift
    shift: Array | float = sigma * np.asarray(slope, dtype=float) if np.any(slope) else 0.0
    rate, precision = penalty.even.modulus_rate, penalty.even.gaussian_precision
    z = np.asarray(penalty.z, dtype=float)
    if rate is not None:
        level = sigma * rate
        if np.any(np.abs(shift) >= level):
            return None
        return PenaltyConjugate(block, level=level, epsilon=noise_variance * z, shift=shift)
    if precision is not None:
        constant = 0.5 * noise_variance * float(np.sum(np.broadcast_to(precision * z, block.site_shape)))
        return PenaltyConjugate(block, precision=precision, shift=shift, constant=constant)
    return None


ROUNDS = 8
FREE = 1e4  # how much rather the data's multipliers are moved than the sites'; moving them costs second order only
FREE_COILS = 1e2  # the same where it is found by iteration


@dataclass(frozen=True)
class DualityGap:
    """A certificate: J at the image lies between ``dual`` and ``primal``, and so does its minimum.

    Parameters
    ----------
    primal : float
        J at the image, in double precision.
    dual : float
        A lower bound of min J.
    matvecs : int
        Products with A that the bound took.
    """

    primal: float
    dual: float
    matvecs: int = 0

    @property
    def absolute(self) -> float:
        """J - min J is at most this."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative(self) -> float:
        """(J - min J) / min J is at most this; infinite where the bound is not positive."""
        return self.absolute / self.dual if self.dual > 0 else np.inf


def duality_gap(problem: PenalisedProblem, u: Array, multipliers: Coefficients | None = None) -> DualityGap | None:
    """The gap between J(u) and the best multiple of a feasible point near ``multipliers``.

    Parameters
    ----------
    problem : PenalisedProblem
        J.
    u : array
        The image.
    multipliers : tuple of arrays, optional
        w_j, near the slopes phi_j' at the minimum; without it those at u, of use where J is smooth.

    Returns
    -------
    DualityGap or None
        None where a conjugate is not known, or no feasible point was found.

    Notes
    -----
    Everything is in double precision. The multipliers are first put into the domain of phi*, then moved, as little
    as possible, to where X^H nu = sum_j B_j^H w_j holds, and last scaled back into the domain; a few rounds of it.
    One coil: a round costs about a product; several coils: about thirty.
    """
    model = problem.model
    conjugates = conjugates_of(problem)
    if conjugates is None:
        return None
    u = u.astype(np.complex128 if np.iscomplexobj(u) else np.float64)
    nu = model.data - model.measurement(u)
    s = model.analysis_coefficients(u)
    primal = problem.value(nu, s)
    if not np.isfinite(primal):
        return None
    if multipliers is None:
        multipliers = problem.site_slopes(s, problem.site_precisions(s))
    w = tuple(
        c.into_domain(np.asarray(w_j, dtype=u.dtype if np.iscomplexobj(w_j) else float))
        for c, w_j in zip(conjugates, multipliers, strict=True)
    )
    best, matvecs = -np.inf, 1
    for _ in range(ROUNDS):
        balanced = _balanced(model, conjugates, nu, w)
        if balanced is None:
            break
        nu, w, spent = balanced
        matvecs += spent
        longest = min(c.longest(w_j) for c, w_j in zip(conjugates, w, strict=True))
        best = max(best, _bound(model, conjugates, nu, w, longest))
        if longest >= 1:
            break
        w = tuple(c.into_domain(w_j) for c, w_j in zip(conjugates, w, strict=True))
    return DualityGap(primal, 2 * best / model.noise_variance, matvecs) if np.isfinite(best) else None


def _bound(
    model: GeneralizedLinearModel, conjugates: tuple[PenaltyConjugate, ...], nu: Array, w: Coefficients, longest: float
) -> float:
    """D at the better of two multiples c <= longest of (nu, w): the whole, and the best for the data alone."""
    fit = squared_norm(nu)
    gain = float(real_inner(nu, model.data, nu.ndim))
    for block, w_j in zip(model.blocks, w, strict=True):
        if block.offset is not None:
            gain -= float(real_inner(w_j, np.broadcast_to(block.offset, w_j.shape).astype(w_j.dtype), w_j.ndim))
    lengths = {min(longest, 1.0), min(longest, max(gain, 0.0) / fit if fit > 0 else 1.0)}
    values = []
    for length in lengths:
        conjugate = sum(c.value(length * w_j) for c, w_j in zip(conjugates, w, strict=True))
        values.append(length * gain - 0.5 * length**2 * fit - conjugate)
    return max(values)


def conjugates_of(problem: PenalisedProblem) -> tuple[PenaltyConjugate, ...] | None:
    """phi* of every block, or None where one is not known."""
    pairs = zip(problem.model.blocks, problem.penalties, strict=True)
    conjugates = [conjugate_of(block, penalty, problem.model.noise_variance) for block, penalty in pairs]
    known = tuple(c for c in conjugates if c is not None)
    return known if len(known) == len(conjugates) else None


def _balanced(
    model: GeneralizedLinearModel, conjugates: tuple[PenaltyConjugate, ...], nu: Array, w: Coefficients
) -> tuple[Array, Coefficients, int] | None:
    """The point with X^H nu = sum_j B_j^H w_j near (nu, w), in a norm where nu moves easily, and its cost in products.

    None where it is not found.
    """
    weights = [c.weight for c in conjugates]
    gram = model.measurement.gram_spectrum()
    known, matvecs = _block_spectra(model), 1
    if known is None:
        correction, free, spent = _solution(model, weights, FREE, _rest(model, nu, w), 1e-13, 2000)
        nu, w = _moved(model, weights, nu, w, correction, free)
        matvecs += spent
    elif gram is not None:
        free = FREE * max(weights)
        system = free * gram + sum(c * s for c, s in zip(weights, known, strict=True))
        nu, w = _moved(model, weights, nu, w, _filtered(system, _rest(model, nu, w)), free)
    else:
        # Several coils: nearly, by iteration, and what is left by the sites alone. Differences do not see the mean.
        correction, free, spent = _solution(model, weights, FREE_COILS, _rest(model, nu, w), 1e-2, 30)
        nu, w = _moved(model, weights, nu, w, correction, free)
        constant = np.ones(model.image_shape, dtype=correction.dtype)
        seen = model.measurement(constant)
        nu = nu - np.vdot(constant, _rest(model, nu, w)) / np.vdot(seen, seen).real * seen
        system = sum((c * s for c, s in zip(weights, known, strict=True)), start=np.zeros(model.image_shape))
        nu, w = _moved(model, weights, nu, w, _filtered(system, _rest(model, nu, w)), 0.0)
        matvecs += spent + 2
    force = model.measurement.adjoint(nu)
    size = float(np.linalg.norm(force)) + sum(float(np.linalg.norm(w_j)) for w_j in w)
    zero = np.linalg.norm(_rest(model, nu, w)) <= 1e-11 * size  # but for rounding
    return (nu, w, matvecs) if zero else None


def _rest(model: GeneralizedLinearModel, nu: Array, w: Coefficients) -> Array:
    """X^H nu - sum_j B_j^H w_j."""
    gathered = sum(block.analysis.adjoint(w_j) for block, w_j in zip(model.blocks, w, strict=True))
    return np.asarray(model.measurement.adjoint(nu) - gathered)


def _moved(
    model: GeneralizedLinearModel, weights: list[float], nu: Array, w: Coefficients, correction: Array, free: float
) -> tuple[Array, Coefficients]:
    """nu - free X correction and w_j + weight_j B_j correction."""
    moves = zip(w, weights, model.blocks, strict=True)
    w = tuple(w_j + weight * block.analysis(correction) for w_j, weight, block in moves)
    return (nu - free * model.measurement(correction) if free else nu), w


def _filtered(system: Array, rest: Array) -> Array:
    floor = 1e-13 * float(np.max(system))
    inverse = np.where(system > floor, 1 / np.maximum(system, floor), 0.0)
    correction = np.fft.ifft2(inverse * np.fft.fft2(rest))
    return correction if np.iscomplexobj(rest) else correction.real


def _solution(
    model: GeneralizedLinearModel, weights: list[float], freedom: float, rest: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """(free X^H X + sum_j weight_j B_j^H B_j)^-1 rest by conjugate gradients, free, and the products it took."""
    free = freedom * max(weights)
    scaled = tuple(
        np.full((1,) * len(block.analysis.out_shape), weight / free)
        for weight, block in zip(weights, model.blocks, strict=True)
    )
    system = PosteriorPrecision(model.measurement, model.blocks, scaled)
    correction, solved = system.solve(rest[None], tolerance=tolerance, max_iterations=iterations)
    return correction[0] / free, free, solved.matvecs


def odd_part(block: SiteBlock, noise_variance: float, rho: float, real: np.dtype[Any]) -> Array | None:
    """sigma b / rho, by which the odd parts of the sites move v; None where they have none."""
    if not np.any(block.potential.shift):
        return None
    return np.asarray((np.sqrt(noise_variance) * np.asarray(block.potential.shift) / rho).astype(real))


def shrinkage(
    block: SiteBlock, penalty: SitePenalty, noise_variance: float, rho: float, power: Array, iterations: int = 30
) -> Array:
    """Factor on v in argmin over s of sigma^2 psi(|s|^2 / sigma^2) / 2 + rho / 2 |s - v|^2, site by site.

    The modulus r of s solves r (rho + pi(r^2 / sigma^2)) = rho |v|, and s keeps the direction of v. Sites with odd
    parts have the same step from v + `odd_part`.

    Parameters
    ----------
    block : SiteBlock
        Groups.
    penalty : SitePenalty
        psi; only pi = psi' is used.
    noise_variance : float
        sigma^2.
    rho : float
        Positive weight.
    power : real array, shape of the sites
        |v|^2.
    iterations : int
        Limit of the scalar solver (see `shrunken_moduli`).

    Returns
    -------
    real array
        r / |v|, broadcastable to the coefficients.

    Notes
    -----
    Closed form for Gaussian sites, and for Laplace sites without smoothing (soft thresholding); Newton's method for
    smoothed Laplace sites. Where the site is not log-concave the scalar problem may have several minima; the one
    found is stationary.
    """
    real = power.dtype
    smoothed = penalty if isinstance(penalty, Smoothed) else None
    precision = smoothed.even.gaussian_precision if smoothed else None
    if precision is not None:
        return np.asarray((rho / (rho + precision)).astype(real))
    rate = smoothed.even.modulus_rate if smoothed else None
    if smoothed is not None and rate is not None:
        level = (rate * (np.sqrt(noise_variance) / rho)).astype(real, copy=False)
        return rounded_threshold(level, smoothed.z.astype(real, copy=False), power, iterations, noise_variance)
    modulus = np.sqrt(power)
    return _fraction(shrunken_moduli(penalty, noise_variance, rho, modulus, iterations), modulus)


def rounded_threshold(level: Array, epsilon: Array, power: Array, iterations: int = 30, unit: float = 1.0) -> Array:
    """r / |v| for r >= 0 with r + level r / sqrt(r^2 + unit epsilon) = |v|; without rounding, soft thresholding."""
    from mri_design.operators.kernels.pixels import rounded_shrinkage

    if not (epsilon.flat[0] or np.any(epsilon)):
        modulus = np.sqrt(power)
        return _fraction(np.maximum(modulus - level, 0), modulus)
    level, epsilon = (np.broadcast_to(x, power.shape) if np.size(x) > 1 else x for x in (level, epsilon))
    return rounded_shrinkage(level, epsilon, power, iterations, unit)


def _fraction(shrunken: Array, modulus: Array) -> Array:
    return np.asarray(shrunken / np.maximum(modulus, np.finfo(modulus.dtype).tiny))


def shrunken_moduli(penalty: SitePenalty, noise_variance: float, rho: float, modulus: Array, iterations: int) -> Array:
    """r >= 0 with r (rho + pi(r^2 / sigma^2)) = rho |v|, by bracketed secant steps from below.

    r -> r (rho + pi) is concave and rising for log-concave sites that are smoothed or flatter than |s| at zero, so the
    secant through two points below the root stays below it and converges faster than linearly; elsewhere the bracket
    and the monotone fixed point r = rho |v| / (rho + pi) keep it safe.
    """
    tiny = np.finfo(modulus.dtype).tiny
    rho_real, inverse = modulus.dtype.type(rho), modulus.dtype.type(1 / noise_variance)
    accuracy = 4 * np.finfo(modulus.dtype).eps

    def precision(r: Array) -> Array:
        return penalty.precision(r * r * inverse)

    goal = rho_real * modulus
    old, excess_old = np.zeros_like(modulus), -goal
    high = modulus
    r = goal / (rho_real + precision(old))
    for _ in range(iterations):
        pi = precision(r)
        excess = r * (rho_real + pi) - goal
        high = np.where(excess > 0, np.minimum(high, r), high)
        fixed = goal / (rho_real + pi)  # on the root's side of r, and never beyond the root
        change = excess - excess_old
        secant = r - excess * (r - old) / np.where(np.abs(change) > tiny, change, 1)
        good = (np.abs(change) > tiny) & (secant <= high) & np.where(excess < 0, secant >= fixed, secant > 0)
        new = np.where(good, secant, fixed)
        old, excess_old, r, last = r, excess, new, r
        if np.all(np.abs(r - last) <= accuracy * modulus):
            break
    return r


class LinearStep:
    """Solves for u exactly by one pair of FFTs, for weights rho_j that may change; subclasses solve it elsewhere.

    The memory of what the copies ``gathered``, sum_j rho_j B_j^H target_j, may be written to.
    """

    matvecs = 0
    healthy = True

    def __init__(self, model: GeneralizedLinearModel, measurement: Array, blocks: tuple[Array, ...]) -> None:
        self._back_projection = model.back_projection()
        self._measurement, self._blocks = measurement, blocks

    def set_weights(self, rho: Sequence[float]) -> None:
        """Take new rho, one per block."""
        total = self._measurement + sum(r * b for r, b in zip(rho, self._blocks, strict=True))
        self._inverse = circulant_inverse(np.maximum(total, 1e-12 * np.max(total)))

    def __call__(self, gathered: Array, u: Array) -> Array:
        """The minimiser, from the last u."""
        self.matvecs += 1
        gathered += self._back_projection
        return self._inverse(gathered)


def linear_step(model: GeneralizedLinearModel, solver_tolerance: float, solver_iterations: int) -> LinearStep:
    """The first way that applies; the settings are those of the conjugate gradients."""
    measurement, spectra = model.measurement.gram_spectrum(), _block_spectra(model)
    if measurement is None or spectra is None:
        return _Iterative(model, solver_tolerance, solver_iterations)
    return LinearStep(model, measurement, spectra)


def has_exact_step(model: GeneralizedLinearModel) -> bool:
    """Whether an iteration costs a pair of FFTs, not several products with A."""
    return _block_spectra(model) is not None and model.measurement.gram_spectrum() is not None


def balancing_factor(primal: float, dual: float, size: float, force: float) -> float:
    """Factor by which to raise the penalty weight, 1/5 to 5: relative primal over relative dual residual.

    All arguments are squared norms: of the two residuals, of the split variable and of its dual.

    Wohlberg (2017), arXiv:1704.06209.
    """
    if not (primal > 0 and dual > 0):
        return 1.0
    return float(np.clip(np.sqrt((primal * force) / (dual * size)), 0.2, 5.0)) if size > 0 and force > 0 else 1.0


def _block_spectra(model: GeneralizedLinearModel) -> tuple[Array, ...] | None:
    if model.n_axes != 2:
        return None
    known = tuple(s for s in (block.analysis.gram_spectrum() for block in model.blocks) if s is not None)
    return known if len(known) == len(model.blocks) else None


class _Iterative(LinearStep):
    def __init__(self, model: GeneralizedLinearModel, tolerance: float, iterations: int) -> None:
        self._model, self._back_projection = model, model.back_projection()
        self._tolerance, self._iterations = tolerance, iterations

    def set_weights(self, rho: Sequence[float]) -> None:
        model = self._model
        real = model.data.real.dtype
        ones = (np.ones((1,) * len(block.analysis.out_shape), dtype=real) for block in model.blocks)
        weights = tuple(real.type(r) * unit for r, unit in zip(rho, ones, strict=True))
        self._system = PosteriorPrecision(model.measurement, model.blocks, weights)

    def __call__(self, gathered: Array, u: Array) -> Array:
        rest = (self._back_projection + gathered - self._system(u))[None]
        step, solved = self._system.solve(rest, tolerance=self._tolerance, max_iterations=self._iterations)
        self.matvecs += solved.matvecs + 1
        self.healthy = bool(np.isfinite(solved.residual))
        return np.asarray(u + step[0])


BALANCED = 100
"""Iterations of `ADMM` that each adjust the weights; after them the pauses between adjustments double."""
CHECK = 5
"""Iterations of `ADMM` between two evaluations of J, each of which costs one or two products with A."""


@dataclass(frozen=True)
class ADMM:
    """Minimise J by ADMM: in turns over the image u and over copies s_j of its coefficients B_j u - offset_j.

    Multipliers draw the copies and the coefficients together until they agree.

    The step in u is one pair of FFTs where X^H X and every B_j^H B_j are circulant (Cartesian lines of one coil,
    pixels, differences, orthonormal wavelets), elsewhere a few iterations of preconditioned conjugate gradients from
    the last u. The step in s_j is a scalar problem a site. Every block has a weight rho_j of its own. It is adjusted in
    each of the first `BALANCED` iterations and ever more rarely after, so that the relative primal and dual residuals
    shrink together.

    Parameters
    ----------
    tolerance : float
        Stop when J is within this of its minimum, per real unknown, as estimated from its fall in the last iterations;
        what the copies still differ from the coefficients must have no larger effect on J.
    max_iterations : int
        Pairs of steps.
    relaxation : float
        Over-relaxation, between 1 and 2.
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
    solver_tolerance: float = 0.1
    solver_iterations: int = 4

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance, solver_tolerance=self.solver_tolerance)
        require_numbers(relaxation=self.relaxation, least=1.0, most=2.0)
        require_counts(max_iterations=self.max_iterations, least=0)
        require_counts(solver_iterations=self.solver_iterations, least=1)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            ``residual`` is the estimated excess of J per real unknown (`remaining_excess`), or the penalty of what the
            equalities still miss, whichever is larger.
        """
        u, convergence, _ = self._run(problem, start, by_gap=False)
        return u, convergence

    def certified(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence, DualityGap | None]:
        """Minimise from ``start``; stop by the duality gap, or by the estimate if there is no certificate.

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
        return self._run(problem, start, by_gap=True)

    def _run(
        self, problem: PenalisedProblem, start: Array, *, by_gap: bool
    ) -> tuple[Array, Convergence, DualityGap | None]:
        size = problem.model.measurement.in_size
        state, convex = _State(self, problem, start), problem.model.log_concave
        excess = remaining_excess(state.first)
        status, iteration, residual, looks = Status.MAX_ITERATIONS, 0, np.inf, 1
        next_gap = next_balance = 0
        for iteration in range(1, self.max_iterations + 1):
            look = iteration % CHECK == 0
            state.advance()
            if look and not state.healthy:
                break
            if look:
                looks += 1
                value = state.value()
                residual = max(excess(value), state.equality_penalty()) / size
                if not convex:
                    looks += 1
                    residual = max(residual, state.value_error(value) / size)
                converged = residual < self.tolerance
                if by_gap and converged and iteration >= next_gap:
                    gap = state.gap_at(iteration)
                    next_gap = iteration * 5 // 4
                    converged = gap is None or gap.absolute / size < self.tolerance
                elif by_gap and state.gap is not None:
                    converged = False  # the estimate was too hopeful before: only another certificate ends the loop
                if converged:
                    status = Status.CONVERGED
                    break
                if iteration >= next_balance:
                    state.balance()
                    next_balance = iteration + 1 if iteration < BALANCED else 2 * iteration
        if not state.healthy:
            status, residual = Status.BREAKDOWN, np.inf
        elif by_gap:
            gap = state.gap_at(iteration)
            if gap is not None:
                residual = gap.absolute / size
                status = Status.CONVERGED if residual < self.tolerance else Status.MAX_ITERATIONS
        matvecs = state.linear.matvecs + looks + state.gap_matvecs
        gap = state.gap if by_gap and status is not Status.BREAKDOWN else None
        return state.u, Convergence(status, iteration, float(residual), matvecs), gap


class _State:
    """u, the copies s_j, the scaled multipliers and the weights."""

    def __init__(self, settings: ADMM, problem: PenalisedProblem, start: Array) -> None:
        coefficients, powers, precisions = sites_at(problem, start)
        model = problem.model.rotated
        problem = replace(problem, model=model)
        self.settings, self.problem = settings, problem
        self.u = np.array(start, dtype=model.back_projection().dtype, order="C")
        self.s = [np.array(s, order="C") for s in coefficients]
        self.rho = [typical_precision(x, pi) for x, pi in zip(powers, precisions, strict=True)]
        self.scaled: list[Array] = []
        for block, s, pi, rho in zip(model.blocks, self.s, precisions, self.rho, strict=True):
            force = problem.site_slope(block, s, pi)
            self.scaled.append(np.multiply(force, s.real.dtype.type(1 / rho)).astype(s.dtype, copy=False))
        self.linear = linear_step(model, settings.solver_tolerance, settings.solver_iterations)
        self.linear.set_weights(self.rho)
        self._pull()
        self.missed = [0.0] * len(self.s)
        residual = model.data - model.measurement(self.u)
        self.first = problem.value(residual, coefficients, powers)
        self._factors = [1.0] * len(self.s)
        self.gap: DualityGap | None = None
        self.gap_matvecs, self._bound, self._gap_iteration = 0, -np.inf, -1

    def advance(self) -> None:
        """One pair of steps."""
        gathered: Array | None = None  # in the memory of the first pull at most: `_renew` makes new ones
        for block, pull, rho in zip(self.problem.model.blocks, self._pulls, self.rho, strict=True):
            if block.offset is not None:
                pull += pull.real.dtype.type(rho) * block.offset.astype(pull.dtype)
            drawn = block.analysis.adjoint(pull)
            gathered = drawn if gathered is None else np.add(gathered, drawn, out=gathered)
        self.u = self.linear(np.zeros_like(self.u) if gathered is None else gathered, self.u)
        for j in range(len(self.s)):
            self._renew(j)

    def _pull(self) -> None:
        """Where copies and multipliers draw the coefficients, times the weights of that; `_renew` keeps it so."""
        from mri_design.operators.kernels.pixels import pulled

        self._pulls = [pulled(*each) for each in zip(self.s, self.scaled, self.rho, strict=True)]

    def _renew(self, j: int) -> None:
        """Update copies and multipliers of one block, its equality residual, and the factor on its weight."""
        from mri_design.operators.kernels.pixels import pulled, relax, split

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
        self.linear.set_weights(self.rho)
        self._pull()

    def gap_at(self, iteration: int) -> DualityGap | None:
        """The duality gap at u, computed once per iteration.

        Multipliers are the slopes w_j of the sites at s_j; the lower bound of min J is the best found on the way.
        """
        if iteration != self._gap_iteration:
            self._gap_iteration = iteration
            pairs = zip(self.scaled, self.rho, strict=True)
            slopes = tuple(scaled * scaled.real.dtype.type(rho) for scaled, rho in pairs)
            self.gap = duality_gap(self.problem, self.u, slopes)
            if self.gap is not None:
                self.gap_matvecs += self.gap.matvecs
                self._bound = max(self._bound, self.gap.dual)  # of min J, whatever u it was found at
                self.gap = replace(self.gap, dual=self._bound)
        return self.gap

    def value(self) -> float:
        """J at u."""
        model = self.problem.model
        return self.problem.value(model.data - model.measurement(self.u), model.analysis_coefficients(self.u))

    def equality_penalty(self) -> float:
        """Penalty in J of the equality residuals s_j - B_j u."""
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


def sites_at(problem: PenalisedProblem, u: Array) -> tuple[Coefficients, tuple[Array, ...], tuple[Array, ...]]:
    """s = B u - offset, x = |s|^2 / sigma^2 and pi per block of a problem at u, in the precision of X^H y."""
    coefficients = problem.model.analysis_coefficients(
        u.astype(problem.model.rotated.back_projection().dtype, copy=False)
    )
    powers = problem.site_powers(coefficients)
    return coefficients, powers, problem.site_precisions(coefficients, powers)


def typical_precision(power: Array, precision: Array) -> float:
    """Mean of pi over the sites, weighted by x^0.7: those of large |s| count more."""
    weights = np.exp(power.dtype.type(0.7) * np.log(np.maximum(power, np.finfo(power.dtype).tiny)))
    total = float(np.sum(weights, dtype=np.float64))
    if not (np.isfinite(total) and power.any()):
        return 1.0
    return max(float(np.sum(precision * weights, dtype=np.float64)) / total, 1e-12)
