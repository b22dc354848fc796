"""A design informed by an earlier scan of the same object: its image, and whether this scan has contradicted it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.line_variances import expected_energies
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategies.earlier_scan import EarlierScan
from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError, UsageError
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.runs.run import Work
from mri_design.runs.scan_facts import warn_of_left_out, warn_of_noise
from mri_design.scan.sampling import require_whole_lines

__all__ = ["EarlierImage", "contradicted", "informed", "load_earlier", "opinion_share"]

DRAWS = 12
"""Posterior draws behind the energies of what the earlier scan did not measure."""
LITTLE = 0.25
"""An earlier scan with less weight than this at the end was overruled."""


@dataclass(frozen=True)
class EarlierImage:
    """The image of an earlier scan, and how uncertain each line of it is.

    Parameters
    ----------
    name : str
        For messages.
    image : complex array, shape (ky, kx)
        Posterior mean from all its lines.
    unknown : float array, shape (ky,)
        Energy of the image's error on every line that the earlier scan did not measure, as its posterior expects it,
        over the energy of the image; 0 on those it measured.
    """

    name: str
    image: Array
    unknown: Array

    @classmethod
    def of(cls, name: str, slice_model: MRSlice, recipe: Recipe, rng: np.random.Generator) -> EarlierImage:
        """Infer the image from all lines of the scan."""
        lines = np.flatnonzero(slice_model.measured)
        posterior: GaussianPosterior = recipe.inference.engine().infer(slice_model.model(lines.tolist()), rng)
        unknown = expected_energies([posterior], rng, DRAWS) / _energy(posterior.mean)
        return cls(name, posterior.mean, np.where(slice_model.measured, 0.0, unknown))

    def seen_by(self, slice_model: MRSlice, lines: Sequence[int], rng: np.random.Generator) -> tuple[MRSlice, Array]:
        """A scan of the earlier image with the coils and the noise of another, as bright as that on some lines.

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
        every = slice_model.encoding()(self.image)
        brightness = np.sqrt(_energy(slice_model.acquire(lines)) / _energy(every[:, list(lines)]))
        parts = rng.standard_normal((2, *every.shape)) * np.sqrt(slice_model.noise_variance)
        kspace = (brightness * every + parts[0] + 1j * parts[1]).astype(np.complex64)
        return replace(slice_model, kspace=kspace), brightness * self.image


def load_earlier(source: ScanSource, recipe: Recipe, work: Work) -> EarlierImage:
    """The earlier scan's image from all the lines that it has.

    Raises
    ------
    InputError
        Where the file cannot be used, or its lines have holes.
    UsageError
        Where more than one slice is named.
    """
    data = load_input(source.path, recipe, work.seed + 1, source.maps)  # where it is simulated, with noise of its own
    warn_of_left_out(data, recipe, work.progress)
    slices = source.slices.indices(data.n_slices)
    if len(slices) != 1:
        raise UsageError(f"--seen {source.label}: give one slice, as {source.path}#0")
    chosen = data.select_slice(slices[0])
    require_whole_lines(chosen.name, chosen.samplings[0])
    try:
        scan = prepare(chosen, recipe, ordinary=True)
        warn_of_noise(scan, work.progress)
        return EarlierImage.of(source.label, scan.slice_model(0, recipe), recipe, np.random.default_rng([work.seed, 3]))
    except InputError as error:  # which names a part of the scan, and there are two
        field = f"earlier scan {source.label}: {error.field}"
        raise InputError(field=field, got=error.got, wanted=error.wanted, cure=error.cure) from None


def informed(
    earlier: EarlierImage, slice_model: MRSlice, start: Sequence[int], recipe: Recipe, seed: int
) -> Calibrated:
    """The strategy ``calibrated``, informed by an earlier scan.

    Parameters
    ----------
    earlier : EarlierImage
        What was seen.
    slice_model : MRSlice
        The scan to be measured.
    start : sequence of int
        Lines that the design begins with.
    recipe : Recipe
        Inference of both scans.
    seed : int
        Of noise and variances.

    Raises
    ------
    InputError
        Where the scans are on different grids.
    """
    scan, image = earlier.seen_by(slice_model, start, np.random.default_rng([seed, 4]))
    return Calibrated(
        opinion=EarlierScan(
            scan=scan,
            image=image,
            unknown=earlier.unknown,
            inference=recipe.inference.engine(),
            first_loops=recipe.design.first_loops,
            step_loops=recipe.design.step_loops,
            seed=seed,
        )
    )


def opinion_share(trace: DesignTrace) -> float:
    """Weight of a second opinion at the end of a design, 0 to 1; NaN where there was none."""
    end = trace.forecast(len(trace.lines))
    return float("nan") if end is None else end.opinion_weight


def contradicted(trace: DesignTrace) -> str:
    """A sentence where the lines measured have overruled the earlier scan; else empty."""
    share = opinion_share(trace)
    if not share < LITTLE:
        return ""
    return (
        f"the earlier scan did not predict the lines of this one, and counts for {share:.0%} at the end: it may show "
        "another object or another position"
    )


def _energy(values: Array) -> float:
    return float(np.sum(np.abs(values) ** 2, dtype=np.float64))
