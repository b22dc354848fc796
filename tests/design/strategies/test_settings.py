"""Every strategy: its settings are keywords, wrong ones are refused in words, and it inherits from no other."""

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mri_design.design.strategies
from mri_design import Calibrated, InformationGain, InputError, LanczosInformationGain, OracleResidual, VariableDensity
from mri_design.design.strategies.expected_error import ExpectedError
from mri_design.design.strategies.line_masks import (
    Equispaced,
    GoldenDensity,
    GoldenRatio,
    HalfDensity,
    JitteredDensity,
    RandomLines,
    RegularLines,
    SystematicDensity,
)
from mri_design.design.strategies.oracles import OracleGreedy, OracleHole
from mri_design.design.strategies.trained import Hybrid, TrainedOrder
from mri_design.design.trained_design import TrainedDesign

LEARNT = TrainedDesign(grid=(4, 4), lines=(2, 1), n_start=1, profile=np.ones((2, 4)), errors=np.ones(2), rule="rule")
BESIDE_STRATEGIES = {
    "Oracle",
    "_Walk",
    "ErrorModel",
    "_Scan",
    "CentreSettings",
    "DensitySettings",
    "LineKnowledge",
    "_Lines",
    "EarlierScan",
    "SecondOpinion",
    "TrainingScans",
    "_Progress",
}


def strategies() -> list[type]:
    """Every class in the folder that can choose a line."""
    folder = Path(mri_design.design.strategies.__path__[0])
    modules = [import_module(f"mri_design.design.strategies.{path.stem}") for path in sorted(folder.glob("[!_]*.py"))]
    own = [v for m in modules for v in vars(m).values() if isinstance(v, type) and v.__module__ == m.__name__]
    return [kind for kind in own if kind.__name__ not in BESIDE_STRATEGIES]


def test_all_strategies_are_found() -> None:
    assert len(strategies()) == 20 and all(hasattr(kind, "choose") for kind in strategies())


@pytest.mark.parametrize("kind", strategies(), ids=lambda kind: kind.__name__)
def test_a_strategy_inherits_from_no_other(kind: type) -> None:
    assert not [base for base in kind.__mro__[1:] if "choose" in vars(base)]


@pytest.mark.parametrize("kind", strategies(), ids=lambda kind: kind.__name__)
def test_settings_are_keywords(kind: Callable[..., object]) -> None:
    assert all(each.kw_only for each in fields(kind))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        kind(0.5)


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        (Calibrated, {"draws": -3}, "draws"),
        (Calibrated, {"draws": 0.5}, "draws"),
        (Calibrated, {"online": 3}, "online"),
        (Calibrated, {"error_model": "one coil"}, "error_model"),
        (ExpectedError, {"draws": 0}, "draws"),
        (InformationGain, {"draws": 0}, "draws"),
        (LanczosInformationGain, {"steps": 0}, "steps"),
        (Hybrid, {"design": LEARNT, "draws": 0}, "draws"),
        (Hybrid, {"design": LEARNT, "beta": -1.0}, "beta"),
        (Hybrid, {"design": "order.npz"}, "design"),
        (TrainedOrder, {"design": None}, "design"),
        (OracleResidual, {"truths": -1}, "truths"),
        (OracleHole, {"truths": -1}, "truths"),
        (OracleResidual, {"truths": (1.0,)}, "truths[0]"),
        (OracleResidual, {"truths": np.ones((2, 4))}, "truths"),
        (OracleGreedy, {"truths": (np.ones(4),)}, "truths[0]"),
        (OracleGreedy, {"reconstruct": "mean"}, "reconstruct"),
        (RegularLines, {"spacing": 0}, "line spacing"),
        (RandomLines, {"centre_fraction": 1.5}, "centre fraction"),
        (Equispaced, {"centre_fraction": -0.1}, "centre fraction"),
        (GoldenRatio, {"centre_fraction": None}, "centre fraction"),
        *(
            (kind, wrong, field)
            for kind in (VariableDensity, HalfDensity, JitteredDensity, SystematicDensity, GoldenDensity)
            for wrong, field in (
                ({"family": "uniform"}, "density family"),
                ({"power": -1.0}, "density power"),
                ({"centre": 0}, "density centre"),
            )
        ),
    ],
)
def test_wrong_settings_are_refused(kind: Callable[..., object], settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        kind(**settings)
    assert caught.value.field == field
