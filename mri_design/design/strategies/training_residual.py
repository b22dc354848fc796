"""One mask for many scans: the line on which the reconstructions of training scans are most wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.decision import Choice
from mri_design.design.neighbourhood import neighbourhood, require_weights
from mri_design.design.posteriors import means_of
from mri_design.design.strategy import DesignView, best_line
from mri_design.design.trials import ReferenceSlice, line_residual
from mri_design.errors import InputError, require_working, sequence_of
from mri_design.operators.base import Array


@dataclass(frozen=True, kw_only=True)
class TrainingResidual:
    """Choose the line on and around which reconstructions of the training scans are most wrong on average.

    The scans that one mask is designed on are fully sampled. What a posterior expects of a line can therefore be
    replaced by what the line holds: the energy of the truth less the posterior mean, or less what another
    reconstruction makes of the lines so far, in units of the truth's energy, so that no scan counts more because it is
    brighter. A mask is at its best for the reconstruction whose errors it was made from. Other subjects have other
    details; a line's neighbours count in part, which keeps the mask from following the details of the training scans
    (results/design-study/README.md, "Thesis-figure").

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        The training slices with their true images, in the order of the design's slices; empty until `knowing` gives
        them.
    reconstruct : callable, optional
        (number of the slice, lines) -> image (ky, kx), in place of the posterior mean.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself.

    Raises
    ------
    InputError
        For scans that are none, a reconstruction that cannot be called, and weights that are not numbers between 0
        and 1.
    """

    scans: tuple[ReferenceSlice, ...] = ()
    reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    neighbours: tuple[float, ...] = (0.25,)
    name: str = "residual-greedy"

    def __post_init__(self) -> None:
        sequence_of(ReferenceSlice, "scans", self.scans, wanted="the training slices with their true images")
        require_weights(self.neighbours)
        if self.reconstruct is not None:
            wanted = "a function (number of the slice, lines) -> image (ky, kx)"
            require_working(reconstruct=self.reconstruct, wanted=wanted)

    @property
    def needs_posterior(self) -> bool:
        """Whether the posterior mean is the reconstruction."""
        return self.reconstruct is None

    def knowing(
        self, scans: Sequence[ReferenceSlice], reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    ) -> TrainingResidual:
        """This rule with the training scans; ``reconstruct``, if there is one, takes the posterior mean's place."""
        return replace(self, scans=tuple(scans), reconstruct=reconstruct)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil, four with several."""
        return min(target, 8 if n_coils == 1 else 4)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest residual energy of its neighbourhood, mean over the scans.

        Raises
        ------
        InputError
            Without the training scan of every slice.
        """
        lines, scans = view.candidates.acquired, self.scans
        if not scans or (self.reconstruct is None and len(scans) != len(view.posteriors)):
            raise InputError(
                field=self.name,
                got=f"{len(scans)} training scans for {len(view.posteriors)} slices",
                wanted="one per slice",
                cure="TrainingResidual().knowing(scans) takes them.",
            )
        residual = np.zeros(view.candidates.n_lines)
        means = [] if self.reconstruct else means_of(view.posteriors)
        for number, scan in enumerate(scans):
            image = self.reconstruct(number, lines) if self.reconstruct else means[number]
            residual += line_residual(scan.slice_model, image, scan.reference) / len(scans)
        residual[list(lines)] = 0.0
        return best_line(neighbourhood(residual, self.neighbours), view.candidates)
