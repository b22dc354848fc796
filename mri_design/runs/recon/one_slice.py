"""One slice, from what was read of it to its image: calibrated, then reconstructed, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.metrics import looks_folded
from mri_design.experiment.calibration import PreparedSamples, PreparedScan, prepare, prepare_samples
from mri_design.experiment.extent import check_other_than_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import (
    InferenceOptions,
    Reconstruction,
    loops_at_most,
    loops_shown,
    reconstruct_prepared,
)
from mri_design.experiment.volume import told_to_neighbours
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.runs.given_reference import GivenReference
from mri_design.runs.scan_facts import KnownSamples, KnownScan
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.companions import read_mask

_BEFORE = ("reading", "calibrating")
_OF_MEAN = "choosing the model"
LOOPS, REPORT = "outer loops", "report"
"""Stages with names that others need: the iterations of a posterior mean, and what is written in the end."""


class Stages:
    """Show which part of a reconstruction is being done, and which are left.

    Parameters
    ----------
    show : callable
        Takes the name of a part, how many of its pieces are done, and of how many.
    method : str
        Of the recipe: only the posterior mean has outer loops and error bars.
    """

    def __init__(self, show: Callable[[str, int, int], None], method: str) -> None:
        middle = (_OF_MEAN, LOOPS, "error bars") if method == "mean" else ("reconstructing",)
        self._show = show
        self._totals = dict.fromkeys((*_BEFORE, *middle, REPORT), 1)
        self._open = list(self._totals)
        for name in self._open:
            show(name, 0, 1)

    def begin(self, name: str) -> None:
        """Say that a part begins: those before it are done. A name that the method does not have says nothing."""
        if name in self._open:
            for earlier in self._open[: self._open.index(name)]:
                self._open.remove(earlier)
                self._show(earlier, self._totals[earlier], self._totals[earlier])
            self._show(name, 0, self._totals[name])

    def loop(self, done: int, most: int) -> None:
        """Say that ``done`` outer loops are done, of ``most``."""
        if LOOPS in self._open:
            self._totals[LOOPS] = most
            self._show(LOOPS, done, most)


_WITHOUT_STREAKS = ("mean", "map")


def what_is_used(data: KSpaceData | TrajectoryData, mask: Path | None, recipe: Recipe) -> NDArray[np.bool_]:
    """Lines (ky,), samples (ky, kz) or readouts of a slice that are used: those of a mask's file, or all measured.

    Samples where a plane is asked for, lines have holes, or the mask is one of samples.

    Raises
    ------
    InputError
        For a mask that does not fit the slice.
    """
    if isinstance(data, TrajectoryData):
        every = np.ones(data.n_readouts, dtype=bool)
        return every if mask is None else read_mask(mask, every)
    sampling = data.samplings[0]
    in_plane = recipe.design.encoding == "plane"
    if mask is not None:
        return read_mask(mask, data.measured, sampling.samples, plane=in_plane or data.volume)
    plane = in_plane or (data.volume and not sampling.whole_lines)
    return sampling.samples if plane or sampling.holes else data.measured


def recipe_for(mask: NDArray[np.bool_], data: KSpaceData | TrajectoryData, recipe: Recipe) -> Recipe:
    """The recipe for lines, or for samples of a plane, as a mask says.

    Raises
    ------
    InputError
        For settings that samples of a plane do not have.
    """
    if isinstance(data, TrajectoryData):
        return recipe
    recipe = recipe.replacing("design", encoding="plane" if mask.ndim == 2 else "lines")
    check_other_than_lines(recipe)
    return recipe


@dataclass(frozen=True, kw_only=True)
class ReadySlice:
    """A slice that is calibrated and waits for its reconstruction.

    Parameters
    ----------
    recipe : Recipe
        In force.
    data : KSpaceData or TrajectoryData
        As read.
    mask : bool array
        See `what_is_used`.
    scan : PreparedScan or PreparedSamples
        Calibrated.
    slice_model : MRSlice
        As models take it.
    lines : sequence of int
        Candidates that are used, by number.
    signal : float
        Signal level.
    reference : GivenReference, optional
        What somebody gave to measure errors against.
    """

    recipe: Recipe
    data: KSpaceData | TrajectoryData
    mask: NDArray[np.bool_]
    scan: PreparedScan | PreparedSamples
    slice_model: MRSlice
    lines: Sequence[int]
    signal: float
    reference: GivenReference | None = None

    @classmethod
    def of(
        cls,
        data: KSpaceData | TrajectoryData,
        mask: NDArray[np.bool_],
        recipe: Recipe,
        *,
        directions: Array | None = None,
        of_volume: bool = False,
        reference: GivenReference | None = None,
        companions: Sequence[Companion] = (),
    ) -> ReadySlice:
        """Calibrate a slice by what is used of it.

        Parameters
        ----------
        data, mask, recipe, reference
            As the fields.
        directions : complex array, shape (coil, coil), optional
            Of coil space, those of its volume.
        companions : sequence of Companion
            Other images of the object.
        of_volume : bool
            Whether it may hold noise only, as a slice beside the object does.

        Raises
        ------
        InputError
            Where it cannot be calibrated, or holds noise only and may not.
        """
        scan: PreparedScan | PreparedSamples
        if isinstance(data, TrajectoryData):
            scan = prepare_samples(data, recipe, used=data.select_readouts(mask))
        else:
            scan = prepare(data, recipe, measured=mask, ordinary=True, directions=directions)
        slice_model = replace(scan.slice_model(0, recipe), companions=tuple(companions))
        along = isinstance(data, TrajectoryData)
        lines = list(range(slice_model.candidates.size)) if along else np.flatnonzero(mask).tolist()
        level = slice_model.level if of_volume else slice_model.signal_level
        return cls(
            recipe=recipe,
            data=data,
            mask=mask,
            scan=scan,
            slice_model=slice_model,
            lines=lines,
            signal=level(lines),
            reference=reference,
        )

    @property
    def noise_only(self) -> bool:
        """Whether the centre of k-space holds no more than noise might."""
        return not self.slice_model.shows_signal(self.lines)

    def reconstructed(self, seed: int, stages: Stages | None = None, number: int = 0) -> Reconstruction:
        """The image by the recipe's method, in the units of the input; ``number`` is its own in the run."""
        recipe, method = self.recipe, self.recipe.reconstruction.method
        along = isinstance(self.scan, PreparedSamples)
        most = recipe.inference.loops if along else loops_at_most(self.slice_model, recipe)
        options = InferenceOptions(signal=self.signal, number=number)
        if stages is not None:
            options = replace(options, callback=loops_shown(stages.loop, recipe, most), watch=stages.begin)
        rng = np.random.default_rng([seed, 2])
        made = reconstruct_prepared(self.slice_model, self.lines, method, recipe, rng, options=options)
        return made.times(self.scan.image_unit(0))

    def modulus(self, seed: int) -> NDArray[np.float32]:
        """What its neighbours are told."""
        return told_to_neighbours(self.slice_model, self.lines, self.recipe, seed)

    def known(self, image: Array) -> KnownScan | KnownSamples:
        """What a run knows about the slice, of which this is the image (ky, kx), in the input's units.

        Raises
        ------
        InputError
            Where a reference that was given has nothing in common with it.
        """
        given = None if self.reference is None else self.reference.fitted(image)
        if isinstance(self.scan, PreparedSamples):
            folded = self.recipe.reconstruction.method in _WITHOUT_STREAKS and looks_folded(image)
            used = self.scan.data
            return KnownSamples(
                data=used,
                scan=self.scan,
                slice_model=self.slice_model,
                signal=self.signal,
                reference=None if used.reference is None else used.reference[0],
                folded=folded,
                given=given,
            )
        assert isinstance(self.data, KSpaceData)
        return KnownScan.of(self.data, self.scan, self.slice_model, self.signal, given)
