"""Samples of a plane (ky, kz): designed masks against tuned ones, as tables in a folder.

    OMP_NUM_THREADS=1 python benchmarks/planes.py DATA [--only masks|default-recipe] [--out results/encodings]

DATA is the folder of the study's scans, or ``phantom:NAME``. Densities are tuned on training subjects and judged on
others, with coil maps known and the posterior mean of the recipe ``local`` for every mask. ``default-recipe`` judges
masks by the default recipe, too. What has been computed is kept in the folder, and the same command goes on from there;
some two days of processor time in all. ``--quick`` is the same at toy size in seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from parts.pages import Kept, plain, put_conditions, put_table
from study.scans import TEST_HEADS, TRAINING_HEADS, Scan, simulated, simulating

from mri_design.design.training import relative_error
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.design import DesignOptions, run_design
from mri_design.experiment.extent import DesignPlan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategies import make_strategy, tuned_powers
from mri_design.model.slice import SliceModel
from mri_design.runs.known_slice import knowing_oracle

LINES = "lines, "
"""Before the names of strategies that choose whole lines."""
FAMILIES = {1: ("vd-polynomial", LINES + "vd-polynomial"), 8: ("poisson-disc", "vd-polynomial")}
"""Families that are tuned, with one coil and with several; the first is what designs are held against."""
DESIGNED = {
    1: ("calibrated", "oracle-hole", "expected-error"),
    8: ("calibrated", "oracle-hole", "expected-error", "caipi"),
}
ALONE = "calibrated"
KEY = ("matrix", "coils", "acceleration", "strategy", "image", "draw")
FORMATS = {"error": ".4f", "change_percent": "+.1f", "worst_percent": "+.1f", "better_share": ".2f", "explained": ".2f"}


class Cells(Kept):
    """Rows of one table, by `KEY`."""

    def fill(self, cells: Iterable[Row], measure: Callable[[Row], Row]) -> None:
        """Measure the cells that are not kept yet."""
        for cell in cells:
            if self.named(cell) not in self.rows:
                self.put({**cell, **measure(cell)})

    def draws(self, column: str = "error", /, **wanted: object) -> dict[str, list[float]]:
        """By image, what a column has in the rows whose other columns have the wanted values."""
        found: dict[str, list[float]] = {}
        for row in self.rows.values():
            if all(plain(row.get(name, "")) == plain(value) for name, value in wanted.items()):
                found.setdefault(str(row["image"]), []).append(float(str(row[column])))
        return found


@dataclass(frozen=True)
class Setting:
    """One setting of the study.

    Parameters
    ----------
    source : str
        File of images, or ``phantom:NAME``.
    folder : Path
        For tables.
    matrix : int
        Samples along ky and kz.
    coils, accelerations : tuple of int, tuple of float
        Every pair of them is a case.
    training, tests : tuple of int
        Images of ``source`` that densities are tuned on, and that masks are judged on.
    draws : int
        Random masks of each density on every test image.
    powers : tuple of float, optional
        That tuning tries; by default those of `compare`.
    block : int, optional
        Samples that are chosen after each inference; by default a 200th of the plane.
    """

    source: str
    folder: Path
    matrix: int = 128
    coils: tuple[int, ...] = (1, 8)
    accelerations: tuple[float, ...] = (12.0, 8.0, 4.0)
    training: tuple[int, ...] = TRAINING_HEADS
    tests: tuple[int, ...] = TEST_HEADS[:10]
    draws: int = 3
    powers: tuple[float, ...] | None = None
    block: int | None = None

    def recipe(self, encoding: str = "plane", name: str | None = "local") -> Recipe:
        """A shipped recipe for lines or for a plane."""
        return load_recipe(name).replacing("design", encoding=encoding, block=self.block)

    def table(self, name: str) -> Cells:
        """A table of the folder."""
        return Cells.at(self.folder / f"{name}.csv", *KEY)

    def cases(self) -> list[tuple[int, float]]:
        """(coils, acceleration)."""
        return [(coils, factor) for coils in self.coils for factor in self.accelerations]

    def cell(self, case: tuple[int, float], strategy: str, image: int, draw: int = 0, **more: object) -> Row:
        """The name of a cell."""
        about = {"matrix": self.matrix, "coils": case[0], "acceleration": case[1]}
        return {**about, "strategy": strategy, "image": image, "draw": draw, **more}

    def scan(self, cell: Row, seed: int | None = None) -> Scan:
        """The scan of a cell, its noise and coils by the number of coils without a seed."""
        coils = int(str(cell["coils"]))
        recipe = simulating(self.matrix, coils=coils)
        return simulated(self.source, [int(str(cell["image"]))], recipe, seed=coils if seed is None else seed)[0]

    def tried(self, family: str) -> Sequence[float]:
        """Powers that tuning tries."""
        encoding, name = encoding_of(family)
        return self.powers or tuned_powers(name, encoding)


def of_coils(table: Mapping[int, tuple[str, ...]], coils: int) -> tuple[str, ...]:
    """Entry of a table for one coil or for several."""
    return table[1 if coils == 1 else 8]


def encoding_of(strategy: str) -> tuple[str, str]:
    """Whether a name is one of lines or of samples of a plane, and the name that the package knows."""
    return ("lines", strategy.removeprefix(LINES)) if strategy.startswith(LINES) else ("plane", strategy)


def mask_by(scan: Scan, mr_slice: SliceModel, cell: Row, recipe: Recipe) -> Sequence[int]:
    """Candidates that the strategy of a cell chooses."""
    encoding, name = encoding_of(str(cell["strategy"]))
    rule = make_strategy(name, encoding)
    if name.startswith("oracle"):
        rule = knowing_oracle(rule, [mr_slice], [scan.reference], recipe, 0)
    target = max(1, round(mr_slice.candidates.size / float(str(cell["acceleration"]))))
    start = DesignPlan.of(rule, recipe, mr_slice.candidates).start_lines(mr_slice.measured, target, 0, mr_slice.n_coils)
    options = DesignOptions(draw=int(str(cell["draw"])))
    return run_design([mr_slice], rule, target, recipe, seed=0, start=start, options=options).trace.lines


def measured(setting: Setting, cell: Row) -> Row:
    """A mask, and the error of the image made from it."""
    recipe, scan = setting.recipe(encoding_of(str(cell["strategy"]))[0]), setting.scan(cell)
    mr_slice = scan.prepared.slice_model(0, **recipe.slice_settings)
    chosen = mask_by(scan, mr_slice, cell, recipe)
    image = reconstruct_by_recipe(mr_slice, chosen, recipe, 0).image
    return {"error": relative_error(image, scan.reference), "chosen": len(chosen)}


def measured_by_both(setting: Setting, cell: Row) -> Row:
    """A mask made under `local`, and the errors of the images that both recipes make of it."""
    scan = setting.scan(cell, 0 if cell["coils"] == 1 else None)
    recipes = {"error": setting.recipe(name=None), "local_error": setting.recipe()}
    slices = {column: scan.prepared.slice_model(0, **recipe.slice_settings) for column, recipe in recipes.items()}
    chosen = mask_by(scan, slices["local_error"], cell, recipes["local_error"])
    made = {name: reconstruct_by_recipe(one, chosen, recipes[name], 0).image for name, one in slices.items()}
    return {name: relative_error(image, scan.reference) for name, image in made.items()} | {"chosen": len(chosen)}


def tuning_cells(setting: Setting) -> list[Row]:
    """Names of all cells on training images."""
    return [
        setting.cell(case, f"{family}:{power:g}", image)
        for case in setting.cases()
        for family in of_coils(FAMILIES, case[0])
        for power in setting.tried(family)
        for image in setting.training
    ]


def tuned_names(setting: Setting) -> dict[tuple[int, float], dict[str, str]]:
    """By case, of every family that is tuned, ``FAMILY, tuned`` to the strategy's name with the best power."""
    kept, found = setting.table("tuning"), dict[tuple[int, float], dict[str, str]]()
    for case in setting.cases():
        for family in of_coils(FAMILIES, case[0]):
            about = {"matrix": setting.matrix, "coils": case[0], "acceleration": case[1]}
            names = [f"{family}:{power:g}" for power in setting.tried(family)]
            errors = {name: kept.draws(**about, strategy=name) for name in names}
            if all(len(errors[name]) == len(setting.training) for name in names):
                best = min(names, key=lambda name, errors=errors: np.mean([*errors[name].values()]))
                found.setdefault(case, {})[f"{family}, tuned"] = best
    return found


def first_density(names: Mapping[str, str]) -> tuple[str, str]:
    """Competitors of the designs of a case, by their names in tables and in the package."""
    return next(iter(names.items()))


def changes(
    kept: Cells, case: Row, named: Mapping[str, str], strategy: str, against: str, column: str = "error"
) -> Row:
    """Mean error of a strategy, and its change image by image, on the images that both have.

    Parameters
    ----------
    kept : Cells
        The table.
    case : mapping
        Of the rows to look at.
    named : mapping of str to str
        How tables call strategies, to their names among the rows.
    strategy, against : str
        Which one, and which one it is held against.
    column : str
        With the errors.
    """
    mine, theirs = (kept.draws(column, **case, strategy=named[name]) for name in (strategy, against))
    images = [image for image in mine if image in theirs]
    if not images:
        return {}
    errors, others = (np.array([np.mean(found[image]) for image in images]) for found in (mine, theirs))
    change = errors / others - 1
    return {
        **{name: value for name, value in case.items() if name != "matrix"},
        "strategy": strategy,
        "images": len(images),
        "masks": sum(len(mine[image]) for image in images),
        "error": float(errors.mean()),
        "against": against,
        "change_percent": 100 * float(change.mean()),
        "worst_percent": 100 * float(change.max()),
        "better_share": float(np.mean(change < 0)),
    }


def masks(setting: Setting) -> None:
    """Tuned and designed masks under `local`."""
    setting.table("tuning").fill(tuning_cells(setting), lambda cell: measured(setting, cell))
    tuned, kept, rows = tuned_names(setting), setting.table("cells"), list[Row]()
    cells = [
        setting.cell(case, name, image, draw)
        for image in setting.tests
        for case, families in tuned.items()
        for names, draws in ((families.values(), setting.draws), (of_coils(DESIGNED, case[0]), 1))
        for name in names
        for draw in range(draws)
    ]
    kept.fill(cells, lambda cell: measured(setting, cell))
    for (coils, factor), families in tuned.items():
        named = families | {name: name for name in of_coils(DESIGNED, coils)}
        case = {"matrix": setting.matrix, "coils": coils, "acceleration": factor}
        for name, stored in named.items():
            found = changes(kept, case, named, name, first_density(families)[0])
            rows.append({**found, "power": stored.partition(":")[2]})
    write(setting, "Masks", "changes", rows)


def default_recipe(setting: Setting) -> None:
    """Masks made under `local`, reconstructed by the default recipe and by `local`."""
    kept, rows = setting.table("default-cells"), list[Row]()
    tuned = {case: names for case, names in tuned_names(setting).items() if case[0] == 1 or case[1] >= 8}
    cells = [
        setting.cell(case, strategy, image)
        for image in setting.tests
        for case, names in tuned.items()
        for strategy in (first_density(names)[1], ALONE)
    ]
    kept.fill(cells, lambda cell: measured_by_both(setting, cell))
    for (coils, factor), names in tuned.items():
        shown, stored = first_density(names)
        case = {"matrix": setting.matrix, "coils": coils, "acceleration": factor}
        for recipe, column in (("default", "error"), ("local", "local_error")):
            found = changes(kept, case, {ALONE: ALONE, shown: stored}, ALONE, shown, column)
            rows.append({"recipe": recipe, **found})
    write(setting, "Under the default recipe", "default-changes", rows)


def write(setting: Setting, heading: str, table: str, rows: Sequence[Row]) -> None:
    """A table as a file and on the page."""
    write_csv(setting.folder / f"{table}.csv", rows)
    put_table(setting.folder / "README.md", heading, rows, None, FORMATS)
    put_conditions(setting.folder / "README.md", "mri-design", "numpy", "scipy")


PARTS = {"masks": masks, "default-recipe": default_recipe}


def main() -> None:
    """Parse the command line, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="../shared/data/mri", help="folder of the study's scans")
    parser.add_argument("--only", choices=PARTS, help="this part only")
    parser.add_argument("--out", type=Path, default=Path("results/encodings"))
    parser.add_argument("--quick", action="store_true", help="a smoke run on a toy")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    setting = Setting(str(Path(given.data) / "img_3T_complex.npz"), given.out)
    if given.quick:
        few = {"coils": (1,), "accelerations": (4.0,), "training": (0,), "tests": (0,), "draws": 1}
        setting = Setting("phantom:t2w", given.out, 16, powers=(2.0, 6.0), block=12, **few)
    for name in PARTS if given.only is None else [given.only]:
        PARTS[name](setting)


if __name__ == "__main__":
    main()
