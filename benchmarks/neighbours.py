"""What it does to designs that a line's score counts its neighbours, and how many centre lines to begin with: a table.

    OMP_NUM_THREADS=1 python benchmarks/neighbours.py DATA [--seeds 2] [--jobs 2] [--out results/benchmarks/masks.md]

DATA is the folder of the study's scans; only training subjects are used (`study/split.py`). Heads as they are, heads
cut so that they fill the field of view, denoised low-field slices, and heads seen by 4, 8 and 16 simulated coils. Each
scan is designed by `Calibrated` with every setting; one recipe reconstructs every mask.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.scans import Scan, denoised, simulated, simulating
from study.split import MIDDLE, TRAINING_SUBJECT
from threadpoolctl import threadpool_limits

from mri_design.design.strategies.calibrated import Calibrated
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row, markdown_text
from mri_design.experiment.designing import run_design
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.scan.data import ImageStack
from mri_design.scan.io.atomic import write_text
from mri_design.scan.simulation.scanner import simulate_scan

MATRIX = 128
COUNTS = (16, 24, 32, 48)
RECIPE = Recipe()
OWN, NEAR = (), (0.5, 0.25)
SETTINGS = {1: ((OWN, 8), (NEAR, 8)), 2: ((OWN, 8), (NEAR, 8), (NEAR, 4))}
"""Weights of the neighbours and centre lines, with one coil and with several; the first is what others are held to."""


@dataclass(frozen=True)
class Source:
    """A scan by name, so that it can be made in another process."""

    kind: str
    image: int
    coils: int = 1

    def scan(self, data: Path) -> Scan:
        """The scan."""
        if self.kind == "low field":
            return denoised(data / f"lf_{TRAINING_SUBJECT}_{('gre', 'fse')[self.image]}.npy", MIDDLE, MATRIX)
        file = data / "img_3T_complex.npz"
        if self.kind == "head":
            return simulated(file, [self.image], simulating(MATRIX, coils=self.coils), label="head")[0]
        whole = load_input(str(file), simulating(256), 0).select_slice(self.image)
        assert whole.reference is not None
        middle = slice(64, 64 + MATRIX)
        stack = ImageStack(whole.reference[:, middle, middle], f"head {self.image}, cut")
        rng = np.random.default_rng([0, 1])
        return Scan.of(stack.name, simulate_scan(stack, matrix=None, noise=0.007, phase="own", rng=rng))


SOURCES = (
    *(Source("head", image) for image in (0, 2, 4)),
    *(Source("cut", image) for image in (1, 5)),
    *(Source("low field", image) for image in (0, 1)),
    *(Source("head", image, coils) for image, coils in ((1, 4), (4, 4), (3, 8), (5, 8), (0, 16), (2, 16))),
)


def errors(data: Path, source: Source, seed: int) -> list[Row]:
    """Errors of a scan's designs with one seed."""
    with threadpool_limits(1):
        scan = source.scan(data)
        slice_model = scan.prepared.slice_model(0, RECIPE)
        rows: list[Row] = []
        for neighbours, start in SETTINGS[min(source.coils, 2)]:
            rule = Calibrated(neighbours=neighbours)
            order = run_design([slice_model], rule, max(COUNTS), RECIPE, seed=seed, start=start).trace.lines
            for count in COUNTS:
                image = reconstruct_by_recipe(slice_model, order[:count], RECIPE, 0).image
                error = measure(image, scan.reference).relative_l2
                name = f"{source.kind} {source.image}"
                rows.append(
                    {"scan": name, "coils": source.coils, "seed": seed, "lines": count, "error": error}
                    | {"setting": f"{'neighbours' if neighbours else 'own energy'}, {start} centre lines"}
                )
        return rows


def table(rows: Sequence[Row]) -> list[Row]:
    """A row for each scan and setting: error at each number of lines, mean change, spread over seeds."""
    found: list[Row] = []
    for key in dict.fromkeys((row["scan"], row["coils"]) for row in rows):
        here = [row for row in rows if (row["scan"], row["coils"]) == key]
        first: dict[int, float] = {}
        for setting in dict.fromkeys(str(row["setting"]) for row in here):
            values = {
                count: [float(str(row["error"])) for row in here if (row["setting"], row["lines"]) == (setting, count)]
                for count in COUNTS
            }
            means = {count: float(np.mean(value)) for count, value in values.items()}
            first = first or means
            change = np.mean([means[count] / first[count] - 1 for count in COUNTS])
            spread = np.mean([np.std(value, ddof=1) / np.mean(value) for value in values.values()])
            found.append(
                {"scan": key[0], "coils": key[1], "score": setting}
                | {f"{count} lines": f"{mean:.4f}" for count, mean in means.items()}
                | {"change": f"{100 * change:+.1f} %", "spread over seeds": f"{100 * spread:.1f} %"}
            )
    return found


TEXT = """# Which line to score, and from how many to begin

`{command}`

Relative L2 error of the magnitude on training subjects, {seeds} seeds, 128 x 128, the local posterior mean for every
mask. "Own energy": a line is scored by the energy of the error that is believed of it. "Neighbours": half of what is
believed of its neighbours and a quarter of the next ones count too. `change` is the mean over the numbers of lines
against the first row of the scan, `spread over seeds` the mean standard deviation relative to the mean.

{means}

"""


def summary(rows: Sequence[Row]) -> str:
    """Mean changes with one coil and with several."""
    lines = []
    for kind in ("one coil", "several coils"):
        chosen = [row for row in rows if (row["coils"] == 1) == (kind == "one coil")]
        for score in list(dict.fromkeys(str(row["score"]) for row in chosen))[1:]:
            changes = [float(str(row["change"])[:-2]) for row in chosen if row["score"] == score]
            lines.append(
                f"- {kind}, {score}: {np.mean(changes):+.1f} % on average over {len(changes)} scans, "
                f"{min(changes):+.1f} to {max(changes):+.1f} %"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the page."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--seeds", type=int, default=2)
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--out", type=Path, default=Path("results/benchmarks/masks.md"))
    given = reader.parse_args()
    rows: list[Row] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        jobs = [pool.submit(errors, given.data, source, seed) for source in SOURCES for seed in range(given.seeds)]
        for done, job in enumerate(jobs, 1):
            rows += job.result()
            print(f"{done} of {len(jobs)}", flush=True)
    found = table(rows)
    command = f"OMP_NUM_THREADS=1 python benchmarks/neighbours.py DATA --seeds {given.seeds}"
    text = TEXT.format(command=command, seeds=given.seeds, means=summary(found))
    write_text(given.out, text + markdown_text(found) + "\n")


if __name__ == "__main__":
    main()
