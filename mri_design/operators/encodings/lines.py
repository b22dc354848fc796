"""Phase-encode lines along one direction: a candidate is a line with all its readout samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.errors import InputError, described
from mri_design.operators.base import Array
from mri_design.operators.cartesian import CartesianLines, FourierLibrary
from mri_design.operators.encodings.base import EncodingName


@dataclass(frozen=True)
class LineEncoding:
    """The phase-encode lines of a grid (ky, kx).

    Parameters
    ----------
    grid : tuple of int
        (ky, kx).
    """

    grid: tuple[int, int]
    name: EncodingName = "lines"
    unit: str = "line"

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,)."""
        return (self.grid[0],)

    @property
    def size(self) -> int:
        """Lines of the grid."""
        return self.grid[0]

    @property
    def frequencies(self) -> NDArray[np.int_]:
        """ky of every line, DC = 0, shape (size, 1)."""
        return (np.arange(self.size) - self.size // 2)[:, np.newaxis]

    def rows(self, ids: Sequence[int], maps: Array | None = None, library: FourierLibrary = "scipy") -> CartesianLines:
        """X of some lines, in their order."""
        return CartesianLines(ids, self.grid, maps, library)

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """(coil, line, kx), in the order of ``ids``."""
        return np.ascontiguousarray(kspace[:, np.asarray(ids, dtype=np.intp), :])

    def density(self, ids: Sequence[int], *, given: bool = False) -> float:
        """1: the grid is equally dense everywhere."""
        return 1.0

    def values(self, images: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> Array:
        """Values (count, coil, ky, x): the inverse FFT of a readout separates the columns of the image."""
        every = self.rows(range(self.size), maps, library)
        return np.asarray(scipy.fft.ifft(every(images), axis=-1, norm="ortho"))

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of every line of ``data`` (coil, line, kx), summed over readout and coils."""
        return np.array([float(np.sum(np.abs(data[:, place]) ** 2)) for place in range(len(ids))])

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Lines of which at least one sample holds data."""
        return np.asarray(samples.any(axis=1))

    def predictable(self, ids: Sequence[int]) -> list[int]:
        """Lines outside the unbroken run around DC."""
        return sorted(set(ids).difference(self.central_run(ids)))

    def opposite_of(self, candidate: int) -> int:
        """On the periodic grid."""
        return (2 * (self.size // 2) - candidate) % self.size

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """See `central_run`."""
        return central_run(ids, self.size)

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """Lines by |ky|."""
        return sorted(ids, key=lambda line: abs(line - self.size // 2))[:count]


def central_run(lines: Sequence[int], n_lines: int) -> list[int]:
    """The unbroken run of ``lines`` that holds DC, or all of them where DC was not measured."""
    chosen = set(_line_numbers(lines))
    centre = n_lines // 2
    if centre not in chosen:
        return sorted(chosen)
    low = high = centre
    while low - 1 in chosen:
        low -= 1
    while high + 1 in chosen:
        high += 1
    return list(range(low, high + 1))


def _line_numbers(lines: Sequence[int]) -> list[int]:
    try:
        return [index(line) for line in lines]
    except TypeError as error:
        came = described(lines) if isinstance(lines, str) or not isinstance(lines, Iterable) else str(list(lines))
        raise InputError(field="lines", got=came, wanted="line numbers, for example [31, 32, 33]") from error
