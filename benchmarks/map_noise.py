"""Whether sound maps of noisy scans are called bad: the checks of maps, with noise added to raw scans.

    OMP_NUM_THREADS=1 python benchmarks/map_noise.py DATA [--out results/coils]

DATA is the folder of raw scans, cut to their central 64 x 64 samples and made white. Noise is added until the 99th
percentile of the image (root sum of squares) is so many standard deviations of a sample's component. "held" is the
error of coils held back, of 24 centre lines and of 15 lines with gaps; "spoilt" that where every other line has its
coils exchanged; "as it was" leaves the noise in. "explained" is the part of the centre that the scan's own maps, from
24 lines without the added noise, explain, and that where nobody knows the noise.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from mri_design.calibration.growing_maps import error_of_held_coils
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.inputs import load_input
from mri_design.operators.centred_fft import to_image
from mri_design.scan.calibration.coil_maps import estimate_coil_maps, explained_by_maps
from mri_design.scan.calibration.noise import prewhiten
from mri_design.scan.data import KSpaceData

SCANS = {"mc_brain_cimax16": 0, "mc_brain_8a": 0, "mc_brain_prescan16": 0, "ge_pfile8": 3}
LEVELS = (100, 30, 20, 10, 5)
GAPS = (6, 14, 18, 21, 24, 26, *range(29, 36), 38, 40, 43, 46, 50, 58)


def rows(folder: Path, name: str, index: int) -> list[Row]:
    """All levels of one scan."""
    kspace = load_input(folder / f"{name}.npy").select_slice(index).kspace
    middle = tuple(slice(n // 2 - 32, n // 2 + 32) for n in kspace.shape[-2:])
    white = prewhiten(KSpaceData(np.ascontiguousarray(kspace[..., *middle]), np.ones(64, dtype=bool)))
    white = replace(white, coil_maps=estimate_coil_maps(white).coil_maps)
    signal = np.percentile(np.linalg.norm(to_image(white.kspace[0]), axis=0), 99)
    centre, gaps = np.zeros((2, 64, 64), dtype=bool)
    centre[20:44, 20:44] = gaps[list(GAPS)] = True
    rng, found = np.random.default_rng(0), list[Row]()
    for level in LEVELS:
        variance = max(1.0, (signal / level) ** 2)
        noise = rng.standard_normal((2, *white.kspace.shape)) * np.sqrt(variance - 1)
        noisy = replace(
            white, kspace=(white.kspace + noise[0] + 1j * noise[1]).astype(np.complex64), noise_variance=variance
        )
        samples, spoilt = noisy.kspace[0], noisy.kspace[0].copy()
        spoilt[:, ::2] = np.roll(spoilt[:, ::2], 1, axis=0)
        held = {"centre": centre, "gaps": gaps}
        found.append(
            {
                "scan": name,
                "coils": white.n_coils,
                "signal to noise": level,
                **{f"held, {word}": error_of_held_coils(samples, some, variance) for word, some in held.items()},
                **{f"held, {word}, spoilt": error_of_held_coils(spoilt, some, variance) for word, some in held.items()},
                **{f"held, {word}, as it was": error_of_held_coils(samples, some) for word, some in held.items()},
                "explained": explained_by_maps(noisy),
                "explained, noise unknown": explained_by_maps(replace(noisy, noise_variance=None)),
            }
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    table = [one for name, index in SCANS.items() for one in rows(given.data, name, index)]
    rounded = [{k: round(v, 3) if isinstance(v, float) else v for k, v in one.items()} for one in table]
    write_csv(given.out / "map-noise.csv", rounded)


if __name__ == "__main__":
    main()
