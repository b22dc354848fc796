"""Which line, sample or shot to measure next: candidates, constraints, the engine, its record and its end."""

from .calibrated import FEATURES as FEATURES
from .calibrated import Calibrated as Calibrated
from .calibrated import EarlierScan as EarlierScan
from .calibrated import ErrorModel as ErrorModel
from .calibrated import LineKnowledge as LineKnowledge
from .calibrated import feature_weights as feature_weights
from .calibrated import features_of_line as features_of_line
from .calibrated import fitted_weights as fitted_weights
from .calibrated import line_features as line_features
from .calibrated import sample_features as sample_features
from .calibrated import shipped_error_model as shipped_error_model
from .calibrated import weight_of_side_information as weight_of_side_information
from .engine import Amount as Amount
from .engine import DesignEngine as DesignEngine
from .engine import DesignState as DesignState
from .engine import ImageError as ImageError
from .engine import InferredSlices as InferredSlices
from .engine import Measuring as Measuring
from .engine import Moment as Moment
from .engine import Refined as Refined
from .engine import SliceInference as SliceInference
from .engine import found_energies as found_energies
from .engine import innovation as innovation
from .engine import map_lines as map_lines
from .engine import most_information as most_information
from .fixed import CaipiSamples as CaipiSamples
from .fixed import CentredLines as CentredLines
from .fixed import Draw as Draw
from .fixed import FixedAngles as FixedAngles
from .fixed import LowPass as LowPass
from .fixed import RandomSamples as RandomSamples
from .fixed import RegularLines as RegularLines
from .fixed import VariableDensity as VariableDensity
from .fixed import inclusion_masses as inclusion_masses
from .fixed import poisson_disc as poisson_disc
from .fixed import radial_density as radial_density
from .frames import Frame as Frame
from .greedy import ExpectedError as ExpectedError
from .greedy import InformationGain as InformationGain
from .greedy import KeptElsewhere as KeptElsewhere
from .greedy import block_by_scores as block_by_scores
from .greedy import controlled_variances as controlled_variances
from .greedy import covering as covering
from .greedy import exact_gains as exact_gains
from .greedy import expected_energies as expected_energies
from .greedy import gains_and_energies as gains_and_energies
from .greedy import gains_of_values as gains_of_values
from .greedy import generators as generators
from .greedy import information_gain as information_gain
from .greedy import lines_of as lines_of
from .greedy import neighbourhood as neighbourhood
from .greedy import of_each as of_each
from .greedy import plane_of as plane_of
from .greedy import regressed_variances as regressed_variances
from .greedy import removed_share as removed_share
from .greedy import residual_energies as residual_energies
from .greedy import rows_of as rows_of
from .greedy import squared_correlation as squared_correlation
from .greedy import thinned as thinned
from .strategy import DesignView as DesignView
from .strategy import LineCandidates as LineCandidates
from .strategy import Strategy as Strategy
from .strategy import best_line as best_line
from .strategy import rng_of_step as rng_of_step
from .trace import FEWEST_TESTED as FEWEST_TESTED
from .trace import Choice as Choice
from .trace import DesignStep as DesignStep
from .trace import DesignTrace as DesignTrace
from .trace import Forecast as Forecast
from .trace import StopFact as StopFact
from .trace import StopRule as StopRule
from .trace import Within as Within
from .trace import expected_total as expected_total
from .trace import lines_expected as lines_expected
from .training import LBCS as LBCS
from .training import Evaluate as Evaluate
from .training import Exchange as Exchange
from .training import ExchangeRules as ExchangeRules
from .training import OracleGreedy as OracleGreedy
from .training import OracleHole as OracleHole
from .training import OracleResidual as OracleResidual
from .training import OrderTraining as OrderTraining
from .training import Outcome as Outcome
from .training import ReferenceSlice as ReferenceSlice
from .training import Refinement as Refinement
from .training import TrainedDesign as TrainedDesign
from .training import TrainedOrder as TrainedOrder
from .training import TrainingResidual as TrainingResidual
from .training import TrainingRule as TrainingRule
from .training import Trial as Trial
from .training import begin_refinement as begin_refinement
from .training import begin_training as begin_training
from .training import line_residual as line_residual
from .training import refine as refine
from .training import shared_lines as shared_lines
from .training import train as train
from .training import truth_or_none as truth_or_none
from .training import with_exchanges as with_exchanges

__all__ = [
    "FEATURES",
    "Calibrated",
    "Choice",
    "DesignEngine",
    "DesignState",
    "DesignStep",
    "DesignTrace",
    "DesignView",
    "ExpectedError",
    "Forecast",
    "InformationGain",
    "LineCandidates",
    "OracleResidual",
    "StopRule",
    "Strategy",
    "VariableDensity",
    "information_gain",
]
