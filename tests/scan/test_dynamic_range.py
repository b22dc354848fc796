"""Samples that no receiver has measured are refused with their numbers; all that scanners and simulations make pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError, KSpaceData, Recipe, TrajectoryData, load_input, prepare, prepare_samples
from mri_design.experiment.description import describe_scan
from mri_design.experiment.trajectories.description import describe_samples
from mri_design.scan.sampling import require_dynamic_range
from mri_design.scan.summary import ScanSummary


def memory(shape: tuple[int, ...]) -> np.ndarray:
    """Bytes that nobody wrote, as finite single-precision numbers, a third of them zero."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, 2**32, (*shape, 2), dtype=np.uint32).view(np.float32)
    found = np.where(np.isfinite(found) & (rng.random(found.shape) < 0.7), found, 0)
    return (found[..., 0] + 1j * found[..., 1]).astype(np.complex64)


def noisy(shape: tuple[int, ...] = (1, 1, 64, 64)) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


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
    kspace = noisy()
    if share == 1:
        kspace[0, 0, 3, 5] = 2e38
    else:
        kspace[np.random.default_rng(2).random(kspace.shape) < share] *= np.float32(1e13)
    with pytest.raises(InputError, match="of them beyond 1e10"):
        require_dynamic_range(kspace)


@pytest.mark.parametrize("scale", [1e-30, 1e6, 1e30])
def test_the_scale_does_not_matter(scale: float) -> None:
    require_dynamic_range(noisy() * np.float32(scale))


@pytest.mark.parametrize("kind", ["uniform", "stripe", "box", "gaussian", "wide gaussian"])
@pytest.mark.parametrize("every", [1, 2])
def test_images_without_noise_pass(kind: str, every: int) -> None:
    kspace = transformed(image_without_noise(kind))
    kspace[:, :, 1::every] = kspace[:, :, 1::every] if every == 1 else 0
    require_dynamic_range(kspace)


def test_integers_isolated_zeros_and_zero_filled_columns_pass() -> None:
    kspace = np.round(noisy() * 3)
    kspace[0, 0, 32, 32] = 1e6
    kspace[..., :9] = 0
    require_dynamic_range(kspace.astype(np.complex64))
    back = np.fft.fft2(np.fft.ifft2(kspace)).astype(np.complex64)  # zeros are round-off now
    require_dynamic_range(back)


@pytest.mark.parametrize("name", ["phantom:shepp-logan", "phantom:lf-gre"])
def test_phantoms_pass(name: str) -> None:
    data = load_input(name, Recipe())
    require_dynamic_range(data.kspace)
    require_dynamic_range(replace(data, kspace=data.kspace * np.float32(1e6)).kspace)
