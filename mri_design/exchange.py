"""What other programs take and give: BART, mri-nufft, NIfTI, DICOM, MRD files and streams, Pulseq sequences."""

from mri_design.scan.streaming.mrd import MrdStream
from mri_design.scan.streaming.scanner import LiveScanner
from mri_design.scan.trajectories import (
    from_bart,
    from_mri_nufft,
    maps_from_bart,
    maps_to_bart,
    planes_from_bart,
    planes_to_bart,
    samples_from_bart,
    samples_to_bart,
    to_bart,
    to_mri_nufft,
)
from mri_design.scan.writing import DicomLabels, dicom_bytes, mrd_scan_bytes, nifti_bytes
from mri_design.sequences.orders import GridOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import pulseq_file, verify
from mri_design.sequences.scanner import Scanner, SequenceSettings, load_scanner

__all__ = [
    "DicomLabels",
    "GridOrder",
    "LiveScanner",
    "MrdStream",
    "Scanner",
    "SequenceSettings",
    "SpiralOrder",
    "SpokeOrder",
    "dicom_bytes",
    "from_bart",
    "from_mri_nufft",
    "load_scanner",
    "maps_from_bart",
    "maps_to_bart",
    "mrd_scan_bytes",
    "nifti_bytes",
    "planes_from_bart",
    "planes_to_bart",
    "pulseq_file",
    "samples_from_bart",
    "samples_to_bart",
    "to_bart",
    "to_mri_nufft",
    "verify",
]
