"""Noise that went into a scan comes out of it again: which place in it counts, correlations, and volumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, calibrate, load_phantom
from mri_design.calibration import correlated_by_signal
from mri_design.calibration.noise import BESIDE, ENDS, IMAGE_AIR, OBJECT_BESIDE, REPEATS, SIGNAL_OUTSIDE
from mri_design.experiment import load_scan
from mri_design.operators import to_image, to_kspace
from mri_design.scan import estimate_noise_variance, measure_noise, readout_positions, with_volume_noise
from tests.arrays import noise
from tests.calibration.scenes import textured, truth
from tests.refusals import refused


def without_lines(data: KSpaceData, keep: np.ndarray) -> KSpaceData:
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep)


def variable_density(ny: int, seed: int) -> np.ndarray:
    distance = np.abs(np.arange(ny) - ny // 2)
    return (distance < 6) | (np.random.default_rng(seed).random(ny) < 0.25)


@pytest.mark.parametrize(
    ("shape", "coils", "sd", "lines", "seeds", "within"),
    [
        ((127, 96), 1, 0.05, None, 4, 0.05),
        ((96, 97), 8, 0.05, None, 4, 0.05),
        ((128, 128), 1, 0.05, "at random", 6, 0.1),
        ((128, 128), 6, 0.01, 12, 1, 0.1),  # alone, the centre rings in the air next to the object
        ((128, 128), 6, 0.01, 24, 1, 0.1),
    ],
)
def test_white_noise_is_measured_without_bias(shape, coils, sd, lines, seeds, within) -> None:
    scene, from_centre = truth(*shape, coils), np.abs(np.arange(shape[0]) - (shape[0] - 1) / 2)
    found = []
    for seed in range(seeds):
        keep = variable_density(128, seed) if lines == "at random" else from_centre < (lines or 2 * shape[0]) / 2
        found.append(estimate_noise_variance(without_lines(scene.scan(sd, seed), keep)))
    assert np.mean(found) == pytest.approx(sd**2, rel=within)


def test_zero_filled_lines_and_readouts_do_not_count_as_noise() -> None:
    cut = without_lines(truth(128, 128, 1).scan(0.05), np.abs(np.arange(128) - 58.5) < 49)
    cut.kspace[..., :12] = 0
    assert estimate_noise_variance(cut) == pytest.approx(0.05**2, rel=0.2)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_filter_along_the_phase_encode_is_seen(sampled: bool) -> None:
    """Noise three times quieter at high ky: the image's background has the mean variance, not the corners'."""
    profile = np.interp(np.abs(np.arange(128) - 64), [0, 40, 64], [1, 1 / 3, 1 / 3])
    data = truth(128, 128, 1).scan(0.05)
    data = replace(data, kspace=data.kspace * profile[:, np.newaxis].astype(np.float32))
    if sampled:
        data = without_lines(data, variable_density(128, 3))
    expected = 0.05**2 * np.mean(profile**2)
    assert 0.5 < estimate_noise_variance(data) / expected < 1.7
    assert estimate_noise_variance(data) > 1.5 * 0.05**2 / 9


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("ends", [(12, 84), (0, 84), (12, 96)])
def test_signal_in_the_outermost_samples_is_no_noise(ends: tuple[int, int], sampled: bool) -> None:
    """A scan of low resolution: the corners are four times louder than noise and more, and fall off."""
    data = textured(96, ends, 1.5, 0.01, 0)
    if sampled:  # sixteen central lines, and a quarter of all at random
        keep = np.abs(np.arange(96) - 48) < 8
        keep[np.random.default_rng(0).choice(96, 24, replace=False)] = True
        data = without_lines(data, keep)
    found = measure_noise(data)
    assert found.variance == pytest.approx(0.01**2, rel=0.6 if sampled else 0.15)
    assert found.reason == SIGNAL_OUTSIDE


@pytest.mark.parametrize("sd", [0.001, 0.01])
def test_an_object_that_fills_the_readout_is_measured_where_it_shows_least(sd: float) -> None:
    """Its profiles hold no air: on the outer lines there is less of it than on most."""
    data = textured(96, (0, 96), 2, sd, 0)
    found, profile = measure_noise(data), np.fft.fft(np.fft.ifftshift(data.kspace[0, 0], axes=1), norm="ortho")
    on_most = np.median(np.abs(profile) ** 2) / (2 * np.log(2))
    assert found.reason == OBJECT_BESIDE
    assert 0.9 * sd**2 < found.variance < 0.5 * on_most


def test_air_above_an_object_that_fills_the_readout_counts_where_it_is_quieter() -> None:
    """Rows without the object hold noise alone; nothing is doubted then."""
    data = textured(96, (8, 88), 1.5, 0.01, 0)
    found = measure_noise(replace(data, kspace=np.ascontiguousarray(data.kspace.swapaxes(2, 3))))
    assert found.variance == pytest.approx(0.01**2, rel=0.25)
    assert found.reason == ""


@pytest.mark.parametrize("sampled", [False, True])
def test_the_covariance_of_the_coils_is_found(sampled: bool) -> None:
    mixing = np.diag(np.linspace(1, 3, 6)) + 0.2 * noise((6, 6), seed=9)
    data = truth(128, 128, 6).scan(0.01, mixing=mixing)
    if sampled:
        data = without_lines(data, variable_density(128, 1))
    expected = 0.01**2 * mixing @ mixing.conj().T
    found = measure_noise(data).covariance
    np.testing.assert_allclose(found, found.conj().T)
    assert np.linalg.norm(found - expected) < (0.25 if sampled else 0.12) * np.linalg.norm(expected)


@pytest.mark.parametrize("sampled", [False, True])
def test_a_coil_that_measured_nothing_takes_no_part(sampled: bool) -> None:
    data = truth(64, 64, 6).scan(0.02)
    if sampled:
        data = without_lines(data, variable_density(64, 0))
    dead = data.kspace.copy()
    dead[:, 3] = 0
    others = np.delete(data.kspace, 3, axis=1)
    with_dead, without = (measure_noise(replace(data, kspace=kspace)) for kspace in (dead, others))
    others = np.delete(np.delete(with_dead.covariance, 3, axis=0), 3, axis=1)
    np.testing.assert_allclose(others, without.covariance, rtol=0.1, atol=0.03 * 0.02**2)
    assert not np.delete(with_dead.covariance[3], 3).any()
    assert with_dead.covariance[3, 3] == pytest.approx(np.median(np.diag(without.covariance)), rel=0.05)


def test_signal_at_the_rim_of_a_mask_with_holes_is_not_taken_for_correlated_noise():
    rng = np.random.default_rng(0)
    data = load_phantom("shepp-logan", shape=(64, 64), n_coils=4, rng=rng)
    distance = np.abs(np.arange(64) - 32) / 32
    shutter = np.hypot(distance[:, None], distance) <= 0.9
    holes = replace(data, kspace=np.where(shutter, data.kspace, 0), noise_variance=None)
    covariance = measure_noise(holes).covariance
    np.testing.assert_allclose(covariance, covariance[0, 0] * np.eye(4))
    assert covariance[0, 0].real == pytest.approx(estimate_noise_variance(holes))


def test_correlations_of_signal_are_not_those_of_noise() -> None:
    """The object fills the readout, so that the air beside it is the object, which neighbouring coils see alike."""
    scene = truth(64, 64, 6)
    rng = np.random.default_rng(3)
    kspace = to_kspace(scene.maps * rng.standard_normal((64, 64))) + 0.1 * noise((6, 64, 64))
    data = KSpaceData(kspace[None].astype(np.complex64), np.ones(64, dtype=bool))
    found = measure_noise(data)
    assert found.alone > 0.6 and found.correlations is None
    np.testing.assert_array_equal(found.covariance, np.diag(np.diag(found.covariance)))


def test_signal_in_a_few_samples_of_the_air_counts_neither_as_noise_nor_as_correlation() -> None:
    """As of a vessel, which two coils see."""
    data = truth(64, 64, 6).scan(0.02)
    profiles = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(data.kspace, axes=-1), norm="ortho"), axes=-1)
    profiles[:, 2:4, :, 5] += 0.3
    kspace = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(profiles, axes=-1), norm="ortho"), axes=-1)
    found = measure_noise(replace(data, kspace=kspace.astype(np.complex64)))
    assert not found.alone
    np.testing.assert_allclose(np.diag(found.covariance).real, 0.02**2, rtol=0.25)
    assert abs(found.covariance[2, 3]) < 0.1 * 0.02**2


def test_independent_coils_are_shrunk_to_independence_and_correlated_ones_are_not() -> None:
    """What one witness shows by chance another does not repeat."""
    rng = np.random.default_rng(0)
    mixing = np.eye(8) + 0.12 * rng.standard_normal((8, 8))
    shares = []
    for chosen in (np.eye(8), mixing):
        found = measure_noise(truth(96, 96, 8).scan(0.02, mixing=chosen))
        shares.append(found.correlations)
        expected = 0.02**2 * chosen @ chosen.T
        assert np.linalg.norm(found.covariance - expected) < 0.12 * np.linalg.norm(expected)
    assert shares[0] < 0.3 and shares[1] > 0.9


@pytest.mark.parametrize(("correlation", "beyond"), [(0.5999, False), (0.6003, True), (0.97, True)])
def test_correlations_beyond_the_limit_are_those_of_signal(correlation: float, beyond: bool) -> None:
    covariance = np.array([[4, 2 * correlation], [2 * correlation, 1]], dtype=np.complex128)
    for coils in (covariance, np.pad(covariance, (0, 1))):  # and one that is silent where noise is measured
        assert bool(correlated_by_signal(coils)) == beyond


def test_scans_without_noise_or_with_too_little_for_their_coils_are_refused() -> None:
    single, few = np.zeros((1, 1, 32, 32), np.complex64), noise((1, 16, 4, 4), np.complex64)
    single[0, 0, 16, 16] = 1
    for kspace, field in ((single, "noise_variance"), (few, "kspace")):
        with refused(field):
            measure_noise(KSpaceData(kspace, np.ones(kspace.shape[2], dtype=bool)))


SD = 0.05


def places_of(data: KSpaceData) -> dict[str, float]:
    """Standard deviation over the true one by every place."""
    return {one.name: float(np.sqrt(one.mean)) / SD for one in measure_noise(data).places}


@pytest.mark.parametrize("coils", [1, 6])
def test_a_window_on_kspace_misleads_its_ends_alone(coils: int) -> None:
    data = truth(128, 128, coils).scan(SD)
    distance = (np.arange(128) - 64) / 64
    window = np.exp(-np.log(40) / 2 * (distance[:, np.newaxis] ** 2 + distance**2)).astype(np.float32)
    left = float(np.sqrt(np.mean(window**2)))
    cut = replace(data, kspace=data.kspace * window)
    found = measure_noise(cut)
    assert found.source.name == IMAGE_AIR and found.reason == ""
    assert places_of(cut)[IMAGE_AIR] == pytest.approx(left, rel=0.08)
    assert places_of(cut)[ENDS] < left / 5


@pytest.mark.parametrize("coils", [1, 6])
def test_a_receivers_filter_misleads_the_air_at_the_ends_of_the_readout_alone(coils: int) -> None:
    data, profile = truth(128, 128, coils).scan(SD), np.ones(128)
    profile[:32] = np.repeat((0.4, 0.63, 0.86, 0.97), 8)
    profile[-32:] = profile[31::-1]
    data = replace(data, kspace=to_kspace(to_image(data.kspace) * profile).astype(np.complex64))
    left = float(np.sqrt(np.mean(profile**2)))
    places, found = places_of(data), measure_noise(data)
    assert (found.source.name, found.reason) == (IMAGE_AIR, "")
    assert places[IMAGE_AIR] == pytest.approx(left, rel=0.08)
    assert places[BESIDE] < left / 2
    central = np.abs(np.arange(128) - 64) < 8
    few = measure_noise(without_lines(data, central | (np.arange(128) % 4 == 0)))
    assert (few.source.name, few.reason) == (ENDS, "")
    assert np.sqrt(few.variance) / SD == pytest.approx(left, rel=0.15)


def test_coils_keep_their_own_noise_where_one_of_them_rings_over_the_image() -> None:
    """Its air is louder in the middle of the readout than at its ends, as no filter would make of it alone."""
    data = truth(96, 96, 8).scan(SD, mixing=np.diag(np.linspace(1, 2, 8)))
    image = to_image(data.kspace)
    image[:, 3, :, 24:72] += 0.3 * np.sin(np.arange(96) * 2.5)[:, np.newaxis]
    found = measure_noise(replace(data, kspace=to_kspace(image).astype(np.complex64)))
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance).real) / SD, np.linspace(1, 2, 8), rtol=0.15)


def test_differences_of_repeats_count_wherever_the_object_is() -> None:
    one = textured(96, (0, 96), 2, 0.0, 0)
    noisy = [(one.kspace + SD * noise(one.kspace.shape, seed=seed)).astype(np.complex64) for seed in (1, 2)]
    data = replace(one, kspace=noisy[0], repeat=noisy[1])
    found = measure_noise(data)
    assert (found.source.name, found.reason) == (REPEATS, "")
    assert np.sqrt(found.variance) == pytest.approx(SD, rel=0.03)
    assert measure_noise(data.scaled(1e-6)).variance == pytest.approx(1e-12 * found.variance, rel=1e-3)
    changed = replace(data, repeat=(noisy[1] + 0.5 * one.kspace).astype(np.complex64))
    assert REPEATS not in places_of(changed)


def test_an_object_that_rings_over_the_whole_image_is_doubted() -> None:
    """Its k-space is cut where it is still far above the noise: nothing in the image is air."""
    fine = textured(128, (30, 98), 1, 1e-4, 0)
    middle = np.ascontiguousarray(fine.kspace[:, :, 44:84, 44:84])
    found = measure_noise(KSpaceData(middle, np.ones(40, dtype=bool)))
    assert found.reason == SIGNAL_OUTSIDE


@pytest.mark.parametrize("factor", [50.0, 6.0, 2.0, 0.5, 0.2])
def test_noise_that_is_given_is_contradicted_by_all_places_or_by_none(factor: float) -> None:
    """Too little is not doubted where signal may be what makes the places loud, as of lines with holes."""
    sound = truth(64, 64, 4).scan(SD)
    holes = replace(sound, kspace=np.where(np.random.default_rng(0).random((64, 64)) < 0.5, sound.kspace, 0))
    doubts = [bool(measure_noise(data).against((factor * SD) ** 2)) for data in (sound, holes)]
    assert doubts == [not 1 / 3 < factor < 3, factor > 3]


CORRELATION = 0.4
PLANE, READOUT = 24, 64


def volume(coils: int = 1, seed: int = 0, share: float = 0.3, readout: int = READOUT) -> np.ndarray:
    """K-space (kx, coil, ky, kz) of a box in the middle of the readout, with noise; samples chosen at random."""
    rng = np.random.default_rng(seed)
    image = np.zeros((readout, coils, PLANE, PLANE), complex)
    image[readout // 8 : -readout // 8, :, 5:-5, 7:-6] = 1 + rng.standard_normal((coils, PLANE - 10, PLANE - 13)) ** 2
    kspace = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(image, axes=(0, 2, 3)), axes=(0, 2, 3), norm="ortho"))
    kspace = np.fft.ifftshift(kspace, axes=1)
    added = SD * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    if coils > 1:
        added[:, 1] = CORRELATION * added[:, 0] + np.sqrt(1 - CORRELATION**2) * added[:, 1]
    mask = rng.random((PLANE, PLANE)) < share
    mask[8:16, 8:16] = True
    return ((kspace + added) * mask).astype(np.complex64)


def planes(kspace: np.ndarray) -> KSpaceData:
    return KSpaceData(readout_positions(kspace), measured=np.ones(PLANE, bool), volume=True)


def test_it_is_the_noise_that_was_added_where_one_plane_shows_signal() -> None:
    found, alone = [], []
    for seed in range(4):
        data = planes(volume(seed=seed))
        covariance = with_volume_noise(data).noise_covariance
        found.append(covariance[0, 0].real)
        alone.append(estimate_noise_variance(data.select_slice(READOUT // 2)))
    assert np.mean(found) == pytest.approx(SD**2, rel=0.05)
    assert min(alone) > 3 * SD**2


def test_coils_keep_their_correlation() -> None:
    covariance = with_volume_noise(planes(volume(coils=2))).noise_covariance
    np.testing.assert_allclose(np.diag(covariance).real, SD**2, rtol=0.12)
    assert abs(covariance[0, 1]) / SD**2 == pytest.approx(CORRELATION, abs=0.1)


def test_the_quieter_end_counts_where_the_object_reaches_the_other() -> None:
    kspace = volume()
    moved = planes(kspace).kspace.copy()
    moved[-8:] += 20 * SD * np.abs(moved[8:16])
    data = with_volume_noise(replace(planes(kspace), kspace=moved))
    assert data.noise_covariance is not None and data.provenance.noise.positions == (0, 3, READOUT)
    assert data.noise_covariance[0, 0].real == pytest.approx(SD**2, rel=0.1)


def test_other_scans_stay_as_they_are() -> None:
    data = planes(volume())
    for other in (
        replace(data, volume=False),
        replace(data, noise_variance=1.0),
        planes(volume(share=1.0)),
        planes(volume(readout=16)),
        replace(data, kspace=np.where(np.arange(READOUT)[:, None, None, None] % 60 < 4, 0, data.kspace)),
    ):
        assert with_volume_noise(other) is other


def test_a_file_is_read_with_it(tmp_path: Path) -> None:
    path = tmp_path / "volume.npz"
    np.savez(path, kspace=volume(coils=2).transpose(1, 0, 2, 3))
    path.with_suffix(".json").write_text('{"dims": ["coil", "kx", "ky", "kz"]}')
    data = load_scan(path, Recipe())
    assert isinstance(data, KSpaceData)
    prepared = calibrate(data.select_slice(READOUT // 2), Recipe.of({"coils": {"maps": "auto:8"}}))
    assert prepared.provenance.noise == data.provenance.noise and data.provenance.noise.source == "ends"
