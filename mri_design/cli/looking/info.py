"""``mri-design info``: what is in a file, and what the package would make of it."""

from __future__ import annotations

from mri_design.cli.options import Input, Maps, RecipeFile
from mri_design.cli.terminal import DONE, exits, say

__all__ = ["info"]


@exits
def info(source: Input, maps: Maps = None, recipe: RecipeFile = None) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read, and headers tell the rest. Images, a Pulseq sequence (.seq) and the
    folder of a run are described as what they are.
    """
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.info.run import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    for label, text in describe_input(source, load_recipe(recipe), maps).items():
        say(f"{label:15s} {text}")
    return DONE
