"""A finished design held to account: what it expected of its lines and of its image, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.output.tables import Row
from mri_design.evaluation.predictions.check import PredictionCheck
from mri_design.evaluation.predictions.information import ExpectedInformation, expected_information
from mri_design.evaluation.predictions.innovations import Innovations, innovations
from mri_design.evaluation.predictions.model_use import ModelUse, model_use
from mri_design.evaluation.predictions.shares import how_often_right


@dataclass(frozen=True)
class DesignAccount:
    """Everything that a report says about a design's predictions.

    Parameters
    ----------
    trace : DesignTrace
        Every decision.
    information : ExpectedInformation
        What each line was expected to tell.
    innovations : Innovations or None
        Energy of each line's innovation, predicted and measured; None where nothing was predicted.
    predicted_errors : tuple of (int, float)
        Numbers of measured lines, and the relative error that was predicted for the image made from them.
    models : ModelUse or None
        Which model the design went by, where it chose between several.
    checks : tuple of PredictionCheck
        Predictions with the actual errors beside them; empty where these are not known.
    shares : sequence of mappings
        `how_often_right` of the checks that have a prediction; empty without them.
    """

    trace: DesignTrace
    information: ExpectedInformation
    innovations: Innovations | None
    predicted_errors: tuple[tuple[int, float], ...]
    models: ModelUse | None = None
    checks: tuple[PredictionCheck, ...] = ()
    shares: Sequence[Row] = ()


def account_of(trace: DesignTrace, checks: Sequence[PredictionCheck] = (), models: Sequence[str] = ()) -> DesignAccount:
    """The account of a finished design.

    Parameters
    ----------
    trace : DesignTrace
        Every decision.
    checks : sequence of PredictionCheck
        Its predictions with the actual errors beside them, where those are known.
    models : sequence of str
        Names of the candidate models, in their order.
    """
    start, end = len(trace.start), trace.forecast(len(trace.lines))
    errors = [(start + i, step.predicted_error) for i, step in enumerate(trace.steps) if step.predicted_error > 0]
    errors += [(len(trace.lines), end.predicted_error)] if end is not None and end.predicted_error > 0 else []
    judged = [check for check in checks if not np.isnan(check.ratio)]
    return DesignAccount(
        trace=trace,
        information=expected_information(trace),
        innovations=innovations(trace),
        predicted_errors=tuple(errors),
        models=model_use(trace, models),
        checks=tuple(checks),
        shares=how_often_right(judged) if judged else (),
    )
