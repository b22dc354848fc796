"""A comparison run: strategies make masks of the same scans, and one reconstruction tells how good each mask is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.errors import UsageError
from mri_design.evaluation.output.identity import PROGRESS
from mri_design.evaluation.output.manifest import InputFile
from mri_design.experiment.designing import require_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, reconstruct_by_recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.strategy_names import make_strategy, strategy_files, strategy_label
from mri_design.runs.held_out.comparison import Comparison, base_name
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scans import load_images, require_apart
from mri_design.scan.data import Orientation

__all__ = ["ComparisonRequest", "ComparisonResult", "ShownMask", "compare_strategies", "shown_masks"]


@dataclass(frozen=True)
class ComparisonRequest:
    """What a comparison is asked for.

    Parameters
    ----------
    sources : sequence of ScanSource
        Test inputs.
    recipe : Recipe
        Inference, and the one reconstruction that every mask gets.
    strategies : sequence of str
        Names, see `make_strategy`.
    lines : sequence of int
        Line counts.
    train : sequence of ScanSource
        Training inputs.
    seeds : int
        Draws of every random strategy.

    Raises
    ------
    UsageError
        For an unknown strategy, or a recipe that ends designs early.
    """

    sources: Sequence[ScanSource]
    recipe: Recipe
    strategies: Sequence[str]
    lines: Sequence[int]
    train: Sequence[ScanSource] = ()
    seeds: int = 5

    def __post_init__(self) -> None:
        for name in self.strategies:
            make_strategy(name)
        if self.recipe.design.until_error is not None or self.recipe.design.until_gain is not None:
            raise UsageError(
                "a comparison needs equal numbers of lines; take until_error and until_gain out of the recipe"
            )

    def record(self, run: Run) -> Record:
        """What a manifest says about it.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        inputs = InputFile.of_all([*source_files([*self.sources, *self.train]), *strategy_files(self.strategies)])
        choices = {
            "sources": [source.label for source in self.sources],
            "train": [source.label for source in self.train],
            "strategies": [strategy_label(name) for name in self.strategies],
            "lines": list(self.lines),
            "seeds": self.seeds,
            "seed": run.seed,
            **self.recipe.as_settings(),
        }
        identity = run.identity("comparison", {**choices, "inputs": [file.sha256 for file in inputs]})
        return Record(identity, inputs, choices)


@dataclass(frozen=True)
class ShownMask:
    """One strategy's mask of the first test image, and the image made from it.

    Parameters
    ----------
    strategy : str
        Name.
    lines : tuple of int
        In acquisition order; of random masks the draw whose error is the median one.
    reconstruction : Reconstruction
        With error bars for the first strategy that goes by a posterior.
    """

    strategy: str
    lines: tuple[int, ...]
    reconstruction: Reconstruction


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison came to.

    Parameters
    ----------
    comparison : Comparison
        Images, strategies and line counts.
    record : Record
        For the manifest.
    ending : Ending
        Status.
    pieces : ComparisonProgress
        Every mask, every error, and the powers that were tuned.
    shown : sequence of ShownMask
        Masks of one line count and their images, to look at.
    orientation : {"ky-rows", "ky-columns"}
        How the first test input lays its images.
    """

    comparison: Comparison
    record: Record
    ending: Ending
    pieces: ComparisonProgress
    shown: Sequence[ShownMask]
    orientation: Orientation


def compare_strategies(request: ComparisonRequest, run: Run) -> ComparisonResult:
    """Design, reconstruct and measure; what is finished in the run's folder is not done again.

    Every finished piece is kept in the folder at once.

    Raises
    ------
    UsageError
        Where an image is used for testing and training, two inputs have one name, or the folder holds another finished
        run.
    InputError
        Where an input cannot be used, or the folder holds another comparison's beginning.
    """
    recipe = request.recipe
    record = request.record(run)
    tests, orientation = load_images(request.sources, recipe, run.seed)
    training, _ = load_images(request.train, recipe, run.seed)
    require_apart(training, tests)
    for image in tests:
        require_lines(image.one.measured, max(request.lines), recipe)
    comparison = Comparison(
        tests=tests,
        strategies=request.strategies,
        lines=request.lines,
        recipe=recipe,
        training=training,
        seeds=request.seeds,
        seed=run.seed,
        jobs=run.jobs,
    )
    run.finished(record.identity, checkpoint=PROGRESS)  # a finished one is written again from its pieces
    run.begin()
    pieces = ComparisonProgress.open(run.folder.output_path(PROGRESS), record.identity)
    for origin in dict.fromkeys(image.simulated for image in [*tests, *training] if image.simulated):
        run.progress.say(f"simulated k-space {origin}")
    comparison.run(pieces, run.progress.show)
    shown = shown_masks(comparison, pieces)
    return ComparisonResult(comparison, record, Ending(pieces.status), pieces, shown, orientation)


def shown_masks(comparison: Comparison, pieces: ComparisonProgress) -> list[ShownMask]:
    """What a finished comparison's pictures show: every strategy on the first test image, at the middle line count."""
    count = sorted(comparison.lines)[len(comparison.lines) // 2]
    shown: list[ShownMask] = []
    for name in comparison.expanded():
        lines = comparison.mask_lines(pieces, name, count, comparison.typical_draw(pieces, name, count, 0), 0)
        known = any(mask.reconstruction.std is not None for mask in shown)
        with_std = not known and make_strategy(base_name(name)).needs_posterior
        one, recipe, seed = comparison.tests[0].one, comparison.recipe, comparison.seed
        shown.append(ShownMask(name, lines, reconstruct_by_recipe(one, lines, recipe, seed, with_std=with_std)))
    return shown
