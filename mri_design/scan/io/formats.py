"""One `read` for every format: the file's content decides, but for BART's pairs, whose samples are bare numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, Unpack

import numpy as np

from mri_design.errors import InputError, option, require_instance
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io import bart, dicom, hdf5, ismrmrd, nifti, numpy_files, pfile, twix
from mri_design.scan.io.isolated import IsolatedSource
from mri_design.scan.io.mrd_acquisitions import noise_of_samples
from mri_design.scan.io.numpy_files import read_stored
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.source import (
    REGISTERED,
    CentredSource,
    Content,
    NoiseReadouts,
    Reader,
    Reading,
    ReadOptions,
    Source,
    Summary,
    require_counters,
)

Held = TypeVar("Held")
BART = Reader("BART .cfl with its .hdr", bart.is_bart, bart.opened, series=True, matrix=True, arrays=True)
"""Recognised by names, because only one file of a pair need be named."""
READERS: list[Reader] = [
    Reader("NumPy .npy or .npz", numpy_files.is_numpy, numpy_files.opened, series=True, matrix=True, arrays=True),
    Reader("DICOM images", dicom.is_dicom, dicom.opened),
    Reader("NIfTI images", nifti.is_nifti, nifti.opened),
    Reader(
        "fastMRI, MATLAB (v7.3) or other HDF5 (kspace)", hdf5.is_fastmri, hdf5.opened,
        series=True, arrays=True, container=hdf5.is_hdf5,
    ),
    Reader(
        "ISMRMRD HDF5 (dataset/xml, dataset/data)", ismrmrd.is_mrd, ismrmrd.opened,
        series=True, container=hdf5.is_hdf5,
    ),
    Reader(f"GE P-files of revision {pfile.REVISION:g}", pfile.is_pfile, pfile.opened),
    Reader("Siemens raw data (twix .dat)", twix.is_twix, twix.opened, series=True),
]  # fmt: skip
"""The formats of this package, a line each, in the order in which a file is asked for their marks."""


def read(path: str | os.PathLike[str], *, isolated: bool = True, **options: Unpack[Reading]) -> Content:
    """Read a scan or a stack of images in any supported format, or one of `register_reader`.

    Parameters
    ----------
    path : path
        The file. Its first bytes tell the container, and what an HDF5 file holds tells the format; either file of a
        BART pair.
    isolated : bool
        Read HDF5 in a process of its own (half a second more), because damaged files can crash or stall its
        library. Only files that are trusted should be read without.
    **options
        As of `ReadOptions`: ``limits``; ``duplicates`` ("refuse", "average", "first" or "last") and ``counters``, by
        name, of raw data; ``matrix``, the pixels (ky, kx) of samples along a trajectory; ``dims``, the names of the
        axes of an array; ``centre``, line and sample of the centre of k-space in the file; and whether to read what
        arrays say of their ``noise``.

    Raises
    ------
    MissingPackageError
        For NIfTI and DICOM images and Siemens raw data without the package that reads them.
    InputError
        Where the format is unknown or the file does not pass its reader's checks.
    """
    with opened(path, ReadOptions(**options), isolated=isolated) as source:
        return _on_matrix(source.load(), Path(path), options.get("matrix"))


def summary(path: str | os.PathLike[str], *, isolated: bool = True, **options: Unpack[Reading]) -> Summary:
    """Summarise a file without reading all of it: of raw data the samples of one slice are kept, of images none.

    Parameters
    ----------
    path, isolated, **options
        As for `read`.

    Raises
    ------
    MissingPackageError
        As `read`.
    InputError
        As `read`, but for samples that were not looked at.
    """
    with opened(path, ReadOptions(**options), isolated=isolated) as source:
        return _on_matrix(source.summary(), Path(path), options.get("matrix"))


def read_noise(path: str | os.PathLike[str], channels: int, limits: ReadLimits = DEFAULT_LIMITS) -> NoiseReadouts:
    """Noise of the coils, from a file of samples that were measured without an excitation.

    Parameters
    ----------
    path : path
        An array (coil, sample) in a .npy or .npz file of one member; a pair of BART, whose fourth axis has the coils;
        or raw data, of which the noise readouts are taken.
    channels : int
        Coils of the scan that the noise is to be of.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.

    Raises
    ------
    InputError
        Where the file cannot be read, or holds no noise of that many coils.
    """
    require_instance((str, os.PathLike), wanted="the path of a file", path=path)
    path = Path(path)
    if BART.recognises(path):
        stored = np.moveaxis(bart.read_pair(path, limits), 3, 0)
    elif not (check_file(path) and numpy_files.is_numpy(path)):
        with opened(path, ReadOptions(limits=limits, only_noise=True)) as source, errors_named(path):
            found = source.noise()
        if len(found.covariance) != channels:
            got = f"noise of {len(found.covariance)} channels"
            raise InputError(str(path), got, f"noise of the {channels} coils of the scan", "Give the scan's own noise.")
        return found
    else:
        stored = read_stored(path, limits, "one array (coil, sample)", field=str(path))
    return noise_of_samples(str(path), stored, channels)


@contextmanager
def opened(path: str | os.PathLike[str], options: ReadOptions, *, isolated: bool = True) -> Iterator[Source]:
    """A file as a `Source`, while it is open: only its header has been read.

    Parameters
    ----------
    path, isolated
        As for `read`.
    options : ReadOptions
        How it is to be read.

    Raises
    ------
    InputError
        As `read`.
    """
    require_instance((str, os.PathLike), wanted="the path of a file", path=path)
    path = Path(path)
    reader = _reader_of(path, isolated)
    if reader is None or not reader.matrix:
        _on_matrix(None, path, options.matrix)
    if reader is None:
        yield IsolatedSource(path, options)
        return
    if options.dims is not None and not reader.arrays:
        got = f"{','.join(options.dims)} for {path.name}, whose format names its own axes"
        cure = f"Leave out {option('dims')}, or dims under [input] in the recipe."
        raise InputError("dims", got, "an array: NumPy, BART, MATLAB or other HDF5", cure)
    if not reader.series:
        require_counters(path, options.counters)
    if reader is BART:
        path, _ = bart.pair_of(path)
    with errors_named(path), reader.opened(path, options) as source:
        yield CentredSource(source, options.centre)


def _on_matrix(held: Held, path: Path, matrix: tuple[int, int] | None) -> Held:
    """Refuse anything but samples along a trajectory where the matrix of an image was asked for."""
    if matrix is not None and not isinstance(held, TrajectoryData):
        got = f"{' x '.join(map(str, matrix))} pixels asked for of {path.name}, which says its own"
        cure = f"Leave out {option('matrix')}, or matrix under [input] in the recipe."
        raise InputError("matrix", got, "samples along a trajectory, in NumPy or BART files", cure)
    return held


def _reader_of(path: Path, isolated: bool) -> Reader | None:
    """The reader of a file, by its first bytes or its name; None for one that another process has to look at."""
    if not path.name:  # the current folder, or the root
        check_file(path)
    nifti.refuse_pair(path)
    if BART.recognises(path):
        return BART
    check_file(path)
    _refuse_other_files(path)
    for reader in (*REGISTERED, *READERS):
        if isolated and reader.container is not None and reader.container(path):
            return None
        if reader.recognises(path):
            return reader
    with path.open("rb") as stream:
        got = f"a file starting with {stream.read(8)!r}"
    cure = ""
    if pfile.named_as_pfile(path):
        got, cure = f"{got}, named as P-files of GE are and without their mark", pfile.CONVERT
    elif path.name.startswith("ScanArchive"):
        got, cure = f"{got}, named as scan archives of GE are", pfile.CONVERT
    elif hdf5.is_hdf5(path):
        with hdf5.open_read_only(path) as file:
            held = hdf5.arrays_in(file)
        got = f"HDF5 with {'; '.join(f'{name}: {text}' for name, text in list(held.items())[:6]) or 'no arrays'}"
        cure = (
            "Save the one with k-space for NumPy: import h5py, numpy; "
            f"file = h5py.File('{path.name}'); numpy.savez('{path.stem}.npz', kspace={_samples_of(held)}."
        )
    raise InputError(str(path), got, _known(), cure)


def _samples_of(held: Mapping[str, str]) -> str:
    """Python that takes k-space from an HDF5 file: of two arrays of real numbers, its real and imaginary parts."""
    real = sorted(held, key=lambda name: re.search("im|i$", name.rsplit("/")[-1].lower()) is not None)
    if len(real) == 2 and len(set(held.values())) == 1 and "complex" not in held[real[0]]:
        return f"file['{real[0]}'][()] + 1j * file['{real[1]}'][()]), if they are its real and imaginary parts"
    return "file['NAME'][()])"


def _known() -> str:
    """The formats that are read, for people."""
    return "; ".join(reader.says for reader in (*REGISTERED, *READERS, BART))


_PICKLE = ("a pickle of Python, which can run code", "Save the array itself: numpy.save('{stem}.npy', array).")
_PICTURE = ("a picture", "Give the images as NIfTI or DICOM, or as an array of NumPy.")
_FOREIGN: dict[bytes, tuple[str, str]] = {
    b"MATLAB 5.0 MAT-file": (
        "a MATLAB file of version 5 to 7",
        "Save it as -v7.3 in MATLAB; or, where it has kspace as [kx, ky, coil], in Python: import numpy, scipy.io; "
        "numpy.savez('{stem}.npz', kspace=scipy.io.loadmat('{name}')['kspace'].T).",
    ),
    b"yardl": (
        "a stream of MRD, version 2",
        "Convert it: mrd_to_ismrmrd < {name} | ismrmrd_stream_to_hdf5 --use-stdin -o {stem}.h5.",
    ),
    b"NRRD": ("an image in NRRD", "Write it as NIfTI, with 3D Slicer or in Python with SimpleITK."),
    b"mrtrix image": ("an image of MRtrix", "Write it as NIfTI: mrconvert {name} {stem}.nii.gz."),
    b"CDF\1": ("an image in MINC, version 1", "Write it as NIfTI: mnc2nii {name} {stem}.nii."),
    b"##TITLE": (
        "parameters of Bruker ParaVision",
        "Convert the scan to ISMRMRD with bruker_to_ismrmrd, or write its images as NIfTI, with brkraw.",
    ),
    b"# === DATA DESCRIPTION FILE": (
        "a description of data of a Philips scanner",
        "Convert raw data (.list, .raw) to ISMRMRD with philips_to_ismrmrd; write images (PAR/REC) as NIfTI: "
        "parrec2nii {name}.",
    ),
    **dict.fromkeys((b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"), _PICKLE),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*"), _PICTURE),
}
"""What other files begin with, what they are, and the known way on from there."""


def _is_stream(head: bytes) -> bool:
    """Whether a file begins as a stream of ISMRMRD messages does: with a name, or a configuration or header in XML."""
    kind = int.from_bytes(head[:2], "little")
    return (kind in (2, 3) and head[6:].lstrip().startswith(b"<")) or (kind == 1 and head[2:].endswith(bytes(64)))


def _refuse_other_files(path: Path) -> None:
    """Refuse what is known to be something else, with the way on, and sequences and JSON, which belong to scans."""
    if any(reader.recognises(path) for reader in REGISTERED):
        return
    with path.open("rb") as stream:
        head = stream.read(512)
    got, cure = next((known for mark, known in _FOREIGN.items() if head.startswith(mark)), ("", ""))
    if _is_stream(head):
        got, cure = "a stream of ISMRMRD messages", "Convert it: ismrmrd_stream_to_hdf5 -i {name} -o {stem}.h5."
    if head.startswith(b"# Pulse"):
        got = "a Pulseq sequence, without samples"
        cure = "Give the raw data that the scanner measured with it; mri-design info tells what the sequence says."
    if head.lstrip().startswith(b"{"):
        got, cure = "JSON", "mri-design adapt takes readouts as JSON; a header file belongs to the array beside it."
    if got:
        cure = cure.replace("{name}", path.name).replace("{stem}", path.stem)
        raise InputError(str(path), got, _known(), cure)
