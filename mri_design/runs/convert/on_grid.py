"""K-space on a grid in every format that takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import UsageError
from mri_design.runs.convert.wording import card_file, described_kspace, left_out
from mri_design.runs.made_files import NO_SIZES, MadeFiles, what_is_unknown
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import npy_bytes, npz_bytes
from mri_design.scan.io.samples import readouts_of_positions
from mri_design.scan.trajectories.exchange import maps_to_bart, planes_to_bart
from mri_design.scan.writing.cfl import pair_files, stacked_slices
from mri_design.scan.writing.mrd import mrd_scan_bytes

Extents = tuple[float, float] | None
_COMPANIONS = ("coil_maps", "noise_variance", "reference")


def _npz(scan: KSpaceData, out: Path, _: Extents) -> MadeFiles:
    beside = {name: getattr(scan, name) for name in _COMPANIONS if getattr(scan, name) is not None}
    content = npz_bytes({"kspace": scan.kspace, "measured": scan.measured, **beside})
    return MadeFiles({out: content}, (f"{described_kspace(scan)}: {out}", *left_out(scan, _COMPANIONS)))


def _npy(scan: KSpaceData, out: Path, _: Extents) -> MadeFiles:
    card = card_file(out.with_suffix(""), {"noise_variance": scan.noise_variance})
    said = (f"{described_kspace(scan)}: {out}", *left_out(scan, ("noise_variance",)))
    return MadeFiles({out: npy_bytes(scan.kspace), **card}, said)


def _cfl(scan: KSpaceData, out: Path, _: Extents) -> MadeFiles:
    stem, planes = out.with_suffix(""), "volume" in scan.card
    kspace = readouts_of_positions(scan.kspace) if planes else scan.kspace
    files = pair_files(stem, _for_bart(kspace, planes))
    one_plane = {"encoding": "plane"} if planes and scan.n_slices == 1 else {}
    files |= card_file(stem, {"noise_variance": scan.noise_variance, **one_plane})
    said = [f"{described_kspace(scan)}: {stem}"]
    if planes:
        said.append(
            f"Its axes are those of BART: {scan.n_slices} x {scan.grid_shape[0]} x {scan.grid_shape[1]} (kx, ky, kz)."
        )
    if scan.coil_maps is not None:
        maps = stem.with_name(f"{stem.name}_maps")
        files |= pair_files(maps, _for_bart(scan.coil_maps, planes))
        said.append(f"coil maps: {maps}")
    return MadeFiles(files, (*said, *left_out(scan, ("coil_maps", "noise_variance"))))


def _for_bart(arrays: NDArray[np.complex64], planes: bool) -> NDArray[np.generic]:
    """K-space or maps (slice, coil, ky, kx), or of planes (x, coil, ky, kz), with BART's axes, which both share."""
    return planes_to_bart(arrays) if planes else stacked_slices([maps_to_bart(one) for one in arrays])


def _mrd(scan: KSpaceData, out: Path, extents: Extents) -> MadeFiles:
    _line_by_line(scan, out)
    places = scan.geometry
    if extents is not None:
        known = places or (NO_SIZES,) * scan.n_slices
        places = tuple(place.with_field_of_view(extents, scan.grid_shape) for place in known)
    unknown = what_is_unknown("The input", None if places is None else places[0])
    content = mrd_scan_bytes(scan, places)
    return MadeFiles({out: content}, (f"{described_kspace(scan)}: {out}", *unknown, *left_out(scan, ("geometry",))))


def _line_by_line(scan: KSpaceData, out: Path) -> Path:
    """The name, where the scan's rows and columns are lines and readouts."""
    if "volume" in scan.card:
        raise UsageError(
            f"{scan.card.get('file', scan.name)} is a volume, which was transformed along its readout into planes "
            f"(ky, kz); {out.suffix} files hold lines. Give a name that ends in .cfl, .npz or .npy"
        )
    return out


GRID_WRITERS: Mapping[str, Callable[[KSpaceData, Path, Extents], MadeFiles]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".h5": _mrd,
    ".mrd": _mrd,
    ".cfl": _cfl,
}
"""By the ending of the file's name."""
