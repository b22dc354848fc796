"""The steps of a design one by one, for readers whose browser runs the page's script; others see nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.output.pointed_curves import json_for_script

MOST_NUMBERS = 60_000
"""Scores that a page holds at most; of longer designs every second step has them, or every third, and so on."""


@dataclass(frozen=True)
class ExploredStep:
    """One decision.

    Parameters
    ----------
    line : int
        The line that was chosen.
    scores : float array, shape (ky,), or None
        Of all candidates, NaN for others; None for a rule without scores.
    predicted_error : float or None
        Relative error that the image was expected to have before this line.
    """

    line: int
    scores: NDArray[np.floating] | None
    predicted_error: float | None


@dataclass(frozen=True)
class ExploredImage:
    """What the image looked like when so many lines had been measured.

    Parameters
    ----------
    count : int
        Lines.
    mean, deviation, difference : bytes
        PNG pictures of the image, of its error bars and of its actual error; empty where there is none.
    error : float or None
        Relative L2 error of the magnitude, where the truth is known.
    """

    count: int
    mean: bytes
    deviation: bytes = b""
    difference: bytes = b""
    error: float | None = None


@dataclass(frozen=True)
class StepExplorer:
    """A slider over the steps, the mask and the scores at each, and images at some.

    Parameters
    ----------
    n_lines : int
        Lines of the grid.
    start : sequence of int
        Lines measured before the first decision.
    steps : sequence of ExploredStep
        Decisions in order.
    unit : str
        Name of the scores.
    images : sequence of ExploredImage
        By growing count.
    caption : str
        What to look for.
    """

    n_lines: int
    start: Sequence[int]
    steps: Sequence[ExploredStep]
    unit: str
    images: Sequence[ExploredImage] = ()
    caption: str = ""
    kind: str = field(default="explorer", init=False)

    @property
    def json(self) -> str:
        """All of it for the page's script, safe inside a script element."""
        every = -(-len(self.steps) * self.n_lines // MOST_NUMBERS) or 1
        content = {
            "lines": self.n_lines,
            "start": [int(line) for line in self.start],
            "unit": self.unit,
            "steps": [
                {
                    "line": int(step.line),
                    "scores": None if number % every or step.scores is None else [_short(v) for v in step.scores],
                    "predicted_error": None if step.predicted_error is None else _short(step.predicted_error),
                }
                for number, step in enumerate(self.steps)
            ],
            "images": [
                {
                    "count": image.count,
                    "mean": _address(image.mean),
                    "deviation": _address(image.deviation),
                    "difference": _address(image.difference),
                    "error": None if image.error is None else _short(image.error),
                }
                for image in self.images
            ],
        }
        return json_for_script(content)


def _short(value: float) -> float | None:
    """Three significant digits; None for what is no number."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def _address(png: bytes) -> str:
    from base64 import b64encode

    return f"data:image/png;base64,{b64encode(png).decode()}" if png else ""
