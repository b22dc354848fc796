"""Slices with their references, from the inputs that a user names, and the strategies that look at these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from mri_design.calibration.maps import OwnMaps
from mri_design.design.strategies.oracles import Oracle
from mri_design.design.strategies.trained import TrainingResidual
from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.metrics import reference_noise
from mri_design.experiment.calibration import estimates_own_maps, prepare
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.extent import calibration_for
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.sources import ScanSource
from mri_design.experiment.strategies import make_strategy
from mri_design.kinds import KINDS
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.runs.run import Work
from mri_design.runs.scan_facts import pixel_of, simulated_from, warn_of_left_out, warn_of_noise
from mri_design.scan.data import Orientation, left_out_text
from mri_design.scan.sampling import require_whole_lines

ORACLE_NOTE = " (an oracle: it looked at the truth, no scan could be measured like this)"


def load_images(
    sources: Sequence[ScanSource], recipe: Recipe, work: Work, count: Callable[[int], int] | None = None
) -> tuple[list[ReferenceSlice], Orientation]:
    """Calibrated slices whose truth is known, and the orientation of the first.

    Parameters
    ----------
    sources : sequence of ScanSource
        Files or phantoms, their slices, coil maps and other images of their objects.
    recipe : Recipe
        Simulation, calibration and prior.
    work : Work
        Its seed is that of simulations, and what a file holds beyond what was read is said as a warning.
    count : callable, optional
        Lines or samples of the grid -> how many the smallest mask has, which bounds the centre that coil maps take.

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
        data = source.loaded or load_input(source.path, recipe, work.seed, source.maps)
        warn_of_left_out(data, recipe, work.progress)
        orientation = data.orientation if not images else orientation
        companions = [CompanionImages.read(file, on_grid, work.seed) for file in source.companions]
        wanted = source.slices.indices(data.n_slices)
        for index in wanted:
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
            rows, columns = chosen.grid_shape
            fewest = None if count is None else count(rows * columns if recipe.design.encoding == "plane" else rows)
            calibrating = calibration_for(recipe, fewest)
            grows = recipe.design.encoding == "lines" and estimates_own_maps(chosen)
            scan = prepare(chosen, recipe, calibration_lines=None if grows else calibrating, ordinary=True)
            if index == wanted[0]:  # all slices of a scan have its noise
                warn_of_noise(scan, work.progress)
            reference = scan.reference(0)
            assert reference is not None
            beside = companions_over(companions, chosen, index, data.n_slices, several=len(wanted) > 1)
            slice_model = replace(scan.slice_model(0, on_grid), companions=beside)
            name = f"{data.name}[{index}]"
            unit = scan.image_unit(0)
            noise = reference_noise(scan.data, reference * unit, unit)
            images.append(
                ReferenceSlice(
                    name,
                    slice_model,
                    reference,
                    calibration_lines=(calibrating or scan.calibration_lines) if grows else scan.calibration_lines,
                    simulated=simulated_from(data),
                    noise=noise,
                    unit=unit,
                    source=source.path,
                    left_out=left_out_text(data.header),
                    noise_source=scan.noise_source,
                    maps_source=scan.maps_source,
                    pixel=pixel_of(scan.data),
                    own_maps=OwnMaps(recipe.coils.maps, scan.data.noise_variance or 0.0) if grows else None,
                    mixing=scan.mixing if grows else None,
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


def knowing_rule(name: str, scans: Sequence[ReferenceSlice], recipe: Recipe, seed: int) -> Strategy:
    """The rule called ``name`` for training scans; it goes by the errors of what the recipe reconstructs.

    Those of the posterior mean are the design's own: it infers after every line anyway. In a plane the rule goes by
    them whatever the recipe reconstructs.
    """
    rule = cast(TrainingResidual, make_strategy(name, recipe.design.encoding))
    if recipe.reconstruction.method == "mean" or recipe.design.encoding == "plane":
        return rule.knowing(scans)

    def image(index: int, lines: Sequence[int]) -> Array:
        return reconstruct_by_recipe(scans[index].slice_model, lines, recipe, seed).image

    return rule.knowing(scans, image)


def knowing_oracle(
    name: str, slices: Sequence[MRSlice], truths: Sequence[Array | None], recipe: Recipe, seed: int
) -> Strategy:
    """The oracle called ``name`` for slices whose truth is known; it reconstructs as the recipe does.

    Raises
    ------
    InputError
        Where a slice has no reference.
    """
    known = [truth for truth in truths if truth is not None]
    if len(known) < len(slices):
        raise InputError(
            field=f"strategy {name}",
            got="a scan without a reference image",
            wanted="the truth to look at: simulated or fully sampled k-space",
            cure="Oracles are marks to compare with; name another strategy.",
        )

    def image(index: int, lines: Sequence[int]) -> Array:
        return reconstruct_by_recipe(slices[index], lines, recipe, seed).image

    return cast(Oracle, make_strategy(name, recipe.design.encoding)).knowing(known, image)
