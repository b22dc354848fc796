"""From what the user names to calibrated slices: reading, simulating, noise, coils."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.calibration import (
    coil_combined,
    estimate_coil_maps,
    estimate_noise_covariance,
    estimate_noise_variance,
    prewhiten,
)
from mri_design.errors import InputError
from mri_design.experiment.recipe import Recipe
from mri_design.io import read
from mri_design.kspace import ImageStack, KSpaceData
from mri_design.model import MRSlice
from mri_design.operators import Array
from mri_design.simulation import load_phantom, phantom_kind, phantom_names, phantom_path, simulate_scan

__all__ = ["PHANTOM_PREFIX", "PreparedScan", "load_input", "prepare"]

PHANTOM_PREFIX = "phantom:"
"""``phantom:NAME`` on the command line is one of the embedded scenes."""


def load_input(source: str, recipe: Recipe, seed: int = 0) -> KSpaceData:
    """k-space from a file or an embedded phantom; images become simulated k-space by the recipe.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    recipe : Recipe
        Its ``simulation`` applies to images and simulated phantoms.
    seed : int
        Of the simulation.

    Raises
    ------
    InputError
        Where the input cannot be used; the message says why.
    """
    settings = recipe.simulation
    rng = np.random.default_rng([seed, 1])
    if source.startswith(PHANTOM_PREFIX):
        name = source.removeprefix(PHANTOM_PREFIX)
        if name not in phantom_names():
            known = ", ".join(PHANTOM_PREFIX + n for n in phantom_names())
            raise InputError(field="input", got=repr(source), wanted=f"a file, or one of: {known}")
        if phantom_kind(name) != "kspace":
            shape = None if settings.matrix is None else (settings.matrix, settings.matrix)
            phase = "smooth" if settings.phase is None or settings.phase == "own" else settings.phase
            return load_phantom(name, shape=shape, noise=settings.noise, phase=phase, n_coils=settings.coils, rng=rng)
        source = str(phantom_path(name))
    loaded = read(source)
    if isinstance(loaded, ImageStack):
        return simulate_scan(
            loaded,
            matrix=settings.matrix,
            noise=settings.noise,
            phase=settings.phase,
            n_coils=settings.coils,
            rng=rng,
        )
    return loaded


@dataclass(frozen=True)
class PreparedScan:
    """Data with known noise and coil maps, ready for models.

    Parameters
    ----------
    data : KSpaceData
        Calibrated (whitened where there are several coils).
    calibration_lines : int
        Centre lines that the coil maps were estimated from; 0 where no calibration was needed. A design has to start
        with them.
    """

    data: KSpaceData
    calibration_lines: int = 0

    def slice_model(self, index: int, recipe: Recipe) -> MRSlice:
        """One slice as the model takes it."""
        return MRSlice.from_data(self.data, index, prior=recipe.blocks(), library=recipe.fft)

    def reference(self, index: int) -> Array | None:
        """The image to compare with: the simulated truth, or the fully sampled scan's own; None where lines miss."""
        if self.data.reference is not None:
            return self.data.reference[index]
        if not self.data.fully_sampled:
            return None
        return np.asarray(coil_combined(self.data.select_slice(index))[0])


def prepare(
    data: KSpaceData, recipe: Recipe, *, calibration_lines: int | None = None, measured: Array | None = None
) -> PreparedScan:
    """Estimate what is unknown: noise (variance, or covariance and whitening for several coils), then coil maps.

    Parameters
    ----------
    data : KSpaceData
        As read.
    recipe : Recipe
        Given noise and calibration settings.
    calibration_lines : int, optional
        Centre lines for the coil maps instead of the recipe's number.
    measured : bool array, shape (ky,), optional
        Lines that calibration may look at (a mask's); all measured ones by default.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    allowed = data if measured is None else _only(data, measured)
    variance = recipe.noise.variance
    if variance is not None:
        data = replace(data, noise_variance=variance)
    elif data.n_coils > 1 and data.noise_variance is None:
        data = prewhiten(data, estimate_noise_covariance(allowed))
        allowed = data if measured is None else _only(data, measured)
    elif data.noise_variance is None:
        data = replace(data, noise_variance=estimate_noise_variance(allowed))
    if data.n_coils == 1 or data.coil_maps is not None:
        return PreparedScan(data)
    lines = calibration_lines or min(recipe.coils.calibration_lines, data.grid_shape[0])
    maps = estimate_coil_maps(allowed, lines=lines).coil_maps
    return PreparedScan(replace(data, coil_maps=maps), lines)


def _only(data: KSpaceData, measured: Array) -> KSpaceData:
    """The data with every other line emptied, as if it had never been acquired."""
    keep = data.measured & measured
    return replace(data, kspace=np.where(keep[:, None], data.kspace, 0), measured=keep)
