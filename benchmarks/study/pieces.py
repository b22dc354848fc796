"""Pieces that the study computes apart, in one process or several: masks, errors, densities on trial, predictions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from study.scans import Scan

from mri_design.design.engine import DesignEngine
from mri_design.design.strategy import DesignView, Strategy
from mri_design.design.trace import Choice, DesignTrace
from mri_design.design.training import ExchangeRules, Outcome, begin_refinement, refine, truth_or_none
from mri_design.design.training import Trial as TrainingTrial
from mri_design.evaluation.predictions import check_predictions
from mri_design.evaluation.tables import Row
from mri_design.experiment.design import refinement, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import make_strategy
from mri_design.readouts import Readouts
from mri_design.runs.study import (
    Lines,
    MaskJob,
    Material,
    cell_error,
    converged_lines,
    design_mask,
    trial_outcome,
    tuning_error,
)


@dataclass(frozen=True)
class StudyMaterial:
    """Scans and recipes of a group.

    Parameters
    ----------
    tests, training : sequences of Scan
        Scans.
    recipes : mapping of str to Recipe
        By name: those that reconstruct, and those that design.
    seed : int
        Of everything.
    """

    tests: Sequence[Scan]
    training: Sequence[Scan]
    recipes: Mapping[str, Recipe]
    seed: int

    def under(self, name: str) -> Material:
        """The group as a comparison takes it, with one recipe's prior, inference and reconstruction."""
        return _under(_Key(self), name)


class _Key:
    """A material as a key: by identity."""

    def __init__(self, material: StudyMaterial) -> None:
        self.material = material

    def __hash__(self) -> int:
        return id(self.material)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.material is self.material


@lru_cache(maxsize=32)
def _under(key: _Key, name: str) -> Material:
    material = key.material
    recipe = material.recipes[name]
    tests, training = ([scan.image(recipe) for scan in scans] for scans in (material.tests, material.training))
    return Material(tests=tests, training=training, recipe=recipe, seed=material.seed)


@dataclass(frozen=True)
class NewMask:
    """A mask to design under a recipe; ``judge`` names the one under which exchanges are judged at the end."""

    recipe: str
    job: MaskJob
    exchanges: int = 0
    judge: str = "mean"

    def __call__(self, material: StudyMaterial) -> Row:
        """Lines in order, how many of them can be trusted, and seconds."""
        began = time.process_time()
        made = design_mask(material.under(self.recipe), self.job)
        lines = self._exchanged(material.under(self.judge), made) if self.exchanges else made.lines
        return {
            "mask": " ".join(map(str, lines)),
            "converged_lines": converged_lines(made),
            "seconds": time.process_time() - began,
        }

    def _exchanged(self, under: Material, made: DesignTrace) -> Lines:
        def evaluate(trials: Sequence[TrainingTrial]) -> list[Outcome]:
            return [trial_outcome(under, trial) for trial in trials]

        begun = begin_refinement(under.training, made.lines, evaluate)
        start = made.lines[: self.job.start]
        rules = ExchangeRules(keep=start, importance=made.innovation_energies)
        return refine(under.training, begun, self.exchanges, evaluate, rules).lines


@dataclass(frozen=True)
class MaskError:
    """A test image to reconstruct from some lines and to measure."""

    recipe: str
    image: int
    lines: Lines

    def __call__(self, material: StudyMaterial) -> Row:
        """Errors, and seconds."""
        began = time.process_time()
        found = cell_error(material.under(self.recipe), (self.image, "", self.lines))
        return found | {"seconds": time.process_time() - began}


@dataclass(frozen=True)
class Trial:
    """A density on trial on the training images: mean error over some draws."""

    recipe: str
    design: str
    strategy: str
    lines: int
    start: int
    draws: int

    def __call__(self, material: StudyMaterial) -> Row:
        """Mean relative error; the mask obeys the constraints of the recipe ``design``."""
        under = material.under(self.recipe)
        constraints = material.recipes[self.design].constraints
        under = replace(under, recipe=replace(under.recipe, constraints=constraints))
        errors = [
            tuning_error(under, MaskJob(self.strategy, self.lines, self.start, draw, image))
            for image in range(len(under.training))
            for draw in range(self.draws)
        ]
        return {"error": float(np.mean(errors))}


@dataclass(frozen=True)
class Follow(Strategy):
    """An order that is already there, while another strategy says what it expects of each line."""

    order: Lines
    inner: Strategy

    @property
    def name(self) -> str:  # type: ignore[override]
        """Whose expectations these are."""
        return self.inner.name

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The other strategy's."""
        return self.inner.default_start(readouts, target, n_coils)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next line of the order, with the other strategy's expectations."""
        chosen = self.inner.choose(view, rng)
        return replace(chosen, line=self.order[len(view.candidates.acquired)])


@dataclass(frozen=True)
class Prediction:
    """A strategy's predictions along a mask that need not be its own."""

    recipe: str
    strategy: str
    image: int
    order: Lines
    start: int
    counts: tuple[int, ...]

    def __call__(self, material: StudyMaterial) -> list[Row]:
        """Predicted against actual, one row for each number of lines."""
        under = material.under(self.recipe)
        image, recipe, seed = under.tests[self.image], under.recipe, material.seed
        follow = Follow(self.order, make_strategy(self.strategy))
        start, most = self.order[: self.start], max(self.counts) + 1
        state = run_design([image.slice_model], follow, most, recipe, seed=seed, start=start)
        checks = check_predictions(
            [image.slice_model],
            state.trace,
            DesignEngine(follow, recipe.inference.engine(extrapolated=False), refined=refinement(recipe)),
            signals=state.signals,
            truths=[truth_or_none(image.slice_model, image.reference)],
            counts=self.counts,
        )
        return [check.as_row() | {"strategy": self.strategy, "image": image.name} for check in checks]


def compute(material: StudyMaterial, piece: NewMask | MaskError | Trial | Prediction) -> Row | list[Row]:
    """One piece."""
    return piece(material)
