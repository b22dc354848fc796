"""The numbers behind a figure's curves lie where the axes are, and stand safely in a page."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design.evaluation import plots
from mri_design.evaluation.page import ReportFigure, Section, saved_figure, write_report
from mri_design.evaluation.pictures import MOST_POINTS, pointed_curves
from mri_design.evaluation.run_folder import RunFolder


def figure_of(*names: str, points: int = 5) -> Figure:
    figure = Figure(figsize=(4, 3))
    axes = figure.add_axes((0.1, 0.2, 0.5, 0.4))
    for number, name in enumerate(names, 1):
        axes.plot(np.arange(points), number * np.arange(points) ** 2, label=name)
    axes.set_xlabel("lines")
    axes.set_ylabel("error")
    axes.axhline(3)
    axes.set_xlim(0, 10)
    return figure


def test_places_and_values_are_those_of_the_figure() -> None:
    (panel,) = json.loads(pointed_curves(figure_of("a", "b")))
    assert panel["box"] == pytest.approx([0.1, 0.4, 0.6, 0.8]) and panel["x"] == [0, 10] and panel["what"] == "lines"
    assert not panel["log"]
    assert panel["curves"] == [
        {"name": "a", "x": [0, 1, 2, 3, 4], "y": [0, 1, 4, 9, 16]},
        {"name": "b", "x": [0, 1, 2, 3, 4], "y": [0, 2, 8, 18, 32]},
    ]


def test_a_curve_without_a_name_has_that_of_its_axis_and_beside_named_ones_none() -> None:
    (panel,) = json.loads(pointed_curves(figure_of("_")))
    assert [curve["name"] for curve in panel["curves"]] == ["error"]
    (panel,) = json.loads(pointed_curves(figure_of("_", "b")))
    assert [curve["name"] for curve in panel["curves"]] == ["b"]


def test_pictures_and_crowds_have_none() -> None:
    assert pointed_curves(object()) == ""
    assert pointed_curves(plots.mask_barcodes({"mask": np.arange(16) % 3 == 0})) == ""
    assert pointed_curves(figure_of("a", points=MOST_POINTS + 1)) == ""


def test_a_saved_figure_brings_them_to_the_page_and_names_are_harmless(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        figure = saved_figure(folder, "course", lambda: figure_of("</script><b>", "two"), "A caption.")
    assert "</script>" not in figure.curves and json.loads(figure.curves)[0]["curves"][0]["name"] == "</script><b>"
    write_report(tmp_path / "report.html", "t", {"a": 1}, [Section("s", [figure, ReportFigure(figure.picture, "b")])])
    page = (tmp_path / "report.html").read_text()
    assert page.count('<figure class="pointed">') == 1 and figure.curves in page
