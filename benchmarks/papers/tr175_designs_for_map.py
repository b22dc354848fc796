"""Designs made with the posterior, and what MAP and least squares make of them.

Lines of heads with one coil: chosen by the posterior (information gain, and `calibrated`, which corrects what the
posterior expects), drawn from a variable density that was tuned on heads of another subject, or taken without a look
at any scan. Each set is reconstructed by the posterior mean and the mode (MAP) of the recipe `local`, by the MAP of
total variation and wavelets (`tv-wavelet`), and by least squares of minimum norm (zero filling). Errors are relative
errors of the magnitude; those of random sets are means of draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mri_design.design.training import ReferenceSlice
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import load_recipe

from .runner import Claim, Outcome
from .scans import HEADS, NO_DENSITY, OUTPERFORM, image_error, lines_of, mean_error, slices, tuned_density, verdict

PLACE = "sections 1, 6 and 7"
NEEDS = (HEADS,)
SIZES = {
    "tiny": {"numbers": (7,), "training": (0,), "side": 32, "counts": (12,), "draws": 1},
    "small": {"numbers": (7, 13), "training": (0,), "side": 64, "counts": (16,), "draws": 1},
    "full": {
        "numbers": (7, 10, 13, 16, 19, 22),
        "training": (0, 2, 4),
        "side": 128,
        "counts": (24, 32, 48),
        "draws": 3,
    },
}
TV = load_recipe("tv-wavelet")
GOOD, POOR = ("calibrated", "information-gain", "tuned density"), ("uniform random", "regular", "low-pass")
Image = Callable[[ReferenceSlice, Sequence[int]], float]
Errors = dict[tuple[str, str], NDArray[np.float64]]
"""By design and image: (head, number of lines)."""


def run(
    data: Path | None, numbers: Sequence[int], training: Sequence[int], side: int, counts: Sequence[int], draws: int
) -> Outcome:
    """Measure every design by every image."""
    heads, real = slices(data, numbers, side)
    under_tv = dict(zip((head.name for head in heads), slices(data, numbers, side, recipe=TV)[0], strict=True))
    images: dict[str, Image] = {
        "mean": mean_error,
        "MAP": lambda head, lines: image_error(head, lines, "map"),
        "TV MAP": lambda head, lines: image_error(under_tv[head.name], lines, "map", TV),
        "least squares": lambda head, lines: image_error(head, lines, "zero-filled"),
    }
    learnt = slices(data, training, side)[0]
    found: dict[tuple[str, str], list[float]] = {}
    for count in counts:
        rules = {rule: rule for rule in ("calibrated", "information-gain", "regular", "low-pass")}
        rules |= {"tuned density": tuned_density(learnt, count), "uniform random": "random"}
        for head in heads:
            for name, rule in rules.items():
                times = 1 if rule == "low-pass" else draws
                sets = [lines_of(head.slice_model, rule, count, seed) for seed in range(times)]
                for image, error in images.items():
                    found.setdefault((name, image), []).append(float(np.mean([error(head, lines) for lines in sets])))
    errors = {key: np.array(each).reshape(len(counts), len(heads)).T for key, each in found.items()}
    rows = [
        {"design": name} | {image: float(errors[name, image].mean()) for image in images} for name in (*GOOD, *POOR)
    ]
    changes = [
        change_row(errors, name, image) for image in images for name in (*GOOD, *POOR) if name != "tuned density"
    ]
    tables = {f"Errors, mean of {len(heads)} heads and {list(counts)} of {side} lines": rows}
    tables["Change of the error against the tuned density, %"] = changes
    tables["Error of least squares against MAP from the same lines"] = [
        {"design": name, "change": told(percent(errors, (name, "least squares"), (name, "MAP")))} for name in GOOD
    ]
    return Outcome(tables, claims_of(errors, list(images), real), drawing(rows, list(images)))


def change_row(errors: Errors, name: str, image: str) -> Row:
    """A design against the tuned density, under one image: mean over heads, each the mean over numbers of lines."""
    change = 100 * (errors[name, image] / errors["tuned density", image] - 1).mean(axis=1)
    row: Row = {"image": image, "design": name, "mean": float(change.mean()), "worst head": float(change.max())}
    return row | {"heads better": f"{np.sum(change < 0)} of {len(change)}"}


def percent(errors: Errors, one: tuple[str, str], other: tuple[str, str]) -> NDArray[np.float64]:
    """Change of the error in percent, head by head."""
    return np.asarray(100 * (errors[one] / errors[other] - 1).mean(axis=1))


def told(change: NDArray[np.float64]) -> str:
    """A change in words."""
    return f"{change.mean():+.1f} % ({change.min():+.1f} to {change.max():+.1f} %)"


def claims_of(errors: Errors, images: Sequence[str], real: bool) -> list[Claim]:
    """What the report says of designs and estimates."""
    claims = []

    def claim(place: str, words: str, theirs: str, ours: str, holds: bool | None, because: str) -> None:
        claims.append(Claim(place, words, theirs, ours, *verdict(real, holds, because)))

    change, beside = (percent(errors, (name, "MAP"), (name, "mean")) for name in ("information-gain", "calibrated"))
    claim(
        "section 1",
        "with designed lines MAP is as good as the posterior mean, or better",
        "as well or better",
        f"MAP {told(change)} against the mean; lines of `calibrated` {told(beside)}",
        change.mean() <= 0,
        "The mean is the better estimate of these heads.",
    )
    for image in images:
        for place, rival, theirs in (
            ("section 7", "uniform random", "uniform random sampling is not enough"),
            ("section 1", "tuned density", OUTPERFORM),
        ):
            change, beside = (
                percent(errors, (name, image), (rival, image)) for name in ("information-gain", "calibrated")
            )
            claim(
                place,
                f"lines of the information gain give a better {image} image than {rival} lines",
                theirs,
                f"{told(change)}; lines of `calibrated` {told(beside)}",
                None if rival == "tuned density" else change.mean() < 0 and np.mean(change < 0) > 0.5,
                NO_DENSITY if rival == "tuned density" else f"Lines of the {rival} are as good or better.",
            )
    design = percent(errors, ("information-gain", "MAP"), ("uniform random", "MAP"))
    estimate = percent(errors, ("uniform random", "MAP"), ("uniform random", "least squares"))
    claim(
        "section 6",
        "a design in place of random lines gains more than sparse MAP in place of least squares",
        "much larger gains",
        f"design {told(design)}, estimate {told(estimate)}",
        design.mean() < estimate.mean(),
        "Sparse MAP gains more than the design.",
    )
    claim(
        "section 6",
        "sparse MAP in place of least squares makes errors of random lines significantly smaller",
        "significant reductions",
        told(estimate),
        estimate.max() < 0,
        "On a head it does not.",
    )
    for name in GOOD[1:]:
        change = percent(errors, (name, "least squares"), (name, "MAP"))
        claim(
            "section 6",
            f"with lines of {name} least squares are nearly as good as MAP (within 10 %)",
            "differences can be minor",
            f"least squares {told(change)}",
            None if name == "tuned density" else change.mean() < 10,
            NO_DENSITY
            if name == "tuned density"
            else "Least squares leave what was not measured at zero, which here is much.",
        )
    for image in images[1:]:
        ranks = spearmanr(*(np.concatenate([errors[n, i].ravel() for n in (*GOOD, *POOR)]) for i in ("mean", image)))[0]
        order = [sorted((*GOOD, *POOR), key=lambda n: float(errors[n, i].mean())) for i in ("mean", image)]
        claim(
            "section 1",
            f"{image} and the mean put designs in the same order",
            "good designs serve all estimates",
            f"best to worst by the mean: {', '.join(order[0])}; by {image}: {', '.join(order[1])}; "
            f"rank correlation of all errors {ranks:.2f}",
            order[0] == order[1],
            "Some change places.",
        )
    return claims


def drawing(rows: Sequence[Row], images: Sequence[str]) -> Callable[[Figure], None]:
    """Errors of designs, side by side under each image."""

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        for number, row in enumerate(rows):
            at = np.arange(len(images)) + 0.13 * (number - 2.5)
            panel.bar(at, [float(str(row[image])) for image in images], 0.12, label=str(row["design"]))
        panel.set_xticks(range(len(images)), images)
        panel.set(ylabel="relative error")
        panel.legend(fontsize=7)

    return draw
