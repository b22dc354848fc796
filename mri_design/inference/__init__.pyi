"""Posteriors: engines that turn a model into the Gaussian closest to what its data leave open, and what they share."""

from .base import Engine as Engine
from .base import LoopEngine as LoopEngine
from .base import LoopState as LoopState
from .base import StepInfo as StepInfo
from .base import WarmStart as WarmStart
from .base import cold_start as cold_start
from .base import non_gaussian_blocks as non_gaussian_blocks
from .base import pooled_variances as pooled_variances
from .base import require_engine as require_engine
from .base import with_unseen as with_unseen
from .double_loop import DoubleLoop as DoubleLoop
from .double_loop import dual_argument_of as dual_argument_of
from .double_loop import first_class as first_class
from .double_loop import hybrid as hybrid
from .double_loop import site_bounds as site_bounds
from .evidence import LogDeterminant as LogDeterminant
from .evidence import PriorEvidence as PriorEvidence
from .evidence import evidence_bound as evidence_bound
from .evidence import learn_hyperparameters as learn_hyperparameters
from .evidence import log_evidence as log_evidence
from .evidence import prior_log_normaliser as prior_log_normaliser
from .evidence import site_groups as site_groups

__all__ = [
    "DoubleLoop",
    "Engine",
    "LoopEngine",
    "WarmStart",
    "evidence_bound",
    "learn_hyperparameters",
    "log_evidence",
]
