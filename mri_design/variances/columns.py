"""Variances by elimination of one image column after the other, as a control and as an exact answer.

Cartesian readouts are fully sampled, so X^H X couples no two columns, and sites on pixels or differences couple only
neighbours: A is then a block-tridiagonal matrix on the columns, closed to a ring. Block elimination costs O(kx ky^3)
instead of the O(kx^3 ky^3) of dense algebra. Elsewhere that part of A serves as a control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.model.posterior import PosteriorPrecision, Variances
from mri_design.operators.base import Array, FilterBand, LinearOperator
from mri_design.status import Convergence, Status
from mri_design.variances.base import not_positive_definite


@dataclass(frozen=True)
class ColumnFactors:
    """Elimination of all columns but the last, one after the other; the last is coupled to both its neighbours.

    Parameters
    ----------
    pivots : array, shape (kx, ky, ky)
        Inverses of the pivots D_k.
    to_next, to_last : arrays, shape (kx - 1, ky, ky)
        G_k = A_(k+1, k) D_k^-1 and V_k = A_(last, k) D_k^-1 after elimination of the columns before k; G is zero at
        the last of them, whose next column is the last.
    log_determinant : float
        log det of the complex matrix.

    Notes
    -----
    Parts of the inverse by the recurrences of Takahashi, Fagan & Chin (1973) from the last column to the first.
    """

    pivots: Array
    to_next: Array
    to_last: Array
    log_determinant: float

    @classmethod
    def of(cls, diagonal: Array, below: Array) -> ColumnFactors | None:
        """Factors of a Hermitian matrix; None where it is not positive definite.

        Parameters
        ----------
        diagonal, below : arrays, shape (kx, ky, ky)
            Blocks A_(k, k) and A_((k + 1) mod kx, k) of at least three columns.
        """
        count = len(diagonal)
        last = count - 1
        pivots = np.empty(diagonal.shape, dtype=np.complex128)
        to_next, to_last = np.zeros((2, last, *diagonal.shape[1:]), dtype=np.complex128)
        current, corner = diagonal[0], diagonal[last]
        border = _dagger(below[last])  # A_(last, 0)
        log_determinant = 0.0
        for k in range(last):
            step = _inverse(current, diagonal[k])
            if step is None:
                return None
            pivots[k], logarithm = step
            log_determinant += logarithm
            if k == last - 1:
                border = border + below[k]
            to_last[k] = border @ pivots[k]
            corner = corner - to_last[k] @ _dagger(border)
            if k < last - 1:
                to_next[k] = below[k] @ pivots[k]
                current = diagonal[k + 1] - to_next[k] @ _dagger(below[k])
                border = -to_last[k] @ _dagger(below[k])
        step = _inverse(corner, diagonal[last])
        if step is None:
            return None
        pivots[last], logarithm = step
        return cls(pivots, to_next, to_last, log_determinant + logarithm)

    def solve(self, b: Array) -> Array:
        """The solution for right-hand sides (..., ky, kx), in their precision."""
        x = np.moveaxis(b.reshape(-1, *b.shape[-2:]), 0, -1).transpose(1, 0, 2).copy()  # (kx, ky, batch)
        pivots, to_next, to_last = (m.astype(b.dtype, copy=False) for m in (self.pivots, self.to_next, self.to_last))
        last = len(x) - 1
        for k in range(last):
            if k < last - 1:
                x[k + 1] -= to_next[k] @ x[k]
            x[last] -= to_last[k] @ x[k]
        x = pivots @ x
        for k in range(last - 1, -1, -1):
            x[k] -= _dagger(to_last[k]) @ x[last]
            if k < last - 1:
                x[k] -= _dagger(to_next[k]) @ x[k + 1]
        return np.asarray(x.transpose(2, 1, 0).reshape(b.shape))

    @cached_property
    def neighbours(self) -> tuple[Array, Array]:
        """Blocks Z_(k, k) and Z_((k+1) mod kx, k) of the inverse, each (kx, ky, ky)."""
        last = len(self.pivots) - 1
        own, below = np.empty_like(self.pivots), np.empty_like(self.pivots)
        own[last] = self.pivots[last]
        from_last = own[last]  # Z_(last, k + 1)
        for k in range(last - 1, -1, -1):
            following = own[last] if k == last - 1 else own[k + 1]
            new = -own[last] @ self.to_last[k]
            own[k] = self.pivots[k] - _dagger(self.to_last[k]) @ new
            if k < last - 1:
                new -= from_last @ self.to_next[k]
                below[k] = -(following @ self.to_next[k]) - _dagger(from_last) @ self.to_last[k]
                own[k] = self.pivots[k] - _dagger(self.to_next[k]) @ below[k] - _dagger(self.to_last[k]) @ new
            else:
                below[k] = new
            from_last = new
        below[last] = _dagger(from_last)  # Z_(0, last)
        return own, below

    @property
    def image_variances(self) -> Array:
        """The diagonal of the inverse as an image (ky, kx)."""
        return np.asarray(np.diagonal(self.neighbours[0], axis1=1, axis2=2).real.T)

    def inverse(self) -> Array:
        """All blocks Z_(j, k) of the inverse, (kx, kx, ky, ky), in single precision."""
        count, n = self.pivots.shape[:2]
        z = np.empty((count, count, n, n), dtype=np.complex64)
        pivots, to_next, to_last = (m.astype(z.dtype) for m in (self.pivots, self.to_next, self.to_last))
        last = count - 1
        z[last, last] = pivots[last]
        for k in range(last - 1, -1, -1):
            rows = z[k + 1 :, last] @ to_last[k]
            if k < last - 1:
                rows += z[k + 1 :, k + 1] @ to_next[k]
            z[k + 1 :, k] = -rows
            z[k, k + 1 :] = _dagger(z[k + 1 :, k])
            z[k, k] = pivots[k] - _dagger(to_last[k]) @ z[last, k]
            if k < last - 1:
                z[k, k] -= _dagger(to_next[k]) @ z[k + 1, k]
        return z


def _dagger(blocks: Array) -> Array:
    return np.conj(np.swapaxes(blocks, -1, -2))


def _inverse(matrix: Array, before: Array) -> tuple[Array, float] | None:
    """Inverse and log-determinant; None where not positive definite, or only by the rounding of what was ``before``."""
    factor, failed = scipy.linalg.lapack.zpotrf(matrix, lower=1)
    if failed:
        return None
    pivots = np.diag(factor).real
    half, failed = scipy.linalg.lapack.zpotri(factor, lower=1)
    if failed or np.any(pivots**2 < 100 * np.finfo(float).eps * np.diag(before).real):
        return None
    lower = np.tril(half, -1)
    return lower + _dagger(lower) + np.diag(np.diag(half).real), 2 * float(np.log(pivots).sum())


WIDE_LIMIT = 4608  # unknowns up to which filters wider than two columns get the whole inverse (16 n^2 bytes)


MATRICES = 9
"""Matrices (ky, ky) in double precision of every column of an image while its factors are made."""


def column_memory(shape: Sequence[int]) -> int:
    """Bytes that the factors of a `ColumnControl` of images (ky, kx) take."""
    return MATRICES * 16 * shape[1] * shape[0] ** 2


@dataclass(frozen=True)
class ColumnControl:
    """P = T^-1, where T holds the entries of A within a column and between neighbouring ones.

    Parameters
    ----------
    factors : ColumnFactors
        Of T.
    exact : bool
        Whether T is A: fully sampled readouts and no site wider than two columns.

    Notes
    -----
    What this control and others leave unexplained of z is tabulated in results/benchmarks/measured-once.md.
    """

    factors: ColumnFactors
    exact: bool

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> ColumnControl | None:
        """The control of a precision; None where X couples columns, B is not filters, or T is not positive definite.

        Raises
        ------
        InputError
            Where T is A, and not positive definite.
        """
        gram = precision.measurement.column_gram()
        bands = [block.analysis.filter_bands() for block in precision.blocks]
        if gram is None or not precision.complex_linear or len(gram) < 3:
            return None
        diagonal = gram.astype(np.complex128)
        below = np.zeros_like(diagonal)
        exact = True
        for filters, block, pi in zip(bands, precision.blocks, precision.site_precisions, strict=True):
            if filters is None:
                return None
            weights = np.broadcast_to(pi, block.analysis.out_shape)
            for band in filters:
                exact &= _add_band(band, weights[band.band], diagonal, below)
        factors = ColumnFactors.of(diagonal, below)
        if factors is None and exact:
            raise not_positive_definite()
        return None if factors is None else cls(factors, exact)

    def image(self, b: Array) -> Array:
        """P b."""
        return self.factors.solve(b)

    def moments(self, analysis: LinearOperator) -> tuple[Array, Array | None] | None:
        """diag(B P B^H) and, where it is the same, diag(B P A P B^H); None where `explained` is."""
        values = self.explained(analysis)
        return None if values is None else (values, values if self.exact else None)

    def explained(self, analysis: LinearOperator) -> Array | None:
        """diag(B P B^H) per real component; None for filters that are too wide for the size of the image."""
        bands = analysis.filter_bands()
        if bands is None or len(bands[0].along_x) != len(self.factors.pivots):
            return None
        rows = [_rows(f.along_x, f.stride) for f in bands]
        wide = any(_width(r) > 2 for r in rows)
        if wide and self.factors.pivots.shape[0] * self.factors.pivots.shape[1] > WIDE_LIMIT:
            return None
        values = np.empty(analysis.out_shape)
        pools: dict[bytes, Array] = {}  # subbands share their filters along x
        for filters, along_x in zip(bands, rows, strict=True):
            along_y = _rows(filters.along_y, filters.stride)
            key = np.round(along_x, 9).tobytes()
            pools[key] = pooled = pools[key] if key in pools else self._pooled(along_x)
            values[filters.band] = np.einsum("iy,jyi->ij", along_y, pooled @ along_y.T, optimize=True).real
        return values

    def _pooled(self, along_x: Array) -> Array:
        """Sum over columns of f_j(x) f_j(x') Z_(x, x') for every row f_j along x, (rows, ky, ky)."""
        if _width(along_x) > 2:
            totals = np.zeros((len(along_x), *self._inverse.shape[2:]), dtype=np.float32)
            for row, total in zip(along_x.astype(np.float32), totals, strict=True):
                for x in np.flatnonzero(row):
                    for run in _runs(row):
                        total += row[x] * np.tensordot(row[run], self._inverse[x, run], axes=1)
            return totals
        own, below = self.factors.neighbours
        cross = np.tensordot(along_x * np.roll(along_x, -1, axis=1), below, axes=1)
        return np.asarray(np.tensordot(along_x**2, own, axes=1) + cross + np.conj(np.swapaxes(cross, -1, -2)))

    @cached_property
    def _inverse(self) -> Array:
        """Real parts: filters are real, and P is Hermitian."""
        return np.ascontiguousarray(self.factors.inverse().real)


@dataclass(frozen=True)
class ExactByColumns:
    """Exact z of Cartesian scans with any coils, by elimination of one image column after the other.

    For sites on pixels and differences, O(kx ky^3) operations and no product with A.

    Raises
    ------
    InputError
        Where A couples other than neighbouring columns (wavelets, real images, matrices); where it is not positive
        definite.
    """

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        control = ColumnControl.of(precision)
        known = [None if control is None else control.explained(analysis) for analysis in analyses]
        if control is None or not control.exact or any(values is None for values in known):
            raise InputError(
                "exact variances by columns",
                "a posterior precision that is not of that form",
                "Cartesian lines of a complex image, sites on pixels or differences",
                "Use Exact for small images, or ControlVariate.",
            )
        values = tuple((2 * v).astype(like.real.dtype) for v in known if v is not None)
        return Variances(
            values,
            "exact",
            Convergence(Status.CONVERGED, 1, 0.0),
            image=(2 * control.factors.image_variances).astype(like.real.dtype),
            log_determinant=2 * control.factors.log_determinant,
        )


def _rows(response: Array, stride: int) -> Array:
    """The real matrix (rows, n) of ``ifft(response * fft(u))[::stride]``."""
    n = len(response)
    taps = np.fft.ifft(response)
    if np.abs(taps.imag).max() > 1e-12 * np.abs(taps).max():
        raise InputError("filters of B", "complex filters", "real ones")
    taps = np.where(np.abs(taps) > 1e-13 * np.abs(taps).max(), taps.real, 0.0)
    return np.asarray(taps[(stride * np.arange(n // stride)[:, None] - np.arange(n)) % n])


def _runs(row: Array) -> list[slice]:
    """The unbroken runs of non-zero entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row != 0, [False]]).astype(np.int8)))
    return [slice(start, stop) for start, stop in edges.reshape(-1, 2)]


def _width(rows: Array) -> int:
    """Columns that a row of a filter spans, around the ring."""
    touched = np.flatnonzero(rows[0])
    gaps = np.diff(np.append(touched, touched[0] + rows.shape[1]))
    return int(rows.shape[1] - gaps.max() + 1)


def _add_band(filters: FilterBand, weights: Array, diagonal: Array, below: Array) -> bool:
    """Add F^H diag(weights) F to the blocks, in place; False where it couples further columns, which are left out."""
    along_y, along_x = (_rows(response, filters.stride) for response in (filters.along_y, filters.along_x))
    following = np.roll(along_x, -1, axis=1)
    _add_along_y(along_y, filters.stride, weights @ along_x**2, diagonal)
    width = _width(along_x)
    if width > 1:
        _add_along_y(along_y, filters.stride, weights @ (along_x * following), below)
    return width <= 2


def _add_along_y(rows: Array, stride: int, weights: Array, blocks: Array) -> None:
    """Add rows^T diag(weights[:, x]) rows to ``blocks[x]`` for every column x."""
    taps = np.flatnonzero(rows[0])
    if len(taps) > 4:
        for block, column in zip(blocks, weights.T, strict=True):
            block += rows.T @ (column[:, None] * rows)
        return
    shifts = stride * np.arange(len(rows))
    for a in taps:
        for b in taps:
            y, y_other = (shifts + a) % rows.shape[1], (shifts + b) % rows.shape[1]
            blocks[:, y, y_other] += rows[0, a] * rows[0, b] * weights.T


def column_blocks(precision: PosteriorPrecision, columns: NDArray[np.intp]) -> Array:
    """Entries of B^H diag(pi) B within some image columns, float (columns, ky, ky).

    Sites that join columns count as if the others were known. Blocks of sites that are no filters are left out.

    Parameters
    ----------
    precision : PosteriorPrecision
        Of an image.
    columns : int array
        Which.
    """
    n = precision.measurement.in_shape
    total = np.zeros((len(columns), n[0], n[0]))
    for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
        weights = np.broadcast_to(pi, block.analysis.out_shape)
        for band in block.analysis.filter_bands() or ():
            along_x = _rows(band.along_x, band.stride)
            part = weights[band.band] @ along_x[:, columns] ** 2
            _add_along_y(_rows(band.along_y, band.stride), band.stride, part, total)
    return total
