"""Pictures inside a page: the same for the same figure, apart from each other, and nothing but shapes."""

import re

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from mri_design import InputError
from mri_design.evaluation import plots
from mri_design.evaluation.pictures import inline, placed, png_bytes, svg_text, tidy

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="360pt" height="72pt" '


def drawn() -> Figure:
    return plots.calibration([1.0, 10.0], [2.0, 5.0], [3, 4])


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
    text = svg_text(plots.std_map(np.arange(16.0).reshape(4, 4)))
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
