"""A volume whose planes have holes shows its noise at the ends of the readout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, estimate_noise_variance, load_scan, prepare
from mri_design.experiment.description import describe_scan
from mri_design.scan.calibration.noise import NOISE_FROM, with_volume_noise
from mri_design.scan.io.samples import readout_positions
from mri_design.scan.summary import ScanSummary

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
