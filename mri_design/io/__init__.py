"""Files in and out: readers for untrusted scans, writers that never leave half a file."""

from mri_design.io.formats import read
from mri_design.io.maps import with_maps
from mri_design.io.safe import ReadLimits

__all__ = ["ReadLimits", "read", "with_maps"]
