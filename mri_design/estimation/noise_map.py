"""What the noise of the samples alone does to every pixel of an image, and the g-factor of several coils."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import require_counts, require_numbers, require_random
from mri_design.krylov import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array

REPLICAS = 64
"""Images of noise alone that a map is taken from where it is not known in closed form: each pixel to 6 %."""
_TOLERANCE, _MOST = 1e-3, 500


@briefly
@dataclass(frozen=True)
class NoiseMap:
    """The noise of an image by pixel, and the g-factor.

    Parameters
    ----------
    std : float array, shape (ky, kx)
        Standard deviation of each complex pixel over repeated scans, real and imaginary part together, in the image's
        units. What was not measured does not show in it: where little was, the image is wrong by more.
    g_factor : float array, shape (ky, kx)
        ``std`` over that of the complete scan, over the root of the acceleration; 1 is the least that an unbiased image
        has, and where no coil sees anything it is 0.
    replicas : int
        Images of noise that it was taken from; 0 where it is exact.

    Notes
    -----
    K. P. Pruessmann et al., "SENSE", Magn. Reson. Med. 42 (1999) 952-962, equation 23. Replicas: P. M. Robson et al.,
    Magn. Reson. Med. 60 (2008) 895-907.
    """

    std: Array
    g_factor: Array
    replicas: int = 0

    def times(self, unit: float | Array) -> NoiseMap:
        """The map of an image in other units: times a number, or a number for each pixel."""
        return replace(self, std=np.asarray(self.std * unit, dtype=np.float32))

    def __str__(self) -> str:
        seen = self.g_factor[self.g_factor > 0]
        middle, high = np.quantile(seen, [0.5, 0.95]) if seen.size else (0.0, 0.0)
        how = "exact" if not self.replicas else f"from {self.replicas} images of noise"
        return f"g-factor {middle:.2f} at half of the pixels, below {high:.2f} at 95 %, {how}"


def least_squares_noise(
    model: GeneralizedLinearModel, damping: float, rng: np.random.Generator, *, replicas: int = REPLICAS
) -> NoiseMap:
    """The noise of the image of `least_squares`: for lines exactly, elsewhere from images of noise alone.

    The damped solution is (G + d)^-1 X^H y with G = X^H X, so that its covariance is that of the noise times (G + d)^-1
    - d (G + d)^-2. Damping makes large g-factors smaller than the undamped ones of SENSE. Lines couple no two columns
    of an image, each of which is inverted on its own.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Of X, its noise variance alone is used.
    damping : float
        d, above 0 unless the coils determine every pixel.
    rng : numpy Generator
        Of the images of noise.
    replicas : int
        How many, where they are needed.

    Raises
    ------
    InputError
        For another kind of argument.
    """
    require_model(model)
    require_numbers(damping=damping)
    require_random(rng)
    columns = model.measurement.column_gram()
    if columns is not None:
        inverses = (np.linalg.inv(gram + damping * np.eye(len(gram))) for gram in columns)
        each = [np.diagonal(one).real - damping * np.sum(np.abs(one) ** 2, axis=1) for one in inverses]
        return _map(model, np.stack(each, axis=1), 0)
    gram = model.measurement.gram
    power = _replicated(model, lambda u: gram(u) + damping * u, None, rng, replicas)
    return _map(model, power, replicas)


def posterior_noise(posterior: GaussianPosterior, rng: np.random.Generator, *, replicas: int = REPLICAS) -> NoiseMap:
    """The noise of a posterior mean whose site precisions stay as they are: A^-1 X^H applied to noise alone.

    It says how far images of repeated scans differ. The posterior's standard deviation says how far the image may be
    from the truth, and so holds what was not measured, too.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the image.
    rng : numpy Generator
        Of the images of noise.
    replicas : int
        How many.

    Raises
    ------
    InputError
        For another kind of argument.
    """
    require_posterior(posterior)
    require_random(rng)
    precision = posterior.precision
    power = _replicated(posterior.model, precision, precision.preconditioner, rng, replicas)
    return _map(posterior.model, power, replicas)


def _replicated(
    model: GeneralizedLinearModel,
    precision: Callable[[Array], Array],
    preconditioner: Callable[[Array], Array] | None,
    rng: np.random.Generator,
    replicas: int,
) -> Array:
    """Mean over images of noise of variance 1 per real component of |pixel|^2 / 2, (ky, kx)."""
    require_counts(replicas=replicas, least=2)
    real = np.dtype(np.float32)
    power = np.zeros(model.measurement.in_shape)
    for _ in range(replicas):  # one at a time, to bound the memory
        noise = model.measurement.shared_noise(rng, 1, real)
        images, _ = conjugate_gradients(
            precision,
            model.measurement.adjoint_of_noise(noise),
            n_axes=model.n_axes,
            preconditioner=preconditioner,
            tolerance=_TOLERANCE,
            max_iterations=_MOST,
        )
        power += np.abs(images[0]) ** 2
    return np.asarray(power / (2 * replicas))


def _map(model: GeneralizedLinearModel, power: Array, replicas: int) -> NoiseMap:
    """The map by the variance per component of each pixel, in units of the samples' own."""
    maps = getattr(model.measurement, "maps", None)
    pixels = model.measurement.in_shape
    seen = np.ones(pixels) if maps is None else np.sum(np.abs(maps.astype(np.complex128)) ** 2, axis=0)
    coils = 1 if maps is None else len(maps)
    acceleration = np.prod(pixels) * coils / model.data.size
    g_factor = np.sqrt(np.maximum(power, 0) * seen / acceleration)
    std = np.sqrt(2 * model.noise_variance * np.maximum(power, 0))
    return NoiseMap(std.astype(np.float32), g_factor.astype(np.float32), replicas)
