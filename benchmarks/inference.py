"""The inference engine against its targets: variances, criterion, operators, designs, MAP, memory, growth.

    OMP_NUM_THREADS=1 python benchmarks/inference.py --out results/benchmarks

measures everything (an hour or so) and writes inference.md, inference.csv, targets.csv and inference-growth.png. Tables
are written as soon as they are measured; ``--only SECTION`` (again for more) measures some and keeps the others as they
are in the folder. ``--quick`` is the same on toy sizes in seconds, where targets mean nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from parts.bart_solver import bart_version
from parts.calibration import calibration_rows
from parts.growth import growth_rows, plot_growth
from parts.inner_solvers import SOLVERS, inner_solver_rows
from parts.mvm import mvm_rows
from parts.paper_design import regret_rows, seconds_rows
from parts.peak_memory import design_memory
from parts.phi_gap import gap_rows
from parts.posterior_step import step_rows
from parts.targets import COLUMNS, all_targets, with_targets
from parts.tv_peers import BART_RHO, COIL_RHO, peer_rows
from parts.variance_accuracy import variance_rows
from threadpoolctl import threadpool_limits

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv_texts
from mri_design.scan.io.atomic import write_text
from mri_design.variances.control_variate import ControlVariate

SEED = 0
COMMAND = "OMP_NUM_THREADS=1 python benchmarks/inference.py"
STRATEGY = "information-gain"
GROWTH = "inference-growth.png"


@dataclass(frozen=True)
class Section:
    """One table.

    Parameters
    ----------
    text : str
        What its columns mean.
    full, quick : callables
        Its rows, at full and at toy size.
    """

    text: str
    full: Callable[[], Sequence[Row]]
    quick: Callable[[], Sequence[Row]]


SECTIONS: dict[str, Section] = {
    "variances": Section(
        """Relative error of z = Var[s] / sigma^2 over all coefficients, against dense algebra at the variational
optimum on a quarter of the lines; `matvecs` are products with A. Medians and means are averaged over five seeds of the
estimator, `spread` is the standard deviation of the median over them, `error / stated` compares errors to the standard
errors that the estimator states. `tau/sigma` is the rate per unit of the signal level.""",
        variance_rows,
        lambda: variance_rows(32, (1, 2), (5.0,), ("pixels+differences",), (0, 1)),
    ),
    "criterion": Section(
        """From a cold start: the criterion phi of the site precisions that a run returns, evaluated exactly, above its
minimum phi* by a converged double loop with exact variances; `gap` = (phi - phi*) / |phi*|, median over three seeds.
Products of inner loops and variances together. `within budget` marks an estimator's last row of at most 500.""",
        lambda: gap_rows(64, 8, 500, (0, 1, 2), SEED),
        lambda: gap_rows(32, 2, 500, (0,), SEED, {"control variate, 4 draws": ControlVariate(4)}),
    ),
    "operators": Section(
        """Milliseconds of one product with A = X^H X + B^H diag(pi) B per vector, in a batch of 16, complex64, beside a
plain float64 one (two-dimensional NumPy FFTs, PyWavelets, np.roll). The floor is defined in `parts/mvm.py`.""",
        mvm_rows,
        lambda: mvm_rows(((32, 1, "none"), (32, 1, "pixels+differences"), (32, 8, "none")), 1),
    ),
    "design": Section(
        """A sequential design by the recipe `fast` beside the papers' algorithm as `parts/paper_algorithm.py` has it
(float64, unpreconditioned, k Lanczos vectors, one outer loop a step, all remaining lines scored), one coil. The papers'
whole design would take most of an hour: single steps are timed, each from the state that our design has at that number
of lines, and the seconds in between are interpolated linearly.""",
        lambda: seconds_rows(256, 32, 128, 500, [32, 80, 127], SEED),
        lambda: seconds_rows(32, 8, 12, 16, [8, 11], SEED),
    ),
    "regret": Section(
        """Designs run wholly, ours with three seeds. A decision's regret is what the exact information
gain of its line lacks to the largest one's, under the converged posterior with exact variances at the lines that the
design had then. Every second decision is judged.""",
        lambda: regret_rows(64, 8, 32, 125, 2, (0, 1, 2)),
        lambda: regret_rows(16, 8, 10, 32, 1, (0, 1)),
    ),
    "design step": Section(
        """What a warm step of our design spends, and how far the posterior behind its decision is from the converged
one with exact variances at the same lines: relative 2-norm of the means, median relative difference of z, the
estimator's own error included. Medians over the steps judged, and the largest.""",
        lambda: [*step_rows(64, 16, 32, 5, SEED), *step_rows(256, 32, 128, 3, SEED)],
        lambda: step_rows(32, 8, 12, 2, SEED),
    ),
    "TV MAP": Section(
        """Seconds to a gap (f - f*) / f* of 1e-3, f = ½‖y − Xu‖² + λ TV(u), on a quarter of the lines. Ours:
whole calls that end there. BART: its own clock, stopped at the iteration that gets there, with the penalty parameter
that is fastest of those tried. SigPy: as shipped, and with step sizes and solvers tuned by hand; looking at f is not
counted. BART's isotropic differences look backward: it gets the image reflected. SigPy has anisotropic TV only, and
runs with one coil only. With several coils f* is our own MAP's without smoothing, certified by its duality gap.""",
        lambda: [
            row
            for grid, coils, rhos in ((256, 1, BART_RHO), (128, 8, COIL_RHO), (256, 8, COIL_RHO))
            for row in peer_rows(grid, coils, 1000, 3, 60.0, SEED, rhos)
        ],
        lambda: [row for coils in (1, 2) for row in peer_rows(32, coils, 200, 1, 0.2, SEED, (0.003,))],
    ),
    "inner solvers": Section(
        """Products with A, and seconds, from a cold start to a relative gap of the inner objective; `z` of a
posterior's size or as MAP ends. `automatic / best` is what the automatic choice takes of the best solver's. An
iteration of ADMM counts as a product, though on one coil it is a pair of FFTs.""",
        lambda: inner_solver_rows((64,), (1, 8), (3.0, 30.0), SEED),
        lambda: inner_solver_rows(
            *((32,), (1,), (10.0,), SEED),
            {name: SOLVERS[name] for name in ("L-BFGS", "automatic")},
            ("total variation",),
        ),
    ),
    "calibration": Section(
        """Predicted against actual error on a quarter of the lines, truth known, before and after learning the prior's
scales (one per block and wavelet level) and the noise from the data. `line ratio`: predicted over actual energy of the
unmeasured lines; `line rank`: rank correlation of the two over lines with |k| < N/3; `pixel ratio`, `pixel rank`: the
same for squared errors of pixels; `within 2 sd`: share of pixels (98 % if right). Rates multiply the default ones.
`img_3T_complex` (head images with the scanner's phase) is measured where the file is beside the checkout.""",
        lambda: list(calibration_rows(128, calibration_scans(), SEED)),
        lambda: list(calibration_rows(32, [("phantom:t2w", 0)], SEED, ("pixels + differences",))),
    ),
    "memory": Section(
        "Peak resident memory of a process that designs three lines with eight coils.",
        lambda: [design_memory(STRATEGY, grid, SEED, 3, 8) for grid in (256, 512)],
        lambda: [design_memory(STRATEGY, grid, SEED, 2, 2) for grid in (32,)],
    ),
    "growth": Section(
        f"""One posterior of the default recipe, to its own tolerance, on a quarter of the lines. Exponents are slopes
of log cost against log pixels or log coils.

![Seconds and products against pixels and coils]({GROWTH})""",
        lambda: growth_rows((64, 128, 256, 512, 1024), (1, 2, 4, 8, 16), 128, SEED),
        lambda: growth_rows((32, 40), (1, 2), 32, SEED, 1),
    ),
}


def calibration_scans() -> list[tuple[str, int]]:
    """Embedded slices, and held-out heads with real phase where their file is there."""
    heads = Path(__file__).parents[2] / "shared/data/mri/img_3T_complex.npz"
    real = [(str(heads), index) for index in (6, 12, 18)] if heads.exists() else []
    return [("phantom:t2w", 0), ("phantom:t1w", 0), *real]


def conditions(quick: bool) -> dict[str, str]:
    """What a reader needs to run the same again."""
    versions = installed_versions(("numpy", "scipy", "numba", "sigpy"))
    return {
        "command": f"`{COMMAND}{' --quick' if quick else ''}`",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()) + f", bart {bart_version()}",
        "machine": f"{os.cpu_count()} cores, one thread used",
        "seed": str(SEED),
        "data": "phantom `t2w`, smooth phase, noise 0.007 of the signal per real component",
    }


def document(tables: Mapping[str, Sequence[Row]], targets: Sequence[Row], quick: bool) -> str:
    """Targets, then the tables with what they mean, as Markdown."""
    parts = ["# Inference: targets and measurements\n"]
    parts.append("".join(f"- {name}: {text}\n" for name, text in conditions(quick).items()))
    parts.append(f"## Targets\n\n{markdown_text(targets, COLUMNS, {'measured': '.3g'})}")
    for name, section in SECTIONS.items():
        if name in tables:
            columns = {column for row in tables[name] for column in row}
            formats = {column: ".1e" if "gap" in column or "known" in column else ".3g" for column in columns}
            parts.append(f"## {name[0].upper()}{name[1:]}\n\n{section.text}\n")
            parts.append(markdown_text(tables[name], None, formats))
    return "\n".join(parts)


def kept_tables(path: Path, size: str) -> dict[str, list[Row]]:
    """Tables that an earlier run of the same size left; none where there was no such run."""
    tables: dict[str, list[Row]] = {}
    if path.exists():
        for cells in read_csv_texts(path):
            if cells["size"] == size:
                tables.setdefault(cells["table"], []).append({k: parsed(v) for k, v in cells.items()})
    for name, rows in tables.items():
        used = [column for column in rows[0] if any(row[column] is not None for row in rows)]
        tables[name] = [{column: row[column] for column in used if column not in ("table", "size")} for row in rows]
    return tables


def parsed(text: str) -> object:
    """What a cell of our own csv stands for."""
    if text in ("", "yes", "no"):
        return {"": None, "yes": True, "no": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def write_results(out: Path, tables: Mapping[str, Sequence[Row]], quick: bool) -> str:
    """The three files; the document's text."""
    targets = [target.row(tables) for target in (all_targets(32, 32, 64) if quick else all_targets(64, 256, 512))]
    size = "quick" if quick else "full"
    every = [{"table": name, "size": size} | dict(row) for name in SECTIONS for row in tables.get(name, ())]
    text = document(tables, targets, quick)
    write_text(out / "inference.csv", csv_text(every))
    write_text(out / "targets.csv", csv_text(with_targets(out / "targets.csv", targets), COLUMNS))
    write_text(out / "inference.md", text)
    return text


def main() -> None:
    """Measure, write after each section, print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for the tables")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    arguments.add_argument("--only", action="append", choices=list(SECTIONS), help="measure this section only")
    chosen = arguments.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    tables = kept_tables(chosen.out / "inference.csv", "quick" if chosen.quick else "full")
    text = ""
    for name in chosen.only or SECTIONS:
        section, began = SECTIONS[name], time.perf_counter()
        with threadpool_limits(1):
            tables[name] = list(section.quick() if chosen.quick else section.full())
        if name == "growth":
            plot_growth(tables[name], chosen.out / GROWTH)
        text = write_results(chosen.out, tables, chosen.quick)
        print(f"... {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(text)


if __name__ == "__main__":
    main()
