"""Sets of angles that are known before the scan: equispaced ones, and golden ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError, require_counts
from mri_design.readouts import Readouts
from mri_design.scan.trajectories.radial import golden_angles, interleaf_angles

AngleSet = Literal["half-turn", "full-turn", "one-missing", "golden"]


@dataclass(frozen=True, kw_only=True)
class FixedAngles:
    """The shots of a set, whose angles take the place of a grid of candidates.

    Parameters
    ----------
    kind : {"half-turn", "full-turn", "one-missing", "golden"}
        As `interleaf_angles` has them, or golden ones.
    tiny : int
        Of golden angles: see `golden_angles`.

    Raises
    ------
    InputError
        For another kind, or a ``tiny`` below 1.
    """

    kind: AngleSet = "half-turn"
    tiny: int = 1
    name: str = "half-turn"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(AngleSet):
            raise InputError(field="angles", got=repr(self.kind), wanted=", ".join(get_args(AngleSet)))
        require_counts(least=1, tiny=self.tiny)

    def angles(self, count: int, turn: float) -> NDArray[np.float64]:
        """``count`` angles in radians; golden ones share ``turn``, pi for spokes and 2 pi for arms."""
        if self.kind == "golden":
            return golden_angles(count, tiny=self.tiny, turn=turn)
        return interleaf_angles(count, self.kind)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The whole target: nothing is decided on the way."""
        return target

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next of the set."""
        return best_line(-np.arange(view.candidates.n_lines, dtype=float), view.candidates)
