"""`compare`: strategies make masks of the same scans, and one reconstruction, or several, judge each mask.

A study gives every mask one reconstruction, so that only masks differ. `MethodStudy` gives every mask several, so that
only these differ. The weight of a penalty is chosen from a grid for every method and number of lines: on the training
scans, or without any on the scans that are judged, which favours the textbook method.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import UsageError, option
from mri_design.estimation.compressed_sensing import TEXTBOOK
from mri_design.evaluation.metrics import ImageMetrics, measure
from mri_design.evaluation.page import Page, worded
from mri_design.evaluation.plots.pictures import (
    Frame,
    ImagePanel,
    error_caption,
    layout_of,
    metric_caption,
    object_top,
    scale_top,
)
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.evaluation.tables import Row
from mri_design.experiment import extent
from mri_design.experiment.design import require_room
from mri_design.experiment.inputs import ScanSource
from mri_design.experiment.reconstruction import Image, method_named, reconstruct_by_recipe
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    learns_from_scans,
    make_strategy,
    strategy_label,
    strategy_named,
)
from mri_design.kinds import KINDS
from mri_design.readouts import Readouts
from mri_design.registry import split_name
from mri_design.runs.error_tables import METRICS, StudyErrors, paired_table, summary_table
from mri_design.runs.image_sections import companion_pictures
from mri_design.runs.known_slice import facts_of_all, load_images, require_apart
from mri_design.runs.provenance import simulation_summary, tell_calibration
from mri_design.runs.store import Record, Report, Run, carry_out
from mri_design.runs.stored_run import Stored, StoredComparison
from mri_design.runs.study import (
    Cell,
    Lines,
    Material,
    Study,
    StudyRequest,
    base_name,
    candidates_for,
    cell_error,
    cell_key,
    slice_for,
    table_name,
)
from mri_design.runs.work import Keep, Work
from mri_design.scan.data import Orientation
from mri_design.scan.io.atomic import write_json
from mri_design.status import Status

WEIGHTS = (0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
"""Weights of a penalty that are tried, relative to the brightest pixel of the zero-filled image."""
DAMPINGS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
"""Weights of Tikhonov's penalty that are tried for least squares (CG-SENSE), in units of X^H X."""
CONVERGED = Status.CONVERGED.value
TRAINED, HINDSIGHT = "training scans", "test scans, in hindsight"
CHANGES = ("change", "worst_change", "better_on", "p")
"""Columns of `paired_table` that the table has."""
METHOD_FORMATS = {
    "weight": "g",
    "relative_l2": ".4f",
    "psnr": ".2f",
    "ssim": ".4f",
    "change": "+.1%",
    "worst_change": "+.1%",
}
"""How the table's columns are printed."""


def tried_weights(method: str) -> tuple[float, ...]:
    """The regularisation weights that are tried for a method; none if it has no weight."""
    return DAMPINGS if method == "least-squares" else WEIGHTS if method in TEXTBOOK else ()


def methods_named(methods: Sequence[str], encoding: str) -> tuple[str, ...]:
    """Methods by their full names, each once.

    Raises
    ------
    UsageError
        For a method that does not exist, or that does not take what is chosen one by one, naming those that do.
    """
    names = tuple(dict.fromkeys(method_named(name) for name in methods))
    for name in names:
        if name in TEXTBOOK and KINDS[encoding].shots:
            raise UsageError(
                f"{name} takes lines, or samples of a plane: leave it out of {option('methods')} for {encoding} shots"
            )
    return names


@dataclass(frozen=True)
class Trial:
    """An image to be made by one method, with the place of its mask's cell.

    Parameters
    ----------
    method : str
        Name.
    weight : float or None
        Of its penalty; None of methods that have none.
    training : bool
        Whether ``cell`` counts the training scans instead of the test scans.
    cell : (str, int, int, int)
        Strategy, lines, draw, image.
    """

    method: str
    weight: float | None
    training: bool
    cell: Cell

    @property
    def mask(self) -> Cell:
        """The cell whose mask it has: of training scans that of the first test image."""
        return (*self.cell[:3], 0) if self.training else self.cell

    @property
    def key(self) -> str:
        """Name under which its errors are kept."""
        scans = "train" if self.training else "test"
        weight = "" if self.weight is None else f"{self.weight:g}"
        return "|".join(map(str, (self.method, weight, scans, *self.cell)))


def trial_errors(material: Material, job: tuple[Trial, str, Lines]) -> dict[str, object]:
    """Errors of one image from the lines of its mask, whose strategy is named without suffixes."""
    trial, strategy, lines = job
    recipe = material.recipe.replacing("reconstruction", method=trial.method, weight=trial.weight)
    scans = material.training if trial.training else material.tests
    return cell_error(replace(material, tests=scans, recipe=recipe), (trial.cell[-1], strategy, lines))


@dataclass(frozen=True)
class MethodStudy:
    """Several methods on the masks of a finished study.

    Parameters
    ----------
    study : Study
        Its images, masks and recipe.
    methods : sequence of str
        Names as in `reconstruct`; the others are held against the first.
    """

    study: Study
    methods: Sequence[str]

    def run(self, work: Work, keep: Keep) -> None:
        """Choose weights and reconstruct, once the study is finished; what is finished is kept among its pieces.

        Of a grid of weights every second one is tried on one draw of each mask, and then the best and its neighbours on
        all.
        """
        stages: dict[str, Callable[[], list[Trial]]] = {
            "tuning penalties coarsely": partial(self._tuning, coarse=True),
            "tuning penalties": self._tuning,
            "other methods": self.judged,
        }
        with self.study.bench(work, keep) as bench:
            for part, trials in stages.items():
                left = [trial for trial in trials() if not self._errors(trial)]
                jobs = {trial: (trial, *self.study.mask_of(trial.mask)) for trial in left}
                for trial, errors in bench.finished(part, trial_errors, jobs):
                    self.study.pieces.trials[trial.key] = errors

    def weight(self, method: str, count: int, *, coarse: bool = False) -> float | None:
        """The weight with the least mean error at one number of lines, of those tried; None of methods without one."""
        means, known = {}, self.study.pieces.trials
        for weight in self._weights(method, count, coarse=coarse):
            tried = self._weighed(method, count, weight, coarse=coarse)
            means[weight] = np.mean([float(str(known[trial.key]["relative_l2"])) for trial in tried])
        return min(means, key=means.__getitem__, default=None)

    def judged(self) -> list[Trial]:
        """The images that are judged: every mask that counts, by every method with its weight."""
        weights = {(method, n): self.weight(method, n) for method in self.methods for n in self.study.lines}
        cells = self._cells()
        return [Trial(method, weights[method, cell[1]], False, cell) for method in self.methods for cell in cells]

    @property
    def status(self) -> str:
        """ "converged", or how many of the images that are judged, and of those of the study, did not."""
        ended = [bool(self._errors(trial)["reconstruction_converged"]) for trial in self.judged()]
        others = f"{ended.count(False)} of {len(ended)} images of other methods not converged"
        own = self.study.pieces.status
        return ", ".join([own] * (own != CONVERGED) + [others] * (not all(ended))) or CONVERGED

    def table(self) -> list[Row]:
        """Mean errors of every strategy, number of lines and method, and their change against the first method.

        ``change``, ``worst_change``, ``better_on`` and ``p`` are those of `paired_table`; ``weight_from`` says which
        scans chose the weight.
        """
        study, table = self.study, list[Row]()
        cells = [(trial, self._errors(trial)) for trial in self.judged()]
        for count in study.lines:
            for name in study.counting(count).values():
                rows = [
                    {**errors, "strategy": t.method, "lines": count, "draw": t.cell[2], "image": t.cell[3]}
                    for t, errors in cells
                    if t.cell[:2] == (name, count)
                ]
                paired = {row["strategy"]: row for row in paired_table(rows, self.methods, self.methods[:1], [count])}
                for mean in summary_table(rows, self.methods, [count]):
                    method = str(mean["strategy"])
                    weight, changes = self.weight(method, count), paired.get(method, {})
                    ended = [bool(row["reconstruction_converged"]) for row in rows if row["strategy"] == method]
                    row = {study.counted: count, "strategy": table_name(name), "method": method, "weight": weight}
                    row["weight_from"] = None if weight is None else TRAINED if study.training else HINDSIGHT
                    row |= {metric: mean[metric] for metric in METRICS}
                    row |= {change: changes[change] for change in CHANGES if change in changes}
                    table.append(row | {"converged": f"{sum(ended)} of {len(ended)}"})
        return table

    def _cells(self) -> list[Cell]:
        """Cells of the masks that count."""
        counting = {count: set(self.study.counting(count).values()) for count in self.study.lines}
        return [cell for cell in self.study.cells if cell[0] in counting[cell[1]]]

    def _weighed(self, method: str, count: int, weight: float, *, coarse: bool = False) -> list[Trial]:
        """Trials by which a weight is judged: on training scans the first draw's masks, as of the first test image.

        Where the judgement is ``coarse``, those of the first draws and of the first image alone.
        """
        cells = [cell for cell in self._cells() if cell[1] == count]
        first = [cell for cell in cells if (cell[2], cell[3]) == (0, 0)]
        if not self.study.training:
            return [Trial(method, weight, False, cell) for cell in (first if coarse else cells)]
        scans = range(1 if coarse else len(self.study.training))
        return [Trial(method, weight, True, (name, count, 0, i)) for name, *_ in first for i in scans]

    def _weights(self, method: str, count: int, *, coarse: bool) -> tuple[float, ...]:
        """Weights to try: every second one; then the best of these and its neighbours."""
        weights = tried_weights(method)
        if coarse or not weights:
            return weights[::2]
        best = self.weight(method, count, coarse=True)
        place = weights.index(best) if best is not None else 0
        return weights[max(0, place - 1) : place + 2]

    def _tuning(self, *, coarse: bool = False) -> list[Trial]:
        return [
            trial
            for method, count in itertools.product(self.methods, self.study.lines)
            for weight in self._weights(method, count, coarse=coarse)
            for trial in self._weighed(method, count, weight, coarse=coarse)
        ]

    def _errors(self, trial: Trial) -> Mapping[str, object]:
        """What is known already of a trial; those of the study's own reconstruction are its."""
        own = trial.method == self.study.recipe.reconstruction.method and trial.weight is None
        pieces = self.study.pieces
        return pieces.rows[cell_key(*trial.cell)] if own else pieces.trials.get(trial.key, {})


MASKS, METHODS = "masks.json", "methods.csv"
"""Files of every mask, and of several reconstructions side by side."""


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest(StudyRequest):
    """Request for a comparison.

    Parameters
    ----------
    sources, recipe
        As `StudyRequest`: the test inputs.
    strategies : sequence of str
        Names, see `make_strategy`.
    lines : sequence of int
        Line counts, or counts of samples of a plane, or of shots.
    accelerations : sequence of float
        Instead of ``lines``: the grid divided by these, rounded.
    train : sequence of ScanSource
        Training inputs.
    seeds : int
        Draws of every random strategy.
    methods : sequence of str
        Further reconstructions of every mask, see `MethodStudy`; tables of strategies use the recipe's.

    Raises
    ------
    UsageError
        For an unknown strategy or method, one that learns from training inputs without any, training inputs
        from which none learns, or a recipe that ends designs early; in a plane, for what is known for lines only;
        without or with both counts and accelerations.
    """

    strategies: Sequence[str]
    lines: Sequence[int] = ()
    accelerations: Sequence[float] = ()
    train: Sequence[ScanSource] = ()
    seeds: int = 5
    methods: Sequence[str] = ()

    def __post_init__(self) -> None:
        encoding = self.recipe.design.encoding
        kind = KINDS[encoding]
        extent.require_one_amount(list(self.lines), list(self.accelerations), kind.counted)
        if not self.lines and not self.accelerations:
            counts = f"{option(kind.counted)}, or {option('acceleration')}"
            raise UsageError(f"how many {kind.several}? Give their numbers with {counts}")
        if not self.strategies:
            raise UsageError(f"nothing to compare: name strategies with {option('strategies')}")
        extent.check_other_than_lines(self.recipe)
        names = tuple(dict.fromkeys(strategy_named(name, encoding) for name in self.strategies))
        object.__setattr__(self, "strategies", names)
        for name in self.strategies:
            make_strategy(name, encoding)
            if name in TRAINING_RULES and not self.train:
                raise UsageError(f"{name} learns from fully sampled training scans: give some with {option('train')}")
        object.__setattr__(self, "methods", methods_named(self.methods, encoding))
        tuned = any(name in TEXTBOOK for name in self.methods)
        if self.train and not tuned and not any(learns_from_scans(name, encoding) for name in self.strategies):
            raise UsageError(
                f"{option('train')} gives scans to learn from, and none of these strategies learns: "
                f"{', '.join(self.strategies)}. Leave out {option('train')}, or add a strategy with a posterior, "
                "as information-gain"
            )
        extent.require_number_only(self.recipe, "a comparison needs equal numbers of lines")

    def counts(self, size: int) -> list[int]:
        """Numbers of lines or samples on a grid of ``size``, of shots on one of so many lines."""
        return sorted({*self.lines, *(extent.readouts_wanted(size, factor) for factor in self.accelerations)})

    def record(self, work: Work) -> Record:
        """See `StudyRequest.recorded`."""
        choices = {
            "strategies": [strategy_label(name) for name in self.strategies],
            "lines": list(self.lines),
            **({"accelerations": list(self.accelerations)} if self.accelerations else {}),
            **({"methods": list(self.methods)} if self.methods else {}),
            "seeds": self.seeds,
            **self.recipe.as_settings(),
        }
        return self.recorded("comparison", work, choices, self.strategies, train=self.train)


@dataclass(frozen=True)
class ShownMask:
    """One strategy's mask of the first test image, and the image made from it.

    Parameters
    ----------
    label : str
        The strategy as tables have it.
    mask : bool array, shape (ky,), or (ky, kz) in a plane
        True where measured; of random masks the draw whose error is the median one.
    reconstruction : Image
        With error bars for the first strategy that goes by a posterior.
    errors : ImageMetrics
        Against the true image.
    readouts : Readouts
        The candidates that the mask is over: shots differ from strategy to strategy.
    """

    label: str
    mask: NDArray[np.bool_]
    reconstruction: Image
    errors: ImageMetrics
    readouts: Readouts


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """Result of a comparison.

    Parameters
    ----------
    study : Study
        Images, strategies and line counts; every mask, error and tuned power.
    orientation : {"ky-rows", "ky-columns"}
        How the first test input lays its images.
    methods : sequence of mappings
        `MethodStudy.table`; empty where no other methods were requested.
    status : str
        "converged", or which masks and images did not converge, those of the judged other methods included.
    """

    study: Study
    orientation: Orientation
    methods: Sequence[Row] = ()
    status: str = Status.CONVERGED.value

    @cached_property
    def errors(self) -> StudyErrors:
        """How wrong the image is with each strategy."""
        return self.study.errors()

    @cached_property
    def shown(self) -> list[ShownMask]:
        """Masks of one line count and their images, computed at the first look."""
        return shown_masks(self.study)

    def stored(self) -> StoredComparison:
        """The comparison as its folder has it."""
        readouts = self.study.recipe.design.encoding
        return StoredComparison(tables=self.errors, readouts=readouts, methods=self.methods, status=self.status)


def compare_strategies(request: ComparisonRequest, work: Work, keep: Keep) -> ComparisonResult:
    """Design, reconstruct and measure; every finished piece is kept at once.

    Raises
    ------
    UsageError
        Where an image is used for testing and training, two inputs have one name, or what is kept is another run's.
    InputError
        Where an input cannot be used, or what is kept is damaged.
    """
    study, orientation = _study(request, work)
    keep.begin()
    for origin in dict.fromkeys(image.simulated for image in [*study.tests, *study.training] if image.simulated):
        work.progress.say(f"simulated k-space {origin}")
    study.run(work, keep)
    side_by_side = MethodStudy(study, request.methods)
    if request.methods:
        side_by_side.run(work, keep)
    result = ComparisonResult(
        study=study,
        orientation=orientation,
        methods=side_by_side.table() if request.methods else [],
        status=side_by_side.status,
    )
    if bad := [str(row["strategy"]) for row in result.errors.tables.get("maps", ()) if row["badly"]]:
        work.progress.warn(
            f"coil maps from the lines of masks predict coils held back badly ({', '.join(dict.fromkeys(bad))}), and "
            f"make errors larger; better are {option('start')} with more centre lines, {option('maps', 'FILE')} or "
            f"{option('maps-from', 'SCAN')}"
        )
    return result


def _study(request: ComparisonRequest, work: Work) -> tuple[Study, Orientation]:
    """What is to be compared, calibrated, once it is known to be possible; and how the first input lays its images."""
    recipe = request.recipe

    def fewest(size: int) -> int:
        return request.counts(size)[0]

    tests, orientation = load_images(request.sources, recipe, work, fewest)
    training, _ = load_images(request.train, recipe, work, fewest)
    require_apart(training, tests)
    calibration = max(image.calibration_lines for image in (*tests, *training))
    recipe = extent.with_calibration(recipe, calibration)
    on_grid, shots = tests[0].slice_model.candidates, KINDS[recipe.design.encoding].shots
    lines = request.counts(on_grid.grid[0] if shots else on_grid.size)
    if not shots:
        growing = "the lines of each mask" if any(image.own_maps is not None for image in tests) else ""
        least = extent.start_of_growing(recipe, calibration, lines[0]) if growing else calibration
        tell_calibration(least, lines[0], recipe, on_grid, work.progress, growing)
    for image in tests if not shots else ():  # any number of shots can be had
        candidates = image.slice_model.candidates
        rules = recipe.rules(candidates)
        extent.require_lines(image.slice_model.measured, max(lines), rules, candidates)
        shared = max(1, len(training))  # slices behind one mask
        require_room(candidates, image.slice_model.n_coils, max(lines), recipe, slices=shared, processes=work.jobs)
    study = Study(
        tests=tests,
        strategies=request.strategies,
        lines=lines,
        recipe=recipe,
        training=training,
        seeds=request.seeds,
        seed=work.seed,
    )
    return study, orientation


def shown_count(study: Study) -> int:
    """The number of lines whose masks and images are shown: the middle one."""
    return sorted(study.lines)[len(study.lines) // 2]


def shown_masks(study: Study) -> list[ShownMask]:
    """Masks and images of a finished study for its pictures: the first test image with every strategy, one count."""
    count, test, recipe = shown_count(study), study.tests[0], study.recipe
    shown: list[ShownMask] = []
    for shown_name, name in study.counting(count).items():
        strategy, lines = study.mask_of((name, count, study.typical_draw(name, count, 0), 0))
        seen = slice_for(test, strategy, count, recipe, study.seed).calibrated(lines)
        mask = np.zeros(seen.candidates.size, dtype=bool)
        mask[list(lines)] = True
        mask = mask.reshape(seen.candidates.shape)
        known = any(other.reconstruction.std is not None for other in shown)
        with_std = not known and study.rule(name).needs_posterior
        made = reconstruct_by_recipe(seen, lines, recipe, study.seed, with_std=with_std).times(test.unit_of(seen))
        errors = measure(made.image, test.shown)
        shown.append(ShownMask(strategy_label(shown_name), mask, made, errors, seen.candidates))
    return shown


def run_comparison_of(request: ComparisonRequest, run: Run) -> Stored:
    """Compare and report in a run's folder; see `carry_out`."""
    record, compute = request.record(run), partial(compare_strategies, request, run)
    return carry_out(run, record, compute, report_comparison, checkpoint=PROGRESS, resumed="comparison", pieces=True)


def report_comparison(folder: RunFolder, result: ComparisonResult) -> Report:
    """Write metrics.csv, masks.json, and winners, summary, paired and maps as .csv and .md into the run's folder."""
    study, errors = result.study, result.errors
    found, summary = facts_of_all(study.training, study.tests)
    errors.save(folder)
    write_json(folder.output_path(MASKS), [_mask_row(study, cell) for cell in study.cells])
    tuned: list[Row] = []
    for key, power in study.pieces.tuned.items():
        family, count, grid = key.split("|")
        tuned.append({"family": family, study.counted: int(count), "grid": int(grid), "power": power})
    if tuned:
        folder.write_table("tuned.csv", tuned)
    if result.methods:
        folder.write_table(METHODS, result.methods, METHOD_FORMATS)
    verdict = _verdict(result, errors)
    simulated = simulation_summary([image.simulated for image in (*study.tests, *study.training)])
    facts = verdict | {
        "methods": result.methods,
        "method_formats": METHOD_FORMATS,
        "tuned": tuned,
        "summary": simulated | summary,
    }
    if folder.reported:  # images are computed for it
        facts |= pair_facts(result, verdict["names"], verdict["asked"]) | _picture_facts(result)
    kept = replace(result.stored(), verdict=worded("studies", "comparison_verdict", **verdict, study=study))
    return Report(result=kept, page=Page("compare", facts), found=found | errors.facts())


REGULAR = ("regular", "fastmri-equispaced")
"""Strategies that the verdict always names, with the best of those that look at no data."""


def _verdict(result: ComparisonResult, errors: StudyErrors) -> dict[str, Any]:
    """The best strategy and the second, if any; others that readers ask for; and what designs gain."""
    study, count = result.study, shown_count(result.study)
    winner = next(row for row in errors.tables["winners"] if row[study.counted] == count)
    pair = [str(winner[place]) for place in ("best", "second") if winner[place] is not None]
    at = study.lines.index(count)
    means = {name: float(np.mean(runs[:, at])) for name, runs in errors.runs.items()}
    at_count = [row for row in errors.tables["summary"] if row[study.counted] == count and row.get("counts") != "no"]
    centres = {str(row["strategy"]): row.get("centre") for row in at_count}
    real = [name for name in study.names if base_name(name) not in ORACLES]
    designed = [strategy_label(name) for name in real if study.rule(name).needs_posterior]
    blind = [strategy_label(name) for name in real if not study.rule(name).needs_posterior]
    regular = [strategy_label(name) for name in study.names if split_name(base_name(name))[0] in REGULAR]
    best = [min(kind, key=means.__getitem__) for kind in (designed, blind) if kind]
    asked = dict.fromkeys(name for name in (*best, *regular) if name not in pair)
    return {
        "count": count,
        "counted_readouts": candidates_for(study.tests[0], base_name(study.names[0]), count, study.recipe),
        "winner": winner,
        "names": pair,
        "wins": (sum(row["best"] == pair[0] for row in errors.tables["winners"]), len(study.lines)),
        "asked": {name: (centres.get(name), means[name]) for name in asked},
        "gains": [row for row in errors.tables.get("gains", ()) if row[study.counted] == count],
    }


def pair_facts(result: ComparisonResult, pair: Sequence[str], asked: Iterable[str] = ()) -> dict[str, Any]:
    """What comparison.html.j2 shows of one strategy, and of its error next to that of another, on the first test image.

    Parameters
    ----------
    result : ComparisonResult
        With masks to look at.
    pair : sequence of str
        Names as tables have them: the strategy, and the other one if there is any.
    asked : iterable of str
        Other names in the verdict.
    """
    study, test, errors = result.study, result.study.tests[0], result.errors
    meanings = {name: study.words[name] for name in dict.fromkeys((*pair, *asked)) if name in study.words}
    masks = [mask for name in pair for mask in result.shown if mask.label == name]
    row = {study.counted: shown_count(study), "strategy": pair[0]}
    wrong = [np.abs(np.abs(mask.reconstruction.image) - np.abs(test.shown)) for mask in masks]  # on one scale
    return {
        "study": study,
        "errors": errors,
        "meanings_of_pair": meanings,
        "test": test,
        "pair": masks,
        "frame": Frame(layout_of(masks[0].readouts, result.orientation), test.pixel),
        "wrong": wrong,
        "worst": scale_top(wrong),
        "white": object_top([np.abs(test.shown)]),
        "acceleration": next(float(str(r["acceleration"])) for r in errors.rows if row.items() <= r.items()),
    }


def _picture_facts(result: ComparisonResult) -> dict[str, Any]:
    """Masks, images and errors of one test image at one count."""
    test, first, seen = result.study.tests[0], result.shown[0], []
    compared = []
    for mask in result.shown:
        image, error = mask.reconstruction.image, mask.errors.relative_l2
        seen.append(ImagePanel(image, mask.label, metric_caption(error, mask.errors)))
        compared.append(ImagePanel(image, mask.label, error_caption(error)))
    return {
        "masks": result.shown,
        "reference": test.shown,
        "panels": [ImagePanel(test.shown, "reference"), *seen],
        "compared": compared,
        "mask_panels": {mask.label: (mask.readouts, mask.mask.ravel()) for mask in result.shown},
        "others": companion_pictures(first.reconstruction, first.label),
    }


def _mask_row(study: Study, cell: Cell) -> Row:
    """The candidates of one cell in the order of choice; shots with their angles, which differ between strategies."""
    name, count, draw, image = cell
    order = list(study.mask_lines(*cell))
    row = {"strategy": table_name(name), study.counted: count, "draw": draw, "image": study.tests[image].name}
    row |= {"centre": centre} if (centre := study.pieces.rows[cell_key(*cell)].get("centre")) is not None else {}
    angles = candidates_for(study.tests[image], base_name(name), count, study.recipe).angles
    degrees = {} if angles is None else {"angles_degrees": [float(np.degrees(angles[shot])) for shot in order]}
    return {**row, "order": order, **degrees}
