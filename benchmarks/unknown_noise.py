"""Loss of images where a scan does not say how noisy it is: estimated noise against the true one, as a table.

    OMP_NUM_THREADS=1 python benchmarks/unknown_noise.py DATA

DATA is the folder of the study's scans (`study/split.py`); only training subjects are used. Images whose k-space is cut
to few samples, so that the outermost ones hold signal, parts of images that fill the field of view, and images with air
around them become scans with white noise of 0.007 of their 99.5th percentile (low field: 0.02) that is not declared.
Masks are random with variable density (a third and half of the lines, two seeds), or designed by ``calibrated`` (half
of the lines). The file holds all lines, or only those of the mask. Every mask is reconstructed under the noise that the
data show and under the true noise, by ``local`` and by the default recipe. Writes the table of
results/benchmarks/unknown-noise.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.pages import put_table
from study.scans import NOISE, Scan, denoised, simulated, simulating
from study.split import TRAINING_SUBJECT

from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import run_design
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_prepared
from mri_design.experiment.starting import start_lines
from mri_design.experiment.strategy_names import make_strategy
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.scan.calibration.noise import measure_noise
from mri_design.scan.data import ImageStack
from mri_design.scan.io.formats import read
from mri_design.scan.simulation.scanner import simulate_scan

LOCAL, DEFAULT = load_recipe("local"), Recipe()


def cut(image: Array, n: int) -> Array:
    """The image of the n x n samples in the middle of its k-space."""
    rows, columns = (slice(size // 2 - n // 2, size // 2 - n // 2 + n) for size in image.shape)
    kspace = np.ascontiguousarray(CentredFFT(image.shape)(image)[rows, columns])
    return np.asarray(CentredFFT((n, n)).adjoint(kspace))


def anew(name: str, image: Array) -> Scan:
    """The image as the truth of a simulated scan."""
    stack = ImageStack(np.asarray(image, dtype=np.complex64)[None], name)
    return Scan.of(name, simulate_scan(stack, noise=NOISE, phase="own", rng=np.random.default_rng([0, 1])))


def scans(data: Path) -> Iterator[Scan]:
    """Hearts and heads of few samples, the inside of heads, heads and low field with air around them."""
    with np.load(data / "img_heart_complex.npz", allow_pickle=False) as archive:
        parts = archive["image"][:2].astype(np.float32)
    hearts = parts[..., 0] + 1j * parts[..., 1]
    stack = read(str(data / "img_3T_complex.npz"))
    assert isinstance(stack, ImageStack)
    for index, n in ((0, 96), (1, 96), (0, 64), (0, 128)):
        yield anew(f"heart {index}, {n} x {n} samples", cut(hearts[index], n))
    for index, n in ((0, 96), (2, 96), (3, 64)):
        yield anew(f"head {index}, {n} x {n} samples", cut(stack.images[index], n))
    for index in (0, 3):
        rows, columns = (slice(size // 4, size // 4 + size // 2) for size in stack.images[index].shape)
        yield anew(f"inside of head {index}", stack.images[index][rows, columns])
    yield from simulated(data / "img_3T_complex.npz", (1, 4), simulating(128), label="head")
    yield from (denoised(data / f"lf_{TRAINING_SUBJECT}_{kind}.npy", 2, 128) for kind in ("gre", "fse"))


def masks(scan: Scan) -> Iterator[tuple[str, list[int]]]:
    """Two random ones, and a designed one."""
    one, density = scan.prepared.slice_model(0, LOCAL), VariableDensity(family="polynomial", power=4.0)
    for share, seed in ((3, 0), (2, 1)):
        count = scan.n_lines // share
        start = start_lines(one.measured, density, count, LOCAL)
        yield "random", sorted(run_design([one], density, count, LOCAL, seed=seed, start=start).trace.lines)
    strategy, count = make_strategy("calibrated"), scan.n_lines // 2
    start = start_lines(one.measured, strategy, count, LOCAL)
    yield "calibrated", sorted(run_design([one], strategy, count, LOCAL, seed=0, start=start).trace.lines)


def error(scan: Scan, lines: Sequence[int], recipe: Recipe, variance: float) -> float:
    """Error of the posterior mean under that noise."""
    one = replace(scan.prepared.slice_model(0, recipe), noise_variance=variance)
    result = reconstruct_prepared(one, lines, "mean", recipe, np.random.default_rng(2), with_std=False)
    return relative_l2(result.image, scan.reference)


def rows_of(scan: Scan) -> Iterator[Row]:
    """Every mask; random ones also from files that hold nothing else."""
    complete = replace(scan.prepared.data, noise_variance=None)
    true = scan.prepared.data.noise_variance
    assert true is not None
    for mask, lines in masks(scan):
        measured = np.isin(np.arange(scan.n_lines), lines)
        only = replace(complete, kspace=np.where(measured[:, None], complete.kspace, 0), measured=measured)
        for file, data in (("all lines", complete), ("the mask's", only))[: 1 if mask == "calibrated" else 2]:
            now = measure_noise(data)
            local, default = (
                [error(scan, lines, recipe, variance) for variance in (now.variance, true)]
                for recipe in (LOCAL, DEFAULT)
            )
            yield {
                "image": scan.name,
                "mask": mask,
                "lines": len(lines),
                "file": file,
                "sd / true": float(np.sqrt(now.variance / true)),
                "said": now.doubt or "-",
                "default against local, %": 100 * (default[0] / local[0] - 1),
                "with true noise, %": 100 * (default[1] / local[1] - 1),
                "default against true noise, %": 100 * (default[0] / default[1] - 1),
            }


def main() -> None:
    """Compute, row by row on the screen, and write."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    given = reader.parse_args()
    rows: list[Row] = []
    for scan in scans(given.data):
        for row in rows_of(scan):
            rows.append(row)
            print(row, flush=True)
    formats = {name: "+.1f" for name in rows[0] if "%" in name} | {"sd / true": ".2f"}
    put_table(given.out / "unknown-noise.md", "Every mask", rows, None, formats)


if __name__ == "__main__":
    main()
