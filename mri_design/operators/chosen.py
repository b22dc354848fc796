"""Candidates chosen by number or by a boolean mask: the one place where a mask becomes numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

Chosen = Sequence[int] | NDArray[np.bool_] | NDArray[np.integer]
"""Numbers of lines (samples of a plane, shots) in the order of measurement, or a mask that is true for them."""


def chosen_numbers(chosen: Chosen, shape: tuple[int, ...], unit: str) -> Sequence[int]:
    """Numbers of what is chosen; those that are numbers already come back as they are.

    Parameters
    ----------
    chosen : sequence of int, or bool array
        Numbers in any order, or a mask, which gives them in ascending order.
    shape : tuple of int
        Of a mask: (ky,) of lines, (ky, kz) of a plane, (shot,) of shots.
    unit : str
        What one candidate is called.

    Raises
    ------
    InputError
        For a mask of another shape, naming both.
    """
    if isinstance(chosen, np.ndarray):
        flags = chosen.dtype == np.bool_
    else:
        flags = isinstance(chosen, list | tuple) and bool(chosen) and isinstance(chosen[0], bool | np.bool_)
        if not flags:
            return chosen
    if isinstance(chosen, np.ndarray) and not flags:
        return list(chosen.tolist())
    mask = np.asarray(chosen)
    if mask.dtype != np.bool_ or mask.shape not in (shape, (int(np.prod(shape)),)):
        wanted = f"bool {shape}, true for every {unit} that is chosen"
        raise InputError(f"mask of {unit}s", f"{mask.dtype} {mask.shape}", wanted, f"Or give numbers of {unit}s.")
    return list(map(int, np.flatnonzero(mask)))
