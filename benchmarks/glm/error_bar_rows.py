"""Error bars of the variational Gaussian and of the double loop on an MR image whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np

import mri_design as md
from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import centre_lines
from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.design.strategy import DesignView
from mri_design.evaluation.tables import Row
from mri_design.inference.base import InferenceMethod

HEADS = "img_3T_complex.npz"
LEVELS = (0.5, 0.9, 0.95, 0.99)
ENGINES: dict[str, InferenceMethod] = {
    "variational Gaussian": md.VariationalGaussian(md.ExactByColumns(), tolerance=1e-3, iterations=40),
    "double loop": md.DoubleLoop(md.ExactByColumns(), outer_iterations=40, tolerance=1e-3),
}


def lines_of(grid: int, share: int, seed: int) -> tuple[int, ...]:
    """Lines of variable density: one in ``share``."""
    rule, measurable = VariableDensity(family="polynomial", power=4.0), np.ones(grid, dtype=bool)
    candidates = LineCandidates(measurable, centre_lines(measurable, rule.centre), grid // share)
    while len(candidates.acquired) < candidates.target:
        rng = np.random.default_rng([seed, len(candidates.acquired)])
        candidates = candidates.after(rule.choose(DesignView(candidates), rng).line)
    return candidates.acquired


def error_bar_rows(grid: int, shares: Sequence[int], seeds: Sequence[int], data: Path | None) -> list[Row]:
    """One row per engine, undersampling and seed (of noise and mask), over the pixels of the head and over all.

    The default recipe's sites and rates for both; z is |E u - truth| over the predicted standard deviation of the
    complex pixel, and z^2 of a circular Gaussian is exponential with mean one.
    """
    file = None if data is None else data.parent / "mri" / HEADS
    source = str(file) if file is not None and file.exists() else "phantom:t2w"
    recipe = md.load_recipe(None).replacing("simulation", matrix=grid)
    rows: list[Row] = []
    for seed in seeds:
        prepared = md.prepare(md.load_input(source, recipe, seed).select_slice(0), recipe)
        scan, truth = prepared.slice_model(0, recipe), prepared.reference(0)
        assert truth is not None
        head = np.abs(truth) > 0.1 * np.percentile(np.abs(truth), 99.5)
        for share in shares:
            model = scan.model(lines_of(grid, share, seed))
            for name, engine in ENGINES.items():
                began = process_time()
                posterior = engine.infer(model, np.random.default_rng(seed))
                seconds = process_time() - began
                square = np.abs(posterior.mean - truth) ** 2
                z2 = square / posterior.image_variances
                row: Row = {
                    "image": "head 0" if source != "phantom:t2w" else "phantom t2w",
                    "grid": grid,
                    "lines": f"1 in {share}",
                    "seed": seed,
                    "engine": name,
                    "log bound": md.evidence_bound(model, posterior.criterion[-1]),
                    "relative error": float(np.sqrt(square.sum() / np.sum(np.abs(truth) ** 2))),
                }
                for where, pixels in (("head", head), ("all", np.ones_like(head))):
                    row[f"predicted / found, {where}"] = float(
                        np.sqrt(posterior.image_variances[pixels].mean() / square[pixels].mean())
                    )
                    row[f"mean z^2, {where}"] = float(z2[pixels].mean())
                    for level in LEVELS:
                        inside = z2[pixels] <= -np.log(1 - level)
                        row[f"{level:.0%} covers, {where}"] = float(inside.mean())
                rows.append(row | {"updates": posterior.convergence.iterations, "CPU s": seconds})
                rows[-1]["converged"] = posterior.convergence.converged
    return rows


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds."""
    found: list[Row] = []
    keys = ("image", "grid", "lines", "engine")
    for key in dict.fromkeys(tuple(row[k] for k in keys) for row in rows):
        some = [row for row in rows if tuple(row[k] for k in keys) == key]
        mean = {
            name: float(np.mean([float(str(row[name])) for row in some]))
            for name in some[0]
            if name not in (*keys, "seed", "converged")
        }
        found.append(dict(zip(keys, key, strict=True)) | mean)
    return found
