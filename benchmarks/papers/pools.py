"""Active learning as the ICML paper runs it: one Lanczos run a block, and scores of the candidates that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.special
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.glm.labels import LabelPool, PoolDesign, PoolState, uncertainty
from mri_design.krylov import LanczosFactors, lanczos
from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.posterior import PosteriorPrecision, Variances
from mri_design.operators.base import LinearOperator
from mri_design.operators.elementary import Identity
from mri_design.sites.priors import Laplace
from mri_design.status import Convergence, Status

Array = NDArray[np.float64]
PROBIT_ERROR = 0.02
"""More than the largest difference of the logistic function from Phi(s sqrt(pi / 8)), which is 0.0177."""


@dataclass
class KeptLanczos:
    """`Lanczos`, whose vectors serve model and candidates alike where both are asked under the same A.

    Parameters
    ----------
    steps : int
        k.
    runs, products : int
        Lanczos runs and products with A so far.
    """

    steps: int
    runs: int = 0
    products: int = 0
    _of: tuple[PosteriorPrecision, LanczosFactors, Array] | None = field(default=None, repr=False)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        spent = Convergence(Status.CONVERGED, 0, 0.0)
        if self._of is None or self._of[0] is not precision:
            self._of = None  # so that two bases are never held at once
            factors = lanczos(precision, rng.standard_normal(like.shape), min(self.steps, like.size))
            spent = factors.convergence
            if spent.status is Status.BREAKDOWN:
                raise InputError("Lanczos", "a matrix that is not positive definite", "a proper posterior")
            self._of = (precision, factors, factors.inverse_root())
            self.runs, self.products = self.runs + 1, self.products + spent.matvecs
        _, factors, root = self._of
        values = []
        for analysis in analyses:
            z = np.zeros(analysis.out_shape)
            for v in root:
                z += analysis(v) ** 2
            values.append(z)
        logarithm = factors.log_determinant()
        return Variances(tuple(values), "lower_bound", spent, factors=factors, log_determinant=logarithm)


@dataclass(frozen=True)
class BlockDesign(PoolDesign):
    """`PoolDesign` that computes S_CU only where it can be largest.

    Phi(s sqrt(pi / 8)) has a Gaussian average in closed form, within `PROBIT_ERROR` of that of the logistic function.
    A case whose distance from 1/2 by it exceeds the least by more than twice this error cannot be the best.
    """

    def propose(self, state: PoolState, rng: np.random.Generator) -> tuple[int, Array]:
        if self.score != "uncertainty":
            return super().propose(state, rng)
        made, rate = state.marginals, state.pool.rate
        usable = state.remaining[made.valid[state.remaining]]
        spread = np.sqrt(8 / np.pi + rate**2 * made.variances[usable])
        crude = np.abs(scipy.special.ndtr(rate * made.means[usable] / spread) - 0.5)
        usable = usable[crude <= crude.min() + 2 * PROBIT_ERROR]
        scores = np.full(state.pool.size, -np.inf)
        scores[usable] = uncertainty(made.means[usable], made.variances[usable], rate)
        return int(np.argmax(scores)), scores


def with_prior(features: object, rate: float = 1.0, laplace: float | None = None) -> LabelPool:
    """A pool whose weights have the standard Gaussian prior, or Laplace sites of this rate."""
    if laplace is None:
        return LabelPool(features, rate=rate)
    weights = Identity((np.shape(features)[1],), is_complex=False)
    return LabelPool(features, (SiteBlock("weights", weights, Laplace(laplace)),), rate)


def error_rate(features: object, labels: Array, mean: Array) -> float:
    """Part of the cases whose label is not the sign of b^T u."""
    return float(np.mean(np.where(features @ mean >= 0, 1.0, -1.0) != labels))
