"""Coil compression by noise: what it costs in error, what it saves, and whether designed lines are as good.

    OMP_NUM_THREADS=1 python benchmarks/compression.py errors|designs DATA [--scans NAME ...]
    OMP_NUM_THREADS=1 python benchmarks/compression.py targets DATA
    OMP_NUM_THREADS=1 python benchmarks/compression.py images|maps DATA --against CHECKOUT

DATA is the folder of raw scans and images. ``errors`` reconstructs scans of many coils from a quarter and a sixth of
the lines with all coils and with virtual ones, three seeds each, by the recipe `local`. The quarter of the noise that
virtual coils may leave out was chosen on the scans marked as such, other slices and subjects judge. ``designs`` chooses
a quarter of the lines with and without compression, by two rules, and reconstructs both with all coils. ``images`` and
``maps`` take processor seconds of both checkouts in turns: the default image with its maps, and the maps of all coils
alone. ``targets`` writes the tables of results/speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from parts.pages import Kept, put_table
from threadpoolctl import threadpool_limits

import mri_design as md
from mri_design.calibration.coils import maps_from_lines
from mri_design.evaluation.tables import Row, read_csv
from mri_design.experiment.calibration import calibrate, with_known_noise
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.reconstruction import reconstruct_prepared
from mri_design.operators import to_image, to_kspace
from mri_design.operators.base import Array
from mri_design.scan.scenes import simulate_coil_maps

HERE = Path(__file__).parents[1]
OUT, SEEDS, TURNS = HERE / "results" / "speed", range(3), 5
HEADS = "img_3T_complex.npz"
SCANS = {
    "head C, 32 coils, little noise": (f"{HEADS}:13", 128, 32, 0.002, "judged"),
    "head D, 24 coils": (f"{HEADS}:19", 128, 24, 0.007, "judged"),
    "head D, two rings of 16 coils": (f"{HEADS}:20", 128, -16, 0.007, "judged"),
    "16 coils": ("mc_brain_cimax16.npy", None, 1, 0.007, "chosen on"),
    "head C, 16 coils": (f"{HEADS}:13", 128, 16, 0.007, "judged"),
    "head C, 32 coils": (f"{HEADS}:13", 128, 32, 0.007, "judged"),
    "head D, 32 coils, more noise": (f"{HEADS}:19", 128, 32, 0.02, "judged"),
    "phantom, 16 coils": ("mc_phantom_cimax16.npy", None, 1, 0.007, "judged"),
    "16 coils, 64 x 64": ("mc_brain_prescan16.npy", None, 1, 0.007, "chosen on"),
    "phantom, 32 coils, 64 x 64": ("mc_phantom_skyra32.npy", None, 1, 0.007, "chosen on"),
    "head A, 32 coils": (f"{HEADS}:1", 128, 32, 0.007, "chosen on"),
}
"""Source, sides, coils of a ring (negative: of two rings, of unequal strength), noise, and what it is for."""


RULES = ("calibrated", "corrected-error")
"""One mask planned at once, and lines chosen one by one."""
DESIGNED = ("16 coils", "head C, 16 coils", "head D, 24 coils")


def scan_of(name: str, data: Path, seed: int) -> tuple[md.KSpaceData, Array]:
    """A scan without maps, and the modulus that its images are held against: the truth, or the coils' own."""
    source, matrix, coils, noise, _ = SCANS[name]
    recipe = md.load_recipe(None).replacing("input", matrix=matrix)
    recipe = recipe.replacing("simulation", coils=abs(coils), noise=noise)
    path, _, number = source.partition(":")
    scan = load_scan(str(data / path), recipe, seed).select_slice(int(number or 0))
    if coils < 0:
        rng = np.random.default_rng([seed, 1])
        further = to_kspace(simulate_coil_maps(scan.grid_shape, -coils, rng) * scan.reference[0]) * 0.4
        further = further + noise * (rng.standard_normal((2, *further.shape)).T @ [1, 1j]).T
        whole = np.concatenate([scan.kspace[0], further])[np.newaxis].astype(np.complex64)
        scan = replace(scan, kspace=whole, coil_maps=None, reference=None)
        return scan, np.linalg.norm(to_image(whole[0]), axis=0)
    truth = np.linalg.norm(to_image(scan.kspace[0]), axis=0) if scan.reference is None else np.abs(scan.reference[0])
    return replace(scan, coil_maps=None, reference=None), truth


def lines_of(count: int, part: int, seed: int) -> np.ndarray:
    """The central twelve lines, at most half of all, and others at random, rarer far out."""
    away, rng = np.abs(np.arange(count) - count // 2 + 0.5), np.random.default_rng(seed)
    mask = away < min(12, count // part // 2) / 2
    weights = np.maximum(1 - away / (count / 2), 1e-3) ** 2 * ~mask
    mask[rng.choice(count, count // part - mask.sum(), replace=False, p=weights / weights.sum())] = True
    return mask


def error(image: Array, truth: Array) -> float:
    """Relative error of the modulus where the object is, of the image scaled to fit."""
    inside = truth > 0.1 * np.percentile(truth, 99)
    found, wanted = np.abs(image[inside]).astype(float), truth[inside]
    return float(np.linalg.norm(found * (found @ wanted) / (found @ found) - wanted) / np.linalg.norm(wanted))


def image_of(scan: md.KSpaceData, mask: np.ndarray, seed: int, compression: str) -> tuple[Array, Array, Row]:
    """An image with its maps, the standard deviations, and coils, seconds and what is left out."""
    recipe = md.load_recipe("local").with_settings([f"coils.coil_compression={compression}"])
    began = time.process_time()
    made = calibrate(scan, recipe, measured=mask, ordinary=True)
    model, lines = made.slice_model(0, **recipe.slice_settings), np.flatnonzero(mask).tolist()
    image = reconstruct_prepared(model, lines, "mean", recipe, np.random.default_rng(seed)).times(made.image_unit())
    seconds, combined = time.process_time() - began, made.provenance.combined
    facts = {"coils": made.n_coils, "s": seconds, "left out": 0.0 if combined is None else combined[3]}
    assert image.std is not None
    return image.image, image.std, facts


def errors(data: Path, names: Sequence[str]) -> None:
    """A row of compression.csv for every scan and part of its lines."""
    kept = Kept.at(OUT / "compression.csv", "case")
    for name in names:
        for part in (4, 6):
            if ((case := f"{name}, {part}x"),) in kept.rows:
                continue
            rows = list[Row]()
            for seed in SEEDS:
                scan, truth = scan_of(name, data, seed)
                mask = lines_of(scan.grid_shape[0], part, seed)
                (all_coils, std, known), (few, few_std, facts) = (
                    image_of(scan, mask, seed, how) for how in ("none", "auto")
                )
                one, other = error(all_coils, truth), error(few, truth)
                change = float(np.linalg.norm(np.abs(few) - np.abs(all_coils)) / np.linalg.norm(all_coils))
                deviations = float(np.linalg.norm(few_std) / np.linalg.norm(std))
                rows.append(
                    {"coils": known["coils"], "virtual": facts["coils"], "left out": facts["left out"], "error": one}
                    | {"ratio": other / one, "change": change, "std": deviations, "time": facts["s"] / known["s"]}
                )
            column = {key: [float(row[key]) for row in rows] for key in rows[0]}  # type: ignore[arg-type]
            kept.put(
                {"case": case, "for": SCANS[name][-1], "coils": int(column["coils"][0])}
                | {"virtual coils": f"{min(column['virtual']):.0f} to {max(column['virtual']):.0f}"}
                | {"left out, of the noise": max(column["left out"]), "error, all coils": np.mean(column["error"])}
                | {"error, virtual over all": np.mean(column["ratio"]), "spread": np.std(column["ratio"], ddof=1)}
                | {"worst": max(column["ratio"]), "change of the modulus": np.mean(column["change"])}
                | {"total sd, virtual over all": np.mean(column["std"]), "time": np.mean(column["time"])}
            )
            sys.stderr.write(f"... {case}\n")


def designs(data: Path, names: Sequence[str]) -> None:
    """Rows of compression-designs.csv for every scan: errors of all coils' images of lines chosen either way."""
    kept = Kept.at(OUT / "compression-designs.csv", "scan", "rule")
    for name, rule in product(names, RULES):
        if (name, rule) in kept.rows:
            continue
        rows = list[Row]()
        for seed in SEEDS:
            scan, truth = scan_of(name, data, seed)
            count, size = scan.grid_shape[0] // 4, scan.grid_shape[0]
            (lines, one, long), (others, other, short) = (
                chosen_lines(scan, count, rule, how, seed, truth) for how in ("none", "auto")
            )
            differing = len(set(others) - set(lines))
            rows.append({"error": one, "ratio": other / one, "differing": differing, "time": short / long})
        column = {key: [float(row[key]) for row in rows] for key in rows[0]}  # type: ignore[arg-type]
        kept.put(
            {"scan": name, "rule": rule, "lines": f"{count} of {size}"}
            | {"lines that differ": "{:.0f} to {:.0f}".format(min(column["differing"]), max(column["differing"]))}
            | {
                "error, lines of all coils": np.mean(column["error"]),
                "of virtual ones over it": np.mean(column["ratio"]),
            }
            | {"spread": np.std(column["ratio"], ddof=1), "worst": max(column["ratio"])}
            | {"time": statistics.median(column["time"])}
        )
        sys.stderr.write(f"... {name}, {rule}\n")


def chosen_lines(
    scan: md.KSpaceData, count: int, rule: str, compression: str, seed: int, truth: Array
) -> tuple[list[int], float, float]:
    """Lines of a design, the error of all coils' image of them, and the seconds of the design."""
    recipe = md.load_recipe("local").with_settings([f"coils.coil_compression={compression}"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scan.npz"
        np.savez(file, kspace=scan.kspace)
        began = time.process_time()
        made = md.load(file, recipe=recipe, seed=seed).design(lines=count, strategy=rule)
        seconds = time.process_time() - began
    lines = [int(line) for line in made.lines]
    mask = np.isin(np.arange(scan.grid_shape[0]), lines)
    return lines, error(image_of(scan, mask, seed, "none")[0], truth), seconds


def timed(what: str, coils: int, data: Path, out: Path) -> None:
    """Print seconds of the default image or of maps, and keep the arrays; by the checkout on PYTHONPATH."""
    recipe = md.load_recipe(None).replacing("input", matrix=256).replacing("simulation", coils=coils)
    scan = load_scan(str(data / HEADS), recipe, 0).select_slice(13)
    scan = replace(scan, coil_maps=None, reference=None)
    mask = lines_of(256, 4, 0) | (np.abs(np.arange(256) - 127.5) < 12)
    seconds = dict[str, float]()
    with threadpool_limits(1):
        if what == "maps":
            white = with_known_noise(scan, recipe, ordinary=True)
            for method in ("espirit", "nlinv"):
                own: dict[str, Any] = {"method": method, "noise_variance": white.noise_variance}
                maps_from_lines(white.kspace[0, :2], mask, **own)  # which imports
                began = time.process_time()
                maps = maps_from_lines(white.kspace[0], mask, **own).maps
                seconds[method] = time.process_time() - began
                combined = np.sum(maps.conj() * to_image(white.kspace[0]), axis=0)
                np.savez(out.with_suffix(f".{method}.npz"), maps=maps, image=combined)
        else:
            lines = np.flatnonzero(mask).tolist()
            began = time.process_time()
            made = calibrate(scan, recipe, measured=mask, ordinary=True)
            model = made.slice_model(0, **recipe.slice_settings)
            found = reconstruct_prepared(model, lines, "mean", recipe, np.random.default_rng(0))
            seconds["image"] = time.process_time() - began
            seconds["products"] = found.convergence.matvecs
            np.savez(out.with_suffix(".image.npz"), maps=0, image=np.abs(found.image * made.image_unit()))
    print(json.dumps(seconds))


def speed(what: str, data: Path, against: Path) -> None:
    """Rows of compression-speed.csv: both checkouts in turns."""
    kept = Kept.at(OUT / "compression-speed.csv", "case")
    checkouts = {"before": against.resolve(), "here": HERE}
    for coils in (8, 16, 32) if what == "maps" else (16, 32):
        found: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(TURNS):
                for name, checkout in checkouts.items():
                    path = os.pathsep.join((str(checkout), str(HERE / "benchmarks")))
                    words = ["timed", str(data), what, str(coils), f"{folder}/{name}"]
                    command = [sys.executable, "-P", __file__, *words]
                    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
                    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                    found[name].append(json.loads(made.stdout))
            for method in ("espirit", "nlinv") if what == "maps" else ("image",):
                old, new = (np.load(f"{folder}/{name}.{method}.npz") for name in checkouts)
                changes = [
                    float(np.linalg.norm(new[key] - old[key]) / max(np.linalg.norm(old[key]), 1e-30))
                    for key in ("maps", "image")
                ]
                before, here = (statistics.median(one[method] for one in found[name]) for name in checkouts)
                kept.put(
                    {"case": f"{method}, {coils} coils", "before, s": before, "here, s": here, "ratio": here / before}
                    | {"change of maps": changes[0], "change of the image": changes[1]}
                )
                sys.stderr.write(f"... {method}, {coils} coils\n")


FORMATS = dict.fromkeys(("error, virtual over all", "of virtual ones over it", "spread", "worst"), ".4f")


def targets() -> None:
    """Write the tables of the page, and the rows of targets."""
    page, kept = OUT / "README.md", Kept.at(OUT / "targets.csv", "what")
    tables = {
        "Coil compression: error": "compression.csv",
        "Coil compression: designed lines": "compression-designs.csv",
        "Coil compression and maps: time": "compression-speed.csv",
    }
    for heading, file in tables.items():
        if not (OUT / file).is_file():
            continue
        rows = read_csv(OUT / file)
        put_table(page, heading, rows, None, dict.fromkeys(rows[0], ".3g") | FORMATS)
    rows = [
        row for row in read_csv(OUT / "compression.csv") if row["for"] == "judged" and row["left out, of the noise"]
    ]
    mean = float(np.mean([float(str(row["error, virtual over all"])) for row in rows]))
    worst = max(float(str(row["worst"])) for row in rows)
    found = [
        ("error with virtual coils over all coils, mean of the scans judged", 1.005, mean, "times"),
        ("error with virtual coils over all coils, worst image judged", 1.02, worst, "times"),
    ]
    for what, target, measured, unit in found:
        met = "yes" if measured <= target else "no"
        kept.put({"what": what, "target": f"<= {target:g}", "measured": f"{measured:.4f}", "unit": unit, "met": met})


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["errors", "designs", "images", "maps", "targets", "timed"])
    parser.add_argument("data", type=Path)
    parser.add_argument("further", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--against", type=Path, help="working tree of the version to compare with")
    parser.add_argument("--scans", nargs="*", choices=list(SCANS), help="of errors and designs, which have no row yet")
    chosen = parser.parse_args()
    if chosen.what == "timed":
        return timed(chosen.further[0], int(chosen.further[1]), chosen.data, Path(chosen.further[2]))
    with threadpool_limits(1):
        if chosen.what in ("images", "maps"):
            return speed(chosen.what, chosen.data, chosen.against)
        if chosen.what == "targets":
            return targets()
        if chosen.what == "errors":
            return errors(chosen.data, chosen.scans or list(SCANS))
        designs(chosen.data, chosen.scans or DESIGNED)


if __name__ == "__main__":
    main()
