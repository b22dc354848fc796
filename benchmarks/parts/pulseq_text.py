"""What a Pulseq file plays, read from its text alone: a second opinion beside pypulseq's, with none of its code.

Only what sequences of lines need is understood: trapezoids, pulses with their centre and use, samples and labels of the
format 1.5; anything else is an error. Numbers in the text are microseconds, nanoseconds (dwell) and Hz/m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Played", "played"]

Table = dict[int, list[str]]


@dataclass(frozen=True)
class Played:
    """What comes out of a file.

    Parameters
    ----------
    places : float array, shape (readout, sample, 3)
        Where samples are taken along x, y and z, in cycles per metre.
    lines : list of int
        Label LIN of every readout.
    gradient, slew : float
        Largest along one axis, Hz/m and Hz/m/s.
    """

    places: NDArray[np.float64]
    lines: list[int]
    gradient: float
    slew: float


def played(text: str) -> Played:
    """Play a file block by block.

    Raises
    ------
    ValueError
        For what is not understood.
    """
    sections = dict(_sections(text))
    if set(sections) - {"VERSION", "DEFINITIONS", "BLOCKS", "RF", "TRAP", "ADC", "EXTENSIONS", "SHAPES", "SIGNATURE"}:
        raise ValueError(f"unknown sections {sorted(sections)}")
    raster = float(_definition(sections["DEFINITIONS"], "BlockDurationRaster"))
    pulses, traps, samplings = (_table(sections.get(name, "")) for name in ("RF", "TRAP", "ADC"))
    lists, labels = _extensions(sections.get("EXTENSIONS", ""))
    place, places, lines, line = np.zeros(3), [], [], -1
    for _, length, rf, gx, gy, gz, adc, extension in (map(int, row.split()) for row in _rows(sections["BLOCKS"])):
        axes = [_Trapezoid.of(traps, number) for number in (gx, gy, gz)]
        if extension:
            line = labels[lists[extension]]
        if adc:
            count, dwell, delay = (float(word) for word in samplings[adc][:3])
            times = 1e-6 * delay + 1e-9 * dwell * (np.arange(int(count)) + 0.5)
            places.append(place + np.stack([axis.moment(times) for axis in axes], axis=-1))
            lines.append(line)
        if rf:
            centre, delay, use = float(pulses[rf][4]), float(pulses[rf][5]), pulses[rf][-1]
            until = np.array([axis.moment(np.array(1e-6 * (centre + delay))) for axis in axes])
            if use not in "er":
                raise ValueError(f"a pulse for {use}")
            place = -until if use == "e" else -(place + until) - until
        place = place + [float(axis.moment(np.array(length * raster))) for axis in axes]
    made = [_Trapezoid.of(traps, number) for number in traps]
    return Played(np.array(places), lines, max(abs(trap.amplitude) for trap in made), max(trap.slope for trap in made))


@dataclass(frozen=True)
class _Trapezoid:
    amplitude: float
    rise: float
    flat: float
    fall: float
    delay: float

    @classmethod
    def of(cls, traps: Table, number: int) -> _Trapezoid:
        if not number:
            return cls(0.0, 1.0, 1.0, 1.0, 0.0)
        amplitude, *times = (float(word) for word in traps[number])
        return cls(amplitude, *(1e-6 * time for time in times))

    def moment(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Area until the times ``at`` of the block."""
        t = at - self.delay
        up, on, down = (
            np.clip(t - begin, 0, length)
            for begin, length in ((0, self.rise), (self.rise, self.flat), (self.rise + self.flat, self.fall))
        )
        area: NDArray[np.float64] = self.amplitude * (up**2 / 2 / self.rise + on + down - down**2 / 2 / self.fall)
        return area

    @property
    def slope(self) -> float:
        return abs(self.amplitude) / min(self.rise, self.fall)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("\n[")[1:]:
        name, _, rest = part.partition("]\n")
        yield name, rest


def _rows(section: str) -> list[str]:
    return [line.strip() for line in section.splitlines() if line.strip() and not line.startswith("#")]


def _table(section: str) -> Table:
    return {int(row.split()[0]): row.split()[1:] for row in _rows(section)}


def _definition(section: str, name: str) -> str:
    return next(row.split()[1] for row in _rows(section) if row.split()[0] == name)


def _extensions(section: str) -> tuple[dict[int, int], dict[int, int]]:
    """Extension lists, each of one label, and the values of the labels."""
    lists, _, specified = section.partition("extension LABELSET")
    found = {}
    for number, words in _table(lists).items():
        _, reference, following = map(int, words)
        if following:
            raise ValueError("a list of several extensions")
        found[number] = reference
    labels = {}
    for row in _rows(specified)[1:]:
        number, value, name = row.split()
        if name != "LIN":
            raise ValueError(f"the label {name}")
        labels[int(number)] = int(value)
    return found, labels
