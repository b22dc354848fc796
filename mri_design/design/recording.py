"""Record a decision: the prediction for its line and, once that is measured, the energy found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, DesignStep, LineOutcome, StepCost
from mri_design.design.keeping import Found
from mri_design.design.posteriors import image_energy
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array


@dataclass(frozen=True)
class Inferred:
    """One inference of all slices: the posteriors, which the strategy sees, and what it took.

    Parameters
    ----------
    posteriors : sequence of GaussianPosterior
        Wherever they are kept; empty for rules that need none.
    found : sequence of Found
        Means and cost of every slice; empty for rules that need none.
    """

    posteriors: Sequence[GaussianPosterior] = ()
    found: Sequence[Found] = ()

    @property
    def means(self) -> list[Array]:
        """Posterior mean of every slice, (ky, kx)."""
        return [found.mean for found in self.found]

    @property
    def matvecs(self) -> int:
        """Products with A, all slices together."""
        return sum(found.matvecs for found in self.found)

    @property
    def converged(self) -> bool:
        """True where inference converged on all slices."""
        return all(found.converged for found in self.found)


def innovation(mr_slice: MRSlice, image: Array, line: int) -> float:
    """Energy of y - X_* image on one line, noise included."""
    return float(np.sum(np.abs(mr_slice.acquire([line]) - mr_slice.measurement([line])(image)) ** 2))


def found_energies(mr_slice: MRSlice, image: Array, lines: Sequence[int]) -> NDArray[np.float64]:
    """Energy of y - X_* image on every one of ``lines``, (lines,): by one transform, but for lines with holes."""
    if mr_slice.samples is not None:
        each = (mr_slice.acquire([line]) - mr_slice.measurement([line])(image) for line in lines)
        return np.array([float(np.sum(np.abs(found) ** 2)) for found in each])
    found = mr_slice.acquire(lines) - mr_slice.measurement(lines)(image)
    return mr_slice.candidates.energies(found, lines)


def innovations(slices: Sequence[MRSlice], means: Sequence[Array], lines: Sequence[int]) -> NDArray[np.float64]:
    """`innovation` of every one of ``lines``, summed over slices, (lines,): one transform for all of them."""
    return np.asarray(sum(found_energies(s, mean, lines) for s, mean in zip(slices, means, strict=True)))


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
    forecast, outcome = choice.forecast, LineOutcome()
    known = block[0].forecast if block and together else forecast
    predicted = known.predicted
    if inferred.found and known.expected is not None and predicted is not None:
        # The mean is that of the block's start, and so is what was predicted of it.
        begun = block[0].forecast.predicted if block else None
        believed = predicted if begun is None else begun
        values = [s.candidates.data(s.kspace, [choice.line]).size for s in slices]
        noise = sum(2 * s.noise_variance * count for s, count in zip(slices, values, strict=True))
        outcome = LineOutcome(predicted_energy=float(believed[choice.line] + noise))
        forecast = replace(forecast, image_energy=image_energy(inferred.posteriors))
        if np.isnan(forecast.information):
            most = most_information(float(predicted[choice.line]), noise, sum(values))
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
    means, lines = inferred.means, [step.line for step in steps]
    energies = innovations(slices, means, lines).tolist() if together and means else []
    known: list[DesignStep] = []
    for number, step in enumerate(steps):
        forecast = steps[0].forecast if together else step.forecast
        if means and forecast.expected is not None:
            found = energies[number] if energies else _found(slices, means, step.line)
            step = replace(step, outcome=replace(step.outcome, actual_energy=found))
        known.append(step)
    return known


def _found(slices: Sequence[MRSlice], means: Sequence[Array], line: int) -> float:
    return sum(innovation(mr_slice, mean, line) for mr_slice, mean in zip(slices, means, strict=True))
