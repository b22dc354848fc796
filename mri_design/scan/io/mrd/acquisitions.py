"""The acquisitions of a raw-data file as stored: headers, samples and coordinates, a bounded number at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.hdf5 import require_dataset
from mri_design.scan.io.safe import ReadLimits

_COUNTERS = (
    "kspace_encode_step_1",
    "kspace_encode_step_2",
    "slice",
    "contrast",
    "phase",
    "repetition",
    "set",
)
_NUMBERS = (
    *("flags", "number_of_samples", "active_channels", "encoding_space_ref"),
    *("discard_pre", "discard_post", "center_sample"),
)
_REALS = ("sample_time_us",)
_AT_ONCE = 64


def kept_samples(head: NDArray[Any] | np.void, samples: NDArray[Any]) -> NDArray[Any]:
    """Of the samples (..., sample) of an acquisition those between the ones that its header says to discard."""
    before, after = int(head["discard_pre"]), int(head["discard_post"])
    return samples[..., before : max(samples.shape[-1] - after, 0)]


@dataclass(frozen=True)
class Acquisitions(ABC):
    """The acquisitions of a file, whatever its format: headers with the names of ISMRMRD, and samples when asked for.

    Parameters
    ----------
    path : Path
        Of the file.
    field : str
        File and list, for messages.
    heads : structured array, shape (acquisition,)
        Their headers.
    """

    path: Path
    field: str
    heads: NDArray[Any]
    format: ClassVar[str]

    @property
    def provenance(self) -> dict[str, str]:
        """File and format, for the card."""
        return {"file": self.path.name, "format": self.format}

    @property
    def dimensions(self) -> NDArray[np.intp]:
        """Coordinates of a sample in each acquisition; 0 where there are none."""
        return np.zeros(len(self.heads), dtype=np.intp)

    @abstractmethod
    def numbers(self, name: str, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[Any]]]:
        """(position, real numbers) as stored, of the acquisitions at some positions, in the file's order.

        Parameters
        ----------
        name : {"data", "traj"}
            Samples, by channel, or coordinates, by sample.
        wanted : sequence of int
            Positions.
        """

    def samples(self, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.complex64]]]:
        """(position, samples (channel, sample)) of the acquisitions at some positions, in the file's order.

        Raises
        ------
        InputError
            For one with more or fewer samples than its header says, or samples that are not finite.
        """
        for at, floats in self.numbers("data", wanted):
            channels, length = int(self.heads["active_channels"][at]), int(self.heads["number_of_samples"][at])
            self._check(at, "data", floats, 2 * channels * length, f"2 x {channels} channels x {length} samples")
            joined = np.ascontiguousarray(floats, np.float32).view(np.complex64)
            yield at, joined.reshape(channels, length)

    def coordinates(self, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """(position, coordinates (sample, dimension)) in the same way.

        Raises
        ------
        InputError
            For one with more or fewer coordinates than its header says, or coordinates that are not finite.
        """
        for at, floats in self.numbers("traj", wanted):
            length, axes = (int(self.heads[name][at]) for name in ("number_of_samples", "trajectory_dimensions"))
            self._check(at, "traj", floats, length * axes, f"{length} samples x {axes} dimensions")
            yield at, np.ascontiguousarray(floats, np.float32).reshape(length, axes)

    def _check(self, at: int, name: str, floats: NDArray[Any], count: int, product: str) -> None:
        field = f"{self.field}[{at}]: {name}"
        if floats.size != count:
            raise InputError(field=field, got=f"{floats.size} numbers", wanted=f"{count}: {product}")
        bad = ~np.isfinite(floats)
        if bad.any():
            raise InputError(
                field=field,
                got=f"{int(bad.sum())} NaN or infinite values, the first at index {int(np.argmax(bad))}",
                wanted="finite samples",
                cure="Repair or remove the samples before loading.",
            )


@dataclass(frozen=True)
class StoredAcquisitions(Acquisitions):
    """The acquisitions of an ISMRMRD file.

    Parameters
    ----------
    path, field, heads
        As `Acquisitions` has them.
    dataset : h5py Dataset
        Of the open file.
    batch : int
        How many to load at once: each may be as long as the file, whatever its header says.
    """

    dataset: h5py.Dataset
    batch: int
    format: ClassVar[str] = "ISMRMRD"

    @property
    def dimensions(self) -> NDArray[np.intp]:
        """Coordinates of a sample in each acquisition; 0 where there are none."""
        known = "trajectory_dimensions" in (self.heads.dtype.names or ()) and "traj" in (self.dataset.dtype.names or ())
        axes = self.heads["trajectory_dimensions"] if known else np.zeros(len(self.heads))
        return np.asarray(axes, dtype=np.intp)

    def numbers(self, name: str, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[Any]]]:
        """(position, real numbers) as stored, see `Acquisitions.numbers`."""
        positions = sorted(wanted)
        while positions:
            count = bisect_left(positions, positions[0] + self.batch)
            part, positions = positions[:count], positions[count:]
            loaded = _rows(self.dataset, part[0], part[-1] + 1)[name]
            for at in part:
                yield at, loaded[at - part[0]]


def open_acquisitions(file: h5py.File, name: str, limits: ReadLimits) -> StoredAcquisitions:
    """The acquisitions of an open file; only their headers are loaded.

    Parameters
    ----------
    file : h5py File
        Open for reading.
    name : str
        Of the dataset.
    limits : ReadLimits
        Bounds on the number of acquisitions and on memory.

    Raises
    ------
    InputError
        For anything but a list of ISMRMRD acquisitions.
    """
    field = f"{file.filename}: {name}"
    dataset = require_dataset(file, name, limits)
    if len(dataset.shape) != 1 or not 1 <= dataset.shape[0] <= limits.max_readouts:
        raise InputError(field=field, got=f"shape {dataset.shape}", wanted=f"1 to {limits.max_readouts} acquisitions")
    dtype = dataset.dtype
    head = dtype["head"] if dtype.names and {"head", "data"} <= set(dtype.names) else None
    if head is None or not (_has(head, _NUMBERS, "iu") and _has(head, _REALS, "f")) or "idx" not in (head.names or ()):
        raise InputError(field=field, got="elements of another type", wanted="ISMRMRD acquisitions")
    if not _has(head["idx"], _COUNTERS, "iu"):
        raise InputError(field=f"{field}: head.idx", got="counters of another type", wanted="ISMRMRD counters")
    for part in {"data", "traj"} & set(dtype.names):
        if h5py.check_vlen_dtype(dtype[part]) != np.dtype("float32"):
            raise InputError(field=f"{field}: {part}", got=f"{dtype[part]}", wanted="variable-length float32")
    size = max(file.id.get_filesize(), 1)
    batch = max(1, min(_AT_ONCE, limits.max_bytes // size))
    heads = np.empty(dataset.shape, head)
    if not _heads_alone(dataset, heads, Path(file.filename), size):
        for start in range(0, len(heads), batch):
            heads[start : start + batch] = _rows(dataset, start, start + batch)["head"]
    return StoredAcquisitions(Path(file.filename), field, heads, dataset, batch)


def _heads_alone(dataset: h5py.Dataset, heads: NDArray[Any], path: Path, size: int) -> bool:
    """Fill in the headers from where the file has them; False where they do not lie there as they are.

    HDF5 tells where each chunk of acquisitions lies. A chunk that no filter has changed holds the headers themselves,
    and of the samples only where in the file these are: h5py would load them beside the headers.
    """
    element = dataset.id.get_type()
    member = element.get_member_index(b"head")
    kind, count = element.get_member_type(member).dtype, (dataset.chunks or (0,))[0]
    whole = element.get_size() * count
    chunks: list[Any] = []
    if not count or dataset.id.get_create_plist().get_nfilters() or kind != heads.dtype:
        return False
    dataset.id.chunk_iter(chunks.append)
    starts = [chunk.chunk_offset[0] for chunk in chunks]
    inside = all(chunk.size == whole and 0 <= chunk.byte_offset <= size - whole for chunk in chunks)
    if not inside or starts != list(range(0, len(heads), count)):
        return False
    offset = element.get_member_offset(member)
    stored = np.dtype({"names": ["head"], "formats": [kind], "offsets": [offset], "itemsize": element.get_size()})
    with path.open("rb", buffering=0) as stream:
        for start, chunk in zip(starts, chunks, strict=True):
            stream.seek(chunk.byte_offset)
            raw = stream.read(whole)
            if len(raw) != whole:
                return False
            heads[start : start + count] = np.frombuffer(raw, stored)["head"][: len(heads) - start]
    return True


def _rows(dataset: h5py.Dataset, start: int, stop: int) -> NDArray[Any]:
    """Some acquisitions, with all their fields.

    Asked for one field alone, h5py 3.16 loads those of varying length beside it all the same, and never frees them.
    """
    return np.asarray(dataset[start:stop])


def _has(dtype: np.dtype[Any], names: tuple[str, ...], kinds: str) -> bool:
    return set(names) <= set(dtype.names or ()) and all(dtype[name].kind in kinds for name in names)
