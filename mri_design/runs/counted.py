"""The candidates of a run's mask in a word: lines, samples of a plane, shots, or readouts along a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SAMPLES, SHOTS = "samples.csv", "shots.csv"
"""Files by which folders are known of designs over samples of a plane, and over spokes or arms of spirals."""


def counted(folder: Path, settings: Mapping[str, object], mask_axes: int | None) -> str:
    """The word for what was measured, of designs and of reconstructions alike.

    Parameters
    ----------
    folder : Path
        Of the run.
    settings : mapping
        Of its manifest.
    mask_axes : int, optional
        Axes of ``mask.npy``; None where there is none that can be read.
    """
    if mask_axes == 2 or (folder / SAMPLES).is_file():
        return "samples"
    if (folder / SHOTS).is_file():
        return "shots"
    return "readouts" if "readouts" in settings else "lines"
