"""Noise of raw scans by every place that shows it, which of them counts, and the shading that is left, as tables.

    OMP_NUM_THREADS=1 python benchmarks/noise_witnesses.py DATA [--before FILE | --centre]

DATA is the folder of raw scans. Of every scan the middle slice is taken, of two phantoms all. Standard deviations are
held against the difference of repeats where a file has them, and against air as somebody else would look for it: the
outer sixteenth of the image's rows, on the quieter side, mean over sixteen blocks of columns. A quarter of the lines
(variable density, 16 at the centre) is held against all of them; so are scans after a window on k-space that cuts its
corners to a fortieth, against what the window does to the mean variance. Shading is least squares of all lines over the
root sum of squares of the coil images, 95th over 5th percentile: over pixels brighter than a tenth of the 99th
percentile, and over those of them that are five times as bright as the noise of all coils. ``--before`` adds columns
of an earlier version from a table of the same names. Writes results/coils/noise.md and noise.csv. With --centre, 12, 16
and 24 centre lines alone are held against all lines, with air in the image as one of the places and without, which
writes noise-centre.csv and a table of noise.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.pages import put_table

from mri_design import InputError, KSpaceData, Recipe, load_input, prepare, reconstruct
from mri_design.evaluation.tables import Row, write_csv
from mri_design.operators.base import Array
from mri_design.operators.centred_fft import to_image
from mri_design.scan.calibration.noise import (
    MeasuredNoise,
    covariance,
    largest_correlation,
    measure_noise,
    median_variance,
)
from mri_design.scan.calibration.noise.covariance import LINES_FOR_AIR
from mri_design.scan.calibration.noise.witnesses import BESIDE, ENDS, IMAGE_AIR, REPEATS

FRESH = ("6B", "7A", "twix", "urea3d")
"""Parts of the names of scans that nobody had looked at when the rule for complete scans was written."""
ALL_SLICES = ("ge_pfile8", "mc_phantom_ffe12")
RECIPE = Recipe()
CENTRES = (12, 16, 24)


def scans(data: Path) -> Iterator[tuple[str, KSpaceData]]:
    """Raw scans on a grid, slice by slice; of the rat's frames the one before the bolus and two with it."""
    names = [
        path for kind in ("mc_", "ge_", "ph_", "sc_", "wrist", "lf_") for path in sorted(data.glob(f"mri/{kind}*.npy"))
    ]
    for path in [*names, data / "raw/twix_gre.dat"]:
        every = load_input(path, RECIPE)
        for number in range(every.n_slices) if path.stem in ALL_SLICES else [every.n_slices // 2]:
            yield f"{path.stem} {number}", every.select_slice(number)
    frames = np.load(data / "mri/urea3d_t.npy")
    for number in (0, 3):
        planes = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(frames[number], axes=-1), norm="ortho", axis=-1), axes=-1)
        stack = np.ascontiguousarray(planes[..., 6].swapaxes(1, 2)[np.newaxis]).astype(np.complex64)
        yield f"urea3d_t {number}", KSpaceData(stack, np.any(stack, axis=(0, 1, 3)), name="urea3d_t")


def at_the_edge(data: KSpaceData) -> Array | None:
    """Variance of the air at the upper or lower edge of the image of a complete scan."""
    if not data.fully_sampled:
        return None
    image = to_image(data.kspace)
    height = max(1, image.shape[2] // 16)
    blocks = np.array_split(np.arange(image.shape[3]), 16)
    sides = [
        np.mean([median_variance(image[:, :, rows][..., block]) for block in blocks], axis=0)
        for rows in (slice(0, height), slice(-height, None))
    ]
    return np.asarray(min(sides, key=lambda side: float(side.sum())) / data.samplings[0].samples.mean())


def quarter(data: KSpaceData) -> KSpaceData:
    """Sixteen central lines, and a quarter of all in all, more of them near the centre."""
    n = data.grid_shape[0]
    distance = np.abs(np.arange(n) - n // 2) / (n / 2)
    keep = data.measured & (distance < 16 / n)
    weights = np.where(data.measured & ~keep, (1.05 - distance) ** 2, 0)
    more = max(0, n // 4 - int(keep.sum()))
    keep[np.random.default_rng(0).choice(n, more, replace=False, p=weights / weights.sum())] = True
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep, repeat=None)


def windowed(data: KSpaceData) -> tuple[KSpaceData, float]:
    """K-space times a Gaussian that is a fortieth at the corners, and what that leaves of the mean variance."""
    rows, columns = ((np.arange(n) - n // 2) / (n / 2) for n in data.grid_shape)
    window = np.exp(-np.log(40) / 2 * (rows[:, np.newaxis] ** 2 + columns**2)).astype(np.float32)
    mean = float(np.mean(window[data.measured] ** 2))
    return replace(data, kspace=data.kspace * window, repeat=None), mean


def shading(data: KSpaceData) -> tuple[float, float, float]:
    """95th over 5th percentile of least squares over root sum of squares: of all bright pixels, and above the noise.

    The third number is the share of the bright pixels that are above the noise.
    """
    scan = prepare(data, RECIPE, ordinary=True)
    lines = np.flatnonzero(data.measured).tolist()
    found = reconstruct(scan.slice_model(0, RECIPE), lines, "least-squares", RECIPE, np.random.default_rng(0))
    size = np.linalg.norm(to_image(data.kspace[0]), axis=0)
    assert scan.mixing is not None
    unmixing = np.linalg.inv(scan.mixing)
    noise = np.sqrt(2 * np.trace(unmixing @ unmixing.conj().T).real)
    bright = size > 0.1 * np.quantile(size, 0.99)
    above = bright & (size > 5 * noise)
    ratio = np.abs(found.image) / np.where(bright, size, 1)
    spreads = [np.quantile(ratio[pixels], [0.05, 0.95]) for pixels in (bright, above) if pixels.any()]
    first, second = (*(float(high / low) for low, high in spreads), np.nan)[:2]
    return first, second, float(above.sum() / bright.sum())


def spread(ratios: Array) -> str:
    """Range of ratios of standard deviations over the coils."""
    return f"{ratios.min():.2f}" if len(ratios) == 1 else f"{ratios.min():.2f} to {ratios.max():.2f}"


def against(found: MeasuredNoise, variances: Array | None) -> str:
    """Standard deviations over others, coil by coil."""
    return "-" if variances is None else spread(np.sqrt(np.diag(found.covariance).real / variances))


def told(value: object) -> object:
    """What a table shows of a value: a dash where there is none."""
    return "-" if value is None or value != value else value


def row_of(name: str, data: KSpaceData) -> Row:
    """Every witness of one slice, what counts, and what it is held against."""
    found, alone = measure_noise(data), measure_noise(replace(data, repeat=None))
    heard = {one.name: one for one in (found.heard.spoke, *found.heard.others)}
    repeats = heard[REPEATS].variances if REPEATS in heard else None
    few, (cut, left) = measure_noise(quarter(data)), windowed(data)
    through = measure_noise(cut)
    bright, above, share = shading(data) if data.n_coils > 1 else (np.nan, np.nan, np.nan)
    places = {
        place: heard[place].text.removeprefix(place).strip() if place in heard else "-"
        for place in (REPEATS, IMAGE_AIR, BESIDE, ENDS)
    }
    return {
        "scan and slice": name,
        "fresh": "yes" if any(part in name for part in FRESH) else "",
        "coils": data.n_coils,
        **places,
        "counts": found.heard.spoke.name,
        "doubt": found.heard.reason or "-",
        "without repeats, over repeats": against(alone, repeats),
        "over air at the edge": against(found, at_the_edge(data)),
        "correlation": largest_correlation(found.covariance) if data.n_coils > 1 else np.nan,
        "correlations": found.correlations.rpartition(" ")[2] if not found.alone else "alone",
        "a quarter of the lines, over all": against(few, np.diag(alone.covariance).real),
        "said of the quarter": few.heard.reason or "-",
        "through the window, over what it leaves": against(through, np.diag(alone.covariance).real * left),
        "shading, bright": bright,
        "shading, above noise": above,
        "share above noise": share,
    }


def centre_rows(data: Path) -> Iterator[Row]:
    """Standard deviation, root mean square of the coils, that the centre lines alone show, over that of all lines."""
    for name, whole in scans(data):
        kept, alone = whole.grid_shape[0], replace(whole, repeat=None)
        deviation = np.sqrt(measure_noise(alone).variance)
        row: dict[str, object] = {"scan and slice": name, "coils": whole.n_coils}
        for count in CENTRES:
            centre = whole.measured & (np.abs(np.arange(kept) - kept // 2 + 0.5) < count / 2)
            few = replace(alone, kspace=np.where(centre[:, np.newaxis], alone.kspace, 0), measured=centre)
            for column, share in (("with air in the image", 0.0), ("without", LINES_FOR_AIR)):
                covariance.LINES_FOR_AIR = share
                try:
                    covariance.MEASURED.clear()
                    found = measure_noise(few)
                    doubted = " (doubted)" if found.doubt else ""
                    row[f"{count}, {column}"] = f"{np.sqrt(found.variance) / deviation:.2f}{doubted}"
                except InputError:  # too few samples for the coils
                    row[f"{count}, {column}"] = "-"
        covariance.LINES_FOR_AIR = LINES_FOR_AIR
        yield row


def main() -> None:
    """Compute, row by row on the screen, and write."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--before", type=Path)
    reader.add_argument("--out", type=Path, default=Path("results/coils"))
    reader.add_argument("--centre", action="store_true")
    given = reader.parse_args()
    if given.centre:
        alone = list(centre_rows(given.data))
        put_table(given.out / "noise.md", "Centre lines alone", alone)
        write_csv(given.out / "noise-centre.csv", alone)
        for column in list(alone[0])[2:]:
            ratios = [float(str(row[column]).split()[0]) for row in alone if row[column] != "-"]
            print(
                column,
                f"median {np.median(ratios):.2f}, {np.quantile(ratios, 0.1):.2f} to {np.quantile(ratios, 0.9):.2f}",
            )
        return
    before: dict[str, dict[str, str]] = {}
    if given.before:
        with given.before.open(encoding="utf-8") as stream:
            before = {row.pop("scan and slice"): row for row in csv.DictReader(stream)}
    rows: list[Row] = []
    for name, data in scans(given.data):
        rows.append({**row_of(name, data), **before.get(name, {})})
        print(rows[-1], flush=True)
    held = list(rows[0])
    for heading, columns in (("Every place", held[:9]), ("Held against others", [held[0], *held[7:]])):
        table = [{column: told(row.get(column)) for column in columns} for row in rows]
        formats = {column: ".2f" for column in columns if rows[0].get(column).__class__ is float}
        put_table(given.out / "noise.md", heading, table, None, formats)
    with (given.out / "noise.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, held, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
