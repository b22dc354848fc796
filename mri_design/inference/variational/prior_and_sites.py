"""A model split into its Gaussian part, whitened, and all other sites: dense algebra for the reference engines.

With u / sigma = centre + R^-T w and P0 = R R^T the precision of the Gaussian part, w is N(0, I) under it and the other
sites see G w + (B centre - offset / sigma), G = B R^-T.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.inference.dense_model import DenseModel
from mri_design.inference.variational.site_gaussians import sharing
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status
from mri_design.variances.exact import Exact


@dataclass(frozen=True)
class DualState:
    """Mean and variances of every row at (alpha, lambda), and the pieces that derivatives need.

    Parameters
    ----------
    mean, variance : arrays
        Of s: means - S alpha, diag of the covariance; S = G G^T.
    covariance : array
        Of all rows.
    log_determinant : float
        log|B|, B = I + L^(1/2) S L^(1/2) with L = diag(lambda): log|A| less that of the Gaussian part.
    trace : float
        tr B^-1.
    """

    mean: Array
    variance: Array
    covariance: Array
    log_determinant: float
    trace: float

    @classmethod
    def of(cls, S: Array, means: Array, alpha: Array, weights: Array) -> DualState:
        """By one Cholesky factorisation, without an inverse of S."""
        root = np.sqrt(weights)
        factor = scipy.linalg.cholesky(np.eye(len(S)) + root[:, None] * S * root, lower=True)
        half = scipy.linalg.solve_triangular(factor, root[:, None] * S, lower=True)
        covariance = S - half.T @ half
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(S)), lower=True)
        variance = np.maximum(np.diag(covariance), 1e-14 * np.diag(S))
        logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
        return cls(means - S @ alpha, variance, covariance, logarithm, float(np.sum(inverse**2)))

    def half_phi(self, split: PriorAndSites, S: Array, alpha: Array) -> tuple[float, Array, Array]:
        """phi / 2 of the Gaussian with these parameters, and the derivatives of sum E log t in mean and variance."""
        value, d_mean, d_variance = split.expectation(self.mean, self.variance)
        divergence = self.log_determinant + self.trace - len(S) + alpha @ S @ alpha
        return 0.5 * (float(divergence) + split.constant) - value, d_mean, d_variance


@dataclass(frozen=True)
class SitePart:
    """One block of sites that are not Gaussian.

    Parameters
    ----------
    block : SiteBlock
        In the model.
    rows : slice
        Its rows of G.
    site_of_row : int array
        Site of every row.
    """

    block: SiteBlock
    rows: slice
    site_of_row: Array

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t, and its derivatives in the mean and the variance of every row."""
        count, sites = sharing(self.block), int(np.prod(self.block.site_shape))
        if count == 1:
            modulus, spread = mean, variance
        else:
            modulus = np.sqrt(np.bincount(self.site_of_row, weights=mean**2, minlength=sites))
            spread = np.bincount(self.site_of_row, weights=variance, minlength=sites) / count
        shape = self.block.site_shape
        expected = self.block.potential.expected_log_t(modulus.reshape(shape), spread.reshape(shape), count)
        value, d_mean, d_variance = (np.broadcast_to(a, shape).ravel() for a in vars(expected).values())
        along = 1.0 if count == 1 else mean / np.maximum(modulus, 1e-300)[self.site_of_row]
        return float(np.sum(value)), d_mean[self.site_of_row] * along, d_variance[self.site_of_row] / count


@dataclass(frozen=True)
class PriorAndSites:
    """The split model, in units of sigma.

    Parameters
    ----------
    model : GeneralizedLinearModel
        As given.
    centre : array
        Mean of the Gaussian part.
    root : array
        R, lower triangular.
    rows : array, shape (rows, n)
        G.
    means : array
        B centre - offset / sigma.
    parts : tuple of SitePart
        The blocks that are not Gaussian.
    constant : float
        phi of the Gaussian part alone.
    """

    model: GeneralizedLinearModel
    centre: Array
    root: Array
    rows: Array
    means: Array
    parts: tuple[SitePart, ...]
    constant: float

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> PriorAndSites:
        """Split a small model.

        Raises
        ------
        InputError
            Where the Gaussian part (X and Gaussian sites) leaves a direction undetermined.
        """
        dense, sigma = DenseModel.of(model), float(np.sqrt(model.noise_variance))
        precision, linear = dense.X.T @ dense.X, dense.X.T @ dense.y / sigma
        constant = float(dense.y @ dense.y) / sigma**2
        parts, rows, offsets, count = [], [], [], 0
        numbered = zip(model.blocks, dense.analyses, dense.site_of_row, dense.offsets, strict=True)
        for block, B, site, offset in numbered:
            own = block.potential.gaussian_precision
            if own is not None:
                weights = np.broadcast_to(own, block.site_shape).ravel()[site]
                precision = precision + B.T @ (weights[:, None] * B)
                linear = linear + B.T @ (weights * offset) / sigma
                constant += float(offset @ (weights * offset)) / sigma**2
                continue
            parts.append(SitePart(block, slice(count, count + len(B)), site))
            rows.append(B)
            offsets.append(offset / sigma)
            count += len(B)
        try:
            root = scipy.linalg.cholesky(precision, lower=True)
        except scipy.linalg.LinAlgError as error:
            raise InputError(
                "Gaussian part of the model",
                "X and Gaussian sites that leave a direction undetermined",
                "a proper Gaussian prior",
                "Add Gaussian sites on the unknowns, or infer with VariationalGaussian.",
            ) from error
        centre = scipy.linalg.cho_solve((root, True), linear)
        B = np.concatenate([np.zeros((0, len(root))), *rows])
        G = scipy.linalg.solve_triangular(root, B.T, lower=True).T
        constant += 2 * float(np.sum(np.log(np.diag(root)))) - float(centre @ linear)
        return cls(model, centre, root, G, B @ centre - np.concatenate([np.zeros(0), *offsets]), tuple(parts), constant)

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t over all rows at their means and variances, and its derivatives."""
        expectations = [part.expectation(mean[part.rows], variance[part.rows]) for part in self.parts]
        return (
            sum(expectation[0] for expectation in expectations),
            np.concatenate([expectation[1] for expectation in expectations]),
            np.concatenate([expectation[2] for expectation in expectations]),
        )

    def gaussian(self) -> GaussianPosterior:
        """The posterior where all sites are Gaussian: there is nothing to iterate."""
        done = Convergence(Status.CONVERGED, 0, 0.0)
        return self.posterior(np.zeros(len(self.centre)), np.zeros(0), done, (self.constant,), 0.0)

    def posterior(
        self,
        w: Array,
        row_precisions: Array,
        convergence: Convergence,
        criterion: tuple[float, ...],
        stationarity: float,
    ) -> GaussianPosterior:
        """What the package calls the Gaussian with whitened mean w and these site precisions."""
        model, sigma = self.model, float(np.sqrt(self.model.noise_variance))
        flat = sigma * (self.centre + scipy.linalg.solve_triangular(self.root, w, lower=True, trans="T"))
        if model.measurement.in_complex:
            flat = flat[: flat.size // 2] + 1j * flat[flat.size // 2 :]
        mean = flat.reshape(model.image_shape).astype(model.back_projection().dtype)
        by_block = {}
        for part in self.parts:
            sites = int(np.prod(part.block.site_shape))
            pi = np.zeros(sites)
            pi[part.site_of_row] = row_precisions[part.rows]
            by_block[id(part.block)] = pi.reshape(part.block.site_shape)
        pis = tuple(
            by_block[id(block)] if own is None else np.broadcast_to(own, block.site_shape)
            for block in model.blocks
            for own in [block.potential.gaussian_precision]
        )
        precision = PosteriorPrecision(model.measurement, model.blocks, pis)
        marginals = Exact()(precision, [block.analysis for block in model.blocks], np.random.default_rng(0), mean)
        spent = replace(convergence, matvecs=0)
        return GaussianPosterior(
            model,
            mean,
            precision,
            marginals,
            convergence=spent,
            criterion=criterion,
            criterion_kind="exact",
            stationarity=stationarity,
        )
