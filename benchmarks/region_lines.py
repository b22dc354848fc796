"""Lines chosen for a region against those for the whole image: what a score inside a region gains.

    OMP_NUM_THREADS=1 python benchmarks/region_lines.py measure DATA [--seeds 0:3]
    python benchmarks/region_lines.py targets

DATA is the folder of raw scans and images. Heads of eight subjects, at 3 T and low field, simulated with one coil, a
disc of 200 pixels in each, 20 and 32 of 96 lines. ``windowed`` multiplies the scores of `calibrated` by the share of a
line's expected error that lies inside the softened region, by draws. ``functional`` scores a line by how much it is
expected to reduce the variance of the region's mean. ``oracle`` is ``windowed`` with the true error. All get the same
reconstruction. ``targets`` writes the table of README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from parts.error_cases import SPLITS, Truth, scan_of, truths
from parts.pages import put_table
from regions import OUT, put_target

from mri_design.design.calibrated import Calibrated
from mri_design.design.greedy import Scores
from mri_design.design.strategy import DesignView
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence.error_bars import powers
from mri_design.evidence.regions import discs
from mri_design.experiment.design import run_design
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.operators.conventions import to_kspace

MATRIX, AREA, COUNTS, DRAWS, SOFT = 96, 200, (20, 32), 12, 3.0
RULES = ("calibrated", "windowed", "functional", "oracle")
RECIPE = load_recipe("default")


def energies_of(images: Array) -> NDArray[np.float64]:
    """Mean energy of images (image, ky, kx) on every line, (ky,)."""
    return np.asarray(powers(to_kspace(images)).sum(axis=2).mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class ForRegion(Calibrated):
    """`Calibrated` for a region (ky, kx)."""

    region: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((1, 1), dtype=bool))
    rule: str = "windowed"
    truth: Array | None = None

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """The scores of `Calibrated`, changed by the rule."""
        scores, forecast = super().scored(view, rng)
        posterior = view.posteriors[0]
        window = scipy.ndimage.gaussian_filter(self.region.astype(float), SOFT)
        if self.rule == "oracle":
            assert self.truth is not None
            return energies_of(((self.truth - posterior.mean) * window)[np.newaxis]), forecast
        draws = np.asarray(posterior.own_deviations(rng, DRAWS))
        if self.rule == "windowed":
            return scores * energies_of(draws * window) / np.maximum(energies_of(draws), 1e-30), forecast
        phase = np.exp(1j * np.angle(posterior.mean))
        weight = (self.region * phase / self.region.sum()).astype(posterior.mean.dtype)
        solved, _ = posterior.precision.solve(weight[np.newaxis], tolerance=1e-3, max_iterations=200)
        told = powers(to_kspace(np.asarray(solved)[0])) * posterior.model.noise_variance
        left = powers(to_kspace(draws)).mean(axis=0) + 2.0
        return (told / left).sum(axis=1), forecast


def cases(data: Path, seed: int) -> Iterator[tuple[Truth, SliceModel, Array, NDArray[np.bool_]]]:
    """Two images of every subject, with their disc."""
    for split in SPLITS:
        every = truths(data, split)
        for group in dict.fromkeys(one.group for one in every if one.group[:2] in ("3T", "6A", "6B", "7A", "7B")):
            own = [one for one in every if one.group == group]
            rng = np.random.default_rng([seed, len(group), len(own)])
            truth = own[int(rng.integers(len(own)))]
            scan = scan_of(truth, truth.image, rng, MATRIX, truth.noise, 1)
            one = scan.prepared.slice_model(0, **RECIPE.slice_settings)
            yield truth, one, scan.reference, discs(scan.reference, AREA, rng)[0]


def measure(data: Path, seeds: range) -> None:
    """Add what is not there yet."""
    path = OUT / "lines.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    have = {str(row["seed"]) for row in rows}
    for seed in (seed for seed in seeds if str(seed) not in have):
        for truth, one, true, region in cases(data, seed):
            for rule in RULES:
                chosen: Calibrated = Calibrated()
                if rule != "calibrated":
                    chosen = ForRegion(region=region, rule=rule, truth=true if rule == "oracle" else None)
                state = run_design([one], replace(chosen), max(COUNTS), RECIPE, seed=seed)
                for count in COUNTS:
                    image = reconstruct_prepared(
                        one, state.trace.lines[:count], "mean", RECIPE, image_rng(seed), with_std=False
                    ).image
                    apart, inside = np.abs(image - true), np.abs(true[region])
                    mean = float(abs(np.abs(image[region]).mean() - inside.mean()) / inside.mean())
                    row: Row = {"seed": seed, "group": truth.group, "name": truth.name, "rule": rule, "lines": count}
                    row |= {"region": f"{np.linalg.norm(apart[region]) / np.linalg.norm(inside):.4g}"}
                    rows.append(
                        row | {"mean": f"{mean:.4g}", "image": f"{np.linalg.norm(apart) / np.linalg.norm(true):.4g}"}
                    )
            print(seed, truth.name, flush=True)
        write_csv(path, rows)


def targets() -> None:
    """Write the table: changes of errors against the default, image by image."""
    rows = [dict(row) for row in read_csv_texts(OUT / "lines.csv")]
    errors = {(r["seed"], r["group"], int(r["lines"]), r["rule"]): r for r in rows}
    keys = sorted({key[:3] for key in errors})
    table = list[Row]()
    for rule in RULES[1:]:
        for count in COUNTS:
            own = [key for key in keys if key[2] == count]
            row: Row = {"rule": rule, "lines": f"{count} of {MATRIX}", "images": len(own)}
            for name in ("region", "mean", "image"):
                ours, usual = (np.array([float(errors[*key, r][name]) for key in own]) for r in (rule, "calibrated"))
                if name == "mean":
                    row["mean's error, rms over rms"] = (
                        f"{100 * (np.sqrt(np.mean(ours**2) / np.mean(usual**2)) - 1):+.0f} %"
                    )
                    continue
                change = 100 * (ours / usual - 1)
                row[f"error of the {name}"] = f"{change.mean():+.1f} %"
                row[f"{name}: best, worst"] = f"{change.min():+.0f}, {change.max():+.0f} %"
            table.append(row)
    put_table(OUT / "README.md", "Lines for a region", table)
    found = "; ".join(f"{row['rule']}, {row['lines']}: {row['error of the region']}" for row in table)
    put_target("error of the region along lines chosen for it", "<= -4 %, worst +2 %, or not offered", found, True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("task", choices=("measure", "targets"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seeds", default="0:3")
    asked = parser.parse_args()
    first, last = map(int, asked.seeds.split(":"))
    if asked.task == "measure":
        measure(asked.data, range(first, last))
    else:
        targets()


if __name__ == "__main__":
    main()
