"""A reader of Pulseq files from their text alone: a second one beside pypulseq's, with none of its code.

Only what the package's sequences need is understood: trapezoids, waveforms, pulses with centre and use, samples and
the labels LIN and PAR of the format 1.5; anything else is an error. Numbers in the text are microseconds, nanoseconds
(dwell) and Hz/m.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Table = dict[int, list[str]]


@dataclass(frozen=True)
class Played:
    """Contents of a file.

    Parameters
    ----------
    places : float array, shape (readout, sample, 3)
        Where samples are taken along x, y and z, in cycles per metre.
    labels : mapping of str to list of int
        By the name of a label, its value at every readout.
    gradient, slew : float
        Largest along one axis, Hz/m and Hz/m/s.
    """

    places: NDArray[np.float64]
    labels: Mapping[str, list[int]]
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
    if set(sections) - {
        "VERSION",
        "DEFINITIONS",
        "BLOCKS",
        "RF",
        "TRAP",
        "GRADIENTS",
        "ADC",
        "EXTENSIONS",
        "SHAPES",
        "SIGNATURE",
    }:
        raise ValueError(f"unknown sections {sorted(sections)}")
    raster = float(_definition(sections["DEFINITIONS"], "BlockDurationRaster"))
    pulses, samplings = (_table(sections.get(name, "")) for name in ("RF", "ADC"))
    shapes = _shapes(sections.get("SHAPES", ""))
    gradients = {0: _NONE}
    gradients |= {number: _Gradient.trapezoid(words) for number, words in _table(sections.get("TRAP", "")).items()}
    for number, words in _table(sections.get("GRADIENTS", "")).items():
        gradients[number] = _Gradient.waveform(words, shapes, raster)
    lists, named = _extensions(sections.get("EXTENSIONS", ""))
    place, places, now = np.zeros(3), [], dict[str, int]()
    labels: dict[str, list[int]] = {name: [] for name, _ in named.values()}
    for _, length, rf, gx, gy, gz, adc, extension in (map(int, row.split()) for row in _rows(sections["BLOCKS"])):
        axes = [gradients[number] for number in (gx, gy, gz)]
        now |= dict(named[reference] for reference in lists.get(extension, ()))
        if adc:
            count, dwell, delay = (float(word) for word in samplings[adc][:3])
            times = 1e-6 * delay + 1e-9 * dwell * (np.arange(int(count)) + 0.5)
            places.append(place + np.stack([axis.moment(times) for axis in axes], axis=-1))
            for name, values in labels.items():
                values.append(now[name])
        if rf:
            centre, delay, use = float(pulses[rf][4]), float(pulses[rf][5]), pulses[rf][-1]
            until = np.array([axis.moment(np.array(1e-6 * (centre + delay))) for axis in axes])
            if use not in "er":
                raise ValueError(f"a pulse for {use}")
            place = -until if use == "e" else -(place + until) - until
        place = place + [float(axis.moment(np.array(length * raster))) for axis in axes]
    made = gradients.values()
    return Played(np.array(places), labels, max(one.amplitude for one in made), max(one.slope for one in made))


@dataclass(frozen=True)
class _Gradient:
    """Corners of a gradient in its block, seconds and Hz/m, with straight pieces in between."""

    times: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def trapezoid(cls, words: list[str]) -> _Gradient:
        amplitude, *lengths, delay = (float(word) for word in words)
        times, values = np.cumsum([0.0, *lengths]), amplitude * np.array([0.0, 1.0, 1.0, 0.0])
        apart = np.diff(times, prepend=-1.0) > 0  # a triangle has one corner at its top
        return cls(1e-6 * (delay + times[apart]), values[apart])

    @classmethod
    def waveform(cls, words: list[str], shapes: dict[int, NDArray[np.float64]], raster: float) -> _Gradient:
        amplitude, first, last = (float(word) for word in words[:3])
        shape, timing, delay = (int(word) for word in words[3:])
        values = amplitude * shapes[shape]
        if timing:
            return cls(1e-6 * delay + raster * shapes[timing], values)
        times = raster * np.concatenate([[0.0], np.arange(len(values)) + 0.5, [len(values)]])
        return cls(1e-6 * delay + times, np.concatenate([[first], values, [last]]))

    def moment(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Area until the times ``at`` of the block."""
        t = np.clip(at, self.times[0], self.times[-1])
        lengths = np.diff(self.times)
        until = np.concatenate([[0.0], np.cumsum(lengths * (self.values[1:] + self.values[:-1]) / 2)])
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(lengths) - 1)
        since, slopes = t - self.times[piece], np.diff(self.values) / lengths
        area: NDArray[np.float64] = until[piece] + since * (self.values[piece] + since / 2 * slopes[piece])
        return area

    @property
    def amplitude(self) -> float:
        return float(np.abs(self.values).max())

    @property
    def slope(self) -> float:
        return float(np.abs(np.diff(self.values) / np.diff(self.times)).max())


_NONE = _Gradient(np.array([0.0, 1.0]), np.zeros(2))


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


def _extensions(section: str) -> tuple[dict[int, list[int]], dict[int, tuple[str, int]]]:
    """Labels of every extension list, and the names and values of the labels."""
    lists, _, specified = section.partition("extension LABELSET")
    rows = {number: (int(words[1]), int(words[2])) for number, words in _table(lists).items()}
    found: dict[int, list[int]] = {}
    for number in rows:
        chain, following = [], number
        while following:
            reference, following = rows[following]
            chain.append(reference)
        found[number] = chain
    labels = {}
    for row in _rows(specified)[1:]:
        place, value, name = row.split()
        if name not in ("LIN", "PAR"):
            raise ValueError(f"the label {name}")
        labels[int(place)] = name, int(value)
    return found, labels


def _shapes(section: str) -> dict[int, NDArray[np.float64]]:
    """Shapes by number; a shorter list of numbers than of samples is that of the run lengths of their differences."""
    shapes = {}
    for part in section.split("shape_id ")[1:]:
        head, length, *words = _rows(part)
        count, numbers = int(length.split()[1]), [float(word) for word in words]
        if len(numbers) < count:
            numbers = np.cumsum(_runs(numbers)).tolist()
        if len(numbers) != count:
            raise ValueError(f"shape {head} has {len(numbers)} samples, not {count}")
        shapes[int(head)] = np.array(numbers)
    return shapes


def _runs(numbers: list[float]) -> list[float]:
    """Two equal numbers are followed by how many more of them there are."""
    long: list[float] = []
    at = 0
    while at < len(numbers):
        same = at + 1 < len(numbers) and numbers[at] == numbers[at + 1]
        long += [numbers[at]] * (2 + int(numbers[at + 2]) if same else 1)
        at += 3 if same else 1
    return long
