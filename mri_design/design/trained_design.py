"""An order of lines, or of samples of a plane, learnt from other scans, with the errors they had along it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option


@dataclass(frozen=True, kw_only=True)
class TrainedDesign:
    """An order of lines, or of samples of a plane, with the residuals that training scans had along it.

    Parameters
    ----------
    grid : tuple of int
        (ky, kx) of the training scans, or (ky, kz) of the plane.
    lines : tuple of int
        In acquisition order, the start first.
    n_start : int
        Lines before the first decision.
    profile : float array, shape (rows, ky), or (rows, ky * kz) of a plane
        Mean residual energy of every line, in units of the image's energy, when n_start, n_start + 1, ... lines were
        measured; the last row is that of all lines.
    errors : float array, shape (rows,)
        Mean relative L2 error at the same times.
    rule : str
        What decided.
    reconstructions, unconverged : int
        How many it took, and how many of these did not converge.
    training : tuple of str
        Names of the training images.
    counts : tuple of int
        Samples of a plane that were measured at each row of ``profile``; empty for lines.
    settings : mapping
        Checksums of the input files, reconstruction, and everything else that the order depends on.

    Raises
    ------
    InputError
        Where these disagree with one another, or a residual is not a finite number of zero or more.
    """

    grid: tuple[int, int]
    lines: tuple[int, ...]
    n_start: int
    profile: NDArray[np.float64]
    errors: NDArray[np.float64]
    rule: str
    reconstructions: int = 0
    unconverged: int = 0
    training: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, rows = math.prod(self.shape), len(self.stages)
        if len(set(self.lines)) < len(self.lines) or any(not 0 <= line < n for line in self.lines):
            raise InputError(
                field="trained design: lines", got=str(self.lines), wanted=f"different lines, 0 to {n - 1}"
            )
        if not 1 <= self.n_start <= len(self.lines):
            raise InputError(
                field="trained design: start lines", got=str(self.n_start), wanted=f"1 to {len(self.lines)}"
            )
        if self.profile.shape != (rows, n) or self.errors.shape != (rows,):
            raise InputError(
                field="trained design: profile",
                got=f"shapes {self.profile.shape} and {self.errors.shape}",
                wanted=f"({rows}, {n}) and ({rows},)",
            )
        if list(self.stages) != sorted({self.n_start, *self.stages, len(self.lines)}):
            raise InputError(
                field="trained design: counts",
                got=str(self.counts),
                wanted=f"ascending numbers from {self.n_start} to {len(self.lines)}",
            )
        for name, values in (("profile", self.profile), ("errors", self.errors)):
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise InputError(field=f"trained design: {name}", got="other values", wanted="finite, zero or more")

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,) where lines were chosen, (ky, kz) where samples of a plane were."""
        return self.grid if self.counts else self.grid[:1]

    @property
    def stages(self) -> Sequence[int]:
        """How many were measured at each row of ``profile``."""
        return self.counts or range(self.n_start, len(self.lines) + 1)

    def require_grid(self, shape: tuple[int, ...]) -> None:
        """Refuse a scan with other candidates: (ky,) lines, or (ky, kz) samples.

        Raises
        ------
        InputError
            Naming both.
        """
        if shape != self.shape:
            lines = f"lines of a grid of {self.grid[0]}"
            learnt = f"samples of a plane of {' x '.join(map(str, self.grid))}" if self.counts else lines
            plane = f"a plane of {' x '.join(map(str, shape))}"
            raise InputError(
                field="trained design",
                got=f"{learnt} for a scan with {f'{shape[0]} phase-encode lines' if len(shape) == 1 else plane}",
                wanted="the scan's own grid",
                cure=f"Take {option('encoding', 'plane')}."
                if self.counts and len(shape) == 1
                else "Train on scans of the same matrix size.",
            )

    def residuals(self, n_acquired: int) -> NDArray[np.float64]:
        """Residual of every line, were it not measured, when ``n_acquired`` are, (ky,); of samples (ky * kz,).

        A line that training had measured by then has the residual that it had before, but no more than the largest
        of those that were left.
        """
        stages = np.array(self.stages)
        row = max(int(np.searchsorted(stages, n_acquired, "right")) - 1, 0)
        values = self.profile[row].copy()
        measured = np.array(self.lines[: stages[row]])
        left = np.ones(len(values), dtype=bool)
        left[measured] = False
        most = values[left].max() if left.any() else np.inf
        values[measured[: self.n_start]] = min(most, self.profile[0].max())
        later = measured[self.n_start :]
        before = np.searchsorted(stages, np.arange(self.n_start, len(measured)), "right") - 1
        values[later] = np.minimum(most, self.profile[before, later])
        return values
