"""What is kept of a decision: its line is looked up in the slices and held against what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategy import Choice
from mri_design.design.trace import DesignStep
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior

__all__ = ["Inferred", "image_energy", "innovation", "most_information", "record"]


@dataclass(frozen=True)
class Inferred:
    """One inference of all slices: what the strategy sees, what the losing models say, what it took.

    Parameters
    ----------
    posteriors : list of GaussianPosterior
        Of the models in use; empty for rules that need none.
    models : tuple of int
        The models in use; empty without candidates to choose from.
    rivals : list of list of GaussianPosterior or None
        Per slice and candidate, the models in use among them; None where one sat out.
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


def innovation(one: MRSlice, posterior: GaussianPosterior, line: int) -> float:
    """Energy of y - X_* mean on one line, noise included."""
    return float(np.sum(np.abs(one.acquire([line]) - one.measurement([line])(posterior.mean)) ** 2))


def image_energy(posteriors: Sequence[GaussianPosterior]) -> float:
    """Energy of the means, all slices together."""
    return float(sum(np.sum(np.abs(p.mean) ** 2, dtype=np.float64) for p in posteriors))


def most_information(energy: float, noise: float, values: int) -> float:
    """Nats that a line of complex values can tell at most.

    Exactly that where its values are independent and equally uncertain, less elsewhere (Hadamard's and Jensen's
    inequalities).

    Parameters
    ----------
    energy, noise : float
        Of the error on the line, and of the noise in its data, summed over all values.
    values : int
        How many there are.
    """
    return values * float(np.log1p(energy / noise))


def record(
    slices: Sequence[MRSlice],
    inferred: Inferred,
    choice: Choice,
    first: Sequence[DesignStep],
    pending: int,
    converged: bool,
    matvecs: int,
    seconds: float,
) -> DesignStep:
    """What is kept of a decision; its line is looked up in the slices."""
    predicted, actual, energy, information = np.nan, np.nan, np.nan, choice.information
    posteriors = inferred.posteriors
    if posteriors and choice.expected is not None:
        # The mean is that of the block's start, and so is what was expected of it.
        expected = choice.expected if not first or first[0].expected is None else first[0].expected
        noise = sum(s.noise_variance * s.encoding([choice.line]).out_size for s in slices)
        predicted = float(expected[choice.line] + noise)
        actual = sum(innovation(s, p, choice.line) for s, p in zip(slices, posteriors, strict=True))
        energy = image_energy(posteriors)
        if np.isnan(information):
            believed = choice.expected if choice.corrected is None else choice.corrected
            values = sum(s.encoding([choice.line]).out_size // 2 for s in slices)
            information = most_information(float(believed[choice.line]), noise, values)
    return DesignStep(
        choice.line,
        choice.scores,
        predicted,
        actual,
        converged,
        matvecs,
        seconds,
        choice.expected,
        choice.corrected,
        energy,
        pending,
        information,
        inferred.models,
        _energies(slices, inferred.rivals, choice.line),
    )


def _energies(
    slices: Sequence[MRSlice], rivals: Sequence[Sequence[GaussianPosterior | None]], line: int
) -> NDArray[np.float64] | None:
    """Energy of a line's innovation under every candidate that was inferred; None without candidates."""
    most = max((len(each) for each in rivals), default=0)
    if most < 2:
        return None
    energies = np.full((len(slices), most), np.nan)
    for row, one, each in zip(energies, slices, rivals, strict=True):
        for number, posterior in enumerate(each):
            if posterior is not None:
                row[number] = innovation(one, posterior, line)
    return energies
