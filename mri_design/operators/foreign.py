"""Operators of other packages as operators of this one: SciPy's, SigPy's, mri-nufft's, and whatever is like them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mri_design.errors import InputError, described, require_grid
from mri_design.operators.base import Array, LinearOperator, Shape

_WANTED = "an operator of SciPy (matvec, rmatvec), SigPy (ishape, oshape, H) or mri-nufft (op, adj_op, shape)"
_TOLERANCE = 1e-3
"""Largest error of an adjoint, or of linearity, relative to |A u|: that of single precision and coarse gridding."""


class ForeignOperator(LinearOperator):
    """An operator by two functions, each of which takes one array; batches are taken apart.

    Parameters
    ----------
    forward, adjoint : callable
        A and A^H, of arrays of ``in_shape`` and ``out_shape``.
    in_shape, out_shape : tuple of int
        Of one input and one output.
    is_complex : bool
        Whether an entry is one complex or one real number.
    dtype : dtype, optional
        What the functions take; by default the precision of their argument.

    Raises
    ------
    InputError
        For functions that are not linear, or of which one is not the adjoint of the other.
    """

    def __init__(
        self,
        forward: Callable[[Array], Any],
        adjoint: Callable[[Array], Any],
        in_shape: Shape,
        out_shape: Shape,
        *,
        is_complex: bool,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_shape, out_shape, in_complex=is_complex, out_complex=is_complex)
        self._forward, self._backward, self._dtype = forward, adjoint, dtype
        self._require_adjoint()

    def _apply(self, u: Array) -> Array:
        return self._each(self._forward, u, self.in_shape, self.out_shape)

    def _adjoint(self, v: Array) -> Array:
        return self._each(self._backward, v, self.out_shape, self.in_shape)

    def _each(self, function: Callable[[Array], Any], given: Array, taken: Shape, made: Shape) -> Array:
        field = np.complex64 if self.in_complex else np.float32
        out = np.empty((*given.shape[: given.ndim - len(taken)], *made), dtype=np.result_type(given, field))
        inputs = np.ascontiguousarray(given, dtype=self._dtype).reshape(-1, *taken)
        for one, result in zip(inputs, out.reshape(-1, *made), strict=True):
            try:
                result[...] = np.asarray(function(one)).reshape(made)
            except (ValueError, TypeError, AttributeError, RuntimeError, NotImplementedError) as error:
                raise InputError("linop", str(error), f"arrays of shape {taken} to be mapped to {made}") from error
        return out

    def _require_adjoint(self) -> None:
        """Hold <A u, v> against <u, A^H v> for a v that is partly A u, and A (c u) against c A u, once."""
        rng = np.random.default_rng(0)

        def drawn(shape: Shape) -> Array:
            parts = rng.standard_normal((2, *shape))
            return parts[0] + 1j * parts[1] if self.in_complex else parts[0]

        u, factor = drawn(self.in_shape), (1 - 2j if self.in_complex else -2)
        image = self._apply(u)
        size = float(np.linalg.norm(image))
        if not np.isfinite(size):
            raise InputError("linop", "NaN or infinite values", "finite numbers")
        if np.linalg.norm(self._apply(factor * u) - factor * image) > 10 * _TOLERANCE * size:
            field = "complex" if self.in_complex else "real"
            raise InputError("linop", f"an operator that is not {field}-linear", "A(c u) = c A(u)")
        v = drawn(self.out_shape)
        v = v / np.linalg.norm(v) + image / (size or 1.0)
        error = abs(np.vdot(image, v) - np.vdot(u, self._adjoint(v)))
        if error > _TOLERANCE * size:
            got = f"<A u, v> and <u, A^H v> that differ by {100 * error / (size or error):.2g} %"
            raise InputError(
                "linop: adjoint", got, "A^H", "Conjugate and scale it as A, and leave density compensation out."
            )


def from_linop(
    linop: Any, *, in_shape: Shape | None = None, out_shape: Shape | None = None, is_complex: bool | None = None
) -> LinearOperator:
    """An operator of another package as one of this package, its adjoint tested.

    Parameters
    ----------
    linop : object
        SciPy's LinearOperator and what is made like it, as PyLops' (``shape``, ``matvec``, ``rmatvec``, ``dtype``);
        SigPy's Linop (``ishape``, ``oshape``, ``H``), which is taken for complex; an operator of mri-nufft (``op``,
        ``adj_op``, ``shape``). One of this package is returned as it is.
    in_shape, out_shape : tuples of int, optional
        Of one input and one output, in C order, where they are others than those of the operator: an image for SciPy's
        vectors, say.
    is_complex : bool, optional
        Whether numbers are complex, where the operator does not say it.

    Raises
    ------
    InputError
        ``linop`` for an object of another kind or one that is not linear, ``linop: adjoint`` where the adjoint is that
        of another operator, ``in_shape`` and ``out_shape`` where they have another number of entries.
    """
    if isinstance(linop, LinearOperator):
        return linop
    dtype, in_complex = None, True
    if hasattr(linop, "ishape") and hasattr(linop, "oshape") and callable(linop):
        taken, made, forward, adjoint = tuple(linop.ishape), tuple(linop.oshape), linop, linop.H
    elif callable(getattr(linop, "matvec", None)) and len(getattr(linop, "shape", ())) == 2:
        taken, made = tuple(getattr(linop, "dims", linop.shape[1:])), tuple(getattr(linop, "dimsd", linop.shape[:1]))
        in_complex = np.dtype(linop.dtype).kind == "c"

        def forward(u: Array) -> Any:
            return linop.matvec(u.ravel())

        def adjoint(v: Array) -> Any:
            return linop.rmatvec(v.ravel())

    elif callable(getattr(linop, "op", None)) and callable(getattr(linop, "adj_op", None)):
        coils = 1 if getattr(linop, "uses_sense", False) else int(getattr(linop, "n_coils", 1))
        dtype, taken = np.complex64, (*((coils,) if coils > 1 else ()), *linop.shape)
        forward, adjoint = linop.op, linop.adj_op
        made = np.shape(forward(np.zeros(taken, dtype=dtype)))
    else:
        raise InputError("linop", described(linop), _WANTED)
    shapes = []
    for field, own, given in (("in_shape", taken, in_shape), ("out_shape", made, out_shape)):
        shapes.append(require_grid(field, own if given is None else given))
        if math.prod(shapes[-1]) != math.prod(own):
            raise InputError(field, str(given), f"{math.prod(own)} entries, as {own}")
    return ForeignOperator(
        lambda u: forward(u.reshape(taken)),
        lambda v: adjoint(v.reshape(made)),
        *shapes,
        is_complex=in_complex if is_complex is None else is_complex,
        dtype=dtype,
    )
