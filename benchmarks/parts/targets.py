"""The targets of the inference benchmark: what was asked for, and what the tables say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mri_design.evaluation.tables import Row, read_csv_texts

Tables = Mapping[str, Sequence[Row]]
COLUMNS = ["name", "target", "measured", "unit", "met"]
REPORTED = "reported"


@dataclass(frozen=True)
class Target:
    """One row of targets.csv.

    Parameters
    ----------
    name : str
        What is measured, with its conditions.
    bound : float
        The goal.
    at_least : bool
        Whether more is better.
    unit : str
        Of goal and measurement.
    section : str
        The table that knows.
    measure : callable
        Rows of that table to the number; None where they do not tell (a peer that is not installed).
    """

    name: str
    bound: float
    at_least: bool
    unit: str
    section: str
    measure: Callable[[Sequence[Row]], float | None]

    def row(self, tables: Tables) -> Row:
        """With the measured number; an unmeasured target is not met."""
        rows = tables.get(self.section, ())
        found = self.measure(rows) if rows else None
        met = found is not None and (found >= self.bound if self.at_least else found <= self.bound)
        sign = ">=" if self.at_least else "<="
        return {
            "name": self.name,
            "target": f"{sign} {self.bound:g}",
            "measured": found,
            "unit": self.unit,
            "met": met,
        }


def reported(name: str, measured: float | None, unit: str) -> Row:
    """A row of what is asked to be reported, whatever it is: met once it is measured."""
    return {"name": name, "target": REPORTED, "measured": measured, "unit": unit, "met": measured is not None}


def with_targets(path: Path, rows: Sequence[Row]) -> list[Row]:
    """The rows of a targets.csv, those of the same names replaced by ``rows``, and the others of these behind them."""
    kept: dict[object, Row] = {}
    if path.exists():
        for cells in read_csv_texts(path):
            kept[cells["name"]] = {**cells, "measured": float(cells["measured"]) if cells["measured"] else None}
    return list((kept | {row["name"]: row for row in rows}).values())


def numbers(rows: Sequence[Row], column: str, **wanted: object) -> list[float]:
    """A column's numbers in the rows whose other columns have the wanted values (underscores stand for spaces)."""
    conditions = {name.replace("_", " "): value for name, value in wanted.items()}
    chosen = [row for row in rows if all(row.get(name) == value for name, value in conditions.items())]
    return [float(row[column]) for row in chosen if row.get(column) is not None]  # type: ignore[arg-type]


def smallest(column: str, **wanted: object) -> Callable[[Sequence[Row]], float | None]:
    """The smallest number of a column."""
    return lambda rows: min(numbers(rows, column, **wanted), default=None)


def largest(column: str, **wanted: object) -> Callable[[Sequence[Row]], float | None]:
    """The largest number of a column."""
    return lambda rows: max(numbers(rows, column, **wanted), default=None)


def mean_of(column: str, **wanted: object) -> Callable[[Sequence[Row]], float | None]:
    """The mean of a column."""

    def measure(rows: Sequence[Row]) -> float | None:
        found = numbers(rows, column, **wanted)
        return sum(found) / len(found) if found else None

    return measure


def whole_design(rows: Sequence[Row]) -> float | None:
    """How many of our times the papers' whole design takes."""
    whole = [row for row in rows if str(row["what"]).startswith("whole design")]
    return min(numbers(whole, "times ours"), default=None)


def times_faster(
    peer: str, settings: str = "", *, column: str = "times our fastest", **case: object
) -> Callable[[Sequence[Row]], float | None]:
    """How many of our fastest runs the fastest run of a peer takes, on the objective where we are least ahead.

    Of the peer's rows those count whose settings contain ``settings`` and whose other columns are those of ``case``.
    ``times as shipped`` in place of ``times our fastest`` compares with our defaults.

    A lower bound where the peer gave up.
    """

    def measure(rows: Sequence[Row]) -> float | None:
        ratios: list[float] = []
        wanted = [row for row in rows if settings in str(row["settings"])]
        for objective in {row["objective"] for row in wanted if row["solver"] == peer}:
            theirs = numbers(wanted, column, objective=objective, solver=peer, **case)
            if not theirs:
                return None
            ratios.append(min(theirs))
        return min(ratios, default=None)

    return measure


def worst_variance_error(budget: int, coils: Callable[[int], bool]) -> Callable[[Sequence[Row]], float | None]:
    """Per case the smallest median error of z, in per cent, within the budget of products; the worst case of these."""

    def measure(rows: Sequence[Row]) -> float | None:
        best: dict[tuple[object, ...], float] = {}
        for row in rows:
            case = (row.get("prior"), row["coils"], row["tau/sigma"])
            within = float(row["matvecs"]) <= budget and str(row["estimator"]).startswith("control")  # type: ignore[arg-type]
            if coils(int(row["coils"])) and within:  # type: ignore[call-overload]
                error = 100 * float(row["median error"])  # type: ignore[arg-type]
                best[case] = min(error, best.get(case, error))
            elif coils(int(row["coils"])):  # type: ignore[call-overload]
                best.setdefault(case, float("inf"))
        return max(best.values(), default=None)

    return measure


def whole_product(measure: Callable[[Sequence[Row]], float | None]) -> Callable[[Sequence[Row]], float | None]:
    """Of rows that have sites, X^H X and B^H diag(pi) B together."""
    return lambda rows: measure([row for row in rows if row["prior"] != "none"])


def in_per_cent(measure: Callable[[Sequence[Row]], float | None]) -> Callable[[Sequence[Row]], float | None]:
    """A fraction times 100."""

    def scaled(rows: Sequence[Row]) -> float | None:
        found = measure(rows)
        return None if found is None else 100 * found

    return scaled


def in_gib(measure: Callable[[Sequence[Row]], float | None]) -> Callable[[Sequence[Row]], float | None]:
    """MiB to GiB."""

    def scaled(rows: Sequence[Row]) -> float | None:
        found = measure(rows)
        return None if found is None else found / 1024

    return scaled


def all_targets(small: int, grid: int, large: int) -> list[Target]:
    """Every target; ``small``, ``grid`` and ``large`` stand for 64, 256 and 512 (a smoke run has smaller ones)."""
    return [
        Target(
            f"median error of z, {small}x{small}, one coil, <= 50 MVMs",
            1,
            False,
            "%",
            "variances",
            worst_variance_error(50, lambda coils: coils == 1),
        ),
        Target(
            f"median error of z, {small}x{small}, 8 to 16 coils, <= 100 MVMs",
            5,
            False,
            "%",
            "variances",
            worst_variance_error(100, lambda coils: coils > 1),
        ),
        Target(
            f"(phi - phi*) / |phi*| from a cold start, {small}x{small}, <= 500 MVMs",
            1e-4,
            False,
            "1",
            "criterion",
            smallest("gap", within_budget=True),
        ),
        Target(
            f"MVM {grid}x{grid}, one coil, times faster than plain float64, least of the priors",
            10,
            True,
            "times",
            "operators",
            whole_product(smallest("plain / ours", grid=grid, coils=1)),
        ),
        Target(
            f"MVM {grid}x{grid}, one coil, over the memory/flop floor, most of the priors",
            3,
            False,
            "times",
            "operators",
            whole_product(largest("ours / floor", grid=grid, coils=1)),
        ),
        Target(
            f"8-coil X^H X {grid}x{grid}, times faster than plain float64",
            8,
            True,
            "times",
            "operators",
            smallest("plain / ours", grid=grid, coils=8, prior="none"),
        ),
        Target(
            f"whole design {grid}x{grid}, times faster than the papers' algorithm",
            300,
            True,
            "times",
            "design",
            whole_design,
        ),
        Target(
            "regret of our lines by exact scores, summed over the decisions judged, mean of three seeds",
            0.3,
            False,
            "%",
            "regret",
            in_per_cent(mean_of("regret", design="ours")),
        ),
        Target(
            f"MVM-vectors per design step, {grid}x{grid}",
            30,
            False,
            "MVMs",
            "design step",
            smallest("MVMs per step", grid=grid),
        ),
        Target(
            f"mean of a design step's posterior to the converged one, {grid}x{grid}",
            1,
            False,
            "%",
            "design step",
            in_per_cent(largest("distance of the mean", grid=grid)),
        ),
        Target(
            f"z of a design step's posterior to the converged one, median, {grid}x{grid}",
            1,
            False,
            "%",
            "design step",
            in_per_cent(largest("distance of z", grid=grid)),
        ),
        *(
            Target(
                f"TV MAP {side}x{side}, {'one coil' if coils == 1 else f'{coils} coils'}, as shipped to a gap of 1e-3, "
                "times faster than BART pics -R T",
                bound,
                True,
                "times",
                "TV MAP",
                times_faster("BART pics -R T", column="times as shipped", grid=side, coils=coils),
            )
            for side, coils, bound in ((grid, 1, 15), (grid // 2, 8, 5), (grid, 8, 5))
        ),
        Target(
            f"TV MAP {grid}x{grid}, anisotropic, as shipped: relative gap",
            1e-3,
            False,
            "1",
            "TV MAP",
            largest("gap", solver="ours", settings="as shipped", objective="anisotropic TV", grid=grid, coils=1),
        ),
        Target(
            f"TV MAP {grid}x{grid} to a gap of 1e-3, times faster than SigPy TV, PDHG as shipped",
            10,
            True,
            "times",
            "TV MAP",
            times_faster("SigPy TV", "as shipped"),
        ),
        Target(
            f"TV MAP {grid}x{grid} to a gap of 1e-3, times faster than SigPy TV, tuned by hand",
            10,
            True,
            "times",
            "TV MAP",
            times_faster("SigPy TV"),
        ),
        Target(
            f"peak memory of an 8-coil design, {grid}x{grid}",
            0.5,
            False,
            "GiB",
            "memory",
            in_gib(largest("peak MiB", grid=grid)),
        ),
        Target(
            f"peak memory of an 8-coil design, {large}x{large}",
            3,
            False,
            "GiB",
            "memory",
            in_gib(largest("peak MiB", grid=large)),
        ),
    ]
