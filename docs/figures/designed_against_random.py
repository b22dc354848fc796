"""Draw the figure of the README: 32 designed lines of a head against 32 random ones, with the same reconstruction.

    OMP_NUM_THREADS=1 python docs/figures/designed_against_random.py

The scan is simulated from the embedded head ``phantom:t2w`` at 128 x 128, so that the truth is known; both masks begin
with the same number of centre lines. Of five random masks the one with the median error is shown.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

import mri_design as md

LINES, START, DRAWS = 32, 8, 5
INK, GREY = "#1f2328", "#57606a"


def main() -> None:
    """Design, reconstruct and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrix", type=int, default=128, help="lines and readout samples")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("designed-against-random.png"))
    wanted = parser.parse_args()
    recipe = md.load_recipe(None).replacing("simulation", matrix=wanted.matrix)
    scan = md.prepare(md.load_input("phantom:t2w", recipe), recipe)
    head, truth = scan.slice_model(0, recipe), scan.reference(0)
    rows = []
    for title, name, draws in (("designed", "calibrated", 1), ("random", "random", DRAWS)):
        shown = []
        for seed in range(draws):
            state = md.run_design([head], md.make_strategy(name), LINES, recipe, seed=seed, start=START)
            lines = state.trace.lines
            result = md.reconstruct(head, lines, "mean", recipe, np.random.default_rng(0))
            shown.append((md.measure(result.image, truth).relative_l2, title, lines, result))
        rows.append(sorted(shown, key=lambda row: row[0])[len(shown) // 2])
        print(title, " ".join(f"{row[0]:.3f}" for row in shown))
    figure = drawn(rows, truth)
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=110)
    few_colours = Image.open(drawing).convert("RGB").quantize(128)  # a third of the bytes, and no difference to the eye
    few_colours.save(wanted.out, optimize=True)


def drawn(rows: list[tuple[float, str, tuple[int, ...], md.Reconstruction]], truth: NDArray[np.complex128]) -> Figure:
    """One row per mask: its lines, the image, its error bars, and the error that was made."""
    matplotlib.rcParams.update({"font.size": 8.5, "text.color": INK, "axes.labelcolor": GREY})
    figure = Figure(figsize=(8, 4.3), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 4)
    bright, doubt = np.percentile(abs(truth), 99.8), max(np.percentile(row[3].std, 99) for row in rows)
    for across, (error, title, lines, result) in zip(panels, rows, strict=True):
        mask = np.zeros(truth.shape)
        mask[list(lines)] = 1
        wrong = abs(result.image - truth)
        shown = ((mask, 1, "gray"), (abs(result.image), bright, "gray"), (result.std, doubt, "magma"))
        for panel, (pixels, top, colours) in zip(across, (*shown, (wrong, doubt, "magma")), strict=True):
            panel.imshow(pixels, cmap=colours, vmin=0, vmax=top, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
        across[0].set_ylabel(f"{title}\n{len(lines)} of {len(mask)} lines", color=INK, fontsize=10)
        across[1].set_xlabel(f"relative error {100 * error:.1f} %", color=INK)
        across[3].set_xlabel("on the scale of the error bars")
    for panel, title in zip(panels[0], ("lines measured", "image", "error bars (1 sd)", "actual error"), strict=True):
        panel.set_title(title, fontsize=10)
    return figure


if __name__ == "__main__":
    main()
