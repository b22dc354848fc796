"""Masks that look at no data: what a designed mask has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategy import Choice, DesignView, best_line
from mri_design.errors import InputError, require_numbers

__all__ = ["Equispaced", "GoldenRatio", "HalfDensity", "LowPass", "RandomLines", "RegularLines", "VariableDensity"]


@dataclass(frozen=True)
class RegularLines:
    """A comb with teeth R lines apart through the centre, from DC outwards; lines that are over widen the centre.

    The comb's offset is drawn at the first step and found again from the first line chosen. With fewer lines than the
    comb has teeth, the outermost are left out. Of one slice with one phase-encode axis this is also the CAIPI mask:
    there is nothing to shift against.

    Parameters
    ----------
    spacing : int or None
        R; None is the smallest whose comb fits into the lines that are not at the start.
    """

    spacing: int | None = None
    name: str = "regular"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.spacing is not None and not (isinstance(self.spacing, int) and self.spacing >= 1):
            raise InputError(field="line spacing", got=repr(self.spacing), wanted="a whole number, 1 or more")

    def default_start(self, n_lines: int, target: int) -> int:
        """A small centre, so that the image's scale can be seen: four lines."""
        return min(4, target)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The tooth nearest to DC that is left; without one, the line nearest to DC."""
        candidates = view.candidates
        distance = -np.abs(candidates.frequencies).astype(float)
        chosen = candidates.acquired[candidates.n_start :]
        spacing = self._spacing(candidates)
        offset = int(rng.integers(spacing)) if not chosen else chosen[0] % spacing
        comb = np.arange(candidates.n_lines) % spacing == offset
        if (comb & candidates.remaining).any():
            distance[~comb] = np.nan
        return Choice(best_line(distance, candidates).line)

    def _spacing(self, candidates: LineCandidates) -> int:
        if self.spacing is not None:
            return min(self.spacing, candidates.n_lines)
        start = candidates.acquired[: candidates.n_start]
        free = candidates.allowed.copy()
        free[list(start)] = False
        wanted = candidates.target - candidates.n_start
        lines = np.flatnonzero(free)
        for spacing in range(1, candidates.n_lines):
            if np.bincount(lines % spacing, minlength=spacing).max() <= wanted:
                return spacing
        return candidates.n_lines


GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class LowPass:
    """The lines nearest to DC."""

    name: str = "low-pass"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int) -> int:
        """One line: the rule needs no centre of its own."""
        return 1

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The nearest remaining line."""
        return Choice(best_line(-np.abs(view.candidates.frequencies).astype(float), view.candidates).line)


@dataclass(frozen=True)
class RandomLines:
    """Uniformly random lines around a fully sampled centre.

    Parameters
    ----------
    centre_fraction : float or None
        Share of the grid that is sampled at the centre (fastMRI: 0.08 at acceleration 4, 0.04 at 8); None is no
        centre beyond four lines, plain random sampling.
    """

    centre_fraction: float | None = None
    name: str = "random"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int) -> int:
        """Centre lines, never more than the target."""
        if self.centre_fraction is None:
            return min(4, target)
        return min(target, max(1, round(n_lines * self.centre_fraction)))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """Any remaining line, all alike."""
        return Choice(int(rng.choice(np.flatnonzero(view.candidates.remaining))))


@dataclass(frozen=True)
class VariableDensity:
    """Random lines drawn without replacement from a density that falls off with |k|.

    Parameters
    ----------
    family : {"polynomial", "gaussian"}
        polynomial: (1 - |k| / k_max)^power (Lustig, Donoho & Pauly 2007); gaussian: exp(-power (|k| / k_max)^2 / 2).
    power : float
        Larger is more concentrated; tune it on training images, per number of lines.
    centre : int
        Lines always sampled at the centre.
    """

    family: Literal["polynomial", "gaussian"] = "polynomial"
    power: float = 3.0
    centre: int = 8
    name: str = "vd-polynomial"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.family not in ("polynomial", "gaussian"):
            raise InputError(field="density family", got=repr(self.family), wanted="polynomial or gaussian")
        require_numbers(**{"density power": self.power})

    def default_start(self, n_lines: int, target: int) -> int:
        """The forced centre."""
        return min(target, self.centre)

    def density(self, frequencies: NDArray[np.int_]) -> NDArray[np.float64]:
        """Relative density at the given k."""
        radius = np.abs(frequencies) / (np.abs(frequencies).max() + 1)
        if self.family == "polynomial":
            return np.asarray((1 - radius) ** self.power, dtype=float)
        return np.asarray(np.exp(-0.5 * self.power * radius**2), dtype=float)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One draw from the density over the remaining lines."""
        candidates = view.candidates
        weight = np.where(candidates.remaining, np.maximum(self.density(candidates.frequencies), 1e-300), 0.0)
        return Choice(int(rng.choice(candidates.n_lines, p=weight / weight.sum())))


@dataclass(frozen=True)
class HalfDensity(VariableDensity):
    """Variable density on one half of k-space, partial Fourier's: the other half is measured at the centre alone.

    Where an image's phase is smooth, a line tells much of the one opposite to it, and random lines on both sides are
    not the competitor. Once the half is full, the other one follows.
    """

    name: str = "vd-half"

    def density(self, frequencies: NDArray[np.int_]) -> NDArray[np.float64]:
        """Relative density at the given k."""
        return np.asarray(np.where(frequencies >= 0, super().density(frequencies), 1e-100))


@dataclass(frozen=True)
class Equispaced:
    """Lines at equal distances around a fully sampled centre, with a random offset (fastMRI's equispaced mask).

    The offset is drawn at the first step and found again from the first line chosen, so that the rule needs no memory.
    """

    centre_fraction: float = 0.08
    name: str = "fastmri-equispaced"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int) -> int:
        """Centre lines: the share of the grid, at most half of the target."""
        return _centre_share(n_lines, target, self.centre_fraction)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next tooth of the comb."""
        candidates = view.candidates
        start = np.zeros(candidates.n_lines, dtype=bool)
        start[list(candidates.acquired[: candidates.n_start])] = True
        free = np.flatnonzero(candidates.allowed & ~start)
        wanted = candidates.target - candidates.n_start
        spacing = len(free) / wanted
        chosen = candidates.acquired[candidates.n_start :]
        if chosen:
            first = int(np.searchsorted(free, chosen[0]))
            tooth = free[min(int(first + spacing * len(chosen)), len(free) - 1)]
        else:
            tooth = free[int(rng.uniform(0, spacing))]
        distance = np.abs(np.arange(candidates.n_lines) - tooth).astype(float)  # constraints may close the tooth
        return Choice(best_line(-distance, candidates).line)


@dataclass(frozen=True)
class GoldenRatio:
    """Lines at multiples of the golden ratio of the grid, around a small centre: even coverage at any stopping time."""

    centre_fraction: float = 0.08
    name: str = "golden-ratio"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int) -> int:
        """Centre lines: the share of the grid, at most half of the target."""
        return _centre_share(n_lines, target, self.centre_fraction)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple (circularly)."""
        candidates = view.candidates
        step = len(candidates.acquired)
        wanted = (step * GOLDEN % 1) * candidates.n_lines
        distance = np.abs(np.arange(candidates.n_lines) - wanted)
        circular = np.minimum(distance, candidates.n_lines - distance)
        return Choice(best_line(-circular, candidates).line)


def _centre_share(n_lines: int, target: int, fraction: float) -> int:
    return min(max(1, target // 2), max(1, round(n_lines * fraction)))
