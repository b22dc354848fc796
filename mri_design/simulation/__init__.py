"""Ground truth: phantoms, coil sensitivities, phase, and a simulated scanner."""

from mri_design.simulation.coil_maps import coil_series, simulate_coil_maps
from mri_design.simulation.ellipse_table import read_ellipse_table
from mri_design.simulation.ellipses import EllipsePhantom
from mri_design.simulation.phantoms import (
    phantom_card,
    phantom_kind,
    phantom_names,
    phantom_path,
    phantoms_folder,
    read_shipped_ellipses,
    read_shipped_images,
)
from mri_design.simulation.phase import no_phase, rough_phase, smooth_phase
from mri_design.simulation.random_head import random_head
from mri_design.simulation.scanner import simulate_ellipse_scan, simulate_scan
from mri_design.simulation.scenes import load_phantom
from mri_design.simulation.series import TrigonometricSeries, phase_series

__all__ = [
    "EllipsePhantom",
    "TrigonometricSeries",
    "coil_series",
    "load_phantom",
    "no_phase",
    "phantom_card",
    "phantom_kind",
    "phantom_names",
    "phantom_path",
    "phantoms_folder",
    "phase_series",
    "random_head",
    "read_ellipse_table",
    "read_shipped_ellipses",
    "read_shipped_images",
    "rough_phase",
    "simulate_coil_maps",
    "simulate_ellipse_scan",
    "simulate_scan",
    "smooth_phase",
]
