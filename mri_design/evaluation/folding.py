"""Whether an image looks as if its object were larger than the field of view and folded in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FRAME = 16
_SIGNAL, _BRIGHT = 99.5, 0.2
_SHARE = 0.25


def looks_folded(image: NDArray[np.generic]) -> bool:
    """Whether the frame of an image, where there should be air, is bright.

    An object that is cut by one or two edges of the image, as a neck is, does not make its whole frame bright.

    Parameters
    ----------
    image : complex or real array, shape (ky, kx)
        A reconstruction that suppresses streaks and noise; those of a gridded image are bright everywhere.

    Returns
    -------
    bool
        True where more than a quarter of the pixels in the outermost sixteenth of every side have a magnitude above a
        fifth of the signal, the 99.5th percentile.
    """
    magnitude = np.abs(image)
    rows, columns = (max(1, side // _FRAME) for side in magnitude.shape)
    frame = np.ones(magnitude.shape, dtype=bool)
    frame[rows:-rows, columns:-columns] = False
    return bool(np.mean(magnitude[frame] > _BRIGHT * np.percentile(magnitude, _SIGNAL)) > _SHARE)
