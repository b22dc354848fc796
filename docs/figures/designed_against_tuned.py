"""Draw the figure of the README: 32 designed lines of a head against 32 of a density that was tuned on another head.

    OMP_NUM_THREADS=1 python docs/figures/designed_against_tuned.py

It is ``mri-design compare phantom:t2w --train phantom:t1w --lines 32`` at 128 x 128 under the default recipe: the scan
is simulated from an embedded head, so that the truth is known; the density's power is the one with the least mean error
on the other head; of five random masks the one with the median error is shown. Every mask gets the same reconstruction.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

import mri_design as md
from mri_design.experiment.inputs import scan_sources
from mri_design.runs.compare import ComparisonRequest, ShownMask, compare_strategies
from mri_design.runs.work import Keep, Work

LINES, DRAWS = 32, 5
DESIGNED, TUNED = "calibrated", "vd-polynomial@tuned"
INK, GREY = "#1f2328", "#57606a"


def main() -> None:
    """Compare and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrix", type=int, default=128, help="lines and readout samples")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("designed-against-tuned.png"))
    wanted = parser.parse_args()
    request = ComparisonRequest(
        sources=scan_sources(["phantom:t2w"], "middle"),
        recipe=md.load_recipe(None).replacing("input", matrix=wanted.matrix),
        strategies=(DESIGNED, "vd-polynomial"),
        lines=(LINES,),
        train=scan_sources(["phantom:t1w"], "middle"),
        seeds=DRAWS,
    )
    result = compare_strategies(request, Work(jobs=2), Keep())
    errors = {name: runs[:, 0] for name, runs in result.errors.runs.items()}
    for name in (DESIGNED, TUNED):
        print(name, " ".join(f"{error:.3f}" for error in sorted(errors[name])))
    print("power", *result.study.pieces.tuned.values())
    shown = {mask.label: mask for mask in result.shown}
    figure = drawn([shown[DESIGNED], shown[TUNED]], errors[TUNED], result.study.tests[0].shown)
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=110)
    few_colours = Image.open(drawing).convert("RGB").quantize(128)  # a third of the bytes, and no difference to the eye
    few_colours.save(wanted.out, optimize=True)


def drawn(masks: Sequence[ShownMask], draws: NDArray[np.float64], truth: NDArray[np.complexfloating]) -> Figure:
    """The true image, and a row for each mask: its lines, the image, and the error that was made."""
    matplotlib.rcParams.update({"font.size": 8.5, "text.color": INK, "axes.labelcolor": GREY})
    figure = Figure(figsize=(8, 4.3), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 4)
    designed, tuned = masks
    wrong = [abs(abs(mask.reconstruction.image) - abs(truth)) for mask in masks]
    bright, worst = np.percentile(abs(truth), 99.8), max(np.percentile(error, 99.5) for error in wrong)
    titles = (
        f"designed from the scan's own data\nrelative error {100 * designed.errors.relative_l2:.1f} %",
        f"density tuned on another head\nrelative error {100 * tuned.errors.relative_l2:.1f} %",
    )
    for across, mask, error, title in zip(panels, masks, wrong, titles, strict=True):
        lines = np.broadcast_to(mask.mask[:, None], truth.shape)
        shown(across[1], lines, 1, "gray")
        shown(across[2], abs(mask.reconstruction.image), bright, "gray")
        shown(across[3], error, worst, "magma")
        across[2].set_xlabel(title, color=INK)
    shown(panels[0, 0], abs(truth), bright, "gray")
    for panel, title in zip(panels[0], ("true image", "lines measured", "image", "error, one scale"), strict=True):
        panel.set_title(title, fontsize=10)
    panels[1, 0].set_axis_off()
    about = (
        f"{masks[0].mask.sum()} of {masks[0].mask.size} lines each,\nthe same reconstruction.\n\n"
        f"Of {len(draws)} draws of the density\n(errors {100 * draws.min():.1f} to {100 * draws.max():.1f} %)\n"
        "the median one is shown."
    )
    panels[1, 0].text(0, 1, about, va="top", transform=panels[1, 0].transAxes)
    return figure


def shown(panel: Axes, pixels: NDArray[np.generic], top: float, colours: str) -> None:
    """Pixels from 0 to ``top``, without ticks."""
    panel.imshow(pixels, cmap=colours, vmin=0, vmax=top, interpolation="nearest")
    panel.set(xticks=[], yticks=[])


if __name__ == "__main__":
    main()
