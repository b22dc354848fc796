"""How wrong the image of a design's lines is: it is made in the midst of the design, with its error bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.brief import briefly
from mri_design.design.engine import DesignState
from mri_design.design.trace import relative_error
from mri_design.errors import require_counts, require_instance
from mri_design.evidence.error_bars import energy_of
from mri_design.experiment.design import final_model
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, Reconstruction, image_rng, reconstruct_prepared
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.readouts import ShotReadouts

MOST_SLICES = 4
"""Slices whose images are made, evenly out of those that share the lines."""


@briefly
@dataclass(frozen=True)
class ImageErrors:
    """Predicts the error of the posterior mean by its error bars; see `DesignEngine.image_error`.

    Parameters
    ----------
    recipe : Recipe
        Of the image. Whatever its method, the error is that of the posterior mean.
    seed : int
        Of the run: the image of the last lines is the one that the run makes.
    companions : tuple of Companion
        Other images of the object, which the prior of the first slice knows.

    Raises
    ------
    InputError
        For another recipe than a `Recipe`, or a seed below zero.
    """

    recipe: Recipe
    seed: int = 0
    companions: tuple[Companion, ...] = ()
    _last: dict[tuple[int, ...], Reconstruction] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_instance(Recipe, wanted="a Recipe, as load_recipe makes it", recipe=self.recipe)
        require_counts(seed=self.seed, least=0)

    def __call__(self, slices: Sequence[MRSlice], state: DesignState) -> float:
        """Norm of the error over norm of the image, slices together whose error is predicted; NaN without such."""
        places = range(len(slices))
        if len(slices) > MOST_SLICES:
            places = np.linspace(0, len(slices) - 1, MOST_SLICES).round().astype(int).tolist()
        errors, images = 0.0, 0.0
        for place in places:
            error, image = self._energies(slices, state, place)
            if np.isfinite(error):
                errors, images = errors + error, images + image
        return relative_error(errors, images) if errors else float("nan")

    def image_of(self, lines: Sequence[int]) -> Reconstruction | None:
        """The posterior mean of the first slice with its error bars, where the last call made it of these lines."""
        return self._last.get(tuple(lines))

    def _energies(self, slices: Sequence[MRSlice], state: DesignState, place: int) -> tuple[float, float]:
        """Of the error of one slice as it is predicted, in the units of its file squared, and of its image.

        Whitened coils weigh pixels in another way than the file's coils, in whose units the run judges its image.
        """
        lines = state.trace.lines
        one, warm = final_model(slices[place], state, self.recipe, place)
        if place == 0:
            one = replace(one, companions=self.companions)
        options = InferenceOptions(warm_start=warm, signal=final_signal(one, state, place))
        made = reconstruct_prepared(one, lines, "mean", self.recipe, image_rng(self.seed), options=options)
        if place == 0:
            self._last.clear()
            self._last[lines] = made
        shown = made.times(one.image_unit)
        known = shown.std is not None and shown.std_factor is not None
        return energy_of(shown.std) if known else float("nan"), energy_of(shown.image)  # type: ignore[arg-type]


def final_signal(slice_model: MRSlice, state: DesignState, place: int = 0) -> float:
    """The signal level of the image in the end, of one of the slices.

    That of lines is what their common centre shows; the few shots of a start show less of it than all do.
    """
    if isinstance(slice_model.candidates, ShotReadouts):
        return slice_model.signal_level(state.trace.lines)
    return state.signals[place]
