"""Masks that several readout positions of a volume share: made from an earlier frame, and drawn from a density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from planes.kept import Kept, change_columns
from planes.masks import EARLIER, EARLIER_SEED, designed_with_seen, mask_by, mask_of_frame
from planes.seen import ALONE, SEEN
from study.scans import Scan, volume_planes

from mri_design.design.trials import relative_error
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice

POSITIONS = tuple(range(24, 193, 24))
"""Evenly through the head, which fills planes 4 to 216 of the volume."""


@dataclass(frozen=True)
class SharedMasks:
    """What is measured: one coil, one mask for all positions, each reconstructed for itself.

    Parameters
    ----------
    volume : Path
        Images of a volume without phase, one plane for every readout position.
    matrix : int
        Samples along ky and kz.
    positions : tuple of int
        Planes of the volume.
    draws : int
        Random masks.
    block : int, optional
        Samples that are chosen after each inference; by default a 200th of the plane.
    """

    volume: Path
    matrix: int = 128
    positions: tuple[int, ...] = POSITIONS
    draws: int = 3
    block: int | None = None

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe ``local`` for a plane."""
        return load_recipe("local").replacing("design", encoding="plane", block=self.block)

    def scans(self, seed: int = 0) -> list[Scan]:
        """The positions in the noise of a seed."""
        return volume_planes(self.volume, self.positions, self.matrix, seed)

    def slices(self, scans: list[Scan]) -> list[MRSlice]:
        """Their models."""
        return [scan.prepared.slice_model(0, self.recipe) for scan in scans]

    def compute(self, kept: Kept, acceleration: float, densities: Sequence[str]) -> None:
        """Add the masks that are not kept yet: an error for every position.

        Parameters
        ----------
        kept : Kept
            The table.
        acceleration : float
            Of the masks.
        densities : sequence of str
            The tuned one first, with all draws, then others that were tried, with one.
        """
        masks = [*self._draws(densities[:1], self.draws), *self._draws(densities[1:], 1)]
        masks += [(EARLIER, 0), (ALONE, 0), (SEEN, 0)]
        left = [(name, draw) for name, draw in masks if not self._has(kept, acceleration, name, draw)]
        if not left:
            return
        scans = self.scans()
        slices = self.slices(scans)
        for name, draw in left:
            if name == EARLIER:
                chosen = mask_of_frame(self.slices(self.scans(EARLIER_SEED)), acceleration, self.recipe)
            elif name == SEEN:
                frames = self.slices(self.scans(EARLIER_SEED))
                chosen, _ = designed_with_seen(slices, frames, acceleration, self.recipe)
            else:
                chosen = mask_by(make_strategy(name, "plane"), slices, acceleration, self.recipe, draw)
            cells = self._cells(acceleration, name, draw)
            for cell, scan, mr_slice in zip(cells, scans, slices, strict=True):
                image = reconstruct_by_recipe(mr_slice, chosen, self.recipe, 0).image
                kept.keep({**cell, "error": relative_error(image, scan.reference), "chosen": len(chosen)})

    def changes(self, kept: Kept, acceleration: float, densities: Sequence[str]) -> list[Row]:
        """Errors over the positions, and their change against the tuned density, position by position.

        The density that is best on the positions themselves is shown beside it.
        """
        case = {"matrix": self.matrix, "coils": 1, "acceleration": acceleration}
        draws = {name: kept.draws(**case, strategy=name) for name in (*densities, EARLIER, ALONE, SEEN)}
        draws = {name: errors for name, errors in draws.items() if len(errors) == len(self.positions)}
        if densities[0] not in draws:
            return []
        best = min(densities, key=lambda name: np.mean(list(draws[name].values())) if name in draws else np.inf)
        family, tuned = densities[0].partition(":")[0], f"{densities[0].partition(':')[0]}, tuned"
        shown = {tuned: densities[0], f"{family}, best on these positions": best}
        shown |= {name: name for name in (EARLIER, ALONE, SEEN)}
        found = {name: draws[stored] for name, stored in shown.items() if stored in draws}
        rows: list[Row] = []
        for name, errors in found.items():
            columns = change_columns(found, name, tuned)
            if columns is not None:
                columns["masks"] = len(next(iter(errors.values())))  # the same ones for every position
                about = {"coils": 1, "acceleration": acceleration, "strategy": name}
                rows.append({**about, "power": shown[name].partition(":")[2], **columns})
        return rows

    @staticmethod
    def _draws(densities: Sequence[str], count: int) -> list[tuple[str, int]]:
        return [(density, draw) for density in densities for draw in range(count)]

    def _cells(self, acceleration: float, strategy: str, draw: int) -> list[Row]:
        case = {"matrix": self.matrix, "coils": 1, "acceleration": acceleration, "strategy": strategy}
        return [{**case, "image": position, "draw": draw} for position in self.positions]

    def _has(self, kept: Kept, acceleration: float, strategy: str, draw: int) -> bool:
        return all(kept.has(cell) for cell in self._cells(acceleration, strategy, draw))
