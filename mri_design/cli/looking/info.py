"""``mri-design info``: what is in a file, and what the package would make of it."""

from __future__ import annotations

from mri_design.cli.options import Input, Maps, RecipeFile
from mri_design.cli.terminal import DONE, exits, say

__all__ = ["info"]


@exits
def info(source: Input, maps: Maps = None, recipe: RecipeFile = None) -> int:
    """Show shape, measured lines and samples, noise, coils and provenance of INPUT."""
    from mri_design.experiment.description import describe_scan
    from mri_design.experiment.inputs import load_scan
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.experiment.trajectories.description import describe_samples
    from mri_design.scan.trajectory_data import TrajectoryData

    require_no_slices(source, "info tells about all slices of {0}")
    settings = load_recipe(recipe)
    scan = load_scan(source, settings, maps=maps)
    rows = describe_samples(scan, settings) if isinstance(scan, TrajectoryData) else describe_scan(scan, settings)
    for label, text in rows.items():
        say(f"{label:15s} {text}")
    return DONE
