"""Signal models of echoes and their maximum-likelihood fit, and maps of what they show with their errors."""

from .fit import SignalFit as SignalFit
from .fit import fit_signals as fit_signals
from .models import SignalModel as SignalModel

__all__ = ["SignalFit", "SignalModel", "fit_signals"]
