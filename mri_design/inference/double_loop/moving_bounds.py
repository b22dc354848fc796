"""Sites whose Gaussian-form bound has a position that moves (TR-175 appendix A.4), as sites that have none.

Between two renewals such a site is the Gaussian form N^U(s | b, pi) that touches it: a tilted Gaussian site. Every
renewal lowers the inner problem J, and the criterion with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.estimation.base import InnerSolver
from mri_design.estimation.penalised import PenalisedProblem, Smoothed
from mri_design.inference.double_loop.bounds import SiteBound
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array
from mri_design.potentials.base import MovingSite
from mri_design.status import Convergence, Status

RENEWALS = 500


@dataclass(frozen=True)
class BoundedProblem(PenalisedProblem):
    """An inner problem whose penalties also know h."""

    penalties: tuple[SiteBound, ...]


class MovingBounds:
    """The blocks of a model whose sites are `MovingSite`, their z, and the solution of inner problems that hold some.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With or without such blocks.
    z : tuple of float arrays
        The tangent of log|A|.
    """

    def __init__(self, model: GeneralizedLinearModel, z: tuple[Array, ...]) -> None:
        self.model = model
        self.z = z
        sites = [block.potential for block in model.blocks]
        self.moving = {j: site for j, site in enumerate(sites) if isinstance(site, MovingSite)}

    def at(self, u: Array) -> GeneralizedLinearModel:
        """The model with the Gaussian forms that touch at u."""
        if not self.moving:
            return self.model
        blocks = list(self.model.blocks)
        for j, site in self.moving.items():
            form = site.gaussian_form(self._coefficients(j, u), self.z[j])
            blocks[j] = replace(blocks[j], potential=form)
        return replace(self.model, blocks=tuple(blocks))

    def problem(self, bounded: GeneralizedLinearModel, bounds: tuple[SiteBound, ...]) -> BoundedProblem:
        """The inner problem of `at` (some u), with ``bounds`` for the blocks that do not move."""
        penalties = list(bounds)
        for j in self.moving:
            penalties[j] = Smoothed(bounded.blocks[j].represented, np.zeros((), dtype=bounded.data.real.dtype))
        return BoundedProblem(bounded, tuple(penalties))

    def surplus(self, u: Array) -> float:
        """What the criterion of `at` (u) lacks: psi - z pi - (pi s^2 - 2 b s) / sigma^2, summed."""
        total, bounded = 0.0, self.at(u)
        for j, site in self.moving.items():
            s, form = self._coefficients(j, u), bounded.blocks[j].represented
            pi = form.site_precision(s)
            total += float(np.sum(-2 * site.smoothed_log_t(s, self.z[j]) - self.z[j] * pi + 2 * form.log_t(s)))
        return total

    def solve(self, solver: InnerSolver, bounds: tuple[SiteBound, ...], u: Array) -> tuple[Array, Convergence]:
        """Minimise the inner problem, whose moving blocks' entries in ``bounds`` are not used."""
        if not self.moving:
            return solver(PenalisedProblem(self.model, bounds), u)
        matvecs, value, status, solved, count, decrease = 0, np.inf, Status.MAX_ITERATIONS, None, 0, np.inf
        for count in range(1, RENEWALS + 1):  # noqa: B007 (reported)
            bounded = self.at(u)
            problem = self.problem(bounded, bounds)
            u, solved = solver(problem, u)
            matvecs += solved.matvecs
            residual = bounded.data - bounded.measurement(u)
            touching = -2 * sum(float(np.sum(self._log_t(j, u))) for j in self.moving)
            forms = 2 * sum(
                float(np.sum(bounded.blocks[j].potential.log_t(self._coefficients(j, u)))) for j in self.moving
            )
            new_value = problem.value(residual, bounded.analysis_coefficients(u)) + forms + touching
            decrease, value = (value - new_value) / self.model.measurement.in_size, new_value
            if solved.status is Status.BREAKDOWN:
                status = Status.BREAKDOWN
                break
            if decrease < solver.tolerance and solved.converged:
                status = Status.CONVERGED
                break
        return u, Convergence(status, count, float(decrease), matvecs)

    def _coefficients(self, j: int, u: Array) -> Array:
        """s of block j in units of sigma."""
        s = self.model.blocks[j].coefficients(u)
        return np.asarray(s / np.sqrt(self.model.noise_variance)).astype(s.dtype, copy=False)

    def _log_t(self, j: int, u: Array) -> Array:
        return self.moving[j].smoothed_log_t(self._coefficients(j, u), self.z[j])
