"""Densities and the MAP's weight, tuned on training images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from study.groups import BESIDE, FAMILIES, KEPT, PARTIAL, TUNED, Group
from study.ledger import Ledger, collect
from study.pieces import StudyMaterial, Trial, compute

from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.strategies import with_power
from mri_design.runs.workers import Workers

Show = Callable[[str, int, int], None]
Cut = Callable[[Recipe], Recipe]
WEIGHTS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Times the rates of the recipe tv-wavelet."""


@dataclass(frozen=True)
class Density:
    """One way to draw masks."""

    family: str
    strategy: str
    start: int
    design: str

    @classmethod
    def of(cls, family: str, power: float, start: int, kept: float = 1.0) -> Density:
        """A family with a power and a centre, on a part of k-space."""
        base = "vd-polynomial" if family == PARTIAL else family
        return cls(family, with_power(base, power), start, "mean" if kept == 1 else f"partial {kept:g}")

    @property
    def power(self) -> float:
        """Read back from the strategy."""
        return float(self.strategy.partition(":")[2].partition(" ")[0])


def map_recipe(weight: float) -> Recipe:
    """The recipe tv-wavelet with its rates times ``weight``."""
    recipe = load_recipe("tv-wavelet")
    blocks = tuple(replace(block, rate=block.rate * weight) for block in recipe.prior)
    return replace(recipe, prior=blocks)


def partial_fourier(recipe: Recipe) -> dict[str, Recipe]:
    """Recipes that keep a part of k-space, by the names that densities have for them."""
    return {f"partial {kept:g}": recipe.replacing("constraints", partial_fourier=kept) for kept in KEPT}


def tune_weight(group: Group, ledger: Ledger, jobs: int, seed: int, show: Show, cut: Cut) -> float:
    """The weight with which MAP has the least mean error on the training images, over densities of every count.

    ``cut`` says how hard a recipe tries.
    """
    recipes = {f"map {w:g}": cut(map_recipe(w)) for w in WEIGHTS} | {"mean": cut(load_recipe("local"))}
    named, pieces = [], []
    for weight in WEIGHTS:
        for count in group.lines:
            row = _row(group, f"map {weight:g}", count, Density.of("vd-polynomial", 6.0, min(8, count)))
            if not ledger.has("tuned", row):
                named.append(row)
                pieces.append(Trial(f"map {weight:g}", "mean", str(row["strategy"]), count, min(8, count), 1))
    if pieces:
        with Workers(StudyMaterial(group.tests, group.training, recipes, seed), jobs) as workers:
            collect(ledger, "tuned", named, workers.map(compute, pieces), lambda *at: show("weight of MAP", *at))
    means = [_mean(ledger.of("tuned", section=group.section, reconstructor=f"map {w:g}")) for w in WEIGHTS]
    return WEIGHTS[int(np.argmin(means))]


def tune_densities(group: Group, ledger: Ledger, workers: Workers[StudyMaterial], show: Show) -> None:
    """Every family's best power and centre for every number of lines and reconstructor, in three rounds."""
    tuning = group.tuning
    if tuning is None:
        return

    def try_all(wanted: dict[tuple[str, int], list[Density]]) -> None:
        named, pieces = [], []
        for (reconstructor, count), densities in wanted.items():
            for density in densities:
                row = _row(group, reconstructor, count, density)
                if not ledger.has("tuned", row):
                    named.append(row)
                    piece = Trial(reconstructor, density.design, density.strategy, count, density.start, tuning.draws)
                    pieces.append(piece)
        found = workers.map(compute, pieces)
        collect(ledger, "tuned", named, found, lambda *at: show(f"{group.name}: tuning densities", *at))

    used = [name for name in group.reconstructors if any(entry.tuned for entry in group.entries_of(name))]
    cases = [(name, count) for name in used for count in group.lines]
    plain = [Density.of("vd-polynomial", power, tuning.centre) for power in tuning.powers]
    plain += [Density.of("vd-gaussian", power, tuning.centre) for power in tuning.gaussian]
    try_all({case: [_fitting(d, case[1]) for d in plain] for case in cases})
    second = {}
    for case in cases:
        best = best_density(group, ledger, *case, "vd-polynomial")
        gaussian = best_density(group, ledger, *case, "vd-gaussian")
        centres = [_fitting(Density.of("vd-polynomial", best.power, c), case[1]) for c in tuning.centres]
        second[case] = [
            *centres,
            *(_fitting(Density.of("vd-gaussian", gaussian.power, c), case[1]) for c in tuning.centres[-1:]),
        ]
    try_all(second)
    third = {}
    for case in cases:
        best = best_density(group, ledger, *case, "vd-polynomial")
        others = [name for name in FAMILIES if name not in ("vd-polynomial", "vd-gaussian")]
        third[case] = [Density.of(name, best.power, best.start) for name in others]
        powers = {best.power, best.power / 2}
        beside = {entry.label for entry in group.entries_of(case[0])} & set(BESIDE)
        plain = [name for name in BESIDE if name in beside - {PARTIAL}]
        third[case] += [Density.of(name, power, best.start) for name in plain for power in powers]
        if PARTIAL in beside:
            third[case] += [Density.of(PARTIAL, power, best.start, kept) for kept in tuning.kept for power in powers]
    try_all(third)


def best_density(group: Group, ledger: Ledger, reconstructor: str, count: int, family: str = TUNED) -> Density:
    """The best of a family (for `TUNED` of all on the whole of k-space) on the training images."""
    section, name = (group.section, group.name) if group.tuning else group.tuned_like
    rows = ledger.of("tuned", section=section, group=name, reconstructor=reconstructor)
    if not rows:  # a model of its own: as for the default one
        rows = ledger.of("tuned", section=section, group=name, reconstructor="mean")
    if not group.tuning:
        share = {
            int(str(row["lines"])): abs(int(str(row["lines"])) / int(str(row["grid"])) - count / group.n_lines)
            for row in rows
        }
        count_there = min(share, key=lambda lines: share[lines])
    else:
        count_there = count
    rows = [row for row in rows if row["lines"] == count_there and _belongs(str(row["family"]), family)]
    best = min(rows, key=lambda row: float(str(row["error"])))
    start = int(str(best["start"]))
    if not group.tuning:
        start = min(count, max(1, round(start * group.n_lines / int(str(best["grid"])))))
    return Density(str(best["family"]), str(best["strategy"]), start, str(best["design"]))


def _belongs(family: str, wanted: str) -> bool:
    return family == wanted or (wanted == TUNED and family in FAMILIES)


def _fitting(density: Density, count: int) -> Density:
    return Density(density.family, density.strategy, min(density.start, count), density.design)


def _row(group: Group, reconstructor: str, count: int, density: Density) -> dict[str, object]:
    return {
        "section": group.section,
        "group": group.name,
        "reconstructor": reconstructor,
        "family": density.family,
        "grid": group.n_lines,
        "lines": count,
        "strategy": density.strategy,
        "start": density.start,
        "design": density.design,
    }


def _mean(rows: Sequence[Row]) -> float:
    return float(np.mean([float(str(row["error"])) for row in rows]))
