"""A comparison run: strategies make masks of the same scans, and one reconstruction tells how good each mask is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import UsageError
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.metrics import ImageMetrics, measure
from mri_design.evaluation.run_status import PROGRESS
from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import require_lines, require_room, with_calibration
from mri_design.experiment.ending import check_other_than_lines, require_number_only
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, reconstruct_by_recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.strategy_names import (
    ORACLES,
    TRAINING_RULES,
    learns_from_scans,
    make_strategy,
    strategy_files,
    strategy_label,
)
from mri_design.operators.encodings import KINDS, Encoding, PlaneEncoding, ShotEncoding
from mri_design.runs.held_out.comparison import Cell, Comparison, base_name
from mri_design.runs.held_out.jobs import candidates_for
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.held_out.tables import errors_by_image, paired_table, summary_table, winners_table
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scans import load_images, require_apart
from mri_design.scan.data import Orientation


@dataclass(frozen=True, kw_only=True)
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
        Line counts, or counts of samples of a plane.
    train : sequence of ScanSource
        Training inputs.
    seeds : int
        Draws of every random strategy.
    accelerations : sequence of float
        In the place of ``lines``: the grid divided by these, rounded.
    powers : mapping of (str, int) to float
        Powers of densities that are known, by family and number of lines; the others are tuned on ``train``.

    Raises
    ------
    UsageError
        For an unknown strategy, one that learns from training inputs where there are none, training inputs from which
        none learns, or a recipe that ends designs early; in a plane, for what is known for lines only; without or with
        both counts and accelerations.
    """

    sources: Sequence[ScanSource]
    recipe: Recipe
    strategies: Sequence[str]
    lines: Sequence[int]
    train: Sequence[ScanSource] = ()
    seeds: int = 5
    accelerations: Sequence[float] = ()
    powers: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.lines) == bool(self.accelerations):
            raise UsageError("give numbers of lines (or samples of a plane), or accelerations")
        check_other_than_lines(self.recipe)
        if self.accelerations and KINDS[self.recipe.design.encoding].shots:
            raise UsageError("how many spokes or arms? Give their numbers with --shots")
        for name in self.strategies:
            make_strategy(name, self.recipe.design.encoding)
            if name in TRAINING_RULES and not self.train:
                raise UsageError(f"{name} learns from fully sampled training scans: give some with --train")
        if self.train and not any(learns_from_scans(name, self.recipe.design.encoding) for name in self.strategies):
            raise UsageError(
                f"--train gives scans to learn from, and none of these strategies learns: {', '.join(self.strategies)}"
                ". Leave out --train, or add a strategy with a posterior, as information-gain"
            )
        require_number_only(self.recipe, "a comparison needs equal numbers of lines")

    def counts(self, size: int) -> list[int]:
        """Numbers of lines or samples on a grid of ``size``."""
        return sorted({*self.lines, *(max(1, round(size / factor)) for factor in self.accelerations)})

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
            **({"accelerations": list(self.accelerations)} if self.accelerations else {}),
            **({"powers": {f"{name}|{n}": power for (name, n), power in self.powers.items()}} if self.powers else {}),
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
    mask : bool array, shape (ky,), or (ky, kz) in a plane
        What is measured; of random masks the draw whose error is the median one.
    reconstruction : Reconstruction
        With error bars for the first strategy that goes by a posterior.
    errors : ImageMetrics
        Against the true image.
    encoding : Encoding
        What the mask is a mask of: shots differ from strategy to strategy.
    """

    strategy: str
    mask: NDArray[np.bool_]
    reconstruction: Reconstruction
    errors: ImageMetrics
    encoding: Encoding


@dataclass(frozen=True)
class StrategyErrors:
    """Errors of the strategies, cell by cell and in tables; strategies' names are without the folders of files.

    Parameters
    ----------
    rows : sequence of mappings
        One for each strategy, line count, draw and test image.
    winners, summary : sequence of mappings
        `winners_table` without oracles, and `summary_table`.
    paired : sequence of mappings
        `paired_table` of the strategies that go by a posterior against the others; empty where either are missing.
    runs : mapping of str to float array, shape (run, count)
        Errors of each strategy: a run is a draw where its mask is random, and an image where it is not.
    """

    rows: Sequence[Row]
    winners: Sequence[Row]
    summary: Sequence[Row]
    paired: Sequence[Row]
    runs: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
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
    errors : StrategyErrors
        How wrong the image is with each strategy.
    masks : sequence of mappings
        Every mask: strategy, lines, draw, image, and the lines in acquisition order.
    tuned : sequence of mappings
        Powers of the densities that were tuned on the training scans.
    shown : sequence of ShownMask
        Masks of one line count and their images, to look at.
    orientation : {"ky-rows", "ky-columns"}
        How the first test input lays its images.
    """

    comparison: Comparison
    record: Record
    ending: Ending
    errors: StrategyErrors
    masks: Sequence[Row]
    tuned: Sequence[Row]
    shown: Sequence[ShownMask]
    orientation: Orientation

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        pieces: ComparisonProgress,
        record: Record,
        orientation: Orientation,
        *,
        pictures: bool = True,
    ) -> ComparisonResult:
        """What the finished pieces of a comparison come to; without ``pictures`` nothing is reconstructed for them."""
        return cls(
            comparison=comparison,
            record=record,
            ending=Ending(pieces.status),
            errors=strategy_errors(comparison, pieces),
            masks=_masks(comparison, pieces),
            tuned=_tuned(pieces, comparison.counted),
            shown=shown_masks(comparison, pieces) if pictures else [],
            orientation=orientation,
        )


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
    tests, orientation = load_images(request.sources, recipe, run)
    training, _ = load_images(request.train, recipe, run)
    require_apart(training, tests)
    recipe = with_calibration(recipe, max(image.calibration_lines for image in (*tests, *training)))
    lines = request.counts(tests[0].slice_model.candidates.size)
    for image in tests if not KINDS[recipe.design.encoding].shots else ():  # shots are made in any number
        candidates = image.slice_model.candidates
        plane = candidates if isinstance(candidates, PlaneEncoding) else None
        require_lines(image.slice_model.measured, max(lines), recipe, plane)
        shared = max(1, len(training))  # slices behind one mask
        require_room(candidates, image.slice_model.n_coils, max(lines), recipe, slices=shared, processes=run.jobs)
    comparison = Comparison(
        tests=tests,
        strategies=request.strategies,
        lines=lines,
        recipe=recipe,
        training=training,
        seeds=request.seeds,
        seed=run.seed,
        jobs=run.jobs,
        executor=run.executor,
        powers=request.powers,
    )
    run.finished(record.identity, checkpoint=PROGRESS)  # a finished one is written again from its pieces
    run.begin()
    pieces = ComparisonProgress.open(run.folder.output_path(PROGRESS), record.identity)
    for origin in dict.fromkeys(image.simulated for image in [*tests, *training] if image.simulated):
        run.progress.say(f"simulated k-space {origin}")
    comparison.run(pieces, run.progress.show)
    return ComparisonResult.of(comparison, pieces, record, orientation, pictures=run.folder.reported)


def strategy_errors(comparison: Comparison, pieces: ComparisonProgress) -> StrategyErrors:
    """Tables over all cells of a finished comparison."""
    rows = [pieces.rows["|".join(map(str, cell))] for cell in comparison.rows_wanted()]
    names, counts, counted = comparison.expanded(), comparison.lines, comparison.counted
    real = [name for name in names if name not in ORACLES]
    blind = [name for name in real if not comparison.rule(name).needs_posterior]
    designed = [name for name in real if name not in blind]
    return StrategyErrors(
        rows=[_labelled(row, counted) for row in rows],
        winners=[_labelled(row, counted) for row in winners_table(rows, real or names, counts)],
        summary=[_labelled(row, counted) for row in summary_table(rows, names, counts)],
        paired=[_labelled(row, counted) for row in paired_table(rows, designed, blind, counts)]
        if designed and blind
        else [],
        runs={strategy_label(name): _runs(rows, name, counts) for name in names},
    )


def _runs(rows: Sequence[Row], name: str, counts: Sequence[int]) -> NDArray[np.float64]:
    tables = [errors_by_image(rows, name, count) for count in counts]
    draws = len(tables[0]) > 1
    return np.array([table.mean(axis=1 if draws else 0) for table in tables]).T


def _labelled(row: Row, counted: str) -> Row:
    """Names without the folders of files; what is counted, by its own name."""
    return {
        counted if key == "lines" else key: strategy_label(value) if isinstance(value, str) and key in _NAMES else value
        for key, value in row.items()
    }


_NAMES = ("strategy", "against", "best", "second")
"""Columns that hold names of strategies."""


def _masks(comparison: Comparison, pieces: ComparisonProgress) -> list[Row]:
    return [
        {
            "strategy": strategy_label(name),
            comparison.counted: count,
            "draw": draw,
            "image": comparison.tests[image].name,
            **_order(comparison, pieces, (name, count, draw, image)),
        }
        for name, count, draw, image in comparison.rows_wanted()
    ]


def _order(comparison: Comparison, pieces: ComparisonProgress, cell: Cell) -> Row:
    """What was chosen, in order; of shots with their angles, since every strategy has candidates of its own."""
    name, count, _, image = cell
    order = list(comparison.mask_lines(pieces, *cell))
    if comparison.counted != "shots":
        return {"order": order}
    shots = candidates_for(comparison.tests[image], base_name(name), count, comparison.recipe)
    assert isinstance(shots, ShotEncoding) and shots.angles is not None
    return {"order": order, "angles_degrees": [float(np.degrees(shots.angles[shot])) for shot in order]}


def _tuned(pieces: ComparisonProgress, counted: str) -> list[Row]:
    rows: list[Row] = []
    for key, power in pieces.tuned.items():
        family, count, grid = key.split("|")
        rows.append({"family": family, counted: int(count), "grid": int(grid), "power": power})
    return rows


def shown_masks(comparison: Comparison, pieces: ComparisonProgress) -> list[ShownMask]:
    """What a finished comparison's pictures show: every strategy on the first test image, at the middle line count."""
    count = sorted(comparison.lines)[len(comparison.lines) // 2]
    test, recipe = comparison.tests[0], comparison.recipe
    shown: list[ShownMask] = []
    for name in comparison.expanded():
        lines = comparison.mask_lines(pieces, name, count, comparison.typical_draw(pieces, name, count, 0), 0)
        seen = comparison.seen(pieces, name, count, 0)
        mask = np.zeros(seen.candidates.size, dtype=bool)
        mask[list(lines)] = True
        mask = mask.reshape(seen.candidates.shape)
        known = any(other.reconstruction.std is not None for other in shown)
        with_std = not known and comparison.rule(name).needs_posterior
        result = reconstruct_by_recipe(seen, lines, recipe, comparison.seed, with_std=with_std).times(test.unit)
        shown.append(ShownMask(name, mask, result, measure(result.image, test.shown), seen.candidates))
    return shown
