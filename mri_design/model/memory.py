"""The memory of an inference: how many draws are worked on at once, and what stays for the next time.

Freed memory stays with the process, for the arrays that come next. Unit noise that is asked for again and again from
equal generators is kept: loops and design steps perturb with the same noise, so that their draws change little, and to
make it anew took longer than to solve for the draws.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from mri_design.errors import say_once
from mri_design.operators.base import Array, LinearOperator

DEFAULT_MEMORY = 1024.0
"""MiB of a process that infers one image, the program included."""
MIB = 1 << 20
PROGRAM = 200 * MIB
"""Bytes of the interpreter with its libraries and compiled loops, before there is any image."""
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


AT_THE_TOP, MAPPED = -1, -3
"""glibc's names for the two limits: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD (malloc.h)."""
KEPT = 64 * MIB
"""Free memory at the end of the heap that is kept rather than given back."""
LARGEST_KEPT = 32 * MIB
"""Arrays from this size on have memory of their own, which is given back; glibc takes no larger number."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory, once for the process; nothing where it is not glibc.

    A step makes and frees hundreds of arrays of an image or a few. Given back and asked for again each time, their
    memory is cleared by the operating system page by page, which took a seventh of a step at 256 x 256. Limits set in
    the environment (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_) are left as they are.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    set_limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_limit is not None:
        set_limit(AT_THE_TOP, KEPT)
        set_limit(MAPPED, LARGEST_KEPT)


class RecentNoise:
    """The most recently used noise, by generator and kind.

    Parameters
    ----------
    limit : int
        Bytes that are kept at most. What is larger by itself is made anew each time.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[object, tuple[Array, Mapping[str, Any]]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, operator: LinearOperator, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """``operator.shared_noise(rng, count, real)``, bit for bit, with ``rng`` advanced as by it; not to be written.

        Parameters
        ----------
        operator, rng, count, real
            As for `LinearOperator.shared_noise`.
        """
        numbers = rng.bit_generator
        key = (type(operator), operator.noise_shape, count, real.char, pickle.dumps(numbers.state))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is not None:
            numbers.state = found[1]
            return found[0]
        noise = operator.shared_noise(rng, count, real)
        if noise.nbytes <= self.limit:
            with self._lock:
                self._kept[key] = noise, numbers.state
                while sum(kept.nbytes for kept, _ in self._kept.values()) > self.limit:
                    self._kept.popitem(last=False)
        return noise


recent_noise = RecentNoise(1 << 28)
"""The noise kept in this process: 256 MiB, a design at 1024 x 1024 with one coil, or at 256 x 256 with 32."""
