"""Part active-learning: the double loop on a9a, and which labels to ask (Nickisch & Seeger 2009, sections 2 and 3).

Finished runs are kept in table.csv, and a run that was stopped goes on from there; delete the file to measure anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse

from mri_design.active_learning.labels import LabelPool
from mri_design.errors import InputError
from mri_design.evaluation.tables import Row, csv_text, format_cell, read_csv_texts
from mri_design.scan.io.atomic import write_text

from .active_learning_text import text_of
from .bound_times import bound_rows
from .learning_curves import figure_of, targets_of
from .libsvm_text import read_libsvm
from .part_folder import PartFolder
from .pool_runs import ON_THE_MAP, PEER, Task, asked, errors_along, prior_of
from .targets import Target

PART = "active-learning"
WHOLE = 10**9


@dataclass(frozen=True)
class Setting:
    """One data set.

    Parameters
    ----------
    data : str
        Its name.
    pool : int
        Cases that may be asked.
    first, last, step : int
        Labels at the start and at the end, and from one judgement to the next.
    block : int
        K.
    priors : tuple of str
        Of the models that judge, and that S_CU, S_IG and BALD ask under; others ask once and are judged under each.
    strategies : tuple of (strategy, seeds, priors)
        The first so many seeds and priors; a strategy may stand twice.
    """

    data: str
    pool: int
    first: int
    last: int
    step: int
    block: int
    priors: tuple[str, ...]
    strategies: tuple[tuple[str, int, int], ...]

    @property
    def counts(self) -> list[int]:
        """Numbers of labels at which the error is measured."""
        return list(range(self.first, self.last + 1, self.step))


PRIORS = ("Gaussian", "sparse")
FULL = (
    Setting(
        *("a9a", 16_000, 100, 400, 50, 3, PRIORS),
        (
            *(("random", 10, 2), (ON_THE_MAP, 10, 2), ("S_CU", 10, 2)),
            *(("S_IG", 10, 2), (PEER, 10, 1), ("BALD", 10, 1)),
        ),
    ),
    Setting(
        *("w8a", 36_000, 100, 400, 50, 3, PRIORS),
        (("random", 10, 1), (ON_THE_MAP, 10, 1), ("S_CU", 2, 1)),
    ),
)
QUICK = (
    Setting(
        *("a9a", 80, 10, 22, 6, 3, PRIORS),
        (("random", 3, 2), (ON_THE_MAP, 3, 2), ("S_CU", 3, 2), ("S_IG", 3, 2), ("BALD", 2, 1)),
    ),
)
FEATURES = {"a9a": 123, "w8a": 300}
CONSTANT = ("w8a",)
"""Sets that get a constant feature: cases without any other could not be told apart from a toss-up."""
REGARDLESS = ("random", ON_THE_MAP, PEER)
PEER_PACKAGES = ("scikit-activeml", "scikit-learn")


def run(out: Path, data: Path | None, quick: bool) -> list[Target]:
    """Measure what is missing, write the folder, return the targets."""
    if data is None and not quick:
        raise InputError(field="data", got="no folder", wanted="a9a, a9a.t and w8a", cure="Give --data FOLDER.")
    folder, settings = PartFolder(out, PART, quick), QUICK if quick else FULL
    sets = {
        setting.data: toy_sets() if quick or data is None else read_sets(setting.data, data) for setting in settings
    }
    features, labels, *_ = sets["a9a"]
    bounds = bound_rows(features, labels, (40, WHOLE) if quick else (1000, 4000, WHOLE))
    write_text(folder.path / "double-loop.csv", csv_text(bounds, None, {"-log Z": ".10g", "glm-ie's bound": ".10g"}))
    rows = Ledger(folder.path / "table.csv", [] if quick else kept_rows(folder.path / "table.csv"))
    for setting in settings:
        for strategy, seeds, priors in setting.strategies:
            for seed in range(seeds):
                run_seed(setting, strategy, setting.priors[:priors], seed, sets[setting.data], rows)
    targets = targets_of(bounds, rows.rows)
    figures = {"test-error.png": figure_of(rows.rows)}
    inputs = [] if quick or data is None else [data / name for name in ("a9a", "a9a.t", "w8a")]
    described = {setting.data: asdict(setting) for setting in settings}
    text = text_of(settings, bounds, rows.rows)
    folder.write(text, rows.rows, figures, settings=described, inputs=inputs, packages=PEER_PACKAGES)
    return targets


@dataclass
class Ledger:
    """Rows of table.csv, written after every addition."""

    path: Path
    rows: list[Row]

    def has(self, **key: object) -> bool:
        """Whether a row has these values."""
        return any(all(row[name] == value for name, value in key.items()) for row in self.rows)

    def add(self, row: Row) -> None:
        """Keep it as it will be read back."""
        self.rows.append({name: parsed(format_cell(value)) for name, value in row.items()})
        write_text(self.path, csv_text(self.rows))


def kept_rows(path: Path) -> list[Row]:
    """What an earlier run left."""
    if not path.exists():
        return []
    return [{name: parsed(cell) for name, cell in row.items()} for row in read_csv_texts(path)]


def parsed(cell: str) -> object:
    """A cell of our own table."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None


def run_seed(setting: Setting, strategy: str, priors: Sequence[str], seed: int, sets: Sequence, rows: Ledger) -> None:
    """One strategy on one pool under every prior, unless it is in the table."""
    features, labels, test, test_labels = sets
    drawn = np.random.default_rng([seed, 0]).permutation(len(labels))
    chosen = drawn[: setting.pool]
    if test is None:  # no test file: the cases outside the pool
        test, test_labels = features[drawn[setting.pool :]], labels[drawn[setting.pool :]]
    order: tuple[np.ndarray, float] | None = None
    for prior in priors:
        key = {"data": setting.data, "prior": prior, "strategy": strategy, "seed": seed}
        if rows.has(**key) or (strategy == PEER and find_spec("skactiveml") is None):
            continue
        pool = LabelPool(features[chosen], prior_of(prior, features.shape[1]))
        task = Task(pool, labels[chosen], test, test_labels)
        if order is None or strategy not in REGARDLESS:
            order = asked(strategy, task, setting.first, setting.last, setting.block, seed)
        errors = errors_along(task, order[0], setting.counts)
        along = {f"error at {n}": error for n, error in zip(setting.counts, errors, strict=True)}
        rows.add(key | {"CPU seconds": round(order[1], 2)} | along)
        line = f"... {setting.data}, {prior}, {strategy}, seed {seed}: {errors[-1]:.4f}"
        print(line, file=sys.stderr, flush=True)


def read_sets(name: str, data: Path) -> tuple:
    """Training rows and labels, and the test set where it has one."""
    found: list[object] = []
    for path in (data / name, data / f"{name}.t"):
        features, labels = read_libsvm(path, FEATURES[name]) if path.exists() else (None, None)
        if features is not None and name in CONSTANT:
            features = scipy.sparse.hstack([features, np.ones((features.shape[0], 1))], format="csr")
        found += [features, labels]
    return tuple(found)


def toy_sets() -> tuple:
    """A hundred and eighty cases of eight sparse features."""
    rng = np.random.default_rng(0)
    features = scipy.sparse.csr_array(scipy.sparse.random(180, 8, 0.5, rng=rng))
    labels = np.where(features @ rng.standard_normal(8) + 0.2 * rng.standard_normal(180) > 0, 1.0, -1.0)
    return features[:120], labels[:120], features[120:], labels[120:]
