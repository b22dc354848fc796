"""What is said of files that were converted, and the cards beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from mri_design.scan.data import KSpaceData
from mri_design.scan.trajectory_data import TrajectoryData

_PARTS = {
    "coil_maps": "coil maps",
    "noise_variance": "the noise variance",
    "noise_covariance": "the covariance of the noise",
    "calibration": "the calibration scan",
    "density": "the density compensation weights",
    "geometry": "sizes and places of slices",
    "reference": "the true image",
    "source": "identifiers of the patient and of the study",
}


def described_kspace(scan: KSpaceData | TrajectoryData) -> str:
    """Sizes in words."""
    n_y, n_x = scan.grid_shape
    if isinstance(scan, KSpaceData) and "volume" in scan.card:
        planes = f"{scan.n_slices} plane{'s' * (scan.n_slices > 1)} of {n_y} x {n_x} (ky x kz)"
        return f"{planes}, {scan.n_coils} coil{'s' * (scan.n_coils > 1)}"
    if isinstance(scan, TrajectoryData):
        what = f"{len(scan.trajectory)} samples on {scan.readouts} readouts for {n_y} x {n_x} pixels (ky x kx)"
    else:
        what = f"{int(scan.measured.sum())} lines of a grid of {n_y} x {n_x} (ky x kx)"
    return f"{scan.n_slices} slice{'s' * (scan.n_slices > 1)}, {scan.n_coils} coil{'s' * (scan.n_coils > 1)}, {what}"


def left_out(scan: KSpaceData | TrajectoryData, kept: Collection[str]) -> list[str]:
    """One sentence about what is known of the scan and not ``kept`` in its file; none where that is nothing."""
    lost = [text for part, text in _PARTS.items() if part not in kept and getattr(scan, part, None) is not None]
    return [f"Not in this file: {', '.join(lost)}."] if lost else []


def card_file(stem: Path, facts: Mapping[str, object]) -> dict[Path, bytes]:
    """NAME.json, which tells the readers of this package what the arrays do not; none where there is nothing to say."""
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return {stem.with_name(f"{stem.name}.json"): f"{json.dumps(known)}\n".encode()} if known else {}
