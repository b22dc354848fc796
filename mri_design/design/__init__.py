"""Which line to measure next, and the loop that asks for it."""

from mri_design.design.a_optimal import AOptimal
from mri_design.design.asymptotic_information import AsymptoticInformation, asymptotic_information
from mri_design.design.baselines import Equispaced, GoldenRatio, HalfDensity, LowPass, RandomLines, VariableDensity
from mri_design.design.calibrated import Calibrated, ErrorModel, shipped_error_model
from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import LineConstraints, centre_lines
from mri_design.design.engine import DesignEngine, DesignState, StopRule
from mri_design.design.even_draws import GoldenDensity, JitteredDensity, SystematicDensity
from mri_design.design.expected_gain import expected_gain
from mri_design.design.free_encoding import FreeEncoding, best_free_encoding
from mri_design.design.infomax import InfomaxQuery, Query
from mri_design.design.information_gain import InformationGain, LanczosInformationGain
from mri_design.design.label_pool import LabelPool
from mri_design.design.line_features import FEATURES, LineKnowledge, line_features
from mri_design.design.model_choice import CandidateModels, model_in_use, paired_energies
from mri_design.design.oracles import Oracle, OracleGreedy, OracleResidual
from mri_design.design.order import ORDERS, Acquisition, acquisition_order, check_order
from mri_design.design.pool import PoolChoice, PoolDesign, PoolState
from mri_design.design.pool_marginals import PoolMarginals
from mri_design.design.prequential import LinePrediction, best_model, predict_line
from mri_design.design.recording import innovation
from mri_design.design.regular import RegularLines
from mri_design.design.stopping import AnyOf, NamedRule, UntilError, UntilGain
from mri_design.design.strategy import Choice, DesignView, Strategy
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.design.trained import Hybrid, TrainedDesign, TrainedOrder
from mri_design.design.training import LBCS, ResidualGreedy, TrainingRule, begin_training, train
from mri_design.design.trials import Outcome, TrainingScan, replayed
from mri_design.design.unseen import with_unseen_lines

__all__ = [
    "FEATURES",
    "LBCS",
    "ORDERS",
    "AOptimal",
    "Acquisition",
    "AnyOf",
    "AsymptoticInformation",
    "Calibrated",
    "CandidateModels",
    "Choice",
    "DesignEngine",
    "DesignState",
    "DesignStep",
    "DesignTrace",
    "DesignView",
    "Equispaced",
    "ErrorModel",
    "FreeEncoding",
    "GoldenDensity",
    "GoldenRatio",
    "HalfDensity",
    "Hybrid",
    "InfomaxQuery",
    "InformationGain",
    "JitteredDensity",
    "LabelPool",
    "LanczosInformationGain",
    "LineCandidates",
    "LineConstraints",
    "LineKnowledge",
    "LinePrediction",
    "LowPass",
    "NamedRule",
    "Oracle",
    "OracleGreedy",
    "OracleResidual",
    "Outcome",
    "PoolChoice",
    "PoolDesign",
    "PoolMarginals",
    "PoolState",
    "Query",
    "RandomLines",
    "RegularLines",
    "ResidualGreedy",
    "StopRule",
    "Strategy",
    "SystematicDensity",
    "TrainedDesign",
    "TrainedOrder",
    "TrainingRule",
    "TrainingScan",
    "UntilError",
    "UntilGain",
    "VariableDensity",
    "acquisition_order",
    "asymptotic_information",
    "begin_training",
    "best_free_encoding",
    "best_model",
    "centre_lines",
    "check_order",
    "expected_gain",
    "innovation",
    "line_features",
    "model_in_use",
    "paired_energies",
    "predict_line",
    "replayed",
    "shipped_error_model",
    "train",
    "with_unseen_lines",
]
