"""Masks that look at the true image: no designs, but references that designs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.blocks import ChoosesByScore, Scores, mean_around
from mri_design.design.energies import actual_energies, expected_energies
from mri_design.design.strategy import DesignView, best_line
from mri_design.design.trace import Choice
from mri_design.design.trials import NO_TRUTH, relative_error, require_truths
from mri_design.errors import InputError, sequence_of
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

Reconstruct = Callable[[int, Sequence[int]], Array]
"""(number of the slice, lines) -> image (ky, kx)."""


@dataclass(frozen=True, kw_only=True)
class TrueImages:
    """The truth that an oracle looks at. It is no strategy: it chooses nothing.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The true images, one per slice; empty until `knowing` gives them.

    Raises
    ------
    InputError
        For truths that are no images.
    """

    truths: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        wanted = "the true image of every slice, a tuple of arrays (ky, kx)"
        for number, truth in enumerate(sequence_of(np.ndarray, "truths", self.truths, wanted=wanted)):
            if truth.ndim != 2:
                raise InputError(field=f"truths[{number}]", got=f"an array of shape {truth.shape}", wanted="(ky, kx)")

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Self:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Four lines: a mask that looks at the truth needs no larger centre."""
        return readouts.start(target, 4)


@briefly
@dataclass(frozen=True, kw_only=True)
class OracleResidual(TrueImages, ChoosesByScore):
    """Choose the candidates on which the posterior mean is most wrong, as the true image shows.

    It is cheaper than `OracleGreedy`. In a plane most of its lead is luck that no prediction can have.

    results/design-study/README.md compares strategies with it, results/design-study/measurements.md both oracles.
    Its setting is that of `TrueImages`.
    """

    name: str = "oracle-residual"

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Actual residual energies, summed over the slices.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        require_truths(self.name, self.truths, len(view.posteriors))
        return Scores(actual_energies(view.posteriors, view.readouts, self.truths))


REACH = 3.0
"""Candidates: standard deviation of the Gaussian window of `OracleHole`."""


@dataclass(frozen=True, kw_only=True)
class OracleHole(TrueImages, ChoosesByScore):
    """The candidates with the largest expected error, after the truth has corrected the expectation around them.

    `OracleResidual` knows the energy of every single line, which no prediction can. This leave-one-out oracle knows how
    wrong the posterior's expectations are around a candidate, but not on the candidate itself: it multiplies the
    expected energy by the geometric mean of actual over expected energies of the other unmeasured candidates, in a
    Gaussian window. A correction that is smooth over k-space, and learns from innovations as `Calibrated` does, cannot
    know more about energies.

    Parameters
    ----------
    truths : sequence of complex arrays
        As of `TrueImages`.
    draws : int, optional
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go. By
        default those of the readouts.
    """

    draws: int | None = None
    name: str = "oracle-hole"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Eight lines, as a strategy that predicts would begin with; four with several coils."""
        return readouts.start(target, 8 if n_coils == 1 else 4)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Corrected energies; without any other candidate left, the expected ones.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        require_truths(self.name, self.truths, len(view.posteriors))
        actual = actual_energies(view.posteriors, view.readouts, self.truths)
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        tiny = np.finfo(float).tiny
        wrong = np.log(np.maximum(actual, tiny) / np.maximum(expected, tiny))
        found = mean_around(wrong, ~view.candidates.mask, view.readouts.shape, REACH, without_own=True)
        return Scores(expected * np.exp(found))


@dataclass(frozen=True, kw_only=True)
class OracleGreedy(TrueImages):
    """The line after which the error is least: every candidate is reconstructed at every step.

    Parameters
    ----------
    truths : sequence of complex arrays
        As of `TrueImages`.
    reconstruct : callable
        Makes the images; its errors are relative L2 of the magnitude, mean over slices.
    """

    reconstruct: Reconstruct | None = None
    name: str = "oracle-greedy"
    needs_posterior: bool = False

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Self:
        """This oracle with the truth and the reconstruction."""
        return replace(self, truths=tuple(truths), reconstruct=reconstruct)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line that leaves the least error.

        Raises
        ------
        InputError
            Without the truth.
        """
        require_truths(self.name, self.truths, len(self.truths))
        if self.reconstruct is None:
            raise InputError(field=self.name, got="no reconstruction", wanted="one", cure=NO_TRUTH)
        candidates = view.candidates
        scores: NDArray[np.float64] = np.full(candidates.n_lines, np.nan)
        for line in np.flatnonzero(candidates.remaining):
            images = (self.reconstruct(i, (*candidates.acquired, int(line))) for i in range(len(self.truths)))
            scores[line] = -np.mean([relative_error(*pair) for pair in zip(images, self.truths, strict=True)])
        return best_line(scores, candidates)
