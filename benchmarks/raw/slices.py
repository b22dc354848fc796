"""Cartesian slices, as scanners' converters write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import h5py
import ismrmrd
import numpy as np

from mri_design.operators.base import Array

from .cases import Expected, Variants, by_hand, without_trajectories
from .objects import COILS, NX, NY, exact_noise, scan
from .writing import Encoding, RawFile, Space

SLICES = Variants("slices")
PLAIN = Space((NX, NY, 1))
COVARIANCE = 0.01 * (np.eye(COILS) + 0.3 * np.eye(COILS, k=1) + 0.3 * np.eye(COILS, k=-1))
EVERY_OTHER = list(range(0, NY, 2))
CENTRE = list(range(NY // 2 - 4, NY // 2 + 4))
CALIBRATION, BOTH = [ismrmrd.ACQ_IS_PARALLEL_CALIBRATION], [ismrmrd.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING]
NOISE, REVERSED = [ismrmrd.ACQ_IS_NOISE_MEASUREMENT], [ismrmrd.ACQ_IS_REVERSE]

Built = tuple[RawFile, Expected]


def raw(**encoding: object) -> RawFile:
    """A file with one encoding."""
    return RawFile([Encoding(**{"encoded": PLAIN, "centres": {1: NY // 2}, **encoding})])  # type: ignore[arg-type]


def only(kspace: Array, lines: list[int]) -> Array:
    """The k-space with some of its lines, and zeros elsewhere."""
    kept = np.zeros_like(kspace)
    kept[:, :, lines] = kspace[:, :, lines]
    return kept


def oversampled(kspace: Array, columns: int) -> Array:
    """Readouts over a field of view with ``columns`` more pixels in which there is nothing, by a Fourier matrix."""
    wide, nx = kspace.shape[-1] + columns, kspace.shape[-1]
    return kspace @ centred_dft(nx, nx).conj().T @ centred_dft(wide, nx).T


def centred_dft(frequencies: int, pixels: int) -> Array:
    """Orthonormal Fourier matrix (frequency, pixel) of a grid of as many pixels as frequencies, its middle columns."""
    k, r = np.arange(frequencies) - frequencies // 2, np.arange(pixels) - pixels // 2
    return np.exp(-2j * np.pi * np.outer(k, r) / frequencies) / np.sqrt(frequencies)


def in_order(order: list[int]) -> Built:
    """A slice whose lines come in some order."""
    file = raw()
    file.add_lines(scan(), order)
    return file, Expected(kspace=scan())


@SLICES.add()
def lines_in_sequence() -> Built:
    """Lines in sequence."""
    return in_order(list(range(NY)))


@SLICES.add()
def lines_from_the_centre() -> Built:
    """Lines from the centre out."""
    return in_order(sorted(range(NY), key=lambda line: abs(line - NY // 2)))


@SLICES.add()
def lines_from_last_to_first() -> Built:
    """Lines from the last to the first."""
    return in_order(list(range(NY))[::-1])


@SLICES.add()
def lines_in_random_order() -> Built:
    """Lines in random order."""
    return in_order(np.random.default_rng(0).permutation(NY).tolist())


@SLICES.add()
def echo_trains() -> Built:
    """Echo trains of a turbo spin echo, numbered as segments, with first-in and last-in flags."""
    file = raw()
    for shot in range(4):
        file.add_lines(scan(), list(range(shot, NY, 4)), segment=shot)
    file.acquisitions[0].set_flag(ismrmrd.ACQ_FIRST_IN_SLICE)
    file.acquisitions[-1].set_flag(ismrmrd.ACQ_LAST_IN_SLICE)
    file.acquisitions[-1].set_flag(ismrmrd.ACQ_LAST_IN_MEASUREMENT)
    return file, Expected(kspace=scan())


@SLICES.add()
def readouts_in_turn_reversed() -> Built:
    """Every other readout reversed."""
    file = raw()
    for line in range(NY):
        samples = scan()[0, :, line]
        file.add(samples[:, ::-1] if line % 2 else samples, None, REVERSED * (line % 2), kspace_encode_step_1=line)
    return file, Expected(kspace=scan())


@SLICES.add()
def one_coil() -> Built:
    """One coil."""
    file = raw()
    file.add_lines(scan(coils=1))
    return file, Expected(kspace=scan(coils=1))


@SLICES.add()
def odd_sizes() -> Built:
    """Odd sizes."""
    kspace = scan(shape=(25, 31))
    file = raw(encoded=Space((31, 25, 1)), centres={1: 12})
    file.add_lines(kspace)
    return file, Expected(kspace=kspace)


def averaged(factors: tuple[float, ...]) -> RawFile:
    """Averages, each of them the slice times a factor."""
    file = raw()
    for number, factor in enumerate(factors):
        file.add_lines(factor * scan(), average=number)
    return file


@SLICES.add()
def averages_without_a_policy() -> Built:
    """Two averages, nothing said about them."""
    return averaged((1, 1)), Expected(refused="duplicates='average'")


@SLICES.add(duplicates="average")
def averages() -> Built:
    """Three averages, averaged."""
    return averaged((1, 2, 6)), Expected(kspace=3 * scan(), header={"duplicates": "average of up to 3"})


@SLICES.add(duplicates="last")
def last_average() -> Built:
    """Two averages, the last kept."""
    return averaged((1, 4)), Expected(kspace=4 * scan(), header={"duplicates": "last"})


@SLICES.add(duplicates="average")
def centre_measured_twice() -> Built:
    """Only the central lines measured twice, averaged."""
    file = raw()
    file.add_lines(scan())
    file.add_lines(3 * scan(), CENTRE, average=1)
    expected = scan().copy()
    expected[:, :, CENTRE] *= 2
    return file, Expected(kspace=expected, header={"duplicates": "at least 1"})


def series(counter: str, numbers: tuple[int, ...]) -> RawFile:
    """Several series of images, the one with number n the slice times n + 1, lines of all interleaved."""
    file = raw()
    for line in range(NY):
        for number in numbers:
            file.add_lines((number + 1) * scan(), [line], **{counter: number})
    return file


def _add_series() -> None:
    """Four variants for each counter: the first, one that is chosen, and one that is not there."""
    for counter in ("contrast", "phase", "repetition", "set"):
        SLICES.add()(_first_of(counter))
        SLICES.add(counters={counter: 2})(_chosen(counter))
    SLICES.add(counters={"repetition": 7})(_missing("repetition"))


def _named(build: Callable[[], Built], name: str) -> Callable[[], Built]:
    build.__doc__ = name
    return build


def _first_of(counter: str) -> Callable[[], Built]:
    def build() -> Built:
        return series(counter, (0, 1, 2)), Expected(kspace=scan(), header={counter: "0, the first of 3 (0, 1, 2)"})

    return _named(build, f"Three values of the counter {counter}, the first read.")


def _chosen(counter: str) -> Callable[[], Built]:
    def build() -> Built:
        return series(counter, (1, 2, 5)), Expected(kspace=3 * scan(), header={counter: "2, one of 3 (1, 2, 5)"})

    return _named(build, f"Three values of the counter {counter}, one chosen by its number.")


def _missing(counter: str) -> Callable[[], Built]:
    def build() -> Built:
        return series(counter, (0, 1)), Expected(refused="a number that the file holds: 0, 1")

    return _named(build, f"A number of the counter {counter} that is not there.")


_add_series()


@SLICES.add(counters={"contrast": 1, "phase": 3})
def phases_of_two_contrasts() -> Built:
    """Four phases of two contrasts, one of each chosen."""
    file = raw()
    for contrast in range(2):
        for phase in range(4):
            file.add_lines((1 + contrast + 10 * phase) * scan(), contrast=contrast, phase=phase)
    return file, Expected(kspace=32 * scan())


@SLICES.add()
def slices_in_sequence() -> Built:
    """Three slices in sequence."""
    file = raw()
    file.add_lines(scan(3))
    return file, Expected(kspace=scan(3))


@SLICES.add()
def slices_interleaved() -> Built:
    """Three slices, their lines interleaved, odd slices first."""
    file = raw()
    for line in range(NY):
        for rank in (1, 0, 2):
            file.add(scan(3)[rank, :, line], slice=rank, kspace_encode_step_1=line)
    return file, Expected(kspace=scan(3))


@SLICES.add()
def slices_with_gaps() -> Built:
    """Two slices whose numbers have gaps."""
    file = raw()
    for rank, number in ((0, 4), (1, 9)):
        for line in range(NY):
            file.add(scan(2)[rank, :, line], slice=number, kspace_encode_step_1=line)
    return file, Expected(kspace=scan(2), header={"slices": "present: 4, 9"})


@SLICES.add()
def slices_with_lines_of_their_own() -> Built:
    """Two slices with lines of their own."""
    file = raw()
    file.add_lines(scan(2)[:1], EVERY_OTHER)
    file.add_lines(scan(2)[1:], EVERY_OTHER[1:], slice=1)
    return file, Expected(kspace=np.concatenate([only(scan(2)[:1], EVERY_OTHER), only(scan(2)[1:], EVERY_OTHER[1:])]))


@SLICES.add()
def noise_scan() -> Built:
    """A noise scan before the image, of the same dwell time."""
    file = raw()
    file.add(exact_noise(COVARIANCE, 512), None, NOISE)
    file.add_lines(scan())
    return file, Expected(kspace=scan(), covariance=COVARIANCE, header={"noise_readouts": "1, 512 samples a channel"})


@SLICES.add(duplicates="average")
def noise_scan_of_another_bandwidth() -> Built:
    """A noise scan of another dwell time, with the receiver's bandwidth and two averages."""
    file = averaged((1, 1))
    file.bandwidth = 0.8
    for acquisition in file.acquisitions:
        acquisition.sample_time_us = 10.0
    file.add(exact_noise(COVARIANCE, 256), None, NOISE, sample_time_us=2.5)
    return file, Expected(kspace=scan(), covariance=COVARIANCE * 0.25 / 0.8 / 2)


@SLICES.add()
def noise_of_other_channels() -> Built:
    """A noise scan of other channels than the image's."""
    file = raw()
    file.add(exact_noise(np.eye(2), 64), None, NOISE)
    file.add_lines(scan())
    return file, Expected(kspace=scan(), header={"noise_readouts": "not used: they have"})


@SLICES.add()
def acceleration() -> Built:
    """Every other line, no calibration."""
    file = raw()
    file.add_lines(scan(), EVERY_OTHER)
    return file, Expected(kspace=only(scan(), EVERY_OTHER))


@SLICES.add()
def embedded_calibration() -> Built:
    """Calibration embedded in the scan, flagged as calibration and image."""
    file = raw(calibration="embedded")
    for line in sorted({*EVERY_OTHER, *CENTRE}):
        file.add_lines(scan(), [line], BOTH if line in CENTRE else [])
    return file, Expected(kspace=only(scan(), sorted({*EVERY_OTHER, *CENTRE})))


@SLICES.add()
def calibration_flag_alone() -> Built:
    """Calibration embedded in the scan, its additional lines flagged as calibration alone."""
    file = raw(calibration="embedded")
    file.add_lines(scan(), EVERY_OTHER)
    file.add_lines(scan(), [line for line in CENTRE if line % 2], CALIBRATION)
    expected = only(scan(), sorted({*EVERY_OTHER, *CENTRE}))
    return file, Expected(kspace=expected, header={"calibration_lines": "4 readouts within the scan"})


@SLICES.add()
def separate_calibration() -> Built:
    """A separate calibration scan of another contrast, before the image."""
    file = raw(calibration="separate")
    file.add_lines(2 * scan(), CENTRE, CALIBRATION, contrast=3)
    file.add_lines(scan(), EVERY_OTHER)
    return file, Expected(kspace=only(scan(), EVERY_OTHER), calibration=only(2 * scan(), CENTRE))


@SLICES.add()
def external_calibration() -> Built:
    """An external calibration scan with an encoding of its own, of lower resolution."""
    small = Encoding(Space((NX // 2, 8, 1)), centres={1: 4})
    file = RawFile([Encoding(PLAIN, centres={1: NY // 2}, calibration="external"), small])
    low = scan()[:, :, CENTRE, NX // 4 : -NX // 4]
    file.add_lines(scan(), EVERY_OTHER)
    file.add_lines(low, None, CALIBRATION, encoding_space_ref=1)
    expected = np.zeros_like(scan())
    expected[:, :, CENTRE, NX // 4 : -NX // 4] = low
    return file, Expected(kspace=only(scan(), EVERY_OTHER), calibration=expected)


@SLICES.add()
def partial_fourier() -> Built:
    """Partial Fourier: the counter begins at the first line measured, and the header says where the centre is."""
    file, first = raw(centres={1: NY // 2 - 6}), 6
    for line in range(first, NY):
        file.add(scan()[0, :, line], kspace_encode_step_1=line - first)
    return file, Expected(kspace=only(scan(), list(range(first, NY))))


@SLICES.add()
def partial_fourier_at_the_end() -> Built:
    """Partial Fourier: the last lines missing."""
    file = raw()
    file.add_lines(scan(), list(range(NY - 5)))
    return file, Expected(kspace=only(scan(), list(range(NY - 5))))


@SLICES.add()
def partial_echo() -> Built:
    """A partial echo: fewer samples, the echo off their middle."""
    file = raw()
    file.add_lines(scan()[..., 7:], center_sample=NX // 2 - 7)
    expected = scan().copy()
    expected[..., :7] = 0
    return file, Expected(kspace=expected)


@SLICES.add()
def partial_echo_reversed() -> Built:
    """A partial echo in reversed readouts."""
    file = raw()
    file.add_lines(scan()[..., 7:][..., ::-1], None, REVERSED, center_sample=NX - 1 - NX // 2)
    expected = scan().copy()
    expected[..., :7] = 0
    return file, Expected(kspace=expected)


@SLICES.add()
def partial_echo_discarded() -> Built:
    """A partial echo stored at full length, what is missing marked to be discarded."""
    file = raw()
    file.add_lines(scan(), discard_pre=5, center_sample=NX // 2)
    expected = scan().copy()
    expected[..., :5] = 0
    return file, Expected(kspace=expected)


@SLICES.add()
def discarded_samples() -> Built:
    """Samples to be discarded before and after the readout."""
    file = raw()
    padded = np.pad(scan(), ((0, 0),) * 3 + ((3, 2),), constant_values=1e3)
    file.add_lines(padded, discard_pre=3, discard_post=2, center_sample=3 + NX // 2)
    return file, Expected(kspace=scan())


WIDE = Space((2 * NX, NY, 1), (440.0, 200.0, 5.0))


@SLICES.add()
def oversampling() -> Built:
    """Readout oversampling by two."""
    file = raw(encoded=WIDE, reconstructed=PLAIN)
    file.add_lines(oversampled(scan(), NX))
    return file, Expected(kspace=scan())


@SLICES.add()
def oversampling_of_odd_widths() -> Built:
    """Readout oversampling by 1.3 of an odd width."""
    kspace = scan(shape=(NY, 31))
    file = raw(encoded=Space((41, NY, 1), (410.0, 200.0, 5.0)), reconstructed=Space((31, NY, 1), (310.0, 200.0, 5.0)))
    file.add_lines(oversampled(kspace, 10))
    return file, Expected(kspace=kspace)


@SLICES.add()
def oversampled_partial_echo() -> Built:
    """A partial echo with readout oversampling: what was not measured stays empty."""
    file = raw(encoded=WIDE, reconstructed=PLAIN)
    wide, missing = oversampled(scan(), NX), 14
    file.add_lines(wide[..., missing:], center_sample=NX - missing)
    held = np.where(np.arange(2 * NX) < missing, 0, wide)
    expected = held @ centred_dft(2 * NX, NX).conj() @ centred_dft(NX, NX).T
    expected[..., : missing // 2] = 0
    return file, Expected(kspace=expected.astype(np.complex64))


@SLICES.add()
def smaller_reconstruction() -> Built:
    """A reconstruction of lower resolution over the same field of view: nothing is cut."""
    file = raw(reconstructed=Space((NX // 2, NY // 2, 1)))
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add()
def no_field_of_view() -> Built:
    """A header without fields of view."""
    file = raw(encoded=Space((NX, NY, 1), None))
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add()
def no_encoding_limits() -> Built:
    """A header without encoding limits."""
    file = raw(centres={})
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add()
def no_trajectory_named() -> Built:
    """A header that names no trajectory."""
    file = raw(trajectory="")
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add(by_hand)
def written_by_hand() -> Built:
    """Written by h5py, all at once, shuffled and compressed."""
    file = raw()
    file.add_lines(scan(2))
    return file, Expected(kspace=scan(2))


@SLICES.add(without_trajectories)
def without_trajectory_fields() -> Built:
    """Written by h5py, acquisitions without any field for trajectories."""
    file = raw()
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add(partial(RawFile.write_by_hand, group="scan_1"))
def another_group() -> Built:
    """Written by h5py into a group of another name."""
    file = raw()
    file.add_lines(scan())
    return file, Expected(kspace=scan())


def with_images_and_waveforms(file: RawFile, path: object) -> None:
    """The file with reconstructed images and a physiological signal beside the acquisitions."""
    file.write(path)  # type: ignore[arg-type]
    with h5py.File(path, "a") as stored:  # type: ignore[call-overload]
        stored["dataset/image_0/data"] = np.ones((1, 1, 1, NY, NX), np.float32)
        stored["dataset/waveforms"] = np.arange(40, dtype=np.uint32)


@SLICES.add(with_images_and_waveforms)
def images_and_waveforms() -> Built:
    """Images and waveforms beside the acquisitions."""
    file = raw()
    file.add_lines(scan())
    return file, Expected(kspace=scan())


@SLICES.add()
def navigators_and_dummies() -> Built:
    """Navigators, phase correction, feedback, dummies and stabilisation among the lines."""
    file = raw()
    others = (
        ismrmrd.ACQ_IS_NAVIGATION_DATA,
        ismrmrd.ACQ_IS_PHASECORR_DATA,
        ismrmrd.ACQ_IS_HPFEEDBACK_DATA,
        ismrmrd.ACQ_IS_DUMMYSCAN_DATA,
        ismrmrd.ACQ_IS_RTFEEDBACK_DATA,
        ismrmrd.ACQ_IS_SURFACECOILCORRECTIONSCAN_DATA,
    )
    for line in range(NY):
        file.add(np.full((COILS, 9), 1e3), None, [others[line % len(others)]], kspace_encode_step_1=line)
        file.add_lines(scan(), [line])
    return file, Expected(kspace=scan(), header={"readouts_skipped": f"{NY} of {2 * NY}"})


@SLICES.add()
def dead_coil() -> Built:
    """One coil dead."""
    kspace = scan().copy()
    kspace[:, 1] = 0
    file = raw()
    file.add(exact_noise(COVARIANCE, 128) * np.array([[1], [0], [1]]), None, NOISE)
    file.add_lines(kspace)
    rest = [0, 2]
    expected = Expected(
        kspace=scan()[:, rest],
        covariance=COVARIANCE[np.ix_(rest, rest)],
        header={"coils_dropped": "coil 1 holds zeros only"},
    )
    return file, expected


@SLICES.add()
def doubled_coil() -> Built:
    """One coil stored twice."""
    file = raw()
    file.add_lines(np.concatenate([scan(), scan()[:, :1]], axis=1))
    return file, Expected(kspace=scan(), header={"coils_dropped": "coil 3 repeats coil 0"})


@SLICES.add()
def lines_of_zeros() -> Built:
    """Lines that were not measured, stored as zeros."""
    file = raw()
    file.add_lines(only(scan(), EVERY_OTHER))
    return file, Expected(kspace=only(scan(), EVERY_OTHER))


@SLICES.add()
def line_off_the_grid() -> Built:
    """A line beyond the grid."""
    file = raw()
    file.add_lines(scan())
    file.acquisitions[3].idx.kspace_encode_step_1 = NY
    return file, Expected(refused="[3]: kspace_encode_step_1")


@SLICES.add()
def readouts_longer_than_the_grid() -> Built:
    """Readouts longer than the encoded matrix."""
    file = raw(encoded=Space((NX - 2, NY, 1)))
    file.add_lines(scan())
    return file, Expected(refused="[0]: number_of_samples")


@SLICES.add()
def other_channels_in_one_readout() -> Built:
    """One readout with more channels."""
    file = raw()
    file.add_lines(scan())
    file.acquisitions[5].resize(NX, COILS + 1)
    return file, Expected(refused="[5]: active_channels")


@SLICES.add()
def readouts_of_a_body_coil() -> Built:
    """Readouts of fewer channels, as of a body coil."""
    file = raw()
    file.add(np.full((COILS - 1, NX), 99), kspace_encode_step_1=0)
    file.add_lines(scan())
    return file, Expected(kspace=scan(), header={"readouts_of_fewer_channels": "1 of"})


@SLICES.add()
def not_a_number() -> Built:
    """A sample that is no number."""
    file = raw()
    file.add_lines(scan())
    file.acquisitions[5].data[1, 3] = np.nan
    return file, Expected(refused="[5]: data: got 1 NaN or infinite values")


@SLICES.add()
def echo_planar() -> Built:
    """An echo-planar scan."""
    file = raw(trajectory="epi")
    file.add_lines(scan())
    return file, Expected(refused="got epi, whose echoes need a phase correction that is not done here")
