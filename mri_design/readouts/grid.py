"""Readouts of a Cartesian grid, and their constraints: phase-encode lines, and samples of a plane (ky, kz).

A line is measured with all its readout samples. A sequence can forbid and require lines, force a centre, leave out a
part of k-space, and keep jumps short.

Of a 3-D scan that is phase encoded along two directions, a candidate is one sample of the plane (ky, kz). The readout
runs across the plane. Its inverse FFT leaves one plane for every readout position, and all of them are sampled alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from operator import index
from typing import Any, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import (
    InputError,
    described,
    number_array,
    require_choice,
    require_counts,
    require_grid,
    require_numbers,
)
from mri_design.operators.base import Array, FilterBand, squared_modulus
from mri_design.operators.cartesian_fourier import CartesianLines, CartesianSamples, CentredFFT
from mri_design.operators.elementary import Coils
from mri_design.readouts.base import Constraints, Half, Numbers, Readouts, kept_rows, radii, refusal

FAR = 8
"""|k| that lines reach on one side of k-space, at least, where the other side can be called missing."""


@dataclass(frozen=True)
class LineReadouts(Readouts):
    """The phase-encode lines of a grid (ky, kx).

    Parameters
    ----------
    grid : tuple of int
        (ky, kx).
    """

    grid: tuple[int, int]
    name = "lines"

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,)."""
        return (self.grid[0],)

    @property
    def frequencies(self) -> NDArray[np.int_]:
        """ky of every line, DC = 0, shape (size, 1)."""
        return (np.arange(self.size) - self.size // 2)[:, np.newaxis]

    def constraints(self, **limits: Any) -> LineConstraints:
        """See `LineConstraints`."""
        return LineConstraints(**limits)

    def cells(self, measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """All samples of every measured line."""
        return np.broadcast_to(measured[:, np.newaxis], self.grid)

    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> Numbers:
        """(line, kx); of lines with holes the samples that are there, (sample,), in ascending order of lines."""
        each = radii(self.grid)
        if samples is None:
            return np.asarray(each[list(ids)])
        there = np.zeros(self.grid, dtype=bool)
        there[list(ids)] = samples[list(ids)]
        return np.asarray(each[there])

    def one_sided(self, ids: Sequence[int]) -> bool:
        """See `Readouts.one_sided`."""
        places = self.frequencies[list(ids), 0]
        short, far = sorted((-int(places.min(initial=0)), int(places.max(initial=0))))
        return far >= FAR and 2 * short <= far + 1  # of an even grid one side has a line less

    def rows(self, ids: Sequence[int], maps: Array | None = None) -> CartesianLines:
        """X of some lines, in their order."""
        return CartesianLines(ids, self.grid, maps)

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """(coil, line, kx), in the order of ``ids``."""
        return np.ascontiguousarray(kspace[:, np.asarray(ids, dtype=np.intp), :])

    def values(self, images: Array, maps: Array | None = None) -> Array:
        """Values (count, coil, ky, x): the inverse FFT of a readout separates the columns of the image."""
        return self.rows(range(self.size), maps).columns(images)

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

    def scaled_moment(self, own: Array, turn: Array | None) -> Numbers:
        """See `Readouts.scaled_moment`, shape (ky, x).

        Notes
        -----
        Along a column of the image the circulant's eigenvalues are those averaged over kx. A diagonal spreads them by
        the power spectrum of its column. What is antilinear in P cancels in the sum of real and imaginary parts.
        """
        column = own.mean(axis=1, keepdims=True)
        power = np.abs(scipy.fft.fft(np.ones_like(own) if turn is None else turn, axis=0)) ** 2 / len(column) ** 2
        spread = scipy.fft.ifft(scipy.fft.fft(column, axis=0) * scipy.fft.fft(power, axis=0), axis=0).real
        return np.asarray(scipy.fft.fftshift(spread, axes=0))

    def start(self, target: int, lines: int) -> int:
        """As many lines as requested."""
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

    def folded(self) -> FoldedLineReadouts | None:
        """See `FoldedLineReadouts`; those themselves have none."""
        return FoldedLineReadouts((2 * self.grid[0], self.grid[1])) if self.places == 1 else None

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


@dataclass(frozen=True)
class FoldedLineReadouts(LineReadouts):
    """Lines that see an image over twice their field of view along ky, which folds: every second line of its grid.

    Parameters
    ----------
    grid : tuple of int
        (2 ky, kx) of the image. Data are laid out as those of ``ky`` lines.
    """

    places = 2

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,)."""
        return (self.grid[0] // 2,)

    @property
    def layout(self) -> tuple[int, int]:
        """(ky, kx)."""
        return self.grid[0] // 2, self.grid[1]

    def cells(self, measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """All samples of every measured line."""
        return np.broadcast_to(measured[:, np.newaxis], self.layout)

    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> Numbers:
        """As of the lines of the smaller field of view."""
        return LineReadouts(self.layout).sample_radii(ids, samples)

    def rows(self, ids: Sequence[int], maps: Array | None = None) -> CartesianLines:
        """X of some lines, in their order, with maps (coil, 2 ky, kx) that hold the factor sqrt(2) of the folding."""
        places = 2 * (np.asarray(ids, dtype=np.intp) - self.size // 2) + self.size
        return CartesianLines(places.tolist(), self.grid, maps)

    def moments(self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]) -> None:
        """Not known."""


@dataclass(frozen=True)
class LineConstraints(Constraints):
    """Which phase-encode lines a sequence can and must measure. Without constraints by default.

    Parameters
    ----------
    forbidden, required : tuple of int
        Lines that must not, and that must be in the design. Those required are measured at the start.
    centre : int
        That many lines nearest to DC are required too.
    partial_fourier : float, optional
        Share p of the grid that is kept, 0.5 to 1: lines with k >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of k-space that partial Fourier keeps whole; "negative" keeps k <= m.
    max_jump : int, optional
        Largest distance between consecutive lines, in lines.

    Raises
    ------
    InputError
        For values out of range, or lines that are both forbidden and required. What contradicts a grid is refused where
        the grid is known (`allowed`, `start`, `LineCandidates`).
    """

    forbidden: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    centre: int = 0
    partial_fourier: float | None = None
    whole_half: Half = "positive"
    max_jump: int | None = None

    def __post_init__(self) -> None:
        for name, lines in (("forbidden lines", self.forbidden), ("required lines", self.required)):
            wanted = "a tuple of line numbers, as (0, 1, 250)"
            listed = isinstance(lines, Iterable) and not isinstance(lines, str)
            if not listed or not all(isinstance(line, Integral) and not isinstance(line, bool) for line in lines):
                raise refusal(name, described(lines), wanted)
        require_counts(least=0, **{"forced centre": self.centre})
        if self.partial_fourier is not None:
            require_numbers(least=0.5, most=1.0, **{"partial Fourier": self.partial_fourier})
        require_choice(get_args(Half), **{"whole half": self.whole_half})
        if self.max_jump is not None:
            require_counts(least=1, **{"max_jump": self.max_jump})
        both = sorted(set(self.forbidden) & set(self.required))
        if both:
            wanted, cure = "every line one of the two at most", "Take them out of one of the lists."
            raise refusal("constraints", f"{_listed(both)} forbidden and required", wanted, cure)

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Lines that may be measured at all, bool (ky,).

        Raises
        ------
        InputError
            Where a line is outside the grid, DC is forbidden, a required line is not kept by partial Fourier, or none
            is left.
        """
        for name, lines in (("forbidden lines", self.forbidden), ("required lines", self.required)):
            outside = [line for line in lines if not 0 <= line < n_lines]
            if outside:
                raise refusal(name, _listed(outside), f"lines from 0 to {n_lines - 1}")
        flags = kept_rows(np.arange(n_lines) - n_lines // 2, n_lines, self.partial_fourier, self.whole_half)
        lost = [line for line in self.required if not flags[line]]
        if lost:
            got = f"{_listed(lost)}, not kept by partial Fourier {self.partial_fourier}"
            wanted = f"lines from {np.flatnonzero(flags)[0]} to {np.flatnonzero(flags)[-1]}"
            cure = "Keep more of the grid, the other half, or require other lines."
            raise refusal("required lines", got, wanted, cure)
        flags[list(self.forbidden)] = False
        if not flags.any():
            wanted = "at least one line that may be measured"
            cure = "Forbid fewer lines, or keep more with partial Fourier."
            raise refusal("constraints", f"no line of {n_lines} left", wanted, cure)
        if n_lines // 2 in self.forbidden:
            wanted = "lines that an image can do without"
            cure = "Let it be measured: the image's brightness and the prior's scale come from it."
            raise refusal("forbidden lines", f"line {n_lines // 2}, the centre of k-space", wanted, cure)
        return flags

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Lines to measure before the first decision: ``count`` at the centre, and all that are required.

        Where jumps are limited they come in ascending or descending order, whichever leaves the longer walk open, with
        lines between them where a jump would be too long.

        Parameters
        ----------
        measurable : bool array, shape (ky,)
            Lines that hold data.
        count : int
            Lines nearest to DC among those allowed; at least the forced centre.
        forced : int
            That many of them are forced, like ``centre``.

        Raises
        ------
        InputError
            Where a forced centre line is not allowed, a required line holds no data, or jumps cannot reach them.
        """
        allowed = measurable & self.allowed(len(measurable))
        needed = self.needed(measurable, forced)
        lines = centre_lines(allowed, max(count, forced, self.centre))
        return self._walked((*lines, *(line for line in needed if line not in lines)), allowed)

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Lines that no design may lack, from DC outwards: the forced centre and those required.

        Raises
        ------
        InputError
            Where such a line is not allowed or holds no data.
        """
        forced = max(self.centre, forced)
        centre = centre_lines(measurable, forced) if forced else ()
        allowed = self.allowed(len(measurable))
        lost = [line for line in centre if not allowed[line]]
        if lost:
            got = f"{forced} lines, of which {_listed(sorted(lost))} may not be measured"
            wanted = "centre lines that are neither forbidden nor left out by partial Fourier"
            cure = "Begin with fewer centre lines, or allow these."
            raise refusal("forced centre", got, wanted, cure)
        empty = [line for line in self.required if not measurable[line]]
        if empty:
            wanted, cure = "lines that hold data", "Require other lines."
            raise refusal("required lines", f"{_listed(empty)} without data", wanted, cure)
        middle = len(measurable) // 2
        return tuple(sorted({*centre, *self.required}, key=lambda line: (abs(line - middle), line)))

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """Lines that a design can have which begins with ``start``, those included."""
        if self.max_jump is None:
            return super().most_lines(measurable, start)
        free = measurable & self.allowed(len(measurable))
        free[list(start)] = False
        left = np.flatnonzero(free).tolist()
        if not start:
            return max(1 + longest_walk(line, [o for o in left if o != line], self.max_jump) for line in left)
        return len(start) + longest_walk(start[-1], left, self.max_jump)

    def _walked(self, lines: tuple[int, ...], allowed: NDArray[np.bool_]) -> tuple[int, ...]:
        if self.max_jump is None:
            return lines
        path = sorted(lines)
        for a, b in pairwise(tuple(path)):
            while b - a > self.max_jump:
                between = np.flatnonzero(allowed[a + 1 : a + self.max_jump + 1])
                if not len(between):
                    got = f"{self.max_jump}, with no line that may be measured from {a + 1} to {a + self.max_jump}"
                    wanted = "a way between the lines of the start"
                    cure = "Allow larger jumps, or forbid and require fewer lines."
                    raise InputError("max_jump", got, wanted, cure)
                a += 1 + int(between[-1])
                path.append(a)
        path.sort()
        return max(tuple(path), tuple(reversed(path)), key=lambda order: self.most_lines(allowed, order))


def centre_lines(measurable: NDArray[np.bool_], count: int) -> tuple[int, ...]:
    """The ``count`` measurable lines nearest to DC, DC first, then outwards (-1, +1, -2, ...).

    Raises
    ------
    InputError
        Where there are not that many, or they are no flags.
    """
    flags = np.asarray(measurable)
    if flags.ndim != 1 or flags.dtype != np.bool_:
        raise InputError(field="measurable", got=described(measurable), wanted="bool (ky,)")
    available = np.flatnonzero(flags)
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= len(available):
        raise refusal("start lines", described(count), f"a whole number, 1 to {len(available)}")
    k = available - len(measurable) // 2
    nearest = np.lexsort((k, np.abs(k)))[:count]
    return tuple(int(line) for line in available[nearest])


def longest_walk(current: int, free: Sequence[int], jump: int) -> int:
    """Most lines that a walk from ``current`` can visit, each once, with jumps of at most ``jump``.

    Parameters
    ----------
    current : int
        Line where the walk stands.
    free : sequence of int
        Lines that may be visited, ascending.
    jump : int
        Largest distance between consecutive lines.

    Returns
    -------
    int
        Lines visited, ``current`` not counted.

    Notes
    -----
    Lines that see each other within a distance are a unit interval graph. A longest walk either runs to one side, or
    makes a loop on one side (out and back over alternate lines) and then runs to the other. The loop can hold its next
    line where that is within a jump of the line two before it. The tests compare with exhaustive search.
    """
    left = [line for line in reversed(free) if line < current]
    right = [line for line in free if line > current]
    best = 0
    for looped, run in ((left, right), (right, left)):
        best = max(best, _steps(current, looped, jump))
        if run:
            path = [run[0], current, *looped]
            loop = _first_longer([abs(b - a) for a, b in zip(path, path[2:], strict=False)], jump)
            if loop or abs(run[0] - current) <= jump:
                best = max(best, loop + 1 + _steps(run[0], run[1:], jump))
    return best


def open_moves(current: int | None, free: NDArray[np.bool_], jump: int, wanted: int) -> NDArray[np.bool_]:
    """Next lines, bool (ky,), from which a walk can still visit ``wanted`` lines in all, the next one counted.

    Without a ``current`` line the walk may begin anywhere.
    """
    lines = [int(line) for line in np.flatnonzero(free)]
    moves = np.zeros(len(free), dtype=bool)
    for line in lines:
        if current is None or abs(line - current) <= jump:
            rest = [other for other in lines if other != line]
            moves[line] = 1 + longest_walk(line, rest, jump) >= wanted
    return moves


def _steps(current: int, lines: Sequence[int], jump: int) -> int:
    return _first_longer([abs(b - a) for a, b in pairwise([current, *lines])], jump)


def _first_longer(distances: Sequence[int], jump: int) -> int:
    return next((i for i, distance in enumerate(distances) if distance > jump), len(distances))


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:8])
    return f"line{'s' if len(lines) > 1 else ''} {shown}{', ...' if len(lines) > 8 else ''}"


LEAST_START, START_SHARE = 16, 128
"""Samples that a design begins with at least, and the part of the plane that they are."""
BLOCKS = 200
"""Parts of a plane, of which one is chosen after each inference."""


@dataclass(frozen=True)
class PlaneReadouts(Readouts):
    """The samples of a plane (ky, kz), numbered row by row: sample (y, z) has number ``y * n_z + z``.

    Parameters
    ----------
    grid : tuple of int
        (ky, kz).

    Raises
    ------
    InputError
        For a grid that is not two whole numbers.
    """

    grid: tuple[int, int]
    name = "plane"
    thinned = True
    draws = 8

    def __post_init__(self) -> None:
        require_grid("grid", self.grid, axes=2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky, kz)."""
        return self.grid

    @cached_property
    def frequencies(self) -> NDArray[np.int_]:
        """(ky, kz) of every sample, DC = 0, shape (size, 2)."""
        at = np.stack(np.divmod(np.arange(self.size), self.grid[1]), axis=1)
        return np.asarray(at - np.array(self.grid) // 2)

    @cached_property
    def outwards(self) -> NDArray[np.intp]:
        """All samples by their distance from DC, DC first; ties go to the lower number."""
        return np.argsort(self.radius.round(12), kind="stable")

    @cached_property
    def opposite(self) -> NDArray[np.intp]:
        """The sample at -k of every sample, on the periodic grid."""
        y, z = (self.frequencies[:, axis] for axis in (0, 1))
        rows, columns = self.grid
        return np.asarray(((rows // 2 - y) % rows) * columns + (columns // 2 - z) % columns, dtype=np.intp)

    @property
    def usual_block(self) -> int:
        """One of `BLOCKS`."""
        return max(1, self.size // BLOCKS)

    def constraints(self, **limits: Any) -> PlaneConstraints:
        """See `PlaneConstraints`."""
        return PlaneConstraints(self, **limits)

    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """(sample,), in ascending order."""
        return np.asarray(self.radius[sorted(ids)])

    def order_within_echo(self, order: str) -> NDArray[np.float64]:
        """The angle of every sample, as rings are shared among ``centre-out`` trains; kz, as bands are among others."""
        ky, kz = self.frequencies.T
        return np.asarray(np.arctan2(kz, ky) if order == "centre-out" else kz, dtype=np.float64)

    def centre_out(self, ids: Sequence[int]) -> list[int]:
        """From DC outwards, samples at one distance by their angle, so that jumps along a circle are short."""
        radius, angle = self.radius.round(12), self.order_within_echo("centre-out")
        return sorted(self.nearest_to_centre(ids, len(ids)), key=lambda sample: (radius[sample], angle[sample]))

    def mask(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Bool (ky, kz), true where a sample is among ``ids``.

        Raises
        ------
        InputError
            For numbers outside the plane, or named twice.
        """
        wanted = f"different sample numbers from 0 to {self.size - 1}"
        chosen = number_array("samples", ids, wanted=wanted)
        inside = chosen.ndim == 1 and chosen.dtype.kind in "iu" and bool(np.all((chosen >= 0) & (chosen < self.size)))
        if not inside or len(np.unique(chosen)) != len(chosen):
            raise InputError(field="samples", got=str(chosen.tolist())[:80], wanted=wanted)
        flags = np.zeros(self.size, dtype=bool)
        flags[chosen.astype(np.intp)] = True
        return flags.reshape(self.grid)

    def rows(self, ids: Sequence[int], maps: Array | None = None) -> CartesianSamples:
        """X of some samples, which come in ascending order whatever the order of ``ids``."""
        return CartesianSamples(self.mask(ids), maps)

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """(coil, sample), samples in ascending order."""
        return np.ascontiguousarray(kspace[:, self.mask(ids)])

    def values(self, images: Array, maps: Array | None = None) -> Array:
        """Values (count, coil, sample, 1): samples of the FFT of every coil's image."""
        coil_images = images[..., None, :, :] if maps is None else Coils(maps)(images)
        kspace = CentredFFT(self.grid)(coil_images)
        return np.asarray(kspace.reshape(*kspace.shape[:2], self.size, 1))

    def moments(
        self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]
    ) -> tuple[Numbers, Numbers] | None:
        """See `Readouts.moments`, shape (size, 1).

        Notes
        -----
        A sample of k-space is one row of the Fourier transform, which makes every circulant diagonal: P itself, and
        P A P, in which the sites of a band of filters count with their mean site precision.
        """
        if gram is None:
            return None
        spectrum = gram + sum(
            np.mean(weights, dtype=np.float64) / filters.stride**2 * np.abs(filters.response) ** 2
            for filters, weights in sites
        )
        first, second = (scipy.fft.fftshift(each).reshape(-1, 1) for each in (inverse, inverse**2 * spectrum))
        return first, second

    def start_for_posterior(self, target: int) -> int:
        """A 128th of the plane, 16 samples at least, and half of the target at most.

        The image's scale is seen in them; wider centres are wasted where samples are chosen one by one.
        """
        return min(target, max(1, min(max(LEAST_START, self.size // START_SHARE), target // 2)))

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of every sample of ``data`` (coil, sample), summed over coils, in the order of ``ids``."""
        ascending = np.asarray(np.sum(np.abs(data) ** 2, axis=0, dtype=np.float64))
        return np.asarray(ascending[np.argsort(np.argsort(ids))])

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The samples themselves, row by row."""
        return np.asarray(samples.reshape(-1))

    def opposite_of(self, candidate: int) -> int:
        """The sample at -k on the periodic grid."""
        return int(self.opposite[candidate])

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """Samples of the largest ellipse around DC that is measured without a gap; all where DC is not."""
        flags = self.mask(ids).reshape(-1)
        missing = np.flatnonzero(~flags[self.outwards])
        run = self.outwards[: int(missing[0])] if len(missing) else self.outwards
        return sorted((run if len(run) else np.flatnonzero(flags)).tolist())

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """Samples by their distance from DC."""
        flags = self.mask(ids).reshape(-1)
        return [int(sample) for sample in self.outwards[flags[self.outwards]][:count]]


@dataclass(frozen=True)
class PlaneConstraints(Constraints):
    """Which samples of a plane a sequence can and must measure. Without constraints by default.

    What contradicts a scan is refused where its samples are known (`needed`).

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    shutter : bool
        Whether samples outside of the ellipse that touches the plane's edges are left out (elliptical scanning).
    partial_fourier : float, optional
        Share p of the plane that is kept along ky, 0.5 to 1: rows with ky >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of ky that partial Fourier keeps whole.
    calibration : int
        Side of the square around DC that every design measures at the start; 0 is none.
    centre : int
        That many samples nearest to DC are required too.
    """

    plane: PlaneReadouts
    _: KW_ONLY
    shutter: bool = False
    partial_fourier: float | None = None
    whole_half: Half = "positive"
    calibration: int = 0
    centre: int = 0
    counted = "samples"

    def with_calibration(self, side: int) -> PlaneConstraints:
        """See `Constraints.with_calibration`."""
        return replace(self, calibration=max(side, self.calibration))

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Samples that shutter and partial Fourier leave, (size,)."""
        plane = self.plane
        kept = kept_rows(plane.frequencies[:, 0], plane.grid[0], self.partial_fourier, self.whole_half)
        return kept & (plane.radius <= 1) if self.shutter else kept

    @cached_property
    def calibration_region(self) -> NDArray[np.bool_]:
        """The square around DC, (size,); on a smaller plane all of its side."""
        inside = np.ones(self.plane.size, dtype=bool)
        for axis, n in enumerate(self.plane.grid):
            side = min(self.calibration, n)
            k = self.plane.frequencies[:, axis]
            inside &= (k >= -(side // 2)) & (k < side - side // 2)
        return inside

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Samples that may be measured at all, (size,)."""
        return self.kept.copy()

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Samples that no design may lack, from DC outwards.

        Raises
        ------
        InputError
            Where one of them may not be measured, or holds no data.
        """
        free = measurable & self.kept
        flags = self.calibration_region.copy()
        flags[self.plane.outwards[: max(self.centre, forced)]] = True
        lost = int((flags & ~free).sum())
        if lost:
            got = f"{int(flags.sum())} samples, of which {lost} hold no data or may not be measured"
            wanted = "samples inside the shutter and the kept part of k-space"
            cure = "Take a smaller region, or keep more of k-space."
            raise refusal("calibration region", got, wanted, cure)
        outwards = self.plane.outwards
        return tuple(outwards[flags[outwards]].tolist())

    @property
    def least_start(self) -> int:
        """Samples of the calibration region and of the forced centre."""
        return len(self.needed(np.ones(self.plane.size, dtype=bool)))

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Samples to measure before the first decision: those required, and the nearest to DC up to ``count`` in all.

        Raises
        ------
        InputError
            Where a required sample cannot be measured, or there are not that many.
        """
        needed = self.needed(measurable, forced)
        free = measurable & self.kept
        if not 1 <= count <= int(free.sum()):
            raise refusal("start samples", str(count), f"1 to {int(free.sum())}")
        flags = np.isin(np.arange(self.plane.size), needed)
        outwards = self.plane.outwards
        others = outwards[free[outwards] & ~flags[outwards]]
        flags[others[: max(count - len(needed), 0)]] = True
        return tuple(outwards[flags[outwards]].tolist())
