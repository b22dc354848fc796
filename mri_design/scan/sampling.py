"""Stored numbers as k-space: which samples were measured, which are missing, and which no receiver can measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import ROUND_OFF
from mri_design.errors import InputError

# Edges of k-space that differ by less than this part of the grid count as equal; partial Fourier leaves out more.
EDGES = 32
# A receiver digitises 16 to 24 bits, 1.7e7 between the strongest and the weakest number. Averages and Fourier
# transforms add up to a million of them: signal grows by as much, noise by the root, so that samples with noise in them
# stay within some 1e10. Without noise, as of a simulation, they fall to the round-off of double precision, 1e-17 of the
# strongest.
_WITH_NOISE = 1e10
_WITHOUT_NOISE = 1e20
_ALONE = 0.03
"""Fraction of samples that may be so much stronger than all their neighbours. Without noise, samples on lines through
the centre of k-space are stronger than most others, but not than their neighbours on the line."""
_CURE = "The file may hold memory that was never filled, or damaged numbers: export the data again."


@dataclass(frozen=True)
class Sampling:
    """The measured samples of one slice.

    Parameters
    ----------
    samples : bool array, shape (ky, kx)
        True where a sample was measured.

    Raises
    ------
    InputError
        For anything else than a mask over two directions.
    """

    samples: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.samples.ndim != 2 or self.samples.dtype != np.bool_:
            raise InputError("samples", f"{self.samples.dtype} {self.samples.shape}", "a bool array (ky, kx)")

    @property
    def lines(self) -> NDArray[np.bool_]:
        """Bool (ky,): phase-encode lines of which at least one sample was measured."""
        return np.asarray(self.samples.any(axis=1))

    @property
    def columns(self) -> NDArray[np.bool_]:
        """Bool (kx,): readout positions at which at least one line was measured."""
        return np.asarray(self.samples.any(axis=0))

    @property
    def percentage(self) -> str:
        """The share of the grid that was measured, with as many digits as keep a missing sample from rounding."""
        share = float(self.samples.mean())
        texts = (f"{share:.{digits}%}" for digits in range(1, 9))
        return next((text for text in texts if share == 1 or float(text[:-1]) < 100), "nearly 100%")

    @property
    def whole_lines(self) -> bool:
        """True where every measured line has all its samples."""
        return bool(self.samples[self.lines].all())

    @property
    def holes(self) -> bool:
        """True where measured lines hold different samples, so that a mask of lines does not describe the sampling."""
        return not self.samples[self.lines][:, self.columns].all()

    @property
    def full(self) -> bool:
        """True where nothing is missing but edges of k-space that were filled with zeros alike on both sides."""
        return not (self.missing_lines or self.missing_samples)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Bool (ky,): lines that are missing between measured ones."""
        measured, inside = np.flatnonzero(self.lines), np.zeros(len(self.lines), dtype=bool)
        inside[measured.min(initial=len(inside)) : measured.max(initial=0) + 1] = True
        return np.asarray(inside & ~self.lines)

    @property
    def missing_lines(self) -> Literal["", "all", "gaps", "edge"]:
        """Which lines are missing: all, some inside the measured ones, or those of one edge, as of partial Fourier."""
        if not self.lines.any():
            return "all"
        if self.gaps.any():
            return "gaps"
        return "" if _alike(self.lines) else "edge"

    @property
    def missing_samples(self) -> Literal["", "filled", "echo", "holes"]:
        """Which samples measured lines lack: as many at both ends of all, more at one, or others in each line."""
        if self.whole_lines:
            return ""
        if self.holes:
            return "holes"
        return "filled" if _alike(self.columns) else "echo"

    @property
    def reach(self) -> tuple[int, int]:
        """How far measured lines reach below and above DC."""
        return _reach(self.lines)

    @property
    def held(self) -> tuple[int, int]:
        """Least and largest number of samples of a measured line."""
        held = self.samples[self.lines].sum(axis=1)
        return int(held.min()), int(held.max())


def require_whole_lines(name: str, sampling: Sampling) -> None:
    """Refuse a scan that cannot be replayed line by line, because its lines have holes.

    Raises
    ------
    InputError
        With what is missing.
    """
    if not sampling.whole_lines:
        least, most = sampling.held
        got = f"{sampling.percentage} of the grid's samples, {least} to {most} in a measured line"
        wanted = "all readout samples in every measured line, since lines are chosen and replayed whole"
        cure = "Give a scan whose lines are whole; `mri-design recon` reconstructs this one from the samples it has."
        raise InputError(name, got, wanted, cure)


def _alike(measured: NDArray[np.bool_]) -> bool:
    """Whether measured positions reach about equally far on both sides of DC."""
    low, high = _reach(measured)
    return abs(low - high) <= max(1, len(measured) // EDGES)


def _reach(measured: NDArray[np.bool_]) -> tuple[int, int]:
    """How far measured positions reach below and above DC, on a grid cut to equally many positions on both sides."""
    at = np.flatnonzero(measured)
    if not len(at):
        return 0, 0
    centre = len(measured) // 2
    return min(centre - int(at[0]), (len(measured) - 1) // 2), int(at[-1]) - centre


def index_runs(flags: Iterable[bool]) -> str:
    """Runs of true flags as text: 0-3, 7."""
    runs = [[i for i, _ in group] for flag, group in groupby(enumerate(flags), key=lambda pair: pair[1]) if flag]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


_AS_WEAK, _STRONGER = 1.4, 2.0
"""Lines of noise hold up to so many times the energy of the weakest twentieth, and lines of signal at least so many."""
_LONGEST_GAP, _FEWEST_GAPS, _LEAST_PART = 8, 6, 0.1
"""Lines in a gap, gaps in a scan, and the part of the lines in gaps: in complete scans of 39 objects along both axes
noise and interference left a few such gaps, together less than a tenth of the lines."""


def lines_of_noise(kspace: NDArray[np.complexfloating], lines: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Lines that hold no more than noise in narrow gaps between lines of signal: most likely they were not measured.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Of one slice.
    lines : bool array, shape (ky,)
        Lines that hold samples.

    Returns
    -------
    bool array, shape (ky,)
        None where there are too few gaps to tell.
    """
    numbers, found = np.flatnonzero(lines), np.zeros(len(lines), dtype=bool)
    if not len(numbers):
        return found
    energy = np.sum(np.abs(kspace[:, numbers]).astype(np.float64) ** 2, axis=(0, 2))
    floor = float(np.quantile(energy, 0.05))
    others = np.flatnonzero(energy > _AS_WEAK * floor)
    signal = energy[others] > _STRONGER * floor
    gaps = [
        range(before + 1, after)
        for before, after, both in zip(others[:-1], others[1:], signal[:-1] & signal[1:], strict=True)
        if both and 0 < after - before - 1 <= _LONGEST_GAP
    ]
    if len(gaps) >= _FEWEST_GAPS and sum(map(len, gaps)) >= _LEAST_PART * len(numbers):
        found[numbers[[place for gap in gaps for place in gap]]] = True
    return found


_FEWEST_TEETH, _MOST_RUNS = 4, 8


def line_pattern(measured: NDArray[np.bool_]) -> str:
    """Lines at equal distances, and the centre, in words: "every 3rd line and 24 at the centre (52-75)"; else empty.

    Parameters
    ----------
    measured : bool array, shape (ky,)
        True where the line is measured; DC at ``N // 2``.
    """
    lines, dc = np.flatnonzero(measured), len(measured) // 2
    low, high = gapless_run(measured, dc)
    outside = lines[(lines < low) | (lines > high)]
    for spacing in range(2, len(measured) // _FEWEST_TEETH + 1) if len(outside) >= _FEWEST_TEETH else ():
        comb = np.zeros(len(measured), dtype=bool)
        first = min(int(outside[0]), low if low <= high else len(measured))
        comb[int(outside[0]) % spacing :: spacing] = True
        comb[:first], comb[max(int(outside[-1]), high) + 1 :] = False, False
        teeth = comb.copy()
        comb[low : high + 1] = True
        if (comb == measured).all():
            nth = {2: "2nd", 3: "3rd"}.get(spacing, f"{spacing}th")
            ends = "" if max(first, len(measured) - 1 - int(lines[-1])) < spacing else f" from {first} to {lines[-1]}"
            centre = high - low + 1
            more = (
                f" and {centre} at the centre ({low}-{high})" if centre > 1 or not teeth[low : high + 1].all() else ""
            )
            return f"every {nth} line{ends}{more}"
    return ""


def gapless_run(measured: NDArray[np.bool_], dc: int) -> tuple[int, int]:
    """First and last of the measured lines around DC without a gap; (dc, dc - 1) where DC is not measured."""
    gaps = np.flatnonzero(~np.asarray(measured))
    if not measured[dc]:
        return dc, dc - 1
    return int(max(gaps[gaps < dc], default=-1)) + 1, int(min(gaps[gaps > dc], default=len(measured))) - 1


def few_runs(flags: NDArray[np.bool_]) -> str:
    """`index_runs` of a few runs; of many the first ones, and how many there are."""
    runs = index_runs(flags).split(", ")
    if len(runs) <= _MOST_RUNS:
        return ", ".join(runs)
    return f"{', '.join(runs[:3])}, ... ({int(np.sum(flags))} lines in {len(runs)} gaps)"


def require_finite(name: str, samples: NDArray[Any]) -> None:
    """Refuse NaN and infinite samples.

    Raises
    ------
    InputError
        With their number, and the index of the first one.
    """
    finite = np.isfinite(samples)
    if not finite.all():
        first = tuple(int(i) for i in np.unravel_index(int(np.argmin(finite)), samples.shape))
        got = f"{int(finite.size - finite.sum())} NaN or infinite values, the first at index {first}"
        raise InputError(name, got, "finite samples", "Repair or remove the samples before loading.")


def refused_samples(kspace: NDArray[Any]) -> str:
    """Describe samples that `require_dynamic_range` refuses, in sentences that begin "up to"; empty for all others.

    Parameters
    ----------
    kspace : complex array, shape (slice, coil, ky, kx) or (slice, coil, sample)
        As read: the numbers are those of the file.
    """
    found = _beyond_receivers(kspace)
    return found and f"{found}: nothing that a receiver measures. recon and design refuse them. {_CURE}"


def require_dynamic_range(kspace: NDArray[Any], name: str = "kspace") -> None:
    """Refuse samples of which some are beyond all others by more than a receiver can measure.

    Files hold such samples where memory was never filled before it was written, or where bits flipped. Zeros are no
    samples. The scale does not matter: all samples may be very large, or very small.

    Parameters
    ----------
    kspace : complex array, shape (slice, coil, ky, kx) or (slice, coil, sample)
        On a grid, neighbours are those along both of its axes; else those before and after in the readout.
    name : str
        Of the field, for the message.

    Raises
    ------
    InputError
        Where the strongest sample is beyond 1e20 times the median, or where more than 3 % are beyond 1e10 times the
        median and as far beyond every neighbour of theirs. The message has the numbers.
    """
    found = _beyond_receivers(kspace)
    if found:
        wanted = "the dynamic range of a receiver: the samples of a 24-bit receiver, even summed over a million "
        wanted += "averages, stay within 1e10 times their median"
        raise InputError(name, f"samples {found}", wanted, _CURE)


def _beyond_receivers(kspace: NDArray[Any]) -> str:
    """How far samples are beyond all others, in words; empty where a receiver can have measured them."""
    size = np.maximum(np.abs(kspace.real), np.abs(kspace.imag))  # a modulus could overflow
    measured = size[size > 0]
    if not measured.size:
        return ""
    median, strongest = float(np.median(measured)), float(measured.max())
    if strongest <= _WITH_NOISE * median:
        return ""
    beyond = measured / np.float64(median) > _WITH_NOISE
    if strongest <= _WITHOUT_NOISE * median and _alone(size, median) <= _ALONE * measured.size:
        return ""
    power = math.log10(strongest) - math.log10(median)  # the ratio may be beyond double precision
    return (
        f"up to {strongest:.2g}, 1e{power:.0f} times their median of {median:.2g}, and "
        f"{beyond.mean():.2%} of them beyond 1e10 times the median"
    )


def _alone(size: NDArray[Any], median: float) -> int:
    """How many samples are beyond 1e10 times the median and every neighbour."""
    neighbour = np.zeros_like(size)
    for axis in (-2, -1) if size.ndim > 3 else (-1,):
        along, near = np.moveaxis(size, axis, -1), np.moveaxis(neighbour, axis, -1)
        np.maximum(near[..., 1:], along[..., :-1], out=near[..., 1:])
        np.maximum(near[..., :-1], along[..., 1:], out=near[..., :-1])
    limit = np.maximum(neighbour.astype(np.float64), median) * _WITH_NOISE
    return int(np.count_nonzero(size > limit))


def working_coils(kspace: NDArray[np.complex64]) -> tuple[NDArray[np.intp], dict[str, tuple[Any, ...]]]:
    """Coils that hold samples of their own, and which others are left out, as `Provenance.left_out` has it.

    With a coil whose samples are all zero, or one that repeats another's, the covariance of the coils' noise could not
    be inverted.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ...)
        As measured.

    Returns
    -------
    int array, shape (working coil,)
        In their order; all of them where every coil is zero, which is for others to refuse.
    dict of str to tuple
        Coils that were dropped as they hold zeros only, and (coil, the one that it repeats); empty where none was.
    """
    sums = [complex(kspace[:, coil].sum(dtype=np.complex128)) for coil in range(kspace.shape[1])]
    kept, dead, copies = list[int](), list[int](), list[tuple[int, int]]()
    for coil, total in enumerate(sums):
        samples = kspace[:, coil]
        if not samples.any():
            dead.append(coil)
            continue
        alike = (other for other in kept if sums[other] == total and np.array_equal(kspace[:, other], samples))
        original = next(alike, None)
        if original is None:
            kept.append(coil)
        else:
            copies.append((coil, original))
    if not kept:
        return np.arange(kspace.shape[1]), {}
    return np.array(kept), {"coils_dropped": (tuple(dead), tuple(copies))} if dead or copies else {}


def only_coils(kspace: NDArray[np.complex64], coils: NDArray[np.intp]) -> NDArray[np.complex64]:
    """Some coils of (slice, coil, ...); the array itself, not a copy, where these are all."""
    return kspace if len(coils) == kspace.shape[1] else kspace[:, coils]


def readout_positions(volume: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """A volume's k-space (kx, coil, ky, kz) as one plane per readout position, (x, coil, ky, kz): inverse FFT along kx.

    Centred and orthonormal, so that white noise keeps its variance. Readouts that were not measured stay zero.

    Raises
    ------
    InputError
        For samples whose sums single precision does not hold.
    """
    with within_single_precision("kspace") as sums:
        spread = np.fft.ifftshift(volume, axes=0)
        sums.append(np.ascontiguousarray(np.fft.fftshift(np.fft.ifft(spread, axis=0, norm="ortho"), axes=0)))
    return sums[0]


@contextmanager
def within_single_precision(field: str) -> Iterator[list[NDArray[np.complex64]]]:
    """Let arrays be computed from samples as large as a damaged file may have them, without a warning of NumPy.

    Yields
    ------
    list
        For the results, which are checked at the end.

    Raises
    ------
    InputError
        Where a result is beyond single precision.
    """
    results = list[NDArray[np.complex64]]()
    with np.errstate(over="ignore", invalid="ignore"):
        yield results
    for result in results:
        _refuse_overflow(field, result)


def readouts_of_positions(planes: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """The k-space (kx, coil, ky, kz) whose `readout_positions` are these planes (x, coil, ky, kz); one stays itself."""
    spread = np.fft.ifftshift(planes, axes=0)
    return np.fft.fftshift(np.fft.fft(spread, axis=0, norm="ortho"), axes=0).astype(np.complex64)


def is_pair(dtype: np.dtype[Any]) -> bool:
    """Whether numbers are structures of one real and one imaginary field, as HDF5 has complex numbers."""
    names = dtype.names
    return names is not None and len(names) == 2 and names[0].startswith("r") and names[1].startswith("i")


def to_complex64(field: str, samples: NDArray[Any]) -> NDArray[np.complex64]:
    """Complex samples of any precision as complex64, contiguous.

    Parameters
    ----------
    field : str
        File and field, for the message.
    samples : complex array, or structured array with one real and one imaginary field

    Raises
    ------
    InputError
        On samples that are not complex, on NaN or infinities, and on values complex64 cannot hold.
    """
    if (pair := samples.dtype.names) is not None and is_pair(samples.dtype):
        for part in pair:
            require_finite(field, samples[part])
        joined = np.empty(samples.shape, np.complex64)
        with np.errstate(over="ignore"):
            joined.real, joined.imag = samples[pair[0]], samples[pair[1]]
    elif samples.dtype.kind == "c":
        require_finite(field, samples)
        with np.errstate(over="ignore"):
            joined = np.ascontiguousarray(samples, dtype=np.complex64)
    else:
        raise InputError(field, f"dtype {samples.dtype}", "complex samples")
    _refuse_overflow(field, joined)
    return joined


def to_float32(field: str, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Real pixels of any integer or floating type as float32, contiguous.

    Raises
    ------
    InputError
        On flags, text, complex numbers, NaN, infinities, and values float32 cannot hold.
    """
    if pixels.dtype.kind not in "iuf":
        raise InputError(field, f"dtype {pixels.dtype}", "real numbers")
    require_finite(field, pixels)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(pixels, dtype=np.float32)
    _refuse_overflow(field, single)
    return single


def measured_lines(
    field: str, kspace: NDArray[np.complex64], declared: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Which phase-encode lines were really acquired; the others are set to exact zeros in place.

    A line was not acquired where it is zero over all slices, coils and readout samples: exactly, or down to
    1e-10 of the strongest sample, the round-off of zero-filling done in another domain.

    Parameters
    ----------
    field : str
        File and field that declared the lines, for the message.
    kspace : complex64 array, shape (slice, coil, ky, kx)
    declared : bool array, shape (ky,), optional
        Lines that were acquired according to the file.

    Returns
    -------
    bool array, shape (ky,)

    Raises
    ------
    InputError
        Where a line declared as not acquired holds samples.
    """
    # slice by slice: the moduli of a whole scan would take as much memory as the scan
    parts = [np.maximum(np.abs(part.real), np.abs(part.imag)).max(axis=(0, 2)) for part in kspace]
    peaks = np.max(parts, axis=0)
    measured: NDArray[np.bool_] = peaks > ROUND_OFF * peaks.max()
    if declared is not None:
        contradicted = np.flatnonzero(measured & ~declared)
        if contradicted.size:
            got = f"line {contradicted[0]} marked as not measured, holding samples ({contradicted.size} such lines)"
            cure = "Correct the list of lines, or set those samples to zero."
            raise InputError(field, got, "zeros in every line that was not measured", cure)
    kspace[:, :, ~measured] = 0
    return measured


def _refuse_overflow(field: str, array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise InputError(field, "samples beyond 3.4e38", "values that single precision holds", "Scale the data down.")
