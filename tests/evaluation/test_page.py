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

from mri_design import InputError
from mri_design.evaluation import page, plots
from mri_design.evaluation.plots.pictures import Frame
from mri_design.evaluation.plots.style import panels
from tests.evaluation.pages import write_parts

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


PNG = plots.pixels_png(np.eye(4), 1.0, "ky-rows")
SCORES = np.where(np.arange(8) == np.arange(3)[:, None], np.nan, np.arange(8) / 7)


def steps(text: str) -> dict[str, object]:
    images = [{"count": 2, "mean": PNG, "deviation": PNG, "difference": b"", "error": text}]
    chosen = [{"line": line, "scores": scores} for line, scores in enumerate(SCORES)]
    return {"lines": 8, "start": (4, 5), "unit": text, "steps": chosen, "images": images}


def written(folder: Path, text: str, **more: object) -> Page:
    """A page with everything that a page may hold, ``text`` wherever a name may stand."""
    figure, (axes,) = panels(2, width=5)
    axes.plot([1, 2], color="#0072B2", label=text)
    manifest = dict(
        command=[text], seed=7, inputs=[], settings={text: text}, wall_seconds=0.0, status=text, lines=[], versions={}
    )
    shown = np.ones((4, 4))
    facts = {
        "text": text,
        "drawing": figure,
        "first": [
            plots.pixels(Frame(), shown, 1.0),
            plots.pixels(Frame(pixel=(20.0, 10.0)), np.ones((4, 8)), 1.0, text),
            plots.pixels(Frame(), np.ones((400, 4)), 1.0),
        ],
        "rows": [
            {"scan": text, "a_psnr": 31.25, "none": None, "ratio": 1.376},
            {"scan": text * 9, "a_psnr": 3, "ratio": 0.965},
        ],
        "summary": {"lines": 12345.6, f"error {text}": 0.0386832, "converged": True, "text": text, "none": ""},
        "sliders": {
            "steps": steps(text),
            "slices": {"slices": [{"number": 1, "text": text, "image": PNG, "deviation": b""}], "count": 1},
        },
    }
    frame = {"warnings": [text], "manifest": manifest, "command": text, "files": {"lines.csv": text}}
    write_parts(folder / "report.html", **(facts | frame | more))
    return Page((folder / "report.html").read_text("utf-8"))


def test_a_page_shows_the_numbers_of_its_tables_and_folds_all_but_the_first_screen(tmp_path: Path) -> None:
    page = written(tmp_path, "look here")
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page.source)
    assert {"12346", "0.0387", "yes", "31.2", "3.0", "1.376", "0.965"} <= set(cells)
    columns = [kind.get("class") for kind in page.named("th") if kind.get("scope") == "col"]
    assert columns == ["long", "number", "number"]
    assert '"seed": 7' in page.text
    parts = [part["id"] for part in page.named("details")]
    assert parts == ["reading", "masks-look-here", "what", "how-it-was-computed", "files", "manifest"]
    assert not any("open" in part for part in page.named("details"))
    assert all(any(tag == "details" for tag, _ in inside) for inside in page.around("table"))
    rows = {tuple(inside[-3:-1]) for inside in page.around("img") if ("div", "pixels") in inside}
    assert len(rows) == 1 and ("div", "row") in next(iter(rows))  # pictures in one row
    assert all(picture.get("alt") is not None for picture in page.named("img"))
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.named("svg"))


def test_a_page_fetches_nothing_and_runs_its_own_script_alone(tmp_path: Path) -> None:
    page = written(tmp_path, HOSTILE)
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "text"}
        for name in ("src", "href", "xlink:href", "srcset", "action", "background"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,", "lines.csv"))
    assert not re.search(r"https?://", page.source.replace(HOSTILE, ""))
    assert "url(" not in re.sub(r"url\(#\w", "", page.source) and "@import" not in page.source
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    (script,) = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = page.named("meta")[-1]["content"]
    assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    for far in ("fetch(", "XMLHttpRequest", "import(", "eval(", "innerHTML", "http"):
        assert far not in script


def test_markup_in_a_name_is_shown_not_obeyed(tmp_path: Path) -> None:
    page, source = written(tmp_path, HOSTILE), (tmp_path / "report.html").read_bytes()
    harmless = written(tmp_path, "plain text, as long as the other one is, which makes the same page")
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for _, attributes in page.tags] == [sorted(a) for _, a in harmless.tags]
    assert page.text.count(HOSTILE) > 15
    written(tmp_path, HOSTILE)
    assert (tmp_path / "report.html").read_bytes() == source  # the same input gives the same bytes
    with pytest.raises(InputError):
        written(tmp_path, "new", rows=[])
    assert (tmp_path / "report.html").read_bytes() == source


@pytest.mark.parametrize(("width", "length"), [(240.0, 50), (20.0, 5), (3000.0, 500), (2.0, None)])
def test_a_scale_bar_is_a_round_length_that_fits(width: float, length: int | None) -> None:
    bar = Frame(pixel=(1.0, width / 10)).scale_bar(10)
    assert bar == (None if length is None else (length, pytest.approx(length / width)))


def test_sliders_hold_steps_scores_and_images_and_nothing_leaves_their_element() -> None:
    as_json = page._templates().filters["json"]
    content = json.loads(as_json(steps("12 %")))
    assert content["lines"] == 8 and content["start"] == [4, 5]
    assert content["steps"][1] == {"line": 1, "scores": [0, None, 0.286, 0.429, 0.571, 0.714, 0.857, 1.0]}
    assert content["images"][0]["difference"] == ""
    assert b64decode(content["images"][0]["mean"].removeprefix("data:image/png;base64,")) == PNG
    for text in ("</script><script>alert(1)</script>", "<!--", "a & b"):
        assert not set("<>&") & set(as_json({"unit": text})) and json.loads(as_json({"unit": text}))["unit"] == text


def test_pictures_of_pixels_keep_their_values() -> None:
    pixels = np.linspace(0, 2, 12).reshape(3, 4)
    grey = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-rows")))
    np.testing.assert_allclose(grey * 2, pixels, atol=0.005)
    turned = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-columns")))
    np.testing.assert_allclose(turned, grey.T)
    assert plots.pixels_png(pixels, 2.0, "ky-rows", error=True) == plots.pixels_png(pixels, 2.0, "ky-rows", error=True)
    assert matplotlib.image.imread(io.BytesIO(plots.pixels_png(np.zeros((4, 4)), 0.0, "ky-rows"))).max() == 0
