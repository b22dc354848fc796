"""An earlier scan of the same object: what it says of the error on every line, or on every sample of a plane.

Its image is taken for the truth and measured once more along the mask of the design; then it is known what the
reconstruction misses most. Where it shows the same object it predicts single lines and samples better than the scan's
own posterior does, and takes over. How far it is trusted is for a strategy to say: lines weigh it as side information
(`strategies.calibrated`), samples of a plane as one more feature (`CalibratedSamples`). One of another object
is soon overruled by either. What designs gain and lose by it is measured in results/benchmarks/series.md and
results/encodings/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.energies import residual_energies
from mri_design.design.slices import infer_slice
from mri_design.errors import InputError
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

Numbers = NDArray[np.float64]
Candidates = tuple[int, ...]


@dataclass
class _Progress:
    """Residuals at every moment of one mask, and the warm start of the next inference."""

    residuals: dict[Candidates, Numbers] = field(default_factory=dict)
    warm: WarmStart | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierScan:
    """The error that the posterior mean of an earlier scan has on every candidate, given those of the design so far.

    Candidates are phase-encode lines, or the samples of a plane. The earlier image is taken for the truth and measured
    along the same mask; inference follows the design step by step, and begins again where a design goes on in another
    process. What was found is kept in the object.

    Parameters
    ----------
    scan : MRSlice
        k-space of the earlier image, with the coils and the noise of the scan to be measured.
    image : complex array, shape of the scan's grid
        The image that it was made from.
    unknown : float array, shape (candidates,)
        Energy on every candidate that is not known of the image itself, over the energy of the image: large where the
        earlier scan was not measured.
    inference : DoubleLoop
        As the design infers.
    first_loops, step_loops : int
        As `DesignEngine` has them.
    seed : int
        Of the variances.
    """

    scan: MRSlice
    image: Array
    unknown: Numbers
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0
    _progress: _Progress = field(default_factory=_Progress, repr=False, compare=False)

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines, or of samples.

        Raises
        ------
        InputError
            Naming both.
        """
        candidates = self.scan.candidates
        if n_lines != candidates.size:
            raise InputError(
                field="earlier scan",
                got=f"{candidates.size} {candidates.unit}s for a scan with {n_lines}",
                wanted="the scan's own grid",
            )

    def residuals(self, history: Sequence[Candidates]) -> list[Numbers]:
        """Energy of the posterior mean's error on every candidate over that of the image, after each of ``history``.

        The inference of each begins where that of the one before has ended.

        Parameters
        ----------
        history : sequence of tuples of int
            What was measured at each moment of a design, each with what was measured at the moment before.

        Returns
        -------
        list of float arrays, shape (candidates,)
        """
        known = self._progress
        if not history or any(measured not in known.residuals for measured in history[:-1]):
            known.residuals.clear()
            known.warm = None
        energy = np.sum(np.abs(self.image) ** 2, dtype=np.float64)
        for measured in history:
            if measured in known.residuals:
                continue
            loops = self.first_loops if known.warm is None else self.step_loops
            signal = self.scan.signal_level(measured[: len(history[0])])
            inference = replace(self.inference, outer_iterations=loops)
            posterior, _ = infer_slice(self.scan, measured, signal, inference, (self.seed, 0), known.warm)
            known.warm = WarmStart.from_posterior(posterior)
            missed = residual_energies(posterior, self.scan.candidates, self.image)
            known.residuals[measured] = np.asarray(missed / energy + self.unknown)
        return [known.residuals[measured] for measured in history]
