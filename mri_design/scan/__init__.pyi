"""Scans: their data and which samples were measured; files, calibration, simulation and streams."""

from .calibration import calibrates_itself as calibrates_itself
from .calibration import calibration_energies as calibration_energies
from .calibration import calibration_lines as calibration_lines
from .calibration import calibration_width as calibration_width
from .calibration import coil_combined as coil_combined
from .calibration import estimate_coil_maps as estimate_coil_maps
from .calibration import estimate_noise_variance as estimate_noise_variance
from .calibration import explained_by_maps as explained_by_maps
from .calibration import find_centre as find_centre
from .calibration import gapless_square as gapless_square
from .calibration import given_centre as given_centre
from .calibration import gridded_centre as gridded_centre
from .calibration import measure_noise as measure_noise
from .calibration import mixed_coils as mixed_coils
from .calibration import noise_from_readout_ends as noise_from_readout_ends
from .calibration import prewhiten as prewhiten
from .calibration import strongest_of_lines as strongest_of_lines
from .calibration import with_its_centre as with_its_centre
from .calibration import with_volume_noise as with_volume_noise
from .data import ImageStack as ImageStack
from .data import KSpaceData as KSpaceData
from .data import Orientation as Orientation
from .data import Scan as Scan
from .data import ScanSummary as ScanSummary
from .data import TrajectoryData as TrajectoryData
from .data import middle_slice as middle_slice
from .data import slice_number as slice_number
from .data import summarised as summarised
from .geometry import SliceGeometry as SliceGeometry
from .geometry import SourceImage as SourceImage
from .geometry import around as around
from .geometry import stacked as stacked
from .provenance import Centre as Centre
from .provenance import MapsOrigin as MapsOrigin
from .provenance import NoiseOrigin as NoiseOrigin
from .provenance import NoiseSamples as NoiseSamples
from .provenance import Provenance as Provenance
from .sampling import Sampling as Sampling
from .sampling import few_runs as few_runs
from .sampling import gapless_run as gapless_run
from .sampling import index_runs as index_runs
from .sampling import line_pattern as line_pattern
from .sampling import measured_lines as measured_lines
from .sampling import only_coils as only_coils
from .sampling import readout_positions as readout_positions
from .sampling import readouts_of_positions as readouts_of_positions
from .sampling import refused_samples as refused_samples
from .sampling import require_dynamic_range as require_dynamic_range
from .sampling import require_whole_lines as require_whole_lines
from .sampling import working_coils as working_coils
from .scenes import random_head as random_head
from .simulation import load_phantom_shots as load_phantom_shots
from .simulation import simulate_scan as simulate_scan
from .trajectories import GradientLimits as GradientLimits
from .trajectories import compensated_spread as compensated_spread
from .trajectories import conjugate_redundancy as conjugate_redundancy
from .trajectories import fastest_readout as fastest_readout
from .trajectories import largest_side_lobe as largest_side_lobe
from .trajectories import maps_to_bart as maps_to_bart
from .trajectories import nyquist_turns as nyquist_turns
from .trajectories import planes_to_bart as planes_to_bart
from .trajectories import point_spread as point_spread
from .trajectories import require_playable as require_playable
from .trajectories import samples_to_bart as samples_to_bart
from .trajectories import spiral_curve as spiral_curve
from .trajectories import spiral_readout as spiral_readout
from .trajectories import spread_of_mask as spread_of_mask
from .trajectories import to_bart as to_bart

__all__ = [
    "GradientLimits",
    "ImageStack",
    "KSpaceData",
    "SliceGeometry",
    "TrajectoryData",
    "coil_combined",
    "estimate_coil_maps",
    "estimate_noise_variance",
    "load_phantom_shots",
    "measure_noise",
    "nyquist_turns",
    "point_spread",
    "prewhiten",
    "random_head",
    "simulate_scan",
    "spiral_readout",
]
