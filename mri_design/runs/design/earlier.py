"""A design informed by an earlier scan of the same object: its images, and whether this scan has contradicted it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.earlier_scan import EarlierScan
from mri_design.design.energies import expected_energies
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategies.calibrated_plane import CalibratedSamples
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError, UsageError
from mri_design.experiment.calibration import prepare
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.sources import ScanSource
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.readouts import PlaneReadouts
from mri_design.runs.run import Work
from mri_design.runs.scan_facts import warn_of_left_out, warn_of_noise
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import require_whole_lines

DRAWS = 12
"""Posterior draws behind the energies of what the earlier scan did not measure."""
LITTLE = 0.25
"""An earlier scan with less weight than this at the end was overruled."""


@dataclass(frozen=True)
class EarlierImage:
    """The image of an earlier scan, and how uncertain each line of it is, or each sample of a plane.

    Parameters
    ----------
    name : str
        For messages.
    image : complex array, shape (ky, kx) or (ky, kz)
        Posterior mean from all that it measured.
    unknown : float array, shape (candidates,)
        Energy of the image's error on every line that the earlier scan did not measure, as its posterior expects it,
        over the energy of the image; 0 on those it measured. Of a plane it is that on all samples: noise of its own may
        be all that a single sample of the image has.
    """

    name: str
    image: Array
    unknown: Array

    @classmethod
    def of(cls, name: str, slice_model: MRSlice, recipe: Recipe, rng: np.random.Generator) -> EarlierImage:
        """Infer the image from all that the scan has measured."""
        measured = slice_model.measured
        ids = np.flatnonzero(measured).tolist()
        posterior: GaussianPosterior = recipe.inference.engine(extrapolated=False).infer(slice_model.model(ids), rng)
        level = _energy(posterior.mean)
        unknown = expected_energies([posterior], slice_model.candidates, rng, DRAWS) / level
        if not isinstance(slice_model.candidates, PlaneReadouts):
            unknown = np.where(measured, 0.0, unknown)
        return cls(name, posterior.mean, unknown)

    def seen_by(self, slice_model: MRSlice, start: Sequence[int], rng: np.random.Generator) -> tuple[MRSlice, Array]:
        """A scan of the earlier image with the coils and the noise of another, as bright as that on its start.

        Returns
        -------
        MRSlice, complex array
            The scan, and its true image.

        Raises
        ------
        InputError
            Where the two are on different grids.
        """
        if self.image.shape != slice_model.shape:
            raise InputError(
                field=f"earlier scan {self.name}",
                got=f"a grid of {self.image.shape[0]} x {self.image.shape[1]}",
                wanted=f"that of the scan, {slice_model.shape[0]} x {slice_model.shape[1]}",
                cure="Give an earlier scan with the same matrix and field of view.",
            )
        slice_model = slice_model.calibrated(start, rough=True)
        every = slice_model.encoding()(self.image).reshape(slice_model.kspace.shape)
        brightness = np.sqrt(
            _energy(slice_model.acquire(start)) / _energy(slice_model.candidates.data(every, list(start)))
        )
        parts = rng.standard_normal((2, *every.shape)) * np.sqrt(slice_model.noise_variance)
        kspace = (brightness * every + parts[0] + 1j * parts[1]).astype(np.complex64)
        return replace(slice_model, kspace=kspace), brightness * self.image


def load_earlier(
    source: ScanSource, recipe: Recipe, work: Work, count: int = 1, places: Sequence[int] = (0,)
) -> list[EarlierImage]:
    """The earlier scan's images, one of every slice, from all that it has measured.

    Parameters
    ----------
    source : ScanSource
        File, and slices.
    recipe : Recipe
        Inference, and what candidates are.
    work : Work
        Seed and messages.
    count : int
        How many slices there must be.
    places : sequence of int
        Which of them are wanted, by their places in ascending order.

    Raises
    ------
    InputError
        Where the file cannot be used, or its lines have holes.
    UsageError
        Where another number of slices is named.
    """
    data = load_input(source.path, recipe, work.seed + 1, source.maps)  # where it is simulated, with noise of its own
    warn_of_left_out(data, recipe, work.progress)
    with _naming(source.label):
        slices = sorted(source.slices.indices(data.n_slices))
    if len(slices) != count:
        named = f"{len(slices)} slice{'s' if len(slices) > 1 else ''}"
        wanted = f"one slice, as {source.path}#0"
        if count > 1:
            wanted = f"{count}, one for every position that shares the mask, as {source.path}#0-{count - 1}"
        raise UsageError(f"--seen {source.label} names {named}: give {wanted}")
    return [_image(data, slices[place], source.label, recipe, work) for place in places]


def _image(every: KSpaceData, index: int, name: str, recipe: Recipe, work: Work) -> EarlierImage:
    data = every.select_slice(index)
    if recipe.design.encoding != "plane":
        require_whole_lines(data.name, data.samplings[0])
    with _naming(f"{name}, slice {index}" if every.n_slices > 1 else name):
        scan = prepare(data, recipe, ordinary=True)
        warn_of_noise(scan, work.progress)
        rng = np.random.default_rng([work.seed, 3])
        return EarlierImage.of(name, scan.slice_model(0, recipe), recipe, rng)


@contextmanager
def _naming(earlier: str) -> Iterator[None]:
    """Errors name a part of a scan, and there are two: say that it is of the earlier one."""
    try:
        yield
    except InputError as error:
        field = f"earlier scan {earlier}: {error.field}"
        raise InputError(field=field, got=error.got, wanted=error.wanted, cure=error.cure) from None


def informed(
    earlier: Sequence[EarlierImage], slices: Sequence[MRSlice], start: Sequence[int], recipe: Recipe, seed: int
) -> Strategy:
    """The strategy ``calibrated``, informed by an earlier scan.

    Parameters
    ----------
    earlier : sequence of EarlierImage
        Images of the earlier scan, one for every slice.
    slices : sequence of MRSlice
        Those to be measured, which share the mask: of lines, one.
    start : sequence of int
        Lines or samples that the design begins with.
    recipe : Recipe
        Inference of both scans.
    seed : int
        Of noise and variances.

    Raises
    ------
    InputError
        Where the scans are on different grids.
    """
    scans: list[EarlierScan] = []
    rng = np.random.default_rng([seed, 4])
    for image, slice_model in zip(earlier, slices, strict=True):
        scan, truth = image.seen_by(slice_model, start, rng)
        scans.append(
            EarlierScan(
                scan=scan,
                image=truth,
                unknown=image.unknown,
                inference=recipe.inference.engine(extrapolated=False),
                seed=seed,
            )
        )
    if recipe.design.encoding == "plane":
        return CalibratedSamples(earlier=tuple(scans))
    return Calibrated(side_information=scans[0])


def final_weight(trace: DesignTrace) -> float:
    """Weight of side information at the end of a design, 0 to 1; NaN where there was none."""
    end = trace.forecast(len(trace.lines))
    return float("nan") if end is None else end.side_information_weight


def contradicted(trace: DesignTrace, unit: str) -> str:
    """A sentence where the ``unit``s measured have overruled the earlier scan; else empty."""
    weight = final_weight(trace)
    if not weight < LITTLE:
        return ""
    return (
        f"the earlier scan hardly predicts the {unit}s of this one: it {weight_in_words(weight, unit)}, as one that "
        "shows another object or another position, or lacks much of its k-space"
    )


def weight_in_words(weight: float, unit: str) -> str:
    """Words for the weight of an earlier scan at the end of a design; NaN is no weight at all."""
    if not np.isfinite(weight):
        return "has been held against nothing that was measured"
    if unit == "sample":
        return f"explains {weight:.0%} of how single samples differ from those around them"
    return f"counts for {weight:.0%} of the choice at the end"


def _energy(values: Array) -> float:
    return float(np.sum(np.abs(values) ** 2, dtype=np.float64))
