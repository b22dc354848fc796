"""A simulated scanner: images and ellipses become k-space with phase, coils and noise, on a grid or along shots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import skimage  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import (
    InputError,
    require_choice,
    require_counts,
    require_instance,
    require_numbers,
    require_random,
)
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.fields import (
    MOST_COILS,
    TrigonometricSeries,
    checked_shape,
    coil_series,
    normalised_maps,
    phase_series,
    root_sum_of_squares,
    rough_phase,
    simulate_coil_maps,
    smooth_phase,
)

_BRIGHT = 99.5  # percentile of the magnitude that is scaled to one


def bright_level(images: NDArray[Any], name: str) -> float:
    """99.5th percentile of the magnitude.

    Parameters
    ----------
    images : array
        Any shape.
    name : str
        Whose images, for the message.

    Raises
    ------
    InputError
        Where it is zero.
    """
    level = float(np.percentile(np.abs(images), _BRIGHT))
    if not level > 0:
        got = f"a {_BRIGHT}th percentile of the magnitude of {level}"
        raise InputError(name, got, "signal in more than 0.5 % of the pixels")
    return level


def fit_to_matrix(images: NDArray[Any], matrix: int | tuple[int, int] | None) -> NDArray[Any]:
    """Pad a stack with zeros to the aspect of the matrix (centred), then resize to it.

    Parameters
    ----------
    images : real or complex array, shape (slice, row, column)
        Square pixels are assumed. Nothing is cropped: the shorter side is padded.
    matrix : int, (int, int) or None
        Target grid (ky, kx); one number for a square, None to leave the images as they are.

    Returns
    -------
    float64 or complex128 array, shape (slice, ky, kx)
        Where the matrix is smaller, a Gaussian low-pass (skimage's anti-aliasing) precedes linear
        interpolation; where it is larger, the interpolation adds no detail.

    Raises
    ------
    InputError
        On a wrong matrix.
    """
    kind = np.complex128 if np.iscomplexobj(images) else np.float64
    stack = images.astype(kind)
    if matrix is None:
        checked_shape(stack.shape[1:], field="images")
        return stack
    target = checked_shape(matrix, field="matrix")
    shape = _shape_with_aspect(stack.shape[1:], target)  # pixel n // 2 stays the centre
    before = [new // 2 - old // 2 for new, old in zip(shape, stack.shape[1:], strict=True)]
    after = [new - old - b for new, old, b in zip(shape, stack.shape[1:], before, strict=True)]
    stack = np.pad(stack, ((0, 0), *zip(before, after, strict=True)))
    if stack.shape[1:] == target:
        return stack
    return np.stack([_resized(image, target) for image in stack])


def fitted_geometry(
    geometry: SliceGeometry, shape: tuple[int, int], matrix: int | tuple[int, int] | None
) -> SliceGeometry:
    """Size and place of an image of a shape (row, column) after `fit_to_matrix`."""
    if matrix is None:
        return geometry
    target = checked_shape(matrix, field="matrix")
    return geometry.resampled(_shape_with_aspect(shape, target), target)


def _shape_with_aspect(shape: tuple[int, ...], target: tuple[int, int]) -> tuple[int, int]:
    rows, columns = shape
    if rows * target[1] < columns * target[0]:
        return max(rows, round(columns * target[0] / target[1])), columns
    return rows, max(columns, round(rows * target[1] / target[0]))


def _resized(image: NDArray[Any], target: tuple[int, int]) -> NDArray[Any]:
    if np.iscomplexobj(image):
        return _resized(image.real, target) + 1j * _resized(image.imag, target)
    resized: NDArray[Any] = skimage.transform.resize(image, target, order=1, anti_aliasing=True, mode="edge")
    return resized


EllipsePhase = Literal["smooth", "none"]


@dataclass(frozen=True)
class EllipseObject:
    """Scene, coils and noise that all simulated scans of it share, however they sample k-space.

    Parameters
    ----------
    modulations : tuple of TrigonometricSeries
        Phase times sensitivity of each coil; k-space of the scene times these, divided by ``level``, is the scan's.
    level : float
        99.5th percentile of the magnitude of the scene's pixel averages.
    reference : float64 or complex128 array, shape (ky, kx)
        Pixel averages of scene x phase x rho, divided by ``level``, with rho the root-sum-of-squares of the coils.
    maps : complex64 array, shape (coil, ky, kx), or None
        Sensitivities divided by rho at the pixels' centres; None for one coil, which has the sensitivity 1.
    """

    modulations: tuple[TrigonometricSeries, ...]
    level: float
    reference: NDArray[Any]
    maps: NDArray[np.complex64] | None


def drawn_object(
    phantom: EllipsePhantom,
    shape: int | tuple[int, int],
    *,
    phase: EllipsePhase,
    n_coils: int,
    rng: np.random.Generator,
) -> EllipseObject:
    """Draw phase and coils, in this order.

    Parameters
    ----------
    phantom : EllipsePhantom
        The scene.
    shape : int or (int, int)
        Grid (ky, kx) of reference and maps. The same generator state gives the same object on every grid.
    phase : {"smooth", "none"}
        Smooth phase as a trigonometric series (`series.phase_series`), or none.
    n_coils : int
        Receive coils, 1 to 128; their sensitivities are trigonometric series (`coil_maps.coil_series`).
    rng : numpy Generator
        Source of both.

    Raises
    ------
    InputError
        On a wrong setting, or a scene too dark to scale.
    """
    require_instance(EllipsePhantom, wanted="an EllipsePhantom", phantom=phantom)
    require_random(rng)
    grid = checked_shape(shape)
    if phase not in ("smooth", "none"):
        raise InputError("phase", repr(phase), "smooth or none for ellipses")
    wave = phase_series(rng) if phase == "smooth" else None
    coils = coil_series(n_coils, rng)

    def weight(y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.complex128]:
        rho = root_sum_of_squares(coils, y, x)
        return rho.astype(np.complex128) if wave is None else rho * wave.values(y, x)

    truth = phantom.image(grid, weight=weight)
    level = bright_level(truth, phantom.name)
    modulations = tuple(s if wave is None else s * wave for s in coils)
    return EllipseObject(modulations, level, truth / level, None if n_coils == 1 else normalised_maps(coils, grid))


ImagePhase = Literal["own", "smooth", "rough", "none"]


def simulate_scan(
    images: ImageStack,
    *,
    matrix: int | tuple[int, int] | None = None,
    noise: float = 0.007,
    phase: ImagePhase | None = None,
    n_coils: int = 1,
    rng: np.random.Generator,
) -> KSpaceData:
    """Make k-space from images: fit to the matrix, scale, give phase, coils, FFT, white noise.

    Parameters
    ----------
    images : ImageStack
        Magnitude or complex images with square pixels; rows become phase encodes.
    matrix : int or (int, int), optional
        Grid (ky, kx); the images are zero-padded to its aspect and resized without aliasing. Their own grid
        where None.
    noise : float
        Standard deviation of the white noise per real component of k-space, where the stack's magnitude has
        a 99.5th percentile of 1. Zero makes noise-free data with ``noise_variance=None``.
    phase : {"own", "smooth", "rough", "none"}, optional
        The phase of the true image. ``"own"`` keeps that of complex images; ``"smooth"`` and ``"rough"``
        give every slice a new one in its place (the sign of real images stays), ``"none"`` makes
        complex images their magnitude. By default "own" for complex and "smooth" for real images.
    n_coils : int
        Receive coils, 1 to 128, the same for all slices.
    rng : numpy Generator
        Drawn from in the order phase, coils, noise.

    Returns
    -------
    KSpaceData
        All lines measured; ``reference`` is the scaled complex image before coils and noise; ``coil_maps``
        have unit root-sum-of-squares, and are None for one coil, which sees the image itself.

    Raises
    ------
    InputError
        On a wrong setting, "own" phase asked of real images, or images too dark to scale.

    Notes
    -----
    The truth lives on the reconstruction's own grid (an inverse crime, useful because the truth is then
    exact). `simulate_ellipse_scan` does not commit it.
    """
    require_instance(ImageStack, wanted="an ImageStack", images=images)
    require_random(rng)
    require_counts(least=1, most=MOST_COILS, n_coils=n_coils)
    own = np.iscomplexobj(images.images)
    phase = phase or ("own" if own else "smooth")
    require_choice(("own", "smooth", "rough", "none") if own else ("smooth", "rough", "none"), phase=phase)
    truth = fit_to_matrix(images.images, matrix)
    if phase != "own":
        draw = {"smooth": smooth_phase, "rough": rough_phase, "none": lambda shape, rng: np.zeros(shape)}[phase]
        signed = np.abs(truth) if own else truth
        truth = np.stack([image * np.exp(1j * draw(image.shape, rng)) for image in signed])
    truth = truth / bright_level(truth, images.name)
    shape = (truth.shape[1], truth.shape[2])
    maps = None if n_coils == 1 else simulate_coil_maps(shape, n_coils, rng)[None]
    coil_images = truth[:, None] if maps is None else maps * truth[:, None]
    header = {**images.header, "simulated": "from images", "phase": phase}
    made = noisy_scan(CentredFFT(shape)(coil_images), truth, maps, noise, images.name, header, rng)
    if images.geometry is None:
        return replace(made, source=images.source)
    first = fitted_geometry(images.geometry, images.images.shape[1:], matrix)
    places = tuple(first.slice_after(number) for number in range(images.n_slices))
    return replace(made, geometry=places, source=images.source)


def simulate_ellipse_scan(
    phantom: EllipsePhantom,
    shape: int | tuple[int, int],
    *,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
    header: Mapping[str, str] | None = None,
) -> KSpaceData:
    """Make k-space from ellipses without ever rasterising them: phase and coils included, in closed form.

    Parameters
    ----------
    phantom : EllipsePhantom
        The scene; its field of view is the scan's.
    shape : int or (int, int)
        Grid (ky, kx).
    noise : float
        As for `simulate_scan`: standard deviation per real component, relative to the 99.5th percentile of
        the reference's magnitude.
    phase : {"smooth", "none"}
        Smooth phase as a trigonometric series (`series.phase_series`), or none.
    n_coils : int
        Receive coils, 1 to 128; their sensitivities are trigonometric series (`coil_maps.coil_series`).
    rng : numpy Generator
        Drawn from in the order phase, coils, noise.
    header : mapping of str to str, optional
        Provenance to hand on.

    Returns
    -------
    KSpaceData
        All lines measured. With coils, ``coil_maps`` are the sensitivities divided by their
        root-sum-of-squares rho at the pixels' centres, and ``reference`` is the pixel average of
        scene x phase x rho: coil c's image is ``S_c f = (S_c / rho) (rho f)``, so ``rho f`` is what a SENSE
        reconstruction with these maps aims at (rho is within a few per cent of one). One coil: no maps,
        rho = 1.

    Raises
    ------
    InputError
        On a wrong setting, or a scene too dark to scale.

    Notes
    -----
    ``reference`` averages over pixels, k-space is cut at the grid's frequencies: even noise-free and
    complete, the inverse FFT differs from the reference by ringing at edges (how much, is said in
    results/benchmarks/measured-once.md). Errors near that floor do not rank methods. The image that a
    complete noise-free scan shows comes from the same call with ``noise=0`` and a generator of the same seed.
    """
    grid = checked_shape(shape)
    drawn = drawn_object(phantom, grid, phase=phase, n_coils=n_coils, rng=rng)
    maps = None if drawn.maps is None else drawn.maps[None]
    header = {**(header or {}), "simulated": "from ellipses, k-space in closed form", "phase": phase}
    kspace = np.stack(phantom.kspace_of_products(grid, drawn.modulations))[None] / drawn.level
    return noisy_scan(kspace, drawn.reference[None], maps, noise, phantom.name, header, rng)


def with_noise(kspace: NDArray[np.complex128], noise: float, rng: np.random.Generator) -> NDArray[np.complex64]:
    """Samples in single precision with white noise of a standard deviation per real component."""
    require_numbers(noise=noise)
    if noise > 0:
        kspace = kspace + noise * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    return kspace.astype(np.complex64)


def settings_text(noise: float, n_coils: int, shape: tuple[int, ...]) -> dict[str, str]:
    """Entries of a header about the settings of a simulation."""
    return {
        "noise": f"white, standard deviation {noise:g} per real component",
        "coils": str(n_coils),
        "matrix": f"{shape[0]} x {shape[1]}",
    }


def noisy_scan(
    kspace: NDArray[np.complex128],
    truth: NDArray[Any],
    maps: NDArray[np.complex64] | None,
    noise: float,
    name: str,
    header: Mapping[str, str],
    rng: np.random.Generator,
) -> KSpaceData:
    """Add the noise and pack everything that is known about the simulated scan."""
    return KSpaceData(
        kspace=with_noise(kspace, noise, rng),
        measured=np.ones(kspace.shape[-2], dtype=np.bool_),
        name=name,
        noise_variance=noise * noise if noise > 0 else None,
        coil_maps=None if maps is None else np.repeat(maps, kspace.shape[0], axis=0),
        reference=truth.astype(np.complex64),
        header={**header, **settings_text(noise, kspace.shape[1], kspace.shape[2:])},
    )


@dataclass(frozen=True)
class SimulatedShots:
    """Samples along a trajectory, and everything that is known about them.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, sample)
        Scaled as the orthonormal FFT of the grid: sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) of each coil image u.
    trajectory : float64 array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    reference : complex64 array, shape (ky, kx)
        True image on the grid.
    coil_maps : complex64 array, shape (coil, ky, kx), optional
        Unit root-sum-of-squares; None for one coil, which sees the image itself.
    noise_variance : float, optional
        Per real component of a sample; None for noise-free data.
    name : str
        Short name for tables and figures.
    header : mapping of str to str
        Provenance and settings.
    """

    kspace: NDArray[np.complex64]
    trajectory: NDArray[np.float64]
    reference: NDArray[np.complex64]
    coil_maps: NDArray[np.complex64] | None = None
    noise_variance: float | None = None
    name: str = "shots"
    header: Mapping[str, str] = field(default_factory=dict)
