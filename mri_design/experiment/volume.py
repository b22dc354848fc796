"""The slices of a volume: read one by one, with one noise and one basis of coil maps for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.experiment.inputs import (
    PHANTOM_PREFIX,
    calibration_count,
    doubting,
    load_scan,
    only_measured,
    scan_of,
    though,
)
from mri_design.experiment.recipe import Recipe
from mri_design.scan.calibration.coil_maps import calibration_energies, coil_directions
from mri_design.scan.calibration.noise import (
    NOISE_FROM,
    CoilNoise,
    each_coil_alone,
    inverse_root,
    median_noise,
    noise_of_slice,
)
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.formats import opened
from mri_design.scan.io.safe import errors_named
from mri_design.scan.io.source import ReadOptions, SliceReader
from mri_design.scan.sampling import require_dynamic_range

AnySlice = KSpaceData | TrajectoryData


@dataclass(frozen=True)
class Slices:
    """The slices of an open input.

    Parameters
    ----------
    count : int
        Slices of the input.
    read : function
        The slice of a number, as `load_scan` and `select_slice` give it.
    """

    count: int
    read: Callable[[int], AnySlice]

    @classmethod
    def of(cls, scan: AnySlice) -> Slices:
        """The slices of a scan that is in memory."""
        return cls(scan.n_slices, scan.select_slice)


@contextmanager
def opened_slices(source: str, recipe: Recipe, seed: int = 0, maps: Path | None = None) -> Iterator[Slices]:
    """The slices of an input, which are read one by one where its format allows.

    Phantoms, images (from which k-space is simulated), samples along a trajectory, volumes whose readouts bring a
    sample to every plane, and scans with a file of coil maps are held in memory as a whole.

    Parameters
    ----------
    source, recipe, seed, maps
        As for `load_scan`.

    Raises
    ------
    InputError
        As `load_scan`; of a slice when it is read.
    """
    policy = recipe.input
    if source.startswith(PHANTOM_PREFIX) or maps is not None or policy.pixels is not None:
        yield Slices.of(load_scan(source, recipe, seed, maps))
        return
    options = ReadOptions(duplicates=policy.duplicates, counters=policy.counters)
    with ExitStack() as files:
        reader = files.enter_context(files.enter_context(opened(source, options)).slice_reader())
        if reader.whole is not None:
            scan = scan_of(reader.whole, recipe, seed)
            require_dynamic_range(scan.kspace, f"{source}: kspace")
            found = Slices.of(scan)
        else:
            found = Slices(reader.count, partial(_checked, reader, source))
        opened_files = files.pop_all()
    try:
        yield found
    finally:
        opened_files.close()  # without what was raised meanwhile, which is no error of the file


def _checked(reader: SliceReader, source: str, number: int) -> AnySlice:
    with errors_named(Path(source)):
        data = reader.read(number)
    assert isinstance(data, AnySlice)
    require_dynamic_range(data.kspace, f"{source}: kspace")
    return data


@dataclass(frozen=True)
class Shared:
    """What all slices of a volume have in common, so that their images are in one unit and their phase runs on.

    Parameters
    ----------
    covariance : complex array, shape (coil, coil), or None
        Noise of the coils as read, E[n n^H] / 2, estimated from the slices; None where file or recipe give it.
    noise_from, doubt : str
        Where it is from, and why it may be too large, in words.
    directions : complex array, shape (coil, coil), or None
        `coil_directions` of the white coils of all slices; None where no maps are estimated.
    """

    covariance: NDArray[np.complex128] | None = None
    noise_from: str = ""
    doubt: str = ""
    directions: NDArray[np.complex128] | None = None

    def known_by(self, data: AnySlice) -> AnySlice:
        """A slice with the noise of the volume."""
        if self.covariance is None:
            return data
        header = {**data.header, NOISE_FROM: self.noise_from}
        return doubting(replace(data, noise_covariance=self.covariance, header=header), self.doubt)


class Survey:
    """Gathers what slices share, slice by slice.

    Parameters
    ----------
    recipe : Recipe
        Given noise and calibration settings.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._noise: list[tuple[CoilNoise, str]] = []
        self._refused: InputError | None = None
        self._energies: NDArray[np.complex128] | None = None
        self._given: NDArray[np.complex128] | None = None

    def add(self, data: AnySlice, used: NDArray[np.bool_]) -> None:
        """Look at a slice, and of the lines or samples that are ``used`` at what coil maps are estimated from.

        Slices along a trajectory share nothing: each has noise and maps of its own.

        Raises
        ------
        InputError
            Where there is not enough data to estimate coil maps.
        """
        if not isinstance(data, KSpaceData):
            return
        known = self._recipe.noise.variance is not None or data.noise_variance is not None
        if self._recipe.noise.variance is None and data.noise_covariance is not None:
            self._given, known = data.noise_covariance, True
        if not known:
            try:
                self._noise.append(noise_of_slice(data))
            except InputError as error:  # an empty rim: other slices may have some
                self._refused = error
        if data.n_coils > 1 and data.coil_maps is None:
            lines = calibration_count(None, self._recipe, data.grid_shape[0])
            energies = calibration_energies(only_measured(data, used), lines)
            self._energies = energies if self._energies is None else self._energies + energies

    def shared(self) -> Shared:
        """What the slices share.

        Raises
        ------
        InputError
            Where the noise has to be estimated, and no slice holds any.
        """
        if self._refused is not None and not self._noise:
            raise self._refused
        noise, doubt = median_noise(self._noise) if self._noise else (None, "")
        covariance = None if noise is None else noise.covariance
        said = f"the median of {len(self._noise)} slices"
        if noise is not None and noise.doubt:
            said = f"{said}, {each_coil_alone(noise.doubt)}"
        return Shared(covariance, f"{said}{though(doubt)}", doubt, self._directions(covariance))

    def _directions(self, covariance: NDArray[np.complex128] | None) -> NDArray[np.complex128] | None:
        if self._energies is None:
            return None
        white = self._given if covariance is None else covariance
        root = np.eye(len(self._energies)) if white is None else inverse_root(white)
        return coil_directions(root @ self._energies @ root.conj().T)
