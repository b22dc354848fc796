"""Samples along a trajectory, calibrated: noise, coil maps, and the slices that models are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mri_design.experiment.inputs import ordinary_scale, whitened
from mri_design.experiment.recipe import Recipe
from mri_design.model.trajectory_slice import TrajectorySlice
from mri_design.operators.nonuniform.fourier import NonUniformFourier
from mri_design.scan.calibration.coil_maps import estimate_coil_maps
from mri_design.scan.calibration.trajectory_centre import gridded_centre, rim_noise_variance
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = ["PreparedSamples", "prepare_samples"]

_MEASURED = "from the noise readouts"


@dataclass(frozen=True)
class PreparedSamples:
    """Data with known noise and coil maps, ready for models.

    Parameters
    ----------
    data : TrajectoryData
        Calibrated.
    noise_source, maps_source : str
        Where the noise and the coil maps are from, in words.
    unit : float
        What images of these data are multiplied by to be in the input's units: 1, but for amplitudes far from 1, which
        are scaled to ordinary numbers.
    """

    data: TrajectoryData
    noise_source: str
    maps_source: str
    unit: float = 1.0

    def slice_model(self, index: int, recipe: Recipe) -> TrajectorySlice:
        """One slice as the model takes it."""
        data = self.data.select_slice(index)
        maps = None if data.coil_maps is None or data.n_coils == 1 else data.coil_maps[0]
        X = NonUniformFourier(data.trajectory, data.grid_shape, maps)
        assert data.noise_variance is not None
        return TrajectorySlice(data.kspace[0], X, data.noise_variance, prior=recipe.blocks())


def prepare_samples(data: TrajectoryData, recipe: Recipe, *, used: TrajectoryData | None = None) -> PreparedSamples:
    """Estimate what is unknown: the noise, then the coil maps.

    Coils are whitened by the covariance of the scanner's noise readouts. Without one they count as equally noisy and
    independent, as in scans of lines with holes: the outermost samples hold signal too, whose correlations would shade
    the image if they were taken for those of noise.

    Parameters
    ----------
    data : TrajectoryData
        As read; the noise is estimated from all of it.
    recipe : Recipe
        Given noise, and calibration settings.
    used : TrajectoryData, optional
        The part of the data that coil calibration may look at, and that is reconstructed; all by default.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    scale = ordinary_scale(data.kspace)
    known, noise_source = _with_noise(data, (data if used is None else used).scaled(scale), recipe, scale)
    # Whitened coils are in units of the noise, whatever the scale.
    unit = 1.0 if noise_source == _MEASURED and known.n_coils > 1 else 1 / scale
    if known.n_coils == 1:
        return PreparedSamples(known, noise_source, "one coil", unit)
    if known.coil_maps is not None:
        source = f"given ({data.card.get('coil_maps_file', 'with the data')})"
        return PreparedSamples(known, noise_source, source, unit)
    centre = gridded_centre(known, recipe.coils.calibration_lines)
    lines = int(centre.measured.sum())
    maps = estimate_coil_maps(centre, lines=lines).coil_maps
    source = f"estimated from {lines} x {lines} samples that were gridded around DC"
    return PreparedSamples(replace(known, coil_maps=maps), noise_source, source, unit)


def _with_noise(data: TrajectoryData, used: TrajectoryData, recipe: Recipe, scale: float) -> tuple[TrajectoryData, str]:
    """``used``, which is scaled, with the noise known, and where it is from."""
    variance, source = recipe.noise.variance, "given in the recipe"
    if variance is None and used.noise_covariance is not None:
        return whitened(used, used.noise_covariance), _MEASURED
    if variance is None:
        variance, source = data.noise_variance, "given with the data"
    if variance is None:
        variance = rim_noise_variance(data)
        source = "estimated from the outermost samples, signal in them included"
    return replace(used, noise_variance=variance * scale**2, noise_covariance=None), source
