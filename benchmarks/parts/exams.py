"""Scans of one object in several contrasts, echoes or slices, and other images of it, for benchmarks of companions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skimage.transform import resize
from study.scans import NOISE, Scan, anew, denoised, echo

from mri_design.design.fixed import VariableDensity
from mri_design.evidence.companions import RigidMotion
from mri_design.experiment.design import run_design
from mri_design.experiment.extent import DesignPlan
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.scan.scenes import rough_phase

SIDE = 128
SUBJECTS = {"6A": 2, "6B": 1, "7A": 2, "7B": 2}
"""Heads of which there are several contrasts, and the slice that is taken."""
LOCAL = load_recipe("local")


@dataclass(frozen=True)
class Pair:
    """A scan, and another image of what it shows.

    Parameters
    ----------
    kind, name : str
        For tables.
    scan : Scan
        Simulated, with its truth.
    companion : array, shape (ky, kx)
        The posterior mean of a fully sampled scan, of another noise; not registered.
    """

    kind: str
    name: str
    scan: Scan
    companion: Array


def complete_image(scan: Scan) -> Array:
    """The posterior mean of everything measured, without non-local blocks."""
    one = scan.prepared.slice_model(0, **LOCAL.slice_settings)
    lines = np.flatnonzero(one.measured).tolist()
    return LOCAL.inference.engine().infer(one.model(lines), np.random.default_rng(3)).mean


def contrast_at_3t(data: Path, subject: str, contrast: str, index: int | None = None) -> Array:
    """A magnitude slice, padded to a square and resized; its 99.5th percentile is 1."""
    with np.load(data / f"mag3T_{subject}_{contrast}.npz", allow_pickle=False) as archive:
        image = archive["image"][SUBJECTS[subject] if index is None else index].astype(float)
    longer = max(image.shape)
    before = [(longer - n + 1) // 2 for n in image.shape]
    square = np.pad(image, [(b, longer - n - b) for b, n in zip(before, image.shape, strict=True)])
    small = resize(square, (SIDE, SIDE), order=1, anti_aliasing=True)
    return np.asarray(small / np.percentile(small, 99.5))


def with_phase(image: Array, seed: Sequence[int]) -> Array:
    """A magnitude with a rough phase of its own."""
    phase = rough_phase(image.shape, np.random.default_rng(list(seed)))
    return np.asarray(image * np.exp(1j * phase), dtype=np.complex64)


def contrasts(data: Path, seed: int, coils: int = 1) -> list[Pair]:
    """T2w from T1w at 3 T, four heads; the maps of several coils are known."""
    found = []
    for place, subject in enumerate(SUBJECTS):
        t2, t1 = (contrast_at_3t(data, subject, name) for name in ("T2w", "T1w"))
        scan = anew(f"T2w {subject}", with_phase(t2, (place, 2))[None], None, NOISE, seed, coils)
        other = anew(f"T1w {subject}", with_phase(t1, (place, 5))[None], None, NOISE, seed + 7)
        found.append(Pair("contrast 3 T", f"{subject} T2w < T1w", scan, complete_image(other)))
    return found


def low_field(data: Path, seed: int) -> list[Pair]:
    """FSE from FLAIR and FLAIR from FSE at low field, four heads; truths are denoised, which flatters graphs."""
    found = []
    for subject in SUBJECTS:
        scans = {name: denoised(data / f"lf_{subject}_{name}.npy", 2, SIDE, seed) for name in ("fse", "flair")}
        for one, other in (("fse", "flair"), ("flair", "fse")):
            beside = denoised(data / f"lf_{subject}_{other}.npy", 2, SIDE, seed + 7)
            found.append(Pair("contrast low field", f"{subject} {one} < {other}", scans[one], complete_image(beside)))
    return found


def echoes(data: Path, seed: int) -> list[Pair]:
    """Echoes of a heart with their real phase."""
    path = data / "img_heart_complex.npz"
    return [
        Pair(
            "echo",
            f"heart {one} < {other}",
            echo(path, one, SIDE, seed),
            complete_image(echo(path, other, SIDE, seed + 7)),
        )
        for one, other in ((1, 0), (2, 1), (3, 0))
    ]


def repeats(data: Path, seed: int) -> list[Pair]:
    """The same head again, moved by up to 4 pixels and 5 degrees."""
    rng, found = np.random.default_rng([seed, 11]), []
    for place, subject in enumerate(SUBJECTS):
        truth = with_phase(contrast_at_3t(data, subject, "T2w"), (place, 2))
        motion = RigidMotion((float(rng.uniform(-4, 4)), float(rng.uniform(-4, 4))), float(rng.uniform(-5, 5)))
        moved = anew("moved", motion.applied(truth)[None], None, NOISE, seed + 7)
        scan = anew(f"T2w {subject}", truth[None], None, NOISE, seed)
        found.append(Pair("repeat, moved", subject, scan, complete_image(moved)))
    return found


GROUPS = {
    "contrast": contrasts,
    "low-field": low_field,
    "echo": echoes,
    "repeat": repeats,
}


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
