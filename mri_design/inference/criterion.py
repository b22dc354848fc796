"""The variational criterion phi, the bound on the log evidence, and log|A| without a matrix.

log|A| comes from Lanczos quadrature on the circulant-preconditioned precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mri_design.errors import require_counts, require_numbers, require_random
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.krylov import lanczos
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.model.posterior import PosteriorPrecision, circulant_inverse
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status
from mri_design.variances.base import not_positive_definite
from mri_design.variances.control_variate import CirculantControl


def dual_arguments(model: GeneralizedLinearModel, u: Array, z: tuple[Array, ...]) -> tuple[Array, ...]:
    """x + z per block, x = |s|^2 / sigma^2 at u: where each site's -2 g' is its best pi beside the tangent z."""
    powers = PenalisedProblem(model, ()).site_powers(model.analysis_coefficients(u))
    return tuple((x + z_j).astype(x.dtype, copy=False) for x, z_j in zip(powers, z, strict=True))


def criterion_value(
    model: GeneralizedLinearModel,
    u: Array,
    site_precisions: tuple[Array, ...],
    site_arguments: tuple[Array, ...],
    log_determinant: float,
) -> float:
    """phi(gamma) = log|A| + h(gamma) + R(u, gamma), R = (||y - X u||^2 + s^H diag(pi) s - 2 sigma b^T s) / sigma^2.

    Parameters
    ----------
    u : array
        Minimiser of R for these site precisions (the inner problem's solution).
    site_precisions, site_arguments : tuples of float arrays
        pi and the argument at which -2 g' takes it (x + z), per block.
    log_determinant : float
        log|A| over the real unknowns; phi is an estimate where this is one.

    Notes
    -----
    TR-175 section 4; h is taken in closed form, -(t pi + 2 g(t)) at t = x + z.
    """
    sigma2 = model.noise_variance
    residual = model.data - model.measurement(u)
    total = log_determinant + float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / sigma2
    coefficients = model.analysis_coefficients(u)
    for block, s, pi, t in zip(model.blocks, coefficients, site_precisions, site_arguments, strict=True):
        weighted = np.sum(pi * block.site_power(s), dtype=np.float64) / sigma2
        total += float(weighted + np.sum(block.represented.h_at_optimum(t), dtype=np.float64))
    return total - 2 * model.odd_part(coefficients)


def evidence_bound(model: GeneralizedLinearModel, criterion: float) -> float:
    """Lower bound on log P(y) for unnormalised sites: (n - m) / 2 log(2 pi sigma^2) - phi / 2 + log|W|.

    ``n`` and ``m`` count real unknowns and real measurements; W is 1 unless the data were whitened
    (`GeneralizedLinearModel.log_whitening`).

    Raises
    ------
    InputError
        For anything but a model and a finite number.
    """
    require_model(model)
    require_numbers(criterion=criterion, least=-np.inf)
    n, m = model.measurement.in_size, model.measurement.out_size
    return 0.5 * (n - m) * float(np.log(2 * np.pi * model.noise_variance)) - 0.5 * criterion + model.log_whitening


@dataclass(frozen=True)
class LogDeterminant:
    """log|A| = log|C| + tr log M with M = C^(-1/2) A C^(-1/2), C the nearest circulant; the trace from random probes.

    Parameters
    ----------
    probes : int
        Random sign vectors, at least 2; the standard error falls as one over the square root.
    steps : int
        Lanczos steps for each: one product with A each. The quadrature lies above the truth, by an amount that falls
        geometrically with the steps.

    Raises
    ------
    InputError
        For fewer than 2 probes or no step; where A is found not to be positive definite.

    Notes
    -----
    Golub & Meurant 1994; Ubaru, Chen & Saad 2017. Where C is the projection of A on circulants tr M = n exactly, and
    tr M^2 is known too where X^H X is circulant itself: v^T M v and v^T M^2 v, with the weights of the parabola nearest
    to log over the spectrum found, are control variates that cost nothing. Without a circulant C is the identity.
    """

    probes: int = 16
    steps: int = 15

    def __post_init__(self) -> None:
        require_counts(least=2, **{"log-determinant: probes": self.probes})
        require_counts(least=1, **{"log-determinant: steps": self.steps})

    def __call__(
        self, precision: PosteriorPrecision, rng: np.random.Generator, like: Array
    ) -> tuple[float, float, Convergence]:
        """Estimate log|A| over the real unknowns; ``like`` is an image whose shape and dtype the probes take.

        Returns
        -------
        value, std_error : float
            Estimate and its standard error, from the spread of the probes.
        convergence : Convergence
            ``residual`` is how far the estimate may still lie too high for want of Lanczos steps, a third of what the
            last half of them lowered it by (all of an error that falls as one over steps squared): converged where that
            is less than the standard error. ``matvecs`` are the products spent.
        """
        require_random(rng)
        root, log_circulant, traces = _whitening(precision, like)
        size = precision.measurement.in_size

        def whitened(flat: Array) -> Array:
            image = root(precision(root(flat.view(like.dtype).reshape(like.shape))))
            return np.ascontiguousarray(image).view(like.real.dtype).ravel()

        values, moments, nodes, weights, drops = [], [], [], [], []
        for _ in range(self.probes):
            signs = rng.choice(np.array([-1.0, 1.0], dtype=like.real.dtype), size=size)
            factors = lanczos(whitened, signs, self.steps)
            if factors.convergence.status is Status.BREAKDOWN:
                raise not_positive_definite()
            theta, vectors = scipy.linalg.eigh_tridiagonal(factors.diagonal, factors.off_diagonal)
            mass = vectors[0] ** 2
            nodes.append(theta)
            weights.append(mass)
            values.append(size * float(mass @ np.log(theta)))
            half = len(theta) // 2
            early = _log_quadrature(factors.diagonal[:half], factors.off_diagonal[: max(half - 1, 0)])
            drops.append(size * early - values[-1])
            moments.append([size * float(mass @ theta ** (k + 1)) for k in range(len(traces))])
        if traces:
            slopes = _polynomial_of_log(np.concatenate(nodes), np.concatenate(weights), len(traces))
            values = list(np.array(values) - (np.array(moments) - traces) @ slopes)
        error = float(np.std(values, ddof=1) / np.sqrt(self.probes))
        spent = sum(len(theta) for theta in nodes)
        excess = float(np.mean(drops)) / 3
        status = Status.CONVERGED if abs(excess) <= error + 1e-9 * size else Status.MAX_ITERATIONS
        convergence = Convergence(status, self.probes, excess, spent)
        return log_circulant + float(np.mean(values)), error, convergence


def _log_quadrature(diagonal: Array, off_diagonal: Array) -> float:
    """e_1^T log(T) e_1 of a tridiagonal matrix; infinite where nothing is left of it."""
    if not diagonal.size:
        return np.inf
    theta, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal)
    return float(vectors[0] ** 2 @ np.log(theta))


def _whitening(precision: PosteriorPrecision, like: Array) -> tuple[Callable[[Array], Array], float, list[float]]:
    """r -> C^(-1/2) r, log|C| over the real unknowns, and as many of tr M, tr M^2 as are known."""
    spectrum = precision.circulant_spectrum
    if spectrum is None:
        return (lambda r: r), 0.0, []
    inverse_root = 1 / np.sqrt(spectrum)
    components = 2
    if not np.iscomplexobj(like):  # what the real part of an FFT filter does: its spectrum made symmetric
        mirrored = np.roll(inverse_root[::-1, ::-1], 1, axis=(0, 1))
        inverse_root, components = 0.5 * (inverse_root + mirrored), 1
    log_circulant = -2 * components * float(np.sum(np.log(inverse_root)))
    traces = _known_traces(precision) if components == 2 else []
    return circulant_inverse(1 / inverse_root), log_circulant, traces


def _known_traces(precision: PosteriorPrecision) -> list[float]:
    """tr M and tr M^2 over the real unknowns of a complex image; none where the circulant is only near the nearest."""
    size = float(precision.measurement.in_size)
    if any(block.analysis.filter_bands() is None for block in precision.blocks):
        return []
    control = CirculantControl.of(precision)
    if control is None or control.gram is None:
        return [size]
    total = float(np.sum(control.inverse * control.gram))
    for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
        moments = control.moments(block.analysis)
        if moments is None or moments[1] is None:
            return [size]
        total += float(np.sum(pi * moments[1], dtype=np.float64))
    return [size, 2 * total]


def _polynomial_of_log(theta: Array, mass: Array, degree: int) -> Array:
    """Coefficients of theta, theta^2 in the polynomial nearest to log theta over the spectral measure found."""
    powers = np.stack([theta**k for k in range(degree + 1)], axis=1)
    root = np.sqrt(mass)
    return np.asarray(np.linalg.lstsq(powers * root[:, None], np.log(theta) * root, rcond=1e-10)[0][1:])
