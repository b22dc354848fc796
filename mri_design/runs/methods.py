"""Methods side by side: the masks of a study, reconstructed by this program and by textbook rivals of it.

A study gives every mask one reconstruction, so that only masks differ. Here every mask gets several, so that only they
differ. The weight of a penalty is chosen from a grid for every method and number of lines: on the training scans, or,
where there are none, on the very scans that are judged, which favours the rival.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mri_design.errors import UsageError, option
from mri_design.evaluation.tables import Row
from mri_design.experiment.reconstruction import TEXTBOOK, method_named
from mri_design.kinds import KINDS
from mri_design.runs.error_tables import METRICS, paired_table, summary_table
from mri_design.runs.study import Cell, Lines, Material, Study, cell_error, cell_key, table_name
from mri_design.runs.work import Keep, Work
from mri_design.status import Status

WEIGHTS = (0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
"""Weights of a penalty that are tried, relative to the brightest pixel of the zero-filled image."""
DAMPINGS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
"""Weights of Tikhonov's penalty that are tried for least squares (CG-SENSE), in units of X^H X."""
CONVERGED = Status.CONVERGED.value
TRAINED, HINDSIGHT = "training scans", "test scans, in hindsight"
CHANGES = ("change", "worst_change", "better_on", "p")
"""Columns of `paired_table` that the table has."""
FORMATS = {"weight": "g", "relative_l2": ".4f", "psnr": ".2f", "ssim": ".4f", "change": "+.1%", "worst_change": "+.1%"}
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
        """ "converged", or how many of the images that are judged did not, beside those of the study."""
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
