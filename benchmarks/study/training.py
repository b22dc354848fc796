"""Trained orders: what they cost, in reconstructions and seconds, and where they are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from study.ledger import Ledger
from study.scans import TRAINED_ON, simulating
from study.sections import Setting
from study.tuning import Show

from mri_design.experiment.inputs import scan_sources
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.stored_designs import load_trained
from mri_design.runs.protocol import ProtocolRequest, run_training_of, training_rule
from mri_design.runs.work import Progress, Work

INFORMING = "residual-greedy"
RULES = (INFORMING, "stochastic-lbcs")


@dataclass(frozen=True)
class Course:
    """One training.

    Parameters
    ----------
    name : str
        Of its file.
    rule : str
        See `evaluation.training_run.training_rule`.
    sources : sequence of str
        Training images.
    matrix, lines : int
        Grid, and lines in the end.
    """

    name: str
    rule: str
    sources: Sequence[str]
    matrix: int
    lines: int

    def file(self, folder: Path) -> Path:
        """Where it is kept."""
        return folder / f"{self.name}-{self.rule}.npz"


def trial_recipe(matrix: int) -> Recipe:
    """The default posterior mean, cut short: training asks for differences between masks, not for the last digit."""
    quick = {"samples": 4, "loops": 4, "tolerance": 0.1, "variances": "control-variate:0.07"}
    return simulating(matrix).replacing("inference", **quick)


def courses(setting: Setting) -> list[Course]:
    """Orders learnt on the training heads."""
    if setting.quick:
        return [Course("heads", rule, ["phantom:t2w"], 24, 12) for rule in RULES]
    file = setting.path / "img_3T_complex.npz"
    return [Course("heads", rule, [f"{file}#{TRAINED_ON}"], 128, 64) for rule in RULES]


def train_all(setting: Setting, ledger: Ledger, jobs: int, seed: int, show: Show) -> None:
    """Every course that is not in the ledger, and those whose file designs need and is gone."""
    for course in courses(setting):
        name = {"section": "trained", "group": course.name, "strategy": course.rule}
        file = course.file(setting.trained)
        if ledger.has("training", name) and (file.exists() or course.rule != INFORMING):
            continue
        file.unlink(missing_ok=True)
        began = time.perf_counter()
        subsets = {"candidates": 3, "scans": 1} if setting.quick else {"candidates": 12, "scans": 2}
        rule = training_rule(course.rule, **(subsets if course.rule == "stochastic-lbcs" else {}))
        sources, recipe = scan_sources(course.sources, "middle"), setting.cut_short(trial_recipe(course.matrix))
        progress = Progress(
            lambda what, done, of, course=course: show(f"{course.name} {course.rule}: {what}", done, of)
        )
        run_training_of(
            ProtocolRequest(sources=sources, recipe=recipe, rule=rule, lines=course.lines),
            file,
            Work(seed=seed, jobs=jobs, progress=progress),
        )
        made = load_trained(file)
        ledger.keep(
            "training",
            {
                **name,
                "grid": course.matrix,
                "lines": course.lines,
                "images": len(made.training),
                "reconstructions": made.reconstructions,
                "wall seconds": time.perf_counter() - began,
                "processes": jobs,
            },
        )
        ledger.write()
