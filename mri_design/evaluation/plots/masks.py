"""Which phase-encode lines each design measures, as barcodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evaluation.colours import PALETTE
from mri_design.evaluation.plots.style import BLANK, INK, KY_LABEL, LABEL, SMALL, empty_figure, plain_text, runs


def mask_barcodes(masks: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """Masks one above the other over ky, each with its number of lines and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky,)
        Title to mask; True where the line is measured. All of one length.

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
    figure = empty_figure(height=0.55 * len(masks) + 0.6)
    cells = figure.subplots(len(masks), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (title, mask) in zip(cells, masks.items(), strict=True):
        _barcode(axes, mask)
        axes.set_title(f"{plain_text(title)}  \N{EN DASH}  {_size_of(mask)}", fontsize=SMALL, loc="left")
    cells[-1].set_xlabel(KY_LABEL, fontsize=LABEL)
    return figure


def _barcode(axes: Axes, mask: NDArray[np.bool_]) -> None:
    """Runs of measured lines as bars: a run has no seams, and a thin line is never lost to pixel sampling."""
    centre = len(mask) // 2
    starts, widths = runs(mask)
    axes.set_facecolor(BLANK)
    axes.bar(starts, 1.0, widths, align="edge", color=INK, linewidth=0)
    axes.plot([0, 0], [1.0, 1.18], color=PALETTE[1], linewidth=2, clip_on=False)
    axes.set_xlim(-centre - 0.5, len(mask) - centre - 0.5)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.tick_params(labelsize=SMALL)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _size_of(mask: NDArray[np.bool_]) -> str:
    count = int(mask.sum())
    acceleration = f", {len(mask) / count:.2f}\N{MULTIPLICATION SIGN}" if count else ""
    return f"{count} lines{acceleration}"
