"""A conversion: what a file holds, in the format that another file's name ends in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from mri_design.errors import UsageError
from mri_design.experiment.inputs import PHANTOM_PREFIX, load_scan
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import require_no_slices
from mri_design.runs.convert.along_trajectory import TRAJECTORY_WRITERS
from mri_design.runs.convert.images import IMAGE_WRITERS
from mri_design.runs.convert.on_grid import GRID_WRITERS
from mri_design.runs.made_files import MadeFiles, ending_of
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.dynamic_range import refused_samples
from mri_design.scan.io.bart import is_bart, pair_of
from mri_design.scan.io.formats import read
from mri_design.scan.io.samples import volume_note
from mri_design.scan.left_out import left_out_text
from mri_design.scan.trajectory_data import TrajectoryData

ENDINGS = tuple(dict.fromkeys((*GRID_WRITERS, *TRAJECTORY_WRITERS, *IMAGE_WRITERS)))
"""How files may be called that a conversion writes."""
_WITH_CARD = (".npy", ".npz", ".cfl")
_SIZED = (".h5", ".mrd", ".nii.gz", ".nii", ".dcm")


def convert_file(
    source: str,
    out: Path,
    recipe: Recipe,
    *,
    field_of_view: tuple[float, float] | None = None,
    index: int | None = None,
) -> MadeFiles:
    """Read a file and make those of another format; nothing is written.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    out : Path
        The ending of its name, one of `ENDINGS`, is the format.
    recipe : Recipe
        Its ``input`` applies to files, its ``simulation`` to phantoms. Images stay images. Where its ``design`` is one
        over a plane, rows and columns of the one slice are ky and kz.
    field_of_view : tuple of float, optional
        (ky, kx) in metres, for formats that have sizes of pixels; by default that of the input, where it says one.
    index : int, optional
        The one slice to take, negative from the end; by default all.

    Raises
    ------
    UsageError
        For another ending, a format that does not take what the input holds, slices, and names whose files would
        replace the input or be read with somebody else's card.
    InputError
        Where the input cannot be used, or the format cannot hold it.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    require_no_slices(source, "give {0} --slice {1}")
    ending = ending_of(out, ENDINGS)
    if ending is None:
        raise UsageError(f"{out.name} has no ending that says a format: end it in {_listed(ENDINGS)}")
    if field_of_view is not None and ending not in _SIZED:
        raise UsageError(f"--fov is for files with sizes of pixels: {_listed(_SIZED)}")
    phantom = source.startswith(PHANTOM_PREFIX)
    policy = recipe.input
    data = (
        load_scan(source, recipe)
        if phantom
        else read(source, duplicates=policy.duplicates, counters=policy.counters, matrix=policy.pixels)
    )
    data = data if index is None else data.select_slice(index)
    if recipe.design.encoding == "plane":
        data = _as_plane(data, source)
    made = _made(data, source, out, field_of_view)
    if not phantom:
        _refuse_changes_of(Path(source), made)
    _refuse_foreign_card(out, made)
    warnings = [left_out_text(data.card, asked=policy.counters), _refused(data)]
    return replace(made, warning=f"{data.name}: {'. '.join(filter(None, warnings))}") if any(warnings) else made


def _refused(data: KSpaceData | TrajectoryData | ImageStack) -> str:
    """That recon and design refuse the samples, which a conversion copies; empty where they do not."""
    found = "" if isinstance(data, ImageStack) else refused_samples(data.kspace)
    return found and f"samples {found}"


def _made(
    data: KSpaceData | TrajectoryData | ImageStack, source: str, out: Path, extents: tuple[float, float] | None
) -> MadeFiles:
    ending = ending_of(out, ENDINGS) or ""
    if isinstance(data, KSpaceData):
        cure = f"reconstruct it (mri-design recon {source} --out run) and export the run (mri-design export run)"
        _require(ending, GRID_WRITERS, source, "k-space", cure if ending in IMAGE_WRITERS else "")
        return GRID_WRITERS[ending](data, out, extents)
    if isinstance(data, TrajectoryData):
        _require(ending, TRAJECTORY_WRITERS, source, "samples along a trajectory")
        return TRAJECTORY_WRITERS[ending](data, out, extents)
    _require(ending, IMAGE_WRITERS, source, "images, from which no k-space is made here")
    return IMAGE_WRITERS[ending](data, out, extents)


def _as_plane(data: KSpaceData | TrajectoryData | ImageStack, source: str) -> KSpaceData:
    """The scan with rows and columns as ky and kz."""
    if not isinstance(data, KSpaceData):
        raise UsageError(f"{source} holds no k-space on a grid, and so no plane (ky, kz): leave out --encoding")
    if "volume" in data.card:
        return data
    if data.n_slices > 1:
        raise UsageError(f"{source} holds {data.n_slices} slices, and a plane (ky, kz) is one: choose it with --slice")
    return replace(data, card={**data.card, "volume": volume_note(1, data.grid_shape)})


def _require(ending: str, possible: Collection[str], source: str, what: str, cure: str = "") -> None:
    if ending not in possible:
        raise UsageError(f"{source} holds {what}: {cure or f'end the name of the file in {_listed(possible)}'}")


def _refuse_changes_of(source: Path, made: MadeFiles) -> None:
    """Refuse to write over the input, or the card beside it."""
    inputs = {path.resolve() for path in (*(pair_of(source) if is_bart(source) else (source,)), _card(source))}
    changed = [path for path in made.files if path.resolve() in inputs]
    if changed:
        raise UsageError(f"{changed[0]} belongs to the input, which stays as it is; take another name")


def _refuse_foreign_card(out: Path, made: MadeFiles) -> None:
    """Refuse a name beside which a card stands that is about something else."""
    card = _card(out)
    if out.suffix in _WITH_CARD and card.exists() and card not in made.files:
        raise UsageError(f"{card} would be read as the card of {out.name}; take another name")


def _card(path: Path) -> Path:
    return path.with_suffix(".json")


def _listed(endings: Collection[str]) -> str:
    *first, last = endings
    return f"{', '.join(first)} or {last}"
