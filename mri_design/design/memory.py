"""How much memory a design over a plane takes, beside how much there is."""

from __future__ import annotations

import os
from pathlib import Path

from mri_design.errors import InputError, option
from mri_design.readouts import PlaneReadouts

COMPLEX, REAL = 8, 8
"""Bytes of a value: k-space is in single precision, energies are in double."""
DRAWN_COPIES = 4
"""Arrays of the draws' k-space that are alive together: coil images, their transform, and its energies in between."""
IMAGE_COPIES = 24
"""Images per draw and slice: the draw, what a circulant explains of it, and coefficients and right-hand sides."""
COIL_PAIR_COPIES = 6
"""Arrays over pairs of coils that are alive together while a block is thinned (`squared_correlation`)."""
KEPT = 3
"""Numbers per sample that are kept of every block: its score, its expected energy, and its predicted energy."""
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory the programs of a container may take."""


def needed_memory(plane: PlaneReadouts, n_coils: int, draws: int, blocks: int, slices: int = 1) -> int:
    """Bytes that a design takes at its largest, estimated: candidates times coils times draws, and what is kept.

    Parameters
    ----------
    plane : PlaneReadouts
        The candidates.
    n_coils, draws, blocks : int
        Receive coils, posterior draws, and inferences after which a block of samples is chosen.
    slices : int
        That share the mask.
    """
    images = slices * draws * IMAGE_COPIES * COMPLEX
    in_coils = draws * n_coils * DRAWN_COPIES * COMPLEX
    pairs = 0 if n_coils == 1 else n_coils**2 * COIL_PAIR_COPIES * COMPLEX
    data = slices * n_coils * COMPLEX * 2  # k-space and coil maps
    return plane.size * (images + data + max(in_coils, pairs) + blocks * KEPT * REAL)


def available_memory() -> int:
    """Bytes that this machine has, or that a container's limit leaves of it."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(installed, int(CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return installed


def require_memory(
    plane: PlaneReadouts, n_coils: int, draws: int, blocks: int, *, slices: int = 1, processes: int = 1
) -> None:
    """Refuse a design that memory cannot hold.

    Parameters
    ----------
    plane, n_coils, draws, blocks, slices
        As for `needed_memory`.
    processes : int
        Designs that are made side by side.

    Raises
    ------
    InputError
        With the candidates, what they would take, and how much there is.
    """
    needed = processes * needed_memory(plane, n_coils, draws, blocks, slices)
    there = available_memory()
    if needed <= there:
        return
    several = (f" of {slices} slices" if slices > 1 else "") + (f" in {processes} processes" if processes > 1 else "")
    coils = f"{n_coils} coil{'s' if n_coils > 1 else ''}"
    raise InputError(
        field="candidates",
        got=f"{plane.size} samples of a plane with {coils}, {draws} posterior draws and {blocks} blocks{several}, "
        f"which take some {_gigabytes(needed)}",
        wanted=f"at most {_gigabytes(there)}, the memory of this machine",
        cure=f"Choose larger blocks ({option('block')}), take a coarser grid, combine coils, "
        "draw less (inference.samples)" + (f" or use fewer processes ({option('jobs')})." if processes > 1 else "."),
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
