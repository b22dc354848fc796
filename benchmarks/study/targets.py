"""The targets of the study: what was asked for, and what the kept rows say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from parts.targets import Target
from study.groups import BESIDE, INFORMED, TUNED
from study.ledger import Ledger, numbers
from study.pages import Pages
from study.sections import CHOSEN, DEFAULT, GROUPS, LATE, MODELS, NON_LOCAL, PHASE_MODELS, PROTOCOL
from study.tables import HOLE, ORACLE, Errors, Paired, errors_of, gap_closed, paired

from mri_design.evaluation.tables import Row

COILS = {"4x": ("1/4", -15), "6x": ("1/6", -16)}
"""Acceleration: share of the lines, and the change against tuned densities that is wanted, in per cent."""
REGULAR = ("regular + 8 ACS", "regular + 4 ACS")
STRESS_LIMIT = 0.05
REPORTED = "reported"

Measure = Callable[[Sequence[Row]], float | None]


def _mean_change(found: Paired) -> float:
    return float(found.change.mean())


def _worst_change(found: Paired) -> float:
    return float(found.change.max())


def _share_not_worse(found: Paired) -> float:
    return float(np.mean(found.change <= 0))


def against(
    other: str = TUNED,
    strategy: str = DEFAULT,
    reconstructor: str = "mean",
    group: str = "",
    shares: Sequence[str] | None = None,
    see: Callable[[Paired], float] = _mean_change,
) -> Measure:
    """Something about a strategy against another with the same reconstructor."""

    def measure(rows: Sequence[Row]) -> float | None:
        chosen = [row for row in rows if group in ("", row["group"])]
        mine, theirs = (errors_of(chosen, reconstructor, name) for name in (strategy, other))
        found = paired(mine, theirs, shares)
        return None if found is None else see(found)

    return measure


def percent(measure: Measure) -> Measure:
    """In per cent."""

    def hundredfold(rows: Sequence[Row]) -> float | None:
        found = measure(rows)
        return None if found is None else 100 * found

    return hundredfold


def pair_against_map(see: Callable[[Paired], float] = _mean_change) -> Measure:
    """The default pair against the better of tuned density and low-pass with MAP, at each share of lines."""
    return lambda rows: _against_best(rows, CHOSEN, "map", (TUNED, "low-pass"), see)


def pair_against_local(rows: Sequence[Row]) -> float | None:
    """The default pair against the tuned density with the local prior's mean, from a quarter of the lines on."""
    found = paired(errors_of(rows, CHOSEN, DEFAULT), errors_of(rows, "mean", TUNED), LATE)
    return None if found is None else float(found.change.mean())


def against_every_density(rows: Sequence[Row]) -> float | None:
    """The default strategy against the best density of all, those on a part of k-space too, at each share of lines."""
    return _against_best(rows, "mean", "mean", (TUNED, *BESIDE))


def default_mean_against(other: str, see: Callable[[Paired], float] = _mean_change) -> Measure:
    """The default recipe's mean against another reconstruction, on the default strategy's masks."""

    def measure(rows: Sequence[Row]) -> float | None:
        found = paired(errors_of(rows, CHOSEN, DEFAULT), errors_of(rows, other, DEFAULT))
        return None if found is None else see(found)

    return measure


def spread_over_seeds(reconstructor: str = "mean") -> Measure:
    """Standard deviation over seeds of one image's error, over its mean: mean over images and line counts."""

    def measure(rows: Sequence[Row]) -> float | None:
        draws = errors_of(rows, reconstructor, DEFAULT).draws.values()
        spread = [np.std(errors, ddof=1) / np.mean(errors) for errors in draws if len(errors) > 1]
        return float(np.mean(spread)) if spread else None

    return measure


def _against_best(
    rows: Sequence[Row],
    own: str,
    reconstructor: str,
    names: Sequence[str],
    see: Callable[[Paired], float] = _mean_change,
) -> float | None:
    mine = errors_of(rows, own, DEFAULT)
    rivals = [errors_of(rows, reconstructor, name) for name in names]
    keys = [key for key in rivals[0].mean if all(key in rival.mean for rival in rivals)]
    best: dict[tuple[str, str, str], float] = {}
    for place in dict.fromkeys(key[:2] for key in keys):  # the best of them on average over a group's images
        here = [key for key in keys if key[:2] == place]
        means = [np.mean([rival.mean[key] for key in here]) for rival in rivals]
        best |= {key: rivals[int(np.argmin(means))].mean[key] for key in here}
    found = paired(mine, Errors(best, {}))
    return None if found is None else see(found)


def _lead_of_hole_oracle(shares: Sequence[str] | None = None) -> Measure:
    """Share of what the oracle that knows each line's surroundings gains over tuned densities."""

    def measure(rows: Sequence[Row]) -> float | None:
        images = {(row["group"], row["image"]) for row in rows if row["strategy"] == HOLE}
        same = [row for row in rows if (row["group"], row["image"]) in images]
        mine, theirs = (against(strategy=name, shares=shares)(same) for name in (DEFAULT, HOLE))
        return mine / theirs if mine is not None and theirs else None

    return measure


def closed(rows: Sequence[Row]) -> float | None:
    """Share of the gap to the oracle."""
    return gap_closed(*(errors_of(rows, "mean", name) for name in (DEFAULT, TUNED, ORACLE)))


def foreign(rows: Sequence[Row], column: str) -> list[float]:
    """A column of the default strategy's predictions along masks that are not its own, where it is known."""
    chosen = [
        row for row in rows if row["strategy"] == DEFAULT and row["mask"] != "its own" and row[column] is not None
    ]
    return [value for value in numbers(chosen, column) if not np.isnan(value)]


def own_predictions_inside(low: float, high: float, at_end: bool) -> Measure:
    """Percentage of designs' predictions of the image's error, over the actual one, within bounds, for their own masks.

    At the end of a design, with the most lines, or at every kept number of lines between its start and its end.
    """

    def measure(rows: Sequence[Row]) -> float | None:
        own = [row for row in rows if row["strategy"] == DEFAULT and row["mask"] == "its own"]
        counts = sorted({int(str(row["lines"])) for row in own})
        chosen = [row for row in own if int(str(row["lines"])) in (counts[-1:] if at_end else counts[1:-1])]
        ratios = np.array(numbers(chosen, "ratio"))
        return float(100 * np.mean((ratios >= low) & (ratios <= high))) if len(ratios) else None

    return measure


def median_of(column: str) -> Measure:
    """Median over predictions."""

    def measure(rows: Sequence[Row]) -> float | None:
        values = foreign(rows, column)
        return float(np.median(values)) if values else None

    return measure


def inside(column: str, low: float, high: float) -> Measure:
    """Percentage of predictions within bounds."""

    def measure(rows: Sequence[Row]) -> float | None:
        values = np.array(foreign(rows, column))
        return float(100 * np.mean((values >= low) & (values <= high))) if len(values) else None

    return measure


def cost_ratio(rows: Sequence[Row]) -> float | None:
    """Reconstructions of residual-greedy over those of LBCS, on the same images."""
    spent = {str(row["strategy"]): float(str(row["reconstructions"])) for row in rows if row["group"] == "small"}
    return spent["residual-greedy"] / spent["lbcs"] if {"residual-greedy", "lbcs"} <= spent.keys() else None


def _targets() -> list[Target]:
    most, least = False, True
    real, heads, thesis = "real-phase", "3T heads", "thesis-figure"
    pair = f"{DEFAULT} against tuned VD, local posterior mean"
    new = f"{DEFAULT} against tuned VD, both with the default recipe's mean under moduli, real phase"
    both = f"{DEFAULT} + default mean against the best of (tuned VD, low-pass) + TV-wavelet MAP, real phase"
    prior = f"default mean against local mean, {DEFAULT} masks, real phase"
    choice = f"default mean against that under moduli, {DEFAULT} masks, real phase, worst image"

    def default_mean(see: Callable[[Paired], float]) -> Measure:
        return against(reconstructor=NON_LOCAL, see=see)

    rows = [
        Target(prior, -8, most, "% L2", real, percent(default_mean_against("mean"))),
        Target(f"{prior}, worst image", 1, most, "% L2", real, percent(default_mean_against("mean", _worst_change))),
        Target(choice, 1, most, "% L2", real, percent(default_mean_against(NON_LOCAL, _worst_change))),
        Target(both, -22, most, "% L2", real, percent(pair_against_map())),
        Target(f"{both}, worst image", 0, most, "% L2", real, percent(pair_against_map(_worst_change))),
        Target(new, -8, most, "% L2", real, percent(default_mean(_mean_change))),
        Target(f"{new}, worst image", 2, most, "% L2", real, percent(default_mean(_worst_change))),
        Target(f"{new}, images not worse", 95, least, "%", real, percent(default_mean(_share_not_worse))),
        Target(
            "real phase: share of the hole oracle's lead over tuned VD",
            *(80, least, "%", real, percent(_lead_of_hole_oracle())),
        ),
        Target(
            f"spread of one image's error over seeds, {DEFAULT}, real phase",
            *(2, most, "% L2", real, percent(spread_over_seeds())),
        ),
        Target(
            f"spread of one image's error over seeds, {DEFAULT}, real phase, default mean",
            *(2, most, "% L2", real, percent(spread_over_seeds(CHOSEN))),
        ),
        Target(f"{pair}, real phase", -10, most, "% L2", real, percent(against())),
        Target(f"{pair}, real phase, worst image", 2, most, "% L2", real, percent(against(see=_worst_change))),
        Target(f"{pair}, real phase, sign test", 0.01, most, "p", real, against(see=lambda f: f.p)),
        Target(f"{pair}, real phase, test images", 10, least, "images", real, against(see=lambda f: len(f.change))),
        Target(
            f"{DEFAULT} + default mean against tuned VD + local mean, synthetic phase, 1/4 to 1/2",
            *(-25, most, "% L2", "synthetic-phase", percent(pair_against_local)),
        ),
    ]
    for rule, reconstructor in ((f"{PROTOCOL} of MAP", "map"), (PROTOCOL, "mean")):
        measure = percent(against(strategy=f"{rule}, one mask", reconstructor=reconstructor))
        name = "MAP" if reconstructor == "map" else "local mean"
        rows.append(Target(f"thesis figure: one mask against tuned VD, {name}", -5, most, "% L2", thesis, measure))
    for name, (share, wanted) in COILS.items():
        for other in (TUNED, "fastmri-equispaced", *REGULAR):
            measure = percent(against(other, shares=[share]))
            limit = wanted if other == TUNED else 0
            rows.append(
                Target(f"multi-coil {name}: {DEFAULT} against {other}", limit, most, "% L2", "multi-coil", measure)
            )
        for other in (TUNED, *REGULAR):
            measure = percent(against(other, shares=[share], see=_worst_change))
            title = f"multi-coil {name}: {DEFAULT} against {other}, worst image"
            rows.append(Target(title, 0, most, "% L2", "multi-coil", measure))
    centre = f"8 coils, maps from 16 centre lines: {DEFAULT} against"
    for other in (TUNED, "fastmri-equispaced", "regular + ACS"):
        rows.append(Target(f"{centre} {other}", -5, most, "% L2", "centre-maps", percent(against(other))))
    rows += [
        Target("gap from tuned VD to the oracle closed, real phase", 60, least, "%", real, percent(closed)),
        Target(
            f"{DEFAULT} against LBCS, in domain, 48 x 48",
            *(2, most, "% L2", "trained", percent(against("trained lbcs", group="in domain"))),
        ),
        Target(
            f"{DEFAULT} against LBCS, out of domain, 48 x 48",
            *(-5, most, "% L2", "trained", percent(against("trained lbcs", group="out of domain"))),
        ),
        Target(
            f"{DEFAULT} against stochastic LBCS, in domain, 128 x 128",
            *(2, most, "% L2", real, percent(against("trained stochastic-lbcs", group=heads))),
        ),
        Target(
            f"{DEFAULT} against stochastic LBCS, out of domain (low field), 128 x 128",
            *(-5, most, "% L2", real, percent(against("trained stochastic-lbcs", group="low field"))),
        ),
        Target(
            f"{INFORMED} on heads, against stochastic LBCS, in domain, 128 x 128",
            *(1, most, "% L2", real, percent(against("trained stochastic-lbcs", INFORMED, group=heads))),
        ),
        Target(
            f"{INFORMED} on heads, against tuned VD, out of domain (low field), 128 x 128",
            *(-3, most, "% L2", real, percent(against(TUNED, INFORMED, group="low field"))),
        ),
        Target(
            "predicted error of the image within 15 %, its own mask, at the end",
            *(90, least, "% of cases", "prediction", own_predictions_inside(0.85, 1.15, at_end=True)),
        ),
        Target(
            "predicted error of the image within a factor of 1.5, its own mask, between start and end",
            *(90, least, "% of cases", "prediction", own_predictions_inside(1 / 1.5, 1.5, at_end=False)),
        ),
        Target(
            "predicted error of the image within 15 %, other masks",
            *(90, least, "% of cases", "prediction", inside("ratio", 0.85, 1.15)),
        ),
        Target(
            "line predictions at other masks: median predicted/actual",
            0.5,
            least,
            "ratio",
            "prediction",
            median_of("line_ratio"),
        ),
        Target(
            "line predictions at other masks: median predicted/actual, from above",
            2,
            most,
            "ratio",
            "prediction",
            median_of("line_ratio"),
        ),
        Target(
            "line predictions at other masks: cases with a ratio in [0.5, 2]",
            100,
            least,
            "%",
            "prediction",
            inside("line_ratio", 0.5, 2),
        ),
        Target(
            "line predictions at other masks: median rank correlation, |k| < N/3",
            0.85,
            least,
            "rho",
            "prediction",
            median_of("rank_correlation"),
        ),
        Target(
            "trained residual-greedy against LBCS, in domain",
            *(
                0,
                most,
                "% L2",
                "trained",
                percent(against("trained lbcs", "trained residual-greedy", group="in domain")),
            ),
        ),
        Target("trained residual-greedy: reconstructions over LBCS's", 1 / 20, most, "ratio", "training", cost_ratio),
        Target(
            f"{DEFAULT} on scans unlike any other: worst image against tuned VD",
            *(100 * STRESS_LIMIT, most, "% L2", "stress", percent(against(see=_worst_change))),
        ),
    ]
    return rows


def of_pages(pages: Pages) -> list[Row]:
    """Targets that other benchmarks have measured; not measured where their pages are not there."""
    hindsight, plain = "best polynomial density by hindsight", "without an earlier scan"
    bars = "default recipe under moduli: scaled pixel variances summed to .7 to 1.4 of the squared error"
    seen = "an earlier scan of the same object seen (series.md)"
    seconds = "processor time of an image with error bars, default recipe over local"
    beside = f"{seen}: {DEFAULT} against the best density by hindsight"
    turned = f"{seen}, turned by 3 degrees: {DEFAULT} against {DEFAULT} without it"
    return [
        _of_page(f"{bars} (non-local-held-out.md)", 90, "% of cases", pages.right_error_bars(), at_least=True),
        _of_page(f"{beside}, 1/8 of the lines", -12, "% L2", pages.series("other noise", hindsight, (16,))),
        _of_page(f"{beside}, 1/4 of the lines", -16, "% L2", pages.series("other noise", hindsight, (32,))),
        _of_page(turned, 1, "% L2", pages.series("turned by 3 degrees", plain)),
        *(_of_page(f"{seconds}, {n} x {n} (recon-time.md)", 3, "times", pages.seconds(n)) for n in (128, 256)),
    ]


def _of_page(name: str, bound: float, unit: str, measured: float | None, at_least: bool = False) -> Row:
    return Target(name, bound, at_least, unit, "page", lambda _: measured).row({"page": [{"measured": measured}]})


def reported(tables: dict[str, Sequence[Row]]) -> list[Row]:
    """What is asked to be reported, whatever it is."""
    rows: list[Row] = []
    for model in MODELS:
        measure = percent(against(strategy=f"information-gain, {model}", reconstructor=model))
        rows.append(_reported(f"plain information gain, {model}, against tuned VD", measure(tables["models"]), "% L2"))
    for model in PHASE_MODELS:
        measure = percent(against(strategy=f"{DEFAULT}, {model}", reconstructor=PHASE_MODELS[0]))
        name = f"{DEFAULT}, {model}, against tuned VD, {PHASE_MODELS[0]} mean, synthetic phase, 1/4 to 1/2"
        rows.append(_reported(name, measure(tables["phase-models"]), "% L2"))
    for name, (share, _) in COILS.items():
        led = percent(_lead_of_hole_oracle([share]))(tables["multi-coil"])
        rows.append(_reported(f"multi-coil {name}: share of the hole oracle's lead over tuned VD", led, "%"))
    worst = percent(against(reconstructor="map", see=_worst_change))
    name = f"{DEFAULT} on scans unlike any other, TV-wavelet MAP: worst image against tuned VD"
    rows.append(_reported(name, worst(tables["stress"]), "% L2"))
    chosen = percent(default_mean_against(NON_LOCAL))(tables["real-phase"])
    rows.append(_reported(f"default mean against that under moduli, {DEFAULT} masks, real phase", chosen, "% L2"))
    every = percent(against_every_density)(tables["real-phase"])
    rows.append(_reported(f"{DEFAULT} against the best tuned density, by hindsight, real phase", every, "% L2"))
    for name in BESIDE:
        beside = percent(against(name))(tables["real-phase"])
        rows.append(_reported(f"{DEFAULT} against {name}, tuned, real phase", beside, "% L2"))
    masks = percent(against(shares=LATE))(tables["synthetic-phase"])
    rows.append(_reported(f"{DEFAULT} against tuned VD, local mean, synthetic phase, 1/4 to 1/2", masks, "% L2"))
    for group in ("3T heads", "low field"):
        informed = percent(against(DEFAULT, INFORMED, group=group))(tables["real-phase"])
        rows.append(_reported(f"{INFORMED} on heads, against {DEFAULT}, {group}", informed, "% L2"))
    share = inside("ratio", 0.5, 2)(tables["prediction"])
    rows.append(_reported("predicted error of the image within a factor of two, other masks", share, "% of cases"))
    return rows


def _reported(name: str, measured: float | None, unit: str) -> Row:
    return {"name": name, "target": REPORTED, "measured": measured, "unit": unit, "met": measured is not None}


def target_rows(ledger: Ledger, pages: Pages) -> list[Row]:
    """Every target with what was measured."""
    tables: dict[str, Sequence[Row]] = {name: ledger.of("cells", section=name) for name in (*GROUPS, "trained")}
    tables |= {"prediction": ledger.of("predictions"), "training": ledger.of("training")}
    return [target.row(tables) for target in _targets()] + of_pages(pages) + reported(tables)
