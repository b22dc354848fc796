"""Groups of images that share line counts, competitors and reconstructions; strategies by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from study.scans import Scan

from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import make_strategy

TUNED = "vd-tuned"
"""The competitor: of all families, powers and centres the best on the training images, per number of lines."""
PARTIAL = "vd-partial-fourier"
"""Polynomial density on a part of k-space: printed beside the competitor, and no part of it."""
KEPT = (0.5625, 0.625, 0.75)
"""Fractions of the grid that `PARTIAL` tries."""
BESIDE = (PARTIAL, "vd-polynomial draw=half")
"""Tuned families that use the symmetry of k-space: in the tables, not in the competitor."""
INFORMED = "calibrated, trained"
"""`calibrated` with the training's scans as side information."""
FAMILIES = (
    "vd-polynomial",
    "vd-gaussian",
    *(f"vd-polynomial draw={draw}" for draw in ("jittered", "systematic", "golden")),
)


@dataclass(frozen=True)
class Entry:
    """One row of a group's table.

    Parameters
    ----------
    label : str
        Its name there.
    strategy : str
        Name for `make_strategy`, or a family to be tuned.
    draws : int
        Draws of random strategies, and of posterior ones, whose designs depend on chance too.
    images : int or None
        On that many of the group's images only, spread over them; None is all.
    start : int or None
        Centre lines instead of the strategy's own.
    design : str
        Recipe behind a posterior strategy.
    fixed : bool
        One mask, designed on the training images together.
    only : sequence of str
        Reconstructors, if not all.
    exchanges : int
        Tried at the end of a fixed mask, against the training images' truth under the group's first reconstructor.
    """

    label: str
    strategy: str = ""
    draws: int = 1
    images: int | None = None
    start: int | None = None
    design: str = "mean"
    fixed: bool = False
    only: Sequence[str] = ()
    exchanges: int = 0

    @property
    def name(self) -> str:
        """For `make_strategy`."""
        return self.strategy or self.label

    @property
    def tuned(self) -> bool:
        """Whether its masks depend on the reconstructor, by tuning."""
        return self.name == TUNED or self.name in (*FAMILIES, *BESIDE)

    def exists(self) -> bool:
        """Whether the package knows the strategy."""
        if self.tuned:
            return True
        try:
            make_strategy(self.name)
        except UsageError:
            return False
        return True


@dataclass(frozen=True)
class Tuning:
    """Settings that are tried on the training images.

    Parameters
    ----------
    powers : sequence of float
        Of the polynomial density, with the first centre; the best one is tried with the other centres, and both
        with the other families.
    gaussian : sequence of float
        Powers of the Gaussian one.
    centres : sequence of int
        Forced centre lines besides the first.
    draws : int
        Of each mask on each image.
    centre : int
        The first centre.
    kept : sequence of float
        Of `KEPT`, shares to try.
    """

    powers: Sequence[float] = (2.0, 4.0, 6.0, 9.0, 14.0)
    gaussian: Sequence[float] = (8.0, 20.0, 50.0)
    centres: Sequence[int] = (4, 16)
    draws: int = 2
    centre: int = 8
    kept: Sequence[float] = KEPT


@dataclass(frozen=True)
class Group:
    """Images to compare strategies on.

    Parameters
    ----------
    section, name : str
        Where it belongs.
    tests, training : sequences of Scan
        Images of one number of lines; of different subjects.
    shares : sequence of str
        Line counts as shares of the grid.
    entries : sequence of Entry
        Strategies.
    recipes : mapping of str to Recipe
        By name.
    reconstructors : sequence of str
        Which of them reconstruct every mask.
    tuning : Tuning or None
        None takes what ``tuned_like`` found.
    tuned_like : tuple of str
        (section, group) whose tuned densities are taken over, at the nearest share of lines; centres follow the grid.
    """

    section: str
    name: str
    tests: Sequence[Scan]
    training: Sequence[Scan]
    shares: Sequence[str]
    entries: Sequence[Entry]
    recipes: dict[str, Recipe]
    reconstructors: Sequence[str] = ("mean", "map")
    tuning: Tuning | None = field(default_factory=Tuning)
    tuned_like: tuple[str, str] = ("", "")

    @property
    def n_lines(self) -> int:
        """Number of lines of the grid."""
        return self.tests[0].n_lines

    @property
    def lines(self) -> list[int]:
        """Line counts."""
        return [round(Fraction(share) * self.n_lines) for share in self.shares]

    def share_of(self, count: int) -> str:
        """The share that a line count stands for."""
        return self.shares[self.lines.index(count)]

    def images_of(self, entry: Entry) -> list[int]:
        """Numbers of the test images that an entry is measured on."""
        every = len(self.tests)
        if entry.images is None or entry.images >= every:
            return list(range(every))
        return sorted({round((i + 0.5) * every / entry.images - 0.5) for i in range(entry.images)})

    def entries_of(self, reconstructor: str) -> list[Entry]:
        """Rows measured with one reconstructor."""
        return [entry for entry in self.entries if not entry.only or reconstructor in entry.only]
