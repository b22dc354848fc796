"""The scans, and the objectives that both packages minimise on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import centre_lines
from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.design.strategy import DesignView
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array, LinearOperator
from mri_design.potentials.priors import Laplace

PHANTOM = "phantom:t2w"
RATE = 10.0  # of the penalty, per unit of the signal level: the shipped recipes' rate for differences


def recipe_for(grid: int, coils: int, name: str | None = None) -> Recipe:
    """A shipped recipe, simulating on this grid with this many coils."""
    recipe = load_recipe(name)
    return recipe.replacing("simulation", matrix=grid, coils=coils)


def scan_of(grid: int, coils: int, seed: int, recipe: Recipe | None = None) -> MRSlice:
    """The phantom as a simulated scan: noise variance and coil maps are known."""
    recipe = recipe or recipe_for(grid, coils)
    return prepare(load_input(PHANTOM, recipe, seed), recipe).slice_model(0, recipe)


def quarter_of_the_lines(grid: int, seed: int) -> tuple[int, ...]:
    """A centre and lines of variable density, a quarter of the grid in all."""
    rule, measurable = VariableDensity(family="polynomial", power=4.0), np.ones(grid, dtype=bool)
    candidates = LineCandidates(measurable, centre_lines(measurable, rule.centre), grid // 4)
    while len(candidates.acquired) < candidates.target:
        rng = np.random.default_rng([seed, len(candidates.acquired)])
        candidates = candidates.after(rule.choose(DesignView(candidates), rng).line)
    return candidates.acquired


@dataclass(frozen=True)
class Problem:
    """minimise f(u) = 1/2 ||y - X u||^2 + weight ||B u||_1, with moduli of complex coefficients.

    Parameters
    ----------
    scan : MRSlice
        Where y comes from.
    lines : tuple of int
        Measured lines.
    analysis : LinearOperator
        B.
    """

    scan: MRSlice
    lines: tuple[int, ...]
    analysis: LinearOperator

    @classmethod
    def of(cls, scan: MRSlice, seed: int, analysis: Callable[[tuple[int, int]], LinearOperator]) -> Problem:
        """The problem on a quarter of the scan's lines."""
        return cls(scan, quarter_of_the_lines(scan.shape[0], seed), analysis(scan.shape))

    @property
    def weight(self) -> float:
        """lambda = rate sigma^2 / signal."""
        return RATE * self.scan.noise_variance / self.scan.signal_level(self.lines)

    def model(self) -> GeneralizedLinearModel:
        """The problem as sites: exp(-(tau / sigma) |s|) with tau sigma = lambda, so that J = 2 f / sigma^2."""
        scan = self.scan
        site = Laplace(self.weight / np.sqrt(scan.noise_variance))
        blocks = (SiteBlock("penalty", self.analysis, site),)
        return GeneralizedLinearModel(scan.encoding(self.lines), scan.acquire(self.lines), scan.noise_variance, blocks)

    def objective(self) -> Callable[[Array], float]:
        """f, without smoothing, in double precision."""
        encoding, data, weight = self.scan.encoding(self.lines), self.scan.acquire(self.lines), self.weight
        data = data.astype(np.complex128)

        def f(u: Array) -> float:
            u = u.astype(np.complex128)
            fit = 0.5 * np.sum(np.abs(data - encoding(u)) ** 2)
            return float(fit + weight * np.sum(np.abs(self.analysis(u))))

        return f

    def zero_filled_kspace(self) -> Array:
        """y on the whole grid, (coil, ky, kx), as SigPy takes it."""
        kspace = np.zeros_like(self.scan.kspace)
        kspace[:, list(self.lines)] = self.scan.acquire(self.lines)
        return kspace

    def maps(self) -> Array:
        """Coil sensitivities, (coil, ky, kx); ones for a single coil."""
        return np.ones_like(self.scan.kspace) if self.scan.maps is None else self.scan.maps
