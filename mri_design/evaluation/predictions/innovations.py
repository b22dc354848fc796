"""Innovations of a design's lines: their energy as it was predicted, and as it was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trace import DesignTrace

WINDOW = 8
"""Lines that the running ratio looks back on."""


@dataclass(frozen=True)
class Innovations:
    """Energy of every chosen line's innovation; NaN for lines that an exchange added, which nothing predicted.

    Parameters
    ----------
    predicted : float array, shape (step,)
        As the strategy believed it, noise included.
    measured : float array, shape (step,)
        As it was found.
    noise : float array, shape (step,)
        The noise's share of both; NaN where the strategy did not predict every line.
    running_ratio : float array, shape (step,)
        Geometric mean of predicted over measured on the last `WINDOW` lines.
    """

    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    noise: NDArray[np.float64]
    running_ratio: NDArray[np.float64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Steps whose energy was predicted and measured."""
        return np.isfinite(self.running_ratio)

    @property
    def ratio(self) -> float:
        """Predicted over measured energy, geometric mean over all known lines: below 1 is overconfident."""
        return float(np.exp(np.mean(np.log(self.predicted[self.known] / self.measured[self.known]))))


def innovations(trace: DesignTrace) -> Innovations | None:
    """Predicted and measured energy of the innovation at every step; None where a rule predicts nothing."""
    measured = np.array([step.outcome.actual_energy for step in trace.steps])
    noise = np.array([_noise_share(trace, index) for index in range(len(trace.steps))])
    predicted = np.array([_believed(trace, index, share) for index, share in enumerate(noise)])
    known = np.isfinite(predicted) & np.isfinite(measured) & (predicted > 0) & (measured > 0)
    if not known.any():
        return None
    logs = np.log(predicted[known] / measured[known])
    running = np.full(len(measured), np.nan)
    running[known] = np.exp([np.mean(logs[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(logs))])
    nowhere = np.where(known, 1.0, np.nan)
    return Innovations(predicted * nowhere, measured * nowhere, noise, running)


def _noise_share(trace: DesignTrace, index: int) -> float:
    """The noise's part of a step's predicted energy; NaN without a prediction for every line."""
    step = trace.steps[index]
    expected = trace.block_start(index).forecast.expected  # a block's energies are those expected there
    return float("nan") if expected is None else step.outcome.predicted_energy - float(expected[step.line])


def _believed(trace: DesignTrace, index: int, noise: float) -> float:
    step = trace.steps[index]
    corrected = trace.block_start(index).forecast.corrected
    if corrected is None or np.isnan(noise):
        return step.outcome.predicted_energy
    return float(corrected[step.line]) + noise
