"""How many posterior draws are worked on at once, so that an inference stays within its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mri_design.notices import say_once
from mri_design.operators.base import LinearOperator

DEFAULT_MEMORY = 1024.0
"""MiB of a process that infers one image, the program included."""
MIB = 1 << 20
PROGRAM = 200 * MIB
"""Of the interpreter with its libraries and compiled loops, before there is any image."""
IMAGES = 30
"""Images that the model and the inner problem hold, whatever is drawn: the data, site precisions, spectra."""
HELD = 7
"""Images of every draw that are held throughout: b, A^-1 b and P b with those of the last loop, residual, direction."""
WORKED = 6
"""Images of every draw that is worked on: the product, what the preconditioner makes of it, and their transforms."""
COEFFICIENTS = 4
"""Sets of one operator's coefficients of every draw that is worked on: of A^-1 b, of P b, their powers, remainders."""


def draws_at_once(
    memory: float, count: int, measurement: LinearOperator, analyses: Sequence[LinearOperator], real: np.dtype
) -> int | None:
    """Draws that an inference may work on at a time; None where it may work on all, and keep their noise.

    Parameters
    ----------
    memory : float
        MiB of the process.
    count : int
        Draws.
    measurement : LinearOperator
        X.
    analyses : sequence of LinearOperator
        The blocks of B, and other operators whose variances are wanted.
    real : dtype
        Precision of the computation.

    Notes
    -----
    A limit that draws made one by one do not keep to is not kept to, and that is said once, with what they take; of the
    default, which nobody asked for, nothing is said.
    """
    image, worked = _images(measurement, analyses, real)
    noise = sum(
        int(np.prod(operator.noise_shape)) * (1 + operator.out_complex) * real.itemsize
        for operator in (measurement, *analyses)
    )
    least = least_memory(count, measurement, analyses, real)
    if memory < least and memory != DEFAULT_MEMORY:
        pixels = " x ".join(str(n) for n in measurement.in_shape)
        say_once(
            f"inference.memory: {memory:g} MiB are not kept to: {count} draws of {pixels} pixels, made one by one, "
            f"take {math.ceil(least)} MiB or more. Allow more, or draw less (samples)."
        )
    left = memory * MIB - PROGRAM - (IMAGES + HELD * count) * image
    if left >= count * (worked + noise):
        return None
    return min(max(int(left // worked), 1), count)


def least_memory(count: int, measurement: LinearOperator, analyses: Sequence[LinearOperator], real: np.dtype) -> float:
    """MiB of a process that makes its draws one by one; the arguments are those of `draws_at_once`."""
    image, worked = _images(measurement, analyses, real)
    return (PROGRAM + (IMAGES + HELD * count) * image + worked) / MIB


def _images(measurement: LinearOperator, analyses: Sequence[LinearOperator], real: np.dtype) -> tuple[int, int]:
    """Bytes of an image, and of what is there for a draw that is worked on."""
    image = measurement.in_size * real.itemsize
    widest = max((analysis.out_size * real.itemsize for analysis in analyses), default=image)
    return image, max(WORKED * image, COEFFICIENTS * widest)
