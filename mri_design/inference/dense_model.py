"""A model as real matrices: what the dense references compute with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array


@dataclass(frozen=True, kw_only=True)
class DenseModel:
    """A model as real matrices on (real parts, imaginary parts).

    Parameters
    ----------
    X, y : arrays
        Measurement matrix and data.
    noise_variance : float
        sigma^2.
    blocks : tuple of SiteBlock
        As in the model.
    analyses : tuple of arrays
        B of every block, one row per real coefficient.
    site_of_row : tuple of int arrays
        The number of the site that a row belongs to.
    offsets, shifts : tuple of arrays
        Offset and odd part of every row.
    """

    X: Array
    y: Array
    noise_variance: float
    blocks: tuple[SiteBlock, ...]
    analyses: tuple[Array, ...]
    site_of_row: tuple[Array, ...]
    offsets: tuple[Array, ...]
    shifts: tuple[Array, ...]

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> DenseModel:
        data = np.asarray(model.data).ravel()
        numbers = []
        for block in model.blocks:
            site = np.arange(int(np.prod(block.site_shape))).reshape(block.site_shape)
            rows = np.broadcast_to(site, block.analysis.out_shape).ravel()
            numbers.append(np.tile(rows, 2) if block.analysis.out_complex else rows)
        return cls(
            X=model.measurement.to_dense_real(),
            y=np.concatenate([data.real, data.imag]) if model.measurement.out_complex else data.real,
            noise_variance=model.noise_variance,
            blocks=model.blocks,
            analyses=tuple(block.analysis.to_dense_real() for block in model.blocks),
            site_of_row=tuple(numbers),
            offsets=tuple(_embedded(block.offset, block) for block in model.blocks),
            shifts=tuple(_embedded(np.asarray(block.potential.shift), block) for block in model.blocks),
        )


def _embedded(values: Array | None, block: SiteBlock) -> Array:
    """One value per coefficient as real parts, then imaginary parts."""
    full = np.broadcast_to(0.0 if values is None else values, block.analysis.out_shape).ravel()
    return np.concatenate([full.real, full.imag]) if block.analysis.out_complex else full.real
