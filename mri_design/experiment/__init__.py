"""The composition root: names in recipes and on the command line become objects and runs."""

from mri_design.experiment.candidate_models import FinalModel, candidate_models, final_models
from mri_design.experiment.checkpoint import fingerprint, load_state, save_state
from mri_design.experiment.description import describe_scan
from mri_design.experiment.designing import require_lines, run_design, start_count, start_lines
from mri_design.experiment.inputs import PHANTOM_PREFIX, PreparedScan, load_input, load_kspace, mr_image_model, prepare
from mri_design.experiment.recipe import Recipe, load_recipe, shipped_recipes
from mri_design.experiment.reconstruction import METHODS, Method, Reconstruction, check_method, pixel_std, reconstruct
from mri_design.experiment.sequence import checked_end, in_acquisition_order, most_lines, stop_rule
from mri_design.experiment.sources import ScanSource, SliceChoice, require_no_slices, scan_sources, source_files
from mri_design.experiment.strategies import (
    FROM_FILES,
    ORACLES,
    TUNED_FAMILIES,
    is_random,
    make_strategy,
    strategy_files,
    strategy_label,
    strategy_names,
)
from mri_design.experiment.trained_file import load_trained, save_trained

__all__ = [
    "FROM_FILES",
    "METHODS",
    "ORACLES",
    "PHANTOM_PREFIX",
    "TUNED_FAMILIES",
    "FinalModel",
    "Method",
    "PreparedScan",
    "Recipe",
    "Reconstruction",
    "ScanSource",
    "SliceChoice",
    "candidate_models",
    "check_method",
    "checked_end",
    "describe_scan",
    "final_models",
    "fingerprint",
    "in_acquisition_order",
    "is_random",
    "load_input",
    "load_kspace",
    "load_recipe",
    "load_state",
    "load_trained",
    "make_strategy",
    "most_lines",
    "mr_image_model",
    "pixel_std",
    "prepare",
    "reconstruct",
    "require_lines",
    "require_no_slices",
    "run_design",
    "save_state",
    "save_trained",
    "scan_sources",
    "shipped_recipes",
    "source_files",
    "start_count",
    "start_lines",
    "stop_rule",
    "strategy_files",
    "strategy_label",
    "strategy_names",
]
