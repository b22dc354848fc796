"""Shading of complete scans by the noise covariance that they show of themselves, as a table.

    OMP_NUM_THREADS=1 python benchmarks/noise_shading.py DATA

DATA is a folder with the scans of several coils that are named below (`mri/`, `raw/`; those that are not there are left
out). Every slice is prepared as by ``recon`` without a given noise and reconstructed by least squares from all its
lines, then held against the root sum of squares of its coil images, over the object: pixels above a tenth of the 99th
percentile. Before is what the samples beside the object show as a covariance, whatever is in them, with images in units
of the noise. Writes noise-shading.csv and noise-shading.md in results/reliability.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.operators.base import Array
from mri_design.scan.calibration.coil_maps import coil_combined, estimate_coil_maps
from mri_design.scan.calibration.noise import NoiseRegions, largest_correlation, prewhiten
from mri_design.scan.centred_fft import to_image
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/reliability"
SCANS = (
    "mri/mc_brain_8a.npy",
    "mri/mc_brain_cimax16.npy",
    "mri/mc_brain_cimax2.npy",
    "mri/mc_brain_prescan16.npy",
    "mri/mc_phantom_cimax16.npy",
    "mri/mc_phantom_ffe12.npy",
    "mri/mc_phantom_skyra32.npy",
    "mri/mc_phantom_skyra_gre2.npy",
    "mri/ge_pfile8.npy",
    "mri/ph_gre_rep2_256.npy",
    "mri/ph_gre_rep2_320.npy",
    "raw/twix_gre.dat",
)


def covariance_as_shown(data: KSpaceData) -> Array:
    """Of the samples beside the object, whatever is in them."""
    samples = NoiseRegions.of(data).air_samples()
    return np.asarray(samples @ samples.conj().T / (2 * samples.shape[1]) * float(np.abs(data.kspace).max()) ** 2)


def shading(image: Array, rss: Array, inside: Array) -> tuple[float, float, float]:
    """Median of image over root sum of squares; how far a pixel is from that median, at the median; 95th over 5th."""
    ratio = np.abs(image)[inside] / rss[inside]
    middle = float(np.median(ratio))
    off = float(np.median(np.maximum(ratio / middle, middle / ratio)))
    low, high = np.quantile(ratio, [0.05, 0.95])
    return middle, off, float(high / low)


def row_of(name: str, data: KSpaceData, index: int) -> Row:
    """One slice."""
    recipe = Recipe()
    rss = np.linalg.norm(to_image(data.kspace[0]), axis=0)
    inside = rss > 0.1 * np.quantile(rss, 0.99)
    shown = covariance_as_shown(data)
    before = shading(coil_combined(estimate_coil_maps(prewhiten(data, shown)))[0], rss, inside)
    scan = prepare(data, recipe, ordinary=True)
    lines = np.flatnonzero(data.measured).tolist()
    image = reconstruct(scan.slice_model(0, recipe), lines, "least-squares", recipe, np.random.default_rng(0)).image
    after = shading(image * scan.image_unit(0), rss, inside)
    return {
        "scan": name,
        "slice": index,
        "coils": data.n_coils,
        "correlation": round(largest_correlation(shown), 2),
        "off before": round(before[1], 3),
        "95 / 5 before": round(before[2], 2),
        "off now": round(after[1], 3),
        "95 / 5 now": round(after[2], 2),
        "ratio now": round(after[0], 3),
        "noise": scan.noise_source,
    }


def document(rows: list[Row]) -> str:
    """The page."""
    worst = {name: max(float(str(row[name])) for row in rows) for name in rows[0] if "before" in name or "now" in name}
    return "\n".join(
        [
            "# Does the noise of coils shade images?",
            "",
            "    OMP_NUM_THREADS=1 python benchmarks/noise_shading.py DATA",
            "",
            f"All {len(rows)} complete slices of several coils at hand, none with a noise of its own in the file.",
            "Least squares from all lines against the root sum of squares of the coil images, over the object.",
            "`off`: the factor by which half of the pixels are farther from the ratio's median over the object;",
            "`95 / 5`: the ratio's 95th percentile over its 5th; both are 1 without shading. `ratio`: that median, 1",
            "where the image is in the units of the file. `correlation`: the largest of two coils in the air beside",
            "the object. Before: that covariance as it is, and images in units of the noise.",
            "",
            f"Worst slice: off {worst['off before']:.2f} before, {worst['off now']:.2f} now; 95 / 5"
            f" {worst['95 / 5 before']:.1f} before, {worst['95 / 5 now']:.2f} now.",
            "",
            markdown_text(rows),
            "",
            "Two things keep a covariance from shading. Images are brought back to the brightness of the coils as",
            "they were read, pixel by pixel, whatever the covariance. And a covariance through which signal shows, by",
            "two coils that correlate by more than a half or by means and medians that disagree more than twofold",
            "from coil to coil, counts by its variances alone. What is left in `95 / 5`, of two coils above all, are",
            "pixels in the dark, where the root sum of squares holds the noise of all coils and the image that of",
            "one, and coil maps that are wrong there.",
            "",
            "The limits were chosen on these scans: without signal in the air, coils correlated by up to .48, with",
            "two scans at .50 and .53 (means and medians disagreed 1.8- to 2.0-fold); with signal by .86 to .97",
            "(8-fold and more).",
            "",
            ", ".join(f"{name} {version}" for name, version in installed_versions().items()),
            "",
        ]
    )


def main() -> None:
    """Compute and write, slice by slice on the screen."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    given = reader.parse_args()
    rows: list[Row] = []
    for name in SCANS:
        path = given.data / name
        if not path.exists():
            continue
        every = load_input(path, Recipe())
        for index in range(every.n_slices):
            rows.append(row_of(path.name, every.select_slice(index), index))
            print(rows[-1], flush=True)
    write_text(OUT / "noise-shading.csv", csv_text(rows))
    write_text(OUT / "noise-shading.md", document(rows))


if __name__ == "__main__":
    main()
