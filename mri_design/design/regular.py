"""Every R-th line of the whole grid, and a centre for coil calibration: how parallel imaging is sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategy import Choice, DesignView, best_line
from mri_design.errors import InputError

__all__ = ["RegularLines"]


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
