"""What the runs say: means over seeds, paired tests, targets, the figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import MARKERS
from mri_design.evaluation.tables import Row

from .pool_runs import ON_THE_MAP, PEER
from .targets import Target

COLUMN = "error at "
SEEDS = 10
"""Asked for; a comparison over fewer decides no target."""


@dataclass(frozen=True)
class Paired:
    """A strategy against another over the seeds that both have: mean difference of the test error and one-sided p."""

    difference: float
    p: float
    wins: int
    seeds: int


def groups_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Data and prior, in order of appearance."""
    return sorted({(str(row["data"]), str(row["prior"])) for row in rows})


def strategies_of(rows: Sequence[Row], data: str, prior: str) -> list[str]:
    """Strategies of a group, in order of appearance."""
    return list(dict.fromkeys(str(r["strategy"]) for r in rows if (r["data"], r["prior"]) == (data, prior)))


def curves(rows: Sequence[Row], data: str, prior: str, strategy: str) -> dict[int, NDArray[np.float64]]:
    """Seed to the errors along."""
    chosen = [r for r in rows if (r["data"], r["prior"], r["strategy"]) == (data, prior, strategy)]
    return {int(str(r["seed"])): np.array([float(str(r[c])) for c in columns(r)]) for r in chosen}


def columns(row: Row) -> list[str]:
    """The columns of errors."""
    return [name for name in row if name.startswith(COLUMN) and row[name] is not None]


def counts_of(rows: Sequence[Row], data: str) -> list[int]:
    """Numbers of labels at which errors were measured."""
    first = next(row for row in rows if row["data"] == data)
    return [int(name.removeprefix(COLUMN)) for name in columns(first)]


def paired(rows: Sequence[Row], data: str, prior: str, mine: str, other: str, whole: bool = False) -> Paired | None:
    """By Student's paired t at the last number of labels, or of the mean along the whole curve."""
    a, b = (curves(rows, data, prior, name) for name in (mine, other))
    seeds = sorted(a.keys() & b.keys())
    if len(seeds) < 2:
        return None
    x, y = (np.array([c[s].mean() if whole else c[s][-1] for s in seeds]) for c in (a, b))
    p = 1.0 if np.all(x == y) else float(scipy.stats.ttest_rel(x, y, alternative="less").pvalue)
    return Paired(float(np.mean(x - y)), p, int(np.sum(x < y)), len(seeds))


def targets_of(bounds: Sequence[Row], rows: Sequence[Row]) -> list[Target]:
    """What the issue asks, and what it asks to be reported."""
    found = []
    by_size = {int(str(row["rows"])): row for row in bounds if row["variances"] == "exact"}
    for size, wanted, seconds in ((1000, 386.948401, 2.95), (4000, 1415.899700, 12.9)):
        row = by_size.get(size)
        off = None if row is None else abs(float(str(row["-log Z"])) - wanted)
        spent = None if row is None else float(str(row["CPU s"]))
        found.append(Target(f"double loop, a9a, {size} rows: bound off {wanted:.6f}", 5e-7, off, "nats"))
        found.append(Target(f"double loop, a9a, {size} rows: CPU time, a tenth of glm-ie's", seconds / 10, spent, "s"))
    all_rows = max(by_size)
    found.append(
        Target(f"double loop, a9a, {all_rows} rows: CPU time", None, float(str(by_size[all_rows]["CPU s"])), "s")
    )
    least = len(curves(rows, "a9a", "Gaussian", "S_CU"))
    found.append(Target("a9a, Gaussian prior: seeds", SEEDS, least, "seeds", at_least=True))
    for data, prior in groups_of(rows):
        named = f"{data}, {prior} prior, last label"
        asked_for = (data, prior) == ("a9a", "Gaussian")
        beaten = paired(rows, data, prior, "S_CU", "random")
        found.append(Target(f"{named}: S_CU below random", 0.01 if asked_for else None, beaten and beaten.p, "p"))
        for other in (ON_THE_MAP, PEER):
            level = paired(rows, data, prior, "S_CU", other)
            if level is not None:
                enough = level.seeds >= SEEDS
                few = "" if enough else f" ({level.seeds} seeds)"
                bound = 0.0 if asked_for and enough else None
                name = f"{named}: S_CU against {other}{few}"
                found.append(Target(name, bound, 100 * level.difference, "points of error"))
    return found


def figure_of(rows: Sequence[Row]) -> Figure:
    """Mean test error against labels, one panel a group; bars are standard errors over seeds."""
    groups = groups_of(rows)
    figure = Figure(figsize=(3.9 * len(groups), 3.6), layout="constrained")
    for axes, (data, prior) in zip(np.atleast_1d(figure.subplots(1, len(groups))), groups, strict=True):
        counts = counts_of(rows, data)
        for k, strategy in enumerate(strategies_of(rows, data, prior)):
            errors = 100 * np.array(list(curves(rows, data, prior, strategy).values()))
            spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else None
            shifted = np.array(counts) + 1.5 * k
            style = {"color": PALETTE[k % 7], "marker": MARKERS[k % 7], "markersize": 4, "linewidth": 1.2}
            axes.errorbar(shifted, errors.mean(axis=0), spread, label=f"{strategy} ({len(errors)})", **style)
        axes.set_title(f"{data}, {prior} prior", fontsize=9)
        axes.set_xlabel("labels")
        axes.set_ylabel("test error (%)")
        axes.legend(fontsize=6.5, frameon=False, title="strategy (seeds)", title_fontsize=6.5)
    return figure
