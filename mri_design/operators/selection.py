"""Choosing phase-encode lines, or single samples, out of a full k-space grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.errors import InputError, described, number_array
from mri_design.operators.base import Array, LinearOperator, Shape


class LineSampling(LinearOperator):
    """(..., ky, kx) -> (..., line, kx), the lines in the order given.

    Raises
    ------
    InputError
        For a line outside the grid or named twice.
    """

    def __init__(self, lines: Sequence[int], shape: Shape) -> None:
        n_lines = shape[-2]
        wanted = f"line numbers from 0 to {n_lines - 1}"
        given = number_array("lines", lines, wanted=wanted)
        if given.dtype.kind == "b" or given.ndim != 1:
            cure = "Give the numbers of a mask's lines: numpy.flatnonzero(mask)." if given.dtype.kind == "b" else ""
            got = described(given) if given.ndim else described(lines)
            raise InputError("lines", got, f"a list of {wanted}", cure)
        if not np.all((given.real >= 0) & (given.real < n_lines) & (given == np.floor(given.real))):
            raise InputError("lines", str(given.tolist()), wanted)
        chosen = given.real.astype(np.intp)
        if len(np.unique(chosen)) != len(chosen):
            raise InputError("lines", str(given.tolist()), "every line at most once")
        super().__init__(shape, (*shape[:-2], len(chosen), shape[-1]))
        self.lines = chosen

    def _apply(self, u: Array) -> Array:
        return u[..., self.lines, :]

    def _adjoint(self, v: Array) -> Array:
        full = np.zeros((*v.shape[:-2], *self.in_shape[-2:]), dtype=v.dtype)
        full[..., self.lines, :] = v
        return full

    @property
    def mask(self) -> Array:
        """Bool (ky,), true where a line is chosen."""
        flags = np.zeros(self.in_shape[-2], dtype=bool)
        flags[self.lines] = True
        return flags


class SampleSelection(LinearOperator):
    """(..., ky, kx) -> (..., sample): the samples of a mask, row by row.

    Parameters
    ----------
    mask : bool array, shape (ky, kx)
        True where a sample is chosen.
    shape : tuple of int
        Of one input; its last two axes are those of the mask.

    Raises
    ------
    InputError
        For a mask of another shape or type, or without a sample.
    """

    def __init__(self, mask: Array, shape: Shape) -> None:
        mask = number_array("sample mask", mask, wanted=f"bool {shape[-2:]}")
        if mask.dtype != np.bool_ or mask.shape != shape[-2:]:
            raise InputError("sample mask", f"{mask.dtype} {mask.shape}", f"bool {shape[-2:]}")
        if not mask.any():
            raise InputError("sample mask", "no sample", "at least one")
        self.mask = mask
        self._chosen = np.flatnonzero(mask)
        super().__init__(shape, (*shape[:-2], len(self._chosen)))

    def _apply(self, u: Array) -> Array:
        return u.reshape(*u.shape[:-2], -1)[..., self._chosen]

    def _adjoint(self, v: Array) -> Array:
        full = np.zeros((*v.shape[:-1], self.mask.size), dtype=v.dtype)
        full[..., self._chosen] = v
        return full.reshape(*v.shape[:-1], *self.mask.shape)
