"""Bayesian design of MRI k-space measurements, and reconstruction with error bars.

The public face: names are looked up when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "calibration": ("coil_combined", "estimate_coil_maps", "estimate_noise_variance", "prewhiten"),
    "design": (
        "Calibrated",
        "DesignEngine",
        "DesignTrace",
        "DesignView",
        "FEATURES",
        "InfomaxQuery",
        "InformationGain",
        "LabelPool",
        "LanczosInformationGain",
        "LineCandidates",
        "LineConstraints",
        "OracleResidual",
        "PoolDesign",
        "UntilError",
        "UntilGain",
        "VariableDensity",
        "asymptotic_information",
        "best_free_encoding",
        "centre_lines",
    ),
    "design.information_gain": ("information_gain",),
    "errors": ("InputError", "MriDesignError", "UsageError"),
    "estimation": ("ADMM", "IRLS", "LBFGS", "Automatic", "MapEstimate", "least_squares", "zero_filled"),
    "estimation.map_estimate": ("PointEstimate", "map_estimate"),
    "evaluation": ("measure",),
    "experiment": (
        "PreparedScan",
        "Recipe",
        "Reconstruction",
        "load_input",
        "load_kspace",
        "load_recipe",
        "make_strategy",
        "mr_image_model",
        "pixel_std",
        "prepare",
        "reconstruct",
        "run_design",
        "strategy_names",
    ),
    "inference": (
        "DecoupledGaussian",
        "DoubleLoop",
        "FilterState",
        "LaplaceFilter",
        "LaplacePropagation",
        "LogDeterminant",
        "VariationalGaussian",
        "WarmStart",
        "evidence_bound",
        "learn_hyperparameters",
        "log_bayes_factor",
        "log_evidence",
    ),
    "io": ("ReadLimits", "read"),
    "kspace": ("ImageStack", "KSpaceData"),
    "model": (
        "GaussianPosterior",
        "GeneralizedLinearModel",
        "MRSlice",
        "SiteBlock",
        "SparsityBlock",
        "with_noise_covariance",
    ),
    "operators": (
        "CartesianLines",
        "Dense",
        "FiniteDifferences",
        "Identity",
        "LinearOperator",
        "SparseMatrix",
        "Wavelet",
        "cartesian",
    ),
    "potentials": (
        "BernoulliResponse",
        "ExponentialPower",
        "Gaussian",
        "GaussianResponse",
        "Generic",
        "Hinge",
        "Laplace",
        "Logistic",
        "Poisson",
        "PoissonResponse",
        "PositiveMixture",
        "Potential",
        "Sech2",
        "ShiftedMixture",
        "StudentT",
        "Tilted",
    ),
    "simulation": ("load_phantom", "random_head", "simulate_scan"),
    "status": ("Convergence", "Status"),
    "variances": ("ControlVariate", "Exact", "ExactByColumns", "Lanczos", "MonteCarlo"),
}
_ROOM_OF = {name: room for room, names in _HOMES.items() for name in names}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return import_module(f"{__name__}.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
