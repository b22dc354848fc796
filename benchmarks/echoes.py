"""Maps of T2 held against the truth: simulated echoes of heads, and rats against the fit of all their lines.

    OMP_NUM_THREADS=1 python benchmarks/echoes.py measure DATA
    OMP_NUM_THREADS=1 python benchmarks/echoes.py stops DATA
    python benchmarks/echoes.py targets

DATA is the folder of raw scans and images. ``measure`` reconstructs echoes from a half and a third of the lines as a
user does, by `mri-design recon` with 24 draws, fits T2, and keeps a row of echoes.csv for each series. ``stops``
designs the lines of four echoes until T2 of a disc is known to within 5 %, and keeps a row of echo_stops.csv. What is
there already is kept. ``targets`` writes the tables of echoes.md and README.md, and rows of targets.csv.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy
from numpy.typing import NDArray
from parts.exams import contrast_at_3t, with_phase
from parts.pages import Kept, put_conditions, put_table

import mri_design as md
from mri_design.evaluation.run_folder import read_manifest
from mri_design.evaluation.tables import Row
from mri_design.evidence.regions import RegionMean, discs, region_means
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.runs.maps import QuantityMap, fit_run
from mri_design.runs.stored_run import read_run
from mri_design.signals.maps import fit_map

OUT = Path(__file__).parents[1] / "results" / "regions"
PARTS, SEEDS, DRAWS, LEVEL, SIDE = (2, 3), range(3), 24, 0.9, 5
SUBJECTS = ("6A", "7A", "7B")
ECHOES, NOISE = np.arange(1, 9) * 15.0, 0.02
"""Times in ms, and the standard deviation of the noise, where the first echo of bright tissue is about 1."""
RAT, RAT_NOISE = (4, 8, 12), "noise_sd_per_real_component"
"""Numbers of echoes, whose times are counted in their spacings."""
CENTRE, BRIGHT = 0.1, 0.25
STOP_ECHOES, STOP_WITHIN, AREA = np.array([15.0, 30.0, 60.0, 120.0]), 0.05, 50
"""Of designs: times in ms, the wanted half length over T2, and pixels of the disc."""


def lines(count: int, part: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A tenth of the lines at the centre, and others at random, rarer far out."""
    away = np.abs(np.arange(count) - count // 2)
    mask = away <= CENTRE * count / 2
    rates = np.where(mask, 0, 1 / (1 + away / (0.1 * count)) ** 1.5)
    mask[rng.choice(count, count // part - mask.sum(), replace=False, p=rates / rates.sum())] = True
    return mask


def series(kspace: Array, mask: NDArray[np.bool_], seed: int, folder: Path, *words: str) -> Path:
    """The run of echoes (echo, ky, kx), reconstructed from some lines of each."""
    np.save(folder / "echoes.npy", kspace[:, None, None].astype(np.complex64))
    np.save(folder / "mask.npy", mask)
    read = ("-s", "input.dims=contrast,slice,coil,ky,kx", "-s", "input.series.contrast=all", "--no-report", "--quiet")
    made = ("--mask", "mask.npy", "--draws", str(DRAWS), "--seed", str(seed), "--jobs", "1", "--out", "run")
    command = [sys.executable, "-m", "mri_design.cli.start", "recon", "echoes.npy", *made, *read, *words]
    ended = subprocess.run(command, cwd=folder, check=False)
    assert ended.returncode in (0, 4)  # 4: some echo did not converge
    return folder / "run"


def squares(inside: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Squares of five pixels side by side, of which at least four fifths are inside, as regions of one slice."""
    row, column = (at // SIDE for at in np.indices(inside.shape))
    found = {
        f"{y}, {x}": ((row == y) & (column == x) & inside)[None]
        for y, x in sorted({*zip(row.flat, column.flat, strict=True)})
    }
    return {name: flags for name, flags in found.items() if flags.sum() >= 0.8 * SIDE**2}


def correlations(errors: Array, mask: NDArray[np.bool_]) -> Row:
    """Of the errors (echo, ky, kx) of the first echo with those of the second and the last, on lines left out."""
    left_out = CentredFFT(errors.shape[1:])(errors)[:, ~mask].reshape(len(errors), -1)
    size = np.linalg.norm(left_out, axis=1)
    first = np.real(left_out @ left_out[0].conj()) / (size * size[0])
    return {"correlation 1, 2": first[1], "correlation 1, last": first[-1]}


def judged(made: QuantityMap, true: Array, spread: Array, regions: Sequence[RegionMean], inside: Array) -> Row:
    """How a map of one slice, and the differences of regions to the truth, relate to their error bars."""
    error, std = (made.value[0] - true)[inside], np.hypot(made.std[0], spread)[inside]
    held = np.abs(error) < scipy.stats.t.ppf((1 + LEVEL) / 2, DRAWS - 1) * std
    found = [one.interval(LEVEL) for one in regions]
    size = [abs(one.value) / one.sd for one in regions]
    return {
        "pixels": int(inside.sum()),
        "pixels inside": float(held.mean()),
        "error": float(np.median(np.abs(error) / true[inside])),
        "sd": float(np.median(std / true[inside])),
        "bias": float(np.median(error / true[inside])),
        "regions": len(found),
        "regions inside": float(np.mean([low < 0 < high for low, high in found])),
        "regions rms": float(np.sqrt(np.mean(np.square(size)))),
        "misfit": float(np.median(made.misfit[0][inside])),
    }


def head(data: Path, subject: str, times: Array, seed: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Echoes of a head whose T2 is long where its T2-weighted image is bright: T2, images, and k-space with noise."""
    weighted = contrast_at_3t(data, subject, "T2w")
    t2 = 40 + 140 * np.clip(weighted, 0, 1.3)
    truth = with_phase(weighted * np.exp(80 / t2), (seed, *map(ord, subject))) * np.exp(-times[:, None, None] / t2)
    kspace = CentredFFT(t2.shape)(truth.astype(np.complex128))
    kspace = kspace + NOISE * (rng.normal(size=kspace.shape) + 1j * rng.normal(size=kspace.shape))
    return t2, truth, kspace


def ended(data: Path, subject: str, seed: int) -> Row:
    """A design of echoes that ends when T2 of a disc is known, and how far it is from the truth then."""
    t2, truth, kspace = head(data, subject, STOP_ECHOES, seed, np.random.default_rng([seed, *map(ord, subject)]))
    inside = discs(truth[0], AREA, np.random.default_rng([seed, 7]))[0]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "echoes.npy"
        np.save(path, kspace[:, None, None].astype(np.complex64))
        scan = md.load(path, dims="contrast,slice,coil,ky,kx", noise=NOISE, seed=seed)
        made = scan.design(fit="T2", times=STOP_ECHOES, region=inside, until_interval=STOP_WITHIN)
    trace, true = made.image.computation.result.trace, float(t2[inside].mean())
    looks = [step.forecast for step in (*trace.steps, trace.declined) if step and step.forecast.intervals is not None]
    middle, half, _ = looks[-1].intervals[0]
    row: Row = {"subject": subject, "seed": seed, "lines": len(trace.lines), "of": len(t2), "looks": len(looks)}
    return row | {"ended": trace.declined is not None, "T2": true, "middle": middle, "half": half}


def stops(data: Path) -> None:
    """Add what is not there yet."""
    kept = Kept.at(OUT / "echo_stops.csv", "subject", "seed")
    for seed in SEEDS:
        for subject in SUBJECTS:
            if kept.named(row := {"subject": subject, "seed": seed}) not in kept.rows:
                kept.put(row | ended(data, subject, seed))


def simulated(data: Path, subject: str, part: int, seed: int) -> Row:
    """Echoes of a head against its maps, from a part of the lines."""
    rng = np.random.default_rng([seed, *map(ord, subject), part])
    t2, truth, kspace = head(data, subject, ECHOES, seed, rng)
    mask = lines(len(t2), part, rng)
    with TemporaryDirectory() as folder:
        stored = read_run(series(kspace, mask, seed, Path(folder), "--noise", str(NOISE)))
        made = fit_run(stored, "T2", ECHOES)
        apart = correlations(stored.image[:, 0] - truth, mask)
    inside = (np.abs(truth[0]) > BRIGHT * np.percentile(np.abs(truth[0]), 99.5)) & np.isfinite(made.value[0])
    assert made.run.draws is not None
    means = region_means(squares(inside), made.value, made.run.draws, t2[None])
    errors = [replace(one, value=one.value - (one.true or 0)) for one in means]
    return judged(made, t2, np.zeros_like(t2), errors, inside) | apart


def rats(data: Path, part: int, seed: int) -> Iterator[tuple[int, Row]]:
    """Echoes of rat kidneys against the fit of all their lines, whose noise on lines left out counts."""
    kspace = np.roll(np.load(data / "echoes_rat_kidney.npy")[: max(RAT), 0], 1, axis=-1).swapaxes(1, 2)
    rng = np.random.default_rng([seed, part])
    mask, fft = lines(kspace.shape[1], part, rng), CentredFFT(kspace.shape[1:])
    with TemporaryDirectory() as folder:
        stored = read_run(series(kspace, mask, seed, Path(folder)))
        noise = float(read_manifest(Path(folder) / "run")["settings"][RAT_NOISE])
        whole, shape = stored.reference[:, 0], (max(RAT), DRAWS, *fft.in_shape)
        other = noise * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
        drawn = whole[:, None] + fft.adjoint(np.where(mask[:, None], 0, other))
        apart = correlations(stored.image[:, 0] - whole, mask)
        bright = np.abs(whole[0]) > BRIGHT * np.abs(whole[0]).max()
        std = np.full(whole.shape, noise * np.sqrt(2))
        for count in RAT:
            times = np.arange(1, count + 1.0)
            some = {name: getattr(stored, name)[:count] for name in ("image", "std", "draws", "pull", "frames")}
            made = fit_run(replace(stored, **some), "T2", times)
            full = fit_map(made.model, times, whole[:count], drawn[:count], std[:count])
            inside = bright & np.isfinite(made.value[0]) & np.isfinite(full.value)
            parts = [(made.value, made.run.draws), (full.value[None], full.draws[None])]
            means = zip(*(region_means(squares(inside), *part) for part in parts), strict=True)
            apart_of_both = [one.minus(other, one.name, together=False) for one, other in means]
            yield count, judged(made, full.value, full.std, apart_of_both, inside) | apart


def measure(data: Path) -> None:
    """Add what is not there yet."""
    kept = Kept.at(OUT / "echoes.csv", "series", "echoes", "part", "seed")
    for part in PARTS:
        for seed in SEEDS:
            for subject in SUBJECTS:
                row: Row = {"series": subject, "echoes": len(ECHOES), "part": part, "seed": seed}
                if kept.named(row) not in kept.rows:
                    kept.put(row | simulated(data, subject, part, seed))
            row = {"series": "rats", "part": part, "seed": seed}
            if kept.named(row | {"echoes": max(RAT)}) not in kept.rows:
                for count, found in rats(data, part, seed):
                    kept.put(row | {"echoes": count} | found)


def shown_end(row: Mapping[str, object]) -> Row:
    """A row of the table of designs."""
    true, middle, half = (float(str(row[name])) for name in ("T2", "middle", "half"))
    taken: Row = {"subject": row["subject"], "seed": row["seed"], "lines": f"{row['lines']} of {row['of']}"}
    taken |= {"looks": row["looks"], "T2 of the disc": f"{true:.1f} ms"}
    if not np.isfinite(half):
        return taken | dict.fromkeys(("found", "interval", "error", "in the interval"), "not known")
    held = "yes" if abs(middle - true) <= half else "no"
    found = {"found": f"{middle:.1f} ms", "interval": f"{half / middle:.1%}", "error": f"{middle / true - 1:+.1%}"}
    return taken | found | {"in the interval": held}


INSIDE = {
    "T2 of simulated echoes: 90 % intervals": (SUBJECTS, 0.86, 0.94),
    "T2 of the rats against all lines: 90 % intervals": (("rats",), 0.85, 0.95),
}
SHOWN = dict.fromkeys(("pixels inside", "error", "sd", "regions inside"), ".1%") | {"bias": "+.1%"}
SHOWN |= dict.fromkeys(("regions rms", "misfit", "correlation 1, 2", "correlation 1, last"), ".2f")


def targets() -> None:
    """Write the tables of the page and the rows of targets.csv."""
    rows = list(Kept.at(OUT / "echoes.csv", "series", "echoes", "part", "seed").rows.values())
    groups = dict.fromkeys((row["series"], row["echoes"], row["part"]) for row in rows)
    kept, page = Kept.at(OUT / "targets.csv", "what"), OUT / "echoes.md"
    table, judged_rows = list[Row](), list[Row]()
    for group in groups:
        own = [row for row in rows if (row["series"], row["echoes"], row["part"]) == group]
        means = {name: f"{np.mean([float(str(row[name])) for row in own]):{form}}" for name, form in SHOWN.items()}
        table.append({"series": group[0], "echoes": group[1], "lines": f"1/{group[2]}", "runs": len(own)} | means)
    put_table(page, "Series by series", table)
    for name, (of, low, high) in INSIDE.items():
        for what in ("pixels", "regions"):
            found = [float(str(row[f"{what} inside"])) for row in rows if row["series"] in of]
            met = "yes" if low <= np.mean(found) <= high else "no"
            judged_rows.append({"what": f"{name}, {what}", "target": f"{low:.0%} to {high:.0%}"})
            judged_rows[-1] |= {"measured": f"{np.mean(found):.1%} ({min(found):.0%} to {max(found):.0%})", "met": met}
            kept.put(judged_rows[-1])
    put_table(page, "Targets", judged_rows)
    ends = list(Kept.at(OUT / "echo_stops.csv", "subject", "seed").rows.values())
    put_table(OUT / "README.md", "Ends of designs by T2", [shown_end(row) for row in ends])
    put_conditions(page, "numpy", "scipy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("measure", "stops", "targets"))
    parser.add_argument("data", type=Path, nargs="?")
    asked = parser.parse_args()
    targets() if asked.verb == "targets" else {"measure": measure, "stops": stops}[asked.verb](asked.data)
