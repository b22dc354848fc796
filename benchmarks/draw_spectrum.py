"""How squared errors of images compare with their draws, ring by ring of k-space: the numbers of draw_spectrum.py.

    OMP_NUM_THREADS=1 python benchmarks/draw_spectrum.py DATA [--seeds 3] [--judged]

DATA is the folder of raw scans and images. Prints what `evidence/draw_spectrum.py` has as `BRIGHTNESS`,
`KNOWN`, `USUAL`, `OFFSETS` and `SLOPES`, learnt on two heads at 3 T and at low field; with --judged the same of those
that judge.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
from parts.head_scans import JUDGED, LEARNT, masks, scans

from mri_design.evidence.draw_spectrum import EDGES, everywhere, radii
from mri_design.experiment import posterior_draws
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.operators.base import Array
from mri_design.operators.centred_fft import to_kspace

SHRINKAGE = 5.0
"""Added to the sum of squares of what is found, where a slope is learnt."""
RECIPE = load_recipe("default").replacing("reconstruction", draws=32)


def ratios(error: Array, deviations: Array, lines: list[int]) -> list[np.ndarray]:
    """Logarithms of the squared error over that of draws by ring: lines that were not measured, and others."""
    power, wrong = np.mean(np.abs(to_kspace(deviations)) ** 2, axis=0), np.abs(to_kspace(error)) ** 2
    places, known = radii((power.shape[0], power.shape[1])), np.zeros(power.shape, dtype=bool)
    known[lines] = True
    found = []
    for chosen in (~known, known):
        rings = [chosen & (places >= low) & (places < high) for low, high in pairwise(EDGES)]
        enough = [np.count_nonzero(ring) > 8 for ring in rings]
        found.append(
            np.array(
                [np.log(wrong[r].sum() / power[r].sum()) if e else np.nan for r, e in zip(rings, enough, strict=True)]
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--judged", action="store_true")
    asked = parser.parse_args()
    held, missing, known, bright = [], [], [], []
    for seed in range(1, asked.seeds + 1):
        for _, scan in scans(asked.data, seed, JUDGED if asked.judged else LEARNT):
            one = scan.prepared.slice_model(0, RECIPE)
            for lines in masks(one, seed):
                seen: dict[str, Array] = {}

                def spectrum(deviations: Array, noise: float, found: Array | None, seen: dict = seen) -> Array:
                    seen.update(deviations=deviations, found=found)
                    return deviations

                with mock.patch.object(posterior_draws, "with_spectrum_of_errors", spectrum):
                    made = reconstruct_prepared(one, lines, "mean", RECIPE, image_rng(seed))
                of_missing, of_known = ratios(made.image - scan.reference, seen["deviations"], lines)
                if seen["found"] is not None:
                    held.append(everywhere(seen["found"]))
                    missing.append(of_missing)
                known.append(of_known)
                away = scan.reference - made.image
                share = np.vdot(made.image, away).real / (np.linalg.norm(made.image) * np.linalg.norm(away))
                bright.append(float(share))
    x, y = np.array(held), np.array(missing)
    usual = np.nanmean(x, axis=0)
    away = np.where(np.isfinite(x) & np.isfinite(y), x - usual, 0)
    seen_there = np.any(np.isfinite(y), axis=0)  # all lines of the innermost ring are measured: that of the next holds
    offsets = everywhere(np.where(seen_there, np.nanmean(np.where(seen_there, y, 0.0), axis=0), np.nan))
    slopes = np.nansum(away * (y - offsets), axis=0) / (np.sum(away**2, axis=0) + SHRINKAGE)
    slopes = everywhere(np.where(seen_there, slopes, np.nan))
    print(f"{len(known)} images")
    print("BRIGHTNESS", round(float(np.sqrt(np.mean(np.square(bright)))), 2))
    for name, values in (
        ("KNOWN", np.nanmean(known, axis=0)),
        ("USUAL", usual),
        ("OFFSETS", offsets),
        ("SLOPES", slopes),
    ):
        print(name, tuple(round(float(value), 2) for value in values))


if __name__ == "__main__":
    main()
