"""What an object says of itself in a few lines of text, and beside its pictures in a notebook."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation import plots
from mri_design.evaluation.plots.panels import Layout, scale_top

_WIDE = 100
_BARCODE = 24
"""Pixels that a mask of lines is high, or wide."""


def facts_text(title: str, facts: Mapping[str, str]) -> str:
    """A title and a line for each fact, none of them longer than a terminal is wide."""
    lines = [title, *(f"  {name}: {text}" for name, text in facts.items() if text)]
    return "\n".join(line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines)


def facts_html(title: str, facts: Mapping[str, str], pictures: Sequence[tuple[str, bytes]]) -> str:
    """Pictures (what they show, PNG) beside each other, above a table of the facts."""
    figures = "".join(
        f'<figure style="display:inline-block;margin:0 1em 0 0"><img style="height:14em;image-rendering:auto" '
        f'alt="{html.escape(says)}" src="data:image/png;base64,{b64encode(png).decode()}">'
        f"<figcaption>{html.escape(says)}</figcaption></figure>"
        for says, png in pictures
    )
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:left">{html.escape(text)}</td>'
        "</tr>"
        for name, text in facts.items()
        if text
    )
    return f"<div><strong>{html.escape(title)}</strong><div>{figures}</div><table>{rows}</table></div>"


def image_png(image: NDArray[np.generic], layout: Layout, *, error: bool = False) -> bytes:
    """Magnitude of an image, or its error bars in the colours of errors, as it lies on a report's page."""
    pixels = np.abs(image)
    return plots.pixels_png(pixels, scale_top([pixels]), layout, error=error)


def mask_png(mask: NDArray[np.bool_], layout: Layout) -> bytes:
    """A mask as a picture: lines as bars, of which each is a pixel thick, and samples of a plane as pixels."""
    flags = mask if mask.ndim == 2 else np.repeat(mask[:, np.newaxis], _BARCODE, axis=1)
    return plots.pixels_png(flags.astype(float), 1.0, layout)
