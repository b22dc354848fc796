from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evaluation import plots
from mri_design.evaluation.manifest import Manifest
from mri_design.evaluation.page import ReportTable, Section, save_report
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.demo.overview import FigureFiles, Part, TableFile, save_overview
from tests.evaluation.test_page import Page

ROWS = [{"method": "mean", "lines": 8, "psnr": 31.25}, {"method": "map", "lines": 16, "psnr": 9.5}]


def finished(path: Path, status: str = "converged") -> Path:
    with RunFolder(path) as folder:
        folder.write_figure("mask", plots.mask_barcodes({"mine": np.eye(8, dtype=bool)[0]}))
        folder.write_metrics(ROWS)
        manifest = Manifest(
            command=["design"], seed=0, inputs=[], settings={}, wall_seconds=12.5, status=status, lines=[]
        )
        save_report(folder, "Run", {"lines": 1}, [Section("One", [])], manifest)
    return path


def overview(path: Path, parts: list[Part]) -> Page:
    with RunFolder(path, overwrite=True) as folder:
        assert save_overview(folder, "A demo", parts) == path / "report.html"
    return Page((path / "report.html").read_text(encoding="utf-8"))


def test_the_overview_shows_text_figures_and_tables_of_runs_and_how_they_ended(tmp_path: Path) -> None:
    shown = [
        "What <b>happened</b>.",
        FigureFiles({"mask": "The lines."}),
        TableFile("metrics.csv", "All errors."),
        ReportTable([{"made": "here"}]),
    ]
    parts = [Part("First", finished(tmp_path / "a"), shown), Part("Second", finished(tmp_path / "b"), ["More."])]
    page = overview(tmp_path, parts)
    for text in ("A demo", "First", "Second", "<b>happened", "The lines.", "All errors.", "31.2", "12.5", "here"):
        assert text in page.text
    assert [picture["aria-label"] for picture in page.named("svg")] == ["The lines."]
    assert str(tmp_path) not in page.source


def test_numbers_of_a_file_are_numbers_in_the_overview(tmp_path: Path) -> None:
    page = overview(tmp_path, [Part("First", finished(tmp_path / "a"), [TableFile("metrics.csv", "")])])
    heads = [column.get("class") for column in page.named("th")]
    assert heads[:3] == [None, "number", "number"]
    assert ">31.25<" in page.source and ">9.50<" in page.source  # one precision


def test_a_table_may_show_some_of_its_rows(tmp_path: Path) -> None:
    some = TableFile("metrics.csv", "", {"psnr": ".1f"}, {"lines": 16})
    page = overview(tmp_path, [Part("First", finished(tmp_path / "a"), [some])])
    assert ">9.5<" in page.source and "31.2" not in page.source


def test_links_lead_to_the_full_reports_beside_it(tmp_path: Path) -> None:
    parts = [Part("First", finished(tmp_path / "demo" / "a b"), []), Part("Second", finished(tmp_path / "c"), [])]
    page = overview(tmp_path / "demo", parts)
    links = [link["href"] for link in page.named("a") if not str(link["href"]).startswith("#")]
    assert links == ["a%20b/report.html", "../c/report.html"]


def test_figures_of_one_row_stand_side_by_side(tmp_path: Path) -> None:
    run = finished(tmp_path / "a")
    with RunFolder(run) as folder:
        folder.write_figure("other", plots.mask_barcodes({"other": np.ones(8, dtype=bool)}))
    page = overview(tmp_path, [Part("First", run, [FigureFiles({"mask": "One.", "other": "Two."})])])
    assert [box for box in page.named("div") if box.get("class") == "beside"]
    assert len(page.named("svg")) == 2


def test_a_run_that_did_not_converge_is_named_on_top(tmp_path: Path) -> None:
    parts = [
        Part("One", finished(tmp_path / "good"), []),
        Part("Two", finished(tmp_path / "bad", "2 of 9 reconstructions not converged"), []),
    ]
    source = overview(tmp_path, parts).source
    assert "bad: 2 of 9 reconstructions not converged." in source
    assert "good: " not in source.split("<section")[0]


def test_a_run_without_its_figure_or_with_something_else_in_its_place_is_an_error(tmp_path: Path) -> None:
    run = finished(tmp_path / "a")
    part = Part("First", run, [FigureFiles({"absent": "?"})])
    with RunFolder(tmp_path, overwrite=True) as folder, pytest.raises(FileNotFoundError):
        save_overview(folder, "A demo", [part])
    (run / "figures" / "absent.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')
    with RunFolder(tmp_path, overwrite=True) as folder, pytest.raises(InputError, match="script"):
        save_overview(folder, "A demo", [part])
