"""The most informative query within a power: a continuous search in two numbers, or in one.

The expected gain of a query depends on mean and variance of its projection alone (`expected_gain`); what means and
variances there are, and which query has them, is a trust-region subproblem (`queries.feasible`). Lewi, Butera &
Paninski 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from mri_design.active_learning.queries.feasible import FeasibleQueries
from mri_design.errors import (
    InputError,
    number_array,
    positive_number,
    require_choice,
    require_counts,
    require_instance,
)
from mri_design.inference.propagation.filter_state import FilterState
from mri_design.potentials.likelihoods.responses import PoissonResponse, ResponseFamily

QueryCriterion = Literal["mutual_information", "linearised"]
REACH = 8.5
"""Standard deviations covered: what is left is 1e-17 of the weight."""
WIDEST_STEP = 0.6
"""In units of ``response.reach``: with singularities pi of them off the line the error is exp(-2 pi pi / step)."""
MOST_NODES = 4001


def expected_gain(
    response: ResponseFamily, mean: ArrayLike, variance: ArrayLike, criterion: QueryCriterion = "mutual_information"
) -> NDArray[np.float64]:
    """Expected gain of queries.

    Parameters
    ----------
    response : ResponseFamily
        What may be answered.
    mean, variance : float arrays, broadcast against each other
        m and v >= 0 of eps = x^T u.
    criterion : {"mutual_information", "linearised"}
        E log(1 + D v), or E D v, its limit for small v (closed form for Poisson and Gaussian responses).

    Returns
    -------
    float array
        Twice the information in nats, as `information_gain` counts.

    Raises
    ------
    InputError
        For a negative variance.

    Notes
    -----
    By the trapezoidal rule, whose error falls geometrically for smooth integrands on the whole line; against adaptive
    quadrature the tests find 1e-12 for standard deviations up to 30.
    """
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
    if not np.all(v >= 0):
        raise InputError("variance", "negative or NaN", "zero or more")
    if criterion == "linearised":
        closed = response.expected_fisher(m, v)
        if closed is not None:
            return np.asarray(v * closed)
    widest = float(np.sqrt(v.max(initial=0.0)))
    step = min(0.75, WIDEST_STEP * response.reach / widest) if widest else 0.75
    count = min(2 * int(np.ceil(REACH / step)) + 1, MOST_NODES)
    nodes = np.linspace(-REACH, REACH, count)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    eps = m[..., None] + np.sqrt(v)[..., None] * nodes
    spread = v[..., None]
    values = response.fisher(eps) * spread if criterion == "linearised" else response.log_gain(eps, spread)
    return np.asarray(values @ weights)


Values = NDArray[np.float64]
Search = Literal["automatic", "1d", "2d"]
PEAKS, REFINED, ROUNDS = 3, 17, 3


@dataclass(frozen=True)
class Query:
    """A query and the information that is predicted for it.

    Parameters
    ----------
    x : float array, shape (n,)
        The query, fixed components last.
    score : float
        Expected gain: twice the information in nats (or its linearisation).
    mean, variance : float
        Of x^T u before the trial.
    """

    x: Values
    score: float
    mean: float
    variance: float


@dataclass(frozen=True)
class InfomaxQuery:
    """Search for the query x, an input of limited power, whose response is expected to tell most about the unknowns.

    Parameters
    ----------
    power : float
        e > 0: |x| <= e, fixed components included.
    fixed : float array, shape (n_a,)
        x_a, the last components of every query (a constant, or past responses); none by default.
    response : ResponseFamily
        What a trial may answer.
    criterion : {"mutual_information", "linearised"}
        See `expected_gain`.
    search : {"automatic", "2d", "1d"}
        Over mean and variance, or over the mean with the largest variance it allows. The latter is enough where
        ``response.monotone``, and chosen by itself there; for others it is a shortcut that may miss the best query.
    levels : int
        Points of the first grid along each number; finer grids follow around its three best peaks.
    krylov : int
        Directions that are looked at where the free components are more than twice as many, in O(n^2) each; 0 for all
        of them, in O(n^3).

    Raises
    ------
    InputError
        For a power that is not positive, fixed components that leave nothing of it, unknown names, fewer than 5 levels.
    """

    power: float
    fixed: ArrayLike = ()
    response: ResponseFamily = field(default_factory=PoissonResponse)
    criterion: QueryCriterion = "mutual_information"
    search: Search = "automatic"
    levels: int = 41
    krylov: int = 48

    def __post_init__(self) -> None:
        positive_number("power", self.power)
        require_instance(ResponseFamily, wanted="a ResponseFamily, as PoissonResponse()", response=self.response)
        fixed = number_array("fixed", self.fixed, wanted="a list of finite components of the query")
        if fixed.ndim != 1 or fixed.dtype.kind not in "fiub" or not np.isfinite(fixed).all():
            raise InputError("fixed", repr(self.fixed), "a list of finite components of the query")
        if np.linalg.norm(fixed) >= self.power:
            raise InputError(
                "fixed",
                f"components of norm {np.linalg.norm(fixed):g}",
                f"less than the power, {self.power:g}",
                "Raise the power, or scale the fixed components.",
            )
        require_choice(get_args(QueryCriterion), criterion=self.criterion)
        require_choice(get_args(Search), search=self.search)
        require_counts(least=5, levels=self.levels)
        require_counts(least=0, krylov=self.krylov)
        object.__setattr__(self, "fixed", tuple(fixed.tolist()))

    def propose(self, state: FilterState) -> Query:
        """The best query under a state.

        Raises
        ------
        InputError
            Where the state has no more unknowns than there are fixed components, or its covariance is not symmetric
            and positive definite.
        """
        require_instance(FilterState, wanted="a FilterState", state=state)
        fixed = np.asarray(self.fixed, dtype=float)
        if len(fixed) >= len(state.mean):
            raise InputError("fixed", f"{len(fixed)} components", f"fewer than {len(state.mean)}, the unknowns")
        _refuse_no_covariance(state.covariance)
        feasible = FeasibleQueries.of(state, float(self.power), fixed, self.krylov)
        only_largest = self.search == "1d" or (self.search == "automatic" and self.response.monotone)
        alpha, variance = self._best(feasible, only_largest)
        x = feasible.query(alpha, feasible.between(alpha, variance))
        mean, projected_variance = state.projection(x)
        score = expected_gain(self.response, mean, max(projected_variance, 0.0), self.criterion)
        return Query(x, float(score), mean, projected_variance)

    def score(self, state: FilterState, pool: ArrayLike) -> Values:
        """Expected gain of every query of a pool, shape (m, n), where only these can be made; no limit on their power.

        Raises
        ------
        InputError
            For an empty pool, or queries that do not fit the state.
        """
        require_instance(FilterState, wanted="a FilterState", state=state)
        queries = number_array("pool", pool, wanted=f"real queries (m, {len(state.mean)})")
        if queries.ndim != 2 or not len(queries) or queries.shape[1] != len(state.mean):
            raise InputError("pool", f"shape {queries.shape}", f"(m, {len(state.mean)}), not empty")
        if queries.dtype.kind not in "fiub":
            raise InputError("pool", f"{queries.dtype}", "real queries")
        if not np.isfinite(queries).all():
            raise InputError("pool", "NaN or infinite values", "finite queries")
        variances = np.einsum("ij,ij->i", queries @ state.covariance, queries)
        return expected_gain(self.response, queries @ state.mean, np.maximum(variances, 0), self.criterion)

    def _best(self, feasible: FeasibleQueries, only_largest: bool) -> tuple[float, float]:
        """alpha and variance of the largest gain: on a grid, then on finer ones around its best peaks at once.

        In alpha = reach sin(angle) the edges of the region are smooth up to its tips.
        """
        angles = np.linspace(-np.pi / 2, np.pi / 2, self.levels)[None]
        shares = np.ones((1, 1)) if only_largest else np.linspace(0, 1, self.levels)[None]
        gains, _, _ = self._gains(feasible, angles, shares)
        profile, best_shares = gains[0].max(axis=1), gains[0].argmax(axis=1)
        framed = np.concatenate([[-np.inf], profile, [-np.inf]])
        peaks = np.flatnonzero((profile >= framed[:-2]) & (profile >= framed[2:]))
        peaks = peaks[np.argsort(profile[peaks])[::-1][:PEAKS]]
        centre, width = angles[0, peaks], angles[0, 1] - angles[0, 0]
        share, share_width = shares[0, best_shares[peaks]], 0.0 if only_largest else 1 / (self.levels - 1)
        steps = np.linspace(-1, 1, REFINED)
        for _ in range(ROUNDS):
            angles = np.clip(centre[:, None] + width * steps, -np.pi / 2, np.pi / 2)
            shares = np.clip(share[:, None] + share_width * (np.zeros(1) if only_largest else steps), 0, 1)
            gains, alphas, variances = self._gains(feasible, angles, shares)
            window = np.arange(len(peaks))
            place, level = np.divmod(gains.reshape(len(peaks), -1).argmax(axis=1), shares.shape[1])
            centre, share = angles[window, place], shares[window, level]
            width, share_width = width * 2 / (REFINED - 1), share_width * 2 / (REFINED - 1)
        best = int(np.argmax(gains[window, place, level]))
        return float(alphas[best, place[best]]), float(variances[best, place[best], level[best]])

    def _gains(self, feasible: FeasibleQueries, angles: Values, shares: Values) -> tuple[Values, Values, Values]:
        """Gains (window, angle, share), alpha (window, angle) and variances; shares of the way between the edges."""
        alphas = feasible.reach * np.sin(angles)
        _, most = feasible.extremes(alphas.ravel(), largest=True)
        most = most.reshape(alphas.shape)
        if shares.shape[1] == 1:
            variances = most[:, :, None]
        else:
            _, least = feasible.extremes(alphas.ravel(), largest=False)
            least = least.reshape(alphas.shape)
            variances = least[:, :, None] + shares[:, None, :] * np.maximum(most - least, 0)[:, :, None]
        means = feasible.means(alphas)[:, :, None]
        return expected_gain(self.response, means, variances, self.criterion), alphas, variances


def _refuse_no_covariance(covariance: Values) -> None:
    """What no mean of squares can be; rounding of a long filter is forgiven."""
    largest = float(np.diagonal(covariance).max())
    wanted = "a symmetric positive definite covariance"
    if not np.abs(covariance - covariance.T).max() <= 1e-8 * largest:
        raise InputError(
            "filter state",
            "a covariance that is not symmetric, or not finite",
            wanted,
            "Give the mean of it and its transpose, if rounding made them differ.",
        )
    try:
        scipy.linalg.cholesky(covariance + 1e-9 * largest * np.eye(len(covariance)), lower=True, check_finite=False)
    except scipy.linalg.LinAlgError as error:
        raise InputError(
            "filter state",
            "a covariance with a negative eigenvalue",
            wanted,
            "FilterState.from_posterior makes one of a posterior.",
        ) from error
