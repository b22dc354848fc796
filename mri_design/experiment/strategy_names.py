"""Strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from mri_design.design.strategies.baselines import (
    Equispaced,
    GoldenRatio,
    HalfDensity,
    LowPass,
    RandomLines,
    RegularLines,
    VariableDensity,
)
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategies.densities import DensitySettings
from mri_design.design.strategies.even_draws import GoldenDensity, JitteredDensity, SystematicDensity
from mri_design.design.strategies.expected_error import AOptimal
from mri_design.design.strategies.information_gain import InformationGain, LanczosInformationGain
from mri_design.design.strategies.oracles import Oracle, OracleGreedy, OracleHole, OracleResidual
from mri_design.design.strategies.trained import Hybrid, TrainedOrder
from mri_design.design.strategies.training_residual import TrainingResidual
from mri_design.design.strategy import Strategy
from mri_design.errors import UsageError, did_you_mean
from mri_design.experiment.trained_file import load_trained

__all__ = [
    "FROM_FILES",
    "ORACLES",
    "TRAINING_RULES",
    "TUNED_FAMILIES",
    "check_strategy_name",
    "is_random",
    "make_strategy",
    "strategy_files",
    "strategy_label",
    "strategy_names",
]

_MAKERS: dict[str, Callable[[], Strategy]] = {
    "calibrated": Calibrated,
    "information-gain": InformationGain,
    "information-gain-lanczos": LanczosInformationGain,
    "expected-error": AOptimal,
    "random": RandomLines,
    "fastmri-random": lambda: RandomLines(centre_fraction=0.08, name="fastmri-random"),
    "fastmri-equispaced": Equispaced,
    "vd-polynomial": lambda: VariableDensity(family="polynomial", power=4.0),
    "vd-gaussian": lambda: VariableDensity(family="gaussian", power=20.0, name="vd-gaussian"),
    "vd-jittered": JitteredDensity,
    "vd-systematic": SystematicDensity,
    "vd-golden": GoldenDensity,
    "vd-half": HalfDensity,
    "regular": RegularLines,
    "low-pass": LowPass,
    "golden-ratio": GoldenRatio,
    "oracle-residual": OracleResidual,
    "oracle-hole": OracleHole,
    "oracle-greedy": OracleGreedy,
    "residual-greedy": TrainingResidual,
}

FROM_FILES = ("trained", "hybrid")
"""Families that come as FAMILY:FILE, from what training wrote."""

ORACLES: dict[str, Oracle] = {
    "oracle-residual": OracleResidual(),
    "oracle-hole": OracleHole(),
    "oracle-greedy": OracleGreedy(),
}
"""Strategies that look at the true image; they cannot choose before `Oracle.knowing` has given it to them."""

TRAINING_RULES: dict[str, TrainingResidual] = {"residual-greedy": TrainingResidual()}
"""Strategies that look at the truth of training scans: they make one mask for scans that were not looked at."""

_DETERMINISTIC = ("low-pass", "golden-ratio", "trained")

_POLYNOMIAL_POWERS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)

TUNED_FAMILIES: dict[str, tuple[float, ...]] = {
    "vd-polynomial": _POLYNOMIAL_POWERS,
    "vd-gaussian": (4.0, 8.0, 15.0, 30.0, 60.0, 120.0),
    "vd-jittered": _POLYNOMIAL_POWERS,
    "vd-systematic": _POLYNOMIAL_POWERS,
    "vd-golden": _POLYNOMIAL_POWERS,
    "vd-half": _POLYNOMIAL_POWERS,
    "regular": (2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
}
"""Families with a power (regular: the distance of the lines), and the powers that tuning on training scans tries."""


def strategy_names() -> tuple[str, ...]:
    """Every name `make_strategy` knows."""
    return tuple(_MAKERS)


def make_strategy(name: str) -> Strategy:
    """The strategy called ``name``.

    ``vd-polynomial:3`` and its like set the density's power, ``regular:4`` the distance of the lines,
    ``trained:FILE`` and ``hybrid:FILE`` read what training wrote. `ORACLES` and `TRAINING_RULES` cannot choose before
    they were given truths.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    InputError
        Where the file cannot be used.
    """
    check_strategy_name(name)
    family, colon, setting = name.partition(":")
    if family in FROM_FILES:
        rule = TrainedOrder if family == "trained" else Hybrid
        return rule(design=load_trained(Path(setting)), name=strategy_label(name))
    made = _MAKERS[family]()
    if not colon:
        return made
    if isinstance(made, RegularLines):
        return replace(made, spacing=_spacing(name, setting), name=name)
    assert isinstance(made, DensitySettings)
    settings: dict[str, Any] = {"power": _power(name, setting), "name": name}
    return replace(made, **settings)


def check_strategy_name(name: str) -> None:
    """Refuse a name that `make_strategy` does not know; files are not looked for.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    """
    family, colon, setting = str(name).partition(":")
    if family in FROM_FILES:
        if not setting:
            raise UsageError(f"strategy {family!r} needs a file from mri-design train: {family}:FILE")
        return
    if family not in _MAKERS:
        near = did_you_mean(family, (*_MAKERS, *FROM_FILES))
        meant = f" ({near[:1].lower()}{near[1:]})" if near else ""
        known = ", ".join((*_MAKERS, *(f"{kind}:FILE" for kind in FROM_FILES)))
        raise UsageError(f"unknown strategy {family!r}{meant}; known are: {known}")
    if not colon:
        return
    if family not in TUNED_FAMILIES:
        raise UsageError(f"strategy {family!r} takes no power (got {name!r})")
    (_spacing if family == "regular" else _power)(name, setting)


def _power(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise UsageError(f"strategy {name!r}: the power must be a number of zero or more")
    return value


def _spacing(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) < 10**6):
        raise UsageError(f"strategy {name!r}: the distance of the lines must be a whole number of one or more")
    return int(text)


def is_random(name: str) -> bool:
    """Whether another seed gives another mask, with no look at the data."""
    family = name.partition(":")[0]
    return family not in (*_DETERMINISTIC, *FROM_FILES, *ORACLES) and not make_strategy(name).needs_posterior


def strategy_files(names: Sequence[str]) -> list[str]:
    """The files that strategies read, each once."""
    parts = [name.partition(":") for name in names]
    return list(dict.fromkeys(setting for family, _, setting in parts if family in FROM_FILES))


def strategy_label(name: str) -> str:
    """The name without the folders of a file, for tables and manifests."""
    family, colon, setting = name.partition(":")
    return f"{family}{colon}{PureWindowsPath(setting).name}" if family in FROM_FILES else name
