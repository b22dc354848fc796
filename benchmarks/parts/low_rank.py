"""Low-rank completion of the central block of k-space (SAKE: P. J. Shin et al., Magn. Reson. Med. 72 (2014) 959-970).

A window of 5 x 5 samples of all coils that slides over the block gives the rows of a matrix of low rank. Its projection
onto the strongest directions and the measured samples take turns. ESPIRiT on the completed block gives maps.
"""

from __future__ import annotations

import numpy as np

from mri_design.calibration.espirit import central, coil_directions, espirit
from mri_design.operators.base import Array

WINDOW = 5
ITERATIONS = 80


def windows(block: Array) -> Array:
    """Rows of all samples in a window, shape (place, coil * 25)."""
    held = np.lib.stride_tricks.sliding_window_view(block, (WINDOW, WINDOW), axis=(-2, -1))
    coils, rows, columns = held.shape[:3]
    return held.transpose(1, 2, 0, 3, 4).reshape(rows * columns, coils * WINDOW**2)


def block_of(rows: Array, shape: tuple[int, ...]) -> Array:
    """The block whose windows are nearest to these rows: every sample the mean of its entries."""
    coils, ky, kx = shape
    high, wide = ky - WINDOW + 1, kx - WINDOW + 1
    held = rows.reshape(high, wide, coils, WINDOW, WINDOW)
    total, count = np.zeros(shape, complex), np.zeros((ky, kx))
    for i in range(WINDOW):
        for j in range(WINDOW):
            total[:, i : i + high, j : j + wide] += held[..., i, j].transpose(2, 0, 1)
            count[i : i + high, j : j + wide] += 1
    return total / count


def completed(block: Array, samples: Array, rank: int) -> Array:
    """The central block (coil, ky, kx) with those samples filled in that were not measured."""
    known = np.where(samples, block, 0).astype(complex)
    filled = known
    for _ in range(ITERATIONS):
        rows = windows(filled)
        strongest = np.linalg.eigh(rows.conj().T @ rows)[1][:, -rank:]
        filled = np.where(samples, known, block_of((rows @ strongest) @ strongest.conj().T, known.shape))
    return filled


def completed_maps(kspace: Array, samples: Array, rank: int, side: int = 32) -> Array:
    """Maps (coil, ky, kx) by ESPIRiT on the 24 samples at the centre of the completed block."""
    whole = np.zeros_like(kspace)
    filled = completed(central(kspace, side), central(samples, side), rank)
    central(whole, side)[:] = filled
    flat = filled.reshape(len(kspace), -1)
    return espirit(whole, coil_directions(flat @ flat.conj().T), 24)
