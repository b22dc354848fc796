"""One `read` for every format: the file's content decides, but for BART's pairs, whose samples are bare numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from mri_design.errors import InputError, require_instance
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.image_outline import ImageOutline
from mri_design.scan.io import bart, dicom, fastmri, ismrmrd, nifti, pfile
from mri_design.scan.io import numpy_files as npy
from mri_design.scan.io import twix as measurements
from mri_design.scan.io import twix as siemens
from mri_design.scan.io.hdf5 import has_object, is_hdf5, open_read_only
from mri_design.scan.io.isolated import read_isolated
from mri_design.scan.io.mrd_acquisitions import checked_counters
from mri_design.scan.io.npy import MAGIC
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file
from mri_design.scan.outline import ScanOutline
from mri_design.scan.trajectory_data import TrajectoryData

SUPPORTED = (
    "NumPy .npy or .npz",
    "fastMRI HDF5 (kspace)",
    "ISMRMRD HDF5 (dataset/xml, dataset/data)",
    "Siemens raw data (twix .dat)",
    f"GE P-files of revision {pfile.REVISION:g}",
    "BART .cfl with its .hdr",
    "NIfTI or DICOM images",
)
"""The formats `read` knows, for people."""

_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")


def read(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: ismrmrd.DuplicatePolicy = "error",
    counters: Mapping[str, int] | None = None,
    matrix: tuple[int, int] | None = None,
    isolated: bool = True,
) -> KSpaceData | TrajectoryData | ImageStack:
    """Read a scan or a stack of images in any supported format.

    Parameters
    ----------
    path : path
        The file. Its first bytes tell the container, and what an HDF5 file holds tells the format; either file of a
        BART pair.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"error", "average", "last"}
        For raw data in which a line comes twice; other formats have no such lines.
    counters : mapping of str to int, optional
        Which "contrast", "phase", "repetition" and "set" of raw data to read, by the file's own numbers; the first of
        those that are not named. Other formats have none but number 0.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image of samples along a trajectory in NumPy or BART files, in the place of what these
        say.
    isolated : bool
        Read HDF5 in a process of its own (half a second more), because damaged files can crash or stall its
        library. Only files that are trusted should be read without.

    Raises
    ------
    MissingPackageError
        For NIfTI and DICOM images and Siemens raw data without the package that reads them.
    InputError
        Where the format is unknown or the file does not pass its reader's checks.
    """
    path, counters, kind = *_checked(path, counters), _format_of(path)
    if matrix is not None:
        return _on_matrix(path, kind, _READERS_OF_CARDS, limits, matrix)
    if kind == "HDF5" and isolated:
        scan = read_isolated(path, limits=limits, duplicates=duplicates, counters=counters)
        assert not isinstance(scan, ScanOutline)
        return scan
    if kind == "HDF5" and _is_raw(path):
        return ismrmrd.read(path, limits=limits, duplicates=duplicates, counters=counters)
    if kind == "twix":
        return siemens.read(path, limits=limits, duplicates=duplicates, counters=counters)
    _require_first(path, counters)
    return _READERS[kind](path, limits=limits)


def outline(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: ismrmrd.DuplicatePolicy = "error",
    counters: Mapping[str, int] | None = None,
    matrix: tuple[int, int] | None = None,
    isolated: bool = True,
) -> ScanOutline | TrajectoryData | ImageOutline:
    """What `read` would read, told without all of it: of raw data the samples of one slice are kept, of images none.

    Parameters
    ----------
    path, limits, duplicates, counters, matrix, isolated
        As for `read`.

    Raises
    ------
    MissingPackageError
        As `read`.
    InputError
        As `read`, but for samples that were not looked at.
    """
    path, counters, kind = *_checked(path, counters), _format_of(path)
    if matrix is not None:
        return _on_matrix(path, kind, _OUTLINES_OF_CARDS, limits, matrix)
    if kind == "HDF5" and isolated:
        told = read_isolated(path, limits=limits, duplicates=duplicates, counters=counters, whole=False)
        assert not isinstance(told, KSpaceData)
        return told
    if kind == "HDF5" and _is_raw(path):
        return ismrmrd.outline(path, limits=limits, duplicates=duplicates, counters=counters)
    if kind == "twix":
        return siemens.outline(path, limits=limits, duplicates=duplicates, counters=counters)
    _require_first(path, counters)
    return _OUTLINES[kind](path, limits=limits)


_READERS: Mapping[str, Callable[..., KSpaceData | TrajectoryData | ImageStack]] = {
    "BART": bart.read,
    "NumPy": npy.read,
    "DICOM": dicom.read,
    "NIfTI": nifti.read,
    "P-file": pfile.read,
    "HDF5": fastmri.read,
}
"""Readers of formats without series to choose from; of HDF5 files, that of those which hold no raw data."""
_OUTLINES: Mapping[str, Callable[..., ScanOutline | TrajectoryData | ImageOutline]] = {
    "BART": bart.outline,
    "NumPy": npy.outline,
    "DICOM": dicom.outline,
    "NIfTI": nifti.outline,
    "P-file": pfile.outline,
    "HDF5": fastmri.outline,
}
"""The same, for what they hold without all of it."""


_READERS_OF_CARDS: Mapping[str, Callable[..., object]] = {"BART": bart.read, "NumPy": npy.read}
_OUTLINES_OF_CARDS: Mapping[str, Callable[..., object]] = {"BART": bart.outline, "NumPy": npy.outline}
"""Those of `_READERS` and `_OUTLINES` whose files may hold trajectories without a matrix."""


def _on_matrix(
    path: Path, kind: str, readers: Mapping[str, Callable[..., object]], limits: ReadLimits, matrix: tuple[int, int]
) -> TrajectoryData:
    """Samples along a trajectory, for whose image somebody asked for a matrix."""
    told = readers[kind](path, limits=limits, matrix=matrix) if kind in readers else None
    if not isinstance(told, TrajectoryData):
        raise InputError(
            field="matrix",
            got=f"{' x '.join(map(str, matrix))} pixels asked for of {path.name}, which says its own",
            wanted="samples along a trajectory, in NumPy or BART files",
            cure="Leave out --matrix, or matrix under [input] in the recipe.",
        )
    return told


def _format_of(path: str | os.PathLike[str]) -> str:
    """What a file is by its first bytes, or its name: one of `_READERS`, or twix."""
    path = Path(path)
    if not path.name:  # the current folder, or the root
        check_file(path)
    nifti.refuse_pair(path)
    if bart.is_bart(path):
        return "BART"
    check_file(path)
    with path.open("rb") as stream:
        head = stream.read(8)
    if head.startswith((MAGIC, *_ZIP)):
        return "NumPy"
    if head.startswith(b"# Pulse"):
        cure = "Give the raw data that the scanner measured with it; mri-design info tells what the sequence says."
        raise InputError(field=str(path), got="a Pulseq sequence, without samples", wanted="measured data", cure=cure)
    if head.lstrip().startswith(b"{"):
        cure = "Readouts as JSON lines are taken by mri-design adapt; a card (JSON) belongs to the array beside it."
        raise InputError(field=str(path), got="JSON", wanted="; ".join(SUPPORTED), cure=cure)
    recognised = (
        *(("DICOM", dicom.is_dicom), ("NIfTI", nifti.is_nifti), ("HDF5", is_hdf5)),
        *(("P-file", pfile.is_pfile), ("twix", measurements.is_twix)),
    )
    kind = next((name for name, is_one in recognised if is_one(path)), None)
    if kind is None:
        raise InputError(field=str(path), got=f"a file starting with {head!r}", wanted="; ".join(SUPPORTED))
    return kind


def _checked(path: str | os.PathLike[str], counters: Mapping[str, int] | None) -> tuple[Path, dict[str, int]]:
    require_instance((str, os.PathLike), wanted="the path of a file", path=path)
    return Path(path), checked_counters(counters or {})


def _require_first(path: Path, counters: Mapping[str, int]) -> None:
    """Refuse numbers that a format without such counters does not have."""
    for name, number in counters.items():
        if number:
            raise InputError(
                field=f"{path}: {name}",
                got=f"{number} asked for in a file that has no numbers of this kind",
                wanted="0, or none",
                cure=f"Leave out --{name}, or {name} under [input] in the recipe.",
            )


def _is_raw(path: Path) -> bool:
    """Whether an HDF5 file holds raw data of ISMRMRD; False for one of fastMRI.

    Raises
    ------
    InputError
        For a file that is neither.
    """
    with open_read_only(path) as file:
        # Links of any kind count here, so that the reader can say which link it refuses.
        names = {str(name) for name in file} if len(file) <= 1000 else set()
        raw = "dataset" in names and not has_object(file, "kspace")
    if not raw and "kspace" not in names:
        got = f"HDF5 with {', '.join(sorted(names)[:6]) or 'nothing this package reads'}"
        raise InputError(field=str(path), got=got, wanted="; ".join(SUPPORTED))
    return raw
