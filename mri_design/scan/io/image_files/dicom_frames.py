"""What a DICOM file says about each of its frames: scaling of values, sizes and places.

Enhanced images have it in functional groups, of one frame or shared by all of them; others in the file itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mri_design.errors import InputError
from mri_design.scan.geometry import SliceGeometry

_PER_FRAME, _SHARED = "PerFrameFunctionalGroupsSequence", "SharedFunctionalGroupsSequence"
_MACROS = {
    "RescaleSlope": "PixelValueTransformationSequence",
    "RescaleIntercept": "PixelValueTransformationSequence",
    "PixelSpacing": "PixelMeasuresSequence",
    "SliceThickness": "PixelMeasuresSequence",
    "ImagePositionPatient": "PlanePositionSequence",
    "ImageOrientationPatient": "PlaneOrientationSequence",
}
_SAME = 1e-3
"""Of a distance: places that differ by less are the same."""


class FrameFacts:
    """The elements of a file about its frames.

    Parameters
    ----------
    file : pydicom dataset
        As read.
    frames : int
        Frames of the file.

    Raises
    ------
    InputError
        Where there are functional groups of another number of frames.
    """

    def __init__(self, file: Any, frames: int) -> None:
        self._file, self._frames = file, frames
        self._groups = list(file.get(_PER_FRAME) or [])
        self._shared = list(file.get(_SHARED) or [])
        if self._groups and len(self._groups) != frames:
            raise InputError(field=_PER_FRAME, got=f"{len(self._groups)} items", wanted=f"{frames}, one for each frame")

    def scaling(self, frame: int) -> tuple[float, float]:
        """Slope and intercept that make values of what is stored."""
        slope, intercept = self.element("RescaleSlope", frame), self.element("RescaleIntercept", frame)
        return (1.0 if slope is None else float(slope)), (0.0 if intercept is None else float(intercept))

    def element(self, name: str, frame: int) -> Any:
        """One of the elements above, of a frame; None where the file does not have it."""
        groups = [self._groups[frame]] if self._groups else []
        for group in (*groups, *self._shared[:1]):
            macro = group.get(_MACROS[name])
            value = macro[0].get(name) if macro else None
            if value not in (None, ""):
                return value
        value = self._file.get(name)
        return None if value in (None, "") else value

    def geometry(self, shape: tuple[int, int]) -> tuple[SliceGeometry | None, dict[str, str]]:
        """Sizes and place of the first frame, and for the card what is to be said about the others.

        Frames that do not follow the first one at the distance of their thickness have no place of their own here: the
        thickness is left out then, so that none is made up for them. Without a size of pixels that all frames share
        there is no geometry.
        """
        first = self._of(0, shape)
        if first is None or not self._groups or self._frames == 1:
            return first, {}
        others = [self._of(frame, shape) for frame in range(1, self._frames)]
        if any(other is None or not np.allclose(other.pixel, first.pixel, rtol=_SAME) for other in others):
            return None, {"frames": "their pixels are not of one size"}
        if not first.placed:
            return first, {}
        first = _facing(first, others[0])
        if all(_alike(other, first.slice_after(number)) for number, other in enumerate(others, 1)):
            return first, {}
        thick = "" if first.thickness is None else f" ({first.thickness:g} mm)"
        about = f"the frames do not follow each other at the distance of their thickness{thick}"
        return replace(first, thickness=None), {"frames": f"{about}; only the place of the first one is kept"}

    def _of(self, frame: int, shape: tuple[int, int]) -> SliceGeometry | None:
        spacing = self.element("PixelSpacing", frame)
        if not spacing:
            return None
        along_y, along_x = map(float, spacing)
        corner = self.element("ImagePositionPatient", frame)
        directions = self.element("ImageOrientationPatient", frame)
        place: list[Any] = []
        if corner and directions:
            rows, columns = shape
            read, phase = np.array(directions, dtype=float).reshape(2, 3)
            centre = np.array(corner, dtype=float) + rows // 2 * along_y * phase + columns // 2 * along_x * read
            place = [centre, phase, read, np.cross(read, phase)]
        thickness = self.element("SliceThickness", frame)
        return SliceGeometry.of_header((along_y, along_x), float(thickness or np.nan), place)


def _facing(first: SliceGeometry, second: SliceGeometry | None) -> SliceGeometry:
    """The first frame with its normal towards the second one."""
    if second is None or not second.placed:
        return first
    centre, _, _, normal = first.vectors
    away = (second.vectors[0] - centre) @ normal < 0
    x, y, z = (-normal).tolist()
    return replace(first, normal=(x, y, z)) if away else first


def _alike(place: SliceGeometry | None, wanted: SliceGeometry) -> bool:
    """Whether two frames lie at one place, in one orientation, which both of them have."""
    if place is None or not place.placed or not wanted.placed:
        return False
    near = _SAME * (wanted.thickness or 1.0)
    (centre, *directions), (there, *others) = place.vectors, wanted.vectors
    return bool(
        np.abs(centre - there).max() <= near and np.allclose(directions[:2], others[:2], atol=_SAME)  # ky and kx
    )
