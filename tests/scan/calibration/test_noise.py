"""The noise variance and covariance that went into a scan come out of it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import (
    InputError,
    KSpaceData,
    Recipe,
    estimate_noise_variance,
    load_phantom,
    load_scan,
    prepare,
    prewhiten,
)
from mri_design.experiment.description import describe_scan
from mri_design.scan.calibration.noise import (
    NOISE_FROM,
    OBJECT_BESIDE,
    SIGNAL_OUTSIDE,
    correlated_by_signal,
    estimate_noise_covariance,
    measure_coil_noise,
    measure_noise,
    with_volume_noise,
)
from mri_design.scan.centred_fft import to_image, to_kspace
from mri_design.scan.io.samples import readout_positions
from mri_design.scan.summary import ScanSummary


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
        assert found.doubt == SIGNAL_OUTSIDE


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_an_object_that_fills_the_readout_is_measured_where_it_shows_least(textured: Callable, noise: float) -> None:
    """Its profiles hold no air: on the outer lines there is less of it than on most."""
    for seed in range(3):
        data = textured(96, (0, 96), 2, noise, seed)
        found, profile = measure_noise(data), np.fft.fft(np.fft.ifftshift(data.kspace[0, 0], axes=1), norm="ortho")
        on_most = np.median(np.abs(profile) ** 2) / (2 * np.log(2))
        assert found.doubt == OBJECT_BESIDE
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


def test_dead_and_duplicated_coils_are_refused(truth: Callable) -> None:
    data = truth(64, 64, 3).scan(0.01)
    for coil in (np.zeros_like(data.kspace[:, 1]), data.kspace[:, 0]):
        kspace = data.kspace.copy()
        kspace[:, 1] = coil
        with pytest.raises(InputError, match="dead or duplicated"):
            estimate_noise_covariance(replace(data, kspace=kspace))


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
    found = measure_coil_noise(data)
    assert "two coils correlate by 0." in found.doubt and "as signal does" in found.doubt
    np.testing.assert_array_equal(found.covariance, np.diag(np.diag(found.covariance)))


def test_coils_on_whose_noise_mean_and_median_disagree_count_alone(truth: Callable) -> None:
    """One coil has signal in a few samples of the air, as of a vessel: their mean takes it for noise."""
    data = truth(64, 64, 6).scan(0.02)
    profiles = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(data.kspace, axes=-1), norm="ortho"), axes=-1)
    profiles[:, 2, :, 5] += 0.3
    kspace = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(profiles, axes=-1), norm="ortho"), axes=-1)
    found = measure_coil_noise(replace(data, kspace=kspace.astype(np.complex64)))
    assert "mean and median disagree" in found.doubt
    np.testing.assert_allclose(np.diag(found.covariance).real, 0.02**2, rtol=0.35)
    assert measure_coil_noise(data).doubt == ""


@pytest.mark.parametrize(
    ("correlation", "said"), [(0.4999, ""), (0.5003, "by 0.500, which is more than 0.5,"), (0.97, "by 0.970, which is")]
)
def test_correlations_just_beyond_the_limit_are_said_to_be_beyond_it(correlation: float, said: str) -> None:
    covariance = np.array([[4, 2 * correlation], [2 * correlation, 1]], dtype=np.complex128)
    assert said in correlated_by_signal(covariance)
    assert bool(said) == bool(correlated_by_signal(covariance))


SD = 0.05
CORRELATION = 0.4
N, READOUT = 24, 64


def volume(coils: int = 1, seed: int = 0, share: float = 0.3, readout: int = READOUT) -> np.ndarray:
    """K-space (kx, coil, ky, kz) of a box in the middle of the readout, with noise; samples chosen at random."""
    rng = np.random.default_rng(seed)
    image = np.zeros((readout, coils, N, N), complex)
    image[readout // 8 : -readout // 8, :, 5:-5, 7:-6] = 1 + rng.standard_normal((coils, N - 10, N - 13)) ** 2
    kspace = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(image, axes=(0, 2, 3)), axes=(0, 2, 3), norm="ortho"))
    kspace = np.fft.ifftshift(kspace, axes=1)
    noise = SD * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    if coils > 1:
        noise[:, 1] = CORRELATION * noise[:, 0] + np.sqrt(1 - CORRELATION**2) * noise[:, 1]
    mask = rng.random((N, N)) < share
    mask[8:16, 8:16] = True
    return ((kspace + noise) * mask).astype(np.complex64)


def planes(kspace: np.ndarray) -> KSpaceData:
    return KSpaceData(readout_positions(kspace), measured=np.ones(N, bool), header={"volume": "planes"})


def test_it_is_the_noise_that_was_added_where_one_plane_shows_signal() -> None:
    found, alone = [], []
    for seed in range(4):
        data = planes(volume(seed=seed))
        covariance = with_volume_noise(data).noise_covariance
        assert covariance is not None
        found.append(covariance[0, 0].real)
        alone.append(estimate_noise_variance(data.select_slice(READOUT // 2)))
    assert np.mean(found) == pytest.approx(SD**2, rel=0.05)
    assert min(alone) > 3 * SD**2


def test_coils_keep_their_correlation() -> None:
    covariance = with_volume_noise(planes(volume(coils=2))).noise_covariance
    assert covariance is not None
    np.testing.assert_allclose(np.diag(covariance).real, SD**2, rtol=0.12)
    assert abs(covariance[0, 1]) / SD**2 == pytest.approx(CORRELATION, abs=0.1)


def test_the_quieter_end_counts_where_the_object_reaches_the_other() -> None:
    kspace = volume()
    moved = planes(kspace).kspace.copy()
    moved[-8:] += 20 * SD * np.abs(moved[8:16])
    data = with_volume_noise(replace(planes(kspace), kspace=moved))
    assert data.noise_covariance is not None and "positions 0-3" in data.header[NOISE_FROM]
    assert data.noise_covariance[0, 0].real == pytest.approx(SD**2, rel=0.1)


def test_other_scans_stay_as_they_are() -> None:
    data = planes(volume())
    for other in (
        replace(data, header={}),
        replace(data, noise_variance=1.0),
        planes(volume(share=1.0)),
        planes(volume(readout=16)),
        replace(data, kspace=np.where(np.arange(READOUT)[:, None, None, None] % 60 < 4, 0, data.kspace)),
    ):
        assert with_volume_noise(other) is other


def test_a_file_is_read_with_it_and_info_says_so(tmp_path: Path) -> None:
    path = tmp_path / "volume.npz"
    np.savez(path, kspace=volume(coils=2).transpose(1, 0, 2, 3))
    path.with_suffix(".json").write_text('{"dims": ["coil", "kx", "ky", "kz"]}')
    data = load_scan(path, Recipe())
    assert isinstance(data, KSpaceData)
    prepared = prepare(data.select_slice(READOUT // 2), Recipe.of({"coils": {"calibration_lines": 8}}))
    assert prepared.noise_source.startswith("estimated from the data, positions ")
    told = describe_scan(ScanSummary.of(planes(volume())), Recipe())["noise"]
    assert "recon measures the noise at the ends of the readout" in told


MIXING = np.array([[2, 0.5, 0], [0.3j, 1, 0.2], [0, 0.4, 0.5 - 0.2j]])
PLAUSIBLE = np.array([[2, 0.5, 0], [0.3j, 1, 0], [0, 0.1, 0.5 - 0.2j]])
"""No two coils correlate by more than a half: an estimate of more is taken for signal."""


def noise_covariance(truth: object, mixing: np.ndarray, whiten: Callable) -> np.ndarray:
    """Sample covariance per real component of the noise after whitening."""
    noisy = whiten(truth.scan(0.02, mixing=mixing))  # type: ignore[attr-defined]
    silent = whiten(truth.scan(0, mixing=mixing))  # type: ignore[attr-defined]
    noise = np.moveaxis(noisy.kspace - silent.kspace, 1, 0).reshape(3, -1)
    return noise @ noise.conj().T / (2 * noise.shape[1])


def test_a_given_covariance_becomes_the_identity(truth: Callable) -> None:
    covariance = 0.02**2 * MIXING @ MIXING.conj().T
    found = noise_covariance(truth(coils=3), MIXING, lambda data: prewhiten(data, covariance))
    np.testing.assert_allclose(found, np.eye(3), atol=0.04)


def test_an_estimated_covariance_becomes_nearly_the_identity(truth: Callable) -> None:
    data = truth(128, 128, 3).scan(0.02, mixing=PLAUSIBLE)
    whitened = prewhiten(data)
    before, after = (np.moveaxis(scan.kspace, 1, 0).reshape(3, -1) for scan in (data, whitened))
    root = after @ np.linalg.pinv(before)
    covariance = 0.02**2 * PLAUSIBLE @ PLAUSIBLE.conj().T
    np.testing.assert_allclose(root @ covariance @ root.conj().T, np.eye(3), atol=0.15)
    assert whitened.noise_variance == 1
    assert estimate_noise_variance(whitened) == pytest.approx(1, rel=1e-3)


def test_maps_and_reference_still_explain_the_data(truth: Callable) -> None:
    scene = truth(coils=3)
    data = replace(
        scene.scan(0.02, mixing=MIXING),
        kspace=scene.kspace.astype(np.complex64),
        coil_maps=scene.maps[np.newaxis].astype(np.complex64),
        reference=scene.image[np.newaxis].astype(np.complex64),
    )
    whitened = prewhiten(data, 0.02**2 * MIXING @ MIXING.conj().T)
    assert whitened.coil_maps is not None
    assert whitened.reference is not None
    np.testing.assert_allclose(np.linalg.norm(whitened.coil_maps, axis=1), 1, rtol=1e-5)
    model = to_kspace(whitened.coil_maps * whitened.reference[:, np.newaxis])
    np.testing.assert_allclose(model, whitened.kspace, atol=1e-4 * np.abs(whitened.kspace).max())


def test_cropped_maps_stay_cropped_and_a_lone_reference_is_dropped(truth: Callable) -> None:
    scene = truth(coils=3)
    maps = (scene.maps * scene.inside)[np.newaxis].astype(np.complex64)
    data = replace(scene.scan(0.02), reference=scene.image[np.newaxis].astype(np.complex64))
    whitened = prewhiten(replace(data, coil_maps=maps))
    assert whitened.coil_maps is not None
    assert not whitened.coil_maps[:, :, ~scene.inside].any()
    assert prewhiten(data).reference is None


def test_a_single_coil_is_scaled_with_its_reference(truth: Callable) -> None:
    scene = truth(coils=1)
    reference = (scene.image * scene.maps[0])[np.newaxis].astype(np.complex64)
    whitened = prewhiten(replace(scene.scan(0.01), reference=reference), np.array([[0.01**2]]))
    assert whitened.reference is not None
    np.testing.assert_allclose(whitened.reference, reference * 100, rtol=1e-5)
    difference = to_image(whitened.kspace[:, 0]) - whitened.reference
    assert np.mean(np.abs(difference) ** 2) / 2 == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize(
    "covariance",
    [np.eye(2), np.ones((3, 3)), -np.eye(3), np.triu(np.ones((3, 3))), np.full((3, 3), np.nan)],
    ids=["size", "singular", "negative", "not-hermitian", "nan"],
)
def test_matrices_that_are_no_covariance_are_refused(truth: Callable, covariance: np.ndarray) -> None:
    with pytest.raises(InputError, match="covariance"):
        prewhiten(truth(coils=3).scan(0.02), covariance)
