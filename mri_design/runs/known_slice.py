"""A slice as a run knows it before it begins: its data, model, reference and facts; images with their errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.brief import briefly
from mri_design.evaluation.metrics import ImageMetrics, RelativeError, found_error, measure, reference_noise
from mri_design.experiment.calibration import PreparedScan
from mri_design.experiment.reconstruction import Image
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.runs.given_reference import GivenReference
from mri_design.runs.provenance import centre_words, left_out, part_of_scan, told
from mri_design.scan.data import KSpaceData, Scan
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import Sampling
from mri_design.status import Convergence, Status

ZERO_FILLED, GRIDDED = "zero-filled", "gridded"
_ITSELF = (ZERO_FILLED, "least-squares")
"""Images that all lines of a scan make: its own."""
_OF_ALL = "it is made from all that the full scan has"
_OF_NOISY = "are made from the scan's own image, which holds noise"
_EMPTY = "the reference shows nothing here"
_DARK = "the full scan shows hardly more than noise"
OF_MODULUS = 0.93
"""Error of the modulus over that of the complex image: most of what is missing lies along the phase of the image. From
a third of the lines of six scans of the package (shepp-logan, brain, t2w, t1w, lf-gre, lf-fse) it was .86 to .97."""
USUAL_MAPS = "maps of its 24 central lines, whatever lines a run calibrates with"
_LEFT_OUT = "left out of the scan"
_CALIBRATION = ("calibration_lines", "calibration_scan")


def pixel_of(scan: Scan) -> tuple[float, float] | None:
    """Size of a pixel along (ky, kx) of a scan's first slice in millimetres; None where nobody says."""
    return None if scan.geometry is None else scan.geometry[0].pixel


@briefly
@dataclass(frozen=True)
class NamedImage:
    """An image on the way into a table or a figure.

    Parameters
    ----------
    name : str
        Method that made it.
    reconstruction : Image
        Image and error bars.
    errors : ImageMetrics, optional
        Of what is seen, against the reference, with its noise: they rank images. None where there is no reference.
    error : RelativeError
        What the image is judged by.
    """

    name: str
    reconstruction: Image
    errors: ImageMetrics | None = None
    error: RelativeError = field(default_factory=RelativeError)


@briefly
@dataclass(frozen=True, kw_only=True)
class KnownSlice:
    """One slice, on a grid or along a trajectory, and what a run knew about it before it began.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        The slice as read; of a trajectory the readouts that are used.
    scan : PreparedScan
        Calibrated.
    slice_model : SliceModel
        As models take it.
    signal : float
        Signal level that the prior's scales follow.
    reference : complex array, shape (ky, kx), or None
        Image behind all errors, in the units of the calibrated data; `shown_reference` is in the input's.
    reference_noise : float or None
        Error that the reference's own noise makes, see `reference_noise`; None for a true image, and for a given one.
    given : GivenReference, optional
        What somebody gave to measure errors against, in the place of ``reference``.
    folded : bool
        Whether the field of view looks too small for the image.
    """

    data: Scan
    scan: PreparedScan
    slice_model: SliceModel
    signal: float
    reference: Array | None
    reference_noise: float | None = None
    given: GivenReference | None = None
    folded: bool = False

    @classmethod
    def of(
        cls,
        data: Scan,
        scan: PreparedScan,
        slice_model: SliceModel,
        signal: float,
        given: GivenReference | None = None,
        *,
        folded: bool = False,
    ) -> KnownSlice:
        """The slice with the reference that was given, or that the scan brings, if it brings one."""
        reference, unit = scan.reference(0) if given is None else None, scan.image_unit(0)
        noise = None
        if reference is not None and isinstance(scan.data, KSpaceData):
            noise = reference_noise(scan.data, reference * unit, unit)
        return cls(
            data=data if data.on_grid else scan.data,
            scan=scan,
            slice_model=slice_model,
            signal=signal,
            reference=reference,
            reference_noise=noise,
            given=given,
            folded=folded,
        )

    @property
    def image_unit(self) -> float | Array:
        """Factor from images of the calibrated data to the input's units, see `PreparedScan`."""
        return self.scan.image_unit(0)

    @property
    def shown_reference(self) -> Array | None:
        """The reference in the input's units, as images are shown, written and judged."""
        if self.given is not None:
            return self.given.image
        return None if self.reference is None else np.asarray(self.reference * self.image_unit)

    @property
    def reference_source(self) -> str:
        """The reference of errors, in words; empty where there is none."""
        if self.given is not None:
            return self.given.words
        if self.reference is None:
            return ""
        if self.data.reference is not None:
            return "the true image"
        own = "the scan's own image from all its lines"
        if self.data.n_coils == 1:
            return own
        return f"{own}, its coils combined by the {'maps given' if self.scan.maps_from is None else USUAL_MAPS}"

    def holds_reference(self, lines: Sequence[int]) -> bool:
        """Whether these are all lines that the reference was made from, where it is the scan's own image."""
        on_grid = self.slice_model.candidates.kind.on_grid
        return self.reference_noise is not None and on_grid and len(lines) == int(np.sum(self.slice_model.measured))

    def judged(self, method: str, made: Image, lines: Sequence[int]) -> list[NamedImage]:
        """An image in the input's units, and what the lines show without a model, with their errors.

        The second one is zero-filled, of shots gridded. Nothing is compared with itself: it is missing beside an image
        of that method, and from all lines of a scan that is its own reference.
        """
        named = self._named(method, made, lines)
        if named.name in (ZERO_FILLED, GRIDDED) or self.holds_reference(lines):
            return [named]
        image = np.asarray(self.slice_model.plain_image(lines) * self.image_unit)
        plain = Image(image, None, Convergence(Status.CONVERGED, 0, 0.0))
        on_grid = self.slice_model.candidates.kind.on_grid
        return [named, self._named(ZERO_FILLED if on_grid else GRIDDED, plain, lines)]

    def _named(self, name: str, made: Image, lines: Sequence[int]) -> NamedImage:
        """An image in the input's units with its errors where there is a truth; of a given one no phase is compared."""
        reference, predicted = self.shown_reference, made.predicted_error
        name = GRIDDED if name == ZERO_FILLED and not self.data.on_grid else name
        if reference is None:
            return NamedImage(name, made, error=RelativeError(predicted))
        if not reference.any():
            return NamedImage(name, made, error=RelativeError(predicted, unknown=_EMPTY))
        errors = measure(made.image, reference)
        if self.given is not None:
            predicted = None if predicted is None else OF_MODULUS * predicted
            return NamedImage(name, made, errors, RelativeError(predicted, errors.relative_l2, against=self.given.name))
        error, candidates = RelativeError(predicted), self.slice_model.candidates
        if not self.data.on_grid:
            return NamedImage(name, made, errors, replace(error, found=errors.relative_l2_complex))
        if self.holds_reference(lines):  # least squares of all lines are the reference, and have no errors
            return NamedImage(name, made, None if name in _ITSELF else errors, replace(error, unknown=_OF_ALL))
        if self.reference_noise is not None and not candidates.kind.on_grid:
            return NamedImage(name, made, errors, replace(error, unknown=f"its {candidates.unit}s {_OF_NOISY}"))
        found = self.found_error(made.image, lines)
        return NamedImage(name, made, errors, replace(error, found=found, unknown=_DARK if found is None else ""))

    def found_error(self, image: Array, lines: Sequence[int]) -> float | None:
        """`evaluation.metrics.found_error` of an image of some lines, in the input's units."""
        reference, used = self.shown_reference, np.zeros(self.slice_model.candidates.size, dtype=bool)
        used[list(lines)] = True
        assert reference is not None and isinstance(self.scan.data, KSpaceData)
        shape = self.slice_model.candidates.shape
        return found_error(image, self.scan.data, reference, self.image_unit, used.reshape(shape))

    def acceleration(self, lines: Sequence[int]) -> float:
        """Samples of the grid over samples measured on ``lines``; lines over lines where each of them is whole."""
        candidates, samples = self.slice_model.candidates, self.data.samples_in_lines
        if samples is None or not candidates.kind.with_holes:
            measured, whole = candidates.part_of_grid(len(lines))
            return whole / measured
        return samples.size / int(samples[list(lines)].sum())

    def _facts(self) -> Iterable[tuple[str, str, object]]:
        """Name in a manifest, row of a report's table (empty where it is missing there), and what they say."""
        data, known = self.data, self.scan.provenance
        noise, unread = known.noise, left_out(data)
        unit = float(np.sqrt(np.mean(np.square(self.image_unit, dtype=np.float64))))  # of pixels, as noise adds up
        if not data.on_grid:
            yield "", "samples", data.kspace.shape[-1]
            yield "readouts", "", self.slice_model.candidates.size
            yield "matrix", "", list(data.readouts.grid)
        places = told("noise_places", noise) if noise.estimate is not None else ""
        yield "noise_source", "noise", told("noise", noise)
        yield "noise_witnesses" if data.on_grid else "", "noise by place", places
        yield "", "coils", told("coils", known)
        yield "coil_maps_source", "coil maps", told("maps", known.maps)
        level = float(np.sqrt(self.slice_model.noise_variance)) * unit
        yield "noise_sd_per_real_component", "noise sd per real component", level
        yield "signal_level", "signal level", float(self.signal) * unit
        yield "reference_source", "reference", self.reference_source
        yield "part_of_scan", "part of the scan", part_of_scan(data)
        yield "left_out_of_scan", "", unread
        yield "", _LEFT_OUT, ". ".join(f"{name.replace('_', ' ')}: {text}" for name, text in unread.items())
        yield "centre_of_kspace", "centre of k-space", centre_words(data)
        yield "field_of_view_doubt", "field of view", told("folded") if self.folded else None
        if data.on_grid:
            yield "coils_without_samples", "", list(known.dead_coils)
            yield "coil_compression", "", told("coils", Provenance(combined=known.combined))
            yield "noise_readouts", "", told("noise_samples", noise.measured) if noise.measured is not None else ""
            yield from ((name, "", text) for name, text in data.header.items() if name in _CALIBRATION)
            sampling = data.samples_in_lines
            yield "reference_noise", "", self.reference_noise
            yield "missing_samples", "", None if sampling is None else Sampling(sampling).missing_samples
            yield "geometry", "", None if data.geometry is None else data.geometry[0].as_settings()
            yield "source_image", "", None if data.source is None else data.source.as_settings()

    def settings(self) -> dict[str, object]:
        """Noise, coil maps, signal, what is missing or left out, place and source of the slice, for a manifest."""
        return {name: fact for name, _, fact in self._facts() if name and fact not in (None, "", {}, [])}

    def summary(self) -> dict[str, object]:
        """The main of `settings` for a report's table."""
        return {row: fact for _, row, fact in self._facts() if row and fact not in (None, "", {}, [])}
