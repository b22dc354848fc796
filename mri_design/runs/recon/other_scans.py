"""Other scans, on whose errors error bars are calibrated: a folder of complete scans of other subjects."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MriDesignError, UsageError, option
from mri_design.evaluation.metrics import error_beyond_noise
from mri_design.experiment.companion_images import readout_energies, same_readouts
from mri_design.experiment.coverage import FEWEST, Coverage, scores
from mri_design.experiment.recipe import NoiseRecipe, Recipe
from mri_design.experiment.volume import Shared, Slices, opened_slices, recipe_of_frame
from mri_design.runs.recon.slices import MeasuredSlice, SliceWork, calibrated, images_of
from mri_design.runs.work import Work
from mri_design.runs.workers import Workers
from mri_design.scan.data import KSpaceData, TrajectoryData

FIELD = "calibrated_on"
"""What errors about the folder are about."""
MOST = 64
"""Files that are looked at."""
_BESIDE = (".json", ".hdr", ".md", ".txt", ".csv", ".toml")
"""Ends of the names of files that lie beside scans and are none; the header of a BART pair is read with its samples."""
_NAMED = 3
"""Files that cannot serve which an error names."""
_AHEAD = 2
"""Slices in memory for each process."""
_STAGE = "calibrating on other scans"


def other_scans(
    folder: Path, source: str, method: str, companions: Sequence[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Files of a folder that may be another scan than the source, and what is left out already, and why.

    No hidden file, no folder, and nothing that lies beside scans.

    Raises
    ------
    UsageError
        For a method without error bars, and for other images of the object, which those scans do not have.
    InputError
        Where it is no folder, or that of a run.
    """
    if method != "mean":
        raise UsageError(
            f"only the posterior mean has error bars: leave out {option('calibrated-on')}, or "
            f"{option('method', method)} (mean)"
        )
    if companions:
        raise UsageError(
            f"scans of {option('calibrated-on')} have no other images beside them, and would be wrong by more than "
            f"this one: leave out {option('calibrated-on')}, or {option('with')}"
        )
    wanted = f"a folder with at least {FEWEST} complete scans of other subjects"
    if not folder.is_dir():
        raise InputError(FIELD, f"{folder.name}, which is {'a file' if folder.exists() else 'not there'}", wanted)
    if (folder / "manifest.json").is_file():
        got = f"{folder.name}, the folder of a run, whose image is not a complete scan"
        raise InputError(FIELD, got, wanted, "Give a folder of the scans themselves.")
    found = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    files = [path for path in found if path.suffix.lower() not in _BESIDE]
    refused = [f"{len(files) - MOST} more files are left out, after the first {MOST}"] if len(files) > MOST else []
    own = [path for path in files[:MOST] if Path(source).is_file() and filecmp.cmp(path, source, shallow=False)]
    refused += [f"{path.name} is left out: it is the file of the scan itself" for path in own]
    return tuple(path for path in files[:MOST] if path not in own), tuple(refused)


def coverage_of(
    folder: Path,
    others: tuple[Sequence[Path], Sequence[str]],
    slices: Slices,
    masks: Mapping[int, NDArray[np.bool_]],
    work: Work,
    recipe: Recipe,
) -> Coverage:
    """Reconstruct the middle slice of every scan from the same samples, and hold its errors against its error bars.

    The noise is each scan's own, as are coil maps that its file does not bring: a noise that was given is that of the
    one scan, in its units. Scans that cannot serve are left out, and named in a warning.

    Parameters
    ----------
    folder : Path
        Whose name is told.
    others : sequence of Path and sequence of str
        See `other_scans`.
    slices : Slices
        Of the scan, which is recognised in the folder by its samples.
    masks : mapping of int to bool array, shape (ky,) or (ky, kz)
        What is used of each slice that is reconstructed; the same of all.
    work : Work
        Seed, processes and progress.
    recipe : Recipe
        For the lines or samples of the scan.

    Raises
    ------
    InputError
        Along a trajectory, where not the same is used of all slices, and where fewer than two scans are left.
    """
    numbers, name, mask = list(masks), folder.resolve().name, next(iter(masks.values()))
    like = _example(slices.read(numbers[0]), masks)
    files, refused = others[0], list(others[1])
    recipe = replace(recipe.replacing("reconstruction", draws=0, noise_map=False), noise=NoiseRecipe())
    own = [readout_energies(like)[0]]
    for number in {*numbers[1:], slices.count // 2}:
        with suppress(InputError):  # without signal
            own.append(readout_energies(slices.read(number))[0])

    def items() -> Iterator[tuple[str, MeasuredSlice]]:
        for number, path in enumerate(files):
            try:
                data = _middle(path, recipe, work.seed + 1 + number)
                why = _unfit(data, like, mask)
                if not why and any(same_readouts(readout_energies(data)[0], one) for one in own):
                    why = "it is the scan itself: the same samples"
            except MriDesignError as error:
                why = str(error)
            if why:
                refused.append(f"{path.name} is left out: {why}")
            else:
                yield path.name, MeasuredSlice(number, data, mask)

    found, count = dict[str, NDArray[np.float32]](), len(files)
    work.progress.show(_STAGE, 0, count)
    with Workers(SliceWork(recipe, work.seed, Shared(recipe)), max(1, min(work.jobs, count)), work.executor) as workers:
        for number, file, made in workers.map(_scores, items(), ahead=_AHEAD * work.jobs):
            if isinstance(made, str):
                refused.append(f"{file} is left out: {made}")
            else:
                found[file] = made
            work.progress.show(_STAGE, number + 1, count)
    work.progress.show(_STAGE, count, count)
    if len(found) < FEWEST:
        rows, columns = like.grid_shape
        raise InputError(
            FIELD,
            "; ".join([f"{len(found)} of {count} files of {name} that can serve", *refused[:_NAMED], "..."]),
            f"at least {FEWEST} complete scans of other subjects, {rows} x {columns} pixels and coils: {like.n_coils}",
            "Put such scans there, all measured as this one but with every line.",
        )
    for why in refused:
        work.progress.warn(f"{name}: {why}")
    return Coverage.of(name, found, refused)


def _example(data: KSpaceData | TrajectoryData, masks: Mapping[int, NDArray[np.bool_]]) -> KSpaceData:
    """A slice that other scans have to be like, refused where there are no such."""
    first, *others = masks.values()
    if any(not np.array_equal(one, first) for one in others):
        wanted = "the same of all, as scans are reconstructed from them"
        cure = f"Give a {option('mask')}, or take the slices one by one with {option('slices')}."
        raise InputError(FIELD, "slices of which different samples are used", wanted, cure)
    if not isinstance(data, KSpaceData):
        wanted = "lines, or samples of a plane, of which a complete scan is its own reference"
        raise InputError(FIELD, "samples along a trajectory", wanted, f"Leave out {option('calibrated-on')}.")
    return data


def _middle(path: Path, recipe: Recipe, seed: int) -> KSpaceData | TrajectoryData:
    """The middle slice of a file, of its first frame where the recipe asks for all."""
    recipe = recipe_of_frame(recipe, None) if recipe.input.axis else recipe
    with opened_slices(str(path), recipe, seed) as slices:
        return slices.read(slices.count // 2)


def _unfit(data: KSpaceData | TrajectoryData, like: KSpaceData, mask: NDArray[np.bool_]) -> str:
    """Why a scan cannot serve: it is not complete, or not as large as the one; empty where it can."""
    if not isinstance(data, KSpaceData):
        return "samples along a trajectory have no complete image of their own"
    for text in ("{0.grid_shape[0]} x {0.grid_shape[1]} pixels", "coils: {0.n_coils}"):
        if text.format(data) != text.format(like):
            return f"it has {text.format(data)}, and this scan {text.format(like)}"
    if data.reference is None and not data.fully_sampled:
        return f"it is not complete ({data.missing})"
    held = data.samplings[0].samples if mask.ndim == 2 else data.samplings[0].lines
    if (mask & ~held).any():
        return "it holds no data in some of the lines that are used"
    if data.reference is None and mask.sum() >= held.sum():
        return f"its complete image is of the very lines that are used; give fewer with {option('mask')}"
    return ""


def _scores(work: SliceWork, item: tuple[str, MeasuredSlice]) -> tuple[int, str, NDArray[np.float32] | str]:
    """Errors of one slice in its standard deviations, or why there are none."""
    name, measured = item
    try:
        known, images = images_of(work, measured, calibrated(work, measured))
    except InputError as error:
        return measured.number, name, str(error)
    made, reference = images[0].reconstruction, known.shown_reference
    data = known.scan.data
    assert isinstance(data, KSpaceData) and reference is not None and made.std is not None
    beyond = error_beyond_noise(made.image, made.std, data, reference, known.image_unit, measured.mask)
    return measured.number, name, scores(beyond, made.std)
