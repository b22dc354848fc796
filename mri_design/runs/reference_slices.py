"""Slices whose truth is known, which studies train on and test with, and strategies that know them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mri_design.calibration.maps import OwnMaps
from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice, TrainingResidual
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.metrics import reference_noise
from mri_design.experiment.calibration import PreparedScan, estimates_own_maps, prepare
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.extent import calibration_for
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.sources import ScanSource
from mri_design.experiment.strategies import make_strategy
from mri_design.kinds import KINDS
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.runs.known_slice import pixel_of
from mri_design.runs.provenance import left_out_text, simulated_from, told, warn_of_left_out, warn_of_noise
from mri_design.runs.work import Work
from mri_design.scan.data import KSpaceData, Orientation
from mri_design.scan.provenance import MapsOrigin
from mri_design.scan.sampling import require_whole_lines


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
    images, orientations = list[ReferenceSlice](), list[Orientation]()
    for source in sources:
        data = source.loaded or load_input(source.path, recipe, work.seed, source.maps)
        warn_of_left_out(data, recipe, work.progress)
        orientations.append(data.orientation)
        companions = [CompanionImages.read(file, _on_grid(recipe), work.seed) for file in source.companions]
        wanted = source.slices.indices(data.n_slices)
        for index in wanted:
            chosen = _complete_slice(data, index, source.path, recipe)
            beside = companions_over(companions, chosen, index, data.n_slices, several=len(wanted) > 1)
            image, scan = _reference_slice(chosen, f"{data.name}[{index}]", source.path, recipe, count)
            images.append(replace(image, slice_model=replace(image.slice_model, companions=beside)))
            if index == wanted[0]:  # all slices of a scan have its noise
                warn_of_noise(scan, work.progress)
    if len({image.name for image in images}) < len(images):
        raise UsageError("two inputs have the same name and slice; rename one of the files")
    return images, next(iter(orientations), "ky-rows")


def _on_grid(recipe: Recipe) -> Recipe:
    """The recipe for slices that are sampled on the grid, of which shots are made."""
    return recipe.replacing("design", encoding="lines") if KINDS[recipe.design.encoding].shots else recipe


def _complete_slice(data: KSpaceData, index: int, path: str, recipe: Recipe) -> KSpaceData:
    """One slice, refused without a truth."""
    chosen = data.select_slice(index)
    if not chosen.fully_sampled and chosen.reference is None:
        raise InputError(
            field=path,
            got=f"a scan that is not fully sampled: {chosen.missing}",
            wanted="a fully sampled scan, whose image is the truth that errors are measured against",
            cure="Give a complete scan, or one with a reference image; recon reconstructs what is there.",
        )
    if not KINDS[recipe.design.encoding].square:
        require_whole_lines(path, chosen.samplings[0])
    return chosen


def _reference_slice(
    chosen: KSpaceData, name: str, path: str, recipe: Recipe, count: Callable[[int], int] | None
) -> tuple[ReferenceSlice, PreparedScan]:
    """A slice with its truth; where maps are not known, masks have those of their own lines."""
    kind = KINDS[recipe.design.encoding]
    calibrating = calibration_for(recipe, None if count is None else count(kind.whole(chosen.grid_shape)))
    grows = kind.centre_first and estimates_own_maps(chosen)
    scan = prepare(chosen, recipe, calibration_lines=None if grows else calibrating, ordinary=True)
    reference, unit, known = scan.reference(0), scan.image_unit(0), scan.provenance
    assert reference is not None
    image = ReferenceSlice(
        name,
        scan.slice_model(0, _on_grid(recipe)),
        reference,
        calibration_lines=(calibrating or scan.calibration_lines) if grows else scan.calibration_lines,
        simulated=simulated_from(chosen),
        noise=reference_noise(cast(KSpaceData, scan.data), reference * unit, unit),
        unit=unit,
        source=path,
        left_out=left_out_text(chosen.known(slice=None)),
        noise_source=told("noise", known.noise),
        maps_source=told("maps", known.maps),
        pixel=pixel_of(scan.data),
        own_maps=OwnMaps(recipe.coils.maps, scan.data.noise_variance or 0.0) if grows else None,
        mixing=scan.mixing if grows else None,
    )
    return image, scan


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
    if recipe.reconstruction.method == "mean" or KINDS[recipe.design.encoding].square:
        return rule.knowing(scans)
    return rule.knowing(scans, _imaging([scan.slice_model for scan in scans], recipe, seed))


def _imaging(slices: Sequence[SliceModel], recipe: Recipe, seed: int) -> Callable[[int, Sequence[int]], Array]:
    """Reconstruction by the recipe of the slice of a number from some lines."""
    return lambda index, lines: reconstruct_by_recipe(slices[index], lines, recipe, seed).image


def knowing_oracle(
    name: str, slices: Sequence[SliceModel], truths: Sequence[Array | None], recipe: Recipe, seed: int
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

    oracle: Any = make_strategy(name, recipe.design.encoding)
    return oracle.knowing(known, _imaging(slices, recipe, seed))


def facts_of_all(
    images: Iterable[ReferenceSlice], judged: Iterable[ReferenceSlice] = ()
) -> tuple[dict[str, object], dict[str, object]]:
    """What was left out of the files of several slices, and where their noise and coil maps are from.

    Parameters
    ----------
    images, judged : iterable of ReferenceSlice
        Slices of which all is known, and those that masks are judged on: where these have no maps, each mask has those
        of its own lines.

    Returns
    -------
    settings, summary : dict
        For a manifest, and for a report's table. Files are named without their folders.
    """
    judged = list(judged)
    own = {image.name for image in judged if image.own_maps is not None}
    listed = [(Path(image.source).name, image) for image in (*judged, *images)]
    left = {file: image.left_out for file, image in listed if image.left_out}
    noise = {file: image.noise_source for file, image in listed if image.noise_source}
    maps = {
        image.name: told("maps", MapsOrigin(source="each mask")) if image.name in own else image.maps_source
        for _, image in listed
        if image.slice_model.n_coils > 1
    }
    settings = {"left_out_of_scans": left, "noise_sources": noise, "coil_maps_sources": maps}
    summary = {"left out of the scan": _by_name(left), "noise": _alike(noise), "coil maps": _alike(maps)}
    return {key: value for key, value in settings.items() if value}, {
        row: text for row, text in summary.items() if text
    }


def _by_name(facts: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in facts.items())


def _alike(facts: Mapping[str, str]) -> str:
    """A fact of several scans: once where it is the same of all."""
    return next(iter(facts.values())) if len({*facts.values()}) == 1 else _by_name(facts)
