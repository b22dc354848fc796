"""Random numbers for tests of operators."""

import numpy as np
from numpy.typing import DTypeLike


def noise(shape: tuple[int, ...], dtype: DTypeLike, seed: int) -> np.ndarray:
    """Unit noise, of each part where the type is complex."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)
