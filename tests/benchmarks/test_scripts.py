"""Scripts of the benchmarks run at their smallest size, and their tables follow from what they keep."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design.evidence import features, shipped_squared_error_model
from mri_design.sequences import GridOrder, SequenceSettings, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.benchmarks.conftest import BENCHMARKS, Tables

Module = Callable[[str], ModuleType]
thorough = pytest.mark.thorough
PAGE = "# Page\n\nFirst words.\n\n## One\n\nWords of one.\n\n| a |\n| ---: |\n| 1 |\n\n## Two\n\nWords of two.\n"


def test_a_table_takes_the_place_of_the_one_under_its_heading(module: Module, tmp_path: Path) -> None:
    pages, page = module("parts.pages"), tmp_path / "page.md"
    page.write_text(PAGE)
    pages.put_table(page, "One", [{"a": 1}])
    assert page.read_text() == PAGE
    pages.put_table(page, "One", [{"b": 2}, {"b": 3}])
    pages.put_table(page, "Two", [{"c": 4}])
    pages.put_table(page, "Three", [])
    text = page.read_text()
    assert "Words of one.\n\n| b |\n| ---: |\n| 2 |\n| 3 |\n\n## Two\n\nWords of two.\n\n| c |" in text
    assert text.endswith("## Three\n\nNothing was measured.\n") and "| a |" not in text
    pages.put_conditions(page, "numpy")
    pages.put_conditions(page, "scipy", also="; idle")
    assert page.read_text().count("Measured with") == 1 and "numpy" not in page.read_text()


def test_chains_are_compared_with_the_best_of_what_they_may_choose(module: Module) -> None:
    chain, rows = module("coil_chain"), list[dict[str, object]]()
    usual, small, joint = (f"BART {way}" for way in (chain.ESPIRIT, chain.SMALL, chain.JOINT))
    some, other = chain.MASKS[:2]
    contrasts = {f"{kind} {radius}": 0.5 for kind in ("contrast", "missed") for radius in chain.RADII}
    for scan, factor in (("one", 1.0), ("two", 2.0)):
        for mask, share, program, error in (
            (chain.DESIGNED, "", chain.OURS, 0.1),
            (some, "2/3", chain.OURS, 0.2),
            (some, "2/3", usual, 0.4),
            (other, "2/3", usual, 0.5),
            (other, "1/3", chain.OURS, 0.125),
            (other, "1/3", small, 0.25 if scan == "one" else 0.6),
            (other, "1/3", joint, 0.3),
        ):
            row = {"scan": scan, "acceleration": "4", "seed": "0", "mask": mask, "share": share, "centre": 8}
            rows.append(row | {"lines": 24, "program": program, "error": error * factor, **contrasts})
    for usual_alone, found in ((True, [-75, -50, -50]), (False, [-60, -20, -50])):
        first = chain.compared(rows, usual=usual_alone)[0]
        assert [first[name] for name in ("whole", "masks", "image")] == pytest.approx(found)
    last, other_last = chain.compared(rows, usual=True)[1], chain.compared(rows, usual=False)[1]
    assert [last["beforehand"], other_last["whole"]] == pytest.approx([-75, -200 / 3]) and not other_last["beforehand"]
    assert chain.summary(chain.compared(rows, usual=True))[0]["won"] == "2 of 2"


def test_what_is_shipped_has_been_learnt_from_the_images_of_the_page(module: Module) -> None:
    bars, shipped = module("error_bars"), shipped_squared_error_model()
    rows = bars.with_held(bars.read_rows())
    found = [[*features(bars.evidence_of(row)).values()] for row in rows]
    np.testing.assert_allclose(shipped.images, found, atol=6e-4)
    fitted = bars.fitted(rows)
    for row in rows[::80]:
        known = bars.evidence_of(row)
        assert shipped.squared_error(known) == pytest.approx(fitted.squared_error(known), rel=0.02)


def test_a_subject_is_predicted_by_what_the_others_teach(module: Module) -> None:
    bars = module("error_bars")
    rows = bars.with_held(bars.read_rows())[::16]
    before = bars.left_open(rows)
    changed = [
        {**row, "squared_error": str(9 * float(row["squared_error"]))} if row["group"] == "7A" else row for row in rows
    ]
    own = np.array([row["group"] == "7A" for row in rows])
    raised = bars.left_open(changed)
    np.testing.assert_allclose(before[own] - raised[own], np.log(9), atol=1e-9)
    assert np.abs(raised[~own] - before[~own]).max() > 0.05


@thorough
def test_two_versions_are_timed_in_turns(
    module: Module, tables_of: Callable[..., Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed = module("speed")
    once = cache(partial(speed.timed, speed.HERE))  # for both, which are the same here
    monkeypatch.setattr(speed, "timed", lambda _, *asked: once(*asked))
    tables = tables_of("speed", "--quick", "--against", str(BENCHMARKS.parent))
    (image,), (step,) = tables["images"], tables["steps"]
    assert float(image["error, change in %"]) == float(image["variances, change in %"]) == 0
    assert float(image["default / local, here"]) > 1 and step["same lines"] == "yes"
    assert (tmp_path / "README.md").read_text(encoding="utf-8").count(speed.revision(BENCHMARKS.parent)) == 2


@thorough
def test_the_study_goes_on_where_it_stopped(tables_of: Callable[..., Tables], tmp_path: Path) -> None:
    words = ("--quick", "--jobs", "1", "--only", "trained", "--only", "centre-maps")
    first = tables_of("design_study", *words)
    assert {row["section"] for row in first["cells"]} == {"centre-maps"}
    assert [row["lines"] for row in first["training"]] == ["12", "12"]
    for row in first["masks"]:
        lines = row["mask"].split()
        assert len(set(lines)) == len(lines) == int(row["lines"])
    page = (tmp_path / "README.md").read_text()
    assert "## Centre-maps\n" in page and "**Tuned" in page
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


def test_no_subject_is_trained_and_tested_on(module: Module) -> None:
    split = module("study.scans")
    tests = {*split.TEST_HEADS, *split.OTHER_TEST_HEADS, *split.LARGE_TEST_HEADS}
    assert not {index // 6 for index in (*split.TRAINING_HEADS, 0)} & {index // 6 for index in tests}
    assert split.TRAINING_SUBJECT not in split.TEST_SUBJECTS


@thorough
def test_what_ships_is_learnt_from_heads(module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error_model, factors = module("error_model"), module("band_factors")
    monkeypatch.setattr(error_model, "SIDES", (24,))
    x, y = error_model.table(error_model.kept(tmp_path, error_model.KINDS[0], 3))
    assert x.shape == (len(y), len(error_model.FEATURES)) and np.isfinite(x).all()
    monkeypatch.setattr(factors, "SIDES", (24, 24))
    found = [factors.cases(0)]
    for case in found[0]:  # enough of them would be needed for factors
        assert np.isfinite(case.products).all() and (case.powers >= 0).all()


@thorough
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("MRzeroCore", "pypulseqpp", "finufft")),
    reason="needs MRzeroCore, pypulseqpp and finufft",
)
def test_other_programs_find_every_sample_and_the_phantom(tables_of: Callable[..., Tables]) -> None:
    tables = tables_of("bloch", "--quick")
    assert len(tables["readers"]) == 20 and max(float(row["largest error"]) for row in tables["readers"]) < 1e-3
    assert {row["labels exact"] for row in tables["readers"]} == {"yes", "not read"}
    for row in tables["bloch"]:
        assert float(row["relative error"]) < float(row["of exact samples"]) + 0.03, row


@thorough
def test_sequences_are_exact_and_impossible_ones_refused(tables_of: Callable[..., Tables]) -> None:
    pytest.importorskip("pypulseq")
    tables = tables_of("sequences", "--quick")
    assert {row["exact"] for row in tables["sequences"]} == {row["refused"] for row in tables["refusals"]} == {"yes"}


@thorough
@pytest.mark.parametrize("kind", ["gre", "tse"])
def test_the_reader_of_the_text_finds_the_lines_and_what_is_changed(module: Module, kind: str) -> None:
    pytest.importorskip("pypulseq")
    settings = SequenceSettings(
        kind=kind,  # type: ignore[arg-type]
        field_of_view=(0.24, 0.2),
        samples=9,
        echo_time=0.02,
        repetition_time=0.1,
        flip_angle=70.0,
        bandwidth=300.0,
    )
    order = GridOrder(((8, 3, 12), (9, 0)), 16)
    text = pulseq_file(order, settings, load_scanner("generic"))[0].decode()
    found = module("parts.pulseq_text").played(text)
    assert found.labels == {"LIN": list(order.numbers)}
    ky = found.places[..., 1] * 0.24
    np.testing.assert_allclose(ky, np.repeat(np.array(order.numbers) - 8, 9).reshape(-1, 9), atol=1e-4)
    shifted = module("parts.random_sequences")._scaled(1, 1.01)(text)  # the prephaser
    assert np.abs(module("parts.pulseq_text").played(shifted).places - found.places).max() > 0.1


@thorough
def test_foreign_files_that_are_there_are_read_right(module: Module, tmp_path: Path) -> None:
    foreign_files, data = module("foreign_files"), BENCHMARKS.parents[1] / "shared/data"
    if (data / "raw").is_dir() and find_spec("twixtools"):
        assert all(row["right"] for row in foreign_files.scanner_rows(data))
    if find_spec("mrpro"):
        assert all(row["right"] for row in foreign_files.mrpro_rows(tmp_path, 1))


@thorough
def test_every_reader_refuses_or_reads_what_was_there(tables_of: Callable[..., Tables]) -> None:
    for package in ("mrd", "nibabel", "pydicom", "twixtools"):
        pytest.importorskip(package)
    rows = {row["kind"]: row for row in tables_of("fuzz_readers", "--cases", "128", "--seed", "2")["fuzz"]}
    assert rows["all"]["cases"] == "128" and int(rows["all"]["refused"]) > 25
    for never in ("crashed", "stalled", "another error", "other files changed"):
        assert rows["all"][never] == "0", rows


@thorough
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_killed_verbs_go_on_to_identical_results(tables_of: Callable[..., Tables]) -> None:
    (row,) = tables_of("kills", "--verbs", "export", "--kills", "2", "--matrix", "16")["kills"]
    assert row["kills"] == row["identical"] == "2" and row["not compared"] == "" and row["files"] == "1"


@thorough
def test_a_client_leads_to_the_lines_of_the_replayed_file(
    module: Module, tables_of: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONPATH"):  # which the script sets, for processes of its own
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(module("stream_clients"), "STREAMS", {"plain": "sl", "calibration": "acs"})
    plain, accelerated = tables_of("stream_clients", "--matrix", "48", "--lines", "26", "--clients", "1")["clients"]
    for row in (plain, accelerated):
        assert row["lines"] == "26" and row["told that it is done, then closed"] == "yes", row
    assert plain["same lines as design"] == "yes", plain
