"""What a scan tells about its own receivers: noise, coil maps, and the combined image."""

from mri_design.calibration.coil_maps import calibrates_itself, calibration_lines, estimate_coil_maps
from mri_design.calibration.combine import coil_combined, explained_by_maps
from mri_design.calibration.noise import estimate_noise_covariance, estimate_noise_variance
from mri_design.calibration.whitening import prewhiten

__all__ = [
    "calibrates_itself",
    "calibration_lines",
    "coil_combined",
    "estimate_coil_maps",
    "estimate_noise_covariance",
    "estimate_noise_variance",
    "explained_by_maps",
    "prewhiten",
]
