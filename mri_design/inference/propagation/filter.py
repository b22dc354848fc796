"""The Laplace filter: one site after another, each replaced by a Gaussian at the mode it makes, in O(n^2).

A site t(x^T u) moves the mean along C x only, to where the one-dimensional mode is, and lowers the covariance by a
matrix of rank one:

    u' = u + C x (log t)'(s),      C' = C - C x x^T C D / (1 + D v),      v = x^T C x,  D = -(log t)''(s).

Lewi, Butera & Paninski 2007, equations (3), (4) and (7). Exact for Gaussian sites (the Kalman filter); other sites are
looked at once, in the order given, so that the result depends on it a little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, require_counts, require_instance
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, beside_gaussian
from mri_design.inference.propagation.filter_state import FilterState, drift_matrix
from mri_design.inference.propagation.posterior import as_image, gaussian_part
from mri_design.inference.propagation.site_mode import site_mode
from mri_design.inference.proper_factor import precision_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.base import Site
from mri_design.potentials.requirements import ENGINES, refusal, require_offers
from mri_design.status import Convergence, Status
from mri_design.variances.exact import Exact

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PassState(LoopState):
    """Between two blocks of sites.

    Parameters
    ----------
    model : GeneralizedLinearModel
        What is inferred.
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
    given = number_array("query", x, wanted=f"finite real {state.mean.shape}")
    if given.shape != state.mean.shape or given.dtype.kind not in "fiub" or not np.isfinite(given).all():
        raise InputError("query", f"{given.dtype} of shape {given.shape}", f"finite real {state.mean.shape}")
    return given.astype(float)
