"""An order of lines learnt from other scans, with the errors they had along it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TrainedDesign:
    """An order of lines with the residuals that training scans had along it.

    Parameters
    ----------
    grid : tuple of int
        (ky, kx) of the training scans.
    lines : tuple of int
        In acquisition order, the start first.
    n_start : int
        Lines before the first decision.
    profile : float array, shape (rows, ky)
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
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, rows = self.grid[0], len(self.lines) - self.n_start + 1
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
        for name, values in (("profile", self.profile), ("errors", self.errors)):
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise InputError(field=f"trained design: {name}", got="other values", wanted="finite, zero or more")

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines.

        Raises
        ------
        InputError
            Naming both.
        """
        if n_lines != self.grid[0]:
            raise InputError(
                field="trained design",
                got=f"lines of a grid of {self.grid[0]} for a scan with {n_lines} phase-encode lines",
                wanted="the scan's own grid",
                cure="Train on scans of the same matrix size.",
            )

    def residuals(self, n_acquired: int) -> NDArray[np.float64]:
        """Residual of every line, were it not measured, when ``n_acquired`` are, (ky,).

        A line that training had measured by then has the residual that it had before, but no more than the largest
        of those that were left.
        """
        row = int(np.clip(n_acquired - self.n_start, 0, len(self.profile) - 1))
        values = self.profile[row].copy()
        measured = list(self.lines[: self.n_start + row])
        left = np.ones(len(values), dtype=bool)
        left[measured] = False
        most = values[left].max() if left.any() else np.inf
        values[measured[: self.n_start]] = min(most, self.profile[0].max())
        for before, line in enumerate(measured[self.n_start :]):
            values[line] = min(most, self.profile[before, line])
        return values
