"""A simulated scanner: phantoms and images become k-space with phase, coils and noise, on a grid or along shots.

Scenes of ellipses, or ellipsoids, are read from JSON, with every row checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import skimage  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import (
    InputError,
    require_choice,
    require_counts,
    require_instance,
    require_numbers,
    require_random,
)
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.safe import ReadLimits, read_json_table
from mri_design.scan.provenance import Provenance
from mri_design.scan.scenes import (
    MOST_COILS,
    EllipsePhantom,
    EllipsoidPhantom,
    checked_shape,
    coil_series,
    normalised_maps,
    phase_series,
    root_sum_of_squares,
    rough_phase,
    series_product,
    series_values,
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


def fit_to_matrix(
    images: NDArray[Any], matrix: int | tuple[int, int] | None, geometry: SliceGeometry | None = None
) -> tuple[NDArray[Any], SliceGeometry | None]:
    """Pad a stack with zeros to the aspect of the matrix (centred), then resize to it.

    Parameters
    ----------
    images : real or complex array, shape (slice, row, column)
        Square pixels are assumed. Nothing is cropped: the shorter side is padded.
    matrix : int, (int, int) or None
        Target grid (ky, kx); one number for a square, None to leave the images as they are.
    geometry : SliceGeometry, optional
        Size and place of the first image.

    Returns
    -------
    images : float64 or complex128 array, shape (slice, ky, kx)
        Where the matrix is smaller, a Gaussian low-pass (skimage's anti-aliasing) precedes linear
        interpolation; where it is larger, the interpolation adds no detail.
    geometry : SliceGeometry or None
        Of the first of them.

    Raises
    ------
    InputError
        On a wrong matrix.
    """
    kind = np.complex128 if np.iscomplexobj(images) else np.float64
    stack, (rows, columns) = images.astype(kind), images.shape[1:]
    if matrix is None:
        checked_shape((rows, columns), field="images")
        return stack, geometry
    target = checked_shape(matrix, field="matrix")
    shape = rows, max(columns, round(rows * target[1] / target[0]))
    if rows * target[1] < columns * target[0]:
        shape = max(rows, round(columns * target[0] / target[1])), columns
    before = [new // 2 - old // 2 for new, old in zip(shape, (rows, columns), strict=True)]  # pixel n // 2 stays
    after = [new - old - b for new, old, b in zip(shape, (rows, columns), before, strict=True)]
    stack = np.pad(stack, ((0, 0), *zip(before, after, strict=True)))
    stack = stack if shape == target else np.stack([_resized(image, target) for image in stack])
    return stack, None if geometry is None else geometry.resampled(shape, target)


def _resized(image: NDArray[Any], target: tuple[int, int]) -> NDArray[Any]:
    if np.iscomplexobj(image):
        return _resized(image.real, target) + 1j * _resized(image.imag, target)
    resized: NDArray[Any] = skimage.transform.resize(image, target, order=1, anti_aliasing=True, mode="edge")
    return resized


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
        give every slice a new phase (the sign of real images stays), ``"none"`` makes
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
        On a wrong setting, "own" phase requested of real images, or images too dark to scale.

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
    truth, first = fit_to_matrix(images.images, matrix, images.geometry)
    if phase != "own":
        draw = {"smooth": smooth_phase, "rough": rough_phase, "none": lambda shape, rng: np.zeros(shape)}[phase]
        signed = np.abs(truth) if own else truth
        truth = np.stack([image * np.exp(1j * draw(image.shape, rng)) for image in signed])
    truth = truth / bright_level(truth, images.name)
    shape = (truth.shape[1], truth.shape[2])
    maps = None if n_coils == 1 else simulate_coil_maps(shape, n_coils, rng)
    coil_images = truth[:, None] if maps is None else maps * truth[:, None]
    known: dict[str, Any] = {"name": images.name, "header": {**images.header, "phase": phase}, "source": images.source}
    known["provenance"] = replace(images.provenance, simulated="images")
    if first is not None:
        known["geometry"] = tuple(first.slice_after(number) for number in range(images.n_slices))
    made: KSpaceData = _noisy_scan(CentredFFT(shape)(coil_images), truth, maps, noise, rng, **known)
    return made


EllipsePhase = Literal["smooth", "none"]


def simulate_ellipse_scan(
    phantom: EllipsePhantom,
    shape: int | tuple[int, int],
    *,
    trajectory: ArrayLike | None = None,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> Any:
    """Make k-space from ellipses without ever rasterising them: phase and coils included, in closed form.

    Parameters
    ----------
    phantom : EllipsePhantom
        The scene; its field of view is the scan's.
    shape : int or (int, int)
        Grid (ky, kx).
    trajectory : float array, shape (..., 2), optional
        Columns (ky, kx) in cycles per field of view, shot after shot; all lines of the grid by default.
    noise : float
        As for `simulate_scan`: standard deviation per real component, relative to the 99.5th percentile of
        the reference's magnitude.
    phase : {"smooth", "none"}
        Smooth phase as a trigonometric series (`phase_series`), or none.
    n_coils : int
        Receive coils, 1 to 128; their sensitivities are trigonometric series (`coil_series`).
    rng : numpy Generator
        Drawn from in the order phase, coils, noise: one state gives one object on every grid and trajectory.

    Returns
    -------
    KSpaceData or TrajectoryData
        All samples measured. With coils, ``coil_maps`` are the sensitivities divided by their
        root-sum-of-squares rho at the pixels' centres, and ``reference`` is the pixel average of
        scene x phase x rho: coil c's image is ``S_c f = (S_c / rho) (rho f)``, so ``rho f`` is what a SENSE
        reconstruction with these maps aims at (rho is within a few per cent of one). One coil: no maps,
        rho = 1.

    Raises
    ------
    InputError
        On a wrong setting, a scene too dark to scale, and a trajectory that leaves the grid or is in other units.

    Notes
    -----
    ``reference`` averages over pixels, k-space is cut at the grid's frequencies: even noise-free and
    complete, the inverse FFT differs from the reference by ringing at edges (results/benchmarks/measured-once.md
    has numbers). Errors near that floor do not rank methods. The image that a
    complete noise-free scan shows comes from the same call with ``noise=0`` and a generator of the same seed.
    """
    require_instance(EllipsePhantom, wanted="an EllipsePhantom", phantom=phantom)
    require_random(rng)
    grid = checked_shape(shape)
    shots = None if trajectory is None else checked_trajectory(trajectory, grid)
    require_choice(get_args(EllipsePhase), phase=phase)
    wave = phase_series(rng) if phase == "smooth" else None
    coils = coil_series(n_coils, rng)

    def weight(y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.complex128]:
        rho = root_sum_of_squares(coils, y, x)
        return rho.astype(np.complex128) if wave is None else rho * series_values(wave, y, x)

    truth = phantom.image(grid, weight=weight)
    level = bright_level(truth, phantom.name)
    maps = None if n_coils == 1 else normalised_maps(coils, grid)
    modulations = [one if wave is None else series_product(one, wave) for one in coils]
    if shots is None:
        kspace = phantom.kspace(grid, modulations)[None]
    else:
        kspace = phantom.samples(shots.reshape(-1, 2), grid, modulations)[None]
    known: dict[str, Any] = {"name": phantom.name, "header": {"phase": phase}}
    known["provenance"] = Provenance(simulated="ellipses")
    return _noisy_scan(kspace / level, truth[None] / level, maps, noise, rng, shots=shots, **known)


def _noisy_scan(
    kspace: NDArray[np.complex128],
    truth: NDArray[Any],
    maps: NDArray[np.complex64] | None,
    noise: float,
    rng: np.random.Generator,
    *,
    shots: NDArray[np.float64] | None = None,
    header: Mapping[str, str],
    **known: Any,
) -> Any:
    """Add white noise and pack everything that is known about the simulated scan, on a grid or along shots."""
    require_numbers(noise=noise)
    if noise > 0:
        kspace = kspace + noise * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    rows, columns = truth.shape[-2:]
    known |= {
        "noise_variance": noise * noise if noise > 0 else None,
        "coil_maps": None if maps is None else np.repeat(maps[None], kspace.shape[0], axis=0),
        "reference": truth.astype(np.complex64),
        "header": {
            **header,
            "noise": f"white, standard deviation {noise:g} per real component",
            "coils": str(kspace.shape[1]),
            "matrix": f"{rows} x {columns}",
        },
    }
    samples = kspace.astype(np.complex64)
    if shots is None:
        return KSpaceData(samples, np.ones(rows, dtype=np.bool_), **known)
    count = int(np.prod(shots.shape[:-2]))
    return TrajectoryData(samples, shots.reshape(-1, 2), (rows, columns), n_readouts=count, **known)


_TABLES = ReadLimits(max_text_bytes=1 << 20)
PhantomKind = Literal["ellipses", "ellipsoids", "images", "kspace"]
"""A table of ellipses or of ellipsoids, a magnitude slice from which k-space is simulated, or raw measured k-space."""

PHANTOMS: dict[str, tuple[str, str, PhantomKind]] = {
    "shepp-logan": ("shepp_logan.json", "shepp_logan.header.json", "ellipses"),
    "brain": ("brain.json", "brain.header.json", "ellipses"),
    "head-3d": ("head_3d.json", "head_3d.header.json", "ellipsoids"),
    "t2w": ("t2w_6A_slice.npz", "t2w_6A_slice.json", "images"),
    "t1w": ("t1w_7A_slice.npz", "t1w_7A_slice.json", "images"),
    "t1w-6a": ("t1w_6A_slice.npz", "t1w_6A_slice.json", "images"),
    "lf-gre": ("lf_6A_gre_slice.npy", "lf_6A_gre_slice.json", "kspace"),
    "lf-fse": ("lf_7A_fse_volume.npz", "lf_7A_fse_volume.json", "kspace"),
    "head-16ch": ("head_16ch_slice.npz", "head_16ch_slice.json", "kspace"),
}
"""Shipped phantoms by name: the files of the data and of the header, and the kind."""


def phantoms_folder() -> Path:
    """The folder of the shipped phantoms, in a checkout or in an installed package.

    Raises
    ------
    InputError
        Where neither place has it: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "phantoms", package.parent / "phantoms"):
        if (folder / PHANTOMS["shepp-logan"][0]).is_file():
            return folder
    got = "no folder with phantoms, neither inside the package nor next to it"
    raise InputError("phantoms", got, "the data files that belong to it", "Install mri-design again.")


def shipped_phantom(name: str) -> tuple[PhantomKind, Path, dict[str, Any]]:
    """Kind, data file and header (source, licence, checksum ``sha256``, caveats) of a shipped phantom.

    Raises
    ------
    InputError
        On an unknown name or an incomplete installation.
    """
    if not isinstance(name, str) or name not in PHANTOMS:
        raise InputError("phantom", repr(name), "one of " + ", ".join(PHANTOMS))
    (data, header, kind), folder = PHANTOMS[name], phantoms_folder()
    return kind, folder / data, read_json_table(folder / header, _TABLES)


def read_shipped(name: str) -> tuple[EllipsePhantom | EllipsoidPhantom | ImageStack, dict[str, str]]:
    """A shipped scene or magnitude slice by name, and the entries of its header that people read.

    Raises
    ------
    InputError
        On an unknown name, a measured scan, or a file that does not match its header.
    """
    kind, path, header = shipped_phantom(name)
    if kind == "kspace":
        cure = f"Read {path.name} like any scan file."
        raise InputError("phantom", f"{name}, a measured scan", "a phantom to simulate", cure)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != header.get("sha256"):
        cure = "The file was changed or damaged; install mri-design again."
        raise InputError(path.name, f"checksum {checksum[:12]}...", "the checksum on its header", cure)
    wanted = ("title", "anatomy", "subject", "sequence", "licence", "citation", "caveat")
    text = {key: str(header[key]) for key in wanted if key in header}
    if kind != "images":
        return _scene(name, read_json_table(path, _TABLES)[kind]), text
    with np.load(path, allow_pickle=False) as archive:
        return ImageStack(archive[header["key"]].astype(np.float32), name, text), text


def _scene(name: str, rows: list[dict[str, Any]]) -> EllipsePhantom | EllipsoidPhantom:
    """The scene of a table of ellipses or ellipsoids whose checksum has been seen."""
    centres, axes = (np.array([row[field] for row in rows], dtype=float) for field in ("centre", "semi_axes"))
    strengths = np.array([complex(*one) if isinstance(one := row["intensity"], list) else one for row in rows])
    if centres.shape[1] == 3:
        return EllipsoidPhantom(centres, axes, strengths, name)
    return EllipsePhantom(centres, axes, np.deg2rad([row["angle_degrees"] for row in rows]), strengths, name)


_USUAL_SIDE, _VOLUME_SIDE = 256, 64


def load_phantom(
    name: str,
    *,
    shape: int | tuple[int, int] | None = None,
    noise: float = 0.007,
    phase: Literal["smooth", "rough", "none"] = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> KSpaceData:
    """Simulate a scan of a shipped phantom.

    Parameters
    ----------
    name : {"shepp-logan", "brain", "head-3d", "t2w", "t1w", "t1w-6a"}
        The first two are ellipse scenes with closed-form k-space (`simulate_ellipse_scan`), the third is a volume of
        ellipsoids in one coil without phase, a plane (ky, kz) for every readout position, the others are magnitude
        slices of 3 T scans (`simulate_scan`).
    shape : int or (int, int), optional
        Grid (ky, kx); 256 x 256 where None, of the volume 64 x 64 (ky, kz) at 64 positions. One field of view
        whatever the grid for ellipses; slices are padded to its aspect.
    noise : float
        Standard deviation per real component, relative to a 99.5th percentile of 1.
    phase : {"smooth", "rough", "none"}
        Phase to draw; ellipse scenes know no rough one.
    n_coils : int
        Receive coils, 1 to 128.
    rng : numpy Generator
        Drawn from in the order phase, coils, noise.

    Returns
    -------
    KSpaceData
        With reference, noise variance and, for several coils, coil maps.

    Raises
    ------
    InputError
        On an unknown name, a raw scan's name, or a wrong setting.
    """
    scene, header = read_shipped(name)
    grid = _USUAL_SIDE if shape is None else shape
    if isinstance(scene, ImageStack):
        return simulate_scan(scene, matrix=grid, noise=noise, phase=phase, n_coils=n_coils, rng=rng)
    made: KSpaceData
    if isinstance(scene, EllipsePhantom):
        own = cast("EllipsePhase", phase)
        made = simulate_ellipse_scan(scene, grid, noise=noise, phase=own, n_coils=n_coils, rng=rng)
        return replace(made, header={**header, **made.header})
    if n_coils != 1:
        got = f"{n_coils} for {name}, whose k-space is known in closed form for one coil"
        raise InputError("coils", got, "1", "Several coils: phantom:brain, or an image.")
    grid = checked_shape(_VOLUME_SIDE if shape is None else shape)
    truth = scene.image(grid[0], grid)
    level = bright_level(truth, scene.name)
    planes = scene.planes(grid[0], grid)[:, np.newaxis] / level
    known: dict[str, Any] = {"name": scene.name, "header": header, "volume": True}
    known["provenance"] = Provenance(simulated="ellipsoids")
    made = _noisy_scan(planes, truth / level, None, noise, rng, **known)
    return made


def load_phantom_shots(
    name: str,
    trajectory: ArrayLike,
    *,
    shape: int | tuple[int, int] = _USUAL_SIDE,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> TrajectoryData:
    """Simulate a scan of a shipped ellipse scene along any trajectory, phase and coils included, in closed form.

    Reference and maps mean what they mean in `simulate_ellipse_scan`, and of one state of the generator both are scans
    of one object. No image on the grid explains noise-free samples exactly: see `EllipsePhantom.samples`.

    Parameters
    ----------
    name : {"shepp-logan", "brain"}
        The scenes whose k-space is known in closed form; images would have to be transformed by what reconstructs them.
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view: of `radial_spokes`, or `spiral_readout`. Shots follow one another.
    shape, noise, phase, n_coils, rng
        As for `simulate_ellipse_scan`; the grid sets the scale of the samples.

    Returns
    -------
    TrajectoryData
        One slice, whose readouts are those of the trajectory, with its reference and noise variance and, of several
        coils, with their maps.

    Raises
    ------
    InputError
        On a name that is no ellipse scene, a wrong setting, and a trajectory that leaves the grid or is in other units.
    """
    scene, header = read_shipped(name)
    if not isinstance(scene, EllipsePhantom):
        fitting = ", ".join(other for other, entry in PHANTOMS.items() if entry[2] == "ellipses")
        raise InputError("phantom", f"{name} ({PHANTOMS[name][2]})", f"one of {fitting}")
    made: TrajectoryData = simulate_ellipse_scan(
        scene, shape, trajectory=trajectory, noise=noise, phase=phase, n_coils=n_coils, rng=rng
    )
    return replace(made, header={**header, **made.header})
