"""Masks of a plane that are designed after an earlier scan of the object, which may have moved, or be another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from planes.kept import KEY, Kept, change_columns
from planes.masks import EARLIER_SEED, designed_with_seen, mask_by
from study.movements import MOVEMENTS, SAME
from study.scans import Scan

from mri_design.design.trials import relative_error
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

ALONE, SEEN = "calibrated", "calibrated, earlier scan seen"
ANOTHER = "another object"
NOW = "scan now"
SEEN_KEY = (*KEY, NOW)


@dataclass(frozen=True)
class SeenMasks:
    """What is measured: masks of scans whose earlier scan shows the same head, moved or not, or that of someone else.

    Parameters
    ----------
    scan : callable
        (image, coils, seed) -> the simulated scan.
    tests : tuple of int
        Images; the other head is that of half the list further on.
    recipe : Recipe
        Of designs and images.
    matrix : int
        Samples along ky and kz.
    """

    scan: Callable[[int, int, int], Scan]
    tests: tuple[int, ...]
    recipe: Recipe
    matrix: int = 128

    def compute(self, kept: Kept, tuned: Mapping[tuple[int, float], str], seconds: float = float("inf")) -> None:
        """Add the cells that are not kept yet, image by image, as far as some seconds of processor time go.

        Parameters
        ----------
        kept : Kept
            The table, with `SEEN_KEY`.
        tuned : mapping
            (coils, acceleration) -> the tuned density, as ``vd-polynomial:8``.
        seconds : float
            No scan is begun after these.
        """
        began = time.process_time()
        for image in self.tests:
            for (coils, factor), density in tuned.items():
                for now in (*MOVEMENTS, ANOTHER):
                    left = [cell for cell in self._cells(image, coils, factor, density, now) if not kept.has(cell)]
                    if not left or time.process_time() - began > seconds:
                        continue
                    slice_model, truth, before = self._scans(image, coils, now)
                    for cell in left:
                        kept.keep({**cell, **self._measured(cell, slice_model, truth, before)})

    def changes(self, kept: Kept, tuned: Mapping[tuple[int, float], str]) -> list[Row]:
        """By coils, acceleration and what has become of the object: changes against the mask without earlier scan."""
        rows: list[Row] = []
        for (coils, factor), density in tuned.items():
            for now in (*MOVEMENTS, ANOTHER):
                case = {"matrix": self.matrix, "coils": coils, "acceleration": factor, NOW: now}
                stored = {SEEN: SEEN, ALONE: ALONE, f"{density.partition(':')[0]}, tuned": density}
                draws = {shown: kept.draws(**case, strategy=mask) for shown, mask in stored.items()}
                about = {"coils": coils, "acceleration": factor, NOW: now, "strategy": SEEN}
                for against in [*stored][1:]:
                    columns = change_columns(draws, SEEN, against)
                    if columns is not None:
                        rows.append({**about, **columns})
        return rows

    def _cells(self, image: int, coils: int, factor: float, density: str, now: str) -> Iterator[Row]:
        case = {"matrix": self.matrix, "coils": coils, "acceleration": factor}
        for strategy in (density, ALONE, SEEN):
            yield {**case, "strategy": strategy, "image": image, "draw": 0, NOW: now}

    def _scans(self, image: int, coils: int, now: str) -> tuple[MRSlice, Array, MRSlice]:
        """The scan to be measured, its truth, and the earlier scan."""
        scan = self.scan(image, coils, coils)
        at = self.tests.index(image) + (len(self.tests) // 2 if now == ANOTHER else 0)
        seen = self.tests[at % len(self.tests)]
        before = self.scan(seen, coils, EARLIER_SEED).prepared.slice_model(0, self.recipe)
        slice_model = scan.prepared.slice_model(0, self.recipe)
        if now in (SAME, ANOTHER):
            return slice_model, scan.reference, before
        truth = MOVEMENTS[now](scan.reference)
        every = slice_model.encoding()(truth).reshape(slice_model.kspace.shape)
        parts = np.random.default_rng([image, coils]).standard_normal((2, *every.shape))
        kspace = every + np.sqrt(slice_model.noise_variance) * (parts[0] + 1j * parts[1])
        return replace(slice_model, kspace=kspace.astype(np.complex64)), truth, before

    def _measured(self, cell: Row, slice_model: MRSlice, truth: Array, before: MRSlice) -> Row:
        name, factor = str(cell["strategy"]), float(str(cell["acceleration"]))
        weight = float("nan")
        if name == SEEN:
            chosen, weight = designed_with_seen([slice_model], [before], factor, self.recipe)
        else:
            chosen = mask_by(make_strategy(name, "plane"), [slice_model], factor, self.recipe, int(str(cell["draw"])))
        image = reconstruct_by_recipe(slice_model, chosen, self.recipe, 0).image
        return {"error": relative_error(image, truth), "chosen": len(chosen), "explained": weight}


def explained(kept: Kept, rows: Sequence[Row]) -> list[Row]:
    """The rows with the mean share that the earlier scan explained of how single samples differ."""
    found: list[Row] = []
    for row in rows:
        case = {name: row[name] for name in ("coils", "acceleration", NOW, "strategy")}
        shares = [share for shares in kept.draws("explained", **case).values() for share in shares]
        found.append({**row, "explained": float(np.mean(shares))})
    return found
