"""Error bars with a stated level: complete scans of other subjects, reconstructed as the scan is and judged."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MriDesignError, UsageError, option
from mri_design.evaluation.metrics import error_beyond_noise
from mri_design.experiment.companion_images import readout_energies, same_readouts
from mri_design.experiment.coverage import FEWEST, Coverage, scores
from mri_design.experiment.recipe import NoiseRecipe, Recipe
from mri_design.experiment.volume import Slices, opened_slices, recipe_of_frame
from mri_design.runs.recon.slices import CalibratedSlice, MeasuredSlice, SliceWork
from mri_design.runs.run import Run
from mri_design.runs.scan_facts import KnownScan
from mri_design.runs.workers import Workers
from mri_design.scan.data import KSpaceData

FIELD = "calibrated_on"
"""What errors about the folder are about."""
MOST = 64
"""Files that are looked at."""
STAGE = "calibrating on other scans"
_BESIDE = (".json", ".hdr", ".md", ".txt", ".csv", ".toml")
"""Ends of the names of files that lie beside scans and are none; the header of a BART pair is read with its samples."""
_SAID = 3
_AHEAD = 2


@dataclass(frozen=True)
class Group:
    """The files of a folder of scans.

    Parameters
    ----------
    name : str
        Of the folder.
    files : tuple of Path
        By name.
    refused : tuple of str
        What is left out already, and why.
    """

    name: str
    files: tuple[Path, ...]
    refused: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, source: str) -> Group:
        """What may be another scan than the source: no hidden file, no folder, and nothing that lies beside scans.

        Raises
        ------
        InputError
            Where it is no folder, or that of a run.
        """
        wanted = f"a folder with at least {FEWEST} complete scans of other subjects"
        if not folder.is_dir():
            got = f"{folder.name}, which is {'a file' if folder.exists() else 'not there'}"
            raise InputError(FIELD, got, wanted)
        if (folder / "manifest.json").is_file():
            raise InputError(
                FIELD,
                f"{folder.name}, the folder of a run, whose image is not a complete scan",
                wanted,
                "Give a folder of the scans themselves.",
            )
        found = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
        files = [path for path in found if path.suffix.lower() not in _BESIDE]
        refused = [f"{len(files) - MOST} more files are left out, after the first {MOST}"] if len(files) > MOST else []
        own = [path for path in files[:MOST] if Path(source).is_file() and filecmp.cmp(path, source, shallow=False)]
        refused += [f"{path.name} is left out: it is the file of the scan itself" for path in own]
        return cls(folder.resolve().name, tuple(path for path in files[:MOST] if path not in own), tuple(refused))


def check_calibrated_on(recipe: Recipe, companions: Sequence[str]) -> None:
    """Refuse what cannot be calibrated on other scans.

    Raises
    ------
    UsageError
        For a method without error bars, and for other images of the object, which those scans do not have.
    """
    method = recipe.reconstruction.method
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


def coverage_of(
    group: Group | None,
    slices: Slices,
    numbers: Sequence[int],
    run: Run,
    recipe: Recipe,
    mask: NDArray[np.bool_],
) -> Coverage | None:
    """Reconstruct the middle slice of every scan from the same samples, and hold its errors against its error bars.

    The noise is each scan's own, as are coil maps that its file does not bring: a noise that was given is that of the
    one scan, in its units. Scans that cannot serve are left out, and named in a warning.

    Parameters
    ----------
    group : Group, optional
        The files; None without them.
    slices : Slices
        Of the scan, which is recognised in the group by its samples.
    numbers : sequence of int
        Those that are reconstructed.
    run : Run
        Seed, processes and progress.
    recipe : Recipe
        For the lines or samples of the scan.
    mask : bool array, shape (ky,) or (ky, kz)
        Which of them are used.

    Raises
    ------
    InputError
        Along a trajectory, and where fewer than two scans are left.
    """
    if group is None:
        return None
    like = slices.read(numbers[0])
    if not isinstance(like, KSpaceData):
        raise InputError(
            FIELD,
            "samples along a trajectory",
            "lines, or samples of a plane, of which a complete scan is its own reference",
            f"Leave out {option('calibrated-on')}.",
        )
    refused = list(group.refused)
    recipe = replace(recipe.replacing("reconstruction", draws=0, noise_map=False), noise=NoiseRecipe())
    own = [readout_energies(like)[0]]
    for number in {*numbers[1:], slices.count // 2}:
        with suppress(InputError):  # without signal
            own.append(readout_energies(slices.read(number))[0])

    def items() -> Iterator[tuple[str, MeasuredSlice]]:
        for number, path in enumerate(group.files):
            try:
                data = _middle(path, recipe, run.seed + 1 + number, like, mask)
                if any(same_readouts(readout_energies(data)[0], one) for one in own):
                    raise _UnfitError("it is the scan itself: the same samples")
                yield path.name, MeasuredSlice(number, data, mask)
            except MriDesignError as error:
                refused.append(f"{path.name} is left out: {error}")

    found, count = dict[str, NDArray[np.float32]](), len(group.files)
    run.progress.show(STAGE, 0, count)
    with Workers(SliceWork(recipe, run.seed), max(1, min(run.jobs, count)), run.executor) as workers:
        for number, name, made in workers.map(_scores, items(), ahead=_AHEAD * run.jobs):
            if isinstance(made, str):
                refused.append(f"{name} is left out: {made}")
            else:
                found[name] = made
            run.progress.show(STAGE, number + 1, count)
    run.progress.show(STAGE, count, count)
    if len(found) < FEWEST:
        rows, columns = like.grid_shape
        raise InputError(
            FIELD,
            f"{len(found)} of {count} files of {group.name} that can serve"
            + "".join(f"; {why}" for why in refused[:_SAID])
            + ("; ..." if len(refused) > _SAID else ""),
            f"at least {FEWEST} complete scans of other subjects, {rows} x {columns} pixels and coils: {like.n_coils}",
            "Put such scans there, all measured as this one but with every line.",
        )
    for why in refused:
        run.progress.warn(f"{group.name}: {why}")
    return Coverage.of(group.name, found, refused)


class _UnfitError(MriDesignError):
    """Why a scan cannot serve."""


def _middle(path: Path, recipe: Recipe, seed: int, like: KSpaceData, mask: NDArray[np.bool_]) -> KSpaceData:
    """The middle slice of a file, of its first frame where the recipe asks for all; complete, and as large as the scan.

    Raises
    ------
    _UnfitError
        Where it is not.
    """
    recipe = recipe_of_frame(recipe, None) if recipe.input.axis else recipe
    with opened_slices(str(path), recipe, seed) as slices:
        data = slices.read(slices.count // 2)
    if not isinstance(data, KSpaceData):
        raise _UnfitError("samples along a trajectory have no complete image of their own")
    for text in ("{0.grid_shape[0]} x {0.grid_shape[1]} pixels", "coils: {0.n_coils}"):
        if text.format(data) != text.format(like):
            raise _UnfitError(f"it has {text.format(data)}, and this scan {text.format(like)}")
    if data.reference is None and not data.fully_sampled:
        raise _UnfitError(f"it is not complete ({data.missing})")
    held = data.samplings[0].samples if mask.ndim == 2 else data.samplings[0].lines
    if (mask & ~held).any():
        raise _UnfitError("it holds no data in some of the lines that are used")
    if data.reference is None and mask.sum() >= held.sum():
        raise _UnfitError(f"its complete image is of the very lines that are used; give fewer with {option('mask')}")
    return data


def _scores(work: SliceWork, item: tuple[str, MeasuredSlice]) -> tuple[int, str, NDArray[np.float32] | str]:
    """Errors of one slice in its standard deviations, or why there are none."""
    name, measured = item
    try:
        known, images = CalibratedSlice.of(work, measured).images()
    except InputError as error:
        return measured.number, name, str(error)
    made, reference = images[0].reconstruction, known.shown_reference
    assert isinstance(known, KnownScan) and reference is not None and made.std is not None
    beyond = error_beyond_noise(made.image, made.std, known.scan.data, reference, known.image_unit, measured.mask)
    return measured.number, name, scores(beyond, made.std)
