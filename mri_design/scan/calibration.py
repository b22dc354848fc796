"""Calibration of scans: noise, prewhitening, coil compression, coil sensitivity maps, and the centre of k-space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import (
    FEWEST_FOR_ESPIRIT,
    USUAL_LINES,
    central,
    coil_directions,
    dense_centre,
    espirit,
    gapless_side,
    gridded_square,
    inverse_root,
    measured_samples,
    mix_coils,
    share_explained,
)
from mri_design.calibration.noise import (
    NoiseEstimate,
    correlated_by_signal,
    estimate_noise,
    outer_covariance,
)
from mri_design.errors import InputError, covariance_matrix, option, require_instance
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import WITHOUT_COVARIANCE, KSpaceData, Scan, ScanSummary, TrajectoryData
from mri_design.scan.provenance import SAMPLES, Centre, NoiseOrigin, Place, tolerance
from mri_design.scan.sampling import Sampling, lines_of_noise

AnyScan = TypeVar("AnyScan", bound=Scan)

_ENDS = 16


def measure_noise(data: KSpaceData, *, correlated: bool = True) -> NoiseEstimate:
    """Noise covariance of one coil or several, what it rests on, and doubts about it: `estimate_noise` of a scan."""
    samples = np.stack([sampling.samples for sampling in data.samplings])
    return estimate_noise(
        data.kspace, data.measured, samples, complete=data.fully_sampled, repeat=data.repeat, correlated=correlated
    )


def estimate_noise_variance(data: KSpaceData) -> float:
    """Noise variance per real component, from samples without signal of the object (`estimate_noise`).

    Parameters
    ----------
    data : KSpaceData
        Fully sampled or undersampled; maps, reference and a given noise variance are ignored.

    Returns
    -------
    float
        Mean over the coils, in units of ``kspace`` squared. Coils of unequal noise want `prewhiten` first.

    Raises
    ------
    InputError
        Where no noise is left to measure.

    Notes
    -----
    results/coils/noise.md has every place of many scans, and results/benchmarks/measured-once.md the accuracy on
    simulated scans and with few lines, and what it does to images.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load(FILE).data", data=data)
    return measure_noise(data, correlated=False).source.mean


def noise_from_readout_ends(data: KSpaceData, positions: int) -> bool:
    """Whether noise is to be estimated from the ends of the readout.

    Parameters
    ----------
    data : KSpaceData
        A volume, or planes of it. They have holes, and their noise is not known.
    positions : int
        Of the whole volume: 32 or more.
    """
    known = data.noise_variance is not None or data.noise_covariance is not None
    holes = not all(sampling.whole_lines for sampling in data.samplings)
    return not known and holes and data.volume and positions >= 2 * _ENDS


def with_volume_noise(data: KSpaceData) -> KSpaceData:
    """A volume whose planes have holes, with the noise covariance of the positions at the quieter end of the readout.

    Of one plane with holes there are only its outermost samples to measure noise in, and they hold signal, the more
    the fewer were measured. The positions next to the object, a sixteenth of all of them at either end, hold none.
    Where the object fills the readout at both ends the noise is overestimated, as it would be from one plane; where the
    receiver's filter damps the ends it is underestimated.

    Parameters
    ----------
    data : KSpaceData
        Any scan. It is returned as it is unless `noise_from_readout_ends` the object.

    Returns
    -------
    KSpaceData
        With ``noise_covariance``, E[n n^H] / 2, in units of ``kspace`` squared, and its `NoiseOrigin`; of each coil
        alone where the correlations are those of signal. Without it where the samples there hold no noise, as in
        data that were masked.
    """
    if not noise_from_readout_ends(data, data.n_slices):
        return data
    width, samples = data.n_slices // _ENDS, np.stack([sampling.samples for sampling in data.samplings])
    ends = [slice(0, width), slice(data.n_slices - width, data.n_slices)]
    found = [outer_covariance(data.kspace[part], samples[part]) for part in ends]
    quieter = min((0, 1), key=lambda number: float(np.trace(found[number]).real))
    covariance, part = found[quieter], ends[quieter]
    power = np.linalg.eigvalsh(covariance)
    if not power[0] > 1e-12 * power[-1]:  # zeros, or a coil that repeats another one
        return data
    alone = correlated_by_signal(covariance)
    covariance = np.diag(np.diag(covariance)) if alone else covariance
    origin = NoiseOrigin(source="ends", positions=(part.start, part.stop - 1, data.n_slices), alone=alone)
    return replace(data, noise_covariance=covariance).known(noise=origin)


def prewhiten(data: AnyScan, covariance: NDArray[np.complex128] | None = None) -> AnyScan:
    r"""The same scan with noise that is independent between coils, of variance 1 per real component.

    Every sample is multiplied by :math:`\Psi^{-1/2}`, the Hermitian inverse root of the noise covariance: of
    all whitening matrices the one that changes the coils least, so maps stay as smooth as they were.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Scan with any number of coils.
    covariance : complex array, shape (coil, coil), optional
        :math:`\Psi = E[n n^H] / 2`, Hermitian and positive definite; by default that of the data's noise readouts,
        or that of `measure_noise` where there are none. Samples along a trajectory need one of the two.

    Returns
    -------
    KSpaceData or TrajectoryData
        ``kspace`` in units of the noise's standard deviation, and ``noise_variance`` 1. Coil maps, where
        given, are whitened too and divided by their new root-sum-of-squares :math:`r(x)`; a reference image is
        multiplied by :math:`r(x)`, so that maps times image is still what the coils see. Maps that are zero
        at a pixel stay zero there, and so does the reference. With several coils and no maps the reference
        cannot follow, and is dropped.

    Raises
    ------
    InputError
        On a covariance of another size, that is not Hermitian or not positive definite; and as
        `measure_noise`.
    """
    wanted = "a KSpaceData, as load(FILE).data, or a TrajectoryData"
    require_instance(Scan, wanted=wanted, data=data)
    field, known, cure = "covariance", covariance, ""
    if covariance is None and data.noise_covariance is not None:
        field, known, cure = "noise_covariance", data.noise_covariance, WITHOUT_COVARIANCE
    elif covariance is None and isinstance(data, KSpaceData):
        known = measure_noise(data).covariance
    root = inverse_root(covariance_matrix(field, known, data.n_coils, cure=cure).astype(np.complex128))
    return replace(mixed_coils(data, root), noise_variance=1.0, noise_covariance=None)


def mixed_coils(data: AnyScan, matrix: NDArray[np.complex128]) -> AnyScan:
    """A scan whose coils are combined by ``matrix`` (coils then, coils), with its maps and reference.

    See `prewhiten` for what becomes of these; what is known of the noise stays as it is.
    """
    maps, reference = data.coil_maps, data.reference
    if maps is not None:
        seen = mix_coils(matrix, maps)
        strength = np.linalg.norm(seen, axis=1)
        maps = (seen / np.where(strength > 0, strength, 1)[:, np.newaxis]).astype(np.complex64)
        if reference is not None:
            reference = (reference * strength).astype(np.complex64)
    elif reference is not None:
        single = data.n_coils == 1
        reference = (reference * matrix[0, 0].real).astype(np.complex64) if single else None
    return data.transformed(lambda samples: mix_coils(matrix, samples), coil_maps=maps, reference=reference)


def calibration_lines(data: KSpaceData) -> int:
    """Side of the largest square of measured samples that is centred on the centre of k-space, in all slices."""
    return gapless_square(data.samplings)


def gapless_square(samplings: Iterable[Sampling]) -> int:
    """Side of the largest square of measured samples around the centre of k-space that all slices with lines have."""
    return gapless_side(np.logical_and.reduce([one.samples for one in samplings if one.lines.any()]))


def calibrates_itself(data: KSpaceData) -> bool:
    """Whether coil maps come from the image's own lines; False where a calibration scan holds a larger centre."""
    return _calibrating(data)[0] is data.kspace


def _calibrating(data: KSpaceData) -> tuple[NDArray[np.complex64], int]:
    """Samples that coil maps are estimated from, and the side of the square that all slices have measured of them."""
    own = calibration_lines(data)
    if data.calibration is None:
        return data.kspace, own
    scanned = [measured_samples(stack) for stack in data.calibration if stack.any()]
    side = gapless_side(np.logical_and.reduce(scanned))
    return (data.calibration, side) if side > own else (data.kspace, own)


def estimate_coil_maps(
    data: KSpaceData,
    *,
    lines: int | None = None,
    directions: NDArray[np.complex128] | None = None,
) -> KSpaceData:
    r"""Estimate coil maps (sensitivity maps) by ESPIRiT from central lines (ACS), or those of a calibration scan.

    Maps have unit root-sum-of-squares at every pixel, also outside the object: nothing is cropped
    (``crop=0``). A cropped map would force the image to zero wherever the eigenvalue test failed, which in a
    SENSE model becomes an artefact; an uncropped one leaves the background to the image prior, and keeps
    :math:`S^H S = 1`.

    Only the product of map and image is measured, so a phase per pixel can be put on either side: the combination
    :math:`p^H S` of the maps is real and positive, where p is the direction of coil space with most energy in the
    calibration lines, one for all slices. Maps are then smooth, and the combined image has the phase that one strong
    coil would see.

    Parameters
    ----------
    data : KSpaceData
        Undersampled or not, with a gapless block of lines around the centre. Whiten it first (`prewhiten`).
    lines : int, optional
        Central lines to use at most; 24 by default. The same number of readout samples is used.
    directions : complex array, shape (coil, coil), optional
        `coil_directions` of more slices than these, so that the phase runs on from slice to slice of a volume; by
        default those of the data.

    Returns
    -------
    KSpaceData
        With ``coil_maps``; everything else unchanged. The result is the same in every run.

    Raises
    ------
    InputError
        Where fewer than eight lines around the centre were measured, or the calibration lines hold no signal.

    Notes
    -----
    M. Uecker et al., "ESPIRiT", Magn. Reson. Med. 71 (2014) 990-1001.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load(FILE).data", data=data)
    if data.n_coils == 1:
        return replace(data, coil_maps=np.ones_like(data.kspace))
    width = calibration_width(data, lines)
    directions = coil_directions(calibration_energies(data, lines)) if directions is None else directions
    return replace(data, coil_maps=np.stack([espirit(stack, directions, width) for stack in _calibrating(data)[0]]))


def calibration_width(data: KSpaceData, lines: int | None = None, measured: int | None = None) -> int:
    """Central lines, and samples of each, that `estimate_coil_maps` looks at.

    Parameters
    ----------
    data : KSpaceData
        The scan.
    lines : int, optional
        As `estimate_coil_maps` takes it.
    measured : int, optional
        Side of the measured centre (`gapless_square`), where the data are one slice of a scan whose other slices may
        have a smaller one; by default that of the data.

    Raises
    ------
    InputError
        Where there are fewer than eight, or fewer are requested.
    """
    if lines is not None and lines < FEWEST_FOR_ESPIRIT:
        wanted = f"at least {FEWEST_FOR_ESPIRIT} centre lines for coil calibration"
        cure = f"Begin with more lines ({option('start')}), or calibrate with more ({option('coils.maps', 'auto:24')})."
        raise InputError("calibration lines", str(lines), wanted, cure, ("design.start",))
    samples, side = _calibrating(data)
    own = measured if measured is not None and samples is data.kspace else side
    width = min(own, lines or USUAL_LINES)
    if width < FEWEST_FOR_ESPIRIT:
        got = f"{width} gapless lines and columns around the centre of k-space"
        cure = f"Give coil maps, measure a centre, or let {option('maps', 'nlinv')} take lines with gaps."
        raise InputError("measured", got, f"at least {FEWEST_FOR_ESPIRIT} for coil calibration", cure)
    return width


def calibration_energies(data: KSpaceData, lines: int | None = None) -> NDArray[np.complex128]:
    """Sum over all calibration samples s of s s^H, shape (coil, coil); that of several slices is the sum of theirs.

    Parameters
    ----------
    data : KSpaceData
        As `estimate_coil_maps` takes them.
    lines : int, optional
        As `estimate_coil_maps` takes it.

    Raises
    ------
    InputError
        Where fewer than eight lines around the centre were measured, or they hold no signal.
    """
    width = calibration_width(data, lines)
    centre = central(_calibrating(data)[0], width)
    samples = np.moveaxis(centre, 1, 0).reshape(centre.shape[1], -1).astype(np.complex128)
    if not samples.any():
        raise InputError("kspace", "no signal in the central lines", "signal to calibrate with")
    return np.asarray(samples @ samples.conj().T)


def coil_combined(data: KSpaceData) -> NDArray[np.complex64]:
    r"""Image of a fully sampled scan: :math:`\sum_c \bar S_c x_c` over coil images x with unit maps S.

    This is the least-squares image of the SENSE model where the coils' noise is white (`prewhiten`), with the
    same noise variance at every pixel as one sample has. A single coil without maps gives its own image.

    Parameters
    ----------
    data : KSpaceData
        Fully sampled (zero-filled edges are allowed). Maps are estimated where it has none.

    Returns
    -------
    complex64 array, shape (slice, ky, kx)

    Raises
    ------
    InputError
        Where lines or samples are missing, or maps cannot be estimated.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load(FILE).data", data=data)
    if not data.fully_sampled:
        cure = "Combine a fully sampled scan, or reconstruct this one."
        raise InputError(data.name, "a scan that is not fully sampled", "full sampling", cure)
    if data.coil_maps is None and data.n_coils == 1:
        return np.asarray(to_image(data.kspace[:, 0]), dtype=np.complex64)
    maps = estimate_coil_maps(data).coil_maps if data.coil_maps is None else data.coil_maps
    assert maps is not None
    each = (np.sum(of.conj() * to_image(kspace), axis=0) for of, kspace in zip(maps, data.kspace, strict=True))
    return np.stack([image.astype(np.complex64) for image in each])


def explained_by_maps(data: KSpaceData) -> float:
    """Share of the energy of the central samples that an image seen through the scan's coil maps explains, 0 to 1.

    See `share_explained`; what the noise leaves unexplained is taken off where the noise is known.

    Raises
    ------
    InputError
        Without coil maps.
    """
    if data.coil_maps is None:
        raise InputError("coil_maps", "none", "coil maps to judge")
    noise = data.noise_variance or 0.0
    if data.noise_covariance is not None:
        noise = float(np.mean(np.diagonal(data.noise_covariance).real))
    return share_explained(data.kspace, data.coil_maps, noise)


def gridded_centre(data: TrajectoryData, most: int) -> KSpaceData:
    """The centre of k-space on the grid, in all coils: what coil maps are estimated from.

    Parameters
    ----------
    data : TrajectoryData
        Dense around DC.
    most : int
        Lines and columns at most.

    Returns
    -------
    KSpaceData
        Zero but for a square around DC (`gridded_square`).

    Raises
    ------
    InputError
        Where the samples are dense in a square of fewer than eight lines only.
    """
    side = dense_centre(data.trajectory, min(most, *data.grid_shape))
    if side < FEWEST_FOR_ESPIRIT:
        got = f"samples that are dense in the {side} central lines and columns only"
        cure = "Give coil maps, or measure the centre more densely."
        raise InputError("trajectory", got, f"at least {FEWEST_FOR_ESPIRIT} for coil calibration", cure)
    ky = np.arange(data.grid_shape[0]) - data.grid_shape[0] // 2 + side // 2
    square = gridded_square(data.kspace, data.trajectory, data.grid_shape, side)
    return KSpaceData(square, (ky >= 0) & (ky < side), name=data.name, provenance=data.provenance)


_SMALLEST = 12
"""Shorter axes show no centre."""
_CLEAR = ((0.1, 1.5), (0.03, 5.0))
"""By how much the sum of both measures, each at most about 1, has to be larger than near the place that was expected,
and how many times as strong the strongest sample: either of two pairs."""
_SMALL, _CLEAR_WHERE_FAINT = 24, ((1.0, 10.0),)
"""Shorter axes hardly show more than their centre: a faint centre has to be that much better."""
_STANDS_OUT, _FALLS = 2.0, 0.1
"""By how much the logarithmic energy around the centre has to exceed the medians of its lines and columns, and the
share of the variance of all logarithms that the distance from it has to explain: noise has 1 and hardly any."""
_OUTLIER = 2.0
"""By so much, in logarithmic energy, may a line be stronger than both of its neighbours; the central one is."""


def find_centre(kspace: NDArray[np.complexfloating], samples: NDArray[np.bool_], given: Place | None = None) -> Centre:
    """Find the centre of k-space by the energy of all coils of a slice.

    Where the samples show it near enough (`SAMPLES`, `PART`) it stays where it is expected; near the first sample of an
    axis it is there, as the fast Fourier transform has it.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Of one slice or plane.
    samples : bool array, shape (ky, kx)
        Which of them were measured.
    given : tuple of int, optional
        Line and sample of the centre, if it is known.

    Raises
    ------
    InputError
        Where the given place is not on the grid.
    """
    ky, kx = samples.shape
    known = None if given is None else given_centre((ky, kx), given)
    expected = (ky // 2, kx // 2) if known is None else known.place
    shown = _shown(_energy(kspace), samples, expected)
    if known is not None:
        return known if shown == known.place else replace(known, shown=shown)
    steps = [_apart(int(line), expected[0], ky) for line in np.flatnonzero(samples.any(axis=1))]
    gap = min(steps, default=ky)
    if shown is None:
        return Centre((ky, kx), expected, "assumed", gap=gap)
    corner = [_apart(at, 0, size) <= tolerance(size) for at, size in zip(shown, (ky, kx), strict=True)]
    place = (0 if corner[0] else shown[0], 0 if corner[1] else shown[1])
    return Centre((ky, kx), place, "measured", gap=gap, turned=all(corner) and _split(kspace))


def given_centre(grid: Place, place: Place) -> Centre:
    """A centre that is known.

    Raises
    ------
    InputError
        Where it is not on the grid (ky, kx).
    """
    if not (0 <= place[0] < grid[0] and 0 <= place[1] < grid[1]):
        wanted = f"a line from 0 to {grid[0] - 1} and a sample from 0 to {grid[1] - 1}"
        raise InputError("centre", f"line {place[0]}, sample {place[1]}", wanted)
    return Centre(grid, (place[0], place[1]), "given")


def centred(scan: KSpaceData, centre: Centre) -> KSpaceData:
    """The scan with its centre of k-space at ``N // 2``, and in its provenance where it was.

    Images keep their magnitudes, pixel by pixel: what leaves the grid on one side comes in on the other.
    """
    earlier = scan.provenance.centre
    used = centre if earlier is None or centre.noticeable else earlier
    known = scan.known(centre=used, doubted_lines=_doubted_lines(scan, centre) or scan.provenance.doubted_lines)
    if centre.shift == (0, 0):
        return known
    turn = _turn(scan.grid_shape) if centre.turned else np.ones((1, 1), np.complex64)

    def move(kspace: NDArray[np.complex64]) -> NDArray[np.complex64]:
        return np.asarray(np.roll(kspace, centre.shift, (-2, -1)) * turn, np.complex64)

    reference = scan.reference
    if reference is not None and not centre.turned:  # else it has its origin at its first pixel, as the image has now
        reference = to_image(move(to_kspace(reference))).astype(np.complex64)
    return known.transformed(move, measured=np.roll(scan.measured, centre.shift[0]), reference=reference)


def _doubted_lines(scan: KSpaceData, centre: Centre) -> tuple[int, ...]:
    """Lines that were most likely not measured, numbered as they are after the move."""
    if scan.volume:
        return ()
    held = scan.kspace[scan.n_slices // 2]
    doubted = np.roll(lines_of_noise(held, held.any(axis=(0, 2))), centre.shift[0])
    return tuple(np.flatnonzero(doubted).tolist())


def with_its_centre(scan: KSpaceData, given: Place | None = None) -> KSpaceData:
    """The scan with its centre of k-space, as its middle slice shows it or as it is given, at ``N // 2``."""
    held = [number for number, stack in enumerate(scan.kspace) if stack.any()]
    number = min(held, key=lambda number: abs(number - scan.n_slices // 2))
    samples = scan.samplings[number].samples if scan.n_slices == 1 else measured_samples(scan.kspace[number])
    return centred(scan, find_centre(scan.kspace[number], samples, given))


def summary_with_its_centre(summary: ScanSummary, given: Place | None = None) -> ScanSummary:
    """The summary of the scan that `with_its_centre` makes, by the slice that was read."""
    if summary.part is None:
        return summary
    centre = find_centre(summary.part.kspace[0], summary.samplings[summary.index].samples, given)
    part = centred(summary.part, centre)
    samplings = tuple(Sampling(np.roll(one.samples, centre.shift, (0, 1))) for one in summary.samplings)
    found = part.provenance
    known = replace(summary.provenance, centre=found.centre, doubted_lines=found.doubted_lines)
    return replace(summary, part=part, samplings=samplings, provenance=known)


def strongest_of_lines(kspace: NDArray[np.complexfloating]) -> NDArray[np.float64]:
    """Largest energy of three neighbouring samples of each line of k-space (coil, ky, kx), of all coils together."""
    return np.asarray(_of_three(_energy(kspace)).max(axis=1))


def _energy(kspace: NDArray[np.complexfloating]) -> NDArray[np.float64]:
    return np.asarray(np.sum(np.abs(kspace).astype(np.float64) ** 2, axis=0))


def _of_three(energy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(energy + np.roll(energy, 1, 1) + np.roll(energy, -1, 1))


def _turn(grid: Place) -> NDArray[np.complex64]:
    """Factors (ky, kx) that move the first pixel of an image to ``N // 2``."""
    along = [np.exp(2j * np.pi * (np.arange(size) - size // 2) * (size // 2) / size) for size in grid]
    return np.outer(*along).astype(np.complex64)


def _split(kspace: NDArray[np.complexfloating]) -> bool:
    """Whether most of the image of k-space (coil, ky, kx) lies around its edges: its neighbours have opposite signs."""
    return sum(float(np.vdot(kspace, np.roll(kspace, 1, axis)).real) for axis in (-2, -1)) < 0


def _apart(at: int, other: int, size: int) -> int:
    """Distance of two lines or samples on the circle that an axis of k-space is."""
    return min((at - other) % size, (other - at) % size)


def _neighbourhood(place: Place, grid: Place, reach: int | None = None) -> tuple[NDArray[np.intp], ...]:
    """Slices of the lines and samples around a place, by default as far as a centre counts as the expected one."""
    sides = (min(int(tolerance(size)) if reach is None else reach, (size - 1) // 2) for size in grid)
    return np.ix_(*(np.arange(at - d, at + d + 1) % size for at, d, size in zip(place, sides, grid, strict=True)))


def _shown(energy: NDArray[np.float64], samples: NDArray[np.bool_], expected: Place) -> Place | None:
    """Line and sample of the centre that samples (ky, kx) show, the expected ones where these are near enough.

    None where they show none. It has to be clearly better than the place that was expected, and measured on both sides:
    energy that rises up to the edge of what was measured has its peak beyond.
    """
    ky, kx = grid = (energy.shape[0], energy.shape[1])
    held = energy[samples]
    if min(grid) < _SMALLEST or not held.any():
        return None
    floor = 0.1 * np.median(held) + 1e-12 * held.max()
    logarithm = np.where(samples, np.log(energy + floor), np.nan)
    falls = _fall(_without_outliers(logarithm))
    strength = _local_mean(logarithm - np.maximum(_medians(logarithm, 0), _medians(logarithm, 1)), 2)
    faint, near = strength.max() < _STANDS_OUT, _neighbourhood(expected, grid)
    if falls[samples].max() < _FALLS or (faint and (min(grid) >= _SMALL or not samples[near].all())):
        return None
    both = np.where(samples, strength / max(strength.max(), 1e-12) + falls / falls[samples].max(), -np.inf)
    best = np.unravel_index(int(both.argmax()), grid)
    nearby = _neighbourhood((int(best[0]), int(best[1])), grid, SAMPLES)
    smooth = np.where(samples, _of_three(energy), 0)
    peak = np.unravel_index(int(smooth[nearby].argmax()), both[nearby].shape)
    line, sample = int(nearby[0].ravel()[peak[0]]), int(nearby[1].ravel()[peak[1]])
    steps = np.flatnonzero(np.roll(samples.any(axis=1), -line))
    before, after = ky - int(steps.max(initial=0)), int(steps[steps > 0].min(initial=ky))
    unsure = (before + after) // 2 - 1  # the peak lies anywhere between the neighbours of its line
    off = _apart(line, expected[0], ky) > tolerance(ky) + unsure, _apart(sample, expected[1], kx) > tolerance(kx)
    if not any(off):
        return expected
    better, strong, nearby_strong = both.max() - both[near].max(), smooth[line, sample], smooth[near].max()
    clear = falls[best] >= _FALLS and any(
        better > least and strong > times * nearby_strong for least, times in (_CLEAR_WHERE_FAINT if faint else _CLEAR)
    )
    return (line, sample) if clear and max(before, after) <= max(SAMPLES, ky // 16) else None


def _local_mean(values: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Mean over the measured neighbours of every sample, 0 without any; NaN marks samples that were not measured."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0), known.astype(np.float64)
    for axis in (0, 1):
        steps = range(-reach, reach + 1)
        total, count = (np.sum([np.roll(a, step, axis) for step in steps], axis=0) for a in (total, count))
    return np.asarray(np.where(known, total / np.maximum(count, 1), 0))


def _without_outliers(logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms (ky, kx), NaN where not measured, with lines and columns held down that exceed both neighbours."""
    for axis in (1, 0):
        medians = _medians(logarithm, axis)
        there = np.isfinite(medians)
        beside = np.maximum(np.roll(medians[there], 1), np.roll(medians[there], -1))
        medians[there] = np.maximum(medians[there] - beside - _OUTLIER, 0)
        logarithm = logarithm - medians
    return logarithm


def _medians(logarithm: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Medians along an axis, which is kept, of what was measured; NaN where nothing was."""
    medians = np.full([1 if one == axis else size for one, size in enumerate(logarithm.shape)], np.nan)
    there = np.isfinite(logarithm).any(axis=axis, keepdims=True)
    medians[there] = np.nanmedian(logarithm.compress(there.ravel(), 1 - axis), axis=axis)
    return medians


def _fall(logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the variance of logarithms (ky, kx) that a fall with the distance from each sample explains, 0 to 1.

    A straight line in log(1 + r^2) is fitted around every sample at once: its moments are cyclic correlations.
    """
    known = np.isfinite(logarithm)
    values = np.where(known, logarithm - np.nanmean(logarithm), 0)
    squares = [np.minimum(np.arange(size), size - np.arange(size)) ** 2.0 for size in known.shape]
    slope = -np.log1p(squares[0][:, np.newaxis] + squares[1])

    def moment(weights: NDArray[Any], form: NDArray[np.float64]) -> NDArray[np.float64]:
        product = np.fft.rfft2(weights) * np.conj(np.fft.rfft2(form))
        return np.fft.irfft2(product, s=known.shape) / known.sum()

    spread = moment(known, slope**2) - moment(known, slope) ** 2
    together, variance = moment(values, slope), np.mean(values[known] ** 2)
    return np.where(together > 0, together**2 / np.maximum(spread * variance, 1e-12), 0)
