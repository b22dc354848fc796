"""Conventions of arrays: the centred orthonormal transform of k-space, masks and numbers of readouts, memory layouts.

The transforms are NumPy's, because importing SciPy takes longer than describing a scan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import fft
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, described, number_array

Chosen = Sequence[int] | NDArray[np.bool_] | NDArray[np.integer] | NDArray[np.floating]
"""Numbers of lines (samples of a plane, shots) in the order of measurement, or a mask: true, or 1, for them."""


def to_image(kspace: NDArray[Any]) -> NDArray[Any]:
    """Images (..., ky, kx) of k-space (..., ky, kx), DC at ``N // 2`` in both."""
    spread = fft.ifftshift(kspace, axes=(-2, -1))
    return fft.fftshift(fft.ifft2(spread, norm="ortho"), axes=(-2, -1))


def to_kspace(image: NDArray[Any]) -> NDArray[Any]:
    """K-space (..., ky, kx) of images (..., ky, kx), DC at ``N // 2`` in both."""
    spread = fft.ifftshift(image, axes=(-2, -1))
    return fft.fftshift(fft.fft2(spread, norm="ortho"), axes=(-2, -1))


def to_readout_profiles(kspace: NDArray[Any]) -> NDArray[Any]:
    """Profiles (..., ky, x) of k-space (..., ky, kx): transformed along the readout alone."""
    spread = fft.ifftshift(kspace, axes=-1)
    return fft.fftshift(fft.ifft(spread, axis=-1, norm="ortho"), axes=-1)


def mask_flags(given: ArrayLike, *shapes: tuple[int, ...], field: str, unit: str) -> NDArray[np.bool_] | None:
    """A mask, in whatever form it is stored, as flags; None where numbers are given instead.

    Zeros and ones of any type are a mask, as flags are. Numbers are a list of another length than the mask's, or one of
    that length in which each number stands once. Of two candidates, 0 and 1 may be both: in a tuple, as those of a
    design are, they are numbers.

    Parameters
    ----------
    given : array or nested lists
        Mask or numbers.
    *shapes : tuple of int
        Shapes that a mask may have; axes of length 1 do not count.
    field : str
        For the message.
    unit : str
        What one candidate is called.

    Raises
    ------
    InputError
        For a mask of another shape, values that are neither a mask nor numbers, and zeros and ones that may be both.
    """
    wanted = f"a mask, or a list of numbers of {unit}s"
    array = number_array(field, given, wanted=wanted)
    if not array.ndim:
        raise InputError(field, described(given), wanted)
    flags = array.dtype.kind == "b"
    binary = flags or (array.size > 0 and bool(np.isin(array, (0, 1)).all()))
    sides = _without_ones(array.shape)
    shape = next((one for one in shapes if _without_ones(one) == sides), None)
    fits = array.size in map(math.prod, shapes)
    each_once = len(np.unique(array)) == array.size
    if not flags and len(sides) < 2 and (each_once or not (binary or fits)):
        if binary and fits and array.size == 2 and not isinstance(given, tuple):
            wanted = f"either a mask or numbers of {unit}s"
            raise InputError(field, f"{array.tolist()}, which may be both", wanted, "Give a mask as (mask != 0).")
        return None
    if shape is None or not binary:
        wanted = " or ".join(f"bool {one}" for one in dict.fromkeys(shapes))
        cure = f"Or give numbers of {unit}s, each once." if binary else "Flags of values are (mask != 0)."
        raise InputError(field, f"{array.dtype} {array.shape}", f"{wanted}, true for every {unit} that is chosen", cure)
    return np.asarray(array.reshape(shape) != 0)


def chosen_numbers(chosen: Chosen, shape: tuple[int, ...], unit: str) -> Sequence[int]:
    """Numbers of the chosen lines, samples or shots; a list of numbers is returned as it is.

    Parameters
    ----------
    chosen : sequence of int, or array
        Numbers in any order, or a mask (`mask_flags`), which gives them in ascending order.
    shape : tuple of int
        Of a mask: (ky,) of lines, (ky, kz) of a plane, (shot,) of shots.
    unit : str
        What one candidate is called.

    Raises
    ------
    InputError
        As `mask_flags`, and for numbers that are not whole.
    """
    if isinstance(chosen, range):
        return chosen
    flags = mask_flags(chosen, shape, (math.prod(shape),), field=f"{unit}s", unit=unit)
    if flags is not None:
        return list(map(int, np.flatnonzero(flags)))
    array = np.asarray(chosen)
    if array.dtype.kind in "iu" and isinstance(chosen, list | tuple):
        return chosen
    whole = np.rint(array.real).astype(np.int64)
    if not np.array_equal(whole, array):
        raise InputError(f"{unit}s", f"an array of {array.dtype} with fractions", f"whole numbers of {unit}s")
    return list(whole.ravel().tolist())


def chosen_flags(
    chosen: Chosen, *shapes: tuple[int, ...], field: str = "lines", unit: str = "line"
) -> NDArray[np.bool_]:
    """Flags of the chosen lines, samples or shots, from numbers along the first of the shapes or a mask of any of them.

    Raises
    ------
    InputError
        As `chosen_numbers`, and for numbers outside of the grid.
    """
    flags = None if isinstance(chosen, range) else mask_flags(chosen, *shapes, field=field, unit=unit)
    if flags is None:
        count = math.prod(shapes[0])
        numbers = np.asarray(chosen_numbers(chosen, shapes[0], unit), dtype=np.int64)
        outside = numbers[(numbers < 0) | (numbers >= count)]
        if outside.size:
            raise InputError(field, str(outside[:8].tolist()), f"numbers from 0 to {count - 1}, or a mask")
        flags = np.isin(np.arange(count), numbers).reshape(shapes[0])
    return flags


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def compilable(u: NDArray[Any], total: NDArray[Any]) -> bool:
    """Whether compiled loops may read ``u`` and write ``total``: contiguous, of one precision, single or double."""
    same = u.dtype == total.dtype and u.dtype.char in "fdFD"
    return same and u.flags.carray and total.flags.carray


def flat_numbers(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Contiguous arrays seen as flat real ones, complex numbers as (real, imaginary) interleaved.

    What is written to them is written to ``arrays``.
    """
    return tuple(array.reshape(-1).view(array.real.dtype) for array in arrays)


def laid_out(weights: Any, shape: tuple[int, ...], like: NDArray[Any]) -> NDArray[Any]:
    """Weights spread to ``shape``, contiguous, in the precision of ``like``.

    Writable too, though nothing writes: loops would be compiled once more for arrays that are not.
    """
    spread = np.asarray(weights, dtype=like.real.dtype)
    if spread.shape != shape:
        spread = np.broadcast_to(spread, shape)
    return np.require(spread, requirements=["C", "W"])
