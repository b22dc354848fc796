"""The sentence that a report begins with, computed from what a run found, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from mri_design.evaluation.tables import Row, percent

Target = Literal["", "met", "met at the start", "missed"]
"""How a design stands to the end it was given: no rule, met, met before any choice, or not met."""


COMPARED = 3
"""Digits of errors that are held against each other: two errors are alike where these are."""


def alike(first: float, second: float) -> bool:
    """Whether two errors are the same as far as they are printed where they are compared."""
    return percent(first, COMPARED) == percent(second, COMPARED)


@dataclass(frozen=True)
class RelativeError:
    """Error of an image relative to the norm of the true one, as its error bars predict it and as it was found.

    Both are L2 errors of the complex image, without the noise of the reference. Beside the image of a file, whose phase
    and noise are not known, both are those of the modulus.

    Parameters
    ----------
    predicted : float, optional
        None of an image without error bars.
    found : float, optional
        None where there is nothing to hold the image against.
    unknown : str
        Why nothing was found, where that is not because there is nothing to hold the image against.
    against : str
        Name of a file whose image it was held against.
    """

    predicted: float | None = None
    found: float | None = None
    unknown: str = ""
    against: str = ""

    @property
    def of(self) -> str:
        """What both are the error of: "complex image" or "modulus"."""
        return "modulus" if self.against else "complex image"

    def __str__(self) -> str:
        """Both, as far as they are known: "6.3 % predicted, 6.1 % found"."""
        pair = (("predicted", self.predicted), ("found", self.found))
        said = ", ".join(f"{percent(value)} {name}" for name, value in pair if value is not None)
        said = said.replace("\N{NO-BREAK SPACE}", " ")  # for terminals of any encoding
        return f"{said} (modulus against {self.against})" if said and self.against else said

    @property
    def words(self) -> str:
        """Both in a sentence, or why one is missing."""
        if self.found is not None:
            return f"error {self}"
        unknown = self.unknown or "there is no full scan to check it by"
        if self.predicted is not None:
            return f"error {self} ({unknown})"
        return f"its error is not known: {unknown}, and the method has no error bars"

    @property
    def columns(self) -> dict[str, float | None]:
        """As columns of a table."""
        return {"predicted_error": self.predicted, "found_error": self.found}

    @property
    def settings(self) -> dict[str, object]:
        """As settings of a manifest; nothing where nothing is known."""
        return {"error": {"of": self.of, **asdict(self)}} if str(self) else {}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> RelativeError | None:
        """Read `settings` back; None where a manifest has none."""
        stored = settings.get("error")
        return None if stored is None else cls(**{each.name: stored[each.name] for each in fields(cls)})

    def over(self, rows: Iterable[Row]) -> RelativeError:
        """Means over rows with `columns`, of images judged as this one.

        Of the rows in which both are known, if any, else of those that have either.
        """
        pairs = [[row[name] for name in self.columns] for row in rows]
        pairs = [pair for pair in pairs if None not in pair] or pairs
        known = [[_float(value) for value in values if value is not None] for values in zip(*pairs, strict=True)]
        means = [sum(values) / len(values) if values else None for values in known]
        return replace(self, predicted=means[0], found=means[1]) if means else self


def design_verdict(
    measured: str,
    error: RelativeError,
    *,
    target: Target = "",
    ended: str = "",
    unit: str = "line",
    oracle: bool = False,
    remark: str = "",
) -> str:
    """What a design came to.

    Parameters
    ----------
    measured : str
        "64 of 256 lines".
    error : RelativeError
        Of the image from them.
    target : Target
        How it stands to its stop rule.
    ended : str
        Why it ended, see `how_it_ended`.
    unit : str
        What was chosen one by one.
    oracle : bool
        Whether it looked at the true image.
    remark : str
        A further sentence without its full stop, such as `mostly_calibration`; of a design that no rule could end.
    """
    said = f"{measured}: {error.words}."
    if oracle:
        said = f"An oracle, no design: it chose with the true image before it. {said}"
    if target == "missed":
        return f"The target was not reached. {said} It {_was(ended)}."
    if target == "met at the start":
        return f"{said} The target was met without any {unit} chosen: those at the start were enough."
    if target == "met":
        return f"{said} The target was met: it {_was(ended)}."
    return f"{said} {remark[:1].upper()}{remark[1:]}." if remark else said


def _was(ended: str) -> str:
    """ "stopped after ..." as it is; "not stopped ...", "never asked ..." as what it was."""
    return ended if ended.startswith("stopped") else f"was {ended}"


def image_verdict(measured: str, method: str, error: RelativeError) -> str:
    """What a reconstruction came to: "64 of 256 lines, posterior mean: error 4 %, predicted 5.3 %"."""
    return f"{measured}, {method_words(method)}: {error.words}."


def method_words(method: str) -> str:
    """A method's name where a sentence says "mean error" beside it."""
    return "posterior mean" if method == "mean" else method


def volume_verdict(what: str, shown: str, one: RelativeError, mean: RelativeError, errors: Mapping[str, float]) -> str:
    """What a reconstruction of several slices came to.

    Parameters
    ----------
    what : str
        "8 slices of 64 of 256 lines, posterior mean".
    shown : str
        The image that is shown: "slice 3".
    one : RelativeError
        Of it.
    mean : RelativeError
        `RelativeError.over` the images.
    errors : mapping of str to float
        Image to error, of those where it was found.
    """
    if not errors:
        return f"{what}: {shown}, {one.words}."
    worst = max(errors, key=errors.__getitem__)
    return (
        f"{what}: mean error {mean}, the largest found {percent(errors[worst])} ({worst}); {shown}, below, {one.words}."
    )


def comparison_verdict(
    measured: str,
    winner: Row,
    *,
    repeats: str = "",
    wins: tuple[int, int] = (1, 1),
    others: Mapping[str, float] | None = None,
    gains: Sequence[Row] = (),
) -> str:
    """Which strategy is best, by how much, and whether that is more than chance.

    Parameters
    ----------
    measured : str
        "32 of 128 lines".
    winner : mapping
        Row of `winners_table` for this number.
    repeats : str
        What ``sd_lead`` is over: "5 draws", "12 images".
    wins : tuple of int
        At how many numbers of lines the strategy is best, of how many.
    others : mapping of str to float
        Errors of further strategies that readers ask for, such as regular sampling.
    gains : sequence of mappings
        Rows of `gains_table` for this number, of which that of the best design is put into words.
    """
    best, second = (with_centre(str(winner[name]), winner.get(f"{name}_centre")) for name in ("best", "second"))
    said = f"With {measured} {best} has the least error, {percent(_float(winner['relative_l2']), COMPARED)}"
    lead, spread = winner.get("lead"), winner.get("sd_lead")
    if winner.get("second") is None or lead is None:
        return f"{said}; nothing else was compared."
    less, own = -_float(lead), _float(winner["relative_l2"])
    if alike(own, own / (1 - less)):
        said += f", and so has the second, {second}"
    else:
        said += f": {percent(less)} less than the second, {second}"
    if spread is None:
        said += " (one image, so without a spread)"
    else:
        within = _float(spread) >= less
        said += f" (\N{PLUS-MINUS SIGN} {percent(_float(spread))} over {repeats}"
        said += ": no more than their spread)" if within else ")"
    for name, error in (others or {}).items():
        if name not in (winner["best"], winner["second"]):
            said += f"; {name} has {percent(error, COMPARED)}"
    said += "."
    if wins[1] > 1:
        said += f" It is best at {wins[0]} of the {wins[1]} numbers compared."
    if gains:
        said += f" {gains_sentences(min(gains, key=lambda row: _float(row['relative_l2'])))}"
    return said


def with_centre(name: str, centre: object) -> str:
    """A strategy's name, and how many centre lines its mask begins with where that is known."""
    return name if centre is None else f"{name} ({centre} centre lines)"


def gains_sentences(row: Row) -> str:
    """What a design gains on fixed masks by coil maps that do with few centre lines, and what by the choice of lines.

    Parameters
    ----------
    row : mapping
        Of `gains_table`.
    """
    usual, few, own = (_float(row[name]) for name in ("usual_error", "few_error", "relative_l2"))
    usual_mask, few_mask = (with_centre(str(row[f"{name}_mask"]), row[f"{name}_centre"]) for name in ("usual", "few"))
    return (
        f"The best fixed mask, {usual_mask}, has {percent(usual, COMPARED)}; a small centre, with maps from all lines "
        f"as designs have them, {_gain(usual, few)} ({few_mask}: {percent(few, COMPARED)}), and the choice of lines "
        f"{_gain(few, own)} ({row['strategy']}: {percent(own, COMPARED)})."
    )


def _gain(before: float, after: float) -> str:
    """ "gains 42 %", "loses 1.2 %" or "gains nothing", as one error follows another."""
    if alike(before, after):
        return "gains nothing"
    return f"{'gains' if after < before else 'loses'} {percent(abs(after / before - 1))}"


@dataclass(frozen=True)
class Duel:
    """Two strategies at one number of lines.

    Parameters
    ----------
    lines : int
        The number.
    mine, rival : float
        Mean relative errors of the one that is looked at, and of its competitor.
    spread : float
        Standard deviation of the competitor's error over its draws.
    """

    lines: int
    mine: float
    rival: float
    spread: float

    @property
    def outcome(self) -> Literal["better", "as good", "worse"]:
        """Whether the difference is larger than the spread, and whose error is the smaller one."""
        if abs(self.mine - self.rival) <= self.spread or alike(self.mine, self.rival):
            return "as good"
        return "better" if self.mine < self.rival else "worse"


def duel_verdict(duels: Sequence[Duel], shown: Duel, grid: int, draws: int) -> str:
    """What designed lines came to beside a tuned density, and what follows from it.

    Parameters
    ----------
    duels : sequence of Duel
        At every number of lines.
    shown : Duel
        The one whose images are shown.
    grid : int
        Lines of the grid.
    draws : int
        Draws of the density.
    """
    mine, rival = (percent(error, COMPARED) for error in (shown.mine, shown.rival))
    said = (
        f"{shown.lines} of {grid} lines: error {mine} designed, {rival} from a density tuned on another scan "
        f"(\N{PLUS-MINUS SIGN} {percent(shown.spread)} over {draws} draws)."
    )
    counts = {name: [duel.lines for duel in duels if duel.outcome == name] for name in ("better", "as good", "worse")}
    found = [f"{name} at {_listed(numbers)} lines" for name, numbers in counts.items() if numbers]
    return f"{said} Designed lines are {', '.join(found)}. Where they are not better, the density is cheaper."


def _listed(counts: Sequence[int]) -> str:
    """Numbers in words: "24, 32 and 48"."""
    texts = [str(count) for count in counts]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def protocol_verdict(
    measured: str, trained: int, mine: float | None = None, rival: tuple[str, float] | None = None
) -> str:
    """What one mask for many scans came to.

    Parameters
    ----------
    measured : str
        "32 of 128 lines".
    trained : int
        Scans it was designed on.
    mine : float, optional
        Its mean error on scans that it has not seen; None without such.
    rival : tuple of (str, float), optional
        Name and error of the best of the others, see `best_other`.
    """
    said = f"One mask of {measured} for {trained} scan{'s' * (trained != 1)}"
    if mine is None:
        return f"{said}; how good it is on others is not known (--test tries it)."
    said += f": error {percent(mine, COMPARED)} on scans that it has not seen"
    if rival is None:
        return f"{said}."
    name, error = rival
    change = f"{percent(abs(mine / error - 1))} {'less' if mine < error else 'more'} than"
    change = "as much as" if alike(mine, error) else change
    return f"{said}, {change} the best of the others, {name} ({percent(error, COMPARED)})."


def best_other(summary: Sequence[Row], name: str) -> tuple[str, float] | None:
    """The strategy of a `summary_table` of one count that does best beside one, and its error; None where alone."""
    others = [row for row in summary if row["strategy"] != name and row.get("counts") != "no"]
    errors = {str(row["strategy"]): _float(row["relative_l2"]) for row in others}
    best = min(errors, key=errors.__getitem__, default=None)
    return None if best is None else (best, errors[best])


def _float(value: object) -> float:
    return float(str(value))
