"""Queries from eigenvectors that are updated, and how their time grows with n.

A trial changes the covariance by a matrix of rank one, and the query needs the eigenvectors of its projection A, which
differs by two more. All three changes are made by the secular equation (`eigen_update`); the first is multiplied into
the matrix of eigenvectors, the other two stay factors, since a query needs products with them only. Two regimes: the
first trials from the prior N(0, I), where unexplored directions share their eigenvalue and deflate; and the trials
after 2 n queries of the design that is optimal in the long run, where the eigenvalues have all come apart. Poisson
responses of rate exp(x^T theta), theta one period of a sine. Processor milliseconds of one thread, means over trials.
Exponents are fitted to n of 500 and more, where they tell n^2 from n^3: below, a fixed cost of each trial hides both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.glm import FilterState, InfomaxQuery, LaplaceFilter, asymptotic_information
from mri_design.glm.infomax import FeasibleQueries
from mri_design.glm.laplace import site_mode
from mri_design.sites import PoissonResponse, Site

from .eigen_update import TOLERANCE, RankOne
from .neurons import sine_wave
from .runner import Claim, Outcome

PLACE = "figure 1 (b) and the section on the optimal example"
SIZES = {
    "tiny": {"sizes": (20, 40), "trials": 5, "later": 3, "exact": 30},
    "small": {"sizes": (50, 100, 200, 300), "trials": 30, "later": 4, "exact": 60},
    "full": {"sizes": (100, 200, 300, 500, 700, 1000, 1500, 2000), "trials": 100, "later": 9, "exact": 300},
}
POWER, RESPONSE, LARGE = 4.0, PoissonResponse(), 500
Values = NDArray[np.float64]
PARTS = ("update", "eigenvectors of C", "eigenvalues of A", "search")


@dataclass
class Turned:
    """The eigenvectors of A without that of the mean, as the factors V T_1 T_2."""

    V: Values
    first: RankOne
    second: RankOne
    kept: NDArray[np.bool_]

    def __matmul__(self, y: Values) -> Values:
        whole = np.zeros(len(self.kept))
        whole[self.kept] = y
        return self.V @ self.first.apply(self.second.apply(whole))


@dataclass
class EigenLoop:
    """Mean, eigenvalues and eigenvectors of the covariance; what every part of a trial took, and how many deflated."""

    mean: Values
    values: Values
    V: Values
    seconds: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})
    undeflated: list[int] = field(default_factory=list)
    last: tuple[Values, float] | None = None

    def feasible(self, power: float) -> FeasibleQueries:
        """A by two changes of C: equations (30) to (32), with the mean of unit length and both vectors of one size."""
        length = float(np.linalg.norm(self.mean))
        direction = self.mean / length if length else np.eye(1, len(self.mean))[0]
        m = self.V.T @ direction
        along = self.values * m
        g = along - 0.5 * (along @ m) * m
        scale = np.sqrt(np.linalg.norm(g))
        first = RankOne.of(self.values, scale * m + g / scale, -0.5)
        second = RankOne.of(first.values, first.transposed(scale * m - g / scale), 0.5)
        kept = np.ones(len(m), dtype=bool)
        kept[np.argmax(np.abs(second.transposed(first.transposed(m))))] = False
        slope = 2 * second.transposed(first.transposed(along))[kept]
        return FeasibleQueries(
            direction=direction,
            length=length,
            fixed=np.empty(0),
            base=0.0,
            reach=power,
            curvatures=second.values[kept],
            basis=Turned(self.V, first, second, kept),
            slope_rest=np.zeros(len(slope)),
            slope_along=slope,
            offset=(0.0, 0.0, float(m @ along)),
        )

    def query(self, search: InfomaxQuery) -> Values:
        """The best query."""
        began = time.process_time()
        feasible = self.feasible(search.power)
        middle = time.process_time()
        x = search.best_of(feasible)
        self.seconds["eigenvalues of A"].append(middle - began)
        self.seconds["search"].append(time.process_time() - middle)
        return x

    def update(self, x: Values, site: Site) -> None:
        """Mean and eigenvectors after a response."""
        began = time.process_time()
        seen = self.V.T @ x
        spread = self.values * seen
        variance = float(seen @ spread)
        slope, D = site_mode(site, float(self.mean @ x), variance)
        self.mean = self.mean + slope * (self.V @ spread)
        middle = time.process_time()
        rho = -D / (1 + D * variance)
        self.last = spread, rho
        change = RankOne.of(self.values, spread, rho)
        self.values, self.V = change.values, change.times(self.V)
        self.undeflated.append(len(change.kept))
        self.seconds["update"].append(middle - began)
        self.seconds["eigenvectors of C"].append(time.process_time() - middle)


def started(n: int, trials: int, rng: np.random.Generator) -> EigenLoop:
    """The prior, or what is known after queries of the optimal design: the Laplace approximation at the truth."""
    if not trials:
        return EigenLoop(np.zeros(n), np.ones(n), np.asfortranarray(np.eye(n)))
    theta = sine_wave(n)
    design = asymptotic_information(RESPONSE, theta, POWER)
    x1 = rng.choice(design.support, size=trials, p=design.weights / design.weights.sum())
    across = rng.normal(size=(trials, n))
    across -= np.outer(across @ theta, theta)
    across *= np.sqrt((POWER**2 - x1**2) / np.sum(across**2, axis=1))[:, None]
    X = across + np.outer(x1, theta)
    information, V = np.linalg.eigh(np.eye(n) + (X.T * np.exp(x1)) @ X)
    return EigenLoop(theta + V @ (rng.normal(size=n) / np.sqrt(information)), 1 / information, np.asfortranarray(V))


def trial(loop: EigenLoop, search: InfomaxQuery, rng: np.random.Generator) -> tuple[Values, Site]:
    """Ask, and let the loop know the answer."""
    x = loop.query(search)
    site = RESPONSE.site(float(RESPONSE.draw(sine_wave(len(x)) @ x, rng)))
    loop.update(x, site)
    return x, site


def times_of(n: int, before: int, trials: int, regime: str) -> dict:
    """Means over trials; beside them a query by a full eigendecomposition, and by Krylov directions."""
    rng, search = np.random.default_rng(n), InfomaxQuery(POWER)
    loop = started(n, before, rng)
    trial(loop, search, rng)  # warm
    loop.seconds, loop.undeflated = {part: [] for part in PARTS}, []
    for _ in range(trials):
        trial(loop, search, rng)
    means = {part: 1e3 * float(np.mean(taken)) for part, taken in loop.seconds.items()}
    state = FilterState(loop.mean, (loop.V * loop.values) @ loop.V.T)
    others = {}
    for name, krylov in (("eigh", 0), ("Krylov", 48)):
        taken = []
        for _ in range(3):
            began = time.process_time()
            feasible = FeasibleQueries.of(state, POWER, np.empty(0), krylov)
            search.best_of(feasible)
            taken.append(time.process_time() - began)
        others[name] = 1e3 * float(np.median(taken))
    spread, rho = loop.last
    near = {f"undeflated at {t:g}": len(RankOne.of(loop.values, spread, rho, t).kept) for t in (1e-6, 1e-3, 1e-2)}
    across = np.sort(loop.values)[1:]  # the least uncertain direction is that of the mean
    return {
        "regime": regime, "n": n, **{f"{part} ms": value for part, value in means.items()},
        "eigen ms": means["eigenvectors of C"] + means["eigenvalues of A"],
        "update + query ms": sum(means.values()), "query by eigh ms": others["eigh"],
        "query by Krylov ms": others["Krylov"], "undeflated": float(np.mean(loop.undeflated)), **near,
        "spread across the mean": float(across[-1] / across[0]),
    }  # fmt: skip


def accuracy(n: int, trials: int) -> dict[str, float]:
    """After many trials: against the filter's dense covariance, and eigh of its projection."""
    rng, search, plain = np.random.default_rng(1), InfomaxQuery(POWER), LaplaceFilter()
    loop, state = started(n, 0, rng), FilterState(np.zeros(n), np.eye(n))
    worst = {"eigenvalues of A": 0.0, "score lost": 0.0}
    for number in range(trials):
        if number % 10 == 0:
            feasible = loop.feasible(POWER)
            P = np.eye(n) - np.outer(feasible.direction, feasible.direction)
            wanted = np.linalg.eigvalsh(P @ ((loop.V * loop.values) @ loop.V.T) @ P)[1:]
            error = float(np.abs(np.sort(feasible.curvatures) - wanted).max() / wanted.max())
            worst["eigenvalues of A"] = max(worst["eigenvalues of A"], error)
            x, best = search.best_of(feasible), InfomaxQuery(POWER, krylov=0).propose(state).score
            worst["score lost"] = max(worst["score lost"], 1 - float(search.score(state, x[None])[0]) / best)
        x, site = trial(loop, search, rng)
        state = plain.update(state, x, site)
    C = (loop.V * loop.values) @ loop.V.T
    worst["covariance"] = float(np.abs(C - state.covariance).max() / np.abs(state.covariance).max())
    worst["orthogonality"] = float(np.abs(loop.V.T @ loop.V - np.eye(n)).max())
    return worst


def exponent(rows: Sequence[dict], column: str) -> float:
    """Slope of log time against log n, of n of 500 and more; NaN where there are fewer than three."""
    n, values = (np.log([row[name] for row in rows if row["n"] >= LARGE]) for name in ("n", column))
    return float(np.polyfit(n, values, 1)[0]) if len(n) > 2 else float("nan")


def growth(what: str, regime: str, found: float, eigh: float, also: str = "") -> Claim:
    """Whether a time grows as n^2: an exponent of 1.8 to 2.2, or less, which bears out the order of growth only."""
    size = f"exponent {found:.2f}, of a query by eigh {eigh:.2f}, from n = {LARGE}"
    if not np.isfinite(found):
        return Claim("figure 1 (b)", f"{what} grows as n^2, {regime}", "a polynomial of degree 2 fits", size, None,
                     f"There are fewer than three sizes of {LARGE} and more.")  # fmt: skip
    size += "; no steeper than n^2, but flatter at these n" * (found < 1.8)
    return Claim.checked("figure 1 (b)", f"{what} grows as n^2, {regime}", "a polynomial of degree 2 fits", size,
                         found <= 2.2, f"It is steeper than n^2{also}.")  # fmt: skip


def run(data: Path | None, sizes: tuple[int, ...], trials: int, later: int, exact: int) -> Outcome:
    """Both regimes at all sizes, and accuracy."""
    started(8, 0, np.random.default_rng(0)).update(np.ones(8), RESPONSE.site(1.0))  # compiled before it is timed
    early = [times_of(n, 0, trials, f"first {trials} trials") for n in sizes]
    late = [times_of(n, 2 * n, later, f"after 2 n, {later} trials") for n in sizes]
    far = times_of(sizes[0], 100 * sizes[0], later, "after 100 n")
    errors = accuracy(min(60, sizes[-1]), exact)
    names = (
        "update + query ms",
        "eigen ms",
        "search ms",
        "eigenvectors of C ms",
        "query by eigh ms",
        "query by Krylov ms",
    )
    slopes = {name: (exponent(early, name), exponent(late, name)) for name in names}
    at = min(early, key=lambda row: abs(row["n"] - 200))
    last, end = early[-1], late[-1]
    gains = [row["query by eigh ms"] / (row["eigen ms"] + row["search ms"]) for row in (last, end)]
    check = Claim.checked
    total, eigen, search, _, eigh, _ = slopes.values()
    regimes = (f"in the first {trials} trials, where eigenvalues deflate", "after 2 n trials, where none does")
    apart = ": where none deflates, eigenvectors take products of n x n matrices, and the target of n^2 is missed"
    claims = [
        *(growth("the time of a whole trial", *each, apart) for each in zip(regimes, total, eigh, strict=True)),
        *(growth("the time for eigenvectors", *each, apart) for each in zip(regimes, eigen, eigh, strict=True)),
        Claim("figure 1 (b)", "the time of the search over queries grows at most linearly", "a polynomial of degree 1 "
              "fits", f"exponent {search[0]:.2f} in the first {trials} trials, {search[1]:.2f} after 2 n, from n = "
              f"{LARGE}", bool(max(search) <= 1.2) if np.isfinite(search[0]) else None,
              "" if max(search) <= 1.2 else "It grows faster, or there are fewer than three sizes so large."),
        check("figure 1 (b)", "at n = 200 a trial takes less than a tenth of a second", "< 100 ms, 2.8 GHz Xeon",
              f"{at['update + query ms']:.1f} ms at n = {at['n']}", at["update + query ms"] < 100, "It takes longer."),
        check("section on the optimal example", "deflation leaves O(n^2) on average, while directions are unexplored",
              "average O(n^2)", f"{last['undeflated']:.0f} of n = {last['n']} eigenvalues undeflated in the first "
              f"{trials} trials", last["undeflated"] < 0.5 * last["n"], "Half of them or more stay."),
        check("section on the optimal example", "in the long run n - 1 eigenvalues are nearly equal, and deflate",
              "speeds up the eigendecomposition",
              f"{end['undeflated']:.0f} of {end['n']} undeflated after 2 n trials, {end['undeflated at 0.001']} if "
              f"0.1 % counted as equal; {far['undeflated']:.0f} of {far['n']} after 100 n, where they spread "
              f"{far['spread across the mean']:.2f}-fold", end["undeflated"] < 0.5 * end["n"],
              "Nearly equal is not equal to rounding: none deflates, and a tolerance wide enough would change C."),
        check("summary", "the worst case is O(n^3)", "O(n^3)",
              f"all {end['n']} undeflated after 2 n: 2 n^3 operations of a product; exponent of this part's time "
              f"{slopes['eigenvectors of C ms'][1]:.2f}", end["undeflated"] == end["n"],
              "Some deflate."),
        check("section on the optimal example", "updates replace a full eigendecomposition", "much more efficient",
              f"by eigh a query takes {gains[0]:.1f} times as long in the first trials, {gains[1]:.1f} after 2 n, "
              f"n = {end['n']}",
              min(gains) > 1, "Where nothing deflates, eigh is as fast."),
        check("section on the optimal example", "the updated eigenvectors are those of the covariance", "stable",
              f"after {exact} trials: covariance off by {errors['covariance']:.1e}, orthogonality "
              f"{errors['orthogonality']:.1e}, eigenvalues of A {errors['eigenvalues of A']:.1e}",
              max(errors[k] for k in ("covariance", "orthogonality", "eigenvalues of A")) <= 1e-10, "Errors add up."),
        check("equation (16)", "queries from updated eigenvectors are the best ones", "implied",
              f"score lost at most {errors['score lost']:.1e}", errors["score lost"] <= 1e-8, "Scores are lost."),
    ]  # fmt: skip
    fits = [
        {"part": name, "first trials": a if np.isfinite(a) else None, "after 2 n": b if np.isfinite(b) else None}
        for name, (a, b) in slopes.items()
    ]

    def draw(figure: Figure) -> None:
        for axes, rows in zip(figure.subplots(1, 2, sharey=True), (early, late), strict=True):
            for name in ("update + query ms", "eigen ms", "search ms", "query by eigh ms", "query by Krylov ms"):
                axes.loglog(sizes, [row[name] for row in rows], "o-", label=f"{name.removesuffix(' ms')}")
            n = np.array(sizes, dtype=float)
            axes.loglog(n, early[-1]["update + query ms"] * (n / n[-1]) ** 2, "k:", label="n^2")
            axes.set(xlabel="n", ylabel="milliseconds", title=rows[0]["regime"])
        axes.legend(fontsize=7)

    columns = [k for k in early[0] if "ms" not in k]
    tables = {
        f"Exponents in n, from n = {LARGE}": fits,
        "Milliseconds of a trial": [
            {k: row[k] for k in row if k in ("regime", "n") or "ms" in k} for row in early + late
        ],
        f"Eigenvalues that deflate at {TOLERANCE:.0e}, and would": [
            {k: row[k] for k in columns} for row in [*early, *late, far]
        ],
        "Errors": [errors],
    }
    return Outcome(tables, claims, draw)
