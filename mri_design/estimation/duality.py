"""The duality gap: how far J is above its minimum at most, by a feasible point of the dual problem.

With f = sigma^2 J / 2 = 1/2 ||y - X u||^2 + sum_j phi_j(B_j u - offset_j), any nu and w_j with X^H nu = sum_j B_j^H w_j
give the lower bound

    D = Re<nu, y> - 1/2 ||nu||^2 - sum_j (Re<w_j, offset_j> + phi_j*(w_j))  <=  min f

(Fenchel-Rockafellar; Rockafellar, Convex Analysis, 1970, theorem 31.1). The conjugate phi*(w) = max over s of
Re<w, s> - phi(s) is known here for Laplace
sites, smoothed or not, where it wants |w| <= tau sigma, and for Gaussian sites.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.estimation.penalised import Coefficients, PenalisedProblem, SitePenalty, Smoothed
from mri_design.krylov import real_inner, squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import PosteriorPrecision
from mri_design.operators.base import Array


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
    scale, precision = penalty.even.modulus_scale, penalty.even.gaussian_precision
    z = np.asarray(penalty.z, dtype=float)
    if scale is not None:
        level = sigma * scale
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
    blocks = [block.analysis.gram_spectrum() for block in model.blocks]
    known = [s for s in blocks if s is not None]
    matvecs = 1
    if model.n_axes != 2 or len(known) < len(blocks):
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
