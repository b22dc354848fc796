"""Scans that a training has seen, as a second opinion about the errors on the lines of another scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.other_scans.trained_design import TrainedDesign
from mri_design.errors import require_instance


@dataclass(frozen=True, kw_only=True)
class TrainingScans:
    """The errors that reconstructions of the training scans had when as many lines were measured.

    Scans of one kind have their energy in the same places, so their errors lie in the same places too. Training
    measured other lines than the design does; a line that it had measured by then counts with the error before that
    (`TrainedDesign.residuals`).

    Parameters
    ----------
    design : TrainedDesign
        What training wrote; its order of lines is not used.

    Raises
    ------
    InputError
        For anything but a `TrainedDesign`.
    """

    design: TrainedDesign

    def __post_init__(self) -> None:
        require_instance(
            TrainedDesign, wanted="a TrainedDesign, as load_trained reads it from a file", design=self.design
        )

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines.

        Raises
        ------
        InputError
            Naming both.
        """
        self.design.require_grid(n_lines)

    def residuals(self, moments: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Mean energy of the training scans' errors on every line over their images' energy, (ky,), at each moment."""
        return [self.design.residuals(len(lines)) for lines in moments]
