"""What an experiment of a paper is, and how its tables, figure and claims become pages.

An experiment is a module of this package whose name begins with the name of its paper, as `khan_bound`. It has

``PLACE``
    where the paper has it: section, figure, table or equation;
``SIZES``
    arguments of `run` for ``tiny`` (seconds; a test runs it), ``small`` (all experiments in two minutes) and ``full``
    (what `results/papers` states);
``NEEDS``
    names of the data sets that it measures, where it does: at full size they have to be there;
``run(data, **arguments)``
    which measures, and returns an `Outcome`. ``data`` is the folder of data sets, or None.

Its docstring begins with its title; the rest stands on its page above the tables.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from parts.pages import put_section, put_table

from mri_design.errors import InputError
from mri_design.evaluation.tables import Row, markdown_text, read_csv_texts, write_csv
from mri_design.scan.io.atomic import write_text

from .data import at_hand, require

PAPERS = {
    "tr175": "Seeger and Nickisch 2008, technical report TR-175",
    "icml": "Nickisch and Seeger 2009, convex variational Bayes",
    "khan": "Khan 2014, decoupled variational Gaussian inference",
    "smola": "Smola, Vishwanathan and Eskin 2003, Laplace propagation",
    "lewi": "Lewi, Butera and Paninski 2007, efficient active learning",
}
"""The beginning of an experiment's name to its paper."""
SIZES = ("tiny", "small", "full")
CLAIMS = "claims.csv"
VERDICTS = ("reproduced", "contradicted", "not decidable")


@dataclass(frozen=True)
class Claim:
    """Something that a paper states, and what was found.

    Parameters
    ----------
    place : str
        Where in the paper: section, equation, table or figure.
    claim : str
        What it states, in one sentence of our own.
    theirs, ours : str
        Numbers or outcomes, with their units.
    holds : bool or None
        Whether ours bears it out, computed from what was measured; None where it cannot be decided.
    because : str
        Where they differ, or why it cannot be decided: one sentence. Required unless it holds.
    """

    place: str
    claim: str
    theirs: str
    ours: str
    holds: bool | None
    because: str = ""

    def __post_init__(self) -> None:
        if self.holds is not None and not isinstance(self.holds, bool | np.bool_):
            raise InputError("holds", self.holds, "True, False or None")
        if not self.holds and not self.because:
            raise InputError("because", self.because, f"why this does not hold, or cannot be decided: {self.claim}")

    @classmethod
    def checked(cls, place: str, claim: str, theirs: str, ours: str, holds: bool, otherwise: str) -> Claim:
        """A claim with its reason, which is only stated where it does not hold."""
        return cls(place, claim, theirs, ours, bool(holds), "" if holds else otherwise)

    @property
    def verdict(self) -> str:
        """In one word or two."""
        return VERDICTS[2 if self.holds is None else 0 if self.holds else 1]


@dataclass(frozen=True)
class Outcome:
    """What an experiment measured.

    Parameters
    ----------
    tables : mapping of str to rows
        By their headings.
    claims : sequence of Claim
        At least one.
    draw : callable, optional
        Draws into an empty figure.
    """

    tables: Mapping[str, Sequence[Row]]
    claims: Sequence[Claim]
    draw: Callable[[Figure], None] | None = None


@dataclass(frozen=True)
class Experiment:
    """A module of this package that measures something; see the head of this file."""

    name: str
    module: Any

    @property
    def paper(self) -> str:
        """Beginning of its name."""
        return self.name.partition("_")[0]

    @property
    def title(self) -> str:
        """First line of its docstring, without the full stop."""
        return inspect.getdoc(self.module).partition("\n")[0].rstrip(".")

    @property
    def words(self) -> str:
        """The rest of its docstring."""
        return inspect.getdoc(self.module).partition("\n")[2].strip()

    def command(self, size: str) -> str:
        """How to run it alone."""
        return f"make papers PART={self.name} SIZE={size}{' DATA=FOLDER' if self.needs else ''}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Data sets that its claims are about."""
        return getattr(self.module, "NEEDS", ())

    def run(self, size: str, data: Path | None) -> Outcome:
        """Measure: at full size with the data sets that the paper measured, or none at all.

        What simulated data in their place say decides nothing.
        """
        if size == "full":
            for name in self.needs:
                require(data, name)
        made: Outcome = self.module.run(data, **self.module.SIZES[size])
        missing = [name for name in self.needs if at_hand(data, name) is None]
        if not missing:
            return made
        reason = f"Simulated data stand in for {' and '.join(missing)}."
        return replace(made, claims=[replace(claim, holds=None, because=reason) for claim in made.claims])


def experiments() -> dict[str, Experiment]:
    """All of them by name, in the order of the papers."""
    package = importlib.import_module(__package__)
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    of_papers = [name for paper in PAPERS for name in sorted(names) if name.startswith(f"{paper}_")]
    return {name: Experiment(name, importlib.import_module(f"{__package__}.{name}")) for name in of_papers}


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Experiments by name or paper; all without a name."""
    found = experiments()
    for name in names:
        if name not in found and name not in PAPERS:
            raise InputError("PART", name, f"one of {', '.join([*PAPERS, *found])}")
    return [one for one in found.values() if not names or one.name in names or one.paper in names]


def keep(one: Experiment, outcome: Outcome, size: str, seconds: float, out: Path) -> None:
    """Write an experiment's page and figure, and its rows among the claims."""
    page = out / f"{one.name.replace('_', '-')}.md"
    conditions = f"{seconds:.0f} s of processor time" if size != "tiny" else "the smallest size"
    head = f"# {one.title}\n\n{PAPERS[one.paper]}, {one.module.PLACE}. Made by `{one.command(size)}`, {conditions}.\n"
    write_text(page, f"{head}\n{one.words}\n" if one.words else head)
    if outcome.draw:
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        outcome.draw(figure)
        figure.savefig(page.with_suffix(".png"), dpi=110, metadata={"Software": None})
        put_section(page, "Figure", f"![{one.title}]({page.with_suffix('.png').name})")
    for heading, rows in outcome.tables.items():
        put_table(page, heading, rows)
    rows = [row_of(one, claim, size) for claim in outcome.claims]
    put_table(page, "Claims", [{name: row[name] for name in SHOWN} for row in rows])
    kept = read_csv_texts(out / CLAIMS) if (out / CLAIMS).is_file() else []
    order = list(experiments())
    merged = [row for row in kept if row["part"] != one.name and row["part"] in order] + rows
    write_csv(out / CLAIMS, sorted(merged, key=lambda row: order.index(str(row["part"]))))


SHOWN = ("place", "claim", "theirs", "ours", "verdict", "where they differ")


def row_of(one: Experiment, claim: Claim, size: str) -> Row:
    """A line of the table of all claims."""
    return {
        "part": one.name,
        "place": claim.place,
        "claim": claim.claim,
        "theirs": claim.theirs,
        "ours": claim.ours,
        "verdict": claim.verdict,
        "where they differ": claim.because,
        "command": one.command(size),
    }


def overview(claims: Sequence[Row], page: Path, to_results: str) -> None:
    """Write the page that shows all claims: verdicts counted, then each experiment's claims, paper by paper.

    What stands before its first heading of the second level is written by hand and stays.
    """
    text = page.read_text(encoding="utf-8") if page.is_file() else "# Claims of the five papers"
    every = experiments().values()
    counts, made = list[Row](), list[str]()
    for paper, heading in PAPERS.items():
        made.append(f"## {heading}")
        for one in every:
            rows = [row for row in claims if row["part"] == one.name]
            if one.paper != paper or not rows:
                continue
            found = [str(row["verdict"]) for row in rows]
            linked, tables = f"[{one.title}](#{one.name})", f"{to_results}/{one.name.replace('_', '-')}.md"
            counts.append({"experiment": linked, "paper": paper, **{name: found.count(name) for name in VERDICTS}})
            made.append(f"### {one.title} {{ #{one.name} }}")
            made.append(f"{one.module.PLACE}; [all its tables]({tables}); `{rows[0]['command']}`.")
            made.append(markdown_text([{name: row[name] for name in SHOWN} for row in rows]))
    all_of_them = {name: sum(int(str(row[name])) for row in counts) for name in VERDICTS}
    counts.append({"experiment": "all", "paper": "", **all_of_them})
    table = markdown_text(counts).replace("\\[", "[").replace("\\]", "]")
    written = "\n\n".join(part.strip() for part in (text.partition("\n## ")[0], "## Verdicts", table, *made))
    write_text(page, f"{written}\n")


def run_all(parts: Sequence[Experiment], size: str, data: Path | None, out: Path) -> None:
    """Measure one experiment after the other, each kept as soon as it is done."""
    out.mkdir(parents=True, exist_ok=True)
    for one in parts:
        began = time.process_time()
        print(end=f"{one.name}: ", flush=True)
        outcome = one.run(size, data)
        seconds = time.process_time() - began
        keep(one, outcome, size, seconds, out)
        found = [claim.verdict for claim in outcome.claims]
        counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in dict.fromkeys(found))
        print(f"{counts} ({seconds:.1f} s)", flush=True)
