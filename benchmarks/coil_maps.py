"""Coil maps from few lines: images with them against images with maps of the whole scan, beside other programs' maps.

    OMP_NUM_THREADS=1 python benchmarks/coil_maps.py DATA [--quick | --poles]

DATA is the folder of the raw scans (`mc_brain_8a.npy`, `mc_brain_cimax16.npy`, `mc_brain_prescan16.npy`) and of complex
heads (`img_3T_complex.npz`), which are seen through eight simulated coils. A mask has eight centre lines (four or six
where it has sixteen or ten) and random ones of a density that falls with the third power, for three seeds. Maps are
estimated from the lines of the mask alone: by NLINV as the package does it, by ESPIRiT on the gapless centre, by
ESPIRiT on a central block that low-rank completion filled (first seed; the best of three ranks in hindsight), and by
BART's ``nlinv`` where BART is installed. Every set of maps gives a least-squares image (SENSE, the best of two
regularisations) and a posterior mean (recipe ``local``), whose errors are divided by those with maps of the whole
scan. Writes results/coils/maps.csv and the tables of results/coils/maps.md.

With --poles it holds NLINV's second solution, from the phase of the first, against the first: four coils of raw heads
and of raw phantoms, and phantoms whose phase turns, three seeds (which draw coils, mask and phase). Writes
results/coils/poles.csv and a table of maps.md.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from parts.bart_solver import bart_path, bart_version
from parts.low_rank import WINDOW, completed_maps
from parts.pages import put_conditions, put_table

from mri_design.calibration.growing_maps import maps_from_lines
from mri_design.calibration.nlinv import POLE, joint_estimate
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.inputs import prepare
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct_prepared
from mri_design.operators.base import Array
from mri_design.operators.centred_fft import to_image, to_kspace
from mri_design.scan.calibration import nlinv
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.io.bart import read_pair
from mri_design.scan.simulation.phantoms import load_phantom
from mri_design.scan.simulation.scanner import simulate_scan
from mri_design.scan.trajectories.exchange import maps_from_bart, maps_to_bart
from mri_design.scan.writing.cfl import pair_files

LOCAL = load_recipe("local")
PAGE = Path("results/coils/maps.md")
RIDGES = (1e-3, 1e-2)
POLES = {
    "mc_brain_8a": (0, 96, "raw head"),
    "mc_brain_cimax16": (0, 96, "raw head"),
    "mc_brain_prescan16": (0, 64, "raw head"),
    "ge_pfile8": (2, 96, "raw phantom"),
    "mc_phantom_cimax16": (0, 96, "raw phantom"),
    "mc_phantom_ffe12": (1, 88, "raw phantom"),
}
"""Slice, side and kind of the scans whose maps may have poles."""
RANKS = (1.0, 1.25, 1.5)
"""Of the completed block, in squares of the window's side."""


@dataclass(frozen=True)
class Head:
    """A whole scan of white coils, the image of all its lines, and the maps of its 24 central ones."""

    name: str
    data: KSpaceData
    image: Array

    @property
    def kspace(self) -> Array:
        return self.data.kspace[0]

    @property
    def maps(self) -> Array:
        assert self.data.coil_maps is not None
        return self.data.coil_maps[0]


def heads(folder: Path, quick: bool) -> Iterator[Head]:
    """Raw scans cut to several sizes, and simulated ones."""
    raw = {"mc_brain_8a": (96, 128), "mc_brain_cimax16": (96, 128), "mc_brain_prescan16": (64,)}
    for name, sides in {"mc_brain_8a": (96,)}.items() if quick else raw.items():
        kspace = np.load(folder / f"{name}.npy")[:1]
        for side in sides:
            cut = [slice(n // 2 - min(n, side) // 2, n // 2 - min(n, side) // 2 + side) for n in kspace.shape[-2:]]
            yield head(f"{name} {side}", np.ascontiguousarray(kspace[..., cut[0], cut[1]]))
    with np.load(folder / "img_3T_complex.npz") as archive:
        for index in () if quick else (0, 7):
            pair = archive["image"][index].astype(np.float32)
            stack = ImageStack((pair[..., 0] + 1j * pair[..., 1])[None], f"head {index}, simulated coils")
            scan = simulate_scan(stack, matrix=128, n_coils=8, rng=np.random.default_rng([index, 1]))
            yield head(f"{stack.name} 128", scan.kspace, scan.noise_variance)


def pole_scans(folder: Path, seed: int) -> Iterator[tuple[str, Head]]:
    """Kind, and scan of four coils: of heads and phantoms as measured, and of phantoms whose phase turns somewhere."""
    rng = np.random.default_rng([seed, 4])
    for name, (number, side, kind) in POLES.items():
        kspace = np.load(folder / f"{name}.npy")[number]
        coils = np.sort(rng.choice(len(kspace), 4, replace=False))
        cut = [slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in kspace.shape[-2:]]
        yield kind, head(f"{name}, coils {' '.join(map(str, coils))}", np.ascontiguousarray(kspace[coils, *cut])[None])
    place = (np.arange(96) - 48) / 96
    for name in ("t1w", "t2w", "brain"):
        whole = load_phantom(name, shape=(96, 96), noise=0.007, phase="none", n_coils=1, rng=rng).reference
        assert whole is not None
        strength, width, (y, x) = rng.uniform(5, 9), rng.uniform(0.12, 0.22), rng.uniform(-0.2, 0.2, 2)
        phase = strength * np.exp(-((place[:, None] - y) ** 2 + (place - x) ** 2) / (2 * width**2))
        stack = ImageStack(whole[:1] * np.exp(1j * phase), f"{name}, phase of {strength:.1f}")
        scan = simulate_scan(stack, n_coils=4, rng=rng)
        yield "phase that turns", head(stack.name, scan.kspace, scan.noise_variance)


def poles(folder: Path, quick: bool) -> Iterator[Row]:
    """Errors with the maps of the whole scan, of the first solution, and of the one that counts."""
    for seed in range(1 if quick else 3):
        for (kind, one), acceleration in product(pole_scans(folder, seed), (4, 6)):
            lines = mask(len(one.kspace[0]), len(one.kspace[0]) // acceleration, seed)
            samples, shape = np.repeat(lines[:, None], one.kspace.shape[-1], axis=1), one.image.shape
            counts = joint_estimate(one.kspace, samples)
            nlinv.POLE = 0.0  # no dip is below
            first = joint_estimate(one.kspace, samples)
            nlinv.POLE = POLE
            row: dict[str, object] = {"kind": kind, "scan": one.name, "acceleration": acceleration, "seed": seed}
            row |= {
                "dip of the first": first.dip,
                "dip": counts.dip,
                "second": "yes" if counts.dip > first.dip else "no",
            }
            for name, maps in (("whole scan", one.maps), ("first", first.maps(shape)), ("counts", counts.maps(shape))):
                again = counts.dip > first.dip  # otherwise it is the first that counts
                row[name] = mean_error(one, maps, lines) if again else None
                row[f"SENSE, {name}"] = least_squares_error(one, maps, lines) if again else None
            print(row, flush=True)
            yield row


def summary_of_poles(rows: list[Row]) -> list[Row]:
    """By kind of scan: how often the second solution counts, and errors over those with maps of the whole scan."""
    table: list[Row] = []
    for kind in dict.fromkeys(str(row["kind"]) for row in rows):
        every = [row for row in rows if row["kind"] == kind]
        dips = sum(float(str(row["dip of the first"])) < POLE for row in every)
        cell = [row for row in every if row["second"] == "yes"]
        made: dict[str, object] = {"kind": kind, "masks": len(every), "with a dip": dips, "second counts": len(cell)}
        for error, name in product(("", "SENSE, "), ("first", "counts")):
            over = [100 * (float(str(r[error + name])) / float(str(r[f"{error}whole scan"])) - 1) for r in cell]
            spread = np.std(over, ddof=1) if len(over) > 1 else 0
            made[(error or "mean, ") + name] = (
                f"{np.mean(over):+.1f} ± {spread:.1f}, worst {max(over):+.1f} %" if cell else "-"
            )
        made["mean worse than by the first"] = sum(float(str(r["counts"])) > float(str(r["first"])) for r in cell)
        table.append(made)
    return table


def head(name: str, kspace: Array, noise_variance: float | None = None) -> Head:
    """Calibrated by all its lines."""
    known = KSpaceData(kspace, np.ones(kspace.shape[-2], dtype=bool), noise_variance=noise_variance, name=name)
    scan = prepare(known, LOCAL)
    image = scan.reference(0)
    assert image is not None
    return Head(name, scan.data, image)


def mask(lines: int, count: int, seed: int) -> Array:
    """Centre lines, and others by a density that falls with the third power of the distance."""
    centre = 8 if count > 16 else 6 if count > 10 else 4
    chosen = np.zeros(lines, dtype=bool)
    chosen[lines // 2 - centre // 2 :][:centre] = True
    density = (1 - 0.98 * np.abs(np.arange(lines) - lines // 2) / (lines / 2)) ** 3 * ~chosen
    rng = np.random.default_rng([seed, lines, count])
    chosen[rng.choice(lines, count - centre, replace=False, p=density / density.sum())] = True
    return chosen


def bart_nlinv(kspace: Array, lines: Array) -> Array:
    """Maps by ``bart nlinv`` on the lines of a mask, scaled to unit root-sum-of-squares."""
    with tempfile.TemporaryDirectory() as folder:
        for file, held in pair_files(Path(folder, "k"), maps_to_bart(np.where(lines[:, None], kspace, 0))).items():
            file.write_bytes(held)
        names = (f"{folder}/{name}" for name in ("k", "image", "maps"))
        subprocess.run([bart_path() or "bart", "nlinv", *names], check=True, capture_output=True)
        maps = maps_from_bart(read_pair(Path(folder, "maps.cfl")))
    return np.asarray(maps / np.maximum(np.linalg.norm(maps, axis=0), 1e-30))


def least_squares_error(head: Head, maps: Array, lines: Array) -> float:
    """Error of the best of two regularised SENSE images."""
    inside = lines[:, None]

    def adjoint(samples: Array) -> Array:
        return np.asarray(np.sum(maps.conj() * to_image(samples), axis=0))

    def image(ridge: float) -> Array:
        found, residual = np.zeros(head.image.shape, np.complex64), adjoint(np.where(inside, head.kspace, 0))
        direction, energy = residual, float(np.vdot(residual, residual).real)
        for _ in range(40):
            image_of = adjoint(np.where(inside, to_kspace(maps * direction), 0)) + np.float32(ridge) * direction
            step = np.float32(energy / float(np.vdot(direction, image_of).real))
            found, residual = found + step * direction, residual - step * image_of
            before, energy = energy, float(np.vdot(residual, residual).real)
            direction = residual + np.float32(energy / before) * direction
        return found

    return min(relative_l2(np.abs(image(ridge)), np.abs(head.image)) for ridge in RIDGES)


def mean_error(head: Head, maps: Array, lines: Array) -> float:
    """Error of the posterior mean."""
    data = replace(head.data, coil_maps=np.asarray(maps, np.complex64)[None])
    model = prepare(data, LOCAL).slice_model(0, LOCAL)
    found = reconstruct_prepared(model, np.flatnonzero(lines), "mean", LOCAL, np.random.default_rng(0))
    return relative_l2(np.abs(found.image), np.abs(head.image))


def estimates(head: Head, lines: Array, first: bool) -> Iterator[tuple[str, list[Array], float]]:
    """Ways to estimate maps, what they find (several where one is chosen in hindsight), and seconds of CPU."""
    samples = np.repeat(lines[:, None], head.kspace.shape[-1], axis=1)
    ways: dict[str, list[Callable[[], Array]]] = {
        "NLINV": [lambda: maps_from_lines(head.kspace, lines, method="nlinv").maps]
    }
    if lines[len(lines) // 2 - 4 :][:8].all():
        ways["ESPIRiT on the centre"] = [lambda: maps_from_lines(head.kspace, lines, method="espirit").maps]
    if first:
        ranks = [round(part * WINDOW**2) for part in RANKS]
        ways["completed, then ESPIRiT"] = [partial(completed_maps, head.kspace, samples, rank) for rank in ranks]
    if bart_path():
        ways["BART nlinv"] = [lambda: bart_nlinv(head.kspace, lines)]
    for name, some in ways.items():
        begun = time.process_time()
        yield name, [way() for way in some], (time.process_time() - begun) / len(some)


def measured(folder: Path, quick: bool) -> Iterator[Row]:
    """Errors of every seed, scan, acceleration and way."""
    every = list(heads(folder, quick))
    for seed, one, acceleration in product(range(1 if quick else 3), every, (4, 6)):
        lines = mask(len(one.kspace[0]), len(one.kspace[0]) // acceleration, seed)
        known = least_squares_error(one, one.maps, lines), mean_error(one, one.maps, lines)
        cell: dict[str, object] = {"scan": one.name, "acceleration": acceleration, "seed": seed}
        yield cell | {"maps": "of the whole scan", "SENSE": known[0], "mean": known[1]}
        for name, found, seconds in estimates(one, lines, seed == 0):
            best = min(found, key=lambda maps: least_squares_error(one, maps, lines)) if len(found) > 1 else found[0]
            errors = least_squares_error(one, best, lines), mean_error(one, best, lines)
            row = cell | {"maps": name, "SENSE": errors[0], "mean": errors[1], "CPU s": seconds}
            print(row, flush=True)
            yield row


def summary(rows: list[Row], error: str) -> list[Row]:
    """Errors over those with maps of the whole scan, the mean over seeds, a column for each way."""
    table: dict[tuple[str, int], dict[str, object]] = {}
    known = {(r["scan"], r["acceleration"], r["seed"]): r[error] for r in rows if r["maps"] == "of the whole scan"}
    for place in dict.fromkeys((str(r["scan"]), int(str(r["acceleration"]))) for r in rows):
        there = [r for r in rows if (r["scan"], r["acceleration"]) == place]
        table[place] = {"scan": place[0], "acceleration": place[1]}
        for way in dict.fromkeys(str(r["maps"]) for r in rows):
            own = [r for r in there if r["maps"] == way]
            ratios = [float(str(r[error])) / float(str(known[*place, r["seed"]])) for r in own]
            found = float(np.mean([float(str(r[error])) for r in own])) if own else float("nan")
            table[place][way] = f"{found:.4f}" if way == "of the whole scan" else _percent(ratios)
    return list(table.values())


def _percent(ratios: list[float]) -> str:
    return f"{100 * (np.mean(ratios) - 1):+.1f} %" if ratios else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--quick", action="store_true", help="one scan and seed; writes nothing")
    parser.add_argument("--poles", action="store_true", help="second solutions against first ones: poles.csv")
    asked = parser.parse_args()
    rows: list[Row] = []
    if asked.poles:
        rows += poles(asked.data, asked.quick)
        if not asked.quick:
            write_csv(PAGE.with_name("poles.csv"), rows)
            put_table(PAGE, "Poles", summary_of_poles(rows))
        return
    for row in measured(asked.data, asked.quick):
        rows.append(row)
        if not asked.quick:
            write(rows)


def write(rows: list[Row]) -> None:
    """The rows so far, and tables of them."""
    write_csv(PAGE.with_suffix(".csv"), rows)
    put_table(PAGE, "Posterior mean", summary(rows, "mean"))
    put_table(PAGE, "Least squares", summary(rows, "SENSE"))
    coils = {one: "8 coils" if "16" not in one else "16 coils" for one in dict.fromkeys(str(r["scan"]) for r in rows)}
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if row["maps"] == "NLINV":
            seconds.setdefault(coils[str(row["scan"])], []).append(float(str(row["CPU s"])))
    put_table(PAGE, "Time", [{"NLINV": some, "CPU s, median": float(np.median(s))} for some, s in seconds.items()])
    put_conditions(PAGE, "numpy", "sigpy", also=f", BART {bart_version()}, one thread")


if __name__ == "__main__":
    main()
