"""Coil maps: estimated from the centre of k-space (ESPIRiT) or given and held against it, and what they combine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.espirit import central, coil_directions, espirit, gapless_side
from mri_design.errors import InputError, option, require_instance
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import Sampling, measured_samples

MapPhase = Literal["virtual-coil", "image"]
"""Where the phase that maps and image share is put; see `estimate_coil_maps`."""

_USUAL_LINES, _FEWEST_LINES = 24, 8


def calibration_lines(data: KSpaceData) -> int:
    """Side of the largest square of measured samples that is centred on the centre of k-space, in all slices."""
    return gapless_square(data.samplings)


def gapless_square(samplings: Iterable[Sampling]) -> int:
    """Side of the largest square of measured samples around the centre of k-space that all slices with lines have."""
    return _square(sampling.samples for sampling in samplings if sampling.lines.any())


def _square(samples: Iterable[NDArray[np.bool_]]) -> int:
    return gapless_side(np.logical_and.reduce(list(samples)))


def calibrates_itself(data: KSpaceData) -> bool:
    """Whether coil maps come from the image's own lines; False where a calibration scan holds a larger centre."""
    return data.calibration is None or _scanned(data.calibration) <= calibration_lines(data)


def _scanned(calibration: NDArray[np.complex64]) -> int:
    return _square(measured_samples(stack) for stack in calibration if stack.any())


def estimate_coil_maps(
    data: KSpaceData,
    *,
    lines: int | None = None,
    phase: MapPhase = "virtual-coil",
    directions: NDArray[np.complex128] | None = None,
) -> KSpaceData:
    r"""Estimate coil maps (sensitivity maps) by ESPIRiT from central lines (ACS), or those of a calibration scan.

    Maps have unit root-sum-of-squares at every pixel, also outside the object: nothing is cropped
    (``crop=0``). A cropped map would force the image to zero wherever the eigenvalue test failed, which in a
    SENSE model becomes an artefact; an uncropped one leaves the background to the image prior, and keeps
    :math:`S^H S = 1`.

    Only the product of map and image is measured, so a phase per pixel can be put on either side:

    ``"virtual-coil"``
        The combination :math:`p^H S` of the maps is real and positive, where p is the direction of coil space
        with most energy in the calibration lines, one for all slices. Maps are then smooth, and the combined
        image has the phase that one strong coil would see.
    ``"image"``
        In addition the maps take over the phase of the image at the resolution of the calibration lines
        (Hann window), so that the combined image is nearly real. The phase of the object is then no longer in
        the image. Measurements of how real it then is are in results/benchmarks/measured-once.md.

    Parameters
    ----------
    data : KSpaceData
        Undersampled or not, with a gapless block of lines around the centre. Whiten it first (`prewhiten`).
    lines : int, optional
        Central lines to use at most; 24 by default. The same number of readout samples is used.
    phase : {"virtual-coil", "image"}
        Convention for the phase, as above.
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
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    if phase not in get_args(MapPhase):
        raise InputError(field="phase", got=repr(phase), wanted="'virtual-coil' or 'image'")
    if data.n_coils == 1 and phase == "virtual-coil":
        _require_enough(lines)
        return replace(data, coil_maps=np.ones_like(data.kspace))
    width = calibration_width(data, lines)
    source = data.kspace if calibrates_itself(data) or data.calibration is None else data.calibration
    directions = coil_directions(calibration_energies(data, lines)) if directions is None else directions
    maps = np.empty_like(data.kspace)
    for index, stack in enumerate(source):
        maps[index] = espirit(stack, directions, width)
        if phase == "image":
            maps[index] *= _image_phase(stack, maps[index], width)
    return replace(data, coil_maps=maps)


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
        Where there are fewer than eight, or fewer are asked for.
    """
    _require_enough(lines)
    own = calibrates_itself(data)
    if not own and data.calibration is not None:
        measured = _scanned(data.calibration)
    width = min(calibration_lines(data) if measured is None else measured, lines or _USUAL_LINES)
    if width < _FEWEST_LINES:
        raise InputError(
            field="measured",
            got=f"{width} gapless lines and columns around the centre of k-space",
            wanted=f"at least {_FEWEST_LINES} for coil calibration",
            cure=f"Give coil maps, measure a centre, or let {option('maps', 'nlinv')} take lines with gaps.",
        )
    return width


def _require_enough(lines: int | None) -> None:
    if lines is not None and lines < _FEWEST_LINES:
        raise InputError(
            field="calibration lines",
            got=str(lines),
            wanted=f"at least {_FEWEST_LINES} centre lines for coil calibration",
            cure=f"Begin with more lines ({option('start')}), or calibrate with more (calibration_lines under "
            "[coils]).",
        )


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
    centre = central(data.kspace if calibrates_itself(data) or data.calibration is None else data.calibration, width)
    samples = np.moveaxis(centre, 1, 0).reshape(centre.shape[1], -1).astype(np.complex128)
    if not samples.any():
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to calibrate with")
    return np.asarray(samples @ samples.conj().T)


def _image_phase(kspace: NDArray[np.complex64], maps: NDArray[np.complex64], width: int) -> NDArray[np.complex64]:
    """Phase factors (ky, kx) of the combined image at the resolution of the calibration lines."""
    window = np.hanning(width + 2)[1:-1]
    smooth = np.zeros_like(kspace)
    central(smooth, width)[:] = central(kspace, width) * np.outer(window, window)
    image = np.sum(maps.conj() * to_image(smooth), axis=0)
    modulus = np.abs(image)
    return np.asarray(np.where(modulus > 0, image / np.where(modulus > 0, modulus, 1), 1), dtype=np.complex64)


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
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    if not data.fully_sampled:
        raise InputError(
            field=data.name,
            got=f"a scan that is not fully sampled: {data.missing}",
            wanted="full sampling",
            cure="Combine a fully sampled scan, or reconstruct this one.",
        )
    if data.coil_maps is None:
        if data.n_coils == 1:
            return np.asarray(to_image(data.kspace[:, 0]), dtype=np.complex64)
        data = estimate_coil_maps(data)
    assert data.coil_maps is not None
    combined = np.empty((data.n_slices, *data.grid_shape), np.complex64)
    for index in range(data.n_slices):
        combined[index] = np.sum(data.coil_maps[index].conj() * to_image(data.kspace[index]), axis=0)
    return combined


_PART, _MARGIN = 16, 4
"""The centre reaches to one part in 16 of the grid on each side; the image may reach four samples further."""
_DAMPING, _ITERATIONS = 1e-2, 20


def explained_by_maps(data: KSpaceData) -> float:
    r"""Share of the energy of the central samples that an image seen through the coil maps explains, 0 to 1.

    The image u of low resolution minimises :math:`\|y - P F S u\|^2 + 0.01 \|u\|^2`, where P keeps the measured samples
    y of the centre of k-space, F is the Fourier transform and S multiplies with the maps. So an undersampled scan is
    judged as fairly as a complete one, as long as it has clearly more coils than its acceleration. What the noise alone
    leaves unexplained is taken off where the noise is known.

    The right maps explain nearly all. Maps of other coils, in another order, or with rows and columns exchanged explain
    less, far less with many coils. Two coils explain nearly everything with any smooth maps, and cannot be judged. The
    shares of several scans are in results/benchmarks/measured-once.md.

    Parameters
    ----------
    data : KSpaceData
        With coil maps.

    Raises
    ------
    InputError
        Without coil maps.
    """
    if data.coil_maps is None:
        raise InputError(field="coil_maps", got="none", wanted="coil maps to judge")
    noise = data.noise_variance or 0.0
    if data.noise_covariance is not None:
        noise = float(np.mean(np.diagonal(data.noise_covariance).real))
    unexplained = total = 0.0
    for stack, fine_maps in zip(data.kspace, data.coil_maps, strict=True):
        coarse = _coarse(data.grid_shape)
        inner = np.ix_(*(n // 2 - m // 2 + np.arange(m) for n, m in zip(data.grid_shape, coarse, strict=True)))
        samples, maps = stack[:, *inner], fine_maps[:, *_pixels(data.grid_shape, coarse)]
        centre = measured_samples(samples) & _central(coarse, data.grid_shape, 0)
        samples = np.where(centre, samples, 0).astype(np.complex128)
        energy = float(np.sum(np.abs(samples) ** 2))
        if energy > 0:
            lost = energy * _residual(
                samples / np.sqrt(energy),
                maps.astype(np.complex128),
                centre,
                _central(coarse, data.grid_shape, _MARGIN),
            )
            unexplained += max(0.0, lost - 2 * noise * len(stack) * np.count_nonzero(centre))
            total += energy
    return 1 - unexplained / total if total > 0 else 0.0


def _reach(n: int, margin: int) -> int:
    return max(4, n // _PART) + margin


def _coarse(shape: tuple[int, int]) -> tuple[int, ...]:
    """A grid of the same field of view that holds the image's band twice over: maps are smooth enough for it."""
    return tuple(min(n, 2 * (2 * _reach(n, _MARGIN) + 1)) for n in shape)


def _pixels(shape: tuple[int, int], coarse: tuple[int, ...]) -> tuple[NDArray[np.int_], ...]:
    """Where the coarse grid's pixels lie on the fine one."""
    places = (
        np.rint((np.arange(m) - m // 2) * (n / m) + n // 2).astype(int) for n, m in zip(shape, coarse, strict=True)
    )
    return np.ix_(*places)


def _central(coarse: tuple[int, ...], shape: tuple[int, int], margin: int) -> NDArray[np.bool_]:
    inside = np.zeros(coarse, dtype=bool)
    ranges = (
        slice(max(0, m // 2 - _reach(n, margin)), m // 2 + _reach(n, margin) + 1)
        for m, n in zip(coarse, shape, strict=True)
    )
    inside[tuple(ranges)] = True
    return inside


def _residual(
    samples: NDArray[np.complex128], maps: NDArray[np.complex128], centre: NDArray[np.bool_], support: NDArray[np.bool_]
) -> float:
    """Energy of what is left of samples of unit energy, after the best image whose spectrum lies in the support."""
    band = np.flatnonzero(support)

    def seen(u: NDArray[np.complex128]) -> NDArray[np.complex128]:
        spectrum = np.zeros(centre.size, dtype=np.complex128)
        spectrum[band] = u
        return np.asarray(np.where(centre, to_kspace(maps * to_image(spectrum.reshape(centre.shape))), 0))

    def back(r: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.asarray(to_kspace(np.sum(maps.conj() * to_image(r), axis=0)).ravel()[band])

    from scipy.sparse.linalg import LinearOperator, cg  # here: few scans come with maps

    normal = LinearOperator((band.size, band.size), matvec=lambda u: back(seen(u)) + _DAMPING * u, dtype=np.complex128)
    image, _ = cg(normal, back(samples), rtol=1e-3, maxiter=_ITERATIONS)
    return float(np.sum(np.abs(samples - seen(image)) ** 2))
