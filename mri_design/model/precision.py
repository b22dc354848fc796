"""The scaled posterior precision A = X^H X + B^H diag(pi) B."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np

from mri_design.errors import InputError, require_allocatable
from mri_design.krylov.conjugate_gradients import in_chunks
from mri_design.model.circulant_inverse import circulant_inverse, phased_preconditioner
from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.memory import recent_noise
from mri_design.model.sums import add_weighted_grams
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.dense import MatrixOperator


@dataclass(frozen=True)
class PosteriorPrecision:
    """A as something to multiply with, sample from and precondition; Cov[u] = sigma^2 A^-1.

    Parameters
    ----------
    measurement : LinearOperator
        X.
    blocks : tuple of SiteBlock
        Blocks of B.
    site_precisions : tuple of float arrays
        pi = 1 / gamma per block, broadcastable to the block's coefficients (groups have length-one axes).
    """

    measurement: LinearOperator
    blocks: tuple[SiteBlock, ...]
    site_precisions: tuple[Array, ...]

    def __getstate__(self) -> dict[str, object]:
        """The fields alone travel to other processes: what is derived from them is found again, and may be closures."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _gram(self) -> LinearOperator:
        return self.measurement.gram

    def __call__(self, u: Array) -> Array:
        """A u, for one image or a batch."""
        total = self._gram(u)
        if np.may_share_memory(total, u):  # X may be the identity
            total = total.copy()
        add_weighted_grams([block.analysis for block in self.blocks], self.site_precisions, u, total)
        return total

    @property
    def complex_linear(self) -> bool:
        """True where A commutes with multiplication by i, so that real and imaginary parts are exchangeable."""
        return self.measurement.complex_linear and all(b.analysis.complex_linear for b in self.blocks)

    @cached_property
    def circulant_spectrum(self) -> Array | None:
        """Eigenvalues of the circulant nearest to A (FFT order), or None where X or B do not know theirs."""
        spectra = [self.measurement.circulant_spectrum()]
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            spectra.append(block.analysis.circulant_spectrum(np.broadcast_to(pi, block.analysis.out_shape)))
        known = [s for s in spectra if s is not None]
        if len(known) < len(spectra) or len(self.measurement.in_shape) != 2:
            return None
        return np.maximum(sum(known), np.finfo(np.float32).tiny)

    @cached_property
    def preconditioner(self) -> Callable[[Array], Array] | None:
        """r -> (nearest circulant)^-1 r, for conjugate gradients.

        It saves most iterations where sites on differences dominate; little is gained, and on strongly sparse wavelets
        something lost, where pi spans many decades. Real and imaginary part have one each where sites know a
        phase (`phased_preconditioner`).
        """
        phased = phased_preconditioner(self.measurement, self.blocks, self.site_precisions)
        if phased is not None:
            return phased
        spectrum = self.circulant_spectrum
        return None if spectrum is None else circulant_inverse(spectrum)

    def perturbations(
        self, rng: np.random.Generator, count: int, like: Array, *, again: bool = False, at_once: int | None = None
    ) -> Array:
        """``count`` draws b ~ N(0, A): X^H e_0 + B^H sqrt(pi) e, with e of unit variance per real component.

        Parameters
        ----------
        rng : numpy Generator
            Source of the noise.
        count : int
            Number of draws.
        like : array
            Its precision (single or double) is used.
        again : bool
            Whether an equal generator is likely to be given again soon, so that its noise is worth keeping.
        at_once : int, optional
            Draws that are made of the noise at a time, all by default: what is made of the noise on the way is held for
            so many.

        Returns
        -------
        array, shape (count, *image shape)
            A^-1 b then has covariance A^-1 (Papandreou & Yuille 2010). From equal generators, measurements that share
            k-space lines share the noise of those lines, so that b changes little when a line is added.

        Raises
        ------
        InputError
            Where a site precision is negative, or there are more draws than an array may hold.
        """
        rows = max(self.measurement.out_size, like.size)
        require_allocatable("draws", count, rows, item_bytes=like.itemsize, got=count, cure="Ask for fewer draws.")
        if any(np.any(np.asarray(pi) < 0) for pi in self.site_precisions):
            raise InputError(
                "draws",
                "negative site precisions, as sites that are not log-concave may have",
                "site precisions of zero or more",
                "Infer with variances from draws (MonteCarlo), which keep them so, or with DoubleLoop.",
            )
        made = recent_noise if again else _noise_anew
        real = like.real.dtype
        noise = made(self.measurement, rng, count, real)
        draws = in_chunks(self.measurement.adjoint_of_noise, noise, at_once)
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            noise = made(block.analysis, rng, count, real)
            draws = draws + in_chunks(partial(block.analysis.weighted_adjoint, np.sqrt(pi)), noise, at_once)
        return draws

    def dense_real(self, limit: int = 9000) -> Array:
        """A as a real matrix on (real parts, imaginary parts); the reference for everything faster."""
        x = self.measurement.to_dense_real(limit)
        total = x.T @ x
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            weights = np.broadcast_to(pi, block.analysis.out_shape).ravel()
            if isinstance(block.analysis, MatrixOperator) and not block.analysis.in_complex:
                total += block.analysis.weighted_gram_matrix(weights)
                continue
            b = block.analysis.to_dense_real(limit)
            if block.analysis.out_complex:
                weights = np.concatenate([weights, weights])
            total += b.T @ (weights[:, None] * b)
        return np.asarray(total)


def _noise_anew(operator: LinearOperator, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
    return operator.shared_noise(rng, count, real)
