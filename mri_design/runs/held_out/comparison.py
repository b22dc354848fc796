"""Strategies compared fairly: the same slices, the same start of calibration, the same reconstruction.

Masks that look at no data are drawn once per seed and used on every image. Posterior strategies come in two kinds:
adaptive (each test scan is designed on its own lines as they arrive, no truth needed) and, with training scans, fixed
(one mask designed on the training slices together, used on every test image).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice
from mri_design.errors import InputError
from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import start_count
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategy_names import ORACLES, TRAINING_RULES, is_random, make_strategy, tuned_families
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import KINDS, ShotEncoding
from mri_design.runs.held_out.jobs import (
    Lines,
    MaskJob,
    Material,
    TuningJob,
    candidates_for,
    cell_error,
    design_mask,
    slice_for,
    tuning_error,
)
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.workers import Workers

FIXED = "@train"
"""Suffix of a posterior strategy whose mask was designed on the training slices."""
TUNED = "@tuned"
"""Suffix of a density whose power was tuned on the training slices."""

TUNING_DRAWS = 3
"""Draws of each density that tuning averages over, at most."""

Cell = tuple[str, int, int, int]
"""Strategy, lines, draw, test image."""
Show = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Settings of a comparison.

    Parameters
    ----------
    tests, training : sequences of ReferenceSlice
        Images to evaluate on, and to tune and design on, all with one number of phase-encode lines; no image may be
        in both.
    strategies : sequence of str
        Names, see `make_strategy`.
    lines : sequence of int
        Line counts.
    recipe : Recipe
        Inference and the one reconstruction that is used for every mask.
    seeds : int
        Draws of every random strategy.
    seed : int
        Of everything.
    jobs : int
        Processes; the results do not depend on it.
    executor : str
        Where pieces are computed, see `Workers`; the results do not depend on it.
    powers : mapping of (str, int) to float
        Powers of densities that are known already, by family and number of lines; these are not tuned.
    """

    tests: Sequence[ReferenceSlice]
    strategies: Sequence[str]
    lines: Sequence[int]
    recipe: Recipe
    training: Sequence[ReferenceSlice] = ()
    seeds: int = 5
    seed: int = 0
    jobs: int = 1
    executor: str = "local"
    powers: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tests:
            raise InputError(field="compare", got="no test image", wanted="at least one")
        first = self.tests[0]
        for other in self.tests[1:]:
            if other.slice_model.candidates.shape != first.slice_model.candidates.shape:
                if "plane" in (first.slice_model.candidates.name, other.slice_model.candidates.name):
                    raise InputError(
                        field="test scans",
                        got=f"{first.name} on {first.slice_model.shape} and {other.name} on {other.slice_model.shape}",
                        wanted="one plane",
                        cure="Run one comparison per matrix size.",
                    )
                raise InputError(
                    field="test scans",
                    got=f"{first.name} with {first.slice_model.shape[0]} and "
                    f"{other.name} with {other.slice_model.shape[0]} phase-encode lines",
                    wanted="one number of phase-encode lines: the same line count is another acceleration on each",
                    cure="Run one comparison per matrix size.",
                )
        shapes = {_size(t) for t in self.training} - {_size(t) for t in self.tests}
        if shapes:
            unit = first.slice_model.candidates.unit
            raise InputError(
                field="training scans",
                got=f"{sorted(shapes)} {'phase-encode lines' if unit == 'line' else 'samples'}",
                wanted=f"the same number of {unit}s as a test scan",
            )

    def rows_wanted(self) -> list[Cell]:
        """(strategy, lines, draw, test image) of every cell of the table."""
        cells: list[Cell] = []
        for name in self.expanded():
            drawn = is_random(base_name(name), self.recipe.design.encoding)
            draws = range(self.seeds) if drawn else range(1)
            cells += [(name, n, s, i) for n in self.lines for s in draws for i in range(len(self.tests))]
        return cells

    def expanded(self) -> list[str]:
        """Strategies with their trained variants, in the order asked for."""
        names: list[str] = []
        for name in self.strategies:
            strategy = self.rule(name)
            if name not in TRAINING_RULES:
                names.append(name)
            if self.training and strategy.needs_posterior and name not in ORACLES:
                names.append(name + FIXED)
            if self.training and name in tuned_families(self.recipe.design.encoding):
                names[-1] = name + TUNED
        return names

    def rule(self, name: str) -> Strategy:
        """The strategy called ``name``, which may have a suffix, for what the recipe chooses one by one."""
        return make_strategy(base_name(name), self.recipe.design.encoding)

    def run(self, progress: ComparisonProgress, show: Show = lambda *_: None) -> ComparisonProgress:
        """Tune, design, reconstruct and measure; ``progress`` is filled and saved as it goes."""
        with self.workers() as workers:
            return self.run_among(workers, progress, show)

    @property
    def counted(self) -> str:
        """What is counted: "lines", "samples" or "shots"."""
        return KINDS[self.recipe.design.encoding].counted

    def seen(self, progress: ComparisonProgress, name: str, count: int, image: int) -> MRSlice:
        """The slice of a test image that a strategy's candidates belong to."""
        strategy, _ = self._strategy(progress, name, count, image)
        return slice_for(self.tests[image], strategy, count, self.recipe, self.seed)

    def _acceleration(self, name: str, count: int, test: ReferenceSlice) -> float:
        """Candidates over those measured; of shots, pixels of the image over samples."""
        if self.counted != "shots":
            return _size(test) / count
        shots = candidates_for(test, base_name(name), count, self.recipe)
        assert isinstance(shots, ShotEncoding)
        return test.reference.size / (count * shots.shots.shape[1])

    def workers(self) -> Workers[Material]:
        """Processes for the pieces of the comparison, and for others that need the same material."""
        return Workers(Material(self.tests, self.training, self.recipe, self.seed), self.jobs, self.executor)

    def run_among(self, workers: Workers[Material], progress: ComparisonProgress, show: Show) -> ComparisonProgress:
        """As `run`, by workers that are there already."""
        wanted = self.rows_wanted()
        self._tune(progress, workers, show)
        show("reconstructing", 0, sum(_key(*cell) not in progress.rows for cell in wanted))  # so much is to come
        self._make_masks(progress, wanted, workers, show)
        self._measure(progress, wanted, workers, show)
        return progress

    def mask_lines(self, progress: ComparisonProgress, name: str, count: int, draw: int, image: int) -> Lines:
        """Lines of one cell, in acquisition order."""
        return tuple(progress.masks[self._mask_key(name, count, draw, image)])

    def typical_draw(self, progress: ComparisonProgress, name: str, count: int, image: int) -> int:
        """The draw of a finished comparison whose error on an image is the median one (the upper of two)."""
        errors = {
            draw: float(str(progress.rows[_key(n, c, draw, i)]["relative_l2"]))
            for n, c, draw, i in self.rows_wanted()
            if (n, c, i) == (name, count, image)
        }
        return sorted(errors, key=errors.__getitem__)[len(errors) // 2]

    def _mask_key(self, name: str, count: int, draw: int, image: int) -> str:
        test = self.tests[image]
        if name.endswith(FIXED) or not (self.rule(name).needs_posterior or name in ORACLES):
            place = f"grid{_size(test)}-{test.calibration_lines}-{_mask_text(test.slice_model)}"
        else:
            place = test.name
        return f"{name}|{count}|{draw}|{place}"

    def _make_masks(
        self,
        progress: ComparisonProgress,
        wanted: Sequence[Cell],
        workers: Workers[Material],
        show: Show,
    ) -> None:
        keys = {self._mask_key(*cell): cell for cell in wanted}
        left = [cell for key, cell in keys.items() if key not in progress.masks]
        # One design serves every count that starts from the same lines.
        groups: dict[Cell, list[int]] = {}
        for name, count, draw, image in left:
            strategy, start = self._strategy(progress, name, count, image)
            grows = self.rule(strategy).needs_posterior or strategy in ORACLES
            grows = grows and self.recipe.constraints.max_jump is None  # with short jumps every line looks to the last
            grows = grows and self.counted != "shots"  # whose candidates depend on their number
            group = start if grows else -count
            groups.setdefault((name, group, draw, image), []).append(count)
        jobs = [self._mask_job(progress, *group, counts) for group, counts in groups.items()]
        show("designing masks", 0, len(jobs))
        listed = list(groups.items())
        for done, (place, mask) in enumerate(workers.finished(design_mask, jobs), 1):
            (name, _, draw, image), counts = listed[place]
            for count in counts:
                key = self._mask_key(name, count, draw, image)
                progress.masks[key] = [int(k) for k in mask.lines[:count]]
                progress.masks_converged[key] = count <= mask.converged_lines
            progress.save()
            show("designing masks", done, len(jobs))

    def _strategy(self, progress: ComparisonProgress, name: str, count: int, image: int) -> tuple[str, int]:
        """Full name of a strategy (with its tuned power) and the centre lines it starts with."""
        base, test = base_name(name), self.tests[image]
        if name.endswith(TUNED):
            base = f"{base}:{progress.tuned[f'{base}|{count}|{_size(test)}']:g}"
        return base, self._start(base, count, test)

    def _start(self, strategy: str, count: int, image: ReferenceSlice) -> int:
        rule, n_coils = self.rule(strategy), image.slice_model.n_coils
        candidates = candidates_for(image, strategy, count, self.recipe)
        of_lines = self.counted == "lines"
        calibration = image.calibration_lines if of_lines else 0  # a plane's is among the constraints
        rules = self.recipe.constraints.rules_of(candidates)
        rules.needed(image.slice_model.measured, calibration)  # refuses contradictions
        other = None if of_lines else candidates
        return start_count(rule, candidates.size, count, self.recipe, calibration, n_coils, other)

    def _mask_job(
        self, progress: ComparisonProgress, name: str, group: int, draw: int, image: int, counts: Sequence[int]
    ) -> MaskJob:
        target = max(counts)
        strategy, start = self._strategy(progress, name, target, image)
        if not name.endswith(FIXED):
            return MaskJob(strategy, target, start, draw, image)
        shape = self.tests[image].slice_model.shape
        training = tuple(i for i, t in enumerate(self.training) if t.slice_model.shape == shape)
        if not training:
            raise InputError(
                field="training scans", got="none on the test scan's grid", wanted="at least one for a fixed mask"
            )
        return MaskJob(strategy, target, start, draw, image, training)

    def _measure(
        self, progress: ComparisonProgress, wanted: Sequence[Cell], workers: Workers[Material], show: Show
    ) -> None:
        left = [cell for cell in wanted if _key(*cell) not in progress.rows]
        strategies = [self._strategy(progress, *cell[:2], cell[3])[0] for cell in left]
        lines = [self.mask_lines(progress, *cell) for cell in left]
        jobs = [(cell[3], strategy, these) for cell, strategy, these in zip(left, strategies, lines, strict=True)]
        show("reconstructing", 0, len(jobs))
        try:
            for done, (place, errors) in enumerate(workers.finished(cell_error, jobs), 1):
                progress.rows[_key(*left[place])] = self._row(progress, left[place], errors)
                if done % 20 == 0:
                    progress.save()
                show("reconstructing", done, len(left))
        finally:  # where pieces failed, too
            progress.save()

    def _row(self, progress: ComparisonProgress, cell: Cell, errors: Mapping[str, object]) -> Row:
        name, count, draw, image = cell
        test = self.tests[image]
        mask_converged = progress.masks_converged[self._mask_key(*cell)]
        return {
            "strategy": name,
            "lines": count,
            "acceleration": self._acceleration(name, count, test),
            "draw": draw,
            "image": test.name,
            **errors,
            "mask_converged": mask_converged,
            "converged": mask_converged and bool(errors["reconstruction_converged"]),
        }

    def _tune(self, progress: ComparisonProgress, workers: Workers[Material], show: Show) -> None:
        """The power with the least mean error on the training images, for each family and count."""
        tuned = tuned_families(self.recipe.design.encoding)
        families = [name for name in self.strategies if name in tuned] if self.training else []
        grid = _size(self.tests[0])
        progress.tuned |= {
            f"{family}|{count}|{grid}": power
            for (family, count), power in self.powers.items()
            if family in families and count in self.lines
        }
        wanted = [(f, n, grid) for f in families for n in self.lines]
        wanted = [job for job in wanted if "|".join(map(str, job)) not in progress.tuned]
        if wanted:
            show("tuning densities", 0, len(wanted))
        for done, (family, count, _) in enumerate(wanted, 1):
            powers = tuned[family]
            jobs = [
                TuningJob(name, count, self._start(name, count, image), draw, i)
                for name in (f"{family}:{power:g}" for power in powers)
                for draw in range(min(self.seeds, TUNING_DRAWS))
                for i, image in enumerate(self.training)
            ]
            errors = np.array(list(workers.map(tuning_error, jobs))).reshape(len(powers), -1)
            progress.tuned[f"{family}|{count}|{grid}"] = powers[int(np.argmin(errors.mean(axis=1)))]
            progress.save()
            show("tuning densities", done, len(wanted))


def _key(name: str, count: int, draw: int, image: int) -> str:
    return f"{name}|{count}|{draw}|{image}"


def _size(image: ReferenceSlice) -> int:
    """Lines of the grid, or samples of the plane."""
    return image.slice_model.candidates.size


def base_name(name: str) -> str:
    """A strategy's name without what training made of it."""
    return name.removesuffix(FIXED).removesuffix(TUNED)


def _mask_text(slice_model: MRSlice) -> str:
    return "".join("1" if flag else "0" for flag in slice_model.measured) if not slice_model.measured.all() else "all"
