"""Where designs end that are to reach an error, and which error the image then has, as a table.

    OMP_NUM_THREADS=1 python benchmarks/until_error.py DATA [--out results/reliability]

DATA is the folder of raw scans: ``mc_brain_cimax16.npy``, ``mc_brain_8a.npy`` and ``mc_brain_prescan16.npy``, brains by
16, 8 and 16 coils. The other scans are embedded phantoms with one coil and with eight, lines and samples of a plane.
One design of each scan goes to half of its lines (a third of a plane's samples), and every decision of it is shown to
the rule behind ``--until-error`` for every wanted error: a rule does not change what is chosen. Where it stops first,
the error that the design predicted is held against the actual one, of all lines where the truth is known, else of the
lines that were not measured, and so it is at the end of the design, which wants no error.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from parts.pages import put_table

from mri_design.design.decision import DesignStep
from mri_design.design.stopping import NamedRule
from mri_design.evaluation.predictions import Replay, check_predictions, truth_or_none
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.designing import DesignOptions, design_inference, refinement, run_design
from mri_design.experiment.ending import stop_rule
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.starting import start_lines, with_calibration
from mri_design.experiment.strategy_names import make_strategy

WANTED = (0.05, 0.08, 0.10, 0.11, 0.12, 0.15, 0.20, 0.30)
SEEDS = (0, 1)
RAW = ("mc_brain_cimax16", "mc_brain_8a", "mc_brain_prescan16")


@dataclass(frozen=True)
class Case:
    """A scan to design on.

    Parameters
    ----------
    source : str
        File or phantom.
    name : str
        In the table.
    recipe : Recipe
        What is chosen, and how phantoms become scans.
    share : float
        Of the candidates that may be measured.
    seeds : sequence of int
        Designs.
    """

    source: str
    name: str
    recipe: Recipe
    share: float = 0.5
    seeds: Sequence[int] = SEEDS


@dataclass
class Watcher:
    """A rule that never stops a design and keeps every decision that it is shown, with what is predicted of its end."""

    seen: list[DesignStep] = field(default_factory=list)
    looks_ahead: bool = True

    def __call__(self, step: DesignStep) -> bool:
        self.seen.append(step)
        return False


def cases(data: Path) -> Iterator[Case]:
    """Raw brains, then phantoms."""
    default = load_recipe(None)
    for name in RAW:
        yield Case(str(data / f"{name}.npy"), name, default, seeds=SEEDS[:1])
    for matrix, names in ((64, ("brain", "t2w", "t1w", "shepp-logan")), (128, ("brain", "t2w"))):
        for coils in (1, 8) if matrix == 64 else (1,):
            recipe = default.replacing("simulation", matrix=matrix, coils=coils)
            for name in names[: 4 if coils == 1 else 2]:
                yield Case(f"phantom:{name}", f"{name}, {matrix} x {matrix}, {coils} coil{'s' * (coils > 1)}", recipe)
    yield Case("phantom:lf-gre", "lf-gre (measured)", default, seeds=SEEDS[:1])
    plane = default.replacing("simulation", matrix=48).replacing("design", encoding="plane")
    for name in ("brain", "t2w"):
        yield Case(f"phantom:{name}", f"{name}, plane of 48 x 48, 1 coil", plane, 1 / 3)


def measured(case: Case, seed: int) -> Iterator[Row]:
    """A row for every wanted error: where the design ends, and what the prediction is worth there."""
    recipe = case.recipe
    encoded = recipe.design.encoding
    data = load_input(case.source, recipe, seed).select_slice(0)
    scan = prepare(data, recipe, calibration_lines=recipe.calibration_lines, ordinary=True)
    recipe = with_calibration(recipe, scan.calibration_lines)
    one, strategy = scan.slice_model(0, recipe), make_strategy("calibrated", encoded)
    calibration = scan.calibration_lines if encoded == "lines" else 0
    start = start_lines(one.measured, strategy, None, recipe, calibration, one.n_coils, one.candidates)
    most = max(len(start) + 8, round(case.share * int(one.measured.sum())))
    watcher = Watcher()
    state = run_design(
        [one], strategy, most, recipe, seed=seed, start=start, options=DesignOptions(stop=watcher, closing=True)
    )
    counts = [len(start) + i for i, step in enumerate(state.trace.steps) if not step.choice.pending]
    shown = dict(zip(counts, watcher.seen, strict=True))
    now = {}
    for wanted in WANTED:
        rule = stop_rule(recipe.replacing("design", until_error=wanted), strategy)
        assert rule is not None
        now[wanted] = _first(shown, rule)
    trace = state.trace
    last = len(trace.lines)
    ends = sorted({n for n in (*now.values(), last) if n and trace.forecast(n) is not None})
    replay = Replay(
        design_inference(strategy, recipe),
        seed,
        refinement(recipe),
    )
    truths = [truth_or_none(one, scan.reference(0))]
    checks = check_predictions([one], trace, replay, signals=state.signals, truths=truths, counts=ends)
    errors = {check.n_measured: check.compared for check in checks}
    for wanted in (*WANTED, None):
        lines = last if wanted is None else now[wanted]
        predicted, actual = errors.get(lines or 0, (float("nan"),) * 2)
        yield {
            "scan": case.name,
            "seed": seed,
            "start": len(start),
            "of": one.candidates.size,
            "wanted": "none" if wanted is None else wanted,
            "ends at": lines,
            "predicted": _known(predicted),
            "actual": _known(actual),
            "ratio": _known(predicted / actual if actual else float("nan")),
        }


def _first(shown: dict[int, DesignStep], rule: NamedRule) -> int | None:
    """Candidates measured where the wanted error is reached; None where it is out of reach, or not reached so far."""
    return next((n for n, step in shown.items() if rule(step) and not rule.missed(step)), None)


def _known(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def summary(rows: Sequence[Row]) -> list[Row]:
    """Predicted over actual errors, by what was designed and where."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        in_plane = "plane" in str(row["scan"])
        kind, share = ("samples of a plane", "a third") if in_plane else ("lines", "half")
        place = f"{share} of them measured" if row["wanted"] == "none" else "where the wanted error is predicted"
        groups.setdefault(f"{kind}, {place}", []).append(row)
    return [{"designs of": name, **_shares(_ratios(group, "predicted", "actual"))} for name, group in groups.items()]


def _ratios(rows: Sequence[Row], predicted: str, actual: str) -> NDArray[np.float64]:
    known = [row for row in rows if row[predicted] is not None and row[actual]]
    return np.array([float(str(row[predicted])) / float(str(row[actual])) for row in known])


def _shares(ratios: NDArray[np.float64]) -> Row:
    return {
        "cases": len(ratios),
        "predicted over actual, least": round(float(ratios.min()), 2),
        "median": round(float(np.median(ratios)), 2),
        "largest": round(float(ratios.max()), 2),
        "within a factor of 1.25": f"{np.mean((ratios >= 1 / 1.25) & (ratios <= 1.25)):.0%}",
    }


def main() -> None:
    """Measure, and write until-error.csv and until-error.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/reliability"))
    arguments = parser.parse_args()
    rows: list[Row] = []
    for case in cases(arguments.data):
        for seed in case.seeds:
            rows += measured(case, seed)
            print(
                case.name, seed, *(f"{row['wanted']}:{row['ends at']}:{row['ratio']}" for row in rows[-len(WANTED) :])
            )
    write_csv(arguments.out / "until-error.csv", rows)
    put_table(arguments.out / "until-error.md", "Predicted over actual errors", summary(rows))
    put_table(arguments.out / "until-error.md", "Every design", rows)


if __name__ == "__main__":
    main()
