"""Which place in a scan counts as its noise, and what misleads the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.calibration.noise import SIGNAL_OUTSIDE, measure_noise
from mri_design.scan.calibration.noise.witnesses import BESIDE, ENDS, IMAGE_AIR, REPEATS
from mri_design.scan.io.formats import read

SD = 0.05


def heard(data: KSpaceData) -> dict[str, float]:
    """Standard deviation over the true one by every place."""
    found = measure_noise(data).heard
    return {one.name: float(np.sqrt(one.mean)) / SD for one in (found.spoke, *found.others)}


def filtered(data: KSpaceData) -> tuple[KSpaceData, float]:
    """The scan through a receiver's filter as scanners have it, and what it leaves of the standard deviation."""
    profile = np.ones(data.grid_shape[1])
    width = len(profile) // 16
    for part, share in enumerate((0.4, 0.63, 0.86, 0.97)):
        profile[part * width : (part + 1) * width] = profile[::-1][part * width : (part + 1) * width] = share
    profile[::-1][: len(profile) // 2] = profile[: len(profile) // 2]
    seen = to_kspace(to_image(data.kspace) * profile).astype(np.complex64)
    return replace(data, kspace=seen), float(np.sqrt(np.mean(profile**2)))


def some_lines(data: KSpaceData) -> KSpaceData:
    """Sixteen central lines and every fourth."""
    n = data.grid_shape[0]
    keep = (np.abs(np.arange(n) - n // 2) < 8) | (np.arange(n) % 4 == 0)
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep)


@pytest.mark.parametrize("coils", [1, 6])
def test_a_window_on_kspace_misleads_its_ends_alone(truth: Callable, coils: int) -> None:
    data = truth(128, 128, coils).scan(SD)
    distance = (np.arange(128) - 64) / 64
    window = np.exp(-np.log(40) / 2 * (distance[:, np.newaxis] ** 2 + distance**2)).astype(np.float32)
    left = float(np.sqrt(np.mean(window**2)))
    cut = replace(data, kspace=data.kspace * window)
    found = measure_noise(cut)
    assert found.heard.spoke.name == IMAGE_AIR and found.doubt == ""
    assert heard(cut)[IMAGE_AIR] == pytest.approx(left, rel=0.08)
    assert heard(cut)[ENDS] < left / 5


@pytest.mark.parametrize("coils", [1, 6])
def test_a_receivers_filter_misleads_the_air_at_the_ends_of_the_readout_alone(truth: Callable, coils: int) -> None:
    data, left = filtered(truth(128, 128, coils).scan(SD))
    places = heard(data)
    assert measure_noise(data).heard.spoke.name == IMAGE_AIR
    assert places[IMAGE_AIR] == pytest.approx(left, rel=0.08)
    assert places[BESIDE] < left / 2
    few = measure_noise(some_lines(data))
    assert few.heard.spoke.name == ENDS
    assert np.sqrt(few.variance) / SD == pytest.approx(left, rel=0.15)


def test_coils_keep_their_own_noise_where_one_of_them_rings_over_the_image(truth: Callable) -> None:
    """Its air is louder in the middle of the readout than at its ends, as no filter would make of it alone."""
    data = truth(96, 96, 8).scan(SD, mixing=np.diag(np.linspace(1, 2, 8)))
    image = to_image(data.kspace)
    image[:, 3, :, 24:72] += 0.3 * np.sin(np.arange(96) * 2.5)[:, np.newaxis]
    found = measure_noise(replace(data, kspace=to_kspace(image).astype(np.complex64)))
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance).real) / SD, np.linspace(1, 2, 8), rtol=0.15)


def test_differences_of_repeats_count_wherever_the_object_is(textured: Callable) -> None:
    first, second = (textured(96, (0, 96), 2, 0.0, 0), textured(96, (0, 96), 2, 0.0, 0))
    rng = np.random.default_rng(1)
    noisy = [
        (one.kspace + SD * (rng.standard_normal(one.kspace.shape) + 1j * rng.standard_normal(one.kspace.shape)))
        for one in (first, second)
    ]
    data = replace(first, kspace=noisy[0].astype(np.complex64), repeat=noisy[1].astype(np.complex64))
    found = measure_noise(data)
    assert (found.heard.spoke.name, found.doubt) == (REPEATS, "")
    assert np.sqrt(found.variance) == pytest.approx(SD, rel=0.03)
    assert measure_noise(data.scaled(1e-6)).variance == pytest.approx(1e-12 * found.variance, rel=1e-3)
    changed = replace(data, repeat=(noisy[1] + 0.5 * first.kspace).astype(np.complex64))
    assert REPEATS not in heard(changed)


def test_a_file_with_repetitions_brings_its_repeat(truth: Callable, tmp_path) -> None:
    first, second = (truth(64, 64, 2).scan(SD, seed).kspace[0] for seed in range(2))
    np.save(tmp_path / "twice.npy", np.stack([first, second]))
    (tmp_path / "twice.json").write_text('{"dims": ["rep", "coil", "ky", "kx"]}')
    data = read(tmp_path / "twice.npy")
    assert isinstance(data, KSpaceData)
    np.testing.assert_array_equal(data.repeat, second[np.newaxis])
    found = measure_noise(data.select_slice(0))
    assert found.heard.spoke.name == REPEATS
    assert np.sqrt(found.variance) == pytest.approx(SD, rel=0.05)


def test_an_object_that_rings_over_the_whole_image_is_doubted(textured: Callable) -> None:
    """Its k-space is cut where it is still far above the noise: nothing in the image is air."""
    fine = textured(128, (30, 98), 1, 1e-4, 0)
    middle = np.ascontiguousarray(fine.kspace[:, :, 44:84, 44:84])
    found = measure_noise(KSpaceData(middle, np.ones(40, dtype=bool)))
    assert found.doubt.startswith(f"{SIGNAL_OUTSIDE}: it may be too large (by other places ")


def test_noise_that_is_given_is_contradicted_by_all_places_or_by_none(truth: Callable, textured: Callable) -> None:
    """Too little is not told where signal may be what makes the places loud, as of lines with holes."""
    sound, rings = truth(64, 64, 4).scan(SD), textured(64, (20, 44), 1.0, SD, 0)
    holes = replace(sound, kspace=np.where(np.random.default_rng(0).random((64, 64)) < 0.5, sound.kspace, 0))
    for data, factor, wanted in (
        (sound, 2.0, ""),
        (sound, 0.5, ""),
        (sound, 6.0, "no place in the scan shows more than"),
        (sound, 0.2, "every place in the scan that shows noise has at least"),
        (holes, 0.2, ""),
        (holes, 50.0, "no place in the scan shows more than"),
    ):
        text, doubt = measure_noise(data).overruled((factor * SD) ** 2)
        assert text.startswith(f"sd per real component: given {factor * SD:.3g}, which counts; ")
        assert doubt.startswith(wanted) and bool(doubt) == bool(wanted), (factor, doubt)
    assert measure_noise(rings).doubt == "" or measure_noise(rings).overruled((SD / 100) ** 2)[1] == ""
