"""A study: several strategies make masks of the same scans, and one reconstruction shows how good each mask is.

`compare`, `protocol` and the demo are studies. A study has cells: a strategy, a number of lines, a draw and a test
image. Masks that look at no data are drawn once per draw and used on every image. Strategies with a posterior are of
two kinds: adaptive (each test scan is designed on its own lines as they arrive, without its truth) and, with training
scans, fixed (one mask designed on the training slices together, used on every test image). What is finished is kept in
one file, from which an interrupted study goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from mri_design.design.fixed import LowPass
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.design.training import Outcome, ReferenceSlice, TrainedOrder
from mri_design.errors import InputError
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.run_folder import PROGRESS, InputFile
from mri_design.evaluation.tables import Row
from mri_design.experiment.companion_images import companion_file
from mri_design.experiment.design import DesignOptions, run_design
from mri_design.experiment.extent import DesignPlan, candidates_of, centre_for_maps, slice_of
from mri_design.experiment.inputs import ScanSource, source_files
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    explained,
    is_random,
    make_strategy,
    strategy_files,
    strategy_label,
    tuned_powers,
    with_power,
)
from mri_design.kinds import KINDS, Kind
from mri_design.model.slice import SliceModel
from mri_design.readouts import Readouts
from mri_design.runs import error_tables
from mri_design.runs.known_slice import knowing_oracle, knowing_rule
from mri_design.runs.store import Record
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers
from mri_design.status import Status

FIXED = "@train"
"""Suffix of a posterior strategy whose mask was designed on the training slices."""
TUNED = "@tuned"
"""Suffix of a density whose power was tuned on the training slices."""
CENTRE = "@centre"
"""Suffix of a mask that looks at no data and begins with as many centre lines as designs do, with several coils."""
TUNING_DRAWS = 3
"""Draws of each density that tuning averages over, at most."""

Lines = tuple[int, ...]
Cell = tuple[str, int, int, int]
"""Strategy, lines, draw, test image."""
Show = Callable[[str, int, int], None]
Key = TypeVar("Key")
Piece = TypeVar("Piece")


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """Request for a study, whichever it is.

    Parameters
    ----------
    sources : sequence of ScanSource
        Inputs: those to compare on, or to learn from.
    recipe : Recipe
        Inference, and the one reconstruction behind every error.
    """

    sources: Sequence[ScanSource]
    recipe: Recipe

    def recorded(
        self,
        kind: str,
        work: Work,
        choices: Mapping[str, object],
        strategies: Sequence[str] = (),
        **further: Sequence[ScanSource],
    ) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Parameters
        ----------
        kind : str
            Of the run, for its identity.
        work : Work
            Its seed is recorded.
        choices : mapping
            Settings other than the sources.
        strategies : sequence of str
            Names, for the files that these read.
        further : sequences of ScanSource
            Further inputs, by their names in the manifest.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        given = {"sources": self.sources, **further}
        every = [source for group in given.values() for source in group]
        beside = dict.fromkeys(companion_file(name) for source in every for name in source.companions)
        files = [*source_files(every), *strategy_files(strategies), *beside]
        labels = {name: [source.label for source in group] for name, group in given.items()}
        inputs, settings = InputFile.of_all(files), {**labels, **choices, "seed": work.seed}
        return Record(work.identity(kind, {"inputs": [file.sha256 for file in inputs], **settings}), inputs, settings)


@dataclass(frozen=True, kw_only=True)
class Material:
    """Images and settings that every piece of a study needs.

    Parameters
    ----------
    tests, training : sequences of ReferenceSlice
        Images to evaluate on, and to tune, train and design on.
    recipe : Recipe
        Inference, and the one reconstruction that is used for every mask.
    seed : int
        Of everything random.
    """

    tests: Sequence[ReferenceSlice] = ()
    training: Sequence[ReferenceSlice] = ()
    recipe: Recipe
    seed: int = 0


@dataclass(frozen=True)
class MaskJob:
    """A mask to make: strategy by name, lines in the end and at the start, draw, and for which image.

    With ``training`` images it is designed on them together, from the lines that the test image holds.
    """

    strategy: str
    target: int
    start: int
    draw: int
    image: int
    training: tuple[int, ...] = ()


def converged_lines(trace: DesignTrace) -> int:
    """How many of the first lines were chosen by steps that converged."""
    missed = (i for i, step in enumerate(trace.steps, len(trace.start)) if not step.converged)
    return next(missed, len(trace.lines))


def design_mask(material: Material, job: MaskJob) -> DesignTrace:
    """The mask of a job and its design."""
    image, recipe, seed = material.tests[job.image], material.recipe, material.seed
    strategy = make_strategy(job.strategy, recipe.design.encoding)
    test = slice_for(image, job.strategy, job.target, recipe, seed)
    if job.strategy in ORACLES:  # which see the truth, and with it the coil maps of all lines
        slices = [slice_for(image, job.strategy, job.target, recipe, seed, whole=True)]
        return _design(material, slices, knowing_oracle(strategy, slices, [image.reference], recipe, seed), job)
    training = [material.training[i] for i in job.training]
    models = [slice_for(scan, job.strategy, job.target, recipe, seed, whole=True) for scan in training]
    slices = [replace(model, measured=model.measured & test.measured) for model in models] or [test]
    if job.strategy in TRAINING_RULES:
        strategy = knowing_rule(job.strategy, training, recipe, seed)
    return _design(material, slices, strategy, job)


def cell_error(material: Material, job: tuple[int, str, Lines]) -> dict[str, object]:
    """Errors of a test image reconstructed from what a strategy, named without suffixes, chose.

    Where coil maps are estimated from these lines, ``maps`` is the method, ``maps_lines`` how many lines it used,
    ``maps_error`` the relative error of its prediction of lines held back, None where none were, and ``maps_bad``
    whether that speaks against the maps.
    """
    image, strategy, lines = material.tests[job[0]], job[1], job[2]
    seen = slice_for(image, strategy, len(lines), material.recipe, material.seed)
    rests: dict[str, object] = {}
    if (estimate := seen.coil_map_estimate(lines)) is not None:  # remembered for the image
        missed = None if math.isnan(estimate.prediction_error) else estimate.prediction_error
        rests = {"maps": estimate.method, "maps_lines": estimate.lines, "maps_error": missed}
        rests["maps_bad"] = estimate.predicts_badly
    seen = seen.calibrated(lines)
    result = reconstruct_by_recipe(seen, lines, material.recipe, material.seed)
    errors = measure(result.image * image.unit_of(seen), image.shown)
    return rests | {
        "relative_l2": errors.relative_l2,
        "psnr": errors.psnr,
        "ssim": errors.ssim,
        "reconstruction_converged": result.convergence.converged,
        **({} if result.companions is None else result.companions.columns()),
    }


def tuning_error(material: Material, job: MaskJob) -> float:
    """Relative error of a training image with one draw of a mask that looks at no data."""
    trained = replace(material, tests=material.training)
    lines = design_mask(trained, job).lines
    return float(str(cell_error(trained, (job.image, job.strategy, lines))["relative_l2"]))


def trial_outcome(material: Material, trial: tuple[int, Lines]) -> Outcome:
    """How wrong a training scan is when reconstructed from some lines."""
    scan = material.training[trial[0]]
    result = reconstruct_by_recipe(scan.slice_model, trial[1], material.recipe, material.seed)
    return scan.outcome(result.image, result.convergence.converged)


def _design(material: Material, slices: Sequence[SliceModel], strategy: Strategy, job: MaskJob) -> DesignTrace:
    options = DesignOptions(draw=job.draw)
    return run_design(
        slices, strategy, job.target, material.recipe, seed=material.seed, start=job.start, options=options
    ).trace


def candidates_for(image: ReferenceSlice, strategy: str, count: int, recipe: Recipe) -> Readouts:
    """Candidates of which a strategy chooses ``count``: the image's lines or samples, or shots made for both."""
    encoding, on_grid = recipe.design.encoding, image.slice_model
    if KINDS[encoding].on_grid:
        return on_grid.candidates
    return candidates_of(recipe, make_strategy(strategy, encoding), on_grid.shape, count, on_grid.n_coils)


def slice_for(
    image: ReferenceSlice, strategy: str, count: int, recipe: Recipe, seed: int, *, whole: bool = False
) -> SliceModel:
    """The image's slice as a strategy for ``count`` measures it: as it is, or sampled along that strategy's shots.

    With ``whole`` coil maps are those of all its lines, where they have to be estimated from lines.
    """
    candidates = candidates_for(image, strategy, count, recipe)
    on_grid = image.as_measured if candidates.kind.on_grid and not whole else image.slice_model
    return slice_of(on_grid, candidates, image.source, lambda: image.reference, recipe, seed)


def base_name(name: str) -> str:
    """A strategy's name without what training made of it, and without how many centre lines it begins with."""
    return name.removesuffix(CENTRE).removesuffix(FIXED).removesuffix(TUNED)


def table_name(name: str) -> str:
    """A strategy's name in tables: without the folders of a file, and without how many centre lines it begins with."""
    return strategy_label(name.removesuffix(CENTRE))


@dataclass
class StudyPieces:
    """Finished pieces of a study, by their keys: what an interrupted one goes on from.

    Parameters
    ----------
    masks : mapping of str to list of int
        Lines in the order of acquisition, see `Study.mask_lines`.
    rows : mapping of str to mapping
        Errors of every cell.
    tuned : mapping of str to float
        Powers of densities.
    masks_converged : mapping of str to bool
        Whether all steps behind a mask did.
    trials : mapping of str to mapping
        Errors of images that other methods make, see `methods.MethodStudy`.
    """

    masks: dict[str, list[int]] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    tuned: dict[str, float] = field(default_factory=dict)
    masks_converged: dict[str, bool] = field(default_factory=dict)
    trials: dict[str, Row] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """ "converged", or how many reconstructions and how many designs of masks did not."""
        images = [bool(row["reconstruction_converged"]) for row in self.rows.values()]
        ended = {"reconstructions": images, "masks": list(self.masks_converged.values())}
        parts = [f"{flags.count(False)} of {len(flags)} {what}" for what, flags in ended.items() if not all(flags)]
        return f"{' and '.join(parts)} not converged" if parts else Status.CONVERGED.value

    def read(self, keep: Keep, name: str) -> None:
        """Take what is kept under a name, if anything; raises as `Keep.table`."""

        def parse(stored: dict[str, Any]) -> dict[str, Any]:
            parts = {part: stored[part] for part in vars(self)}
            if not all(isinstance(part, dict) for part in parts.values()):
                raise TypeError("a part that is no table")
            if parts["masks"].keys() != parts["masks_converged"].keys():
                raise ValueError("masks without how their design ended")
            return parts

        vars(self).update(keep.table(name, "a comparison's progress", parse) or {})


@dataclass(frozen=True)
class Bench:
    """Resources for the pieces of a study: processes, a display of progress, and a store of finished pieces."""

    workers: Workers[Any]
    show: Show
    save: Callable[[], None]

    def finished(
        self, part: str, function: Callable[[Any, Any], Piece], jobs: Mapping[Key, Any], every: int = 20
    ) -> Iterator[tuple[Key, Piece]]:
        """Pieces by the keys of their jobs, as they are finished.

        They are kept after ``every`` so many and in the end, also where one fails.
        """
        self.show(part, 0, len(jobs))
        keys = list(jobs)
        try:
            for done, (place, piece) in enumerate(self.workers.finished(function, jobs.values()), 1):
                yield keys[place], piece
                if done % every == 0:
                    self.save()
                self.show(part, done, len(jobs))
        finally:
            self.save()


@dataclass(frozen=True, kw_only=True)
class Study(Material):
    """Cells to be computed, and what is finished of them.

    Parameters
    ----------
    tests, training, recipe, seed
        As `Material`: all images have one number of candidates, and no image may be in both.
    strategies : sequence of str
        Names, see `make_strategy`.
    lines : sequence of int
        Line counts, or counts of samples or shots.
    seeds : int
        Draws of every random strategy.
    given : mapping of str to tuple of int
        Masks that are there already, by the name that tables have for them: all have the one line count.
    pieces : StudyPieces
        What is finished; `run` fills it.
    """

    strategies: Sequence[str]
    lines: Sequence[int]
    seeds: int = 5
    given: Mapping[str, Lines] = field(default_factory=dict)
    pieces: StudyPieces = field(default_factory=StudyPieces, init=False)

    def __post_init__(self) -> None:
        first, cure = [*self.tests, *self.training][0], "Run one comparison per matrix size."
        for role, scans in (("test scans", self.tests), ("training scans", self.training)):
            for scan in scans:
                wanted, got = (" x ".join(map(str, one.slice_model.candidates.shape)) for one in (first, scan))
                if got != wanted:
                    units = f"{first.slice_model.candidates.unit}s"
                    raise InputError(role, f"{scan.name} with {got} {units}", f"{wanted} as {first.name}", cure)

    @property
    def kind(self) -> Kind:
        """What masks consist of: lines, samples or shots."""
        return KINDS[self.recipe.design.encoding]

    @property
    def counted(self) -> str:
        """Name of what is counted: "lines", "samples" or "shots"."""
        return self.kind.counted

    @cached_property
    def expanded(self) -> list[str]:
        """Masks that were given, then strategies with their variants, in the order requested.

        With several coils every mask of lines that looks at no data is there twice, with the centre lines that it
        usually has and with those of designs (`CENTRE`), where these are not the same mask.
        """
        names = [*self.given]
        for name in self.strategies:
            if name not in TRAINING_RULES:
                names.append(name)
            if self.training and self.rule(name).needs_posterior and name not in ORACLES:
                names.append(name + FIXED)
            if self.training and tuned_powers(name, self.recipe.design.encoding):
                names[-1] = name + TUNED
            if names and base_name(names[-1]) == name and self._has_two_centres(name):
                names.append(names[-1] + CENTRE)
        return names

    @property
    def names(self) -> list[str]:
        """`expanded`, each mask once, however many centre lines it is tried with."""
        return [name for name in self.expanded if not name.endswith(CENTRE)]

    def _has_two_centres(self, name: str) -> bool:
        """Whether designs begin with another number of centre lines than a strategy that looks at no data."""
        rule = self.rule(name)
        if rule.needs_posterior or name in ORACLES or isinstance(rule, LowPass | TrainedOrder):
            return False
        several = [test for test in self.tests if test.slice_model.n_coils > 1 and self.kind.centre_first]
        return any(
            self._start(name, count, test) != self._start(name + CENTRE, count, test)
            for test in several
            for count in self.lines
        )

    @property
    def words(self) -> dict[str, str]:
        """What its strategies choose, by their names in tables; those without an explanation are left out."""
        unit, words = self.kind.unit, dict[str, str]()
        trained = {
            FIXED: "; designed on the training scans, and then kept for all",
            TUNED: "; tuned on the training scans",
        }
        for name in self.names:
            if about := explained(base_name(name)):
                suffix = next((text for suffix, text in trained.items() if name.endswith(suffix)), "")
                words[strategy_label(name)] = f"{unit}s {about}{suffix}"
        return words

    def rule(self, name: str) -> Strategy:
        """The strategy called ``name``, which may have a suffix, for what the recipe chooses one by one."""
        return make_strategy(base_name(name), self.recipe.design.encoding)

    def _looks(self, name: str) -> bool:
        """Whether a strategy, with its suffixes, looks at the test scan."""
        return name in ORACLES or (not name.endswith(FIXED) and self.rule(name).needs_posterior)

    @cached_property
    def cells(self) -> list[Cell]:
        """(strategy, lines, draw, test image) of every cell of the table."""
        cells: list[Cell] = []
        for name in self.expanded:
            drawn = name not in self.given and is_random(base_name(name), self.recipe.design.encoding)
            draws = range(self.seeds) if drawn else range(1)
            cells += [(name, n, s, i) for n in self.lines for s in draws for i in range(len(self.tests))]
        return cells

    @contextmanager
    def bench(
        self, work: Work, keep: Keep, workers: Workers[Any] | None = None, name: str = PROGRESS
    ) -> Iterator[Bench]:
        """Compute its pieces and keep them under a name; finished pieces are read from there.

        ``workers`` are those of these images that are there already.
        """
        pieces = self.pieces
        pieces.read(keep, name)
        with nullcontext(workers) if workers else Workers(self, work.jobs, work.executor) as among:
            yield Bench(among, work.progress.show, lambda: keep.keep_table(name, vars(pieces)))

    def run(self, work: Work, keep: Keep, workers: Workers[Any] | None = None, name: str = PROGRESS) -> StudyPieces:
        """Tune, design, reconstruct and measure what is not finished; see `bench`."""
        with self.bench(work, keep, workers, name) as bench:
            self._tune(bench)
            bench.show("reconstructing", 0, sum(cell_key(*cell) not in self.pieces.rows for cell in self.cells))
            self._make_masks(bench)
            left = [cell for cell in self.cells if cell_key(*cell) not in self.pieces.rows]
            jobs = {cell: (cell[-1], *self.mask_of(cell)) for cell in left}
            for cell, errors in bench.finished("reconstructing", cell_error, jobs):
                self.pieces.rows[cell_key(*cell)] = self._row(cell, errors)
        return self.pieces

    def mask_lines(self, name: str, count: int, draw: int, image: int) -> Lines:
        """Lines of one cell, in acquisition order."""
        return self.given.get(name) or tuple(self.pieces.masks[self._mask_key(name, count, draw, image)])

    def mask_of(self, cell: Cell) -> tuple[str, Lines]:
        """Name of the cell's strategy, with its tuned power and without suffixes, and its lines (`mask_lines`)."""
        name, count, _, image = cell
        return self._strategy(name, count, image)[0], self.mask_lines(*cell)

    def _error(self, cell: Cell) -> float:
        return float(str(self.pieces.rows[cell_key(*cell)]["relative_l2"]))

    def typical_draw(self, name: str, count: int, image: int) -> int:
        """The draw of a finished comparison whose error on an image is the median one (the upper of two)."""
        cells = [cell for cell in self.cells if (cell[0], cell[1], cell[3]) == (name, count, image)]
        return sorted(cells, key=self._error)[len(cells) // 2][2]

    def counting(self, count: int) -> dict[str, str]:
        """Of every mask in tables the variant that counts at one number of lines, of a finished study.

        That is the only one, or of two numbers of centre lines (`CENTRE`) the one with the smaller mean error.
        """
        errors, better = dict[str, list[float]](), dict[str, str]()
        for cell in self.cells:
            if cell[1] == count:
                errors.setdefault(cell[0], []).append(self._error(cell))
        for name in errors:
            rival = better.setdefault(name.removesuffix(CENTRE), name)
            if np.mean(errors[name]) < np.mean(errors[rival]):
                better[name.removesuffix(CENTRE)] = name
        return better

    def errors(self) -> error_tables.StudyErrors:
        """Tables over all cells, which are finished."""
        every = [self.pieces.rows[cell_key(*cell)] for cell in self.cells]
        counted = {(variant, n): name for n in self.lines for name, variant in self.counting(n).items()}
        rows = [{**row, "strategy": counted[_cell(row)]} for row in every if _cell(row) in counted]
        variants, names, counts = self.expanded, self.names, self.lines
        real = [name for name in names if name not in ORACLES]
        designed = list(self.given) or [name for name in real if self.rule(name).needs_posterior]
        others = [name for name in (names if self.given else real) if name not in designed]
        fixed = [variant for variant in variants if variant.removesuffix(CENTRE) in others]
        summary = error_tables.summary_table(every, variants, counts)
        if len(variants) > len(names):
            summary = [{**row, "counts": "yes" if _cell(row) in counted else "no"} for row in summary]
        tables = {
            "winners": [] if self.given else error_tables.winners_table(rows, real or names, counts),
            "summary": summary,
            "gains": error_tables.gains_table(every, designed, fixed, counts),
            "enough": error_tables.enough_table(rows, real or names, counts),
            "paired": error_tables.paired_table(rows, designed, others, counts) if designed and others else [],
            "maps": error_tables.maps_table(every, variants, counts),
            "companions": error_tables.companions_table(every, variants, counts),
        }
        return error_tables.StudyErrors(
            rows=self._labelled(every),
            runs={strategy_label(name): error_tables.runs_of(rows, name, counts) for name in names},
            tables={name: self._labelled(table) for name, table in tables.items() if table},
            counts=counts,
        )

    def _labelled(self, rows: Sequence[Row]) -> list[Row]:
        """Names without the folders of files; what is counted, by its own name."""

        def entry(key: str, value: object) -> object:
            return table_name(value) if key in error_tables.NAMES and isinstance(value, str) else value

        return [{self.counted if key == "lines" else key: entry(key, row[key]) for key in row} for row in rows]

    def _mask_key(self, name: str, count: int, draw: int, image: int) -> str:
        test = self.tests[image]
        place = test.name
        if not self._looks(name):
            measured = test.slice_model.measured
            held = "all" if measured.all() else "".join("1" if flag else "0" for flag in measured)
            place = f"grid{_size(test)}-{test.calibration_lines}-{held}"
        return f"{name}|{count}|{draw}|{place}"

    def _tuned_key(self, name: str, count: int) -> str:
        return f"{name.replace(TUNED, '')}|{count}|{_size(self.tests[0])}"

    def _strategy(self, name: str, count: int, image: int) -> tuple[str, int]:
        """Full name of a strategy (with its tuned power) and the centre lines it starts with."""
        if name in self.given:
            return name, 0
        base = base_name(name)
        if TUNED in name:
            base = with_power(base, self.pieces.tuned[self._tuned_key(name, count)])
        return base, self._start(name, count, self.tests[image])

    def _start(self, strategy: str, count: int, image: ReferenceSlice) -> int:
        """Centre lines, or samples of a plane or shots, that a mask of a strategy, with its suffixes, begins with."""
        if strategy.endswith(CENTRE):
            designs = (name for name in self.strategies if self.rule(name).needs_posterior)
            return self._start(next(designs, Recipe().design.strategy), count, image)
        strategy = base_name(strategy)
        rule, n_coils = self.rule(strategy), image.slice_model.n_coils
        candidates = candidates_for(image, strategy, count, self.recipe)
        calibration = image.calibration_lines if self.kind.centre_first else 0  # a plane's is among the constraints
        if image.own_maps is not None:
            calibration = centre_for_maps(rule, self.recipe, count, n_coils=n_coils)
        plan = DesignPlan.of(rule, self.recipe, candidates)
        plan.rules.needed(image.slice_model.measured, calibration)  # refuses contradictions
        return plan.start_count(count, calibration, n_coils)

    def _make_masks(self, bench: Bench) -> None:
        """One design for all counts that start from the same lines, where it may be cut short."""
        keys = {self._mask_key(*cell): cell for cell in self.cells if cell[0] not in self.given}
        groups: dict[Cell, list[int]] = {}
        for key, (name, count, draw, image) in keys.items():
            if key not in self.pieces.masks:
                strategy, start = self._strategy(name, count, image)
                grows = self._grows(strategy, count, self.tests[image])
                groups.setdefault((name, start if grows else -count, draw, image), []).append(count)
        jobs = {group: self._mask_job(group, max(counts)) for group, counts in groups.items()}
        for group, mask in bench.finished("designing masks", design_mask, jobs, every=1):
            for count in groups[group]:
                key = self._mask_key(group[0], count, *group[2:])
                self.pieces.masks[key] = [int(k) for k in mask.lines[:count]]
                self.pieces.masks_converged[key] = count <= converged_lines(mask)

    def _grows(self, strategy: str, count: int, image: ReferenceSlice) -> bool:
        """Whether the first lines of a larger mask are a mask."""
        rule, seen = self.rule(strategy), image.slice_model
        return (
            (rule.needs_posterior or strategy in ORACLES)
            and not rule.unseen(seen.candidates, count, seen.n_coils)  # a first part that depends on the whole
            and not rule.plans_ahead(seen.candidates, seen.n_coils)
            and self.recipe.constraints.max_jump is None  # with short jumps every line looks to the last
            and not self.kind.shots  # whose candidates depend on their number
        )

    def _mask_job(self, group: Cell, target: int) -> MaskJob:
        name, _, draw, image = group
        training: tuple[int, ...] = ()
        if name.endswith(FIXED):
            shape = self.tests[image].slice_model.shape
            training = tuple(i for i, t in enumerate(self.training) if t.slice_model.shape == shape)
            if not training:
                wanted = "at least one for a fixed mask"
                raise InputError(field="training scans", got="none on the test scan's grid", wanted=wanted)
        strategy, start = self._strategy(name, target, image)
        return MaskJob(strategy, target, start, draw, image, training)

    def _row(self, cell: Cell, errors: Mapping[str, object]) -> Row:
        name, count, draw, image = cell
        test, several = self.tests[image], any(test.slice_model.n_coils > 1 for test in self.tests)
        measured, whole = candidates_for(test, base_name(name), count, self.recipe).part_of_grid(count)
        row: dict[str, object] = {"strategy": name, "lines": count, "acceleration": whole / measured}
        row |= {"draw": draw, "image": test.name}
        if self.kind.centre_first and several:  # where the numbers of centre lines differ between masks
            row["centre"] = None if name in self.given else self._strategy(name, count, image)[1]
        if any(test.own_maps for test in self.tests):
            row |= dict.fromkeys(error_tables.MAP_COLUMNS)
        if any(test.slice_model.companions for test in self.tests):
            row |= dict.fromkeys(error_tables.COMPANION_COLUMNS)
        mask_converged = name in self.given or self.pieces.masks_converged[self._mask_key(*cell)]
        converged = mask_converged and bool(errors["reconstruction_converged"])
        return {**row, **errors, "mask_converged": mask_converged, "converged": converged}

    def _tune(self, bench: Bench) -> None:
        """The power with the least mean error on the training images, for each family and count."""
        tuned = self.pieces.tuned
        keys = {(name, n): self._tuned_key(name, n) for name in self.expanded if TUNED in name for n in self.lines}
        wanted = [one for one, key in keys.items() if key not in tuned]
        for done, (family, count) in enumerate(wanted):
            bench.show("tuning densities", done, len(wanted))
            powers = tuned_powers(base_name(family), self.recipe.design.encoding)
            jobs = [
                MaskJob(name, count, self._start(family, count, image), draw, i)
                for name in (with_power(base_name(family), power) for power in powers)
                for draw in range(min(self.seeds, TUNING_DRAWS))
                for i, image in enumerate(self.training)
            ]
            errors = np.array(list(bench.workers.map(tuning_error, jobs))).reshape(len(powers), -1)
            tuned[keys[family, count]] = powers[int(np.argmin(errors.mean(axis=1)))]
            bench.save()
        bench.show("tuning densities", len(wanted), len(wanted))


def cell_key(name: str, count: int, draw: int, image: int) -> str:
    """Name of a cell among the finished pieces."""
    return f"{name}|{count}|{draw}|{image}"


def _cell(row: Row) -> tuple[str, int]:
    """Strategy and number of lines of a row."""
    return str(row["strategy"]), int(str(row["lines"]))


def _size(image: ReferenceSlice) -> int:
    """Lines of the grid, or samples of the plane."""
    return image.slice_model.candidates.size
