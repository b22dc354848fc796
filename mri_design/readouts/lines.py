"""Phase-encode lines along one direction: a candidate is a line with all its readout samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, described
from mri_design.operators.base import Array, FilterBand, squared_modulus
from mri_design.operators.cartesian_fourier import CartesianLines, FourierLibrary
from mri_design.readouts.base import Numbers, Readouts


@dataclass(frozen=True)
class LineReadouts(Readouts):
    """The phase-encode lines of a grid (ky, kx).

    Parameters
    ----------
    grid : tuple of int
        (ky, kx).
    """

    grid: tuple[int, int]
    name: str = "lines"
    unit: str = "line"

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,)."""
        return (self.grid[0],)

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

    def values(self, images: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> Array:
        """Values (count, coil, ky, x): the inverse FFT of a readout separates the columns of the image."""
        return self.rows(range(self.size), maps, library).columns(images)

    def moments(
        self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]
    ) -> tuple[Numbers, Numbers] | None:
        """See `Readouts.moments`, shape (ky, x).

        Notes
        -----
        Shifts along ky leave |E P g^H| alone, so the sites of a band add their site precisions summed over ky,
        correlated along x with the kernel's power.
        """
        if gram is None:
            return None
        n_lines, n_columns = inverse.shape
        first = np.broadcast_to(inverse.mean(axis=1, keepdims=True), (n_lines, n_columns))
        total = np.zeros((n_lines, n_columns // 2 + 1), dtype=complex)
        powers: list[tuple[Array, Array]] = []  # of kernels by their filters along x, which several bands may share
        for filters, weights in sites:
            columns = np.zeros(n_columns)
            columns[:: filters.stride] = weights.sum(axis=0) / n_lines
            power = next((power for along_x, power in powers if np.array_equal(along_x, filters.along_x)), None)
            if power is None:
                kernel = scipy.fft.ifft(inverse * np.conj(filters.along_x), axis=1)
                power = scipy.fft.rfft(squared_modulus(kernel), axis=1)
                powers.append((filters.along_x, power))
            total += np.abs(filters.along_y[:, np.newaxis]) ** 2 * (scipy.fft.rfft(columns) * power)
        of_sites = scipy.fft.irfft(total, n=n_columns, axis=1)
        second = np.mean(inverse**2 * gram, axis=1, keepdims=True) + of_sites
        return np.asarray(scipy.fft.fftshift(first, axes=0)), np.asarray(scipy.fft.fftshift(second, axes=0))

    def phased_moment(self, own: Array, rotation: Array) -> Numbers:
        """See `Readouts.phased_moment`, shape (ky, x).

        Notes
        -----
        Along a column of the image the circulant's eigenvalues are those averaged over kx. Division by the phase
        spreads them by the power spectrum of that column of exp(i phi). What is antilinear in P cancels in the sum of
        real and imaginary parts.
        """
        column = own.mean(axis=1, keepdims=True)
        power = np.abs(scipy.fft.fft(rotation, axis=0)) ** 2 / len(column) ** 2
        spread = scipy.fft.ifft(scipy.fft.fft(column, axis=0) * scipy.fft.fft(power, axis=0), axis=0).real
        return np.asarray(scipy.fft.fftshift(spread, axes=0))

    def start(self, target: int, lines: int) -> int:
        """As many lines as are asked for."""
        return min(target, lines)

    def start_for_posterior(self, target: int) -> int:
        """Half of the target, between 8 lines and an eighth of the grid: more centre than that is wasted."""
        return min(target, max(8, min(target // 2, self.size // 8)))

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of every line of ``data`` (coil, line, kx), summed over readout and coils."""
        return np.array([float(np.sum(np.abs(data[:, place]) ** 2)) for place in range(len(ids))])

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Lines of which at least one sample holds data."""
        return np.asarray(samples.any(axis=1))

    def opposite_of(self, candidate: int) -> int:
        """The line at -ky on the periodic grid."""
        return (2 * (self.size // 2) - candidate) % self.size

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """The unbroken run of lines that holds DC, or all of them where DC was not measured."""
        try:
            chosen = {index(line) for line in ids}
        except TypeError as error:
            came = described(ids) if isinstance(ids, str) or not isinstance(ids, Iterable) else str(list(ids))
            raise InputError("lines", came, "line numbers, for example [31, 32, 33]") from error
        low = high = self.size // 2
        if low not in chosen:
            return sorted(chosen)
        while low - 1 in chosen:
            low -= 1
        while high + 1 in chosen:
            high += 1
        return list(range(low, high + 1))

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """Lines by |ky|."""
        return sorted(ids, key=lambda line: abs(line - self.size // 2))[:count]
