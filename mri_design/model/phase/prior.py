"""What a known phase says about an image: e^{-i phi} u is nearly real, so k-space nearly has conjugate symmetry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from mri_design.errors import InputError, require_choice
from mri_design.model.phase.map import PhaseMap, estimate_phase
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.phased import PhasedParts

PhaseSites = Literal["shared", "apart"]


@dataclass(frozen=True)
class PhasePrior:
    """Sites on a + i b = B e^{-i phi} u that hold b to be smaller than a.

    Parameters
    ----------
    phase : PhaseMap, optional
        phi; None has it estimated from the central lines' own image wherever a model is made (`MRSlice.model`).
    imaginary_ratio : float
        R, by how much more the imaginary part is penalised where the phase is certain; where the map's confidence c is
        less, rho = 1 + (R - 1) c.
    sites : {"shared", "apart"}
        One site on sqrt(a^2 + rho^2 b^2), which is the site on the modulus for R = 1 or where nothing is known of the
        phase; or two, with rates tau for a and rho tau for b.

    Notes
    -----
    What ratios and kinds of sites do to the error of the posterior mean is tabulated in
    results/benchmarks/measured-once.md. A scan whose phase is not smooth loses by it: let the scan decide.

    Raises
    ------
    InputError
        For a ratio that is not positive and finite, or an unknown kind of sites.
    """

    phase: PhaseMap | None = None
    imaginary_ratio: float = 2.0
    sites: PhaseSites = "shared"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.imaginary_ratio) and self.imaginary_ratio > 0):
            raise InputError("imaginary_ratio", repr(self.imaginary_ratio), "a positive finite number")
        require_choice(get_args(PhaseSites), **{"phase sites": self.sites})

    def seen_in(self, image: Array, noise_variance: float) -> PhasePrior:
        """The same with phi estimated from an image; see `estimate_phase` for what it refuses."""
        return replace(self, phase=estimate_phase(image, noise_variance))

    @property
    def _known(self) -> PhaseMap:
        if self.phase is None:
            raise InputError("phase", "none yet", "a PhaseMap", "Use `PhasePrior.seen_in` first.")
        return self.phase

    def emphasis(self, analysis: LinearOperator) -> Array:
        """rho, broadcastable to the coefficients; those that are on no pixel grid take the image's median."""
        rho = 1 + (self.imaginary_ratio - 1) * self._known.confidence
        on_pixels = analysis.out_shape[-2:] == rho.shape
        constant = self.imaginary_ratio == 1 or not on_pixels
        return np.asarray(np.median(rho)) if constant else rho

    def on(
        self, analysis: LinearOperator, rates: Array | float, group_axes: tuple[int, ...]
    ) -> tuple[LinearOperator, Array | float, tuple[int, ...]]:
        """Analysis, rates and group axes of sites on moduli -> those of sites that know the phase."""
        rho = self.emphasis(analysis)
        moved = tuple(axis - 1 for axis in group_axes)
        if self.sites == "shared":
            spread = rates if np.ndim(rates) == 0 else np.expand_dims(rates, -1)
            return PhasedParts(analysis, self._known.rotation, rho), spread, (-1, *moved)
        each = np.stack(np.broadcast_arrays(rates, rates * rho), axis=-1)
        if moved and each.ndim > len(analysis.out_shape):  # a group has one rate
            each = each.mean(axis=moved, keepdims=True)
        return PhasedParts(analysis, self._known.rotation), each, moved
