"""The two non-uniform Fourier transforms, by FINUFFT: pixels -> samples, and its adjoint.

FINUFFT (Barnett, Magland & af Klinteberg, SIAM J. Sci. Comput. 41, 2019) is the optional dependency ``nonuniform``. It
runs on one thread, so that results are the same bits in every run.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array

# Relative errors asked for. In single precision a smaller one gains no more than it costs, in double precision it costs
# next to nothing (results/benchmarks/measured-once.md).
_SINGLE, _DOUBLE = 1e-4, 1e-13


def require_finufft() -> None:
    """Refuse work along trajectories where FINUFFT is missing, before any of it is done.

    Raises
    ------
    InputError
        With how to install it.
    """
    _finufft()


def sums_at_samples(images: Array, angles: Array) -> Array:
    """Sum over pixels r of ``images`` exp(-i w r), for every sample w.

    Parameters
    ----------
    images : array, shape (..., ky, kx)
        With the origin r = 0 at index ``N // 2``.
    angles : float array, shape (sample, 2)
        w in radians per pixel, within pi: along ky and kx.

    Returns
    -------
    complex array, shape (..., sample)
        In the precision of the images, to a relative error of 1e-4 (single) or 1e-13 (double).

    Raises
    ------
    InputError
        Where FINUFFT is not installed.
    """
    stack = _stack(images, axes=2)
    tolerance = _SINGLE if stack.dtype == np.complex64 else _DOUBLE
    sums = _finufft().nufft2d2(*_axes(angles, stack), stack, eps=tolerance, isign=-1, nthreads=1)
    return np.asarray(sums).reshape(*images.shape[:-2], len(angles))


def sums_at_pixels(samples: Array, angles: Array, shape: tuple[int, int]) -> Array:
    """Sum over samples w of ``samples`` exp(i w r), for every pixel r: the adjoint of `sums_at_samples`.

    Computed in double precision whatever comes in, which takes twice as long. X^H y is solved for with a Gram operator
    that is exact to rounding: where many samples crowd around DC, as those of spirals do, an error of 1e-4 of X^H y is
    larger than the rate of a sparsity prior, lies where X^H X is zero, and the objective has no minimum.

    Parameters
    ----------
    samples : array, shape (..., sample)
        Values at the samples.
    angles : float array, shape (sample, 2)
        w in radians per pixel, within pi: along ky and kx.
    shape : tuple of int
        Pixels (ky, kx) of the result, the origin at index ``N // 2``.

    Returns
    -------
    complex array, shape (..., ky, kx)
        In the precision of the samples, to its rounding (single) or a relative error of 1e-13 (double).

    Raises
    ------
    InputError
        Where FINUFFT is not installed.
    """
    stack = _stack(samples, axes=1).astype(np.complex128, copy=False)
    sums = _finufft().nufft2d1(*_axes(angles, stack), stack, n_modes=shape, eps=_DOUBLE, isign=1, nthreads=1)
    wanted = np.result_type(samples.dtype, np.complex64)
    return np.asarray(sums).reshape(*samples.shape[:-1], *shape).astype(wanted, copy=False)


def _stack(values: Array, axes: int) -> Array:
    """All batch axes as one, complex, in the memory order of the library."""
    flat = values.reshape(-1, *values.shape[values.ndim - axes :])
    return np.ascontiguousarray(flat, dtype=np.result_type(values.dtype, np.complex64))


def _axes(angles: Array, stack: Array) -> tuple[Array, Array]:
    along_y, along_x = (np.ascontiguousarray(angles[:, axis], dtype=stack.real.dtype) for axis in (0, 1))
    return along_y, along_x


def _finufft() -> ModuleType:
    try:
        import finufft
    except ImportError as error:
        raise InputError(
            "non-uniform Fourier transform",
            "an environment without FINUFFT",
            "FINUFFT 2.5 or newer, which measurements along spokes, spirals and other trajectories need",
            "Install it (pip install finufft), or this package with its extra (pip install '.[nonuniform]').",
        ) from error
    return finufft
