"""Missing samples of a grid are told in words, and samples that no receiver has measured are refused."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from mri_design import InputError, KSpaceData, Recipe, TrajectoryData, load_input, prepare, prepare_samples
from mri_design.calibration.centre import measured_samples
from mri_design.experiment.description import describe_samples, describe_scan
from mri_design.scan.sampling import (
    Sampling,
    gapless_run,
    index_runs,
    line_pattern,
    require_dynamic_range,
    require_whole_lines,
)
from mri_design.scan.summary import ScanSummary

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
    ("change", "full", "whole", "words"),
    [
        (lambda m: None, True, True, ""),
        (lambda m: m.__setitem__([0, 1, 47], False), True, True, ""),
        (lambda m: m.__setitem__(slice(36, 48), False), False, True, "partial Fourier, lines 36-47 .* ky = -23 to 11"),
        (lambda m: m.__setitem__([3, 4, 20], False), False, True, "lines 3-4, 20 are missing inside"),
        (lambda m: m.__setitem__((slice(None), slice(0, 12)), False), False, False, "partial echo, columns 0-11"),
        (lambda m: m.__setitem__((slice(None), [0, 1, 39]), False), False, False, "readout is zero-filled"),
        (ellipse, False, False, "inside the measured lines, which hold .* of 40 samples"),
        (scattered, False, False, "inside the measured lines, which hold 1 to [0-9]+ of 40"),
    ],
)
def test_what_is_missing_is_said(change: Mask, full: bool, whole: bool, words: str) -> None:
    sampling = Sampling(mask_with(change))
    assert (sampling.full, sampling.whole_lines) == (full, whole)
    assert bool(sampling.missing) == (not full)
    assert re.search(words, sampling.missing)


@pytest.mark.parametrize("change", [ellipse, scattered])
@pytest.mark.parametrize("coils", [1, 3])
def test_zeros_in_all_coils_are_no_samples(change: Mask, coils: int) -> None:
    mask = mask_with(change)
    kspace = noise((coils, *N)) * mask
    np.testing.assert_array_equal(measured_samples(kspace), mask)
    if coils > 1:
        kspace[1] = 0  # a dead coil hides nothing
        np.testing.assert_array_equal(measured_samples(kspace), mask)


def test_round_off_of_zero_filling_is_no_sample() -> None:
    mask = mask_with(scattered)
    kspace = noise((1, *N)).astype(np.complex128) * mask
    kspace += 1e-14 * noise((1, *N), 1)
    np.testing.assert_array_equal(measured_samples(kspace), mask)


@pytest.mark.parametrize("coarse", [0.5, 1.0, 2.0])
def test_zeros_that_a_coarse_converter_returns_are_samples(coarse: float) -> None:
    rounded = np.round(noise((1, *N)) / coarse) * np.float32(coarse)
    assert (rounded == 0).sum() > 20
    assert measured_samples(rounded).all()


@pytest.mark.parametrize("axes", [(-1,), (-2,), (-2, -1)])
@pytest.mark.parametrize("precision", [np.complex64, np.complex128])
def test_zeros_of_a_coarse_converter_are_samples_after_a_transform_and_back(
    axes: tuple[int, ...], precision: type
) -> None:
    rounded = np.round(noise((1, *N)) / 0.5).astype(np.complex128)
    rounded[0, 24, 20] = 1e5  # so that round-off of the others is far below the strongest sample
    back = np.fft.fftn(np.fft.ifftn(rounded, axes=axes).astype(precision), axes=axes).astype(np.complex64)
    zeros = rounded == 0
    assert zeros.sum() > 50 and np.abs(back[zeros]).max() < 1e-6 * np.abs(back).max()
    assert measured_samples(back).all()


def test_the_one_zero_of_a_few_lines_is_a_sample() -> None:
    few = np.round(noise((1, 8, 256), 2) / 0.02)
    few[0, 3, 100] = 0
    assert (few.real == 0).sum() > 1 and measured_samples(few).all()


def test_holes_in_samples_without_an_imaginary_part_are_seen() -> None:
    mask = mask_with(scattered)
    assert not measured_samples(noise((1, *N)).real.astype(np.complex64) * mask)[~mask].any()


def test_holes_beside_a_coarse_converter_are_still_seen() -> None:
    mask = mask_with(scattered)
    rounded = np.round(noise((1, *N)) / 0.3) * np.float32(0.3) * mask
    assert not measured_samples(rounded)[~mask].any()


def test_slices_have_patterns_of_their_own() -> None:
    kspace = noise((2, 1, *N))
    kspace[0, :, 5] = 0
    kspace[1, :, :, ::2] = 0
    data = KSpaceData(kspace, np.ones(N[0], dtype=bool))
    assert not data.whole_lines and not data.fully_sampled
    assert data.missing == "lines 5 are missing inside the acquired window"
    assert np.flatnonzero(~data.select_slice(0).measured).tolist() == [5]
    assert data.select_slice(1).measured.all() and data.select_slice(0).whole_lines


def test_empty_slices_are_not_asked_and_not_selected() -> None:
    kspace = noise((2, 1, *N))
    kspace[1] = 0
    data = KSpaceData(kspace, np.ones(N[0], dtype=bool))
    assert data.fully_sampled and not data.missing
    with pytest.raises(InputError, match=r"slice 1.*no signal"):
        data.select_slice(1)


def test_lines_with_holes_are_refused_where_they_are_needed_whole() -> None:
    require_whole_lines("scan", Sampling(mask_with(lambda m: m.__setitem__(7, False))))
    with pytest.raises(InputError, match=r"scan: got 12.2% of the grid.*whole. .*recon"):
        require_whole_lines("scan", Sampling(mask_with(scattered)))


@pytest.mark.parametrize("samples", [np.ones(4, dtype=bool), np.ones((4, 4))])
def test_a_sampling_is_a_mask(samples: np.ndarray) -> None:
    with pytest.raises(InputError, match="samples"):
        Sampling(samples)


def test_runs_of_indices() -> None:
    assert index_runs([True, True, False, True, False]) == "0-1, 3"
    assert index_runs([False, False]) == ""


def test_a_missing_sample_is_not_rounded_away() -> None:
    samples = np.ones((64, 64), dtype=bool)
    assert Sampling(samples).percentage == "100.0%"
    samples[3, 5] = False
    assert Sampling(samples).percentage == "99.98%"


def memory(shape: tuple[int, ...]) -> np.ndarray:
    """Bytes that nobody wrote, as finite single-precision numbers, a third of them zero."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, 2**32, (*shape, 2), dtype=np.uint32).view(np.float32)
    found = np.where(np.isfinite(found) & (rng.random(found.shape) < 0.7), found, 0)
    return (found[..., 0] + 1j * found[..., 1]).astype(np.complex64)


def image_without_noise(kind: str) -> np.ndarray:
    y, x = np.meshgrid(np.arange(64) - 32, np.arange(64) - 32, indexing="ij")
    return {
        "uniform": np.ones((64, 64)),
        "stripe": (np.abs(y) < 9) * np.ones((64, 64)),
        "box": (np.abs(y) < 16) * (np.abs(x) < 16) * 1.0,
        "gaussian": np.exp(-(y**2 + x**2) / 60),
        "wide gaussian": np.exp(-(y**2 + x**2) / 300),
    }[kind]


def transformed(image: np.ndarray) -> np.ndarray:
    return np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(image)))[None, None].astype(np.complex64)


def test_memory_that_was_never_written_is_refused_and_told_by_info() -> None:
    data = KSpaceData(memory((1, 2, 64, 64)), np.ones(64, dtype=bool))
    with pytest.raises(InputError, match=r"samples up to 3\.\de\+38, 1e\d\d times their median .* beyond 1e10 times"):
        prepare(data, Recipe())
    said = describe_scan(ScanSummary.of(data), Recipe())
    assert "nothing that a receiver measures. recon and design refuse them." in said["samples"]
    assert not {"measured lines", "fully sampled", "centre", "noise", "calibration", "coil maps"} & set(said)


def test_samples_along_a_trajectory_are_held_to_the_same() -> None:
    points = np.random.default_rng(0).uniform(-16, 16, (4096, 2))
    data = TrajectoryData(memory((1, 1, 4096)), points, (32, 32), n_readouts=32)
    with pytest.raises(InputError, match="dynamic range of a receiver"):
        prepare_samples(data, Recipe())
    said = describe_samples(data, Recipe())
    assert "recon and design refuse them" in said["samples"] and not {"dense", "calibration"} & set(said)


@pytest.mark.parametrize("share", [1, 0.13])
def test_some_samples_beyond_all_others_are_refused(share: float) -> None:
    """One flipped bit of an exponent, or many samples in a range that only calculations have."""
    kspace = noise((1, 1, 64, 64))
    if share == 1:
        kspace[0, 0, 3, 5] = 2e38
    else:
        kspace[np.random.default_rng(2).random(kspace.shape) < share] *= np.float32(1e13)
    with pytest.raises(InputError, match="of them beyond 1e10"):
        require_dynamic_range(kspace)


@pytest.mark.parametrize("scale", [1e-30, 1e6, 1e30])
def test_the_scale_does_not_matter(scale: float) -> None:
    require_dynamic_range(noise((1, 1, 64, 64)) * np.float32(scale))


@pytest.mark.parametrize("kind", ["uniform", "stripe", "box", "gaussian", "wide gaussian"])
@pytest.mark.parametrize("every", [1, 2])
def test_images_without_noise_pass(kind: str, every: int) -> None:
    kspace = transformed(image_without_noise(kind))
    kspace[:, :, 1::every] = kspace[:, :, 1::every] if every == 1 else 0
    require_dynamic_range(kspace)


def test_integers_isolated_zeros_and_zero_filled_columns_pass() -> None:
    kspace = np.round(noise((1, 1, 64, 64)) * 3)
    kspace[0, 0, 32, 32] = 1e6
    kspace[..., :9] = 0
    require_dynamic_range(kspace.astype(np.complex64))
    back = np.fft.fft2(np.fft.ifft2(kspace)).astype(np.complex64)  # zeros are round-off now
    require_dynamic_range(back)


@pytest.mark.parametrize("name", ["phantom:shepp-logan", "phantom:lf-gre"])
def test_phantoms_pass(name: str) -> None:
    require_dynamic_range(load_input(name, Recipe()).kspace)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda k: k % 3 == 0, "every 3rd line"),
        (lambda k: (k % 2 == 0) | (abs(k - 32) < 6), "every 2nd line and 13 at the centre (26-38)"),
        (lambda k: (k % 4 == 1) | (abs(k - 32) < 3), "every 4th line and 6 at the centre (29-34)"),
        (
            lambda k: (k % 3 == 0) & (k > 11) | (abs(k - 32) < 3),
            "every 3rd line from 12 to 63 and 5 at the centre (30-34)",
        ),
        (lambda k: abs(k - 32) < 6, ""),
        (lambda k: (k % 3 == 0) & (k != 15), ""),
        (lambda k: k < 0, ""),
        (lambda k: k >= 0, ""),
    ],
)  # fmt: skip
def test_lines_at_equal_distances_are_said_in_words(make: Callable[[np.ndarray], np.ndarray], said: str) -> None:
    assert line_pattern(make(np.arange(64))) == said


def test_many_gaps_are_counted_and_not_listed() -> None:
    rng = np.random.default_rng(0)
    mask = rng.random(64) < 0.5
    mask[[0, 32, 63]] = True
    said = Sampling(np.repeat(mask[:, np.newaxis], 3, axis=1)).missing_lines
    runs = index_runs(~mask).split(", ")
    assert len(runs) > 8
    counted = f"lines {', '.join(runs[:3])}, ... ({np.sum(~mask)} lines in {len(runs)} gaps)"
    assert said == f"{counted} are missing inside the acquired window"


@pytest.mark.parametrize(
    ("lines", "found"),
    [(range(9), (0, 8)), (range(4, 12), (4, 11)), (range(12), (0, 11)), ([6], (6, 6)), ([5], (6, 5))],
)
def test_the_run_around_the_centre_may_reach_the_edges(lines: range, found: tuple[int, int]) -> None:
    measured = np.zeros(12, dtype=bool)
    measured[list(lines)] = True
    assert gapless_run(measured, 6) == found
