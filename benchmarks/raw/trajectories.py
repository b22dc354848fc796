"""Spokes, spirals and other trajectories, whose coordinates the acquisitions bring along."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array

from .cases import Expected, Variants, by_hand
from .objects import COILS, SIDE, exact_noise, shots, spirals, spokes
from .slices import COVARIANCE, NOISE, Built
from .writing import Encoding, RawFile, Space

TRAJECTORIES = Variants("trajectory")
SQUARE = Space((SIDE, SIDE, 1), (220.0, 220.0, 5.0))


def raw(kind: str, **encoding: object) -> RawFile:
    """A file with one encoding of some trajectory."""
    return RawFile([Encoding(**{"encoded": SQUARE, "trajectory": kind, **encoding})])  # type: ignore[arg-type]


def add(file: RawFile, samples: Array, stored: Array, **fields: float) -> None:
    """Append shots of (slice, coil, shot, sample) with coordinates (shot, sample, dimension) as they are stored."""
    for shot in range(len(stored)):
        for rank in range(len(samples)):
            file.add(samples[rank, :, shot], stored[shot], **{"slice": rank, "kspace_encode_step_1": shot, **fields})


def columns(trajectory: Array, third: float | None = None) -> Array:
    """(ky, kx) as MRD has it: (kx, ky), and perhaps a third coordinate."""
    k = trajectory[..., ::-1]
    return k if third is None else np.concatenate([k, np.full((*k.shape[:-1], 1), third)], axis=-1)


def expected(trajectory: Array, samples: Array, **header: str) -> Expected:
    """Samples and trajectory as they are read."""
    return Expected(kspace=samples.reshape(*samples.shape[:2], -1), trajectory=trajectory.reshape(-1, 2), header=header)


@TRAJECTORIES.add()
def radial() -> Built:
    """Spokes, in cycles per field of view."""
    k, file = spokes(8), raw("radial")
    add(file, shots(k), columns(k))
    return file, expected(k, shots(k), trajectory_unit="cycles per field of view")


@TRAJECTORIES.add()
def golden_angle() -> Built:
    """Spokes at golden angles, in cycles per pixel."""
    k, file = spokes(7, golden=True), raw("goldenangle")
    add(file, shots(k), columns(k) / SIDE)
    return file, expected(k, shots(k), trajectory_unit="cycles per pixel")


@TRAJECTORIES.add()
def oversampled_radial() -> Built:
    """Spokes, in cycles per pixel, with readout oversampling in the encoded space."""
    k, file = spokes(8), raw("radial", encoded=Space((2 * SIDE, SIDE, 1), (440.0, 220.0, 5.0)), reconstructed=SQUARE)
    add(file, shots(k), columns(k) / SIDE)
    return file, expected(k, shots(k))


@TRAJECTORIES.add()
def discarded_in_shots() -> Built:
    """Spokes with samples to be discarded."""
    k, file = spokes(8), raw("radial")
    stored = np.pad(columns(k), ((0, 0), (4, 2), (0, 0)), constant_values=1e3)
    add(file, np.pad(shots(k), ((0, 0),) * 3 + ((4, 2),), constant_values=1e3), stored, discard_pre=4, discard_post=2)
    return file, expected(k, shots(k))


@TRAJECTORIES.add()
def spiral() -> Built:
    """Interleaves of a spiral in three slices, with a third coordinate of zeros."""
    k, file = spirals(4), raw("spiral")
    add(file, shots(k, 3), columns(k, 0.0))
    return file, expected(k, shots(k, 3))


@TRAJECTORIES.add(by_hand)
def shuffled_interleaves() -> Built:
    """Interleaves of a spiral in random order, numbered; written by h5py."""
    k, file = spirals(4), raw("spiral")
    for shot in (3, 0, 1, 2):
        file.add(shots(k)[0, :, shot], columns(k)[shot], kspace_encode_step_1=shot)
    return file, expected(k, shots(k))


@TRAJECTORIES.add()
def other_trajectory() -> Built:
    """Lines forth and back with all coordinates, a trajectory that the header calls other."""
    walk = np.stack(np.meshgrid(np.arange(-6, 6), np.arange(-6, 6)), axis=-1).astype(float)
    walk[1::2] = walk[1::2, ::-1]
    file = raw("other")
    add(file, shots(walk), columns(walk))
    return file, expected(walk, shots(walk))


@TRAJECTORIES.add()
def unnamed_trajectory() -> Built:
    """Coordinates in a file whose header names no trajectory."""
    k, file = spokes(8), raw("")
    add(file, shots(k), columns(k))
    return file, expected(k, shots(k))


@TRAJECTORIES.add()
def noise_and_a_dead_coil() -> Built:
    """A spiral with a noise scan and a dead coil."""
    k, file = spirals(4), raw("spiral")
    samples = shots(k).copy()
    samples[:, 0] = 0
    file.add(exact_noise(COVARIANCE, 128), None, NOISE)
    add(file, samples, columns(k))
    known = Expected(
        kspace=samples[:, 1:].reshape(1, COILS - 1, -1),
        trajectory=k.reshape(-1, 2),
        covariance=COVARIANCE[1:, 1:],
        header={"coils_dropped": "coil 0 holds zeros only"},
    )
    return file, known


@TRAJECTORIES.add()
def repeated_shots_without_a_policy() -> Built:
    """Spokes measured twice, nothing said about them."""
    k, file = spokes(8), raw("radial")
    for number in range(2):
        add(file, shots(k), columns(k), average=number)
    return file, Expected(refused="duplicates='average'")


@TRAJECTORIES.add(duplicates="average")
def repeated_shots() -> Built:
    """Spokes measured twice, averaged."""
    k, file = spokes(8), raw("radial")
    for factor in (1, 3):
        add(file, factor * shots(k), columns(k), average=factor)
    return file, expected(k, 2 * shots(k), duplicates="average of up to 2")


@TRAJECTORIES.add(counters={"contrast": 1})
def contrasts_of_a_spiral() -> Built:
    """Two contrasts of a spiral, the second chosen."""
    k, file = spirals(4), raw("spiral")
    for contrast in range(2):
        add(file, (contrast + 1) * shots(k), columns(k), contrast=contrast)
    return file, expected(k, 2 * shots(k), contrast="1, one of 2")


@TRAJECTORIES.add()
def no_coordinates() -> Built:
    """A spiral without coordinates."""
    k, file = spirals(4), raw("spiral")
    for shot in range(4):
        file.add(shots(k)[0, :, shot], kspace_encode_step_1=shot)
    return file, Expected(refused="no coordinates, in a file with spiral trajectory")


@TRAJECTORIES.add()
def weights() -> Built:
    """A spiral whose third coordinate is a weight."""
    k, file = spirals(4), raw("spiral")
    add(file, shots(k), columns(k, 0.3))
    return file, Expected(refused="weights of the samples")


@TRAJECTORIES.add()
def stack_of_spirals() -> Built:
    """A stack of spirals."""
    k, file = spirals(4), raw("spiral", encoded=Space((SIDE, SIDE, 4), (220.0, 220.0, 40.0)))
    for partition in range(4):
        add(file, shots(k), columns(k), kspace_encode_step_2=partition)
    return file, Expected(refused="got a second partition")


@TRAJECTORIES.add()
def cycles_per_metre() -> Built:
    """A spiral in cycles per metre."""
    k, file = spirals(4), raw("spiral")
    add(file, shots(k), columns(k) / 0.22)
    return file, Expected(refused="which look like cycles per metre")


@TRAJECTORIES.add()
def radians_per_pixel() -> Built:
    """A spiral in radians per pixel."""
    k, file = spirals(4), raw("spiral")
    add(file, shots(k), columns(k) * 2 * np.pi / SIDE)
    return file, Expected(refused="which look like radians per pixel")


@TRAJECTORIES.add()
def turning_slices() -> Built:
    """Two slices whose spokes have other angles."""
    k, file = spokes(8), raw("radial")
    add(file, shots(k), columns(k))
    add(file, shots(k), columns(k)[..., ::-1], slice=1)
    return file, Expected(refused="the same trajectory in every slice")


@TRAJECTORIES.add()
def unequal_readouts() -> Built:
    """Spokes of unequal length."""
    k, file = spokes(8), raw("radial")
    add(file, shots(k), columns(k))
    file.add(shots(k)[0, :, 0, :20], columns(k)[0, :20], kspace_encode_step_1=8)
    return file, Expected(refused="[8]: number_of_samples")


@TRAJECTORIES.add()
def coordinates_of_lines() -> Built:
    """A trajectory with one coordinate for each sample."""
    k, file = spokes(8), raw("other")
    add(file, shots(k), columns(k)[..., :1])
    return file, Expected(refused="trajectory_dimensions: got 1")
