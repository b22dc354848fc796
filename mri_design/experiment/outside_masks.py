"""Poisson-disc masks of other programs, SigPy and BART, with exactly as many samples as are asked for.

Both programs take an acceleration and come near it. So they are asked for a few samples more, and those that are too
many are left out at random; what lies at the centre stays.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MissingPackageError
from mri_design.readouts import PlaneReadouts

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
        raise InputError(
            "acceleration",
            f"{wanted:.4g}: SigPy: {error}",
            "one of which SigPy's poisson makes a mask",
            "Take another acceleration or calibration region, or --kind poisson-disc.",
        ) from error
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
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise InputError(
                "bart poisson", f"no mask after {_SECONDS:g} s", "a mask", "Look at the program."
            ) from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[:200]
            raise InputError("bart poisson", said or f"exit code {done.returncode}", "a mask", "Look at the program.")
        return np.asarray(read_pair(Path(folder) / "mask.cfl").reshape(plane.grid, order="F") != 0)


@dataclass(frozen=True)
class OutsideKind:
    """A kind of mask by another program.

    Parameters
    ----------
    program : str
        Its name.
    make : callable
        (plane, side of the calibration region, count, seed) -> flags (ky, kz) of at least ``count`` samples.
    """

    program: str
    make: Callable[[PlaneReadouts, int, int, int], Flags]

    def order(self, plane: PlaneReadouts, needed: Sequence[int], count: int, seed: int) -> tuple[tuple[int, ...], int]:
        """Exactly ``count`` samples from the centre outwards, ``needed`` ones among them; how many were left out."""
        side = round(len(needed) ** 0.5)
        flags = self.make(plane, side, count, seed).reshape(-1).copy()
        flags[list(needed)] = True
        free = np.setdiff1d(np.flatnonzero(flags), needed)
        over = int(flags.sum()) - count
        flags[np.random.default_rng(seed).choice(free, size=over, replace=False)] = False
        return tuple(plane.outwards[flags[plane.outwards]].tolist()), over


OUTSIDE: Mapping[str, OutsideKind] = {
    "sigpy-poisson": OutsideKind("SigPy", sigpy_poisson),
    "bart-poisson": OutsideKind("BART", bart_poisson),
}
"""By the names that the command line takes."""
