"""Cartesian volumes: two phase encodes, planes (ky, kz) for every readout position."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array

from .cases import Expected, Variants
from .objects import COILS, NX, NY, NZ, exact_noise, volume
from .slices import COVARIANCE, NOISE, Built, centred_dft, oversampled
from .writing import Encoding, RawFile, Space

VOLUMES = Variants("volume")
FULL = [(ky, kz) for kz in range(NZ) for ky in range(NY)]
SLAB = Space((NX, NY, NZ), (220.0, 200.0, 60.0))


def raw(**encoding: object) -> RawFile:
    """A file with one encoding."""
    return RawFile([Encoding(**{"encoded": SLAB, "centres": {1: NY // 2, 2: NZ // 2}, **encoding})])  # type: ignore[arg-type]


def add(file: RawFile, kspace: Array, places: list[tuple[int, int]] = FULL, **fields: float) -> None:
    """Append the readouts of (coil, ky, kz, kx) at some places (ky, kz)."""
    for ky, kz in places:
        file.add(kspace[:, ky, kz], **{"kspace_encode_step_1": ky, "kspace_encode_step_2": kz, **fields})


def planes(kspace: Array, places: list[tuple[int, int]] = FULL) -> Array:
    """(coil, ky, kz, kx) at some places as (x, coil, ky, kz), by a Fourier matrix along the readout."""
    kept = np.zeros_like(kspace)
    for ky, kz in places:
        kept[:, ky, kz] = kspace[:, ky, kz]
    nx = kspace.shape[-1]
    return np.moveaxis(kept @ centred_dft(nx, nx).conj(), -1, 0)


@VOLUMES.add()
def in_sequence() -> Built:
    """Lines and partitions in sequence."""
    file = raw()
    add(file, volume())
    return file, Expected(kspace=planes(volume()), header={"volume": "32 readout positions"})


@VOLUMES.add()
def in_random_order() -> Built:
    """Lines and partitions in random order, no encoding limits."""
    file = raw(centres={})
    add(file, volume(), [FULL[at] for at in np.random.default_rng(2).permutation(len(FULL))])
    return file, Expected(kspace=planes(volume()))


@VOLUMES.add()
def elliptical_shutter() -> Built:
    """An elliptical shutter over both phase encodes."""
    inside = [(ky, kz) for ky, kz in FULL if (2 * ky / NY - 1) ** 2 + (2 * kz / NZ - 1) ** 2 <= 1]
    file = raw()
    add(file, volume(), inside)
    return file, Expected(kspace=planes(volume(), inside))


@VOLUMES.add()
def random_samples() -> Built:
    """A fifth of all samples of the plane, at random."""
    chosen = [FULL[at] for at in np.random.default_rng(4).choice(len(FULL), len(FULL) // 5, replace=False)]
    file = raw()
    add(file, volume(), chosen)
    return file, Expected(kspace=planes(volume(), chosen))


@VOLUMES.add()
def partial_fourier_of_partitions() -> Built:
    """Partial Fourier over the partitions, whose counter begins at the first one measured."""
    file = raw(centres={1: NY // 2, 2: NZ // 2 - 2})
    for ky, kz in FULL:
        if kz >= 2:
            file.add(volume()[:, ky, kz], kspace_encode_step_1=ky, kspace_encode_step_2=kz - 2)
    return file, Expected(kspace=planes(volume(), [(ky, kz) for ky, kz in FULL if kz >= 2]))


@VOLUMES.add()
def oversampled_volume() -> Built:
    """Readout oversampling of a volume."""
    file = raw(encoded=Space((2 * NX, NY, NZ), (440.0, 200.0, 60.0)), reconstructed=SLAB)
    add(file, oversampled(volume(), NX))
    return file, Expected(kspace=planes(volume()))


@VOLUMES.add()
def odd_volume() -> Built:
    """Odd sizes of a volume."""
    kspace = volume((25, 9, 31))
    file = raw(encoded=Space((31, 25, 9), (220.0, 200.0, 60.0)), centres={1: 12, 2: 4})
    add(file, kspace, list(np.ndindex(25, 9)))
    return file, Expected(kspace=planes(kspace, list(np.ndindex(25, 9))))


@VOLUMES.add()
def partial_echo_of_a_volume() -> Built:
    """A partial echo of a volume: read with zeros, and the header says so."""
    file = raw()
    add(file, volume()[..., 6:], center_sample=NX // 2 - 6)
    cut = volume().copy()
    cut[..., :6] = 0
    return file, Expected(kspace=planes(cut), header={"partial_echo": "columns 0-5 of the readouts count as zeros"})


@VOLUMES.add(duplicates="average")
def averages_of_a_volume() -> Built:
    """Two averages of a volume with a noise scan."""
    file = raw()
    file.add(exact_noise(COVARIANCE, 128), None, NOISE)
    for factor in (1, 3):
        add(file, factor * volume(), average=factor)
    return file, Expected(kspace=planes(2 * volume()), covariance=COVARIANCE / 2)


@VOLUMES.add(counters={"repetition": 1})
def repetitions_of_a_volume() -> Built:
    """A volume measured repeatedly, the second repetition chosen."""
    file = raw()
    for number in range(3):
        add(file, (number + 1) * volume(), repetition=number)
    return file, Expected(kspace=planes(2 * volume()), header={"repetition": "1, one of 3"})


@VOLUMES.add()
def dead_coil_of_a_volume() -> Built:
    """A volume with a dead coil."""
    kspace = volume().copy()
    kspace[COILS - 1] = 0
    file = raw()
    add(file, kspace)
    return file, Expected(kspace=planes(volume()[: COILS - 1]), header={"coils_dropped": "holds zeros only"})


@VOLUMES.add()
def two_slabs() -> Built:
    """Two slabs."""
    file = raw()
    for slab in range(2):
        add(file, volume(), slice=slab)
    return file, Expected(refused="Export each slab to a file of its own")


@VOLUMES.add()
def partitions_of_slices() -> Built:
    """Partitions in a file whose header declares slices."""
    file = raw(encoded=Space((NX, NY, 1)))
    add(file, volume())
    return file, Expected(refused="kspace_encode_step_2: got a second partition")
