"""Coils that measured nothing or the same, two coils, and one side of k-space alone: what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, calibrate, load_phantom, reconstruct, run_design
from mri_design.experiment import Method
from mri_design.operators.conventions import to_image
from mri_design.readouts import LineReadouts, PlaneReadouts
from tests.refusals import refused

SMALL = Recipe.of({"inference": {"samples": 4, "loops": 3}, "phase": {"model": "modulus"}})


def head(coils: int, noise: float = 0.007) -> KSpaceData:
    """Coils whose maps are not known."""
    data = load_phantom("brain", shape=(32, 32), n_coils=coils, noise=noise, rng=np.random.default_rng(0))
    return replace(data, coil_maps=None)


def image(data: KSpaceData, method: Method = "least-squares", recipe: Recipe = SMALL) -> np.ndarray:
    scan = calibrate(data, recipe, calibration_lines=16)
    made = reconstruct(
        scan.slice_model(0, **recipe.slice_settings), np.flatnonzero(data.measured).tolist(), method, recipe
    )
    return np.asarray(made.image)


@pytest.mark.parametrize("given", ["", "with the data", "by readouts", "in the recipe"])
@pytest.mark.parametrize("factor", [1, 2j])
def test_a_copied_coil_is_refused_however_its_noise_is_known(given: str, factor: complex) -> None:
    data = head(4)
    kspace = data.kspace.copy()
    kspace[:, 3] = factor * kspace[:, 1]
    data = replace(data, kspace=kspace, noise_variance=4.9e-5 if given == "with the data" else None)
    if given == "by readouts":
        data = replace(data, noise_covariance=4.9e-5 * np.eye(4, dtype=complex))
    recipe = SMALL.replacing("input", noise=0.007) if given == "in the recipe" else SMALL
    with refused("kspace") as caught:
        calibrate(data, recipe)
    assert "coil 3" in caught.value.got and "coil 1" in caught.value.got


def test_a_coil_of_zeros_changes_nothing_and_is_named() -> None:
    data = head(4)
    kspace = data.kspace.copy()
    kspace[:, 2] = 0
    unknown = replace(data, kspace=kspace, noise_variance=None)
    by_readouts = replace(unknown, noise_covariance=4.9e-5 * np.eye(4, dtype=complex))
    for scan in (unknown, by_readouts, replace(unknown, noise_variance=4.9e-5)):
        named = calibrate(scan, SMALL, calibration_lines=16)
        assert named.provenance.dead_coils == (2,)
    assert calibrate(data, SMALL, calibration_lines=16).provenance.dead_coils == ()
    alone = image(replace(data, kspace=kspace[:, [0, 1, 3]]))
    np.testing.assert_allclose(
        np.abs(image(replace(data, kspace=kspace))), np.abs(alone), atol=1e-3 * np.abs(alone).max()
    )


@pytest.mark.parametrize("working", [[1, 4, 6], [7]])
@pytest.mark.parametrize("given", [True, False])
def test_coils_of_zeros_do_not_count(working: list[int], given: bool) -> None:
    data = load_phantom("brain", shape=(32, 32), n_coils=8, noise=0.007, rng=np.random.default_rng(0))
    assert data.coil_maps is not None
    kspace, maps = np.zeros_like(data.kspace), data.coil_maps if given else None
    kspace[:, working] = data.kspace[:, working]
    variance = data.noise_variance if given else None
    data = replace(data, kspace=kspace, coil_maps=maps, noise_variance=variance)
    scan = calibrate(data, SMALL, calibration_lines=16)
    model = scan.slice_model(0, **SMALL.slice_settings)
    assert (scan.n_coils, model.n_coils, len(scan.provenance.dead_coils)) == (len(working),) * 2 + (8 - len(working),)
    if maps is not None and len(working) > 1:
        assert model.maps is not None
        maps = maps[:, working] / np.linalg.norm(maps[:, working], axis=1)
        np.testing.assert_allclose(model.maps, maps[0], atol=1e-6)
    lines = np.arange(32)
    np.testing.assert_allclose(
        np.abs(reconstruct(model, lines.tolist(), "least-squares", SMALL).image),
        np.linalg.norm(to_image(kspace[0]), axis=0),
        atol=0.1,
    )
    written = scan.as_read(model.kspace, model.maps, float(model.noise_variance))
    np.testing.assert_allclose(written["kspace"], kspace, atol=1e-4)
    assert np.count_nonzero(np.any(written["kspace"], axis=(0, 2, 3))) == len(working)


def test_a_coil_that_is_silent_on_some_lines_is_named_with_their_number() -> None:
    data = head(4)
    kspace = data.kspace.copy()
    kspace[:, 2, 3:8] = 0
    kspace[:, :, 20] = 0  # of all coils: not measured
    scan = calibrate(replace(data, kspace=kspace, measured=np.arange(32) != 20), SMALL, calibration_lines=8)
    assert scan.provenance.silent_lines == ((2, 5),) and scan.n_coils == 4


@pytest.mark.parametrize("limits", [{}, {"max_jump": 7}])
def test_a_design_goes_on_with_a_coil_of_zeros_where_noise_is_unknown(limits: dict[str, object]) -> None:
    data = head(5)
    kspace = data.kspace.copy()
    kspace[:, 2] = 0
    scan = calibrate(replace(data, kspace=kspace, noise_variance=None), SMALL, growing=True)
    assert scan.provenance.dead_coils == (2,)
    recipe = SMALL.replacing("design", block=3).replacing("constraints", **limits)
    trace = run_design([scan.slice_model(0, **recipe.slice_settings)], "calibrated", 9, recipe, start=4).trace
    assert len(trace.lines) == 9 and np.isfinite(trace.steps[0].choice.scores).sum() <= 5  # those of a mask


def test_one_side_of_kspace_has_the_phase_aware_prior() -> None:
    """Moduli take nothing of the other side for the conjugate of this one, and no coil map holds the image's phase."""
    data = load_phantom("t2w", shape=(32, 32), n_coils=4, noise=0.003, rng=np.random.default_rng(0))
    wanted, found = np.abs(data.reference[0]), dict[str, float]()
    for model in ("modulus", "held-back"):
        recipe = SMALL.replacing("phase", model=model)
        side = replace(data, coil_maps=None).only(np.arange(32) >= 12)  # 5/8 of the lines
        found[model] = float(np.linalg.norm(np.abs(image(side, "mean", recipe)) - wanted))
    assert found["held-back"] < 0.9 * found["modulus"]


@pytest.mark.parametrize(
    ("lines", "one_sided"),
    [
        (range(12, 32), True),
        (range(8, 32), True),
        (range(6, 32), False),
        (range(20), True),
        ([12, 14, 16, 17, 30], True),
        (range(32), False),
        ([16], False),
        (range(14, 18), False),
    ],
)
def test_one_side_is_missing_where_lines_reach_half_as_far_there(lines: Sequence[int], one_sided: bool) -> None:
    assert LineReadouts((32, 8)).one_sided(lines) == one_sided
    assert not PlaneReadouts((32, 8)).one_sided(lines)
