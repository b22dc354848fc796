"""A summary holds what reading everything finds."""

import numpy as np

from mri_design import ImageStack, KSpaceData
from mri_design.scan import ScanSummary


def assert_told(told, whole, atol=0):
    """The same slice, the same samples of all slices, the same header; images are their own summary."""
    if isinstance(whole, ImageStack):
        assert isinstance(told, ImageStack) and (told.header, told.provenance) == (whole.header, whole.provenance)
        np.testing.assert_array_equal(told.images, whole.images)
        return
    assert isinstance(told, ScanSummary) and told.part is not None and isinstance(whole, KSpaceData)
    for name in ("kspace", "coil_maps", "reference"):
        ours, theirs = getattr(told.part, name), getattr(whole, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_allclose(ours[0], theirs[told.index], rtol=0, atol=atol)
    for mine, other in zip(told.samplings, whole.samplings, strict=True):
        np.testing.assert_array_equal(mine.samples, other.samples)
    assert (told.header, told.name, told.n_coils) == (whole.header, whole.name, whole.n_coils)
    assert told.provenance == whole.provenance
    assert (told.part.noise_variance, told.part.orientation) == (whole.noise_variance, whole.orientation)
    part = whole.select_slice(told.index)
    assert told.geometry == whole.geometry and told.part.geometry == part.geometry
    for name in ("measured", "noise_covariance", "calibration"):
        np.testing.assert_array_equal(getattr(told.part, name), getattr(part, name))
