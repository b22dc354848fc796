"""How long, how much memory: design, image, MAP and L1-wavelet, beside BART and SigPy on the same samples.

    OMP_NUM_THREADS=1 python benchmarks/how_long.py DATA [--rows "head, 128;8 coils, 256"] [--tv]

DATA is the folder of images. Heads are simulated without maps, so that everybody estimates them from the centre; a
quarter of the lines is measured, 24 at the centre among them. Each row is measured in a process of its own that has
loaded its loops: processor seconds; peak memory of the default image; of BART 0.8 `ecalib -m1 -r24` and
`pics -S -i100 -R W:3:0:.001`, whole commands; of SigPy `EspiritCalib` and `L1WaveletRecon` (100 iterations). Rows up to
128 x 128 of one slice are medians of three turns, others one turn. Leaves how-long.csv in results/speed, the table of
docs/how-long.md and, by the row of 8 coils and by ``--tv``, rows of targets.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from compressed_sensing import HEADS, JUDGED, OUT, SAME, Bart, fitted_error, head
from parts.pages import Kept, put_table
from parts.timed import HERE, peak_mib
from threadpoolctl import threadpool_limits

from mri_design.evaluation.tables import Row
from mri_design.experiment.inputs import SliceChoice, load_scan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.volume import opened_slices
from mri_design.runs.design import design_effort, design_scan
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.recon import ReconRequest, recon_effort, reconstruct_scan
from mri_design.runs.work import Keep, Work
from mri_design.scan.writing import pair_files

PAGE = HERE.parent / "docs/how-long.md"
ROWS = {
    "head, 128": (128, 1, "lines", 1),
    "8 coils, 256": (256, 8, "lines", 1),
    "16 coils, 256": (256, 16, "lines", 1),
    "32 coils, 256": (256, 32, "lines", 1),
    "head, 512": (512, 1, "lines", 1),
    "8 coils, 128, plane": (128, 8, "plane", 1),
    "head, 128, spokes": (128, 1, "radial", 1),
    "8 coils, 128, four slices": (128, 8, "lines", 4),
}
"""Side of the grid, coils, what is measured, slices."""
STEPS, CENTRE, FIRST_HEAD, TURNS, SMALL = 8, 24, 9, 3, 128
TV_WEIGHTS, TV_COUNTS, TUNED = (0.0003, 0.001, 0.003), (10, 20, 40, 80), 0
SLOWEST = 60.0
"""Seconds after which SigPy is not waited for."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of this process and of those that it waited for, and what was made."""

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    began = spent()
    made = work()
    return spent() - began, made


def write(folder: Path, data: Path, row: str) -> None:
    """Files of k-space (slice, coil, ky, kx) whose maps are not known, and of the mask."""
    side, coils, kind, slices = ROWS[row]
    recipe = load_recipe(None).replacing("input", matrix=side).replacing("simulation", coils=coils)
    scan = load_scan(str(data / HEADS), recipe, 0)
    kspace = scan.kspace[FIRST_HEAD : FIRST_HEAD + slices]
    np.savez(folder / "scan.npz", kspace=kspace, noise_variance=np.float64(scan.noise_variance))
    rng, away = np.random.default_rng(1), np.abs(np.arange(side) - side // 2) / (side / 2)
    mask = away < CENTRE / side
    if kind == "plane":
        mask = (mask[:, None] & mask) | (
            rng.random((side, side)) < 0.6 * np.maximum(1 - np.hypot(away[:, None], away), 0.05) ** 2
        )
    else:
        weights = np.maximum(1 - away, 0.02) ** 3 * ~mask
        mask[rng.choice(side, side // 4 - int(mask.sum()), replace=False, p=weights / weights.sum())] = True
    np.save(folder / "mask.npy", mask)


def ours(source: str, recipe: Recipe, mask: np.ndarray | None, slices: int) -> None:
    """Images of all slices, with maps of their own."""
    with opened_slices(source, recipe) as opened:
        request = ReconRequest(source, recipe, mask, slices=SliceChoice(f"0-{slices - 1}" if slices > 1 else "0"))
        reconstruct_scan(opened, request, Work(), Keep())


def measure(row: str, data: Path) -> dict[str, float]:
    """A row, by this process."""
    side, coils, kind, slices = ROWS[row]
    with TemporaryDirectory() as folder:
        if kind == "radial":
            return measure_spokes(side)
        words = [sys.executable, __file__, str(data), "--one", row, "--write", folder]
        subprocess.run(words, check=True, capture_output=True)  # whose memory is its own
        with np.load(Path(folder, "scan.npz")) as stored:
            kspace = stored["kspace"]
        file, mask = Path(folder, "scan.npz"), np.load(Path(folder, "mask.npy"))
        recipe, found = load_recipe(None), dict[str, float]()
        if kind == "plane":
            recipe = recipe.replacing("design", encoding="plane")
        for name, method in (("image", "mean"), ("MAP", "map"), ("l1-wavelet", "l1-wavelet")):
            one = recipe.replacing("reconstruction", method=method)
            if not found:  # loads the loops
                ours("phantom:t2w", one.replacing("input", matrix=96).replacing("simulation", coils=coils), None, 1)
            found[f"{name}, s"] = timed(lambda one=one: ours(str(file), one, mask, slices))[0]
            if name == "image":
                found["peak, GiB"] = peak_mib() / 1024
                effort = recon_effort(
                    ReconRequest(str(file), one, mask, slices=SliceChoice(f"0-{slices - 1}" if slices > 1 else "0")),
                    Work(),
                )
                found |= {"foretold, s": effort.seconds, "foretold, GiB": effort.mib / 1024}
        found |= design_step(str(file), recipe, slices, side**mask.ndim)
        found |= beside(Path(folder), np.where(mask if mask.ndim == 2 else mask[:, None], kspace, 0), coils)
    return found


def design_step(source: str, recipe: Recipe, slices: int, whole: int) -> dict[str, float]:
    """Seconds of a step: those of a design less those of one without steps to choose, over the steps between."""
    recipe = recipe.with_strategy(None)
    chosen = SliceChoice(f"0-{slices - 1}" if slices > 1 else "0")
    zero = recipe.replacing("reconstruction", method="zero-filled")

    def requested(lines: int) -> DesignRequest:
        return DesignRequest(source, zero, lines, slices=chosen)

    effort = design_effort(requested(whole // 4), Work())
    block = -(-(effort.lines[1] - effort.lines[0]) // max(effort.steps, 1))
    most = effort.lines[0] + STEPS * block
    few, _ = timed(lambda: design_scan(requested(effort.lines[0] + block), Work(), Keep()))
    many, _ = timed(lambda: design_scan(requested(most), Work(), Keep()))
    return {"design, s a step": (many - few) / (STEPS - 1)}


def measure_spokes(side: int) -> dict[str, float]:
    """Spokes of a phantom, simulated along their trajectory; neither BART nor SigPy."""
    recipe = load_recipe(None).replacing("input", matrix=side).replacing("design", encoding="radial")
    found = dict[str, float]()
    for name, method in (("image", "mean"), ("MAP", "map")):
        one = recipe.replacing("reconstruction", method=method).with_strategy("golden")
        request = DesignRequest("phantom:t2w", one, 32)
        design_scan(DesignRequest("phantom:t2w", one.replacing("input", matrix=48), 8), Work(), Keep())
        found[f"{name}, s"] = timed(lambda request=request: design_scan(request, Work(), Keep()))[0]
        if name == "image":
            effort = design_effort(request, Work())
            found |= {"peak, GiB": peak_mib() / 1024, "foretold, s": effort.seconds, "foretold, GiB": effort.mib / 1024}
    return found


def beside(folder: Path, kspace: np.ndarray, coils: int) -> dict[str, float]:
    """BART and SigPy on the same samples, slice by slice."""
    bart = sigpy = 0.0
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for place, one in enumerate(kspace):
        for name, array in {"kspace": one, "maps": np.ones_like(one)}.items():
            for file, content in pair_files(folder / name, array.transpose(2, 1, 0)[:, :, None, :]).items():
                file.write_bytes(content)
        np.save(folder / f"{place}.npy", one)
        words = ["bart ecalib -m1 -r24 kspace maps"] * (coils > 1) + [
            "bart pics -S -i100 -R W:3:0:.001 kspace maps image"
        ]
        for word in words:
            bart += timed(
                lambda word=word: subprocess.run(
                    word.split(), cwd=folder, env=environment, check=True, capture_output=True
                )
            )[0]
        if np.isfinite(sigpy):
            sigpy += by_sigpy(folder / f"{place}.npy", environment)
    return {"BART, s": bart, "SigPy, s": sigpy}


def by_sigpy(file: Path, environment: dict[str, str]) -> float:
    """Processor seconds of both parts in a process of its own, its start not counted."""
    text = f"""
import time, numpy as np, sigpy.mri.app as app
k = np.load({str(file)!r}); began = time.process_time()
maps = app.EspiritCalib(k, show_pbar=False).run() if len(k) > 1 else np.ones_like(k)
app.L1WaveletRecon(k, maps, 1e-3 * np.abs(k).max(), show_pbar=False).run()
print(time.process_time() - began)"""
    try:
        ended = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True, timeout=SLOWEST
        )
    except subprocess.TimeoutExpired:
        return float("nan")
    return float(ended.stdout.split()[-1])


def tabled(row: str, turns: list[dict[str, float]]) -> Row:
    """Medians of a row, and ratios."""
    found = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
    for other in ("BART", "SigPy"):
        if f"{other}, s" in found:
            found[f"image / {other}"] = found["image, s"] / found[f"{other}, s"]
            found[f"l1-wavelet / {other}"] = found["l1-wavelet, s"] / found[f"{other}, s"]
    return {"case": row, "turns": len(turns), **{name: found.get(name, float("nan")) for name in COLUMNS}}


COLUMNS = (
    "design, s a step", "image, s", "MAP, s", "l1-wavelet, s", "peak, GiB", "foretold, s", "foretold, GiB",
    "BART, s", "SigPy, s", "image / BART", "l1-wavelet / BART", "image / SigPy", "l1-wavelet / SigPy",
)  # fmt: skip


def main(data: Path, rows: list[str]) -> None:
    """Measure rows and write."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    kept = Kept.at(OUT / "how-long.csv", "case")
    for row in rows:
        turns = []
        for _ in range(TURNS if ROWS[row][0] <= SMALL and ROWS[row][3] == 1 else 1):
            words = [sys.executable, __file__, str(data), "--one", row]
            ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
            turns.append(json.loads(ended.stdout.splitlines()[-1]))
        kept.put(tabled(row, turns))
    table = [{name: number(value) for name, value in row.items()} for row in kept.rows.values()]
    put_table(PAGE, "Measured", table, None, {name: ".3g" for name in COLUMNS})
    ratio = next((float(str(row["image / BART"])) for row in table if row["case"] == "8 coils, 256"), None)
    if ratio is not None:
        target("whole default image with 8 coils and own maps over BART ecalib + pics", "<= 2", ratio, ratio <= 2)


def number(value: object) -> object:
    """A cell as a number, empty where there is none."""
    try:
        found = float(str(value))
    except ValueError:
        return value
    return found if np.isfinite(found) else ""


def target(what: str, wanted: str, measured: float, met: bool) -> None:
    """A row of targets.csv."""
    row: Row = {
        "what": what,
        "target": wanted,
        "measured": f"{measured:.2f}",
        "unit": "times",
        "met": "yes" if met else "no",
    }
    Kept.at(OUT / "targets.csv", "what").put(row)


def total_variation(data: Path) -> None:
    """MAP beside BART's total variation: to our error, or where its own is smallest, by the fewest iterations tried."""
    for coils in (1, 8):
        with TemporaryDirectory() as folder:
            barts = {index: Bart(Path(folder, str(index)), data, index, coils) for index in (TUNED, *JUDGED)}
            weight = min(TV_WEIGHTS, key=lambda weight: barts[TUNED](weight, 80, "T:3:0")[1])
            recipe, ratios = load_recipe(None).replacing("reconstruction", method="map"), []
            reconstruct_by_recipe(*slice_of(data, TUNED, coils), recipe, 0)  # loads the loops
            for index in JUDGED:
                one, lines = slice_of(data, index, coils)
                seconds, made = timed(partial(reconstruct_by_recipe, one, lines, recipe, 0))
                error, tried = (
                    fitted_error(made.image, barts[index].scan.reference),
                    [barts[index](weight, n, "T:3:0") for n in TV_COUNTS],
                )
                near = next(
                    (n for n, (_, e) in enumerate(tried) if e <= SAME * error), int(np.argmin([e for _, e in tried]))
                )
                ratios.append(tried[near][0] / seconds)
                print(coils, index, weight, TV_COUNTS[near], *tried[near], seconds, error, flush=True)
        least = min(ratios)
        what = (
            f"BART's pics -R T over MAP, same error or BART's smallest, {coils} coil(s), 256 x 256, three heads' least"
        )
        target(what, ">= 5", least, least >= 5)


def slice_of(data: Path, index: int, coils: int) -> tuple[Any, list[int]]:
    """A slice and its lines."""
    scan, lines = head(data, index, coils=coils)
    return scan.prepared.slice_model(0, **load_recipe(None).slice_settings), lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", help="some of them, with semicolons between")
    parser.add_argument("--one", help="print one row of this process")
    parser.add_argument("--write", type=Path, help="write the files of a row to this folder")
    parser.add_argument("--tv", action="store_true", help="MAP beside BART's total variation")
    asked = parser.parse_args()
    with threadpool_limits(1):
        if asked.write:
            write(asked.write, asked.data, asked.one)
        elif asked.one:
            print(json.dumps(measure(asked.one, asked.data)))
        elif asked.tv:
            total_variation(asked.data)
        else:
            main(asked.data, asked.rows.split(";") if asked.rows else [*ROWS])
