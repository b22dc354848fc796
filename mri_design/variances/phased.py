"""What is known exactly of a control beside sites that know the image's phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.model.circulant_inverse import PhasedCirculantInverse
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.diagonal import Identity
from mri_design.operators.phased import PhasedParts


@dataclass(frozen=True)
class PhasedControl:
    """t = R G^-1 R^H b, with circulants of the real and the imaginary part behind the phase R, and its first moment.

    Parameters
    ----------
    inverse : PhasedCirculantInverse
        The preconditioner of such a model, which is near A^-1.
    whole_gram : bool
        Whether X^H X is circulant itself (one coil, any mask), so that P explains most of a draw.

    Notes
    -----
    G^-1 is real-linear: on a real image it is the circulant of ``own + other``, on an imaginary one that of
    ``own - other``, and in each case the mean over pixels of what a real filter makes of it is that of the circulant's
    symmetric part. So diag(B P B^T) of the parts of filters, or of differences along a graph, is that of a circulant
    for each part.
    """

    inverse: PhasedCirculantInverse
    whole_gram: bool

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> PhasedControl | None:
        """The control of a precision; None where no site knows a phase, or the circulants are not known."""
        inverse = precision.preconditioner
        if not isinstance(inverse, PhasedCirculantInverse):
            return None
        return cls(inverse, precision.measurement.gram_spectrum() is not None)

    def image(self, b: Array) -> Array:
        """P b."""
        return self.inverse(b)

    def moments(self, analysis: LinearOperator) -> tuple[Array, None] | None:
        """diag(B P B^T) per real component; the second moment is not known. None where neither is."""
        own, other = self.inverse.own, self.inverse.other
        if isinstance(analysis, Identity):
            return np.full(analysis.out_shape, own.mean()), None
        if not isinstance(analysis, PhasedParts) or analysis.rotation is not self.inverse.rotation:
            return None
        real, imaginary = (analysis.analysis.row_powers(spectrum) for spectrum in (own + other, own - other))
        if real is None or imaginary is None:
            return None
        return analysis.part_weights(np.stack([real, imaginary], axis=-1)), None
