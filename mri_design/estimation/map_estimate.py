"""Maximum a posteriori and least-squares images, the choice of a solver for each inner problem, and noise maps.

`MaximumAPosteriori` finds the most probable image with a smoothing that is lowered in stages, to zero if wanted, and
certifies it by the duality gap. `Automatic` chooses the solver. `least_squares_noise` and `posterior_noise` compute
what the noise of the samples alone does to an image, with the g-factor of several coils.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import number_array, require_counts, require_numbers, require_random
from mri_design.estimation.admm import ADMM, DualityGap, duality_gap, has_exact_step, sites_at, typical_precision
from mri_design.estimation.penalised import IRLS, LBFGS, InnerSolver, PenalisedProblem, Smoothed, require_solver
from mri_design.krylov import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_determined, require_model
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.status import Convergence, Status

LAST_OF_EXCESS = 0.25
"""The part of J's excess over its minimum that the next reweighting takes: each leaves some four fifths."""
VERY_SHARP = 250
"""How much sharper than sharp corners are that take IRLS: beyond those of inference, also where it begins cold."""


SHARP = 8.0
"""Ratio of site precisions beyond which corners are sharp, with one scale per block. The limit is 800 times higher
where scales differ within a block, for which ADMM has one weight (results/benchmarks/measured-once.md)."""


@dataclass(frozen=True)
class Automatic:
    """Choose the solver of each problem: L-BFGS where J is smooth, elsewhere ADMM or IRLS.

    In the inner loop of inference the variances z make J smooth; in MAP estimation it nearly has a corner wherever a
    coefficient is zero. The sharpness of the corners is the ratio of the site precisions at s = 0 to those at typical
    s. The number of iterations of L-BFGS grows with it, that of ADMM hardly does as long as its linear step is exact.
    Sites that are not log-concave, or bounds that are not known to be convex, take L-BFGS.

    Along trajectories very sharp corners, as the last ones of MAP estimation, take IRLS: where A is ill conditioned
    even with its circulant as preconditioner (few arms of a spiral, dense at the centre) no number of iterations of
    L-BFGS is enough, as it remembers eight steps, while the conjugate gradients of a reweighting see all that they have
    searched.

    Parameters
    ----------
    tolerance : float
        Stop at this estimated excess of J per real unknown.
    max_iterations : int
        Of the solver chosen.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a count that is too small.
    """

    tolerance: float = 1e-4
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance)
        require_counts(max_iterations=self.max_iterations, least=0)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``; the `Convergence` is that of the chosen solver."""
        return self.chosen(problem, start)(problem, start)

    def chosen(self, problem: PenalisedProblem, start: Array) -> ADMM | IRLS | LBFGS:
        """The solver for this problem."""
        model = problem.model
        crossing = SHARP * (800 if any(np.ptp(b.potential.start_variance) > 0 for b in model.blocks) else 1)
        if not (model.log_concave and all(isinstance(p, Smoothed) for p in problem.penalties)):
            return LBFGS(self.tolerance, self.max_iterations)
        _, powers, precisions = sites_at(problem, start)
        typical = (typical_precision(x, pi) for x, pi in zip(powers, precisions, strict=True))
        pairs = zip(problem.penalties, powers, strict=True)
        at_zero = (float(np.mean(penalty.precision(np.zeros_like(x)), dtype=np.float64)) for penalty, x in pairs)
        sharpness = max(pi / usual for pi, usual in zip(at_zero, typical, strict=True))
        if sharpness > crossing and has_exact_step(model):
            return ADMM(self.tolerance, self.max_iterations)
        if sharpness > VERY_SHARP * SHARP and isinstance(model.measurement, NonUniformFourier):
            return IRLS(self.tolerance * LAST_OF_EXCESS, self.max_iterations, solver_tolerance=0.2)
        return LBFGS(self.tolerance, self.max_iterations)


@dataclass(frozen=True)
class MaximumAPosteriori:
    """argmin ||y - X u||^2 / sigma^2 - 2 sum_i log t_i(s_i), sites smoothed by z = epsilon -> ``smoothing``.

    Parameters
    ----------
    smoothing : float
        Final epsilon relative to the site's own start variance, in the same units as z; |s| is replaced by
        sqrt(|s|^2 + epsilon sigma^2). At 0 the objective itself is minimised: for log-concave sites by ADMM, whose
        proximal steps need no smoothing, until the duality gap is below the tolerance of ``inner``, per real unknown;
        in double precision, since in single the certificate does not get that far, and so is the image. For others
        epsilon goes on down to 1e-8 before, and ``inner`` (for ADMM, L-BFGS) ends at 0: in a local minimum, or
        stalled at a cusp of the objective, which ``status`` reports.
    stages : int
        Geometric steps of epsilon from the start variance down to ``smoothing`` times it (for 0, to 1e-2 of it).
    inner : InnerSolver
        Solver of each stage.

    Raises
    ------
    InputError
        For anything but a solver, a smoothing that is negative, or no stage; for a start that is not finite or not an
        image of the model; where X and B share a null space.

    Notes
    -----
    With sites that are not log-concave a local minimum is found, and there is no certificate.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"g", "bound"})
    """Capabilities that every site must offer; see `sites.base`."""

    smoothing: float = 1e-5
    stages: int = 2
    inner: InnerSolver = field(default_factory=Automatic)

    def __post_init__(self) -> None:
        require_solver(inner=self.inner)
        require_numbers(smoothing=self.smoothing)
        require_counts(stages=self.stages, least=1)

    def __call__(self, model: GeneralizedLinearModel, start: Array | None = None) -> tuple[Array, Convergence]:
        """The (smoothed) MAP image and how it was reached; a cold start begins at X^H y.

        Notes
        -----
        ``residual`` of the result is that of the solver of the last stage, at smoothing 0 the certified excess of the
        objective per real unknown, where there is a certificate.
        """
        u, convergence, _ = self._solve(model, start)
        return u, convergence

    def estimate(self, model: GeneralizedLinearModel, start: Array | None = None) -> PointEstimate:
        """The MAP image with the duality gap of the objective without smoothing.

        Notes
        -----
        The gap is that of the image returned, however the solver ended: converged, stalled or at its limit.
        """
        u, convergence, gap = self._solve(model, start)
        if self.smoothing > 0 and model.log_concave and convergence.status is not Status.BREAKDOWN:
            smoothed = self.smoothed_problem(model, self.smoothing)
            s = model.analysis_coefficients(u)
            slopes = smoothed.site_slopes(s, smoothed.site_precisions(s))
            gap = duality_gap(self.smoothed_problem(model, 0.0), u, slopes)
            if gap is not None:
                convergence = replace(convergence, matvecs=convergence.matvecs + gap.matvecs)
        return PointEstimate(u, convergence, gap)

    def _solve(
        self, model: GeneralizedLinearModel, start: Array | None
    ) -> tuple[Array, Convergence, DualityGap | None]:
        require_model(model)
        for block in model.blocks:
            block.require(self.needs, user="MaximumAPosteriori")
        if start is not None:
            wanted = f"a finite image of shape {model.image_shape}"
            start = number_array("start", start, wanted=wanted, shape=model.image_shape, kind="finite")
        exact = self.smoothing == 0
        if exact:
            model = replace(model, data=model.data.astype(np.result_type(model.data.dtype, np.float64)))
        model = model.rotated
        require_determined(model)
        u = model.back_projection() if start is None else start
        matvecs = iterations = 0
        solved, gap = Convergence(Status.CONVERGED, 0, 0.0), None
        convex = model.log_concave
        settings = self.inner
        if exact and not convex and isinstance(settings, ADMM):
            settings = LBFGS(settings.tolerance, settings.max_iterations)  # its copies may part from u for good
        factors = np.geomspace(1e-2 if exact else self.smoothing, 1.0, self.stages)[::-1].tolist()  # one is the last
        if exact:
            factors += [0.0] if convex else [1e-4, 1e-6, 1e-8, 0.0]
        last = self.stages - (0 if exact else 1)
        for stage, factor in enumerate(factors):
            inner = settings if stage >= last else replace(settings, tolerance=10 * settings.tolerance)
            problem = self.smoothed_problem(model, factor)
            if factor == 0 and convex:
                final = ADMM(settings.tolerance, settings.max_iterations, solver_tolerance=1e-3, solver_iterations=50)
                u, solved, gap = final.certified(problem, u)
            else:
                u, solved = inner(problem, u)
            matvecs += solved.matvecs
            iterations += solved.iterations
            if solved.status is Status.BREAKDOWN:
                break
        return u, Convergence(solved.status, iterations, solved.residual, matvecs), gap

    def smoothed_problem(self, model: GeneralizedLinearModel, factor: float) -> PenalisedProblem:
        """The penalised problem with epsilon = ``factor`` times each site's start variance."""
        real = model.data.real.dtype
        z = tuple(np.asarray(factor * np.asarray(b.potential.start_variance), dtype=real) for b in model.blocks)
        return PenalisedProblem.smoothed(model, z)


@dataclass(frozen=True)
class PointEstimate:
    """An image and how it was reached; in NumPy expressions it stands for the image.

    Parameters
    ----------
    image : array
        The estimate.
    convergence : Convergence
        How it was reached.
    gap : DualityGap, optional
        How far the objective (without smoothing) is above its minimum at this very image, at most; None where that is
        not known.
    """

    image: Array
    convergence: Convergence
    gap: DualityGap | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.image, dtype=dtype, copy=copy)

    @property
    def mean(self) -> Array:
        """The image, under the name that a posterior gives its own."""
        return self.image


def map_estimate(model: GeneralizedLinearModel, **settings: Any) -> PointEstimate:
    """Maximum a posteriori image of ``model``; ``settings`` are those of `MaximumAPosteriori`.

    Raises
    ------
    InputError
        As `MaximumAPosteriori`.
    """
    return MaximumAPosteriori(**settings).estimate(model)


def zero_filled(model: GeneralizedLinearModel) -> Array:
    """X^H y: inverse FFT with zeros for missing lines, combined over coils.

    Raises
    ------
    InputError
        For anything but a model.
    """
    require_model(model)
    return model.back_projection()


def least_squares(
    model: GeneralizedLinearModel, *, damping: float = 0.0, tolerance: float = 1e-4, max_iterations: int = 100
) -> tuple[Array, Convergence]:
    """argmin ||y - X u||^2 + damping ||u||^2 from u = 0 (the minimum-norm solution for damping 0).

    Parameters
    ----------
    model : GeneralizedLinearModel
        Only X and y are used.
    damping : float
        Tikhonov weight in units of X^H X (dimensionless for a unitary transform).
    tolerance, max_iterations : float, int
        Of the conjugate gradients.

    Raises
    ------
    InputError
        For anything but a model, a damping that is negative, a senseless tolerance or limit.
    """
    require_model(model)
    require_numbers(damping=damping)
    gram = model.measurement.gram
    u, convergence = conjugate_gradients(
        lambda x: gram(x) + damping * x,
        model.back_projection()[None],
        n_axes=model.n_axes,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    return u[0], convergence


REPLICAS = 64
"""Images of noise alone that a map is taken from where it is not known in closed form: each pixel to 6 %."""
_TOLERANCE, _MOST = 1e-3, 500


@briefly
@dataclass(frozen=True)
class NoiseMap:
    """The noise of an image by pixel, and the g-factor.

    Parameters
    ----------
    std : float array, shape (ky, kx)
        Standard deviation of each complex pixel over repeated scans, real and imaginary part together, in the image's
        units. What was not measured does not show in it: where little was, the image is wrong by more.
    g_factor : float array, shape (ky, kx)
        ``std`` over that of the complete scan, over the root of the acceleration; 1 is the least that an unbiased image
        has, and where no coil sees anything it is 0.
    replicas : int
        Images of noise that it was taken from; 0 where it is exact.

    Notes
    -----
    K. P. Pruessmann et al., "SENSE", Magn. Reson. Med. 42 (1999) 952-962, equation 23. Replicas: P. M. Robson et al.,
    Magn. Reson. Med. 60 (2008) 895-907.
    """

    std: Array
    g_factor: Array
    replicas: int = 0

    def times(self, unit: float | Array) -> NoiseMap:
        """The map of an image in other units: times a number, or a number for each pixel."""
        return replace(self, std=np.asarray(self.std * unit, dtype=np.float32))

    @property
    def usual(self) -> tuple[float, float]:
        """The g-factors below which half and 95 % of the pixels of the object are."""
        seen = self.g_factor[self.g_factor > 0]
        middle, high = np.quantile(seen, [0.5, 0.95]) if seen.size else (0.0, 0.0)
        return float(middle), float(high)


def least_squares_noise(
    model: GeneralizedLinearModel, damping: float, rng: np.random.Generator, *, replicas: int = REPLICAS
) -> NoiseMap:
    """The noise of the image of `least_squares`: for lines exactly, elsewhere from images of noise alone.

    The damped solution is (G + d)^-1 X^H y with G = X^H X, so that its covariance is that of the noise times (G + d)^-1
    - d (G + d)^-2. Damping makes large g-factors smaller than the undamped ones of SENSE. Lines couple no two columns
    of an image, each of which is inverted on its own.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Of X, its noise variance alone is used.
    damping : float
        d, above 0 unless the coils determine every pixel.
    rng : numpy Generator
        Of the images of noise.
    replicas : int
        How many, where they are needed.

    Raises
    ------
    InputError
        For another kind of argument.
    """
    require_model(model)
    require_numbers(damping=damping)
    require_random(rng)
    columns = model.measurement.column_gram()
    if columns is not None:
        inverses = (np.linalg.inv(gram + damping * np.eye(len(gram))) for gram in columns)
        each = [np.diagonal(one).real - damping * np.sum(np.abs(one) ** 2, axis=1) for one in inverses]
        return _map(model, np.stack(each, axis=1), 0)
    gram = model.measurement.gram
    power = _replicated(model, lambda u: gram(u) + damping * u, None, rng, replicas)
    return _map(model, power, replicas)


def posterior_noise(posterior: GaussianPosterior, rng: np.random.Generator, *, replicas: int = REPLICAS) -> NoiseMap:
    """The noise of a posterior mean with fixed site precisions: A^-1 X^H applied to noise alone.

    It says how far images of repeated scans differ. The posterior's standard deviation says how far the image may be
    from the truth, and so holds what was not measured, too.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the image.
    rng : numpy Generator
        Of the images of noise.
    replicas : int
        How many.

    Raises
    ------
    InputError
        For another kind of argument.
    """
    require_posterior(posterior)
    require_random(rng)
    precision = posterior.precision
    power = _replicated(posterior.model, precision, precision.preconditioner, rng, replicas)
    return _map(posterior.model, power, replicas)


def _replicated(
    model: GeneralizedLinearModel,
    precision: Callable[[Array], Array],
    preconditioner: Callable[[Array], Array] | None,
    rng: np.random.Generator,
    replicas: int,
) -> Array:
    """Mean over images of noise of variance 1 per real component of |pixel|^2 / 2, (ky, kx)."""
    require_counts(replicas=replicas, least=2)
    real = np.dtype(np.float32)
    power = np.zeros(model.measurement.in_shape)
    for _ in range(replicas):  # one at a time, to bound the memory
        noise = model.measurement.shared_noise(rng, 1, real)
        images, _ = conjugate_gradients(
            precision,
            model.measurement.adjoint_of_noise(noise),
            n_axes=model.n_axes,
            preconditioner=preconditioner,
            tolerance=_TOLERANCE,
            max_iterations=_MOST,
        )
        power += np.abs(images[0]) ** 2
    return np.asarray(power / (2 * replicas))


def _map(model: GeneralizedLinearModel, power: Array, replicas: int) -> NoiseMap:
    """The map by the variance per component of each pixel, in units of the samples' own."""
    maps = getattr(model.measurement, "maps", None)
    pixels = model.measurement.in_shape
    seen = np.ones(pixels) if maps is None else np.sum(np.abs(maps.astype(np.complex128)) ** 2, axis=0)
    coils = 1 if maps is None else len(maps)
    acceleration = np.prod(pixels) * coils / model.data.size
    g_factor = np.sqrt(np.maximum(power, 0) * seen / acceleration)
    std = np.sqrt(2 * model.noise_variance * np.maximum(power, 0))
    return NoiseMap(std.astype(np.float32), g_factor.astype(np.float32), replicas)
