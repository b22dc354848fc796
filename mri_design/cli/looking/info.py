"""``mri-design info``: what is in a file, and what the package would make of it."""

from __future__ import annotations

from mri_design.cli.arguments import matrix_of
from mri_design.cli.options import Contrast, Input, Maps, Matrix, Phase, RecipeFile, Repetition, SetNumber
from mri_design.cli.terminal import DONE, exits, say


@exits
def info(
    source: Input,
    maps: Maps = None,
    recipe: RecipeFile = None,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
    matrix: Matrix = None,
) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read, and headers tell the rest. Images, a Pulseq sequence (.seq) and the
    folder of a run are described as what they are.
    """
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.info import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    settings, counters = (
        load_recipe(recipe),
        {"contrast": contrast, "phase": phase, "repetition": repetition, "set": set_, "matrix": matrix_of(matrix)},
    )
    if any(number is not None for number in counters.values()):  # to check a recipe anew loads the models
        settings = settings.replacing("input", **counters)
    for label, text in describe_input(source, settings, maps).items():
        say(f"{label:15s} {text}")
    return DONE
