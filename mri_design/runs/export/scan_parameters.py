"""How the scan of a run was measured, as far as its file says: the defaults of a sequence that is made of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from mri_design.runs.export.stored_images import StoredImages
from mri_design.sequences.settings import SequenceKind, SequenceSettings

_MILLI = 1e-3
_LARGEST_EXCITATION = 90.0
_WORDS = {
    "slice_thickness": ("slices of {} mm", 1e3),
    "echo_time": ("an echo time of {} ms", 1e3),
    "repetition_time": ("a repetition time of {} ms", 1e3),
    "flip_angle": ("a flip angle of {} degrees", 1.0),
}


@dataclass(frozen=True, kw_only=True)
class ScanParameters:
    """What is known of a scan, by the names of `SequenceSettings`; None where its file does not say.

    Parameters
    ----------
    slice_thickness : float or None
        Metres.
    echo_time, repetition_time : float or None
        Seconds; of a turbo spin echo the effective echo time.
    flip_angle : float or None
        Degrees.
    """

    slice_thickness: float | None = None
    echo_time: float | None = None
    repetition_time: float | None = None
    flip_angle: float | None = None

    @classmethod
    def of(cls, run: StoredImages) -> ScanParameters:
        """Those of a run's scan: of its geometry, and of the header that its source was made from."""
        said: Mapping[str, str] = {} if run.source is None else run.source.identifiers
        found = {name: float(said[word]) for word, name in _KEYWORDS.items() if word in said}
        known = {name: value * (1 if name == "flip_angle" else _MILLI) for name, value in found.items() if value > 0}
        thickness = None if run.geometry is None else run.geometry.thickness
        return cls(slice_thickness=None if thickness is None else thickness * _MILLI, **known)

    @property
    def known(self) -> dict[str, float]:
        """What is known, by name."""
        return {part.name: getattr(self, part.name) for part in fields(self) if getattr(self, part.name) is not None}

    def defaults(self, kind: SequenceKind) -> dict[str, float]:
        """Settings of a sequence of a kind, in the place of its usual defaults.

        Of a turbo spin echo the time between echoes and the angle of the refocusing pulses are asked for, which headers
        do not have: theirs are the effective echo time and the angle of the excitation. A gradient echo does not excite
        by more than 90 degrees.
        """
        if kind == "tse":
            return {name: value for name, value in self.known.items() if name in ("slice_thickness", "repetition_time")}
        too_large = self.flip_angle is not None and self.flip_angle > _LARGEST_EXCITATION
        return {name: value for name, value in self.known.items() if not (too_large and name == "flip_angle")}

    def differing(self, settings: SequenceSettings) -> str:
        """A sentence about what the scan had and the sequence has not; empty where that is nothing."""
        others = {
            name: value for name, value in self.known.items() if abs(getattr(settings, name) - value) > 1e-6 * value
        }
        if not others:
            return ""
        here, there = (
            [_WORDS[name][0].format(f"{float(values[name] * _WORDS[name][1]):.5g}") for name in others]
            for values in ({name: getattr(settings, name) for name in others}, others)
        )
        of_trains = settings.kind == "tse" and {"echo_time", "flip_angle"} & set(others)
        why = (
            " In a turbo spin echo they are the time between echoes and the angle of the refocusing."
            if of_trains
            else ""
        )
        return f"Other than in the scan: {', '.join(here)}, where it had {', '.join(there)}.{why}"


_KEYWORDS = {"EchoTime": "echo_time", "RepetitionTime": "repetition_time", "FlipAngle": "flip_angle"}
"""By the keywords of DICOM, whose times are milliseconds."""
