"""The study and its like run at toy size, and their tables follow from what they keep. No number is asserted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design import load_recipe
from mri_design.evaluation.tables import Row
from tests.benchmarks.conftest import BENCHMARKS, Tables

pytestmark = pytest.mark.thorough

Module = Callable[[str], ModuleType]


@pytest.mark.slow
def test_the_study_goes_on_where_it_stopped(tables_of: Callable[..., Tables], tmp_path: Path) -> None:
    words = ("--quick", "--jobs", "1", "--only", "trained", "--only", "centre-maps")
    first = tables_of("design_study", *words)
    assert {row["section"] for row in first["cells"]} == {"centre-maps"}
    assert [row["lines"] for row in first["training"]] == ["12", "12"]
    for row in first["masks"]:
        lines = row["mask"].split()
        assert len(set(lines)) == len(lines) == int(row["lines"])
    page = (tmp_path / "README.md").read_text()
    assert "## Centre-maps\n" in page and "**Tuned on the training images**" in page
    assert tables_of("design_study", *words) == first and (tmp_path / "README.md").read_text() == page
    again = tables_of("design_study", *words, "--forget", "calibrated")
    assert len(again["masks"]) == len(first["masks"])
    errors = [sorted(row["relative_l2"] for row in tables["cells"]) for tables in (first, again)]
    assert errors[0] == errors[1]


def test_changes_are_against_the_tuned_density_image_by_image(module: Module) -> None:
    tables = module("study.tables")

    def cell(strategy: str, image: str, draw: int, error: float) -> dict[str, object]:
        about = {"reconstructor": "mean", "group": "g", "share": "1/4", "psnr": -20 * np.log10(error), "ssim": 1.0}
        return about | {"strategy": strategy, "image": image, "draw": draw, "relative_l2": error}

    cells = [cell("vd-tuned", image, draw, error) for image, draw, error in (("a", 0, 0.1), ("a", 1, 0.3))]
    cells += [cell("vd-tuned", "b", 0, 0.4), cell("vd-tuned", "b", 1, 0.4)]
    cells += [cell("new", "a", 0, 0.1), cell("new", "b", 0, 0.42), cell("some", "b", 0, 0.2)]
    cells += [cell("oracle-residual", "a", 0, 0.1), cell("oracle-residual", "b", 0, 0.2)]
    names = ["new", "some", "vd-tuned", tables.BEST_DRAW]
    rows = {row["strategy"]: row for row in tables.summary(cells, "mean", names)}
    assert rows["new"]["change"] == pytest.approx((-0.5 + 0.05) / 2)
    assert rows["new"]["worst change"] == pytest.approx(0.05) and rows["new"]["images won"] == "1/2"
    assert rows["new"]["gap closed"] == pytest.approx((0.3 - 0.26) / (0.3 - 0.15))
    assert rows["some"]["change"] == pytest.approx(-0.5) and rows["some"]["gap closed"] == pytest.approx(1.0)
    assert rows[tables.BEST_DRAW]["change"] == pytest.approx(-0.25)
    assert rows[tables.BEST_DRAW]["PSNR"] == pytest.approx(-10 * np.log10(0.1 * 0.4))  # with the least error
    assert rows["vd-tuned"]["change"] is None


@pytest.mark.parametrize("order", [("mean", "new", "chosen"), ("new", "chosen", "mean")])
def test_masks_and_reconstructions_have_one_zero_whatever_their_order(module: Module, order: tuple[str, ...]) -> None:
    tables = module("study.tables")
    errors = {
        ("calibrated", "mean"): 0.9,
        ("calibrated", "new"): 0.8,
        ("calibrated", "chosen"): 0.7,
        ("vd-tuned", "mean"): 1.0,
        ("vd-tuned", "new"): 0.95,
    }
    cells = [
        {"strategy": mask, "reconstructor": name, "group": "g", "share": "1/4", "image": image, "relative_l2": s * e}
        for (mask, name), e in errors.items()
        for image, s in (("a", 1.0), ("b", 3.0))
    ]
    cells.append({**cells[0], "image": "with one mask only"})
    rows = tables.two_way(cells, ["calibrated", "vd-tuned"], order, base="mean")
    found = {row["mask"]: row for row in rows}
    assert (found["calibrated"]["mean"], found["calibrated"]["new"]) == ("-10.0 %", "-20.0 %")
    assert (found["vd-tuned"]["mean"], found["vd-tuned"]["new"], found["vd-tuned"]["images"]) == ("+0.0 %", "-5.0 %", 2)
    assert (found["calibrated"]["chosen"], found["vd-tuned"]["chosen"]) == ("-30.0 %", None)  # of one mask only


def test_no_subject_is_trained_and_tested_on(module: Module) -> None:
    split = module("study.split")
    tests = {*split.TEST_HEADS, *split.OTHER_TEST_HEADS, *split.LARGE_TEST_HEADS}
    assert not {index // 6 for index in (*split.TRAINING_HEADS, 0)} & {index // 6 for index in tests}
    assert split.TRAINING_SUBJECT not in split.TEST_SUBJECTS


def test_the_tuned_density_is_the_best_on_training_images_and_is_carried_to_other_grids(
    module: Module, tmp_path: Path
) -> None:
    tuning, groups = module("study.tuning"), module("study.groups")
    ledger = module("study.ledger").Ledger.open(tmp_path)
    about = {"section": "s", "group": "g", "reconstructor": "mean", "grid": 128, "design": "mean"}
    for lines, power, start, error in ((32, 4, 8, 0.2), (32, 9, 16, 0.1), (64, 2, 4, 0.05)):
        row = {"family": "vd-polynomial", "lines": lines, "strategy": f"vd-polynomial:{power}", "start": start}
        ledger.keep("tuned", about | row | {"error": error})
    tests = [module("study.sections").toys(0, ("t1w",))[0]]
    own = groups.Group("s", "g", tests, [], ("1/4",), [], {}, tuning=groups.Tuning())
    assert tuning.best_density(own, ledger, "mean", 32).strategy == "vd-polynomial:9"
    other = groups.Group("x", "y", tests, [], ("1/4",), [], {}, tuning=None, tuned_like=("s", "g"))
    found = tuning.best_density(other, ledger, "mean", 6)  # a quarter of 24 lines
    assert (found.strategy, found.start) == ("vd-polynomial:9", 3)


@pytest.mark.slow
def test_planes_go_on_where_they_stopped(tables_of: Callable[..., Tables]) -> None:
    first = tables_of("planes", "--quick")
    changes = {row["strategy"]: row for row in first["changes"]}
    assert float(changes["vd-polynomial, tuned"]["change_percent"]) == 0
    mine, theirs = (float(changes[name]["error"]) for name in ("calibrated", "vd-polynomial, tuned"))
    assert float(changes["calibrated"]["change_percent"]) == pytest.approx(100 * (mine / theirs - 1), rel=1e-3)
    assert len({row["scan now"] for row in first["seen-changes"]}) == 4
    assert [row["recipe"] for row in first["default-changes"]] == ["default", "local"]
    again = tables_of("planes", "--quick")
    assert all(again[name] == first[name] for name in ("tuning", "cells", "seen-cells", "default-cells"))


@pytest.mark.slow
def test_spokes_and_spirals_make_their_tables(tables_of: Callable[..., Tables], module: Module) -> None:
    pytest.importorskip("finufft")
    words = [word for name in ("radial", "coverage", "variances") for word in ("--only", name)]
    tables = tables_of("shots", "--quick", *words)
    assert len(tables["shots-radial"]) == 8 and len(tables["shots-coverage"]) == 8
    sets = module("trajectories.sets")
    twice = {name: sets.conjugate_coverage(shots).redundancy for name, shots in sets.spiral_sets(32, 4, 1.5).items()}
    assert twice[sets.USUAL] > 0.95 and max(twice[name] for name in twice if name != sets.USUAL) < 0.6


@pytest.mark.slow
def test_the_default_recipe_is_held_against_local(module: Module) -> None:
    non_local = module("non_local")
    scan = module("study.scans").simulated("phantom:t2w", [0], module("study.scans").simulating(48))[0]
    both = [non_local.outcome(scan, range(8, 24), recipe) for recipe in (non_local.LOCAL, non_local.NON_LOCAL)]
    pair = non_local.Pair(scan.name, "middle", 16, *both)
    assert non_local.row_of(pair)["lines"] == 16 and np.isfinite(pair.change)
    assert non_local.summary([pair])[0]["masks"] == 1


@pytest.mark.slow
def test_undeclared_noise_is_held_against_the_true_one(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = module("unknown_noise")
    rows, columns = np.mgrid[:32, :32]
    image = np.exp(2j * np.pi * (2 * rows + 3 * columns) / 32).astype(np.complex64)
    small = noise.cut(image, 16)
    np.testing.assert_allclose(small / small[0, 0], image[::2, ::2], atol=1e-5)
    monkeypatch.setattr(noise, "masks", lambda scan: [("random", list(range(8, 32)))])
    fine = module("study.scans").simulated("phantom:t2w", [0], module("study.scans").simulating(96, noise=0.001))[0]
    found = list(noise.rows_of(noise.anew("coarse", noise.cut(fine.reference, 40))))
    assert [row["file"] for row in found] == ["all lines", "the mask's"]
    assert all(1 < row["sd / true"] < 5 for row in found)


@pytest.mark.slow
def test_designs_end_where_the_wanted_error_is_predicted(module: Module) -> None:
    until_error = module("until_error")
    recipe = load_recipe("local").replacing("simulation", matrix=32)
    rows: list[Row] = []
    for encoding in ("lines", "radial"):
        case = until_error.phantom(encoding, "t2w", recipe.replacing("design", encoding=encoding), 0)
        rows += until_error.measured(case, 0, (0.1, 0.2))
    ended = [row for row in rows if row["because"] in ("reached", "at once")]
    assert ended and all(row["ends at"] >= row["start"] + 4 for row in ended)
    assert all(row["predicted of the image"] <= row["wanted"] for row in ended)
    assert sum(int(row["ended"].split()[2]) for row in until_error.summary(rows)) == len(rows) == 4


@pytest.mark.slow
def test_the_spread_between_heads_is_told_from_the_spread_within(module: Module) -> None:
    """Heads whose weights are drawn around a mean: mean and covariance are found again."""
    error_model = module("error_model")
    rng = np.random.default_rng(0)
    n = len(error_model.FEATURES)
    mean, deviations = rng.standard_normal(n), np.where(np.arange(n) % 3 == 0, 0.6, 0.05)
    tables = []
    for _ in range(80):
        x = rng.standard_normal((3000, n))
        weights = mean + deviations * rng.standard_normal(n)
        tables.append((x, x @ weights + 0.3 * rng.standard_normal(3000)))
    found_mean, covariance, spread = error_model.fitted(tables)
    np.testing.assert_allclose(found_mean, mean, atol=0.25)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=0.3, atol=0.06)
    assert spread == pytest.approx(0.3, rel=0.05)


@pytest.mark.slow
def test_what_ships_is_learnt_from_heads(module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error_model, factors = module("error_model"), module("band_factors")
    monkeypatch.setattr(error_model, "SIDES", (24,))
    x, y = error_model.table(error_model.kept(tmp_path, error_model.KINDS[0], 3))
    assert x.shape == (len(y), len(error_model.FEATURES)) and np.isfinite(x).all()
    monkeypatch.setattr(factors, "SIDES", (24, 24))
    found = [factors.cases(0)]
    for case in found[0]:  # enough of them would be needed for factors
        assert np.isfinite(case.products).all() and (case.powers >= 0).all()


def test_two_error_models_are_compared_over_the_seeds_that_both_have(module: Module) -> None:
    """Cells are means of the logarithm over seeds, and standard errors are over scans, not over their cells."""
    models = module("coil_error_models")

    def row(scan: str, maps: str, model: str, seed: int, error: float) -> dict[str, object]:
        about = {"scan": scan, "acceleration": "4", "maps": maps}
        return about | {"model": model, "seed": str(seed), "error": str(error)}

    found = [row("8a-96", "known", "old", seed, 0.1) for seed in (0, 1, 2)]
    found += [row("8a-96", "known", "new", seed, error) for seed, error in ((0, 0.2), (1, 0.05))]
    found += [row("8a-96", "growing", model, 0, 0.1 if model == "old" else 0.12) for model in ("old", "new")]
    found += [row("16-96", "known", model, 0, 0.1 if model == "old" else 0.08) for model in ("old", "new")]
    found += [row("heart-8", "known", "old", 0, 0.1)]
    cells = models.cells(found, models.JUDGED)
    assert [round(cell["change_percent"], 6) for cell in cells] == [0, 20, -20]
    assert [cell["seeds"] for cell in cells] == [2, 1, 1] and models.cells(found, list(models.FURTHER)) == []
    every, *_ = models.summary({"judged": cells})
    assert (every["number"], every["better"], every["worst_percent"]) == (3, 1, pytest.approx(20))
    assert every["standard_error"] == pytest.approx(15)  # of +10 and -20
    assert every["worst_scan_percent"] == pytest.approx(10)


def test_the_zero_of_masks_and_reconstructions_is_what_their_title_says() -> None:
    """In the kept tables MAP comes first, and the density tuned for the local mean is the zero all the same."""
    text = (BENCHMARKS.parent / "results/design-study/README.md").read_text(encoding="utf-8")
    table = text.partition("**Masks and reconstructions apart")[2].strip().split("\n")[2:]
    header, tuned = ([cell.strip() for cell in table[i].strip("|").split("|")] for i in (0, 3))
    assert tuned[0] == "vd-tuned" and dict(zip(header, tuned, strict=True))["posterior mean, local prior"] == "+0.0 %"
