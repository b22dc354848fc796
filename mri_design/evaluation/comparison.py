"""Strategies compared fairly: the same slices, the same start of calibration, the same reconstruction.

Masks that look at no data are drawn once per seed and used on every image. Posterior strategies come in two kinds:
adaptive (each test scan is designed on its own lines as they arrive, no truth needed) and, with training scans, fixed
(one mask designed on the training slices together, used on every test image).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mri_design.design import DesignTrace, Strategy
from mri_design.errors import InputError
from mri_design.evaluation.comparison_progress import ComparisonProgress
from mri_design.evaluation.metrics import measure
from mri_design.experiment import TUNED_FAMILIES, Recipe, make_strategy, reconstruct, run_design, start_count
from mri_design.model import MRSlice
from mri_design.operators import Array

__all__ = ["Comparison", "TestImage"]

FIXED = "@train"
"""Suffix of a posterior strategy whose mask was designed on the training slices."""
TUNED = "@tuned"
"""Suffix of a density whose power was tuned on the training slices."""

Row = dict[str, object]
Lines = tuple[int, ...]


@dataclass(frozen=True)
class TestImage:
    """One slice to test (or train) on.

    Parameters
    ----------
    name : str
        For tables.
    one : MRSlice
        Calibrated data.
    reference : complex array, shape (ky, kx)
        What errors are measured against.
    calibration_lines : int
        Centre lines that every mask has to hold because the coil maps came from them.
    """

    __test__ = False  # not a pytest class

    name: str
    one: MRSlice
    reference: Array
    calibration_lines: int = 0


@dataclass(frozen=True)
class Comparison:
    """Settings of a comparison.

    Parameters
    ----------
    tests, training : sequences of TestImage
        Images to evaluate on, and to tune and design on; no image may be in both.
    strategies : sequence of str
        Names, see `experiment.make_strategy`.
    lines : sequence of int
        Line counts.
    recipe : Recipe
        Inference and the one reconstruction that is used for every mask.
    seeds : int
        Draws of every random strategy.
    seed : int
        Of everything.
    jobs : int
        Threads; the results do not depend on it.
    """

    tests: Sequence[TestImage]
    strategies: Sequence[str]
    lines: Sequence[int]
    recipe: Recipe
    training: Sequence[TestImage] = ()
    seeds: int = 5
    seed: int = 0
    jobs: int = 1

    def __post_init__(self) -> None:
        if not self.tests:
            raise InputError(field="compare", got="no test image", wanted="at least one")
        shapes = {t.one.shape[0] for t in self.training} - {t.one.shape[0] for t in self.tests}
        if shapes:
            raise InputError(
                field="training scans",
                got=f"{sorted(shapes)} phase-encode lines",
                wanted="the same number of lines as a test scan",
            )

    def rows_wanted(self) -> list[tuple[str, int, int, int]]:
        """(strategy, lines, draw, test image) of every cell of the table."""
        cells = []
        for name in self.expanded():
            draws = range(self.seeds) if _is_random(name) else range(1)
            cells += [(name, n, s, i) for n in self.lines for s in draws for i in range(len(self.tests))]
        return cells

    def expanded(self) -> list[str]:
        """Strategies with their trained variants, in the order asked for."""
        names: list[str] = []
        for name in self.strategies:
            strategy = make_strategy(name)
            names.append(name)
            if self.training and strategy.needs_posterior:
                names.append(name + FIXED)
            if self.training and name in TUNED_FAMILIES:
                names[-1] = name + TUNED
        return names

    def run(
        self, progress: ComparisonProgress, show: Callable[[str, int, int], None] = lambda *_: None
    ) -> ComparisonProgress:
        """Tune, design, reconstruct and measure; ``progress`` is filled and saved as it goes."""
        wanted = self.rows_wanted()
        self._tune(progress, show)
        self._make_masks(progress, wanted, show)
        left = [cell for cell in wanted if _key(*cell) not in progress.rows]
        with ThreadPoolExecutor(self.jobs) as pool:
            for done, (cell, row) in enumerate(
                zip(left, pool.map(lambda c: self._measure(progress, c), left), strict=True), 1
            ):
                progress.rows[_key(*cell)] = row
                if done % 20 == 0 or done == len(left):
                    progress.save()
                show("reconstructing", done, len(left))
        return progress

    def mask_lines(self, progress: ComparisonProgress, name: str, count: int, draw: int, image: int) -> Lines:
        """Lines of one cell, in acquisition order."""
        return tuple(progress.masks[self._mask_key(name, count, draw, image)])

    def _mask_key(self, name: str, count: int, draw: int, image: int) -> str:
        test = self.tests[image]
        if name.endswith(FIXED) or not make_strategy(_base(name)).needs_posterior:
            place = f"grid{test.one.shape[0]}-{test.calibration_lines}-{_mask_text(test.one)}"
        else:
            place = test.name
        return f"{name}|{count}|{draw}|{place}"

    def _make_masks(
        self,
        progress: ComparisonProgress,
        wanted: Sequence[tuple[str, int, int, int]],
        show: Callable[[str, int, int], None],
    ) -> None:
        keys = {self._mask_key(*cell): cell for cell in wanted}
        left = [cell for key, cell in keys.items() if key not in progress.masks]
        # One design serves every count that starts from the same lines.
        groups: dict[tuple[str, int, int, int], list[int]] = {}
        for name, count, draw, image in left:
            strategy, start = self._strategy(progress, name, count, image)
            group = start if strategy.needs_posterior else -count
            groups.setdefault((name, group, draw, image), []).append(count)
        with ThreadPoolExecutor(self.jobs) as pool:
            jobs = list(groups.items())
            for done, (job, found) in enumerate(
                zip(jobs, pool.map(lambda j: self._design(progress, *j), jobs), strict=True), 1
            ):
                (name, _, draw, image), counts = job
                for count in counts:
                    progress.masks[self._mask_key(name, count, draw, image)] = [int(k) for k in found[:count]]
                progress.save()
                show("designing masks", done, len(jobs))

    def _strategy(self, progress: ComparisonProgress, name: str, count: int, image: int) -> tuple[Strategy, int]:
        base = _base(name)
        if name.endswith(TUNED):
            base = f"{base}:{progress.tuned[f'{base}|{count}|{self.tests[image].one.shape[0]}']:g}"
        strategy = make_strategy(base)
        test = self.tests[image]
        return strategy, start_count(strategy, test.one.shape[0], count, self.recipe, test.calibration_lines)

    def _design(self, progress: ComparisonProgress, job: tuple[str, int, int, int], counts: Sequence[int]) -> Lines:
        name, _, draw, image = job
        target = max(counts)
        strategy, start = self._strategy(progress, name, target, image)
        slices = [self.tests[image].one]
        if name.endswith(FIXED):
            slices = [t.one for t in self.training if t.one.shape == slices[0].shape]
        if not slices:
            raise InputError(
                field="training scans", got="none on the test scan's grid", wanted="at least one for a fixed mask"
            )
        return self._trace(slices, strategy, target, start, draw).lines

    def _trace(self, slices: Sequence[MRSlice], strategy: Strategy, target: int, start: int, draw: int) -> DesignTrace:
        seed = int(np.random.SeedSequence([self.seed, draw]).generate_state(1)[0])
        return run_design(slices, strategy, target, self.recipe, seed=seed, start=start).trace

    def _measure(self, progress: ComparisonProgress, cell: tuple[str, int, int, int]) -> Row:
        name, count, draw, image = cell
        test = self.tests[image]
        error = self._error(test, self.mask_lines(progress, *cell))
        return {
            "strategy": name,
            "lines": count,
            "acceleration": test.one.shape[0] / count,
            "draw": draw,
            "image": test.name,
            **error,
        }

    def _error(self, test: TestImage, lines: Lines) -> Row:
        result = reconstruct(
            test.one,
            sorted(lines),
            self.recipe.reconstruction.method,
            self.recipe,
            np.random.default_rng([self.seed, 2]),
            with_std=False,
        )
        found = measure(result.image, test.reference)
        return {
            "relative_l2": found.relative_l2,
            "psnr": found.psnr,
            "ssim": found.ssim,
            "converged": result.convergence.converged,
        }

    def _tune(self, progress: ComparisonProgress, show: Callable[[str, int, int], None]) -> None:
        """The power with the least mean error on the training images, for each family, count and grid."""
        families = [name for name in self.strategies if name in TUNED_FAMILIES] if self.training else []
        grids = sorted({t.one.shape[0] for t in self.tests})
        jobs = [(f, n, g) for f in families for n in self.lines for g in grids]
        jobs = [job for job in jobs if "|".join(map(str, job)) not in progress.tuned]
        for done, (family, count, grid) in enumerate(jobs, 1):
            images = [t for t in self.training if t.one.shape[0] == grid]
            if not images:
                raise InputError(
                    field="training scans", got=f"none with {grid} lines", wanted=f"one, to tune {family} on"
                )
            powers = TUNED_FAMILIES[family]
            cells = [(p, s, t) for p in powers for s in range(min(self.seeds, 3)) for t in images]

            def error(cell: tuple[float, int, TestImage], family: str = family, count: int = count) -> float:
                power, draw, image = cell
                strategy = make_strategy(f"{family}:{power:g}")
                start = start_count(strategy, image.one.shape[0], count, self.recipe, image.calibration_lines)
                lines = self._trace([image.one], strategy, count, start, draw).lines
                return float(self._error(image, lines)["relative_l2"])  # type: ignore[arg-type]

            with ThreadPoolExecutor(self.jobs) as pool:
                errors = np.array(list(pool.map(error, cells))).reshape(len(powers), -1)
            progress.tuned[f"{family}|{count}|{grid}"] = powers[int(np.argmin(errors.mean(axis=1)))]
            progress.save()
            show("tuning densities", done, len(jobs))


def _key(name: str, count: int, draw: int, image: int) -> str:
    return f"{name}|{count}|{draw}|{image}"


def _base(name: str) -> str:
    return name.removesuffix(FIXED).removesuffix(TUNED)


def _mask_text(one: MRSlice) -> str:
    return "".join("1" if flag else "0" for flag in one.measured) if not one.measured.all() else "all"


def _is_random(name: str) -> bool:
    return not make_strategy(_base(name)).needs_posterior and _base(name) not in ("low-pass", "golden-ratio")
