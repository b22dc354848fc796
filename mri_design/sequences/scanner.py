"""Limits of a scanner's gradients and pulses, dead times and rasters; and settings of a sequence, within bounds."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from mri_design import errors

GAMMA = 42.576e6
"""Gyromagnetic ratio of the proton over 2 pi, Hz/T; the number that Pulseq files are made with."""
RASTER = 1e-5
"""Gradients and blocks change at multiples of it, seconds."""
_MAX_BYTES = 65536
BEHIND = {
    "max_gradient": ("scanner", "bandwidth", "resolution", "field_of_view", "slice_thickness"),
    "max_slew": ("scanner",),
    "max_b1": ("scanner", "flip_angle"),
}
"""Arguments behind what a scanner is too weak for."""


def require_samples(count: int, most: int) -> None:
    """Refuse readouts of fewer than four samples, or more than ``most``."""
    if isinstance(count, bool) or not isinstance(count, Integral) or not 4 <= count <= most:
        wanted = f"a whole number, 4 to {most}"
        raise errors.InputError("samples of a readout", errors.described(count), wanted, behind=("resolution",))


_RANGES = {
    "max_gradient": (1e-3, 1.0),
    "max_slew": (1.0, 5000.0),
    "max_b1": (1e-7, 1e-3),
    "rf_dead_time": (0.0, 1e-2),
    "rf_ringdown_time": (0.0, 1e-2),
    "adc_dead_time": (0.0, 1e-2),
}


@dataclass(frozen=True, kw_only=True)
class Scanner:
    """Limits of one scanner, in SI units.

    Parameters
    ----------
    name : str
        For people.
    max_gradient : float
        T/m, along one axis.
    max_slew : float
        T/m/s, along one axis.
    max_b1 : float
        Peak of radio-frequency pulses, T.
    rf_dead_time, rf_ringdown_time : float
        Seconds that must pass in a block before and after a pulse.
    adc_dead_time : float
        Seconds that must pass in a block before and after samples are taken.
    samples_divisor : int
        The number of samples of a readout must be a multiple of it.

    Raises
    ------
    InputError
        For a limit that is no number, or that no scanner has.
    """

    name: str
    max_gradient: float
    max_slew: float
    max_b1: float
    rf_dead_time: float
    rf_ringdown_time: float
    adc_dead_time: float
    samples_divisor: int = 1

    def __post_init__(self) -> None:
        for field, (least, most) in _RANGES.items():
            errors.require_numbers(least=least, most=most, **{f"{self.name}: {field}": getattr(self, field)})
        errors.require_counts(least=1, most=64, **{f"{self.name}: samples_divisor": self.samples_divisor})

    def opts(self, share: float = 1.0) -> Any:
        """The limits for pypulseq, with a fraction of the gradient and slew limits.

        Raises
        ------
        MissingPackageError
            Where pypulseq is not installed.
        """
        return errors.optional_package("pypulseq", "export").Opts(
            max_grad=share * self.max_gradient * GAMMA,
            max_slew=share * self.max_slew * GAMMA,
            rf_dead_time=self.rf_dead_time,
            rf_ringdown_time=self.rf_ringdown_time,
            adc_dead_time=self.adc_dead_time,
            gamma=GAMMA,
        )


def shipped_scanners() -> dict[str, dict[str, Any]]:
    """Limits of the scanners that come with the package, by their names."""
    return tomllib.loads(resources.files("mri_design.sequences").joinpath("scanners.toml").read_text("utf-8"))


def load_scanner(name: str) -> Scanner:
    """A scanner by its name, or the only one of a TOML file in the form of the shipped ``scanners.toml``.

    Parameters
    ----------
    name : str
        One of `shipped_scanners`, or a path that ends in ``.toml``.

    Raises
    ------
    UsageError
        For an unknown name.
    InputError
        For a file that cannot be read, holds another number of scanners than one, or describes something else than a
        scanner's limits.
    """
    if not name.endswith(".toml"):
        known = shipped_scanners()
        if name not in known:
            raise errors.UnknownNameError("scanner", name, (*known, "FILE.toml"))
        return _scanner(name, known[name])
    path = Path(name)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise errors.InputError(name, f"{path.stat().st_size} bytes", f"at most {_MAX_BYTES}")
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise errors.InputError(name, reason, "a TOML file with one scanner") from error
    if len(tables) != 1 or not all(isinstance(table, dict) for table in tables.values()):
        raise errors.InputError(name, f"{len(tables)} entries", "one table, [NAME], with a scanner's limits")
    ((own, table),) = tables.items()
    return _scanner(own, table)


def _scanner(name: str, table: dict[str, Any]) -> Scanner:
    known = [field.name for field in fields(Scanner) if field.name != "name"]
    unknown = [key for key in table if key not in known]
    if unknown:
        cure = errors.did_you_mean(unknown[0], known)
        raise errors.InputError(f"{name}: {unknown[0]}", "unknown limit", f"some of: {', '.join(known)}", cure)
    missing = [key for key in known if key not in table and key != "samples_divisor"]
    if missing:
        raise errors.InputError(f"{name}: {missing[0]}", "nothing", "a number, in SI units")
    return Scanner(name=name, **table)


SequenceKind = Literal["gre", "tse"]
KINDS = ("gre", "tse")
"""Gradient echoes, one line after each excitation; trains of spin echoes (turbo spin echo)."""
_MOST_SAMPLES = 8192
"""That receivers take at once."""


@dataclass(frozen=True, kw_only=True)
class SequenceSettings:
    """A sequence of one slice, in SI units; angles in degrees.

    Parameters
    ----------
    kind : {"gre", "tse"}
        Gradient echoes or trains of spin echoes.
    field_of_view : tuple of float
        Along phase encoding and readout (ky, kx), metres.
    samples : int
        Samples of a readout, without oversampling.
    echo_time : float
        Seconds from the middle of the excitation to the sample at the centre of the readout. Of ``tse`` it is the time
        between echoes; the effective echo time is that of the echo which measures the zero frequency.
    repetition_time : float
        Seconds between excitations.
    flip_angle : float
        Degrees: of the excitation, or of the refocusing pulses of ``tse``, whose excitation has 90.
    bandwidth : float
        Hz for each pixel of the readout: one over the time in which a line is sampled.
    slice_thickness : float
        Metres.
    dummies : int
        Excitations at the beginning without measurement.
    rf_spoiling : float
        Increment of the phase of excitations, degrees, which grows by it each time (``gre`` only); 0 is none.

    Raises
    ------
    InputError
        For a value out of its range.
    """

    kind: SequenceKind
    field_of_view: tuple[float, float]
    samples: int
    echo_time: float
    repetition_time: float
    flip_angle: float
    bandwidth: float
    slice_thickness: float = 5e-3
    dummies: int = 0
    rf_spoiling: float = 117.0

    def __post_init__(self) -> None:
        errors.require_choice(KINDS, sequence=self.kind)
        require_samples(self.samples, _MOST_SAMPLES)
        errors.require_counts(least=0, most=10_000, **{"dummies": self.dummies})
        for extent in self.field_of_view:
            _within("field of view", extent, 0.005, 1.0, "m")
        _within("slice thickness", self.slice_thickness, 0.0005, 0.5, "m")
        _within("echo time", self.echo_time, 0.0005, 1.0, "s")
        _within("repetition time", self.repetition_time, 0.001, 60.0, "s")
        _within("flip angle", self.flip_angle, 0.5, 90.0 if self.kind == "gre" else 180.0, "degrees")
        _within("bandwidth", self.bandwidth, 10.0, 20_000.0, "Hz for each pixel")
        _within("RF spoiling", self.rf_spoiling, 0.0, 360.0, "degrees")

    def spoiling_phase(self, number: int) -> float:
        """Phase of an excitation of ``gre``, counted from 0, radians."""
        return math.radians(self.rf_spoiling * number * (number + 1) / 2 % 360)


def _within(field: str, value: object, least: float, most: float, unit: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and least <= value <= most):  # type: ignore[operator]
        cure = "Lengths are in metres." if unit == "m" else "Times are in seconds." if unit == "s" else ""
        raise errors.InputError(field, errors.described(value), f"{least:g} to {most:g} {unit}", cure)
