"""Variable-density masks that are drawn evenly: fewer chance gaps than independent draws have.

All three walk along the cumulative density of the lines outside the centre. With m lines to draw, each line has the
mass min(1, c p), c such that the masses add up to m: the probability of its being drawn, of which no line has more
than one. Jittered masks draw one line in every unit of mass, systematic ones take the lines at u, u + 1, u + 2, ...
for one random u, golden ones those at multiples of the golden ratio of the whole mass, which can be stopped at any
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategies.baselines import GOLDEN, VariableDensity
from mri_design.design.strategy import Choice, DesignView, best_line

__all__ = ["GoldenDensity", "JitteredDensity", "SystematicDensity", "inclusion_masses"]


def inclusion_masses(density: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """min(1, c density) with a sum of ``count``: how probable it is that each line is among ``count`` drawn ones.

    Parameters
    ----------
    density : float array
        Positive.
    count : int
        At most as many as there are entries.
    """
    full = np.zeros(len(density), dtype=bool)
    while True:
        left = count - int(full.sum())
        masses = np.where(full, 1.0, 0.0)
        if left > 0:
            masses[~full] = density[~full] * (left / density[~full].sum())
        over = ~full & (masses >= 1)
        if not over.any():
            return masses
        full |= over


@dataclass(frozen=True)
class _Walk:
    """The lines outside the start, and where each lies on the cumulative mass."""

    free: NDArray[np.int_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    chosen: tuple[int, ...]
    candidates: LineCandidates

    @property
    def total(self) -> float:
        """Lines to draw."""
        return float(self.candidates.target - self.candidates.n_start)

    def middle(self, line: int, most: float) -> float:
        """Centre of a line's part of the mass below ``most``."""
        place = int(np.searchsorted(self.free, line))
        return float((self.low[place] + min(self.high[place], most)) / 2)

    def nearest(self, point: float) -> int:
        """The remaining line at ``point``, else the one whose mass is nearest."""
        distance = np.full(self.candidates.n_lines, np.nan)
        distance[self.free] = np.maximum(0, np.maximum(self.low - point, point - self.high))
        return best_line(-distance, self.candidates).line

    def within(self, low: float, high: float, rng: np.random.Generator) -> int:
        """A remaining line drawn from the mass between two points, else the nearest to their middle."""
        share = np.clip(np.minimum(self.high, high) - np.maximum(self.low, low), 0, None)
        share[~self.candidates.remaining[self.free]] = 0
        if not share.sum() > 0:
            return self.nearest((low + high) / 2)
        return int(rng.choice(self.free, p=share / share.sum()))


@dataclass(frozen=True)
class _EvenDensity(VariableDensity):
    """A density with the masses of what is to be drawn outside the start."""

    power: float = 4.0
    family: Literal["polynomial", "gaussian"] = "polynomial"

    def walk(self, candidates: LineCandidates) -> _Walk:
        """Where the lines that are not at the start lie."""
        outside = candidates.allowed.copy()
        outside[list(candidates.acquired[: candidates.n_start])] = False
        free = np.flatnonzero(outside)
        density = np.maximum(self.density(candidates.frequencies)[free], 1e-300)
        masses = inclusion_masses(density, candidates.target - candidates.n_start)
        high = np.cumsum(masses)
        return _Walk(free, high - masses, high, candidates.acquired[candidates.n_start :], candidates)


@dataclass(frozen=True)
class JitteredDensity(_EvenDensity):
    """One line drawn from every unit of mass, from one edge of k-space to the other.

    A line that lies on the border of two units is drawn once at most.
    """

    name: str = "vd-jittered"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """A line of the next unit."""
        walk = self.walk(view.candidates)
        unit = len(walk.chosen)
        return Choice(walk.within(unit, unit + 1, rng))


@dataclass(frozen=True)
class SystematicDensity(_EvenDensity):
    """Lines at equal distances in mass, with a random offset.

    The offset is drawn at the first step and found again from the first line chosen, to within that line's mass.
    """

    name: str = "vd-systematic"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next tooth of the comb."""
        walk = self.walk(view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, 1, rng))
        return Choice(walk.nearest(walk.middle(walk.chosen[0], 1) + len(walk.chosen)))


@dataclass(frozen=True)
class GoldenDensity(_EvenDensity):
    """Lines at multiples of the golden ratio in mass, with a random offset; a taken line gives way to the nearest."""

    name: str = "vd-golden"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple."""
        walk = self.walk(view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, walk.total, rng))
        offset = walk.middle(walk.chosen[0], walk.total) / walk.total
        return Choice(walk.nearest((offset + len(walk.chosen) * GOLDEN) % 1 * walk.total))
