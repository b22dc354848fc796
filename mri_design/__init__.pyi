"""Bayesian design of MRI k-space measurements, and reconstruction with error bars: the public names."""

from . import design as design
from . import estimation as estimation
from . import exchange as exchange
from . import experiment as experiment
from . import formats as formats
from . import glm as glm
from . import inference as inference
from . import model as model
from . import operators as operators
from . import readouts as readouts
from . import scan as scan
from . import signals as signals
from . import sites as sites
from . import variances as variances
from .errors import InputError as InputError
from .errors import MriDesignError as MriDesignError
from .errors import UsageError as UsageError
from .estimation.map_estimate import map_estimate as map_estimate
from .evaluation.metrics import measure as measure
from .experiment.calibration import calibrate as calibrate
from .experiment.design import run_design as run_design
from .experiment.extent import register_trajectory as register_trajectory
from .experiment.recipe import Recipe as Recipe
from .experiment.recipe import load_recipe as load_recipe
from .experiment.reconstruction import reconstruct as reconstruct
from .experiment.strategies import make_strategy as make_strategy
from .experiment.strategies import register_strategy as register_strategy
from .experiment.strategies import strategy_names as strategy_names
from .glm.regression import linear_regression as linear_regression
from .glm.regression import logistic_regression as logistic_regression
from .inference.double_loop import DoubleLoop as DoubleLoop
from .interactive.results import ScanDesign as ScanDesign
from .interactive.results import ScanImage as ScanImage
from .interactive.results import StrategyComparison as StrategyComparison
from .interactive.results import load_run as load_run
from .interactive.scan import LoadedScan as LoadedScan
from .interactive.scan import load as load
from .model.generalized_linear import GeneralizedLinearModel as GeneralizedLinearModel
from .model.generalized_linear import SiteBlock as SiteBlock
from .model.slice import SliceModel as SliceModel
from .model.sparsity import SparsityBlock as SparsityBlock
from .registry import register_block as register_block
from .registry import register_signal_model as register_signal_model
from .registry import register_site as register_site
from .scan.data import ImageStack as ImageStack
from .scan.data import KSpaceData as KSpaceData
from .scan.data import TrajectoryData as TrajectoryData
from .scan.simulation import load_phantom as load_phantom
from .signals.models import SignalModel as SignalModel
from .status import Convergence as Convergence
from .status import Status as Status

__all__ = [  # noqa: RUF022 (in the order of the reference)
    "load",
    "LoadedScan",
    "ScanImage",
    "ScanDesign",
    "StrategyComparison",
    "load_run",
    "measure",
    "Recipe",
    "load_recipe",
    "strategy_names",
    "make_strategy",
    "KSpaceData",
    "TrajectoryData",
    "ImageStack",
    "load_phantom",
    "calibrate",
    "SliceModel",
    "SparsityBlock",
    "GeneralizedLinearModel",
    "SiteBlock",
    "SignalModel",
    "DoubleLoop",
    "reconstruct",
    "map_estimate",
    "run_design",
    "linear_regression",
    "logistic_regression",
    "register_block",
    "register_site",
    "register_signal_model",
    "register_strategy",
    "register_trajectory",
    "Status",
    "Convergence",
    "MriDesignError",
    "InputError",
    "UsageError",
]
