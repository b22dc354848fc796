"""The choice of a solver for each inner problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.admm import ADMM, StartingPoint, has_exact_step
from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.penalised import PenalisedProblem, Smoothed
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.status import Convergence

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
        sharpness = sharpness_of(problem, StartingPoint.of(problem, start))
        if sharpness > crossing and has_exact_step(model):
            return ADMM(self.tolerance, self.max_iterations)
        if sharpness > VERY_SHARP * self.sharpness and isinstance(model.measurement, NonUniformFourier):
            return IRLS(self.tolerance * LAST_OF_EXCESS, self.max_iterations, solver_tolerance=0.2)
        return LBFGS(self.tolerance, self.max_iterations)


def sharpness_of(problem: PenalisedProblem, there: StartingPoint) -> float:
    """The largest ratio, over blocks, of the mean pi at s = 0 to the typical pi at a point."""
    ratios = []
    for penalty, x, typical in zip(problem.penalties, there.powers, there.typical, strict=True):
        at_zero = float(np.mean(penalty.precision(np.zeros_like(x)), dtype=np.float64))
        ratios.append(at_zero / typical)
    return max(ratios)
