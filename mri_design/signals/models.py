"""Signal models: what echoes, inversions, flip angles or b values make of one pixel.

A signal is S(t) = sum_j a_j f_j(t; theta). Its amplitudes a_j enter linearly, theta does not, and what is mapped is the
first of theta, or what the model makes of both. A model is a function and a line in the registry:

================  ==========================================  =====================================
``t2``            a exp(-t / T2)                              spin echoes, milliseconds
``t2-star``       a exp(-t / T2*)                             gradient echoes, milliseconds
``t1-inversion``  a + b exp(-t / T1)                          inversion times, milliseconds
``t1-flip:TR``    a sin(t) (1 - E) / (1 - E cos(t))           flip angles, degrees; E = exp(-TR / T1)
``adc``           a exp(-t ADC / 1000)                        b values, s/mm^2
``water-fat:HZ``  e^(i (phi + w psi)) (W + F e^(i w HZ))      echo times, milliseconds; complex; w = 2 pi t
================  ==========================================  =====================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, UnknownNameError, described, number_array, positive_number
from mri_design.registry import SIGNAL_MODELS, full_name, split_name

Values = NDArray[Any]
Basis = Callable[[Values, Values], Values]
"""(times, shape (echo,); theta, shape (..., parameter)) -> f, shape (..., echo, amplitude)."""


@dataclass(frozen=True)
class Axis:
    """What a signal is measured over.

    Parameters
    ----------
    name : str
        Of the values, as "echo_times": also the option that gives them.
    units : mapping of str to float
        Units that it may be given in, in that of the model, which is the first.
    plausible : float
        The largest value is at least this, or else another unit was meant.
    ordered : bool
        Whether values have to increase.
    """

    name: str
    units: dict[str, float]
    plausible: float
    ordered: bool = False


ECHO_TIMES = Axis("echo_times", {"ms": 1.0, "us": 1e-3, "s": 1e3}, 1.0, ordered=True)
INVERSION_TIMES = replace(ECHO_TIMES, name="inversion_times")
ANGLES = Axis("flip_angles", {"deg": 1.0, "rad": 180 / np.pi}, 1.6)
B_VALUES = Axis("b_values", {"s/mm2": 1.0, "ms/um2": 1e3}, 10.0)
_VALUE = re.compile(r"\s*([-+.0-9eE]+)\s*([a-z][a-z0-9/]*)?\s*")


@briefly
@dataclass(frozen=True)
class SignalModel:
    """A signal S(t) = sum_j a_j f_j(t; theta) of one pixel.

    Parameters
    ----------
    name : str
        Of the quantity that is mapped, as "T2".
    unit : str
        Its unit.
    basis : callable
        (times, shape (echo,); theta, shape (..., parameter)) -> f, shape (..., echo, amplitude). Amplitudes are real;
        to a real basis of a complex signal they are complex.
    limits : tuple of (float, float)
        Between which every parameter is searched; those above zero on a logarithmic scale. An estimate at a limit
        counts as not identified.
    axis : Axis
        Of the times, flip angles or b values.
    complex_only : bool
        Whether moduli do not do, because the basis is complex.
    quantity : callable, optional
        (amplitudes, theta) -> the quantity; by default the first of theta.
    """

    name: str
    unit: str
    basis: Basis
    limits: tuple[tuple[float, float], ...]
    axis: Axis = ECHO_TIMES
    complex_only: bool = False
    quantity: Callable[[Values, Values], Values] | None = None

    @property
    def positive(self) -> bool:
        """Whether the quantity is a parameter above zero."""
        return self.quantity is None and self.limits[0][0] > 0

    def times(self, given: object, count: int) -> NDArray[np.float64]:
        """Times (flip angles, b values) in the unit of the model.

        Parameters
        ----------
        given : str or sequence of float
            Numbers, in the unit of the model, or a text of numbers between commas, each with a unit or none; one at
            the end alone is that of all.
        count : int
            How many there have to be.

        Raises
        ------
        InputError
            For another number of them, text, an unknown unit, and values that another unit would explain, that are
            all the same, or that do not increase where they have to.
        """
        name, units, unit = self.axis.name, self.axis.units, next(iter(self.axis.units))
        wanted = f"{count} numbers, one for each image, in {unit}" + f" (or with a unit: {', '.join(units)})"
        values, named = given, False
        if isinstance(given, str):
            parts = [_VALUE.fullmatch(part) for part in given.split(",")]
            found = [part[2] for part in parts if part]
            named = any(found)
            said = [found[-1]] * len(found) if found and not any(found[:-1]) else found
            if len(found) < len(parts) or (named and None in said) or not {one or unit for one in said} <= set(units):
                raise InputError(name, repr(given), wanted)
            try:
                values = [float(part[1]) * units[one or unit] for part, one in zip(parts, said, strict=True) if part]
            except ValueError as error:
                raise InputError(name, repr(given), wanted) from error
        times = number_array(name, values, wanted=wanted, shape=(None,), kind="real").astype(float)
        if len(times) != count:
            raise InputError(name, f"{len(times)} of them", wanted)
        if (times < 0).any() or (self.axis.ordered and (np.diff(times) <= 0).any()):
            raise InputError(name, f"{times.tolist()}", "values from 0 up that increase")
        if np.ptp(times) == 0:
            raise InputError(name, f"{times.tolist()}", "values that differ")
        if times.max() < self.axis.plausible and not named:
            cure = f"If they are in {list(units)[-1]}, write the unit behind them."
            raise InputError(name, f"{times.max():g} {unit} at most", f"values in {unit}", cure)
        return times


def signal_model(given: str | SignalModel) -> SignalModel:
    """The model of a name, as ``T2``, or ``t1-flip:15`` with the number that it needs.

    Raises
    ------
    InputError
        For an unknown name, and a number that is missing, is none, or is not needed.
    """
    if isinstance(given, SignalModel):
        return given
    if not isinstance(given, str):
        raise InputError("fit", described(given), "the name of a signal model, or a SignalModel")
    name, setting = split_name(full_name(given.lower(), SIGNAL_MODELS))
    if name not in SIGNAL_MODELS:
        raise UnknownNameError("signal model", given, SIGNAL_MODELS)
    try:
        made = SIGNAL_MODELS[name](*([] if setting is None else [float(setting)]))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise error.about("fit") from error
        wanted = "the name of a model, and behind a colon the number that it takes, if any"
        cure = "t1-flip:TR takes the repetition time in ms, water-fat:HZ the frequency of fat from water."
        raise InputError("fit", repr(given), wanted, cure) from error
    if not isinstance(made, SignalModel):
        raise InputError("fit", described(made), "a SignalModel")
    return made


def _decay(times: Values, theta: Values) -> Values:
    return np.asarray(np.exp(-times / theta[..., :1])[..., np.newaxis])


def t2() -> SignalModel:
    """The decay of spin echoes."""
    return SignalModel("T2", "ms", _decay, ((0.1, 10000.0),))


def t2_star() -> SignalModel:
    """The decay of gradient echoes."""
    return SignalModel("T2*", "ms", _decay, ((0.1, 10000.0),))


def t1_inversion() -> SignalModel:
    """Recovery after an inversion of any efficiency, over inversion times."""

    def basis(times: Values, theta: Values) -> Values:
        decay = _decay(times, theta)
        return np.concatenate([np.ones_like(decay), decay], axis=-1)

    return SignalModel("T1", "ms", basis, ((20.0, 10000.0),), INVERSION_TIMES)


def t1_flip(repetition_time: float) -> SignalModel:
    """The steady state of spoiled gradient echoes with this repetition time in milliseconds, over flip angles."""
    positive_number("repetition time", repetition_time)

    def basis(angles: Values, theta: Values) -> Values:
        left, turned = np.exp(-repetition_time / theta[..., :1]), np.deg2rad(angles)
        return np.asarray((np.sin(turned) * (1 - left) / (1 - left * np.cos(turned)))[..., np.newaxis])

    return SignalModel("T1", "ms", basis, ((20.0, 10000.0),), ANGLES)


def adc() -> SignalModel:
    """The apparent diffusion coefficient, in um^2/ms (1e-3 mm^2/s), over b values."""
    return SignalModel("ADC", "um2/ms", lambda b, theta: _decay(b, 1e3 / theta), ((0.01, 20.0),), B_VALUES)


def water_fat(shift: float) -> SignalModel:
    """The fat fraction from two or more echoes; ``shift`` is the frequency of fat from water, as -434 Hz at 3 T.

    Water and fat share the phase phi at time 0; psi is the field in Hz. Two echoes leave no misfit, and two solutions,
    of which that with the smaller field is taken.
    """

    def basis(times: Values, theta: Values) -> Values:
        turns = 2e-3j * np.pi * times
        common = np.exp(1j * theta[..., 1:2] + turns * theta[..., :1])
        return np.asarray(np.stack([common, common * np.exp(turns * shift)], axis=-1))

    def fraction(amplitudes: Values, theta: Values) -> Values:
        return np.asarray(amplitudes[..., 1] / amplitudes.sum(axis=-1))

    positive_number("frequency of fat", abs(shift))
    limits = ((-abs(shift) / 2, abs(shift) / 2), (-2 * np.pi, 2 * np.pi))
    return SignalModel("fat fraction", "", basis, limits, complex_only=True, quantity=fraction)
