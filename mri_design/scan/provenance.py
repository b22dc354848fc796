"""Provenance of a scan's noise, coil maps and centre, as codes and numbers; templates put them into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # a file is read without them
    from mri_design.calibration.coils import CoilMapEstimate
    from mri_design.calibration.noise import NoiseEstimate

Place = tuple[int, int]
"""Line and sample of k-space, counted from 0."""
SAMPLES, PART = 3, 0.03
"""A centre that is off by no more than so many samples, or by this part of the grid, stays where it is."""
LEAST_EXPLAINED = 0.95
"""Coil maps that explain less of the coil images than this belong to another scan, or lie otherwise."""


@dataclass(frozen=True, kw_only=True)
class NoiseSamples:
    """Samples that coils measured without excitation.

    Parameters
    ----------
    file : str
        Of their own; empty for noise readouts among those of the scan.
    readouts, samples : int
        Noise readouts, and samples of each channel in them.
    dwells : (float, float)
        Dwell times of theirs and of the data in microseconds, by which their variance is scaled; 0 where not known.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver.
    averages : int
        How many readouts the data are averages of.
    unused : {"", "few samples", "channels"}
        Why they do not count.
    channels : tuple of int
        Numbers of channels that they have, and that of the data, where these differ.
    """

    file: str = ""
    readouts: int = 0
    samples: int = 0
    dwells: tuple[float, float] = (0.0, 0.0)
    bandwidth: float | None = None
    averages: int = 1
    unused: Literal["", "few samples", "channels"] = ""
    channels: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoiseOrigin:
    """Where the noise of a scan is from, and what speaks against it.

    Parameters
    ----------
    source : str
        given: by the user; readouts: the scan's noise readouts; samples: a file of such samples; file: stated with the
        data; scan: a place in the scan that shows noise (`estimate`); slices: the median of those of its slices; ends:
        the end of the readout of a volume; rim: the outermost samples of a trajectory; unknown: not estimated yet.
    given : float
        The given variance, in units of the file.
    measured : NoiseSamples, optional
        Of noise readouts, also where they do not count.
    estimate : NoiseEstimate, optional
        Estimates from places without signal, in units of the file: one is used, or contradicts the given variance.
    slices : (int, str), optional
        Of how many slices, or images, the median is.
    positions : (int, int, int), optional
        First and last of the positions along the readout that hold noise, and how many there are.
    alone : float
        Correlation of two coils for which none counts, as it is more than receivers make; 0 where they count.
    doubt : {"", "signal", "too large", "too small", "falls"}
        The estimate may hold signal; the given noise is far from that of all places; or power falls outwards at the
        rim, as that of signal does.
    raised : float
        How many times the standard deviation was raised to what can be reckoned with.
    limit : {"", "rounding", "iterations"}
        By what that is limited.
    """

    source: Literal["unknown", "given", "readouts", "samples", "file", "scan", "slices", "ends", "rim"] = "unknown"
    given: float = 0.0
    measured: NoiseSamples | None = None
    estimate: NoiseEstimate | None = field(default=None, compare=False)
    slices: tuple[int, str] | None = None
    positions: tuple[int, int, int] | None = None
    alone: float = 0.0
    doubt: Literal["", "signal", "too large", "too small", "falls"] = ""
    raised: float = 1.0
    limit: Literal["", "rounding", "iterations"] = ""

    @property
    def wants_better(self) -> bool:
        """Whether the noise is doubtful, or estimated although there are noise readouts, which cannot be used."""
        return bool(self.doubt or (self.source == "scan" and self.measured is not None and self.measured.unused))


MapsSource = Literal[
    "unknown", "one coil", "given", "espirit", "nlinv", "calibration scan", "gridded", "growing", "each mask"
]


@dataclass(frozen=True, kw_only=True)
class MapsOrigin:
    """Where the coil maps of a scan are from, and what speaks against them.

    Parameters
    ----------
    source : str
        one coil; given: with the data, by a file or by another scan; espirit: gapless centre lines; nlinv: all lines
        measured near the centre, together with the image; calibration scan; gridded: the centre of a trajectory;
        growing: the lines measured so far; each mask: the lines of each mask; unknown: not estimated yet.
    file : str
        That they were given in, or of the scan that they are of; empty where they came with the data.
    of : MapsOrigin, optional
        How those of another scan were estimated there.
    placed : bool
        Whether those were placed by the fields of view of both scans, and not by the grids alone.
    sets : int
        Sets of maps in the file, of which the first counts.
    scaled : (float, float), optional
        From which root-sums-of-squares they were scaled to 1.
    lines, samples : int
        Lines that they rest on, or measured samples where lines are not whole.
    calibration_lines : int
        Centre lines that they are estimated from, at most, or of a plane the side of the square; 0 where none are
        needed. A design has to start with them.
    side : int
        Of the scan's own centre that ESPIRiT takes; 0 where they are from other samples, or given.
    explained : float, optional
        Share of the energy of the central samples that they explain.
    error : float, optional
        Relative error of coils held back as a check; NaN where none could be, None without a check.
    bad : bool
        Whether that speaks against the maps.
    second : bool
        Whether a second set of maps is used with them, since the object reaches beyond its field of view.
    """

    source: MapsSource = "unknown"
    file: str = ""
    of: MapsOrigin | None = None
    placed: bool = False
    sets: int = 1
    scaled: tuple[float, float] | None = None
    lines: int = 0
    samples: int = 0
    calibration_lines: int = 0
    side: int = 0
    explained: float | None = None
    error: float | None = None
    bad: bool = False
    second: bool = False

    @classmethod
    def of_estimate(cls, made: CoilMapEstimate, calibration_lines: int = 0) -> MapsOrigin:
        """The origin of maps that were estimated from the lines at hand."""
        error, bad = made.prediction_error, made.predicts_badly
        rests: dict[str, Any] = {"source": made.method, "lines": made.lines, "samples": made.samples}
        rests["second"] = made.second is not None
        return cls(**rests, calibration_lines=calibration_lines, error=error, bad=bad)


@dataclass(frozen=True)
class Centre:
    """Where zero frequency lies in k-space as it was read, counted from 0.

    Parameters
    ----------
    grid : tuple of int
        Lines and samples of k-space.
    place : tuple of int
        Line and sample that count as the centre.
    known_by : {"assumed", "measured", "given"}
        Measured where the samples show it, there or near enough; assumed to be at ``N // 2`` where they show none.
    shown : tuple of int, optional
        Line and sample at which the samples show it, where that contradicts the given centre.
    gap : int
        Lines from the one at which the centre was expected to the nearest measured one.
    turned : bool
        Whether the origin of the image, too, is its first pixel, as of ``numpy.fft.fft2`` alone, and is moved to the
        middle.
    """

    grid: Place
    place: Place
    known_by: Literal["assumed", "measured", "given"]
    shown: Place | None = None
    gap: int = 0
    turned: bool = False

    @property
    def middle(self) -> Place:
        """Line and sample ``N // 2``."""
        return self.grid[0] // 2, self.grid[1] // 2

    @property
    def shift(self) -> Place:
        """By how many lines and samples k-space is moved so that its centre is at ``N // 2``."""
        return self.middle[0] - self.place[0], self.middle[1] - self.place[1]

    @property
    def unmeasured(self) -> bool:
        """Whether the centre is assumed where nothing near it was measured."""
        return self.known_by == "assumed" and self.gap > tolerance(self.grid[0])

    @property
    def noticeable(self) -> bool:
        """Whether a user has to know of it: it was moved, contradicted, or not measured."""
        return self.unmeasured or self.shown is not None or self.shift != (0, 0)


def tolerance(size: int) -> float:
    """By how many samples of an axis a centre may be off."""
    return max(SAMPLES, PART * size)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Provenance of a scan: of its noise, coil maps and centre, and which part of a file it is.

    Parameters
    ----------
    noise : NoiseOrigin
        Of the noise.
    maps : MapsOrigin
        Of the coil maps.
    centre : Centre, optional
        As stored in the file, if it was searched for.
    doubted_lines : tuple of int
        Lines that hold no more than noise between lines of signal, as if they had not been measured.
    slice : (int, int), optional
        Which slice of how many.
    series : mapping of str to (int, tuple of int)
        Which contrast, repetition, volume and the like was read, and the numbers of all that the file holds, where
        those are several.
    dwell : float
        Dwell time of the samples in microseconds; 0 where it is not known.
    averages : int
        How many readouts each line is from, at least.
    simulated : {"", "images", "ellipses", "ellipsoids"}
        What k-space was simulated from.
    dead_coils : tuple of int
        Coils that measured nothing, which are left out.
    silent_lines : tuple of (int, int)
        Other coils that hold nothing but zeros on lines that were measured, and how many lines that are.
    left_out : mapping of str to tuple
        What a reader left out of a file, or took otherwise than it seems meant, by code, with names and numbers; macros
        of these names put it into words.
    read_as : mapping of str to tuple
        How a reader took a file where nothing was lost by it, in the same way.
    combined : (int, int, float, float), optional
        How many coils were combined into how many, `Compression.lost` and `Compression.left_out`; as many as there
        were, where an object beyond its field of view needs all.
    """

    noise: NoiseOrigin = NoiseOrigin()
    maps: MapsOrigin = MapsOrigin()
    centre: Centre | None = None
    doubted_lines: tuple[int, ...] = ()
    slice: tuple[int, int] | None = None
    series: Mapping[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    dwell: float = 0.0
    averages: int = 1
    simulated: Literal["", "images", "ellipses", "ellipsoids"] = ""
    dead_coils: tuple[int, ...] = ()
    silent_lines: tuple[tuple[int, int], ...] = ()
    left_out: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    read_as: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    combined: tuple[int, int, float, float] | None = None
