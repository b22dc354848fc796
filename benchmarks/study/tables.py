"""Tables made from the kept cells alone: strategies against the tuned density and the oracle, image by image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from study.groups import TUNED

from mri_design.evaluation.metrics import paired_sign_test
from mri_design.evaluation.tables import Row

ORACLE = "oracle-residual"
HOLE = "oracle-hole"
BEST_DRAW = "best of the random draws"
FORMATS = {
    "relative L2": ".4f",
    "change": "+.1%",
    "worst change": "+.1%",
    "gap closed": ".0%",
    "worst L2": ".4f",
    "sd of draws": ".4f",
    "PSNR": ".2f",
    "SSIM": ".4f",
    "p": ".2g",
}
"""Formats of the columns below."""


@dataclass(frozen=True)
class Errors:
    """One strategy with one reconstructor: error by share of lines and image, means over draws.

    Parameters
    ----------
    mean : dict
        (share of lines, group, image) to the mean error over draws.
    draws : dict
        From the same keys to the error of every draw.
    """

    mean: dict[tuple[str, str, str], float]
    draws: dict[tuple[str, str, str], list[float]]

    def at(self, share: str | None) -> dict[tuple[str, str, str], float]:
        """Errors at one share of lines, or at all."""
        return {key: error for key, error in self.mean.items() if share in (None, key[0])}


def errors_of(cells: Sequence[Row], reconstructor: str, strategy: str, metric: str = "relative_l2") -> Errors:
    """All errors of a strategy."""
    if strategy == BEST_DRAW:
        least = errors_of(cells, reconstructor, TUNED).draws
        found = errors_of(cells, reconstructor, TUNED, metric).draws
        best = {key: values[int(np.argmin(least[key]))] for key, values in found.items()}
        return Errors(best, {key: [value] for key, value in best.items()})
    draws: dict[tuple[str, str, str], list[float]] = {}
    for row in cells:
        if row["reconstructor"] == reconstructor and row["strategy"] == strategy:
            key = (str(row["share"]), str(row["group"]), str(row["image"]))
            draws.setdefault(key, []).append(float(str(row[metric])))
    return Errors({key: float(np.mean(values)) for key, values in draws.items()}, draws)


@dataclass(frozen=True)
class Paired:
    """A strategy against a competitor on the images that both were measured on.

    Parameters
    ----------
    images : list of (str, str)
        (group, image).
    change : float array, shape (image,)
        Relative change of the error (negative is better), mean over line counts.
    mean, other : float array, shape (image,)
        Errors, mean over line counts.
    cells : float array
        Relative change of every (lines, image).
    """

    images: list[tuple[str, str]]
    change: NDArray[np.float64]
    mean: NDArray[np.float64]
    other: NDArray[np.float64]
    cells: NDArray[np.float64]

    @property
    def p(self) -> float:
        """Two-sided sign test over images."""
        return paired_sign_test(self.change, np.zeros(len(self.change)))


def paired(a: Errors, b: Errors, shares: Sequence[str] | None = None) -> Paired | None:
    """Image by image; None where the two have nothing in common."""
    keys = [key for key in a.mean if key in b.mean and (shares is None or key[0] in shares)]
    images = list(dict.fromkeys(key[1:] for key in keys))
    if not images:
        return None
    cells = {key: a.mean[key] / b.mean[key] - 1 for key in keys}

    def by_image(values: dict[tuple[str, str, str], float]) -> NDArray[np.float64]:
        return np.array([np.mean([values[key] for key in keys if key[1:] == image]) for image in images])

    return Paired(images, by_image(cells), by_image(a.mean), by_image(b.mean), np.array(list(cells.values())))


def gap_closed(a: Errors, tuned: Errors, oracle: Errors, shares: Sequence[str] | None = None) -> float | None:
    """Share of the way from the tuned density to the oracle, of errors meant over images and line counts."""
    keys = [key for key in a.mean if key in tuned.mean and key in oracle.mean and (shares is None or key[0] in shares)]
    if not keys:
        return None
    mine, theirs, best = (np.mean([e.mean[key] for key in keys]) for e in (a, tuned, oracle))
    return float((theirs - mine) / (theirs - best)) if theirs > best else None


def two_way(cells: Sequence[Row], masks: Sequence[str], reconstructors: Sequence[str], base: str) -> list[Row]:
    """Every mask with every reconstructor: change in per cent against the tuned density with the one named ``base``.

    Densities are tuned for each reconstructor. On the images (at each share of lines) that all masks were measured on
    with every reconstructor that any image has for all masks; where a further reconstructor made these images of some
    masks only, the other masks have no entry in its column. The order of masks and reconstructors is that of rows and
    columns and has no other meaning.
    """
    found = {(mask, name): errors_of(cells, name, mask) for mask in masks for name in reconstructors}
    whole = [name for name in reconstructors if set.intersection(*({*found[mask, name].mean} for mask in masks))]
    if base not in whole:
        return []
    shared = set.intersection(*({*found[mask, name].mean} for mask in masks for name in whole))
    zero = Errors({key: found[TUNED, base].mean[key] for key in sorted(shared)}, {})
    rows: list[Row] = []
    for mask in masks:
        measured = [name for name in reconstructors if shared <= found[mask, name].mean.keys()]
        compared = {name: paired(found[mask, name], zero) for name in measured}
        changes = {name: f"{100 * float(p.change.mean()):+.1f} %" for name, p in compared.items() if p is not None}
        if changes:
            images = len(next(p for p in compared.values() if p).images)
            rows.append({"mask": mask, "images": images} | {name: changes.get(name) for name in reconstructors})
    return rows


def summary(cells: Sequence[Row], reconstructor: str, strategies: Sequence[str], competitor: str = TUNED) -> list[Row]:
    """Every strategy at every number of lines, then over all of them.

    ``change`` is against the tuned density on the same images, mean over images; ``images won`` and ``p`` (two-sided
    sign test) count images, each with its mean over the line counts of the row; worst is the worst image.
    """
    chosen = [row for row in cells if row["reconstructor"] == reconstructor]
    shares = sorted({str(row["share"]) for row in chosen}, key=Fraction)
    rows: list[Row] = []
    errors = {name: errors_of(chosen, reconstructor, name) for name in {*strategies, competitor, ORACLE}}
    quality = {(name, m): errors_of(chosen, reconstructor, name, m) for name in strategies for m in ("psnr", "ssim")}
    for share in [*shares, None] if len(shares) > 1 else shares:
        for name in strategies:
            mine = errors[name].at(share)
            if not mine:
                continue
            only = None if share is None else [share]
            spread = [np.std(v, ddof=1) for key, v in errors[name].draws.items() if key in mine and len(v) > 1]
            against = paired(errors[name], errors[competitor], only) if name != competitor else None
            rows.append(
                {
                    "lines": share or "all",
                    "strategy": name,
                    "images": len({key[1:] for key in mine}),
                    "relative L2": float(np.mean(list(mine.values()))),
                    "change": None if against is None else float(against.change.mean()),
                    "gap closed": None
                    if reconstructor == "map"
                    else gap_closed(errors[name], errors[competitor], errors[ORACLE], only),
                    "images won": "" if against is None else f"{int((against.change < 0).sum())}/{len(against.change)}",
                    "p": None if against is None else against.p,
                    "worst change": None if against is None else float(against.change.max()),
                    "worst L2": max(mine.values()),
                    "sd of draws": float(np.mean(spread)) if spread else None,
                    **{m.upper(): float(np.mean(list(quality[name, m].at(share).values()))) for m in ("psnr", "ssim")},
                }
            )
    return rows
