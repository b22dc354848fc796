"""Gaussian-process classification by serial and parallel sweeps: table 1, complete.

Logistic sites on the rows of a factor of the kernel matrix, exp(-|x - x'|^2 / 10), by incomplete Cholesky decomposition
with 750 columns at most; chunks of about 500 cases. Adult1 to Adult7 and Web1 to Web7 are nested random subsets, of the
published sizes, of LIBSVM's a9a and w8a: the published subsets are not at hand. Sweeps end when the modes of all chunks
agree with the mean to 1e-5; the paper does not give its tolerance. Beside them stands Newton's method on all cases at
once. Seconds are the processor's, one thread; the paper's are those of a 2.4 GHz Xeon and MATLAB.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from mri_design.glm import LaplacePropagation

from . import data as sets
from .chunks import UNSTATED, cases_of, logistic_model, newton_on_all, traced
from .kernels import incomplete_cholesky
from .runner import Claim, Outcome

PLACE = "section 5, table 1"
NEEDS = ("a9a", "w8a")
SIZES = {
    "tiny": {"sizes": (120, 240), "rank": 60, "chunk": 60},
    "small": {"sizes": (400, 800, 1605), "rank": 200, "chunk": 200},
    "full": {"sizes": None, "rank": 750, "chunk": 500},
}
TOLERANCE, GOAL, MOST = 1e-5, 1e-3, 10
FACTOR = (16.38, 20.07, 24.41, 36.29, 56.82, 89.78, 119.39), (20.33, 36.27, 37.09, 69.9, 68.15, 129.86, 213.54)
SERIAL = (25.72, 33.02, 47.05, 75.71, 97.57, 232.45, 293.45), (34.33, 67.65, 92.36, 168.88, 225.13, 261.23, 483.52)
PARALLEL = (53.9, 75.76, 106.88, 202.88, 169.79, 348.1, 559.23), (93.47, 88.37, 212.04, 251.92, 249.15, 663.07, 838.36)
"""Seconds of Adult1 to 7, and of Web1 to 7."""


def exponent(rows: list[dict], column: str) -> float:
    """Slope of log seconds against log cases."""
    cases, seconds = (np.log([row[name] for row in rows]) for name in ("cases", column))
    return float(np.polyfit(cases, seconds, 1)[0])


def rows_of(folder: Path | None, which: int, sizes: tuple[int, ...] | None, rank: int, chunk: int) -> list[dict]:
    """The rows of Adult (0) or Web (1)."""
    name, file, published = (("Adult", "a9a", sets.ADULT), ("Web", "w8a", sets.WEB))[which]
    wanted = sizes or published
    points, labels = cases_of(folder, file, wanted[-1])
    table = []
    for number, chosen in enumerate(sets.nested(wanted, len(labels), np.random.default_rng(0))):
        began = time.process_time()
        F, left = incomplete_cholesky(points[chosen], min(rank, len(chosen)))
        row = {
            "data": f"{name}, part" if sizes else f"{name}{number + 1}",
            "cases": len(chosen),
            "rank": F.shape[1],
            "trace left": float(left.mean()),
            "chunks": -(-len(chosen) // chunk),
            "factor s": time.process_time() - began,
        }
        whole = newton_on_all(F, labels[chosen])
        model = logistic_model(F, labels[chosen])
        for schedule in ("serial", "parallel"):
            engine = LaplacePropagation(chunk_size=chunk, schedule=schedule, max_sweeps=MOST, tolerance=TOLERANCE)
            trace = traced(model, whole.theta, engine)
            row |= {
                f"{schedule} s": trace.seconds[-1],
                f"{schedule} sweeps": len(trace.seconds),
                f"{schedule} sweeps to {GOAL:g}": trace.sweeps_to(GOAL),
                f"{schedule} error": trace.errors[-1],
            }
        row |= {"Newton s": whole.seconds, "Newton steps": whole.steps}
        if sizes is None:
            theirs = zip(("factor", "serial", "parallel"), (FACTOR, SERIAL, PARALLEL), strict=True)
            row |= {f"their {what} s": values[which][number] for what, values in theirs}
        table.append(row)
    return table


def run(data: Path | None, sizes: tuple[int, ...] | None, rank: int, chunk: int) -> Outcome:
    """Factor, both schedules and Newton's method for every row."""
    halves = [rows_of(data, which, sizes, rank, chunk) for which in (0, 1)]
    rows = [row for half in halves for row in half]
    ratios = [row["parallel s"] / row["serial s"] for row in rows]
    theirs = [p / s for ps, ss in zip(PARALLEL, SERIAL, strict=True) for p, s in zip(ps, ss, strict=True)]
    slopes = {column: [exponent(half, f"{column} s") for half in halves] for column in ("factor", "serial", "parallel")}
    published = [
        np.polyfit(np.log(m), np.log(s), 1)[0]
        for table in (SERIAL, PARALLEL)
        for m, s in zip((sets.ADULT, sets.WEB), table, strict=True)
    ]

    def most(schedule: str) -> str:
        """How many sweeps the slowest set takes."""
        counts = [row[f"{schedule} sweeps to {GOAL:g}"] for row in rows]
        return (
            f"most sweeps of a set: {f'more than {MOST}' if None in counts else max(counts)} to a relative error of "
            f"{GOAL:g}, {max(row[f'{schedule} sweeps'] for row in rows)} until modes agree to {TOLERANCE:g}, the last "
            "of which confirms"
        )

    error = max(row[f"{schedule} error"] for row in rows for schedule in ("serial", "parallel"))
    slower = sum(row["Newton s"] < row["serial s"] for row in rows)
    check = Claim.checked
    claims = [
        check("section 5", "serial sweeps take less work in total than parallel ones",
              f"parallel over serial {min(theirs):.1f} to {max(theirs):.1f} times",
              f"{min(ratios):.2f} to {max(ratios):.2f} times, less on {sum(r > 1 for r in ratios)} of {len(rows)} sets",
              min(ratios) > 1, "On some sets the parallel sweeps of one processor took no longer."),
        check("table 1", "the time of training grows nearly linearly with the cases",
              "exponents of Adult and Web: serial {:.2f}, {:.2f}, parallel {:.2f}, {:.2f}".format(*published),
              "exponents " + ", ".join(f"{name} {a:.2f}, {w:.2f}" for name, (a, w) in slopes.items()),
              all(0.75 <= slopes[name][k] <= 1.25 for name in ("serial", "parallel") for k in (0, 1)),
              "An exponent of training is more than a quarter off 1."),
        Claim("section 5", "fewer than 3 serial iterations converge on all sets", "< 3, tolerance not given",
              most("serial"), None, UNSTATED),
        Claim("section 5", "fewer than 6 parallel iterations converge on all sets", "< 6, tolerance not given",
              most("parallel"), None, UNSTATED),
        check("section 2", "both schedules end at the mode of the whole", "lemma 1",
              f"largest relative error {error:.1e} of {len(rows)} sets", error <= 1e-6, "A run ended away from it."),
        Claim("section 2", "breaking the problem into smaller pieces saves computations", "savings where each term "
              "depends on few variables", f"Newton's method on all cases at once is faster than serial sweeps on "
              f"{slower} of {len(rows)} sets", None,
              "Each case depends on all columns of the factor here; the paper says it of terms on few variables each."),
    ]  # fmt: skip

    seconds = [{k: v for k, v in row.items() if k in ("data", "cases") or k.endswith(" s")} for row in rows]
    sweeps = [{k: v for k, v in row.items() if k == "data" or not k.endswith(" s")} for row in rows]
    return Outcome(
        {"Seconds" + ("" if data else ", simulated cases"): seconds, "Sweeps": sweeps}, claims, drawing(halves)
    )


def drawing(halves: list[list[dict]]) -> Callable[[Figure], None]:
    """Seconds against cases, Adult and Web, beside those of the paper where it has them."""

    def draw(figure: Figure) -> None:
        for axes, half in zip(figure.subplots(1, 2), halves, strict=True):
            cases = [row["cases"] for row in half]
            for colour, what in zip(("C7", "C0", "C1"), ("factor", "serial", "parallel"), strict=True):
                axes.loglog(cases, [row[f"{what} s"] for row in half], "o-", color=colour, label=what)
                if f"their {what} s" in half[0]:
                    axes.loglog(cases, [row[f"their {what} s"] for row in half], "o:", color=colour)
            title = half[0]["data"].removesuffix(", part").removesuffix("1")
            axes.set(xlabel="cases", ylabel="seconds (dotted: the paper's)", title=title)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.legend()

    return draw
