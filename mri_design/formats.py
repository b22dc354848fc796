"""Files of scans: reading k-space, images and masks, the bounds that files are held to, and readers of your own."""

from mri_design.registry import Reader
from mri_design.scan.io.formats import read, read_images, read_mask
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits
from mri_design.scan.io.source import ReadOptions, Source, register_reader

__all__ = [
    "DEFAULT_LIMITS",
    "ReadLimits",
    "ReadOptions",
    "Reader",
    "Source",
    "read",
    "read_images",
    "read_mask",
    "register_reader",
]
