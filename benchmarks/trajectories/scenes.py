"""Objects that are sampled along any trajectory with noise, and the model that reconstructs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.scans import NOISE, simulated, simulating

from mri_design.experiment.recipe import load_recipe
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.scan.simulation.coil_maps import simulate_coil_maps
from mri_design.scan.simulation.phantoms import load_phantom_shots

RECIPE = load_recipe("local")


@dataclass(frozen=True)
class Scene:
    """An object and what a scanner without noise would measure of it.

    Parameters
    ----------
    name : str
        For tables.
    reference : complex64 array, shape (ky, kx)
        The truth on the grid; the 99.5th percentile of its modulus is 1, or close to it.
    sampled : callable
        Trajectory (sample, 2) to samples (1, sample).
    """

    name: str
    reference: Array
    sampled: Callable[[Array], Array]

    @property
    def shape(self) -> tuple[int, int]:
        """Sides of the grid (ky, kx)."""
        return int(self.reference.shape[0]), int(self.reference.shape[1])

    def along(self, shots: Array, seed: int = 0) -> GeneralizedLinearModel:
        """The model of noisy samples along shots (..., 2).

        The rates of the prior are per unit of the true signal level, for every set of shots alike, so that sets differ
        in nothing but where they measure.
        """
        k = np.ascontiguousarray(shots.reshape(-1, 2))
        return model_of(NonUniformFourier(k, self.shape), self.sampled(k), seed)

    def seen_by_coils(self, shots: Array, coils: int, seed: int = 0) -> GeneralizedLinearModel:
        """The scene seen by simulated coils, whose maps are known; samples are those of the image on the grid."""
        maps = simulate_coil_maps(self.shape, coils, np.random.default_rng([seed, 4]))
        X = NonUniformFourier(np.ascontiguousarray(shots.reshape(-1, 2)), self.shape, maps)
        return model_of(X, X(self.reference.astype(np.complex128)), seed)


def model_of(measurement: LinearOperator, clean: Array, seed: int) -> GeneralizedLinearModel:
    """Samples with noise, and the prior of the recipe `local`."""
    rng = np.random.default_rng([seed, 1])
    data = clean + NOISE * (rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape))
    shape = (measurement.in_shape[0], measurement.in_shape[1])
    blocks = tuple(block.sites(shape, 1.0, NOISE) for block in RECIPE.blocks())
    return GeneralizedLinearModel(measurement, data.astype(np.complex64), NOISE**2, blocks)


def engine() -> DoubleLoop:
    """Inference as the recipe has it."""
    return RECIPE.inference.engine()


def heads(source: str | Path, numbers: Sequence[int], matrix: int) -> list[Scene]:
    """Complex heads, band-limited to the grid: their samples are the transform of the grid's image."""
    scans = simulated(source, numbers, simulating(matrix))

    def scene(name: str, image: Array) -> Scene:
        exact = image.astype(np.complex128)
        return Scene(name, image.astype(np.complex64), lambda k: NonUniformFourier(k, image.shape)(exact))

    return [scene(scan.name, scan.reference) for scan in scans]


def ellipses(matrix: int) -> Scene:
    """The embedded brain of ellipses, its samples in closed form: no grid explains them exactly."""

    def scan(k: Array) -> tuple[Array, Array]:
        made = load_phantom_shots("brain", k, shape=matrix, noise=0.0, rng=np.random.default_rng(0))
        return made.kspace.astype(np.complex128), made.reference

    return Scene("ellipses", scan(np.array([[2.0, 0.0]]))[1], lambda k: scan(k)[0])
