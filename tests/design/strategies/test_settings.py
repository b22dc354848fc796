"""Wrong settings of strategies are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mri_design.design import Calibrated, InformationGain, OracleGreedy, OracleHole, OracleResidual, VariableDensity
from tests.refusals import refused


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        (Calibrated, {"draws": -3}, "draws"),
        (Calibrated, {"draws": 0.5}, "draws"),
        (Calibrated, {"online": 3}, "online"),
        (Calibrated, {"error_model": "one coil"}, "error_model"),
        (Calibrated, {"side_information": "order.npz"}, "side_information"),
        *((Calibrated, {"neighbours": (wrong,)}, "neighbours: weight at distance 1") for wrong in (1.5, -0.1, np.nan)),
        (Calibrated, {"neighbours": (True, 0.5)}, "neighbours: weight at distance 1"),
        (InformationGain, {"draws": 0}, "draws"),
        (OracleResidual, {"truths": -1}, "truths"),
        (OracleHole, {"truths": -1}, "truths"),
        (OracleResidual, {"truths": (1.0,)}, "truths[0]"),
        (OracleResidual, {"truths": np.ones((2, 4))}, "truths"),
        (OracleGreedy, {"truths": (np.ones(4),)}, "truths[0]"),
        (VariableDensity, {"family": "uniform"}, "density family"),
        (VariableDensity, {"power": -1.0}, "density power"),
        (VariableDensity, {"power": np.nan}, "density power"),
        (VariableDensity, {"centre": 0}, "density centre"),
        (VariableDensity, {"draw": "even"}, "draw"),
    ],
)
def test_wrong_settings_are_refused(kind: Callable[..., object], settings: dict[str, Any], field: str) -> None:
    with refused(field):
        kind(**settings)
