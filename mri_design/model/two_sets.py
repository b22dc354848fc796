"""Two sets of coil maps: an image over twice the field of view, which the lines fold.

Where an object reaches beyond its field of view, two places fold into one pixel, and coils see each with sensitivities
of its own: y_c = F (s_c u + s'_c u'). No single set of maps explains that. With u' in the outer half of a grid twice as
high, and u in its middle, the sum over both is the folding that every second line of that grid sees, so that a model of
the wide grid is an ordinary one. M. Uecker et al., Magn. Reson. Med. 71 (2014) 990-1001 ("soft SENSE"); H. C. M. Holme
et al., Sci. Rep. 9 (2019) 3034.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mri_design.calibration.coils import back_from, mix_coils, seen_by_coils
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array

_DAMPING = 1e-3
"""Of least squares for two images, with maps of unit root-sum-of-squares: it decides where both sets are alike."""


@dataclass(frozen=True)
class TwoSets:
    """A slice with two sets of coil maps, and how its wide image is seen.

    Parameters
    ----------
    slice_model : SliceModel
        With ``second_maps``; of whole lines.
    """

    slice_model: SliceModel

    @classmethod
    def of(cls, slice_model: SliceModel) -> TwoSets | None:
        """None where one set of maps is enough, or samples are no whole lines."""
        whole = slice_model.candidates.folded() is not None and slice_model.samples is None
        return None if slice_model.second_maps is None or not whole else cls(slice_model)

    @property
    def maps(self) -> Array:
        """Both sets, (set, coil, ky, kx)."""
        one = self.slice_model
        assert one.maps is not None and one.second_maps is not None
        return np.stack([one.maps, one.second_maps])

    @cached_property
    def wide(self) -> SliceModel:
        """The same lines, of the wide image; other images of the object are left out."""
        one, phase = self.slice_model, self.slice_model.phase
        return replace(
            one,
            maps=(np.sqrt(2) * self.joined(self.maps)).astype(np.complex64),
            second_maps=None,
            readouts=one.candidates.folded(),
            phase=None if phase is None else replace(phase, phase=None),
            alike=None,
            companion=None,
            expected=None,
            companions=(),
            frames=(),
        )

    def joined(self, images: Array) -> Array:
        """Wide images (..., 2 ky, kx) of those of both sets (set, ..., ky, kx): the second lies around the first."""
        return np.asarray(np.roll(np.concatenate(list(images), axis=-2), self._above, axis=-2))

    def apart(self, wide: Array) -> Array:
        """Images (set, ..., ky, kx) of both sets, of wide ones (..., 2 ky, kx)."""
        return np.stack(np.split(np.roll(wide, -self._above, axis=-2), 2, axis=-2))

    @property
    def _above(self) -> int:
        """Rows of the wide image above those of the first set."""
        rows = self.slice_model.shape[0]
        return rows - rows // 2

    def combined(self, coil_images: Array) -> Array:
        """The image that is shown (`shown`) of complete coil images (coil, ky, kx): least squares, pixel by pixel."""
        maps = self.maps.astype(np.complex128)
        gram = np.einsum("icyx,jcyx->yxij", maps.conj(), maps) + _DAMPING * np.eye(2)
        right = np.einsum("icyx,cyx->yxi", maps.conj(), coil_images)
        images = np.linalg.solve(gram, right[..., np.newaxis])[..., 0].transpose(2, 0, 1)
        wide = self.joined(images).astype(np.complex64)
        return self.shown(wide, self.weights(wide))

    def weights(self, wide: Array) -> Array:
        """Factors (set, ky, kx) with which the images of both sets make up the one that is shown.

        Its modulus is that of the coil images as they were read, over the slice's ``image_unit``; its phase is that of
        the sets' sum. Around the image it is linear, so that deviations and draws have the same factors.

        Parameters
        ----------
        wide : complex array, shape (2 ky, kx)
            The image.
        """
        one, images, maps = self.slice_model, self.apart(wide), self.maps
        if one.mixing is not None:
            maps = mix_coils(back_from(one.mixing), maps)
        seen = seen_by_coils(images, maps)
        size = np.linalg.norm(seen, axis=0)
        phase = np.exp(1j * np.angle(images.sum(axis=0)))
        unit = one.image_unit if one.mixing is not None else 1.0
        factors = np.sum(seen.conj() * maps, axis=1) / np.where(size > 0, size, 1) * phase / unit
        return factors.astype(np.complex64)

    def shown(self, wide: Array, weights: Array) -> Array:
        """The image (..., ky, kx) that is shown of a wide one, with `weights`."""
        images = self.apart(wide)
        return np.asarray(images[0] * weights[0] + images[1] * weights[1], dtype=wide.dtype)
