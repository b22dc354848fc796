"""Strategies by name: those that choose phase-encode lines, samples of a plane, or shots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from mri_design.design.plane.blind import CaipiSamples, LowPassSamples, RandomSamples
from mri_design.design.plane.by_posterior import ExpectedErrorSamples, InformationGainSamples
from mri_design.design.plane.calibrated import CalibratedSamples
from mri_design.design.plane.densities import SampleDensity
from mri_design.design.plane.oracles import OracleHoleSamples, OracleResidualSamples
from mri_design.design.plane.poisson_disc import PoissonDisc
from mri_design.design.plane.training_residual import TrainingResidualSamples
from mri_design.design.shots.by_posterior import InformationGainShots
from mri_design.design.shots.fixed import FixedAngles
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
from mri_design.design.strategies.training_scans import TrainingScans
from mri_design.design.strategy import Strategy
from mri_design.errors import UsageError, did_you_mean
from mri_design.experiment.trained_file import load_trained
from mri_design.operators.encodings import KINDS, EncodingName
from mri_design.whole_numbers import whole_number

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

_PLANE_MAKERS: dict[str, Callable[[], Strategy]] = {
    "calibrated": CalibratedSamples,
    "information-gain": InformationGainSamples,
    "expected-error": ExpectedErrorSamples,
    "random": lambda: RandomSamples(power=0.0, name="random"),
    "vd-polynomial": RandomSamples,
    "poisson-disc": PoissonDisc,
    "caipi": CaipiSamples,
    "low-pass": LowPassSamples,
    "oracle-residual": OracleResidualSamples,
    "oracle-hole": OracleHoleSamples,
    "residual-greedy": TrainingResidualSamples,
}

_SHOT_MAKERS: dict[str, Callable[[], Strategy]] = {
    "information-gain": InformationGainShots,
    "half-turn": FixedAngles,
    "full-turn": lambda: FixedAngles(kind="full-turn", name="full-turn"),
    "one-missing": lambda: FixedAngles(kind="one-missing", name="one-missing"),
    "golden": lambda: FixedAngles(kind="golden", name="golden"),
    "tiny-golden": lambda: FixedAngles(kind="golden", tiny=7, name="tiny-golden"),
}

FROM_FILES = ("trained", "hybrid")
"""Families that come as FAMILY:FILE, from what training wrote."""

INFORMED = ("calibrated",)
"""Families that may come as FAMILY:FILE: training scans then have a say."""

ORACLES: dict[str, Oracle] = {
    "oracle-residual": OracleResidual(),
    "oracle-hole": OracleHole(),
    "oracle-greedy": OracleGreedy(),
}
"""Strategies that look at the true image; they cannot choose before `Oracle.knowing` has given it to them."""

TRAINING_RULES = ("residual-greedy",)
"""Strategies that look at the truth of training scans: they make one mask for scans that were not looked at."""

_DETERMINISTIC = ("low-pass", "golden-ratio", "trained", "caipi", *_SHOT_MAKERS)

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

PLANE_TUNED_FAMILIES: dict[str, tuple[float, ...]] = {
    "vd-polynomial": (2.0, 4.0, 6.0, 8.0, 12.0, 16.0),
    "poisson-disc": (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0),
}
"""The same for samples of a plane."""


def _makers(encoding: EncodingName) -> Mapping[str, Callable[[], Strategy]]:
    return {"lines": _MAKERS, "plane": _PLANE_MAKERS}.get(encoding, _SHOT_MAKERS)


def _families(encoding: EncodingName) -> tuple[str, ...]:
    return (*_makers(encoding), *(FROM_FILES if encoding == "lines" else ()))


def _chosen(encoding: EncodingName) -> str:
    return {"lines": "lines", "plane": "samples of a plane"}.get(encoding, "spokes and arms of spirals")


def tuned_families(encoding: EncodingName) -> Mapping[str, tuple[float, ...]]:
    """`TUNED_FAMILIES`, or `PLANE_TUNED_FAMILIES`; none of shots."""
    return {"lines": TUNED_FAMILIES, "plane": PLANE_TUNED_FAMILIES}.get(encoding, {})


def strategy_names(encoding: EncodingName = "lines") -> tuple[str, ...]:
    """Every name `make_strategy` knows."""
    return tuple(_makers(encoding))


def make_strategy(name: str, encoding: EncodingName = "lines") -> Strategy:
    """The strategy called ``name`` that chooses lines or, for the encoding "plane", samples, for others shots.

    ``vd-polynomial:3`` and its like set the density's power, ``regular:4`` the distance of the lines,
    ``trained:FILE``, ``hybrid:FILE`` and ``calibrated:FILE`` read what training wrote; in a plane,
    ``vd-polynomial:8`` and ``poisson-disc:3`` set the density's power, ``caipi:2x3`` and ``caipi:2x3x1`` the distances
    and the shift.
    `ORACLES` and `TRAINING_RULES` cannot choose before they were given truths.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    InputError
        Where the file cannot be used.
    """
    check_strategy_name(name, encoding)
    family, colon, setting = name.partition(":")
    if family in FROM_FILES:
        rule = TrainedOrder if family == "trained" else Hybrid
        return rule(design=load_trained(Path(setting)), name=strategy_label(name))
    if reads_file(name):
        scans = TrainingScans(design=load_trained(Path(setting)))
        return Calibrated(opinion=scans, name=strategy_label(name))
    made = _makers(encoding)[family]()
    if not colon:
        return made
    if isinstance(made, CaipiSamples):
        rows, columns, *shift = _caipi(name, setting)
        return replace(made, spacing=(rows, columns), shift=shift[0] if shift else None, name=name)
    if isinstance(made, RegularLines):
        return replace(made, spacing=_spacing(name, setting), name=name)
    assert isinstance(made, DensitySettings | SampleDensity)
    settings: dict[str, Any] = {"power": _power(name, setting), "name": name}
    return replace(made, **settings)


def chooses_angles(name: str, encoding: EncodingName) -> bool:
    """Whether a strategy chooses among angles that a recipe has; sets of shots have angles of their own.

    Raises
    ------
    UsageError, InputError
        As `make_strategy`.
    """
    return KINDS[encoding].shots and not isinstance(make_strategy(name, encoding), FixedAngles)


def learns_from_scans(name: str, encoding: EncodingName) -> bool:
    """Whether a comparison makes something of training scans for a strategy: a power, or a mask designed on them.

    Raises
    ------
    UsageError, InputError
        As `make_strategy`.
    """
    if name in TRAINING_RULES or name in tuned_families(encoding):
        return True
    return name not in ORACLES and make_strategy(name, encoding).needs_posterior


def check_strategy_name(name: str, encoding: EncodingName = "lines") -> None:
    """Refuse a name that `make_strategy` does not know for the encoding; files are not looked for.

    Raises
    ------
    UsageError
        For an unknown name, a power that is not a number of zero or more, or a file that is not named.
    """
    family, colon, setting = str(name).partition(":")
    makers, tuned = _makers(encoding), tuned_families(encoding)
    kinds: tuple[EncodingName, ...] = ("lines", "plane", "radial")
    others = [_chosen(kind) for kind in kinds if family in _families(kind)]
    if others and family not in _families(encoding):
        here, there = _chosen(encoding), ", ".join(makers)
        raise UsageError(f"strategy {family!r} chooses {' or '.join(others)}; for {here} there are: {there}")
    if reads_file(name) and encoding != "lines":
        raise UsageError(f"strategy {family!r} takes a file of mri-design train where it chooses lines, but none here")
    if reads_file(name):
        if not setting:
            raise UsageError(f"strategy {family!r} needs a file from mri-design train: {family}:FILE")
        return
    if family not in makers:
        near = did_you_mean(family, _families(encoding))
        meant = f" ({near[:1].lower()}{near[1:]})" if near else ""
        known = ", ".join(f"{name}:FILE" if name in FROM_FILES else name for name in _families(encoding))
        raise UsageError(f"unknown strategy {family!r}{meant}; known are: {known}")
    if not colon:
        return
    if family == "caipi":
        _caipi(name, setting)
        return
    if family not in tuned:
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
    distance = whole_number(text)
    if distance is None or not 1 <= distance < 10**6:
        raise UsageError(f"strategy {name!r}: the distance of the lines must be a whole number of one or more")
    return distance


def _caipi(name: str, text: str) -> list[int]:
    numbers = [whole_number(part) for part in text.split("x")]
    parts = [number for number in numbers if number is not None and 0 <= number < 10**4]
    if len(numbers) not in (2, 3) or len(parts) < len(numbers) or min(parts[:2]) < 1:
        raise UsageError(f"strategy {name!r}: give the distances along ky and kz as 2x3, or with a shift as 2x3x1")
    rows, columns, *shift = parts
    if shift and shift[0] >= columns:
        raise UsageError(
            f"strategy {name!r}: a shift of {shift[0]} is the same as one of {shift[0] % columns}, as samples lie "
            f"{columns} apart along kz; give one from 0 to {columns - 1}"
        )
    return [rows, columns, *shift]


def is_random(name: str, encoding: EncodingName = "lines") -> bool:
    """Whether another seed gives another mask, with no look at the data."""
    family = name.partition(":")[0]
    known = (*_DETERMINISTIC, *FROM_FILES, *INFORMED, *ORACLES)
    return family not in known and not make_strategy(name, encoding).needs_posterior


def reads_file(name: str) -> bool:
    """Whether a file from `mri-design train` stands in the name, FAMILY:FILE."""
    family, colon, _ = str(name).partition(":")
    return family in FROM_FILES or (family in INFORMED and bool(colon))


def strategy_files(names: Sequence[str]) -> list[str]:
    """The files that strategies read, each once."""
    return list(dict.fromkeys(name.partition(":")[2] for name in names if reads_file(name)))


def strategy_label(name: str) -> str:
    """The name without the folders of a file, for tables and manifests."""
    family, colon, setting = name.partition(":")
    return f"{family}{colon}{PureWindowsPath(setting).name}" if reads_file(name) else name
