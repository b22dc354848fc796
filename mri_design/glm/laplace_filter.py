"""The Laplace filter: one site after another, each replaced by a Gaussian at the mode it makes, in O(n^2).

The mode of one site times a Gaussian on its projection is a problem in one dimension (Lewi, Butera & Paninski 2007,
after equation (4)):

    maximise  log t(s) - (s - m)^2 / (2 v),   so that   s = m + v (log t)'(s).

A site t(x^T u) moves the mean along C x only, to where that mode is, and lowers the covariance by a matrix of rank one:

    u' = u + C x (log t)'(s),      C' = C - C x x^T C D / (1 + D v),      v = x^T C x,  D = -(log t)''(s).

Lewi, Butera & Paninski 2007, equations (3), (4) and (7). Exact for Gaussian sites (the Kalman filter); other sites are
looked at once, in the order given, so that the result depends on it a little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, number_array, require_counts, require_instance
from mri_design.glm.dense_model import as_image, precision_inverse
from mri_design.glm.messages import gaussian_part
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, beside_gaussian
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.base import Site
from mri_design.potentials.requirements import ENGINES, refusal, require_offers
from mri_design.status import Convergence, Status
from mri_design.variances.exact import Exact


@briefly
@dataclass(frozen=True)
class FilterState:
    """N(mean, covariance) of n real unknowns.

    Parameters
    ----------
    mean : float array, shape (n,)
        In the units of the unknowns.
    covariance : float array, shape (n, n)
        Symmetric and positive definite (held to shape and diagonal only: more would cost more than an update).

    Raises
    ------
    InputError
        For shapes that disagree, complex numbers, a mean that is not finite or variances that are not positive.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def __post_init__(self) -> None:
        wanted = "a mean (n,) and a covariance (n, n) of real unknowns, with positive variances"
        mean = number_array("filter state", self.mean, wanted=wanted, shape=(None,), kind="real")
        square = (mean.size, mean.size)
        covariance = number_array("filter state", self.covariance, wanted=wanted, shape=square, kind="real")
        if not mean.size or not (np.diagonal(covariance) > 0).all():
            raise InputError("filter state", "no unknown, or variances that are not positive", wanted)
        object.__setattr__(self, "mean", mean.astype(float, copy=False))
        object.__setattr__(self, "covariance", covariance.astype(float, copy=False))

    @classmethod
    def from_posterior(cls, posterior: GaussianPosterior) -> FilterState:
        """Mean and dense covariance of a posterior over real unknowns, in O(n^3).

        Raises
        ------
        InputError
            For complex unknowns.
        """
        require_posterior(posterior)
        if posterior.model.measurement.in_complex:
            raise InputError("posterior", "complex unknowns", "real ones")
        inverse = scipy.linalg.inv(posterior.precision.dense_real())
        covariance = posterior.model.noise_variance * 0.5 * (inverse + inverse.T)
        return cls(np.ravel(posterior.mean), covariance)

    def projection(self, x: NDArray[np.floating]) -> tuple[float, float]:
        """Mean and variance of x^T u."""
        return float(x @ self.mean), float(x @ self.covariance @ x)


def drift_matrix(drift: float | NDArray[np.floating]) -> NDArray[np.float64]:
    """Q as a number (times the identity), a vector (diagonal) or a matrix, refused unless positive semidefinite."""
    Q = number_array("drift", drift, wanted="a number, a diagonal or a matrix of finite numbers")
    fits = Q.dtype.kind in "fiub" and Q.ndim <= 2 and np.isfinite(Q).all()
    if fits and Q.ndim == 2:
        fits = (
            Q.shape[0] == Q.shape[1]
            and np.allclose(Q, Q.T)
            and bool(scipy.linalg.eigvalsh(Q)[0] >= -1e-12 * max(float(np.abs(Q).max()), 1e-300))
        )
    elif fits:
        fits = bool((Q >= 0).all())
    if not fits:
        raise InputError(
            "drift",
            f"{Q.dtype} of shape {Q.shape}" if Q.ndim else str(drift),
            "a positive semidefinite covariance per trial: a number, a diagonal or a matrix",
        )
    return Q.astype(float)


ITERATIONS = 200
GRID = 8 * np.linspace(-1, 1, 257)


@dataclass(frozen=True)
class SiteMode:
    """Where a site times a Gaussian is largest.

    Parameters
    ----------
    position : float
        s, in units of sigma.
    slope, curvature : float
        (log t)'(s), and D = -(log t)''(s), which may be negative where the site is not log-concave.
    """

    position: float
    slope: float
    curvature: float


def site_mode(site: Site, mean: float, variance: float) -> SiteMode:
    """The mode, by Newton's method inside a bracket.

    Parameters
    ----------
    site : Site
        One site (scales and slopes are numbers).
    mean, variance : float
        m and v > 0 of the projection, in units of sigma and its square.

    Notes
    -----
    For log-concave sites the equation has one root, uphill from m and no further than m + v (log t)'(m). Others may
    have several modes: the best point of a grid over eight standard deviations to either side is refined.
    """
    position = (_uphill if site.log_concave else _best_of_grid)(site, mean, variance)
    slope, bend = _derivatives(site, position)
    # Where the site is the sharper of the two, its slope feels the rounding of s more than the Gaussian's does.
    return SiteMode(position, slope if -bend * variance < 1 else (position - mean) / variance, -bend)


def _derivatives(site: Site, s: float) -> tuple[float, float]:
    point = np.array([s])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(site.dlog_t(point)).item(), np.asarray(site.d2log_t(point)).item()


def _uphill(site: Site, mean: float, variance: float) -> float:
    """Root of f(s) = (s - m) / v - (log t)'(s), which increases."""
    slope, bend = _derivatives(site, mean)
    if slope == 0:
        return mean
    sign = float(np.sign(slope))
    near, far, reach = mean, mean, np.sqrt(variance)
    longest = variance * abs(slope)  # infinite where the slope overflows
    while True:
        far = mean + sign * min(reach, longest)
        ahead, bend_ahead = _derivatives(site, far)
        if reach >= longest or sign * ((far - mean) / variance - ahead) >= 0:
            break
        near, slope, bend, reach = far, ahead, bend_ahead, 2 * reach
    low, high = sorted((near, far))
    s, last = near, np.inf
    for _ in range(ITERATIONS):
        residual = (s - mean) / variance - slope
        if residual > 0:
            high = s
        elif residual < 0:
            low = s
        else:
            break
        rise = 1 / variance - bend
        new = s - residual / rise if np.isfinite(residual) and np.isfinite(rise) and rise > 0 else np.nan
        if abs(new - s) <= 4 * np.finfo(float).eps * max(abs(s), np.sqrt(variance)):
            return new
        if not low < new < high or abs(new - s) > 0.5 * last:
            new = 0.5 * (low + high)  # also where Newton's steps do not shrink, as down an exponential
        last = abs(new - s)
        s = new
        slope, bend = _derivatives(site, s)
    return s


def _best_of_grid(site: Site, mean: float, variance: float) -> float:
    def loss(s: np.ndarray) -> np.ndarray:
        return 0.5 * (s - mean) ** 2 / variance - site.log_t(s)

    grid = mean + np.sqrt(variance) * GRID
    best = int(np.argmin(loss(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    minimum = scipy.optimize.minimize_scalar(
        lambda s: loss(np.array([s])).item(), bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    s = float(minimum.x)
    for _ in range(20):  # to rounding
        slope, bend = _derivatives(site, s)
        rise = 1 / variance - bend
        new = s - ((s - mean) / variance - slope) / rise if rise > 0 else s
        if not low <= new <= high:
            return s
        if abs(new - s) <= 4 * np.finfo(float).eps * max(abs(s), np.sqrt(variance)):
            return new
        s = new
    return s


Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PassState(LoopState):
    """Between two blocks of sites.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model that is inferred.
    mean, covariance : arrays
        Of the real unknowns after the blocks so far, in their units.
    precisions : tuple of arrays
        D of the sites of these blocks.
    sites : int
        How many sites were looked at.
    """

    model: GeneralizedLinearModel
    mean: Values
    covariance: Values
    change: float = 0.0
    precisions: tuple[Array, ...] = ()
    sites: int = 0


@briefly
@dataclass(frozen=True)
class LaplaceFilter(LoopEngine[PassState]):
    """Settings of the filter.

    Parameters
    ----------
    drift : float or array, shape () or (n,) or (n, n)
        Q: covariance by which the unknowns move before each trial (equation 26); zero for unknowns that stay.
    limit : int
        Largest number of real unknowns, as the covariance is dense.

    Raises
    ------
    InputError
        For a drift that is not positive semidefinite. `infer` refuses a drift, a Gaussian part that leaves a direction
        undetermined, and models beyond ``limit``.

    Notes
    -----
    `infer` is one pass over a model's sites: the Gaussian factor and the Gaussian blocks first, at once, then block
    after block; each is a loop for the callback, while ``convergence.iterations`` counts sites. Nothing is random, and
    a warm start is not used, since a filter begins at the prior. Variances are exact under the site precisions D.
    """

    needs = ENGINES["LaplaceFilter"]

    drift: float | NDArray[np.floating] = 0.0
    limit: int = 9000

    def __post_init__(self) -> None:
        object.__setattr__(self, "drift", drift_matrix(self.drift))
        require_counts(limit=self.limit, least=1)

    def update(self, state: FilterState, x: NDArray[np.floating], response: Site) -> FilterState:
        """The state after one trial, in O(n^2).

        Parameters
        ----------
        state : FilterState
            Before it.
        x : float array, shape (n,)
            The query.
        response : Site
            The site that the response makes of x^T u, as ``Poisson(3)`` or ``Logistic(-1)``; sigma is 1.

        Raises
        ------
        InputError
            For a query that does not fit the state, several sites, or a site whose log has a corner.

        Notes
        -----
        A negative D, of a site that is not log-concave, is taken for zero: no response makes the covariance larger.
        """
        require_instance(FilterState, wanted="a FilterState", state=state)
        require_instance(Site, wanted="a site, as Poisson(3)", response=response)
        direction = _query(x, state)
        if "curvature" not in response.offers:  # what is claimed is not probed here: it costs more than all else
            raise refusal("response", response, "curvature", user="LaplaceFilter", offers=response.offers | {"line"})
        if np.size(response.start_variance) > 1:
            raise InputError("response", f"{np.size(response.start_variance)} sites", "one: give them to `track`")
        covariance = self._drifted(state.covariance)
        spread = covariance @ direction
        mean, variance = float(direction @ state.mean), float(direction @ spread)
        if variance <= 0:  # a query of zeros
            return FilterState(state.mean, covariance)
        mode = site_mode(response, mean, variance)
        D = _curvature(mode.curvature, response)
        return FilterState(state.mean + mode.slope * spread, covariance - _lost(spread, D, variance))

    def track(
        self, state: FilterState, queries: Iterable[NDArray[np.floating]], responses: Iterable[Site]
    ) -> FilterState:
        """The state after several trials, drift before each of them.

        Raises
        ------
        InputError
            For unequally many queries and responses; as `update`.
        """
        asked, answered = list(queries), list(responses)
        if len(asked) != len(answered):
            raise InputError("responses", f"{len(answered)} beside {len(asked)} queries", "one for each query")
        for x, response in zip(asked, answered, strict=True):
            state = self.update(state, x, response)
        return state

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """All blocks but the Gaussian ones, which come first and at once."""
        return beside_gaussian(model)

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> PassState:
        if np.any(self.drift):
            raise InputError(
                "drift",
                "a drift for a model whose unknowns stay",
                "no drift",
                "Give trial after trial to `update` or `track`.",
            )
        mean, covariance = self._prior(model)
        return PassState(model=model, mean=mean, covariance=covariance)

    def step(self, state: PassState) -> PassState:
        """The sites of the next block, one after another."""
        block = state.model.blocks[state.loop]
        own = block.potential.gaussian_precision
        if own is not None:
            pi = np.broadcast_to(own, block.site_shape)
            return replace(state, loop=state.loop + 1, precisions=(*state.precisions, pi), info=None)
        sigma = float(np.sqrt(state.model.noise_variance))
        mean, covariance, pi = _pass(block, state.mean, state.covariance, sigma, self.limit)
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise InputError(
                f"block {block.name!r}",
                "modes that are not finite",
                "sites with finite derivatives",
                "Scale data and rates to ordinary numbers.",
            )
        loop, sites = state.loop + 1, state.sites + pi.size
        ended = Convergence(Status.CONVERGED, sites, 0.0)
        return replace(
            state,
            loop=loop,
            info=StepInfo(loop, None, 0.0, ended, ended),
            mean=mean,
            covariance=covariance,
            precisions=(*state.precisions, pi),
            sites=sites,
        )

    def done(self, state: PassState) -> Status | None:
        return Status.CONVERGED if state.loop == len(state.model.blocks) else None

    def finish(self, state: PassState, convergence: Convergence) -> GaussianPosterior:
        model = state.model
        precision = PosteriorPrecision(model.measurement, model.blocks, state.precisions)
        image = as_image(state.mean, model)
        unused = np.random.default_rng(0)  # exact variances draw nothing
        marginals = Exact(self.limit)(precision, [block.analysis for block in model.blocks], unused, image)
        return GaussianPosterior(
            model=model,
            mean=image,
            precision=precision,
            marginals=marginals,
            convergence=replace(convergence, iterations=state.sites, matvecs=state.sites),
        )

    def _drifted(self, covariance: Values) -> Values:
        Q = np.asarray(self.drift)
        if not Q.any():
            return covariance
        if Q.ndim and len(Q) != len(covariance):
            raise InputError("drift", f"shape {Q.shape}", f"a number, ({len(covariance)},) or a square matrix")
        return np.asarray(covariance + (Q if Q.ndim == 2 else np.diag(np.broadcast_to(Q, len(covariance)))))

    def _prior(self, model: GeneralizedLinearModel) -> tuple[Values, Values]:
        """Mean and covariance of the Gaussian part."""
        if model.measurement.in_size > self.limit:
            raise InputError("unknowns", f"{model.measurement.in_size} real numbers", f"at most {self.limit}")
        exact = [number for number, block in enumerate(model.blocks) if block.potential.gaussian_precision is not None]
        P, h = gaussian_part(model, exact)
        try:
            covariance = precision_inverse(P)
        except InputError as error:
            raise InputError(
                "prior",
                "a Gaussian part that leaves directions of the unknowns undetermined",
                "a Gaussian factor or Gaussian blocks that determine all of them: the filter starts there",
                "Add a block of Gaussian sites on the unknowns.",
            ) from error
        return float(np.sqrt(model.noise_variance)) * (covariance @ h), model.noise_variance * covariance


def _pass(
    block: SiteBlock, mean: Values, covariance: Values, sigma: float, limit: int
) -> tuple[Values, Values, NDArray[np.float64]]:
    """Mean and covariance after every site of a block, in order, and their precisions."""
    rows = block.analysis.to_dense_real(limit) / sigma
    offsets = np.zeros(len(rows)) if block.offset is None else block.offset.ravel() / sigma
    mean, covariance = mean.copy(), covariance.copy()
    pi = np.empty(len(rows))
    for index, (row, offset) in enumerate(zip(rows, offsets, strict=True)):
        site = block.potential.at(np.unravel_index(index, block.site_shape), block.site_shape)  # type: ignore[arg-type]
        spread = covariance @ row
        variance = float(row @ spread)
        if variance <= 0:
            pi[index] = max(site_mode(site, float(row @ mean - offset), np.finfo(float).tiny).curvature, 0.0)
            continue
        mode = site_mode(site, float(row @ mean - offset), variance)
        D = _curvature(mode.curvature, site)
        mean += mode.slope * spread
        covariance -= _lost(spread, D, variance)
        pi[index] = D
    return mean, covariance, pi.reshape(block.site_shape)


def _lost(spread: Values, D: float, variance: float) -> Values:
    """The matrix of rank one that is subtracted from the covariance, exactly symmetric."""
    root = np.sqrt(D / (1 + D * variance)) * spread
    return np.outer(root, root)


def _curvature(D: float, site: Site) -> float:
    """D, at least zero."""
    if not D > 0:  # the probe costs more than the update, and few sites need it
        require_offers("response", site, {"curvature"}, user="LaplaceFilter")
    if not np.isfinite(D):
        raise InputError("response", f"{type(site).__name__} with D = {D}", "a finite curvature at the mode")
    return max(D, 0.0)


def _query(x: NDArray[np.floating], state: FilterState) -> Values:
    shape = state.mean.shape
    return number_array("query", x, wanted=f"finite real {shape}", shape=shape, kind="real").astype(float)
