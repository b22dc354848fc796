"""Bayesian design of MRI k-space measurements, and reconstruction with error bars.

The public face: names are looked up when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "ADMM": "estimation.admm",
    "Automatic": "estimation.automatic",
    "BernoulliResponse": "potentials.likelihoods.responses",
    "Calibrated": "design.strategies.calibrated",
    "CartesianLines": "operators.measurement",
    "Checkpoint": "experiment.checkpoint",
    "Choice": "design.decision",
    "ControlVariate": "variances.control_variate",
    "Convergence": "status",
    "DecoupledGaussian": "inference.variational.decoupled",
    "Dense": "operators.dense",
    "DesignEngine": "design.engine",
    "DesignOptions": "experiment.designing",
    "DesignState": "design.engine",
    "DesignView": "design.strategy",
    "DoubleLoop": "inference.double_loop.loop",
    "Exact": "variances.exact",
    "ExactByColumns": "variances.columns",
    "ExponentialPower": "potentials.exponential_power",
    "FEATURES": "design.strategies.line_features",
    "FilterState": "inference.propagation.filter_state",
    "FiniteDifferences": "operators.differences",
    "Forecast": "design.decision",
    "Gaussian": "potentials.gaussian",
    "GaussianPosterior": "model.posterior",
    "GaussianResponse": "potentials.likelihoods.responses",
    "GeneralizedLinearModel": "model.generalized_linear",
    "Generic": "potentials.generic",
    "Hinge": "potentials.likelihoods.hinge",
    "IRLS": "estimation.irls",
    "Identity": "operators.diagonal",
    "ImageStack": "scan.data",
    "InferenceOptions": "experiment.reconstruction",
    "InfomaxQuery": "active_learning.queries.infomax",
    "InformationGain": "design.strategies.information_gain",
    "InputError": "errors",
    "KSpaceData": "scan.data",
    "LBFGS": "estimation.lbfgs",
    "LabelPool": "active_learning.labels.label_pool",
    "Lanczos": "variances.lanczos",
    "LanczosInformationGain": "design.strategies.information_gain",
    "Laplace": "potentials.laplace",
    "LaplaceFilter": "inference.propagation.filter",
    "LaplacePropagation": "inference.propagation.laplace_propagation",
    "LineCandidates": "design.candidate",
    "LinearOperator": "operators.base",
    "Logistic": "potentials.likelihoods.logistic",
    "LoopEngine": "inference.base",
    "MRSlice": "model.mr_image",
    "MapEstimate": "estimation.map_estimate",
    "MonteCarlo": "variances.monte_carlo",
    "MriDesignError": "errors",
    "OracleResidual": "design.strategies.oracles",
    "PenalisedProblem": "estimation.penalised",
    "Poisson": "potentials.likelihoods.poisson",
    "PoissonResponse": "potentials.likelihoods.responses",
    "PoolDesign": "active_learning.labels.pool_design",
    "PositiveMixture": "potentials.mixture",
    "PreparedScan": "experiment.inputs",
    "ReadLimits": "scan.io.safe",
    "Recipe": "experiment.recipe",
    "Reconstruction": "experiment.reconstruction",
    "Sech2": "potentials.sech2",
    "ShiftedMixture": "potentials.mixture",
    "Site": "potentials.base",
    "SiteBlock": "model.generalized_linear",
    "SparsityBlock": "model.mr_image",
    "Status": "status",
    "StudentT": "potentials.student_t",
    "SuperGaussian": "potentials.base",
    "Tilted": "potentials.tilted",
    "UntilError": "design.stopping",
    "UntilGain": "design.stopping",
    "UsageError": "errors",
    "VariableDensity": "design.strategies.baselines",
    "VariationalGaussian": "inference.variational.natural_gradient",
    "WarmStart": "inference.base",
    "Wavelet": "operators.wavelet",
    "asymptotic_information": "active_learning.queries.asymptotic",
    "best_free_encoding": "active_learning.queries.free_encoding",
    "best_shot": "active_learning.queries.shots",
    "cartesian": "operators.measurement",
    "centre_lines": "design.constraints",
    "coil_combined": "scan.calibration.combine",
    "drawn_root": "active_learning.queries.shots",
    "estimate_coil_maps": "scan.calibration.coil_maps",
    "estimate_noise_variance": "scan.calibration.noise",
    "evidence_bound": "inference.criterion",
    "exact_root": "active_learning.queries.shots",
    "information_gain": "design.strategies.information_gain",
    "learn_hyperparameters": "inference.evidence.hyperparameters",
    "least_squares": "estimation.least_squares",
    "load_input": "experiment.inputs",
    "load_kspace": "experiment.inputs",
    "load_phantom": "scan.simulation.scenes",
    "load_recipe": "experiment.recipe",
    "log_bayes_factor": "inference.evidence.evidence",
    "log_evidence": "inference.evidence.evidence",
    "make_strategy": "experiment.strategy_names",
    "map_estimate": "estimation.map_estimate",
    "measure": "evaluation.metrics",
    "mr_image_model": "experiment.inputs",
    "pixel_std": "experiment.reconstruction",
    "prepare": "experiment.inputs",
    "prewhiten": "scan.calibration.whitening",
    "random_head": "scan.simulation.random_head",
    "read": "scan.io.formats",
    "reconstruct": "experiment.reconstruction",
    "run_design": "experiment.designing",
    "shot_gain": "active_learning.queries.shots",
    "simulate_scan": "scan.simulation.scanner",
    "strategy_names": "experiment.strategy_names",
    "with_noise_covariance": "model.noise_covariance",
    "zero_filled": "estimation.least_squares",
}
"""Public name to the file that defines it."""
_NAMESPACES = {"operators", "potentials", "variances"}
"""Rooms that are used by their own names too, as in ``md.variances.Exact``."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
