"""A design's steps one by one, as the page's script shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.output.step_explorer import ExploredImage, ExploredStep, StepExplorer
from mri_design.evaluation.plots.layout import Layout
from mri_design.evaluation.plots.panels import scale_top
from mri_design.evaluation.predictions.account import DesignAccount
from mri_design.evaluation.predictions.check import PredictionCheck
from mri_design.operators.base import Array

CAPTION = (
    "The design step by step. Move the slider, or use its arrow keys: dark lines are measured, the coloured one is "
    "the newest, and the curve below is the score that each line had when it was chosen. "
    "Images are those at which predictions were checked, on one scale for all steps; error bars and actual errors have "
    "the same colours."
)


def step_explorer(
    account: DesignAccount,
    unit: str,
    reference: Array | None,
    orientation: Layout,
    image_unit: float | Array = 1.0,
) -> StepExplorer:
    """The steps of a design of lines, with the images that its predictions were checked by.

    Parameters
    ----------
    account : DesignAccount
        The design, and its checks.
    unit : str
        Name of the scores.
    reference : complex array, shape (ky, kx), or None
        The true image, for the actual errors.
    orientation : Layout
        How the source file lays the image.
    image_unit : float or float array, shape (ky, kx)
        What images are multiplied by to be shown (`PreparedScan.image_unit`).
    """
    images = _images(account.checks, reference, orientation, image_unit)
    return StepExplorer(account.trace.n_lines, account.trace.start, _steps(account.trace), unit, images, CAPTION)


def _steps(trace: DesignTrace) -> list[ExploredStep]:
    return [
        ExploredStep(
            step.line,
            None if step.choice.scores is None else np.asarray(step.choice.scores, dtype=np.float64),
            step.predicted_error if step.predicted_error > 0 else None,
        )
        for step in trace.steps
    ]


def _images(
    checks: Sequence[PredictionCheck], reference: Array | None, orientation: Layout, unit: float | Array
) -> list[ExploredImage]:
    """Pictures on one scale for all steps."""
    kept = [(check.n_measured, check.mean, check.deviation) for check in checks]
    known = [
        (count, np.abs(mean) * unit, std * unit) for count, mean, std in kept if mean is not None and std is not None
    ]
    if not known:
        return []
    truth = None if reference is None else np.abs(reference) * unit
    bright = scale_top([known[-1][1]])
    wrong = scale_top([known[0][2]])
    return [
        ExploredImage(
            count,
            plots.pixels_png(mean, bright, orientation),
            plots.pixels_png(std, wrong, orientation, error=True),
            b"" if truth is None else plots.pixels_png(np.abs(mean - truth), wrong, orientation, error=True),
            None if truth is None else relative_l2(mean, truth),
        )
        for count, mean, std in known
    ]
