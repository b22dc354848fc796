"""``mri-design info``: what is in a file, and what the package would make of it."""

from __future__ import annotations

from mri_design.cli.options import Input, Maps, RecipeFile
from mri_design.cli.terminal import DONE, exits, say

__all__ = ["info"]


@exits
def info(source: Input, maps: Maps = None, recipe: RecipeFile = None) -> int:
    """Show shape, measured lines and samples, noise, coils and provenance of INPUT."""
    from mri_design.experiment import describe_scan, load_input, load_recipe, require_no_slices

    require_no_slices(source, "info tells about all slices of {0}")
    settings = load_recipe(recipe)
    for label, text in describe_scan(load_input(source, settings, maps=maps), settings).items():
        say(f"{label:15s} {text}")
    return DONE
