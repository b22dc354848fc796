"""The best Gaussian in the sense of Kullback and Leibler, by natural-gradient updates of its sites.

At the optimum of the bound Q has the form of the package's posteriors, with pi_i = E[-(log t_i)''] and a mean that
follows from eta_i = pi_i E s_i + E[(log t_i)']: Khan 2014, theorem 4.1 (Opper & Archambeau 2009). Moving pi and eta a
part of the way to what mean and variances ask for is a step along the natural gradient (Khan & Lin 2017), and needs
nothing but a mean solve and marginal variances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.glm.site_gaussians import GaussianOracles, SiteState, bound_criterion
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, cold_start
from mri_design.inference.criterion import LogDeterminant
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_determined
from mri_design.model.posterior import GaussianPosterior
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.columns import ExactByColumns
from mri_design.variances.exact import Exact
from mri_design.variances.monte_carlo import MonteCarlo

SMALLEST_STEP = 2.0**-12
LEAST_KEPT = 0.15  # least actual over predicted decrease of phi with which a step is kept


@dataclass(frozen=True, kw_only=True)
class UpdateState(LoopState):
    """Between two updates of the sites; ``loop`` counts those that were taken.

    Parameters
    ----------
    oracles : GaussianOracles
        Mean and variances under site Gaussians.
    sites : SiteState
        Mean, variances and wanted sites under the current ones; its distance is ``change``.
    step : float
        Size of the next update.
    phi : float or None
        The criterion, where log|A| is exact.
    trace : tuple of float
        The criterion at the start and after every update.
    """

    oracles: GaussianOracles
    sites: SiteState
    step: float
    phi: float | None
    trace: tuple[float, ...]


@dataclass(frozen=True)
class VariationalGaussian(LoopEngine[UpdateState]):
    """Settings of the variational Gaussian (KL) approximation.

    Its bound on log P(y) is at least that of the `DoubleLoop`, and it takes sites that are not super-Gaussian (counts).

    Parameters
    ----------
    variances : VarianceEstimator
        The estimator of z.
    iterations : int
        Updates of all sites at most.
    tolerance : float
        Stop when the update that the current posterior implies would change the sites by less than this: mean over
        sites of |change of pi| z + |change of the slope at the mean| sqrt z, both without dimension.
    criterion : {"none", "estimate"}
        The treatment of the bound where ``variances`` does not know log|A|: leave it out, or estimate log|A| once, for
        the result, by `LogDeterminant`.

    Raises
    ------
    InputError
        For settings out of range or of another kind, where X and B share a null space, or where E log t is not finite
        at the start.

    Notes
    -----
    On complex coefficients and groups Q is taken to be isotropic over the real numbers that share a site. For complex
    coefficients of a complex-linear model it is, and the bound is that of the best circular Gaussian; in groups the
    expectations, and with them the bound, are approximate. Sites that are not log-concave may ask for a negative pi:
    they get it from `Exact` and `ExactByColumns`, and zero where variances come from draws.

    The first update takes a whole step; later ones are halved where the bound gains much less than its slope promises
    (where it is not known: where the distance above would grow), and grow again.

    A loop of `infer` is an update that was taken; ``criterion`` falls from one to the next (`evidence_bound` turns it
    into a bound on log P(y)), and ``change`` is the distance that ``tolerance`` is held against.
    """

    variances: VarianceEstimator = field(default_factory=MonteCarlo)
    iterations: int = 100
    tolerance: float = 1e-4
    criterion: Literal["none", "estimate"] = "none"

    def __post_init__(self) -> None:
        require_estimator(variances=self.variances)
        require_counts(iterations=self.iterations, least=1)
        require_numbers(tolerance=self.tolerance)
        require_choice(("none", "estimate"), criterion=self.criterion)

    @property
    def most_loops(self) -> int:
        return self.iterations

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> UpdateState:
        require_determined(model)
        start = warm_start or cold_start(model)
        oracles = GaussianOracles(
            model,
            self.variances,
            1e-3 * self.tolerance**2,
            int(rng.integers(2**63)),
            least_precision=-np.inf if isinstance(self.variances, Exact | ExactByColumns) else 0.0,
        )
        sites = oracles(oracles.start(warm_start), start.mean, None)
        phi = _criterion(model, sites)
        return UpdateState(
            change=sites.distance,
            matvecs=_products(sites),
            oracles=oracles,
            sites=sites,
            step=1.0,
            phi=phi,
            trace=() if phi is None else (phi,),
        )

    def step(self, state: UpdateState) -> UpdateState:
        model, sites = state.oracles.model, state.sites
        trial = _tried(state.oracles, sites, state.step)
        matvecs = state.matvecs + (0 if trial is None else _products(trial))
        new_phi = None if trial is None else _criterion(model, trial)
        kept = 0.0 if trial is None or trial.broken else _kept(state.phi, new_phi, sites, trial)
        if trial is None or not kept >= LEAST_KEPT:
            return replace(state, step=state.step / 2, matvecs=matvecs, info=None)
        loop, phi = state.loop + 1, new_phi
        return replace(
            state,
            loop=loop,
            change=trial.distance,
            matvecs=matvecs,
            info=StepInfo(loop, phi, trial.distance, trial.solved, trial.marginals.convergence),
            sites=trial,
            step=min(1.0, 2 * state.step) if kept > 0.7 else state.step,
            phi=phi,
            trace=state.trace if phi is None else (*state.trace, phi),
        )

    def done(self, state: UpdateState) -> Status | None:
        if state.change < self.tolerance:
            return Status.CONVERGED
        if state.sites.broken:
            return Status.BREAKDOWN
        return Status.STALLED if state.step < SMALLEST_STEP else None

    def advice(self, state: UpdateState, status: Status) -> str:
        if status is Status.MAX_ITERATIONS:
            return f"raise iterations ({self.iterations})"
        return f"loosen tolerance ({self.tolerance:g})" if status is Status.STALLED else ""

    def finish(self, state: UpdateState, convergence: Convergence) -> GaussianPosterior:
        model, sites, trace = state.oracles.model, state.sites, state.trace
        if not trace and self.criterion == "estimate":
            noise = np.random.default_rng(state.oracles.noise_seed)
            estimate = LogDeterminant()(sites.precision, noise, sites.mean)
            convergence = replace(convergence, matvecs=convergence.matvecs + estimate.convergence.matvecs)
            trace = (bound_criterion(model, sites, estimate.value),)
        return GaussianPosterior(
            model=model,
            mean=sites.mean,
            precision=sites.precision,
            marginals=sites.marginals,
            convergence=convergence,
            criterion=trace,
            criterion_kind="none" if not trace else "estimate" if state.phi is None else "exact",
            stationarity=sites.stationarity,
        )


def _criterion(model: GeneralizedLinearModel, state: SiteState) -> float | None:
    """phi where z and log|A| are exact."""
    known = state.marginals.log_determinant
    return bound_criterion(model, state, known) if known is not None and state.marginals.kind == "exact" else None


def _tried(oracles: GaussianOracles, state: SiteState, step: float) -> SiteState | None:
    """The state a step ahead; None where A has no inverse there.

    That is where site precisions are negative, or so small that rounding leaves nothing of them beside X: far sites ask
    for next to none, and a shorter step keeps some.
    """
    assert state.wanted is not None
    try:
        return oracles(state.sites.towards(state.wanted, step), state.mean, state.marginals)
    except InputError:
        return None


def _kept(phi: float | None, new: float | None, state: SiteState, trial: SiteState) -> float:
    """Actual over predicted decrease of phi.

    Where phi is unknown or its decrease is lost in rounding, the distance to stationarity decides: 1 (phi unknown) or
    0.5 (rounding) for a step that may be kept, 0 for one that may not.
    """
    if phi is None or new is None:
        return 1.0 if trial.distance < 1.2 * state.distance else 0.0
    predicted = state.predicted_decrease(trial)
    rounding = 1e-12 * (1 + abs(phi))
    if predicted < rounding and new - phi < rounding:
        return 0.5 if trial.distance < state.distance else 0.0
    return (phi - new) / predicted if predicted > 0 else float(new < phi)


def _products(state: SiteState) -> int:
    return state.solved.matvecs + state.marginals.convergence.matvecs
