"""Which other images of the object help a scan: lines held back are predicted with them and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.brief import briefly
from mri_design.design.recording import found_energies
from mri_design.errors import InputError
from mri_design.experiment.held_back.choosing import FEWEST
from mri_design.experiment.held_back.prediction import HeldBack
from mri_design.experiment.non_local import carried
from mri_design.experiment.recipe import CompanionRecipe
from mri_design.inference.double_loop import DoubleLoop
from mri_design.kinds import count_text
from mri_design.model.alike_patches import AlikePatches
from mri_design.model.companion import Companion, companion_patches
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.scan.registration import Registration, register

CLEARLY = 1.5
"""Standard errors by which lines held back have to be predicted better with a companion."""
LEAST_GAIN = 0.1
"""Mean logarithm of the energy left unpredicted without over that with it, where half of the lines are measured."""
FARTHEST = 10.0
"""Pixels by which an image has to be moved, beyond which it is left out."""


@briefly
@dataclass(frozen=True)
class Offered:
    """A companion, as it was laid over the image.

    Parameters
    ----------
    companion : Companion
        After its registration.
    registration : Registration, optional
        How it was moved; None where that was not asked for, or there was no image yet.
    gain : float
        Mean over the lines held back of log(energy left without it / with it); NaN where that is not known.
    refused : str
        Why it cannot serve, as the end of a sentence; empty where it can.
    """

    companion: Companion
    registration: Registration | None = None
    gain: float = float("nan")
    refused: str = ""

    def __str__(self) -> str:
        said = [self.companion.name]
        if self.registration is not None and self.registration.motion.displacement(self.companion.image.shape):
            (down, right), angle = self.registration.motion.shift, self.registration.motion.angle
            said.append(f"moved by {down:+.1f}, {right:+.1f} pixels and {angle:+.1f} degrees")
        if self.refused:
            said.append(f"left out: {self.refused}")
        elif np.isfinite(self.gain):
            less = 100 * (1 - np.exp(-self.gain))
            said.append(f"{abs(less):.0f} % {'less' if less >= 0 else 'more'} of what is held back is left unpredicted")
        return ", ".join(said)


@briefly
@dataclass(frozen=True)
class CompanionChoice:
    """The companions that a slice's own lines have chosen.

    Parameters
    ----------
    offered : tuple of Offered
        All there are.
    used : tuple of str
        Names of those in the prior; empty where there are none.
    gain : float
        As `Offered.gain`, of those that are used together; NaN where nothing could be held back.
    held_back : int
        Lines (or samples, shots) that it was judged by.
    trusted : bool
        Whether they are used because the recipe says so.
    unit : str
        What was held back, in the singular.
    patches : AlikePatches, optional
        What the companions used say; None where none is.
    """

    offered: tuple[Offered, ...]
    used: tuple[str, ...] = ()
    gain: float = float("nan")
    held_back: int = 0
    trusted: bool = False
    unit: str = "line"
    patches: AlikePatches | None = field(default=None, compare=False, repr=False)

    def applied(self, slice_model: MRSlice, recipe: CompanionRecipe) -> MRSlice:
        """The slice with the companions that are used in its prior."""
        if self.patches is None:
            return slice_model
        return replace(slice_model, companion=self.patches, prior=recipe.prior(slice_model.prior))

    def __str__(self) -> str:
        held = f"{count_text(self.held_back, self.unit)} held back" if self.held_back else "nothing to hold back"
        why = "as the recipe asks" if self.trusted else f"after {held}"
        each = "; ".join(str(one) for one in self.offered)
        return f"{' and '.join(self.used) or 'none'} {'are' if len(self.used) > 1 else 'is'} used, {why} ({each})"


def choose_companions(
    slice_model: MRSlice, without: HeldBack | None, recipe: CompanionRecipe, engine: DoubleLoop, image: Array
) -> CompanionChoice:
    """The companions, each by itself or all together, with which lines that are held back are predicted best.

    Parameters
    ----------
    slice_model : MRSlice
        Its ``companions`` are offered.
    without : HeldBack, optional
        The prediction without companions; None where nothing can be held back.
    recipe : CompanionRecipe
        Strength; whether companions are registered, or trusted.
    engine : DoubleLoop
        Infers once with every candidate, from where the inference without it ended.
    image : complex array, shape (ky, kx)
        To register to, where nothing is held back; else that of the lines that are not.

    Returns
    -------
    CompanionChoice
        None is used where fewer than four lines are held back, unless the recipe trusts them; else only such as are
        better by more than `LEAST_GAIN`, less where fewer lines are measured, and by more than `CLEARLY` standard
        errors.
    """
    judged = without is not None and len(without.held) >= FEWEST
    seen = without.posterior.mean if without is not None and judged else image
    offered = tuple(_laid_over(companion, seen, recipe.register_companion) for companion in slice_model.companions)
    usable = [place for place, one in enumerate(offered) if not one.refused]
    sets = [[place] for place in usable] + ([usable] if len(usable) > 1 else [])
    unit = slice_model.candidates.unit
    if not sets:
        return CompanionChoice(offered, unit=unit)
    patches = [companion_patches([offered[place].companion.image for place in places]) for places in sets]
    every = tuple(offered[place].companion.name for place in usable)
    if without is None or not judged:
        taken = recipe.trust_companion
        return CompanionChoice(
            offered, every if taken else (), trusted=taken, unit=unit, patches=patches[-1] if taken else None
        )
    gains = np.array([_gains(without, found, recipe, engine) for found in patches])
    mean, error = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
    offered = tuple(
        replace(one, gain=float(mean[usable.index(place)])) if place in usable else one
        for place, one in enumerate(offered)
    )
    share = len(without.known) + len(without.held)
    least = LEAST_GAIN * min(1.0, 2 * share / slice_model.candidates.size)
    clear = (mean > least) & (mean > CLEARLY * error)
    if recipe.trust_companion:
        best = len(sets) - 1
    elif clear.any():
        best = int(np.argmax(np.where(clear, mean, -np.inf)))
    else:
        return CompanionChoice(offered, held_back=len(without.held), unit=unit)
    used = tuple(offered[place].companion.name for place in sets[best])
    return CompanionChoice(
        offered, used, float(mean[best]), len(without.held), recipe.trust_companion, unit, patches[best]
    )


def _laid_over(companion: Companion, image: Array, registered: bool) -> Offered:
    """The companion moved to where the image is."""
    try:
        found = register(image, companion.image) if registered else None
        moved = companion if found is None else replace(companion, image=found.motion.applied(companion.image))
        companion_patches([moved.image])
    except InputError as error:
        return Offered(companion, refused=f"{error.got} where {error.wanted} is needed")
    if found is not None and found.motion.displacement(image.shape) > FARTHEST:
        return Offered(moved, found, refused=f"it would have to move by more than {FARTHEST:g} pixels")
    return Offered(moved, found)


def _gains(without: HeldBack, patches: AlikePatches, recipe: CompanionRecipe, engine: DoubleLoop) -> Sequence[float]:
    """log(energy left without the companion / with it) of every line held back."""
    one = without.slice_model
    model = replace(one, companion=patches, prior=recipe.prior(one.prior)).model(without.known, without.signal)
    posterior = engine.cut_short(1).infer(
        model, np.random.default_rng(without.seed), warm_start=carried(without.posterior, model)
    )
    energies = (found_energies(one, image, without.held) for image in (without.posterior.mean, posterior.mean))
    before, after = energies
    return list(np.log(before) - np.log(after))
