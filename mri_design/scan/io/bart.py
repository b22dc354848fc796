"""BART's pairs of files: NAME.hdr, the lengths of up to 16 axes as text, and NAME.cfl, complex64 in Fortran order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.kinds import KINDS
from mri_design.scan.io import stored_arrays
from mri_design.scan.io.layouts import gathering, looks_like_coils
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_declared_shape, check_file, read_small
from mri_design.scan.io.source import Content, Loaded, ReadOptions, Source, counter_option
from mri_design.scan.trajectories import from_bart

AXES: tuple[str, ...] = (
    *("read", "phs1", "phs2", "coil", "maps", "te", "coeff", "coeff2"),
    *("iter", "cshift", "time", "time2", "level", "slice", "avg", "batch"),
)
"""BART's names of its axes in lower case."""

_DATA = ("read", "phs1", "phs2", "coil", "slice")
_SLICES, _IMAGES = ("slice", "coil", "k0", "k1"), ("slice", "row", "col")
"""Names of the axes of stacks that are read slice by slice."""
_LONGEST_HEADER = 2**20
_GATHERED = 4.0
"""Least energy of a plane's strongest column over the median one's; shots have nearly equal energies."""
_EVEN = 2.0
"""Energy of the strongest partition over the median one's, below which partitions are taken for slices."""
_CURES = {
    "avg": "Average first: `bart avg -w $(bart bitmask 14) NAME averaged`.",
    "maps": "Take one set: `bart slice 4 0 NAME first`, or make one alone: `bart ecalib -m1`.",
}


_SERIES = {"te": ("echo", "contrast"), "time": ("frame", "repetition")}
"""Axes of which one entry is read if their names are given: our name, and the counter that chooses it."""


def pair_of(path: Path) -> tuple[Path, Path]:
    """Header and samples of a pair by the name NAME, NAME.hdr or NAME.cfl."""
    stem = path.with_suffix("") if path.suffix in (".hdr", ".cfl") else path
    return stem.with_name(stem.name + ".hdr"), stem.with_name(stem.name + ".cfl")


def is_bart(path: Path) -> bool:
    """Whether a path names a pair: it ends in .cfl or .hdr, or only a header of that name exists."""
    return path.suffix in (".hdr", ".cfl") or (not path.exists() and pair_of(path)[0].exists())


recognises = is_bart
"""By names, because a user may give either file of a pair."""


def read_pair(path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> NDArray[np.complex64]:
    """The array of a pair, with BART's 16 axes.

    Parameters
    ----------
    path : Path
        NAME, NAME.hdr or NAME.cfl.
    limits : ReadLimits
        Bounds on the header's lengths, which are checked before the samples are read.

    Returns
    -------
    complex64 array of 16 axes

    Raises
    ------
    InputError
        If half of the pair is missing, the header has no valid lengths, or there are more or fewer samples.
    """
    return _read(*_checked(path, limits))


def _checked(path: Path, limits: ReadLimits) -> tuple[Path, tuple[int, ...]]:
    """The file of a pair's samples and the lengths of its axes, checked as for `read_pair`."""
    header, samples = pair_of(path)
    for half, other in ((header, samples), (samples, header)):
        if not half.exists() and other.exists():
            raise InputError(str(half), "no such file", "both files of the pair, .hdr and .cfl", "Copy both.")
    lengths, held = _lengths(header), check_file(samples)
    needed = check_declared_shape(str(header), lengths, 8, limits)
    if held != needed:
        wanted = f"{needed} bytes, 8 for each sample of the header's {'x'.join(map(str, lengths))}"
        raise InputError(str(samples), f"{held} bytes", wanted, "Copy both files again.")
    return samples, lengths


def _read(samples: Path, lengths: tuple[int, ...], first: int = 0) -> NDArray[np.complex64]:
    """Samples of a file from the ``first`` one on; not mapped, because a mapped file may be cut while it is in use."""
    count = math.prod(lengths)
    stored = np.fromfile(samples, "<c8", count, offset=8 * first)
    if len(stored) != count:
        raise InputError(str(samples), f"{len(stored)} samples", f"{count}", "Copy both files again.")
    return stored.reshape(lengths, order="F")


def opened(path: Path, options: ReadOptions) -> Source:
    """K-space or, with a header file's ``kind`` ("image domain ..."), images in BART's format.

    Axes are BART's: readout, phase encode, second phase encode, coil and, 14th, slice; all others must have length 1.
    A volume becomes one plane (ky, kz) for each readout position; (1, ky, kz, coil) is one such plane. Samples along a
    trajectory have a readout of length 1 too, (1, sample, shot, coil), and their trajectory (3, sample, shot) in the
    pair NAME_traj of the same folder, or the one that the header file names as ``trajectory``; it may also give the
    ``matrix`` of the image. The header file NAME.json may also say ``noise_variance``, ``zero_filled_k1_columns``, and,
    as ``"encoding": "plane"``, that samples without readouts are those of a plane. Slices can be read one by one.

    Raises
    ------
    InputError
        For any other pair, naming the file and the field; also for zeros and ones alone, which are a mask, as
        ``mri-design export`` writes it.
    """
    header = stored_arrays.read_header_file(pair_of(path)[1], options)
    dims = None if options.dims is None else tuple(options.dims)
    header = replace(header, dims=dims, text={**header.text, "format": "BART cfl"}, shapes={}, float_pairs=False)
    (path, lengths), images = _checked(path, options.limits), header.image_domain
    several = {name for name, length in zip(AXES, lengths, strict=True) if length > 1}
    in_slices = {"slice"} <= several <= {"read", "phs1", "slice", *(() if images else ("coil",))}
    if not in_slices or lengths[0] == 1 or not header.unnamed:
        series = {} if dims is None else header.series(_kept(lengths, dims))
        return Loaded(_loaded(path, lengths, header, options.limits), series=series, centre=header.centre)
    key, header = ("image" if images else "kspace"), replace(header, dims=_IMAGES if images else _SLICES)
    (read, phase, _, coils), count = lengths[:4], lengths[AXES.index("slice")]
    shape = (count, *(() if images else (coils,)), read, phase)

    def part(number: int | None) -> NDArray[np.complex64]:
        first, some = (0, count) if number is None else (number * read * phase * coils, 1)
        stored = _read(path, (read, phase, coils, some), first)
        if not images:
            _refuse_mask(stored)
        return stored.transpose(3, 2, 0, 1).reshape(-1, *shape[1:])

    stack = stored_arrays.StoredArray(shape, np.dtype(np.complex64), part, sliced=True)
    return stored_arrays.source_of(path, key, {key: stack}, header, options.limits)


def _loaded(path: Path, lengths: tuple[int, ...], header: stored_arrays.ArrayHeader, limits: ReadLimits) -> Content:
    """The scan or images of a pair that is no stack of slices."""
    stored = _read(path, lengths)
    if header.dims is not None:  # they replace BART's own names
        array = stored.reshape(_kept(stored.shape, header.dims))
        return stored_arrays.scan_of_arrays(path, "kspace", {"kspace": array}, header, limits)
    _refuse_further_axes(stored)
    array = stored.reshape([stored.shape[AXES.index(name)] for name in _DATA])
    if not header.image_domain:
        _refuse_mask(array)
    if array.shape[0] == 1 and not header.image_domain and not _is_plane(path, array, header):
        return _along_trajectory(path, array, header, limits)
    dims = ("x", "y", "z", "coil", "slice") if header.image_domain else ("k0", "k1", "k2", "coil", "slice")
    kept = [axis for axis in range(5) if array.shape[axis] > 1 or axis < 2]
    named, array = tuple(dims[axis] for axis in kept), array.reshape([array.shape[axis] for axis in kept])
    if header.image_domain:
        if "coil" in named:
            raise InputError("axis 3 (coil)", "images of several coils", "images that are combined over coils")
        header = replace(header, dims=("row", "col") if named == ("x", "y") else named)
        return stored_arrays.scan_of_arrays(path, "image", {"image": array}, header, limits)
    if named == ("k0", "k1", "k2"):
        _refuse_coils(stored, 2)
    if "k2" in named and header.phase_encode_axis is None:
        _refuse_slices(array, named)
    return stored_arrays.scan_of_arrays(path, "kspace", {"kspace": array}, replace(header, dims=named), limits)


def _kept(shape: tuple[int, ...], dims: tuple[str, ...]) -> tuple[int, ...]:
    """Lengths of the named axes: those with several entries, or the first ones."""
    several = [axis for axis, side in enumerate(shape) if side > 1]
    if len(several) == len(dims):
        return tuple(shape[axis] for axis in several)
    return shape[: max(len(dims), *(axis + 1 for axis in several), 1)]


def _lengths(header: Path) -> tuple[int, ...]:
    """The 16 lengths that a header declares."""
    lines = read_small(header, _LONGEST_HEADER).decode("ascii", "replace").splitlines()
    wanted = f"a line '# Dimensions' and under it up to {len(AXES)} whole numbers of at least 1"
    try:
        words = lines[[line.strip() for line in lines].index("# Dimensions") + 1].split()
    except (ValueError, IndexError):
        raise InputError(str(header), (lines or [""])[0][:60], wanted) from None
    # No array that could be read has a length of ten digits.
    good = 1 <= len(words) <= len(AXES) and all(word.isdecimal() and len(word) < 10 for word in words)
    lengths = tuple(int(word) for word in words) if good else (0,)
    if min(lengths) < 1:
        raise InputError(f"{header}: Dimensions", f"{len(words)} values, {' '.join(words)[:60]}", wanted)
    return (*lengths, *[1] * (len(AXES) - len(lengths)))


def _refuse_further_axes(stored: NDArray[np.complex64]) -> None:
    for number, (name, length) in enumerate(zip(AXES, stored.shape, strict=True)):
        if name not in _DATA and length > 1:
            cure = _CURES.get(name, f"Take one: `bart slice {number} 0 NAME first`.")
            if name in _SERIES:
                axis, counter = _SERIES[name]
                named = option("dims", f"kx,ky,coil,{axis}")
                chosen = counter_option(counter, "N")
                cure += f" Or name all axes that have several entries, as {named}, and choose by {chosen}."
            _refuse_coils(stored, number)
            raise InputError(f"axis {number} ({name})", f"{length} entries", "one", cure)


def _refuse_coils(stored: NDArray[np.complex64], number: int) -> None:
    """Refuse coils along another axis than the fourth, if the other axes are readouts and phase encodes."""
    several = [axis for axis, length in enumerate(stored.shape) if length > 1]
    if len(several) != 3 or number not in several:
        return
    if not looks_like_coils(stored.reshape([stored.shape[axis] for axis in several]), several.index(number)):
        return
    axes = ["kx", "ky"]
    axes.insert(several.index(number), "coil")
    got = f"{stored.shape[number]} entries, which predict each other as coils do"
    cure = f"Give their names, {option('dims', ','.join(axes))}, or `bart transpose {number} 3 NAME moved`."
    raise InputError(f"axis {number} ({AXES[number]})", got, "coils along axis 3", cure)


def _refuse_slices(array: NDArray[np.complex64], named: Sequence[str]) -> None:
    """Refuse slices along the axis of partitions: the energy of partitions would gather in the middle."""
    if any(named.count(name) and named.index(name) not in gathering(array) for name in ("k0", "k1")):
        return
    axis = named.index("k2")
    energies = np.sum(np.abs(array) ** 2, axis=tuple(other for other in range(array.ndim) if other != axis))
    if float(energies.max()) > _EVEN * float(np.median(energies)):
        return
    names = ["kx", "ky", *("coil" for name in named if name == "coil")]
    slices, volume = (option("dims", ",".join([*names[:2], name, *names[2:]])) for name in ("slice", "kz"))
    cure = f"Give the names, {slices} (of a volume {volume}), or change the file: `bart transpose 2 13 NAME moved`."
    raise InputError("axis 2 (phs2)", f"{array.shape[axis]} entries of about the same energy", "partitions", cure)


def _refuse_mask(array: NDArray[np.complex64]) -> None:
    if array.any() and np.isin(array, (0, 1)).all():
        cure = "Give the scan. `mri-design recon --mask` and `bart pics -p` take this mask."
        raise InputError("samples", "only zeros and ones: a mask", "measured samples", cure)


def _is_plane(samples: Path, array: NDArray[np.complex64], header: stored_arrays.ArrayHeader) -> bool:
    """Whether samples (1, ...) are those of a plane (ky, kz), not of shots along a trajectory.

    Both have the same axes. A plane has no trajectory; either its header file names it (``"encoding": "plane"``), or
    the energy gathers in the middle of both phase encodes, as it does not along shots.
    """
    encoding = KINDS.get(str(header.content.get("encoding")))
    if encoding is not None and encoding.square:
        return True
    if "trajectory" in header.content or _trajectory_of(samples, header) is not None or min(array.shape[1:3]) < 4:
        return False
    energies = np.sum(np.abs(array) ** 2, axis=(0, 1, 3, 4))
    held = energies[energies > 0]
    return held.size > 0 and float(held.max()) > _GATHERED * float(np.median(held))


def _trajectory_of(samples: Path, header: stored_arrays.ArrayHeader) -> Path | None:
    """The pair in the same folder with the trajectory, by its usual name or the header file's."""
    named = str(header.content.get("trajectory", f"{samples.stem}_traj"))
    plain = Path(named).name == named
    return samples.with_name(named) if plain and pair_of(samples.with_name(named))[0].exists() else None


def _along_trajectory(
    samples: Path, array: NDArray[np.complex64], header: stored_arrays.ArrayHeader, limits: ReadLimits
) -> Content:
    """Samples (1, sample, shot, coil, slice) with the trajectory in another pair."""
    beside = _trajectory_of(samples, header)
    if beside is None:
        cure = 'Name a pair as "trajectory" in the header file; of a plane (1, ky, kz) say "encoding": "plane" there.'
        wanted = f"readouts, or a trajectory in the pair {samples.stem}_traj in the same folder"
        raise InputError("axis 0 (read)", "one sample, and no trajectory", wanted, cure)
    trajectory = from_bart(read_pair(beside, limits))
    kspace = np.transpose(array[0], (3, 2, 1, 0))  # (slice, coil, shot, sample)
    arrays: dict[str, NDArray[Any]] = {"kspace": kspace, "trajectory": trajectory}
    return stored_arrays.scan_of_arrays(samples, "kspace", arrays, header, limits)
