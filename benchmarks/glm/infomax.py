"""Part infomax: queries for a simulated neuron, and the best free encoding of an MR slice (Lewi et al. 2007).

What was measured is kept in runs.csv, times.csv and encoding.csv; delete a file to measure it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import mri_design as md
from mri_design.evaluation.tables import Row, markdown_text

from .free_encoding_rows import encoding_rows
from .infomax_text import text_of
from .kept_table import measured_once
from .part_folder import PartFolder
from .query_runs import WAYS, curve, exponent, run_rows, sine_wave, time_rows, trials_needed
from .targets import Target

PART = "infomax"


@dataclass(frozen=True)
class Setting:
    """Sizes of everything.

    Parameters
    ----------
    n : int
        Unknowns of the neuron.
    powers : tuple of float
        Norms of the queries.
    seeds : int
        Runs of each way.
    trials : tuple of int
        Of infomax and of independent queries, in these runs.
    long_trials : tuple of int
        One per power: a longer run of infomax, for the asymptote.
    sizes : tuple of int
        n of the timings.
    repeats, warm : int
        Timed trials, and those before.
    grid : int
        Of the slice.
    lines : tuple of int
        Measured before the free encoding is asked for.
    """

    n: int = 20
    powers: tuple[float, ...] = (2.0, 4.0)
    seeds: int = 10
    trials: tuple[int, int] = (800, 6400)
    long_trials: tuple[int, ...] = (12_000, 3000)
    sizes: tuple[int, ...] = (50, 100, 200, 400, 800, 1600)
    repeats: int = 7
    warm: int = 30
    grid: int = 32
    lines: tuple[int, ...] = (6, 12)


NEEDED_COLUMNS = ("power", "squared error", "independent", "infomax", "ratio")
"""Of the table of trials needed, which has no rows where infomax reached no level within its trials."""
QUICK = Setting(6, (2.0,), 2, (30, 60), (50,), (6, 120), 2, 3, 16, (4, 6))


def run(out: Path, data: Path | None, quick: bool) -> list[Target]:
    """Measure, write the folder, return the targets; the data are simulated."""
    folder, setting = PartFolder(out, PART, quick), QUICK if quick else Setting()
    path = folder.path
    rows = measured_once(path / "runs.csv", lambda: all_runs(setting), quick)
    long_rows = [row for row in rows if row["of trials"] in setting.long_trials and row["way"] == "infomax"]
    rows = [row for row in rows if row["of trials"] in setting.trials]
    times = measured_once(path / "times.csv", lambda: time_rows(setting.sizes, setting.repeats, setting.warm), quick)
    encodings = measured_once(path / "encoding.csv", lambda: encoding_rows(setting.grid, setting.lines), quick)
    needed = needed_rows(rows, setting)
    reached = asymptote_rows(rows, long_rows, setting)
    tables = {
        "needed": markdown_text(needed, NEEDED_COLUMNS, {"ratio": ".2f", "squared error": ".3g"}),
        "times": markdown_text(
            times, None, {c: ".2f" for c in times[0] if "ms" in c} | {"largest loss of score": ".0e"}
        ),
        "asymptote": markdown_text(reached, None, {c: ".4g" for c in reached[0]}),
        "encoding": markdown_text(encodings, None, {c: ".3g" for c in encodings[0]}),
    }
    figures = {
        "error-and-variance.png": figure_of(rows, long_rows, setting),
        "time.png": time_figure(times),
    }
    text = text_of(setting, tables, exponents(times))
    folder.write(text, needed, figures, settings=asdict(setting), columns=NEEDED_COLUMNS)
    return targets_of(setting, needed, reached, times, encodings)


def all_runs(setting: Setting) -> list[Row]:
    """Both ways with every seed and power, then the longer runs."""
    plans = [
        (power, way, seed, trials)
        for power in setting.powers
        for way, trials in zip(WAYS, setting.trials, strict=True)
        for seed in range(setting.seeds)
    ]
    plans += [(power, "infomax", 0, long) for power, long in zip(setting.powers, setting.long_trials, strict=True)]
    return [row for plan in plans for row in run_rows(*plan, setting.n)]


def needed_rows(rows: Sequence[Row], setting: Setting) -> list[Row]:
    """How many trials each way needs to the mean error that independent queries have after a number of them."""
    found = []
    for power in setting.powers:
        curves = {way: curve(rows, power, way, "squared error") for way in WAYS}
        trials, errors = curves["independent"]
        for asked in [t for t in (100, 200, 400, 800, 1600, 3200, 6400) if t <= trials[-1]] or [int(trials[-1])]:
            goal = float(np.exp(np.interp(np.log(asked), np.log(trials), np.log(errors.mean(axis=0)))))
            infomax = trials_needed(*curves["infomax"], goal)
            if np.isfinite(infomax):
                found.append(
                    {
                        "power": power,
                        "squared error": goal,
                        "independent": asked,
                        "infomax": round(infomax, 1),
                        "ratio": asked / infomax,
                    }
                )
    return found


def asymptote_rows(rows: Sequence[Row], long_rows: Sequence[Row], setting: Setting) -> list[Row]:
    """Trials times variance at the end of the runs, mean over seeds, beside the prediction."""
    found = []
    for power in setting.powers:
        for way, source, inputs in ((WAYS[0], long_rows, "optimal"), (WAYS[1], rows, "sphere")):
            predicted = md.asymptotic_information(md.PoissonResponse(), sine_wave(setting.n), power, inputs).variances(
                1
            )
            for side, wanted in zip(("along", "across"), predicted, strict=True):
                trials, values = curve(source, power, way, f"trials x variance {side}")
                reached = float(values[:, -1].mean())
                found.append(
                    {
                        "power": power,
                        "way": way,
                        "direction": side,
                        "trials": int(trials[-1]),
                        "trials x variance": reached,
                        "predicted": wanted,
                        "reached / predicted": reached / wanted,
                    }
                )
    return found


def predicted_variances(n: int, power: float, inputs: str) -> tuple[float, float]:
    """Along and across, times the number of trials."""
    return md.asymptotic_information(md.PoissonResponse(), sine_wave(n), power, inputs).variances(1)


def exponents(times: Sequence[Row]) -> dict[str, float]:
    """Fitted over all sizes, and over the larger half, where overheads matter less."""
    columns = ("update ms", "query ms", "update + query ms", "query ms, all directions")
    middle = sorted(int(str(row["n"])) for row in times)[len(times) // 2] if len(times) > 3 else 0
    return {
        f"{column}{extra}": exponent(times, column, least)
        for column in columns
        for extra, least in (("", 0), (f", n >= {middle}", middle))
    }


def targets_of(
    setting: Setting, needed: Sequence[Row], reached: Sequence[Row], times: Sequence[Row], encodings: Sequence[Row]
) -> list[Target]:
    """What was asked for, and what is reported."""
    targets = []
    for power in setting.powers:
        ratios = [float(str(row["ratio"])) for row in needed if row["power"] == power]
        name = f"trials of independent queries over those of infomax to the same error, power {power:g}"
        targets.append(Target(f"{name}, largest", None, max(ratios, default=None), "times", at_least=True))
        targets.append(Target(f"{name}, smallest", 1, min(ratios, default=None), "times", at_least=True))
    timed = {int(str(row["n"])): float(str(row["update + query ms"])) / 1e3 for row in times}
    slopes = exponents(times)
    targets.append(Target("update + query, n = 200, CPU time", 0.02, timed.get(200), "s"))
    largest_half = [value for name, value in slopes.items() if name.startswith("update + query") and ">=" in name]
    targets.append(Target("exponent of update + query in n, all sizes", 2.3, slopes["update + query ms"], "1"))
    targets.append(Target("exponent of update + query in n, larger half of the sizes", 2.3, largest_half[0], "1"))
    for row in reached:
        off = abs(float(str(row["reached / predicted"])) - 1)
        name = f"variance {row['direction']} against its asymptote, {row['way']}, power {row['power']:g}"
        targets.append(Target(f"{name}, {row['trials']} trials", 0.1, off, "1"))
    for row in encodings:
        name = f"free rows over the best line, {setting.grid}x{setting.grid}, {row['lines measured']} lines measured"
        targets.append(Target(name, None, float(str(row["free / best line"])), "times"))
    return targets


def figure_of(rows: Sequence[Row], long_rows: Sequence[Row], setting: Setting) -> Figure:
    """Squared error, and trials times variance along and across with their predictions; a row of panels per power."""
    figure = Figure(figsize=(11, 3.2 * len(setting.powers)), layout="constrained")
    panels = figure.subplots(len(setting.powers), 3, squeeze=False)
    for power, (error, *variances) in zip(setting.powers, panels, strict=True):
        for way, colour in zip(WAYS, ("C0", "C7"), strict=True):
            trials, values = curve(rows, power, way, "squared error")
            error.loglog(trials, values.mean(axis=0), colour, label=way)
            error.fill_between(trials, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, lw=0)
            inputs = "optimal" if way == "infomax" else "sphere"
            predicted = md.asymptotic_information(md.PoissonResponse(), sine_wave(setting.n), power, inputs).variances(
                1
            )
            for panel, side, wanted in zip(variances, ("along", "across"), predicted, strict=True):
                source = long_rows if way == "infomax" else rows
                trials, values = curve(source, power, way, f"trials x variance {side}")
                panel.loglog(trials, values.mean(axis=0), colour, label=way)
                panel.axhline(wanted, color=colour, ls="--")
                panel.set(xlabel="trials", ylabel=f"trials x variance {side}", title=f"power {power:g}")
        error.set(xlabel="trials", ylabel="squared error", title=f"power {power:g}, {setting.seeds} seeds")
        error.legend()
    return figure


def time_figure(times: Sequence[Row]) -> Figure:
    """CPU time per trial against n."""
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    n = [row["n"] for row in times]
    for column in ("update ms", "query ms", "query ms, all directions"):
        axes.loglog(n, [row[column] for row in times], "o-", label=column.replace(" ms", ""))
    axes.set(xlabel="unknowns n", ylabel="CPU milliseconds")
    axes.legend()
    return figure
