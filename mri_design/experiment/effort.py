"""What a run will take, foretold before it begins: seconds of a processor, and memory.

An image of one slice takes ``products`` multiplications with X^H X, one for each draw or iterate, and with each of them
go passes over the image alone (sites, preconditioner, vectors), which take longer than the product:

    seconds = pace * pixels * products * (of_image + of_coil * coils) * (pixels / 256^2)^CACHE

where ``pace`` is that of this machine, by one product that is timed on it. Counts and nanoseconds are means over
`benchmarks/how_long.py`; seconds and memory of seven of its eight rows are foretold within a factor of two
(docs/how-long.md). How hard an image is, other images of the object, and other solvers and variances than the default
are not known here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from mri_design.experiment.recipe import Recipe
from mri_design.kinds import Kind
from mri_design.model.posterior import MIB, PROGRAM
from mri_design.operators.cartesian_fourier import CartesianLines
from mri_design.scan.data import Scan


class Cost(NamedTuple):
    """Of an image by one method, or of a step of a design: products for one draw or one iterate after the other.

    ``products`` of one coil and of several; nanoseconds of a product a pixel, ``of_image`` and ``of_coil``; ``images``
    that are in memory, and how many of them for every coil, ``coil_images``.
    """

    products: tuple[float, float]
    of_image: float
    of_coil: float
    images: float
    coil_images: float


DRAWS = 8
"""Posterior draws with which costs were measured; products, and memory beyond one draw, go with their number."""
METHODS = {
    "mean": Cost((300, 225), 170, 15, 750, 30),
    "map": Cost((70, 62), 600, 20, 200, 12),
    "least-squares": Cost((10, 35), 20, 4, 60, 12),
    "l1-wavelet": Cost((200, 200), 30, 3, 60, 12),
    "total-variation": Cost((300, 300), 30, 3, 60, 12),
    "zero-filled": Cost((1, 1), 20, 4, 60, 12),
}
"""By the method of the recipe."""
STEP = Cost((56, 76), 50, 10, 600, 30)
"""Of a step of a design, with `DRAWS` draws."""
AROUND_STEPS = 7
"""Steps that the first inference of a design takes, and the check of its predictions at the end."""
SHOTS, OF_SHOTS = 4.0, {"image": 2.5, "step": 7.0}
"""Along trajectories: a coil costs as much as four on the grid, which is doubled, and more products are needed."""
OF_MAPS = 14.0
"""Nanoseconds of coil maps a pixel and pair of coils."""
CACHE, SIDE = 0.25, 256
"""Pixels cost more as images leave the cache: their number over 256 x 256 to this power."""
START = 2.0
"""Seconds that the program takes to begin and to end, with a report."""
PRODUCT = 1.7
"""Nanoseconds a pixel and coil of the product that tells the pace, on the machine on which costs were measured."""
TIMED, TURNS = 4, 8
"""Coils of that product, and how often it is timed."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a run works on; `seconds` and `mib` say what it will take.

    Parameters
    ----------
    grid : tuple of int
        (ky, kx).
    kind : Kind
        Of the readouts.
    coils, coils_read : int
        After compression, and of the scan.
    method : str
        Of the image, as the recipe has it.
    lines : tuple of int
        Readouts that are used, of how many; of a design those at the start and in the end, at most.
    slices : int
        Images that are made.
    draws : int
        Posterior draws behind the error bars of an image.
    steps : int
        Inferences of a design after each of which it chooses; 0 without a design.
    step_draws, sharing : int
        Posterior draws of a step, and slices that share the lines.
    jobs : int
        Processes.
    estimates_maps : bool
        Whether coil maps are estimated.
    """

    grid: tuple[int, int]
    kind: Kind
    coils: int
    coils_read: int
    method: str
    lines: tuple[int, int]
    slices: int = 1
    draws: int = DRAWS
    steps: int = 0
    step_draws: int = DRAWS
    sharing: int = 1
    jobs: int = 1
    estimates_maps: bool = True

    @classmethod
    def of(
        cls, scan: Scan, grid: tuple[int, int], kind: Kind, recipe: Recipe, lines: tuple[int, int], **design: int
    ) -> Self:
        """That of images of a calibrated scan by a recipe, and of a ``design``."""
        combined, wanted = scan.provenance.combined, recipe.reconstruction
        return cls(
            grid=grid,
            kind=kind,
            coils=scan.n_coils,
            coils_read=scan.n_coils if combined is None else combined[0],
            method=wanted.method,
            lines=lines,
            draws=max(recipe.inference.samples, wanted.draws),
            estimates_maps=scan.provenance.maps.calibration_lines > 0,
            **design,
        )

    @property
    def image_products(self) -> float:
        """Products with X^H X of one image of one slice."""
        draws = self.draws / DRAWS if self.method == "mean" else 1.0
        return self._products(METHODS[self.method], draws, "image")

    @property
    def step_products(self) -> float:
        """Products with X^H X of a step of a design on one slice."""
        return self._products(STEP, self.step_draws / DRAWS, "step")

    @property
    def seconds(self) -> float:
        """Of the clock, where every process has a processor of its own; a product is timed on this machine (`pace`)."""
        pixels = self.grid[0] * self.grid[1]
        image = self._product_seconds(METHODS[self.method]) * self.image_products
        if self.estimates_maps and self.coils > 1:
            image += OF_MAPS * 1e-9 * pixels * self.coils**2
        step = self._product_seconds(STEP) * self.step_products
        steps = (self.steps + AROUND_STEPS) * self.sharing if self.steps else 0
        made = image * self.slices / min(self.jobs, self.slices) + step * steps / min(self.jobs, self.sharing)
        return START + pace() * made

    @property
    def mib(self) -> float:
        """MiB of the largest of the processes."""
        image, costs = self.grid[0] * self.grid[1] * 8, [METHODS[self.method], *([STEP] if self.steps else [])]
        counts = [cost.images + cost.coil_images * (self.coils if self.coils > 1 else 0) for cost in costs]
        data = 2 * self.coils_read * max(self.sharing, 1)
        return (PROGRAM + image * (max(counts) + data)) / MIB

    def _products(self, cost: Cost, draws: float, what: str) -> float:
        return cost.products[self.coils > 1] * draws * (1 if self.kind.on_grid else OF_SHOTS[what])

    def _product_seconds(self, cost: Cost) -> float:
        """Of one product and what goes with it."""
        pixels, coils = self.grid[0] * self.grid[1], self.coils * (1 if self.kind.on_grid else SHOTS)
        return 1e-9 * pixels * (cost.of_image + cost.of_coil * coils) * (pixels / SIDE**2) ** CACHE


@cache
def pace() -> float:
    """Time of X^H X of lines on this machine over that of the machine on which costs were measured."""
    maps = np.random.default_rng(0).standard_normal((TIMED, SIDE, SIDE)).astype(np.complex64)
    gram = CartesianLines(range(0, SIDE, 4), (SIDE, SIDE), maps).gram
    gram(maps[0])  # loads the loops
    spent = []
    for _ in range(TURNS):
        began = time.process_time()
        gram(maps[0])
        spent.append(time.process_time() - began)
    return min(spent) / (1e-9 * PRODUCT * maps.size)
