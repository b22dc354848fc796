"""Image and coil maps by regularised nonlinear inversion, against a dense Gauss-Newton iteration."""

import numpy as np
import pytest

from mri_design.calibration import joint_estimate
from mri_design.operators import to_image, to_kspace
from mri_design.scan.simulation import load_phantom, simulate_coil_maps

SIDE, COILS = 10, 2


@pytest.fixture(scope="module")
def scan():
    """Samples (coil, ky, kx) of a small image behind two smooth maps, and which of them are measured."""
    rng = np.random.default_rng(3)
    place = (np.arange(SIDE) - SIDE // 2) / SIDE
    image = (np.hypot(place[:, None], place) < 0.35) * (1 + 0.2 * rng.standard_normal((SIDE, SIDE)))
    maps = np.stack([np.exp(1j * place[:, None]) * (1 + place), (1 - place) * np.ones((SIDE, 1))])
    samples = np.ones((SIDE, SIDE), dtype=bool)
    samples[[0, 2, 8]] = False
    return to_kspace(image * maps).astype(np.complex64), samples


def dense_solution(kspace, samples, steps=17):
    """The same iteration (Uecker et al. 2008, equations 4 to 11) with all matrices written out, solved directly."""
    n = SIDE * SIDE
    transform = np.stack([to_kspace(e.reshape(SIDE, SIDE)).ravel() for e in np.eye(n)], axis=1)[samples.ravel()]
    cycles = np.arange(-6, 7)
    waves = np.exp(2j * np.pi * np.outer(np.arange(SIDE) - SIDE // 2, cycles) / SIDE)
    square = (cycles / 96) ** 2
    weights = ((1 + 220 * (square[:, None] + square)) ** -16.0).ravel()
    smooth = np.kron(waves, waves) * weights / SIDE
    data = (kspace[:, samples] * 100 / np.linalg.norm(kspace[:, samples])).ravel()
    start = np.concatenate([np.ones(n), np.zeros(COILS * len(weights))]).astype(complex)
    unknown = start.copy()
    for step in range(steps):
        image, spectra = unknown[:n], unknown[n:].reshape(COILS, -1)
        maps = spectra @ smooth.T
        derivative = np.block(
            [
                [transform * maps[c], *(transform @ (image[:, None] * smooth) * (c == d) for d in range(COILS))]
                for c in range(COILS)
            ]
        )
        residual = data - np.concatenate([transform @ (image * m) for m in maps])
        right = derivative.conj().T @ residual + 0.5**step * (start - unknown)
        unknown = unknown + np.linalg.solve(derivative.conj().T @ derivative + 0.5**step * np.eye(len(unknown)), right)
    maps = unknown[n:].reshape(COILS, -1) @ smooth.T
    return (maps / np.linalg.norm(maps, axis=0)).reshape(COILS, SIDE, SIDE)


def test_the_maps_are_those_of_a_dense_iteration(scan):
    kspace, samples = scan
    fast, dense = joint_estimate(kspace, samples).maps((SIDE, SIDE)), dense_solution(kspace, samples)
    product = np.abs(np.sum(fast.conj() * dense, axis=0))  # 1 where they differ by a phase alone
    seen = np.abs(to_image(kspace)).max(axis=0) > 0.3 * np.abs(to_image(kspace)).max()
    assert product[seen].min() > 0.999


def test_samples_that_were_not_measured_are_predicted(scan):
    kspace, samples = scan
    predicted = joint_estimate(np.where(samples, kspace, np.nan), samples).block
    assert np.linalg.norm(predicted[:, samples] - kspace[:, samples]) < 0.02 * np.linalg.norm(kspace[:, samples])
    missing = kspace[:, 2]
    assert np.linalg.norm(predicted[:, 2] - missing) < 0.5 * np.linalg.norm(missing)


def test_maps_are_the_same_on_any_grid(scan):
    estimate = joint_estimate(*scan)
    np.testing.assert_allclose(estimate.maps((20, 30))[:, ::2, ::3], estimate.maps((10, 10)), atol=1e-5)


def test_maps_have_no_pole_where_the_phase_of_the_object_turns():
    """The phase of a head turns by 6.8: begun from ones alone, the maps vanish at a pixel, and are 7 % off."""
    side, lines = 64, [18, 19, 20, 24, 25, 30, 31, 32, 33, 35, 37, 39, 41, 44, 45, 51]
    place = (np.arange(side) - side // 2) / side
    phase = 6.8 * np.exp(-((place[:, None] - 0.22) ** 2 + (place + 0.1) ** 2) / (2 * 0.15**2))
    head = load_phantom("t1w", shape=(side, side), noise=0.007, phase="none", n_coils=1, rng=np.random.default_rng(1))
    image, maps = head.reference[0], simulate_coil_maps(side, 4, np.random.default_rng(83))
    samples = np.zeros((side, side), dtype=bool)
    samples[lines] = True
    found = joint_estimate(to_kspace(maps * image * np.exp(1j * phase)).astype(np.complex64), samples, rough=True)
    along = np.minimum(np.abs(np.sum(found.maps(image.shape).conj() * maps, axis=0)), 1)
    assert found.dip > 0.8
    assert np.linalg.norm(image * np.sqrt(1 - along**2)) < 0.03 * np.linalg.norm(image)
