"""The model of one slice that was measured along a trajectory."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from mri_design.errors import InputError, positive_number
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import DEFAULT_PRIOR, SparsityBlock
from mri_design.operators.base import Array
from mri_design.operators.nonuniform.density import density_weights
from mri_design.operators.nonuniform.fourier import NonUniformFourier

__all__ = ["TrajectorySlice"]


@dataclass(frozen=True)
class TrajectorySlice:
    """One slice with known noise and coil maps, and the samples of it along a trajectory.

    Parameters
    ----------
    samples : complex array, shape (coil, sample)
        The data.
    measurement : NonUniformFourier
        X: trajectory, grid and coil maps.
    noise_variance : float
        Per real component.
    prior : tuple of SparsityBlock
        Sparsity blocks, on moduli. Non-local ones are left out, since they are known from an image only.

    Raises
    ------
    InputError
        On samples of another shape than X gives (several coils without maps among them), a noise variance that is not
        positive, or a prior of non-local blocks alone.
    """

    samples: Array
    measurement: NonUniformFourier
    noise_variance: float
    _: KW_ONLY
    prior: tuple[SparsityBlock, ...] = DEFAULT_PRIOR

    def __post_init__(self) -> None:
        if self.samples.shape != self.measurement.out_shape:
            raise InputError(
                field="samples",
                got=f"shape {self.samples.shape}",
                wanted=f"(coil, sample) {self.measurement.out_shape}",
                cure="Several coils take coil maps, one per coil.",
            )
        positive_number("noise_variance", self.noise_variance)
        if not self.local_prior:
            raise InputError(field="prior", got="no block but non-local ones", wanted="blocks that need no image")

    @property
    def local_prior(self) -> tuple[SparsityBlock, ...]:
        """The blocks of the prior that the model has."""
        return tuple(block for block in self.prior if block.kind != "non-local")

    @cached_property
    def gridded_image(self) -> Array:
        """X^H diag(w) y with weights w that compensate for the density: what the samples show without a model."""
        X = self.measurement
        weights = density_weights(X.trajectory, X.grid).astype(self.samples.real.dtype)
        return X.adjoint(weights * self.samples)

    def signal_level(self) -> float:
        """99.5th percentile of the modulus of the gridded image.

        Raises
        ------
        InputError
            Where that is zero.
        """
        return positive_number("signal level of the gridded image", np.percentile(np.abs(self.gridded_image), 99.5))

    def model(self, signal: float | None = None) -> GeneralizedLinearModel:
        """The model of the samples; scales of the prior follow ``signal``, by default `signal_level`."""
        level = self.signal_level() if signal is None else signal
        noise_sd = float(np.sqrt(self.noise_variance))
        blocks = tuple(block.sites(self.measurement.grid, level, noise_sd) for block in self.local_prior)
        return GeneralizedLinearModel(self.measurement, self.samples, self.noise_variance, blocks)
