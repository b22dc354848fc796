"""The report: one file, no network, nothing from a scan obeyed as markup."""

import base64
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from mri_design.errors import InputError
from mri_design.evaluation.picture import png_bytes
from mri_design.evaluation.report import Paragraph, ReportFigure, ReportTable, Section, write_report

HOSTILE = "<script>alert(1)</script>\"' onload=x {{ 7*7 }} {% raw %} &amp;"


class Page(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def figure() -> Figure:
    drawn = Figure(figsize=(1, 1))
    drawn.subplots().plot([1, 2])
    return drawn


def write(path, title, figure, text):
    write_report(
        path,
        title,
        {"lines": 32, f"relative error (%) {text}": 5.25, "converged": True},
        [
            Section(
                f"Masks {text}",
                [
                    Paragraph(text),
                    ReportTable([{"scan": text, "psnr": 31.25}], caption=text, formats={"psnr": ".1f"}),
                    ReportFigure(figure, text),
                ],
            )
        ],
        warnings=[text],
        manifest={"name": text, "seed": 7},
    )
    return path.read_text("utf-8")


def test_everything_is_shown(tmp_path, figure):
    source = write(tmp_path / "report.html", "Brain", figure, "look here")
    page = Page(source)
    assert page.named("h1") and page.named("details") and len(page.named("table")) == 2
    for shown in ("Brain", "look here", "32", "5.25", "yes", "31.2", '"seed": 7', "Attention:"):
        assert shown in page.text
    assert [column.get("class") for column in page.named("th") if column.get("scope") == "col"] == [
        None,
        "number",
    ]


def test_figures_are_embedded_and_nothing_is_fetched(tmp_path, figure):
    source = write(tmp_path / "report.html", "Brain", figure, "look here")
    page = Page(source)
    images = page.named("img")
    assert [base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) for image in images] == [
        png_bytes(figure)
    ]
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base", "a"}
        for name in ("src", "href", "srcset", "action", "background"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "http://" not in source and "https://" not in source
    assert "url(" not in source and "@import" not in source
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_markup_in_a_name_is_shown_not_obeyed(tmp_path, figure):
    source = write(tmp_path / "report.html", HOSTILE, figure, HOSTILE)
    page = Page(source)
    harmless = Page(write(tmp_path / "plain.html", "plain", figure, "plain"))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for _, attributes in page.tags] == [sorted(a) for _, a in harmless.tags]
    assert page.named("img")[0]["alt"] == HOSTILE
    # title, heading, warning, label, section, paragraph, cell and two captions
    assert page.text.count(HOSTILE) == 9
    assert "<script" not in source


def test_the_same_input_gives_the_same_bytes(tmp_path, figure):
    first = write(tmp_path / "a.html", "Brain", figure, "text")
    assert write(tmp_path / "b.html", "Brain", figure, "text") == first


def test_a_report_may_be_bare(tmp_path):
    write_report(tmp_path / "r.html", "Nothing yet", {}, [])
    page = Page((tmp_path / "r.html").read_text())
    assert not page.named("table") and not page.named("details") and "Attention" not in page.text


def test_bytes_that_are_no_png_are_refused():
    with pytest.raises(InputError, match="PNG"):
        ReportFigure(b"<svg onload=alert(1)>", "caption")


def test_a_failed_report_leaves_the_old_one(tmp_path):
    write_report(tmp_path / "r.html", "old", {}, [])
    before = (tmp_path / "r.html").read_bytes()
    with pytest.raises(InputError, match="no rows"):
        write_report(tmp_path / "r.html", "new", {}, [Section("empty", [ReportTable([])])])
    assert (tmp_path / "r.html").read_bytes() == before
