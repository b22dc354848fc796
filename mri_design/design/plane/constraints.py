"""What a 3-D sequence asks of the samples of its plane: a shutter, partial Fourier, a region for coil calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts, require_instance, require_numbers
from mri_design.operators.encodings import PlaneEncoding


@dataclass(frozen=True)
class PlaneConstraints:
    """Which samples of a plane a sequence can and must measure. Nothing is asked by default.

    Parameters
    ----------
    plane : PlaneEncoding
        The samples.
    shutter : bool
        Whether samples outside of the ellipse that touches the plane's edges are left out (elliptical scanning).
    partial_fourier : float, optional
        Share p of the plane that is kept along ky, 0.5 to 1: rows with ky >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of ky that partial Fourier keeps whole.
    calibration : int
        Side of the square around DC that every design measures at the start; 0 is none.
    centre : int
        That many samples nearest to DC are required too.

    Raises
    ------
    InputError
        For values out of range. What contradicts a scan is refused where its samples are known (`needed`).
    """

    plane: PlaneEncoding
    _: KW_ONLY
    shutter: bool = False
    partial_fourier: float | None = None
    whole_half: Literal["positive", "negative"] = "positive"
    calibration: int = 0
    centre: int = 0
    max_jump: None = None

    def __post_init__(self) -> None:
        require_instance(bool, wanted="true or false", shutter=self.shutter)
        require_counts(least=0, **{"calibration region": self.calibration, "forced centre": self.centre})
        if self.partial_fourier is not None:
            require_numbers(least=0.5, most=1.0, **{"partial Fourier": self.partial_fourier})
        if self.whole_half not in ("positive", "negative"):
            raise InputError(field="whole half", got=repr(self.whole_half), wanted="positive or negative")

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Samples that shutter and partial Fourier leave, (size,)."""
        plane = self.plane
        flags = plane.radius <= 1 if self.shutter else np.ones(plane.size, dtype=bool)
        if self.partial_fourier is not None:
            n = plane.grid[0]
            beyond = int(np.ceil(self.partial_fourier * n - 1e-9)) - (n + 1) // 2
            ky = plane.frequencies[:, 0]
            flags = flags & (ky >= -beyond if self.whole_half == "positive" else ky <= beyond)
        return flags

    @cached_property
    def calibration_region(self) -> NDArray[np.bool_]:
        """The square around DC, (size,); on a smaller plane all of its side."""
        inside = np.ones(self.plane.size, dtype=bool)
        for axis, n in enumerate(self.plane.grid):
            side = min(self.calibration, n)
            k = self.plane.frequencies[:, axis]
            inside &= (k >= -(side // 2)) & (k < side - side // 2)
        return inside

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Samples that may be measured at all, (size,).

        Raises
        ------
        InputError
            Where the plane is another one.
        """
        if n_lines != self.plane.size:
            raise InputError(field="constraints", got=f"a plane of {self.plane.size} samples", wanted=f"{n_lines}")
        return self.kept.copy()

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Samples that no design may lack, from DC outwards.

        Raises
        ------
        InputError
            Where one of them may not be measured, or holds no data.
        """
        free = measurable & self.kept
        flags = self.calibration_region.copy()
        flags[self.plane.outwards[: max(self.centre, forced)]] = True
        lost = int((flags & ~free).sum())
        if lost:
            raise InputError(
                field="calibration region",
                got=f"{int(flags.sum())} samples, of which {lost} hold no data or may not be measured",
                wanted="samples inside the shutter and the kept part of k-space",
                cure="Take a smaller region, or keep more of k-space.",
            )
        outwards = self.plane.outwards
        return tuple(outwards[flags[outwards]].tolist())

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Samples to measure before the first decision: those required, and the nearest to DC up to ``count`` in all.

        Raises
        ------
        InputError
            Where a required sample cannot be measured, or there are not that many.
        """
        needed = self.needed(measurable, forced)
        free = measurable & self.kept
        if not 1 <= count <= int(free.sum()):
            raise InputError(field="start samples", got=str(count), wanted=f"1 to {int(free.sum())}")
        flags = np.zeros(self.plane.size, dtype=bool)
        flags[list(needed)] = True
        outwards = self.plane.outwards
        others = outwards[free[outwards] & ~flags[outwards]]
        flags[others[: max(count - len(needed), 0)]] = True
        return tuple(outwards[flags[outwards]].tolist())

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """Samples that a design can have which begins with ``start``, those included."""
        free = measurable & self.kept
        free[list(start)] = False
        return len(start) + int(free.sum())
