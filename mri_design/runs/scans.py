"""Slices with their references, from the inputs that a user names."""

from __future__ import annotations

from collections.abc import Sequence

from mri_design.design.trials import ReferenceSlice
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.reference_noise import reference_noise
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource
from mri_design.operators.encodings import KINDS
from mri_design.runs.run import Work
from mri_design.runs.scan_facts import simulated_from, warn_of_left_out, warn_of_noise
from mri_design.scan.data import Orientation
from mri_design.scan.left_out import left_out_text
from mri_design.scan.sampling import require_whole_lines


def load_images(sources: Sequence[ScanSource], recipe: Recipe, work: Work) -> tuple[list[ReferenceSlice], Orientation]:
    """Calibrated slices whose truth is known, and the orientation of the first.

    Parameters
    ----------
    sources : sequence of ScanSource
        Files or phantoms, their slices and coil maps.
    recipe : Recipe
        Simulation, calibration and prior.
    work : Work
        Its seed is that of simulations, and what a file holds beyond what was read is said as a warning.

    Raises
    ------
    InputError
        Where an input cannot be used or is not fully sampled.
    UsageError
        Where two inputs have one name.
    """
    images: list[ReferenceSlice] = []
    # Shots are made of a slice that is sampled on the grid.
    shots = KINDS[recipe.design.encoding].shots
    on_grid = recipe.replacing("design", encoding="lines") if shots else recipe
    orientation: Orientation = "ky-rows"
    for source in sources:
        data = load_input(source.path, recipe, work.seed, source.maps)
        warn_of_left_out(data, recipe, work.progress)
        orientation = data.orientation if not images else orientation
        for index in source.slices.indices(data.n_slices):
            chosen = data.select_slice(index)
            if not chosen.fully_sampled and chosen.reference is None:
                raise InputError(
                    field=source.path,
                    got=f"a scan that is not fully sampled: {chosen.missing}",
                    wanted="a fully sampled scan, whose image is the truth that errors are measured against",
                    cure="Give a complete scan, or one with a reference image; recon reconstructs what is there.",
                )
            if recipe.design.encoding != "plane":
                require_whole_lines(source.path, chosen.samplings[0])
            scan = prepare(chosen, recipe, calibration_lines=recipe.calibration_lines, ordinary=True)
            if index == source.slices.indices(data.n_slices)[0]:  # all slices of a scan have its noise
                warn_of_noise(scan, work.progress)
            reference = scan.reference(0)
            assert reference is not None
            slice_model = scan.slice_model(0, on_grid)
            name = f"{data.name}[{index}]"
            unit = scan.image_unit(0)
            noise = reference_noise(scan.data, reference * unit, unit)
            images.append(
                ReferenceSlice(
                    name,
                    slice_model,
                    reference,
                    calibration_lines=scan.calibration_lines,
                    simulated=simulated_from(data),
                    noise=noise,
                    unit=unit,
                    source=source.path,
                    left_out=left_out_text(data.card),
                    doubtful_noise=scan.noise_source if scan.noise_doubt or scan.noise_raised else "",
                )
            )
    names = [image.name for image in images]
    if len(set(names)) < len(names):
        raise UsageError("two inputs have the same name and slice; rename one of the files")
    return images, orientation


def require_apart(training: Sequence[ReferenceSlice], tests: Sequence[ReferenceSlice]) -> None:
    """Refuse an image that is used for training and for testing.

    Raises
    ------
    UsageError
        Naming the first.
    """
    both = {image.name for image in tests} & {image.name for image in training}
    if both:
        raise UsageError(f"{sorted(both)[0]} is both a test and a training image")
