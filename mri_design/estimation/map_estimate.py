"""Maximum a posteriori estimation: a smoothing that is driven to zero, or towards it, and a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mri_design.errors import number_array, require_counts, require_numbers
from mri_design.estimation.admm import ADMM
from mri_design.estimation.automatic import Automatic
from mri_design.estimation.duality import DualityGap, duality_gap
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.penalised import InnerSolver, PenalisedProblem, require_solver
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_determined, require_model
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status


@dataclass(frozen=True)
class MapEstimate:
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
            block.require(self.needs, user="MapEstimate")
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
    """Maximum a posteriori image of ``model``; ``settings`` are those of `MapEstimate`.

    Raises
    ------
    InputError
        As `MapEstimate`.
    """
    return MapEstimate(**settings).estimate(model)
