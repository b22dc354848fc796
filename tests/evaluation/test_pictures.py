"""Figures repeat as files, follow the colours of a page, do no harm in it, and their numbers can be pointed at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from mri_design import InputError
from mri_design.evaluation import plots
from mri_design.evaluation.page import ReportFigure, Section, saved_figure, write_report
from mri_design.evaluation.pictures import (
    COLOURS,
    MOST_POINTS,
    PALETTE,
    THEMED,
    inline,
    placed,
    png_bytes,
    pointed_curves,
    svg_text,
    tidy,
)
from mri_design.evaluation.run_folder import RunFolder

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="360pt" height="72pt" '


def drawn() -> Figure:
    return plots.calibration([1.0, 10.0], [2.0, 5.0], [3, 4], "mV")


def svg(content: str) -> str:
    return f'{HEAD}viewBox="0 0 360 72">{content}</svg>'


@pytest.mark.slow
def test_a_figure_drawn_twice_gives_the_same_text_and_pixels() -> None:
    assert png_bytes(drawn()) == png_bytes(drawn())
    assert svg_text(drawn()) == svg_text(drawn())


def test_the_files_of_a_placed_figure_are_what_each_would_be_alone() -> None:
    figure = plots.mask_barcodes({"a": np.eye(8, dtype=bool)[3]})
    with placed(figure):
        text, png = svg_text(figure), png_bytes(figure)
    assert png == png_bytes(plots.mask_barcodes({"a": np.eye(8, dtype=bool)[3]}))
    assert text.count("<path") == svg_text(figure).count("<path")
    assert figure.get_layout_engine() is not None  # it may be written again, with other contents


def test_a_placed_figure_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count, execute = [0], ConstrainedLayoutEngine.execute

    def counted(engine: ConstrainedLayoutEngine, figure: Figure) -> None:
        count[0] += 1
        execute(engine, figure)

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", counted)
    figure = drawn()
    with placed(figure):
        svg_text(figure), png_bytes(figure)
    assert count == [1]


def test_a_users_settings_of_the_plotting_library_change_nothing() -> None:
    expected = svg_text(drawn())
    others = {"svg.fonttype": "none", "savefig.bbox": "tight", "savefig.transparent": True, "svg.hashsalt": "x"}
    with matplotlib.rc_context(others):
        assert svg_text(drawn()) == expected


def test_a_picture_scales_is_read_out_and_names_nothing_twice() -> None:
    text = svg_text(drawn())
    first, second = inline(text, "a-", 'of "x" & <y>'), inline(text, "b-", "two")
    assert 'aria-label="of &quot;x&quot; &amp; &lt;y&gt;"' in first and 'role="img"' in first
    assert "xmlns" not in first and "<style" not in first and "<!--" not in first
    names = [re.findall(r' id="([^"]*)"', part) for part in (first, second)]
    assert names[0] and not set(names[0]) & set(names[1])
    for part, prefix in ((first, "a-"), (second, "b-")):
        used = re.findall(r'(?:href="#|url\(#)([^")]*)', part)
        assert used and all(name.startswith(prefix) for name in used)
        assert set(used) == set(re.findall(r' id="([^"]*)"', part))


def test_images_stay_pixels() -> None:
    text = svg_text(plots.std_map(np.arange(16.0).reshape(4, 4), np.ones((4, 4))))
    assert 'href="data:image/png;base64,' in inline(text, "", "x")
    assert "pixelated" in text  # enlarged without being blurred


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        '<g onload="alert(1)"/>',
        '<a href="https://x.org"/>',
        '<image xlink:href="https://x.org/a.png"/>',
        '<use xlink:href="other.svg#a"/>',
        '<image href="data:image/svg+xml;base64,AA"/>',
        "<foreignObject/>",
        "<text>x</text>",
        '<g style="position: fixed"/>',
        '<g style="fill: url(https://x.org)"/>',
        '<g class="warning"/>',
    ],
)
def test_what_is_more_than_a_picture_is_refused(content: str) -> None:
    with pytest.raises(InputError, match="SVG"):
        inline(svg(content), "", "x")


@pytest.mark.parametrize(
    "text", ["", "no markup", "<html/>", '<!DOCTYPE svg [<!ENTITY a "b">]>' + svg("&a;"), svg("<g>")]
)
def test_what_is_no_svg_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="figure"):
        tidy(text)


def test_style_sheets_and_notes_of_the_library_are_left_out() -> None:
    kept = tidy(svg("<metadata>x</metadata><defs><style>* { color: red }</style></defs><g id='a'>text</g>"))
    assert "style" not in kept and "text" not in kept and "metadata" not in kept and "id=" not in kept
    assert 'stroke-linejoin="round"' in kept  # what the library's style sheet said


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
    write_report(tmp_path / "report.html", "t", None, [Section("s", [figure, ReportFigure(figure.picture, "b")])])
    page = (tmp_path / "report.html").read_text()
    assert page.count('<figure class="pointed">') == 1 and figure.curves in page


PAPER = COLOURS["paper"]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("role", ["ink", "faint", "alert", "link"])
def test_text_has_the_contrast_that_wcag_asks_for(role: str) -> None:
    colour = COLOURS[role]
    for paper in ("paper", "band"):
        assert contrast(colour.light, COLOURS[paper].light) >= 4.5
        assert contrast(colour.dark, COLOURS[paper].dark) >= 4.5


def test_curves_stand_out_on_both_papers() -> None:
    assert PALETTE[-1] in THEMED  # black follows the page
    for colour in PALETTE[:-1]:
        assert contrast(colour, PAPER.light) >= 3 and contrast(colour, PAPER.dark) >= 3


def test_no_two_roles_share_a_light_colour() -> None:
    assert len(THEMED) == len(COLOURS) + 1
