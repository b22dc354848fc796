"""How many posterior draws are worked on at once, so that an inference stays within its memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.operators.base import LinearOperator

__all__ = ["DEFAULT_MEMORY", "draws_at_once"]

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
    """Draws that an inference may work on at a time, at least one; None where it may work on all, and keep their noise.

    Parameters
    ----------
    memory : float
        MiB of the process. A limit that is too small for what is held throughout has draws made one by one.
    count : int
        Draws.
    measurement : LinearOperator
        X.
    analyses : sequence of LinearOperator
        The blocks of B, and other operators whose variances are wanted.
    real : dtype
        Precision of the computation.
    """
    image = measurement.in_size * real.itemsize
    noise = sum(
        int(np.prod(operator.noise_shape)) * (1 + operator.out_complex) * real.itemsize
        for operator in (measurement, *analyses)
    )
    widest = max((analysis.out_size * real.itemsize for analysis in analyses), default=image)
    worked = max(WORKED * image, COEFFICIENTS * widest)
    left = memory * MIB - PROGRAM - (IMAGES + HELD * count) * image
    if left >= count * (worked + noise):
        return None
    return int(np.clip(left // worked, 1, count))
