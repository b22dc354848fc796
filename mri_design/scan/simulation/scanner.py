"""A simulated scanner: from images, or from ellipses in closed form, to noisy multi-coil k-space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance, require_random
from mri_design.operators.cartesian import CentredFFT
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.simulation.brightness import bright_level
from mri_design.scan.simulation.coil_maps import simulate_coil_maps
from mri_design.scan.simulation.ellipse_object import EllipsePhase, drawn_object
from mri_design.scan.simulation.ellipses import EllipsePhantom
from mri_design.scan.simulation.ellipsoids import EllipsoidPhantom
from mri_design.scan.simulation.phase import no_phase, rough_phase, smooth_phase
from mri_design.scan.simulation.resize import fit_to_matrix, fitted_geometry
from mri_design.scan.simulation.settings import checked_coil_count, checked_noise, checked_shape

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
    noise, n_coils = checked_noise(noise), checked_coil_count(n_coils)
    is_complex = np.iscomplexobj(images.images)
    if phase is None:
        phase = "own" if is_complex else "smooth"
    fitted = fit_to_matrix(images.images, matrix)
    truth = fitted if phase == "own" and is_complex else _with_drawn_phase(fitted, phase, rng)
    truth = truth / bright_level(truth, images.name)
    shape = (truth.shape[1], truth.shape[2])
    maps = None if n_coils == 1 else simulate_coil_maps(shape, n_coils, rng)[None]
    coil_images = truth[:, None] if maps is None else maps * truth[:, None]
    settings = {"simulated": "from images", "phase": phase, **_settings(noise, n_coils, shape)}
    made = _scan(CentredFFT(shape)(coil_images), truth, maps, noise, images.name, {**images.card, **settings}, rng)
    return replace(made, geometry=_places(images, matrix), source=images.source)


def simulate_ellipse_scan(
    phantom: EllipsePhantom,
    shape: int | tuple[int, int],
    *,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
    card: Mapping[str, str] | None = None,
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
    card : mapping of str to str, optional
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
    grid, noise = checked_shape(shape), checked_noise(noise)
    drawn = drawn_object(phantom, grid, phase=phase, n_coils=n_coils, rng=rng)
    maps = None if drawn.maps is None else drawn.maps[None]
    settings = {"simulated": "from ellipses, k-space in closed form", "phase": phase}
    settings |= _settings(noise, n_coils, grid)
    kspace = np.stack(phantom.kspace_of_products(grid, drawn.modulations))[None] / drawn.level
    return _scan(kspace, drawn.reference[None], maps, noise, phantom.name, {**(card or {}), **settings}, rng)


def simulate_volume_scan(
    phantom: EllipsoidPhantom,
    shape: int | tuple[int, int],
    *,
    noise: float = 0.007,
    rng: np.random.Generator,
    card: Mapping[str, str] | None = None,
) -> KSpaceData:
    """Make three-dimensional k-space from ellipsoids in closed form, as one plane (ky, kz) per readout position.

    Parameters
    ----------
    phantom : EllipsoidPhantom
        The scene; its field of view is the scan's.
    shape : int or (int, int)
        Grid (ky, kz) of every plane; the readout has as many samples as ky has.
    noise : float
        As for `simulate_ellipse_scan`; the percentile is that of all voxels.
    rng : numpy Generator
        Draws the noise.
    card : mapping of str to str, optional
        Provenance to hand on.

    Returns
    -------
    KSpaceData
        A slice for every readout position, all measured, one coil, no phase but that of the intensities.
        ``reference`` is the average over voxels, which k-space cut at the grid's frequencies does not show exactly.

    Raises
    ------
    InputError
        On a wrong setting.
    """
    grid, noise = checked_shape(shape), checked_noise(noise)
    truth = phantom.image(grid[0], grid)
    level = bright_level(truth, phantom.name)
    planes = phantom.planes(grid[0], grid)[:, np.newaxis] / level
    settings = {"simulated": "from ellipsoids, k-space in closed form", **_settings(noise, 1, grid)}
    settings["volume"] = f"{grid[0]} readout positions, each a plane (ky, kz) of {grid}"
    return _scan(planes, truth / level, None, noise, phantom.name, {**(card or {}), **settings}, rng)


def _places(images: ImageStack, matrix: int | tuple[int, int] | None) -> tuple[SliceGeometry, ...] | None:
    """Where the slices lie; None where nobody says."""
    if images.geometry is None:
        return None
    _, rows, columns = images.images.shape
    first = fitted_geometry(images.geometry, (rows, columns), matrix)
    return tuple(first.slice_after(number) for number in range(images.n_slices))


def _with_drawn_phase(images: NDArray[Any], phase: str, rng: np.random.Generator) -> NDArray[np.complex128]:
    if phase == "own":
        raise InputError(
            field="phase",
            got="own, for real images",
            wanted="smooth, rough or none",
            cure="Real images carry no phase; leave phase out to draw a smooth one.",
        )
    signed = np.abs(images) if np.iscomplexobj(images) else images
    return np.stack([image * np.exp(1j * _drawn_phase(phase, image.shape, rng)) for image in signed])


def _drawn_phase(phase: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    if phase == "smooth":
        return smooth_phase(shape, rng)
    if phase == "rough":
        return rough_phase(shape, rng)
    if phase == "none":
        return no_phase(shape)
    raise InputError(field="phase", got=repr(phase), wanted="own, smooth, rough or none")


def _settings(noise: float, n_coils: int, shape: tuple[int, int]) -> dict[str, str]:
    return {
        "noise": f"white, standard deviation {noise:g} per real component",
        "coils": str(n_coils),
        "matrix": f"{shape[0]} x {shape[1]}",
    }


def _scan(
    kspace: NDArray[np.complex128],
    truth: NDArray[Any],
    maps: NDArray[np.complex64] | None,
    noise: float,
    name: str,
    card: Mapping[str, str],
    rng: np.random.Generator,
) -> KSpaceData:
    """Add the noise and pack everything that is known about the simulated scan."""
    if noise > 0:
        kspace = kspace + noise * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    return KSpaceData(
        kspace=kspace.astype(np.complex64),
        measured=np.ones(kspace.shape[-2], dtype=np.bool_),
        name=name,
        noise_variance=noise * noise if noise > 0 else None,
        coil_maps=None if maps is None else np.repeat(maps, kspace.shape[0], axis=0),
        reference=truth.astype(np.complex64),
        card=card,
    )
