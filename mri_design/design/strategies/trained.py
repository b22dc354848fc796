"""Strategies that learn from training scans: the order that training left, and one mask for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.blocks import (
    SHARE,
    ChoosesByScore,
    Scores,
    block_by_gains,
    first_disc,
    unmeasured_around,
)
from mri_design.design.energies import fewest_coils, means_of
from mri_design.design.strategy import ChoosesBlocks, DesignView
from mri_design.design.trace import Choice
from mri_design.design.training import TrainedDesign
from mri_design.design.trials import ReferenceSlice, line_residual
from mri_design.errors import InputError
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TrainedOrder(ChoosesBlocks):
    """The learnt order of lines, or of samples of a plane, as training left it.

    Those that may not be measured are passed over. Where the order has come to its end, those with the largest
    residuals that training left are next.

    Parameters
    ----------
    design : TrainedDesign
        What training wrote.

    Raises
    ------
    InputError
        Where it is of another grid than the scan, once it is to choose.
    """

    design: TrainedDesign
    name: str = "trained"
    needs_posterior: bool = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The number of candidates around DC that training began with."""
        self.design.require_grid(readouts.shape)
        return min(target, self.design.n_start)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The first ``count`` of the order that are left."""
        self.design.require_grid(view.readouts.shape)
        left = view.candidates.remaining.copy()
        chosen = [line for line in self.design.lines if left[line]][:count]
        left[chosen] = False
        more = np.argsort(-np.where(left, self.design.profile[-1], -np.inf), kind="stable")[: count - len(chosen)]
        return [Choice(line) for line in (*chosen, *more.tolist())]


@dataclass(frozen=True, kw_only=True)
class TrainingResidual(ChoosesByScore):
    """Choose the candidates on and around which reconstructions of the training scans are most wrong on average.

    The scans that one mask is designed on are fully sampled. What a posterior expects of a candidate can therefore be
    replaced by what it holds: the energy of the truth less the posterior mean, or less what another reconstruction
    makes of the lines so far, in units of the truth's energy, so that no scan counts more because it is brighter. A
    mask is at its best for the reconstruction whose errors it was made from. Other subjects have other details. So a
    line's neighbours count in part (results/design-study/README.md, "Thesis-figure"); and the energy on a single sample
    of a plane, which is mostly luck of the training subjects, is averaged with that of the other unmeasured samples
    around.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        The training slices with their true images, in the order of the design's slices; empty until `knowing` gives
        them.
    reconstruct : callable, optional
        (number of the slice, lines) -> image (ky, kx), in place of the posterior mean.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself.
    reach : float
        In a plane, standard deviation of the Gaussian window, in samples; 0 takes every sample for itself.
    """

    scans: tuple[ReferenceSlice, ...] = ()
    reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    neighbours: tuple[float, ...] = (0.25,)
    reach: float = 2.0
    name: str = "residual-greedy"

    @property
    def needs_posterior(self) -> bool:  # type: ignore[override]
        """Whether the posterior mean is the reconstruction."""
        return self.reconstruct is None

    def knowing(
        self, scans: Sequence[ReferenceSlice], reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    ) -> TrainingResidual:
        """This rule with the training scans; ``reconstruct``, if there is one, takes the posterior mean's place."""
        return replace(self, scans=tuple(scans), reconstruct=reconstruct)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil, four with several."""
        return readouts.start(target, 8 if n_coils == 1 else 4)

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """In a plane with several coils, the start and the Poisson disc."""
        return round(SHARE * target) if readouts.thinned and n_coils > 1 and self.needs_posterior else 0

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The candidates with the largest residuals; in a plane with several coils see above."""
        of_plane = view.readouts.thinned and self.needs_posterior
        if of_plane and not view.posteriors:
            return first_disc(view.candidates, rng, count)
        if not of_plane or fewest_coils(view.posteriors) == 1:
            return super().choose_block(view, rng, count)
        return block_by_gains(self.scored(view, rng).values, view, count)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Residual energies around every candidate, mean over the scans.

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
        again = self.reconstruct
        images = means_of(view.posteriors) if again is None else [again(i, lines) for i in range(len(scans))]
        pairs = zip(scans, images, strict=True)
        residual = np.mean([line_residual(scan.slice_model, image, scan.reference) for scan, image in pairs], axis=0)
        return Scores(unmeasured_around(residual, view.candidates, self.neighbours, self.reach))
