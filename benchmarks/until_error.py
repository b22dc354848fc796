"""Where designs end that are to reach an error, and which error the image then has, as a table.

    OMP_NUM_THREADS=1 python benchmarks/until_error.py DATA [--out results/reliability] [--only NAME] [--own-maps]

DATA is the folder of raw scans. Every design runs with the rule behind ``--until-error``, which looks at the image
itself (`experiment.design`), to half of its lines at most, a third of a plane's samples, or 48 spokes. Where the
rule ends it, the error that was predicted of the image is held against the actual one and against the wanted one; not
against the wanted one where the design ended "at once", before which none may end, with a smaller error. Raw
scans are judged by their own complete image, whose noise is taken off the squared error where it was not measured for
the image (as in `benchmarks/error_bars.py`), and error bars are those that the other subjects teach. With --own-maps
raw scans with several coils are designed as `mri-design design` does it, coil maps being those of the lines measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from error_bars import learnt_without
from numpy.typing import NDArray
from parts.error_cases import raw_scan
from parts.pages import put_table

import mri_design as md
from mri_design.design.engine import DesignState
from mri_design.design.strategy import Strategy
from mri_design.design.trace import StopRule
from mri_design.evaluation.tables import Row, write_csv
from mri_design.evidence import error_bars
from mri_design.evidence.error_bars import share_measured
from mri_design.experiment.calibration import calibrate, truth_of, with_measured_maps
from mri_design.experiment.design import DesignOptions, ImageErrors, final_model, run_design
from mri_design.experiment.extent import DesignPlan, candidates_of, slice_of, stop_rule, with_calibration
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.readouts import ShotReadouts
from mri_design.scan.data import KSpaceData

WANTED = (0.05, 0.08, 0.12, 0.20)
SEEDS = (0, 1, 2)
SPOKES = 48
INSIDE = (0.85, 1.1)
"""Actual over wanted error of a design that ended where it was to end."""
LEAST = 0.2
"""Share of the squared error that is left at least when a reference's noise is taken off."""
RAW = {
    "mc_brain_cimax16": "mc_brain_cimax16",
    "mc_brain_8a": "mc_brain_8a",
    "mc_brain_prescan16": "mc_brain_prescan16",
    "mc_brain_cimax2": "mc_brain_cimax2",
    "ge_pfile8": "ge_pfile8",
    "mc_phantom_ffe12": "mc_phantom_ffe12",
    "mc_phantom_cimax16": "mc_phantom_cimax16",
    "lf_6B_gre": "6B",
    "lf_7A_fse": "7A",
    "lf_7B_flair": "7B",
    "wrist_ap": "wrist",
    "sc_head_sag": "head sag",
}
"""Raw scans, and the subjects of `error_bars.py` that they are of."""
OWN_MAPS = ("mc_brain_cimax16", "mc_brain_prescan16", "mc_brain_cimax2", "ge_pfile8", "mc_phantom_ffe12")
"""Those of ``--own-maps``."""
OWN_WANTED = (0.05, 0.08)
PAGE = "until-error", ("Predicted, wanted and actual errors", "Every design")
OWN_PAGE = (
    "until-error-own-maps",
    ("Coil maps from the lines measured", "Every design whose coil maps come from its lines"),
)
"""Name of the table, and the headings of summary and rows on the page."""
PHANTOM_SUBJECTS = ("6A", "7A")
"""The heads of the phantoms t2w and t1w."""
RAW_MATRIX = 128
"""The middle of the k-space of raw scans is theirs."""


@dataclass(frozen=True)
class Case:
    """A scan to design on.

    Parameters
    ----------
    name : str
        In the table.
    scan : KSpaceData
        Calibrated.
    recipe : Recipe
        What is chosen.
    source : str
        Phantom that the scan is simulated from; empty for raw scans.
    share : float
        Of the candidates that may be measured.
    """

    name: str
    scan: KSpaceData
    recipe: Recipe
    source: str = ""
    share: float = 0.5

    @property
    def raw(self) -> bool:
        """Whether the truth is a noisy image."""
        return not self.source

    @property
    def strategy(self) -> Strategy:
        """The one that the command takes."""
        encoding = self.recipe.design.encoding
        return make_strategy("information-gain" if encoding == "radial" else "calibrated", encoding)

    def slice_model(self, seed: int) -> SliceModel:
        """The slice with its candidates."""
        if self.recipe.design.encoding in ("lines", "plane"):
            return self.scan.slice_model(0, **self.recipe.slice_settings)
        on_grid = self.scan.slice_model(0, **self.recipe.replacing("design", encoding="lines").slice_settings)
        shots = candidates_of(self.recipe, self.strategy, on_grid.shape, SPOKES, on_grid.n_coils)
        assert isinstance(shots, ShotReadouts)
        return slice_of(on_grid, shots, self.source, lambda: truth_of(self.scan), self.recipe, seed)


def cases(data: Path, seed: int) -> Iterator[Case]:
    """Raw scans, then phantoms with one coil and with eight, lines, samples of a plane and spokes."""
    default = load_recipe(None)
    for name in RAW if seed == 0 else ():
        raw = raw_scan(data / f"{name}.npy", RAW_MATRIX).calibrated
        yield _case(name, replace(raw, coil_maps=None), default)
    for matrix, coils in ((64, 1), (64, 8), (128, 1)):
        recipe = default.replacing("input", matrix=matrix).replacing("simulation", coils=coils)
        for name in ("brain", "t2w", "t1w") if coils == 1 else ("brain", "t2w"):
            text = f"{name}, {matrix} x {matrix}, {coils} coil{'s' * (coils > 1)}"
            yield phantom(text, name, recipe, seed)
    small = default.replacing("input", matrix=64)
    for name in ("brain", "t2w", "t1w"):
        yield phantom(f"{name}, plane of 64 x 64", name, small.replacing("design", encoding="plane"), seed, 1 / 3)
        yield phantom(f"{name}, spokes, 64 x 64", name, small.replacing("design", encoding="radial"), seed, 1.0)


def phantom(text: str, name: str, recipe: Recipe, seed: int, share: float = 0.5) -> Case:
    """A phantom of that name, by the simulation of the recipe."""
    data = load_scan(f"phantom:{name}", recipe, seed).select_slice(0)
    return _case(text, data, recipe, f"phantom:{name}", share)


def _case(text: str, data: object, recipe: Recipe, source: str = "", share: float = 0.5) -> Case:
    scan = calibrate(data, recipe, calibration_lines=recipe.calibration_lines, ordinary=True)  # type: ignore[arg-type]
    return Case(text, scan, with_calibration(recipe, scan.provenance.maps.calibration_lines), source, share)


def measured(case: Case, seed: int, wanted: Sequence[float] = WANTED) -> Iterator[Row]:
    """A row for every wanted error: where the design ends, what was predicted of the image, and what it is."""
    model = learnt_without([RAW[case.name]] if case.raw else PHANTOM_SUBJECTS)
    error_bars.shipped_squared_error_model = lambda: model  # type: ignore[assignment]
    one, encoding = case.slice_model(seed), case.recipe.design.encoding
    strategy = case.strategy
    shots = isinstance(one.candidates, ShotReadouts)
    most = SPOKES if shots else round(case.share * int(one.measured.sum()))
    calibration = case.scan.provenance.maps.calibration_lines if encoding == "lines" else 0
    plan = DesignPlan.of(strategy, case.recipe, one.candidates)
    start = plan.start_lines(one.measured, most, calibration, one.n_coils)
    looks = ImageErrors(case.recipe, seed)
    for error in wanted:
        rule = stop_rule(case.recipe.replacing("design", until_error=error), strategy, by_image=True)
        assert isinstance(rule, StopRule)
        options = DesignOptions(stop=rule, closing=True, image_error=looks)
        state = run_design([one], strategy, most, case.recipe, seed=seed, start=start, options=options)
        trace = state.trace
        end = trace.closing if trace.declined is None else trace.declined.forecast
        assert end is not None
        missed = trace.declined is not None and rule.out_of_reach(trace.declined.forecast)
        early, looked = trace.declined is not None and not missed, len(trace.steps) > rule.fewest
        actual = actual_error(case, one, state, seed)
        yield {
            "kind": kind(case.name),
            "scan": case.name,
            "seed": seed,
            "start": len(start),
            "of": one.candidates.size,
            "wanted": error,
            "ends at": len(trace.lines),
            "because": "out of reach" if missed else _ended(early, looked),
            "looks": 1 + sum(bool(np.isfinite(step.forecast.image_error)) for step in trace.steps),
            "predicted by the design": _known(end.predicted_error),
            "predicted of the image": _known(end.image_error),
            "actual": _known(actual),
            "predicted over actual": _known(end.image_error / actual),
            "actual over wanted": _known(actual / error) if early and (looked or actual > error) else None,
        }


def _ended(early: bool, looked: bool) -> str:
    if not early:
        return "all measured"
    return "reached" if looked else "at once"


def designs(data: Path, seeds: Sequence[int], only: str = "") -> Iterator[Row]:
    """Rows of all cases, seed by seed."""
    for seed in seeds:
        for case in (case for case in cases(data, seed) if only in case.name):
            yield from measured(case, seed)


def own_maps(data: Path, seeds: Sequence[int], only: str = "") -> Iterator[Row]:
    """A row for every design from Python whose coil maps come from the lines measured, and half of them at most."""
    for name in (name for name in OWN_MAPS if only in name):
        model = learnt_without([RAW[name]])
        error_bars.shipped_squared_error_model = lambda model=model: model  # type: ignore[assignment, misc]
        scan = md.load(data / f"{name}.npy")
        for error, seed in product(OWN_WANTED, seeds):
            design = scan.design(scan.kspace.shape[-2] // 2, until_error=error, seed=seed)
            trace, found = design.trace, design.error
            reached = trace.declined is not None and found.predicted is not None and found.predicted <= error
            yield {
                "kind": "lines, own maps",
                "scan": name,
                "seed": seed,
                "start": len(trace.start),
                "of": scan.kspace.shape[-2],
                "wanted": error,
                "ends at": len(trace.lines),
                "because": "reached" if reached else "all measured" if trace.declined is None else "out of reach",
                "looks": reached + sum(bool(np.isfinite(step.forecast.image_error)) for step in trace.steps),
                "predicted of the image": None if found.predicted is None else _known(found.predicted),
                "actual": None if found.found is None else _known(found.found),
                "predicted over actual": found.predicted and found.found and _known(found.predicted / found.found),
                "actual over wanted": _known(found.found / error) if reached and found.found else None,
            }


def actual_error(case: Case, one: SliceModel, state: DesignState, seed: int) -> float:
    """Relative L2 error of the image in the end, phase included."""
    lines = state.trace.lines
    model, _, options = final_model(one, state, case.recipe)
    made = reconstruct_prepared(model, lines, "mean", case.recipe, image_rng(seed), options=options)
    reference = truth_of(with_measured_maps(case.scan, one.coil_map_estimate(lines)))
    squared = float(np.sum(np.abs(made.image - reference).astype(float) ** 2))
    energy = float(np.sum(np.abs(reference).astype(float) ** 2))
    if case.raw:
        noise = 2 * model.noise_variance * reference.size
        squared = max(squared - (1 - 2 * share_measured(model, lines)) * noise, LEAST * squared)
        energy -= noise
    return float(np.sqrt(squared / energy))


def _known(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def kind(name: str) -> str:
    """What the design of a scan is of."""
    if name in RAW:
        return "lines, raw scans"
    return "samples of a plane" if "plane" in name else "spokes" if "spokes" in name else "lines, phantoms"


def summary(rows: Sequence[Row]) -> list[Row]:
    """Where designs ended because the error was reached: actual over wanted; and of all, predicted over actual."""
    found: list[Row] = []
    for name in dict.fromkeys(str(row["kind"]) for row in rows):
        group = [row for row in rows if row["kind"] == name]
        wanted, apart = _column(group, "actual over wanted"), _column(group, "predicted over actual")
        found.append(
            {
                "designs of": name,
                "ended": f"{len(wanted)} of {len(group)}",
                "actual over wanted, least": _rounded(wanted, np.min),
                "median": _rounded(wanted, np.median),
                "largest": _rounded(wanted, np.max),
                "in [.85, 1.1]": _share(wanted, *INSIDE),
                "at most 1.1": _share(wanted, 0, INSIDE[1]),
                "predicted over actual, median": _rounded(apart, np.median),
                "within 15 %": _share(apart, 1 / 1.15, 1.15),
            }
        )
    return found


def _column(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    return np.array([float(str(row[name])) for row in rows if row[name] is not None])


def _rounded(values: NDArray[np.float64], of: object) -> float | None:
    return round(float(of(values)), 2) if len(values) else None  # type: ignore[operator]


def _share(values: NDArray[np.float64], low: float, high: float) -> str:
    return f"{np.mean((values >= low) & (values <= high)):.0%}" if len(values) else ""


def main() -> None:
    """Measure, and write until-error.csv and until-error.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/reliability"))
    parser.add_argument("--only", default="", help="part of the names of scans")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--own-maps", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    made = own_maps if arguments.own_maps else designs
    name, headings = OWN_PAGE if arguments.own_maps else PAGE
    rows: list[Row] = []
    for row in made(arguments.data, seeds, arguments.only):
        rows.append(row)
        print(*row.values(), flush=True)
        if not arguments.only:
            write_csv(arguments.out / f"{name}.csv", rows)
    if not arguments.only:
        for heading, table in zip(headings, (summary(rows), rows), strict=True):
            put_table(arguments.out / "until-error.md", heading, table)


if __name__ == "__main__":
    main()
