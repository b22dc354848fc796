"""What an input is: a scan, images, a sequence or the folder of a run, each told in words."""

from __future__ import annotations

from pathlib import Path

from mri_design.errors import UsageError
from mri_design.experiment.description import describe_scan
from mri_design.experiment.inputs import PHANTOM_PREFIX, load_summary
from mri_design.experiment.recipe import Recipe
from mri_design.runs.info.images import describe_images
from mri_design.runs.info.run_folder import describe_folder
from mri_design.runs.info.sequence import describe_sequence, is_sequence
from mri_design.scan.summary import ImageSummary, ScanSummary


def describe_input(source: str, recipe: Recipe, maps: Path | None = None) -> dict[str, str]:
    """What an input holds; nothing is simulated, but for phantoms that are simulations.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    recipe : Recipe
        Its noise, calibration, series and simulation would be in force.
    maps : Path, optional
        Coil maps that would be used with a scan.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.

    Raises
    ------
    UsageError
        For maps beside what is no scan.
    InputError
        Where the input or the maps cannot be used.
    """
    if not source.startswith(PHANTOM_PREFIX):
        if Path(source).is_dir():
            _refuse_maps(maps, "the folder of a run")
            return describe_folder(Path(source))
        if is_sequence(Path(source)):
            _refuse_maps(maps, "a sequence")
            return describe_sequence(Path(source))
    held = load_summary(source, recipe, maps)
    if isinstance(held, ScanSummary):
        return describe_scan(held, recipe)
    if isinstance(held, ImageSummary):
        _refuse_maps(maps, "images")
        return describe_images(held, recipe)
    from mri_design.experiment.trajectories.description import describe_samples  # here: it takes long to import

    return describe_samples(held, recipe)


def _refuse_maps(maps: Path | None, what: str) -> None:
    if maps is not None:
        raise UsageError(f"--maps belongs to a scan, not to {what}")
