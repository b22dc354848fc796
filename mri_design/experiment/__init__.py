"""The composition root: names in recipes and on the command line become objects and runs."""

from mri_design.experiment.checkpoint import fingerprint, load_state, save_state
from mri_design.experiment.designing import run_design, start_count
from mri_design.experiment.inputs import PHANTOM_PREFIX, PreparedScan, load_input, load_kspace, mr_image_model, prepare
from mri_design.experiment.recipe import Recipe, load_recipe, shipped_recipes
from mri_design.experiment.reconstruction import METHODS, Method, Reconstruction, check_method, pixel_std, reconstruct
from mri_design.experiment.sources import SliceChoice, split_source
from mri_design.experiment.strategies import TUNED_FAMILIES, make_strategy, strategy_names

__all__ = [
    "METHODS",
    "PHANTOM_PREFIX",
    "TUNED_FAMILIES",
    "Method",
    "PreparedScan",
    "Recipe",
    "Reconstruction",
    "SliceChoice",
    "check_method",
    "fingerprint",
    "load_input",
    "load_kspace",
    "load_recipe",
    "load_state",
    "make_strategy",
    "mr_image_model",
    "pixel_std",
    "prepare",
    "reconstruct",
    "run_design",
    "save_state",
    "shipped_recipes",
    "split_source",
    "start_count",
    "strategy_names",
]
