"""What an outline has to say, held against the scan or the images that reading everything finds."""

import numpy as np

from mri_design import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.image_outline import ImageOutline
from mri_design.scan.outline import ScanOutline


def assert_told(
    told: ScanOutline | TrajectoryData | ImageOutline, whole: KSpaceData | TrajectoryData | ImageStack
) -> None:
    """The same slice, the same samples of all slices, the same card; of images the same range of values."""
    if isinstance(whole, ImageStack):
        assert told == ImageOutline.of(whole)
        return
    assert isinstance(told, ScanOutline) and told.part is not None and isinstance(whole, KSpaceData)
    for name in ("kspace", "coil_maps", "reference"):
        ours, theirs = getattr(told.part, name), getattr(whole, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_array_equal(ours[0], theirs[told.index])
    for mine, other in zip(told.samplings, whole.samplings, strict=True):
        np.testing.assert_array_equal(mine.samples, other.samples)
    assert (told.card, told.name, told.n_coils) == (whole.card, whole.name, whole.n_coils)
    assert (told.part.noise_variance, told.part.orientation) == (whole.noise_variance, whole.orientation)
