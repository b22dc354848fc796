"""Strategies by name."""

from __future__ import annotations

from collections.abc import Callable

from mri_design.design import (
    Equispaced,
    GoldenRatio,
    InformationGain,
    LanczosInformationGain,
    LowPass,
    RandomLines,
    Strategy,
    VariableDensity,
)
from mri_design.errors import UsageError

__all__ = ["TUNED_FAMILIES", "make_strategy", "strategy_names"]

_MAKERS: dict[str, Callable[[], Strategy]] = {
    "information-gain": InformationGain,
    "information-gain-lanczos": LanczosInformationGain,
    "random": RandomLines,
    "fastmri-random": lambda: RandomLines(0.08, name="fastmri-random"),
    "fastmri-equispaced": Equispaced,
    "vd-polynomial": lambda: VariableDensity("polynomial", 4.0),
    "vd-gaussian": lambda: VariableDensity("gaussian", 20.0, name="vd-gaussian"),
    "low-pass": LowPass,
    "golden-ratio": GoldenRatio,
}

TUNED_FAMILIES: dict[str, tuple[float, ...]] = {
    "vd-polynomial": (1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0),
    "vd-gaussian": (4.0, 8.0, 15.0, 30.0, 60.0, 120.0),
}
"""Families with a power, and the powers that tuning on training scans tries."""


def strategy_names() -> tuple[str, ...]:
    """Every name `make_strategy` knows."""
    return tuple(_MAKERS)


def make_strategy(name: str) -> Strategy:
    """The strategy called ``name``; ``vd-polynomial:3`` and ``vd-gaussian:12`` set the density's power.

    Raises
    ------
    UsageError
        For an unknown name or a power that is not a number of zero or more.
    """
    family, colon, power = name.partition(":")
    if family not in _MAKERS:
        raise UsageError(f"unknown strategy {family!r}; known are: {', '.join(_MAKERS)}")
    if not colon:
        return _MAKERS[family]()
    if family not in TUNED_FAMILIES:
        raise UsageError(f"strategy {family!r} takes no power (got {name!r})")
    try:
        value = float(power)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise UsageError(f"strategy {name!r}: the power must be a number of zero or more")
    return VariableDensity("polynomial" if family == "vd-polynomial" else "gaussian", value, name=name)
