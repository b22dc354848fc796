"""Sets of one radial density: how much their errors differ, and whether random ones are the worst.

A set that somebody designed has so many samples in each ring around the origin of k-space. Other sets with the very
same numbers are drawn at random, spread evenly within each ring, or fill one side of each ring first. Rings of a plane
(samples of ky and kz) are one sample wide, rings of lines four lines; the innermost ring is the same in all. Designed
are the sets of two strategies, regular lines, and spokes on the grid. Images are the posterior mean of the recipe
`local`, its mode (MAP), and the least squares of minimum norm, whose error is what was not measured. Errors are
relative errors of the magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.design.training import ReferenceSlice
from mri_design.evaluation.tables import Row
from mri_design.operators import equispaced_angles, radial_spokes

from .runner import Claim, Outcome
from .scans import HEADS, LOCAL, image_error, lines_of, mean_error, slices, verdict

PLACE = "section 5.2, compressed sensing of natural images"
NEEDS = (HEADS,)
SIZES = {
    "tiny": {"numbers": (7,), "draws": 2, "grids": {"lines": (32, 12)}},
    "small": {"numbers": (7,), "draws": 4, "grids": {"lines": (64, 16), "plane": (32, 200)}},
    "full": {"numbers": (7, 10, 13, 16, 19), "draws": 20, "grids": {"lines": (128, 32), "plane": (96, 1536)}},
}
RULES = {"lines": ("calibrated", "information-gain", "regular"), "plane": ("calibrated", "information-gain", "spokes")}
ESTIMATES: dict[str, Callable[[ReferenceSlice, Sequence[int]], float]] = {
    "mean": mean_error,
    "MAP": lambda image, lines: image_error(image, lines, "map"),
    "least squares": lambda image, lines: image_error(image, lines, "zero-filled"),
}
WIDTH = {"lines": 4, "plane": 1}
LARGE = 1.2
"""A spread is called large where the worst set has at least so many times the error of the best one, in the median."""
Whole = NDArray[np.intp]
Cell = dict[str, NDArray[np.float64]]


def same_density(kind: str, rings: Whole, angle: NDArray[np.float64], there: Whole, rng: np.random.Generator) -> Whole:
    """A set with as many candidates in each ring as ``there``: "random", "even", or on "one side" first."""
    chosen: list[int] = []
    for ring in np.unique(rings[there]):
        among, count = np.flatnonzero(rings == ring), int(np.sum(rings[there] == ring))
        if ring == 0:
            chosen += there[rings[there] == 0].tolist()
        elif kind == "even":
            places = (np.arange(count) + rng.uniform()) * len(among) / count
            chosen += among[np.argsort(angle[among])][places.astype(int)].tolist()
        else:
            drawn = rng.permutation(among)
            order = np.argsort(angle[drawn] < 0, kind="stable") if kind == "one side" else np.arange(len(drawn))
            chosen += drawn[order[:count]].tolist()
    return np.array(chosen)


def spokes(side: int, count: int) -> Whole:
    """About ``count`` samples of a plane: those nearest to equispaced spokes."""

    def of(number: int) -> Whole:
        places = np.rint(radial_spokes(side, equispaced_angles(number))).astype(int).reshape(-1, 2) + side // 2
        return np.unique(places[:, 0].clip(0, side - 1) * side + places[:, 1].clip(0, side - 1))

    return min((of(number) for number in range(1, side)), key=lambda found: abs(len(found) - count))


def sets_of(image: ReferenceSlice, kind: str, rule: str, count: int, draws: int) -> Iterator[tuple[str, Whole]]:
    """The designed set of a rule, and others of its density."""
    k = image.slice_model.candidates.frequencies.astype(float)
    rings = np.floor(np.linalg.norm(k, axis=1) / WIDTH[kind]).astype(np.intp)
    angle = k[:, 0] if k.shape[1] == 1 else np.arctan2(k[:, 0], k[:, 1])
    if rule == "spokes":
        made = spokes(image.slice_model.shape[0], count)
    else:
        made = np.array(lines_of(image.slice_model, rule, count, 0, LOCAL.replacing("design", encoding=kind)))
    yield "designed", made
    rng = np.random.default_rng(1)
    for name, times in {"random": draws, "even": -(-draws // 4), "one side": -(-draws // 4)}.items():
        for _ in range(times):
            yield name, same_density(name, rings, angle, made, rng)


def run(data: Path | None, numbers: Sequence[int], draws: int, grids: dict[str, tuple[int, int]]) -> Outcome:
    """Measure all sets of every head."""
    rows: list[Row] = []
    claims: list[Claim] = []
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for kind, (side, count) in grids.items():
        heads, real = slices(data, numbers, side, recipe=LOCAL.replacing("design", encoding=kind))
        for rule in RULES[kind]:
            for head in heads:
                sets = list(sets_of(head, kind, rule, count, draws))
                for name, estimate in ESTIMATES.items():
                    errors: dict[str, list[float]] = {}
                    for what, lines in sets:
                        errors.setdefault(what, []).append(estimate(head, lines.tolist()))
                    found.setdefault((kind, rule, name), []).append({w: np.array(e) for w, e in errors.items()})
        for name in ("MAP", "mean"):
            claims += claims_of(f"{kind}, {name}", {rule: found[kind, rule, name] for rule in RULES[kind]}, real)
        unmeasured, wrong = (
            100 * np.mean([spread(cell) for rule in RULES[kind] for cell in found[kind, rule, name]])
            for name in ("least squares", "mean")
        )
        ours = (
            f"standard deviation over random sets: {unmeasured:.1f} % of what is unmeasured, {wrong:.1f} % of the error"
        )
        because = "What is left unmeasured differs from set to set, too."
        holds = verdict(real, unmeasured < wrong / 2, because)
        claim = (
            f"{kind}: sets of one density leave equally much unmeasured, so that its amount does not explain the spread"
        )
        claims.append(Claim("section 5.2", claim, "equal signal-to-noise ratio", ours, *holds))
    for (kind, rule, name), cells in found.items():
        row: Row = {"sets": kind, "density of": rule, "image": name}
        row |= {what: float(np.mean([cell[what].mean() for cell in cells])) for what in cells[0]}
        row["sd of random, %"] = 100 * float(np.mean([spread(cell) for cell in cells]))
        row["worst / best"] = float(np.median([extent(cell) for cell in cells]))
        rows.append(row | {"random sets worse than the designed, %": 100 * float(np.mean([beaten(c) for c in cells]))})
    return Outcome({f"Errors, mean of {len(numbers)} images": rows}, claims, drawing(found))


def spread(cell: Cell) -> float:
    """Relative standard deviation of the errors of random sets."""
    return float(cell["random"].std(ddof=1) / cell["random"].mean())


def extent(cell: Cell) -> float:
    """Largest over smallest error of all sets of a density."""
    every = np.concatenate(list(cell.values()))
    return float(every.max() / every.min())


def beaten(cell: Cell) -> float:
    """Part of the random sets that are worse than the designed one."""
    return float(np.mean(cell["random"] > cell["designed"][0]))


def claims_of(about: str, found: dict[str, list[Cell]], real: bool) -> list[Claim]:
    """What the section says, of sets of one kind and one estimate."""
    cells = [cell for each in found.values() for cell in each]
    extents = [extent(cell) for cell in cells]
    ours = f"worst over best {np.median(extents):.2f} in the median, {min(extents):.2f} to {max(extents):.2f}"
    holds = verdict(
        real, np.median(extents) >= LARGE, f"The worst set has less than {LARGE} times the best one's error."
    )
    claims = [Claim("section 5.2", f"{about}: sets of one density have very different errors", "large", ours, *holds)]
    for other in ("even", "one side"):
        change = np.array([cell["random"].mean() / cell[other].mean() - 1 for cell in cells])
        ours = f"{100 * change.mean():+.1f} %, worse on {np.sum(change > 0)} of {len(cells)}"
        holds = verdict(real, change.mean() > 0 and np.mean(change > 0) > 0.5, "Random sets are the better ones here.")
        claim = f"{about}: random sets are worse than those of their density which are {other}".replace(
            "are one", "fill one"
        )
        claims.append(Claim("section 5.2", claim, "random ones are the worst", ours, *holds))
    for rule, each in found.items():
        if rule == "calibrated":  # ours, not the report's: in the table alone
            continue
        change = np.array([cell["designed"][0] / cell["random"].mean() - 1 for cell in each])
        ours = f"{100 * change.mean():+.1f} %, better than {100 * np.mean([beaten(c) for c in each]):.0f} % of them"
        holds = verdict(
            real, change.max() < 0, "On an image, or more, random sets of its density are as good on average."
        )
        claim = f"{about}: `{rule}` is better than random sets of its density, on every image"
        claims.append(Claim("section 5.2", claim, "random ones are the worst", ours, *holds))
    return claims


def drawing(found: dict[tuple[str, str, str], list[Cell]]) -> Callable[[Figure], None]:
    """Errors of all sets over the mean of the random ones."""

    def draw(figure: Figure) -> None:
        kinds = list(dict.fromkeys(kind for kind, *_ in found))
        panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for panel, kind in zip(panels, kinds, strict=True):
            shown = [(rule, name) for rule in RULES[kind] for name in ("mean", "MAP")]
            for place, (rule, name) in enumerate(shown):
                for number, what in enumerate(("random", "even", "one side", "designed")):
                    values = np.concatenate([cell[what] / cell["random"].mean() for cell in found[kind, rule, name]])
                    x = place + 0.2 * (number - 1.5) + np.linspace(-0.06, 0.06, len(values))
                    panel.plot(x, values, ".", ms=3, color=f"C{number}", label="" if place else what)
            panel.set_xticks(range(len(shown)), [f"{rule}, {name}" for rule, name in shown], fontsize=6, rotation=20)
            panel.set(title=kind)
        panels[0].set_ylabel("error / mean of random sets")
        panels[0].legend(fontsize=7)

    return draw
