"""Whether maps that are bad are said to be: the error with which coils held back are predicted, beside the image's.

    OMP_NUM_THREADS=1 python benchmarks/map_checks.py DATA

DATA is the folder of raw scans. Maps rest on four, six, eight or twelve centre lines alone (others are measured beyond
the central 32), or on a random mask of the same kind as in coil_maps.py. `prediction` is the error that the product
says, `SENSE` by how much the least-squares image is worse than with maps of all lines. The threshold was chosen on the
heads with 8 and 16 coils, and is checked on the prescan and the phantoms. Writes results/coils/map-checks.csv, and
espirit-checks.csv: the same check of 24 gapless lines, as measured, with coils that change places on every other line,
and with noise of a share of the rms over all samples added.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from coil_maps import Head, head, heads, least_squares_error, mask

from mri_design.calibration.growing_maps import maps_from_lines
from mri_design.evaluation.tables import Row, write_csv
from mri_design.operators.base import Array

PHANTOMS = {"mc_phantom_ffe12": (1,), "ge_pfile8": (0, 3, 6), "mc_phantom_skyra32": (0,)}


def phantoms(folder: Path) -> Iterator[Head]:
    """Slices of raw phantoms, whose lines are along the last axis."""
    for name, slices in PHANTOMS.items():
        kspace = np.load(folder / f"{name}.npy").swapaxes(-1, -2)
        for index in slices:
            yield head(f"{name} {index}", np.ascontiguousarray(kspace[index : index + 1]))


def centre_only(lines: int, centre: int) -> Array:
    """Centre lines and half of those beyond the central 32, a third of all at most."""
    chosen = np.abs(np.arange(lines) - lines // 2 + 0.5) < centre / 2
    outer = np.flatnonzero(np.abs(np.arange(lines) - lines // 2) > 16)
    count = min(lines // 3 - centre, len(outer) // 2)
    chosen[np.random.default_rng(1).choice(outer, max(0, count), replace=False)] = True
    return chosen


def rows(one: Head) -> Iterator[Row]:
    """Every mask of one scan."""
    size = len(one.kspace[0])
    masks = {f"{centre} centre lines": centre_only(size, centre) for centre in (4, 6, 8, 12)}
    masks |= {f"random, {part}x": mask(size, size // part, 20 + part) for part in (4, 6, 8)}
    for name, lines in masks.items():
        found = maps_from_lines(one.kspace, lines, method="nlinv")
        ratio = least_squares_error(one, found.maps, lines) / least_squares_error(one, one.maps, lines)
        yield {
            "scan": one.name,
            "coils": len(one.kspace),
            "mask": name,
            "prediction": round(found.prediction_error, 3),
            "SENSE": round(100 * (ratio - 1), 1),
            "said to be bad": found.predicts_badly,
        }


def espirit_rows(one: Head) -> Iterator[Row]:
    """The centre lines of one scan, as they are and spoilt."""
    lines = np.abs(np.arange(len(one.kspace[0])) - len(one.kspace[0]) // 2 + 0.5) < 12
    swapped = one.kspace.copy()
    swapped[:, 1::2] = np.roll(swapped[:, 1::2], 1, axis=0)
    found: Row = {"scan": one.name, "coils": len(one.kspace)}
    samples = {"as measured": one.kspace, "coils swapped": swapped}
    rms, rng = np.linalg.norm(one.kspace) / one.kspace.size**0.5, np.random.default_rng(0)
    for share in (0.3, 1.0):
        noise = rng.normal(size=(2, *one.kspace.shape)) * share * rms / 2**0.5
        samples[f"noise of {share:.0%}"] = (one.kspace + noise[0] + 1j * noise[1]).astype(np.complex64)
    for name, kspace in samples.items():
        found[name] = round(maps_from_lines(kspace, lines, method="espirit").prediction_error, 3)
    yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    found: list[Row] = []
    espirit: list[Row] = []
    for one in (*heads(folder, quick=False), *phantoms(folder)):
        espirit += espirit_rows(one)
        write_csv(Path("results/coils/espirit-checks.csv"), espirit)
        print(espirit[-1], flush=True)
        found += rows(one)
        write_csv(Path("results/coils/map-checks.csv"), found)
        print(found[-1], flush=True)


if __name__ == "__main__":
    main()
