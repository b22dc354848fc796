"""Masks that look at no data, the competitors of designed masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.decision import Choice
from mri_design.design.strategies.densities import GOLDEN, DensitySettings
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError, require_numbers


@dataclass(frozen=True, kw_only=True)
class RegularLines:
    """Every R-th line through the centre, from DC outwards; lines left over are added to the fully sampled centre.

    The comb's offset is drawn at the first step and read off the first line chosen later. With fewer lines than the
    comb has teeth, the outermost are left out. For one slice and one phase-encode axis a CAIPI mask is the same.

    Parameters
    ----------
    spacing : int or None
        R; None is the smallest whose comb fits into the lines that are not at the start.

    Raises
    ------
    InputError
        For a spacing that is not a whole number of one or more.
    """

    spacing: int | None = None
    name: str = "regular"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.spacing is not None and not (isinstance(self.spacing, int) and self.spacing >= 1):
            raise InputError(field="line spacing", got=repr(self.spacing), wanted="a whole number, 1 or more")

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
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


@dataclass(frozen=True, kw_only=True)
class LowPass:
    """The lines nearest to DC."""

    name: str = "low-pass"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """One line: the rule needs no centre of its own."""
        return 1

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The nearest remaining line."""
        return Choice(best_line(-np.abs(view.candidates.frequencies).astype(float), view.candidates).line)


@dataclass(frozen=True, kw_only=True)
class RandomLines:
    """Uniformly random lines around a fully sampled centre.

    Parameters
    ----------
    centre_fraction : float or None
        Share of the grid that is sampled at the centre (fastMRI: 0.08 at acceleration 4, 0.04 at 8); None is no
        centre beyond four lines, plain random sampling.

    Raises
    ------
    InputError
        For a share that is not a number between 0 and 1.
    """

    centre_fraction: float | None = None
    name: str = "random"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.centre_fraction is not None:
            _require_share(self.centre_fraction)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Centre lines, never more than the target."""
        if self.centre_fraction is None:
            return min(4, target)
        return min(target, max(1, round(n_lines * self.centre_fraction)))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """Any remaining line, all alike."""
        return Choice(int(rng.choice(np.flatnonzero(view.candidates.remaining))))


@dataclass(frozen=True, kw_only=True)
class VariableDensity(DensitySettings):
    """Random lines drawn without replacement from a density that falls off with |k|: settings as `DensitySettings`."""

    power: float = 3.0
    name: str = "vd-polynomial"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One draw from the density over the remaining lines."""
        return _drawn(self.density(view.candidates.frequencies), view.candidates, rng)


@dataclass(frozen=True, kw_only=True)
class HalfDensity(DensitySettings):
    """Variable density on one half of k-space, partial Fourier's: the other half is measured at the centre alone.

    Where an image's phase is smooth, a line nearly determines the opposite one, so that random lines on both sides are
    a weak competitor. Once the half is full, the other one follows. Settings are those of `DensitySettings`.
    """

    power: float = 3.0
    name: str = "vd-half"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One draw from the density over the remaining lines of the half, then of the other one."""
        frequencies = view.candidates.frequencies
        return _drawn(np.where(frequencies >= 0, self.density(frequencies), 1e-100), view.candidates, rng)


def _drawn(density: NDArray[np.float64], candidates: LineCandidates, rng: np.random.Generator) -> Choice:
    """One of the remaining lines, drawn from a relative density (ky,)."""
    weight = np.where(candidates.remaining, np.maximum(density, 1e-300), 0.0)
    return Choice(int(rng.choice(candidates.n_lines, p=weight / weight.sum())))


@dataclass(frozen=True, kw_only=True)
class CentreSettings:
    """A share of the grid that is fully sampled at the centre. It is no strategy: it chooses nothing.

    Parameters
    ----------
    centre_fraction : float
        The share, 0 to 1.

    Raises
    ------
    InputError
        For a share that is not a number between 0 and 1.
    """

    centre_fraction: float = 0.08
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        _require_share(self.centre_fraction)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Centre lines: the share of the grid, at most half of the target."""
        return min(max(1, target // 2), max(1, round(n_lines * self.centre_fraction)))


@dataclass(frozen=True, kw_only=True)
class Equispaced(CentreSettings):
    """Lines at equal distances around a fully sampled centre, with a random offset (fastMRI's equispaced mask).

    The offset is drawn at the first step and read off the first line chosen later, so that the rule needs no memory.
    Settings as `CentreSettings`.
    """

    name: str = "fastmri-equispaced"

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


@dataclass(frozen=True, kw_only=True)
class GoldenRatio(CentreSettings):
    """Lines at multiples of the golden ratio of the grid, around a small centre: even coverage at any stopping time.

    Settings as `CentreSettings`.
    """

    name: str = "golden-ratio"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple (circularly)."""
        candidates = view.candidates
        step = len(candidates.acquired)
        wanted = (step * GOLDEN % 1) * candidates.n_lines
        distance = np.abs(np.arange(candidates.n_lines) - wanted)
        circular = np.minimum(distance, candidates.n_lines - distance)
        return Choice(best_line(-circular, candidates).line)


def _require_share(share: float) -> None:
    require_numbers(most=1.0, **{"centre fraction": share})
