"""A design of two decisions whose expected and measured energies are round numbers."""

from __future__ import annotations

import numpy as np

from mri_design.design import DesignStep, DesignTrace
from tests.design_steps import design_step

NOISE = 0.5  # per real component
SHARE = 2 * NOISE * 10  # of a line of ten complex values


def step(line: int, expected: float, found: float = 30.0, score: float = 4.0, pending: int = 0) -> DesignStep:
    """Every line expected to hold ``expected``, noise apart."""
    scores = np.full(8, np.nan)
    scores[line] = score
    energies = np.full(8, expected)
    return design_step(
        line,
        scores=scores,
        predicted_energy=expected + SHARE,
        actual_energy=found,
        expected=energies,
        image_energy=1000.0,
        pending=pending,
        information=score / 2,
    )


TRACE = DesignTrace("information-gain", 8, (4, 3), (step(6, 20.0), step(0, 5.0, found=60.0, score=3.0)))
