"""Identifiers of patient, study and sequence of a DICOM image or a scan, which images made from it have to repeat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mri_design.errors import InputError, require_instance

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
"""Between which the values of these can be, 0 apart, with which programs say that they know none."""
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
"""Without one of these that the file has, the others would mean somebody or something else."""


@dataclass(frozen=True)
class SourceImage:
    """The identifiers of a DICOM image, or of a scan by the header of its raw data, by the standard's own keywords.

    Beside them stand the protocol, echo and repetition time in milliseconds, and the flip angle in degrees.

    Parameters
    ----------
    identifiers : mapping of str to str
        Some of `SourceImage.keywords`, each in the form that the standard asks of it; those of the study and of the
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
                raise InputError(field=name, got="none", wanted="that of the image")
        for name, text in self.identifiers.items():
            if not _is_valid(name, text, image=self.image):
                raise InputError(field=str(name)[:60], got=repr(text)[:60], wanted="an identifier as DICOM has it")
        counts = (self.frames, self.frames if self.frame is None else self.frame)
        if not all(type(count) is int for count in counts) or not 1 <= counts[1] <= self.frames:
            raise InputError(field="frame", got=f"{self.frame} of {self.frames}", wanted="one of the frames, from 1")

    @staticmethod
    def keywords() -> tuple[str, ...]:
        """Names of identifiers: of the patient, the study, the frame of reference, the image, the protocol."""
        return tuple(_KNOWN)

    @classmethod
    def of_elements(cls, elements: Mapping[str, str], frames: int = 1) -> tuple[SourceImage | None, tuple[str, ...]]:
        """Identifiers by the elements of a file, and the names of those that are not as DICOM has them.

        Parameters
        ----------
        elements : mapping of str to str
            Values of `keywords`, empty ones among them.
        frames : int
            Images in the file.

        Returns
        -------
        source : SourceImage or None
            None where the study, the image or the patient's number is missing or wrong: without these the others would
            mean something else.
        wrong : tuple of str
            Names of the elements that could not be kept.
        """
        given = {name: text for name, text in elements.items() if text}
        wrong = tuple(name for name, text in given.items() if not _is_valid(name, text))
        if set(wrong) & set(_DECISIVE) or not given.keys() >= set(_NEEDED):
            return None, wrong
        return cls({name: text for name, text in given.items() if name not in wrong}, frames), wrong

    @classmethod
    def of_raw_data(cls, elements: Mapping[str, str]) -> tuple[SourceImage | None, tuple[str, ...]]:
        """Identifiers by the header of raw data, and the names of those that are not as DICOM has them.

        Where the patient's number is wrong nothing of the patient is kept: without it, it could be somebody else.

        Parameters
        ----------
        elements : mapping of str to str
            Values of `keywords` and ``SeriesInstanceUIDRoot``, empty ones among them.

        Returns
        -------
        source : SourceImage or None
            None where nothing is left.
        left_out : tuple of str
            Names of the elements that were not kept.
        """
        given = {name: text for name, text in elements.items() if text}
        wrong = {name for name, text in given.items() if not _is_valid(name, text, image=False)}
        wrong |= set(_PATIENT) if "PatientID" in wrong else set()
        kept = {name: text for name, text in given.items() if name not in wrong}
        return cls(kept, image=False) if kept else None, tuple(name for name in given if name in wrong)

    @property
    def names_somebody(self) -> bool:
        """Whether it says more than how the scan was measured."""
        return not self.identifiers.keys() <= {*_MEASURED, *_OF_RAW_DATA}

    def of_frame(self, number: int) -> SourceImage:
        """Identifiers of one frame, counted from 0."""
        return self if self.frames == 1 else replace(self, frame=number + 1)

    def as_settings(self) -> dict[str, Any]:
        """Entries for a manifest."""
        of_raw_data = {} if self.image else {"image": False}
        return {"identifiers": dict(self.identifiers), "frames": self.frames, "frame": self.frame, **of_raw_data}

    @classmethod
    def from_settings(cls, field: str, stored: object) -> SourceImage:
        """Identifiers that `as_settings` wrote.

        Raises
        ------
        InputError
            For anything else.
        """
        try:
            known: Any = dict(stored)  # type: ignore[call-overload]
            return cls(dict(known["identifiers"]), known["frames"], known["frame"], known.get("image", True))
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(field=field, got=str(error)[:120], wanted="identifiers, as runs write them") from error


def _is_valid(name: str, text: object, *, image: bool = True) -> bool:
    known = _KNOWN if image else {**_KNOWN, **_OF_RAW_DATA}
    pattern = None if not image and name in _OF_IMAGE else known.get(name)
    if pattern is None or not isinstance(text, str) or not text.isprintable() or not pattern.fullmatch(text):
        return False
    low, high = _POSSIBLE.get(name, (0.0, 0.0))
    return not high or float(text) == 0 or low <= float(text) <= high
