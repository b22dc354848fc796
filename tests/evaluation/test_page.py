"""A page tells a run without any other file, and nothing in it runs that should not."""

from __future__ import annotations

import io
import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design import InputError
from mri_design.evaluation import plots
from mri_design.evaluation.first_screen import FirstPicture, FirstScreen, ScaleBar
from mri_design.evaluation.page import (
    MOST_NUMBERS,
    ExploredImage,
    ExploredStep,
    KeyNumbers,
    Links,
    Paragraph,
    ReportFigure,
    ReportTable,
    Section,
    SideBySide,
    StepExplorer,
    files_section,
    write_report,
)
from mri_design.evaluation.pictures import COLOURS

HOSTILE = "<script>alert(1)</script>\"' onload=x {{ 7*7 }} {% raw %} &amp;"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Every tag with its attributes and what it stands in, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[list[tuple[str, str | None]]] = []
        self.open: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside.append(list(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag, f"{tag} ends what it did not begin"

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def around(self, tag: str) -> list[list[tuple[str, str | None]]]:
        """What every such tag stands in, as (tag, class)."""
        return [inside for (name, _), inside in zip(self.tags, self.inside, strict=True) if name == tag]


@pytest.fixture
def figure() -> Figure:
    drawn = Figure(figsize=(1, 1))
    drawn.subplots().plot([1, 2])
    return drawn


def write(path, title, figure, text):
    write_report(
        path,
        title,
        FirstScreen(f"verdict {text}", (), (text,), {text: text}, (text,), text),
        [
            Section(
                f"Masks {text}",
                [
                    KeyNumbers({"lines": 32, f"relative error (%) {text}": 5.25, "converged": True}),
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


def page_of(path, *blocks, titles=("One",)):
    write_report(path / "r.html", "Brain", None, [Section(title, blocks) for title in titles])
    return Page((path / "r.html").read_text("utf-8"))


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
    assert len(page.named("svg")) == 1 and page.named("path")
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "a", "img", "text"}
        for name in ("src", "href", "srcset", "action", "background"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert "http://" not in source and "https://" not in source
    assert "url(" not in re.sub(r"url\(#\w", "", source) and "@import" not in source
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_only_script_that_may_run_is_the_pages_own(tmp_path, figure):
    source = write(tmp_path / "report.html", HOSTILE, figure, HOSTILE)
    scripts = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    assert len(scripts) == 1 and len(Page(source).named("script")) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    policy = Page(source).named("meta")[-1]["content"]
    assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    for far in ("fetch(", "XMLHttpRequest", "import(", "eval(", "innerHTML", "http"):
        assert far not in scripts[0]


def test_markup_in_a_name_is_shown_not_obeyed(tmp_path, figure):
    source = write(tmp_path / "report.html", HOSTILE, figure, HOSTILE)
    page = Page(source)
    harmless = Page(write(tmp_path / "plain.html", "plain", figure, "plain text, as long as the other one is"))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for _, attributes in page.tags] == [sorted(a) for _, a in harmless.tags]
    assert page.named("svg")[0]["aria-label"] == HOSTILE
    # title, heading, warning, verdict, name, meaning, fact, command, reading, label, section, paragraph, cell, captions
    assert page.text.count(HOSTILE) == 15
    assert source.count("<script") == 1


def test_the_same_input_gives_the_same_bytes(tmp_path, figure):
    first = write(tmp_path / "a.html", "Brain", figure, "text")
    assert write(tmp_path / "b.html", "Brain", figure, "text") == first


def test_a_report_may_be_bare(tmp_path):
    write_report(tmp_path / "r.html", "Nothing yet", None, [])
    page = Page((tmp_path / "r.html").read_text())
    assert not page.named("table") and not page.named("details") and "Attention" not in page.text


def test_a_failed_report_leaves_the_old_one(tmp_path):
    write_report(tmp_path / "r.html", "old", None, [])
    before = (tmp_path / "r.html").read_bytes()
    with pytest.raises(InputError, match="no rows"):
        write_report(tmp_path / "r.html", "new", None, [Section("empty", [ReportTable([])])])
    assert (tmp_path / "r.html").read_bytes() == before


class TestOnAPhone:
    def test_tables_and_pictures_scroll_by_themselves_and_captions_do_not(self, tmp_path, figure):
        table = ReportTable([{f"column {n}": 1.5 for n in range(30)}], "A long caption.")
        page = page_of(tmp_path, table, ReportFigure(figure, "Another."), SideBySide([ReportFigure(figure, "Third.")]))
        scrolling = {"wide", "plot"}
        for tag in ("table", "svg"):
            assert all(inside[-1][1] in scrolling for inside in page.around(tag)), tag
        captions = page.around("figcaption")
        assert len(captions) == 3 and not page.named("caption")
        assert not any(kind in scrolling for inside in captions for _, kind in inside)
        assert all(inside[-1][0] == "figure" for inside in captions)
        assert re.search(r"\.wide, \.plot \{ overflow-x: auto; \}", page.source)

    def test_the_page_is_as_wide_as_the_screen(self, tmp_path, figure):
        page = page_of(tmp_path, ReportFigure(figure, "A caption."))
        viewport = next(meta for meta in page.named("meta") if meta.get("name") == "viewport")
        assert viewport["content"] == "width=device-width, initial-scale=1"
        assert not re.findall(r"(?<![-\w])width: *\d+(?:px|rem|em)", page.source)
        assert "width" not in page.named("svg")[0]  # a view box alone, so that it follows the page

    def test_pictures_do_not_shrink_until_they_cannot_be_read(self, tmp_path):
        page = page_of(tmp_path, ReportFigure(Figure(figsize=(5, 2)), "Five inches, 480 pixels."))
        assert page.named("svg")[0]["style"] == "min-width: 346px; max-width: 672px"


class TestInTheDark:
    def test_pictures_take_the_colours_of_the_page(self, tmp_path):
        drawn = Figure(figsize=(2, 2))
        drawn.subplots().plot([1, 2], color="#0072B2")
        source = page_of(tmp_path, ReportFigure(drawn, "A caption.")).source
        body = source[source.index("<body") :]
        assert "var(--ink)" in body and "var(--paper)" in body  # axes, and what lies behind them
        assert "#000000" not in body and "#ffffff" not in body
        assert "#0072b2" in body

    def test_nothing_lies_behind_a_picture(self, tmp_path):
        source = page_of(tmp_path, ReportFigure(Figure(figsize=(2, 2), facecolor="white"), "A caption.")).source
        assert "var(--paper)" not in source[source.index("<body") :]

    def test_every_colour_has_a_light_and_a_dark_form_and_paper_is_light(self, tmp_path):
        light, dark = re.findall(r":root \{ (.*?)\}", page_of(tmp_path, Paragraph("x")).source)
        for role, colour in COLOURS.items():
            assert f"--{role}: {colour.light};" in light and f"--{role}: {colour.dark};" in dark
        source = page_of(tmp_path, Paragraph("x")).source
        assert "@media screen and (prefers-color-scheme: dark)" in source  # print is not screen


PNG = plots.pixels_png(np.eye(4), 1.0, "ky-rows")
PICTURES = [
    FirstPicture("Mask", PNG, (4, 4), "Lines."),
    FirstPicture("Image", PNG, (4, 8), "Grey.", proportion=2.0, bar=ScaleBar(50, 0.25), ramp=PNG, top="812"),
    FirstPicture("Error bars", PNG, (400, 4), "Doubt.", ramp=PNG, top="8 %"),
]


class TestTheFirstScreen:
    @pytest.fixture
    def page(self, tmp_path: Path) -> Page:
        first = FirstScreen("32 of 128 lines.", PICTURES, ("1 coil",), {"map": "likely"}, ("So.",), "mri-design x")
        table = ReportTable([{"a": 1}])
        write_report(tmp_path / "r.html", "T", first, [Section("Files", [table])], manifest={"seed": 1})
        return Page((tmp_path / "r.html").read_text("utf-8"))

    def test_the_verdict_comes_first_then_the_pictures_in_one_row_then_facts(self, page: Page) -> None:
        order = ["32 of 128 lines.", "Mask", "Image", "Error bars", "likely", "1 coil", "mri-design x"]
        order += ["How to read", "Files"]
        text = page.text[page.text.index("T", page.text.index("}")) :]
        assert sorted(order, key=text.index) == order
        rows = {tuple(inside[-3:-1]) for inside in page.around("img") if ("div", "pixels") in inside}
        assert len(rows) == 1 and ("div", "row") in next(iter(rows))

    def test_nothing_of_it_is_behind_a_click_and_everything_else_is(self, page: Page) -> None:
        folded = [any(tag == "details" for tag, _ in inside) for inside in page.around("img")]
        assert len(folded) == 5 and not any(folded)
        assert all(any(tag == "details" for tag, _ in inside) for inside in page.around("table"))
        assert [part["id"] for part in page.named("details")] == ["reading", "files", "manifest"]
        assert not any("open" in part for part in page.named("details"))

    def test_pictures_have_the_proportions_of_the_object_and_are_read_out(self, page: Page) -> None:
        shown = [part["style"] for part in page.named("div") if part.get("class") == "pixels"]
        assert [re.search(r"aspect-ratio: ([\d.]+)", style or "")[1] for style in shown] == [
            "1.0000",
            "1.0000",
            "0.0100",
        ]
        assert shown[2] is not None and shown[2].startswith("width: min(100%, 0.20rem)")  # no higher than the screen
        assert ["pixelated" in (style or "") for style in shown] == [True, True, False]
        alts = [img["alt"] for img in page.named("img")]
        assert alts == ["Mask. Lines.", "Image. Grey.", "", "Error bars. Doubt.", ""]
        assert '<span class="bar" style="width: 25.00%">50 mm</span>' in page.source

    @pytest.mark.parametrize(("width", "length"), [(240.0, 50), (20.0, 5), (3000.0, 500), (2.0, None)])
    def test_a_scale_bar_is_a_round_length_that_fits(self, width: float, length: int | None) -> None:
        bar = ScaleBar.across(width)
        assert (bar and bar.millimetres) == length
        assert bar is None or bar.share == length / width


class TestLinks:
    def test_every_part_has_an_address(self, tmp_path):
        page = page_of(tmp_path, Paragraph("x"), titles=("What was learned?", "Σ", "What was learned!", "Reading"))
        assert [part["id"] for part in page.named("details")] == [
            "what-was-learned",
            "part",
            "what-was-learned-3",
            "reading-4",
        ]
        assert not page.named("a")

    def test_files_are_linked_by_relative_address(self, tmp_path):
        page = page_of(tmp_path, Links({"lines.csv": "the <lines>", "a/report.html": ""}))
        assert [link["href"] for link in page.named("a")] == ["lines.csv", "a/report.html"]
        assert "lines.csv: the <lines>" in page.text

    @pytest.mark.parametrize(
        "address", ["https://x.org", "javascript:alert(1)", "//x", "/etc/passwd", "a b", "#x", "", "a//b"]
    )
    def test_other_addresses_are_refused(self, address):
        with pytest.raises(InputError, match="link"):
            Links({address: "x"})


class TestTables:
    def test_a_column_has_one_precision_and_numbers_lie_right(self, tmp_path):
        rows = [{"name": "a", "ratio": 1.376, "n": 3}, {"name": "b", "ratio": 0.96512, "n": 12}]
        page = page_of(tmp_path, ReportTable(rows))
        assert [cell.get("class") for cell in page.named("td")] == [None, "number", "number"] * 2
        assert ">1.376<" in page.source and ">0.965<" in page.source and ">3<" in page.source
        assert "td.number { text-align: right; }" in page.source

    def test_columns_without_a_value_are_left_out(self, tmp_path):
        page = page_of(tmp_path, ReportTable([{"a": 1, "b": None}, {"a": 2, "b": None}]))
        assert len(page.named("th")) == 1

    def test_long_text_wraps_and_names_show_spaces(self, tmp_path):
        page = page_of(tmp_path, ReportTable([{"median_line_ratio": 1.0, "why": "because " * 9}]))
        assert [cell.get("class") for cell in page.named("td")] == ["number", "long"]
        assert "median line ratio" in page.text

    def test_key_numbers_have_three_digits(self, tmp_path):
        numbers = {"a": 3.0625, "b": 0.0386832, "c": 12345.6, "d": 2363, "e": 0.007}
        page_of(tmp_path, KeyNumbers(numbers))
        cells = re.findall(r"<td>(.*?)</td>", (tmp_path / "r.html").read_text())
        assert cells == ["3.06", "0.0387", "12346", "2363", "0.007"]


def steps(count: int, lines: int) -> list[ExploredStep]:
    scores = np.arange(lines) / 7
    return [ExploredStep(n, np.where(np.arange(lines) == n, np.nan, scores)) for n in range(count)]


def test_all_steps_and_images_are_there() -> None:
    png = plots.pixels_png(np.eye(4), 1.0, "ky-rows")
    images = [ExploredImage(3, png, png, b"", "12 % found")]
    told = json.loads(StepExplorer(8, (4, 5), steps(3, 8), "score", images).json)
    assert told["lines"] == 8 and told["start"] == [4, 5]
    assert [step["line"] for step in told["steps"]] == [0, 1, 2]
    assert told["steps"][1]["scores"] == [0, None, 0.286, 0.429, 0.571, 0.714, 0.857, 1.0]
    assert told["images"][0]["error"] == "12 % found" and told["images"][0]["difference"] == ""
    assert b64decode(told["images"][0]["mean"].removeprefix("data:image/png;base64,")) == png


def test_what_stands_between_backticks_is_code_everywhere(tmp_path: Path) -> None:
    said = "Give `--with <b>`."
    picture = FirstPicture("a", plots.pixels_png(np.eye(4), 1.0, "ky-rows"), (4, 4), said)
    figure = ReportFigure(plots.mask_barcodes({"mask": np.arange(16) % 3 == 0}), said)
    blocks = [Paragraph(said), ReportTable([{"a": 1}], said), figure, KeyNumbers({"b": said}), Links({"a.csv": said})]
    first = FirstScreen(said, [picture], [said], {"name": said}, [said])
    write_report(tmp_path / "r.html", "title", first, [Section("One", blocks)], warnings=[said])
    page = re.sub(r"<script.*?</script>", "", (tmp_path / "r.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert page.count("Give <code>--with &lt;b&gt;</code>.") == 11 and "`" not in page


def test_rules_without_scores_have_none() -> None:
    told = json.loads(StepExplorer(8, (4,), [ExploredStep(1, None)], "score").json)
    assert told["steps"] == [{"line": 1, "scores": None}] and told["images"] == []


def test_long_designs_have_scores_at_some_steps() -> None:
    told = json.loads(StepExplorer(512, (0,), steps(400, 512), "score").json)
    held = [number for number, step in enumerate(told["steps"]) if step["scores"]]
    assert len(told["steps"]) == 400 and held == list(range(0, 400, 4))
    assert len(held) * 512 <= MOST_NUMBERS


@pytest.mark.parametrize("unit", ["</script><script>alert(1)</script>", "<!--", "a & b"])
def test_nothing_leaves_its_element(unit: str) -> None:
    text = StepExplorer(8, (4,), [], unit).json
    assert not set("<>&") & set(text)
    assert json.loads(text)["unit"] == unit


def test_pictures_of_pixels_keep_their_values() -> None:
    pixels = np.linspace(0, 2, 12).reshape(3, 4)
    for error in (False, True):
        png = plots.pixels_png(pixels, 2.0, "ky-rows", error=error)
        assert png == plots.pixels_png(pixels, 2.0, "ky-rows", error=error)
    grey = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-rows")))
    np.testing.assert_allclose(grey * 2, pixels, atol=0.005)
    turned = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-columns")))
    np.testing.assert_allclose(turned, grey.T)
    assert matplotlib.image.imread(io.BytesIO(plots.pixels_png(np.zeros((4, 4)), 0.0, "ky-rows"))).max() == 0


def test_the_files_that_are_there_are_linked_and_no_others(tmp_path: Path) -> None:
    for name in ("mask.npy", "lines.csv", "checkpoint.npz", "report.html", ".lock"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "recon.npy").mkdir()
    links = files_section(tmp_path).blocks[0]
    assert isinstance(links, Links)
    assert list(links.targets) == ["mask.npy", "lines.csv"]
    assert all(links.targets.values())
