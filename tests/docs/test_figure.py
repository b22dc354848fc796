"""The README's figure is drawn by the script that is said to draw it."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.docs.pages import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "figures" / "designed_against_tuned.py"


@pytest.mark.slow
def test_the_script_draws_a_small_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--matrix", "40", "--out", str(drawn)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert drawn.read_bytes().startswith(b"\x89PNG")
    designed, tuned, power = (line.split() for line in capsys.readouterr().out.splitlines()[-3:])
    assert (len(designed), len(tuned), len(power)) == (2, 6, 2)


def test_the_kept_picture_is_small_and_shown() -> None:
    assert SCRIPT.with_name("designed-against-tuned.png").stat().st_size < 120_000
    assert "](docs/figures/designed-against-tuned.png)" in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_every_how_to_page_has_a_picture_that_a_script_makes() -> None:
    contents = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"- ([\w-]+)\.md", contents.partition("How to:")[2].partition("Choose:")[0])
    made = set(re.findall(r'"([\w-]+)": Picture', SCRIPT.with_name("how_to.py").read_text(encoding="utf-8")))
    assert len(pages) >= 9
    for page in pages:
        text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
        shown = set(re.findall(r"!\[[^]]+\]\(figures/([\w-]+)\.png\)", text))
        assert shown, page
        assert shown <= made | {"export", "mask"}, page
