"""The noise variance and covariance that went into a scan come out of it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    InputError,
    KSpaceData,
    estimate_noise_variance,
    load_phantom,
)
from mri_design.scan.calibration.noise import (
    OBJECT_BESIDE,
    SIGNAL_OUTSIDE,
    correlated_by_signal,
    estimate_noise_covariance,
    measure_noise,
)


def without_lines(data: KSpaceData, keep: np.ndarray) -> KSpaceData:
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep)


def variable_density(ny: int, seed: int) -> np.ndarray:
    distance = np.abs(np.arange(ny) - ny // 2)
    return (distance < 6) | (np.random.default_rng(seed).random(ny) < 0.25)


@pytest.mark.parametrize(("ny", "nx", "coils"), [(128, 128, 1), (127, 96, 1), (96, 97, 8), (64, 64, 1)])
def test_white_noise_is_measured_without_bias(truth: Callable, ny: int, nx: int, coils: int) -> None:
    scene = truth(ny, nx, coils)
    found = [estimate_noise_variance(scene.scan(0.05, seed)) for seed in range(8)]
    assert np.mean(found) == pytest.approx(0.05**2, rel=0.05)


def test_undersampled_scans_give_the_same_number(truth: Callable) -> None:
    scene = truth(128, 128, 1)
    found = [
        estimate_noise_variance(without_lines(scene.scan(0.05, seed), variable_density(128, seed)))
        for seed in range(12)
    ]
    assert np.mean(found) == pytest.approx(0.05**2, rel=0.1)


@pytest.mark.parametrize("count", [12, 16, 24])
def test_the_edges_of_a_small_block_of_centre_lines_are_no_noise(truth: Callable, count: int) -> None:
    """Its image rings in the air beside the object: 12 lines would show twice the noise that there is."""
    scan = truth(128, 128, 6).scan(0.01)
    centre = np.abs(np.arange(128) - 63.5) < count / 2
    assert estimate_noise_variance(without_lines(scan, centre)) == pytest.approx(0.01**2, rel=0.1)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_estimate_follows_the_units(truth: Callable, scale: float) -> None:
    data = truth(64, 64, 2).scan(0.05)
    scaled = replace(data, kspace=data.kspace * np.float32(scale))
    expected = estimate_noise_variance(data) * float(np.float32(scale)) ** 2
    assert estimate_noise_variance(scaled) == pytest.approx(expected, rel=1e-4)


def test_zero_filled_lines_and_readouts_do_not_count_as_noise(truth: Callable) -> None:
    data = truth(128, 128, 1).scan(0.05)
    keep = np.ones(128, dtype=bool)
    keep[:10] = keep[-20:] = False
    cut = without_lines(data, keep)
    cut.kspace[..., :12] = 0
    assert estimate_noise_variance(cut) == pytest.approx(0.05**2, rel=0.2)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_filter_along_the_phase_encode_is_seen(truth: Callable, sampled: bool) -> None:
    """Noise three times quieter at high ky: the image's background has the mean variance, not the corners'."""
    profile = np.interp(np.abs(np.arange(128) - 64), [0, 40, 64], [1, 1 / 3, 1 / 3])
    data = truth(128, 128, 1).scan(0.05)
    data = replace(data, kspace=data.kspace * profile[:, np.newaxis].astype(np.float32))
    if sampled:
        data = without_lines(data, variable_density(128, 3))
    expected = 0.05**2 * np.mean(profile**2)
    assert 0.5 < estimate_noise_variance(data) / expected < 1.7
    assert estimate_noise_variance(data) > 1.5 * 0.05**2 / 9


def test_a_receiver_filter_along_the_readout_is_seen(truth: Callable) -> None:
    """Air at the readout's ends is quieter than the middle: the mean over the readout counts."""
    scene = truth(128, 128, 1)
    rng = np.random.default_rng(5)
    window = np.interp(np.abs(np.arange(128) - 64), [0, 40, 64], [1, 1, 0.3])
    white = rng.standard_normal((128, 128)) + 1j * rng.standard_normal((128, 128))
    noise = np.fft.fft(np.fft.ifftshift(white * window * 0.05, axes=1), axis=1, norm="ortho")
    kspace = scene.kspace + np.fft.fftshift(noise, axes=1)
    data = KSpaceData(kspace.astype(np.complex64), np.ones(128, dtype=bool))
    assert estimate_noise_variance(data) == pytest.approx(0.05**2 * np.mean(window**2), rel=0.2)


def quarter(data: KSpaceData, seed: int) -> KSpaceData:
    """Sixteen central lines, and a quarter of all at random."""
    ny = data.grid_shape[0]
    keep = np.abs(np.arange(ny) - ny // 2) < 8
    keep[np.random.default_rng(seed).choice(ny, ny // 4, replace=False)] = True
    return without_lines(data, keep)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("ends", [(12, 84), (0, 84), (12, 96)])
def test_signal_in_the_outermost_samples_is_no_noise(textured: Callable, ends: tuple[int, int], sampled: bool) -> None:
    """A scan of low resolution: the corners are four times louder than noise and more, and fall off."""
    for seed in range(3):
        data = textured(96, ends, 1.5, 0.01, seed)
        found = measure_noise(quarter(data, seed) if sampled else data)
        assert found.variance == pytest.approx(0.01**2, rel=0.6 if sampled else 0.15)
        assert found.doubt.startswith(f"{SIGNAL_OUTSIDE}: it may be too large (by other places ")


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_an_object_that_fills_the_readout_is_measured_where_it_shows_least(textured: Callable, noise: float) -> None:
    """Its profiles hold no air: on the outer lines there is less of it than on most."""
    for seed in range(3):
        data = textured(96, (0, 96), 2, noise, seed)
        found, profile = measure_noise(data), np.fft.fft(np.fft.ifftshift(data.kspace[0, 0], axes=1), norm="ortho")
        on_most = np.median(np.abs(profile) ** 2) / (2 * np.log(2))
        assert found.doubt.startswith(f"{OBJECT_BESIDE}: it may be too large (by other places ")
        assert found.variance < 0.5 * on_most
        assert found.variance > 0.9 * noise**2


def test_air_above_an_object_that_fills_the_readout_counts_where_it_is_quieter(textured: Callable) -> None:
    """Rows without the object hold noise alone; nothing is doubted then."""
    for seed in range(3):
        data = textured(96, (8, 88), 1.5, 0.01, seed)
        found = measure_noise(replace(data, kspace=np.ascontiguousarray(data.kspace.swapaxes(2, 3))))
        assert found.variance == pytest.approx(0.01**2, rel=0.25)
        assert found.doubt == ""


def test_nothing_is_doubted_where_noise_is_all_there_is_to_see(truth: Callable) -> None:
    """White noise; and a receiver's filter, which makes corners loud that do not fall off, whatever was measured."""
    assert measure_noise(truth(128, 128, 1).scan(0.05)).doubt == ""
    window = np.interp(np.abs(np.arange(128) - 64), [0, 40, 64], [1, 1, 0.3])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        white = rng.standard_normal((128, 128)) + 1j * rng.standard_normal((128, 128))
        noise = np.fft.fft(np.fft.ifftshift(white * window * 0.05, axes=1), axis=1, norm="ortho")
        kspace = (truth(128, 128, 1).kspace + np.fft.fftshift(noise, axes=1)).astype(np.complex64)
        data = KSpaceData(kspace, np.ones(128, dtype=bool))
        expected = 0.05**2 * np.mean(window**2)
        found, of_few = measure_noise(data), measure_noise(quarter(data, seed))
        assert found.variance == pytest.approx(expected, rel=0.15)
        assert expected / 2 < of_few.variance < 2 * expected
        assert (found.doubt, of_few.doubt) == ("", "")


def test_data_without_noise_are_refused() -> None:
    kspace = np.zeros((1, 1, 32, 32), np.complex64)
    kspace[0, 0, 16, 16] = 1
    with pytest.raises(InputError, match="Give noise_variance"):
        estimate_noise_variance(KSpaceData(kspace, np.ones(32, dtype=bool)))


def mixing_matrix(coils: int) -> np.ndarray:
    rng = np.random.default_rng(9)
    random = rng.standard_normal((coils, coils)) + 1j * rng.standard_normal((coils, coils))
    return np.diag(np.linspace(1, 3, coils)) + 0.2 * random


@pytest.mark.parametrize("sampled", [False, True])
def test_the_covariance_of_the_coils_is_found(truth: Callable, sampled: bool) -> None:
    mixing = mixing_matrix(6)
    data = truth(128, 128, 6).scan(0.01, mixing=mixing)
    if sampled:
        data = without_lines(data, variable_density(128, 1))
    expected = 0.01**2 * mixing @ mixing.conj().T
    found = estimate_noise_covariance(data)
    np.testing.assert_allclose(found, found.conj().T)
    assert np.linalg.norm(found - expected) < (0.25 if sampled else 0.12) * np.linalg.norm(expected)


def test_a_coil_that_repeats_another_is_refused_by_name(truth: Callable) -> None:
    data = truth(64, 64, 3).scan(0.01)
    for factor in (1, -2j):
        kspace = data.kspace.copy()
        kspace[:, 2] = factor * data.kspace[:, 0]
        with pytest.raises(InputError, match=r"coil 2, which measured the same as coil 0.*Remove dead or duplicated"):
            estimate_noise_covariance(replace(data, kspace=kspace))


@pytest.mark.parametrize("sampled", [False, True])
def test_a_coil_that_measured_nothing_takes_no_part(truth: Callable, sampled: bool) -> None:
    data = truth(64, 64, 6).scan(0.02)
    if sampled:
        data = without_lines(data, variable_density(64, 0))
    dead = data.kspace.copy()
    dead[:, 3] = 0
    with_dead, without = (
        measure_noise(replace(data, kspace=kspace)) for kspace in (dead, np.delete(data.kspace, 3, axis=1))
    )
    others = np.delete(np.delete(with_dead.covariance, 3, axis=0), 3, axis=1)
    np.testing.assert_allclose(others, without.covariance, rtol=0.1, atol=0.03 * 0.02**2)
    assert not np.delete(with_dead.covariance[3], 3).any()
    assert with_dead.covariance[3, 3] == pytest.approx(np.median(np.diag(without.covariance)), rel=0.05)


def test_too_few_samples_for_the_coils_are_refused() -> None:
    kspace = np.random.default_rng(0).standard_normal((1, 16, 4, 4)).astype(np.complex64)
    with pytest.raises(InputError, match="noise samples for 16 coils"):
        estimate_noise_covariance(KSpaceData(kspace, np.ones(4, dtype=bool)))


def test_signal_at_the_rim_of_a_mask_with_holes_is_not_taken_for_correlated_noise():
    rng = np.random.default_rng(0)
    data = load_phantom("shepp-logan", shape=(64, 64), n_coils=4, rng=rng)
    distance = np.abs(np.arange(64) - 32) / 32
    shutter = np.hypot(distance[:, None], distance) <= 0.9
    holes = replace(data, kspace=np.where(shutter, data.kspace, 0), noise_variance=None)
    covariance = estimate_noise_covariance(holes)
    np.testing.assert_allclose(covariance, covariance[0, 0] * np.eye(4))
    assert covariance[0, 0].real == pytest.approx(estimate_noise_variance(holes))


def test_correlations_of_signal_are_not_those_of_noise(truth: Callable) -> None:
    """The object fills the readout, so that the air beside it is the object, which neighbouring coils see alike."""
    scene = truth(64, 64, 6)
    rng = np.random.default_rng(3)
    everywhere = scene.maps * rng.standard_normal((64, 64))
    noise = 0.1 * (rng.standard_normal((2, 6, 64, 64)).T @ [1, 1j]).T
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(everywhere, axes=(-2, -1)), norm="ortho"), axes=(-2, -1))
    data = KSpaceData((kspace + noise)[None].astype(np.complex64), np.ones(64, dtype=bool))
    found = measure_noise(data)
    assert "two coils correlate by 0." in found.correlations and "as signal does" in found.correlations
    assert found.alone and found.source.endswith(found.correlations)
    np.testing.assert_array_equal(found.covariance, np.diag(np.diag(found.covariance)))


def test_signal_in_a_few_samples_of_the_air_counts_neither_as_noise_nor_as_correlation(truth: Callable) -> None:
    """As of a vessel, which two coils see."""
    data = truth(64, 64, 6).scan(0.02)
    profiles = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(data.kspace, axes=-1), norm="ortho"), axes=-1)
    profiles[:, 2:4, :, 5] += 0.3
    kspace = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(profiles, axes=-1), norm="ortho"), axes=-1)
    found = measure_noise(replace(data, kspace=kspace.astype(np.complex64)))
    assert not found.alone
    np.testing.assert_allclose(np.diag(found.covariance).real, 0.02**2, rtol=0.25)
    assert abs(found.covariance[2, 3]) < 0.1 * 0.02**2


def test_independent_coils_are_shrunk_to_independence_and_correlated_ones_are_not(truth: Callable) -> None:
    """What one witness shows by chance another does not repeat."""
    rng = np.random.default_rng(0)
    mixing = np.eye(8) + 0.12 * rng.standard_normal((8, 8))
    shares = []
    for chosen in (np.eye(8), mixing):
        found = measure_noise(truth(96, 96, 8).scan(0.02, mixing=chosen))
        shares.append(float(found.correlations.rpartition(" ")[2]))
        expected = 0.02**2 * chosen @ chosen.T
        assert np.linalg.norm(found.covariance - expected) < 0.12 * np.linalg.norm(expected)
    assert shares[0] < 0.3 and shares[1] > 0.9


@pytest.mark.parametrize(
    ("correlation", "said"), [(0.5999, ""), (0.6003, "by 0.600, which is more than 0.6,"), (0.97, "by 0.970, which is")]
)
def test_correlations_just_beyond_the_limit_are_said_to_be_beyond_it(correlation: float, said: str) -> None:
    covariance = np.array([[4, 2 * correlation], [2 * correlation, 1]], dtype=np.complex128)
    assert said in correlated_by_signal(covariance)
    assert bool(said) == bool(correlated_by_signal(covariance))
