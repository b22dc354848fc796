"""An image, and where the method knows them its error bars, from samples along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.brief import briefly
from mri_design.calibration.whitening import inverse_root
from mri_design.experiment.inputs import (
    GIVEN_NOISE,
    Calibrated,
    naming_dead_coils,
    ordinary_scale,
    though,
    whitened,
    with_least_noise,
    with_witnesses,
)
from mri_design.experiment.recipe import Recipe, recipe_or_default
from mri_design.experiment.reconstruction import InferenceOptions, Method, Reconstruction, reconstruct
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.scan.calibration.coil_maps import calibration_width, estimate_coil_maps
from mri_design.scan.calibration.trajectory_centre import gridded_centre, rim_holds_signal, rim_noise_variance
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.sampling import require_dynamic_range

_MEASURED = "from the noise readouts"


@briefly
@dataclass(frozen=True)
class PreparedSamples(Calibrated):
    """Data with known noise and coil maps, ready for models.

    Parameters
    ----------
    data : TrajectoryData
        Calibrated.
    noise_source, maps_source : str
        Where the noise and the coil maps are from, in words.
    unit : float
        What images of these data are multiplied by to be in the input's units: 1, but for amplitudes far from 1, which
        are scaled to ordinary numbers. White coils stay in units of the noise; for images there is `image_unit`.
    mixing : complex array, shape (coil, coil), optional
        What samples as read were multiplied by where coils were whitened, but for a factor.
    """

    data: TrajectoryData
    noise_source: str
    maps_source: str
    unit: float = 1.0
    mixing: Array | None = None

    def slice_model(self, index: int = 0, recipe: Recipe | None = None) -> MRSlice:
        """One slice as the model takes it; its candidates are the readouts, and one coil has no map."""
        one = super().slice_model(index, recipe)
        return replace(one, maps=None) if one.n_coils == 1 else one


def prepare_samples(
    data: TrajectoryData, recipe: Recipe | None = None, *, used: TrajectoryData | None = None
) -> PreparedSamples:
    """Estimate what is unknown: the noise, then the coil maps.

    Coils are whitened by the covariance of the scanner's noise readouts. Without one they count as equally noisy and
    independent, as in scans of lines with holes: the outermost samples hold signal too, whose correlations would shade
    the image if they were taken for those of noise.

    Parameters
    ----------
    data : TrajectoryData
        As read; the noise is estimated from all of it.
    recipe : Recipe, optional
        Given noise, and calibration settings; the default recipe without one.
    used : TrajectoryData, optional
        The part of the data that coil calibration may look at, and that is reconstructed; all by default.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    recipe = recipe_or_default(recipe)
    known, noise_source, unit = samples_with_known_noise(data, recipe, used=used)
    maps_source, centre, lines = source_of_sample_maps(known, recipe)
    if centre is not None:
        known = replace(known, coil_maps=estimate_coil_maps(centre, lines=lines).coil_maps)
    measured = data.noise_covariance if noise_source == _MEASURED and data.n_coils > 1 else None
    mixing = None if measured is None else inverse_root(measured)
    return PreparedSamples(known, noise_source, maps_source, unit, mixing)


def samples_with_known_noise(
    data: TrajectoryData, recipe: Recipe, *, used: TrajectoryData | None = None
) -> tuple[TrajectoryData, str, float]:
    """The data that are used with their noise known, where it is from, and the unit of `PreparedSamples`."""
    require_dynamic_range(data.kspace)
    scale = ordinary_scale(data.kspace)
    known, source = _with_noise(data, (data if used is None else used).scaled(scale), recipe, scale)
    # Whitened coils are in units of the noise, whatever the scale.
    unit = 1.0 if source == _MEASURED and known.n_coils > 1 else 1 / scale
    return *with_least_noise(known, source), unit


def source_of_sample_maps(data: TrajectoryData, recipe: Recipe) -> tuple[str, KSpaceData | None, int]:
    """Source of the coil maps of white data in words; the gridded centre to estimate them from, and its side.

    Without a centre (None, 0) where nothing has to be estimated.

    Raises
    ------
    InputError
        Where there is not enough data to estimate them.
    """
    if data.n_coils == 1:
        return "one coil", None, 0
    if data.coil_maps is not None:
        return f"given ({data.header.get('coil_maps_file', 'with the data')})", None, 0
    centre = gridded_centre(data, recipe.coils.most_lines)
    lines = int(centre.measured.sum())
    calibration_width(centre, lines)
    return f"estimated from {lines} x {lines} samples that were gridded around DC", centre, lines


def _with_noise(data: TrajectoryData, used: TrajectoryData, recipe: Recipe, scale: float) -> tuple[TrajectoryData, str]:
    """``used``, which is scaled, with the noise known, and where it is from."""
    variance, source = recipe.noise.variance, GIVEN_NOISE
    used = naming_dead_coils(used)
    if variance is None and used.noise_covariance is not None:
        return whitened(used), _MEASURED
    if variance is None:
        variance, source = data.noise_variance, "given with the data"
    if variance is None:
        variance = rim_noise_variance(data)
        falls = "power still falls with the distance from the centre there, as that of signal does: it may be too large"
        doubt = falls if rim_holds_signal(data) else ""
        used, source = with_witnesses(used, doubt), f"estimated from the outermost samples{though(doubt)}"
    return replace(used, noise_variance=variance * scale**2, noise_covariance=None), source


_NO_OPTIONS = InferenceOptions()


def reconstruct_samples(
    slice_model: MRSlice,
    method: Method | None = None,
    recipe: Recipe | None = None,
    rng: np.random.Generator | None = None,
    options: InferenceOptions = _NO_OPTIONS,
) -> Reconstruction:
    """Reconstruct one slice from all its readouts.

    Parameters
    ----------
    slice_model : MRSlice
        The slice, as `PreparedSamples.slice_model` makes it.
    method : {"mean", "map", "least-squares", "zero-filled"}, optional
        Posterior mean, MAP, least squares, or the gridded image, which for lines is the zero-filled one.
    recipe, rng
        As for `reconstruct`.
    options : InferenceOptions
        Signal level and callback.

    Returns
    -------
    Reconstruction
        Standard deviations are as the posterior has them: what would scale them has learnt on lines.

    Raises
    ------
    UsageError
        For an unknown method.
    """
    return reconstruct(slice_model, range(slice_model.candidates.size), method, recipe, rng, options=options)
