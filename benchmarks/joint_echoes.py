"""Echoes that share the sites of their prior, against each echo by itself and with its neighbours as companions.

    OMP_NUM_THREADS=1 python benchmarks/joint_echoes.py measure DATA [--series rats,heart]
    python benchmarks/joint_echoes.py targets

DATA is the folder of raw scans and images. ``measure`` reconstructs series from a half and a third of the lines, in
four ways, and keeps a row of joint-echoes.csv for each. What is there already is kept. ``targets`` writes the table of
joint-echoes.md and a row of targets.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from echoes import BRIGHT, ECHOES, NOISE, OUT, PARTS, SEEDS, lines
from numpy.typing import NDArray
from parts.exams import contrast_at_3t, with_phase
from parts.pages import Kept, put_conditions, put_table
from regions import put_target

from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import Image, image_rng, reconstruct_prepared
from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion, ImageFacts, SharedFrame, SparsityBlock
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.scan.calibration import estimate_noise_variance
from mri_design.scan.data import KSpaceData
from mri_design.signals.fit import fit_signals
from mri_design.signals.models import signal_model

RECIPE = load_recipe("default")
NAMES = ("7A", "7B", "rats", "heart", "phantom")
HEART_NOISE, PULL = 0.01, 0.4
KEY = ("series", "part", "seed", "way")
WAYS = ("alone", "frames", "gradients", "joint")


@dataclass(frozen=True)
class Series:
    """Echoes (echo, ky, kx) in k-space, their images, noise, and times for a fit of T2."""

    kspace: Array
    truth: Array
    noise: float
    times: NDArray[np.float64] | None = None
    raw: bool = False

    @classmethod
    def simulated(cls, truth: Array, noise: float, seed: Sequence[int], times: Array | None = None) -> Series:
        rng, exact = np.random.default_rng(seed), CentredFFT(truth.shape[1:])(truth.astype(np.complex128))
        added = noise * (rng.normal(size=exact.shape) + 1j * rng.normal(size=exact.shape))
        return cls((exact + added).astype(np.complex64), truth, noise, times)

    @classmethod
    def measured(cls, kspace: Array, times: Array | None = None) -> Series:
        """Held against the images of all lines, whose noise is the median of what the echoes show."""
        every = np.ones(kspace.shape[1], dtype=bool)
        noise = [estimate_noise_variance(KSpaceData(one[None, None], every)) for one in kspace]
        truth = CentredFFT(kspace.shape[1:]).adjoint(kspace)
        return cls(np.ascontiguousarray(kspace), truth, float(np.sqrt(np.median(noise))), times, raw=True)

    @classmethod
    def named(cls, data: Path, name: str, seed: int) -> Series:
        """Eight echoes of the rats, four of the heart and of heads, three of a phantom."""
        if name == "rats":
            kspace = np.roll(np.load(data / "echoes_rat_kidney.npy")[:8, 0], 1, axis=-1).swapaxes(1, 2)
            return cls.measured(kspace, np.arange(1.0, 9))
        if name == "phantom":
            return cls.measured(np.load(data / "ph_gre_3echo.npy")[:, 0, 0].swapaxes(1, 2))
        if name == "heart":  # of 192 columns 150 were measured
            with np.load(data / "img_heart_complex.npz", allow_pickle=False) as archive:
                parts = archive["image"].astype(np.float32).swapaxes(1, 2)
            whole = CentredFFT(parts.shape[1:3])((parts[..., 0] + 1j * parts[..., 1]).astype(np.complex64))[:, 21:171]
            truth = CentredFFT(whole.shape[1:]).adjoint(whole)
            return cls.simulated(truth / np.percentile(np.abs(truth), 99.5), HEART_NOISE, [seed, 7])
        weighted, times, key = contrast_at_3t(data, name, "T2w"), ECHOES[1::2], (seed, *map(ord, name))
        t2 = 40 + 140 * np.clip(weighted, 0, 1.3)
        decay = np.exp((80 - times[:, None, None]) / t2)
        return cls.simulated(with_phase(weighted, key) * decay, NOISE, key, times)


def near(at: int, images: Sequence[Image]) -> tuple[Companion, ...]:
    """The echoes before and after one, as `recon --with frames` offers them."""
    others = [n for n in (at - 1, at + 1) if 0 <= n < len(images)]
    return tuple(Companion(f"echo {n}", np.abs(images[n].image), in_place=True) for n in others)


class Own(SparsityBlock):
    """A block whose sites are not shared."""

    def _shared(self, block: SiteBlock, image: ImageFacts) -> SiteBlock:
        return block

    @classmethod
    def of(cls, block: SparsityBlock | SiteBlock) -> SparsityBlock:
        """The block; differences go on sharing theirs."""
        assert isinstance(block, SparsityBlock)
        parts = {one.name: getattr(block, one.name) for one in fields(block)}
        return block if block.kind == "differences" else cls(**parts)


def reconstructed(slices: Sequence[SliceModel], masks: Array, seed: int) -> dict[str, list[Image]]:
    """The images of all echoes in every way."""

    def images(models: Sequence[SliceModel]) -> list[Image]:
        pairs = zip(models, (np.flatnonzero(one).tolist() for one in masks), strict=True)
        return [reconstruct_prepared(one, some, "mean", RECIPE, image_rng(seed)) for one, some in pairs]

    found, frames = {"alone": images(slices)}, list[SharedFrame]()
    for one, mask, made in zip(slices, masks, found["alone"], strict=True):
        assert made.sampler is not None
        posterior, sd = made.sampler.posterior, np.sqrt(one.noise_variance)
        drawn = posterior.own_deviations(image_rng(seed), RECIPE.inference.samples) * sd
        phase = None if made.phase_choice is None else made.phase_choice.phase
        frames.append(SharedFrame(posterior.mean, drawn, one.level(np.flatnonzero(mask)), float(sd), phase))
    found["frames"] = images([replace(one, companions=near(n, found["alone"])) for n, one in enumerate(slices)])
    joint = [replace(one, frames=(*frames[:n], *frames[n + 1 :])) for n, one in enumerate(slices)]
    found["gradients"] = images([replace(one, prior=tuple(map(Own.of, one.prior))) for one in joint])
    return found | {"joint": images(joint)}


def judged(series: Series, made: Sequence[Image], masks: Array, pull: float) -> Row:
    """Errors of the images beyond the noise of the reference, their error bars, and the error of T2."""
    images, true = np.stack([one.image for one in made]), series.truth
    std = np.stack([one.std for one in made if one.std is not None])
    left = 2 * series.noise**2 * (~masks).sum(axis=1) * true.shape[2] * series.raw
    total, said, size = ((np.abs(part) ** 2).sum(axis=(1, 2)) for part in (images - true, std, true))
    bars = np.log((said + left) / total) / 2
    row: Row = {
        "error": float(np.sqrt((total - left).sum() / size.sum())),
        "with noise": float(np.mean(np.sqrt(total / size))),
        "bars": float(np.exp(bars.mean())),
        "bars off": float(np.exp(np.abs(bars).mean()) - 1),
    }
    if series.times is None:
        return row
    bright = np.abs(true[0]) > BRIGHT * np.percentile(np.abs(true[0]), 99.5)
    both = (np.abs(images) + pull * series.noise, np.abs(true))
    model, sd = signal_model("T2"), np.array([series.noise])
    own, wanted = (fit_signals(model, series.times, one[:, bright].T, sd) for one in both)
    off = (own.quantity / wanted.quantity - 1)[own.found & wanted.found]
    return row | {"T2": float(np.median(np.abs(off))), "T2 bias": float(np.median(off))}


def measure(data: Path, names: Sequence[str]) -> None:
    """Add what is not there yet."""
    kept = Kept.at(OUT / "joint-echoes.csv", *KEY)
    for seed, name, part in product(SEEDS, names, PARTS):
        at = {"series": name, "part": part, "seed": seed}
        if kept.named({**at, "way": WAYS[-1]}) in kept.rows:
            continue
        series, rng = Series.named(data, name, seed), np.random.default_rng([seed, part])
        masks = np.repeat(lines(series.kspace.shape[1], part, rng)[None], len(series.kspace), axis=0)
        slices = []
        for kspace, mask in zip(series.kspace, masks, strict=True):
            some = np.where(mask[:, None], kspace, 0).astype(np.complex64)[None, None]
            scan = KSpaceData(some, mask, noise_variance=series.noise**2)
            slices.append(scan.slice_model(0, **RECIPE.slice_settings))
        made = reconstructed(slices, masks, seed)
        for way, images in made.items():
            kept.put({**at, "way": way, **judged(series, images, masks, 0.0 if way == "joint" else PULL)})


def targets() -> None:
    """Write the table of the page and the row of targets.csv."""
    rows = Kept.at(OUT / "joint-echoes.csv", *KEY).rows.values()
    table, judged_by = list[Row](), dict[str, list[tuple[float, float]]]()
    for name, part in product(NAMES, PARTS):
        own = [row for row in rows if (row["series"], str(row["part"])) == (name, str(part))]
        if not own:
            continue
        found = {
            (way, what): np.array([float(str(row[what] or "nan")) for row in own if row["way"] == way])
            for way, what in product(WAYS, ("error", "bars", "T2"))
        }
        change = {way: 100 * (found[way, "error"] / found["alone", "error"] - 1) for way in WAYS[1:]}
        told = {way: f"{one.mean():+.1f} ({one.min():+.1f} to {one.max():+.1f})" for way, one in change.items()}
        at: Row = {"series": name, "lines": f"1/{part}", "runs": len(found["joint", "error"])}
        at |= {"error alone": f"{found['alone', 'error'].mean():.3f}", **told}
        at["bars: alone, joint"] = ", ".join(f"{found[way, 'bars'].mean():.2f}" for way in ("alone", "joint"))
        t2 = {way: found[way, "T2"].mean() for way in WAYS}
        others = [f"{100 * (t2[way] / t2['alone'] - 1):+.0f}" for way in ("frames", "joint")]
        at["T2: alone; frames, joint"] = "" if np.isnan(t2["alone"]) else f"{t2['alone']:.1%}; {', '.join(others)}"
        table.append(at)
        over = (change["joint"], 100 * (found["joint", "error"] / found["frames", "error"] - 1))
        judged_by.setdefault(name, []).append((float(over[0].mean()), float(over[1].mean())))
    put_table(OUT / "joint-echoes.md", "Series by series", table)
    put_conditions(OUT / "joint-echoes.md", "numpy", "scipy")
    means = {name: np.mean(found, axis=0) for name, found in judged_by.items()}
    what = "error of echoes that share sites, over each alone and over --with frames"
    said = "; ".join(f"{name} {one[0]:+.1f}, {one[1]:+.1f} %" for name, one in means.items())
    put_target(
        what,
        "<= -3 % of both on two kinds of data, or not offered",
        said,
        sum(max(m) <= -3 for m in means.values()) >= 2,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("measure", "targets"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--series", default=",".join(NAMES))
    asked = parser.parse_args()
    measure(asked.data, asked.series.split(",")) if asked.verb == "measure" else targets()
