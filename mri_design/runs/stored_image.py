"""What the folder of a run holds of its image: all that the run has found out of it, and not its arrays alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mri_design.evaluation.plots.pictures import layout_of
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.provenance import part_of_scan
from mri_design.runs.stored_run import ARRAYS, StoredRun, arrays_of


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
