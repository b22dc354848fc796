"""Laplace's method: site by site, the filter of Lewi et al., and in chunks, the propagation of Smola et al.

`LaplaceFilter` processes one site after another and replaces each by a Gaussian at the mode, in O(n^2). The mode of one
site times a Gaussian on its projection is a problem in one dimension (Lewi, Butera & Paninski 2007, after equation
(4)):

    maximise  log t(s) - (s - m)^2 / (2 v),   so that   s = m + v (log t)'(s).

A site t(x^T u) moves the mean along C x only, to that mode, and lowers the covariance by a matrix of rank one:

    u' = u + C x (log t)'(s),      C' = C - C x x^T C D / (1 + D v),      v = x^T C x,  D = -(log t)''(s)

(equations (3), (4) and (7)). For Gaussian sites it is exact, the Kalman filter. Other sites are processed once, so that
the result depends a little on their order.

`LaplacePropagation` computes a MAP estimate and its Hessian from chunks of sites that are solved one at a time: Smola,
Vishwanathan & Eskin 2003, algorithm 1. The sums P and h over all messages are computed anew in every sweep, so that
rounding errors do not accumulate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    covariance_matrix,
    number_array,
    require_choice,
    require_counts,
    require_instance,
    require_numbers,
)
from mri_design.glm.dense import as_image, as_vector, precision_inverse, proper_factor, resolution
from mri_design.glm.messages import (
    Message,
    Partition,
    gaussian_part,
    gaussian_precision,
    load_chunk,
    message_at,
    mode_under_cavity,
    partition_sites,
    square,
)
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, non_gaussian_blocks
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, Variances, require_posterior
from mri_design.operators.base import Array
from mri_design.sites.base import ENGINES, Site, refusal, represented, require_offers
from mri_design.status import Convergence, Status
from mri_design.variances.base import Exact


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
    wanted = "a positive semidefinite covariance per trial: a number, a diagonal or a matrix"
    Q = number_array("drift", drift, wanted=wanted, kind="real").astype(float)
    if Q.ndim == 2:
        return covariance_matrix("drift", Q, len(Q), definite=False)
    if Q.ndim > 2 or (Q < 0).any():
        raise InputError("drift", f"shape {Q.shape}" if Q.ndim else str(drift), wanted)
    return Q


GRID = 8 * np.linspace(-1, 1, 257)


def site_mode(site: Site, mean: float, variance: float) -> tuple[float, float]:
    """(log t)'(s) and D = -(log t)''(s) where a site times a Gaussian is largest, by Brent's method.

    Parameters
    ----------
    site : Site
        One site (rates and slopes are numbers).
    mean, variance : float
        m and v > 0 of the projection, in units of sigma and its square.

    Notes
    -----
    For log-concave sites the equation has one root, uphill from m and no further than m + v (log t)'(m). Others may
    have several modes: the best point of a grid over eight standard deviations to either side is refined. D may be
    negative there.
    """

    def residual(s: float) -> float:
        return (s - mean) / variance - _derivatives(site, s)[0]

    low, high = (_uphill if site.log_concave else _around_best)(site, mean, variance)
    position = low if residual(low) >= 0 else high
    if residual(low) < 0 < residual(high):
        eps = float(np.finfo(float).eps)
        position = scipy.optimize.brentq(residual, low, high, xtol=4 * eps * np.sqrt(variance), rtol=4 * eps)
    slope, bend = _derivatives(site, position)
    # Where the site is the sharper of the two, its slope feels the rounding of s more than the Gaussian's does.
    return slope if -bend * variance < 1 else (position - mean) / variance, -bend


def _derivatives(site: Site, s: float) -> tuple[float, float]:
    point = np.array([s])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(site.dlog_t(point)).item(), np.asarray(site.d2log_t(point)).item()


def _uphill(site: Site, mean: float, variance: float) -> tuple[float, float]:
    """A bracket of the root of f(s) = (s - m) / v - (log t)'(s), which increases."""
    slope, _ = _derivatives(site, mean)
    sign, near, reach = float(np.sign(slope)), mean, np.sqrt(variance)
    longest = variance * abs(slope)  # infinite where the slope overflows
    while True:
        far = mean + sign * min(reach, longest)
        ahead, _ = _derivatives(site, far)
        if reach >= longest or sign * ((far - mean) / variance - ahead) >= 0:
            return min(near, far), max(near, far)
        near, reach = far, 2 * reach


def _around_best(site: Site, mean: float, variance: float) -> tuple[float, float]:
    """The neighbours of the best point of a grid."""
    grid = mean + np.sqrt(variance) * GRID
    best = int(np.argmin(0.5 * (grid - mean) ** 2 / variance - site.log_t(grid)))
    return grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]


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
        Number of sites that were updated.
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
        shape = state.mean.shape
        direction = number_array("query", x, wanted=f"finite real {shape}", shape=shape, kind="real").astype(float)
        if "curvature" not in response.offers:  # what is claimed is not probed here: it costs more than all else
            raise refusal("response", response, "curvature", user="LaplaceFilter", offers=response.offers | {"line"})
        if np.size(response.start_variance) > 1:
            raise InputError("response", f"{np.size(response.start_variance)} sites", "one: give them to `track`")
        mean, covariance = state.mean.copy(), self._drifted(state.covariance)
        _take(response, direction, 0.0, mean, covariance)
        return FilterState(mean, covariance)

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
            raise InputError("responses", f"{len(answered)} for {len(asked)} queries", "one for each query")
        for x, response in zip(asked, answered, strict=True):
            state = self.update(state, x, response)
        return state

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """All blocks but the Gaussian ones, which come first and at once."""
        return non_gaussian_blocks(model)

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
        """Assimilate the next block: its sites update mean and covariance one after another, Gaussian ones at once."""
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
        """A covariance after a drift, not the one given."""
        Q = np.asarray(self.drift)
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
        pi[index] = _take(site, row, offset, mean, covariance)
    return mean, covariance, pi.reshape(block.site_shape)


def _take(site: Site, row: Values, offset: float, mean: Values, covariance: Values) -> float:
    """Let mean and covariance, in place, know a site on row^T u - offset; its D, at least zero."""
    spread = covariance @ row
    variance, at = float(row @ spread), float(row @ mean - offset)
    if variance <= 0:  # a row of zeros
        return max(site_mode(site, at, np.finfo(float).tiny)[1], 0.0)
    slope, D = site_mode(site, at, variance)
    if not D > 0:  # the probe costs more than the update, and few sites need it
        require_offers("response", site, {"curvature"}, user="LaplaceFilter")
    if not np.isfinite(D):
        raise InputError("response", f"{type(site).__name__} with D = {D}", "a finite curvature at the mode")
    D = max(D, 0.0)
    root = np.sqrt(D / (1 + D * variance)) * spread
    mean += slope * spread
    covariance -= np.outer(root, root)  # exactly symmetric
    return D


Schedule = Literal["serial", "parallel"]


class MessageSweeps:
    """The messages of all chunks, their sums, and the modes and means of the sweeps.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model.
    chunks : list of (int, int array)
        The partition.
    gaussian : arrays
        P_0 and h_0 of t_0.
    settings : LaplacePropagation
        Of the sweeps.

    Attributes
    ----------
    messages : list of Message
        Per chunk, in units of sigma.
    modes : list of arrays
        Per chunk, on its ``coordinates`` of (real parts, imaginary parts), in units of sigma.
    means : list of arrays
        The mean after every sweep, shape of the image.
    """

    def __init__(
        self,
        model: GeneralizedLinearModel,
        chunks: list[tuple[int, Array]],
        gaussian: tuple[Array, Array],
        settings: LaplacePropagation,
    ) -> None:
        self.model, self.chunks, self.gaussian, self.settings = model, chunks, gaussian, settings
        self.total = (gaussian[0].copy(), gaussian[1].copy())
        sizes = [(len(sites), model.blocks[block].sharing) for block, sites in chunks]
        self.most_rows = max((count * real_parts for count, real_parts in sizes), default=1)
        self.messages = [Message.flat(*size) for size in sizes]
        self.duals: list[Array | None] = [None] * len(chunks)
        self.modes: list[Array] = [np.zeros(0)] * len(chunks)
        self.coordinates: list[Array | slice] = [slice(None)] * len(chunks)
        self.theta = np.zeros(len(gaussian[1]))
        self.means: list[Array] = []

    def expand_at(self, image: Array) -> None:
        """Messages begin as the expansions of the sites at ``image``, not as one."""
        self.theta = as_vector(image.astype(complex) if self.model.measurement.in_complex else image)
        self.theta = self.theta / float(np.sqrt(self.model.noise_variance))
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, *chunk)
            self.messages[number] = message_at(loaded, loaded.rows @ self.theta[loaded.coordinates])
            self.messages[number].multiply(loaded, self.total)

    def sweep(self) -> tuple[Convergence, float]:
        """Every chunk once: how the least converged of them ended, and the sweep error.

        That is the largest distance of a chunk's mode from the mean of the product after the sweep, on the chunk's
        coordinates, relative to the norm of the mean.

        Raises
        ------
        InputError
            Where a chunk times its cavity is not a proper distribution, or the product of all is not.
        """
        serial = self.settings.schedule == "serial"
        product = (self.total[0].copy(), self.total[1].copy())
        fresh = (self.gaussian[0].copy(), self.gaussian[1].copy())
        worst, start = Convergence(Status.CONVERGED, 0, 0.0), self.theta
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, *chunk)
            old = self.messages[number]
            cavity = product if serial else (product[0].copy(), product[1].copy())
            old.multiply(loaded, cavity, by=-1)
            steps, dual = self.settings.newton_steps, self.duals[number]
            mode, theta_of_mode = mode_under_cavity(loaded, cavity, start, dual, steps)
            new = old.mixed(mode.message, self.settings.damping)
            new.multiply(loaded, fresh, *([product] if serial else []))
            if serial:
                start = start.copy()
                start[loaded.coordinates] = theta_of_mode
            self.messages[number], self.duals[number] = new, mode.dual
            self.modes[number], self.coordinates[number] = theta_of_mode, loaded.coordinates
            if not mode.convergence.converged and worst.converged:
                worst = mode.convergence
        self.total, self.theta = fresh, np.asarray(scipy.linalg.cho_solve(proper_factor(fresh[0]), fresh[1]))
        scale = max(float(np.linalg.norm(self.theta)), resolution(self.total[0]))
        pairs = zip(self.modes, self.coordinates, strict=True)
        self.means.append(self._image(self.theta))
        return worst, max((float(np.linalg.norm(m - self.theta[c])) / scale for m, c in pairs), default=0.0)

    def posterior(self, convergence: Convergence) -> GaussianPosterior:
        """N(P^-1 h, P^-1) with the site precisions and exact marginals that belong to it.

        A site on a modulus curves differently along and across; its site precision is the one of the double loop, -2 g'
        at the mean, and so is the precision of the posterior then. As many rows of B are in memory as a chunk has.
        """
        model, theta = self.model, np.asarray(scipy.linalg.cho_solve(proper_factor(self.total[0]), self.total[1]))
        mean = self._image(theta).astype(model.back_projection().dtype, copy=False)
        real = mean.real.dtype
        gaussian = [block.potential.gaussian_precision is not None for block in model.blocks]
        precisions = [
            gaussian_precision(model, number) if gaussian[number] else np.zeros(block.site_shape)
            for number, block in enumerate(model.blocks)
        ]
        on_moduli = any(message.slope.shape[1] > 1 for message in self.messages)
        P = self.gaussian[0].copy() if on_moduli else self.total[0]
        for chunk, message in zip(self.chunks, self.messages, strict=True):
            curvature = message.curvature[:, 0, 0]
            if on_moduli:
                loaded = load_chunk(model, *chunk)
                if loaded.parts > 1:
                    s = (loaded.rows @ theta[loaded.coordinates]).reshape(-1, loaded.parts) - loaded.offsets
                    site = represented(loaded.potential)
                    curvature = np.broadcast_to(site.site_precision(np.sum(s**2, axis=1)), len(s))
                weights = np.repeat(curvature, loaded.parts)[:, None]
                P[square(loaded.coordinates)] += loaded.rows.T @ (weights * loaded.rows)
            block_number, sites = chunk
            precisions[block_number].reshape(-1)[sites] = curvature
        V = precision_inverse(P)
        values = []
        for block in model.blocks:
            z = np.empty(int(np.prod(block.analysis.out_shape)))
            for index in np.split(np.arange(z.size), np.arange(self.most_rows, z.size, self.most_rows)):
                rows = block.analysis.real_rows(index)
                z[index] = np.einsum("ikj,ikj->i", rows @ V, rows)
            values.append(z.reshape(block.analysis.out_shape).astype(real))
        marginals = Variances(
            tuple(values),
            "exact",
            convergence,
            image=np.diag(V).reshape(-1, *model.image_shape).sum(axis=0).astype(real),
            log_determinant=-float(np.linalg.slogdet(V)[1]),
        )
        pis = tuple(pi.astype(real, copy=False) for pi in precisions)
        precision = PosteriorPrecision(model.measurement, model.blocks, pis)
        return GaussianPosterior(model, mean, precision, marginals, convergence=convergence)

    def _image(self, theta: Array) -> Array:
        return as_image(float(np.sqrt(self.model.noise_variance)) * theta, self.model)


@dataclass(frozen=True, kw_only=True)
class SweepState(LoopState):
    """Between two sweeps.

    Parameters
    ----------
    sweeps : MessageSweeps
        The messages and their sums, which a sweep changes in place: they are the largest thing there is.
    """

    sweeps: MessageSweeps


@dataclass(frozen=True, kw_only=True)
class LaplacePropagation(LoopEngine[SweepState]):
    """Settings of Laplace propagation.

    Sites are cut into chunks t_i. Each chunk is multiplied by the messages of all others (its cavity), the mode of the
    product is found by Newton's method, and the second-order expansion of the chunk there is its new message. Fixed
    points are the modes of the posterior; the covariance there is the inverse Hessian (sites on moduli: see Notes).
    Memory is n^2 numbers for n real unknowns, plus one chunk's rows, plus a few numbers per site, so that B may stay on
    disk (`RowsOnDisk`). Where everything fits, Newton's method on all sites at once takes less time.

    Parameters
    ----------
    partition : {"random", "contiguous", "groups"}
        How sites become chunks; with "groups" every block is one (coil groups, slices).
    chunk_size : int
        Sites per chunk, but for groups.
    schedule : {"serial", "parallel"}
        Messages replaced at once, or all of a sweep together from the same start. One parallel sweep is the Bayes
        committee machine.
    max_sweeps : int
        Sweeps at most.
    tolerance : float
        Stop when all chunks' modes agree with the mean to this, relative to its norm.
    damping : float
        Fraction of a new message that is taken, the rest stays old; 1 is the method, less slows it down. 1 / N in one
        parallel sweep averages N chunks (Collobert et al. 2002).
    exact : tuple of str, optional
        Names of the blocks that belong to the Gaussian part t_0 with X and get no messages; by default all blocks of
        Gaussian sites.
    newton_steps : int
        Newton steps per chunk and sweep at most.
    limit : int
        Largest number of real unknowns accepted.

    Raises
    ------
    InputError
        For settings out of range; for sites with a kink at zero (Laplace); for a Gaussian part that leaves a chunk
        undetermined; for more unknowns than ``limit``.

    Notes
    -----
    Smola, Vishwanathan & Eskin 2003, algorithms 1 and 2. `Hinge` sites are expanded
    to first order, which makes the serial schedule the chunking of support vector machines (section 4); their message
    has no curvature. Sites on moduli and groups send full curvatures, while the posterior's site precisions are -2 g'
    at its mean. Parallel sweeps have no guarantee; serial ones have none without log-concavity. The mean of a warm
    start is where all messages begin as expansions, instead of as one; it is needed where X and the Gaussian blocks
    alone do not determine the unknowns.
    ``inner`` of every `StepInfo` is the least converged of the chunks, ``change`` the sweep error.
    """

    partition: Partition = "random"
    chunk_size: int = 500
    schedule: Schedule = "serial"
    max_sweeps: int = 20
    tolerance: float = 1e-8
    damping: float = 1.0
    exact: tuple[str, ...] | None = None
    newton_steps: int = 50
    limit: int = 9000

    def __post_init__(self) -> None:
        require_choice(get_args(Partition), partition=self.partition)
        require_choice(get_args(Schedule), schedule=self.schedule)
        require_counts(
            chunk_size=self.chunk_size,
            max_sweeps=self.max_sweeps,
            newton_steps=self.newton_steps,
            limit=self.limit,
            least=1,
        )
        require_numbers(tolerance=self.tolerance)
        require_numbers(damping=self.damping, most=1.0)
        if self.damping == 0:
            raise InputError("damping", "0", "a positive fraction of the new message")

    needs = ENGINES["LaplacePropagation"]

    @property
    def most_loops(self) -> int:
        return self.max_sweeps

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """The blocks that are cut into chunks; the Gaussian part gets no messages."""
        return tuple(model.blocks[number] for number in self._roles(model)[0])

    def propagate(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> tuple[GaussianPosterior, MessageSweeps]:
        """The posterior as `infer` returns it, and the chunks, their messages and modes."""
        self.check(model, rng, warm_start, callback)
        state, convergence = self.iterate(self.init(model, rng, warm_start), callback)
        return self.finish(state, convergence), state.sweeps

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> SweepState:
        members, exact = self._roles(model)
        chunks = partition_sites(model.blocks, members, self.partition, self.chunk_size, rng)
        sweeps = MessageSweeps(model, chunks, gaussian_part(model, exact), self)
        if warm_start is not None:
            sweeps.expand_at(warm_start.mean)
        return SweepState(sweeps=sweeps)

    def step(self, state: SweepState) -> SweepState:
        inner, error = state.sweeps.sweep()
        loop = state.loop + 1
        info = StepInfo(loop, None, error, inner, Convergence(Status.CONVERGED, 0, 0.0))
        return replace(state, loop=loop, change=error, info=info)

    def done(self, state: SweepState) -> Status | None:
        if state.info is None:
            return None
        if not np.isfinite(state.change):
            return Status.BREAKDOWN
        if state.change <= self.tolerance:
            return Status.CONVERGED if state.info.inner.converged else Status.STALLED
        return None

    def advice(self, state: SweepState, status: Status) -> str:
        return f"raise max_sweeps ({self.max_sweeps})" if status is Status.MAX_ITERATIONS else ""

    def finish(self, state: SweepState, convergence: Convergence) -> GaussianPosterior:
        return state.sweeps.posterior(convergence)

    def _roles(self, model: GeneralizedLinearModel) -> tuple[list[int], list[int]]:
        """Numbers of the blocks that are cut into chunks, and of those in t_0."""
        n = model.measurement.in_size
        if n > self.limit:
            raise InputError(
                "unknowns",
                f"{n} real numbers",
                f"at most {self.limit} (LaplacePropagation holds n^2 numbers)",
                "Raise limit, split the problem, or use MaximumAPosteriori or DoubleLoop, which need no matrix.",
            )
        names = [block.name for block in model.blocks]
        unknown = [name for name in self.exact or () if name not in names]
        if unknown:
            raise InputError("exact", ", ".join(unknown), f"names out of {', '.join(names)}")
        exact: list[int] = []
        for number, block in enumerate(model.blocks):
            gaussian = block.potential.gaussian_precision is not None
            if block.name in self.exact if self.exact is not None else gaussian:
                exact.append(number)
        return [number for number in range(len(names)) if number not in exact], exact
