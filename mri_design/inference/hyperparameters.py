"""Learning the noise variance and the scales of the sites from the data themselves, by the variational evidence.

    log P(y | tau, sigma^2) ~ -(phi - phi_0) / 2 - (m / 2) log sigma^2 + ...

phi bounds the partition function of data and sites together, phi_0 that of the sites alone (`PriorEvidence`). Their
difference is no bound, but it is homogeneous as the true evidence is, and its maximum has a plain meaning: under the
posterior, every group of sites is as far from zero as under the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mri_design.errors import InputError, positive_number, require_counts, require_working
from mri_design.inference.base import InferenceMethod, WarmStart, pooled_variances, require_engine, require_task
from mri_design.inference.criterion import dual_arguments
from mri_design.inference.evidence import PriorEvidence, SiteGroup, site_groups
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status

LARGEST_STEP = 3.0  # of a rate or a noise sd in one round
SWITCHED_OFF = 0.01  # a group that pulls less than this fraction of the unknowns is left where it is
LEAST_NOISE = 2.0**-24  # least noise sd learnt, over the largest number of y: its rounding in single precision


@dataclass(frozen=True)
class Hyperparameters:
    """Noise variance and rates after one round.

    Parameters
    ----------
    noise_variance : float
        sigma^2 per real component, in the data's units squared.
    rates : dict of str to float
        By group: the factor on the rates (tau / sigma, per unit of the coefficients) that the model came with.
    """

    noise_variance: float
    rates: dict[str, float]


@dataclass(frozen=True)
class LearnedModel:
    """A model with learnt hyperparameters, and its posterior.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With the learnt noise variance and scales.
    posterior : GaussianPosterior
        Of that model.
    trace : tuple of Hyperparameters
        After every round.
    convergence : Convergence
        ``iterations`` are rounds, ``residual`` the last largest relative change of a hyperparameter, ``matvecs`` those
        of all inferences.
    """

    model: GeneralizedLinearModel
    posterior: GaussianPosterior
    trace: tuple[Hyperparameters, ...]
    convergence: Convergence


@dataclass(frozen=True)
class HyperparameterLearning:
    """Settings of `learn_hyperparameters`.

    Parameters
    ----------
    noise, scales : bool
        Whether to learn the noise variance, and the scales. Noise only where data outnumber unknowns: fewer can be
        fitted exactly, and on a part of the lines the bound lets the noise go to nothing
        (results/benchmarks/measured-once.md).
    labels : dict of block name to integer array, optional
        Which sites of a block share a scale; by default those that have equal ones, and those of one wavelet level.
    rounds : int
        At most; each is one inference from the last one's mean and variances.
    tolerance : float
        Stop when no rate and no noise sd changes by more than this, relative, and inference has converged.

    Raises
    ------
    InputError
        For settings of another kind or out of range, or where neither noise nor scales are to be learnt.
    """

    noise: bool = False
    scales: bool = True
    labels: dict[str, Array] | None = None
    rounds: int = 20
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        if not self.noise and not self.scales:
            raise InputError("learn_hyperparameters", "neither noise nor scales", "at least one of them")
        require_counts(least=1, **{"learn_hyperparameters: rounds": self.rounds})
        positive_number("learn_hyperparameters: tolerance", self.tolerance)


def learn_hyperparameters(
    model: GeneralizedLinearModel,
    engine: InferenceMethod,
    rng: np.random.Generator,
    *,
    callback: Callable[[Hyperparameters], None] | None = None,
    **settings: Any,
) -> LearnedModel:
    """Learn the scales of a model's sites, and its noise variance, from its data: infer and renew them in turn.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Where to start: its noise variance and scales.
    engine : InferenceMethod
        The engine that infers.
    rng : numpy Generator
        Of the variances; every round sees the same noise.
    callback : callable, optional
        Sees the hyperparameters after every round.
    settings
        ``noise``, ``scales``, ``labels``, ``rounds`` and ``tolerance``; see `HyperparameterLearning`.

    Raises
    ------
    InputError
        For arguments of another kind or out of range; where there is nothing to learn, the prior is improper, or its
        operators' Gram matrices are not circulants.

    Notes
    -----
    Scales: at fixed mean and z, minimise sum_i -2 g_i(c^2 (x_i + z_i)) - phi_0(c) over the factors c, one per group;
    since phi lies below its tangent bound every round lowers phi - phi_0 (exact variances). Noise: MacKay's fixed point
    sigma^2 = ||y - X u||^2 / (m - n + sum_i pi_i z_i), n and m real dimensions, with the sites themselves unchanged.
    TR-175 section 3 has the bound; Palmer et al., NIPS 2005, the role of g.

    Learnt scales serve error bars and predictions, not the picture: what they do to both is measured in
    results/benchmarks/inference.md, calibration.
    """
    require_task(model, rng)
    require_engine(engine=engine)
    wanted = HyperparameterLearning(**settings)
    if callback is not None:
        require_working(callback=callback, takes=1, wanted="a function of one Hyperparameters")
    if wanted.noise and not model.measurement.out_size:
        raise InputError("learn_hyperparameters", "noise of a model without a Gaussian factor", "noise=False")
    groups = site_groups(model, wanted.labels) if wanted.scales else ()
    if wanted.scales and not groups:
        raise InputError("learn_hyperparameters", "no block of centred, even sites", "a prior with scales to learn")
    prior = PriorEvidence.of(model, groups) if wanted.scales else None
    seed = int(rng.integers(2**63))
    least = min((LEAST_NOISE * float(np.abs(model.data).max(initial=0.0))) ** 2, model.noise_variance)
    rates = {group.name: 1.0 for group in groups}
    trace: list[Hyperparameters] = []
    status, change, done = Status.MAX_ITERATIONS, np.inf, 0
    posterior = engine.infer(model, np.random.default_rng(seed))
    matvecs = posterior.convergence.matvecs
    for done in range(1, wanted.rounds + 1):  # noqa: B007 (reported)
        steps: list[float] = []
        blocks, variance = model.blocks, model.noise_variance
        if prior is not None:
            factors = _scale_factors(posterior, prior)
            for group, factor in zip(groups, factors, strict=True):
                rates[group.name] *= factor
            blocks = rescaled_blocks(blocks, groups, factors)
            steps += [abs(float(np.log(f))) for f in factors]
        if wanted.noise:
            ratio = max(_noise_ratio(posterior), least / variance)
            variance *= ratio
            # t(s) stays the same function of s: its rate is tau / sigma.
            blocks = tuple(replace(b, potential=b.potential.rescaled(np.sqrt(ratio))) for b in blocks)
            steps.append(abs(float(np.log(ratio))) / 2)
        z = tuple(old * (model.noise_variance / variance) for old in pooled_variances(model, posterior.marginals))
        model = replace(model, blocks=blocks, noise_variance=variance)
        trace.append(Hyperparameters(variance, dict(rates)))
        if callback is not None:
            callback(trace[-1])
        change = max(steps)
        posterior = engine.infer(model, np.random.default_rng(seed), warm_start=WarmStart(posterior.mean, z))
        matvecs += posterior.convergence.matvecs
        if posterior.convergence.status is Status.BREAKDOWN or not np.isfinite(change):
            status = Status.BREAKDOWN
            break
        if change < wanted.tolerance and posterior.convergence.converged:
            status = Status.CONVERGED
            break
    return LearnedModel(model, posterior, tuple(trace), Convergence(status, done, float(change), matvecs))


def rescaled_blocks(
    blocks: tuple[SiteBlock, ...], groups: tuple[SiteGroup, ...], factors: Array
) -> tuple[SiteBlock, ...]:
    """The blocks with the rates of each group multiplied."""
    renewed = list(blocks)
    for number, block in enumerate(blocks):
        own = [(group, float(f)) for group, f in zip(groups, factors, strict=True) if group.block == number]
        if not own:
            continue
        factor: Array | float = own[0][1]
        if len(own) > 1:
            factor = np.ones(block.site_shape)
            for group, f in own:
                factor[group.members] = f
        renewed[number] = replace(block, potential=block.potential.rescaled(factor))
    return tuple(renewed)


def _scale_factors(posterior: GaussianPosterior, prior: PriorEvidence) -> Array:
    """The factors that minimise the tangent bound of phi - phi_0, within a step's limit."""
    from scipy.optimize import minimize  # here, because the import takes a tenth of a second, and few runs learn

    model, groups = posterior.model, prior.groups
    z = pooled_variances(model, posterior.marginals)
    arguments = [t.astype(float) for t in dual_arguments(model, posterior.mean, z)]

    def objective(log_factors: Array) -> tuple[float, Array]:
        blocks = rescaled_blocks(model.blocks, groups, np.exp(log_factors))
        phi_0, slopes = prior(blocks)
        value, gradient = -phi_0, -slopes
        for number, (block, x) in enumerate(zip(blocks, arguments, strict=True)):
            if not any(group.block == number for group in groups):
                continue
            value -= 2 * float(np.sum(block.represented.g(x)))
            slopes = 2 * block.represented.site_precision(x) * x
            for i, group in enumerate(groups):
                if group.block == number:
                    gradient[i] += float(slopes[group.members].sum())
        return value / size, gradient / size

    size, most = model.measurement.in_size, np.log(LARGEST_STEP)
    slopes = [
        float(np.sum((x * block.represented.site_precision(x))[group.members]))
        for group in groups
        for block, x in [(model.blocks[group.block], arguments[group.block])]
    ]
    limits = [most if slope > SWITCHED_OFF * size else 0.0 for slope in slopes]
    minimum = minimize(
        objective,
        np.zeros(len(groups)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-limit, limit) for limit in limits],
        options={"ftol": 1e-9, "gtol": 1e-6, "maxiter": 40},
    )
    return np.asarray(np.exp(minimum.x))


def _noise_ratio(posterior: GaussianPosterior) -> float:
    """New over old noise variance, within a step's limit."""
    model = posterior.model
    residual = model.data - model.measurement(posterior.mean)
    pi_z = sum(
        float(np.sum(pi * z, dtype=np.float64))
        for pi, z in zip(posterior.precision.site_precisions, pooled_variances(model, posterior.marginals), strict=True)
    )
    m, n = model.measurement.out_size, model.measurement.in_size
    free = max(m - n + pi_z, 1e-3 * m)  # random variances may overstep their limits
    ratio = float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / (free * model.noise_variance)
    return float(np.clip(ratio, LARGEST_STEP**-2, LARGEST_STEP**2))
