"""Slices as runs know them before they begin: with references and facts, and those that studies train and test on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import OwnMaps
from mri_design.design.strategy import Strategy
from mri_design.design.training import ReferenceSlice, TrainingResidual
from mri_design.errors import InputError, UsageError, number_array, option
from mri_design.evaluation.metrics import (
    ImageMetrics,
    RelativeError,
    found_error,
    looks_folded,
    measure,
    reference_noise,
)
from mri_design.experiment.calibration import calibrate, estimates_own_maps, truth_of
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.extent import calibration_for
from mri_design.experiment.inputs import ScanSource, load_scan, require_grid_data
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Image, reconstruct_by_recipe, unexplained
from mri_design.experiment.strategies import make_strategy
from mri_design.kinds import KINDS
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.runs.provenance import (
    centre_words,
    left_out,
    left_out_text,
    part_of_scan,
    phrase,
    simulated_from,
    warn_of_left_out,
    warn_of_noise,
)
from mri_design.runs.work import Work
from mri_design.scan.data import KSpaceData, Orientation, Scan
from mri_design.scan.provenance import MapsOrigin, Provenance
from mri_design.scan.sampling import Sampling, require_whole_lines
from mri_design.status import Convergence, Status

ZERO_FILLED, GRIDDED = "zero-filled", "gridded"
_ITSELF = (ZERO_FILLED, "least-squares")
"""Images that all lines of a scan make: its own."""
_OF_ALL = "it uses all samples of the full scan"
_OF_NOISY = "are simulated from the scan's own image, which holds noise"
_EMPTY = "the reference shows nothing here"
_DARK = "the full scan shows hardly more than noise"
OF_MODULUS = 0.93
"""Error of the modulus over that of the complex image: most of what is missing lies along the phase of the image. From
a third of the lines of six scans of the package (shepp-logan, brain, t2w, t1w, lf-gre, lf-fse) it was .86 to .97."""
_WITHOUT_STREAKS = ("mean", "map")
_LEFT_OUT = "left out of the scan"
_CALIBRATION = ("calibration_lines", "calibration_scan")


def pixel_of(scan: Scan) -> tuple[float, float] | None:
    """Size of a pixel along (ky, kx) of a scan's first slice in millimetres; None if it is not known."""
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
    scan : KSpaceData or TrajectoryData
        The slice, calibrated; of a trajectory the readouts that are used.
    slice_model : SliceModel
        As models take it.
    signal : float
        Signal level that the prior's scales follow.
    lines : sequence of int
        Candidates whose samples give its image, by number.
    number : int
        Of the image in the run.
    given : GivenReference, optional
        The user's reference for errors, instead of the scan's own image.
    folded : bool
        Whether the field of view looks too small for the image.
    misfit : float, optional
        `Image.misfit` of its image.
    """

    scan: Scan
    slice_model: SliceModel
    signal: float
    lines: Sequence[int] = ()
    number: int = 0
    given: GivenReference | None = None
    folded: bool = False
    misfit: float | None = None

    @property
    def unexplained(self) -> bool:
        """Whether the samples of several coils speak against the maps, or against the noise."""
        return unexplained(self.misfit, self.scan.n_coils)

    @cached_property
    def reference(self) -> Array | None:
        """Truth or the scan's own image, in the units of the calibrated data; `shown_reference` is in the input's."""
        return truth_of(self.scan) if self.given is None else None

    @cached_property
    def reference_noise(self) -> float | None:
        """Error that the reference's own noise makes; None for a true image, and for a given one."""
        if self.reference is None or not isinstance(self.scan, KSpaceData):
            return None
        return reference_noise(self.scan, self.reference * self.image_unit, self.image_unit)

    @property
    def image_unit(self) -> float | Array:
        """Factor from images of the calibrated data to the input's units, see `Scan.image_unit`."""
        return self.scan.image_unit()

    @property
    def shown_reference(self) -> Array | None:
        """The reference in the input's units, as images are shown, written and judged."""
        if self.given is not None:
            return self.given.image
        return None if self.reference is None else np.asarray(self.reference * self.image_unit)

    @property
    def reference_source(self) -> str:
        """The reference of errors, in words; empty without one."""
        if self.given is not None:
            return self.given.words
        own = self.reference is not None and self.scan.reference is None
        given = self.scan.provenance.maps.source == "given"
        maps = "" if self.scan.n_coils == 1 else "given" if given else "usual"
        return "" if self.reference is None else phrase("reference", own, maps)

    @property
    def holds_reference(self) -> bool:
        """Whether the lines are all that the reference was made from, where it is the scan's own image."""
        every, on_grid = int(np.sum(self.slice_model.measured)), self.slice_model.candidates.kind.on_grid
        return self.reference_noise is not None and on_grid and len(self.lines) == every

    def judged(self, method: str, made: Image) -> tuple[KnownSlice, list[NamedImage]]:
        """What is known once there is an image in the input's units; and that, and what the lines show without a model.

        Both with their errors; a reference that was given is fitted to the image first. The second one is zero-filled,
        of shots gridded. Nothing is compared with itself: it is missing for an image of that method, and for
        one from all lines of a scan that is its own reference.
        """
        given, on_grid = self.given, self.slice_model.candidates.kind.on_grid
        folded = not self.scan.on_grid and method in _WITHOUT_STREAKS and looks_folded(made.image)
        fitted = None if given is None else given.fitted(made.image)
        known = replace(self, given=fitted, folded=folded, misfit=made.misfit)
        named = known._named(method, made)
        if named.name in (ZERO_FILLED, GRIDDED) or known.holds_reference:
            return known, [named]
        image = np.asarray(self.slice_model.plain_image(self.lines) * self.image_unit)
        plain = Image(image, None, Convergence(Status.CONVERGED, 0, 0.0))
        return known, [named, known._named(ZERO_FILLED if on_grid else GRIDDED, plain)]

    def _named(self, name: str, made: Image) -> NamedImage:
        """An image in the input's units with its errors where there is a truth; of a given one no phase is compared."""
        reference, predicted = self.shown_reference, made.predicted_error
        name = GRIDDED if name == ZERO_FILLED and not self.scan.on_grid else name
        if reference is None:
            return NamedImage(name, made, error=RelativeError(predicted))
        if not reference.any():
            return NamedImage(name, made, error=RelativeError(predicted, unknown=_EMPTY))
        errors = measure(made.image, reference)
        if self.given is not None:
            predicted = None if predicted is None else OF_MODULUS * predicted
            return NamedImage(name, made, errors, RelativeError(predicted, errors.relative_l2, against=self.given.name))
        error, candidates = RelativeError(predicted), self.slice_model.candidates
        if not self.scan.on_grid:
            return NamedImage(name, made, errors, replace(error, found=errors.relative_l2_complex))
        if self.holds_reference:  # least squares of all lines are the reference, and have no errors
            return NamedImage(name, made, None if name in _ITSELF else errors, replace(error, unknown=_OF_ALL))
        if self.reference_noise is not None and not candidates.kind.on_grid:
            return NamedImage(name, made, errors, replace(error, unknown=f"its {candidates.unit}s {_OF_NOISY}"))
        found = self.found_error(made.image, self.lines)
        return NamedImage(name, made, errors, replace(error, found=found, unknown=_DARK if found is None else ""))

    def found_error(self, image: Array, lines: Sequence[int]) -> float | None:
        """`evaluation.metrics.found_error` of an image of some lines, in the input's units."""
        reference, used = self.shown_reference, np.zeros(self.slice_model.candidates.size, dtype=bool)
        used[list(lines)] = True
        assert reference is not None and isinstance(self.scan, KSpaceData)
        shape = self.slice_model.candidates.shape
        return found_error(image, self.scan, reference, self.image_unit, used.reshape(shape))

    def acceleration(self, lines: Sequence[int]) -> float:
        """Samples of the grid over samples measured on ``lines``; lines over lines where each of them is whole."""
        candidates, samples = self.slice_model.candidates, self.scan.samples_in_lines
        if samples is None or not candidates.kind.with_holes:
            measured, whole = candidates.part_of_grid(len(lines))
            return whole / measured
        return samples.size / int(samples[list(lines)].sum())

    def _facts(self) -> Iterable[tuple[str, str, object]]:
        """Name in a manifest, row of a report's table (empty where it is missing there), and what they say."""
        data, known = self.scan, self.scan.provenance
        noise, unread = known.noise, left_out(data)
        unit = float(np.sqrt(np.mean(np.square(self.image_unit, dtype=np.float64))))  # of pixels, as noise adds up
        if not data.on_grid:
            yield "", "samples", data.kspace.shape[-1]
            yield "readouts", "", self.slice_model.candidates.size
            yield "matrix", "", list(data.readouts.grid)
        places = phrase("noise_places", noise) if noise.estimate is not None else ""
        yield "noise_source", "noise", phrase("noise", noise)
        yield "noise_witnesses" if data.on_grid else "", "noise by place", places
        yield "", "coils", phrase("coils", known)
        yield "coil_maps_source", "coil maps", phrase("maps", known.maps)
        level = float(np.sqrt(self.slice_model.noise_variance)) * unit
        yield "noise_sd_per_real_component", "noise sd per real component", level
        yield "signal_level", "signal level", float(self.signal) * unit
        yield "reference_source", "reference", self.reference_source
        yield "part_of_scan", "part of the scan", part_of_scan(data)
        yield "left_out_of_scan", "", unread
        yield "", _LEFT_OUT, ". ".join(f"{name.replace('_', ' ')}: {text}" for name, text in unread.items())
        yield "centre_of_kspace", "centre of k-space", centre_words(data)
        yield "misfit_of_samples", "", None if self.misfit is None else float(f"{self.misfit:.4g}")
        yield "misfit_doubt", "misfit of the samples", phrase("unexplained", self.misfit) if self.unexplained else None
        yield "field_of_view_doubt", "field of view", phrase("folded") if self.folded else None
        if data.on_grid:
            yield "coils_without_samples", "", list(known.dead_coils)
            yield "coils_silent_on_lines", "", [list(pair) for pair in known.silent_lines]
            yield "coil_compression", "", phrase("coils", Provenance(combined=known.combined))
            yield "noise_readouts", "", phrase("noise_samples", noise.measured) if noise.measured is not None else ""
            yield from (
                (code, "", phrase(code, *known.read_as[code])) for code in _CALIBRATION if code in known.read_as
            )
            sampling = data.samples_in_lines
            yield "reference_noise", "", self.reference_noise
            yield "missing_samples", "", None if sampling is None else phrase("missing_samples", Sampling(sampling))
            yield "geometry", "", None if data.geometry is None else data.geometry[0].as_settings()
            yield "source_image", "", None if data.source is None else data.source.as_settings()

    def settings(self) -> dict[str, object]:
        """Noise, coil maps, signal, what is missing or left out, place and source of the slice, for a manifest."""
        return {name: fact for name, _, fact in self._facts() if name and fact not in (None, "", {}, [])}

    def summary(self) -> dict[str, object]:
        """The main of `settings` for a report's table."""
        return {row: fact for _, row, fact in self._facts() if row and fact not in (None, "", {}, [])}


def load_images(
    sources: Sequence[ScanSource], recipe: Recipe, work: Work, count: Callable[[int], int] | None = None
) -> tuple[list[ReferenceSlice], Orientation]:
    """Calibrated slices whose truth is known, and the orientation of the first.

    Parameters
    ----------
    sources : sequence of ScanSource
        Files or phantoms, their slices, coil maps and other images of their objects.
    recipe : Recipe
        Simulation, calibration and prior.
    work : Work
        Its seed is that of simulations, and parts of a file that were not read are reported as a warning.
    count : callable, optional
        Lines or samples of the grid -> how many the smallest mask has, which bounds the centre that coil maps take.

    Raises
    ------
    InputError
        Where an input cannot be used or is not fully sampled.
    UsageError
        Where two inputs have one name.
    """
    images, orientations = list[ReferenceSlice](), list[Orientation]()
    for source in sources:
        data = require_grid_data(source.loaded or load_scan(source.path, recipe, work.seed, source.maps), source.path)
        warn_of_left_out(data, recipe, work.progress)
        orientations.append(data.orientation)
        companions = [CompanionImages.read(file, recipe, work.seed) for file in source.companions]
        wanted = source.slices.indices(data.n_slices)
        for index in wanted:
            chosen = _complete_slice(data, index, source.path, recipe)
            beside = companions_over(companions, chosen, index, data.n_slices, several=len(wanted) > 1)
            image, scan = _reference_slice(chosen, f"{data.name}[{index}]", source.path, recipe, count)
            model, place = replace(image.slice_model, companions=beside), data.geometry and data.geometry[index]
            images.append(replace(image, slice_model=model, place=place, number=(index, data.n_slices)))
            if index == wanted[0]:  # all slices of a scan have its noise
                warn_of_noise(scan, work.progress)
    if len({image.name for image in images}) < len(images):
        raise UsageError("two inputs have the same name and slice; rename one of the files")
    return images, next(iter(orientations), "ky-rows")


def _complete_slice(data: KSpaceData, index: int, path: str, recipe: Recipe) -> KSpaceData:
    """One slice, refused without a truth."""
    chosen = data.select_slice(index)
    if not chosen.fully_sampled and chosen.reference is None:
        raise InputError(
            field=path,
            got=f"a scan that is not fully sampled: {phrase('missing', chosen.incomplete)}",
            wanted="a fully sampled scan, whose image is the truth that errors are measured against",
            cure="Give a complete scan, or one with a reference image; recon reconstructs what is there.",
        )
    if not KINDS[recipe.design.encoding].square:
        require_whole_lines(path, chosen.samplings[0])
    return chosen


def _reference_slice(
    chosen: KSpaceData, name: str, path: str, recipe: Recipe, count: Callable[[int], int] | None
) -> tuple[ReferenceSlice, KSpaceData]:
    """A slice with its truth; where maps are not known, masks have those of their own lines."""
    kind = KINDS[recipe.design.encoding]
    calibrating = calibration_for(recipe, None if count is None else count(kind.whole(chosen.grid_shape)))
    grows = kind.centre_first and estimates_own_maps(chosen)
    scan = calibrate(chosen, recipe, calibration_lines=None if grows else calibrating, ordinary=True)
    reference, unit, known = truth_of(scan), scan.image_unit(), scan.provenance
    assert reference is not None
    image = ReferenceSlice(
        name,
        scan.slice_model(0, **recipe.slice_settings),
        reference,
        calibration_lines=(grows and calibrating) or known.maps.calibration_lines,
        simulated=simulated_from(chosen),
        noise=reference_noise(scan, reference * unit, unit),
        unit=unit,
        source=path,
        left_out=left_out_text(chosen.known(slice=None)),
        noise_source=phrase("noise", known.noise),
        maps_source=phrase("maps", known.maps),
        pixel=pixel_of(scan),
        own_maps=OwnMaps(recipe.coils.method, scan.noise_variance or 0.0) if grows else None,
    )
    return image, scan


def require_apart(training: Sequence[ReferenceSlice], tests: Sequence[ReferenceSlice]) -> None:
    """Refuse an image that is used for training and for testing.

    Raises
    ------
    UsageError
        Naming the first.
    """
    both = {image.name for image in tests} & {image.name for image in training}
    if both:
        raise UsageError(f"{sorted(both)[0]} is both a test and a training image")


def knowing_rule(name: str, scans: Sequence[ReferenceSlice], recipe: Recipe, seed: int) -> Strategy:
    """The rule called ``name`` for training scans; it goes by the errors of what the recipe reconstructs.

    Those of the posterior mean are the design's own: it infers after every line anyway. In a plane the rule goes by
    them whatever the recipe reconstructs.
    """
    rule = cast(TrainingResidual, make_strategy(name, recipe.design.encoding))
    if recipe.reconstruction.method == "mean" or KINDS[recipe.design.encoding].square:
        return rule.knowing(scans)
    return rule.knowing(scans, _imaging([scan.slice_model for scan in scans], recipe, seed))


def _imaging(slices: Sequence[SliceModel], recipe: Recipe, seed: int) -> Callable[[int, Sequence[int]], Array]:
    """Reconstruction by the recipe of the slice of a number from some lines."""
    return lambda index, lines: reconstruct_by_recipe(slices[index], lines, recipe, seed).image


def knowing_oracle(
    oracle: Any, slices: Sequence[SliceModel], truths: Sequence[Array | None], recipe: Recipe, seed: int
) -> Strategy:
    """An oracle for slices whose truth is known; it reconstructs as the recipe does.

    Raises
    ------
    InputError
        Where a slice has no reference.
    """
    known = [truth for truth in truths if truth is not None]
    if len(known) < len(slices):
        raise InputError(
            field=f"strategy {oracle.name}",
            got="a scan without a reference image",
            wanted="the truth to look at: simulated or fully sampled k-space",
            cure="Oracles are marks to compare with; name another strategy.",
        )
    found: Strategy = oracle.knowing(known, _imaging(slices, recipe, seed))
    return found


def facts_of_all(
    images: Iterable[ReferenceSlice], judged: Iterable[ReferenceSlice] = ()
) -> tuple[dict[str, object], dict[str, object]]:
    """What was left out of the files of several slices, and where their noise and coil maps are from.

    Parameters
    ----------
    images, judged : iterable of ReferenceSlice
        Slices of which all is known, and those that masks are judged on: where these have no maps, each mask has those
        of its own lines.

    Returns
    -------
    settings, summary : dict
        For a manifest, and for a report's table. Files are named without their folders.
    """
    judged = list(judged)
    own = {image.name for image in judged if image.own_maps is not None}
    listed = [(Path(image.source).name, image) for image in (*judged, *images)]
    left = {file: image.left_out for file, image in listed if image.left_out}
    noise = {file: image.noise_source for file, image in listed if image.noise_source}
    maps = {
        image.name: phrase("maps", MapsOrigin(source="each mask")) if image.name in own else image.maps_source
        for _, image in listed
        if image.slice_model.n_coils > 1
    }
    settings = {"left_out_of_scans": left, "noise_sources": noise, "coil_maps_sources": maps}
    summary = {"left out of the scan": _by_name(left), "noise": _alike(noise), "coil maps": _alike(maps)}
    return {key: value for key, value in settings.items() if value}, {
        row: text for row, text in summary.items() if text
    }


def _by_name(facts: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in facts.items())


def _alike(facts: Mapping[str, str]) -> str:
    """A fact of several scans: once where it is the same of all."""
    return next(iter(facts.values())) if len({*facts.values()}) == 1 else _by_name(facts)


_TURNS: Mapping[str, Callable[[Array], Array]] = {
    "flipped along ky": lambda pixels: pixels[::-1],
    "flipped along kx": lambda pixels: pixels[:, ::-1],
    "turned by 180 degrees": lambda pixels: pixels[::-1, ::-1],
    "with rows and columns exchanged": lambda pixels: pixels.T,
    "turned by 90 degrees": lambda pixels: pixels.T[::-1],
    "turned by 270 degrees": lambda pixels: pixels.T[:, ::-1],
    "with rows and columns exchanged and turned by 180 degrees": lambda pixels: pixels.T[::-1, ::-1],
}
ARRAY = "the array"
"""Name of images that are given in memory."""
_MUCH_BETTER = 0.7
"""An image lies otherwise than its reference where the error would be less than this part of what it is."""


@dataclass(frozen=True)
class GivenReference:
    """Images of a user's file that slices are measured against.

    Parameters
    ----------
    name : str
        Of the file.
    images : float or complex array, shape (image, ky, kx)
        In any unit; only their magnitude counts.
    factor : float
        What the file's image was multiplied by, of one that is fitted to the image that is judged.
    turned : str
        How it would fit much better; empty where it fits best as it lies.
    """

    name: str
    images: NDArray[np.generic]
    factor: float = 1.0
    turned: str = ""

    @property
    def image(self) -> Array:
        """The one of a single slice, shape (ky, kx)."""
        return np.asarray(self.images[0])

    @property
    def words(self) -> str:
        """The reference, and what was done with it."""
        return phrase("given_reference", self.name, [self.factor])

    @property
    def caption(self) -> str:
        """What errors mean, for a table of them."""
        return phrase("given_errors", self.name, [self.factor])

    @classmethod
    def of_array(cls, images: object) -> GivenReference:
        """Images in memory, (ky, kx) or (image, ky, kx)."""
        array = number_array("reference", images, kind="finite")
        if array.ndim not in (2, 3):
            raise InputError("reference", f"shape {array.shape}", "images (ky, kx) or (slice, ky, kx)")
        return cls(ARRAY, array.reshape(-1, *array.shape[-2:]))

    @property
    def field(self) -> str:
        """What an error calls them."""
        return "reference" if self.name == ARRAY else f"reference {self.name}"

    def of_slices(self, numbers: Sequence[int], count: int, grid: tuple[int, int]) -> dict[int, GivenReference]:
        """The one image of every slice, by its number.

        Parameters
        ----------
        numbers : sequence of int
            Slices that are reconstructed.
        count : int
            Slices of the input. A file of as many images has one for each of them; another one has an image for each of
            ``numbers``, in their order.
        grid : tuple of int
            Pixels (ky, kx).

        Raises
        ------
        InputError
            For images of another number or size, and such without signal.
        """
        images, by_number = self.images, len(self.images) == count
        if images.shape[1:] != grid or not (by_number or len(images) == len(numbers)):
            got = f"{len(images)} x {images.shape[1]} x {images.shape[2]} (images, rows, columns)"
            wanted = f"{len(numbers)} x {grid[0]} x {grid[1]}, the slices reconstructed, their ky and kx"
            wanted += f"; or images of all {count} slices" if count != len(numbers) else ""
            cure = "Give an image on the matrix of the reconstruction, with ky along rows as recon.npy has it"
            turn = " (turn it by numpy.transpose)." if images.shape[:0:-1] == grid else "."
            raise InputError(self.field, got, wanted, cure + turn)
        places = {number: number if by_number else place for place, number in enumerate(numbers)}
        for number, place in places.items():
            if not images[place].any():
                cure = f"Leave the slice out with {option('slices')}."
                raise InputError(self.field, f"all zeros for slice {number}", "an image with signal", cure)
        return {number: GivenReference(self.name, images[place : place + 1]) for number, place in places.items()}

    def fitted(self, image: Array) -> GivenReference:
        """Scale the first to an image (ky, kx) by the one factor that leaves the least squares of magnitudes.

        It has the phase of that image.

        Raises
        ------
        InputError
            Where no pixel is bright in both.
        """
        # in double precision and scaled to a peak of one: squares of scanners' units would leave the range
        own, theirs = (np.abs(one).astype(np.float64) for one in (image, self.image))
        peak = theirs.max()
        given = theirs / peak
        factor = float(np.vdot(given, own) / np.vdot(given, given)) / peak
        if not factor > 0:
            got, wanted = "an image that is zero wherever the reconstruction is not", "one of the same object and place"
            raise InputError(self.field, got, wanted)
        phase = np.exp(1j * np.angle(image))
        fitted = np.asarray(factor * theirs * phase, dtype=np.complex64)
        return GivenReference(self.name, fitted[np.newaxis], factor, _better_turned(given, own))


def _better_turned(given: Array, image: Array) -> str:
    """How a reference fits an image much better than it does as it lies, each scaled to fit; empty if in no way."""

    def missed(pixels: Array) -> float:
        alike = float(np.vdot(pixels, image)) / float(np.linalg.norm(pixels) * np.linalg.norm(image))
        return 1 - min(alike, 1.0) ** 2

    errors = {name: missed(turn(given)) for name, turn in _TURNS.items() if turn(given).shape == image.shape}
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < _MUCH_BETTER**2 * missed(given) else ""
