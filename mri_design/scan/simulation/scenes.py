"""A shipped phantom as a simulated scan, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.simulation.ellipse_object import EllipsePhase
from mri_design.scan.simulation.phantoms import (
    phantom_card,
    phantom_kind,
    phantom_path,
    read_shipped_ellipses,
    read_shipped_ellipsoids,
    read_shipped_images,
    text_of_card,
)
from mri_design.scan.simulation.scanner import simulate_ellipse_scan, simulate_scan, simulate_volume_scan
from mri_design.scan.simulation.shots import SimulatedShots, simulate_ellipse_shots

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
    name : {"shepp-logan", "brain", "head-3d", "t2w", "t1w"}
        The first two are ellipse scenes with closed-form k-space (`simulate_ellipse_scan`), the third is a volume of
        ellipsoids (`simulate_volume_scan`), without phase, the others are magnitude slices of 3 T scans
        (`simulate_scan`).
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
    kind = phantom_kind(name)
    grid = _USUAL_SIDE if shape is None else shape
    if kind == "ellipses":
        return simulate_ellipse_scan(
            read_shipped_ellipses(name),
            grid,
            noise=noise,
            phase=cast("EllipsePhase", phase),
            n_coils=n_coils,
            rng=rng,
            card=text_of_card(phantom_card(name)),
        )
    if kind == "ellipsoids":
        if n_coils != 1:
            raise InputError(
                field="coils",
                got=f"{n_coils} for {name}, whose k-space is known in closed form for one coil",
                wanted="1",
                cure="Several coils: phantom:brain, or an image.",
            )
        volume = read_shipped_ellipsoids(name)
        side = _VOLUME_SIDE if shape is None else shape
        return simulate_volume_scan(volume, side, noise=noise, rng=rng, card=text_of_card(phantom_card(name)))
    if kind == "images":
        images = read_shipped_images(name)
        return simulate_scan(images, matrix=grid, noise=noise, phase=phase, n_coils=n_coils, rng=rng)
    raise InputError(
        field="phantom",
        got=f"{name}, a measured scan",
        wanted="a phantom to simulate",
        cure=f"Read {phantom_path(name).name} like any scan file.",
    )


def load_phantom_shots(
    name: str,
    trajectory: ArrayLike,
    *,
    shape: int | tuple[int, int] = _USUAL_SIDE,
    noise: float = 0.007,
    phase: EllipsePhase = "smooth",
    n_coils: int = 1,
    rng: np.random.Generator,
) -> SimulatedShots:
    """Simulate a scan of a shipped ellipse scene along any trajectory.

    Parameters
    ----------
    name : {"shepp-logan", "brain"}
        The scenes whose k-space is known in closed form; images would have to be transformed by what reconstructs them.
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view: spokes of `trajectories.radial`, spirals of `trajectories.spiral`.
    shape, noise, phase, n_coils, rng
        As for `shots.simulate_ellipse_shots`.

    Raises
    ------
    InputError
        On a name that is no ellipse scene, or a wrong setting.
    """
    scan = simulate_ellipse_shots(
        read_shipped_ellipses(name), trajectory, shape, noise=noise, phase=phase, n_coils=n_coils, rng=rng
    )
    return replace(scan, card={**text_of_card(phantom_card(name)), **scan.card})
