"""Lines with several coils whose maps are estimated from the lines measured, against maps of all lines and ACS masks.

    OMP_NUM_THREADS=1 python benchmarks/coil_lines.py DATA [--scans 8a-96,...] [--out results/coils]

DATA is the folder of raw scans. Every scan is cropped to a square grid, its noise is estimated once, and the recipe
``local`` reconstructs every mask. Per scan and acceleration there are: the design whose maps grow with it; the same
rule where the maps of all lines are known; and variable densities and regular lines with 12, 16 and 24 counted centre
lines and ESPIRiT on these. With --fair it holds designs against fixed masks as `mri-design compare` does, with the same
kind of maps and the same centre lines, and with 24 or what is published, three seeds: fair.csv. With --starts 4,6,8 it
measures what designs gain by their centre lines, starts.csv. What has been computed is kept in these tables, and the
same command goes on from there; some two minutes of processor time for a row of 8 coils on 96 x 96. Errors are relative
L2 errors of the magnitude against the scan's own image from all lines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trials import ReferenceSlice, relative_error
from mri_design.evaluation.tables import Row, markdown_text, read_csv_texts, write_csv
from mri_design.experiment.designing import run_design
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.slice_choice import ScanSource, SliceChoice
from mri_design.experiment.starting import centre_for_maps, readouts_wanted, start_lines
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.model.own_maps import OwnMaps
from mri_design.runs.run import Work
from mri_design.runs.scans import load_images
from mri_design.runs.study import Study, StudyProgress
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import write_text

SCANS = {
    "8a-96": ("mc_brain_8a.npy", 96),
    "16-96": ("mc_brain_cimax16.npy", 96),
    "prescan16-64": ("mc_brain_prescan16.npy", 64),
    "sim8-96": ("mag3T_6B_T2w.npz", 96),
    "8a-128": ("mc_brain_8a.npy", 128),
    "16-128": ("mc_brain_cimax16.npy", 128),
    "sim8-128": ("mag3T_7A_T1w.npz", 128),
    "pfile8-96": ("ge_pfile8.npy", 96),
    "ffe12-88": ("mc_phantom_ffe12.npy", 88),
    "sim8b-96": ("mag3T_7B_T2w.npz", 96),
    "sim4-96": ("mag3T_6B_T2w.npz", 96),
    "8a-64": ("mc_brain_8a.npy", 64),
    "pfile8-64": ("ge_pfile8.npy", 64),
    "gre2-80": ("../raw/twix_gre.dat", 80),
    "sim8b-64": ("mag3T_7B_T2w.npz", 64),
}
"""Files, and the sides that they are cropped to, or simulated on with eight coils (``sim4``: four)."""
SEEDS = (0, 1, 2)
ACCELERATIONS = (4, 6, 3)
CENTRES = (12, 16, 24)
FAIR = ("calibrated", "regular", "fastmri-equispaced", "fastmri-random", "vd-polynomial:2", "vd-systematic:1")
FAIR = (*FAIR, "vd-systematic:2")
"""The design, and the fixed masks that it is held against fairly."""
DRAWN = ("vd-polynomial:2", "vd-polynomial:4", "regular")
GROWING, KNOWN = "designed, maps of the lines measured", "designed, maps of all lines"
ABOUT = """# Lines with several coils whose maps come from the lines measured

    OMP_NUM_THREADS=1 python benchmarks/coil_lines.py DATA --scans 8a-96,16-96,... --accelerations 4,6,3

Raw scans (`8a`, `16`, `prescan16`) and simulated coils (`sim8`), cropped to the side that their names end with.
Errors are relative L2 errors of the magnitude against the scan's own image from all lines, under the recipe
`local`. Every mask has the maps of its own lines but for `known`: the same rule, `calibrated`, from as many centre
lines, 4 to 6 as designs began with then, with the maps of all lines of the scan. `best_acs` is the best in hindsight of
two variable densities (powers 2 and 4) and regular lines, each with 12, 16 and 24 counted centre lines and ESPIRiT on
these. Seconds are those of design and image together, growing over known. Every mask is in [lines.csv](lines.csv), with
what its maps rest on.

The start was chosen on the scans that are not `sim8b`, `sim8-128`, `pfile8` or `ffe12`: on ten of their cells designs
from a third of their lines, 4 to 6, have an error 3.6 % below that of the same rule from 4 (`--start 4`) on average,
from 16 % below (`prescan16-64`) to 12 % above (`16-96`, whose 4 lines give good maps). On six cells of the others it is
.7 % below, from 6 % below to 3 % above. One seed; single masks differ by as much with the same maps.

"""
ABOUT_FAIR = """## The same maps and the same centre lines for all

    OMP_NUM_THREADS=1 python benchmarks/coil_lines.py DATA --fair --accelerations 4,6 \\
        --scans 16-128,prescan16-64,8a-64,pfile8-64,gre2-80,sim8b-64

ESPIRiT needs a gapless centre, and NLINV does not: how much of the lead above is that of the maps? Here fixed masks
have maps as designs have them, and each is tried twice, as `mri-design compare` does: with the centre lines of designs,
and with those that it usually has (24, half of a small mask, or fastMRI's 8 %). `best_fixed` is the best of the six in
hindsight, by its mean over the seeds; `usual` and `few` are the best with the most and with fewer centre lines. Every
mask and seed is in [fair.csv](fair.csv). `16-128` is `phantom:head-16ch`.

Three seeds. **Designs have 3 % more error than the best fixed mask in hindsight** on average, from 17 % less to 22 %
more, and less on 4 of 12 cells: 6 % more at acceleration 4, 1 % more at 6. What leads them is a systematic density of
power 1 or 2 with few centre lines. They lead the best mask with the usual number of centre lines by 21 % (12 of 12
cells): fixed masks with fewer lead it by 17 %, and the choice of lines makes nothing of it on average. At 6x four
centre lines are too few for fixed masks on the phantom and with two coils, where designs find the others.

"""
ABOUT_MASKS = """Against each fixed mask, with the better of its numbers of centre lines, over these cells:

"""
ABOUT_STARTS = """## Centre lines that a design begins with

    OMP_NUM_THREADS=1 python benchmarks/coil_lines.py DATA --starts 4,6,8 --accelerations 4 --scans ...

Errors of designs whose maps are their own, and of those whose maps are known, by how many centre lines they begin
with: mean and standard deviation of three seeds, the worst of them, and the mean against that of the first column
([starts.csv](starts.csv)). Where maps are known, more than 4 lines lose on every scan, up to 16 %, and designs begin
with 4. Where maps come from the lines measured, 8 lines are 1 % worse than 6 on average of these small grids (2.5 %
better to 4.8 % worse), which three seeds hardly tell apart, and 12 % worse than 4 on one head with 16 coils. Designs
begin with 8 all the same, or a third of their lines: maps from few lines may go wrong altogether
([poles](maps.md#poles)), and of more lines than here 8 are a smaller part.

"""
FORMATS = {name: ".4f" for name in ("growing", "known", "best_acs", "designed", "best_fixed", "usual", "few")} | {
    name: "+.1f"
    for name in (
        *("against_known_percent", "against_acs_percent", "by_maps_percent", "by_lines_percent", "together_percent"),
        *("against_best_percent", "mean_percent", "worst_percent"),
    )
}
FORMATS |= {"sd_percent": ".1f"}


def middle_of(
    folder: Path, name: str, recipe: Recipe, side: int, file: str | None = None, **simulation: object
) -> KSpaceData:
    """The middle of a scan's k-space, or the simulated scan of an image, with coil maps that are not known.

    Simulations have eight coils and a smooth phase, where ``simulation`` says nothing else.
    """
    simulated = recipe.replacing("simulation", **{"matrix": side, "coils": 8, "phase": "smooth"} | simulation)
    data = load_input(folder / (file or SCANS[name][0]), simulated).select_slice(0)
    middle = tuple(slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in data.grid_shape)
    covariance = data.noise_covariance
    if covariance is None and data.noise_variance is not None:
        covariance = 2 * data.noise_variance * np.eye(data.n_coils)
    return KSpaceData(
        np.ascontiguousarray(data.kspace[..., *middle]), np.ones(side, bool), name=name, noise_covariance=covariance
    )


def image_of(scan: KSpaceData, recipe: Recipe) -> ReferenceSlice:
    """A scan of one slice, with its own image of all lines as the reference."""
    source = ScanSource(f"memory:{scan.name}", SliceChoice("all"), loaded=scan)
    return load_images([source], recipe, Work())[0][0]


def loaded(folder: Path, name: str, recipe: Recipe) -> ReferenceSlice:
    """A scan, cropped to its side."""
    simulation = {"coils": 4} if name.startswith("sim4") else {}
    return image_of(middle_of(folder, name, recipe, SCANS[name][1], **simulation), recipe)


def error(image: ReferenceSlice, seen: MRSlice, lines: Sequence[int], recipe: Recipe) -> float:
    """Relative error of the image from some lines."""
    seen = seen.calibrated(lines)
    made = reconstruct_by_recipe(seen, lines, recipe, 0)
    return relative_error(made.image * image.unit_of(seen), image.shown)


def rows(
    image: ReferenceSlice, acceleration: float, recipe: Recipe, done: set[str], begun: int | None
) -> Iterator[Row]:
    """Errors of designed masks, and of those that look at no data, but for those that are there."""
    size = image.slice_model.candidates.size
    count = readouts_wanted(size, acceleration)
    everywhere = np.ones(size, dtype=bool)

    def made(mask: str, centre: int, seen: MRSlice, began: float, lines: Sequence[int]) -> Row:
        found = error(image, seen, lines, recipe)
        seconds = time.process_time() - began
        rests = seen.map_estimate(lines)
        return {
            "scan": image.name.removesuffix("[0]"),
            "coils": seen.n_coils,
            "acceleration": acceleration,
            "lines": count,
            "mask": mask,
            "centre": centre,
            "error": found,
            "cpu_seconds": round(seconds, 1),
            "maps": "" if rests is None else rests.text,
        }

    rule = make_strategy("calibrated")
    start = begun or centre_for_maps(rule, recipe, count)
    for mask, seen in ((GROWING, image.as_measured), (KNOWN, image.slice_model)):
        if mask not in done:
            began = time.process_time()
            first = start_lines(everywhere, rule, count, recipe, start, seen.n_coils)
            state = run_design([seen], rule, count, recipe, start=first)
            yield made(mask, start, seen, began, state.trace.lines)
    espirit = replace(image.as_measured, own_maps=OwnMaps("espirit"))
    for name in DRAWN:
        for centre in CENTRES:
            if f"{name}, {centre} centre lines" in done or centre > count:
                continue
            began, drawn = time.process_time(), make_strategy(name)
            first = start_lines(everywhere, drawn, count, recipe, centre, espirit.n_coils)
            lines = run_design([espirit], drawn, count, recipe, start=first).trace.lines
            yield made(f"{name}, {centre} centre lines", centre, espirit, began, lines)


def fair_rows(image: ReferenceSlice, acceleration: float, seed: int, recipe: Recipe) -> list[Row]:
    """Errors of the design and of every fixed mask with both numbers of centre lines, as `mri-design compare` has."""
    count = readouts_wanted(image.slice_model.candidates.size, acceleration)
    study = Study(tests=[image], strategies=FAIR, lines=[count], recipe=recipe, seeds=1, seed=seed)
    return [
        {
            "scan": image.name.removesuffix("[0]"),
            "coils": image.slice_model.n_coils,
            "acceleration": f"{acceleration:g}",
            "lines": count,
            "seed": seed,
            "mask": row["strategy"],
            "centre": row["centre"],
            "error": row["relative_l2"],
            "maps": row["maps"],
        }
        for row in study.errors(study.run(StudyProgress())).rows
    ]


def _errors(rows: Sequence[Row]) -> dict[tuple[str, int], NDArray[np.float64]]:
    """Errors of one cell of `fair_rows`, in the order of the seeds, by mask and centre lines."""
    masks = dict.fromkeys((str(row["mask"]), int(str(row["centre"]))) for row in rows)
    return {
        (name, centre): np.array(
            [float(str(r["error"])) for r in rows if (r["mask"], str(r["centre"])) == (name, str(centre))]
        )
        for name, centre in masks
    }


def _cells(rows: Sequence[Row]) -> Iterator[tuple[Row, dict[tuple[str, int], NDArray[np.float64]]]]:
    """The first row of every scan and acceleration, and `_errors` of it."""
    for key in dict.fromkeys((row["scan"], row["acceleration"]) for row in rows):
        cell = [row for row in rows if (row["scan"], row["acceleration"]) == key]
        yield cell[0], _errors(cell)


def fair_cells(rows: Sequence[Row]) -> list[Row]:
    """A row for each scan and acceleration: the design beside the best fixed mask, each with the better of its centres.

    The best is that of least mean over the seeds; ``against_best_percent`` is the change of the means, ``sd_percent``
    and ``worst_percent`` its spread and its worst over the seeds. ``usual`` is the best of the masks with the most
    centre lines, ``few`` the best of those with fewer, as in `gains_table`.
    """
    table: list[Row] = []
    for first, errors in _cells(rows):
        ((_, begun),) = [mask for mask in errors if mask[0] == FAIR[0]]
        designed, means = errors.pop((FAIR[0], begun)), {mask: found.mean() for mask, found in errors.items()}
        most = max(centre for _, centre in errors)
        best = min(means, key=means.__getitem__)
        usual = min(means[mask] for mask in means if mask[1] == most)
        few = min(means[mask] for mask in means if mask[1] < most)
        by_seed = 100 * (designed / errors[best] - 1)
        table.append(
            {name: first[name] for name in ("scan", "coils", "acceleration", "lines")}
            | {
                "seeds": len(designed),
                "start": begun,
                "designed": designed.mean(),
                "best_fixed": means[best],
                "best_fixed_mask": "{}, {} centre lines".format(*best),
                "against_best_percent": 100 * (designed.mean() / means[best] - 1),
                "sd_percent": by_seed.std(ddof=1) if len(by_seed) > 1 else None,
                "worst_percent": by_seed.max(),
                "usual": usual,
                "few": few,
                "by_maps_percent": 100 * (few / usual - 1),
                "by_lines_percent": 100 * (designed.mean() / few - 1),
                "together_percent": 100 * (designed.mean() / usual - 1),
            }
        )
    return table


def fair_masks(rows: Sequence[Row]) -> list[Row]:
    """A row for each fixed mask, with the better of its numbers of centre lines: how designs do beside it."""
    changes: dict[str, list[float]] = {}
    lost: dict[str, list[str]] = {}
    for first, errors in _cells(rows):
        designed = next(found for (name, _), found in errors.items() if name == FAIR[0]).mean()
        for name in dict.fromkeys(mask for mask, _ in errors if mask != FAIR[0]):
            better = min(found.mean() for (mask, _), found in errors.items() if mask == name)
            changes.setdefault(name, []).append(100 * (designed / better - 1))
            if designed > better:
                lost.setdefault(name, []).append(f"{first['scan']} {first['acceleration']}x")
    return [
        {
            "mask": name,
            "mean_percent": np.mean(found),
            "sd_percent": np.std(found, ddof=1) if len(found) > 1 else None,
            "worst_percent": max(found),
            "better_on": f"{sum(value < 0 for value in found)} of {len(found)}",
            "worse_on": ", ".join(lost.get(name, [])),
        }
        for name, found in changes.items()
    ]


def start_rows(
    folder: Path, names: Sequence[str], acceleration: float, recipe: Recipe, starts: Sequence[int], done: Sequence[Row]
) -> Iterator[Row]:
    """Errors of designs that begin with so many centre lines, own maps and known ones, but for those that are done."""
    known = {tuple(str(row[name]) for name in ("scan", "acceleration", "maps", "start", "seed")) for row in done}
    for name in names:
        image = loaded(folder, name, recipe)
        everywhere, rule = np.ones(image.slice_model.candidates.size, dtype=bool), make_strategy("calibrated")
        count = readouts_wanted(everywhere.size, acceleration)
        for seed, start, maps in product(SEEDS, starts, ("own", "known")):
            if (name, f"{acceleration:g}", maps, str(start), str(seed)) in known:
                continue
            seen = image.as_measured if maps == "own" else image.slice_model
            first = start_lines(everywhere, rule, count, recipe, start, seen.n_coils)
            lines = run_design([seen], rule, count, recipe, seed=seed, start=first).trace.lines
            yield {
                "scan": name,
                "coils": seen.n_coils,
                "acceleration": f"{acceleration:g}",
                "lines": count,
                "maps": maps,
                "start": start,
                "seed": seed,
                "error": error(image, seen, lines, recipe),
            }


def summary_of_starts(found: Sequence[Row]) -> list[Row]:
    """Mean, spread and worst of the seeds of `start_rows`, and how far other starts are from the first."""
    table: list[Row] = []
    for key in dict.fromkeys(
        tuple(str(row[name]) for name in ("scan", "acceleration", "lines", "maps")) for row in found
    ):
        cell = [
            row for row in found if tuple(str(row[name]) for name in ("scan", "acceleration", "lines", "maps")) == key
        ]
        made: dict[str, object] = dict(zip(("scan", "acceleration", "lines", "maps"), key, strict=True))
        means: list[float] = []
        for start in sorted({int(str(row["start"])) for row in cell}):
            errors = [float(str(row["error"])) for row in cell if int(str(row["start"])) == start]
            means.append(float(np.mean(errors)))
            spread = f"{means[-1]:.4f} ± {np.std(errors, ddof=1) if len(errors) > 1 else 0:.4f}, {max(errors):.4f}"
            made[f"start {start}"] = spread + (
                f" ({100 * (means[-1] / means[0] - 1):+.1f} %)" if len(means) > 1 else ""
            )
        table.append(made)
    return table


def summary(found: Sequence[Row]) -> list[Row]:
    """One row for each scan and acceleration."""
    table: list[Row] = []
    for key in dict.fromkeys((row["scan"], float(str(row["acceleration"]))) for row in found):
        cell = [row for row in found if (row["scan"], float(str(row["acceleration"]))) == key]
        errors = {str(row["mask"]): float(str(row["error"])) for row in cell}
        seconds = {str(row["mask"]): float(str(row["cpu_seconds"])) for row in cell}
        acs = {mask: value for mask, value in errors.items() if mask not in (GROWING, KNOWN)}
        if not {GROWING, KNOWN} <= errors.keys():
            continue
        best = min(acs, key=acs.__getitem__, default=None)  # none, where 12 lines would be more than the mask
        against = None if best is None else 100 * (errors[GROWING] / acs[best] - 1)
        table.append(
            {
                "scan": key[0],
                "coils": cell[0]["coils"],
                "acceleration": key[1],
                "lines": cell[0]["lines"],
                "growing": errors[GROWING],
                "known": errors[KNOWN],
                "against_known_percent": 100 * (errors[GROWING] / errors[KNOWN] - 1),
                "best_acs": None if best is None else acs[best],
                "best_acs_mask": best,
                "against_acs_percent": against,
                "seconds_over_known": round(seconds[GROWING] / seconds[KNOWN], 2),
            }
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scans", default=",".join(SCANS))
    parser.add_argument("--accelerations", default=",".join(map(str, ACCELERATIONS)))
    parser.add_argument("--start", type=int, help="centre lines of designs, in place of those of the program")
    parser.add_argument("--starts", help="designs from each of these numbers of centre lines: starts.csv")
    parser.add_argument("--fair", action="store_true", help="fixed masks with the maps and centre of designs: fair.csv")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="of --fair")
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    recipe, path = load_recipe("local"), given.out / "lines.csv"
    given.out.mkdir(parents=True, exist_ok=True)
    found: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    accelerations = list(map(float, given.accelerations.split(",")))
    fair_path = given.out / "fair.csv"
    fair: list[Row] = list(read_csv_texts(fair_path)) if fair_path.exists() else []
    for seed in range(given.seeds) if given.fair else ():
        for acceleration in accelerations:
            for name in given.scans.split(","):
                cell = (name, f"{acceleration:g}", str(seed))
                if cell not in {(r["scan"], r["acceleration"], str(r["seed"])) for r in fair}:
                    fair += fair_rows(loaded(given.data, name, recipe), acceleration, seed, recipe)
                    write_csv(fair_path, fair)
                    print(*cell, f"{time.process_time():.0f} s", flush=True)
    begun: list[Row] = list(read_csv_texts(given.out / "starts.csv")) if (given.out / "starts.csv").exists() else []
    for acceleration in accelerations if given.starts else []:
        starts = list(map(int, given.starts.split(",")))
        for row in start_rows(given.data, given.scans.split(","), acceleration, recipe, starts, begun):
            begun.append(row)
            write_csv(given.out / "starts.csv", begun)
            print(*row.values(), flush=True)
    for acceleration in [] if given.fair or given.starts else accelerations:
        for name in given.scans.split(","):
            image = loaded(given.data, name, recipe)
            here = [row for row in found if row["scan"] == name and float(str(row["acceleration"])) == acceleration]
            done = {str(row["mask"]) for row in here}
            for row in rows(image, acceleration, recipe, done, given.start):
                found.append(row)
                write_csv(path, found)
                print(
                    name, acceleration, row["mask"], f"{row['error']:.4f}", row["cpu_seconds"], row["maps"], flush=True
                )
    summaries = (summary(found), fair_cells(fair), fair_masks(fair), summary_of_starts(begun))
    tables = [markdown_text(made, formats=FORMATS) for made in summaries]
    about = (ABOUT, ABOUT_FAIR, ABOUT_MASKS, ABOUT_STARTS)
    write_text(given.out / "lines.md", "\n".join(text + table for text, table in zip(about, tables, strict=True)))


if __name__ == "__main__":
    main()
