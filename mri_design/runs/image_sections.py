"""Images of runs: their files and table, what a run keeps of them, and how pages of several verbs show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mri_design.evaluation.metrics import ranked
from mri_design.evaluation.plots.pictures import Frame, ImagePanel, error_caption, layout_of, metric_caption
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.reconstruction import Image
from mri_design.model.sparsity import unit_modulus
from mri_design.runs.known_slice import KnownSlice, NamedImage, pixel_of
from mri_design.runs.provenance import part_of_scan, phrase
from mri_design.runs.stored_run import ARRAYS, StoredRun, arrays_of
from mri_design.scan.data import TrajectoryData

Rows = list[dict[str, object]]
CompanionPictures = tuple[list[ImagePanel], str]
"""The other images of the object that an image was offered, where they lie and in its brightness, with the image
without them; and what was made of them."""


def account_settings(account: Mapping[str, object]) -> dict[str, object]:
    """Rows of a summary, such as `account_of` an image, by the names of a manifest's settings."""
    return {name.replace(" ", "_").replace("-", "_"): value for name, value in account.items()}


def image_rows(known: KnownSlice, images: Sequence[NamedImage]) -> Rows:
    """Rows of metrics.csv: the pair that images are judged by, and errors against the reference as it is.

    Where the reference carries noise, they say whether these errors rank images (`metrics.ranked`).

    Parameters
    ----------
    known : KnownSlice
        The slice.
    images : sequence of NamedImage
        One for every row, all from the lines of the slice.
    """
    if known.scan.on_grid:
        counted = known.slice_model.candidates.kind.counted
        measured = {counted: len(known.lines), "acceleration": known.acceleration(known.lines)}
    else:
        assert isinstance(known.scan, TrajectoryData)
        measured = {"readouts": known.scan.n_readouts, "samples": len(known.scan.trajectory)}
    rows: Rows = []
    for named in images:
        errors, ended = named.errors, named.reconstruction.convergence
        row: dict[str, object] = {"method": named.name, **measured, **named.error.columns}
        row |= {name: getattr(errors, name, None) for name in ("relative_l2", "psnr", "ssim")}
        row |= {"converged": ended.converged, "matvecs": ended.matvecs}
        if known.scan.on_grid and known.reference_noise is not None:
            noise, of_all = known.reference_noise, known.holds_reference
            row["ranks"] = ranked(errors.relative_l2, noise, of_all) if errors else "no: it is the reference"
        rows.append(row)
    return rows


def image_facts(folder: RunFolder, known: KnownSlice, images: Sequence[NamedImage]) -> dict[str, Any]:
    """Write the first image of a slice, its error bars and the errors of all; return what images.html.j2 shows of them.

    Parameters
    ----------
    folder : RunFolder
        Where to: metrics.csv, and arrays by name (`arrays_of`); those of an earlier run do not stay.
    known : KnownSlice
        The slice, and what errors are measured against.
    images : sequence of NamedImage
        The run's own image, then others to compare it with, all from the lines of the slice.
    """
    rows, made = image_rows(known, images), images[0].reconstruction
    arrays = arrays_of(known, made, None if made.draws is None else known.shown_reference)
    for name in ARRAYS:
        if name in arrays:
            folder.write_array(f"{name}.npy", arrays[name])
        else:
            folder.remove(f"{name}.npy")
    folder.write_table("metrics.csv", rows)
    return shown_facts(known, images, rows) | {"others": companion_pictures(made)}


def shown_facts(known: KnownSlice, images: Sequence[NamedImage], rows: Rows) -> dict[str, Any]:
    """What images.html.j2 shows of the images of a slice, whose errors are ``rows``."""
    reference, pairs = known.shown_reference, [(one.reconstruction.image, one) for one in images]
    orientation = known.scan.orientation if known.scan.on_grid else "ky-rows"
    panels = [ImagePanel(image, one.name, metric_caption(one.error.found, one.errors)) for image, one in pairs]
    return {
        "known": known,
        "images": images,
        "rows": rows,
        "maps_source": phrase("maps", known.scan.provenance.maps),
        "phrase": partial(phrase, template="image"),
        "reference": reference,
        "frame": Frame(layout_of(known.slice_model.candidates, orientation), pixel_of(known.scan)),
        "part": part_of_scan(known.scan),
        "panels": panels if reference is None else [ImagePanel(reference, "reference"), *panels],
        "compared": [ImagePanel(image, one.name, error_caption(one.error.found)) for image, one in pairs],
    }


def companion_pictures(made: Image, whose: str = "") -> CompanionPictures:
    """Those of an image, ``whose`` mask it is of if there are several; no panels where it was offered none."""
    choice = made.companions
    if choice is None:
        return [], ""
    level = float(np.percentile(np.abs(made.image), 99.5))  # brightness of its own has none of them
    offered = [(one.companion, "used" if one.used else "not used") for one in choice.offered]
    panels = [ImagePanel(level * unit_modulus(one.image), one.name, used) for one, used in offered]
    if made.alone is not None:
        panels.append(ImagePanel(made.alone, "without them", "under the local prior"))
    return panels, phrase("about_companions", choice, whose, template="image")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StoredImage(StoredRun):
    """A run with an image.

    Parameters
    ----------
    judged : NamedImage
        The image with its errors and how its computation ended; of a volume the one in the middle.
    shown : int, optional
        Number of that slice, of a volume.
    of_scan : int
        Slices of the scan of a volume, in each frame.
    """

    judged: NamedImage
    shown: int | None = None
    of_scan: int = 0


def run_of(known: KnownSlice, image: NamedImage, /, **more: Any) -> StoredImage:
    """What a run leaves of the image of a slice; ``more`` are further parts, or others than those of the slice."""
    data, candidates = known.scan, known.slice_model.candidates
    arrays = arrays_of(known, image.reconstruction, known.shown_reference)
    parts: dict[str, Any] = {
        "scan": data.name,
        "layout": layout_of(candidates, data.orientation),
        "readouts": candidates.name,
        "grid": candidates.grid,
        "judged": image,
        "error": image.error,
        "part_of_scan": part_of_scan(data),
    }
    if data.on_grid:
        parts |= {"places": (data.geometry or ())[:1], "sources": () if data.source is None else (data.source,)}
    return StoredImage(**{ARRAYS[name]: array for name, array in arrays.items()} | parts | more)
