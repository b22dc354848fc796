"""Masks that look at the true image: no designs, but references that designs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice
from mri_design.design.line_variances import expected_energies, residual_energies
from mri_design.design.posteriors import PerSlice, of_each
from mri_design.design.strategy import DesignView, Strategy, best_line
from mri_design.design.trials import NO_TRUTH, relative_error, require_true_images, require_truths
from mri_design.errors import InputError, require_counts, require_working
from mri_design.operators.base import Array

Reconstruct = Callable[[int, Sequence[int]], Array]
"""(number of the slice, lines) -> image (ky, kx)."""


class Oracle(Strategy, Protocol):
    """A strategy that cannot choose before it was given the truth."""

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Strategy:
        """This oracle with the true image of every slice, and a way to make images from lines."""
        ...


@dataclass(frozen=True, kw_only=True)
class OracleResidual:
    """Choose the line on which the posterior mean is most wrong, as the true image shows; cheaper than `OracleGreedy`.

    results/design-study/README.md compares strategies with it, results/design-study/measurements.md both oracles.

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
    name: str = "oracle-residual"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_true_images(self.truths)

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> OracleResidual:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Four lines: a mask that looks at the truth needs no larger centre."""
        return min(4, target)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest sum of actual residual energies over the slices.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        return best_line(_residuals(self.name, self.truths, view), view.candidates)


REACH = 3.0
"""Lines: standard deviation of the Gaussian weights of `OracleHole`."""


@dataclass(frozen=True, kw_only=True)
class OracleHole:
    """The line with the largest expected error, after the truth has corrected the expectation of its surroundings.

    `OracleResidual` knows the energy of every single line, which no prediction can. This one knows how wrong the
    posterior's expectations are around a line, with a hole where the line itself is: it multiplies the line's expected
    energy by the Gaussian geometric mean of actual over expected energies of the other unmeasured lines. A correction
    that is smooth over k-space, and learns from innovations as `Calibrated` does, cannot know more about energies.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The images, one per slice; none before `knowing`.
    draws : int
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go.

    Raises
    ------
    InputError
        For truths that are no images, or no draw.
    """

    truths: tuple[Array, ...] = ()
    draws: int = 12
    name: str = "oracle-hole"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_true_images(self.truths)
        require_counts(draws=self.draws, least=1)

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> OracleHole:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Eight lines, as a strategy that predicts would begin with; four with several coils."""
        return min(target, 8 if n_coils == 1 else 4)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest corrected energy; without any other line left, the largest expected one.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        actual = _residuals(self.name, self.truths, view)
        expected = expected_energies(view.posteriors, rng, self.draws)
        unmeasured = np.ones(len(actual), dtype=bool)
        unmeasured[list(view.candidates.acquired)] = False
        tiny = np.finfo(float).tiny
        wrong = np.log(np.maximum(actual, tiny) / np.maximum(expected, tiny))
        distance = np.abs(np.arange(len(actual)) - np.arange(len(actual))[:, None])
        weights = np.where(distance > 0, np.exp(-((distance / REACH) ** 2) / 2) + tiny, 0.0) * unmeasured
        total = weights.sum(axis=1)
        around = np.divide(weights @ np.where(unmeasured, wrong, 0.0), total, out=np.zeros(len(total)), where=total > 0)
        return best_line(expected * np.exp(around), view.candidates)


@dataclass(frozen=True, kw_only=True)
class OracleGreedy:
    """The line after which the error is least: every candidate is reconstructed at every step.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The images, one per slice; none before `knowing`.
    reconstruct : callable
        Makes the images; its errors are relative L2 of the magnitude, mean over slices.

    Raises
    ------
    InputError
        For truths that are no images, or a reconstruction that cannot be called.
    """

    truths: tuple[Array, ...] = ()
    reconstruct: Reconstruct | None = None
    name: str = "oracle-greedy"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        require_true_images(self.truths)
        if self.reconstruct is not None:
            require_working(
                reconstruct=self.reconstruct, wanted="a function (number of the slice, lines) -> image (ky, kx)"
            )

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> OracleGreedy:
        """The same with the truth."""
        return replace(self, truths=tuple(truths), reconstruct=reconstruct)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Four lines: a mask that looks at the truth needs no larger centre."""
        return min(4, target)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line that leaves the least error.

        Raises
        ------
        InputError
            Without the truth.
        """
        require_truths(self.name, self.truths, len(self.truths))
        candidates = view.candidates
        scores: NDArray[np.float64] = np.full(candidates.n_lines, np.nan)
        for line in np.flatnonzero(candidates.remaining):
            scores[line] = -self._error((*candidates.acquired, int(line)))
        return best_line(scores, candidates)

    def _error(self, lines: Sequence[int]) -> float:
        if self.reconstruct is None:
            raise InputError(field=self.name, got="no reconstruction", wanted="one", cure=NO_TRUTH)
        return float(np.mean([relative_error(self.reconstruct(i, lines), t) for i, t in enumerate(self.truths)]))


def _residuals(name: str, truths: Sequence[Array], view: DesignView) -> NDArray[np.float64]:
    """Actual energy of the mean's error on every line, (ky,), summed over readout, coils and slices."""
    require_truths(name, truths, len(view.posteriors))
    return np.asarray(np.sum(of_each(view.posteriors, residual_energies, PerSlice(truths)), axis=0))
