"""Samples of a plane (ky, kz): designed masks against tuned ones, as tables in a folder.

    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA [--minutes M] [--out results/encodings]
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --positions
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --seen
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --default-recipe
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --steps

DATA is the folder of the study's scans (`study/split.py`), or ``phantom:NAME``. Densities are tuned on training
subjects and judged on others, with coil maps known and the posterior mean of the recipe ``local`` for every mask. What
has been computed is kept in the folder, and the same command goes on from there. With ``--minutes`` it ends early and
writes its tables from what there is; ``--only`` computes some of the cases and writes the tables of all, and so do
``--positions``, which computes the masks that several positions of a volume share, ``--seen``, which designs masks
after an earlier scan of the object, ``--default-recipe``, which reconstructs masks under the default recipe, too, and
``--steps``, which measures the processor time of design steps. `encodings_results.py` runs all five, and the benchmark
of spokes and spirals.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from parts.targets import Tables, Target, reported, with_targets
from planes.kept import Kept, change_columns
from planes.masks import EARLIER, EARLIER_SEED, mask_by, mask_of_frame
from planes.positions import SharedMasks
from planes.recipes import RecipeMasks, recipe_targets
from planes.seen import NOW, SEEN, SEEN_KEY, SeenMasks, explained
from planes.steps import cost_ratio, step_rows
from study.movements import SAME
from study.scans import Scan, simulated, simulating
from study.split import TEST_HEADS, TRAINING_HEADS

from mri_design.design.trials import relative_error
from mri_design.evaluation.tables import Row, markdown_text, read_csv_texts, write_csv
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy, tuned_families
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import EncodingName
from mri_design.runs.scans import knowing_oracle
from mri_design.scan.io.atomic import write_text

LINES = "lines, "
"""Before the names of strategies that choose whole lines."""
FAMILIES = {1: ("vd-polynomial",), 8: ("poisson-disc", "vd-polynomial")}
"""Families that are tuned, by number of coils; the first is what designs are held against."""
DESIGNED = ("calibrated", "oracle-hole", "expected-error")
LINE_FAMILY = "vd-polynomial"


@dataclass(frozen=True)
class Setting:
    """What is measured.

    Parameters
    ----------
    source : str
        File of images, or ``phantom:NAME``.
    matrix : int
        Samples along ky and kz.
    coils, accelerations : tuple of int, tuple of float
        Every pair of them is a case.
    training, tests : tuple of int
        Images of ``source`` that densities are tuned on, and that masks are judged on.
    draws, tuning_draws : int
        Random masks of each density on every test and training image.
    series : tuple of float
        Accelerations, of one coil, at which masks of an earlier frame are judged.
    powers : callable, optional
        Family -> the powers that tuning tries; by default those of `compare`.
    block : int, optional
        Samples that are chosen after each inference; by default a 200th of the plane.
    shared : SharedMasks, optional
        What is measured of masks that several positions of a volume share.
    """

    source: str
    matrix: int = 128
    coils: tuple[int, ...] = (1, 8)
    accelerations: tuple[float, ...] = (12.0, 8.0, 4.0)
    training: tuple[int, ...] = TRAINING_HEADS
    tests: tuple[int, ...] = TEST_HEADS[:10]
    draws: int = 3
    tuning_draws: int = 1
    series: tuple[float, ...] = (8.0,)
    powers: Callable[[str], Sequence[float]] | None = None
    block: int | None = None
    shared: SharedMasks | None = None

    def recipe(self, encoding: EncodingName) -> Recipe:
        """The recipe ``local`` for lines or for a plane."""
        return load_recipe("local").replacing("design", encoding=encoding, block=self.block)

    def tried(self, strategy: str) -> Sequence[float]:
        """Powers that tuning tries of a family."""
        encoding, family = encoding_of(strategy)
        return tuned_families(encoding)[family] if self.powers is None else self.powers(strategy)

    def families(self, coils: int) -> tuple[str, ...]:
        """Families that are tuned, lines last where there is one coil."""
        planes = FAMILIES[1 if coils == 1 else 8]
        return (*planes, LINES + LINE_FAMILY) if coils == 1 else planes

    def designed(self, coils: int, acceleration: float) -> tuple[str, ...]:
        """Masks of a case that are not tuned."""
        if coils > 1:
            return (*DESIGNED, "caipi")
        return (*DESIGNED, EARLIER) if acceleration in self.series else DESIGNED


@dataclass(frozen=True)
class Part:
    """Which of the cells are computed.

    Parameters
    ----------
    coils, accelerations : tuple of int, tuple of float
        Of these cases.
    strategies : tuple of str, optional
        Beside the tuned ones; by default all.
    draws : int, optional
        Random masks of each density on every test image, at most.
    """

    coils: tuple[int, ...] = (1, 8)
    accelerations: tuple[float, ...] = (12.0, 8.0, 4.0)
    strategies: tuple[str, ...] | None = None
    draws: int | None = None

    def has(self, row: Row) -> bool:
        """Whether a cell belongs to it."""
        if row["coils"] not in self.coils or row["acceleration"] not in self.accelerations:
            return False
        tuned = ":" in str(row["strategy"])
        if tuned:
            return self.draws is None or int(str(row["draw"])) < self.draws
        return self.strategies is None or row["strategy"] in self.strategies


def encoding_of(strategy: str) -> tuple[EncodingName, str]:
    """Whether a name is one of lines or of samples of a plane, and the name that the package knows."""
    return ("lines", strategy.removeprefix(LINES)) if strategy.startswith(LINES) else ("plane", strategy)


def measured(setting: Setting, scan: Scan, cell: Row) -> Row:
    """A mask, and the error of the image made from it."""
    encoding, name = encoding_of(str(cell["strategy"]))
    recipe = setting.recipe(encoding)
    slice_model: MRSlice = scan.prepared.slice_model(0, recipe)
    acceleration = float(str(cell["acceleration"]))
    began = time.process_time()
    if name == EARLIER:
        frame = _scan(setting, cell, EARLIER_SEED)
        chosen = mask_of_frame([frame.prepared.slice_model(0, recipe)], acceleration, recipe)
    else:
        rule = make_strategy(name, encoding)
        if name.startswith("oracle"):
            rule = knowing_oracle(name, [slice_model], [scan.reference], recipe, 0)
        chosen = mask_by(rule, [slice_model], acceleration, recipe, int(str(cell["draw"])))
    seconds = time.process_time() - began
    image = reconstruct_by_recipe(slice_model, chosen, recipe, 0).image
    return {"error": relative_error(image, scan.reference), "chosen": len(chosen), "design_seconds": round(seconds, 2)}


def _scan(setting: Setting, cell: Row, seed: int) -> Scan:
    recipe = simulating(setting.matrix, coils=int(str(cell["coils"])))
    return simulated(setting.source, [int(str(cell["image"]))], recipe, seed=seed)[0]


def wanted(setting: Setting, tuned: dict[tuple[int, float, str], float]) -> Iterator[Row]:
    """Names of all cells on test images, image by image, so that a part of them covers every case."""
    for image in setting.tests:
        for coils in setting.coils:
            for acceleration in setting.accelerations:
                case = {"matrix": setting.matrix, "coils": coils, "acceleration": acceleration}
                for family in setting.families(coils):
                    power = tuned.get((coils, acceleration, family))
                    for draw in range(setting.draws if power is not None else 0):
                        yield {**case, "strategy": f"{family}:{power:g}", "image": image, "draw": draw}
                for strategy in setting.designed(coils, acceleration):
                    yield {**case, "strategy": strategy, "image": image, "draw": 0}


def tuning(setting: Setting) -> Iterator[Row]:
    """Names of all cells on training images."""
    for coils in setting.coils:
        for acceleration in setting.accelerations:
            for family in setting.families(coils):
                for power in setting.tried(family):
                    for image in setting.training:
                        for draw in range(setting.tuning_draws):
                            yield {
                                "matrix": setting.matrix,
                                "coils": coils,
                                "acceleration": acceleration,
                                "strategy": f"{family}:{power:g}",
                                "image": image,
                                "draw": draw,
                            }


def best_powers(setting: Setting, kept: Kept) -> dict[tuple[int, float, str], float]:
    """The power with the least mean error on the training images, for every case and family that is complete."""
    best: dict[tuple[int, float, str], float] = {}
    for coils in setting.coils:
        for acceleration in setting.accelerations:
            for family in setting.families(coils):
                case = {"matrix": setting.matrix, "coils": coils, "acceleration": acceleration}
                means: dict[float, float] = {}
                for power in setting.tried(family):
                    errors = kept.errors(**case, strategy=f"{family}:{power:g}")
                    if len(errors) == len(setting.training):
                        means[power] = float(np.mean(list(errors.values())))
                if len(means) == len(setting.tried(family)):
                    best[coils, acceleration, family] = min(means, key=means.__getitem__)
    return best


def compute(setting: Setting, folder: Path, seconds: float = np.inf, part: Part | None = None) -> None:
    """Fill the tables of the folder as far as some seconds of processor time go, with a part of the cells or all."""
    began, scans = time.process_time(), dict[tuple[int, int], Scan]()
    tuned, cells = Kept.open(folder / "tuning.csv"), Kept.open(folder / "cells.csv")

    def fill(kept: Kept, rows: Iterator[Row]) -> bool:
        for row in rows:
            if kept.has(row) or not (part is None or part.has(row)):
                continue
            if time.process_time() - began > seconds:
                return False
            at = int(str(row["image"])), int(str(row["coils"]))
            if at not in scans:
                scans[at] = _scan(setting, row, at[1])
            kept.keep({**row, **measured(setting, scans[at], row)})
        return True

    if fill(tuned, tuning(setting)):
        fill(cells, wanted(setting, best_powers(setting, tuned)))


def shared_densities(setting: Setting, folder: Path) -> dict[float, list[str]]:
    """By acceleration of the series, the tuned density and then the others that were tried; only where it is tuned."""
    powers, family = best_powers(setting, Kept.open(folder / "tuning.csv")), FAMILIES[1][0]
    found: dict[float, list[str]] = {}
    for factor in setting.series:
        tuned = powers.get((1, factor, family))
        if tuned is not None:
            tried = [tuned, *(power for power in setting.tried(family) if power != tuned)]
            found[factor] = [f"{family}:{power:g}" for power in tried]
    return found


def compute_shared(setting: Setting, folder: Path) -> None:
    """Fill the table of masks that positions share, once the density is tuned."""
    kept = Kept.open(folder / "positions.csv")
    for factor, densities in shared_densities(setting, folder).items():
        if setting.shared is not None:
            setting.shared.compute(kept, factor, densities)


def missing(setting: Setting, folder: Path) -> list[str]:
    """What has not been computed, a sentence for every case and strategy."""
    tuned, cells = Kept.open(folder / "tuning.csv"), Kept.open(folder / "cells.csv")
    powers = best_powers(setting, tuned)
    found: list[str] = []
    for coils in setting.coils:
        for acceleration in setting.accelerations:
            case = {"matrix": setting.matrix, "coils": coils, "acceleration": acceleration}
            words = f"{coils} coil{'s' if coils > 1 else ''}, {acceleration:g}x, "
            for family in setting.families(coils):
                power = powers.get((coils, acceleration, family))
                if power is None:
                    found.append(f"{words}{family}: not tuned.")
                    continue
                drawn = cells.draws(**case, strategy=f"{family}:{power:g}")
                masks, asked = sum(map(len, drawn.values())), setting.draws * len(setting.tests)
                if masks < asked:
                    found.append(f"{words}{family}: {masks} of {asked} masks.")
            for strategy in setting.designed(coils, acceleration):
                images = len(cells.errors(**case, strategy=strategy))
                if images < len(setting.tests):
                    found.append(f"{words}{strategy}: {images} of {len(setting.tests)} images.")
    return found


def changes(setting: Setting, folder: Path) -> list[Row]:
    """Error of every strategy at every case, and its change against the first tuned family, image by image."""
    tuned, cells = Kept.open(folder / "tuning.csv"), Kept.open(folder / "cells.csv")
    powers = best_powers(setting, tuned)
    rows: list[Row] = []
    for coils in setting.coils:
        for acceleration in setting.accelerations:
            case = {"matrix": setting.matrix, "coils": coils, "acceleration": acceleration}
            named = {
                f"{family}, tuned": f"{family}:{powers[coils, acceleration, family]:g}"
                for family in setting.families(coils)
                if (coils, acceleration, family) in powers
            }
            named |= {name: name for name in setting.designed(coils, acceleration)}
            draws = {shown: cells.draws(**case, strategy=name) for shown, name in named.items()}
            competitor = f"{setting.families(coils)[0]}, tuned"
            for shown, name in named.items():
                columns = change_columns(draws, shown, competitor)
                if columns is not None:
                    case = {"coils": coils, "acceleration": acceleration, "strategy": shown}
                    rows.append({**case, "power": name.partition(":")[2], **columns})
    return rows


def shared_changes(setting: Setting, folder: Path) -> list[Row]:
    """The same of masks that positions share, by acceleration."""
    kept, rows = Kept.open(folder / "positions.csv"), list[Row]()
    for factor, densities in shared_densities(setting, folder).items():
        if setting.shared is not None:
            rows += setting.shared.changes(kept, factor, densities)
    return rows


def recipe_masks(setting: Setting) -> RecipeMasks:
    """What is measured of masks under the default recipe."""
    return RecipeMasks(
        lambda image, coils: _scan(setting, {"coils": coils, "image": image}, 0 if coils == 1 else coils),
        setting.tests,
        setting.matrix,
        setting.block,
    )


def recipe_densities(setting: Setting, folder: Path) -> dict[tuple[int, float], str]:
    """By coils and acceleration, with several coils from 8 on, the tuned density; only where it is tuned."""
    cases = [(coils, factor) for coils in setting.coils for factor in setting.accelerations]
    return _tuned(setting, folder, [(coils, factor) for coils, factor in cases if coils == 1 or factor >= 8])


def _tuned(setting: Setting, folder: Path, cases: Sequence[tuple[int, float]]) -> dict[tuple[int, float], str]:
    """The first family of each of the cases with its tuned power, where there is one."""
    powers = best_powers(setting, Kept.open(folder / "tuning.csv"))
    families = {(coils, factor): setting.families(coils)[0] for coils, factor in cases}
    return {
        case: f"{family}:{powers[*case, family]:g}" for case, family in families.items() if (*case, family) in powers
    }


def recipe_changes(setting: Setting, folder: Path) -> list[Row]:
    """Changes of designed masks under both recipes."""
    kept = Kept.open(folder / "default-cells.csv")
    return recipe_masks(setting).changes(kept, recipe_densities(setting, folder))


def seen_masks(setting: Setting) -> SeenMasks:
    """What is measured of masks that are designed after an earlier scan."""
    return SeenMasks(
        lambda image, coils, seed: _scan(setting, {"coils": coils, "image": image}, seed),
        setting.tests,
        setting.recipe("plane"),
        setting.matrix,
    )


def seen_densities(setting: Setting, folder: Path) -> dict[tuple[int, float], str]:
    """By coils and acceleration of the series, the tuned density; only where it is tuned."""
    return _tuned(setting, folder, [(coils, factor) for coils in setting.coils for factor in setting.series])


def seen_changes(setting: Setting, folder: Path) -> list[Row]:
    """Changes of masks designed after an earlier scan, against those without one and against the tuned density."""
    kept = Kept.open(folder / "seen-cells.csv", SEEN_KEY)
    return explained(kept, seen_masks(setting).changes(kept, seen_densities(setting, folder)))


def _number(rows: Sequence[Row], column: str, **case: object) -> float | None:
    found = [row for row in rows if all(row[name] == value for name, value in case.items())]
    return float(str(found[0][column])) if found else None


def _seen_number(factor: float) -> Callable[[Sequence[Row]], float | None]:
    """Mean change with an earlier scan of the same object against the tuned density of one coil."""
    case = {"coils": 1, "acceleration": factor, NOW: SAME, "against": f"{FAMILIES[1][0]}, tuned"}
    return lambda table: _number(table, "change_percent", **case)


def _oracle_share(rows: Sequence[Row], coils: int, factors: Sequence[float]) -> float | None:
    """Mean change of calibrated over that of the hole oracle, over those of the accelerations that have both."""
    mine, oracle = (
        {
            row["acceleration"]: float(str(row["change_percent"]))
            for row in rows
            if (row["coils"], row["strategy"]) == at
        }
        for at in ((coils, "calibrated"), (coils, "oracle-hole"))
    )
    both = [factor for factor in mine if factor in oracle and factor in factors]
    total = sum(oracle[factor] for factor in both)
    return 100 * sum(mine[factor] for factor in both) / total if both and total < 0 else None


def _against_lines(rows: Sequence[Row], factor: float) -> float | None:
    """Per cent by which tuned samples of a plane are better than tuned lines, one coil."""
    plane, lines = (
        _number(rows, "error", coils=1, acceleration=factor, strategy=f"{name}, tuned")
        for name in (FAMILIES[1][0], LINES + LINE_FAMILY)
    )
    return None if plane is None or lines is None else 100 * (plane / lines - 1)


def targets(tables: Tables, setting: Setting, tuned: Mapping[tuple[int, float], str]) -> list[Row]:
    """What was asked for, beside what was measured on all test images, on all positions, and in the steps."""
    positions = len(setting.shared.positions) if setting.shared is not None else 0
    complete = {
        "all": [row for row in tables["changes"] if row["images"] == len(setting.tests)],
        "positions": [row for row in tables["positions"] if row["images"] == positions],
        "steps": tables["steps"],
        "seen": [row for row in tables["seen"] if row["images"] == len(setting.tests)],
        "recipes": [row for row in tables["recipes"] if row["images"] == len(setting.tests)],
    }
    made: list[Target] = []

    def about(
        coils: int, factor: float, column: str, strategy: str = "calibrated"
    ) -> Callable[[Sequence[Row]], float | None]:
        return lambda table: _number(table, column, coils=coils, acceleration=factor, strategy=strategy)

    for coils, bound, worst in ((1, -5.0, 2.0), (8, 0.0, 3.0)):
        for factor in (f for f in setting.accelerations if coils in setting.coils and (coils == 1 or f >= 8)):
            name = f"{coils} coil{'s' if coils > 1 else ''}, {factor:g}x: calibrated against "
            name += f"tuned {FAMILIES[coils][0]}"
            made.append(
                Target(f"{name}, mean change", bound, False, "%", "all", about(coils, factor, "change_percent"))
            )
            made.append(Target(f"{name}, worst image", worst, False, "%", "all", about(coils, factor, "worst_percent")))
            if coils == 1:
                made.append(
                    Target(f"{name}, share better", 0.9, True, "of images", "all", about(coils, factor, "better_share"))
                )
    made += recipe_targets(tuned)
    for coils in setting.coils:
        share = f"share of the hole oracle's gain, {coils} coil{'s' if coils > 1 else ''}"
        for name, factors in {
            share: setting.accelerations,
            **{f"{share}, {factor:g}x": (factor,) for factor in setting.accelerations},
        }.items():
            made.append(Target(name, 80.0, True, "%", "all", partial(_oracle_share, coils=coils, factors=factors)))
    series = "series, 1 coil, {:g}x: mask of an earlier frame, {}, mean change"
    for factor in setting.series:
        one = about(1, factor, "change_percent", EARLIER)
        made.append(Target(series.format(factor, "one position"), -25.0, False, "%", "all", one))
        made.append(Target(series.format(factor, "eight positions"), -10.0, False, "%", "positions", one))
        shared = about(1, factor, "change_percent", SEEN)
        name = f"series, 1 coil, {factor:g}x: {SEEN}, against the tuned density, "
        made.append(Target(f"{name}one position, mean change", -25.0, False, "%", "seen", _seen_number(factor)))
        made.append(Target(f"{name}eight positions, mean change", -10.0, False, "%", "positions", shared))
    for coils in setting.coils:
        name = f"warm design step in the plane, {setting.matrix} x {setting.matrix}, "
        name += f"{coils} coil{'s' if coils > 1 else ''}, CPU time"
        made.append(Target(name, 2.0, False, "line steps", "steps", cost_ratio(coils)))
    return [target.row(complete) for target in made] + [
        reported(f"1 coil, {factor:g}x: tuned samples of a plane against tuned lines", found, "%")
        for factor in setting.accelerations
        for found in [_against_lines(complete["all"], factor)]
    ]


TEXT = """# Samples of a plane

    OMP_NUM_THREADS=1 {command}
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --positions
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --seen
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --default-recipe
    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA --steps

Relative L2 error of the magnitude at {matrix} x {matrix}, samples (ky, kz) of complex heads chosen one by one. Masks
are reconstructed by the posterior mean of the recipe `local`, but for the section on the default recipe; coil maps are
known. Powers were chosen on images {training} with {tuning_draws} draw each, masks are judged on {tests},
subjects that tuning did not see. Random masks
were drawn {draws} times for an image, or as often as the number of `masks` says; designs once. Changes are image by
image against the tuned masks in the column `against`; negative is better. `lines` chooses whole lines at the same
acceleration. `oracle-hole` knows the truth around every sample. `earlier-frame` is a mask made for a scan of the same
image with other noise, in which the samples were chosen on which its posterior mean is most wrong, by the image from
all its samples. With `--only COILS:ACCELERATIONS:STRATEGIES:DRAWS`, as `8:12,8:calibrated:1`, a part is computed.

{state}

{table}

Tuned powers that are the least or the largest of those tried, so that others may be better: {ends}.

## One mask for several positions

With `--positions`, table `positions-changes.csv`.
{positions}

{shared}

## After an earlier scan of the object

With `--seen`, table `seen-changes.csv`: masks that `design --encoding plane --seen` chooses, one for every image. The
earlier scan is complete and has other noise; the scan that is measured shows the same head, or what becomes of its
complex image when it is shifted or turned, or the earlier scan is that of another head. Changes are against the mask
of the same scan without an earlier one, and against one mask of the tuned density. `explained` is the share that the
earlier scan explained of how single samples differ from those around them, as the program says it at the end; below
0.25 it says that the earlier scan may show something else.

{seen}

## Under the default recipe

With `--default-recipe`, table `default-changes.csv`. The same masks under two recipes: made under `local`, once for
every image, and reconstructed by the posterior mean of the default recipe and by that of `local`. The
power of the density is the one tuned under `local`. `error` is that of `calibrated`, `error against` the density's.

{default}

## Design steps

With `--steps`: processor time of one warm step of a design by `calibrated` at {matrix} x {matrix}, recipe `local`, from
the inference to the samples that are measured next: medians, the first two steps are not counted. A design of lines
and one in the plane take turns in one process, from the same number of samples, and each step measures as many samples
as a line has.

{steps}

## Targets

Where the column `measured` is empty, not all test images were measured, or not all positions. The hole oracle's share
is of mean changes, all accelerations together and each alone. It knows energies around a sample and not the sample's
own, so that a share above 100 can be had.

{targets}
"""


SHARED = """Planes {numbers} of the volume `{name}`, a head simulated at 1 mm that comes as magnitude without
noise: each plane got a phase with local exceptions, and noise, of its own. No real volume was measured. One coil; one
mask for all {count} positions, each reconstructed for itself. The power of the density was chosen on the heads above;
that which is best on these positions themselves stands beside it, tried with one mask each.
`earlier-frame` was made for the same planes, phases included, with other noise and without motion, from the errors
summed over the positions. Changes are position by position."""


def document(setting: Setting, folder: Path, command: str) -> list[Row]:
    """Write README.md, changes.csv and the like, and targets.csv; return the targets."""
    rows, shared = changes(setting, folder), shared_changes(setting, folder)
    seen = seen_changes(setting, folder)
    steps = read_csv_texts(folder / "steps.csv") if (folder / "steps.csv").exists() else []
    default = recipe_changes(setting, folder)
    tables: Tables = {"changes": rows, "positions": shared, "seen": seen, "steps": steps, "recipes": default}
    asked = targets(tables, setting, recipe_densities(setting, folder))
    if rows:
        write_csv(folder / "changes.csv", rows)
    if shared:
        write_csv(folder / "positions-changes.csv", shared)
    if seen:
        write_csv(folder / "seen-changes.csv", seen)
    if default:
        write_csv(folder / "default-changes.csv", default)
    write_csv(folder / "targets.csv", with_targets(folder / "targets.csv", asked))
    left = missing(setting, folder)
    state = "Everything that the command asks for was computed."
    if left:
        state = "The run was ended early; the same command goes on. What is missing:\n\n"
        state += "\n".join(f"- {sentence}" for sentence in left)
    formats = {
        "error": ".4f",
        "error against": ".4f",
        "change_percent": "+.1f",
        "worst_percent": "+.1f",
        "better_share": ".2f",
        "explained": ".2f",
    }
    text = TEXT.format(
        command=command,
        matrix=setting.matrix,
        training=", ".join(map(str, setting.training)),
        tuning_draws=setting.tuning_draws,
        tests=", ".join(map(str, setting.tests)),
        draws=setting.draws,
        state=state,
        table=markdown_text(rows, formats=formats) if rows else "Nothing yet.",
        positions=_about_positions(setting),
        shared=markdown_text(shared, formats=formats) if shared else "Nothing yet.",
        seen=markdown_text(seen, formats=formats) if seen else "Nothing yet.",
        default=markdown_text(default, formats=formats) if default else "Nothing yet.",
        steps=markdown_text(steps) if steps else "Nothing yet.",
        ends=_at_an_end(setting, folder),
        targets=markdown_text(asked, formats={"measured": ".2f"}),
    )
    write_text(folder / "README.md", text)
    return asked


def _about_positions(setting: Setting) -> str:
    shared = setting.shared
    if shared is None:
        return "No volume is given."
    numbers = ", ".join(map(str, shared.positions))
    return SHARED.format(numbers=numbers, name=shared.volume.stem, count=len(shared.positions))


def measure_steps(setting: Setting, folder: Path, steps: int = 15) -> None:
    """Write steps.csv: the first test image with every number of coils."""
    rows: list[Row] = []
    for coils in setting.coils:
        scan = simulated(setting.source, setting.tests[:1], simulating(setting.matrix, coils=coils))[0]
        rows += step_rows(scan, steps)
    write_csv(folder / "steps.csv", rows)


def _at_an_end(setting: Setting, folder: Path) -> str:
    """Tuned powers that are the least or the largest ones tried."""
    found = [
        f"{family}:{power:g} ({coils} coil{'s' if coils > 1 else ''}, {factor:g}x)"
        for (coils, factor, family), power in best_powers(setting, Kept.open(folder / "tuning.csv")).items()
        if power in (min(setting.tried(family)), max(setting.tried(family)))
    ]
    return ", ".join(found) or "none"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _part(text: str) -> Part:
    """``8:12,8:calibrated,caipi:1``: coils, accelerations, strategies and draws; empty means all."""
    coils, factors, strategies, draws = (text + ":::").split(":")[:4]
    return Part(
        _numbers(coils) if coils else Part.coils,
        tuple(float(factor) for factor in factors.split(",")) if factors else Part.accelerations,
        tuple(strategies.split(",")) if strategies else None,
        int(draws) if draws else None,
    )


def main() -> None:
    """Parse the command line, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("data", help="folder of the study's scans, or phantom:NAME")
    parser.add_argument("--matrix", type=int, default=128)
    parser.add_argument("--coils", type=_numbers, default=(1, 8))
    parser.add_argument("--accelerations", type=_numbers, default=(12, 8, 4))
    parser.add_argument("--training", type=_numbers, default=TRAINING_HEADS)
    parser.add_argument("--tests", type=_numbers, default=TEST_HEADS[:10])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=np.inf, help="of processor time")
    parser.add_argument("--only", type=_part, help="COILS:ACCELERATIONS:STRATEGIES:DRAWS, as 8:12,8:calibrated:1")
    parser.add_argument("--positions", action="store_true", help="only masks that positions of a volume share")
    parser.add_argument("--seen", action="store_true", help="only masks designed after an earlier scan of the object")
    parser.add_argument("--default-recipe", action="store_true", help="only masks under the default recipe")
    parser.add_argument("--steps", action="store_true", help="only the processor time of design steps")
    parser.add_argument("--out", type=Path, default=Path("results/encodings"))
    given = parser.parse_args()
    phantom = given.data.startswith("phantom:")
    source = given.data if phantom else str(Path(given.data) / "img_3T_complex.npz")
    setting = Setting(
        source,
        given.matrix,
        given.coils,
        tuple(float(factor) for factor in given.accelerations),
        given.training,
        given.tests,
        given.draws,
        shared=None if phantom else SharedMasks(Path(given.data) / "vol_brain_sim.npz", given.matrix),
    )
    given.out.mkdir(parents=True, exist_ok=True)
    if given.positions:
        compute_shared(setting, given.out)
    if given.steps:
        measure_steps(setting, given.out)
    if given.default_recipe:
        kept, tuned = Kept.open(given.out / "default-cells.csv"), recipe_densities(setting, given.out)
        recipe_masks(setting).compute(kept, tuned, 60 * given.minutes)
    if given.seen:
        kept = Kept.open(given.out / "seen-cells.csv", SEEN_KEY)
        seen_masks(setting).compute(kept, seen_densities(setting, given.out), 60 * given.minutes)
    if not (given.positions or given.steps or given.default_recipe or given.seen):
        compute(setting, given.out, 60 * given.minutes, given.only)
    options = f"--coils {','.join(map(str, given.coils))} --tests {','.join(map(str, given.tests))}"
    options += f" --accelerations {','.join(map(str, given.accelerations))} --matrix {given.matrix}"
    for row in document(setting, given.out, f"python benchmarks/plane_encoding.py DATA {options}"):
        print(row)


if __name__ == "__main__":
    main()
