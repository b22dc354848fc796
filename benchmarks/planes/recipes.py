"""The same masks of a plane under two recipes: `local`, under which they were made, and the default one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parts.targets import Target
from planes.kept import Kept, change_columns
from planes.masks import mask_by
from study.scans import Scan

from mri_design.design.trials import relative_error
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy

RECIPES = ("default", "local")
DESIGNED = "calibrated"


@dataclass(frozen=True)
class RecipeMasks:
    """What is measured: a designed mask and one tuned random one for every image.

    Parameters
    ----------
    scan : callable
        (image, coils) -> the simulated scan.
    tests : tuple of int
        Images.
    matrix : int
        Samples along ky and kz.
    block : int, optional
        Samples that are chosen after each inference; by default a 200th of the plane.
    """

    scan: Callable[[int, int], Scan]
    tests: tuple[int, ...]
    matrix: int = 128
    block: int | None = None

    def recipe(self, name: str) -> Recipe:
        """A shipped recipe for a plane."""
        return load_recipe(name).replacing("design", encoding="plane", block=self.block)

    def compute(self, kept: Kept, tuned: Mapping[tuple[int, float], str], seconds: float = float("inf")) -> None:
        """Add the cells that are not kept yet, image by image, as far as some seconds of processor time go.

        Parameters
        ----------
        kept : Kept
            The table; ``error`` is under the default recipe, ``local_error`` under `local`.
        tuned : mapping
            (coils, acceleration) -> the tuned density, as ``vd-polynomial:8``.
        seconds : float
            No cell is begun after these.
        """
        began = time.process_time()
        for image in self.tests:
            scans: dict[int, Scan] = {}
            for cell in self._cells(tuned, image):
                if kept.has(cell) or time.process_time() - began > seconds:
                    continue
                coils = int(str(cell["coils"]))
                if coils not in scans:
                    scans[coils] = self.scan(image, coils)
                kept.keep({**cell, **self._measured(scans[coils], cell)})

    def _measured(self, scan: Scan, cell: Row) -> Row:
        """A mask made under `local`, and the errors of the images that both recipes make of it."""
        slices = {name: scan.prepared.slice_model(0, self.recipe(name)) for name in RECIPES}
        rule, factor = make_strategy(str(cell["strategy"]), "plane"), float(str(cell["acceleration"]))
        chosen = mask_by(rule, [slices["local"]], factor, self.recipe("local"))
        errors = {
            name: relative_error(reconstruct_by_recipe(mr_slice, chosen, self.recipe(name), 0).image, scan.reference)
            for name, mr_slice in slices.items()
        }
        return {"error": errors["default"], "local_error": errors["local"], "chosen": len(chosen)}

    def changes(self, kept: Kept, tuned: Mapping[tuple[int, float], str]) -> list[Row]:
        """By coils, acceleration and recipe, the change of designed masks against the tuned ones, image by image."""
        rows: list[Row] = []
        for (coils, factor), density in tuned.items():
            case = {"matrix": self.matrix, "coils": coils, "acceleration": factor}
            against = f"{density.partition(':')[0]}, tuned"
            for name, column in zip(RECIPES, ("error", "local_error"), strict=True):
                stored = {against: density, DESIGNED: DESIGNED}
                draws = {shown: kept.draws(column, **case, strategy=mask) for shown, mask in stored.items()}
                about = {"coils": coils, "acceleration": factor, "recipe": name, "strategy": DESIGNED}
                columns = change_columns(draws, DESIGNED, against)
                theirs = change_columns(draws, against, DESIGNED)
                if columns is not None and theirs is not None:
                    rows.append({**about, **columns, "error against": theirs["error"]})
        return rows

    def _cells(self, tuned: Mapping[tuple[int, float], str], image: int) -> Iterator[Row]:
        for (coils, factor), density in tuned.items():
            case = {"matrix": self.matrix, "coils": coils, "acceleration": factor}
            for strategy in (density, DESIGNED):
                yield {**case, "strategy": strategy, "image": image, "draw": 0}


def recipe_targets(tuned: Mapping[tuple[int, float], str]) -> Iterator[Target]:
    """What is asked of the default recipe's images, which are what a design leaves."""
    for (coils, factor), density in tuned.items():
        family = density.partition(":")[0]
        name = (
            f"{coils} coil{'s' if coils > 1 else ''}, {factor:g}x, default recipe: {DESIGNED} against tuned {family}, "
        )
        asked = [("change_percent", "mean change", -5.0), ("worst_percent", "worst image", 2.0)]
        if coils > 1:
            asked = [("change_percent", "mean change", 0.0), ("worst_percent", "worst image", 3.0)]
        for column, words, bound in asked:
            yield Target(name + words, bound, False, "%", "recipes", _of(coils, factor, column))
        if coils == 1:
            yield Target(f"{name}share better", 0.9, True, "of images", "recipes", _of(coils, factor, "better_share"))


def _of(coils: int, factor: float, column: str) -> Callable[[Sequence[Row]], float | None]:
    case = {"coils": coils, "acceleration": factor, "recipe": "default"}

    def number(rows: Sequence[Row]) -> float | None:
        found = [row for row in rows if all(row[name] == value for name, value in case.items())]
        return float(str(found[0][column])) if found else None

    return number
