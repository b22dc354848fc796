"""A mask without a scan: what it is, its point-spread function, and the files that it goes to."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np

from mri_design.errors import UsageError
from mri_design.evaluation.plots.pictures import png_bytes
from mri_design.evaluation.tables import csv_text
from mri_design.experiment.extent import amount_wanted, check_other_than_lines, in_acquisition_order, require_amount
from mri_design.experiment.masks import DrawnMask, draw_mask, named_kind
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, count_text
from mri_design.runs.export import SequenceRequest, export_run
from mri_design.runs.provenance import sentences
from mri_design.runs.stored_run import MadeFiles, StoredRun, ending_of
from mri_design.scan.io.atomic import npy_bytes
from mri_design.scan.trajectories import decibels, largest_side_lobe, to_bart
from mri_design.scan.writing import pair_files

ENDINGS = (".npy", ".cfl", ".csv", ".seq")
"""Of the files that hold a mask."""


@dataclass(frozen=True)
class MaskRequest:
    """Request for a mask.

    Parameters
    ----------
    kind : str
        See `named_kind`.
    shape : tuple of int
        Sides of the grid: (ky, kx), of a plane (ky, kz), or one for both.
    out : Path
        Its ending is the format.
    recipe : Recipe
        Constraints and order.
    encoding : str, optional
        What is chosen, where the kind knows several.
    count : int, optional
        Lines, samples or shots.
    acceleration : float, optional
        In the place of the count: one in so many lines of the grid, or samples; of shots one for so many lines.
    calibration : int, optional
        See `draw_mask`.
    seed : int
        Of everything random.
    picture : bool
        Whether a picture is drawn beside the file.
    field_of_view : tuple of float, optional
        (ky, kx) in metres, for a sequence.
    sequence : SequenceRequest, optional
        For ``.seq``, which needs it.

    Raises
    ------
    UsageError
        For a name of another ending, neither count nor acceleration or both, a sequence without field of view, and as
        `named_kind`.
    """

    kind: str
    shape: tuple[int, ...]
    out: Path
    recipe: Recipe
    _: KW_ONLY
    encoding: str | None = None
    count: int | None = None
    acceleration: float | None = None
    calibration: int | None = None
    seed: int = 0
    picture: bool = True
    field_of_view: tuple[float, float] | None = None
    sequence: SequenceRequest | None = None
    strategy: str = field(init=False)

    def __post_init__(self) -> None:
        if ending_of(self.out, ENDINGS) is None:
            raise UsageError(f"{self.out.name} is no file name ending in {', '.join(ENDINGS)}, as a mask needs")
        if self.out.suffix == ".seq" and self.field_of_view is None:
            raise UsageError("a sequence needs the field of view in metres, as --fov 0.24")
        strategy, encoding = named_kind(self.kind, len(self.shape), self.encoding)
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "recipe", self.recipe.replacing("design", encoding=encoding))
        check_other_than_lines(self.recipe)
        require_amount(self.count, self.acceleration, self.recipe)

    @property
    def grid(self) -> tuple[int, int]:
        """Sides of the grid."""
        return self.shape[0], self.shape[-1]


def make_mask(request: MaskRequest) -> MadeFiles:
    """Draw the mask and make its files; nothing is written.

    Returns
    -------
    MadeFiles
        Sentences say what the mask is, and how large the largest side lobe of its point-spread function is.

    Raises
    ------
    UsageError, InputError, SequenceError, MissingPackageError
        As `draw_mask` and `export_run`; along shots, where FINUFFT is not installed.
    """
    drawn = draw_mask(
        request.strategy,
        request.grid,
        amount_wanted(request.count, request.acceleration, KINDS[request.recipe.design.encoding].whole(request.grid)),
        request.recipe,
        calibration=request.calibration,
        seed=request.seed,
    )
    spread, shots, count = drawn.spread, drawn.trajectory, len(drawn.order)
    counted, lobe = count_text(count, drawn.readouts.unit), largest_side_lobe(spread)
    lines = sentences("mask", "mask", request, drawn, count, counted, shots, *lobe, decibels(lobe[0]))
    made = _written(request, drawn)
    files, said = dict(made.files), [*lines, *made.sentences]
    if request.picture:
        from mri_design.evaluation.plots.kspace import mask_with_spread  # here, because no other figure is needed

        figure = mask_with_spread(f"{lines[0]}\n{lines[-1]}", drawn.mask, spread, shots)
        path = request.out.with_suffix(".png")
        files[path] = png_bytes(figure)
        said.append(f"picture: {path}")
    return MadeFiles(files, tuple(said))


def _written(request: MaskRequest, drawn: DrawnMask) -> MadeFiles:
    """The file of the mask, in the format that its name asks for."""
    out, shots = request.out, drawn.trajectory
    files: dict[Path, bytes] = {}
    if out.suffix == ".npy":
        files[out] = npy_bytes(drawn.mask if shots is None else shots)
    elif shots is not None and out.suffix == ".cfl":
        files |= pair_files(out.with_suffix(""), to_bart(shots))
    elif shots is not None and out.suffix == ".csv":
        degrees = np.degrees(drawn.readouts.angles or ())
        rows = [{"order": n, "shot": shot, "degrees": float(degrees[shot])} for n, shot in enumerate(drawn.order)]
        files[out] = csv_text(rows).encode()
    if files:
        return MadeFiles(files, tuple(sentences("mask", "file", drawn, out, out.suffix)))
    acquisition = in_acquisition_order(drawn.order, drawn.readouts, request.recipe)
    trains = tuple((line,) for line in drawn.order) if acquisition is None else acquisition.trains
    run = StoredRun(
        name=out.name,
        mask=drawn.mask,
        chosen=drawn.order,
        readouts=drawn.readouts.name,
        grid=drawn.readouts.grid,
        acquired=trains,
        shots=shots,
    )
    form = out.suffix.removeprefix(".")
    return export_run(run, form, out, field_of_view=request.field_of_view, sequence=request.sequence)
