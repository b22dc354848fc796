"""Linear operators on arrays and their algebra: ``A @ B``, ``A + B``, ``c * A``, ``A.H``, ``A.gram``.

A subclass gives its shapes to ``__init__`` and writes ``_apply`` and ``_adjoint``; everything else follows.
Leading axes of an argument are a batch: an operator with ``in_shape = (ky, kx)`` maps ``(batch, ky, kx)``.
Arguments may be nested lists of numbers; whole numbers and booleans are taken for floating-point ones.
Inner products are Re<a, b> = sum(Re(conj(a) b)), so that an operator may be only real-linear on complex arrays, as the
real part is; it then has ``complex_linear = False``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, described, number_array
from mri_design.operators import kernels
from mri_design.operators.conventions import compilable

if TYPE_CHECKING:
    from scipy.sparse import linalg as sparse_linalg


Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class FilterBand:
    """Rows that are shifts of one filter: ``(A u)[band] = ifft2(response * fft2(u))[::stride, ::stride]``.

    Parameters
    ----------
    band : tuple
        Index of these rows in one output.
    along_y, along_x : complex arrays, shapes (ky,) and (kx,)
        Factors of the response on the periodic grid of the input, in FFT order.
    stride : int
        Grid points from one row to the next, along both axes.
    """

    band: tuple[Any, ...]
    along_y: Array
    along_x: Array
    stride: int = 1

    @property
    def response(self) -> Array:
        """Transfer function (ky, kx)."""
        return self.along_y[:, None] * self.along_x

    def mean_power(self, spectrum: Array) -> float:
        """Mean over waves of ``spectrum`` |response|^2, for a real spectrum (ky, kx) in FFT order."""
        return float(np.abs(self.along_y) ** 2 @ spectrum @ np.abs(self.along_x) ** 2) / spectrum.size


class LinearOperator(ABC):
    """A linear map between arrays of fixed shape, with its adjoint.

    Parameters
    ----------
    in_shape, out_shape : tuple of int
        Shapes of one input and one output, without batch axes.
    in_complex, out_complex : bool
        Whether one input (output) entry is one complex or one real unknown.
    complex_linear : bool
        True where ``A(i u) = i A(u)``; always False where only one side is complex.

    Raises
    ------
    InputError
        If applied to anything but numbers of that shape, or composed with anything but an operator.
    """

    __array_ufunc__ = None  # so that ``array * A`` and ``array @ A`` come here and are refused in words

    def __init__(
        self,
        in_shape: Shape,
        out_shape: Shape,
        *,
        in_complex: bool = True,
        out_complex: bool = True,
        complex_linear: bool = True,
    ) -> None:
        self.in_shape = tuple(int(n) for n in in_shape)
        self.out_shape = tuple(int(n) for n in out_shape)
        self.in_complex = in_complex
        self.out_complex = out_complex
        self.complex_linear = complex_linear and in_complex and out_complex

    def __repr__(self) -> str:
        held = {True: "complex", False: "real"}
        taken, given = f"{held[self.in_complex]} {self.in_shape}", f"{held[self.out_complex]} {self.out_shape}"
        return f"{type(self).__name__}: {taken} -> {given}"

    @property
    def _signature(self) -> str:
        return repr(self).partition(": ")[2]

    @abstractmethod
    def _apply(self, u: Array) -> Array: ...

    @abstractmethod
    def _adjoint(self, v: Array) -> Array: ...

    def __call__(self, u: ArrayLike) -> Array:
        """A u for one input or a batch of them."""
        return self._apply(self._checked(u, self.in_shape))

    def adjoint(self, v: ArrayLike) -> Array:
        """A^H v with respect to Re<., .>."""
        return self._adjoint(self._checked(v, self.out_shape))

    def __getstate__(self) -> dict[str, object]:
        """The state without cached values, which a process computes again when it needs them."""
        kind = type(self)
        return {n: v for n, v in vars(self).items() if not isinstance(getattr(kind, n, None), cached_property)}

    def _checked(self, given: ArrayLike, shape: Shape) -> Array:
        array = given
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fc":
            array = number_array(type(self).__name__, given, wanted=f"numbers with trailing axes {shape}")
            if array.dtype.kind not in "fc":
                array = array.astype(np.float64)
        if array.shape[array.ndim - len(shape) :] != shape:
            raise InputError(type(self).__name__, f"an array of shape {array.shape}", f"trailing axes {shape}")
        return array

    def weighted_adjoint(self, weights: Array, v: Array) -> Array:
        """A^H diag(weights) v; subclasses may fuse it."""
        return self.adjoint(weights * v)

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        """A^H diag(weights) A u; subclasses may fuse it."""
        return self._adjoint(weights * self._apply(u))

    def add_weighted_gram(self, weights: Array, u: Array, total: Array) -> None:
        """``total += A^H diag(weights) A u`` in the precision of ``total``; subclasses may spare the temporaries."""
        total += self.weighted_gram(weights, u)

    def add_weighted_parts(self, weights: Array, u: Array, total: Array) -> None:
        """`add_weighted_gram` with weights (*out_shape, 2) that real and imaginary parts have of their own."""
        total += self.adjoint(from_parts(weights * in_parts(self(u))))

    def site_products(self, a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array] | None:
        """Re <A a, A b> and |A b|^2 of every coefficient of two images, without making any; None where unknown.

        Parameters
        ----------
        a, b : contiguous complex arrays, shape (ky, kx)
            Of one precision.
        factors : contiguous real array, shape (ky, kx)
            Of that precision: imaginary parts of the products at a pixel count so many times.
        together : bool
            Whether all coefficients of a pixel are added up.
        """
        return None

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        """Eigenvalues of the circulant matrix nearest (Frobenius) to A^H diag(weights) A.

        Returns
        -------
        array of shape ``in_shape`` or None
            Real, in FFT order (DC first); None where the operator does not know it.
            T. Chan, SIAM J. Sci. Stat. Comput. 9 (1988).
        """
        return None

    def gram_spectrum(self) -> Array | None:
        """Eigenvalues of A^H A, as in `circulant_spectrum`, where it IS circulant; None elsewhere."""
        return None

    def gram_floor(self) -> float:
        """A bound from below on the eigenvalues of A^H A; 0 where none is known, or one that is only rounding."""
        spectrum = self.gram_spectrum()
        if spectrum is None:
            return 0.0
        least = float(spectrum.min())
        return least if least > 1e-9 * float(spectrum.max()) else 0.0

    @property
    def couples_columns(self) -> bool:
        """Whether A^H A couples columns of an image (ky, kx), as far as is known without computing anything."""
        return True

    def column_gram(self) -> Array | None:
        """A^H A as matrices (kx, ky, ky) where it couples no two columns of an image (ky, kx); None elsewhere."""
        return None

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        """All rows of A as shifted filters on a two-dimensional periodic grid; None where they are not that."""
        return None

    def gram_diagonal(self, weights: Array) -> Array | None:
        """diag(A^H diag(weights) A), of the shape of one input; None where it is not known."""
        return None

    def scaled_weights(self, weights: Array, scale: Array) -> Array | None:
        """Weights w with which A^H diag(w) A is near V A^H diag(weights) A V, V = diag(scale); None if not known."""
        return None

    def row_powers(self, spectrum: Array, scale: Array | None = None) -> Array | None:
        """diag(A V P V A^H) for the circulant P with these eigenvalues (FFT order); None where it is not known.

        V is diag(scale), where there is one.
        """
        bands = self.filter_bands()
        if bands is None or scale is not None:
            return None
        powers = np.empty(self.out_shape)
        for filters in bands:
            powers[filters.band] = filters.mean_power(spectrum)
        return powers

    def unit_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """Draw noise of unit variance per real component, ``count`` outputs in single or double precision ``real``."""
        numbers = rng.standard_normal((count, *self.out_shape, 1 + self.out_complex), dtype=real.type)
        return numbers.view(np.result_type(real, np.complex64) if self.out_complex else real)[..., 0]

    @property
    def noise_shape(self) -> Shape:
        """Shape of one set of `shared_noise`."""
        return self.out_shape

    def shared_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """`unit_noise` as it serves all operators of this type and `noise_shape`, whatever they measure.

        From equal generators they have equal noise, (count, *noise_shape), which can therefore be kept. What an
        operator takes of it is seen by `adjoint_of_noise` alone.
        """
        return self.unit_noise(rng, count, real)

    def adjoint_of_noise(self, shared: Array) -> Array:
        """A^H e for the `unit_noise` e of the generator that ``shared`` was drawn from."""
        return self._adjoint(shared)

    def rotated(self, data: Array) -> tuple[LinearOperator, Array]:
        """Q A and Q ``data`` with a unitary Q that makes products cheap: |data - A u| is the same for every u.

        By default Q is the identity.
        """
        return self, data

    def real_rows(self, index: Array) -> Array:
        """The rows that make some coefficients, on unknowns embedded as (real parts, imaginary parts).

        Parameters
        ----------
        index : int array, shape (count,)
            Coefficients, counted in the flattened output.

        Returns
        -------
        array, shape (count, parts, real unknowns)
            One part where coefficients are real, real and imaginary part where they are complex. By default the
            operator is applied backwards to unit vectors.
        """
        parts = (1.0, 1j) if self.out_complex else (1.0,)
        unit = np.zeros((len(index), len(parts), int(np.prod(self.out_shape))), dtype=np.result_type(*parts))
        for place, part in enumerate(parts):
            unit[np.arange(len(index)), place, index] = part
        rows = self.adjoint(unit.reshape(-1, *self.out_shape)).reshape(len(index), len(parts), -1)
        return np.concatenate([rows.real, rows.imag], axis=-1) if self.in_complex else rows.real

    @property
    def H(self) -> LinearOperator:
        """The adjoint operator."""
        return _Adjoint(self)

    @property
    def gram(self) -> LinearOperator:
        """A^H A; subclasses override it where it is cheaper than two passes."""
        return _Product(_Adjoint(self), self)

    @property
    def in_size(self) -> int:
        """Number of REAL unknowns of one input."""
        return int(np.prod(self.in_shape)) * (2 if self.in_complex else 1)

    @property
    def out_size(self) -> int:
        """Number of REAL entries of one output."""
        return int(np.prod(self.out_shape)) * (2 if self.out_complex else 1)

    def __matmul__(self, other: LinearOperator) -> LinearOperator:
        _require_operator("@", other, "Apply it to an array by calling it: operator(array).")
        return _Product(self, other)

    def __rmatmul__(self, other: object) -> LinearOperator:
        _require_operator("@", other, "Make a Dense of the matrix first: Dense(matrix) @ operator.")
        raise AssertionError  # an operator on the left has its own __matmul__

    def __add__(self, other: LinearOperator) -> LinearOperator:
        _require_operator("+", other, "Numbers are added to what the operator makes of an array.")
        return _Sum(self, other)

    def __mul__(self, scalar: complex) -> LinearOperator:
        return _Product(ScalarOperator(scalar, self.out_shape, is_complex=self.out_complex), self)

    __rmul__ = __mul__

    def to_dense(self, limit: int = 5000) -> Array:
        """The matrix of a complex-linear (or real) operator, built column by column.

        Raises
        ------
        InputError
            Above ``limit`` columns, or where the operator is only real-linear on complex arrays
            (use `to_dense_real`).
        """
        if self.in_complex and not self.complex_linear:
            raise InputError("to_dense", "a real-linear operator on complex arrays", "to_dense_real")
        unit = self._unit_vectors(limit, np.complex128 if self.in_complex else np.float64)
        return np.asarray(self._apply(unit)).reshape(len(unit), math.prod(self.out_shape)).T

    def to_dense_real(self, limit: int = 5000) -> Array:
        """The real matrix acting on stacked (real parts, imaginary parts); always exists."""
        unit = self._unit_vectors(limit // (1 + self.in_complex), np.float64)
        basis = np.concatenate([unit + 0j, 1j * unit]) if self.in_complex else unit
        images = np.asarray(self._apply(basis)).reshape(self.in_size, math.prod(self.out_shape))
        return (np.concatenate([images.real, images.imag], axis=1) if self.out_complex else images.real).T

    def _unit_vectors(self, limit: int, dtype: Any) -> Array:
        columns = math.prod(self.in_shape)
        if columns > limit:
            raise InputError("dense matrix", f"{columns} columns", f"at most {limit}", "Use a matrix-free method.")
        return np.eye(columns, dtype=dtype).reshape(columns, *self.in_shape)

    def as_scipy(self) -> sparse_linalg.LinearOperator:
        """This operator on flat vectors in double precision, for use with scipy.sparse.linalg.

        Complex-linear operators are complex there and real ones real. One that is only real-linear (it takes real
        parts, or has them) is no linear map of complex vectors: it becomes a real operator on stacked (real parts,
        imaginary parts), whose matrix is that of `to_dense_real`.
        """
        from scipy.sparse import linalg as sparse_linalg  # here: most runs do without

        taken, given = (field and not self.complex_linear for field in (self.in_complex, self.out_complex))
        lengths = (math.prod(self.out_shape) * (1 + given), math.prod(self.in_shape) * (1 + taken))
        return sparse_linalg.LinearOperator(
            shape=lengths,
            matvec=lambda u: _vector(self._apply(_array(u, self.in_shape, taken)), given),
            rmatvec=lambda v: _vector(self._adjoint(_array(v, self.out_shape, given)), taken),
            dtype=np.complex128 if self.complex_linear else np.float64,
        )


def _vector(array: Array, in_parts: bool) -> Array:
    """All numbers of an array, or (real parts, imaginary parts) of complex ones."""
    return np.concatenate([array.real.ravel(), array.imag.ravel()]) if in_parts else array.ravel()


def _array(vector: Array, shape: Shape, in_parts: bool) -> Array:
    """The array that `_vector` makes a vector of."""
    parts = np.reshape(vector, (2 if in_parts else 1, *shape))
    return parts[0] + 1j * parts[1] if in_parts else parts[0]


class ScalarOperator(LinearOperator):
    """Multiplication by one number (the identity for ``scalar = 1``)."""

    def __init__(self, scalar: complex, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex)
        if np.shape(scalar) or not isinstance(scalar, Number) or not np.isfinite(complex(scalar)):
            raise InputError("scalar", described(scalar), "one finite number", "Diagonal multiplies by an array.")
        if not is_complex and np.iscomplex(scalar):
            raise InputError("scalar", repr(scalar), "a real number for a real operator")
        real = not np.iscomplex(scalar)
        # A Python scalar, so that single precision stays single.
        self.scalar: complex = float(np.real(scalar)) if real else complex(scalar)

    def _apply(self, u: Array) -> Array:
        return u if self.scalar == 1 else self.scalar * u

    def _adjoint(self, v: Array) -> Array:
        return v if self.scalar == 1 else self.scalar.conjugate() * v

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        return (abs(self.scalar) ** 2 * weights) * u

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return np.full(self.in_shape, abs(self.scalar) ** 2 * float(np.mean(weights)))

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum()

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        along = [np.ones(n) for n in self.in_shape]
        return (FilterBand((), self.scalar * along[0], along[1]),) if len(along) == 2 else None


class _Adjoint(LinearOperator):
    def __init__(self, operator: LinearOperator) -> None:
        super().__init__(
            operator.out_shape,
            operator.in_shape,
            in_complex=operator.out_complex,
            out_complex=operator.in_complex,
            complex_linear=operator.complex_linear,
        )
        self.operator = operator

    def _apply(self, u: Array) -> Array:
        return self.operator._adjoint(u)

    def _adjoint(self, v: Array) -> Array:
        return self.operator._apply(v)

    @property
    def H(self) -> LinearOperator:
        return self.operator


def _fields(right: LinearOperator, left: LinearOperator) -> dict[str, bool]:
    """Of an operator that takes what ``right`` takes and gives what ``left`` gives, and is linear where both are."""
    linear = left.complex_linear and right.complex_linear
    return {"in_complex": right.in_complex, "out_complex": left.out_complex, "complex_linear": linear}


class _Product(LinearOperator):
    """``left @ right``."""

    def __init__(self, left: LinearOperator, right: LinearOperator) -> None:
        if left.in_shape != right.out_shape or left.in_complex != right.out_complex:
            field = f"{type(left).__name__} @ {type(right).__name__}"
            raise InputError(field, f"{right.out_shape} into {left.in_shape}", "the same inner shape and field")
        super().__init__(right.in_shape, left.out_shape, **_fields(right, left))
        self.left, self.right = left, right

    def _apply(self, u: Array) -> Array:
        return self.left._apply(self.right._apply(u))

    def _adjoint(self, v: Array) -> Array:
        return self.right._adjoint(self.left._adjoint(v))

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        return self.right._adjoint(self.left.weighted_gram(weights, self.right._apply(u)))

    @property
    def gram(self) -> LinearOperator:
        return _Product(self.right.H, _Product(self.left.gram, self.right))


def _require_operator(sign: str, other: object, cure: str) -> None:
    if not isinstance(other, LinearOperator):
        raise InputError(f"operator {sign}", described(other), "a LinearOperator", cure)


class _Sum(LinearOperator):
    def __init__(self, first: LinearOperator, second: LinearOperator) -> None:
        if first._signature != second._signature:
            raise InputError("sum of operators", second._signature, first._signature)
        super().__init__(first.in_shape, second.out_shape, **_fields(first, second))
        self.first, self.second = first, second

    def _apply(self, u: Array) -> Array:
        return self.first._apply(u) + self.second._apply(u)

    def _adjoint(self, v: Array) -> Array:
        return self.first._adjoint(v) + self.second._adjoint(v)


class GramOfImages(LinearOperator):
    """X^H X of complex images by a product that is cheaper than X and its adjoint."""

    def __init__(self, grid: Shape, product: Callable[[Array], Array]) -> None:
        super().__init__(grid, grid)
        self._product = product

    def _apply(self, u: Array) -> Array:
        return self._product(u.astype(np.result_type(u.dtype, np.complex64), copy=False))

    def _adjoint(self, v: Array) -> Array:
        return self._apply(v)


def mean_of_parts(parts: Array) -> Array:
    """Mean over a last axis of two, along which NumPy's own is slow."""
    return np.asarray((parts[..., 0] + parts[..., 1]) / 2)


def in_parts(s: Array) -> Array:
    """Complex (...,) -> real (..., 2), without a copy where possible."""
    return np.ascontiguousarray(s).view(s.real.dtype).reshape(*s.shape, 2)


def from_parts(v: Array) -> Array:
    """Real array (..., 2) -> complex array (...,)."""
    return np.ascontiguousarray(v).view(np.result_type(v.dtype, np.complex64))[..., 0]


def squared_modulus(s: Array) -> Array:
    """|s|^2, in the precision of ``s``."""
    if not np.iscomplexobj(s):
        return np.square(s)
    if not compilable(s, s):
        return np.square(s.real) + np.square(s.imag)
    return kernels.pixels.squares_of_moduli(s)
