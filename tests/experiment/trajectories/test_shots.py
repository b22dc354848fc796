"""Shots of a recipe, and what they measure of a scan: in closed form, of a known image, of a measured scan."""

import sys

import numpy as np
import pytest

from mri_design import Recipe, SliceModel, calibrate
from mri_design.design import FixedAngles, InformationGain
from mri_design.experiment import candidates_of, closed_form_samples, load_scan, shot_slice
from mri_design.operators import radial_spokes
from mri_design.readouts import ShotReadouts
from tests.refusals import refused

GRID = (16, 16)


def recipe(encoding: str = "radial") -> Recipe:
    return Recipe().replacing("input", matrix=16).replacing("design", encoding=encoding)


def test_candidates_are_equispaced_and_fixed_sets_their_own() -> None:
    spokes = candidates_of(recipe(), InformationGain(), GRID, 3, 1)
    np.testing.assert_allclose(spokes.shots, radial_spokes(16, np.pi * np.arange(12) / 12))
    golden = candidates_of(recipe(), FixedAngles(kind="golden"), GRID, 4, 1)
    assert golden.size == 4 and golden.angles is not None and golden.angles[1] == pytest.approx(np.pi * 0.618034)
    arms = candidates_of(recipe("spiral"), InformationGain(), GRID, 3, 1)
    assert arms.size == 12 and arms.angles is not None and arms.angles[1] == pytest.approx(np.pi / 6)
    # Every arm is at rest at DC half a dwell time of 5 microseconds before its first sample; 150 T/m/s over .24 m.
    assert (
        np.abs(arms.shots).max() <= 8 and np.linalg.norm(arms.shots[:, 0], axis=1).max() <= 2.5e-6**2 / 2 * 150 * 1.03e7
    )
    assert arms.shots.shape[1] % 4 == 0


def test_more_shots_than_memory_holds_are_refused() -> None:
    with refused("number of shots"):
        candidates_of(recipe(), InformationGain(), GRID, 2**18, 2)


def on_grid(source: str = "phantom:t2w") -> SliceModel:
    settings = recipe()
    data = load_scan(source, settings, 3)
    return calibrate(data, settings).slice_model(0, **settings.replacing("design", encoding="lines").slice_settings)


def test_samples_of_ellipses_are_of_the_object_that_is_simulated_on_the_grid() -> None:
    pytest.importorskip("finufft")
    settings, scan = recipe(), on_grid("phantom:brain")
    at_dc = ShotReadouts(GRID, np.zeros((1, 1, 2)))
    known = closed_form_samples("phantom:brain", at_dc, 1, settings, 3)
    assert known is not None and known.shape == (1, 1, 1)
    assert known[0, 0, 0] == pytest.approx(scan.kspace[0, 8, 8], abs=6 * 0.007)
    assert closed_form_samples("phantom:t2w", at_dc, 1, settings, 3) is None
    assert closed_form_samples("brain", at_dc, 1, settings, 3) is None


def test_a_measured_scan_is_interpolated_and_a_known_image_gets_new_noise() -> None:
    pytest.importorskip("finufft")
    scan, rng = on_grid(), np.random.default_rng(0)
    points = np.stack(np.meshgrid([-3.0, 0.0, 5.0], [-8.0, 2.0], indexing="ij"), axis=-1)
    shots = ShotReadouts(GRID, points)  # points of the grid, where the scan's own samples are known
    made = shot_slice(scan, shots, rng, truth=None)
    rows, columns = points.reshape(-1, 2).astype(int).T + 8
    np.testing.assert_allclose(made.acquire([0, 1, 2])[0], scan.kspace[0, rows, columns], atol=2e-3)
    image = load_scan("phantom:t2w", recipe(), 3).reference
    assert image is not None
    truth = shot_slice(scan, shots, rng, truth=image[0]).acquire([0, 1, 2])[0] - shots.rows([0, 1, 2])(image[0])[0]
    assert 0.3 < np.mean(np.abs(truth) ** 2) / (2 * 0.007**2) < 3


def test_a_scan_with_holes_and_a_missing_library_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scan, shots = on_grid(), ShotReadouts(GRID, np.zeros((1, 1, 2)))
    holes = np.ones(16, dtype=bool)
    holes[3] = False
    kept = SliceModel(scan.kspace, holes, scan.noise_variance)
    with refused("k-space"):
        shot_slice(kept, shots, np.random.default_rng(0), truth=None)
    monkeypatch.setitem(sys.modules, "finufft", None)
    with refused("non-uniform Fourier transform"):
        shot_slice(scan, shots, np.random.default_rng(0), truth=None)
