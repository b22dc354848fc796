"""Several slices of a scan, reconstructed one by one: what is finished is kept, so that an interrupted run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, option
from mri_design.estimation.noise_map import NoiseMap
from mri_design.evaluation.plots.panels import ImagePanel
from mri_design.evaluation.run_folder import PROGRESS, RunFolder, read_kept
from mri_design.evidence.error_bars import StdFactor
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, check_size_of_draws
from mri_design.experiment.volume import (
    NEIGHBOURS,
    NOT_AROUND,
    AnySlice,
    Around,
    Frames,
    Shared,
    Slices,
    Survey,
    neighbours,
)
from mri_design.model.companion import Companion
from mri_design.runs.given_reference import GivenReference, GivenReferences
from mri_design.runs.image_sections import CompanionPictures, Rows, image_rows
from mri_design.runs.recon.calibrated_on import FIELD, Group, coverage_of
from mri_design.runs.recon.one_slice import REPORT, ReadySlice, recipe_for, what_is_used
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import (
    FOLDED,
    KnownSamples,
    KnownScan,
    NamedImage,
    simulated_from,
    warn_of_left_out,
    warn_of_maps,
    warn_of_noise,
)
from mri_design.runs.verdicts import RelativeError
from mri_design.runs.workers import Workers
from mri_design.scan.calibration import LOST
from mri_design.scan.data import TrajectoryData, without_part
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.atomic import write_json
from mri_design.scan.io.numpy_files import read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS
from mri_design.status import Convergence, Status

SLICES = "slices"
"""Name of the stage in which slices are reconstructed, after that in which neighbours are."""
OTHER_IMAGES = "other images"
"""Column of metrics.csv: those that the prior of a slice knows, "none" where it was offered some and knows none."""
_OTHERS = "other_images"
_ARRAYS = ("recon", "std", "noise", "g_factor", "coil_maps", "draws", "reference", _OTHERS)
_MODULUS = "modulus"
_AHEAD = 2
"""Slices in memory for each process."""


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """What is known of a reconstructed slice beside its arrays.

    Parameters
    ----------
    rows : list of mappings
        Of metrics.csv.
    status : str
        How the reconstruction ended, one of `Status`.
    iterations, matvecs : int
        Of the reconstruction.
    residual : float
        See `Convergence`.
    noise_only : bool
        Whether the slice holds no more than noise.
    folded : bool
        Whether its field of view looks too small.
    account : mapping
        `Reconstruction.account`.
    std_factor : mapping, optional
        `StdFactor.facts`.
    left_out : str
        See `Reconstruction`.
    reference_scale : float, optional
        What its image of a file of references was multiplied by.
    replicas : int
        See `NoiseMap`.
    others : sequence of (str, str)
        Titles and captions of pictures of its companions, whose moduli are the array ``other_images``.
    about_others : str
        See `CompanionPictures`.
    lost : float, optional
        See `Compression`; None where coils are not combined.
    """

    rows: Rows
    status: str
    iterations: int
    matvecs: int
    residual: float
    noise_only: bool
    folded: bool
    account: Mapping[str, str]
    std_factor: Mapping[str, Any] | None
    left_out: str
    reference_scale: float | None = None
    replicas: int = 0
    others: Sequence[Sequence[str]] = ()
    about_others: str = ""
    lost: float | None = None

    @property
    def converged(self) -> bool:
        """Whether the reconstruction did."""
        return self.status == Status.CONVERGED.value


@dataclass(frozen=True)
class SliceImage:
    """A reconstructed slice: in the input's units, as it is kept.

    Parameters
    ----------
    number : int
        Of the slice in the scan.
    arrays : mapping of str to array
        ``recon`` (ky, kx), and where there are some ``std``, ``noise``, ``g_factor``, ``reference``, ``draws`` (draw,
        ky, kx), ``coil_maps`` (coil, ky, kx) and ``other_images`` (picture, ky, kx).
    facts : SliceFacts
        The rest.
    """

    number: int
    arrays: Mapping[str, NDArray[Any]]
    facts: SliceFacts


@dataclass(frozen=True)
class SliceWork:
    """What every slice needs: the recipe, the seed, what the slices share, and how they are numbered."""

    recipe: Recipe
    seed: int
    shared: Shared
    numbering: Frames

    def ready(
        self,
        data: AnySlice,
        mask: NDArray[np.bool_],
        reference: GivenReference | None,
        companions: Sequence[Companion] = (),
    ) -> ReadySlice:
        """The slice, calibrated with what the slices share."""
        known, directions = self.shared.known_by(data), self.shared.directions
        return ReadySlice.of(
            known,
            mask,
            self.recipe,
            directions=directions,
            of_volume=True,
            reference=reference,
            companions=companions,
        )


Item = tuple[int, AnySlice, NDArray[np.bool_], GivenReference | None, tuple[Companion, ...]]
"""A slice's number, its samples as read, what is used of them, what its errors are measured against, and other images
of the object."""


def slice_image(work: SliceWork, item: Item) -> SliceImage:
    """Reconstruct one slice."""
    number, data, mask, reference, companions = item
    ready = work.ready(data, mask, reference, companions)
    result = ready.reconstructed(work.seed, number=number)
    known = ready.known(result.image)
    images = known.judged(ready.recipe.reconstruction.method, result, ready.lines)
    shown, maps = images[0].reconstruction, ready.scan.maps_as_read
    arrays = {"recon": np.asarray(shown.image, dtype=np.complex64)}
    if shown.std is not None:
        arrays["std"] = np.asarray(shown.std, dtype=np.float32)
    if shown.noise is not None:
        arrays |= {"noise": shown.noise.std, "g_factor": shown.noise.g_factor}
    if shown.draws is not None:
        beside = {"draws": shown.draws, "reference": known.shown_reference}
        arrays |= {name: np.asarray(image, dtype=np.complex64) for name, image in beside.items() if image is not None}
    if maps is not None:
        arrays["coil_maps"] = np.asarray(maps[0], dtype=np.complex64)
    rows = [{**work.numbering.place(number), **row} for row in image_rows(known, images, ready.lines)]
    pictures = CompanionPictures.of(shown)
    if result.companions is not None:
        rows[0][OTHER_IMAGES] = "; ".join(result.companions.used) or "none"
    if pictures is not None:
        arrays[_OTHERS] = np.stack([np.abs(panel.image) for panel in pictures.panels]).astype(np.float32)
    ended, factor = result.convergence, result.std_factor
    facts = SliceFacts(
        rows=rows,
        status=ended.status.value,
        iterations=ended.iterations,
        matvecs=ended.matvecs,
        residual=float(ended.residual),
        noise_only=ready.noise_only,
        folded=isinstance(known, KnownSamples) and known.folded,
        account=result.account(),
        std_factor=None if factor is None else factor.facts,
        left_out=result.left_out,
        reference_scale=None if known.given is None else known.given.factor,
        replicas=0 if result.noise is None else result.noise.replicas,
        others=[] if pictures is None else [(panel.title, panel.caption) for panel in pictures.panels],
        about_others="" if pictures is None else pictures.about,
        lost=float(ready.scan.data.header[LOST]) if LOST in ready.scan.data.header else None,
    )
    del ready, result, known, images, shown, maps, pictures
    gc.collect()  # models and operators hold each other in circles, which would wait for many slices to be let go
    return SliceImage(number, arrays, facts)


def neighbour_image(work: SliceWork, item: Item) -> tuple[int, NDArray[np.float32]]:
    """What the neighbours of a slice are told of it."""
    number, data, mask, *_ = item
    return number, work.ready(data, mask, None).modulus(work.seed)


@dataclass
class KeptSlices:
    """Finished slices in the run's folder: a file of arrays for each, and one that says which there are.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    identity : str
        Of the run; files of another one are refused.
    facts : dict of int to SliceFacts
        By number of the slice.
    told : set of int
        Slices of which there is what their neighbours are told.
    coverage : Coverage, optional
        Of the error bars, where they have been calibrated.
    """

    folder: RunFolder
    identity: str
    facts: dict[int, SliceFacts] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    coverage: Coverage | None = None

    @classmethod
    def open(cls, folder: RunFolder, identity: str) -> KeptSlices:
        """Read what is there, or begin.

        Raises
        ------
        InputError
            For a damaged file.
        UsageError
            For the file of another run.
        """
        path = folder.existing(PROGRESS)
        if path is None:
            return cls(folder, identity)

        def parse(stored: dict[str, Any]) -> tuple[dict[int, SliceFacts], set[int], Coverage | None]:
            facts = {int(number): SliceFacts(**facts) for number, facts in stored["slices"].items()}
            found = stored.get("coverage")
            return facts, set(map(int, stored["told"])), Coverage.from_settings(found) if found else None

        kept = read_kept(path, identity, "the progress of a reconstruction", "the progress of another run", parse)
        return cls(folder, identity, *kept)

    def add(self, made: SliceImage) -> None:
        """Keep a slice: its arrays first, then that they are there."""
        self.folder.write_archive(_name(made.number), made.arrays)
        self.facts[made.number] = made.facts
        self._write()

    def tell(self, number: int, modulus: NDArray[np.float32]) -> None:
        """Keep what the neighbours of a slice are told of it."""
        self.folder.write_archive(_name(number, NEIGHBOURS), {_MODULUS: modulus})
        self.told.add(number)
        self._write()

    def calibrate(self, coverage: Coverage | None) -> None:
        """Keep what the error bars were found to cover."""
        self.coverage = coverage
        self._write()

    def _write(self) -> None:
        stored = {str(number): asdict(facts) for number, facts in sorted(self.facts.items())}
        kept = {"identity": self.identity, "slices": stored, "told": sorted(self.told)}
        kept |= {} if self.coverage is None else {"coverage": self.coverage.as_settings()}
        write_json(self.folder.output_path(PROGRESS), kept)

    def modulus(self, number: int) -> NDArray[np.float32]:
        """What the neighbours of a slice are told of it."""
        arrays, _ = read_npz_members(self.folder.path / _name(number, NEIGHBOURS), (_MODULUS,), DEFAULT_LIMITS)
        return arrays[_MODULUS]

    def arrays(self, number: int) -> Mapping[str, NDArray[Any]]:
        """The arrays of a slice."""
        arrays, _ = read_npz_members(self.folder.path / _name(number), _ARRAYS, DEFAULT_LIMITS)
        return arrays

    def pictures(self, number: int) -> CompanionPictures | None:
        """Those of the companions of a slice; None where it was offered none."""
        facts, images = self.facts[number], self.arrays(number).get(_OTHERS, ())
        titles = zip(images, facts.others, strict=True)
        panels = [ImagePanel(image, title, caption) for image, (title, caption) in titles]
        return CompanionPictures(panels, facts.about_others) if panels else None

    @property
    def files(self) -> list[str]:
        """Names of all files."""
        return [PROGRESS, *map(_name, self.facts), *(_name(number, NEIGHBOURS) for number in self.told)]


def _name(number: int, kind: str = "slice") -> str:
    return f"{kind}-{number:04d}.npz"


@briefly
@dataclass(frozen=True, kw_only=True)
class ReconResult:
    """Result of a reconstruction.

    Parameters
    ----------
    record : Record
        For the manifest.
    ending : Ending
        Status, and lines that are used, of several slices in any; there are none along a trajectory.
    known : KnownScan or KnownSamples
        The slice, of several that which is shown, and what was known about it.
    mask : bool array, shape (ky,), (ky, kz) or (readout,)
        The lines used, the samples of a plane, or the readouts of a trajectory; of several slices in any.
    images : sequence of NamedImage
        The image, and the zero-filled or gridded one to compare it with.
    coverage : Coverage, optional
        Of the error bars, where they are calibrated on other scans.
    """

    record: Record
    ending: Ending
    known: KnownScan | KnownSamples
    mask: NDArray[np.bool_]
    images: Sequence[NamedImage]
    coverage: Coverage | None = None

    @property
    def error(self) -> RelativeError:
        """Predicted and found; of several slices means."""
        return self.images[0].error

    @property
    def account(self) -> dict[str, str]:
        """`Reconstruction.account` of the image."""
        return self.images[0].reconstruction.account()

    @property
    def matvecs(self) -> int:
        """Multiplications with A, of all slices."""
        return self.images[0].reconstruction.convergence.matvecs


@dataclass(frozen=True, kw_only=True)
class VolumeResult(ReconResult):
    """Result of a reconstruction of several slices.

    Parameters
    ----------
    numbers : sequence of int
        The slices, in the order of the arrays; of several frames the images, as `numbering` has them.
    count : int
        Slices of the input, in each frame.
    numbering : Frames
        How images are numbered.
    alike : bool
        Whether the same is used in all.
    kept : KeptSlices
        The images.
    shown : int
        Number of the slice that the report shows in detail, of the first frame where there are several.
    places : sequence of (SliceGeometry or None)
        Of every slice.
    sources : sequence of (SourceImage or None)
        Likewise.
    """

    numbers: Sequence[int]
    count: int
    numbering: Frames
    alike: bool
    kept: KeptSlices
    shown: int
    places: Sequence[SliceGeometry | None]
    sources: Sequence[SourceImage | None]

    @property
    def first_frame(self) -> Sequence[int]:
        """The slices, of the first frame where there are several."""
        return [number for number in self.numbers if number < self.count]

    @property
    def facts(self) -> list[SliceFacts]:
        """Of the slices in their order."""
        return [self.kept.facts[number] for number in self.numbers]

    @property
    def error(self) -> RelativeError:
        return self.images[0].error.over(facts.rows[0] for facts in self.facts)

    @property
    def account(self) -> dict[str, str]:
        return dict(self.kept.facts[self.shown].account)

    @property
    def matvecs(self) -> int:
        return sum(one.matvecs for one in self.facts)

    def stack(self, name: str) -> Iterator[NDArray[Any]]:
        """The arrays of a name, slice by slice."""
        for number in self.numbers:
            yield self.kept.arrays(number)[name]


@dataclass(frozen=True)
class Beside:
    """Beside a scan: what errors are measured against, files of other images, its own slices for each other, and scans
    that error bars are calibrated on."""

    references: GivenReferences | None = None
    companions: Sequence[CompanionImages] = ()
    around: Around = NOT_AROUND
    group: Group | None = None

    def over(self, data: AnySlice, number: int, count: int, several: bool) -> tuple[Companion, ...]:
        """The other images over a slice, by its number among those of the scan; ``several`` slices are made."""
        return companions_over(self.companions, data, number, count, several=several)


NOTHING = Beside()
NO_IMAGES: Mapping[str, Mapping[int, float]] = {}


@dataclass
class _Looked:
    """What a first look at all slices found: what they share, what is used of each, and where they lie."""

    shared: Shared
    masks: dict[int, NDArray[np.bool_]]
    places: dict[int, SliceGeometry | None]
    sources: dict[int, SourceImage | None]


def reconstruct_volume(
    recipe: Recipe,
    mask: Path | None,
    record: Record,
    slices: Slices,
    numbers: Sequence[int],
    run: Run,
    beside: Beside = NOTHING,
) -> VolumeResult:
    """Reconstruct slices, in one frame or several, with one noise and one basis of coil maps; finished ones are kept.

    Raises
    ------
    InputError
        Where a slice cannot be used, before any is reconstructed.
    """
    numbering = slices.numbering
    beside.around.require(numbering)
    every = numbering.images(range(slices.count)) if beside.around else numbers
    looked = _look(recipe, mask, slices, every, run)
    first, example = looked.masks[numbers[0]], slices.read(numbers[0])
    recipe = recipe_for(first, example, recipe)
    alike = all(np.array_equal(looked.masks[number], first) for number in numbers)
    given: Mapping[int, GivenReference] = {}
    if beside.references is not None:
        chosen = [number for number in numbers if number < slices.count]  # of the first frame, for all of them
        given = beside.references.of_slices(chosen, slices.count, example.grid_shape)
    check_size_of_draws(recipe.reconstruction, len(numbers), example.grid_shape)
    run.begin()
    kept = KeptSlices.open(run.folder, record.identity)
    if beside.group is not None and kept.coverage is None:
        if not alike:
            raise InputError(
                FIELD,
                "slices of which different samples are used",
                "the same of all, as scans are reconstructed from them",
                f"Give a {option('mask')}, or take the slices one by one with {option('slices')}.",
            )
        kept.calibrate(coverage_of(beside.group, slices, numbers, run, recipe, first))
    work = SliceWork(recipe, run.seed, looked.shared, numbering)
    left = [number for number in numbers if number not in kept.facts]
    first_frame = {number: looked.places[number] for number in range(slices.count)} if beside.around else {}
    near = {number: beside.around.of(number, numbering, first_frame) for number in left}
    asked = sorted({other for found in near.values() for weights in found.values() for other in weights})
    untold = [number for number in asked if number not in kept.told]
    several = len({number % slices.count for number in numbers}) > 1

    def item(number: int, near: Mapping[str, Mapping[int, float]] = NO_IMAGES) -> Item:
        data, own, others = slices.read(number), number % slices.count, neighbours(near, kept.modulus)
        known = beside.over(data, own, slices.count, several)
        return number, data, looked.masks[number], given.get(own), (*known, *others)

    with Workers(work, max(1, min(run.jobs, max(len(left), len(untold)))), run.executor) as workers:
        for done, modulus in enumerate(workers.map(neighbour_image, map(item, untold), ahead=_AHEAD * run.jobs), 1):
            kept.tell(*modulus)
            run.progress.show(NEIGHBOURS, len(asked) - len(untold) + done, len(asked))
        run.progress.show(SLICES, len(numbers) - len(left), len(numbers))
        items = (item(number, near[number]) for number in left)
        for made in workers.map(slice_image, items, ahead=_AHEAD * run.jobs):
            kept.add(made)
            run.progress.show(SLICES, len(kept.facts), len(numbers))
    run.progress.show(REPORT, 0, 1)
    used: dict[str, list[int]] = {}
    for number in numbers:
        if (others := kept.facts[number].rows[0].get(OTHER_IMAGES)) is not None:
            used.setdefault(str(others), []).append(number)
    if used:
        told = "; ".join(f"{names} in {numbering.names(where)}" for names, where in used.items())
        run.progress.say(f"other images: {told}")
    noise_only = [number for number in numbers if kept.facts[number].noise_only]
    if noise_only:
        words = "hold noise only: their images show" if len(noise_only) > 1 else "holds noise only: its image shows"
        run.progress.warn(f"{numbering.names(noise_only)} {words} noise")
    folded = [number for number in numbers if kept.facts[number].folded]
    if folded:
        run.progress.warn(f"{numbering.names(folded)}: {FOLDED}")
    begun = [number for number in numbers if number < slices.count]
    seen = [number for number in begun if number not in noise_only] or begun
    shown = seen[len(seen) // 2]
    ready = work.ready(slices.read(shown), looked.masks[shown], given.get(shown))
    warn_of_noise(ready.scan, run.progress)
    warn_of_maps(ready.scan, run.progress)
    known, images = _read_back(ready, kept.arrays(shown), kept.facts[shown])
    if known.given is not None and known.given.doubt:
        run.progress.warn(f"slice {shown}: {known.given.doubt}")
    union = np.logical_or.reduce([looked.masks[number] for number in numbers])
    lines = () if isinstance(ready.data, TrajectoryData) else tuple(np.flatnonzero(union).tolist())
    return VolumeResult(
        record=record,
        ending=Ending(_status([kept.facts[number] for number in numbers], numbering.unit), lines),
        numbers=numbers,
        count=slices.count,
        numbering=numbering,
        mask=union,
        alike=alike,
        kept=kept,
        shown=shown,
        known=known,
        images=images,
        places=[looked.places[number] for number in numbers],
        sources=[looked.sources[number] for number in numbers],
        coverage=kept.coverage,
    )


def _look(recipe: Recipe, mask: Path | None, slices: Slices, numbers: Sequence[int], run: Run) -> _Looked:
    """Read all slices once."""
    shape, numbering = None, slices.numbering
    survey = Survey(recipe, numbering.unit)
    masks = dict[int, NDArray[np.bool_]]()
    places, sources = dict[int, SliceGeometry | None](), dict[int, SourceImage | None]()
    for done, number in enumerate(numbers):
        run.progress.show("reading", done, len(numbers))
        try:
            data = slices.read(number)
            masks[number] = what_is_used(data, mask, recipe)
            survey.add(data, masks[number])
        except InputError as error:
            raise _of_slice(numbering, number, error) from error
        if not done:
            warn_of_left_out(replace(data, header=without_part(data.header)), recipe, run.progress)
            if simulated_from(data):
                run.progress.say(f"simulated k-space {simulated_from(data)}")
        size = (data.n_coils, *data.grid_shape, masks[number].ndim)
        if shape not in (None, size):
            raise InputError(
                field=numbering.name(number),
                got=f"{size[0]} coils and {size[1]} x {size[2]} pixels",
                wanted="the same as of the slices before, to lie in one volume",
                cure=f"Reconstruct them in runs of their own, with --{numbering.axis or 'slices'}.",
            )
        shape = size
        geometry = getattr(data, "geometry", None)
        places[number] = None if geometry is None else geometry[0]
        sources[number] = getattr(data, "source", None)
    run.progress.show("reading", len(numbers), len(numbers))
    return _Looked(survey.shared(), masks, places, sources)


def _of_slice(numbering: Frames, number: int, error: InputError) -> InputError:
    field = error.field
    for name, counter in reversed(numbering.place(number).items()):
        field = field if f"{name} {counter}" in field else f"{name} {counter}: {field}"
    return InputError(field, error.got, error.wanted, error.cure or f"Leave the slice out with {option('slices')}.")


def _read_back(
    ready: ReadySlice, arrays: Mapping[str, NDArray[Any]], facts: SliceFacts
) -> tuple[KnownScan | KnownSamples, list[NamedImage]]:
    """What is known of a kept slice, and its images, as if it had been reconstructed just now."""
    known = ready.known(arrays["recon"])
    ended = Convergence(Status(facts.status), facts.iterations, facts.residual, facts.matvecs)
    factor = None if facts.std_factor is None else StdFactor(**facts.std_factor)
    noise = NoiseMap(arrays["noise"], arrays["g_factor"], facts.replicas) if "noise" in arrays else None
    blank = Reconstruction(
        arrays["recon"], arrays.get("std"), ended, left_out=facts.left_out, std_factor=factor, noise=noise
    )
    return known, known.judged(ready.recipe.reconstruction.method, blank, ready.lines)


def _status(facts: Sequence[SliceFacts], unit: str) -> str:
    """ "converged", or of how many slices or images the reconstruction did not, and why that of the first did not."""
    missed = [one.status for one in facts if not one.converged]
    return f"not converged ({len(missed)} of {len(facts)} {unit}: {missed[0]})" if missed else Status.CONVERGED.value
