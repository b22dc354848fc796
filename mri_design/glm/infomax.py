"""Which query to make next: inputs of limited power whose responses tell most about the unknowns (Lewi et al. 2007).

The expected gain of a query x depends only on mean and variance of its projection x^T u (`expected_gain`). Which means
and variances a query can have is a trust-region subproblem (`FeasibleQueries`), so that the best query (`InfomaxQuery`)
is a search over these two numbers, or over one. Lewi, Butera & Paninski 2007, equations (12) to (19) and (30) to (34).

A query is x = (x_k, x_a) with x_a fixed and |x|^2 <= e^2. Let m be the unit vector along the mean of the free unknowns,
and E an orthonormal basis of its complement in which E^T C_k E is diagonal, with eigenvalues c. With x_k = alpha m + E
y

    mean = alpha |mu_k| + mu_a^T x_a,   variance = sum_i c_i y_i^2 + w_i y_i + d,   |y|^2 <= e^2 - |x_a|^2 - alpha^2,
    w = 2 E^T (alpha C_k m + C_ka x_a),    d = alpha^2 m^T C_k m + 2 alpha m^T C_ka x_a + x_a^T C_a x_a.

(In the paper's appendix the mean must be of unit length, and the bound in (14) is one on the square.)

In the long run the posterior covariance approaches (t E J)^-1 after t trials, with J = D(x^T theta) x x^T the Fisher
information of a trial (`asymptotic_information`). For queries whose distribution is symmetric around theta, E J has two
eigenvalues,

    phi = E[D x_1^2] along theta,    (e^2 omega - phi) / (n - 1) across it,   omega = E[D],

with x_1 the part of the query along theta; the rest of its power lies across: equations (27) to (29), where the rest is
a sphere of radius sqrt(e^2 - x_1^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    number_array,
    positive_number,
    require_choice,
    require_counts,
    require_instance,
)
from mri_design.glm.laplace import FilterState
from mri_design.krylov import orthogonalised
from mri_design.sites.likelihoods import PoissonResponse, ResponseFamily

ITERATIONS = 100


def maximise_in_ball(curvatures: Values, slopes: Values, radii: Values) -> Values:
    """Where sum_i c_i y_i^2 + w_i y_i is largest, for many slopes and radii at once.

    Parameters
    ----------
    curvatures : float array, shape (n,)
        c, the eigenvalues, of any sign and in any order.
    slopes : float array, shape (m, n)
        w in the eigenbasis, one row per problem.
    radii : float array, shape (m,)
        R >= 0.

    Returns
    -------
    float array, shape (m, n)
        y of every problem.
    """
    w, R = np.asarray(slopes, dtype=float), np.asarray(radii, dtype=float)
    if not curvatures.size:
        return w.copy()
    least = max(float(curvatures.max()), 0.0)
    gaps = least - curvatures
    flat = (gaps == 0) & (w == 0)  # neither slope nor curvature under the smallest multiplier
    at_least = _norms(_stationary(w, gaps, np.zeros(len(w)), flat))
    y = np.zeros_like(w)
    inside = at_least <= R
    y[inside] = _stationary(w[inside], gaps, np.zeros(int(inside.sum())), flat[inside])
    if least == curvatures.max():  # the hard case; with c_max < 0 the interior point stands
        top = int(np.argmin(gaps))
        y[inside, top] += np.sqrt(np.maximum(R[inside] ** 2 - at_least[inside] ** 2, 0))
    edge = ~inside & (R > 0)
    if edge.any():
        y[edge] = _stationary(w[edge], gaps, _multiplier(w[edge], gaps, R[edge]), flat[edge])
        y[edge] *= (R[edge] / _norms(y[edge]))[:, None]
    return y


def minimise_in_ball(curvatures: Values, slopes: Values, radii: Values) -> Values:
    """Where the same quadratic is smallest; see `maximise_in_ball`."""
    return maximise_in_ball(-np.asarray(curvatures), -np.asarray(slopes), radii)


def _stationary(w: Values, gaps: Values, delta: Values, flat: NDArray[np.bool_]) -> Values:
    """w / (2 (delta + gaps)): zero where w is zero, infinite where the denominator alone is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(flat | (w == 0), 0.0, w / (2 * (delta[:, None] + gaps)))


def _norms(y: Values) -> Values:
    return np.asarray(np.linalg.norm(y, axis=1))


def _multiplier(w: Values, gaps: Values, R: Values) -> Values:
    """delta > 0 with |y(delta)| = R, by Newton's method on 1 / |y| inside a bracket."""
    low = np.maximum(np.abs(w) / (2 * R[:, None]) - gaps, 0).max(axis=1)
    high = _norms(w) / (2 * R)
    delta = np.where(low > 0, low, 0.5 * high)
    for _ in range(ITERATIONS):
        spread = delta[:, None] + gaps
        y = np.divide(w, 2 * spread, out=np.zeros_like(w), where=spread > 0)
        size = _norms(y)
        low, high = np.where(size > R, delta, low), np.where(size > R, high, delta)
        fall = np.sum(np.divide(y**2, spread, out=np.zeros_like(w), where=spread > 0), axis=1)
        step = delta + np.divide(size**2, fall, out=np.zeros_like(size), where=fall > 0) * (size / R - 1)
        middle = np.where(low > 0, np.sqrt(low * high), 0.5 * high)
        new = np.where((step > low) & (step < high), step, middle)
        done = np.abs(size / R - 1) < 1e-12
        if np.all(done | (np.abs(new - delta) <= 1e-16 * delta)):
            break
        delta = np.where(done, delta, new)
    return np.asarray(delta)


Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FeasibleQueries:
    """The set of queries in the coordinates of the problem; build it with `of`.

    Parameters
    ----------
    direction : float array, shape (n_k,)
        m; any unit vector where the mean is zero.
    length : float
        |mu_k|.
    fixed : float array, shape (n_a,)
        x_a.
    base : float
        mu_a^T x_a.
    reach : float
        e_k, the power left for the free components.
    curvatures : float array, shape (k,)
        c.
    basis : float array, shape (n_k, k)
        E, or an orthonormal basis of the subspace that is searched.
    slope_rest, slope_along : float arrays, shape (k,)
        w = slope_rest + alpha slope_along.
    offset : tuple of three floats
        d = offset[0] + offset[1] alpha + offset[2] alpha^2.
    """

    direction: Values
    length: float
    fixed: Values
    base: float
    reach: float
    curvatures: Values
    basis: Values
    slope_rest: Values
    slope_along: Values
    offset: tuple[float, float, float]

    @classmethod
    def of(cls, state: FilterState, power: float, fixed: Values, krylov: int) -> FeasibleQueries:
        """The queries under a state.

        Parameters
        ----------
        state : FilterState
            Of n unknowns; the last ``len(fixed)`` belong to fixed components.
        power : float
            e.
        fixed : float array, shape (n_a,)
            x_a, shorter than e.
        krylov : int
            Directions of E: a block Krylov space of C_k that holds the slopes, in O(n^2) a direction, where there are
            more than twice as many free components. All of them, in O(n^3), otherwise and for zero.
        """
        free = len(state.mean) - len(fixed)
        mean, C = state.mean[:free], state.covariance[:free, :free]
        cross = state.covariance[:free, free:] @ fixed
        length = float(np.linalg.norm(mean))
        direction = mean / length if length > 0 else np.eye(1, free)[0]
        along = C @ direction
        if krylov and free > 2 * krylov:
            curvatures, basis = _krylov_basis(C, direction, along, cross, krylov)
        else:
            curvatures, basis = _whole_basis(C, direction)
        return cls(
            direction=direction,
            length=length,
            fixed=fixed,
            base=float(state.mean[free:] @ fixed),
            reach=float(np.sqrt(power**2 - fixed @ fixed)),
            curvatures=curvatures,
            basis=basis,
            slope_rest=2 * (basis.T @ cross),
            slope_along=2 * (basis.T @ along),
            offset=(
                float(fixed @ state.covariance[free:, free:] @ fixed),
                float(2 * direction @ cross),
                float(direction @ along),
            ),
        )

    def means(self, alpha: Values) -> Values:
        """Mean of the projection for each part of the query along the mean."""
        return np.asarray(alpha * self.length + self.base)

    def extremes(self, alpha: Values, largest: bool) -> tuple[Values, Values]:
        """y of the largest or smallest variance for each alpha, and that variance."""
        w = self._slopes(alpha)
        radii = np.sqrt(np.maximum(self.reach**2 - alpha**2, 0))
        y = (maximise_in_ball if largest else minimise_in_ball)(self.curvatures, w, radii)
        return y, self.variances(alpha, y)

    def variances(self, alpha: Values, y: Values) -> Values:
        """Variance of the projection of each query."""
        d = self.offset[0] + self.offset[1] * alpha + self.offset[2] * alpha**2
        quadratic = np.sum((self.curvatures * y + self._slopes(alpha)) * y, axis=1)
        return np.asarray(np.maximum(d + quadratic, 0))

    def between(self, alpha: float, variance: float) -> Values:
        """y of a query of that variance: on the chord between the two extremes (equations 24 and 25)."""
        at = np.array([alpha])
        (low, least), (high, most) = self.extremes(at, largest=False), self.extremes(at, largest=True)
        if variance >= most[0]:
            return high[0]
        chord = high[0] - low[0]
        square = float(self.curvatures @ chord**2)
        slope = float((2 * self.curvatures * low[0] + self._slopes(at)[0]) @ chord)
        missing = max(variance - float(least[0]), 0.0)
        # The variance rises from one end of the chord to the other, so that this root is the one in [0, 1].
        bottom = slope + np.sqrt(max(slope**2 + 4 * square * missing, 0.0))
        share = min(2 * missing / bottom, 1.0) if bottom > 0 else 0.0
        return np.asarray(low[0] + share * chord)

    def query(self, alpha: float, y: Values) -> Values:
        """x = (x_k, x_a)."""
        return np.concatenate([alpha * self.direction + self.basis @ y, self.fixed])

    def _slopes(self, alpha: Values) -> Values:
        return np.asarray(self.slope_rest + alpha[:, None] * self.slope_along)


def _whole_basis(C: Values, direction: Values) -> tuple[Values, Values]:
    """Eigenvalues and eigenvectors of C on the complement of ``direction``."""
    rest = np.linalg.qr(direction[:, None], mode="complete")[0][:, 1:]
    curvatures, vectors = np.linalg.eigh(rest.T @ C @ rest)
    return curvatures, np.asarray(rest @ vectors)


def _krylov_basis(C: Values, direction: Values, along: Values, cross: Values, count: int) -> tuple[Values, Values]:
    """Ritz values and vectors of C on the complement, from the slopes, the most uncertain unknown and a generic vector.

    Where C is nearly a multiple of the identity, as at the start, directions run out early. A generic vector alone
    would not do: the first queries would follow it, and what it is made of would be known thereafter.
    """

    def complement(rows: Values) -> Values:
        return np.asarray(rows - np.outer(rows @ direction, direction))

    generic = np.sin(1.0 + np.arange(len(C)) ** 2 * (np.sqrt(5) - 1))
    uncertain = np.eye(1, len(C), int(np.argmax(np.diagonal(C))))[0]
    starts = np.stack([along, cross, uncertain, generic])
    fresh, sizes = complement(starts), np.linalg.norm(starts, axis=1)
    basis, images = np.empty((0, len(C))), np.empty((0, len(C)))
    while len(basis) < count:
        # The mean's direction stays out to rounding, however little of a row is new.
        block = _independent(fresh, sizes, np.concatenate([direction[None], basis]))[: count - len(basis)]
        if not len(block):
            break  # an invariant space that holds the slopes
        products = complement(block @ C)
        basis, images = np.concatenate([basis, block]), np.concatenate([images, products])
        fresh, sizes = products, np.linalg.norm(products, axis=1)
    projected = basis @ images.T
    curvatures, turn = np.linalg.eigh(0.5 * (projected + projected.T))
    return curvatures, np.asarray(basis.T @ turn)


def _independent(rows: Values, sizes: Values, basis: Values) -> Values:
    """Rows orthonormalised among themselves and against the basis; rows that depend on others are dropped."""
    kept = np.empty((0, rows.shape[1]))
    for row, size in zip(rows, sizes, strict=True):
        rest = orthogonalised(row, np.concatenate([basis, kept]))
        length = float(np.linalg.norm(rest))
        if length > 1e-9 * size > 0:
            kept = np.concatenate([kept, rest[None] / length])
    return kept


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


Search = Literal["automatic", "1d", "2d"]
LEVELS, PEAKS, REFINED, ROUNDS = 41, 3, 17, 3
"""Points of the first grid along each number, its best peaks, points of finer grids around these, and their rounds."""


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


@briefly
@dataclass(frozen=True)
class InfomaxQuery:
    """Search for the query x, an input of limited power, whose response has the largest expected information.

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
    krylov : int
        Directions that are searched where the free components are more than twice as many, in O(n^2) each; 0 for all
        of them, in O(n^3).

    Raises
    ------
    InputError
        For a power that is not positive, fixed components that leave nothing of it, and unknown names.
    """

    power: float
    fixed: ArrayLike = ()
    response: ResponseFamily = field(default_factory=PoissonResponse)
    criterion: QueryCriterion = "mutual_information"
    search: Search = "automatic"
    krylov: int = 48

    def __post_init__(self) -> None:
        positive_number("power", self.power)
        require_instance(ResponseFamily, wanted="a ResponseFamily, as PoissonResponse()", response=self.response)
        wanted = "a list of finite components of the query"
        fixed = number_array("fixed", self.fixed, wanted=wanted, shape=(None,), kind="real")
        if np.linalg.norm(fixed) >= self.power:
            raise InputError(
                "fixed",
                f"components of norm {np.linalg.norm(fixed):g}",
                f"less than the power, {self.power:g}",
                "Raise the power, or scale the fixed components.",
            )
        require_choice(get_args(QueryCriterion), criterion=self.criterion)
        require_choice(get_args(Search), search=self.search)
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
        x = self.best_of(feasible)
        mean, projected_variance = state.projection(x)
        score = expected_gain(self.response, mean, max(projected_variance, 0.0), self.criterion)
        return Query(x, float(score), mean, projected_variance)

    def best_of(self, feasible: FeasibleQueries) -> Values:
        """The best query of a set that is described by its eigenvalues."""
        only_largest = self.search == "1d" or (self.search == "automatic" and self.response.monotone)
        alpha, variance = self._best(feasible, only_largest)
        return feasible.query(alpha, feasible.between(alpha, variance))

    def score(self, state: FilterState, pool: ArrayLike) -> Values:
        """Expected gain of every query of a pool, shape (m, n), without a limit on their power.

        Raises
        ------
        InputError
            For an empty pool, or queries that do not fit the state.
        """
        require_instance(FilterState, wanted="a FilterState", state=state)
        wanted = f"finite real queries (m, {len(state.mean)}), not empty"
        queries = number_array("pool", pool, wanted=wanted, shape=(None, len(state.mean)), kind="real")
        if not len(queries):
            raise InputError("pool", f"shape {queries.shape}", wanted)
        variances = np.einsum("ij,ij->i", queries @ state.covariance, queries)
        return expected_gain(self.response, queries @ state.mean, np.maximum(variances, 0), self.criterion)

    def _best(self, feasible: FeasibleQueries, only_largest: bool) -> tuple[float, float]:
        """alpha and variance of the largest gain: on a grid, then on finer ones around its best peaks at once.

        In alpha = reach sin(angle) the edges of the region are smooth up to its tips.
        """
        angles = np.linspace(-np.pi / 2, np.pi / 2, LEVELS)[None]
        shares = np.ones((1, 1)) if only_largest else np.linspace(0, 1, LEVELS)[None]
        gains, _, _ = self._gains(feasible, angles, shares)
        profile, best_shares = gains[0].max(axis=1), gains[0].argmax(axis=1)
        framed = np.concatenate([[-np.inf], profile, [-np.inf]])
        peaks = np.flatnonzero((profile >= framed[:-2]) & (profile >= framed[2:]))
        peaks = peaks[np.argsort(profile[peaks])[::-1][:PEAKS]]
        centre, width = angles[0, peaks], angles[0, 1] - angles[0, 0]
        share, share_width = shares[0, best_shares[peaks]], 0.0 if only_largest else 1 / (LEVELS - 1)
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
    """Refuse a covariance that is not symmetric and positive; rounding of a long filter is forgiven."""
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


POINTS = 2001
NODES = 4000


@dataclass(frozen=True)
class AsymptoticInformation:
    """E J of one trial.

    Parameters
    ----------
    along, across : float
        Its eigenvalue along theta, and the n - 1 equal ones across.
    support, weights : float arrays
        x_1 of the queries and how often each is made; of the optimal design at most two, for the sphere the quadrature.
    excess : float
        How far the design is from optimal: the largest sensitivity over n, less 1, by the equivalence theorem (Kiefer &
        Wolfowitz 1960); log|E J| cannot be raised by more than n times it. NaN for the sphere.
    """

    along: float
    across: float
    support: Values
    weights: Values
    excess: float = float("nan")

    def variances(self, trials: int) -> tuple[float, float]:
        """Predicted posterior variances along theta and across it after that many trials."""
        return 1 / (trials * self.along), 1 / (trials * self.across)


def asymptotic_information(
    response: ResponseFamily,
    theta: ArrayLike,
    power: float,
    inputs: Literal["optimal", "sphere"] = "optimal",
) -> AsymptoticInformation:
    """Expected information per query, in the long run, of a distribution of queries.

    Parameters
    ----------
    response : ResponseFamily
        What a trial answers.
    theta : float array, shape (n,)
        The true unknowns, n >= 2, not zero.
    power : float
        e > 0, the norm of every query.
    inputs : {"optimal", "sphere"}
        The design of the largest log|E J| on |x| = e, at most two values of x_1; or independent queries, uniform on
        the sphere.

    Raises
    ------
    InputError
        For a power that is not positive, unknowns that are too few or zero, an unknown name.
    """
    require_instance(ResponseFamily, wanted="a ResponseFamily, as PoissonResponse()", response=response)
    wanted = "two or more finite numbers, not all zero"
    unknowns = number_array("theta", theta, wanted=wanted, shape=(None,), kind="real")
    positive_number("power", power)
    if unknowns.size < 2 or not unknowns.any():
        raise InputError("theta", f"shape {unknowns.shape}", wanted)
    require_choice(("optimal", "sphere"), inputs=inputs)
    length, n = float(np.linalg.norm(unknowns)), unknowns.size

    def eigenvalues(x: Values) -> Values:
        """Those of the information of one query, along theta and across it, for many x_1."""
        D = response.fisher(x * length)
        return np.array([D * x**2, D * (power**2 - x**2) / (n - 1)])

    if inputs == "sphere":  # x_1 = e cos(angle) with density sin(angle)^(n - 2), by the midpoint rule
        angles = (np.arange(NODES) + 0.5) * np.pi / NODES
        logs = (n - 2) * np.log(np.sin(angles))
        weights = np.exp(logs - logs.max())
        weights, x = weights / weights.sum(), power * np.cos(angles)
        along, across = eigenvalues(x) @ weights
        return AsymptoticInformation(float(along), float(across), x, weights)
    x, weights = _best_pair(eigenvalues, float(power), n)
    along, across = eigenvalues(x) @ weights
    tried = eigenvalues(np.concatenate([power * np.linspace(-1, 1, POINTS), x]))
    sensitivity = tried[0] / along + (n - 1) * tried[1] / across  # tr((E J)^-1 J(x)): n or less where it is optimal
    return AsymptoticInformation(float(along), float(across), x, weights, float(sensitivity.max()) / n - 1)


def _best_pair(eigenvalues: Callable[[Values], Values], power: float, n: int) -> tuple[Values, Values]:
    """Two x_1 and their weights of the largest log|E J|, or one that is as good: on a grid, then on finer ones.

    Two suffice, as two projections of a design matter. log|E J| is concave in the share of the second, and its best
    share a rational function of the eigenvalues of both.
    """
    centres, width, steps = np.zeros(1), power, np.linspace(-1, 1, 257)
    for _ in range(9):
        x = np.clip((centres[:, None] + width * steps).ravel(), -power, power)
        p, q = eigenvalues(x)[:, :, None]
        dp, dq = p.T - p, q.T - q
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num(-(dp * q + (n - 1) * dq * p) / (n * dp * dq)), 0, 1)
            values = np.log(p + share * dp) + (n - 1) * np.log(q + share * dq)
        first, second = np.unravel_index(np.argmax(values), values.shape)
        centres, width = x[[first, second]], width / 8
    alone = int(np.argmax(np.diagonal(values)))
    if values[alone, alone] >= values[first, second] - 1e-9:
        return x[[alone]], np.ones(1)
    return centres, np.array([1 - share[first, second], share[first, second]])
