"""Scans of the study with the image each is judged by, and which subjects are for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from skimage.restoration import denoise_nl_means, estimate_sigma

from mri_design.design.training import ReferenceSlice
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.operators.base import Array
from mri_design.scan.calibration import coil_combined
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.simulation import simulate_scan

TRAINING_HEADS = (0, 2, 4)
TEST_HEADS = (6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22)  # four of each subject
OTHER_TEST_HEADS = (8, 11, 14, 17, 20, 23)
LARGE_TEST_HEADS = (7, 13)  # at 256 x 256
COIL_TEST_HEADS = {4: (7, 12, 18), 8: (9, 13, 21), 16: (6, 15, 22)}  # one of each subject
TRAINED_ON = "0-5"
TEST_SUBJECTS = ("6B", "7A", "7B")
TRAINING_SUBJECT = "6A"
MIDDLE = 2  # of four slices


NOISE = 0.007  # sd per real component, relative to the 99.5th percentile: 3 T
LOW_FIELD_NOISE = 0.02  # between that and what the low-field scans had themselves (0.022 to 0.05)


@dataclass(frozen=True)
class Scan:
    """One slice, calibrated, and what its reconstructions are compared with.

    Parameters
    ----------
    name : str
        For tables.
    prepared : KSpaceData
        Noise and coil maps are known.
    reference : complex array, shape (ky, kx)
        The truth, or the nearest thing to it.
    """

    name: str
    prepared: KSpaceData
    reference: Array

    @classmethod
    def of(cls, name: str, data: KSpaceData, reference: Array | None = None) -> Scan:
        """Calibrated by the default recipe; without a reference its own."""
        prepared = calibrate(data, Recipe())
        found = truth_of(prepared) if reference is None else reference
        assert found is not None
        return cls(name, prepared, found)

    @property
    def n_lines(self) -> int:
        """Phase-encode lines of the grid."""
        return self.prepared.grid_shape[0]

    def image(self, recipe: Recipe) -> ReferenceSlice:
        """With a recipe's prior. Coil maps count as known from a scan of their own: masks need no centre for them."""
        return ReferenceSlice(self.name, self.prepared.slice_model(0, **recipe.slice_settings), self.reference)


def self_calibrated(scan: Scan, lines: int) -> Scan:
    """A scan with its coil maps estimated from that many lines at its centre; masks have to begin with them."""
    prepared = calibrate(replace(scan.prepared, coil_maps=None), calibration_lines=lines)
    assert prepared.provenance.maps.calibration_lines <= lines
    return replace(scan, prepared=prepared)


def simulating(matrix: int, noise: float = NOISE, phase: str | None = None, coils: int = 1) -> Recipe:
    """The recipe `local` with these settings of the simulation."""
    return (
        load_recipe("local")
        .replacing("input", matrix=matrix)
        .replacing("simulation", noise=noise, phase=phase, coils=coils)
    )


def simulated(
    source: str | Path, indices: Sequence[int], recipe: Recipe, seed: int = 0, label: str | None = None
) -> list[Scan]:
    """Slices of images (a file, or ``phantom:NAME``) as simulated scans whose truth is known."""
    data = load_scan(str(source), recipe, seed)
    name = label or data.name
    return [Scan.of(f"{name} {index}", data.select_slice(index)) for index in indices]


def combined(path: Path, matrix: int, seed: int = 0) -> Scan:
    """A raw multi-coil scan of high signal-to-noise ratio, coil-combined, as the truth of a single-coil scan."""
    data = load_scan(str(path), Recipe(), seed)
    image = coil_combined(calibrate(data, Recipe()))
    return anew(f"{path.stem} combined", image, matrix, NOISE, seed)


def denoised(path: Path, index: int, matrix: int, seed: int = 0) -> Scan:
    """A raw low-field slice, denoised by non-local means, with white noise added anew.

    More lines than ``matrix`` are cut off in k-space (lower resolution), fewer are a smaller field of view, padded. The
    filter knows no sparsity prior, so that none of the reconstructions is favoured by its traces.
    """
    data = load_scan(str(path), Recipe(), seed).select_slice(index)
    kspace = data.kspace[0, 0]
    for axis in (0, 1):
        excess = kspace.shape[axis] - matrix
        if excess > 0:
            first = kspace.shape[axis] // 2 - matrix // 2
            kspace = np.take(kspace, range(first, first + matrix), axis=axis)
    image = coil_combined(KSpaceData(kspace[None, None], np.ones(len(kspace), dtype=bool)))[0]
    parts = np.stack([image.real, image.imag], axis=-1)
    parts /= np.percentile(np.abs(image), 99.5)
    sigma = float(np.mean(estimate_sigma(parts, channel_axis=-1)))
    clean = denoise_nl_means(parts, 5, 9, h=0.8 * sigma, sigma=sigma, channel_axis=-1)
    padding = [(matrix // 2 - n // 2, matrix - n - (matrix // 2 - n // 2)) for n in clean.shape[:2]]
    truth = np.pad(clean[..., 0] + 1j * clean[..., 1], padding).astype(np.complex64)
    return anew(f"{path.stem} {index} denoised", truth[None], None, LOW_FIELD_NOISE, seed)


def repeated(path: Path, index: int, judge: Path | None = None) -> Scan:
    """The first repeat of a scan, judged by the complete image of the second (of ``judge``'s, where it is given)."""
    first = _repeat(path, 0, index)
    second = _repeat(judge or path, 1, index)
    return Scan.of(f"{path.stem} {index}", first, coil_combined(second)[0])


def raw(path: Path, index: int = 0, seed: int = 0) -> Scan:
    """A raw scan, judged by its own complete image."""
    return Scan.of(path.stem, load_scan(str(path), Recipe(), seed).select_slice(index))


def _repeat(path: Path, repeat: int, index: int) -> KSpaceData:
    stored = np.load(path, mmap_mode="r", allow_pickle=False)[repeat, index]  # (coil, readout, phase encode)
    kspace = np.ascontiguousarray(stored.swapaxes(-1, -2), dtype=np.complex64)[None]
    return KSpaceData(kspace, np.any(kspace, axis=(0, 1, 3)), name=path.stem)


def anew(name: str, image: Array, matrix: int | None, noise: float, seed: int, coils: int = 1) -> Scan:
    """A scan of complex images (slice, ky, kx), with white noise of its own."""
    stack = ImageStack(np.asarray(image, dtype=np.complex64), name)
    rng = np.random.default_rng([seed, 1])
    data = simulate_scan(stack, matrix=matrix, noise=noise, phase="own", n_coils=coils, rng=rng)
    return Scan.of(name, data)
