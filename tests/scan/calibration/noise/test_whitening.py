"""Noise of the coils becomes white, and maps and reference still explain the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError, estimate_noise_variance, prewhiten
from mri_design.operators.conventions import to_image, to_kspace

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
    assert estimate_noise_variance(whitened) == pytest.approx(1, rel=0.03)


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
