"""What lines, samples of a plane and shots have in common: candidates by number, their rows of X, and their values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.base import Array, FilterBand
from mri_design.operators.cartesian_fourier import CartesianLines, CartesianSamples, FourierLibrary
from mri_design.operators.nonuniform import NonUniformFourier

Rows = CartesianLines | CartesianSamples | NonUniformFourier
"""Measurement X of some candidates."""

Numbers = NDArray[np.float64]


class Readouts(ABC):
    """Candidates for the next measurement, by whole numbers from 0 to ``size - 1``.

    Noise that is drawn for a candidate is the same whichever others are measured: the rows that `rows` returns see to
    it (`LinearOperator.unit_noise`), so that designs can be replayed.
    """

    name: str
    """One of `kinds.designed_kinds`, or that of what a scan has measured in another way."""
    unit: str
    """Name of one candidate in messages, in the singular: line, sample, spoke."""
    grid: tuple[int, int]
    """Sides of the image and of its k-space, (rows, columns)."""
    independent = True
    """Whether the values of a candidate (`values`) are nearly independent of each other under a posterior."""
    thinned = False
    """Whether a block is chosen from one set of scores and thinned, as neighbours tell nearly the same."""
    draws = 12
    """Number of posterior draws behind scores, by default."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one entry per candidate, as people look at it: (ky,), (ky, kz) or (shot,)."""

    @property
    def size(self) -> int:
        """Number of candidates."""
        return math.prod(self.shape)

    @abstractmethod
    def rows(self, ids: Sequence[int], maps: Array | None = None, library: FourierLibrary = "scipy") -> Rows:
        """Measurement X of some candidates.

        Raises
        ------
        InputError
            For anything but numbers of candidates.
        """

    @abstractmethod
    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """Data of some candidates, taken from full k-space (coil, rows, columns) and ordered as `rows` orders them."""

    def density(self, ids: Sequence[int], *, given: bool = False) -> NDArray[np.float64] | float:
        """Weights of these data that make up for samples lying closer in some places than in others; 1 on a grid.

        With ``given`` those that came with the scan, where some did. Models take the computed ones, which are always
        those of the trajectory.
        """
        return 1.0

    @abstractmethod
    def values(self, images: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> Array:
        """Values (count, coil, candidate, value) of all candidates in images (count, rows, columns).

        They are what a candidate would measure, behind a unitary transform that makes them as independent as it can.
        """

    def moments(
        self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]
    ) -> tuple[Numbers, Numbers] | None:
        """Variance of every value under a circulant control P, and its covariance with that under A^-1: closed forms.

        diag(E P E^H) and diag(E P A P E^H) per real component, (candidate, value) each, E the transform of `values`
        for one coil. None where they are not known.

        Parameters
        ----------
        inverse, gram, sites
            As `variances.CirculantControl` has them.
        """
        return None

    def phased_moment(self, own: Array, rotation: Array) -> Numbers | None:
        """diag(E P E^T) per real component, (candidate, value), beside sites that know the phase; None if not known.

        Parameters
        ----------
        own : float array, shape (rows, columns)
            Eigenvalues of the circulant between two divisions by the phase.
        rotation : complex array, shape (rows, columns)
            The phase, as exp(i phi).
        """
        return None

    def start(self, target: int, lines: int) -> int:
        """Candidates around DC that a design of ``target`` begins with whose strategy asks for so many ``lines``."""
        return self.start_for_posterior(target)

    @abstractmethod
    def start_for_posterior(self, target: int) -> int:
        """As `start`, for scores of a plain posterior, which favour regular gaps until phase and support are known."""

    @abstractmethod
    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of ``data``, ordered as `rows` orders it, of every one of ``ids``, in the order of ``ids``."""

    @abstractmethod
    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags (size,) of the candidates whose ``samples``, flags (rows, columns) of the grid, hold data."""

    def predictable(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` that the others can be asked to predict, in ascending order: none that hold the contrast."""
        return sorted(set(ids).difference(self.central_run(ids)))

    @abstractmethod
    def opposite_of(self, candidate: int) -> int:
        """The candidate at -k, which tells nearly the same where the phase is smooth; itself where there is none."""

    @abstractmethod
    def central_run(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` around DC up to the first that is missing; all of them where DC itself is."""

    @abstractmethod
    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """The ``count`` of ``ids`` that are nearest to DC, or as many as there are."""
