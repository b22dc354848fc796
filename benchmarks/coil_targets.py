"""Targets of scans with several coils against what was measured: results/coils/targets.csv from the tables beside it.

    python benchmarks/noise_witnesses.py DATA --before results/coils/noise-before.csv  # noise.csv
    python benchmarks/coil_maps.py DATA       # maps.csv
    python benchmarks/coil_lines.py DATA      # lines.csv
    python benchmarks/coil_planes.py DATA     # planes.csv, planes-protocol.csv
    python benchmarks/everyday.py DATA        # everyday.csv
    python -m benchmarks.positions            # positions.csv
    python -m benchmarks.coil_memory          # memory.csv
    python -m benchmarks.coil_targets

DATA is a folder of raw scans; results/coils says of each table which. A target that asks for every cell is met where
every cell that was measured meets it; how many do stands beside it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv

OUT = Path(__file__).parents[1] / "results" / "coils"
GROWING, KNOWN = "designed, maps of the lines measured", "designed, maps of all lines"


def table(name: str) -> list[dict[str, str]]:
    """Rows of one table."""
    return [dict(row) for row in read_csv_texts(OUT / f"{name}.csv")]


def each(what: str, wanted: float, found: Sequence[float], unit: str = "%") -> Row:
    """A target that every cell has to meet, which are to be at most ``wanted``."""
    good = sum(value <= wanted for value in found)
    digits = {"%": "+.1f", "MiB": ".0f"}.get(unit, ".3g")
    spread = f"mean {np.mean(found):{digits}}, worst {max(found):{digits}} {unit}"
    return {"what": what, "target": f"<= {wanted:g} {unit}", "found": spread, "met": f"{good} of {len(found)}"}


def mean_and_worst(what: str, mean: float, worst: float, found: Sequence[float]) -> Row:
    """A target for the mean and another for the worst cell."""
    said = f"mean {np.mean(found):+.1f}, worst {max(found):+.1f} % ({len(found)})"
    met = np.mean(found) <= mean and max(found) <= worst
    return {"what": what, "target": f"mean <= {mean:g}, worst <= {worst:g} %", "found": said, "met": met}


def of_lines() -> list[Row]:
    """Own maps against known ones and against calibration lines."""
    cells = defaultdict[tuple[str, str], dict[str, dict[str, str]]](dict)
    for row in table("lines"):
        cells[row["scan"], row["acceleration"]][row["mask"]] = row

    def change(other: str) -> list[tuple[str, float]]:
        found = []
        for (_, acceleration), masks in cells.items():
            rivals = [
                float(row["error"])
                for name, row in masks.items()
                if (name == KNOWN if other == "known" else name.startswith(other) and name not in (GROWING, KNOWN))
            ]
            if rivals:
                found.append((acceleration, 100 * (float(masks[GROWING]["error"]) / min(rivals) - 1)))
        return found

    times = [float(masks[GROWING]["cpu_seconds"]) / float(masks[KNOWN]["cpu_seconds"]) for masks in cells.values()]
    coils = [int(masks[GROWING]["coils"]) for masks in cells.values()]
    eight, sixteen = ([t for t, n in zip(times, coils, strict=True) if n == wanted] for wanted in (8, 16))
    known = [value for acceleration, value in change("known") if acceleration in ("4", "6")]
    acs = [value for acceleration, value in change("") if acceleration in ("4", "6")]
    regular = {n: [v for acceleration, v in change("regular") if acceleration == n] for n in ("3", "4")}
    return [
        each("lines, own maps against maps of the full scan, 4x and 6x", 8, known),
        each("lines, own maps, against the best of variable density and regular with 12 to 24 ACS lines", -15, acs),
        each("R = 3: designed against regular lines with ACS", -3, regular["3"]),
        each("R = 4: designed against regular lines with ACS", -10, regular["4"]),
        each("CPU of design and image, own maps over known, 8 coils", 1.5, eight, "x"),
        each("CPU of design and image, own maps over known, 16 coils", 2, sixteen, "x"),
    ]


def of_seeds() -> list[Row]:
    """Own maps against known ones once more, mean over seeds: the shipped rows of the comparison of error models."""
    cells = defaultdict[tuple[str, str], dict[str, list[float]]](lambda: defaultdict(list))
    for row in table("error-model"):
        if row["model"] == "old":
            cells[row["scan"], row["acceleration"]][row["maps"]].append(float(row["error"]))
    made = []
    for seeds in (3, 2):
        group = [maps for maps in cells.values() if len(maps["known"]) == seeds]
        changes = [100 * (float(np.mean(maps["growing"])) / float(np.mean(maps["known"])) - 1) for maps in group]
        which = "seven scans" if seeds == 3 else "eight further ones, phantoms among them"
        made.append(each(f"lines, own maps against known ones, mean of {seeds} seeds, {which}", 8, changes))
    return made


def of_maps() -> list[Row]:
    """Maps of a mask's own lines, against BART's from the same lines and against those of the whole scan."""
    masks = defaultdict[tuple[str, ...], dict[str, dict[str, str]]](dict)
    for row in table("maps"):
        masks[row["scan"], row["acceleration"], row["seed"]][row["maps"]] = row
    bart = [float(m["NLINV"]["SENSE"]) / float(m["BART nlinv"]["SENSE"]) for m in masks.values() if "BART nlinv" in m]
    whole = [100 * (float(m["NLINV"]["mean"]) / float(m["of the whole scan"]["mean"]) - 1) for m in masks.values()]
    return [
        each("maps from 8 centre lines and others: SENSE error over that with BART nlinv", 1, bart, "x"),
        each("the same: posterior mean against maps of the whole scan", 8, whole),
    ]


def of_planes() -> list[Row]:
    """Samples of a plane."""
    own = [row for row in table("planes") if "own maps" in row["scan"]]
    disc = [float(row["against_best_disc"]) for row in table("planes") if "own maps" not in row["scan"]]
    bart = [float(row["against_bart"]) for row in own if row["against_bart"] not in ("", "nan")]
    by_rule = defaultdict[str, list[float]](list)
    for row in table("planes-protocol"):
        by_rule[row["protocol"]].append(float(row["against_tuned_disc"]))
    best = min(by_rule.values(), key=lambda found: float(np.mean(found)))
    return [
        mean_and_worst("planes, against the disc with the best power in hindsight", -3, 1, disc),
        each("planes, own maps, against BART's poisson -C16", -12, bart),
        *of_pics(),
        mean_and_worst("protocol in planes: four heads for four others, against the tuned disc", -4, 1, best),
    ]


def of_pics() -> list[Row]:
    """Designed masks of samples against BART's, in its own reconstruction and under the default recipe."""
    cells = defaultdict[tuple[str, str], dict[str, list[dict[str, str]]]](lambda: defaultdict(list))
    for row in table("planes-pics"):
        cells[row["scan"], row["acceleration"]][row["mask"]].append(row)

    def changes(program: str) -> list[float]:
        means = (
            [np.mean([float(row[program]) for row in masks[name]]) for name in ("calibrated", "bart-poisson")]
            for masks in cells.values()
        )
        return [float(100 * (own / rival - 1)) for own, rival in means]

    return [
        each("the same, both images by BART's pics -R W", -10, changes("pics")),
        each("the same, both images by the default recipe", -12, changes("default")),
    ]


def of_everyday() -> list[Row]:
    """R = 3 with a counted centre, against textbook rivals."""
    rows = [row for row in table("everyday") if row["R"] == "3" and int(row["coils"]) in (8, 16)]
    raw = [row for row in rows if re.match(r"8a|16|prescan|pfile", row["scan"])]
    return [
        each(f"R = 3, 8 and 16 coils raw: our mean against the best of L1 and TV, {part}", 0, against)
        for part in ("whole", "inside")
        for against in [[float(row[f"{part}: against best of L1, TV"]) for row in raw]]
    ]


def of_noise() -> list[Row]:
    """Noise and shading."""
    rows = table("noise")
    ranges = [re.findall(r"[\d.]+", row["without repeats, over repeats"]) for row in rows]
    off = [max(abs(float(value) - 1) for value in values) * 100 for values in ranges if values]
    shading = [float(row["shading, bright"]) for row in rows if row["shading, bright"] not in ("", "nan")]
    above = [float(row["shading, above noise"]) for row in rows if row["shading, above noise"] not in ("", "nan")]
    return [
        each("noise sd against repeats, worst coil of each scan", 15, off),
        each("shading, 5th to 95th percentile, all bright pixels", 1.2, shading, "x"),
        each("shading, 5th to 95th percentile, pixels five times above the noise", 1.2, above, "x"),
    ]


def of_memory() -> list[Row]:
    """Peak memory of a design."""
    rows = [row for row in table("memory") if (row["coils"], row["matrix"], row["maps"]) == ("32", "256 x 256", "own")]
    return [each("32 coils, 256 x 256: design of 64 lines, own maps", 1024, [float(r["mib"]) for r in rows], "MiB")]


def main() -> None:
    """Write the table, and show it."""
    rows = [*of_lines(), *of_seeds(), *of_maps(), *of_planes(), *of_noise(), *of_everyday(), *of_memory()]
    write_csv(OUT / "targets.csv", rows)
    for row in rows:
        print(f"{row['what']:95s} {row['target']!s:28s} {row['found']!s:45s} {row['met']}")


if __name__ == "__main__":
    main()
