"""Approximate posteriors: estimation and variances in turn."""

from mri_design.inference.base import InferenceMethod, StepInfo, WarmStart, pooled_variances, require_engine
from mri_design.inference.criterion import criterion_value, evidence_bound
from mri_design.inference.decoupled_gaussian import DecoupledGaussian
from mri_design.inference.double_loop import DoubleLoop, cold_start
from mri_design.inference.evidence import BayesFactor, Evidence, log_bayes_factor, log_evidence, prior_log_normaliser
from mri_design.inference.exact import exact_criterion, minimise_exact_criterion
from mri_design.inference.filter_state import FilterState
from mri_design.inference.hyperparameters import Hyperparameters, LearnedModel, learn_hyperparameters
from mri_design.inference.laplace_filter import LaplaceFilter
from mri_design.inference.laplace_propagation import LaplacePropagation, Propagation
from mri_design.inference.log_determinant import LogDeterminant, LogDeterminantEstimate
from mri_design.inference.variational_gaussian import VariationalGaussian

__all__ = [
    "BayesFactor",
    "DecoupledGaussian",
    "DoubleLoop",
    "Evidence",
    "FilterState",
    "Hyperparameters",
    "InferenceMethod",
    "LaplaceFilter",
    "LaplacePropagation",
    "LearnedModel",
    "LogDeterminant",
    "LogDeterminantEstimate",
    "Propagation",
    "StepInfo",
    "VariationalGaussian",
    "WarmStart",
    "cold_start",
    "criterion_value",
    "evidence_bound",
    "exact_criterion",
    "learn_hyperparameters",
    "log_bayes_factor",
    "log_evidence",
    "minimise_exact_criterion",
    "pooled_variances",
    "prior_log_normaliser",
    "require_engine",
]
