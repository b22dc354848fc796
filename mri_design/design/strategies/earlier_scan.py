"""An earlier scan of the same object: what it says of the error on every line, and how far to believe it.

Its image is taken for the truth and measured once more along the mask of the design; then it is known which lines the
reconstruction misses most. As a second opinion (`second_opinion`) it predicts single lines better than the error model
where it shows the same object, and takes over; one of another object is soon overruled. What designs gain and lose by
it is measured in results/benchmarks/series.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.engine import SliceInference, infer_slice
from mri_design.design.line_variances import residual_energies
from mri_design.errors import InputError
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

__all__ = ["EarlierScan"]

Numbers = NDArray[np.float64]
Lines = tuple[int, ...]


@dataclass
class _Progress:
    """What has been inferred along one mask: residuals at every moment, and where inference stands."""

    residuals: dict[Lines, Numbers] = field(default_factory=dict)
    warm: WarmStart | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierScan:
    """The error that the posterior mean of an earlier scan has on every line, given the lines of the design so far.

    The earlier image is taken for the truth and measured along the same mask; inference follows the design line by
    line, and begins again where a design goes on in another process. What was found is kept in the object.

    Parameters
    ----------
    scan : MRSlice
        k-space of the earlier image, with the coils and the noise of the scan to be measured.
    image : complex array, shape (ky, kx)
        The image that it was made from.
    unknown : float array, shape (ky,)
        Energy on every line that is not known of the image itself, over the energy of the image: large where the
        earlier scan was not measured.
    inference : DoubleLoop
        As the design infers.
    first_loops, step_loops : int
        As `DesignEngine` has them.
    seed : int
        Of the variances.

    Raises
    ------
    InputError
        Where the shapes of scan, image and ``unknown`` differ.
    """

    scan: MRSlice
    image: Array
    unknown: Numbers
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0
    _progress: _Progress = field(default_factory=_Progress, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.image.shape != self.scan.shape or self.unknown.shape != self.scan.shape[:1]:
            raise InputError(
                field="earlier scan",
                got=f"an image {self.image.shape} and {self.unknown.shape} for a scan {self.scan.shape}",
                wanted="one shape",
            )

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines.

        Raises
        ------
        InputError
            Naming both.
        """
        if n_lines != self.scan.shape[0]:
            raise InputError(
                field="earlier scan",
                got=f"{self.scan.shape[0]} phase-encode lines for a scan with {n_lines}",
                wanted="the scan's own grid",
            )

    def residuals(self, moments: Sequence[Lines]) -> list[Numbers]:
        """Energy of the posterior mean's error on every line over the image's energy, (ky,), after each of the moments.

        The inference of each begins where that of the one before has ended.
        """
        known = self._progress
        if not moments or any(lines not in known.residuals for lines in moments[:-1]):
            known.residuals.clear()
            known.warm = None
        for lines in moments:
            if lines not in known.residuals:
                known.residuals[lines] = self._after(lines, len(moments[0]))
        return [known.residuals[lines] for lines in moments]

    def _after(self, lines: Lines, n_start: int) -> Numbers:
        known = self._progress
        loops = self.first_loops if known.warm is None else self.step_loops
        posterior, _ = infer_slice(
            SliceInference(
                self.scan,
                lines,
                self.scan.signal_level(lines[:n_start]),
                known.warm,
                replace(self.inference, outer_iterations=loops),
                (self.seed, 0),
            )
        )
        known.warm = WarmStart.from_posterior(posterior)
        energy = np.sum(np.abs(self.image) ** 2, dtype=np.float64)
        return np.asarray(residual_energies(posterior, self.image) / energy + self.unknown)
