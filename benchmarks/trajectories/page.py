"""The page of spokes and spirals: targets, then every table with what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from parts.targets import Tables, Target, numbers, reported
from trajectories.chosen import CHOSEN
from trajectories.coverage import RATIO, RATIOS, RECIPES, SHARES, coverage_summary
from trajectories.sets import HALF, USUAL, Against, changes, summary
from trajectories.total_variation import GOAL, excess, time_ratio
from trajectories.variances import CLOSE, SHIPPED

from mri_design.evaluation.tables import Row, markdown_text

SPIRAL_COMPETITORS = {
    "vs even full turn": Against(USUAL, 1.0),
    "vs half turn": Against(HALF, 1.0),
    "vs half turn, dense": Against(HALF, 1.5),
}
UNIFORM = Against("uniform", None)
MEDIANS = {"masks": 5, "spokes": 13, "spirals": 17}
YARDSTICKS = {"its error": "its standard error over all runs", "of one run": "the standard deviation of one run"}

TEXTS = {
    "spirals": """Posterior means of the recipe `local` from spiral interleaves. A readout is as a gradient system of
40 mT/m and 150 T/m/s plays it at a field of view of 0.24 m; at the rim four times the interleaves
would leave no gap. `density` is the exponent of the radius: above 1 turns are closer at the centre.
`k and -k`: share of the visited cells of k-space whose mirror image is visited, too. Error:
relative L2 of the magnitude, mean over images; changes of it are means over images and draws of the
noise. `sd over noise` is over three draws on the first image. "2 pi / (m + 1)" has that step; "one
fewer" and "one more" are equispaced over the full turn with an odd number of interleaves.""",
    "chosen": """The experiment of the papers, greedily: from two interleaves a quarter turn apart, each further
angle is the one of all those of the full set that tells most (`shot_gain`, 12 draws of the
posterior), given the data of the shots before it. Its competitors are the sets above on the same
images with the same noise: an even number of interleaves over the full turn, as usual, and the
equispaced sets that do not measure k and -k twice. A minus sign means that the choice is better.
The prior acts on moduli and does not relate k to -k: `k and -k` is what share the chosen sets have of it.""",
    "radial": """Diameters with samples one cycle per field of view apart; `tiny golden` is the seventh (23.6
degrees). An even number over the full turn has every diameter twice.""",
    "variances": """z = Var[s] / sigma^2 of all coefficients with 8 draws, against dense algebra. `bias` is the mean
over runs of the relative error of the sum of z, `its error` the standard error of that mean, `of
one run` the standard deviation of the sum of one run: what eight draws leave to chance. The targets
hold the bias against both: the first shows whether there is one, the second whether it matters.
Draws are solved to a `tolerance`, {SHIPPED:g} as shipped, and extrapolated from there: the difference
between that row and the one of {CLOSE:g}, by the same draws, is the solver's part of the bias. `stated
bias` is what the estimate itself states as the most that its solves may leave.
""".strip()
    .replace("{SHIPPED:g}", f"{SHIPPED:g}")
    .replace("{CLOSE:g}", f"{CLOSE:g}"),
    "coverage": """Images and standard deviations as `recon` makes them, posterior mean, noise and coil maps known: of
equispaced spokes, and of arms over the full turn with one left out, density 1.5, on six test heads with one coil and
two with eight, each with the noise of two seeds. `within 1 sd` and `within 2 sd` are the shares of pixels whose error
is at most so many standard deviations, means over runs; Gaussian errors of these variances would have 63 % and 98 %, as
pixels are complex. `object`: pixels above a tenth of the signal. `variance / squared error` is of sums over the pixels,
1 where error bars are as large as errors altogether: median, least and largest of the runs.""",
    "cost": """Processor time of the posterior mean with standard deviations, of the recipe `local`, medians.""",
    "resampled": """A brain measured on the grid with two coils at much more noise (`noise`, of the signal), run
through by the arms of each set as `design --encoding spiral` does it: samples are the non-uniform transform of the
coils' images. Error: relative L2 of the magnitude of the posterior mean, recipe `local`, against the
scan's own image, noise included. `information-gain` chooses four angles per arm; `tiny-golden` is the
seventh. Half a turn measures no k beside its -k: it leaves out one half of the inner turns.""",
    "measured": """A resolution phantom with bottles beside it, measured with 8 coils along 60 spiral arms of 1182
samples (M. Lustig's public data), reconstructed from each m-th arm as `recon` does with the recipe
`local`. `maps` of the coils: estimated from the centre of all arms, as a separate calibration would,
or from that of the arms that are used, where they are dense enough for it. Errors: relative L2 of the
magnitude against images of all 60 arms with the maps of all, by least squares (which has noise of its
own) and by the method itself. They contain the arms that are used, and no truth is known: errors say how
near one comes to all the data. The noise is estimated from the outermost samples of all arms, signal in
them included.""",
    "tv": """f = 1/2 |y - X u|^2 + lambda TV(u), anisotropic, the same samples for all; samples near the rim,
which `bart nufft` gets wrong, are left out. Maps of several coils are simulated and known. Processor
time, ours of whole calls (mean of two; of smoothing 3e-5 with 8 coils one), BART's of the whole process
after so many iterations. `gap`:
to the smallest f that anybody found; `certified gap`: what our own duality certificate says, an upper
bound. Where no run of BART came to a gap of 1e-3, the target's ratio is an upper bound, over BART's
longest run; `as shipped` has a target of its own, as the quickest setting may be another one.
Where none of ours did, the ratio is not measured. With 8 coils f is compared with BART's
smallest, whether BART had converged or not. BART ran as shipped but for the penalty parameter rho.""",
    "tv-small": """The same with 8 coils on a smaller grid, where BART could be given ten times as many iterations:
where its gap is small then, both minimise the same objective. Our seconds are of one call.""",
}
TITLES = {
    "spirals": "Spirals",
    "chosen": "Angles chosen by the posterior",
    "radial": "Spokes",
    "variances": "Error bars against dense algebra",
    "coverage": "Error bars against actual errors",
    "cost": "What it costs",
    "resampled": "Spirals through a measured brain",
    "measured": "A measured spiral scan",
    "tv": "Total-variation MAP",
    "tv-small": "Total-variation MAP, BART for longer",
}
FORMATS = {
    "k and -k": ".0%",
    "error": ".4f",
    "sd over noise": ".4f",
    "noise": ".3f",
    "vs least squares": ".4f",
    "vs same method": ".4f",
    "median error": ".1%",
    "bias": "+.2%",
    "its error": ".2%",
    "stated bias": ".2%",
    "of one run": ".2%",
    "bias / of one run": ".2f",
    "CPU s": ".3g",
    "design CPU s": ".0f",
    "s": ".3g",
    "f": ".6g",
    "gap": ".1e",
    "certified gap": ".1e",
}


def target_rows(tables: Tables) -> list[Row]:
    """Every target, and what is asked to be reported whatever it is."""
    spirals = [*tables.get("spirals", ()), *tables.get("chosen", ())]
    radial = tables.get("radial", ())
    rows: list[Row] = []
    for name, density, other in (
        (HALF, 1.0, Against(USUAL, 1.0)),
        ("2 pi / (m + 1)", 1.0, Against(USUAL, 1.0)),
        (HALF, 1.5, Against(HALF, 1.0)),
        (CHOSEN, 1.0, Against(USUAL, 1.0)),
        (CHOSEN, 1.0, Against(HALF, 1.0)),
        (CHOSEN, 1.5, Against(HALF, 1.5)),
    ):
        title = f"spirals: {name}, density {density:g}, against {other.name}, density {other.density:g}"
        rows.append(reported(title, _percent_mean(changes(spirals, name, density, other)), "% L2"))
    for name in ("golden", "tiny golden (7)"):
        found = _percent_mean(changes(radial, name, None, UNIFORM))
        rows.append(reported(f"spokes: {name} against uniform", found, "% L2"))
    return rows + [target.row(tables) for target in _targets()] + _coverage_rows(tables.get("coverage", ()))


def _coverage_rows(rows: Sequence[Row]) -> list[Row]:
    """Of the default recipe, by number of coils and set: whether error bars are as large as errors."""
    found: list[Row] = []
    for row in coverage_summary(rows):
        if row["recipe"] == RECIPES[0]:
            coils = "one coil" if float(str(row["coils"])) == 1 else f"{row['coils']} coils"
            name = f"error bars of {row['set']}, {coils}, default recipe"
            within = float(str(row["within 2 sd"]))
            found.append(reported(f"{name}: pixels within 2 standard deviations", 100 * within, "%"))
            found.append(reported(f"{name}: variance over squared error", float(str(row[RATIO])), "ratio"))
    return found


def _targets() -> list[Target]:
    targets = []
    for kind, limit in MEDIANS.items():
        name = f"z with 8 draws against dense algebra, {kind}"
        targets.append(Target(f"{name}: median error", limit, False, "%", "variances", _percent("median error", kind)))
        for tolerance, solved in ((SHIPPED, ""), (CLOSE, f", draws solved to {CLOSE:g}")):
            for column, yardstick in YARDSTICKS.items():
                title = f"{name}{solved}: bias over {yardstick}"
                targets.append(Target(title, 1, False, "ratio", "variances", _bias_over(column, kind, tolerance)))
    name = "posterior mean and std of 32 spokes, 256 x 256, over that of as many Cartesian samples"
    targets.append(Target(name, 10, False, "times", "cost", _cost_ratio))
    for measured in ("32 spokes", "12 spirals"):
        name = f"TV MAP of {measured}, 256 x 256, one coil"
        targets.append(Target(f"{name}: gap as shipped", GOAL, False, "1", "tv", _gap_as_shipped(measured)))
        title = f"{name}, to a gap of {GOAL:g} by the quickest of our settings: our seconds over BART's"
        targets.append(Target(title, 1, False, "times", "tv", _against_bart(measured)))
    for section, side in (("tv", 256), ("tv-small", 128)):
        for measured in ("32 spokes", "12 spirals"):
            name = f"TV MAP of {measured}, {side} x {side}, 8 coils: our objective over BART's, minus 1"
            targets.append(Target(name, 1e-3, False, "1", section, _excess(measured)))
    return targets


def document(tables: Tables, targets: Sequence[Row], conditions: Mapping[str, str]) -> str:
    """The page as Markdown."""
    parts = ["# Spokes and spirals\n", "".join(f"- {name}: {text}\n" for name, text in conditions.items())]
    images = list(dict.fromkeys(str(row["image"]) for row in tables.get("spirals", ())))
    if images:
        parts.append(
            f"Images: {', '.join(images)}. Complex 3 T heads, one of each test subject, are band-limited to the grid "
            "and sampled through\nthe operator that reconstructs them; the scene of ellipses is sampled in closed "
            "form, which no grid explains exactly.\nNoise: 0.007 of the signal per real component. The prior's rates "
            "are per unit of the true signal level for all sets.\n"
        )
    parts.append(f"## Targets\n\n{markdown_text(targets, None, {'measured': '.3g'})}")
    for name, title in TITLES.items():
        if tables.get(name):
            rows, formats = shown(name, tables)
            parts.append(f"## {title}\n\n{TEXTS[name]}\n")
            parts.append(markdown_text(rows, None, FORMATS | formats))
    return "\n".join(parts)


def shown(name: str, tables: Tables) -> tuple[Sequence[Row], dict[str, str]]:
    """Rows of a section as the page has them, and formats of columns of their own."""
    if name == "spirals":
        return _without_worst(summary(tables[name], SPIRAL_COMPETITORS)), _signed(SPIRAL_COMPETITORS)
    if name == "radial":
        competitors = {"vs uniform": UNIFORM}
        return summary(tables[name], competitors), _signed(competitors)
    if name == "coverage":
        return coverage_summary(tables[name]), dict.fromkeys(SHARES, ".0%") | dict.fromkeys(RATIOS, ".2f")
    if name == "chosen":
        rows = []
        for density in dict.fromkeys(float(str(row["density"])) for row in tables[name]):
            for title, other in {
                "even full turn, density 1": Against(USUAL, 1.0),
                "even full turn, same density": Against(USUAL, density),
                "half turn, same density": Against(HALF, density),
                "2 pi / (m + 1), same density": Against("2 pi / (m + 1)", density),
            }.items():
                found = changes([*tables.get("spirals", ()), *tables[name]], CHOSEN, density, other)
                if found:
                    better = f"{sum(change < 0 for change in found)} of {len(found)}"
                    twice = np.mean(numbers(tables[name], "k and -k", set=CHOSEN, density=density))
                    rows.append(
                        {"density": density, "chosen against": title, "change": float(np.mean(found))}
                        | {"best image": min(found), "worst image": max(found), "images better": better}
                        | {"k and -k": float(twice)}
                    )
        return rows or tables[name], dict.fromkeys(("change", "best image", "worst image"), "+.1%")
    return tables[name], {}


def _without_worst(rows: Sequence[Row]) -> list[Row]:
    return [{column: value for column, value in row.items() if not column.startswith("worst")} for row in rows]


def _signed(competitors: Mapping[str, Against]) -> dict[str, str]:
    return {f"{worst}{title}": "+.1%" for title in competitors for worst in ("", "worst ")}


def _percent_mean(found: Sequence[float]) -> float | None:
    return 100 * float(np.mean(found)) if found else None


def _only(column: str, kind: str, tolerance: float) -> Callable[[Sequence[Row]], float | None]:
    return lambda rows: max(numbers(rows, column, measured=kind, tolerance=tolerance), default=None)


def _percent(column: str, kind: str) -> Callable[[Sequence[Row]], float | None]:
    def measure(rows: Sequence[Row]) -> float | None:
        found = _only(column, kind, SHIPPED)(rows)
        return None if found is None else 100 * found

    return measure


def _bias_over(column: str, kind: str, tolerance: float) -> Callable[[Sequence[Row]], float | None]:
    def measure(rows: Sequence[Row]) -> float | None:
        bias, error = (_only(name, kind, tolerance)(rows) for name in ("bias", column))
        return None if bias is None or error is None else abs(bias) / error

    return measure


def _gap_as_shipped(measured: str) -> Callable[[Sequence[Row]], float | None]:
    return lambda rows: min(numbers(rows, "gap", measured=measured, coils=1, settings="as shipped"), default=None)


def _cost_ratio(rows: Sequence[Row]) -> float | None:
    spokes, lines = numbers(rows, "CPU s", measured="spokes"), numbers(rows, "CPU s", measured="lines")
    return spokes[0] / lines[0] if spokes and lines else None


def _against_bart(measured: str) -> Callable[[Sequence[Row]], float | None]:
    return lambda rows: time_ratio(rows, measured, 1)


def _excess(measured: str) -> Callable[[Sequence[Row]], float | None]:
    return lambda rows: excess(rows, measured, 8)
