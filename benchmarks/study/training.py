"""Trained orders: what they cost, in reconstructions and seconds, and where they are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from study.groups import INFORMED, TUNED, Entry, Group
from study.ledger import Ledger
from study.scans import denoised, simulating
from study.sections import Setting, designs, heads, toys
from study.split import MIDDLE, TEST_SUBJECTS, TRAINED_ON, TRAINING_HEADS
from study.tables import ORACLE
from study.tuning import Show

from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import scan_sources
from mri_design.experiment.trained_file import load_trained
from mri_design.runs.run import Progress, Work
from mri_design.runs.train import OrderFile, TrainingRequest, learn_order, report_order, training_rule

SMALL = 48
"""Side of the grid on which the whole of LBCS can be afforded: it tries every line at every step."""
INFORMING = "residual-greedy"
RULES = (INFORMING, "stochastic-lbcs", "lbcs")


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
    return simulating(matrix).replacing("inference", samples=4, loops=4, tolerance=0.1, solver_tolerance=0.07)


def courses(setting: Setting) -> list[Course]:
    """On the heads for the comparisons at 128, and small ones that the whole of LBCS can afford."""
    if setting.quick:
        source = ["phantom:t2w"]
        return [
            *(Course("heads", rule, source, 24, 12) for rule in ("residual-greedy", "stochastic-lbcs")),
            *(Course("small", rule, source, 24, 6) for rule in ("residual-greedy", "lbcs")),
        ]
    file = setting.path / "img_3T_complex.npz"
    some = ",".join(map(str, TRAINING_HEADS))
    return [
        *(Course("small", rule, [f"{file}#{some}"], SMALL, SMALL // 2) for rule in RULES),
        *(Course("heads", rule, [f"{file}#{TRAINED_ON}"], 128, 64) for rule in ("residual-greedy", "stochastic-lbcs")),
    ]


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
        order = learn_order(
            TrainingRequest(sources=sources, recipe=recipe, rule=rule, lines=course.lines),
            OrderFile(file),
            Work(seed=seed, jobs=jobs, progress=progress),
        )
        report_order(OrderFile(file), order)
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


def trained_groups(setting: Setting) -> list[Group]:
    """Trained orders on other subjects of the same kind, and on scans of another kind, on a small grid."""
    seeds = setting.seeds
    entries = designs(setting)
    for course in courses(setting):
        if course.name == "small":
            entries.append(Entry(f"trained {course.rule}", f"trained:{course.file(setting.trained)}"))
    small = Course("small", "residual-greedy", [], 0, 0).file(setting.trained)
    entries.append(Entry(INFORMED, f"calibrated:{small}", draws=setting.design_seeds))
    entries += [Entry("hybrid", f"hybrid:{small}"), Entry("low-pass"), Entry(TUNED, draws=seeds), Entry(ORACLE)]
    if setting.quick:
        tests, training = toys(1, ("t1w",)), toys(2, ("t2w",))
        other = toys(1, ("brain",))
    else:
        tests, training = heads(setting, SMALL)
        kinds = ("gre", "fse")
        other = [denoised(setting.path / f"lf_{s}_{k}.npy", MIDDLE, SMALL) for s in TEST_SUBJECTS for k in kinds]
    first = Group(
        *("trained", "in domain", tests, training, setting.shares, entries, setting.recipes(), ("mean",)),
        tuning=setting.tuning,
    )
    like = ("trained", "in domain")
    second = Group(
        *("trained", "out of domain", other, [], setting.shares, entries, setting.recipes(), ("mean",)),
        tuning=None,
        tuned_like=like,
    )
    return [first, second]
