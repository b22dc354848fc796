"""Which phase-encode lines each design measures, as barcodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evaluation.plots.style import KY_LABEL, PALETTE, WIDTH, across, empty_figure, plain_text
from mri_design.kspace import Orientation

__all__ = ["mask_barcodes"]

MOST_STANDING = 5
"""Masks that fit side by side with readable titles; more lie one above the other."""
_UNMEASURED, _MEASURED = "#ececec", "#1a1a1a"


def mask_barcodes(masks: Mapping[str, NDArray[np.bool_]], orientation: Orientation = "ky-rows") -> Figure:
    """Masks side by side, each with its number of lines and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky,)
        Title to mask; True where the line is measured. All of one length.
    orientation : {"ky-rows", "ky-columns"}
        As for the images: in "ky-rows" ky runs down the page and the masks stand side by side (as long as there
        are few), in "ky-columns" it runs across and they lie one above the other.

    Raises
    ------
    InputError
        Where there is no mask, one is not a bool vector, or the lengths disagree.
    """
    if not masks:
        raise InputError(field="masks", got="no mask", wanted="at least one")
    lengths = {mask.shape for mask in masks.values()}
    if len(lengths) > 1 or any(mask.ndim != 1 or mask.dtype != np.bool_ for mask in masks.values()):
        raise InputError(field="masks", got=f"shapes {sorted(lengths)}", wanted="bool vectors of one length")
    lying = across(orientation) or len(masks) > MOST_STANDING
    if lying:
        figure = empty_figure(height=0.62 * len(masks) + 0.55)
        cells = figure.subplots(len(masks), 1, squeeze=False, sharex=True)[:, 0]
    else:
        figure = empty_figure(height=4.2, width=min(WIDTH, 0.8 + 1.15 * len(masks)))
        cells = figure.subplots(1, len(masks), squeeze=False, sharey=True)[0]
    for axes, (title, mask) in zip(cells, masks.items(), strict=True):
        _barcode(axes, mask, lying)
        if lying:
            axes.set_title(f"{plain_text(title)}  \N{EN DASH}  {_size_of(mask)}", fontsize=8, loc="left")
        else:
            axes.set_title(f"{plain_text(title, width=16)}\n{_size_of(mask)}", fontsize=7.5)
            axes.tick_params(left=axes is cells[0])
    if lying:
        cells[-1].set_xlabel(KY_LABEL, fontsize=8)
    else:
        cells[0].set_ylabel(KY_LABEL, fontsize=8)
    return figure


def _barcode(axes: Axes, mask: NDArray[np.bool_], lying: bool) -> None:
    """Runs of measured lines as bars: a run has no seams, and a thin line is never lost to pixel sampling."""
    centre = len(mask) // 2
    steps = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    starts, widths = steps[::2] - centre - 0.5, np.diff(steps)[::2]
    low, high = -centre - 0.5, len(mask) - centre - 0.5
    axes.set_facecolor(_UNMEASURED)
    if lying:
        axes.bar(starts, 1.0, widths, align="edge", color=_MEASURED, linewidth=0)
        axes.plot([0, 0], [1.0, 1.18], color=PALETTE[1], linewidth=2, clip_on=False)
        axes.set_xlim(low, high)
        axes.set_ylim(0, 1)
        axes.set_yticks([])
    else:
        axes.barh(starts, 1.0, widths, align="edge", color=_MEASURED, linewidth=0)
        axes.plot([1.0, 1.12], [0, 0], color=PALETTE[1], linewidth=2, clip_on=False)
        axes.set_ylim(high, low)  # downwards, as the image's rows
        axes.set_xlim(0, 1)
        axes.set_xticks([])
    axes.tick_params(labelsize=7)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _size_of(mask: NDArray[np.bool_]) -> str:
    count = int(mask.sum())
    acceleration = f", {len(mask) / count:.2f}\N{MULTIPLICATION SIGN}" if count else ""
    return f"{count} lines{acceleration}"
