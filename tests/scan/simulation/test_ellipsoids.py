"""The k-space of ellipsoids is that of their volume: moments, symmetry, a fine raster, and planes after the readout."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, load_phantom
from mri_design.scan.calibration.noise import with_volume_noise
from mri_design.scan.simulation.ellipses import EllipsoidPhantom
from mri_design.scan.simulation.phantoms import read_ellipsoid_table

ONE = EllipsoidPhantom(np.array([[0.05, -0.1, 0.08]]), np.array([[0.3, 0.2, 0.25]]), np.array([2.0]))
TWO = EllipsoidPhantom(
    np.array([[0.0, 0.0, 0.0], [0.1, 0.05, -0.08]]),
    np.array([[0.4, 0.35, 0.3], [0.1, 0.12, 0.09]]),
    np.array([1.0, 1j]),
)


def test_dc_is_the_volume_and_the_closed_form_is_smooth_there() -> None:
    volume = 2.0 * 4 / 3 * np.pi * 0.3 * 0.2 * 0.25
    assert ONE.spectrum(0, 0, 0) == pytest.approx(volume)
    near = ONE.spectrum(np.geomspace(1e-6, 1e-2, 30), 0, 0)
    np.testing.assert_allclose(np.abs(near), volume, rtol=1e-4)


def test_a_fine_raster_has_the_same_low_frequencies() -> None:
    n = 48
    raster = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(TWO.image(n, (n, n), supersampling=4)))) / n**3
    few = slice(n // 2 - 3, n // 2 + 4)
    k = np.arange(-3, 4)
    exact = TWO.spectrum(k[:, None, None], k[:, None], k)
    np.testing.assert_allclose(raster[few, few, few], exact, atol=2e-3 * np.abs(exact).max())


def test_planes_are_the_readout_transformed() -> None:
    planes = TWO.planes(12, (10, 8))
    x, y, z = (np.arange(n) - n // 2 for n in (12, 10, 8))
    whole = TWO.spectrum(x[:, None, None], y[:, None], z) * np.sqrt(12 * 10 * 8)
    rows = np.exp(2j * np.pi * np.outer(x, x) / 12) / np.sqrt(12)
    np.testing.assert_allclose(planes, np.einsum("pk,kyz->pyz", rows, whole), atol=1e-12)
    assert np.abs(planes[0]).max() < 0.1 * np.abs(planes[6]).max()  # beside the object


def test_the_shipped_volume_is_a_scan_of_planes_with_air_at_the_ends() -> None:
    data = load_phantom("head-3d", shape=32, noise=0.01, rng=np.random.default_rng(0))
    assert data.kspace.shape == (32, 1, 32, 32) and data.card["volume"] and data.reference is not None
    shown = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(data.kspace[16, 0]), norm="ortho"))
    difference = np.linalg.norm(np.abs(shown) - np.abs(data.reference[16])) / np.linalg.norm(data.reference[16])
    assert 0.01 < difference < 0.25  # it rings: the image is not the raster that made it
    kept = np.random.default_rng(1).random((32, 32)) < 0.4
    holes = load_phantom("head-3d", shape=32, noise=0.05, rng=np.random.default_rng(0))
    found = with_volume_noise(replace(holes, kspace=holes.kspace * kept, noise_variance=None)).noise_covariance
    assert found is not None and found[0, 0].real == pytest.approx(0.05**2, rel=0.15)
    with pytest.raises(InputError, match="coils: got 4 for head-3d"):
        load_phantom("head-3d", n_coils=4, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ellipsoids": []}', "ellipsoids: got 0 rows"),
        ('{"ellipsoids": [{"centre": [0, 0], "semi_axes": [0.1, 0.1, 0.1], "intensity": 1}]}', "centre"),
        (
            '{"ellipsoids": [{"centre": [0, 0, 0.45], "semi_axes": [0.1, 0.1, 0.1], "intensity": 1}]}',
            "leaves the field",
        ),
        ('{"ellipsoids": [{"centre": [0, 0, 0], "semi_axes": [0.1, 0, 0.1], "intensity": 1}]}', "positive lengths"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_ellipsoid_table(tmp_path / "t.json")


def test_sizes_that_disagree_are_refused() -> None:
    with pytest.raises(InputError, match="semi_axes: got shape"):
        EllipsoidPhantom(np.zeros((1, 3)), np.ones((2, 3)), np.ones(1))
    with pytest.raises(InputError, match="NaN or infinite"):
        EllipsoidPhantom(np.full((1, 3), np.nan), np.ones((1, 3)), np.ones(1))
