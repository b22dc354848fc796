"""Variable-density masks that are drawn evenly: fewer chance gaps than independent draws have.

All three walk along the cumulative density of the lines outside the centre. With m lines to draw, each line has the
mass min(1, c p), c such that the masses add up to m: the probability of its being drawn, of which no line has more
than one. Jittered masks draw one line in every unit of mass, systematic ones take the lines at u, u + 1, u + 2, ...
for one random u, golden ones those at multiples of the golden ratio of the whole mass, which can be stopped at any
time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.decision import Choice
from mri_design.design.strategies.densities import GOLDEN, DensitySettings, inclusion_masses
from mri_design.design.strategy import DesignView, best_line


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


def _walk(settings: DensitySettings, candidates: LineCandidates) -> _Walk:
    """Where the lines that are not at the start lie on the masses of what is to be drawn outside it."""
    outside = candidates.allowed.copy()
    outside[list(candidates.acquired[: candidates.n_start])] = False
    free = np.flatnonzero(outside)
    density = np.maximum(settings.density(candidates.frequencies)[free], 1e-300)
    masses = inclusion_masses(density, candidates.target - candidates.n_start)
    high = np.cumsum(masses)
    return _Walk(free, high - masses, high, candidates.acquired[candidates.n_start :], candidates)


@dataclass(frozen=True, kw_only=True)
class JitteredDensity(DensitySettings):
    """One line drawn from every unit of mass, from one edge of k-space to the other.

    A line that lies on the border of two units is drawn once at most. Settings are those of `DensitySettings`.
    """

    name: str = "vd-jittered"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """A line of the next unit."""
        walk = _walk(self, view.candidates)
        unit = len(walk.chosen)
        return Choice(walk.within(unit, unit + 1, rng))


@dataclass(frozen=True, kw_only=True)
class SystematicDensity(DensitySettings):
    """Lines at equal distances in mass, with a random offset.

    The offset is drawn at the first step and read off the first line chosen later, to within that line's mass. Settings
    are those of `DensitySettings`.
    """

    name: str = "vd-systematic"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next tooth of the comb."""
        walk = _walk(self, view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, 1, rng))
        return Choice(walk.nearest(walk.middle(walk.chosen[0], 1) + len(walk.chosen)))


@dataclass(frozen=True, kw_only=True)
class GoldenDensity(DensitySettings):
    """Lines at multiples of the golden ratio in mass, with a random offset; a taken line gives way to the nearest.

    Settings are those of `DensitySettings`.
    """

    name: str = "vd-golden"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple."""
        walk = _walk(self, view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, walk.total, rng))
        offset = walk.middle(walk.chosen[0], walk.total) / walk.total
        return Choice(walk.nearest((offset + len(walk.chosen) * GOLDEN) % 1 * walk.total))
