"""Shots to choose from, as a recipe describes them, and what they would measure of a fully sampled scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mri_design.design.fixed import FixedAngles
from mri_design.design.strategy import Strategy
from mri_design.design.training import truth_or_none
from mri_design.errors import InputError, positive_number
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, Kind
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.operators.trajectory import equispaced_angles, radial_spokes, turned
from mri_design.readouts import Readouts, ShotReadouts
from mri_design.registry import require_part
from mri_design.scan.trajectories import GradientLimits, nyquist_turns, spiral_readout

if TYPE_CHECKING:
    from mri_design.model.slice import SliceModel
    from mri_design.scan.simulation import EllipsePhase

MakesShot = Callable[[int, int], NDArray[np.float64]]
"""(side of the square grid, shots of the design) -> one shot at angle 0, (sample, 2): columns (ky, kx) in cycles per
field of view."""
SPIRAL_LIMITS = GradientLimits(amplitude=0.04, slew=150.0)
"""How fast arms of spirals are played; a script that needs other limits registers arms of its own."""
SPIRAL_FIELD_OF_VIEW = 0.24
"""Metres over which the grid of arms of spirals extends."""
ANGLES_PER_SHOT = 4
"""Equispaced angles to choose from, for each shot of a design."""


def register_trajectory(name: str, make: MakesShot, *, unit: str, several: str = "", turn: float = 2 * np.pi) -> None:
    """Make a family of shots known by a name, for recipes, ``--encoding`` and the runs.

    A design then chooses among shots turned to equispaced angles, or takes a fixed set of them.

    Parameters
    ----------
    name : str
        Of the encoding, in lower case.
    make : callable
        (side of the grid, shots of the design) -> one shot, (sample, 2), that comes near DC somewhere.
    unit, several : str
        What one is called, and what several are ("petal", "petals").
    turn : float
        The angle over which different shots are spread: pi where a shot runs through DC, 2 pi where it begins there.

    Raises
    ------
    InputError
        For a name that `require_part` refuses or that is that of lines, a plane, or readouts, something that makes no
        shot, and no unit.
    """
    require_part("trajectory", name, make, "a function that makes one shot")
    if name in KINDS and not KINDS[name].shots:
        raise InputError(field="trajectory", got=repr(name), wanted="a name that is no other encoding's")
    if not unit:
        raise InputError(field="unit", got="nothing", wanted="what one shot is called")
    KINDS[name] = Kind(unit, "shots", several or f"{unit}s", positive_number("turn", turn), make)


MOST_VALUES = 1 << 24
"""Samples of all candidates and coils together; a dozen posterior draws of them take 1.6 GB."""
RIM_ACCELERATION = 4.0
"""Spirals: so many times the shots (half the matrix at most) would leave no gap at the rim of k-space."""
_SAMPLES_AT_ONCE = 4
"""Receivers of some scanners count samples by fours."""


def candidates_of(
    recipe: Recipe, strategy: Strategy, grid: tuple[int, int], count: int | None, n_coils: int = 1
) -> Readouts:
    """The candidates of a design of ``count``: lines or samples of the grid, or shots.

    Parameters
    ----------
    recipe : Recipe
        Its ``design.encoding`` names the family.
    strategy : Strategy
        A set of fixed angles (`FixedAngles`) has its own instead of equispaced ones.
    grid : tuple of int
        Pixels (ky, kx); shots take them for squares: along the shorter side they reach less far in cycles per field of
        view.
    count : int
        Shots in the end, of which there are as many as are asked for.
    n_coils : int
        Receive coils.

    Raises
    ------
    InputError
        For more samples than `MOST_VALUES`.
    """
    family, kind = recipe.design.encoding, KINDS[recipe.design.encoding]
    if kind.on is not None:
        readouts: Readouts = kind.on(grid)
        return readouts
    assert kind.shot is not None and count is not None
    if isinstance(strategy, FixedAngles):
        angles = strategy.angles(count, kind.turn)
    else:
        angles = equispaced_angles(ANGLES_PER_SHOT * count, turn=kind.turn)
    matrix = max(grid)
    one = kind.shot(matrix, count)
    if len(angles) * len(one) * n_coils > MOST_VALUES:
        got = f"{len(angles)} shots of {len(one)} samples in {n_coils} coils"
        wanted = f"at most {MOST_VALUES} samples in all, which memory can hold with a dozen posterior draws"
        raise InputError("number of shots", got, wanted, "Ask for fewer shots, or a coarser grid.", ("shots", "lines"))
    every = turned(one, angles) * (np.array(grid) / matrix)
    return ShotReadouts(grid, every, family, tuple(angles.tolist()))


def spoke(matrix: int, count: int) -> NDArray[np.float64]:
    """One spoke through DC, (sample, 2)."""
    return radial_spokes(matrix, [0.0], oversampling=1)[0]


def arm(matrix: int, count: int) -> NDArray[np.float64]:
    """One arm of a spiral as a gradient system plays it, (sample, 2)."""
    full = max(1, min(round(RIM_ACCELERATION * count), matrix // 2))
    turns = nyquist_turns(matrix, full)
    made = spiral_readout(matrix, turns, SPIRAL_LIMITS, field_of_view=SPIRAL_FIELD_OF_VIEW)
    return made.samples[: len(made.samples) // _SAMPLES_AT_ONCE * _SAMPLES_AT_ONCE]


def slice_of(
    on_grid: SliceModel,
    readouts: Readouts,
    source: str,
    reference: Callable[[], Array | None],
    recipe: Recipe,
    seed: int,
) -> SliceModel:
    """A slice as the readouts measure it: itself on a grid, else `shot_slice`, of closed forms where these are known.

    Parameters
    ----------
    on_grid : SliceModel
        The slice, sampled in full where its readouts are to be shots.
    readouts : Readouts
        The candidates.
    source : str
        File or phantom that it comes from.
    reference : callable
        () -> its image (ky, kx) or None, which may be that behind its data (`truth_or_none`).
    recipe : Recipe
        How phantoms are simulated.
    seed : int
        Of noise and simulation.
    """
    if readouts.kind.on_grid:
        return on_grid
    shots = cast(ShotReadouts, readouts)
    known = closed_form_samples(source, shots, on_grid.n_coils, recipe, seed)
    truth = truth_or_none(on_grid, reference()) if known is None else None
    return shot_slice(on_grid, shots, np.random.default_rng([seed, 1, 1]), truth=truth, known=known)


def closed_form_samples(source: str, shots: ShotReadouts, n_coils: int, recipe: Recipe, seed: int) -> Array | None:
    """Samples (coil, shot, sample) of a scene of ellipses, noise included; None where the input is none.

    They are of the very object that `load_scan` simulates with the same seed.
    """
    from mri_design.experiment.inputs import PHANTOM_PREFIX
    from mri_design.scan.simulation import load_phantom_shots, phantom_kind, phantom_names

    name = source.removeprefix(PHANTOM_PREFIX)
    if name == source or name not in phantom_names() or phantom_kind(name) != "ellipses":
        return None
    settings = recipe.simulation
    phase = "smooth" if settings.phase in (None, "own") else settings.phase
    made = load_phantom_shots(
        name,
        shots.shots,
        shape=shots.grid,
        noise=settings.noise,
        phase=cast("EllipsePhase", phase),
        n_coils=n_coils,
        rng=np.random.default_rng([seed, 1]),
    )
    return made.kspace.reshape(n_coils, *shots.shots.shape[:2])


def shot_slice(
    scan: SliceModel, shots: ShotReadouts, rng: np.random.Generator, *, truth: Array | None, known: Array | None = None
) -> SliceModel:
    """A slice whose candidates are shots, from one that was sampled in full on the grid.

    Parameters
    ----------
    scan : SliceModel
        The slice on the grid.
    shots : ShotReadouts
        The candidates.
    rng : numpy Generator
        Of the noise of the samples.
    truth : complex array, shape (ky, kx), or None
        The noise-free image, where it is known: its non-uniform transform with new noise is what shots measure.
        Otherwise it is that of each coil's own image, whose noise is white on the grid, and correlated between samples
        of shots that lie closer than those of the grid.
    known : complex array, shape (coil, shot, sample), optional
        The samples, where they are known already.

    Raises
    ------
    InputError
        Where samples of the grid are missing; where FINUFFT is not installed.
    """
    if scan.samples is not None or not scan.measured.all():
        wanted = "a fully sampled scan, of which the samples along shots are made"
        raise InputError("k-space", "samples without data", wanted, "recon takes scans with holes.")
    laid_out = (scan.n_coils, *shots.shots.shape[:2])
    if known is None and truth is not None:
        exact = shots.rows(range(shots.size), scan.maps)(np.asarray(truth))
        noise = rng.standard_normal((2, *exact.shape)) * np.sqrt(scan.noise_variance)
        known = (exact + noise[0] + 1j * noise[1]).reshape(laid_out)
    elif known is None:
        images = CentredFFT(scan.shape).adjoint(scan.kspace)
        one = NonUniformFourier(shots.shots.reshape(-1, 2), shots.grid)
        known = one(images).reshape(laid_out)
    everything = np.ones(shots.size, dtype=bool)
    samples = np.asarray(known, dtype=np.complex64)
    return replace(scan, kspace=samples, measured=everything, readouts=shots)
