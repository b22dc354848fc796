"""The level that simulated scans are scaled to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

_BRIGHT = 99.5  # percentile of the magnitude that is scaled to one


def bright_level(images: NDArray[Any], name: str) -> float:
    """99.5th percentile of the magnitude.

    Parameters
    ----------
    images : array
        Any shape.
    name : str
        Whose images, for the message.

    Raises
    ------
    InputError
        Where it is zero.
    """
    level = float(np.percentile(np.abs(images), _BRIGHT))
    if not level > 0:
        raise InputError(
            field=name,
            got=f"a {_BRIGHT}th percentile of the magnitude of {level}",
            wanted="signal in more than 0.5 % of the pixels",
        )
    return level
