"""Exact Gaussian posteriors by dense complex algebra, up to a few thousand complex unknowns.

`mri_design.variances.Exact` and `exact_criterion` work on real unknowns and need no structure. Here X and B commute
with i, so a complex Hermitian A of half the size says the same, in an eighth of the memory and the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from mri_design.estimation.irls import IRLS
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.posterior import GaussianPosterior, Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian import CartesianLines
from mri_design.potentials.priors import Laplace
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator

COLUMNS = 256  # multiplied at a time, so that memory stays at a few matrices


@dataclass(frozen=True)
class DensePosterior:
    """A of a complex-linear model as a factorised matrix.

    Parameters
    ----------
    lower : complex array, shape (n, n)
        L with A = L L^H.
    shape : tuple of int
        Of the image.
    """

    lower: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> DensePosterior:
        """Build A column by column and factorise it."""
        if not precision.complex_linear:
            raise ValueError("dense complex algebra needs a complex-linear model")
        shape = precision.measurement.in_shape
        n = int(np.prod(shape))
        transposed = np.empty((n, n), dtype=np.complex128)
        for first in range(0, n, COLUMNS):
            unit = np.zeros((min(COLUMNS, n - first), n), dtype=np.complex128)
            unit[np.arange(len(unit)), np.arange(first, first + len(unit))] = 1
            transposed[first : first + len(unit)] = precision(unit.reshape(-1, *shape)).reshape(len(unit), n)
        lower = scipy.linalg.cholesky(transposed.T, lower=True, overwrite_a=True, check_finite=False)
        return cls(lower, shape)

    @cached_property
    def root(self) -> Array:
        """Images r_j, (n, *image shape), with A^-1 = sum_j r_j r_j^H."""
        inverse, failed = scipy.linalg.lapack.ztrtri(self.lower, lower=1)
        if failed:
            raise np.linalg.LinAlgError("A is singular")
        return np.conj(np.ascontiguousarray(inverse)).reshape(-1, *self.shape)

    @property
    def log_determinant(self) -> float:
        """log|A| over the real unknowns."""
        return 4 * float(np.sum(np.log(np.diag(self.lower).real)))

    def solve(self, rhs: Array) -> Array:
        """A^-1 rhs for one image."""
        flat = scipy.linalg.cho_solve((self.lower, True), rhs.ravel().astype(np.complex128), check_finite=False)
        return np.asarray(flat).reshape(rhs.shape)

    def variances(self, analysis: LinearOperator) -> Array:
        """z = diag(B A^-1 B^H), real and imaginary part together."""
        z = np.zeros(analysis.out_shape)
        for first in range(0, len(self.root), COLUMNS):
            s = analysis(self.root[first : first + COLUMNS])
            z += 2 * np.sum(s.real**2 + s.imag**2, axis=0)
        return z

    def gains(self, encoding: CartesianLines) -> Array:
        """log det(I + X_* A^-1 X_*^H) of every line of ``encoding``, as `design.information_gain.exact_gain`."""
        coils, lines, readout = encoding.out_shape
        overlap = np.zeros((lines, coils * readout, coils * readout), dtype=np.complex128)
        for first in range(0, len(self.root), COLUMNS):
            rows = (
                encoding(self.root[first : first + COLUMNS]).transpose(2, 1, 3, 0).reshape(lines, coils * readout, -1)
            )
            overlap += rows @ np.conj(rows.swapaxes(-1, -2))
        overlap += np.eye(coils * readout)
        return np.asarray(2 * np.linalg.slogdet(overlap)[1])


@dataclass(frozen=True)
class DenseVariances:
    """The exact variance estimator on `DensePosterior`; it spends no product with A that would count."""

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        dense = DensePosterior.of(precision)
        values = tuple(dense.variances(analysis) for analysis in analyses)
        ended = Convergence(Status.CONVERGED, 1, 0.0)
        return Variances(values, "exact", ended, log_determinant=dense.log_determinant)


def in_double(model: GeneralizedLinearModel) -> GeneralizedLinearModel:
    """The same model with data, and with them all computations, in double precision."""
    return replace(model, data=model.data.astype(np.complex128))


def converged_posterior(
    model: GeneralizedLinearModel,
    warm: WarmStart | None = None,
    *,
    variances: VarianceEstimator | None = None,
    loops: int = 30,
    tolerance: float = 1e-6,
) -> GaussianPosterior:
    """The double loop with exact variances in double precision, to the end; `DenseVariances` without another."""
    inner = IRLS(tolerance=tolerance**2, max_iterations=2000, solver_tolerance=1e-2)
    engine = DoubleLoop(variances or DenseVariances(), inner, loops, tolerance)
    return engine.infer(in_double(model), np.random.default_rng(0), warm_start=warm)


def exact_phi(model: GeneralizedLinearModel, site_precisions: tuple[Array, ...]) -> float:
    """phi(gamma) of a model with Laplace sites, the minimum over u included.

    Notes
    -----
    h(gamma) = tau^2 gamma; agrees with `inference.exact_criterion`, which knows every site and takes eight times as
    long.
    """
    model = in_double(model)
    dense = DensePosterior.of(PosteriorPrecision(model.measurement, model.blocks, site_precisions))
    rhs = model.back_projection()
    fit = np.sum(np.abs(model.data) ** 2) - np.vdot(rhs, dense.solve(rhs)).real
    total = dense.log_determinant + float(fit) / model.noise_variance
    for block, pi in zip(model.blocks, site_precisions, strict=True):
        if not isinstance(block.potential, Laplace):
            raise TypeError(f"block {block.name!r}: exact_phi knows Laplace sites only")
        total += float(np.sum(np.broadcast_to(block.potential.scale**2 / pi, block.site_shape), dtype=np.float64))
    return total
