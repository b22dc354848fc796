"""What can be said about a k-space line before it is measured: where it lies, what is near it, what the posterior says.

Residual energy depends on more than the posterior's variances: images fill a part of the field of view, so lines next
to measured ones are partly known; their phase is nearly smooth, so lines opposite to measured ones are partly known;
and spectra fall off in their own way, on one side faster than on the other (relaxation along an echo train). These are
the numbers that `Calibrated` weighs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEATURES", "LineKnowledge", "line_features"]

Numbers = NDArray[np.float64]

NEIGHBOURS = 3
"""Lines at distances 1 to this are looked at one by one."""
CENTRE = 3
"""|k| up to which the measured energy is the unit of energies: the image's own scale, with little noise in it."""
KERNEL = 3.0
"""Lines: decay length in |k| of the mean over measured log energies."""
LEAST_SIGNAL = 0.3
"""A measured line's energy counts as at least this share of the noise in it."""
PLACES = (4, 8, 16, 32, 64)
"""|k|, on either side, at which a scan's spectrum may be above or below what all else says; linear in log(1 + |k|)."""

FEATURES = (
    "constant",
    "log(1 + |k|)",
    "log(1 + |k|)^2",
    "log(lines / 16)",
    "log(1 + |k|) log(lines / 16)",
    "-k measured",
    "log(0.1 + smaller gap)",
    "log(0.1 + larger gap)",
    "measured at distance 1",
    "measured at distance 2",
    "measured at distance 3",
    "measured at distance 1 of -k",
    "measured at distance 2 of -k",
    "log(0.1 + smaller gap at -k), 0 where measured",
    "measured at distance 1 of k times of -k",
    "measured at distance 1 of -k, where -k is",
    "measured at distance 1, times log(1 + |k|)",
    "-k measured, times log(1 + |k|)",
    "log expected energy of the error",
    "log measured energy near |k|",
    "log noise energy of a line",
    "sign(k) log(1 + |k|)",
    *(f"k near {sign}{near}" for sign in "+-" for near in PLACES),
)
"""Names, in the order of the columns. Energies are relative to `LineKnowledge.unit`."""


@dataclass(frozen=True)
class LineKnowledge:
    """What is known at one moment of a design.

    Parameters
    ----------
    measured : bool array, shape (ky,)
        Lines so far, those of a block included that are about to be measured.
    energies : float array, shape (ky,)
        Energy of the data on the measured lines, summed over readout, coils and slices, noise included; 0 where there
        are no data yet.
    noise : float
        Expected energy of the noise of one line, in the same sum.
    expected : float array, shape (ky,)
        Energy of the mean's error on every line as the posterior expects it.
    """

    measured: NDArray[np.bool_]
    energies: Numbers
    noise: float
    expected: Numbers

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Measured lines whose data are there."""
        return self.measured & (self.energies > 0)

    @property
    def signal(self) -> Numbers:
        """Measured energies less their noise, kept positive, (ky,); meaningless on lines that were not measured."""
        return np.maximum(self.energies - self.noise, LEAST_SIGNAL * self.noise)

    @property
    def unit(self) -> float:
        """Energy of the image's centre, to measure others in."""
        k = np.arange(len(self.measured)) - len(self.measured) // 2
        near = self.heard & (np.abs(k) <= CENTRE)
        return float(np.sum(self.signal[near if near.any() else self.heard]))


def line_features(known: LineKnowledge, lines: Sequence[int] | NDArray[np.intp] | None = None) -> Numbers:
    """Features of some lines (all without an argument), shape (lines, `FEATURES`)."""
    n = len(known.measured)
    at = np.arange(n) if lines is None else np.asarray(lines, dtype=np.intp)
    opposite = (2 * (n // 2) - at) % n
    k = np.log1p(np.abs(at - n // 2))
    measured = np.flatnonzero(known.measured)
    count = np.full(len(at), np.log(len(measured) / 16))
    smaller, larger = _gaps(measured, at, n)
    smaller_there = _gaps(measured, opposite, n)[0]
    conjugate = known.measured[opposite].astype(float)
    near = [_neighbours(known.measured, at, j) for j in range(1, NEIGHBOURS + 1)]
    near_there = [_neighbours(known.measured, opposite, j) for j in range(1, NEIGHBOURS)]
    unit = np.log(known.unit)
    heard = np.flatnonzero(known.heard)
    closeness = np.exp(-np.abs(np.abs(at - n // 2)[:, None] - np.abs(heard - n // 2)) / KERNEL) + 1e-6
    spectrum = closeness @ np.log(known.signal[heard]) / closeness.sum(axis=1)
    columns = [
        np.ones(len(at)),
        k,
        k**2,
        count,
        k * count,
        conjugate,
        np.log(0.1 + smaller),
        np.log(0.1 + larger),
        *near,
        *near_there,
        np.where(conjugate > 0, 0.0, np.log(0.1 + smaller_there)),
        near[0] * near_there[0],
        conjugate * near_there[0],
        k * near[0],
        k * conjugate,
        np.log(np.maximum(known.expected[at], np.finfo(float).tiny)) - unit,
        spectrum - unit,
        np.full(len(at), np.log(known.noise) - unit),
        np.sign(at - n // 2) * k,
        *_places(at - n // 2),
    ]
    return np.stack(columns, axis=1)


def _places(k: NDArray[np.intp]) -> list[Numbers]:
    """Weights of `PLACES` on the positive, then on the negative side; the centre has none."""
    knots = np.log1p([0, *PLACES])
    shares = [np.interp(np.log1p(np.abs(k)), knots, one) for one in np.eye(len(knots))[1:]]
    return [share * (side * k > 0) for side in (1, -1) for share in shares]


def _neighbours(measured: NDArray[np.bool_], at: NDArray[np.intp], distance: int) -> Numbers:
    """How many of the two lines at a distance are measured; none beyond the grid."""
    padded = np.pad(measured, distance).astype(float)
    return np.asarray(padded[at] + padded[at + 2 * distance])


def _gaps(measured: NDArray[np.intp], at: NDArray[np.intp], n: int) -> tuple[Numbers, Numbers]:
    """Distances to the nearest measured line, or the grid's end, on the nearer and on the farther side."""
    place = np.searchsorted(measured, at)
    bounded = np.concatenate([[-1], measured, [n]])
    below = at - bounded[place]
    above = bounded[np.searchsorted(measured, at, side="right") + 1] - at
    return np.minimum(below, above).astype(float), np.maximum(below, above).astype(float)
