"""How far J is above its minimum, at most: a feasible point of the dual problem.

With f = sigma^2 J / 2 = 1/2 ||y - X u||^2 + sum_j phi_j(B_j u - offset_j), any nu and w_j with X^H nu = sum_j B_j^H w_j
give the lower bound

    D = Re<nu, y> - 1/2 ||nu||^2 - sum_j (Re<w_j, offset_j> + phi_j*(w_j))  <=  min f

(Fenchel-Rockafellar; Rockafellar, Convex Analysis, 1970, theorem 31.1). The conjugate phi* is known here for Laplace
sites, smoothed or not, where it wants |w| <= tau sigma, and for Gaussian sites.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.estimation.conjugates import Conjugate, conjugate_of
from mri_design.estimation.line_search import Coefficients
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.krylov import conjugate_gradients, real_inner
from mri_design.model import GeneralizedLinearModel
from mri_design.operators import Array

__all__ = ["DualityGap", "duality_gap"]

FREE = 1e4  # how much rather the data's multipliers are moved than the sites'; moving them costs second order only


@dataclass(frozen=True)
class DualityGap:
    """A certificate: J at the image lies between ``dual`` and ``primal``, and so does its minimum.

    Parameters
    ----------
    primal : float
        J at the image, in double precision.
    dual : float
        A lower bound of min J.
    """

    primal: float
    dual: float

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
    as possible, to where X^H nu = sum_j B_j^H w_j holds, and last scaled back into the domain. Costs two products.
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
        slopes = zip(problem.site_precisions(s), s, conjugates, strict=True)
        multipliers = tuple(pi * one - c.shift for pi, one, c in slopes)
    w = tuple(
        c.into_domain(np.asarray(one, dtype=u.dtype if np.iscomplexobj(one) else float))
        for c, one in zip(conjugates, multipliers, strict=True)
    )
    balanced = _balanced(model, conjugates, nu, w)
    if balanced is None:
        return None
    nu, w = balanced
    # D along c (nu, w): the best c of the data term alone, and the whole.
    fit = float(real_inner(nu, nu, nu.ndim))
    gain = float(real_inner(nu, model.data, nu.ndim))
    for block, one in zip(model.blocks, w, strict=True):
        if block.offset is not None:
            gain -= float(real_inner(one, np.broadcast_to(block.offset, one.shape).astype(one.dtype), one.ndim))
    longest = min(c.longest(one) for c, one in zip(conjugates, w, strict=True))
    best = -np.inf
    for length in {min(longest, 1.0), min(longest, max(gain, 0.0) / fit if fit > 0 else 1.0)}:
        conjugate = sum(c.value(length * one) for c, one in zip(conjugates, w, strict=True))
        best = max(best, length * gain - 0.5 * length**2 * fit - conjugate)
    return DualityGap(primal, 2 * best / model.noise_variance)


def conjugates_of(problem: PenalisedProblem) -> tuple[Conjugate, ...] | None:
    """phi* of every block, or None where one is not known."""
    pairs = zip(problem.model.blocks, problem.penalties, strict=True)
    found = [conjugate_of(block, penalty, problem.model.noise_variance) for block, penalty in pairs]
    known = tuple(c for c in found if c is not None)
    return known if len(known) == len(found) else None


def _balanced(
    model: GeneralizedLinearModel, conjugates: tuple[Conjugate, ...], nu: Array, w: Coefficients
) -> tuple[Array, Coefficients] | None:
    """The point with X^H nu = sum_j B_j^H w_j nearest to (nu, w), in a norm where nu moves easily."""
    rest = model.measurement.adjoint(nu) - _gathered(model, w)
    weights = [c.weight for c in conjugates]
    gram, spectra = model.measurement.gram_spectrum(), [b.analysis.gram_spectrum() for b in model.blocks]
    known = [s for s in spectra if s is not None]
    if model.n_axes != 2 or len(known) < len(spectra):
        return _balanced_by_iteration(model, weights, nu, w, rest)
    of_sites = sum(weight * s for weight, s in zip(weights, known, strict=True))
    free = FREE * max(weights)
    if gram is None:
        # Several coils: differences alone do not see the mean, which the data's multipliers take.
        constant = np.ones(model.image_shape, dtype=rest.dtype)
        seen = model.measurement(constant)
        amount = np.vdot(constant, rest) / np.vdot(seen, seen).real
        nu = nu - _real_like(amount, rest) * seen
        rest = model.measurement.adjoint(nu) - _gathered(model, w)
        total = of_sites
    else:
        total = of_sites + free * gram
    floor = 1e-13 * float(np.max(total))
    inverse = np.where(total > floor, 1 / np.maximum(total, floor), 0.0)
    pull = _real_like(np.fft.ifft2(inverse * np.fft.fft2(rest)), rest)
    if gram is not None:
        nu = nu - free * model.measurement(pull)
    w = tuple(one + weight * block.analysis(pull) for one, weight, block in zip(w, weights, model.blocks, strict=True))
    return (nu, w) if _is_balanced(model, nu, w) else None


def _balanced_by_iteration(
    model: GeneralizedLinearModel, weights: list[float], nu: Array, w: Coefficients, rest: Array
) -> tuple[Array, Coefficients] | None:
    free = FREE * max(weights)

    def apply(v: Array) -> Array:
        total = free * model.measurement.gram(v)
        for weight, block in zip(weights, model.blocks, strict=True):
            total = total + block.analysis.adjoint(weight * block.analysis(v))
        return np.asarray(total)

    pull, _ = conjugate_gradients(apply, rest[None], n_axes=model.n_axes, tolerance=1e-13, max_iterations=2000)
    nu = nu - free * model.measurement(pull[0])
    w = tuple(
        one + weight * block.analysis(pull[0]) for one, weight, block in zip(w, weights, model.blocks, strict=True)
    )
    return (nu, w) if _is_balanced(model, nu, w) else None


def _gathered(model: GeneralizedLinearModel, w: Coefficients) -> Array:
    return np.asarray(sum(block.analysis.adjoint(one) for block, one in zip(model.blocks, w, strict=True)))


def _real_like(a: Array, like: Array) -> Array:
    return a if np.iscomplexobj(like) else a.real


def _is_balanced(model: GeneralizedLinearModel, nu: Array, w: Coefficients) -> bool:
    """Whether the equality holds but for rounding."""
    force = model.measurement.adjoint(nu)
    rest = force - _gathered(model, w)
    size = float(np.linalg.norm(force)) + sum(float(np.linalg.norm(one)) for one in w)
    return bool(np.linalg.norm(rest) <= 1e-11 * size)
