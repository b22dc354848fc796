"""Images and designs in the formats of other programs, as bytes."""

from .images import DicomLabels as DicomLabels
from .images import dicom_bytes as dicom_bytes
from .images import nifti_bytes as nifti_bytes
from .images import pair_files as pair_files
from .images import stacked_slices as stacked_slices
from .mrd import mrd_scan_bytes as mrd_scan_bytes
from .mrd import mrd_skeleton_bytes as mrd_skeleton_bytes
