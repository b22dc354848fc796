"""Draw the forest plot of docs/results.md from the committed cells of the studies.

    python docs/figures/results.py

A dot is the mean over images of the relative change of the error, a bar goes from the best image to the worst one; each
number of lines of an image counts the same. With several coils the bar goes over scans and accelerations, one by one.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

HERE, RESULTS = Path(__file__).parent, Path(__file__).parents[2] / "results"
Row = Mapping[str, str]
Which = Callable[[Row], object]


@dataclass(frozen=True)
class Study:
    """One line of the plot: ours against theirs, from the rows of a table.

    Parameters
    ----------
    label : str
        What is compared.
    file : str
        Table below results/, one row for each image that was made.
    ours, theirs : callable
        Whether a row is of the one or of the other; of several of theirs in a cell the best in hindsight counts.
    image : tuple of str
        Columns that name what a bar goes over.
    cells : tuple of str
        Columns whose combinations are compared one by one, and averaged.
    drawn : tuple of str
        Columns that tell apart masks of theirs whose draws are averaged.
    pooled : bool
        Whether the errors of cells are averaged, and not their changes.
    """

    label: str
    file: str
    ours: Which
    theirs: Which
    image: tuple[str, ...]
    cells: tuple[str, ...]
    drawn: tuple[str, ...]
    pooled: bool = False

    def changes(self) -> list[float]:
        """The relative change of the error of each image in per cent, mean over its cells."""
        with (RESULTS / self.file).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        ours, theirs = self._means(filter(self.ours, rows), ()), self._means(filter(self.theirs, rows), self.drawn)
        of_image = defaultdict[tuple[str, ...], list[tuple[float, float]]](list)
        for cell, mine in ours.items():
            rivals = [error for key, error in theirs.items() if key[: len(cell)] == cell]
            if rivals:
                of_image[cell[: len(self.image)]].append((mine, min(rivals)))
        pairs = [np.array(found).T for found in of_image.values()]
        ratios = [a.mean() / b.mean() if self.pooled else (a / b).mean() for a, b in pairs]
        return [100 * (float(ratio) - 1) for ratio in ratios]

    def _means(self, rows: Iterable[Row], more: tuple[str, ...]) -> dict[tuple[str, ...], float]:
        """Mean error over draws by image, cell and what ``more`` names."""
        errors = defaultdict[tuple[str, ...], list[float]](list)
        for row in rows:
            error = row.get("relative_l2") or row["error"]
            errors[tuple(row[name] for name in (*self.image, *self.cells, *more))].append(float(error))
        return {key: float(np.mean(found)) for key, found in errors.items()}


def of_study(label: str, section: str, group: str, ours: str, reconstructor: str = "mean") -> Study:
    """A strategy of the design study against the density that was tuned on other subjects."""

    def of(strategy: str) -> Which:
        wanted = {"section": section, "group": group, "reconstructor": reconstructor, "strategy": strategy}
        return lambda row: all(row[name] == value for name, value in wanted.items())

    return Study(label, "design-study/cells.csv", of(ours), of("vd-tuned"), ("image",), ("share",), ())


def with_coils(label: str, maps: str) -> Study:
    """Designed lines of several coils against the best of eight fixed sets with few centre lines."""
    others = ("calibrated", "corrected-error", "noise x 0.5", "noise x 2")
    return Study(
        label,
        "coils/lines-cells.csv",
        lambda row: row["maps"] == maps and row["mask"] == "calibrated",
        lambda row: row["maps"] == maps and row["mask"] not in others and int(row["centre"]) <= 12,
        ("scan", "acceleration"),
        (),
        ("mask", "centre"),
    )


def of_chain(label: str, usual: bool) -> Study:
    """The whole chain of several coils against BART's."""

    def theirs(row: Row) -> bool:
        plain = row["share"] == "2/3" and row["program"] == "BART ecalib"
        return row["program"].startswith("BART") and row["mask"] != "all" and (plain or not usual)

    drawn = ("mask", "share", "program")
    file = "coils/chain-cells.csv"
    return Study(
        label, file, lambda row: row["mask"] == "designed", theirs, ("scan", "acceleration"), ("seed",), drawn, True
    )


def of_plane(label: str, coils: str, rival: str) -> Study:
    """Samples of a plane under the default recipe against a tuned random mask."""
    return Study(
        label,
        "encodings/default-cells.csv",
        lambda row: row["coils"] == coils and row["strategy"] == "calibrated",
        lambda row: row["coils"] == coils and row["strategy"].startswith(rival),
        ("image",),
        ("acceleration",),
        ("strategy",),
    )


STUDIES = (
    of_chain("Whole chain, 8 to 32 coils, against BART's usual one", usual=True),
    of_chain("... against the best of more settings of BART", usual=False),
    with_coils("Lines, 8 to 32 coils, known maps, against the best fixed set", "known"),
    with_coils("... maps from the lines measured", "own"),
    of_study("Lines, 3T heads, one coil, against a tuned density", "real-phase", "3T heads", "calibrated"),
    of_study("... low field", "real-phase", "low field", "calibrated"),
    of_study("... the published rule (information-gain), 3T heads", "real-phase", "3T heads", "information-gain"),
    of_study("... MAP image, 3T heads", "real-phase", "3T heads", "calibrated", "map"),
    of_study("One mask for twelve heads, on others", "thesis-figure", "256", "residual-greedy, one mask"),
    of_plane("Samples of a plane, one coil, against a tuned density", "1", "vd-polynomial"),
    of_plane("... eight coils, against a tuned Poisson disc", "8", "poisson-disc"),
)


def main() -> None:
    """Draw results.png."""
    figure = Figure(figsize=(8.2, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0, color="#5d6066", linewidth=1)
    for place, study in enumerate(STUDIES):
        found = study.changes()
        mean, low, high = float(np.mean(found)), min(found), max(found)
        colour = "#0072B2" if mean < 0 else "#D55E00"
        axes.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="round")
        axes.plot(mean, place, "o", color=colour, markersize=6)
        better = sum(change < 0 for change in found)
        text = f"{mean:+.1f} %, worst {high:+.1f} %; better on {better} of {len(found)}"
        axes.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8)
        print(f"{study.label}: {text}")
    axes.set_yticks(range(len(STUDIES)), [study.label for study in STUDIES], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("change of the error, per cent (left is better)", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(HERE / "results.png", dpi=110)


if __name__ == "__main__":
    main()
