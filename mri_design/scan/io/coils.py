"""Receive coils that hold nothing of their own: dead ones, and copies of others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def working_coils(kspace: NDArray[np.complex64]) -> tuple[NDArray[np.intp], dict[str, str]]:
    """Coils that hold samples of their own, and notes on the others for the card.

    With a coil whose samples are all zero, or one that repeats another's, the covariance of the coils' noise could not
    be inverted.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ...)
        As measured.

    Returns
    -------
    int array, shape (working coil,)
        In their order; all of them where every coil is zero, which is for others to refuse.
    dict of str to str
        Which coils were dropped and why; empty where none was.
    """
    sums = [complex(kspace[:, coil].sum(dtype=np.complex128)) for coil in range(kspace.shape[1])]
    kept, dead, copies = list[int](), list[int](), list[str]()
    for coil, total in enumerate(sums):
        samples = kspace[:, coil]
        if not samples.any():
            dead.append(coil)
            continue
        alike = (other for other in kept if sums[other] == total and np.array_equal(kspace[:, other], samples))
        original = next(alike, None)
        if original is None:
            kept.append(coil)
        else:
            copies.append(f"{coil} repeats coil {original}")
    if not kept:
        return np.arange(kspace.shape[1]), {}
    reasons = [f"{coil} holds zeros only" for coil in dead] + copies
    return np.array(kept), {"coils_dropped": f"coil {'; coil '.join(reasons)}"} if reasons else {}


def only_coils(kspace: NDArray[np.complex64], coils: NDArray[np.intp]) -> NDArray[np.complex64]:
    """Some coils of (slice, coil, ...); the array itself, not a copy, where these are all."""
    return kspace if len(coils) == kspace.shape[1] else kspace[:, coils]
