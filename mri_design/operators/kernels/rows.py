"""Rows of real weights laid out beside rows of real or complex numbers."""

from __future__ import annotations

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import load, store, store_pairs

__all__ = ["doubled"]


@compiled
def doubled(weights, first, length, parts, row, at, count):
    """``row[at:]`` becomes ``weights[first : first + length]``, each twice where numbers have two parts."""
    whole = length // count * count
    for x in range(0, whole, count):
        w = load(weights, first + x)
        if parts == 2:
            store_pairs(row, at + 2 * x, w, w)
        else:
            store(row, at + x, w)
    for x in range(whole, length):
        for part in range(parts):
            row[at + parts * x + part] = weights[first + x]
