"""Phantoms, random heads and a simulated scanner."""

from .scanner import EllipsePhase as EllipsePhase
from .scanner import fit_to_matrix as fit_to_matrix
from .scanner import fitted_geometry as fitted_geometry
from .scanner import load_phantom as load_phantom
from .scanner import load_phantom_shots as load_phantom_shots
from .scanner import phantom_header as phantom_header
from .scanner import phantom_kind as phantom_kind
from .scanner import phantom_names as phantom_names
from .scanner import phantom_path as phantom_path
from .scanner import phantoms_folder as phantoms_folder
from .scanner import read_shipped as read_shipped
from .scanner import simulate_ellipse_scan as simulate_ellipse_scan
from .scanner import simulate_scan as simulate_scan
from .scenes import EllipsePhantom as EllipsePhantom
from .scenes import EllipsoidPhantom as EllipsoidPhantom
from .scenes import TrigonometricSeries as TrigonometricSeries
from .scenes import checked_shape as checked_shape
from .scenes import coil_series as coil_series
from .scenes import phase_series as phase_series
from .scenes import pixel_positions as pixel_positions
from .scenes import root_sum_of_squares as root_sum_of_squares
from .scenes import rough_phase as rough_phase
from .scenes import simulate_coil_maps as simulate_coil_maps
from .scenes import smooth_phase as smooth_phase
