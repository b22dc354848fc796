"""Samples along a trajectory in every format that takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.runs.convert.wording import card_file, described_kspace, left_out
from mri_design.runs.made_files import MadeFiles
from mri_design.scan.io.atomic import npz_bytes
from mri_design.scan.trajectories.exchange import maps_to_bart, samples_to_bart, to_bart
from mri_design.scan.trajectory_data import TrajectoryData
from mri_design.scan.writing.cfl import pair_files, stacked_slices

Extents = tuple[float, float] | None
_COMPANIONS = ("coil_maps", "noise_variance", "reference")


def _npz(scan: TrajectoryData, out: Path, _: Extents) -> MadeFiles:
    beside = {name: getattr(scan, name) for name in _COMPANIONS if getattr(scan, name) is not None}
    arrays: dict[str, Any] = {
        "kspace": scan.kspace.reshape(scan.n_slices, scan.n_coils, scan.readouts, -1),
        "trajectory": scan.trajectory.reshape(scan.readouts, -1, 2),
        "matrix": np.array(scan.grid_shape),
    }
    if scan.density is not None:
        arrays["density"] = scan.density.reshape(scan.readouts, -1)
    return MadeFiles({out: npz_bytes(arrays | beside)}, (f"{described_kspace(scan)}: {out}",))


def _cfl(scan: TrajectoryData, out: Path, _: Extents) -> MadeFiles:
    stem = out.with_suffix("")
    trajectory, maps = (stem.with_name(f"{stem.name}_{part}") for part in ("traj", "maps"))
    shots = scan.kspace.reshape(scan.n_slices, scan.n_coils, scan.readouts, -1)
    files = pair_files(stem, stacked_slices([samples_to_bart(one) for one in shots]))
    files |= pair_files(trajectory, to_bart(scan.trajectory.reshape(scan.readouts, -1, 2)))
    files |= card_file(stem, {"matrix": list(scan.grid_shape), "noise_variance": scan.noise_variance})
    said = [f"{described_kspace(scan)}: {stem}", f"trajectory: {trajectory}"]
    if scan.coil_maps is not None:
        files |= pair_files(maps, stacked_slices([maps_to_bart(one) for one in scan.coil_maps]))
        said.append(f"coil maps: {maps}")
    return MadeFiles(files, (*said, *left_out(scan, ("coil_maps", "noise_variance"))))


TRAJECTORY_WRITERS: Mapping[str, Callable[[TrajectoryData, Path, Extents], MadeFiles]] = {".npz": _npz, ".cfl": _cfl}
"""By the ending of the file's name."""
