"""Single rows of an operator as numbers, a few at a time: for methods that look at some coefficients only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from mri_design.errors import InputError, require_counts
from mri_design.operators.base import Array, LinearOperator

SLAB_ROWS = 1024


@runtime_checkable
class HasRows(Protocol):
    """An operator from real vectors to real vectors that can hand out rows without making the others."""

    def rows(self, index: Array) -> Array:
        """Rows of the matrix, shape (len(index), unknowns)."""
        ...


def real_rows(operator: LinearOperator, index: Array) -> Array:
    """The rows that make some coefficients, on unknowns embedded as (real parts, imaginary parts).

    Parameters
    ----------
    operator : LinearOperator
        Any; one that has ``rows`` (`HasRows`) is asked for them, others are applied backwards to unit vectors.
    index : int array, shape (count,)
        Coefficients, counted in the flattened output.

    Returns
    -------
    array, shape (count, parts, real unknowns)
        One part where coefficients are real, real and imaginary part where they are complex.
    """
    if isinstance(operator, HasRows) and not (operator.in_complex or operator.out_complex):
        return np.asarray(operator.rows(index), dtype=float)[:, None]
    parts = (1.0, 1j) if operator.out_complex else (1.0,)
    unit = np.zeros((len(index), len(parts), int(np.prod(operator.out_shape))), dtype=np.result_type(*parts))
    for place, part in enumerate(parts):
        unit[np.arange(len(index)), place, index] = part
    rows = operator.adjoint(unit.reshape(-1, *operator.out_shape)).reshape(len(index), len(parts), -1)
    return np.concatenate([rows.real, rows.imag], axis=-1) if operator.in_complex else rows.real


class RowsOnDisk(LinearOperator):
    """A real matrix that stays in a ``.npy`` file: products read it in slabs, `rows` reads what is asked for.

    Parameters
    ----------
    path : str or path
        A two-dimensional array of floating-point numbers in NumPy's own format.
    slab_rows : int
        How many rows products hold in memory.

    Raises
    ------
    InputError
        For a file that is not such an array, or numbers in it that are not finite.
    """

    def __init__(self, path: str | os.PathLike[str], slab_rows: int = SLAB_ROWS) -> None:
        require_counts(slab_rows=slab_rows, least=1)
        self.path = os.fspath(path)
        self.slab_rows = int(slab_rows)
        try:
            matrix = self._mapped()
        except (OSError, ValueError) as error:
            raise InputError(self.path, str(error), "a .npy file with a matrix") from error
        if matrix.ndim != 2 or matrix.dtype.kind != "f":
            raise InputError(self.path, f"{matrix.dtype} of shape {matrix.shape}", "a matrix of real numbers")
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=False, out_complex=False)
        for place, slab in self._slabs():
            if not np.isfinite(slab).all():
                raise InputError(self.path, f"NaN or infinite values after row {place.start}", "finite numbers")

    def _mapped(self) -> Array:
        return np.asanyarray(np.load(self.path, mmap_mode="r", allow_pickle=False))

    def _slabs(self) -> Iterator[tuple[slice, Array]]:
        matrix = self._mapped()
        for first in range(0, len(matrix), self.slab_rows):
            place = slice(first, min(first + self.slab_rows, len(matrix)))
            yield place, np.array(matrix[place])

    def rows(self, index: Array) -> Array:
        """Rows of the matrix, shape (len(index), columns); the map is closed again, so that nothing stays resident."""
        return np.array(self._mapped()[index])

    def _apply(self, u: Array) -> Array:
        return np.concatenate([u @ slab.T for _, slab in self._slabs()], axis=-1)

    def _adjoint(self, v: Array) -> Array:
        total = np.zeros((*v.shape[:-1], *self.in_shape), dtype=v.dtype)
        for place, slab in self._slabs():
            total += v[..., place] @ slab
        return total
