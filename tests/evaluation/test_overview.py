from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import Manifest, RunFolder, plots
from mri_design.evaluation.overview import RunSummary, save_overview
from mri_design.evaluation.report import Section
from mri_design.evaluation.run_outputs import save_report

TABLES = {"metrics.csv": "All errors."}


def finished(path: Path, status: str = "converged") -> Path:
    with RunFolder(path) as folder:
        folder.write_figure("mask", plots.mask_barcodes({"mine": np.eye(8, dtype=bool)[0]}))
        folder.write_metrics([{"method": "mean", "psnr": 31.25}])
        manifest = Manifest(["design"], 0, [], {}, 12.5, status, [])
        save_report(folder, "Run", {"lines": 1}, [Section("One", [])], manifest)
    return path


def test_the_overview_shows_figures_tables_and_status_of_every_run(tmp_path: Path) -> None:
    runs = [
        RunSummary("First", "What <b>happened</b>.", finished(tmp_path / "a"), {"mask": "The lines."}, TABLES),
        RunSummary("Second", "More.", finished(tmp_path / "b"), {}),
    ]
    with RunFolder(tmp_path / "demo") as folder:
        path = save_overview(folder, "A demo", runs)
    page = path.read_text()
    assert path == tmp_path / "demo" / "report.html"
    for text in (
        "A demo",
        "First",
        "Second",
        "The lines.",
        "All errors.",
        "31.25",
        "12.5",
        "folder a",
        "&lt;b&gt;happened",
    ):
        assert text in page
    assert page.count("data:image/png;base64,") == 1
    assert "http:" not in page and "https:" not in page and 'src="' not in page.replace('src="data:', "")
    assert str(tmp_path) not in page


def test_a_run_that_did_not_converge_is_named_on_top(tmp_path: Path) -> None:
    runs = [
        RunSummary("Good", "", finished(tmp_path / "a"), {}),
        RunSummary("Bad", "", finished(tmp_path / "b", "2 of 9 reconstructions not converged"), {}),
    ]
    with RunFolder(tmp_path / "demo") as folder:
        page = save_overview(folder, "A demo", runs).read_text()
    assert "Bad: 2 of 9 reconstructions not converged." in page
    assert "Good: " not in page.split("<table")[0]


def test_a_run_without_its_figure_is_an_error(tmp_path: Path) -> None:
    run = RunSummary("First", "", finished(tmp_path / "a"), {"absent": "?"})
    with RunFolder(tmp_path / "demo") as folder, pytest.raises(FileNotFoundError):
        save_overview(folder, "A demo", [run])
