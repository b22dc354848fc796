"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON header beside the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.along_trajectory import TRAJECTORY_MEMBERS
from mri_design.scan.io.layouts import looks_signed
from mri_design.scan.io.npy import (
    MAGIC,
    NpySlices,
    NpzArchive,
    declared_shape,
    is_npy,
    opened_npz,
    read_npy,
    read_npz_members,
)
from mri_design.scan.io.safe import check_file
from mri_design.scan.io.source import Content, ReadOptions, Source, starting
from mri_design.scan.io.stored_arrays import (
    COMPANIONS,
    SERIES,
    ArrayHeader,
    StackSource,
    StoredSource,
    axes_of_slices,
    holds_images,
    images_of,
    read_header_file,
    scan_of_arrays,
    series_of,
)

Arrays = dict[str, NDArray[Any]]
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_NOISE = ("noise_variance", "noise_covariance")
_WHOLE = ("measured", *_NOISE)
"""Of `COMPANIONS`, those without slices."""


def is_numpy(path: Path) -> bool:
    """Whether a file begins as an array or an archive of NumPy does."""
    return starting(MAGIC, *_ZIP)(path)


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """K-space or images of a .npy or .npz file, while it is open.

    Without a header file a complex array is k-space with axes (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx), and
    a real one is a stack of images (row, column) or (slice, row, column). A header file beside it (same stem,
    ``.json``) may say otherwise: ``dims`` (rep, slice, coil, and k0 k1 or ky kx in any order; k1 is the phase
    encode; a volume has coil and k0 k1 k2 or kx ky kz, one of images x y z), ``phase_encode_axis``,
    ``zero_filled_k1_columns``, ``noise_variance`` (per real component), ``noise_covariance``
    (rows of pairs, real and imaginary), ``kind`` ("image domain ..."), ``dtype``
    ("... pairs (real, imag)": a last axis of two), ``shape`` (of the array, or a table with those of members), ``key``
    and, along a trajectory, ``matrix``, ``trajectory_unit`` and ``trajectory_axes``. Only the first repetition is read;
    the header of the result says how many there were.

    An archive holds ``kspace`` or ``image``, or the member that the header file's ``key`` names; beside k-space also
    ``measured`` (ky), ``coil_maps`` (as k-space), ``reference`` (as k-space without the coil axis), and
    ``noise_variance`` or ``noise_covariance`` (coil, coil). Lines without any sample are known to be not measured. A
    volume's readout (k0, or x of images) is transformed to positions, which take the place of slices: every one is a
    plane (ky, kz) of its own. An archive with a ``trajectory`` holds samples along it, perhaps with the weights
    ``density``, see `along_trajectory`.

    Slices of k-space, and images, can be read one by one where they lie one after the other in the file.

    Raises
    ------
    InputError
        On anything else than such a file, naming the field. Pickles are never loaded.
    """
    companions = [name for name in COMPANIONS if options.noise or name not in _NOISE]
    file = _Arrays(path, read_header_file(path, options), options.limits, companions)
    if is_npy(path):
        with path.open("rb") as stream:
            slices = NpySlices.of(stream, check_file(path), str(path), options.limits)
            alone = slices is not None and file.header.shape in (None, slices.shape)
            yield (file.by_slices({"array": slices}, {}) if slices is not None and alone else None) or file
        return
    with opened_npz(path, options.limits) as archive, ExitStack() as members:
        yield _of_archive(file, archive, members) or file


@dataclass(frozen=True)
class _Arrays(StoredSource):
    """An array, or an archive of them.

    Parameters
    ----------
    companions : sequence of str
        Of `COMPANIONS`, those that are read.
    """

    companions: Sequence[str] = COMPANIONS

    @property
    def series(self) -> Mapping[str, tuple[int, ...]]:
        """See `Source`."""
        if not set(self.header.dims or ()) & set(SERIES):
            return {}
        if is_npy(self.path):
            return series_of(declared_shape(self.path, self.limits), self.header)
        return series_of(_load(self)[1][self.header.key or "kspace"].shape, self.header)

    def load(self) -> Content:
        """Read all arrays."""
        key, arrays, left = _load(self)
        return scan_of_arrays(self.path, key, arrays, self._without(left), self.limits)

    def by_slices(self, stacks: Mapping[str, NpySlices], whole: Arrays, left: Collection[str] = ()) -> Source | None:
        """The first of some stacks, with the others beside it; None where they are no stacks of as many slices."""
        key, data = next(iter(stacks.items()))
        count, header = data.shape[0] if len(data.shape) > 2 else 0, self._without(left)
        if not 1 < count <= self.limits.max_slices:
            return None
        if holds_images(key, data.dtype, header):
            if key != "image" and looks_signed(data.part(count // 2)):
                return None
            parts = (data.part(number) for number in range(count))
            return images_of(self, key, parts, data.shape, header)
        axes = axes_of_slices(data.shape, data.dtype, header, data.part)
        if axes is None or any(stack.shape[0] != count for stack in stacks.values()):
            return None

        def part(number: int) -> Arrays:
            return {name: stack.part(number) for name, stack in stacks.items()} | whole

        return StackSource(self, part, count, axes, header)

    def _without(self, left: Collection[str]) -> ArrayHeader:
        """The header, with the names of members that nothing here reads."""
        if not left:
            return self.header
        return replace(self.header, text={**self.header.text, "members_not_read": ", ".join(left)})


def _of_archive(file: _Arrays, archive: NpzArchive, members: ExitStack) -> Source | None:
    """The slices of an archive's data, with what stands beside it; None where it has to be read as a whole."""
    header = file.header
    keys = ("kspace", "image") if header.key is None else (header.key,)
    key = next((key for key in keys if key in archive.names), None)
    if key is None or "trajectory" in archive.names:
        return None
    names = [key, *(name for name in file.companions if name in archive.names)]
    stacks = {name: members.enter_context(archive.slices(name)) for name in names if name not in _WHOLE}
    held = {name: slices for name, slices in stacks.items() if slices is not None}
    declared = {**header.member_shapes, **({} if header.shape is None else {key: header.shape})}
    if len(held) < len(stacks) or any(held[name].shape != declared.get(name, held[name].shape) for name in held):
        return None
    whole = {name: archive.array(name) for name in names if name in _WHOLE}
    return file.by_slices(held, whole, [name for name in archive.names if name not in {*keys, *COMPANIONS}])


def _load(file: _Arrays) -> tuple[str, Arrays, list[str]]:
    """The name of the data, the arrays by name, and names of members that nothing here reads."""
    if is_npy(file.path):
        return "array", {"array": read_npy(file.path, file.limits)}, []
    keys = ("kspace", "image") if file.header.key is None else (file.header.key,)
    arrays, present = read_npz_members(file.path, (*keys, *file.companions, *TRAJECTORY_MEMBERS), file.limits)
    key = next((key for key in keys if key in arrays), None)
    if key is None:
        raise InputError(
            field="members",
            got=", ".join(present[:8]) or "no arrays",
            wanted=f"an array named {' or '.join(keys)}",
            cure="Save it under that name, or name it as key in the header file (JSON) of the same stem.",
        )
    unread = set() if "trajectory" in arrays else set(TRAJECTORY_MEMBERS)
    left = (name for name in present if name not in arrays or name in unread)
    return key, arrays, [name for name in left if name not in COMPANIONS]
