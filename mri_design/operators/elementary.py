"""Elementary operators: pixelwise products, real and imaginary parts, receive coils, and matrices.

A matrix may be dense, sparse, or a file that is read in slabs. All operators follow the interface of `LinearOperator`.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_counts, require_grid
from mri_design.operators import kernels
from mri_design.operators.base import Array, LinearOperator, ScalarOperator, Shape, from_parts, in_parts, mean_of_parts
from mri_design.operators.conventions import compilable, laid_out


class Identity(ScalarOperator):
    """u -> u: the pixels of the image are the coefficients.

    Parameters
    ----------
    shape : tuple of int
        Of an image, or of any other input.
    is_complex : bool
        Whether an entry is one complex or one real unknown.

    Raises
    ------
    InputError
        For a shape that is not a tuple of positive whole numbers.
    """

    def __init__(self, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(1.0, require_grid("shape", shape), is_complex=is_complex)

    def add_weighted_gram(self, weights: Array, u: Array, total: Array) -> None:
        if not compilable(u, total) or np.ndim(weights) > len(self.in_shape):
            total += weights * u
            return
        kernels.pixels.add_product(laid_out(weights, self.in_shape, u).reshape(-1), u, total)

    def site_products(self, a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array] | None:
        return kernels.pixels.pixel_products(a, b, factors)

    def gram_diagonal(self, weights: Array) -> Array | None:
        return np.broadcast_to(weights, self.in_shape)

    def scaled_weights(self, weights: Array, scale: Array) -> Array:
        return np.asarray(weights * scale**2)

    def row_powers(self, spectrum: Array, scale: Array | None = None) -> Array | None:
        powers = np.full(self.out_shape, spectrum.mean())
        return powers if scale is None else scale**2 * powers


class Diagonal(LinearOperator):
    """u -> d * u, entry by entry.

    Parameters
    ----------
    diagonal : array
        d, of the shape of one input.
    is_complex : bool
        Whether an entry is one complex or one real unknown.

    Raises
    ------
    InputError
        For anything that is not an array of finite numbers, or complex ones in a real operator.
    """

    def __init__(self, diagonal: Array, *, is_complex: bool = True) -> None:
        diagonal = number_array("diagonal", diagonal, wanted="finite numbers", kind="finite")
        if not is_complex and np.iscomplexobj(diagonal):
            raise InputError("diagonal", "complex entries", "real entries for a real operator")
        super().__init__(diagonal.shape, diagonal.shape, in_complex=is_complex, out_complex=is_complex)
        self.diagonal = diagonal

    def _apply(self, u: Array) -> Array:
        return self.diagonal * u

    def _adjoint(self, v: Array) -> Array:
        return np.conj(self.diagonal) * v

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        return (np.abs(self.diagonal) ** 2 * weights) * u

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return np.full(self.in_shape, float(np.mean(np.abs(self.diagonal) ** 2 * weights)))


class RealImage(LinearOperator):
    """Real image -> the same image with complex numbers; the adjoint takes the real part.

    Composed with a measurement (``X @ RealImage(shape)``) it makes the image real.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, shape, in_complex=False, out_complex=True)

    def _apply(self, u: Array) -> Array:
        return u.astype(np.result_type(u.dtype, np.complex64), copy=False)

    def _adjoint(self, v: Array) -> Array:
        return v.real


class RealAndImaginary(LinearOperator):
    """Complex coefficients s -> real array with a last axis (real part, imaginary part).

    With it each part has its own site; without it a site acts on the modulus of a coefficient.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, (*shape, 2), in_complex=True, out_complex=False)

    def _apply(self, u: Array) -> Array:
        return np.stack([u.real, u.imag], axis=-1)

    def _adjoint(self, v: Array) -> Array:
        return v[..., 0] + 1j * v[..., 1]


class NoRows(LinearOperator):
    """u -> an array of length zero: the measurement X of a model without a Gaussian likelihood."""

    def __init__(self, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(shape, (0,), in_complex=is_complex, out_complex=is_complex)

    def _apply(self, u: Array) -> Array:
        return np.empty((*u.shape[: u.ndim - len(self.in_shape)], 0), dtype=u.dtype)

    def _adjoint(self, v: Array) -> Array:
        return np.zeros((*v.shape[:-1], *self.in_shape), dtype=v.dtype)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return np.zeros(self.in_shape) if len(self.in_shape) == 2 else None

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum()


class Coils(LinearOperator):
    """Image (ky, kx) -> coil images (coil, ky, kx).

    Parameters
    ----------
    maps : complex array, shape (coil, ky, kx), or None
        Sensitivities; with unit root-sum-of-squares A^H A is the identity. None is one coil of uniform sensitivity 1.
    grid : (int, int), optional
        Of the image; without maps it has to be given.

    Raises
    ------
    InputError
        For maps that are not three-dimensional, not finite numbers, or on another grid.
    """

    def __init__(self, maps: Array | None, grid: tuple[int, int] | None = None) -> None:
        if maps is not None or grid is None:
            maps = number_array(
                "coil maps",
                maps,
                wanted="finite numbers (coil, ky, kx)",
                cure="Estimate maps without cropping, or put zeros where there is no signal.",
                shape=(None, None, None),
                kind="finite",
            )
            if grid is not None and maps.shape[1:] != grid:
                raise InputError("coil maps", f"shape {maps.shape}", f"(coil, {grid[0]}, {grid[1]})")
        out_shape = maps.shape if maps is not None else (1, *(grid or ()))
        super().__init__(out_shape[1:], out_shape)
        self.maps = maps

    def _apply(self, u: Array) -> Array:
        return u[..., None, :, :] if self.maps is None else self.maps * u[..., None, :, :]

    def _adjoint(self, v: Array) -> Array:
        return v[..., 0, :, :] if self.maps is None else np.einsum("cyx,...cyx->...yx", np.conj(self.maps), v)


class Mixing(LinearOperator):
    """y -> M y along one axis: coils of k-space data or groups of coefficients, whitened for example.

    Parameters
    ----------
    matrix : array, shape (side, side) or (*other axes, side, side)
        M, the same everywhere, or one for every place on the other axes.
    shape : tuple of int
        Of the data.
    axis : int
        Along which it acts.

    Raises
    ------
    InputError
        For a matrix of another shape.
    """

    def __init__(self, matrix: Array, shape: Shape, axis: int = 0, *, is_complex: bool = True) -> None:
        self.axis = axis % len(shape) - len(shape)
        side, others = shape[axis], tuple(np.delete(shape, axis).tolist())
        if matrix.shape not in ((side, side), (*others, side, side)):
            raise InputError("matrix", f"shape {matrix.shape}", f"({side}, {side})")
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _mixed(self, matrix: Array, y: Array) -> Array:
        matrix = matrix if np.iscomplexobj(y) else matrix.real
        matrix = matrix.astype(np.result_type(matrix.real.dtype, y.dtype), copy=False)
        vectors = np.moveaxis(y, self.axis, -1)
        mixed = vectors @ matrix.T if matrix.ndim == 2 else np.einsum("...ij,...j->...i", matrix, vectors)
        return np.moveaxis(mixed, -1, self.axis).astype(y.dtype, copy=False)

    def _apply(self, u: Array) -> Array:
        return self._mixed(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return self._mixed(self.matrix.conj().swapaxes(-1, -2), v)


class RealMatrix(LinearOperator):
    """y -> M y on the stacked (real parts, imaginary parts) of complex data, or on real data.

    Parameters
    ----------
    matrix : real array, shape (n, n)
        M, with one row for every real number of the data.
    shape : tuple of int
        Of the data.

    Raises
    ------
    InputError
        For a matrix of another shape.
    """

    def __init__(self, matrix: Array, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex, complex_linear=not is_complex)
        if matrix.shape != (self.in_size, self.in_size):
            raise InputError("matrix", f"shape {matrix.shape}", f"({self.in_size}, {self.in_size})")
        self.matrix = matrix

    def _multiplied(self, matrix: Array, y: Array) -> Array:
        flat = y.reshape(*y.shape[: y.ndim - len(self.in_shape)], -1)
        real = np.concatenate([flat.real, flat.imag], axis=-1) if self.in_complex else flat
        moved = (real @ matrix.T).astype(y.real.dtype, copy=False)
        half = moved.shape[-1] // 2
        return (moved[..., :half] + 1j * moved[..., half:] if self.in_complex else moved).reshape(y.shape)

    def _apply(self, u: Array) -> Array:
        return self._multiplied(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return self._multiplied(self.matrix.T, v)


class PhasedParts(LinearOperator):
    """u -> parts of ``analysis(e^{-i phi} u)``: real output with a last axis (real part, imaginary part).

    If phi is the phase of the image, e^{-i phi} u is nearly real. Sites on each of the two parts express this: k-space
    then has conjugate symmetry, and line k informs about line -k.

    Parameters
    ----------
    analysis : LinearOperator
        Complex-linear, on complex images.
    rotation : complex array, shape of the image
        e^{i phi}, of modulus one.
    imaginary : float or array
        What the imaginary parts are multiplied by, broadcastable to the coefficients of ``analysis``.

    Raises
    ------
    InputError
        For another operator, a rotation of another shape or one whose modulus is not one, or factors that do not fit.

    Notes
    -----
    ``weights`` of the Gram products end in the axis of the two parts. The circulant spectrum is that of the mean of
    both parts' weights without the phase, near the nearest one only: a smooth phase shifts the filters by few
    frequencies. What is antilinear in B^H diag(w) B has no complex circulant.
    """

    def __init__(self, analysis: LinearOperator, rotation: Array, imaginary: Array | float = 1.0) -> None:
        if not analysis.complex_linear:
            raise InputError("PhasedParts", type(analysis).__name__, "a complex-linear operator on complex images")
        if rotation.shape != analysis.in_shape:
            raise InputError("rotation", f"shape {rotation.shape}", f"{analysis.in_shape}")
        if not np.allclose(np.abs(rotation), 1, rtol=0, atol=1e-4):
            raise InputError("rotation", "other moduli than one", "e^{i phi}")
        super().__init__(analysis.in_shape, (*analysis.out_shape, 2), in_complex=True, out_complex=False)
        self.analysis = analysis
        self.rotation = rotation
        self.imaginary = np.asarray(imaginary, dtype=float)
        fits = self.imaginary.ndim <= len(analysis.out_shape) and all(
            n in (1, wanted)
            for n, wanted in zip(reversed(self.imaginary.shape), reversed(analysis.out_shape), strict=False)
        )
        if not fits or not (np.isfinite(self.imaginary).all() and np.all(self.imaginary > 0)):
            raise InputError(
                "imaginary", f"shape {self.imaginary.shape}, or not positive", f"positive factors, {analysis.out_shape}"
            )
        self._kept: dict[tuple[str, np.dtype[Any]], Array] = {}

    def turned_back(self, u: Array) -> Array:
        """e^{-i phi} u, in the precision of u."""
        return self._in("back", np.result_type(u.dtype, np.complex64)) * u

    def turned(self, v: Array) -> Array:
        """e^{i phi} v, in the precision of v."""
        return self._in("turn", np.result_type(v.dtype, np.complex64)) * v

    def _in(self, what: str, dtype: np.dtype[Any]) -> Array:
        """The phase (turn, back) or the factors of the imaginary parts (factors, squares) in some precision."""
        if (what, dtype) not in self._kept:
            values = self.rotation if what in ("turn", "back") else self.imaginary
            values = (values**2 if what == "squares" else values).astype(dtype)
            self._kept[what, dtype] = np.conj(values) if what == "back" else values
        return self._kept[what, dtype]

    @cached_property
    def _emphasised(self) -> bool:
        """Whether imaginary parts are multiplied by anything but one."""
        return not bool((self.imaginary == 1).all())

    def _apply(self, u: Array) -> Array:
        parts = in_parts(self.analysis._apply(self.turned_back(u)))
        if self._emphasised:
            np.multiply(parts[..., 1], self._in("factors", parts.dtype), out=parts[..., 1])
        return parts

    def _adjoint(self, v: Array) -> Array:
        parts = v
        if self._emphasised:
            parts = np.empty_like(v)
            parts[..., 0] = v[..., 0]
            np.multiply(v[..., 1], self._in("factors", v.dtype), out=parts[..., 1])
        return self.turned(self.analysis._adjoint(from_parts(parts)))

    def weighted_adjoint(self, weights: Array, v: Array) -> Array:
        """Adjoint of weighted coefficients; factors of imaginary parts go to the weights, which are fewer."""
        each = self._with_factors(weights, self._in("factors", weights.dtype))
        return self.turned(self.analysis.adjoint(from_parts(each * self._checked(v, self.out_shape))))

    def part_weights(self, weights: Array) -> Array:
        """Weights (..., 2) of the parts of ``analysis(e^{-i phi} u)`` without their factors, in their own precision.

        ``weights`` are broadcastable to the coefficients; along a first axis of length one, as that of all edges of a
        pixel, the result has length one too. Part by part: numpy is slow along an axis of two.
        """
        given = np.asarray(weights)
        return self._with_factors(given, self._in("squares", given.dtype))

    def _with_factors(self, weights: Array, factors: Array) -> Array:
        """Weights of both parts, those of the imaginary one multiplied by factors."""
        shape = self.out_shape
        if weights.ndim == len(shape) > max(len(self.in_shape), factors.ndim) + 1:  # an axis before those of the image
            shape = (weights.shape[0], *shape[1:])
        each = weights if weights.ndim == len(shape) else np.broadcast_to(weights, shape)
        parts = np.empty(shape, dtype=weights.dtype)
        parts[..., 0] = each[..., 0]
        np.multiply(each[..., -1], factors, out=parts[..., 1])
        return parts

    def squares_on_pixels(self, dtype: np.dtype[Any]) -> Array | None:
        """Squared factors of the imaginary parts as an image; None where those of a pixel differ."""
        if self.imaginary.ndim > len(self.in_shape) or len(self.in_shape) != 2:
            return None
        if self.analysis.out_shape[-2:] != self.in_shape:
            return None
        return laid_out(self._in("squares", dtype), self.in_shape, np.empty(0, dtype=dtype))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        of_parts = self.part_weights(np.broadcast_to(np.asarray(weights, dtype=float), self.out_shape))
        return self.analysis.circulant_spectrum(mean_of_parts(of_parts))

    def gram_spectrum(self) -> Array | None:
        spectrum = None if self._emphasised else self.analysis.gram_spectrum()
        constant = spectrum is not None and np.ptp(spectrum) <= 1e-12 * np.max(np.abs(spectrum))
        return spectrum if constant else None  # a multiple of the identity commutes with the phase

    def gram_floor(self) -> float:
        return self.analysis.gram_floor() * min(1.0, float(self.imaginary.min())) ** 2


CHUNK = 1024
"""Rows that `spread` looks at at once: their projections stay in the cache."""


class MatrixOperator(LinearOperator):
    """An operator whose rows lie in memory, so that dense algebra on few unknowns may take them as they are."""

    matrix: Any

    @abstractmethod
    def weighted_gram_matrix(self, weights: Array) -> Array:
        """A^T diag(weights) A of a real matrix, (columns, columns); one weight per row."""

    @abstractmethod
    def rows(self, index: Array) -> Array:
        """Rows of the matrix as an array, shape (len(index), columns)."""

    def spread(self, root: Array) -> Array:
        """diag(A R^T R A^T) of a real matrix for ``root`` R of shape (any, columns): one sum of squares per row."""
        columns = root.T if isinstance(self.matrix, np.ndarray) else np.ascontiguousarray(root.T)
        values = np.empty(self.matrix.shape[0])
        for start in range(0, len(values), CHUNK):
            rows = slice(start, start + CHUNK)
            projections = self.matrix[rows] @ columns
            values[rows] = np.einsum("ij,ij->i", projections, projections)
        return values

    def real_rows(self, index: Array) -> Array:
        return super().real_rows(index) if self.in_complex else np.asarray(self.rows(index), dtype=float)[:, None]


class Dense(MatrixOperator):
    """u -> M u for a matrix of shape (rows, columns); real matrices act on real vectors.

    Parameters
    ----------
    matrix : array, or nested lists of numbers
        Single and double precision are kept, whole numbers and booleans become double.

    Raises
    ------
    InputError
        For anything that is not a matrix of finite numbers.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        wanted = "a finite matrix (rows, columns)"
        matrix = number_array("matrix", matrix, wanted=wanted, shape=(None, None), kind="finite")
        matrix = matrix if matrix.dtype.kind in "fc" else matrix.astype(np.float64)
        is_complex = np.iscomplexobj(matrix)
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _apply(self, u: Array) -> Array:
        return u @ self.matrix.T

    def _adjoint(self, v: Array) -> Array:
        return v @ self.matrix.conj()

    def rows(self, index: Array) -> Array:
        return np.asarray(self.matrix[index])

    def weighted_gram_matrix(self, weights: Array) -> Array:
        return np.asarray(self.matrix.T @ (weights[:, None] * self.matrix))


class SparseMatrix(MatrixOperator):
    """u -> M u for a real `scipy.sparse` matrix or array of shape (rows, columns), duplicates added up.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Copied to compressed rows in double precision.

    Raises
    ------
    InputError
        For anything that is not a sparse matrix of finite real numbers.
    """

    def __init__(self, matrix: scipy.sparse.spmatrix | scipy.sparse.sparray) -> None:
        if not scipy.sparse.issparse(matrix) or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise InputError(
                "sparse matrix",
                f"{type(matrix).__name__} of {getattr(matrix, 'dtype', 'no numbers')}",
                "a scipy.sparse matrix (rows, columns) of real numbers",
                "Use Dense for arrays and complex matrices.",
            )
        rows = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        if not np.isfinite(rows.data).all():
            raise InputError("sparse matrix", "NaN or infinite values", "finite numbers")
        super().__init__(rows.shape[1:], rows.shape[:1], in_complex=False, out_complex=False)
        self.matrix = rows
        self._transposed = rows.T.tocsr()

    def _apply(self, u: Array) -> Array:
        return _products(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return _products(self._transposed, v)

    def rows(self, index: Array) -> Array:
        return np.asarray(self.matrix[index].toarray())

    def weighted_gram_matrix(self, weights: Array) -> Array:
        scaled = self._transposed.copy()
        scaled.data *= np.asarray(weights, dtype=float)[scaled.indices]
        return np.asarray((scaled @ self.matrix).toarray())


def _products(matrix: scipy.sparse.csr_array, vectors: Array) -> Array:
    """The matrix times every vector on the last axis, in the vectors' own precision."""
    flat = vectors.reshape(-1, vectors.shape[-1])
    products = matrix @ flat[0] if len(flat) == 1 else (matrix @ flat.T).T
    return np.asarray(products, dtype=vectors.dtype).reshape(*vectors.shape[:-1], matrix.shape[0])


SLAB_ROWS = 1024


class RowsOnDisk(LinearOperator):
    """A real matrix in a ``.npy`` file: products read it in slabs, `rows` reads single rows.

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

    def real_rows(self, index: Array) -> Array:
        return np.asarray(self.rows(index), dtype=float)[:, None]

    def _apply(self, u: Array) -> Array:
        return np.concatenate([u @ slab.T for _, slab in self._slabs()], axis=-1)

    def _adjoint(self, v: Array) -> Array:
        total = np.zeros((*v.shape[:-1], *self.in_shape), dtype=v.dtype)
        for place, slab in self._slabs():
            total += v[..., place] @ slab
        return total
