"""Samples of a plane (ky, kz): designed masks against tuned ones, as tables in a folder.

    OMP_NUM_THREADS=1 python benchmarks/plane_encoding.py DATA [--minutes M] [--out results/encodings]

DATA is the folder of the study's scans (`study/split.py`), or ``phantom:NAME``. Densities are tuned on training
subjects and judged on others, with coil maps known and the posterior mean of the recipe ``local`` for every mask. What
has been computed is kept in the folder, and the same command goes on from there. With ``--minutes`` it ends early and
writes its tables from what there is; ``--only`` computes some of the cases and writes the tables of all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from parts.targets import Target
from study.scans import Scan, simulated, simulating
from study.split import TEST_HEADS, TRAINING_HEADS

from mri_design.design.strategy import Strategy
from mri_design.design.trials import relative_error
from mri_design.evaluation.output.tables import Row, csv_text, markdown_text, read_csv_texts, write_csv
from mri_design.experiment.designing import DesignOptions, run_design, start_lines
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy, tuned_families
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import EncodingName, PlaneEncoding
from mri_design.runs.oracles import knowing_oracle
from mri_design.scan.io.atomic import write_text

LINES = "lines, "
"""Before the names of strategies that choose whole lines."""
FAMILIES = {1: ("vd-polynomial",), 8: ("poisson-disc", "vd-polynomial")}
"""Families that are tuned, by number of coils; the first is what designs are held against."""
DESIGNED = ("calibrated", "oracle-hole", "expected-error")
EARLIER = "earlier-frame"
"""The mask on which the posterior mean of an earlier frame, the same image with other noise, is most wrong."""
EARLIER_SEED = 100
LINE_FAMILY = "vd-polynomial"
KEY = ("matrix", "coils", "acceleration", "strategy", "image", "draw")


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

    def recipe(self, encoding: EncodingName) -> Recipe:
        """The recipe ``local`` for lines or for a plane."""
        return load_recipe("local").replacing("design", encoding=encoding, plane_block=self.block)

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


@dataclass
class Kept:
    """Rows of one table, kept in a file as they come.

    Parameters
    ----------
    path : Path
        The file.
    rows : dict
        By the columns of `KEY`.
    """

    path: Path
    rows: dict[tuple[str, ...], Row] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> Kept:
        """With what an earlier run left."""
        found = cls(path)
        for row in read_csv_texts(path) if path.exists() else []:
            found.rows[tuple(row[name] for name in KEY)] = dict(row)
        return found

    def has(self, row: Row) -> bool:
        """Whether there is a row of the same key."""
        return _key(row) in self.rows

    def keep(self, row: Row) -> None:
        """Add a row and write the file."""
        self.rows[_key(row)] = row
        write_text(self.path, csv_text(list(self.rows.values())))

    def draws(self, **wanted: object) -> dict[str, list[float]]:
        """Errors of all draws by image, of the rows whose columns have the wanted values."""
        found: dict[str, list[float]] = {}
        for row in self.rows.values():
            if all(_text(row[name]) == _text(value) for name, value in wanted.items()):
                found.setdefault(str(row["image"]), []).append(float(str(row["error"])))
        return found

    def errors(self, **wanted: object) -> dict[str, float]:
        """Their means over draws."""
        return {image: float(np.mean(errors)) for image, errors in self.draws(**wanted).items()}


def _text(value: object) -> str:
    return f"{float(str(value)):g}" if str(value).replace(".", "", 1).isdigit() else str(value)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(_text(row[name]) for name in KEY)


def encoding_of(strategy: str) -> tuple[EncodingName, str]:
    """Whether a name is one of lines or of samples of a plane, and the name that the package knows."""
    return ("lines", strategy.removeprefix(LINES)) if strategy.startswith(LINES) else ("plane", strategy)


def measured(setting: Setting, scan: Scan, cell: Row) -> Row:
    """A mask, and the error of the image made from it."""
    encoding, name = encoding_of(str(cell["strategy"]))
    recipe = setting.recipe(encoding)
    slice_model: MRSlice = scan.prepared.slice_model(0, recipe)
    target = max(1, round(slice_model.candidates.size / float(str(cell["acceleration"]))))
    began = time.process_time()
    if name == EARLIER:
        frame = _scan(setting, cell, EARLIER_SEED)
        earlier = frame.prepared.slice_model(0, recipe)
        image = reconstruct_by_recipe(earlier, range(earlier.candidates.size), recipe, 0).image
        rule = knowing_oracle("oracle-residual", [earlier], [image], recipe, 0)
        chosen = _mask(earlier, rule, target, recipe, 0)
    else:
        rule = make_strategy(name, encoding)
        if name.startswith("oracle"):
            rule = knowing_oracle(name, [slice_model], [scan.reference], recipe, 0)
        chosen = _mask(slice_model, rule, target, recipe, int(str(cell["draw"])))
    seconds = time.process_time() - began
    image = reconstruct_by_recipe(slice_model, chosen, recipe, 0).image
    return {"error": relative_error(image, scan.reference), "chosen": target, "design_seconds": round(seconds, 2)}


def _mask(slice_model: MRSlice, rule: Strategy, target: int, recipe: Recipe, draw: int) -> Sequence[int]:
    candidates = slice_model.candidates
    plane = candidates if isinstance(candidates, PlaneEncoding) else None
    start = start_lines(slice_model.measured, rule, target, recipe, 0, slice_model.n_coils, plane)
    options = DesignOptions(draw=draw)
    return run_design([slice_model], rule, target, recipe, seed=0, start=start, options=options).trace.lines


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
            by_name = {
                shown: {image: float(np.mean(errors)) for image, errors in found.items()}
                for shown, found in draws.items()
            }
            competitor = f"{setting.families(coils)[0]}, tuned"
            against = by_name.get(competitor, {})
            for shown, errors in by_name.items():
                images = [image for image in errors if image in against]
                if not images:
                    continue
                change = np.array([errors[image] / against[image] - 1 for image in images])
                rows.append(
                    {
                        "coils": coils,
                        "acceleration": acceleration,
                        "strategy": shown,
                        "power": named[shown].partition(":")[2],
                        "images": len(images),
                        "masks": sum(len(draws[shown][image]) for image in images),
                        "error": float(np.mean([errors[image] for image in images])),
                        "against": competitor,
                        "change_percent": 100 * float(change.mean()),
                        "worst_percent": 100 * float(change.max()),
                        "better_share": float(np.mean(change < 0)),
                    }
                )
    return rows


def _number(rows: Sequence[Row], column: str, **case: object) -> float | None:
    found = [row for row in rows if all(row[name] == value for name, value in case.items())]
    return float(str(found[0][column])) if found else None


def _oracle_share(rows: Sequence[Row]) -> float | None:
    """Mean change of calibrated over that of the hole oracle, one coil, over the accelerations that have both."""
    mine, oracle = (
        {
            row["acceleration"]: float(str(row["change_percent"]))
            for row in rows
            if (row["coils"], row["strategy"]) == at
        }
        for at in ((1, "calibrated"), (1, "oracle-hole"))
    )
    both = [factor for factor in mine if factor in oracle]
    total = sum(oracle[factor] for factor in both)
    return 100 * sum(mine[factor] for factor in both) / total if both and total < 0 else None


def _against_lines(rows: Sequence[Row]) -> str:
    """Tuned samples of a plane against tuned lines, for every acceleration with one coil that has both."""
    found: list[str] = []
    for factor in dict.fromkeys(row["acceleration"] for row in rows):
        errors = [
            _number(rows, "error", coils=1, acceleration=factor, strategy=f"{name}, tuned")
            for name in (FAMILIES[1][0], LINES + LINE_FAMILY)
        ]
        if errors[0] is not None and errors[1] is not None:
            found.append(f"{100 * (errors[0] / errors[1] - 1):+.1f} % at {factor:g}x")
    return ", ".join(found) or "not measured"


def targets(rows: Sequence[Row], setting: Setting) -> list[Row]:
    """What was asked for, beside what was measured on all test images."""
    complete = [row for row in rows if row["images"] == len(setting.tests)]
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
    made.append(Target("share of the hole oracle's gain, one coil", 80.0, True, "%", "all", _oracle_share))
    series = "series, 1 coil, {:g}x: mask of an earlier frame, {}, mean change"
    for factor in setting.series:
        one = about(1, factor, "change_percent", EARLIER)
        made.append(Target(series.format(factor, "one position"), -25.0, False, "%", "all", one))
        made.append(Target(series.format(factor, "eight positions"), -10.0, False, "%", "all", lambda table: None))
    return [target.row({"all": complete}) for target in made]


TEXT = """# Samples of a plane

    OMP_NUM_THREADS=1 {command}

Relative L2 error of the magnitude at {matrix} x {matrix}, samples (ky, kz) of complex heads chosen one by one. Masks
are reconstructed by the posterior mean of the recipe `local`, coil maps are known. Powers were chosen on images
{training} with {tuning_draws} draw each, masks are judged on {tests}, subjects that tuning did not see. Random masks
were drawn {draws} times for an image, or as often as the number of `masks` says; designs once. Changes are image by
image against the tuned masks in the column `against`; negative is better. `lines` chooses whole lines at the same
acceleration. `oracle-hole` knows the truth around every sample. `earlier-frame` is a mask made for a scan of the same
image with other noise, in which the samples were chosen on which its posterior mean is most wrong, by the image from
all its samples. With `--only COILS:ACCELERATIONS:STRATEGIES:DRAWS`, as `8:12,8:calibrated:1`, a part is computed.

{state}

{table}

Tuned samples of a plane against tuned lines with one coil, mean errors: {against_lines}.
Tuned powers that are the least or the largest of those tried, so that others may be better: {ends}.

## Targets

Where the column `measured` is empty, not all test images were measured. Masks that eight positions share are not part
of this benchmark: its images are no volumes.

{targets}
"""


def document(setting: Setting, folder: Path, command: str) -> list[Row]:
    """Write README.md, changes.csv and targets.csv; return the targets."""
    rows = changes(setting, folder)
    asked = targets(rows, setting)
    if rows:
        write_csv(folder / "changes.csv", rows)
    write_csv(folder / "targets.csv", asked)
    left = missing(setting, folder)
    state = "Everything that the command asks for was computed."
    if left:
        state = "The run was ended early; the same command goes on. What is missing:\n\n"
        state += "\n".join(f"- {sentence}" for sentence in left)
    formats = {"error": ".4f", "change_percent": "+.1f", "worst_percent": "+.1f", "better_share": ".2f"}
    text = TEXT.format(
        command=command,
        matrix=setting.matrix,
        training=", ".join(map(str, setting.training)),
        tuning_draws=setting.tuning_draws,
        tests=", ".join(map(str, setting.tests)),
        draws=setting.draws,
        state=state,
        table=markdown_text(rows, formats=formats) if rows else "Nothing yet.",
        against_lines=_against_lines(rows),
        ends=_at_an_end(setting, folder),
        targets=markdown_text(asked, formats={"measured": ".2f"}),
    )
    write_text(folder / "README.md", text)
    return asked


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
    parser.add_argument("--out", type=Path, default=Path("results/encodings"))
    given = parser.parse_args()
    source = given.data if given.data.startswith("phantom:") else str(Path(given.data) / "img_3T_complex.npz")
    setting = Setting(
        source,
        given.matrix,
        given.coils,
        tuple(float(factor) for factor in given.accelerations),
        given.training,
        given.tests,
        given.draws,
    )
    given.out.mkdir(parents=True, exist_ok=True)
    compute(setting, given.out, 60 * given.minutes, given.only)
    options = f"--coils {','.join(map(str, given.coils))} --tests {','.join(map(str, given.tests))}"
    options += f" --accelerations {','.join(map(str, given.accelerations))} --matrix {given.matrix}"
    for row in document(setting, given.out, f"python benchmarks/plane_encoding.py DATA {options}"):
        print(row)


if __name__ == "__main__":
    main()
