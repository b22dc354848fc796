"""Error bars that hold: where an image is unsure, and one factor that makes them as large as its predicted error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.evidence.evidence import ErrorEvidence, powers
from mri_design.evidence.squared_error import How, PredictedError
from mri_design.kinds import count_text
from mri_design.operators.base import Array

BOUNDS = (1 / 3, 30.0)
"""Bounds of the factor on variances: beyond them the prediction is trusted less than the posterior."""
BOUNDED = (BOUNDS[0] ** 0.5 * 1.001, BOUNDS[1] ** 0.5 * 0.999)
"""Factors on standard deviations that one of the bounds has set."""
BLUR = 1.5
"""Pixels: standard deviation of the Gaussian over which changes of the image are averaged."""
OWN = 0.5
"""Weight of the posterior's variances in the map, beside the changes of the image."""


@dataclass(frozen=True)
class StdFactor:
    """What the standard deviations of an image were multiplied by, and why.

    Parameters
    ----------
    factor : float
        On the root of the mean variance.
    held_back : int
        Readouts that were held back to learn it.
    unit : str
        What was held back, in the singular (`Readouts.unit`).
    how : {"learnt", "held back"}
        See `PredictedError`.
    spread : float
        Standard deviation of the logarithm of the squared error that is predicted; NaN where it is not known.
    evidence : ErrorEvidence, optional
        Behind the prediction.
    """

    factor: float
    held_back: int
    _: KW_ONLY
    unit: str = "line"
    how: How = "learnt"
    spread: float = float("nan")
    evidence: ErrorEvidence | None = None

    def __str__(self) -> str:
        bound = ", the least" if self.factor <= BOUNDED[0] else ", the most" if self.factor >= BOUNDED[1] else ""
        after = f"scaled by {self.factor:.2f}{bound}, after {count_text(self.held_back, self.unit)} held back"
        if self.how == "held back":
            return f"{after}, by these alone: nothing like this scan has been learnt from"
        within = (
            ""
            if np.isnan(self.spread)
            else f"; in two thirds of such images the error is within {100 * self.of_error:.0f} % of that"
        )
        return f"{after}{within}"

    @property
    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: the fields without the evidence, as JSON takes them."""
        known = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "evidence"}
        return {name: value for name, value in known.items() if value == value}  # NaN is the default

    @property
    def of_error(self) -> float:
        """Standard deviation of the predicted error, as a fraction of it."""
        return float(np.expm1(self.spread / 2))


def std_factor(predicted: PredictedError | None, known: ErrorEvidence, unit: str) -> StdFactor | None:
    """The factor that makes variances sum to the predicted squared error, within `BOUNDS`; None without one."""
    if predicted is None:
        return None
    factor = float(np.sqrt(np.clip(predicted.squared / known.variance, *BOUNDS)))
    count = 0 if known.innovations is None else known.innovations.count
    return StdFactor(factor, count, unit=unit, how=predicted.how, spread=predicted.spread, evidence=known)


def shaped_std(std: Array, image: Array, others: Sequence[Array]) -> NDArray[np.float32]:
    """Standard deviations that also say where the image has moved; their squares sum to what they did.

    A posterior treats its own choices as known. Where an image changes when readouts are held back, or when non-local
    blocks come in, it is less certain than the posterior holds: half of the map are the posterior's variances, half are
    the squared changes, averaged over the neighbourhood (results/error-bars/README.md has what else was tried).

    Parameters
    ----------
    std : float array, shape (ky, kx)
        As the posterior has them.
    image : complex array, shape (ky, kx)
        The image.
    others : sequence of complex array, shape (ky, kx)
        Estimates of it that were made on the way.
    """
    variances = powers(std)
    total, changes = variances.sum(), []
    for other in others:
        power = scipy.ndimage.gaussian_filter(powers(image - other), BLUR)
        if power.sum() > 0:
            changes.append(power * (total / power.sum()))
    if not changes:
        return np.asarray(std, dtype=np.float32)
    return np.asarray(np.sqrt(OWN * variances + (1 - OWN) * np.mean(changes, axis=0)), dtype=np.float32)
