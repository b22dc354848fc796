"""Masks over a plane that look at the true image: no designs, but references that designs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.decision import Choice
from mri_design.design.plane.start import start_for_samples
from mri_design.design.plane.thinning import block_by_scores, candidates_plane
from mri_design.design.posteriors import PerSlice, of_each
from mri_design.design.sample_variances import expected_sample_energies, residual_sample_energies
from mri_design.design.strategy import DesignView
from mri_design.design.trials import require_true_images, require_truths
from mri_design.errors import require_counts
from mri_design.operators.base import Array

REACH = 3.0
"""Samples: standard deviation of the Gaussian weights of `OracleHoleSamples`."""


@dataclass(frozen=True, kw_only=True)
class OracleResidualSamples:
    """The samples on which the posterior mean is most wrong. Most of its lead is luck that no prediction can have.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kz)
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
        require_true_images(self.truths, "(ky, kz)")

    def knowing(
        self, truths: Sequence[Array], reconstruct: Callable[[int, Sequence[int]], Array]
    ) -> OracleResidualSamples:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest actual residual energies, thinned."""
        return block_by_scores(_residuals(self.name, self.truths, view), view, count)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]


@dataclass(frozen=True, kw_only=True)
class OracleHoleSamples:
    """The samples with the largest expected error, after the truth has corrected the expectation of their surroundings.

    It knows how wrong the posterior's expectations are around a sample, with a hole where the sample itself is: the
    expected energy is multiplied by the ratio of actual to expected energies of the other unmeasured samples, in a
    Gaussian window. A correction that is smooth over the plane cannot know more.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kz)
        The true images, one per slice; empty until `knowing` gives them.
    draws : int
        Posterior draws behind the expected energies; inference's own are used as far as they go.

    Raises
    ------
    InputError
        For truths that are no images, or no draw.
    """

    truths: tuple[Array, ...] = ()
    draws: int = 8
    name: str = "oracle-hole"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_true_images(self.truths, "(ky, kz)")
        require_counts(draws=self.draws, least=1)

    def knowing(self, truths: Sequence[Array], reconstruct: Callable[[int, Sequence[int]], Array]) -> OracleHoleSamples:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest corrected energies, thinned."""
        plane = candidates_plane(view)
        actual = _residuals(self.name, self.truths, view)
        expected = expected_sample_energies(view.posteriors, rng, self.draws)
        unmeasured = ~view.candidates.mask
        ratio = np.where(unmeasured, actual / np.maximum(expected, np.finfo(float).tiny), 0.0)

        def around(values: NDArray[np.float64]) -> NDArray[np.float64]:
            spread = scipy.ndimage.gaussian_filter(
                values.reshape(plane.grid), REACH, mode="constant", truncate=4.0
            ).reshape(-1)
            return np.maximum(spread - values * _middle(), 0.0)

        weights = around(unmeasured.astype(float))
        found = np.divide(around(ratio), weights, out=np.ones(plane.size), where=weights > 1e-9)
        return block_by_scores(expected * found, view, count)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]


def _middle() -> float:
    """Weight of the middle of the Gaussian window, which is taken out."""
    reach = int(4.0 * REACH + 0.5)
    kernel = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * REACH**2))
    return float(1 / kernel.sum() ** 2)


def _residuals(name: str, truths: Sequence[Array], view: DesignView) -> NDArray[np.float64]:
    """Actual energy of the mean's error on every sample, (size,), summed over coils and slices."""
    require_truths(name, truths, len(view.posteriors))
    return np.asarray(np.sum(of_each(view.posteriors, residual_sample_energies, PerSlice(truths)), axis=0))
