"""Coverage of error bars: how many standard deviations hold a stated share of the pixels of a group of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError
from mri_design.operators.base import Array

LEVELS = (50, 80, 95)
"""Shares of the pixels, in per cent."""
FEWEST = 2
"""Images at least: of a single one nothing says how others differ from it."""


@briefly
@dataclass(frozen=True)
class Coverage:
    """Radii of error bars that were learnt from a group of images whose errors are known.

    An image that is exchangeable with the n of the group (as if all n + 1 had been drawn, and one of them put aside)
    has at least n / (n + 1) of the stated share within a radius, on the mean over such draws: this is conformal risk
    control (A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster, Conformal risk control, ICLR 2024, theorem 1)
    of the share of pixels outside, which falls with the radius and is 1 at most. The images count, not their pixels,
    which are wrong together; and the mean is over images, so that nothing is promised for a single one. See also
    V. Vovk, A. Gammerman, G. Shafer, Algorithmic learning in a random world (2005), and A. N. Angelopoulos, S. Bates,
    A gentle introduction to conformal prediction (2021).

    The radius itself is that of the group, without the correction: it is nearer to the stated share for images of the
    same kind, and for 95 % the corrected one is infinite below 19 images.

    Parameters
    ----------
    group : str
        Name of the group.
    images : tuple of str
        Their names.
    radii : tuple of mapping of str to float
        Rows of a table, for each of `LEVELS`: ``level``, that share of the pixels in per cent, on the mean over the
        images of the group; ``radius``, the number of standard deviations that holds it (for errors that are Gaussian
        and of the predicted size sqrt(-ln(1 - level / 100))); ``left_out_mean`` and ``left_out_least``, the share in
        per cent, mean and least, that each image has within the radius of the others; ``promised``, the share that a
        further image has at least, on the mean over all that may come: level n / (n + 1).
    refused : tuple of str
        What is no part of the group, and why.
    """

    group: str
    images: tuple[str, ...]
    radii: tuple[Mapping[str, float], ...]
    refused: tuple[str, ...] = ()

    @classmethod
    def of(cls, group: str, scores: Mapping[str, Array], refused: Sequence[str] = ()) -> Self:
        """The radii of some images.

        Parameters
        ----------
        group : str
            Name of the group.
        scores : mapping of str to array, shape (ky, kx)
            `scores` of every image, by its name; all of one size.
        refused : sequence of str
            See the fields.

        Raises
        ------
        InputError
            For fewer than two images, or more than a share of their pixels wrong beside error bars of zero.
        """
        if len(scores) < FEWEST:
            raise InputError(f"images of {group}", str(len(scores)), f"at least {FEWEST}")
        every = np.stack([image.ravel() for image in scores.values()])
        return cls(group, tuple(scores), tuple(_radius_of(group, every, level) for level in LEVELS), tuple(refused))

    @classmethod
    def from_settings(cls, kept: Mapping[str, Any]) -> Self:
        """What `as_settings` has written."""
        return cls(str(kept["group"]), tuple(kept["images"]), tuple(kept["radii"]), tuple(kept["refused"]))

    def as_settings(self) -> dict[str, object]:
        """All of it, for a manifest, with a sentence that says it."""
        return {"said": str(self), **asdict(self)}

    def radius(self, level: int) -> float:
        """Standard deviations within which ``level`` per cent of the pixels of the group lie.

        Raises
        ------
        InputError
            For another level than those of `LEVELS`.
        """
        found = {one["level"]: one["radius"] for one in self.radii}
        if level not in found:
            raise InputError("level", repr(level), f"one of {', '.join(map(str, found))}, in per cent")
        return found[level]

    @property
    def short(self) -> str:
        """The radii in a few words."""
        radii = ", ".join(f"{one['level']} % within {_short(one['radius'])} std" for one in self.radii)
        return f"{radii} ({len(self.images)} scans of {self.group})"

    def __str__(self) -> str:
        first, *others = ((one["level"], _short(one["radius"])) for one in self.radii)
        more = ", ".join(f"{level} % within {limit}" for level, limit in others)
        begin = f"of {len(self.images)} scans of {self.group}, {first[0]} % of the pixels were within"
        return f"{begin} {first[1]} standard deviations, {more}"


def _short(number: float) -> str:
    """Two digits, also of 1.0."""
    return f"{number:#.2g}".rstrip(".")


def scores(error: Array, std: Array) -> NDArray[np.float32]:
    """Errors of pixels in their standard deviations; 0 where an error is 0.

    Parameters
    ----------
    error : array, shape (ky, kx)
        Of complex pixels, or its modulus.
    std : float array, shape (ky, kx)
        Standard deviations of complex pixels, both components together.
    """
    size = np.abs(error).astype(np.float64)
    with np.errstate(divide="ignore"):
        found = np.divide(size, std, out=np.zeros_like(size), where=size > 0)
    return found.astype(np.float32)


def radius(every: Array, level: float) -> float:
    """The least radius within which a share of the pixels lies, on the mean over images.

    Parameters
    ----------
    every : float array, shape (image, pixel)
        `scores` of images of one size.
    level : float
        The share, in per cent.
    """
    return float(np.quantile(every, level / 100, method="inverted_cdf"))


def share_within(image: Array, limit: float) -> float:
    """Share of an image's `scores` within a radius, in per cent."""
    return 100 * float(np.mean(image <= limit))


def _radius_of(group: str, every: Array, level: int) -> dict[str, float]:
    found, count = radius(every, level), len(every)
    if not np.isfinite(found):
        raise InputError(
            f"error bars of {group}", f"zero at more than {100 - level} % of pixels that are wrong", "error bars"
        )
    apart = [share_within(every[one], radius(np.delete(every, one, axis=0), level)) for one in range(count)]
    shares = {"left_out_mean": float(np.mean(apart)), "left_out_least": min(apart)}
    return {"level": level, "radius": found, **shares, "promised": level * count / (count + 1)}
