"""The design study runs at toy size, resumes, and its tables follow from its kept rows. No number of it is asserted."""

import csv
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.conftest import rows_of

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SECTIONS = {
    *("trained", "real-phase", "synthetic-phase", "phase-models", "full-size", "thesis-figure"),
    *("multi-coil", "centre-maps", "stress", "models"),
}

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def run(*arguments: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(BENCHMARKS / "design_study.py"), "--quick", "--jobs", "1", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a smoke run has left its files."""
    out = tmp_path_factory.mktemp("study") / "new"
    run("--out", str(out))
    return out


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch):
    """The study's modules by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"study.{name}")


def test_every_target_stands_in_the_table_with_a_verdict_that_follows_from_its_numbers(results):
    assert (results / "targets.csv").read_text(encoding="utf-8").splitlines()[0] == "name,target,measured,unit,met"
    targets = rows_of(results / "targets.csv")
    assert len({row["name"] for row in targets}) == len(targets) >= 25
    for row in targets:
        if row["target"] == "reported":
            assert row["met"] == ("yes" if row["measured"] else "no")
            continue
        sign, bound = row["target"].split()
        good = row["measured"] and (
            float(row["measured"]) >= float(bound) if sign == ">=" else float(row["measured"]) <= float(bound)
        )
        assert row["met"] == ("yes" if good else "no")
    # Toys have no low field, coils at one acceleration only, designs of two lengths, and no other pages beside them.
    unknown = ("low field", "multi-coil", "between start and end", ".md)")
    assert all(any(words in r["name"] for words in unknown) for r in targets if not r["measured"])


def test_every_section_is_measured_and_the_files_name_no_machine(results):
    cells = rows_of(results / "cells.csv")
    assert {row["section"] for row in cells} == SECTIONS
    assert all(np.isfinite(float(row["relative_l2"])) for row in cells)
    assert {row["mask"] for row in rows_of(results / "predictions.csv")} >= {"its own", "vd-tuned", "low-pass"}
    assert {row["strategy"] for row in rows_of(results / "training.csv")} >= {"residual-greedy", "lbcs"}
    for name in ("README.md", "manifest.json", "masks.csv", "cells.csv"):
        text = (results / name).read_text(encoding="utf-8")
        assert (
            not re.search(rf"\b{re.escape(os.uname().nodename)}\b|\bhome\b", text) and str(results.parent) not in text
        )
    text = (results / "README.md").read_text(encoding="utf-8")
    assert all(f"## {name[0].upper()}{name[1:]}\n" in text for name in SECTIONS)
    assert all((results / link).exists() for link in re.findall(r"\]\(([^)]+)\)", text))
    assert "| training | test |" in (results / "SPLIT.md").read_text(encoding="utf-8")


def test_masks_have_as_many_different_lines_as_they_should_and_random_rows_differ(results):
    masks = rows_of(results / "masks.csv")
    for row in masks:
        lines = row["mask"].split()
        assert len(set(lines)) == len(lines) == int(row["lines"])
    drawn = [r["mask"] for r in masks if r["section"] == "real-phase" and r["strategy"] == "fastmri-random"]
    assert len(set(drawn)) == len(drawn) > 1


def test_a_second_run_measures_nothing_and_a_forgotten_strategy_alone_is_measured_again(results):
    before = {name: (results / name).read_bytes() for name in ("cells.csv", "masks.csv", "targets.csv", "README.md")}
    assert ": " not in "".join(line for line in run("--out", str(results), "--tables").splitlines() if " of " in line)
    assert {name: (results / name).read_bytes() for name in before} == before
    said = run("--out", str(results), "--only", "stress", "--only", "full-size", "--forget", "low-pass")
    assert "designing masks: 1 of 1" in said and "tuning densities" not in said
    keys = ("section", "group", "reconstructor", "strategy", "lines", "draw", "image", "relative_l2")

    def kept(text: bytes, sections: set[str]) -> set[tuple[str, ...]]:
        found = csv.DictReader(text.decode("utf-8").splitlines())
        return {tuple(row[key] for key in keys) for row in found if row["section"] in sections}

    after = (results / "cells.csv").read_bytes()
    for sections in ({"stress", "full-size"}, {"real-phase"}):  # those measured again, and another that stays
        assert kept(after, sections) == kept(before["cells.csv"], sections)


def test_changes_are_against_the_tuned_density_image_by_image(study):
    tables = study("tables")

    def cell(strategy: str, image: str, draw: int, error: float) -> dict[str, object]:
        about = {"reconstructor": "mean", "group": "g", "share": "1/4", "psnr": -20 * np.log10(error), "ssim": 1.0}
        return about | {"strategy": strategy, "image": image, "draw": draw, "relative_l2": error}

    cells = [cell("vd-tuned", image, draw, error) for image, draw, error in (("a", 0, 0.1), ("a", 1, 0.3))]
    cells += [cell("vd-tuned", "b", 0, 0.4), cell("vd-tuned", "b", 1, 0.4)]
    cells += [cell("new", "a", 0, 0.1), cell("new", "b", 0, 0.42), cell("some", "b", 0, 0.2)]
    cells += [cell("oracle-residual", "a", 0, 0.1), cell("oracle-residual", "b", 0, 0.2)]
    rows = {
        row["strategy"]: row for row in tables.summary(cells, "mean", ["new", "some", "vd-tuned", tables.BEST_DRAW])
    }
    assert rows["new"]["change"] == pytest.approx((-0.5 + 0.05) / 2)
    assert rows["new"]["worst change"] == pytest.approx(0.05) and rows["new"]["images won"] == "1/2"
    assert rows["new"]["gap closed"] == pytest.approx((0.3 - 0.26) / (0.3 - 0.15))
    assert rows["some"]["change"] == pytest.approx(-0.5) and rows["some"]["gap closed"] == pytest.approx(1.0)
    assert rows[tables.BEST_DRAW]["change"] == pytest.approx(-0.25)
    assert rows[tables.BEST_DRAW]["PSNR"] == pytest.approx(
        -10 * np.log10(0.1 * 0.4)
    )  # of the draws with the least error
    assert rows["vd-tuned"]["change"] is None


def test_no_subject_is_trained_and_tested_on(study):
    split = study("split")
    first = {index // 6 for index in split.TRAINING_HEADS} | {0}
    tests = {*split.TEST_HEADS, *split.OTHER_TEST_HEADS, *split.LARGE_TEST_HEADS}
    assert not first & {index // 6 for index in tests}
    assert [sum(i // 6 == who for i in split.TEST_HEADS) for who in (1, 2, 3)] == [4, 4, 4]
    assert split.TRAINING_SUBJECT not in split.TEST_SUBJECTS


def test_the_tuned_density_is_the_best_on_the_training_images_and_is_carried_to_other_grids(study, tmp_path):
    tuning, groups, ledger = study("tuning"), study("groups"), study("ledger").Ledger.open(tmp_path)
    about = {"section": "s", "group": "g", "reconstructor": "mean", "grid": 128, "design": "mean"}
    for lines, power, start, error in ((32, 4, 8, 0.2), (32, 9, 16, 0.1), (64, 2, 4, 0.05)):
        row = {"family": "vd-polynomial", "lines": lines, "strategy": f"vd-polynomial:{power}", "start": start}
        ledger.keep("tuned", about | row | {"error": error})
    tests = [study("sections").toys(0, ("t1w",))[0]]
    own = groups.Group("s", "g", tests, [], ("1/4",), [], {}, tuning=groups.Tuning())
    assert tuning.best_density(own, ledger, "mean", 32).strategy == "vd-polynomial:9"
    other = groups.Group("x", "y", tests, [], ("1/4",), [], {}, tuning=None, tuned_like=("s", "g"))
    found = tuning.best_density(other, ledger, "mean", 6)  # a quarter of 24 lines
    assert (found.strategy, found.start) == ("vd-polynomial:9", 3)
    assert tuning.best_density(other, ledger, "mean", 12).strategy == "vd-polynomial:2"


@pytest.mark.parametrize("order", [("mean", "new", "chosen"), ("new", "chosen", "mean")])
def test_masks_and_reconstructions_are_compared_with_one_mask_and_one_reconstruction_whatever_their_order(study, order):
    tables = study("tables")
    errors = {
        ("calibrated", "mean"): 0.9,
        ("calibrated", "new"): 0.8,
        ("vd-tuned", "mean"): 1.0,
        ("vd-tuned", "new"): 0.95,
        ("calibrated", "chosen"): 0.7,
    }
    cells = [
        {
            "strategy": mask,
            "reconstructor": name,
            "group": "g",
            "share": "1/4",
            "image": image,
            "relative_l2": scale * e,
        }
        for (mask, name), e in errors.items()
        for image, scale in (("a", 1.0), ("b", 3.0))
    ]
    cells.append({**cells[0], "image": "with one mask only"})
    rows = tables.two_way(cells, ["calibrated", "vd-tuned"], order, base="mean")
    assert [tuple(row) for row in rows] == [("mask", "images", *order)] * 2
    found = {row["mask"]: row for row in rows}
    assert (found["calibrated"]["mean"], found["calibrated"]["new"]) == ("-10.0 %", "-20.0 %")
    assert (found["vd-tuned"]["mean"], found["vd-tuned"]["new"], found["vd-tuned"]["images"]) == ("+0.0 %", "-5.0 %", 2)
    assert (found["calibrated"]["chosen"], found["vd-tuned"]["chosen"]) == ("-30.0 %", None)  # of one mask only
    assert tables.two_way(cells, ["calibrated", "vd-tuned"], order, base="never measured") == []


def test_the_zero_of_masks_and_reconstructions_is_what_their_title_says():
    """In the kept tables MAP comes first, and the density tuned for the local mean is the zero all the same."""
    text = (ROOT / "results/design-study/README.md").read_text(encoding="utf-8")
    table = text.partition("**Masks and reconstructions apart")[2].strip().split("\n")[2:]
    header, tuned = ([cell.strip() for cell in table[i].strip("|").split("|")] for i in (0, 3))
    assert tuned[0] == "vd-tuned" and dict(zip(header, tuned, strict=True))["posterior mean, local prior"] == "+0.0 %"


def test_spread_over_seeds_is_that_of_one_image(study):
    cells = [
        {"strategy": "calibrated", "reconstructor": "mean", "group": "g", "share": "1/4", "image": image}
        | {"relative_l2": error, "draw": draw}
        for image, errors in (("a", (0.9, 1.0, 1.1)), ("b", (5.0, 5.0, 5.0)), ("too few", (1.0,)))
        for draw, error in enumerate(errors)
    ]
    assert study("targets").spread_over_seeds()(cells) == pytest.approx(0.05)
    assert study("targets").spread_over_seeds("another")(cells) is None


def test_a_design_s_own_predictions_are_judged_at_its_end_and_between_start_and_end(study):
    at = {16: (9.0, 9.0), 24: (1.4, 0.6), 32: (1.0, 0.7), 64: (1.1, 0.86)}
    rows = [
        {"strategy": "calibrated", "mask": "its own", "lines": lines, "ratio": ratio}
        for lines, ratios in at.items()
        for ratio in ratios
    ]
    rows += [{**rows[-1], "mask": "low-pass", "ratio": 9.0}, {**rows[-1], "strategy": "another", "ratio": 9.0}]
    inside = study("targets").own_predictions_inside
    assert inside(0.87, 1.15, at_end=True)(rows) == 50.0
    assert inside(0.85, 1.15, at_end=True)(rows) == 100.0
    assert inside(1 / 1.5, 1.5, at_end=False)(rows) == 75.0
    assert inside(0.85, 1.15, at_end=True)([]) is None


def test_targets_that_other_pages_know_are_read_from_them(study, tmp_path):
    pages = study("pages").Pages(tmp_path)
    targets = study("targets")
    assert [row["measured"] for row in targets.of_pages(pages)] == [None] * 6
    (tmp_path / "recon-time.csv").write_text("grid,default / local\n128,2\n128,9\n128,2.5\n256,4\n")
    (tmp_path / "non-local-held-out.md").write_text(
        "# Page\n\n| image | `local`: variance ratio | scaled | default: variance ratio | scaled |\n"
        "| :--- | ---: | ---: | ---: | ---: |\n| a | 1 | 1 | 1 | 0.69 |\n| b | 9 | 9 | 9 | 1.40 |\n"
    )
    head = "| scan now | mask | 16 lines | 32 lines | worst image |\n| :--- | :--- | :--- | :--- | :--- |\n"
    seen = "calibrated, earlier scan seen"
    (tmp_path / "series.md").write_text(
        f"## Against `calibrated` without an earlier scan\n\n{head}| other noise | {seen} | -9 % | -9 % | -9 % |\n"
        f"| turned by 3 degrees | {seen} | +3.0 % | -1.0 % | +9.0 % |\n\n"
        f"## Against the best polynomial density by hindsight\n\n{head}"
        f"| other noise | calibrated | +1.0 % | +1.0 % | +1.0 % |\n"
        f"| other noise | {seen} | -13.5 % | -15.8 % | -1 % |\n"
    )
    found = targets.of_pages(pages)
    assert [row["measured"] for row in found] == [50.0, -13.5, -15.8, 1.0, 2.5, 4.0]
    assert [row["met"] for row in found] == [False, True, False, True, True, False]
