"""The history of a design: its decisions with what was predicted, found and spent, and the rules that end it.

A checkpoint writes and reads the fields of a `DesignStep` by their declarations (`scan.io.records`).

A design ends when it has enough lines: when the information still to be gained, or the remaining error, is small
enough. No rule ends a design before a few of its predictions have been compared with measurements. At the start the
posterior knows only the centre of k-space, and its predictions about the rest are its prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import isfinite, isnan, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.kinds import Kind


def relative_error(error: float, image: float) -> float:
    """Norm of the error of a posterior mean over that of the true image, from the energies of error and mean.

    The error of a mean is orthogonal to it, so that the true image is expected to have the energy of both. NaN without
    any.
    """
    return sqrt(error / (error + image)) if error + image > 0 else float("nan")


@briefly
@dataclass(frozen=True)
class Forecast:
    """Predictions about the image's error at one moment of a design.

    A strategy gives ``expected``, and ``corrected`` and ``information`` where it has them; the engine adds the rest.
    What is predicted before anything that was predicted has been measured is a guess, from the prior alone, of how
    wrong the image is: it decides what is measured first, and is not given out as a prediction of the image's error.

    Parameters
    ----------
    expected : float array, shape (ky,), optional
        Energy of the mean's error on every line of the grid as the posterior expects it: summed over readout, coils and
        posteriors, in the data's units squared, without the noise of a measurement. On measured lines it is what their
        noise leaves. None for rules without a posterior.
    corrected : float array, shape (ky,), optional
        The same as the strategy believes it, where it corrects the posterior; NaN where it cannot say yet.
    information : float
        Information about the image, in nats, that the chosen line is expected to bring: as the strategy computes it,
        else the most that a line of the predicted energy can hold (`engine.most_information`). NaN without a
        posterior. At the end of a design it is that of the last decision.
    image_energy : float
        Energy of the mean, summed over slices.
    least_error : float
        Relative L2 error predicted to be left once every line that may be measured has been; NaN where no stop rule
        needs it.
    recent_fall : float
        Share by which the smallest predicted error so far fell over the last lines (an eighth of the grid, eight lines
        at least); 0 where every line has been measured; NaN where there were fewer lines, or no stop rule
        needs it.
    side_information_weight : float
        How much an earlier scan of the same object, or scans of a training, counted relative to this scan's own
        posterior, 0 to 1; of a plane, which share it explained of how single samples differ from those around them. NaN
        where there were none.
    image_error : float
        Relative L2 error that is predicted of the image that these lines give in the end, from readouts that are held
        back (`experiment.design`); NaN if the design did not predict it.
    tested : float
        How many candidates had been predicted and then measured by then
        (`DesignTrace.found`); NaN if they were not counted.
    intervals : float array, shape (region, 3), optional
        Of every mean of a region, or difference, that is to be known: middle of its interval, half of its length, and
        the brightness that a relative length refers to (`evidence.regions.RegionMean`); None if the design did not
        look.
    """

    expected: NDArray[np.float64] | None = None
    corrected: NDArray[np.float64] | None = None
    information: float = float("nan")
    image_energy: float = float("nan")
    _: KW_ONLY
    least_error: float = float("nan")
    recent_fall: float = float("nan")
    side_information_weight: float = float("nan")
    image_error: float = float("nan")
    tested: float = float("nan")
    intervals: NDArray[np.float64] | None = None

    @property
    def predicted(self) -> NDArray[np.float64] | None:
        """Energy of the error on every line as the strategy believes it, (ky,); None for rules without a posterior."""
        return self.expected if self.corrected is None else self.corrected

    @property
    def predicted_level(self) -> float:
        """Expected energy of the image: that of the mean and that of its error; NaN without a posterior."""
        return float("nan") if self.predicted is None else float(self.image_energy + np.sum(self.predicted))

    @property
    def predicted_error(self) -> float:
        """Predicted relative L2 error of the mean over all lines, 0 to 1.

        NaN where nothing is predicted, and before the first candidate has been predicted and found.
        """
        if self.predicted is None or self.tested == 0 or not self.predicted_level > 0:
            return float("nan")
        return relative_error(float(np.sum(self.predicted)), self.image_energy)


@briefly
@dataclass(frozen=True)
class Choice:
    """Which line comes next, and why.

    Parameters
    ----------
    line : int
        Line to measure next.
    scores : float array, shape (ky,), optional
        Score of every candidate, NaN where a line is not one; None for rules without scores.
    forecast : Forecast
        What was predicted before the line was measured.
    pending : int
        How many lines were chosen before this one from the same inference, where lines are chosen in blocks.
        ``forecast.expected`` counts them as measured already; the posterior mean does not contain their data.
    """

    line: int
    scores: NDArray[np.float64] | None = None
    forecast: Forecast = field(default_factory=Forecast)
    pending: int = 0

    @property
    def score(self) -> float:
        """Score of the chosen line, NaN without scores."""
        return float("nan") if self.scores is None else float(self.scores[self.line])


@briefly
@dataclass(frozen=True)
class DesignStep:
    """Record of a decision: the choice, the predicted and measured energy of its line, and the cost.

    Parameters
    ----------
    choice : Choice
        What was chosen and why.
    predicted_energy, actual_energy : float
        Energy of the line's innovation |y - X_* mean|^2 summed over readout, coils and slices, noise included: as the
        strategy predicted it (`Forecast.predicted` at the start of the block), and measured. NaN for rules without a
        posterior; predicted is NaN as well while a strategy cannot correct the posterior yet.
    converged : bool
        Whether the inner problem and the variances of the last outer loop met their tolerances.
    matvecs : int
        Multiplications with A, per vector, summed over slices.
    seconds : float
        Wall time.
    """

    choice: Choice
    predicted_energy: float = float("nan")
    actual_energy: float = float("nan")
    converged: bool = True
    matvecs: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> int:
        """Chosen line."""
        return self.choice.line

    @property
    def found(self) -> bool:
        """Whether the candidate was predicted, and then measured.

        Of lines and samples their energy is predicted; of shots, which overlap, only the information that they bring.
        """
        of_energy = isfinite(self.forecast.image_energy)  # a posterior has expected energies of candidates
        return isfinite(self.actual_energy if of_energy else self.forecast.information)

    @property
    def forecast(self) -> Forecast:
        """The prediction made before the line was measured."""
        return self.choice.forecast

    @property
    def predicted_error(self) -> float:
        """`Forecast.predicted_error` before the line."""
        return self.forecast.predicted_error


@briefly
@dataclass(frozen=True)
class DesignTrace:
    """Start lines and decisions.

    Parameters
    ----------
    strategy : str
        Name of the rule.
    n_lines : int
        Lines of the grid, or candidates of whatever else is measured one by one.
    start : tuple of int
        Lines measured before the first decision, in order.
    steps : tuple of DesignStep
        Decisions in order.
    declined : DesignStep, optional
        Decision at which a rule ended the design: its line was not measured, its predictions are about all others.
    closing : Forecast, optional
        What is predicted after the last line, where a design was run to its end and the prediction was requested.
    """

    strategy: str
    n_lines: int
    start: tuple[int, ...]
    steps: tuple[DesignStep, ...] = ()
    declined: DesignStep | None = None
    closing: Forecast | None = None

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines in acquisition order."""
        return (*self.start, *(step.line for step in self.steps))

    def mask(self, count: int | None = None) -> NDArray[np.bool_]:
        """Bool (ky,) of the first ``count`` lines (all without a count)."""
        return np.isin(np.arange(self.n_lines), self.lines[:count])

    @property
    def innovation_energies(self) -> dict[int, float]:
        """Measured energy of each chosen line's innovation; lines that were chosen without a prediction are left out.

        It says how much a line added to what the image so far had predicted.
        """
        energies = {step.line: step.actual_energy for step in self.steps}
        return {line: energy for line, energy in energies.items() if np.isfinite(energy)}

    @property
    def found(self) -> int:
        """How many of the chosen candidates had been predicted before they were measured."""
        return sum(step.found for step in self.steps)

    def forecast(self, count: int) -> Forecast | None:
        """The forecast when ``count`` lines had been measured; None if there was none.

        Within a block of lines nothing is: its mean is that of the block's start. Nothing is predicted of the start
        either, before any prediction could be tested (`Forecast.tested`).
        """
        if count == len(self.lines):
            forecast = self.closing if self.declined is None else self.declined.forecast
        else:
            at = count - len(self.start)
            known = 0 <= at < len(self.steps) and self.steps[at].choice.pending == 0
            forecast = self.steps[at].forecast if known else None
        if forecast is None or forecast.predicted is None or forecast.tested == 0 or not forecast.image_energy > 0:
            return None
        return forecast

    def block_start(self, index: int) -> DesignStep:
        """The step whose posterior the block of step ``index`` was chosen from."""
        return self.steps[max(index - self.steps[index].choice.pending, 0)]

    @property
    def converged(self) -> bool:
        """True where every step was."""
        return all(step.converged for step in self.steps)


FAR = 0.75
"""Below this part of what noise is predicted to leave an error is out of reach: the prediction is seldom that wrong."""
NEAR = 1.2
"""The image is reconstructed to check its error once that is predicted to be at most this many times the wanted one."""
FEWEST_TESTED = Kind.fewest_tested
"""Lines that a design must have predicted and then measured before what it predicts can end it."""
LOOK_AT_MOST, LOOK_AT_LEAST = 5, 10
"""Intervals of regions are looked at every fifth line at most, and every tenth at least."""
AT_REST = 0.02
"""Predictions that fell by less than this share over the last lines (`Forecast.recent_fall`) have come to rest."""


@dataclass(frozen=True)
class StopFact:
    """The number that a stop rule compares with its limit.

    Parameters
    ----------
    code : {"error", "out of reach", "gain", "interval", "length"}
        The relative error of the image; the same, where the wanted error cannot be reached; the information of the
        best candidate in nats; or half of the length of the longest interval of a region, relative to its brightness
        or as it is.
    value, limit : float
        Predicted, NaN where it is not known, and wanted.
    least : float
        Out of reach: the error predicted after all candidates are measured.
    tested, fewest : float, int
        How many predictions have been compared with measurements, and how many must be before the rule may end the
        design; ``fewest`` is 0 where that does not matter.
    """

    code: Literal["error", "out of reach", "gain", "interval", "length"]
    value: float
    limit: float
    least: float = float("nan")
    tested: float = float("nan")
    fewest: int = 0


@dataclass(frozen=True)
class Within:
    """How near to the truth an interval has to be, on either side.

    Parameters
    ----------
    length : float
        Half of the length of the interval.
    relative : bool
        Whether it is a fraction of the brightness of the region, of a difference that of the brighter one; else it is
        in the units of the image.

    Raises
    ------
    InputError
        For a length that is not above zero, or a fraction that is not below 1.
    """

    length: float
    relative: bool = True

    def __post_init__(self) -> None:
        require_numbers(until_interval=self.length)
        if not 0 < self.length < (1 if self.relative else float("inf")):
            got = f"{self.length:g}" + (" of the region's brightness" if self.relative else "")
            wanted = "more than 0, and as a fraction less than 1"
            cure = "Two per cent on either side are 2% or 0.02; a length in the units of the image is '3.5 units'."
            raise InputError("until_interval", got, wanted, cure)

    def lengths(self, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Half of the length of every interval, (region,), to compare with ``length``."""
        _, halves, brightness = intervals.T
        if not self.relative:
            return np.asarray(halves)
        return np.divide(halves, brightness, out=np.full(len(halves), np.inf), where=brightness > 0)

    def longest(self, forecast: Forecast) -> float:
        """Half of the length of the longest interval; NaN where there is none."""
        return float("nan") if forecast.intervals is None else float(self.lengths(forecast.intervals).max())


@dataclass(frozen=True)
class StopRule:
    """Ends a design once it has enough lines: when one of its limits is met; without a limit never.

    After every line a design predicts the error of its own posterior, by the energies of innovations. The image that
    is made of the lines has another error, which can be predicted better, at the price of the image
    (`Forecast.image_error`). With ``by_image`` it alone is compared with ``error``. It is computed when the design's
    own prediction, times the ratio of the two at the last look, has nearly fallen to what is wanted, whenever coil maps
    were estimated anew, and at least every tenth line.

    Noise leaves an error however many lines are measured. A design with a wanted ``error`` also ends where that floor,
    as it is predicted, is far above it; and where the floor is above it and the predicted error has not fallen for many
    lines. The floor itself is a prediction, which later lines may correct by some ten per cent.

    Parameters
    ----------
    error : float, optional
        Wanted relative L2 error of the image: norm of the error over norm of the image, several slices together.
    gain : float, optional
        Information in nats (`Forecast.information`), summed over slices, below which the best remaining line is not
        worth measuring. For strategies that do not compute it, it is the most that a line of the predicted energy can
        hold, so that equal gains do not mean the same for all strategies.
    fewest : int
        Lines, or other candidates, that must have been predicted and then measured (`Forecast.tested`) before either
        limit may end the design.
    by_image : bool
        Whether `Forecast.image_error` decides, instead of `Forecast.predicted_error`.
    ends : callable, optional
        (forecast) -> whether the design ends now, whatever the limits.
    within : Within, optional
        How near to the truth all intervals of regions have to be (`Forecast.intervals`), for which the image is made
        with draws. It is looked at as soon as predictions were tested, and then where intervals that fall as the
        predicted error does are nearly short enough, every fifth line at most and every tenth at least.

    Raises
    ------
    InputError
        For an error that is not between zero and one, that of an empty image, a gain that is not above zero, or a
        number below 0.

    Notes
    -----
    Neither prediction of the error is a bound; the strategy's, of a posterior without correction, is usually too small.
    """

    error: float | None = None
    gain: float | None = None
    _: KW_ONLY
    fewest: int = FEWEST_TESTED
    by_image: bool = False
    ends: Callable[[Forecast], bool] | None = None
    within: Within | None = None

    def __post_init__(self) -> None:
        for name, limit in (("until_error", self.error), ("until_gain", self.gain)):
            if limit is not None:
                require_numbers(**{name: limit})
                if not limit > 0:
                    raise InputError(name, repr(limit), "more than zero")
        require_counts(fewest=self.fewest, least=0)
        if self.error is not None and not self.error < 1:
            wanted, cure = "less than 1, the relative error of an empty image", "Five per cent are 0.05."
            raise InputError("until_error", repr(self.error), wanted, cure)

    @property
    def looks_ahead(self) -> bool:
        """Whether `Forecast.least_error` is needed."""
        return self.error is not None

    def needs_image_error(self, forecast: Forecast, ratio: float) -> bool:
        """Whether the rule needs `Forecast.image_error`, for which the image is reconstructed.

        Where the prediction, times ``ratio``, would end the design, or there is no prediction. ``ratio`` is that error
        over the predicted one when both were last known; 0 requests it in any case.
        """
        if self.error is None or not self.by_image or not self.tested(forecast):
            return False
        predicted = forecast.predicted_error
        return isnan(predicted) or predicted * ratio <= NEAR * self.error or self._beyond(_least(forecast), forecast)

    def needs_intervals(self, forecast: Forecast, last: Forecast | None, lines: float) -> bool:
        """Whether the rule needs `Forecast.intervals`.

        Parameters
        ----------
        forecast : Forecast
            Of now.
        last : Forecast or None
            When they were known last.
        lines : float
            Lines since then, or since the start; of other candidates as many as make lines.
        """
        if self.within is None or not self.tested(forecast):
            return False
        if last is None:  # nor are intervals right where no line could be held back
            return self.fewest > 0 or lines >= LOOK_AT_MOST
        if lines >= LOOK_AT_LEAST:
            return True
        fallen = self.within.longest(last) * forecast.predicted_error / last.predicted_error
        return lines >= LOOK_AT_MOST and not fallen > NEAR * self.within.length

    def __call__(self, forecast: Forecast) -> bool:
        """Whether the design ends now, before the line that is decided on is measured."""
        if self.ends is not None and self.ends(forecast):
            return True
        met = self._error_reached(forecast) or self._hopeless(forecast) or self._gain_reached(forecast)
        return (met or self._known(forecast)) and self.tested(forecast)

    def facts(self, forecast: Forecast) -> tuple[StopFact, ...]:
        """The numbers that the rule compares with its limits: those of the limits that are met; of all if none is."""
        tested, each = self.tested(forecast), list[tuple[StopFact, bool]]()
        untested: dict[str, Any] = {} if tested else {"tested": forecast.tested, "fewest": self.fewest}
        if self.error is not None:
            reached, error = self._error_reached(forecast), self._error(forecast)
            if tested and self._hopeless(forecast):
                each.append((StopFact("out of reach", error, self.error, self._floor(forecast)), True))
            else:
                each.append((StopFact("error", error, self.error, **(untested if reached else {})), reached))
        if self.gain is not None:
            reached = self._gain_reached(forecast)
            fact = StopFact("gain", forecast.information, self.gain, **(untested if reached else {}))
            each.append((fact, reached))
        if self.within is not None:
            known, code = self._known(forecast), "interval" if self.within.relative else "length"
            longest = self.within.longest(forecast)
            fact = StopFact(code, longest, self.within.length, **(untested if known else {}))  # type: ignore[arg-type]
            each.append((fact, known))
        met = [fact for fact, reached in each if tested and reached]
        return tuple(met or [fact for fact, _ in each])

    def out_of_reach(self, forecast: Forecast) -> bool:
        """Whether even the complete scan is predicted to have a larger error than wanted, and no other limit is met."""
        other = self._gain_reached(forecast) or self._known(forecast)
        return self.tested(forecast) and self._hopeless(forecast) and not other

    def tested(self, forecast: Forecast) -> bool:
        """Whether enough predictions have been compared with measurements; true if they were not counted."""
        return not forecast.tested < self.fewest

    def _error(self, forecast: Forecast) -> float:
        return forecast.image_error if self.by_image else forecast.predicted_error

    def _floor(self, forecast: Forecast) -> float:
        """`_least`, as much smaller as the image's error is than that of the design; NaN where it is not known."""
        if not self.by_image:
            return _least(forecast)
        return float(_least(forecast) * np.minimum(1.0, forecast.image_error / forecast.predicted_error))

    def _error_reached(self, forecast: Forecast) -> bool:
        return self.error is not None and self._error(forecast) <= self.error

    def _gain_reached(self, forecast: Forecast) -> bool:
        return self.gain is not None and forecast.information < self.gain

    def _known(self, forecast: Forecast) -> bool:
        """Whether all intervals are as short as they are wanted."""
        return self.within is not None and self.within.longest(forecast) <= self.within.length

    def _hopeless(self, forecast: Forecast) -> bool:
        if self.error is None or self._error_reached(forecast):
            return False
        return self._beyond(self._floor(forecast), forecast)

    def _beyond(self, least: float, forecast: Forecast) -> bool:
        """Whether the wanted error is below what every line would leave, far below or with predictions at rest."""
        wanted, at_rest = float(self.error or 0), forecast.recent_fall < AT_REST
        return wanted < FAR * least or (at_rest and wanted < least)


def _least(forecast: Forecast) -> float:
    """The error that all candidates would leave, at most the one predicted now."""
    least, predicted = forecast.least_error, forecast.predicted_error
    return least if isnan(predicted) else min(least, predicted)


def lines_expected(
    trace: DesignTrace, rule: StopRule | None, most: int, least: int = 0, assumed: int | None = None
) -> int:
    """Expected number of lines of a design, extrapolated from the numbers that its rule looks at.

    Errors are taken to fall as one over the number of lines, and what is known of the image at some looks to fall as
    they do. While lines of a planned mask are missing they are larger than those of a whole mask of as many lines, so
    that the number, which begins with ``assumed``, by default with ``most``, only falls until so many are measured. It
    is ``most`` at most, and ``least`` at least, before which no rule ends the design (`Amount`).
    """
    if rule is None:
        return max(most, least)
    counted = list(enumerate((step.forecast for step in trace.steps), len(trace.start)))
    expected, tested = [most], rule.tested

    def reached(limit: float, values: Sequence[float], ratio: float) -> int:
        """As the predicted error falls, times the ratio of values to it at the last look."""
        total = most if assumed is None else min(assumed, most)
        for (count, each), value in zip(counted, values, strict=True):
            error = each.predicted_error
            ratio = value / error if np.isfinite(value) and error > 0 else ratio
            found = count * error * ratio / limit
            if tested(each) and np.isfinite(found):
                found = max(count + 1, int(np.ceil(found - 1e-6)))
                total = found if count >= total else min(total, found)
        return total

    if rule.error is not None:
        looks = [each.image_error if rule.by_image else each.predicted_error for _, each in counted]
        expected.append(reached(rule.error, looks, 1.0))
    if rule.within is not None:
        expected.append(reached(rule.within.length, [rule.within.longest(each) for _, each in counted], float("nan")))
    if rule.gain is not None:
        expected.append(expected_total([(count, each.information) for count, each in counted], rule.gain, most))
    return max(min(expected), least)


def expected_total(falling: Sequence[tuple[int, float]], limit: float, most: int) -> int:
    """The number at which something that falls reaches a limit, if it goes on as in the latter half of its numbers.

    Its logarithm is then a line in that of the number. ``most`` where it has not fallen, or is not known twice.
    """
    known = [(number, value) for number, value in falling if value > 0 and np.isfinite(value)]
    half = np.log([(number, value) for number, value in known[len(known) // 2 :]])
    if len(half) < 2:
        return most
    slope, height = np.polyfit(half[:, 0], half[:, 1], 1)
    if slope >= 0:
        return most
    reached = np.exp(min((np.log(limit) - height) / slope, np.log(most)))
    return min(most, max(int(np.ceil(reached - 1e-6)), known[-1][0] + 1))
