"""The Gaussian approximation of the posterior, and marginal variances with their kind and error."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.errors import require_counts, require_instance, require_random
from mri_design.krylov import LanczosFactors
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence

VarianceKind = Literal["exact", "lower_bound", "unbiased"]


@briefly
@dataclass(frozen=True)
class Variances:
    """z = diag(B A^-1 B^H) for a list of analysis operators.

    Parameters
    ----------
    values : tuple of float arrays
        One per analysis operator, of its output shape, in units of sigma^2. For complex coefficients the SUM of the
        variances of real and imaginary part.
    kind : {"exact", "lower_bound", "unbiased"}
        The kind of the numbers: "unbiased" ones are means over random draws, whose expectation is the truth but for
        ``bias``.
    convergence : Convergence
        Of the linear algebra behind them.
    std_error : tuple of float arrays, optional
        Standard error of each value, in its units: how far it scatters, because draws are few. None where the error is
        not random.
    bias : tuple of float arrays, optional
        One array per array of ``values``, of its shape and in its units (absolute, not relative), zero or positive: an
        estimate of how far each value may lie off, mostly below, because every draw was solved to a tolerance and not
        exactly. More draws do not make it smaller, a smaller tolerance of the solver does. It is cautious, some two to
        four times the root mean square over coefficients of similar size, so that the truth is expected within
        ``3 * std_error + bias`` of nearly every value, however many draws there are. Zero where draws are known
        exactly; None where there are no draws behind the values, or where the estimator was told to leave it out.
    samples : array, shape (count, *image shape), optional
        Draws with covariance A^-1 made on the way.
    explained : array, shape of ``samples``, optional
        P b for the right-hand side b of every draw, with P the inverse of the circulant nearest to A, or of the
        circulants of real and imaginary part behind a phase: the part of the draws whose variances are known exactly.
    image : float array, shape of one image, optional
        z of the pixels, where the draws alone would tell it worse.
    factors : LanczosFactors, optional
        Low-rank representation made on the way.
    log_determinant : float, optional
        log|A| on the real unknowns; exact only where ``kind`` is.
    """

    values: tuple[Array, ...]
    kind: VarianceKind
    convergence: Convergence
    _: KW_ONLY
    std_error: tuple[Array, ...] | None = None
    bias: tuple[Array, ...] | None = None
    samples: Array | None = None
    explained: Array | None = None
    image: Array | None = None
    factors: LanczosFactors | None = None
    log_determinant: float | None = None


@briefly
@dataclass(frozen=True)
class GaussianPosterior:
    """Q(u) = N(mean, sigma^2 A^-1).

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model whose posterior it is.
    mean : array, shape of the image
        Posterior mean, in the units of the data.
    precision : PosteriorPrecision
        A with the final site precisions.
    marginals : Variances
        z of the model's blocks under A (per coefficient, not pooled over groups), in units of sigma^2: one array per
        block. What they are worth stands beside them: ``marginals.kind``, ``marginals.std_error`` and, where they come
        from draws, ``marginals.bias``.
    convergence : Convergence
        Of the inference.
    criterion : tuple of float
        Trace of the criterion phi over outer loops; empty where it was not computed.
    criterion_kind : {"exact", "estimate", "none"}
        Whether log|A| in the trace was exact.
    stationarity : float
        How far the site precisions are from those that their own z asks for: mean over sites of the relative
        difference of pi and -2 g'(|s|^2 / sigma^2 + z). Zero exactly where the criterion is stationary: at its minimum
        for log-concave models (``model.log_concave``), in a local one for others. Other engines than the double loop
        hold pi against what their own rule asks for.
    """

    model: GeneralizedLinearModel
    mean: Array
    precision: PosteriorPrecision
    marginals: Variances
    _: KW_ONLY
    convergence: Convergence
    criterion: tuple[float, ...] = ()
    criterion_kind: str = "none"
    stationarity: float = float("nan")

    @property
    def site_precisions(self) -> Array | tuple[Array, ...]:
        """pi = 1 / gamma: the array of a model of one block, a tuple of one per block otherwise."""
        return _alone(self.precision.site_precisions)

    @property
    def variances(self) -> Variances:
        """`marginals`, with ``values``, ``std_error`` and ``bias`` arrays in a model of one block, else as there."""
        made = self.marginals
        return replace(
            made,
            values=_alone(made.values),
            std_error=None if made.std_error is None else _alone(made.std_error),
            bias=None if made.bias is None else _alone(made.bias),
        )

    @cached_property
    def image_variances(self) -> Array:
        """Var[u] of every pixel in the image's units squared, real and imaginary part together.

        Of the same kind as `marginals`: from its draws or Lanczos vectors, or by dense algebra where it was exact.
        """
        made = self.marginals
        scaled: Array
        if made.image is not None:
            scaled = made.image
        elif made.samples is not None:
            scaled = np.mean(np.abs(made.samples) ** 2, axis=0)
        elif made.factors is not None:
            components = 2 if self.model.measurement.in_complex else 1
            scaled = components * np.sum(np.abs(made.factors.inverse_root()) ** 2, axis=0)
        else:
            inverse = np.diag(scipy.linalg.inv(self.precision.dense_real()))
            scaled = inverse.reshape(-1, *self.mean.shape).sum(axis=0)
        return np.asarray(self.model.noise_variance * scaled, dtype=self.mean.real.dtype)

    def draw(
        self, rng: np.random.Generator, count: int, *, tolerance: float = 1e-2, max_iterations: int = 500
    ) -> tuple[Array, Convergence]:
        """Draws of (u - mean) / sigma, covariance A^-1, by perturb-and-solve.

        Parameters
        ----------
        rng : numpy Generator
            Source of randomness.
        count : int
            Number of draws.
        tolerance, max_iterations : float, int
            Of the conjugate gradients; see `krylov.conjugate_gradients`.

        Raises
        ------
        InputError
            For anything but a generator, no draw, a senseless tolerance or limit.
        """
        require_random(rng)
        require_counts(count=count, least=1)
        b = self.precision.perturbations(rng, count, like=self.mean)
        return self.precision.solve(b, tolerance=tolerance, max_iterations=max_iterations)

    def deviations(self, rng: np.random.Generator, count: int) -> Array:
        """At least ``count`` draws of (u - mean) / sigma: those inference made, topped up where they are too few.

        Raises
        ------
        InputError
            For anything but a generator, or no draw.
        """
        require_counts(count=count, least=1)
        made = self.own_deviations(rng, count)
        return made if len(made) >= count else np.concatenate([made, self.draw(rng, count - len(made))[0]])

    def own_deviations(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of (u - mean) / sigma: those inference made, however many, or ``count`` where it made none.

        Raises
        ------
        InputError
            For anything but a generator, or no draw.
        """
        require_random(rng)
        return self.draw(rng, count)[0] if self.marginals.samples is None else self.marginals.samples


def require_posterior(posterior: object, name: str = "posterior") -> None:
    """Refuse anything but a Gaussian posterior.

    Raises
    ------
    InputError
        Saying where one comes from.
    """
    cure = "Infer one: DoubleLoop(Exact()).infer(model, rng)."
    require_instance(GaussianPosterior, wanted="a GaussianPosterior", cure=cure, **{name: posterior})


def _alone(arrays: tuple[Array, ...]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays
