"""Witnesses of a scan's noise, held against each other coil by coil, and the rule that says which one speaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.calibration.noise.image_air import ENOUGH_COILS, QUIETEST, ImageAir
from mri_design.scan.calibration.noise.regions import NoiseRegions, median_variance
from mri_design.scan.data import KSpaceData

REPEATS = "differences of repeats"
IMAGE_AIR = "air in the image"
BESIDE = "air beside the object along the readout"
ENDS = "ends of k-space"

OBJECT_BESIDE = "the object fills the readout"
SIGNAL_OUTSIDE = "the outermost samples hold signal"

# Limits on ratios of variances; which ratios scans had is in results/coils/noise.md and, of the last three, in
# results/benchmarks/measured-once.md.
_MORE_THAN_FILTER = 8.0
"""Air in the image over that at the ends of the readout: more than a receiver's filter dampens these."""
_AGREEMENT = 1.5
_MORE_THAN_SIGNAL = 2.0
_MUCH_MORE = 12.0
_FILTER = 6.0
"""Most that a receiver's filter which is seen dampens the ends of the readout by."""
_CHANGED = 4.0
"""Differences of repeats at the centre of k-space over those on most lines: more than a window on k-space makes."""
_CONTRADICTION = 3.0
"""Standard deviation that is given over that of every place, or the inverse, from which on it is doubted."""


@dataclass(frozen=True)
class Witness:
    """What one place in a scan says of the noise.

    Parameters
    ----------
    name : str
        The place, in words.
    variances : float array, shape (coil,)
        Per real component of a measured sample.
    """

    name: str
    variances: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean variance over the coils."""
        return float(self.variances.mean())

    @property
    def text(self) -> str:
        """The standard deviation in words, of several coils their median and range."""
        deviations = np.sqrt(self.variances)
        low, high = (f"{deviation:.3g}" for deviation in (deviations.min(), deviations.max()))
        between = "" if low == high else f" ({low} to {high})"
        return f"{self.name} {np.median(deviations):.3g}{between}"


@dataclass(frozen=True)
class Testimony:
    """The noise of the coils, which witness it is from, and what the others say.

    Parameters
    ----------
    spoke : Witness
        The one that counts.
    others : tuple of Witness
        Those that do not.
    reason : str
        Why it may be wrong, in words; empty where nothing says so.
    """

    spoke: Witness
    others: tuple[Witness, ...] = ()
    reason: str = ""

    @property
    def doubt(self) -> str:
        """Why it may be too large, and how far the witnesses are apart."""
        if not self.reason:
            return ""
        heard = [np.sqrt(one.mean) for one in (self.spoke, *self.others)]
        return f"{self.reason}: it may be too large (by other places {min(heard):.3g} to {max(heard):.3g})"

    @property
    def text(self) -> str:
        """Standard deviations of all witnesses per real component, the one that counts first."""
        rest = "; ".join(other.text for other in self.others)
        return f"{self.spoke.text}, which counts" + (f"; {rest}" if rest else "")

    def overruled(self, variance: float) -> tuple[Testimony, str]:
        """The same where somebody gives the variance, which counts; and why that cannot be, in words.

        Signal makes places too loud, a receiver's filter and a window on k-space make them too quiet: only what all of
        them contradict is told, and where signal is suspected in all, too little noise is not.
        """
        everyone = (self.spoke, *self.others)
        heard = np.sqrt([one.mean for one in everyone])
        given, doubt = float(np.sqrt(variance)), ""
        if given > _CONTRADICTION * heard.max():
            doubt = f"no place in the scan shows more than {heard.max():.3g}"
        elif given < heard.min() / _CONTRADICTION and self.others and not self.reason:
            doubt = f"every place in the scan that shows noise has at least {heard.min():.3g}"
        return Testimony(Witness("given", np.array([variance])), everyone), doubt

    def scaled(self, factor: float) -> Testimony:
        """The same in other units, variances times ``factor``."""
        spoke, *others = (Witness(one.name, one.variances * factor) for one in (self.spoke, *self.others))
        return Testimony(spoke, tuple(others), self.reason)


def testimony(data: KSpaceData, regions: NoiseRegions, air: ImageAir | None) -> Testimony:
    """Hear the witnesses of a scan whose lines are whole, in units of ``regions``.

    1. Differences of two repeats hold noise alone, wherever the object is. They do not count where they are far louder
       at the centre of k-space than on most lines: the object changed.
    2. Air in the image averages over all of k-space and over the readout, as the object does, so that neither a window
       on k-space nor a receiver's filter misleads it. It needs all lines, or a block of half of them at the centre.
       Where it is more than eight times louder than the air at the ends of the readout, which is more than a receiver's
       filter makes, it holds signal. Where the ends of k-space are more than twelve times louder, the object rings
       everywhere in the image, and it is doubted.
    3. Else the air beside the object along the readout and the ends of k-space: the first is too quiet by the
       receiver's filter, the second too loud by signal, or too quiet by a window on k-space (`_from_lines`).

    Parameters
    ----------
    data : KSpaceData
        The scan, for its repeat.
    regions : NoiseRegions
        Of the scan.
    air : ImageAir, optional
        Of a complete scan.
    """
    lines = _from_lines(regions)
    ends = float(regions.corners().mean())
    heard = sorted((lines.spoke, *lines.others), key=lambda one: one.name != BESIDE)
    in_image = None if air is None else Witness(IMAGE_AIR, air.variance())
    found = lines
    if in_image is not None and in_image.mean > 0:
        heard.insert(0, in_image)
        most = _MORE_THAN_FILTER * float(regions.air_beside().mean())
        limit = lines.spoke.mean / (1 if lines.reason else _AGREEMENT)
        if in_image.mean <= most or in_image.mean < limit:
            rings = ends > _MUCH_MORE * in_image.mean
            found = Testimony(in_image, reason=SIGNAL_OUTSIDE if rings else "")
    repeats = None if data.repeat is None else _of_repeats(data, regions)
    if repeats is not None:
        heard.insert(0, repeats)
        found = Testimony(repeats)
    others = tuple(one for one in heard if one.name != found.spoke.name)
    return Testimony(found.spoke, others, found.reason)


def _of_repeats(data: KSpaceData, regions: NoiseRegions) -> Witness | None:
    """Variance by the difference of two repeats, mean of bands of lines; None where the object changed between them."""
    assert data.repeat is not None
    repeat = data.repeat[:, regions.live]
    both = regions.samples[:, np.newaxis] & (repeat != 0)
    difference = np.where(both, repeat / np.float32(regions.peak) - regions.kspace, 0) / np.sqrt(np.float32(2))
    bands = np.array([median_variance(difference[:, :, band]) for band in regions.bands])
    centre = np.abs(np.arange(difference.shape[-1]) - difference.shape[-1] // 2) <= difference.shape[-1] // 16
    loudness = np.array([median_variance(difference[:, :, band][..., centre]).mean() for band in regions.bands])
    if not (bands > 0).all() or loudness[0] > _CHANGED * float(np.median(loudness)):
        return None
    return Witness(REPEATS, bands.mean(axis=0))


def _from_lines(regions: NoiseRegions) -> Testimony:
    """Hold the air beside the object against the ends of k-space.

    A receiver's filter dampens that air: noise rises from both ends of the readout then
    (`NoiseRegions.filter_rises`), and the ends of k-space count, as far as a filter explains how much louder they are.
    Of four coils and more, the filter is what a quarter of them show least of, because signal differs from coil to coil
    and the filter does not. Without a filter the air counts. The ends hold signal where they are more than twice as
    loud for another reason, get quieter towards the ends of the readout, or are more than twelve times as loud.

    Where air beside the object is far louder on the central lines than elsewhere, or than the ends, the object fills
    the readout: there that air counts on the outer quarter of the lines alone, or the ends where they are quieter.
    """
    beside, ends = Witness(BESIDE, regions.air_beside()), Witness(ENDS, regions.corners())
    found, other, reason = beside, ends, ""
    if regions.object_beside():
        reason = OBJECT_BESIDE
        outer = Witness(BESIDE, regions.outer_air_beside())
        found, other = (outer, ends) if outer.mean <= ends.mean else (ends, outer)
    if found.name == BESIDE:
        falls = regions.falls_outwards() and ends.mean > _AGREEMENT * found.mean
        if not reason and (falls or ends.mean > _MUCH_MORE * found.mean):
            reason = SIGNAL_OUTSIDE
        if regions.filter_rises():
            found, other = Witness(ENDS, _by_filter_of_all(ends.variances, found.variances)), found
        elif not reason and ends.mean > _MORE_THAN_SIGNAL * found.mean:
            reason = SIGNAL_OUTSIDE
    return Testimony(found, (other,), reason)


def _by_filter_of_all(ends: NDArray[np.float64], beside: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances at the ends of k-space, no more than the air beside the object times the filter that coils share."""
    if not (beside > 0).all():
        return ends
    shared = float(np.quantile(ends / beside, QUIETEST)) if len(ends) >= ENOUGH_COILS else _FILTER
    return np.asarray(np.minimum(ends, min(shared, _FILTER) * beside))
