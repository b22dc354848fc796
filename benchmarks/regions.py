"""Intervals of means of regions and of their differences, held against the truth, and what they are calibrated by.

    OMP_NUM_THREADS=1 python benchmarks/regions.py measure DATA [--numbers 0:14] [--encodings lines,plane]
    python benchmarks/regions.py learn
    python benchmarks/regions.py targets

DATA is the folder of raw scans and images. ``measure`` reconstructs the cases of `parts.error_cases` with 32 draws,
puts discs of four sizes where the truth is bright, and keeps a row of regions.csv for each disc and for the differences
of pairs. ``learn`` writes the quantiles that are shipped. ``targets`` leaves out one subject after the other, from the
quantiles and from what scales the error bars of its images, and writes the tables of README.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from error_bars import evidence_of, learnt_without
from error_bars import read_rows as read_images
from numpy.typing import NDArray
from parts.error_cases import ENCODINGS, SPLITS, Case, case_of
from parts.pages import Kept, put_table

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence import regions
from mri_design.evidence.error_bars import shipped_squared_error_model
from mri_design.evidence.regions import AREAS, USUAL_DRAWS, Distances, discs, region_means
from mri_design.experiment.reconstruction import Image, image_rng, reconstruct_prepared

OUT = Path(__file__).parents[1] / "results" / "regions"
JSON = Path(regions.__file__).with_name("region_distances.json")


LEAST = 0.05
"""Part of the root mean square of the draws that is spread at least: the numbers are rounded."""
KEY = ("split", "encoding", "number")
"""Columns that name an image."""


def rows_of(case: Case, made: Image, rng: np.random.Generator) -> list[Row]:
    """Errors of discs and of pairs of them, in units of the image's 99.5th percentile."""
    assert made.draws is not None
    unit = float(np.percentile(np.abs(made.image), 99.5))
    image = {"split": case.split, "encoding": case.encoding, "number": case.number, "group": case.group}
    image |= {"name": case.name, "coils": case.slice_model.n_coils}
    rows: list[Row] = []
    for area in AREAS:
        flags = dict(enumerate(discs(case.truth, area, rng)))
        named = {str(number): inside[None] for number, inside in flags.items()}
        pulls = None if made.pull is None else made.pull[None]
        means = region_means(named, made.image[None], made.draws[None], case.truth[None], pulls)
        pairs = [a.minus(b, "difference", together=True) for a, b in zip(means[::2], means[1::2], strict=False)]
        for mean in (*means, *pairs):
            assert mean.true is not None
            what = {"what": "difference" if mean.name == "difference" else "mean", "pixels": area}
            numbers = {"error": mean.value - mean.true, "bias": float(mean.deviations[0].mean()), "sd": mean.sd}
            rows.append({**image, **what, **{name: f"{number / unit:.3g}" for name, number in numbers.items()}})
    return rows


def read_rows() -> list[Row]:
    """All that have been measured."""
    path = OUT / "regions.csv"
    return [dict(row) for row in read_csv_texts(path)] if path.is_file() else []


def cases_left(rows: Sequence[Row], data: Path, numbers: range, encodings: Sequence[str]) -> Iterator[Case]:
    """Those that have no row yet."""
    have = {tuple(str(row[name]) for name in KEY) for row in rows}
    for number, encoding, split in product(numbers, encodings, SPLITS):
        if (split, encoding, str(number)) not in have:
            yield case_of(data, split, encoding, number)


def measure(data: Path, numbers: range, encodings: Sequence[str]) -> None:
    """Add what is not there yet."""
    rows = read_rows()
    for case in cases_left(rows, data, numbers, encodings):
        recipe = case.recipe.replacing("reconstruction", draws=USUAL_DRAWS)
        made = reconstruct_prepared(case.slice_model, case.lines, "mean", recipe, image_rng(case.number))
        rows += rows_of(case, made, np.random.default_rng(case.number))
        write_csv(OUT / "regions.csv", rows)
        print(case.split, case.encoding, case.number, case.name, case.mask, flush=True)


@dataclass(frozen=True)
class Known:
    """Regions of known truth.

    Parameters
    ----------
    distances : float array, shape (region,)
        From the mean of the draws to the truth, in standard deviations.
    weights : float array, shape (region,)
        Subjects count by the root of their regions.
    texts : mapping of str to array, shape (region,)
        Columns.
    """

    distances: NDArray[np.float64]
    weights: NDArray[np.float64]
    texts: Mapping[str, NDArray[np.str_]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Known:
        """From the rows of regions.csv."""
        texts = {name: np.array([str(row[name]) for row in rows]) for name in rows[0]}
        error, bias, sd = (texts[name].astype(float) for name in ("error", "bias", "sd"))
        spread = np.sqrt(np.maximum(sd**2 - bias**2, (LEAST * sd) ** 2))
        names, counts = np.unique(texts["group"], return_counts=True)
        weights = 1 / np.sqrt(counts[np.searchsorted(names, texts["group"])])
        return cls((error + bias) / spread, weights, texts)

    def taught(self, scales: NDArray[np.float64], of: NDArray[np.bool_] | None = None) -> Distances:
        """What some regions teach, whose errors are so many times as large as their standard deviations say."""
        chosen = np.ones(len(scales), dtype=bool) if of is None else of
        kept = (self.distances / scales, self.pixels, self.weights, self.means)
        return Distances.of(*(each[chosen] for each in kept))

    @property
    def means(self) -> NDArray[np.bool_]:
        """Regions that are no differences."""
        return np.asarray(self.texts["what"] == "mean")

    def away(self, scales: NDArray[np.float64], taught: Distances, own: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Distances of some regions from the middle of their intervals."""
        return np.abs((self.distances / scales)[own] - taught.shift * self.means[own])

    def without(self, scales: NDArray[np.float64], group: str) -> Distances:
        """What all subjects but one teach."""
        return self.taught(scales, self.texts["group"] != group)

    @property
    def shown(self) -> NDArray[np.str_]:
        """`anatomy` of every region."""
        return np.array([anatomy(*pair) for pair in zip(self.texts["name"], self.texts["group"], strict=True)])

    @property
    def pixels(self) -> NDArray[np.float64]:
        """Of a region."""
        return self.texts["pixels"].astype(float)

    def scales(self) -> NDArray[np.float64]:
        """Standard deviations of each region, had its subject not taught `SquaredErrorModel`, over those it has."""
        images = {(row["split"], row["encoding"], str(row["number"])): row for row in read_images()}
        shipped, found = shipped_squared_error_model(), np.ones(len(self.distances))
        keys = list(zip(*(self.texts[name] for name in KEY), strict=True))
        for group in np.unique(self.texts["group"]):
            own = learnt_without([group])
            for key in {key for key, each in zip(keys, self.texts["group"], strict=True) if each == group}:
                if (image := images.get(key)) is not None and image["held count"] != "":
                    known = evidence_of(image)
                    ratio = np.sqrt(own.squared_error(known) / shipped.squared_error(known))
                    found[[each == key for each in keys]] = ratio
        return found


def anatomy(name: str, group: str) -> str:
    """What the image shows, and how it was measured."""
    if group.startswith("3T") or name.endswith(("T1w", "T2w")):
        return "3 T"
    return "low field" if group in ("4", "6A", "6B", "7A", "7B") else "raw" if "_" in name else group


def groups_of(known: Known) -> dict[str, NDArray[np.bool_]]:
    """Regions by the rows of the table."""
    texts = known.texts
    kinds = np.array([name.split(",")[0] for name in texts["encoding"]])
    coils, pixels = texts["coils"].astype(int), texts["pixels"].astype(int)
    shown = known.shown
    found = {name: shown == name for name in ("3 T", "low field", "heart", "wrist", "head sag", "raw")}
    found |= {"one coil, lines": (coils == 1) & (kinds == "lines"), "8 coils and more": coils >= 8}
    found |= {"planes": kinds == "plane", "spokes and spirals": kinds == "shots", "companion": kinds == "companion"}
    found |= {f"{area} pixels": pixels == area for area in AREAS}
    return found | {name: texts["what"] == name for name in ("mean", "difference")} | {"all": pixels > 0}


WANTED = ("3 T", "low field", "heart", "8 coils and more", "planes", "spokes and spirals")
"""Groups of the target."""


def put_target(what: str, target: str, measured: str, met: bool) -> None:
    """Keep a row of targets.csv."""
    Kept.at(OUT / "targets.csv", "what").put(
        {"what": what, "target": target, "measured": measured, "met": "yes" if met else "no"}
    )


def targets(known: Known) -> None:
    """Leave out one subject after the other, and write how many intervals hold the truth."""
    scales, levels = known.scales(), (0.5, 0.8, 0.9, 0.95)
    away = np.zeros(len(scales))
    within = {level: np.zeros(len(away)) for level in levels}
    for group in np.unique(known.texts["group"]):
        taught, own = known.without(scales, group), known.texts["group"] == group
        away[own] = known.away(scales, taught, own)
        for level in levels:
            within[level][own] = taught.within(level, known.pixels[own])
    images = np.array([" ".join(key) for key in zip(*(known.texts[n] for n in KEY), strict=True)])
    table, covered, lengths = list[Row](), dict[str, float](), dict[str, float]()
    for name, inside in groups_of(known).items():
        if not inside.any():
            continue
        held = away[inside] <= within[0.9][inside]
        own = images[inside]
        each = np.array([held[own == image].mean() for image in np.unique(own)])
        covered[name] = float(held.mean())
        lengths[name] = float(np.mean(within[0.9][inside]) / np.quantile(away[inside], 0.9))
        table.append(
            {
                "regions": name,
                "number": int(inside.sum()),
                "images": len(each),
                **{f"in {level:.0%}": f"{np.mean(away[inside] <= within[level][inside]):.0%}" for level in levels},
                "length over the oracle's": f"{lengths[name]:.2f}",
                "images with less than 70 % in 90 %": f"{np.mean(each < 0.7):.0%}",
            }
        )
    put_table(OUT / "README.md", "Coverage", table)
    put_table(OUT / "README.md", "Calibrated on the same anatomy", of_anatomies(known, scales))
    write_csv(OUT / "coverage.csv", table)
    mean, least = np.mean([covered[name] for name in WANTED]), min(WANTED, key=covered.__getitem__)
    put_target(
        "90 % intervals of regions and differences, mean of six groups",
        "87 to 93 %",
        f"{mean:.1%}",
        0.87 <= mean <= 0.93,
    )
    found = f"{covered[least]:.1%} ({least})"
    put_target("90 % intervals of regions and differences, least group", ">= 84 %", found, covered[least] >= 0.84)
    longest = max(WANTED, key=lengths.__getitem__)
    found = f"{lengths[longest]:.2f} ({longest})"
    put_target("length of 90 % intervals over the oracle's, largest group", "<= 1.25", found, lengths[longest] <= 1.25)


def of_anatomies(known: Known, scales: NDArray[np.float64]) -> list[Row]:
    """90 % intervals by other subjects of the same anatomy, kind of readouts, and one coil or several, where there are.

    It is what ``--calibrated-on`` does with scans of the same kind, but for its masks, which are the same then.
    """
    texts, table = known.texts, list[Row]()
    kinds = np.char.add(known.shown, np.array([f", {name.partition(', d')[0]}" for name in texts["encoding"]]))
    for kind in np.unique(kinds):
        groups, held, usual = np.unique(texts["group"][kinds == kind]), list[bool](), list[bool]()
        for group in groups if len(groups) > 1 else ():
            own, others = (kinds == kind) & (texts["group"] == group), (kinds == kind) & (texts["group"] != group)
            for found, taught in ((held, known.taught(scales, others)), (usual, known.without(scales, group))):
                found += (known.away(scales, taught, own) <= taught.within(0.9, known.pixels[own])).tolist()
        if held:
            row: Row = {"regions": kind, "subjects": len(groups), "number": len(held)}
            table.append(row | {"by their kind": f"{np.mean(held):.0%}", "by all others": f"{np.mean(usual):.0%}"})
    return table


def learn(known: Known) -> None:
    """Write the quantiles of all regions."""
    found = {name: np.round(value, 4).tolist() for name, value in asdict(known.taught(known.scales())).items()}
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    JSON.write_text(f'{{\n "made by": "python benchmarks/regions.py learn",\n{text}\n}}\n', "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("task", choices=("measure", "learn", "targets"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--numbers", default="0:14")
    parser.add_argument("--encodings", default="")
    asked = parser.parse_args()
    first, last = map(int, asked.numbers.split(":"))
    chosen = [one for one in ENCODINGS if not asked.encodings or one.replace(", ", "+") in asked.encodings.split(",")]
    OUT.mkdir(parents=True, exist_ok=True)
    if asked.task == "measure":
        measure(asked.data, range(first, last), chosen)
    else:
        {"learn": learn, "targets": targets}[asked.task](Known.of(read_rows()))


if __name__ == "__main__":
    main()
