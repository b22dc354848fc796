"""Noise of the coils: where a scan shows it, what counts of that, and coils made white by it."""

from mri_design.scan.calibration.noise.covariance import (
    MeasuredNoise,
    correlated_by_signal,
    each_coil_alone,
    estimate_noise_covariance,
    estimate_noise_variance,
    largest_correlation,
    measure_noise,
    refuse_copies,
)
from mri_design.scan.calibration.noise.least import MOST_SIGNAL_TO_NOISE, ROUNDING, least_noise
from mri_design.scan.calibration.noise.regions import NoiseRegions, median_variance
from mri_design.scan.calibration.noise.volume import NOISE_FROM, median_noise, noise_is_beside, with_volume_noise
from mri_design.scan.calibration.noise.whitening import (
    mixed_coils,
    prewhiten,
)
from mri_design.scan.calibration.noise.witnesses import OBJECT_BESIDE, SIGNAL_OUTSIDE

__all__ = [
    "MOST_SIGNAL_TO_NOISE",
    "NOISE_FROM",
    "OBJECT_BESIDE",
    "ROUNDING",
    "SIGNAL_OUTSIDE",
    "MeasuredNoise",
    "NoiseRegions",
    "correlated_by_signal",
    "each_coil_alone",
    "estimate_noise_covariance",
    "estimate_noise_variance",
    "largest_correlation",
    "least_noise",
    "measure_noise",
    "median_noise",
    "median_variance",
    "mixed_coils",
    "noise_is_beside",
    "prewhiten",
    "refuse_copies",
    "with_volume_noise",
]
