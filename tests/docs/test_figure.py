"""The README's figure is drawn by the script that is said to draw it."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mri_design.evaluation.tables import write_csv
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


def test_thumbnails_are_drawn_from_the_folders_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.arange(64.0).reshape(8, 8)
    np.save(tmp_path / "recon.npy", image.astype(np.complex64))
    np.save(tmp_path / "std.npy", image)
    np.save(tmp_path / "mask.npy", np.arange(8) % 2 == 0)
    write_csv(tmp_path / "summary.csv", [{"strategy": name, "relative_l2": 0.1} for name in ("calibrated", "low-pass")])
    monkeypatch.setattr(sys, "argv", ["thumbnails.py", *[str(tmp_path)] * 3, "--out", str(tmp_path)])
    runpy.run_path(str(SCRIPT.with_name("thumbnails.py")), run_name="__main__")
    for verb in ("design", "recon", "compare"):
        assert (tmp_path / f"thumb-{verb}.png").read_bytes().startswith(b"\x89PNG")
        kept = SCRIPT.with_name(f"thumb-{verb}.png")
        with Image.open(kept) as drawn:
            assert drawn.size == (240, 120)
        assert kept.stat().st_size < 30_000


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
