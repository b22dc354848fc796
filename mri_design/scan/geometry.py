"""Where a slice lies and whose image it is: sizes, places and directions, and the identifiers of its header."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance

Vector = tuple[float, float, float]
_RIGHT_ANGLE = 1e-3
_LARGEST = 1e5  # millimetres
_PIXELS, _THICKNESSES = (0.005, 200.0), (0.02, 2000.0)
"""Millimetres between which pixels and slices can be; beyond, a header has another unit, or nothing."""


THICKNESS_UNKNOWN = "slice thickness unknown"
"""Description of a file that has to have some thickness, and has 1 mm."""


@dataclass(frozen=True)
class SliceGeometry:
    """Size, place and directions of one slice's image, in millimetres.

    Vectors are in the patient's coordinates of DICOM and MRD: x to the left, y to the back, z to the head.

    Parameters
    ----------
    pixel : tuple of float
        Size of a pixel along (ky, kx).
    thickness : float or None
        Of the slice; None if unknown.
    centre : tuple of float, optional
        Where pixel (N_y // 2, N_x // 2) lies; None if the file does not state it.
    phase, read, normal : tuple of float, optional
        Unit vectors towards the next row and the next column of the image, and across the slice; given together with
        ``centre``.
    unplaced : str
        Why a place and directions that the file does give are not taken over, as the end of a sentence; empty where
        there is no such reason.

    Raises
    ------
    InputError
        For sizes that are not positive, directions that are not at right angles, and a place given together with a
        reason why it is unknown.
    """

    pixel: tuple[float, float]
    thickness: float | None
    centre: Vector | None = None
    phase: Vector | None = None
    read: Vector | None = None
    normal: Vector | None = None
    _: KW_ONLY
    unplaced: str = ""

    def __post_init__(self) -> None:
        sizes = self.pixel if self.thickness is None else (*self.pixel, self.thickness)
        if not all(0 < size < _LARGEST for size in sizes):
            raise InputError("pixel size", str(sizes), "positive millimetres")
        given = [vector for vector in (self.centre, self.phase, self.read, self.normal) if vector is not None]
        if given and (len(given) < 4 or not np.isfinite(given).all()):
            raise InputError("slice geometry", str(given), "a centre and three directions")
        if given:
            directions = np.array(given[1:])
            if np.abs(directions @ directions.T - np.eye(3)).max() > _RIGHT_ANGLE:
                raise InputError("slice directions", str(given[1:]), "unit vectors at right angles to each other")
        if not isinstance(self.unplaced, str) or (given and self.unplaced):
            raise InputError("unplaced", repr(self.unplaced)[:60], "a reason, of slices without a place")

    @property
    def placed(self) -> bool:
        """Whether place and directions are known."""
        return self.centre is not None

    def first_pixel(self, shape: tuple[int, int]) -> NDArray[np.float64]:
        """Where pixel (0, 0) of an image of a shape (ky, kx) lies; as if at the origin where that is unknown."""
        centre, phase, read, _ = self.vectors
        steps = self.pixel[0] * (shape[0] // 2) * phase + self.pixel[1] * (shape[1] // 2) * read
        return np.asarray(centre - steps, dtype=np.float64)

    @property
    def vectors(self) -> tuple[NDArray[np.float64], ...]:
        """Centre, and directions of ky, kx and the slice; those of an axial slice at the origin where unknown."""
        if self.centre is None:
            return np.zeros(3), np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
        return tuple(np.array(vector) for vector in (self.centre, self.phase, self.read, self.normal))

    def affine(self, shape: tuple[int, int]) -> NDArray[np.float64]:
        """Affine matrix from indices (kx, ky, slice) to NIfTI's millimetres: x right, y to the front, z to the head.

        A slice of unknown thickness counts as one of 1 mm.

        Parameters
        ----------
        shape : tuple of int
            Of the image, (ky, kx).

        Returns
        -------
        float64 array, shape (4, 4)
        """
        _, phase, read, normal = self.vectors
        affine, thickness = np.eye(4), self.thickness or 1.0
        columns = (self.pixel[1] * read, self.pixel[0] * phase, thickness * normal, self.first_pixel(shape))
        affine[:3] = np.stack(columns, axis=1)
        affine[:2] *= -1
        return affine + 0.0  # no negative zeros

    @property
    def turns(self) -> tuple[tuple[int, float], ...]:
        """Which of x, y and z is nearest to the normal, and to phase encoding, each with the angle to it in degrees.

        Angles are 0 up to rounding; nothing where directions are not known.
        """
        return tuple(_nearest(vector) for vector in (self.normal, self.phase) if vector is not None)

    def slice_after(self, number: int) -> SliceGeometry:
        """Geometry of a later slice of a stack, whose slices follow one another at the distance of their thickness.

        Without a place where the thickness is not known.
        """
        if self.centre is None or number == 0:
            return self
        if self.thickness is None:
            return replace(self, centre=None, phase=None, read=None, normal=None)
        centre, _, _, normal = self.vectors
        return replace(self, centre=_vector(centre + number * self.thickness * normal))

    def resampled(self, shape: tuple[int, int], target: tuple[int, int]) -> SliceGeometry:
        """Geometry of an image of a shape (ky, kx) after its field of view was divided into ``target`` pixels."""
        steps = [old / new for old, new in zip(shape, target, strict=True)]
        pixel = (self.pixel[0] * steps[0], self.pixel[1] * steps[1])
        if self.centre is None:
            return replace(self, pixel=pixel)
        # The middle of new pixel j lies (j + 1/2) steps from the edge of the image.
        along = [(new // 2 + 0.5) * step - 0.5 - old // 2 for old, new, step in zip(shape, target, steps, strict=True)]
        centre, phase, read, _ = self.vectors
        moved = centre + along[0] * self.pixel[0] * phase + along[1] * self.pixel[1] * read
        return replace(self, pixel=pixel, centre=_vector(moved))

    def with_field_of_view(self, extents: tuple[float, float], shape: tuple[int, int]) -> SliceGeometry:
        """The same place with another field of view (ky, kx), metres, over an image of a shape."""
        return replace(self, pixel=(1e3 * extents[0] / shape[0], 1e3 * extents[1] / shape[1]))

    def as_settings(self) -> dict[str, Any]:
        """Entries for a manifest."""
        sizes: dict[str, Any] = {"pixel_mm": list(self.pixel), "thickness_mm": self.thickness}
        names = ("centre", "phase", "read", "normal")
        why = {"unplaced": self.unplaced} if self.unplaced else {}
        return sizes | why | ({name: list(getattr(self, name)) for name in names} if self.placed else {})

    @classmethod
    def of_header(
        cls, pixel: tuple[float, float], thickness: float, place: Sequence[Sequence[float]] = (), unsettled: str = ""
    ) -> SliceGeometry | None:
        """From the header of a file: None where sizes of pixels are missing, without a place where that makes no sense.

        Parameters
        ----------
        pixel, thickness : floats
            Millimetres; NaN where the header gives none. Those that cannot be (`impossible_sizes`) count as unknown.
        place : sequence of vectors
            Centre, and the directions of ky, kx and the slice. Many files have zeros there.
        unsettled : str
            Why such a place, where it makes sense, is not taken over all the same; empty where it is.
        """
        if not all(_PIXELS[0] <= size <= _PIXELS[1] for size in pixel):
            return None
        known = thickness if _THICKNESSES[0] <= thickness <= _THICKNESSES[1] else None
        if len(place):
            try:
                placed = cls(pixel, known, *map(_vector, place))
                return cls(pixel, known, unplaced=unsettled) if unsettled else placed
            except InputError:
                pass
        return cls(pixel, known)


def _nearest(direction: Vector) -> tuple[int, float]:
    """The axis nearest to a direction, and the angle to it in degrees, 0 up to rounding."""
    sizes = np.abs(direction)
    largest = float(sizes.max())
    return int(np.argmax(sizes)), 0.0 if largest > 1 - _RIGHT_ANGLE else math.degrees(math.acos(largest))


def impossible_sizes(pixel: Sequence[float], thickness: float = math.nan) -> dict[str, tuple[float, ...]]:
    """Sizes in millimetres that no scanner measures, which count as unknown: as `Provenance.left_out` has them."""
    limits = [*zip(pixel, [_PIXELS] * len(pixel), strict=True), (thickness, _THICKNESSES)]
    wrong = [size for size, (least, most) in limits if math.isfinite(size) and not least <= size <= most]
    return {"impossible_sizes": tuple(wrong)} if wrong else {}


def stacked(places: Sequence[SliceGeometry], numbers: Sequence[int]) -> tuple[SliceGeometry, list[int]]:
    """Geometry of a volume whose slices lie one above the other at equal distances, and their order along its normal.

    Parameters
    ----------
    places : sequence of SliceGeometry
        Of two slices or more.
    numbers : sequence of int
        Of the slices in their scan, by which they are ordered where their places are not known.

    Returns
    -------
    geometry : SliceGeometry
        That of the first slice in the order; its thickness is the distance between slices, gaps included.
    order : list of int
        Places in ``places``.

    Raises
    ------
    InputError
        For slices with pixels of different sizes, in different directions, not above one another, or at unequal
        distances.
    """
    first = places[0]
    one_size = all(place.pixel == first.pixel and place.placed == first.placed for place in places)
    wanted, cure = "parallel slices, one above the other at equal distances", "DICOM keeps the place of every slice."
    if not one_size:
        raise InputError("slices", "pixels of different sizes, or places of some slices only", wanted, cure)
    if first.centre is None:
        heights, thickness = np.array(numbers, dtype=np.float64), first.thickness
        order = np.argsort(heights, kind="stable")
        steps = np.diff(heights[order])
        if not np.allclose(steps, steps[0]):
            raise InputError("slices", f"numbers {', '.join(map(str, numbers[:8]))}", wanted, cure)
        known = None if thickness is None else thickness * float(steps[0])
        return replace(places[order[0]], thickness=known), order.tolist()
    turned = max(float(np.abs(np.subtract(place.vectors[1:], first.vectors[1:])).max()) for place in places)
    if turned > _RIGHT_ANGLE:
        raise InputError("slices", "slices in different directions", wanted, cure)
    centres = np.array([place.centre for place in places])
    _, phase, read, normal = first.vectors
    heights = centres @ normal
    order = np.argsort(heights, kind="stable")
    steps = np.diff(heights[order])
    near = _RIGHT_ANGLE * max(1.0, float(np.abs(steps).max()))
    beside = max(float(np.ptp(centres @ direction)) for direction in (phase, read))
    if beside > near * len(places) or float(np.ptp(steps)) > 10 * near or steps.min() <= near:
        got = "slices that are not above one another" if beside > near * len(places) else "unequal distances"
        raise InputError("slices", got, wanted, cure)
    return replace(places[order[0]], thickness=float(steps.mean())), order.tolist()


def around(places: Mapping[int, SliceGeometry | None], number: int, count: int) -> list[dict[int, float]]:
    """The slices above and below one: pairs, the nearest first, weighted such that they interpolate linearly.

    Parameters
    ----------
    places : mapping of int to SliceGeometry or None
        Of the slices that there are, by number. Where each has a place, slices count that show the same field of view
        above or below, in whichever order they were measured; else those of the next numbers.
    number, count : int
        The slice, and how many pairs at most. At the ends of a volume one slice stands for a pair.

    Returns
    -------
    list of dict of int to float
        Weights, which sum to 1, by the number of the slice.
    """
    numbers = list(places)
    known = [place for place in places.values() if place is not None and place.placed]
    if len(known) < len(places):
        heights = np.array(numbers) - float(number)
    else:
        here = known[numbers.index(number)]
        away = np.array([np.subtract(place.centre or (), here.centre or ()) for place in known])
        turned = [np.abs(np.subtract(place.vectors[1:], here.vectors[1:])).max() > _RIGHT_ANGLE for place in known]
        _, phase, read, normal = here.vectors
        beside = np.hypot(away @ phase, away @ read) > min(here.pixel) / 2
        other = np.array([place.pixel != here.pixel for place in known]) | turned | beside
        heights = np.where(other, 0.0, away @ normal)
    order = np.argsort(np.abs(heights), kind="stable").tolist()
    sides = [[n for n in order if sign * heights[n] > _RIGHT_ANGLE][:count] for sign in (-1, 1)]
    pairs = [[n for n in pair if n is not None] for pair in zip_longest(*sides)]
    near = [{numbers[n]: 1 / abs(float(heights[n])) for n in pair} for pair in pairs]
    return [{n: weight / sum(pair.values()) for n, weight in pair.items()} for pair in near]


def _vector(values: Sequence[float] | NDArray[np.float64]) -> Vector:
    x, y, z = map(float, values)
    return x, y, z


_UID = re.compile(r"(?=.{3,64}$)[0-2](?:\.(?:0|[1-9]\d*))+")
_DATE = re.compile(r"\d{8}")
_TIME = re.compile(r"\d{2}(?:\d{2}(?:\d{2}(?:\.\d{1,6})?)?)?")
_NAME, _LONG, _SHORT = (re.compile(rf"[^\\]{{1,{longest}}}") for longest in (194, 64, 16))

_PATIENT = {
    "PatientName": _NAME,
    "PatientID": _LONG,
    "IssuerOfPatientID": _LONG,
    "PatientBirthDate": _DATE,
    "PatientSex": re.compile(r"[MFO]"),
}
_STUDY = {"StudyDate": _DATE, "StudyTime": _TIME, "StudyID": _SHORT, "AccessionNumber": _SHORT}
_NUMBER = re.compile(r"(?=.{1,16}$)\d+(?:\.\d+)?")
_MEASURED = {"ProtocolName": _LONG, "EchoTime": _NUMBER, "RepetitionTime": _NUMBER, "FlipAngle": _NUMBER}
"""How it was measured: milliseconds, and degrees."""
_POSSIBLE = {"EchoTime": (0.005, 5e3), "RepetitionTime": (0.5, 1e5), "FlipAngle": (0.01, 360.0)}
"""Ranges of these values; programs write 0 for unknown ones."""
_KNOWN = {
    **_PATIENT,
    "StudyInstanceUID": _UID,
    **_STUDY,
    "ReferringPhysicianName": _NAME,
    "FrameOfReferenceUID": _UID,
    "PositionReferenceIndicator": _LONG,
    "SOPClassUID": _UID,
    "SOPInstanceUID": _UID,
    **_MEASURED,
}
_OF_RAW_DATA = {"SeriesInstanceUIDRoot": _UID}
"""Identifiers that only headers of raw data have; those of series made from them begin with the root."""
_OF_IMAGE = ("SOPClassUID", "SOPInstanceUID")
_NEEDED = ("StudyInstanceUID", *_OF_IMAGE)
_DECISIVE = (*_NEEDED, "PatientID", "IssuerOfPatientID")
"""Identifiers without which the others would point to another person or image."""


@dataclass(frozen=True)
class SourceImage:
    """The identifiers of a DICOM image, or of a scan by the header of its raw data, by the standard's own keywords.

    Further fields are the protocol, echo and repetition time in milliseconds, and the flip angle in degrees.

    Parameters
    ----------
    identifiers : mapping of str to str
        Some of `SourceImage.keywords`, each in the form that the standard requires; those of the study and of the
        image itself are needed, because the others mean nothing without them. Of raw data any but those of an image,
        and ``SeriesInstanceUIDRoot``, with which identifiers of series begin.
    frames : int
        Images in the file.
    frame : int, optional
        Which of several frames is meant, counted from 1; None for all of them, or where there is one.
    image : bool
        Whether there is a DICOM image; False for raw data.

    Raises
    ------
    InputError
        Naming the identifier that is missing, unknown, too long or in another form.
    """

    identifiers: Mapping[str, str] = field(default_factory=dict)
    frames: int = 1
    frame: int | None = None
    image: bool = True

    def __post_init__(self) -> None:
        require_instance(bool, wanted="true of a DICOM image, false of raw data", image=self.image)
        for name in _NEEDED if self.image else ():
            if name not in self.identifiers:
                raise InputError(name, "none", "that of the image")
        for name, text in self.identifiers.items():
            if not _is_valid(name, text, image=self.image):
                raise InputError(str(name)[:60], repr(text)[:60], "an identifier as DICOM has it")
        counts = (self.frames, self.frames if self.frame is None else self.frame)
        if not all(type(count) is int for count in counts) or not 1 <= counts[1] <= self.frames:
            raise InputError("frame", f"{self.frame} of {self.frames}", "one of the frames, from 1")

    @staticmethod
    def keywords() -> tuple[str, ...]:
        """Names of identifiers: of the patient, the study, the frame of reference, the image, the protocol."""
        return tuple(_KNOWN)

    @classmethod
    def of_elements(
        cls, elements: Mapping[str, str], frames: int = 1, *, image: bool = True
    ) -> tuple[SourceImage | None, tuple[str, ...]]:
        """Identifiers by the elements of a file, and the names of elements that break DICOM's rules for them.

        Parameters
        ----------
        elements : mapping of str to str
            Values of `keywords`, empty ones among them, and of raw data ``SeriesInstanceUIDRoot``.
        frames : int
            Images in the file.
        image : bool
            False for the header of raw data.

        Returns
        -------
        source : SourceImage or None
            None where nothing is left, or of an image where the study, the image or the patient's number is missing or
            wrong: without these the others would mean something else. Where the patient's number in the header of raw
            data is wrong nothing of the patient is kept: it could be somebody else.
        left_out : tuple of str
            Names of the elements that could not be kept.
        """
        given = {name: text for name, text in elements.items() if text}
        wrong = {name for name, text in given.items() if not _is_valid(name, text, image=image)}
        missing = image and bool(wrong & set(_DECISIVE) or set(_NEEDED) - given.keys())
        if not image and "PatientID" in wrong:
            wrong |= set(_PATIENT)
        kept = {} if missing else {name: text for name, text in given.items() if name not in wrong}
        return cls(kept, frames, image=image) if kept else None, tuple(name for name in given if name in wrong)

    @property
    def names_somebody(self) -> bool:
        """Whether it identifies a patient or a study, and not only the protocol."""
        return not self.identifiers.keys() <= {*_MEASURED, *_OF_RAW_DATA}

    def of_frame(self, number: int) -> SourceImage:
        """Identifiers of one frame, counted from 0."""
        return self if self.frames == 1 else replace(self, frame=number + 1)

    def as_settings(self) -> dict[str, Any]:
        """Entries for a manifest."""
        of_raw_data = {} if self.image else {"image": False}
        return {"identifiers": dict(self.identifiers), "frames": self.frames, "frame": self.frame, **of_raw_data}


def _is_valid(name: str, text: object, *, image: bool = True) -> bool:
    known = _KNOWN if image else {**_KNOWN, **_OF_RAW_DATA}
    pattern = None if not image and name in _OF_IMAGE else known.get(name)
    if pattern is None or not isinstance(text, str) or not text.isprintable() or not pattern.fullmatch(text):
        return False
    low, high = _POSSIBLE.get(name, (0.0, 0.0))
    return not high or float(text) == 0 or low <= float(text) <= high
