"""The squared error of an image, predicted from what is known at the end of its scan.

A posterior shows well where an image is uncertain, and badly by how much. The logarithm of the squared error over the
sum of the posterior's variances is regressed on a few logarithms that every scan has (`FEATURES`): how much more
energy than expected was found on readouts that were held back, how much the image lacks where nothing was measured,
how far it moved between its estimates. A straight line through them is corrected by what it left open of images alike:
kernel ridge regression, which far from all images is the straight line. It has been learnt from images whose truth is
known, of several anatomies, encodings, coils and noises (``benchmarks/error_bars.py learn``,
results/error-bars/README.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evidence.evidence import ErrorEvidence, Innovations

FALLS = 0.6
"""How much of the logarithm of a companion's gain on readouts held back is found in the squared error, too."""
FEWEST = 2
"""Readouts held back that predict an error under blocks of which nothing has been learnt."""
MARGIN = 0.25
"""Share of what a feature ranged over in learning by which it may lie outside."""
HALF = 1.0
"""Readouts held back at which what they say is trusted by half."""
_TINY = 1e-12
Numbers = NDArray[np.float64]


def _log(energy: float) -> float:
    return float(np.log(max(energy, _TINY)))


def _over_variance(energy: Callable[[ErrorEvidence], float]) -> Callable[[ErrorEvidence], float]:
    """Logarithm of an energy over the posterior's variances, 0 where there is none."""

    def feature(known: ErrorEvidence) -> float:
        found = energy(known)
        return _log(found / known.variance) if found > 0 else 0.0

    return feature


def _seen(known: ErrorEvidence) -> Innovations:
    if known.innovations is None:
        raise InputError("evidence", "no readouts held back", "some")
    return known.innovations


def _trust(known: ErrorEvidence) -> float:
    """Weight of what readouts held back say, 0 to 1."""
    count = _seen(known).count
    return count / (count + HALF)


_FEATURES: tuple[tuple[str, Callable[[ErrorEvidence], float]], ...] = (
    ("constant", lambda known: 1.0),
    ("several coils", lambda known: float(known.coils > 1)),
    ("log coils", lambda known: _log(known.coils)),
    ("plane", lambda known: float(known.encoding == "plane")),
    ("shots", lambda known: float(known.encoding == "shots")),
    ("phase-aware", lambda known: float(known.phase_aware)),
    ("log share measured", lambda known: _log(known.share)),
    ("log noise", _over_variance(lambda known: known.noise)),
    ("few held back", lambda known: 1 - _trust(known)),
    ("log found over expected energy", lambda known: _trust(known) * _log(_seen(known).found / _seen(known).expected)),
    ("log found over expected energy, ring by ring", lambda known: _trust(known) * _log(_seen(known).by_ring)),
    ("log energy expected of what is held back", _over_variance(lambda known: _seen(known).expected)),
    ("log surprise", lambda known: _trust(known) * _log(_seen(known).surprise)),
    ("log energy that the image lacks", _over_variance(lambda known: known.missing)),
    ("log change since readouts were held back", _over_variance(lambda known: known.from_held)),
    ("non-local", lambda known: float(known.from_local > 0)),
    ("log change by non-local blocks", _over_variance(lambda known: known.from_local)),
    ("companions", lambda known: float(known.from_alone > 0)),
    ("gain of companions", lambda known: known.gain),
    ("log change by companions", _over_variance(lambda known: known.from_alone)),
)
FEATURES = tuple(name for name, _ in _FEATURES)
"""Names of the features, in their order; energies are relative to the sum of the posterior's variances."""


def features(known: ErrorEvidence) -> Numbers:
    """Features of one image, (`FEATURES`,)."""
    return np.array([value(known) for _, value in _FEATURES])


def kind_of(known: ErrorEvidence) -> str:
    """Encoding, and whether there are several coils."""
    return known.encoding + (", coils" if known.coils > 1 else "")


@dataclass(frozen=True)
class ImagesAlike:
    """What a straight line leaves open, by images whose truth is known: each pulls those alike up or down.

    Parameters
    ----------
    features : float array, shape (image, features)
        Of the images.
    pulls : float array, shape (image,)
        How much an image like it is pulled by each, in nats.
    unit : float array, shape (features,)
        By which differences of features are divided.
    reach : float
        Distance, in these units, at which the pull has fallen to exp(-1/2).
    """

    features: Numbers
    pulls: Numbers
    unit: Numbers
    reach: float

    def __call__(self, found: Numbers) -> float:
        """What is added to the straight line at these features."""
        return float(self.alike(found) @ self.pulls)

    def alike(self, found: Numbers) -> Numbers:
        """How much every image is like the one with these features, 0 to 1."""
        return np.asarray(np.exp(-np.sum(((self.features - found) / self.unit) ** 2, axis=1) / (2 * self.reach**2)))


@dataclass(frozen=True)
class SquaredErrorModel:
    """log(squared error / sum of variances) = features . weights + what images alike add, up to a spread.

    Parameters
    ----------
    weights : float array, shape (features,)
        Of `FEATURES`.
    images : ImagesAlike
        Those that it has been learnt from.
    lowest, highest : float array, shape (features,)
        What the features ranged over in learning.
    spread : mapping of str to float
        By `kind_of`: standard deviation of what the features leave open, in nats, on subjects that were left out.

    Raises
    ------
    InputError
        For shapes that do not fit, or values that are not finite.
    """

    weights: Numbers
    images: ImagesAlike
    lowest: Numbers
    highest: Numbers
    spread: Mapping[str, float]

    def __post_init__(self) -> None:
        shapes = {each.shape for each in (self.weights, self.images.unit, self.lowest, self.highest)}
        if shapes != {(len(FEATURES),)} or not np.isfinite([self.weights, self.lowest, self.highest]).all():
            raise InputError("squared error model", f"shapes {shapes}", f"finite numbers, ({len(FEATURES)},) each")

    def unlike(self, known: ErrorEvidence) -> list[str]:
        """Names of the features that lie outside of what has been learnt from."""
        if known.encoding != "shots" and np.isnan(known.missing):
            return ["log energy that the image lacks"]
        found, room = features(known), MARGIN * (self.highest - self.lowest)
        outside = (found < self.lowest - room - _TINY) | (found > self.highest + room + _TINY)
        return [name for name, far in zip(FEATURES, outside, strict=True) if far]

    def squared_error(self, known: ErrorEvidence) -> float:
        """What it predicts of an image, in the units of the evidence."""
        found = features(known)
        return known.variance * float(np.exp(found @ self.weights + self.images(found)))


@cache
def shipped_squared_error_model() -> SquaredErrorModel:
    """The weights that ``benchmarks/error_bars.py learn`` has learnt."""
    text = resources.files("mri_design.evidence").joinpath("squared_error.json").read_text("utf-8")
    stored = json.loads(text)
    if tuple(stored["features"]) != FEATURES:
        raise InputError(field="squared_error.json", got="other features", wanted="those of this version")
    weights, lowest, highest, unit, pulls, known = (
        np.array(stored[name], dtype=float) for name in ("weights", "lowest", "highest", "unit", "pulls", "images")
    )
    return SquaredErrorModel(
        weights, ImagesAlike(known, pulls, unit, stored["reach"]), lowest, highest, stored["spread"]
    )


How = Literal["learnt", "held back"]


@dataclass(frozen=True)
class PredictedError:
    """The squared error of an image as it is predicted.

    Parameters
    ----------
    squared : float
        Summed over pixels, in the units of the evidence.
    how : {"learnt", "held back"}
        By the regression, or by readouts held back alone, where it has seen nothing like the scan.
    spread : float
        Standard deviation of its logarithm; NaN where none is known.
    """

    squared: float
    how: How
    spread: float = float("nan")


def predicted_error(known: ErrorEvidence, *, learnt: bool = True) -> PredictedError | None:
    """Predict the squared error of an image.

    Parameters
    ----------
    known : ErrorEvidence
        What the scan says.
    learnt : bool
        Whether the blocks of the image's prior are of the kinds that the regression has seen.

    Returns
    -------
    PredictedError or None
        None where nothing could be held back, or too little to go by alone.
    """
    seen, model = known.innovations, shipped_squared_error_model()
    if seen is None:
        return None
    if learnt and not model.unlike(known):
        return PredictedError(model.squared_error(known), "learnt", model.spread[kind_of(known)])
    if seen.count < FEWEST:
        return None
    squared = known.local_variance * seen.found / seen.expected * float(np.exp(-FALLS * known.gain))
    return PredictedError(squared, "held back")
