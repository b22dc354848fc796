"""One mask of a plane for many scans: the samples on which the reconstructions of training scans are most wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.decision import Choice
from mri_design.design.plane.start import start_for_samples
from mri_design.design.plane.thinning import block_by_scores, candidates_plane
from mri_design.design.posteriors import means_of
from mri_design.design.strategy import DesignView
from mri_design.design.trials import ReferenceSlice, line_residual
from mri_design.errors import InputError, require_numbers, sequence_of
from mri_design.operators.base import Array
from mri_design.operators.encodings import PlaneEncoding


@dataclass(frozen=True, kw_only=True)
class TrainingResidualSamples:
    """Choose the samples around which the posterior means of the training scans are most wrong on average.

    `TrainingResidual` is the same rule for lines, and says why what a posterior expects can be replaced by what a
    sample holds: the energy of the truth less the posterior mean, in units of the truth's energy. On a single sample
    that energy is mostly luck of the training subjects. So it is averaged with that of the other unmeasured samples
    around, in a Gaussian window, before blocks are chosen from it and thinned.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        The training slices with their true images, in the order of the design's slices; empty until `knowing` gives
        them.
    reach : float
        Standard deviation of the window, in samples; 0 takes every sample for itself.

    Raises
    ------
    InputError
        For scans that are none, and a reach that is not a number of zero or more.
    """

    scans: tuple[ReferenceSlice, ...] = ()
    reach: float = 2.0
    name: str = "residual-greedy"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        sequence_of(ReferenceSlice, "scans", self.scans, wanted="the training slices with their true images")
        require_numbers(reach=self.reach)

    def knowing(
        self, scans: Sequence[ReferenceSlice], reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    ) -> TrainingResidualSamples:
        """This rule with the training scans; the reconstruction is the posterior mean, whatever the images are."""
        return replace(self, scans=tuple(scans))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def scores(self, view: DesignView) -> NDArray[np.float64]:
        """Mean residual energy around every sample, over the scans, (size,); measured samples take no part.

        Raises
        ------
        InputError
            Without the training scan of every slice.
        """
        if not self.scans or len(self.scans) != len(view.posteriors):
            raise InputError(
                field=self.name,
                got=f"{len(self.scans)} training scans for {len(view.posteriors)} slices",
                wanted="one per slice",
                cure="TrainingResidualSamples().knowing(scans) takes them.",
            )
        pairs = zip(self.scans, means_of(view.posteriors), strict=True)
        residuals = [line_residual(scan.slice_model, mean, scan.reference) for scan, mean in pairs]
        return _around(np.mean(residuals, axis=0), ~view.candidates.mask, candidates_plane(view), self.reach)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest scores, thinned."""
        return block_by_scores(self.scores(view), view, count)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]


def _around(
    residual: NDArray[np.float64], unmeasured: NDArray[np.bool_], plane: PlaneEncoding, reach: float
) -> NDArray[np.float64]:
    """Weighted mean over the unmeasured samples around each; 0 where there is none."""

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return scipy.ndimage.gaussian_filter(values.reshape(plane.grid), reach, mode="constant").reshape(-1)

    weights = spread(unmeasured.astype(np.float64))
    total = spread(np.where(unmeasured, residual, 0.0))
    return np.divide(total, weights, out=np.zeros(plane.size), where=weights > 1e-9)
