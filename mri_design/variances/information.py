"""Information of measurements from posterior draws of what they would measure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.base import Array


def gain_from_values(values: Array) -> NDArray[np.float64]:
    """log det(I + C), C the covariance of a few values estimated from draws: twice the information in nats.

    Parameters
    ----------
    values : real or complex array, shape (..., value, draw)
        Deviations from the mean in units of sigma. Where they are complex, i times a draw counts as a draw, too, and
        real and imaginary parts as two values.

    Returns
    -------
    float array, shape (...)
        Of the values of every group together; too small where there are fewer draws than values.

    Notes
    -----
    TR-175, equation (12). det(I + W W^H) = det(I + W^H W), of which the smaller one is computed.
    """
    n_values, count = values.shape[-2:]
    root = values.mT if n_values > count else values
    times = 2 if np.iscomplexobj(values) else 1
    overlaps = root @ np.conj(root.mT) / (times * count) + np.eye(root.shape[-2], dtype=root.dtype)
    return np.asarray(times * np.linalg.slogdet(overlaps)[1], dtype=np.float64)
