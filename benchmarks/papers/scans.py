"""Heads with the phase that a scanner left, or phantoms in their place, and errors of images from some of their lines.

``img_3T_complex.npz`` has 24 combined images of four subjects. It may not be shipped, nor may pictures of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from study.scans import NOISE, Scan, anew, simulated, simulating

from mri_design.design.training import ReferenceSlice, relative_error
from mri_design.errors import InputError
from mri_design.experiment.design import run_design
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import Method, image_rng, reconstruct_prepared
from mri_design.model.slice import SliceModel

from .data import at_hand, require

HEADS = "img_3T_complex.npz"
PHANTOMS = ("phantom:t2w", "phantom:t1w", "phantom:t1w-6a")
LOCAL = load_recipe("local")
POWERS = (1, 2, 3, 4, 6, 8)
OUTPERFORM = "much better than the designs that compressed sensing theory advises"
"""What section 1 of TR-175 says of its designs."""
NO_DENSITY = "The report compares with no tuned density."


def slices(
    data: Path | None, numbers: Sequence[int], side: int, coils: int = 1, recipe: Recipe = LOCAL
) -> tuple[list[ReferenceSlice], bool]:
    """Scans of heads by number, simulated with noise of .7 % of the signal, and whether they are heads: else phantoms.

    Parameters
    ----------
    data : Path or None
        Folder that has the heads, itself or in a folder of its own.
    numbers : sequence of int
        Of the heads: subject n // 6.
    side, coils : int
        Of the grid, and simulated coils whose maps are known.
    recipe : Recipe
        Its prior and encoding.
    """
    found = at_hand(data, HEADS)
    scans: list[Scan] = []
    if found is None:
        of_phantoms = simulating(side, NOISE, "rough", coils)
        for number in range(len(numbers)):
            scans += simulated(PHANTOMS[number % len(PHANTOMS)], [0], of_phantoms, number)
    else:
        with np.load(require(data, HEADS), allow_pickle=False) as archive:
            parts = archive["image"].astype(np.float32)
        for number in numbers:
            if not 0 <= number < len(parts):
                raise InputError("head", number, f"0 to {len(parts) - 1}")
            image = parts[number, ..., 0] + 1j * parts[number, ..., 1]
            scans.append(anew(f"head {number}", image[None], side, NOISE, number, coils))
    return [scan.image(recipe) for scan in scans], found is not None


def lines_of(seen: SliceModel, rule: str, count: int, seed: int = 0, recipe: Recipe = LOCAL) -> list[int]:
    """What a strategy of the package measures, in its order and from as many central ones as it begins with."""
    return list(run_design([seen], rule, count, recipe, seed=seed).trace.lines)


def image_error(image: ReferenceSlice, lines: Sequence[int], method: Method, recipe: Recipe = LOCAL) -> float:
    """Relative error of the magnitude of an image from these lines (or samples)."""
    made = reconstruct_prepared(image.slice_model, sorted(lines), method, recipe, image_rng(0)).image
    return relative_error(made, image.reference)


def mean_error(image: ReferenceSlice, lines: Sequence[int]) -> float:
    """That of the posterior mean, whose error bars are not made."""
    model = image.slice_model.model(sorted(lines))
    mean = LOCAL.inference.engine().infer(model, np.random.default_rng(0)).mean
    return relative_error(mean, image.reference)


def tuned_density(
    training: Sequence[ReferenceSlice], count: int, families: Sequence[str] = ("vd-polynomial:{}",)
) -> str:
    """The variable density with the least error of the posterior mean, mean of training scans and three draws."""

    def error(name: str) -> float:
        return float(
            np.mean(
                [
                    mean_error(one, lines_of(one.slice_model, name, count, draw))
                    for one in training
                    for draw in (0, 1, 2)
                ]
            )
        )

    return min((family.format(power) for family in families for power in POWERS), key=error)


def verdict(real: bool, holds: bool | None, because: str) -> tuple[bool | None, str]:
    """A claim's verdict and its reason; phantoms, whose phase is drawn, decide nothing about images of a scanner."""
    if not real:
        return None, "Phantoms with a drawn phase, in place of heads, decide nothing about images of a scanner."
    return None if holds is None else bool(holds), "" if holds else because
