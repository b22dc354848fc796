"""When a design has enough lines: the information still to be gained, or the remaining error, is small enough.

No rule ends a design before a few of its predictions have been held against what was then measured. At the start the
posterior knows the centre of k-space only, and what it expects of all the rest is its prior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isnan

import numpy as np

from mri_design.design.trace import Forecast
from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.kinds import Kind

FAR = 0.75
"""Below this part of what noise is predicted to leave an error is out of reach: the prediction is seldom that wrong."""
NEAR = 1.2
"""The image is looked at where its error may be up to this many times what is wanted."""
FEWEST_TESTED = Kind.fewest_tested
"""Lines that a design must have predicted and then measured before what it predicts can end it."""
AT_REST = 0.02
"""Predictions that fell by less than this share over the last lines (`Forecast.recent_fall`) have come to rest."""


class StopRule(ABC):
    """Says when a design has enough lines, and why. What the engine asks beside that is answered here."""

    looks_ahead: bool = False
    """Whether `Forecast.least_error` is wanted."""

    def needs_image_error(self, forecast: Forecast, ratio: float) -> bool:
        """Whether `Forecast.image_error` is wanted before the rule is asked.

        ``ratio`` is that error over the predicted one where it was last known; 0 where it is wanted in any case.
        """
        return False

    @abstractmethod
    def __call__(self, forecast: Forecast) -> bool:
        """Whether the design ends now, before the line that is decided on is measured."""

    def reason(self, forecast: Forecast, unit: str = "line") -> str:
        """The number that the rule looks at beside its limit, in words; ``unit`` is what candidates are called."""
        return ""

    def missed(self, forecast: Forecast, unit: str = "line") -> str:
        """Why what was wanted cannot be had, in words; empty while it can, or where it is reached."""
        return ""


@dataclass(frozen=True)
class ByFunction(StopRule):
    """A function of the forecast, true where the design ends."""

    ends: Callable[[Forecast], bool]

    def __call__(self, forecast: Forecast) -> bool:
        return self.ends(forecast)


def stop_rule(stop: Callable[[Forecast], bool] | None) -> StopRule:
    """A rule, a function as one, or one that never ends a design."""
    return stop if isinstance(stop, StopRule) else ByFunction(stop or (lambda forecast: False))


@dataclass(frozen=True)
class UntilError(StopRule):
    """End the design once the predicted relative L2 error of the image is small enough, or cannot become so.

    After every line a design predicts the error of its own posterior, by the energies of innovations. The image that
    is made of the lines has another error, which can be predicted better, at the price of the image
    (`Forecast.image_error`). Where ``by_image`` says so, it alone ends the design. It is asked for when the design's
    own prediction, times the ratio of the two at the last look, has nearly fallen to what is wanted, whenever coil maps
    were estimated anew, and at least every tenth line.

    Noise leaves an error however many lines are measured. A design also ends where that floor, as it is predicted, is
    far above the wanted error; and where the floor is above the wanted error and the predicted error has not fallen
    for many lines. The floor itself is a prediction, which later lines may correct by some ten per cent. Neither is
    trusted before ``fewest`` predictions have been tested.

    Parameters
    ----------
    error : float
        Norm of the error over norm of the image, several slices together.
    fewest : int
        Lines, or other candidates, that must have been predicted and then measured (`Forecast.tested`).
    by_image : bool
        Whether `Forecast.image_error` decides, instead of `Forecast.predicted_error`.

    Raises
    ------
    InputError
        For an error that is not between zero and one, that of an empty image, or a number below 0.

    Notes
    -----
    Neither prediction is a bound; the strategy's, of a posterior without correction, is usually too small.
    """

    error: float
    fewest: int = FEWEST_TESTED
    by_image: bool = False
    looks_ahead: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _require_positive("until_error", self.error)
        require_counts(fewest=self.fewest, least=0)
        if not self.error < 1:
            wanted, cure = "less than 1, the relative error of an empty image", "Five per cent are 0.05."
            raise InputError("until_error", repr(self.error), wanted, cure)

    def needs_image_error(self, forecast: Forecast, ratio: float) -> bool:
        """Where the prediction, times ``ratio``, would end the design, and where there is no prediction."""
        if not self.by_image or not _is_tested(forecast, self.fewest):
            return False
        predicted = forecast.predicted_error
        return isnan(predicted) or predicted * ratio <= NEAR * self.error or self._beyond(_least(forecast), forecast)

    def __call__(self, forecast: Forecast) -> bool:
        return _is_tested(forecast, self.fewest) and (self._reached(forecast) or self._hopeless(forecast))

    def reason(self, forecast: Forecast, unit: str = "line") -> str:
        """Predicted against wanted error, in per cent; what noise leaves, where that is too much."""
        error, met = self._error(forecast), self._reached(forecast)
        compared = _compared("predicted error", 100 * error, "%", f"{100 * self.error:g} % or less")
        return (self.missed(forecast, unit) or compared) + (_untested(forecast, self.fewest, unit) if met else "")

    def missed(self, forecast: Forecast, unit: str = "line") -> str:
        """Words about the error that every line would leave, where it is larger than wanted; empty elsewhere."""
        if not _is_tested(forecast, self.fewest) or not self._hopeless(forecast):
            return ""
        now = _compared("predicted now", 100 * self._error(forecast), "%", f"{100 * self.error:g} %")
        least = f"some {100 * self._least(forecast):.3g} %, from noise and from {unit}s that may not be"
        return f"out of reach: every {unit} that may be measured would leave {least} ({now})"

    def _error(self, forecast: Forecast) -> float:
        return forecast.image_error if self.by_image else forecast.predicted_error

    def _least(self, forecast: Forecast) -> float:
        """`_least`, as much smaller as the image's error is than that of the design; NaN where it is not known."""
        if not self.by_image:
            return _least(forecast)
        return float(_least(forecast) * np.minimum(1.0, forecast.image_error / forecast.predicted_error))

    def _reached(self, forecast: Forecast) -> bool:
        return self._error(forecast) <= self.error

    def _hopeless(self, forecast: Forecast) -> bool:
        return not self._reached(forecast) and self._beyond(self._least(forecast), forecast)

    def _beyond(self, least: float, forecast: Forecast) -> bool:
        """Whether the wanted error is far below what every line would leave, or below it and nothing moves any more."""
        at_rest = forecast.recent_fall < AT_REST
        return self.error < FAR * least or (at_rest and self.error < least)


@dataclass(frozen=True)
class UntilGain(StopRule):
    """End the design once the best remaining line would bring little information.

    Parameters
    ----------
    gain : float
        Information in nats (`Forecast.information`), summed over slices. For strategies that do not compute it, it is
        the most that a line of the predicted energy can hold, so that equal gains do not mean the same for all
        strategies.
    fewest : int
        As of `UntilError`.

    Raises
    ------
    InputError
        For a gain that is not above zero, or a number below 0.
    """

    gain: float
    fewest: int = FEWEST_TESTED

    def __post_init__(self) -> None:
        _require_positive("until_gain", self.gain)
        require_counts(fewest=self.fewest, least=0)

    def __call__(self, forecast: Forecast) -> bool:
        return _is_tested(forecast, self.fewest) and self._reached(forecast)

    def reason(self, forecast: Forecast, unit: str = "line") -> str:
        """The information of the best candidate against the smallest that is worth measuring one."""
        reached = self._reached(forecast)
        told = _compared(f"gain of the best {unit}", forecast.information, "nats", f"less than {self.gain:g} nats")
        return told + (_untested(forecast, self.fewest, unit) if reached else "")

    def _reached(self, forecast: Forecast) -> bool:
        return forecast.information < self.gain


@dataclass(frozen=True)
class AnyOf(StopRule):
    """Enough lines once one of several rules says so."""

    rules: tuple[StopRule, ...]

    @property
    def looks_ahead(self) -> bool:  # type: ignore[override]
        """True where one of the rules needs the least error."""
        return any(rule.looks_ahead for rule in self.rules)

    def needs_image_error(self, forecast: Forecast, ratio: float) -> bool:
        """Where one of the rules asks."""
        return any(rule.needs_image_error(forecast, ratio) for rule in self.rules)

    def __call__(self, forecast: Forecast) -> bool:
        return any(rule(forecast) for rule in self.rules)

    def reason(self, forecast: Forecast, unit: str = "line") -> str:
        """Reasons of the rules that are met; of all where none is."""
        met = [rule for rule in self.rules if rule(forecast)]
        return " and ".join(rule.reason(forecast, unit) for rule in met or self.rules)

    def missed(self, forecast: Forecast, unit: str = "line") -> str:
        """Words about what is out of reach, unless another rule was met by the same decision."""
        met = [rule for rule in self.rules if rule(forecast)]
        missed = [rule.missed(forecast, unit) for rule in met]
        return " and ".join(missed) if all(missed) else ""


def _least(forecast: Forecast) -> float:
    """The error that all candidates would leave: at most what those measured leave, whatever the predictions say."""
    least, predicted = forecast.least_error, forecast.predicted_error
    return least if isnan(predicted) else min(least, predicted)


def _is_tested(forecast: Forecast, fewest: int) -> bool:
    """Whether so many predictions have been held against what was measured, where anybody counted them."""
    return not forecast.tested < fewest


def _untested(forecast: Forecast, fewest: int, unit: str) -> str:
    """Why a design went on although the number is small enough; empty where it may be trusted."""
    if _is_tested(forecast, fewest):
        return ""
    return f", believed once {fewest} {unit}s were predicted and then measured ({forecast.tested:g} so far)"


def _require_positive(name: str, value: float) -> None:
    require_numbers(**{name: value})
    if not value > 0:
        raise InputError(field=name, got=repr(value), wanted="more than zero")


def _compared(what: str, value: float, measure: str, limit: str) -> str:
    return f"{what} {'not known' if isnan(value) else f'{value:.3g} {measure}'}, wanted {limit}"
