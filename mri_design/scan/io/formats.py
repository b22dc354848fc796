"""One `read` for every format, which the file's content shows; a BART pair is recognised by its names.

Noise samples, coil maps, sampling masks and reference images of a scan have files of their own, which are read here
too.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from itertools import permutations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option, require_instance
from mri_design.operators.conventions import Chosen, chosen_flags
from mri_design.registry import BART, INSTALLED, READERS, Reader, Shipped, installed_parts
from mri_design.scan.data import ImageStack, Scan
from mri_design.scan.io import source as sources
from mri_design.scan.io.bart import AXES, is_bart, pair_of, read_pair
from mri_design.scan.io.numpy_files import is_numpy, read_stored
from mri_design.scan.io.raw_data import Noise, noise_of_samples
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named, is_hdf5
from mri_design.scan.provenance import MapsOrigin
from mri_design.scan.sampling import to_complex64, to_float32
from mri_design.scan.trajectories import maps_from_bart, planes_from_bart

ISOLATED = Shipped("scan.io.isolated", "IsolatedSource")
"""Source of a file that a child process reads, because damaged files may crash or stall the library that parses it."""


def read(path: str | os.PathLike[str], *, isolated: bool = True, **options: Any) -> sources.Content:
    """Read a scan or a stack of images in any supported format, or one of `register_reader`.

    Parameters
    ----------
    path : path
        The file: its first bytes show the format, and of HDF5 its contents. Of a BART pair either file.
    isolated : bool
        Read HDF5, twix, DICOM and NIfTI in a child process (half a second more), because damaged files can crash or
        stall the libraries that parse them. Turn it off for trusted files only.
    **options
        As of `ReadOptions`: ``limits``; ``duplicates`` ("refuse", "average", "first" or "last") and ``counters``, by
        name, of raw data; ``matrix``, the pixels (ky, kx) of samples along a trajectory in a file that states none;
        ``dims``, the names of the axes of an array; ``centre``, line and sample of the centre of k-space in the file;
        and whether to read the ``noise`` that a file of arrays gives.

    Raises
    ------
    MissingPackageError
        If the package that parses NIfTI, DICOM or Siemens raw data is not installed.
    InputError
        If the format is unknown or the file does not pass its reader's checks.
    """
    with opened(path, sources.ReadOptions(**options), isolated=isolated) as source:
        return source.load()


def summary(path: str | os.PathLike[str], *, isolated: bool = True, **options: Any) -> sources.Summary:
    """Summarise a file without reading all of it: the sampling of every slice, and the samples of one.

    Parameters
    ----------
    path, isolated, **options
        As for `read`.

    Raises
    ------
    MissingPackageError
        As `read`.
    InputError
        As `read`, except for samples that were not read.
    """
    with opened(path, sources.ReadOptions(**options), isolated=isolated) as source:
        return source.summary()


def read_noise(path: Path, channels: int, limits: ReadLimits = DEFAULT_LIMITS) -> Noise:
    """Noise covariance of the coils, from a file of samples that were measured without an excitation.

    Parameters
    ----------
    path : path
        An array (coil, sample) in a .npy or .npz file of one member; a BART pair, with the coils along the fourth axis;
        or raw data with noise readouts.
    channels : int
        Coils of the scan.
    limits : ReadLimits
        Bounds that are checked before anything is allocated.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no noise of that many coils.
    """
    if BART.recognises(path):
        stored = np.moveaxis(read_pair(path, limits), 3, 0)
    elif not (check_file(path) and is_numpy(path)):
        with opened(path, sources.ReadOptions(limits=limits, only_noise=True)) as source, errors_named(path):
            found: Any = source.load()
            if not isinstance(found, tuple):
                wanted = "an array of samples (coil, sample) in .npy, .npz or .cfl, or noise readouts of ISMRMRD"
                raise InputError("noise samples", "none", wanted, "In Python: numpy.save('noise.npy', samples).")
        if len(found[0]) != channels:
            got, wanted = f"noise of {len(found[0])} channels", f"of the {channels} coils of the scan"
            raise InputError(str(path), got, wanted, "Give the scan's own noise.")
        return found
    else:
        stored = read_stored(path, limits, "one array (coil, sample)", field=str(path))
    return noise_of_samples(str(path), stored, channels)


@contextmanager
def opened(
    path: str | os.PathLike[str], options: sources.ReadOptions, *, isolated: bool = True
) -> Iterator[sources.Source]:
    """An open file as a `Source`: only its header has been read.

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
    if isolated and reader.library:
        yield ISOLATED(path, options, reader.library)
        return
    if options.dims is not None and not reader.arrays:
        got, cure = f"{','.join(options.dims)} for {path.name}", f"Leave out {option('dims')}, also in the recipe."
        raise InputError("dims", got, "an array: NumPy, BART, MATLAB or other HDF5", cure)
    if not reader.series:
        sources.require_counters(path, options.counters)
    if reader is BART:
        path, _ = pair_of(path)
    with errors_named(path), sources.opened_by(reader, path, options) as source:
        centre = source.centre if options.centre is None else options.centre
        yield sources.CentredSource(source, centre=centre)


def _reader_of(path: Path, isolated: bool) -> Reader:
    """The reader of a file, by its first bytes or its name; of HDF5 in a child process any of its readers."""
    if not path.name:  # the current folder, or the root
        check_file(path)
    if _is_pair_of_nifti(path):
        cure = f"Make one of the two, for example by nibabel's `nib-convert {path.stem}.img {path.stem}.nii`."
        raise InputError(str(path), "a NIfTI or Analyze image in two files", "one file, .nii or .nii.gz", cure)
    if BART.recognises(path):
        return BART
    check_file(path)
    with path.open("rb") as stream:
        head = stream.read(512)
    registered = next((reader for reader in sources.REGISTERED if reader.recognises(path)), None)
    if registered is not None:
        return registered
    text, others = head.decode("latin-1"), resources.files("mri_design.scan.io").joinpath("other_files.toml")
    known = tomllib.loads(others.read_text("utf-8"))["file"]
    other = next((one for one in known if re.match(one["begins"], text, re.ASCII | re.DOTALL)), None)
    for reader in READERS if other is None else ():
        in_hdf5 = isolated and reader.library == "h5py" and is_hdf5(path)  # the child finds out which of its formats
        if in_hdf5 or reader.recognises(path):
            return reader
    installed_parts()
    if found := next((reader for reader in INSTALLED if reader.recognises(path)), None):
        return found
    got, cure = f"a file starting with {head[:8]!r}", ""
    if other is not None:
        got, cure = other["is"], other["cure"]
    elif path.suffix == ".7" or path.name.startswith("ScanArchive"):  # as scanners of GE name them
        got = f"{got}, named as raw data of GE are"
        cure = "Convert it to ISMRMRD with GE's Orchestra or ge_to_ismrmrd (github.com/ismrmrd/ge_to_ismrmrd)."
    elif is_hdf5(path):
        got, cure = Shipped("scan.io.hdf5", "without_kspace")(path)
    cure = cure.replace("{name}", path.name).replace("{stem}", path.stem)
    raise InputError(str(path), got, "; ".join(reader.says for reader in (*sources.REGISTERED, *READERS, BART)), cure)


def _is_pair_of_nifti(path: Path) -> bool:
    """Whether a path names an older NIfTI image in two files NAME.hdr and NAME.img; BART has a .hdr too."""
    header, image = path.with_suffix(".hdr"), path.with_suffix(".img")
    if path not in (header, image) or not (image.is_file() and header.is_file()):
        return False
    with header.open("rb") as stream:
        first = stream.read(4)
    return any(int.from_bytes(first, order) in (348, 540) for order in ("little", "big"))


_MAPS = ("coil_maps", "maps", "sensitivities")
_IMAGES = ("reference", "image", "recon")
_UNIT = 1e-3
AnyScan = TypeVar("AnyScan", bound=Scan)


def with_maps(data: AnyScan, given: Path | NDArray[Any], *, limits: ReadLimits = DEFAULT_LIMITS) -> AnyScan:
    """Replace the coil maps of a scan by those of a file, or of an array.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Several coils; its own maps are replaced.
    given : Path or array
        A ``.npy`` array, or a ``.npz`` archive with a member ``coil_maps``, ``maps`` or ``sensitivities``: (coil, row,
        column), the same for all slices, or (slice, coil, row, column). Rows and columns lie as in the scan's own
        file. Or a BART pair: (x, y, 1, coil), with the phase encode along y and slices along the 14th axis, or for
        planes (x, ky, kz, coil); of several sets of maps the first. An array has the axes of the scan in memory,
        ((slice,) coil, ky, kx). Maps are scaled to a root-sum-of-squares of 1 at every pixel where they are not 0.
    limits : ReadLimits
        Bounds for the file.

    Raises
    ------
    InputError
        For a damaged file, other sizes than the scan's, values that are not finite, or maps without a signal.
    """
    field, turned, axes, origin = "coil_maps", False, "", MapsOrigin(source="given", file="an array")
    if not isinstance(given, Path):
        stored = given
    elif is_bart(given):
        pair = read_pair(given, limits)
        count, stored = pair.shape[AXES.index("maps")], _maps_of_bart(pair)
        field, origin = given.name, replace(origin, file=given.name, sets=count)
        axes = ", rows and columns of the scan's file"
    else:
        field, origin = given.name, replace(origin, file=given.name)
        stored = read_stored(given, limits, "coil maps as .npy, .npz, or BART's .cfl with its .hdr", _MAPS)
        turned = data.orientation == "ky-columns"
        if turned and stored.ndim >= 2:
            stored = stored.swapaxes(-1, -2)
        axes = f", {'columns and rows' if turned else 'rows and columns'} of the scan's file"
    maps = to_complex64(field, stored.astype(np.complex128) if stored.dtype.kind == "f" else stored)
    wanted = (data.n_slices, data.n_coils, *data.readouts.grid)
    if maps.shape not in (wanted, wanted[1:]):
        own = maps.swapaxes(-1, -2) if turned and maps.ndim > 1 else maps
        cure = _reordering(own, (wanted[1], *(wanted[:1:-1] if turned else wanted[2:])))
        got, shapes = f"coil maps of shape {maps.shape}", f"{wanted[1:]} or {wanted}: (slice,) coil, ky, kx{axes}"
        raise InputError(field, got, shapes, cure)
    maps = np.broadcast_to(maps, wanted)
    strength = np.linalg.norm(maps.astype(np.complex128), axis=1, keepdims=True)
    if not strength.any():
        raise InputError(field, "zeros only", "coil maps")
    held = strength[strength > 0]
    if not np.allclose(held, 1, atol=_UNIT):
        origin = replace(origin, scaled=(float(held.min()), float(held.max())))
    unit = (maps / np.where(strength > 0, strength, 1)).astype(np.complex64)
    return replace(data, coil_maps=unit).known(maps=origin)


def _maps_of_bart(pair: NDArray[np.complex64]) -> NDArray[Any]:
    """The first set of maps, (coil, ky, kx) or (slice, coil, ky, kx); for planes (x, coil, ky, kz)."""
    pair = pair.take([0], axis=AXES.index("maps"))
    if pair.shape[AXES.index("phs2")] > 1:
        return planes_from_bart(pair)
    slices = np.moveaxis(pair, AXES.index("slice"), 0)
    return np.stack([maps_from_bart(one) for one in slices]) if len(slices) > 1 else maps_from_bart(pair)


def _reordering(maps: NDArray[Any], wanted: tuple[int, ...]) -> str:
    """The cure for stored maps that are not (coil, row, column) of the scan's file."""
    if maps.ndim == 4 and maps.shape[1:] == wanted:
        return "Of several sets give the first one: in Python maps[0]."
    for order in permutations(range(3)) if maps.ndim == 3 else ():
        if tuple(maps.shape[axis] for axis in order) == wanted:
            return f"Their axes are in another order: save numpy.transpose(maps, {order})."
    return "Compute the maps on the scan's own matrix."


def read_mask(
    path: Path,
    measured: NDArray[np.bool_],
    samples: NDArray[np.bool_] | None = None,
    *,
    plane: bool = False,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> NDArray[np.bool_]:
    """A sampling mask of lines, bool (ky,), or of samples, bool (ky, kx): true where measured.

    Parameters
    ----------
    path : Path
        A ``.npy`` file of flags, zeros and ones, or numbers of lines, or (ky, kz) of the samples of a plane; a BART
        pair of zeros and ones, as ``bart pattern`` and ``mri-design export`` write it: (kx, ky), or
        of a plane (1, ky, kz).
    measured : bool array, shape (ky,)
        Lines (or readouts of a trajectory) that hold data; the mask may not select others.
    samples : bool array, shape (ky, kx), optional
        Samples that hold data. Without them masks of samples are refused.
    plane : bool
        Whether the samples are those of a plane (ky, kz), not of readouts along the second axis.
    limits : ReadLimits
        Bounds for the file.

    Raises
    ------
    InputError
        For a damaged file, other values or another shape, no line or sample, or one without data.
    """
    if is_bart(path):
        held: NDArray[Any] = _mask_of_bart(path, limits)
    else:
        held = read_stored(path, limits, "a mask as .npy, or BART's .cfl with its .hdr")
    if samples is not None and held.ndim == 2 and held.shape[1] == 2 and held.dtype.kind in "iu":
        held = _samples_at(path.name, held, samples.shape)
    unit = "readout" if samples is None else "line"
    return mask_of_measured(held, measured, samples, field=path.name, unit=unit, plane=plane)


def mask_of_measured(
    chosen: Chosen,
    measured: NDArray[np.bool_],
    samples: NDArray[np.bool_] | None = None,
    *,
    field: str = "lines",
    unit: str = "line",
    plane: bool = False,
) -> NDArray[np.bool_]:
    """The sampling mask that an array holds as flags, zeros and ones, or numbers of lines.

    A mask with exchanged axes is transposed if the scan shows it, by its sides or by its samples. A mask of whole
    readouts becomes one of lines, except in a ``plane``.

    Raises
    ------
    InputError
        As `read_mask`, and if the readouts seem to lie along the other of two equal axes.
    """
    shapes = [] if samples is None else [samples.shape, samples.shape[::-1]]
    try:
        flags = chosen_flags(chosen, measured.shape, *shapes, field=field, unit=unit)
    except InputError as error:
        if samples is None or samples.shape[0] == samples.shape[1] or np.size(chosen) != samples.shape[1]:
            raise
        cure = f"It has the length of the readouts: is the phase encoding along the other axis? {error.cure}"
        raise error.about(error.field, cure.strip()) from error
    if flags.ndim == 2 and samples is not None:
        flags = _upright(flags, samples, field, plane)
    in_plane = flags.ndim == 2
    what, there = ("sample", samples) if samples is not None and in_plane else (unit, measured)
    missing = np.flatnonzero(flags & ~there)
    if missing.size:
        got = f"{missing.size} samples that hold" if in_plane else f"{unit}s {missing.tolist()}, which hold"
        raise InputError(field, f"{got} no data", f"{what}s that were measured", "Leave them out of the mask.")
    if not flags.any():
        raise InputError(field, f"no {what}", "at least one")
    return flags


def _upright(flags: NDArray[np.bool_], samples: NDArray[np.bool_], field: str, plane: bool) -> NDArray[np.bool_]:
    """A mask of samples with the axes of the scan; (ky,) for whole readouts that are not in a plane."""
    turned = flags.shape != samples.shape
    if samples.shape[0] == samples.shape[1]:
        turned = bool((flags & ~samples).any()) and not (flags.T & ~samples).any()
    flags = flags.T if turned else flags
    if plane or flags.all():
        return flags
    if (flags == flags[:, :1]).all():
        return flags[:, 0]
    columns = np.flatnonzero(flags[0])
    gaps = columns.size > 1 and columns[-1] - columns[0] >= columns.size
    if (flags == flags[:1]).all() and gaps and not turned:
        got = f"the same {columns.size} of {len(flags[0])} samples of every readout, with gaps between them"
        cure = f"Exchange its axes (numpy: mask.T); of a plane (ky, kz) say so: {option('design.encoding', 'plane')}."
        raise InputError(field, got, "whole lines, (ky,) or (ky, kx)", cure)
    return flags


def _samples_at(field: str, at: NDArray[np.integer[Any]], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Flags (ky, kz) of samples by their rows and columns."""
    if (at < 0).any() or (at >= shape).any():
        raise InputError(field, f"samples up to {at.max(axis=0).tolist()}", f"rows and columns of {shape}")
    flags = np.zeros(shape, dtype=bool)
    flags[tuple(at.T)] = True
    return flags


def _mask_of_bart(path: Path, limits: ReadLimits) -> NDArray[np.bool_]:
    """A pattern as flags: (ky,) for whole lines, otherwise (ky, kx), or (ky, kz) in a plane."""
    pair = read_pair(path, limits)
    read, rows, partitions = pair.shape[:3]
    others = [f"{n} along {name}" for name, n in zip(AXES[3:], pair.shape[3:], strict=True) if n > 1]
    if others:
        raise InputError(path.name, ", ".join(others), "one mask for all coils and slices: (kx, ky, kz)")
    if not np.isin(pair, (0, 1)).all():
        raise InputError(path.name, "other samples than zeros and ones", "a mask", "`bart pattern` makes one.")
    flags = pair.reshape(read, rows, partitions) != 0
    whole_readouts = bool((flags == flags[:1]).all())
    if partitions > 1 and not whole_readouts:
        raise InputError(path.name, "readouts that are measured in part", "a mask of whole readouts")
    if partitions > 1:
        return flags[0]
    return flags[0, :, 0] if whole_readouts else flags[:, :, 0].T


def read_images(path: Path, *, limits: ReadLimits = DEFAULT_LIMITS) -> ImageStack:
    """Reference images, real or complex.

    Parameters
    ----------
    path : Path
        A ``.npy`` array, or a ``.npz`` archive with a member ``reference``, ``image`` or ``recon``: (ky, kx) or (slice,
        ky, kx), as the package writes its own images; a BART pair (x, y), with the phase encode along y and
        slices along the 14th axis; or images in any other format, such as NIfTI and DICOM, with rows along ky.
    limits : ReadLimits
        Bounds for the file.

    Raises
    ------
    InputError
        For a damaged file, one without images, pixels that are not finite, or zeros only.
    """
    if is_bart(path):
        pair = _maps_of_bart(read_pair(path, limits))
        if pair.shape[-3] != 1:
            raise InputError(path.name, f"images of {pair.shape[-3]} coils", "one image, its coils combined")
        images = pair[..., 0, :, :]
    elif check_file(path) and is_numpy(path):
        images = read_stored(path, limits, "images", _IMAGES)
    else:
        held = read(path, limits=limits)
        if not isinstance(held, ImageStack):
            raise InputError(path.name, "samples of k-space", "an image", "Reconstruct it, and give its recon.npy.")
        if series := held.provenance.series:
            got = "; ".join(f"{len(numbers)} {name}" for name, (_, numbers) in series.items())
            raise InputError(path.name, got, "one volume", "Write the one to compare with into a file of its own.")
        return held
    images = images.reshape(1, *images.shape) if images.ndim == 2 else images
    images = images.astype(np.uint8) if images.dtype.kind == "b" else images
    convert = to_complex64 if images.dtype.kind == "c" else to_float32
    with errors_named(path):
        return ImageStack(convert("pixels", images), path.stem)
