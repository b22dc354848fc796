"""What is kept of a decision: what was predicted of its line and, once that is measured, what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, DesignStep, LineOutcome, StepCost
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array

__all__ = [
    "Inferred",
    "decided",
    "found_energies",
    "image_energy",
    "innovation",
    "innovations",
    "measured",
    "most_information",
]


@dataclass(frozen=True)
class Inferred:
    """One inference of all slices: the posteriors that the strategy sees, those of other models, and what it took.

    Parameters
    ----------
    posteriors : list of GaussianPosterior
        Of the models in use; empty for rules that need none.
    models : tuple of int
        The models in use; empty without candidates to choose from.
    rivals : list of list of GaussianPosterior or None
        Per slice and candidate, the models in use among them; None for one that was not inferred.
    matvecs : int
        Products with A, all models together.
    converged : bool
        Whether all of them did.
    """

    posteriors: list[GaussianPosterior]
    models: tuple[int, ...] = ()
    rivals: list[list[GaussianPosterior | None]] = field(default_factory=list)
    matvecs: int = 0
    converged: bool = True


def innovation(mr_slice: MRSlice, posterior: GaussianPosterior, line: int) -> float:
    """Energy of y - X_* mean on one line, noise included."""
    return float(np.sum(np.abs(mr_slice.acquire([line]) - mr_slice.measurement([line])(posterior.mean)) ** 2))


def found_energies(mr_slice: MRSlice, image: Array, lines: Sequence[int]) -> NDArray[np.float64]:
    """Energy of y - X_* image on every one of ``lines``, (lines,): by one transform, but for lines with holes."""
    if mr_slice.samples is not None:
        each = (mr_slice.acquire([line]) - mr_slice.measurement([line])(image) for line in lines)
        return np.array([float(np.sum(np.abs(found) ** 2)) for found in each])
    found = mr_slice.acquire(lines) - mr_slice.measurement(lines)(image)
    return mr_slice.candidates.energies(found, lines)


def innovations(
    slices: Sequence[MRSlice], posteriors: Sequence[GaussianPosterior], lines: Sequence[int]
) -> NDArray[np.float64]:
    """`innovation` of every one of ``lines``, summed over slices, (lines,): one transform for all of them."""
    total = np.zeros(len(lines))
    for mr_slice, posterior in zip(slices, posteriors, strict=True):
        total += found_energies(mr_slice, posterior.mean, lines)
    return total


def image_energy(posteriors: Sequence[GaussianPosterior]) -> float:
    """Energy of the means, all slices together."""
    return float(sum(np.sum(np.abs(p.mean) ** 2, dtype=np.float64) for p in posteriors))


def most_information(energy: float, noise: float, values: int) -> float:
    """Nats of information that a line of complex values can hold at most.

    An upper bound, reached if the values are independent and equally uncertain (Hadamard's and Jensen's inequalities).

    Parameters
    ----------
    energy, noise : float
        Of the error on the line, and of the noise in its data, summed over all values.
    values : int
        How many there are.
    """
    return values * float(np.log1p(energy / noise))


def decided(
    slices: Sequence[MRSlice],
    inferred: Inferred,
    choice: Choice,
    block: Sequence[DesignStep],
    cost: StepCost,
    together: bool = False,
) -> DesignStep:
    """The decision before its line is measured: its forecast is completed, its outcome is what is predicted of it.

    Parameters
    ----------
    slices : sequence of MRSlice
        Whose noise and coils a line is measured with.
    inferred : Inferred
        What the strategy saw.
    choice : Choice
        What it chose.
    block : sequence of DesignStep
        Decisions that were made from the same inference before this one.
    cost : StepCost
        What it took.
    together : bool
        Whether the lines of the block are chosen from one look, so that the first forecast speaks for all.
    """
    forecast, posteriors = replace(choice.forecast, models=inferred.models), inferred.posteriors
    outcome = LineOutcome()
    known = block[0].forecast if block and together else forecast
    believed = known.believed
    if posteriors and known.expected is not None and believed is not None:
        # The mean is that of the block's start, and so is what was expected of it.
        begun = block[0].forecast.expected if block else None
        expected = known.expected if begun is None else begun
        values = [s.candidates.data(s.kspace, [choice.line]).size for s in slices]
        noise = sum(2 * s.noise_variance * count for s, count in zip(slices, values, strict=True))
        outcome = LineOutcome(predicted_energy=float(expected[choice.line] + noise))
        forecast = replace(forecast, image_energy=image_energy(posteriors))
        if np.isnan(forecast.information):
            most = most_information(float(believed[choice.line]), noise, sum(values))
            forecast = replace(forecast, information=most)
    return DesignStep(replace(choice, forecast=forecast, pending=len(block)), outcome, cost)


def measured(
    slices: Sequence[MRSlice], inferred: Inferred, steps: Sequence[DesignStep], together: bool = False
) -> list[DesignStep]:
    """A block of decisions once its lines have been measured: what they hold is looked up in the slices.

    Parameters
    ----------
    slices : sequence of MRSlice
        Where the lines' data are.
    inferred : Inferred
        What the block was decided from.
    steps : sequence of DesignStep
        From `decided`.
    together : bool
        As there.
    """
    posteriors, lines = inferred.posteriors, [step.line for step in steps]
    energies = innovations(slices, posteriors, lines).tolist() if together and posteriors else []
    known: list[DesignStep] = []
    for number, step in enumerate(steps):
        outcome = replace(step.outcome, model_energies=_energies(slices, inferred.rivals, step.line))
        forecast = steps[0].forecast if together else step.forecast
        if posteriors and forecast.expected is not None:
            found = energies[number] if energies else _found(slices, posteriors, step.line)
            outcome = replace(outcome, actual_energy=found)
        known.append(replace(step, outcome=outcome))
    return known


def _found(slices: Sequence[MRSlice], posteriors: Sequence[GaussianPosterior], line: int) -> float:
    return sum(innovation(s, p, line) for s, p in zip(slices, posteriors, strict=True))


def _energies(
    slices: Sequence[MRSlice], rivals: Sequence[Sequence[GaussianPosterior | None]], line: int
) -> NDArray[np.float64] | None:
    """Energy of a line's innovation under every candidate that was inferred; None without candidates."""
    most = max((len(each) for each in rivals), default=0)
    if most < 2:
        return None
    energies = np.full((len(slices), most), np.nan)
    for row, mr_slice, each in zip(energies, slices, rivals, strict=True):
        for number, posterior in enumerate(each):
            if posterior is not None:
                row[number] = innovation(mr_slice, posterior, line)
    return energies
