"""Which line to measure next, and the loop that asks for it."""

from mri_design.design.baselines import Equispaced, GoldenRatio, LowPass, RandomLines, VariableDensity
from mri_design.design.candidate import LineCandidates, centre_lines
from mri_design.design.engine import DesignEngine, DesignState, StopRule
from mri_design.design.information_gain import InformationGain, LanczosInformationGain
from mri_design.design.prequential import LinePrediction, best_model, predict_line
from mri_design.design.strategy import Choice, DesignView, Strategy
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.design.unseen import with_unseen_lines

__all__ = [
    "Choice",
    "DesignEngine",
    "DesignState",
    "DesignStep",
    "DesignTrace",
    "DesignView",
    "Equispaced",
    "GoldenRatio",
    "InformationGain",
    "LanczosInformationGain",
    "LineCandidates",
    "LinePrediction",
    "LowPass",
    "RandomLines",
    "StopRule",
    "Strategy",
    "VariableDensity",
    "best_model",
    "centre_lines",
    "predict_line",
    "with_unseen_lines",
]
