"""Lines of a slice, at random and designed, the image of all of them, and images with a phase of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from skimage.transform import resize
from study.scans import Scan

from mri_design.design.fixed import VariableDensity
from mri_design.experiment.design import run_design
from mri_design.experiment.extent import DesignPlan
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.scan.scenes import rough_phase

LOCAL = load_recipe("local")


def complete_image(scan: Scan) -> Array:
    """The posterior mean of everything measured, without non-local blocks."""
    one = scan.prepared.slice_model(0, **LOCAL.slice_settings)
    lines = np.flatnonzero(one.measured).tolist()
    return LOCAL.inference.engine().infer(one.model(lines), np.random.default_rng(3)).mean


def contrast_at_3t(data: Path, subject: str, contrast: str) -> Array:
    """A magnitude slice, padded to a square and resized to 128 x 128; its 99.5th percentile is 1."""
    with np.load(data / f"mag3T_{subject}_{contrast}.npz", allow_pickle=False) as archive:
        image = archive["image"][1 if subject == "6B" else 2].astype(float)
    longer = max(image.shape)
    before = [(longer - n + 1) // 2 for n in image.shape]
    square = np.pad(image, [(b, longer - n - b) for b, n in zip(before, image.shape, strict=True)])
    small = resize(square, (128, 128), order=1, anti_aliasing=True)
    return np.asarray(small / np.percentile(small, 99.5))


def with_phase(image: Array, seed: Sequence[int]) -> Array:
    """A magnitude with a rough phase of its own."""
    phase = rough_phase(image.shape, np.random.default_rng(list(seed)))
    return np.asarray(image * np.exp(1j * phase), dtype=np.complex64)


def random_lines(one: SliceModel, count: int, seed: int) -> list[int]:
    """Lines by a polynomial variable density."""
    strategy = VariableDensity(family="polynomial", power=4.0)
    start = DesignPlan.of(strategy, LOCAL, one.candidates).start_lines(one.measured, count)
    return sorted(run_design([one], strategy, count, LOCAL, seed=seed, start=start).trace.lines)


def designed_lines(one: SliceModel, counts: Sequence[int], seed: int) -> dict[int, list[int]]:
    """The first lines of a design by the strategy calibrated."""
    strategy = make_strategy("calibrated")
    start = DesignPlan.of(strategy, LOCAL, one.candidates).start_lines(one.measured, min(counts))
    order = list(run_design([one], strategy, max(counts), LOCAL, seed=seed, start=start).trace.lines)
    return {count: sorted(order[:count]) for count in counts}
