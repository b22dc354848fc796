"""When a design has enough lines: what is left to gain, or the error that is left, is small enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mri_design.design.trace import DesignStep
from mri_design.errors import InputError, require_numbers

__all__ = ["AnyOf", "NamedRule", "UntilError", "UntilGain"]


class NamedRule(Protocol):
    """A rule for `DesignEngine.run` that can say why."""

    def __call__(self, step: DesignStep) -> bool:
        """Whether to end the design without the line of this decision."""
        ...

    def reason(self, step: DesignStep) -> str:
        """How the decision stands to the rule, in words."""
        ...


@dataclass(frozen=True)
class UntilError:
    """Enough lines once the predicted relative L2 error of the image is small.

    Parameters
    ----------
    error : float
        Norm of the error over norm of the image, several slices together.

    Raises
    ------
    InputError
        For an error that is not between zero and one, that of an empty image.

    Notes
    -----
    The prediction is the strategy's (`DesignStep.predicted_error`), not a bound: a posterior without correction
    promises too much.
    """

    error: float

    def __post_init__(self) -> None:
        _require_positive("error to stop at", self.error)
        if not self.error < 1:
            raise InputError(
                field="error to stop at",
                got=repr(self.error),
                wanted="less than 1, the relative error of an empty image",
                cure="Five per cent are 0.05.",
            )

    def __call__(self, step: DesignStep) -> bool:
        return step.predicted_error <= self.error

    def reason(self, step: DesignStep) -> str:
        """Predicted against wanted error, in per cent."""
        return _compared("predicted error", 100 * step.predicted_error, 100 * self.error, "%", self(step), "<=")


@dataclass(frozen=True)
class UntilGain:
    """Enough lines once the best one would tell little.

    Parameters
    ----------
    gain : float
        Information in nats (`DesignStep.information`); several slices are added up. Strategies that do not compute it
        tell the most that a line can of the energy that they predict for it, so that equal gains do not mean the same
        for all strategies.

    Raises
    ------
    InputError
        For a gain that is not above zero.
    """

    gain: float

    def __post_init__(self) -> None:
        _require_positive("gain to stop at", self.gain)

    def __call__(self, step: DesignStep) -> bool:
        return step.information < self.gain

    def reason(self, step: DesignStep) -> str:
        """What the best line would tell against what it should."""
        return _compared("gain of the best line", step.information, self.gain, "nats", self(step), "<")


@dataclass(frozen=True)
class AnyOf:
    """Enough lines once one of several rules says so."""

    rules: tuple[NamedRule, ...]

    def __call__(self, step: DesignStep) -> bool:
        return any(rule(step) for rule in self.rules)

    def reason(self, step: DesignStep) -> str:
        """Those rules that are met; all where none is."""
        met = [rule for rule in self.rules if rule(step)]
        return " and ".join(rule.reason(step) for rule in met or self.rules)


def _require_positive(name: str, value: float) -> None:
    require_numbers(**{name: value})
    if not value > 0:
        raise InputError(field=name, got=repr(value), wanted="more than zero")


def _compared(what: str, found: float, limit: float, unit: str, met: bool, sign: str) -> str:
    against = sign if met else ">" if sign == "<=" else ">="
    return f"{what} {_rounded(found, limit, met)} {unit} {against} {limit:g} {unit}"


def _rounded(found: float, limit: float, met: bool) -> str:
    """As many digits as show on which side of the limit it is, three at least."""
    for digits in range(3, 17):
        text = f"{found:.{digits}g}"
        if text != f"{limit:.{digits}g}" or found == limit:
            break
    return text
