"""Unit noise that is asked for again and again from equal generators, kept from one time to the next.

Loops and design steps perturb with the same noise, so that their draws change little; to make it anew took longer than
to solve for the draws.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np

from mri_design.operators.base import Array, LinearOperator


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
"""That of this process: 256 MiB, a design at 1024 x 1024 with one coil, or at 256 x 256 with 32."""
