"""Maximum a posteriori estimation, the choice of a solver for each inner problem, and least-squares images.

The most probable image is found with a smoothing that is driven to zero, or towards it, and comes with a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mri_design.errors import number_array, require_counts, require_numbers
from mri_design.estimation.admm import ADMM, StartingPoint, has_exact_step
from mri_design.estimation.duality import DualityGap, duality_gap
from mri_design.estimation.penalised import IRLS, LBFGS, InnerSolver, PenalisedProblem, Smoothed, require_solver
from mri_design.krylov import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_determined, require_model
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.status import Convergence, Status

LAST_OF_EXCESS = 0.25
"""The part of J's excess over its minimum that the next reweighting takes: each leaves some four fifths."""
VERY_SHARP = 250
"""How much sharper than sharp corners are that take IRLS: beyond those of inference, also where it begins cold."""


@dataclass(frozen=True)
class Automatic:
    """Choose the solver of each problem: L-BFGS where J is smooth, elsewhere ADMM or IRLS.

    In the inner loop of inference the variances z make J smooth; in MAP estimation it nearly has a corner wherever a
    coefficient is zero. The sharpness of the corners is the ratio of the site precisions at s = 0 to those at typical
    s. The number of iterations of L-BFGS grows with it, that of ADMM hardly does as long as its linear step is exact.
    Sites that are not log-concave, or bounds that are not known to be convex, take L-BFGS.

    Along trajectories very sharp corners, as the last ones of MAP estimation, take IRLS: where A is ill conditioned
    even beside its circulant (few arms of a spiral, dense at the centre) no number of iterations of L-BFGS is enough,
    as it remembers eight steps, while the conjugate gradients of a reweighting see all that they have searched.

    Parameters
    ----------
    tolerance : float
        Stop at this estimated excess of J per real unknown.
    max_iterations : int
        Of the solver chosen.
    sharpness : float
        Corners are sharp where the ratio of site precisions exceeds this, with one coil and one scale per block. The
        limit is eight times higher where X has no spectrum of its own, as with several coils, whose copies cost
        iterations, and 800 times higher where scales differ within a block, for which ADMM has one weight only. The
        measurements behind these limits are in results/benchmarks/measured-once.md.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a count that is too small.
    """

    tolerance: float = 1e-4
    max_iterations: int = 1000
    sharpness: float = 8.0

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance, sharpness=self.sharpness)
        require_counts(max_iterations=self.max_iterations, least=0)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``; the `Convergence` is that of the chosen solver."""
        return self.chosen(problem, start)(problem, start)

    def chosen(self, problem: PenalisedProblem, start: Array) -> ADMM | IRLS | LBFGS:
        """The solver for this problem."""
        model = problem.model
        crossing = self.sharpness * (8 if model.measurement.gram_spectrum() is None else 1)
        crossing *= 800 if any(np.ptp(b.potential.start_variance) > 0 for b in model.blocks) else 1
        if not (model.log_concave and all(isinstance(p, Smoothed) for p in problem.penalties)):
            return LBFGS(self.tolerance, self.max_iterations)
        there = StartingPoint.of(problem, start)
        pairs = zip(problem.penalties, there.powers, strict=True)
        at_zero = (float(np.mean(penalty.precision(np.zeros_like(x)), dtype=np.float64)) for penalty, x in pairs)
        sharpness = max(pi / typical for pi, typical in zip(at_zero, there.typical, strict=True))
        if sharpness > crossing and has_exact_step(model):
            return ADMM(self.tolerance, self.max_iterations)
        if sharpness > VERY_SHARP * self.sharpness and isinstance(model.measurement, NonUniformFourier):
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
        stalled at a cusp of the objective, and then it says so.
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
    """Capabilities that every site must offer; see `potentials.requirements`."""

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
