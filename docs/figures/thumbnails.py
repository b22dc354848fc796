"""Draw the thumbnails of the README from the folders that its three commands leave.

    mri-design design phantom:t2w --lines 64 --out run
    mri-design recon phantom:t2w --mask run/mask.npy --out image
    mri-design compare phantom:t2w --train phantom:t1w --lines 64 --recipe local --seeds 3 --out study
    python docs/figures/thumbnails.py run image study

``thumb-design.png`` has the lines and the image from them, ``thumb-recon.png`` the image and its error bars, and
``thumb-compare.png`` the error of every strategy.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from mri_design.evaluation.plots.pictures import object_top, scale_top
from mri_design.evaluation.tables import read_csv

WIDTH, DPI = 2.4, 100  # inches; 240 pixels
INK, BAR = "#1f2328", "#0072B2"


def main() -> None:
    """Read the folders and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("design", "recon", "compare"):
        parser.add_argument(name, type=Path, help=f"folder of {name}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the thumbnails")
    wanted = parser.parse_args()
    save(designed(wanted.design), wanted.out / "thumb-design.png")
    save(reconstructed(wanted.recon), wanted.out / "thumb-recon.png")
    save(compared(wanted.compare), wanted.out / "thumb-compare.png")


def designed(folder: Path) -> Figure:
    """The lines measured, and the image."""
    image, mask = magnitude(folder), np.load(folder / "mask.npy")
    figure, (left, right) = pair()
    shown(left, np.broadcast_to(mask[:, np.newaxis], image.shape), 1, "gray")
    shown(right, image, object_top([image]), "gray")
    return figure


def reconstructed(folder: Path) -> Figure:
    """The image, and its error bars."""
    image, std = magnitude(folder), np.load(folder / "std.npy").squeeze()
    figure, (left, right) = pair()
    shown(left, image, object_top([image]), "gray")
    shown(right, std, scale_top([std]), "magma")
    return figure


def compared(folder: Path) -> Figure:
    """The error of every strategy, the least one on top."""
    rows = sorted(read_csv(folder / "summary.csv"), key=lambda row: -float(str(row["relative_l2"])))
    figure = Figure(figsize=(WIDTH, WIDTH / 2), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots()
    errors = [100 * float(str(row["relative_l2"])) for row in rows]
    bars = axes.barh([str(row["strategy"]) for row in rows], errors, color=BAR)
    axes.bar_label(bars, [f"{error:.1f} %" for error in errors], padding=2, fontsize=6)
    axes.tick_params(labelsize=6.5, length=0, colors=INK)
    axes.set(xticks=[], xlim=(0, 1.25 * max(errors)))
    axes.spines[:].set_visible(False)
    return figure


def magnitude(folder: Path) -> NDArray[np.float64]:
    """The one image of a run."""
    return np.abs(np.load(folder / "recon.npy")).squeeze()


def pair() -> tuple[Figure, tuple[Axes, Axes]]:
    """Two squares side by side."""
    figure = Figure(figsize=(WIDTH, WIDTH / 2), dpi=DPI, facecolor="white")
    left, right = figure.subplots(1, 2, gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1, "wspace": 0.02})
    return figure, (left, right)


def shown(panel: Axes, pixels: NDArray[np.generic], top: float, colours: str) -> None:
    """Pixels from 0 to ``top``, without ticks."""
    panel.imshow(pixels, cmap=colours, vmin=0, vmax=top, interpolation="antialiased")
    panel.set_axis_off()


def save(figure: Figure, path: Path) -> None:
    """Write in few colours: a third of the bytes, and no difference to the eye."""
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png")
    Image.open(drawing).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
