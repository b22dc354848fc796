"""The benchmark of spokes and spirals makes its tables, and a page whose targets follow from them."""

import importlib
import shutil
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from mri_design.operators.base import Array
from tests.benchmarks.conftest import BENCHMARKS

pytest.importorskip("finufft")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution"),
]


@pytest.fixture
def trajectories(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """The benchmark's modules by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"trajectories.{name}")


def test_sets_differ_as_they_should(trajectories):
    sets = trajectories("sets")
    spirals = sets.spiral_sets(32, 4, 1.5)
    counts = {name: (len(shots), shots.shape[1]) for name, shots in spirals.items()}
    samples = counts[sets.USUAL][1]
    assert counts == {
        sets.USUAL: (4, samples),
        sets.HALF: (4, samples),
        "2 pi / (m + 1)": (4, samples),
        "full turn, one fewer": (3, samples),
        "full turn, one more": (5, samples),
        "golden": (4, samples),
    }
    twice = {name: sets.conjugate_coverage(shots).redundancy for name, shots in spirals.items()}
    assert twice[sets.USUAL] > 0.95 and max(twice[name] for name in twice if name != sets.USUAL) < 0.6


def test_changes_are_those_of_errors_on_the_same_image_and_noise(trajectories):
    sets = trajectories("sets")
    rows = [
        {"set": name, "density": 1.0, "image": image, "seed": seed, "error": error}
        | {"shots": 2, "samples": 8, "k and -k": 1.0}
        for name, image, seed, error in [
            ("a", "one", 0, 0.2),
            ("a", "one", 1, 0.4),
            ("a", "two", 0, 0.6),
            ("b", "one", 0, 0.1),
            ("b", "one", 1, 0.5),
        ]
    ]
    assert sets.changes(rows, "b", 1.0, sets.Against("a", 1.0)) == pytest.approx([-0.5, 0.25])
    table = sets.summary(rows, {"vs a": sets.Against("a", 1.0)})
    assert table[0]["vs a"] is None and table[0]["error"] == pytest.approx(0.4)
    assert table[1]["vs a"] == pytest.approx(-0.125) and table[1]["worst vs a"] == pytest.approx(0.25)
    assert table[0]["sd over noise"] == pytest.approx(np.std([0.2, 0.4], ddof=1))


def test_samples_of_both_kinds_of_scene_are_those_of_their_image(trajectories):
    scenes = trajectories("scenes")
    k = np.random.default_rng(0).uniform(-5, 5, (40, 2))
    k[0] = 7, -7
    for scene, close in ((scenes.heads("phantom:t2w", [0], 16)[0], 1e-6), (scenes.ellipses(16), 0.1)):
        u: Array = scene.reference.astype(complex)
        y = (np.arange(16) - 8) / 16
        waves = [np.exp(-2j * np.pi * (a * y[:, None] + b * y)) / 16 for a, b in k]
        expected = np.array([[np.sum(wave * u) for wave in waves]])
        assert np.linalg.norm(scene.sampled(k) - expected) < close * np.linalg.norm(expected)


def test_a_small_run_of_every_table_makes_a_page(trajectories):
    scenes, sets, page = (trajectories(name) for name in ("scenes", "sets", "page"))
    scene = scenes.heads("phantom:t2w", [0], 16)[0]
    fixed = {
        (name, 1.5): shots for name, shots in sets.spiral_sets(16, 2, 1.5).items() if name in (sets.USUAL, sets.HALF)
    }
    tables = {
        "spirals": sets.set_rows(fixed, [scene], [0]),
        "chosen": trajectories("chosen").chosen_rows(16, 2, [scene], [1.5]),
        "radial": sets.set_rows({("uniform", None): sets.radial_sets(16, 4)["uniform"]}, [scene], [0]),
        "variances": trajectories("variances").variance_rows(scenes.heads("phantom:t2w", [0], 20)[0], 3),
        "cost": trajectories("cost").cost_rows(scene, 4, 1),
        "measured": trajectories("measured").measured_rows(trajectories("measured").toy_spirals(), (2,)),
    }
    coverage = trajectories("coverage")
    tables["coverage"] = coverage.coverage_rows({1: [scene], 2: [scene]}, coverage.covered_sets(16, (4,), (2,)), (0,))
    targets = page.target_rows(tables)
    assert [row["met"] for row in targets if row["measured"] is None].count(True) == 0
    measured = {row["name"]: row["measured"] for row in targets}
    ratio = measured["posterior mean and std of 32 spokes, 256 x 256, over that of as many Cartesian samples"]
    assert ratio == pytest.approx(tables["cost"][0]["CPU s"] / tables["cost"][1]["CPU s"])
    text = page.document(tables, targets, {"command": "the command"})
    assert all(f"## {title}\n" in text for name, title in page.TITLES.items() if name in tables)
    assert page.TITLES["tv"] not in text and "the command" in text


def test_each_second_arm_comes_nearer_to_all_arms_than_its_gridded_image(trajectories):
    measured = trajectories("measured")
    rows = {(row["method"], row["maps"]): row for row in measured.measured_rows(measured.toy_spirals(), (2,))}
    assert {row["arms"] for row in rows.values()} == {"6 of 12"}
    gridded = rows["gridded", measured.ALL]["vs least squares"]
    for method in ("mean", "map", "least-squares"):
        assert rows[method, measured.ALL]["vs least squares"] < 0.7 * gridded
    ours = rows["least-squares", measured.ALL]
    assert ours["vs least squares"] == ours["vs same method"]


def test_shares_are_those_of_pixels_and_right_for_gaussian_errors(trajectories):
    coverage, rng = trajectories("coverage"), np.random.default_rng(0)
    std = rng.uniform(0.5, 2, (200, 200))
    error = std * (rng.standard_normal((200, 200)) + 1j * rng.standard_normal((200, 200))) / np.sqrt(2)
    truth = np.zeros((200, 200))
    truth[:100] = 1
    found = coverage.shares_within(error, std, truth)
    assert found["within 1 sd"] == pytest.approx(coverage.RIGHT[1], abs=0.01) == pytest.approx(0.63, abs=0.02)
    assert found["within 2 sd"] == pytest.approx(coverage.RIGHT[2], abs=0.01)
    assert found[coverage.RATIO] == pytest.approx(1, abs=0.02)
    halved = coverage.shares_within(np.concatenate([2 * error[:100], error[100:]]), std, truth)
    assert halved["within 2 sd, object"] == pytest.approx(coverage.RIGHT[1], abs=0.01)
    assert halved["within 2 sd"] == pytest.approx((coverage.RIGHT[1] + coverage.RIGHT[2]) / 2, abs=0.01)
    assert halved[coverage.RATIO] == pytest.approx(1 / 2.5, abs=0.02)


def test_covered_images_are_those_of_the_scan_with_error_bars_in_its_units(trajectories):
    coverage, scenes = trajectories("coverage"), trajectories("scenes")
    scene = scenes.heads("phantom:t2w", [0], 16)[0]
    many = coverage.covered_sets(16, (24,), ())["24 spokes"]
    for coils in (1, 2):
        row = coverage.covered_row(scene, many, coils, 0, "local")
        assert row["error"] < 0.1 and 0.2 < row[coverage.RATIO] < 5 and row["within 2 sd"] > 0.5
    rows = [{"set": "a"} | row | {"recipe": "default", coverage.RATIO: ratio} for ratio in (0.2, 0.4, 0.9)]
    (summed,) = coverage.coverage_summary(rows)
    assert (summed[coverage.RATIO], summed["least"], summed["largest"], summed["runs"]) == (0.4, 0.2, 0.9, 3)
    named = {row["name"]: row["measured"] for row in trajectories("page").target_rows({"coverage": rows})}
    assert named["error bars of a, 2 coils, default recipe: variance over squared error"] == 0.4


def test_without_bart_its_rows_say_so_and_its_targets_stay_unmeasured(trajectories, monkeypatch):
    tv, page = trajectories("total_variation"), trajectories("page")
    monkeypatch.setattr(tv, "bart_path", lambda: None)
    monkeypatch.setattr(tv, "OURS", {"as shipped": tv.MapEstimate()})
    scene = trajectories("scenes").heads("phantom:t2w", [0], 16)[0]
    rows = tv.total_variation_rows(scene, 4, 2, [1, 2], 1)
    assert [row["settings"] for row in rows if row["f"] is None] == ["not installed: row skipped"] * 4
    for row in rows:
        if row["f"] is not None:
            assert 0 <= row["gap"] < 1e-3 and row["gap"] <= row["certified gap"] + 1e-6
    names = [row["name"] for row in page.target_rows({"tv": rows}) if "BART" in row["name"] and row["measured"] is None]
    assert len(names) == 6


def test_objectives_and_seconds_are_compared_per_number_of_coils(trajectories):
    tv = trajectories("total_variation")
    rows = [
        {"measured": "32 spokes", "coils": coils, "solver": solver, "s": s, "f": f, "gap": gap}
        for coils, solver, s, f, gap in [
            (1, "ours", 2.0, 1.0, 0.0),
            (1, tv.BART, 1.0, 1.1, 0.1),
            (1, tv.BART, 6.0, 1.0, 1e-4),
            (8, "ours", 3.0, 2.0, 0.0),
            (8, tv.BART, 9.0, 2.5, 0.25),
            (8, tv.BART, None, None, None),
        ]
    ]
    assert tv.seconds_to_goal(rows, "32 spokes", 1, "ours") == 2.0
    assert tv.seconds_to_goal(rows, "32 spokes", 1, tv.BART) == 6.0
    assert tv.seconds_to_goal(rows, "32 spokes", 8, tv.BART) is None
    assert tv.time_ratio(rows, "32 spokes", 1) == pytest.approx(1 / 3)
    assert tv.time_ratio(rows, "32 spokes", 8) == pytest.approx(1 / 3)  # over BART's longest run
    assert tv.excess(rows, "32 spokes", 8) == pytest.approx(-0.2)
    assert tv.excess(rows, "12 spirals", 8) is None


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART, a system package")
@pytest.mark.parametrize("coils", [1, 3])
def test_bart_comes_to_our_minimum(trajectories, tmp_path, coils):
    tv = trajectories("total_variation")
    scene = trajectories("scenes").heads("phantom:t2w", [0], 32)[0]
    problem = tv.Problem.of(scene, trajectories("sets").radial_sets(32, 12)["uniform"], coils)
    ours = problem.value(tv.MapEstimate(1e-6, 6, tv.LBFGS(tolerance=1e-5)).estimate(problem.model).image)
    theirs = problem.value(tv.bart_run(problem, 6000, 0.003, tmp_path).image)
    assert theirs == pytest.approx(ours, rel=5e-3)
