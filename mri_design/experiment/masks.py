"""Masks without a scan: exactly as many lines as were asked for, by strategies that look at no data or other programs.

The Poisson discs of SigPy and BART come near the acceleration that they are asked for, not to it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategy import DesignView, LineCandidates, rng_of_step
from mri_design.errors import InputError, MissingPackageError, UnknownNameError, UsageError
from mri_design.experiment.extent import DesignPlan, design_seed, require_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import (
    FROM_FILES,
    check_strategy_name,
    kinds_of_masks,
    make_strategy,
    strategy_names,
)
from mri_design.kinds import KINDS, count_text, designed_kinds, gridded_kinds
from mri_design.readouts import Constraints, PlaneReadouts, Readouts
from mri_design.registry import full_name, split_name
from mri_design.scan.trajectories import compensated_spread, spread_of_mask

Flags = NDArray[np.bool_]
_NEAR = 0.1
"""How far from the acceleration SigPy may stay, its own default."""
_BISECTIONS, _SECONDS = 12, 60.0
_BART = "https://mrirecon.github.io/bart"


def sigpy_poisson(plane: PlaneReadouts, side: int, count: int, seed: int) -> Flags:
    """`sigpy.mri.poisson` with more than ``count`` samples, (ky, kz).

    Raises
    ------
    InputError
        Where SigPy finds no mask of that acceleration.
    """
    from sigpy.mri import poisson  # here, because the import takes longer than most masks

    wanted = plane.size / count
    near = min(_NEAR, (wanted - 1) / 4)
    try:
        made = poisson(plane.grid, wanted - near, calib=(side, side), seed=seed, dtype=bool, tol=near)
    except ValueError as error:
        got = f"{wanted:.4g}: SigPy: {error}"
        cure = "Take another acceleration or calibration region, or --kind poisson-disc."
        raise InputError("acceleration", got, "one of which SigPy's poisson makes a mask", cure) from error
    return np.asarray(made, dtype=bool)


def bart_poisson(plane: PlaneReadouts, side: int, count: int, seed: int) -> Flags:
    """`bart poisson -v` with at least ``count`` samples, (ky, kz), of as large an acceleration as has them.

    Raises
    ------
    MissingPackageError
        Where the program bart is not found.
    InputError
        Where it fails, or its densest mask has fewer samples: how many is said.
    """
    program = shutil.which("bart")
    if program is None:
        raise MissingPackageError(
            f"--kind bart-poisson needs the program bart, which is not on the PATH. Get it from {_BART} (Debian and "
            "Ubuntu: apt install bart), or take --kind poisson-disc"
        )
    low, high = 1.0, float(max(plane.grid))
    best = _made_by_bart(program, plane, side, low, seed)  # the densest
    if best.sum() < count:
        raise InputError(
            "acceleration",
            f"{plane.size / count:.4g}",
            f"{plane.size / best.sum():.4g} or more: the densest mask that bart poisson makes has {best.sum()} samples",
            "Ask for fewer samples, or take --kind poisson-disc.",
        )
    for _ in range(_BISECTIONS):
        tried = (low * high) ** 0.5
        made = _made_by_bart(program, plane, side, tried, seed)
        if made.sum() >= count:
            best, low = made, tried
        else:
            high = tried
    return best


def _made_by_bart(program: str, plane: PlaneReadouts, side: int, scale: float, seed: int) -> Flags:
    from mri_design.scan.io.bart import read_pair

    rows, columns = plane.grid
    with tempfile.TemporaryDirectory() as folder:
        sizes = ["-Y", rows, "-Z", columns, "-y", f"{scale:.6f}", "-z", f"{scale:.6f}", "-C", side, "-v", "-s", seed]
        words = [program, "poisson", *map(str, sizes), "mask"]
        try:
            subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=True)
        except subprocess.SubprocessError as error:
            said = str(getattr(error, "stderr", "") or getattr(error, "stdout", "") or error).strip()[:200]
            raise InputError("bart poisson", said, "a mask", "Look at the program.") from error
        return np.asarray(read_pair(Path(folder) / "mask.cfl").reshape(plane.grid, order="F") != 0)


OUTSIDE: Mapping[str, tuple[str, Callable[[PlaneReadouts, int, int, int], Flags]]] = {
    "sigpy-poisson": ("SigPy", sigpy_poisson),
    "bart-poisson": ("BART", bart_poisson),
}
"""Programs and functions by the names that the command line takes: (plane, side of the calibration region, count, seed)
-> flags (ky, kz) of at least ``count`` samples."""


def named_kind(kind: str, axes: int, encoding: str | None = None) -> tuple[str, str]:
    """Strategy and encoding that a kind of mask is.

    Parameters
    ----------
    kind : str
        A strategy that looks at no data, with its setting (``vd-polynomial:3``), an alias, another program's kind
        (`OUTSIDE`), or a family of shots with a set of angles (``radial``, ``spiral:golden``).
    axes : int
        Numbers that the shape has: of two, kinds that know planes are over a plane.
    encoding : str, optional
        What is chosen, where the kind knows several.

    Raises
    ------
    UsageError
        For an unknown kind, one that looks at a scan, or one that does not choose what the encoding says.
    """
    family, setting = split_name(kind)
    if family in KINDS and KINDS[family].shots:
        if encoding not in (None, family):
            raise UsageError(f"--kind {kind} is over {KINDS[family].several}: leave out --encoding {encoding}")
        name, encoding = setting or "half-turn", family
    else:
        name = full_name(kind, {name for each in designed_kinds() for name in strategy_names(each)})
        family, _ = split_name(name)
        knows = [each for each in designed_kinds() if family in strategy_names(each)]
        if family in OUTSIDE:
            knows = [each for each in gridded_kinds() if KINDS[each].square]
        elif family in FROM_FILES:
            knows = list(gridded_kinds())
        elif "draw=" in (setting or ""):
            knows = [each for each in knows if KINDS[each].axes == 1]
        if not knows:
            shots = [each for each in designed_kinds() if KINDS[each].shots]
            on_grid = [name for each in gridded_kinds() for name in kinds_of_masks(each)]
            raise UnknownNameError("kind", family, list(dict.fromkeys([*on_grid, *OUTSIDE, *shots])))
        if encoding is None and all(KINDS[each].shots for each in knows):
            raise UsageError(f"--kind {kind} is a set of angles: say of what, as --kind radial:{kind} or spiral:{kind}")
        encoding = encoding or min(knows, key=lambda each: KINDS[each].axes != axes)
    if family in OUTSIDE and encoding in knows:
        return name, encoding
    if family not in FROM_FILES and family in strategy_names(encoding) and family not in kinds_of_masks(encoding):
        raise UsageError(
            f"--kind {kind} looks at a scan: mri-design design SCAN --strategy {kind}. Kinds of masks without one are "
            f"{', '.join(kinds_of_masks(encoding))}"
        )
    check_strategy_name(name, encoding)
    return name, encoding


@dataclass(frozen=True, kw_only=True)
class DrawnMask:
    """A mask that was made without a scan.

    Parameters
    ----------
    kind : str
        Name of the strategy.
    readouts : Readouts
        What there was to choose from.
    order : tuple of int
        What was chosen, in its order.
    n_start : int
        How many of these, the first ones, were measured before anything was chosen: the centre.
    note : str
        A sentence about how it was made exact, where another program made it; else empty.
    """

    kind: str
    readouts: Readouts
    order: tuple[int, ...]
    n_start: int
    note: str = ""

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True where measured: (ky,), of a plane (ky, kz), or (shot,)."""
        flags = np.zeros(self.readouts.size, dtype=bool)
        flags[list(self.order)] = True
        return flags.reshape(self.readouts.shape)

    @property
    def trajectory(self) -> NDArray[np.float64] | None:
        """Samples of shots (shot, sample, 2), in their order; None on a grid."""
        return self.readouts.trajectory(self.order)

    @property
    def spread(self) -> NDArray[np.complex128]:
        """Point-spread function (y,) or (y, x); of shots with the density of their samples compensated for.

        Raises
        ------
        InputError
            Of shots, where FINUFFT is not installed.
        """
        if self.trajectory is None:
            return spread_of_mask(self.mask)
        return compensated_spread(self.trajectory.reshape(-1, 2), self.readouts.grid)


def draw_mask(
    kind: str,
    grid: tuple[int, int],
    count: int,
    recipe: Recipe,
    *,
    calibration: int | None = None,
    seed: int = 0,
) -> DrawnMask:
    """A mask of exactly ``count`` lines, samples of a plane or shots.

    A strategy's mask is that of `mri-design design` with the same seed, constraints and centre.

    Parameters
    ----------
    kind : str
        Strategy that looks at no data, as `named_kind` has it.
    grid : tuple of int
        (ky, kx), or (ky, kz) of a plane.
    count : int
        How many are measured, the centre included.
    recipe : Recipe
        Its encoding says what is chosen; its constraints hold.
    calibration : int, optional
        Lines, or side of the square, that are fully sampled at the centre; 0 is none, and by default the centre is that
        of the strategy.
    seed : int
        Of everything random.

    Raises
    ------
    UsageError, InputError
        For a kind that there is not, more than may be measured, and a calibration region that is larger than the mask
        or asked of shots.
    """
    encoding = recipe.design.encoding
    if KINDS[encoding].shots:
        from mri_design.experiment.extent import candidates_of  # takes long to import

        if calibration:
            got, cure = f"{calibration} of {KINDS[encoding].several}", "Leave it out: every {} measures the centre."
            raise InputError("calibration region", got, "none", cure.format(KINDS[encoding].unit), ("calibration",))
        shots = candidates_of(recipe, make_strategy(kind, encoding), grid, count, 1)
        return DrawnMask(kind=kind, readouts=shots, order=tuple(range(count)), n_start=0)
    readouts: Readouts = KINDS[encoding].on(grid)  # type: ignore[misc]  # shots are made above
    if calibration is not None:
        if (alone := readouts.calibration_size(calibration)) > count:
            got = f"{count_text(alone, readouts.unit)}, alone more than the mask has"
            wanted = f"at most {count_text(count, readouts.unit)}, which is all that the acceleration leaves"
            cure = "Take a smaller region, or a smaller acceleration."
            raise InputError("calibration region", got, wanted, cure, ("calibration",))
        recipe = recipe.replacing("design", start=max(1, calibration))
    measurable = np.ones(readouts.size, dtype=bool)
    rules = recipe.rules(readouts)
    require_lines(measurable, count, rules, readouts)
    if kind in OUTSIDE:
        return _by_another_program(kind, cast(PlaneReadouts, readouts), count, rules, seed)
    strategy, seed = make_strategy(kind, encoding), design_seed(seed)
    bare = calibration == 0 and not rules.needed(measurable)
    plan = DesignPlan.of(strategy, recipe, readouts)
    first = () if bare else plan.start_lines(measurable, count)
    candidates = LineCandidates(measurable, first, count, len(first), rules, readouts)
    if len(first) < count and readouts.thinned and strategy.chooses_blocks:
        block = strategy.choose_block(DesignView(candidates), rng_of_step(seed, 0), count - len(first))
        candidates = candidates.after(*(choice.line for choice in block))
    for step in range(count - len(candidates.acquired)):
        candidates = candidates.after(strategy.choose(DesignView(candidates), rng_of_step(seed, step)).line)
    return DrawnMask(kind=kind, readouts=readouts, order=candidates.acquired, n_start=len(first))


def _by_another_program(kind: str, plane: PlaneReadouts, count: int, rules: Constraints, seed: int) -> DrawnMask:
    """Exactly ``count`` samples of another program's mask from the centre outwards, those that rules need among them.

    Both programs take an acceleration and come near it: they are asked for a few samples more, and those that are too
    many are left out at random; what lies at the centre stays.
    """
    if not rules.allowed(plane.size).all():
        raise UsageError(
            f"--kind {kind} knows neither a shutter nor partial Fourier: leave them out, or take poisson-disc"
        )
    (program, make), needed = OUTSIDE[kind], rules.needed(np.ones(plane.size, dtype=bool))
    flags = make(plane, round(len(needed) ** 0.5), count, seed).reshape(-1).copy()
    flags[list(needed)] = True
    over = int(flags.sum()) - count
    free = np.setdiff1d(np.flatnonzero(flags), needed)
    flags[np.random.default_rng(seed).choice(free, size=over, replace=False)] = False
    note = f"{program}'s mask has {count_text(over, 'sample')} more, left out at random." if over else ""
    order = tuple(plane.outwards[flags[plane.outwards]].tolist())
    return DrawnMask(kind=kind, readouts=plane, order=order, n_start=len(needed), note=note)
