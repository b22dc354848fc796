"""Which samples were measured and which are missing; samples that no receiver has measured are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, TrajectoryData, calibrate, scan
from mri_design.calibration import measured_samples
from mri_design.experiment import load_scan
from mri_design.runs.info import describe_scan
from mri_design.runs.provenance import phrase
from tests.refusals import refused, refuses

N = (48, 40)
Mask = Callable[[np.ndarray], None]


def mask_with(change: Mask) -> np.ndarray:
    mask = np.ones(N, dtype=bool)
    change(mask)
    return mask


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def ellipse(mask: np.ndarray) -> None:
    y, x = (np.linspace(-1, 1, n) for n in N)
    mask[:] = np.hypot(y[:, None], x) < 1


def scattered(mask: np.ndarray) -> None:
    mask[:] = np.random.default_rng(0).random(N) < 0.12


@pytest.mark.parametrize(
    ("change", "lines", "samples"),
    [
        (lambda m: None, "", ""),
        (lambda m: m.__setitem__([0, 1, 47], False), "", ""),
        (lambda m: m.__setitem__(slice(36, 48), False), "edge", ""),
        (lambda m: m.__setitem__([3, 4, 20], False), "gaps", ""),
        (lambda m: m.__setitem__(slice(None), False), "all", ""),
        (lambda m: m.__setitem__((slice(None), slice(0, 12)), False), "", "echo"),
        (lambda m: m.__setitem__((slice(None), [0, 1, 39]), False), "", "filled"),
        (ellipse, "", "holes"),
        (scattered, "", "holes"),
    ],
)
def test_what_is_missing(change: Mask, lines: str, samples: str) -> None:
    sampling = scan.Sampling(mask_with(change))
    assert (sampling.missing_lines, sampling.missing_samples) == (lines, samples)
    assert (sampling.full, sampling.whole_lines) == (not lines + samples, not samples)
    assert bool(phrase("missing", sampling)) == (not sampling.full)


@pytest.mark.parametrize("change", [ellipse, scattered])
def test_zeros_in_all_coils_are_no_samples(change: Mask) -> None:
    mask = mask_with(change)
    kspace = noise((3, *N)) * mask
    for coils in (kspace, kspace[:1], kspace[:1].real.astype(np.complex64)):
        np.testing.assert_array_equal(measured_samples(coils), mask)
    kspace[1] = 0  # a dead coil hides nothing
    np.testing.assert_array_equal(measured_samples(kspace), mask)
    round_off = kspace.astype(np.complex128) + 1e-14 * noise((3, *N), 1)  # of zero-filling elsewhere
    np.testing.assert_array_equal(measured_samples(round_off), mask)
    coarse = np.round(kspace[:1] / 0.3) * np.float32(0.3)  # holes beside the zeros of a converter
    assert not measured_samples(coarse)[~mask].any()


@pytest.mark.parametrize("coarse", [0.5, 1.0, 2.0])
def test_zeros_that_a_coarse_converter_returns_are_samples(coarse: float) -> None:
    rounded = np.round(noise((1, *N)) / coarse) * np.float32(coarse)
    assert (rounded == 0).sum() > 20
    assert measured_samples(rounded).all()
    few = np.round(noise((1, 8, 256), 2) / 0.02)
    few[0, 3, 100] = 0
    assert (few.real == 0).sum() > 1 and measured_samples(few).all()


@pytest.mark.parametrize("axes", [(-1,), (-2,), (-2, -1)])
@pytest.mark.parametrize("precision", [np.complex64, np.complex128])
def test_zeros_of_a_coarse_converter_are_samples_after_a_transform_and_back(axes, precision):
    rounded = np.round(noise((1, *N)) / 0.5).astype(np.complex128)
    rounded[0, 24, 20] = 1e5  # so that round-off of the others is far below the strongest sample
    back = np.fft.fftn(np.fft.ifftn(rounded, axes=axes).astype(precision), axes=axes).astype(np.complex64)
    zeros = rounded == 0
    assert zeros.sum() > 50 and np.abs(back[zeros]).max() < 1e-6 * np.abs(back).max()
    assert measured_samples(back).all()


def test_slices_have_patterns_of_their_own() -> None:
    kspace = noise((3, 1, *N))
    kspace[0, :, 5] = kspace[1, :, :, ::2] = kspace[2] = 0
    data = KSpaceData(kspace, np.ones(N[0], dtype=bool))
    assert not data.whole_lines and not data.fully_sampled and data.incomplete is data.samplings[0]
    assert np.flatnonzero(~data.select_slice(0).measured).tolist() == [5]
    assert data.select_slice(1).measured.all() and data.select_slice(0).whole_lines
    with refused("slice 2"):  # an empty one
        data.select_slice(2)
    kspace[:2] = noise((2, 1, *N))
    data = KSpaceData(kspace, np.ones(N[0], dtype=bool))
    assert data.fully_sampled


def test_lines_with_holes_are_refused_where_they_are_needed_whole() -> None:
    scan.require_whole_lines("scan", scan.Sampling(mask_with(lambda m: m.__setitem__(7, False))))
    refuses("scan", scan.require_whole_lines, "scan", scan.Sampling(mask_with(scattered)))
    for samples in (np.ones(4, dtype=bool), np.ones((4, 4))):
        refuses("samples", scan.Sampling, samples)


def test_a_missing_sample_is_not_rounded_away() -> None:
    samples = np.ones((64, 64), dtype=bool)
    assert scan.Sampling(samples).percentage == "100.0%"
    samples[3, 5] = False
    assert scan.Sampling(samples).percentage == "99.98%"


def memory(shape: tuple[int, ...]) -> np.ndarray:
    """Bytes that were never written, as finite single-precision numbers, a third of them zero."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, 2**32, (*shape, 2), dtype=np.uint32).view(np.float32)
    found = np.where(np.isfinite(found) & (rng.random(found.shape) < 0.7), found, 0)
    return (found[..., 0] + 1j * found[..., 1]).astype(np.complex64)


def flipped_bit() -> np.ndarray:
    kspace = noise((1, 1, 64, 64))
    kspace[0, 0, 3, 5] = 2e38
    return kspace


def range_of_calculations() -> np.ndarray:
    kspace = noise((1, 1, 64, 64))
    kspace[np.random.default_rng(2).random(kspace.shape) < 0.13] *= np.float32(1e13)
    return kspace


@pytest.mark.parametrize("kspace", [flipped_bit(), range_of_calculations(), memory((1, 1, 64, 64))])
def test_samples_beyond_all_others_are_refused(kspace: np.ndarray) -> None:
    refuses("kspace", scan.require_dynamic_range, kspace)


def test_memory_that_was_never_written_is_refused_and_described() -> None:
    data = KSpaceData(memory((1, 2, 64, 64)), np.ones(64, dtype=bool))
    refuses("kspace", calibrate, data, Recipe())
    assert scan.ScanSummary.of(data).refused
    points = np.random.default_rng(0).uniform(-16, 16, (4096, 2))
    along = TrajectoryData(memory((1, 1, 4096)), points, (32, 32), n_readouts=32)
    refuses("kspace", calibrate, along, Recipe())
    for one in (scan.ScanSummary.of(data), along):  # nothing else is said of them
        about = set(describe_scan(one, Recipe()).text)
        assert "samples" in about and not {"measured lines", "dense", "noise", "calibration", "coil maps"} & about


Y, X = np.mgrid[-32:32, -32:32]


@pytest.mark.parametrize(
    "image",
    [
        np.ones((64, 64)),
        (np.abs(Y) < 9) * 1.0,
        (np.abs(Y) < 16) * (np.abs(X) < 16) * 1.0,
        np.exp(-(Y**2 + X**2) / 60),
        np.exp(-(Y**2 + X**2) / 300),
    ],
    ids=["uniform", "stripe", "box", "gaussian", "wide gaussian"],
)
@pytest.mark.parametrize("every", [1, 2])
def test_images_without_noise_pass(image: np.ndarray, every: int) -> None:
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(image)))[None, None].astype(np.complex64)
    kspace[:, :, 1::every] *= every == 1
    scan.require_dynamic_range(kspace)


def test_whatever_a_receiver_measures_passes() -> None:
    for scale in (1e-30, 1e6, 1e30):
        scan.require_dynamic_range(noise((1, 1, 64, 64)) * np.float32(scale))
    kspace = np.round(noise((1, 1, 64, 64)) * 3)  # integers, isolated zeros, zero-filled columns
    kspace[0, 0, 32, 32] = 1e6
    kspace[..., :9] = 0
    scan.require_dynamic_range(kspace.astype(np.complex64))
    back = np.fft.fft2(np.fft.ifft2(kspace)).astype(np.complex64)  # zeros are round-off now
    scan.require_dynamic_range(back)
    for name in ("phantom:shepp-logan", "phantom:lf-gre"):
        scan.require_dynamic_range(load_scan(name, Recipe()).kspace)


@pytest.mark.parametrize(
    ("make", "pattern"),
    [
        (lambda k: k % 3 == 0, "every 3rd line"),
        (lambda k: (k % 2 == 0) | (abs(k - 32) < 6), "every 2nd line and 13 at the centre (26-38)"),
        (lambda k: (k % 4 == 1) | (abs(k - 32) < 3), "every 4th line and 6 at the centre (29-34)"),
        (lambda k: (k % 3 == 0) & (k > 11), "every 3rd line from 12 to 63"),
        (lambda k: abs(k - 32) < 6, ""),
        (lambda k: (k % 3 == 0) & (k != 15), ""),
        (lambda k: k < 0, ""),
        (lambda k: k >= 0, ""),
    ],
)
def test_lines_at_equal_distances(make: Callable[[np.ndarray], np.ndarray], pattern: str) -> None:
    assert scan.line_pattern(make(np.arange(64))) == pattern


def test_many_gaps_are_counted_and_not_listed() -> None:
    mask = np.random.default_rng(0).random(64) < 0.5
    mask[[0, 32, 63]] = True
    runs = scan.index_runs(~mask).split(", ")
    listed = scan.few_runs(~mask)
    assert len(runs) > 8 and ", ".join(runs[:3]) in listed and runs[3] not in listed and str(len(runs)) in listed
    assert scan.index_runs([True, True, False, True, False]) == "0-1, 3" and scan.index_runs([False, False]) == ""


@pytest.mark.parametrize(
    ("lines", "found"),
    [(range(9), (0, 8)), (range(4, 12), (4, 11)), (range(12), (0, 11)), ([6], (6, 6)), ([5], (6, 5))],
)
def test_the_run_around_the_centre_may_reach_the_edges(lines: range, found: tuple[int, int]) -> None:
    measured = np.zeros(12, dtype=bool)
    measured[list(lines)] = True
    assert scan.gapless_run(measured, 6) == found
