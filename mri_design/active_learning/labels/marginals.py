"""Marginals of all cases of a pool, kept valid by rank-one updates while labels come in.

A label adds the site exp(b s - pi s^2 / 2) to the posterior, A' = A + pi b b^T. With d = A^-1 b, r = b^T d, m = b^T u
and k = 1 + r pi (units of sigma)

    u' = u + ((beta - m pi) / k) d,   r_j' = r_j - w_j^2 pi / k,   m_j' = m_j + ((beta - m pi) / k) w_j,   w = B d

and log|A'| = log|A| + log k: one solve and one product with B. Nickisch & Seeger 2009, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mri_design.active_learning.labels.label_pool import LabelPool
from mri_design.active_learning.labels.scores import site_width
from mri_design.errors import InputError
from mri_design.krylov.conjugate_gradients import conjugate_gradients
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.likelihoods.logistic import Logistic
from mri_design.variances.base import VarianceEstimator

DENSE_LIMIT = 2000  # weights up to which A is factorised; conjugate gradients beyond
SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, kw_only=True)
class PoolMarginals:
    """Means and variances of the log odds of every case and of the prior's coefficients, after some labels.

    Parameters
    ----------
    pool : LabelPool
        The cases.
    precision : PosteriorPrecision
        A when the block began.
    factor : array or None
        Its lower Cholesky factor, where it is small.
    mean : array, shape (weights,)
        u.
    means, variances : arrays, shape (cases,)
        m and r of every case, in units of sigma and sigma^2.
    prior_variances : tuple of arrays
        r of the prior's coefficients.
    valid : bool array, shape (cases,)
        False where r is zero (no feature: a label tells nothing), and where an update made it negative, which happens
        where it was under-estimated: no candidate until the next inference. Labelled cases and the prior's
        coefficients are computed anew instead.
    directions, shrinkage : arrays, shapes (labels, weights) and (labels,)
        d and pi / k of every label since then.
    log_determinant : float or None
        log|A|, where the variances knew it.
    recomputed : int
        Solves spent on negative variances.
    """

    pool: LabelPool
    precision: PosteriorPrecision
    factor: Array | None
    mean: Array
    means: Array
    variances: Array
    prior_variances: tuple[Array, ...]
    valid: Array
    directions: Array
    shrinkage: Array
    log_determinant: float | None
    recomputed: int = 0

    @classmethod
    def of(
        cls, pool: LabelPool, posterior: GaussianPosterior, estimator: VarianceEstimator, rng: np.random.Generator
    ) -> PoolMarginals:
        """From a posterior: the estimator's variances of every case and coefficient."""
        precision, weights = posterior.precision, pool.rows.in_shape[0]
        estimate = estimator(precision, [pool.rows, *(b.analysis for b in pool.prior)], rng, posterior.mean)
        small = weights <= DENSE_LIMIT
        return cls(
            pool=pool,
            precision=precision,
            factor=scipy.linalg.cholesky(precision.dense_real(), lower=True) if small else None,
            mean=posterior.mean,
            means=pool.rows(posterior.mean),
            variances=estimate.values[0],
            prior_variances=estimate.values[1:],
            valid=estimate.values[0] > 0,
            directions=np.zeros((0, weights)),
            shrinkage=np.zeros(0),
            log_determinant=estimate.log_determinant,
        )

    def solve(self, b: Array) -> Array:
        """A^-1 b with every label so far: one solve with the first A, then the rank-one corrections."""
        if self.factor is not None:
            d = scipy.linalg.cho_solve((self.factor, True), b)
        else:
            solutions, solved = conjugate_gradients(
                self.precision, b[None], n_axes=1, tolerance=SOLVER_TOLERANCE, max_iterations=10 * len(b)
            )
            if not solved.converged:
                raise InputError(
                    "posterior precision",
                    f"a solve that stopped at residual {solved.residual:.1e}",
                    f"{SOLVER_TOLERANCE:g}",
                    "Scale the features to similar size.",
                )
            d = solutions[0]
        for direction, shrink in zip(self.directions, self.shrinkage, strict=True):
            d = d - direction * (shrink * (direction @ b))
        return np.asarray(d)

    def including(self, index: int, label: float, labelled: Array) -> PoolMarginals:
        """After one more label.

        Parameters
        ----------
        index : int
            The case; its own mean and variance are computed anew, whatever the estimator said.
        label : float
            -1 or +1.
        labelled : int array
            All labelled cases, this one included.
        """
        b = self.pool.row(index)
        d = self.solve(b)
        r, m = float(b @ d), float(b @ self.mean)
        site = Logistic(label, self.pool.scale)
        slope = float(site.shift)
        pi = 1 / float(site_width(np.array(m), np.array(r), site, max_iterations=1000))
        growth = 1 + r * pi
        step, shrink = (slope - m * pi) / growth, pi / growth
        w = self.pool.rows(d)
        variances = self.variances - shrink * w**2
        means = self.means + step * w
        variances[index], means[index] = r / growth, m + step * r
        prior = tuple(
            old - shrink * block.analysis(d) ** 2
            for old, block in zip(self.prior_variances, self.pool.prior, strict=True)
        )
        known = self.log_determinant
        after = replace(
            self,
            mean=self.mean + step * d,
            means=means,
            variances=variances,
            prior_variances=prior,
            valid=self.valid & (variances > 0),
            directions=np.concatenate([self.directions, d[None]]),
            shrinkage=np.append(self.shrinkage, shrink),
            log_determinant=None if known is None else known + float(np.log(growth)),
        )
        return after._mended(labelled)

    def _mended(self, labelled: Array) -> PoolMarginals:
        """With the negative variances of sites that are in the model computed anew."""
        variances, count = self.variances.copy(), 0
        for index in labelled[variances[labelled] < 0]:
            b = self.pool.row(int(index))
            variances[index] = b @ self.solve(b)
            count += 1
        prior = []
        for block, values in zip(self.pool.prior, self.prior_variances, strict=True):
            mended = values.copy()
            for place in np.argwhere(mended < 0):
                unit = np.zeros(block.analysis.out_shape)
                unit[tuple(place)] = 1.0
                b = block.analysis.adjoint(unit)
                mended[tuple(place)] = b @ self.solve(b)
                count += 1
            prior.append(mended)
        return replace(self, variances=variances, prior_variances=tuple(prior), recomputed=self.recomputed + count)
