"""Which case of a pool to label next: active learning of binary labels (Nickisch & Seeger 2009, section 3).

A case with features b has the label +1 with probability 1 / (1 + exp(-tau s)), s = b^T u. Under the posterior given the
labels so far, s is N(m, r) in units of sigma. The scores `uncertainty`, `bald` and `information_gain_of_labels` say,
from m and r, how much the label of a case would tell.

`PoolMarginals` keeps m and r of all cases B up to date while labels come in. A label adds the site exp(beta s - pi s^2
/ 2), so that A' = A + pi b b^T. With d = A^-1 b, w = B d and k = 1 + r pi

    u' = u + ((beta - m pi) / k) d,   r_j' = r_j - w_j^2 pi / k,   m_j' = m_j + ((beta - m pi) / k) w_j

and log|A'| = log|A| + log k: one solve and one product with B. `PoolDesign` chooses labels one by one, and infers the
weights anew after every block of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.special
from numpy.typing import ArrayLike

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    number_array,
    positive_number,
    require_choice,
    require_counts,
    require_instance,
    require_random,
    sequence_of,
)
from mri_design.inference.base import Engine, WarmStart, require_engine
from mri_design.inference.double_loop import DoubleLoop
from mri_design.krylov import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.operators.elementary import Dense, Identity, MatrixOperator, SparseMatrix
from mri_design.sites.base import Expectation, SuperGaussian, label_signs
from mri_design.sites.likelihoods import Logistic, expected_softplus
from mri_design.status import Status
from mri_design.variances.base import Exact, VarianceEstimator, require_estimator

LABELS = "labels"


@briefly
@dataclass(frozen=True)
class LabelPool:
    """Cases with features, a prior on the weights, and logistic labels: P(c = +1) = 1 / (1 + exp(-tau b^T u)).

    Parameters
    ----------
    features : array or scipy.sparse matrix, shape (cases, weights)
        b^T of every case, labelled or not.
    prior : tuple of SiteBlock
        Sites on the weights, in units of sigma = 1; without any the weights are N(0, 1), each for itself (X = I).
    rate : float
        tau.

    Raises
    ------
    InputError
        For no case, features that are not finite real numbers, a prior that is no blocks, a likelihood or on other
        weights, a rate that is not positive.

    Notes
    -----
    Nickisch & Seeger 2009, section 2: a Gaussian prior is X = I and y = 0, a sparse one X = 0 and Laplace sites.
    """

    features: Any
    prior: tuple[SiteBlock, ...] = ()
    rate: float = 1.0

    def __post_init__(self) -> None:
        positive_number("rate", self.rate)
        prior = sequence_of(SiteBlock, "prior", self.prior, wanted="a tuple of SiteBlocks")
        object.__setattr__(self, "prior", prior)
        if not scipy.sparse.issparse(self.features):
            number_array("pool", self.features, wanted="features (cases, weights), real numbers")
        shape = np.shape(self.features)
        if len(shape) != 2 or 0 in shape:
            raise InputError("pool", f"features of shape {shape}", "(cases, weights), at least one")
        if np.iscomplexobj(self.features):
            raise InputError("pool", "complex features", "real numbers")
        _ = self.rows  # which refuses numbers that are not finite
        for block in self.prior:
            if block.is_likelihood:
                raise InputError(
                    f"prior block {block.name!r}",
                    "a factor of the likelihood",
                    "beliefs about the weights: the labels are the pool's own",
                    'Say SiteBlock(role="prior") for a prior whose centre is its offset.',
                )
            if block.analysis.in_shape != shape[1:] or block.analysis.in_complex:
                raise InputError(
                    f"prior block {block.name!r}",
                    f"weights of shape {block.analysis.in_shape}",
                    f"real weights of shape {shape[1:]}",
                )

    @cached_property
    def rows(self) -> MatrixOperator:
        """B of all cases."""
        sparse = scipy.sparse.issparse(self.features)
        return SparseMatrix(self.features) if sparse else Dense(np.asarray(self.features, dtype=float))

    @property
    def size(self) -> int:
        """Number of cases."""
        return int(self.rows.out_shape[0])

    def row(self, index: int) -> Array:
        """b of one case."""
        matrix = self.rows.matrix
        return np.asarray(matrix[[index]].toarray()[0] if scipy.sparse.issparse(matrix) else matrix[index])

    def model(self, indices: Array, labels: Array) -> GeneralizedLinearModel:
        """The model of some labelled cases; their block is called "labels" and comes first."""
        kind = SparseMatrix if scipy.sparse.issparse(self.rows.matrix) else Dense
        block = SiteBlock(LABELS, kind(self.rows.matrix[indices]), Logistic(labels, self.rate))
        if self.prior:
            return GeneralizedLinearModel.of_sites((block, *self.prior))
        weights = self.rows.in_shape
        return GeneralizedLinearModel(Identity(weights, is_complex=False), np.zeros(weights), 1.0, (block,))

    def checked(self, indices: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
        """Indices and labels as arrays.

        Raises
        ------
        InputError
            For no label at all, different numbers of them, cases out of range or chosen twice, labels other than +-1.
        """
        places = number_array("labelled cases", indices, wanted=f"whole numbers from 0 to {self.size - 1}")
        signs = number_array("labels", labels, wanted="-1 or +1")
        if places.ndim != 1 or signs.shape != places.shape or not places.size:
            raise InputError(
                "labelled cases",
                f"{places.shape} indices and {signs.shape} labels",
                "as many labels as cases, at least one",
                "Label a few cases at random to start with.",
            )
        if places.dtype.kind not in "iu" or places.min() < 0 or places.max() >= self.size:
            raise InputError("labelled cases", str(places), f"whole numbers from 0 to {self.size - 1}")
        if len(np.unique(places)) < len(places):
            raise InputError("labelled cases", "a case that is labelled twice", "every case once")
        return places.astype(np.intp), label_signs("labels", signs)


Score = Literal["uncertainty", "information_gain", "bald", "random"]


def label_probability(mean: Array, variance: Array, rate: float = 1.0) -> Array:
    """Q(c = +1) = E 1 / (1 + exp(-tau s)) for s ~ N(mean, variance)."""
    return _softplus(mean, variance, rate).d_mean


def uncertainty(mean: Array, variance: Array, rate: float = 1.0) -> Array:
    """S_CU = -|Q(c = +1) - 1/2|: largest where the label is a toss-up."""
    return -np.abs(label_probability(mean, variance, rate) - 0.5)


def bald(mean: Array, variance: Array, rate: float = 1.0) -> Array:
    """Mutual information of label and weights, H[E p] - E H[p], in nats (Houlsby et al. 2011).

    Notes
    -----
    With l = tau s of mean m and variance v, H[p] = log(1 + e^l) - l p(l), and E l p(l) = m E p + v E p' (Stein).
    """
    soft = _softplus(mean, variance, rate)
    p, within = soft.d_mean, soft.value - rate * mean * soft.d_mean - 2 * rate**2 * variance * soft.d_variance
    return np.asarray(scipy.special.entr(p) + scipy.special.entr(1 - p) - within)


def information_gain_of_labels(mean: Array, variance: Array, rate: float = 1.0) -> Array:
    """S_IG = sum over labels of Q(c) D[Q' || Q] in nats, Q' the posterior with the candidate's site at its best width.

    Notes
    -----
    D = (log k + (v / k) ((b - m pi)^2 / k - pi)) / 2 with k = 1 + v pi and b the slope of the odd part: the divergence
    of the two Gaussians over the weights.
    """
    p = label_probability(mean, variance, rate)
    total = np.zeros(np.shape(mean))
    for label, weight in ((1.0, p), (-1.0, 1 - p)):
        site = Logistic(label, rate)
        pi = 1 / site_width(mean, variance, site)
        growth = 1 + variance * pi
        linear = float(site.shift) - mean * pi
        total += weight * 0.5 * (np.log(growth) + variance / growth * (linear**2 / growth - pi))
    return total


def site_width(mean: Array, variance: Array, site: SuperGaussian, *, max_iterations: int = 25) -> Array:
    """gamma that minimises the criterion when one site joins N(mean, variance), all candidates side by side.

    Parameters
    ----------
    mean, variance : float arrays
        Of s without the site, in units of sigma and sigma^2.
    site : SuperGaussian
        Super-Gaussian, with a scalar slope.
    max_iterations : int
        Fixed-point steps; 25 leave 1e-3 of the width at variances of some hundreds, 1e-8 at those of one.

    Notes
    -----
    The fixed point t = E_Q'[s^2], gamma = -1 / (2 g'(t)) of expectation maximisation: it lowers
    h(gamma) + log(1 + v / gamma) - (m + v b)^2 / (v (1 + v / gamma)) in every step.
    """
    mean, variance = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
    slope = float(np.asarray(site.shift))
    t = mean**2 + variance
    for _ in range(max_iterations):
        pi = site.site_precision(t)
        growth = 1 + variance * pi
        new = (mean + variance * (slope - mean * pi) / growth) ** 2 + variance / growth
        settled = np.all(np.abs(new - t) <= 1e-10 * t)
        t = new
        if settled:
            break
    return np.asarray(1 / site.site_precision(t))


def _softplus(mean: Array, variance: Array, rate: float) -> Expectation:
    """E log(1 + e^l) of log odds l = tau s, and its derivatives in their mean and variance."""
    log_odds, deviation = np.broadcast_arrays(rate * np.asarray(mean), rate * np.sqrt(variance))
    return expected_softplus(log_odds, np.maximum(deviation, np.finfo(float).tiny))


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
        """The pool with the variances of every case and coefficient under a posterior."""
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
            The case; its own mean and variance are computed anew, not taken from the estimator.
        label : float
            -1 or +1.
        labelled : int array
            All labelled cases, this one included.
        """
        b = self.pool.row(index)
        d = self.solve(b)
        r, m = float(b @ d), float(b @ self.mean)
        site = Logistic(label, self.pool.rate)
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
        return after._with_recomputed_variances(labelled)

    def _with_recomputed_variances(self, labelled: Array) -> PoolMarginals:
        """The pool, where variances that rounding made negative are computed again, one solve each."""
        variances, count = self.variances.copy(), 0
        for index in labelled[variances[labelled] < 0]:
            b = self.pool.row(int(index))
            variances[index] = b @ self.solve(b)
            count += 1
        prior = []
        for block, values in zip(self.pool.prior, self.prior_variances, strict=True):
            recomputed = values.copy()
            for place in np.argwhere(recomputed < 0):
                unit = np.zeros(block.analysis.out_shape)
                unit[tuple(place)] = 1.0
                b = block.analysis.adjoint(unit)
                recomputed[tuple(place)] = b @ self.solve(b)
                count += 1
            prior.append(recomputed)
        return replace(self, variances=variances, prior_variances=tuple(prior), recomputed=self.recomputed + count)


RULES = {"uncertainty": uncertainty, "information_gain": information_gain_of_labels, "bald": bald}
FIRST_INFERENCES = 10  # at most, from a cold start; every later block has one


@dataclass(frozen=True)
class PoolState:
    """Everything a design knows; it can be pickled, and goes on from there as if it had never stopped.

    Parameters
    ----------
    pool : LabelPool
        The cases.
    indices, labels : arrays
        Chosen so far, in order.
    block_start : int
        How many of them the last inference knew.
    posterior : GaussianPosterior
        Of that inference.
    marginals : PoolMarginals
        With all labels: its ``mean`` is the current u.
    """

    pool: LabelPool
    indices: Array
    labels: Array
    block_start: int
    posterior: GaussianPosterior
    marginals: PoolMarginals

    @property
    def mean(self) -> Array:
        """The weights' posterior mean with every label."""
        return self.marginals.mean

    @property
    def remaining(self) -> Array:
        """Cases without a label."""
        without = np.ones(self.pool.size, dtype=bool)
        without[self.indices] = False
        return np.flatnonzero(without)

    @property
    def warm_start(self) -> WarmStart:
        """Where the next inference starts: the updated mean, and the updated variances as z."""
        made = self.marginals
        floor = np.finfo(np.float32).tiny
        z = (made.variances[self.indices], *made.prior_variances)
        pooled = [z[0], *(b.pooled(v) for b, v in zip(self.pool.prior, z[1:], strict=True))]
        return WarmStart(made.mean, tuple(np.maximum(values, floor) for values in pooled))


@dataclass(frozen=True)
class PoolDesign:
    """Choose which cases to label, one by one, with an inference of the weights after every block of them.

    Parameters
    ----------
    score : {"uncertainty", "information_gain", "bald", "random"}
        See `RULES`; ties go to the lowest index.
    block : int
        K: labels from one inference to the next, between which marginals are updated by rank one.
    engine : Engine
        Started from the updated marginals; one outer loop is the paper's choice. From a cold start it is repeated, at
        most ten times, until it says that it converged.
    variances : VarianceEstimator
        Of all cases when a block begins.

    Raises
    ------
    InputError
        For an unknown score, a block of none, or anything but an inference method and a variance estimator.
    """

    score: Score = "uncertainty"
    block: int = 3
    engine: Engine = field(default_factory=lambda: DoubleLoop(Exact(), outer_iterations=1, tolerance=1e-3))
    variances: VarianceEstimator = field(default_factory=Exact)

    def __post_init__(self) -> None:
        require_choice(get_args(Score), score=self.score)
        require_counts(block=self.block, least=1)
        require_engine(engine=self.engine)
        require_estimator(variances=self.variances)

    def begin(
        self,
        pool: LabelPool,
        indices: ArrayLike,
        labels: ArrayLike,
        rng: np.random.Generator,
        warm_start: WarmStart | None = None,
    ) -> PoolState:
        """The state after the given labels; a new block begins with it.

        Raises
        ------
        InputError
            As `LabelPool.checked`, and where the inference breaks down.
        """
        require_instance(LabelPool, wanted="a LabelPool", pool=pool)
        require_random(rng)
        places, signs = pool.checked(indices, labels)
        posterior = self._inferred(pool, places, signs, rng, warm_start)
        marginals = PoolMarginals.of(pool, posterior, self.variances, rng)
        return PoolState(pool, places, signs, len(places), posterior, marginals)

    def propose(self, state: PoolState, rng: np.random.Generator) -> tuple[int, Array]:
        """The unlabelled case of the largest score, and all scores: -inf of cases with a label, and of no candidates.

        Raises
        ------
        InputError
            Where every case has its label.
        """
        require_random(rng)
        open_cases = state.remaining
        if not open_cases.size:
            raise InputError("pool", "no case without a label", "at least one", "Stop asking.")
        usable = open_cases[state.marginals.valid[open_cases]]
        scores = np.full(state.pool.size, -np.inf)
        if self.score == "random" or not usable.size:  # an under-estimate may have ruled out all that is left
            scores[open_cases] = rng.random(open_cases.size)
        else:
            made = state.marginals
            scores[usable] = RULES[self.score](made.means[usable], made.variances[usable], state.pool.rate)
        return int(np.argmax(scores)), scores

    def update(self, state: PoolState, index: int, label: float, rng: np.random.Generator) -> PoolState:
        """The state after one more label: a rank-one update, or an inference where it fills the block.

        Raises
        ------
        InputError
            For a case that is out of range or labelled already, or a label other than +-1.
        """
        places, signs = state.pool.checked(np.append(state.indices, index), np.append(state.labels, label))
        marginals = state.marginals.including(int(index), float(label), places)
        after = PoolState(state.pool, places, signs, state.block_start, state.posterior, marginals)
        if len(places) - state.block_start < self.block:
            return after
        return self.begin(state.pool, places, signs, rng, after.warm_start)

    def ask(
        self,
        state: PoolState,
        oracle: Callable[[int], float],
        count: int,
        rng: np.random.Generator,
        callback: Callable[[PoolState], None] | None = None,
    ) -> PoolState:
        """Propose, ask and update ``count`` times, or until every case has its label.

        Parameters
        ----------
        oracle : callable
            Index of a case to its label, -1 or +1.
        callback : callable, optional
            Called with the state after every label.
        """
        require_counts(count=count, least=0)
        for _ in range(min(count, state.remaining.size)):
            index, _ = self.propose(state, rng)
            state = self.update(state, index, oracle(index), rng)
            if callback is not None:
                callback(state)
        return state

    def _inferred(
        self, pool: LabelPool, indices: Array, labels: Array, rng: np.random.Generator, warm_start: WarmStart | None
    ) -> GaussianPosterior:
        model = pool.model(indices, labels)
        posterior = self.engine.infer(model, rng, warm_start=warm_start)
        for _ in range(FIRST_INFERENCES - 1 if warm_start is None else 0):
            if posterior.convergence.converged:
                break
            posterior = self.engine.infer(model, rng, warm_start=WarmStart.from_posterior(posterior))
        if posterior.convergence.status is Status.BREAKDOWN:
            raise InputError(
                "pool",
                "an inference that broke down",
                "features of ordinary size",
                "Scale the features to at most one, or give the weights a narrower prior.",
            )
        return posterior
