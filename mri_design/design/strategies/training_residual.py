"""One mask for many scans: the line on which the posterior means of training scans are most wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.decision import Choice
from mri_design.design.line_variances import residual_energies
from mri_design.design.neighbourhood import neighbourhood, require_weights
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError, sequence_of
from mri_design.operators.base import Array

__all__ = ["TrainingResidual"]


@dataclass(frozen=True, kw_only=True)
class TrainingResidual:
    """Choose the line on and around which the posterior means of the training scans are most wrong on average.

    The scans that one mask is designed on are fully sampled. What a posterior expects of a line can therefore be
    replaced by what the line holds: the energy of the truth less the posterior mean, in units of the truth's energy,
    so that no scan counts more because it is brighter. Other subjects have other details; a line's neighbours count
    in part, which keeps the mask from following the details of the training scans
    (results/design-study/README.md, "One mask for all").

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The true images, one per training slice; empty until `knowing` gives them.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself.

    Raises
    ------
    InputError
        For truths that are no images, or hold nothing but zeros, and for weights that are not numbers between 0 and 1.
    """

    truths: tuple[Array, ...] = ()
    neighbours: tuple[float, ...] = (0.25,)
    name: str = "residual-greedy"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        wanted = "the true image of every training slice, a tuple of arrays (ky, kx)"
        for number, truth in enumerate(sequence_of(np.ndarray, "truths", self.truths, wanted=wanted)):
            if truth.ndim != 2 or not np.any(truth):
                got = f"an array of shape {truth.shape}" if truth.ndim != 2 else "nothing but zeros"
                raise InputError(field=f"truths[{number}]", got=got, wanted="an image (ky, kx)")
        require_weights(self.neighbours)

    def knowing(
        self, truths: Sequence[Array], reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    ) -> TrainingResidual:
        """This rule with the truths; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil, four with several."""
        return min(target, 8 if n_coils == 1 else 4)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest residual energy of its neighbourhood, mean over the scans.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        if len(self.truths) != len(view.posteriors):
            raise InputError(
                field=self.name,
                got=f"{len(self.truths)} true images for {len(view.posteriors)} slices",
                wanted="one per slice",
                cure="TrainingResidual().knowing(truths) takes those of the training scans.",
            )
        residual = np.zeros(view.candidates.n_lines)
        for posterior, truth in zip(view.posteriors, self.truths, strict=True):
            residual += residual_energies(posterior, truth) / np.sum(np.abs(truth) ** 2, dtype=np.float64)
        residual[list(view.candidates.acquired)] = 0.0
        return best_line(neighbourhood(residual / len(self.truths), self.neighbours), view.candidates)
