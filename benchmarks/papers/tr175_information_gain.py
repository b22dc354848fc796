"""Why the information gain does not beat a tuned density, and what it would take.

Lines of heads at 128 x 128 under the recipe `local`, as the report chooses them (information gain, equation 12), and
drawn from a variable density that was tuned on heads of another subject; with one coil, and with eight whose maps are
known. Then the reason: at sets of lines of four kinds the energy of the error on every line that is not measured is
compared with what the posterior expects, and a regression on other heads says where the two differ: by the distance
|k| from the centre, by whether the opposite line -k is measured, and by the side of k-space. Last, designs go by
expected energies that this regression has corrected, with one, two and three of its parts. `calibrated`, the default,
learns such a correction from the scan itself. Changes are of the relative error of the posterior mean, against the
tuned density; energies are those on lines with 4 <= |k| < 43 in the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter
from numpy.typing import NDArray
from scipy.stats import spearmanr, ttest_1samp

from mri_design.design.greedy import ExpectedError, Scores, expected_energies, residual_energies
from mri_design.design.strategy import DesignView, Strategy
from mri_design.design.trace import Forecast
from mri_design.design.training import OracleResidual, ReferenceSlice
from mri_design.evaluation.tables import Row
from mri_design.experiment.design import run_design

from .runner import Claim, Outcome
from .scans import HEADS, LOCAL, NO_DENSITY, OUTPERFORM, lines_of, mean_error, slices, tuned_density, verdict

PLACE = "section 6, equation 12; sections 1 and 7"
NEEDS = (HEADS,)
SIZES = {
    "tiny": {"numbers": (7,), "training": (0,), "side": 32, "counts": {1: (12,)}, "seeds": 1, "probed": 12},
    "small": {"numbers": (7, 13), "training": (0,), "side": 64, "counts": {1: (16,)}, "seeds": 1, "probed": 16},
    "full": {
        "numbers": (7, 10, 13, 16, 19),
        "training": (0, 2, 4),
        "side": 128,
        "counts": {1: (24, 40), 8: (32,)},
        "seeds": 3,
        "probed": 32,
    },
}
FEW = {1: 8, 8: 4}
"""Central lines that `calibrated` is content with where lines are chosen one by one; the report's rule takes half."""
FAMILIES = {1: ("vd-polynomial:{}",), 8: ("vd-polynomial:{}", "vd-polynomial:{} draw=systematic")}
KINDS = ("information-gain", "calibrated", "vd-polynomial:3", "vd-polynomial:3 draw=half")
"""Sets at which energies are compared."""
PARTS = ("distance", "opposite line", "side")
Numbers = NDArray[np.float64]


def features(k: NDArray[np.int_], measured: NDArray[np.bool_]) -> Numbers:
    """Of every line: 1, log(1 + |k|), whether -k is measured, and the side, (line, 4)."""
    opposite = measured[np.searchsorted(k, np.clip(-k, k[0], k[-1]))]
    return np.stack([np.ones(len(k)), np.log1p(np.abs(k)), opposite, np.sign(k)], axis=1)


@dataclass(frozen=True)
class Energies:
    """What is missed on the lines that a set leaves out, truly and as the posterior expects it."""

    k: NDArray[np.int_]
    features: Numbers
    true: Numbers
    expected: Numbers

    @classmethod
    def at(cls, image: ReferenceSlice, lines: Sequence[int]) -> Energies:
        """With the posterior after these lines; of unmeasured lines with |k| below a third of the grid."""
        seen = image.slice_model
        posterior = LOCAL.inference.engine().infer(seen.model(sorted(lines)), np.random.default_rng(0))
        readouts, measured = seen.candidates, np.zeros(seen.candidates.size, dtype=bool)
        measured[list(lines)] = True
        k = readouts.frequencies[:, 0]
        inner = ~measured & (np.abs(k) < len(k) / 3)
        expected = expected_energies([posterior], readouts, np.random.default_rng(1), readouts.draws)
        true = residual_energies(posterior, readouts, image.reference)
        return cls(k[inner], features(k, measured)[inner], true[inner], expected[inner])

    @property
    def ratio(self) -> Numbers:
        """Logarithm of true over expected."""
        return np.asarray(np.log(self.true / self.expected))


@dataclass(frozen=True, kw_only=True)
class CorrectedError(ExpectedError):
    """The line with the largest expected energy, times what other heads have taught of true over expected."""

    weights: tuple[float, ...]
    name: str = "corrected"

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Expected energies, corrected by the first of the `features`."""
        expected, _ = super().scored(view, rng)
        known = features(view.readouts.frequencies[:, 0], view.candidates.mask)
        corrected = expected * np.exp(known[:, : len(self.weights)] @ self.weights)
        return corrected, Forecast(expected, corrected)


def learnt(training: Sequence[ReferenceSlice], count: int) -> tuple[list[tuple[float, ...]], list[Row]]:
    """Weights of log(true / expected) by one, two and three parts, and how much each of them explains."""
    sets = [
        Energies.at(one, lines_of(one.slice_model, rule, number))
        for one in training
        for rule in KINDS
        for number in (3 * count // 4, 5 * count // 4)
    ]
    X, y = np.concatenate([each.features for each in sets]), np.concatenate([each.ratio for each in sets])
    weights, rows = [], list[Row]()
    for number in range(1, X.shape[1] + 1):
        found = np.linalg.lstsq(X[:, :number], y, rcond=None)[0]
        left = float(np.std(y - X[:, :number] @ found))
        row: Row = {"parts": ", ".join(PARTS[: number - 1]) or "a constant"}
        names = ("constant", "log(1 + |k|)", "-k measured", "sign of k")
        values = dict.fromkeys(names, "") | dict(zip(names, (f"{value:+.2f}" for value in found), strict=False))
        rows.append(row | values | {"left to explain, nats": left})
        weights.append(tuple(found.tolist()))
    return weights[1:], rows


def run(
    data: Path | None,
    numbers: Sequence[int],
    training: Sequence[int],
    side: int,
    counts: Mapping[int, Sequence[int]],
    seeds: int,
    probed: int,
) -> Outcome:
    """Compare designs, then energies."""
    rows: list[Row] = []
    changes: dict[tuple[int, str], Numbers] = {}
    heads, real = slices(data, numbers, side)
    taught = slices(data, training, side)[0]
    weights, fitted = learnt(taught, probed)
    ranks: dict[int, list[float]] = {}
    for coils, each in counts.items():
        seen = heads if coils == 1 else slices(data, numbers, side, coils)[0]
        found: dict[str, list[float]] = {}
        for count in each:
            tuned = tuned_density(slices(data, training, side, coils)[0], count, FAMILIES[coils])
            for head in seen:
                for name, (rule, start, times) in rivals(head, tuned, coils, weights, seeds).items():
                    errors = []
                    for seed in range(times):
                        made = run_design([head.slice_model], rule, count, LOCAL, seed=seed, start=start)
                        errors.append(mean_error(head, made.trace.lines))
                    found.setdefault(name, []).append(float(np.mean(errors)))
        tables = {name: np.array(values).reshape(len(each), len(seen)) for name, values in found.items()}
        for name, values in tables.items():
            change = 100 * (values / tables["tuned density"] - 1).mean(axis=0)
            changes[coils, name] = change
            row: Row = {"coils": coils, "lines": " and ".join(map(str, each)), "design": name}
            row |= {"error": float(values.mean()), "change, %": float(change.mean()), "worst head, %": change.max()}
            rows.append(row | {"heads better": f"{np.sum(change < 0)} of {len(seen)}"})
        if coils > 1:
            made = [Energies.at(head, lines_of(head.slice_model, "information-gain", each[0])) for head in seen]
            ranks[coils] = [float(spearmanr(one.expected, one.true)[0]) for one in made]
    own = [lines_of(head.slice_model, "information-gain", probed) for head in heads]
    borrowed = [
        100 * (mean_error(head, own[n]) / np.mean([mean_error(head, own[m]) for m in range(len(own)) if m != n]) - 1)
        for n, head in enumerate(heads)
        if len(own) > 1
    ]
    sets = [Energies.at(head, lines) for head, lines in zip(heads, own, strict=True)]
    ranks = {1: [float(spearmanr(one.expected, one.true)[0]) for one in sets]} | ranks
    tables = {"Designs against a tuned density": rows, "Where true and expected energies differ": fitted}
    tables["True over expected energy, sets of the information gain"] = profile(sets)
    return Outcome(tables, claims_of(changes, sets, ranks, borrowed, real), drawing(changes, sets))


def rivals(
    head: ReferenceSlice, tuned: str, coils: int, weights: Sequence[tuple[float, ...]], seeds: int
) -> dict[str, tuple[Strategy | str, int | None, int]]:
    """Strategies by name, with the central lines that they begin with (None: as the package has it) and their draws."""
    few = FEW[coils]
    rules: dict[str, tuple[Strategy | str, int | None, int]] = {
        "tuned density": (tuned, None, seeds),
        "information gain": ("information-gain", None, seeds),
        "information gain, few central lines": ("information-gain", few, seeds),
        "calibrated": ("calibrated", None, seeds),
        "true energies": (OracleResidual(truths=(head.reference,)), few, 1),
    }
    if coils == 1:
        for number, each in enumerate(weights, 1):
            rules["corrected: " + " + ".join(PARTS[:number])] = (CorrectedError(weights=each), few, 1)
    return rules


EDGES = (4, 8, 12, 16, 24, 32, 43)


def profile(sets: Sequence[Energies]) -> list[Row]:
    """Geometric mean of true over expected energy by distance, with the opposite line measured or not."""
    k = np.abs(np.concatenate([each.k for each in sets]))
    opposite = np.concatenate([each.features[:, 2] for each in sets]) > 0
    ratio = np.concatenate([each.ratio for each in sets])
    rows = []
    for low, high in pairwise(EDGES):
        row: Row = {"|k|": f"{low} to {high - 1}"}
        for name, chosen in {"-k measured": opposite, "-k not measured": ~opposite}.items():
            there = ratio[(k >= low) & (k < high) & chosen]
            row[name] = float(np.exp(there.mean())) if len(there) else ""
        rows.append(row)
    return rows


def told(change: Numbers) -> str:
    """A change in words."""
    return f"{change.mean():+.1f} %, worst {change.max():+.1f} %, better on {np.sum(change < 0)} of {len(change)} heads"


def claims_of(
    changes: Mapping[tuple[int, str], Numbers],
    sets: Sequence[Energies],
    ranks: Mapping[int, Sequence[float]],
    borrowed: Sequence[float],
    real: bool,
) -> list[Claim]:
    """What the report says of the score, and what it presumes of the posterior."""
    claims = []

    def claim(place: str, words: str, theirs: str, ours: str, holds: bool | None, because: str) -> None:
        claims.append(Claim(place, words, theirs, ours, *verdict(real, holds, because)))

    for coils in sorted({coils for coils, _ in changes}):
        what = "one coil" if coils == 1 else f"{coils} coils"
        few = changes[coils, "information gain, few central lines"].mean()
        claim(
            "section 1",
            f"{what}: lines by information gain beat a tuned density",
            OUTPERFORM,
            f"{told(changes[coils, 'information gain'])}, where our program starts with half of the lines at the "
            f"centre; {few:+.1f} % from {FEW[coils]} central lines",
            None,
            NO_DENSITY,
        )
        found = ranks[coils]
        claim(
            "section 6",
            f"{what}: the posterior ranks unmeasured lines by what is missed on them",
            "designs by the score find good measurements",
            f"rank correlation {np.mean(found):.2f} on average, {min(found):.2f} to {max(found):.2f}",
            None,
            "The report does not say how well they have to be ranked.",
        )
    change = changes[1, "true energies"]
    claim(
        "section 6.1",
        "choosing the best line one after the other is a good rule, given the energies of the error",
        "sequential design is put forward without a comparison",
        f"{told(change)} than a tuned density",
        None,
        NO_DENSITY,
    )
    ladder = [changes[1, name].mean() for name in ("information gain, few central lines", *LADDER)]
    claim(
        "section 6.2",
        "data gathered on the way make designs robust against a model that does not fit",
        "robust",
        f"{ladder[0]:+.1f} % against the tuned density; {ladder[-1]:+.1f} % once other heads have corrected it",
        ladder[0] <= ladder[-1] + 1,
        "The posterior's expectations stay wrong in the same way; what corrects them has to be learnt.",
    )
    if borrowed:
        change = np.array(borrowed)
        p = float(ttest_1samp(change, 0, alternative="less").pvalue)
        claim(
            "section 6.2",
            "lines that the scan's own data chose are better than lines chosen on other heads",
            "the dependence on data is an important feature",
            f"{told(change)}; one-sided p = {p:.2f}",
            None if 0.05 <= p <= 0.95 else p < 0.05,
            "Lines of other heads do better."
            if p > 0.95
            else "The heads differ too much for a verdict at the level of 5 %.",
        )
    ratio = np.concatenate([each.ratio for each in sets])
    total = [each.true.sum() / each.expected.sum() for each in sets]
    claim(
        "section 5.2",
        "the posterior is faithful: what it expects to miss is what is missed, within a factor of two",
        "a faithful approximation of posterior covariances",
        f"sum over lines {np.median(total):.1f} times the expected ({min(total):.1f} to {max(total):.1f}); "
        f"{100 * np.mean(np.abs(ratio) < np.log(2)):.0f} % of the lines within a factor of two",
        max(total) < 2,
        "It expects less than is missed, most of all near the centre.",
    )
    return claims


LADDER = tuple("corrected: " + " + ".join(PARTS[:number]) for number in (1, 2, 3))


def drawing(changes: Mapping[tuple[int, str], Numbers], sets: Sequence[Energies]) -> Callable[[Figure], None]:
    """Expected against true energies, their ratio by distance, and what correcting it does to designs."""

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
        for number, name in enumerate(("-k not measured", "-k measured")):
            scale = [each.true.sum() for each in sets]
            chosen = [each.features[:, 2] == number for each in sets]
            expected, true = (
                np.concatenate([getattr(e, of)[c] / s for e, c, s in zip(sets, chosen, scale, strict=True)])
                for of in ("expected", "true")
            )
            k = np.concatenate([np.abs(e.k)[c] for e, c in zip(sets, chosen, strict=True)])
            left.loglog(expected, true, ".", ms=3, color=f"C{number}", label=name)
            middle.semilogy(k, true / expected, ".", ms=3, color=f"C{number}")
        ends = (0.003, 0.1)
        left.plot(ends, ends, "k-", lw=0.8)
        left.set(xlim=ends, ylim=ends, xlabel="part that is expected", ylabel="part that is missed")
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_locator(FixedLocator((0.003, 0.01, 0.03, 0.1)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        left.legend(fontsize=6)
        middle.axhline(1, color="k", lw=0.8)
        middle.set(xlabel="|k|", ylabel="true / expected")
        names = ("information gain", "information gain, few central lines", *LADDER, "calibrated", "true energies")
        shown = [float(changes[1, name].mean()) for name in names]
        right.barh(range(len(names)), shown, color=["C3" if value > 0 else "C2" for value in shown])
        labels = ["information gain", "... few central lines", "corrected: distance", "+ opposite line", "+ side"]
        right.set_yticks(range(len(names)), [*labels, "calibrated", "true energies"], fontsize=6)
        right.invert_yaxis()
        right.set_xlabel("change of error, %")

    return draw
