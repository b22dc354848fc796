"""What a design looks like at its decisions: the image so far with its error bars, and the lines that come next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError

MOST = 12
"""Frames that are kept of a design besides the last one."""


@briefly
@dataclass(frozen=True)
class Frame:
    """The image of a design at one of its decisions, before the lines that were decided on are measured.

    Parameters
    ----------
    number : int
        Decisions before it.
    lines : tuple of int
        Lines behind the image, in the order of measurement; samples of a plane, or shots, where these are chosen.
    following : tuple of int
        Lines that are measured next; empty at the end.
    image : complex64 array, shape (ky, kx)
        The posterior mean of the first slice, in the units of images.
    deviation : float32 array, shape (ky, kx), optional
        Standard deviation of each complex pixel. Where an error is predicted, all are scaled to its energy. None
        before any prediction could be tested: the posterior's widths are the prior's until then.
    predicted_error : float
        Predicted relative L2 error of the image; NaN where none is (`Forecast.predicted_error`).
    whole : bool
        Whether it is the image that the design would end with here, with the error bars of that, not its own quick one.
    """

    number: int
    lines: tuple[int, ...]
    following: tuple[int, ...]
    image: NDArray[np.complex64]
    deviation: NDArray[np.float32] | None
    predicted_error: float = float("nan")
    whole: bool = False

    @property
    def magnitude(self) -> NDArray[np.float32]:
        """Of the image."""
        return np.abs(self.image)


def scaled_to(error: float, magnitude: NDArray[np.float32], deviation: NDArray[np.float32]) -> NDArray[np.float32]:
    """The deviations times the number that makes their energy that of a predicted relative error.

    A strategy corrects the error that the posterior expects by what it found on measured lines, and the posterior's
    widths with it. They stay as they are where the error is not known.
    """
    total = float(np.sum(np.square(deviation, dtype=np.float64)))
    if not 0 <= error < 1 or not total > 0:
        return deviation
    wanted = error**2 / (1 - error**2) * float(np.sum(np.square(magnitude, dtype=np.float64)))
    return np.asarray(deviation * np.sqrt(wanted / total), dtype=np.float32)


def stride_at(number: int) -> int:
    """Of so many decisions the frames of every first, second, fourth, eighth ... are kept, `MOST` at most."""
    stride = 1
    while number // stride >= MOST:
        stride *= 2
    return stride


def is_kept(number: int) -> bool:
    """Whether the frame of a decision is one of those that are kept, at least until there are more decisions."""
    return number % stride_at(number) == 0


def with_frame(frames: Sequence[Frame], frame: Frame) -> tuple[Frame, ...]:
    """The frames with one more, without those that are kept no longer: the others stay evenly spread over the design.

    Whole images are kept all. The others depend on the number of decisions alone, so that a design that was interrupted
    has the same.
    """
    stride = stride_at(frame.number)
    before = [one for one in frames if one.number < frame.number and (one.whole or one.number % stride == 0)]
    return (*before, frame)


MEMBERS = (
    "numbers",
    "lines",
    "counts",
    "following",
    "following_counts",
    "errors",
    "whole",
    "tops",
    "image",
    "deviation",
)
"""Arrays of the file of frames."""


def arrays_of(frames: Sequence[Frame]) -> dict[str, NDArray[Any]]:
    """Frames as arrays for a file; images in half precision, as parts of their largest pixels (``tops``).

    Images (frame, ky, kx, 2) have real and imaginary parts. Deviations that are not known have a largest pixel of NaN.
    """
    unknown = np.full_like(frames[-1].magnitude, np.nan)
    deviations = np.array([unknown if one.deviation is None else one.deviation for one in frames])
    images = np.array([one.image for one in frames], dtype=np.complex64)
    parts = np.stack([images.real, images.imag], axis=-1)
    tops = np.stack(
        [np.abs(parts).max(axis=(1, 2, 3)), deviations.max(axis=(1, 2))], axis=1
    )  # parts of 1: kept exactly
    scale = np.where(tops > 0, tops, 1)[..., np.newaxis, np.newaxis]
    return {
        "numbers": np.array([one.number for one in frames]),
        "lines": np.array(frames[-1].lines),  # those of the others are the first of these
        "counts": np.array([len(one.lines) for one in frames]),
        "following": np.array([line for one in frames for line in one.following], dtype=np.int64),
        "following_counts": np.array([len(one.following) for one in frames]),
        "errors": np.array([one.predicted_error for one in frames]),
        "whole": np.array([one.whole for one in frames]),
        "tops": tops,
        "image": (parts / scale[:, 0, ..., np.newaxis]).astype(np.float16),
        "deviation": (deviations / scale[:, 1]).astype(np.float16),
    }


def frames_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[Frame, ...]:
    """The frames that `arrays_of` made arrays of.

    Raises
    ------
    InputError
        Where arrays are missing or do not belong together.
    """
    count, shapes = len(arrays.get("numbers", ())), {name: arrays[name].shape for name in MEMBERS if name in arrays}
    alike = all(shapes.get(name) == (count,) for name in ("numbers", "counts", "following_counts", "errors", "whole"))
    images = shapes.get("image", ())
    whole = len(shapes) == len(MEMBERS) and images[:1] == (count,) and len(images) == 4 and images[-1] == 2
    if not (alike and whole and shapes["tops"] == (count, 2) and shapes["deviation"] == images[:-1]):
        raise InputError(field="frames", got=f"arrays {shapes}", wanted="frames as a design wrote them")
    lines, following = arrays["lines"].tolist(), arrays["following"].tolist()
    ends = [0, *np.cumsum(arrays["following_counts"]).tolist()]
    each = zip(arrays["numbers"].tolist(), arrays["counts"].tolist(), pairwise(ends), strict=True)
    frames = list[Frame]()
    for at, (number, measured, (begin, end)) in enumerate(each):
        tops = arrays["tops"][at].astype(np.float32)
        parts, deviation = (
            top * arrays[name][at].astype(np.float32) for top, name in zip(tops, MEMBERS[-2:], strict=True)
        )
        known, error = np.isfinite(deviation).all(), float(arrays["errors"][at])
        image, bars = parts[..., 0] + 1j * parts[..., 1], deviation if known else None
        made = tuple(lines[:measured]), tuple(following[begin:end]), image, bars
        frames.append(Frame(number, *made, predicted_error=error, whole=bool(arrays["whole"][at])))
    return tuple(frames)
