"""A family of readouts that the package does not know is a class and a line: it is designed, kept and shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mri_design as md
from mri_design.kinds import KINDS, Kind
from mri_design.operators import CartesianLines
from mri_design.readouts import Constraints, Readouts, radii


@dataclass(frozen=True)
class FromTheMiddle(Constraints):
    size: int

    def allowed(self, n_lines: int) -> np.ndarray:
        return np.ones(self.size, dtype=bool)

    def start(self, measurable: np.ndarray, count: int, forced: int = 0) -> tuple[int, ...]:
        return tuple(sorted(range(self.size), key=lambda pair: abs(pair - self.size // 2))[:count])


@dataclass(frozen=True)
class Pairs(Readouts):
    """Two neighbouring lines at a time."""

    grid: tuple[int, int]
    name = "pairs"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.grid[0] // 2,)

    @staticmethod
    def lines(ids: Sequence[int]) -> list[int]:
        return [line for pair in ids for line in (2 * pair, 2 * pair + 1)]

    def rows(self, ids: Sequence[int], maps: Any = None) -> CartesianLines:
        return CartesianLines(self.lines(ids), self.grid, maps)

    def data(self, kspace: np.ndarray, ids: Sequence[int]) -> np.ndarray:
        return np.ascontiguousarray(kspace[:, self.lines(ids)])

    def values(self, images: np.ndarray, maps: Any = None) -> np.ndarray:
        columns = self.rows(range(self.size), maps).columns(images)
        return columns.reshape(*columns.shape[:2], self.size, -1)

    def energies(self, data: np.ndarray, ids: Sequence[int]) -> np.ndarray:
        return np.sum(np.abs(data.reshape(len(data), len(ids), -1)) ** 2, axis=(0, 2))

    def constraints(self, **limits: Any) -> Constraints:
        return FromTheMiddle(self.size)

    def measured_flags(self, samples: np.ndarray) -> np.ndarray:
        return samples.any(axis=1).reshape(-1, 2).all(axis=1)

    def sample_radii(self, ids: Sequence[int], samples: Any = None) -> np.ndarray:
        return radii(self.grid)[self.lines(ids)]

    def cells(self, measured: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.repeat(measured, 2)[:, None], self.grid)

    def start_for_posterior(self, target: int) -> int:
        return min(target, 4)

    def opposite_of(self, candidate: int) -> int:
        return self.size - 1 - candidate

    def central_run(self, ids: Sequence[int]) -> list[int]:
        return list(ids)

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        return sorted(ids, key=lambda pair: abs(pair - self.size // 2))[:count]


def test_pairs_of_lines_are_designed_kept_and_shown(tmp_path: Path) -> None:
    KINDS["pairs"] = Kind("pair", "pairs", "pairs of lines", on=Pairs)  # taken away again after the test
    made = md.load("phantom:brain", matrix=32).design(lines=7, encoding="pairs", strategy="information-gain")
    assert len(set(made.trace.lines)) == 7 and made.mask.shape == (16,) and made.facts["start"].startswith("4 pairs")
    page = made.report(tmp_path / "run")
    assert page.stat().st_size and (tmp_path / "run/pairs.csv").is_file()
    np.testing.assert_array_equal(md.load_run(tmp_path / "run").mask, made.mask)
