"""BART's ``pics -R T`` as a system package, on exactly our objective.

    f(u) = 1/2 ||y - X u||^2 + lambda TV(u)

BART's Fourier transform is unitary and centred as ours; ``-w 1`` keeps it from scaling the data. One term ``T:3:0``
couples both differences of a pixel (isotropic), two terms ``T:1:0`` and ``T:2:0`` do not (anisotropic). BART's
differences are periodic and look backward, ours forward, which matters where they are coupled: the image is reflected
through its centre on the way in and out. With these BART's limit is our minimum to the last digits of single precision.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from parts.problem import Problem

from mri_design.operators.base import Array

MOST_ITERATIONS = 20_000


@dataclass(frozen=True)
class BartRun:
    """One call: the image and seconds, by BART's own clock (with reading and setting up) or of the process."""

    image: Array
    seconds: float


def bart_path() -> str | None:
    """Where the ``bart`` program is, or None."""
    return shutil.which("bart")


def bart_version() -> str:
    """As ``bart version`` says it."""
    program = bart_path()
    if program is None:
        return "not installed"
    return subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.strip()


class BartTotalVariation:
    """``pics`` with ADMM on one problem; files live in ``folder``.

    Parameters
    ----------
    problem : Problem
        Data and lambda.
    isotropic : bool
        Which total variation.
    folder : Path
        An empty folder for BART's files.
    """

    def __init__(self, problem: Problem, isotropic: bool, folder: Path) -> None:
        self.folder, self.isotropic = folder, isotropic
        kspace, maps = problem.zero_filled_kspace(), problem.maps()
        write_cfl(folder / "kspace", reflected(kspace).transpose(2, 1, 0)[:, :, None, :])
        write_cfl(folder / "maps", reflected(maps).transpose(2, 1, 0)[:, :, None, :])
        weight = f"{problem.weight:.9g}"
        terms = ["T:3:0:"] if isotropic else ["T:1:0:", "T:2:0:"]
        self.penalty = [word for term in terms for word in ("-R", term + weight)]

    def run(self, iterations: int, rho: float) -> BartRun:
        """``iterations`` conjugate-gradient iterations in all, which is how ``-i`` counts with ADMM."""
        program = bart_path()
        if program is None:
            raise FileNotFoundError("bart is not installed")
        command = [program, "pics", "-w", "1", "-m", "-u", f"{rho:g}", "-i", str(iterations), *self.penalty]
        done = subprocess.run(
            [*command, "kspace", "maps", "image"],
            cwd=self.folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        clock = re.search(r"Total Time: ([0-9.]+)", done.stdout)
        if clock is None:
            raise RuntimeError(f"bart did not say how long it took: {done.stdout}")
        return BartRun(reflected(read_cfl(self.folder / "image").T), float(clock.group(1)))


def reflected(array: Array) -> Array:
    """i -> -i around the centre N // 2 of the last two axes, of an image and of its k-space alike."""
    for axis in (-2, -1):
        array = np.flip(array, axis)
        if array.shape[axis] % 2 == 0:
            array = np.roll(array, 1, axis)
    return np.ascontiguousarray(array)


def write_cfl(path: Path, array: Array) -> None:
    """BART's file pair: dimensions as text, complex64 with the first axis fastest."""
    path.with_suffix(".hdr").write_text(f"# Dimensions\n{' '.join(map(str, array.shape))}\n", encoding="ascii")
    array.astype(np.complex64).ravel(order="F").tofile(path.with_suffix(".cfl"))


def read_cfl(path: Path) -> Array:
    """The array of a file pair without its axes of length one."""
    lines = path.with_suffix(".hdr").read_text(encoding="ascii").splitlines()
    shape = [int(n) for n in lines[1].split()]
    return np.fromfile(path.with_suffix(".cfl"), np.complex64).reshape(shape, order="F").squeeze()
