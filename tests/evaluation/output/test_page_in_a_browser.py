"""The report as a browser lays it out: nothing is cut off on a phone. Needs a Chromium on the machine."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import plots
from mri_design.evaluation.output.page import (
    Links,
    Paragraph,
    ReportFigure,
    ReportTable,
    Section,
    SideBySide,
    write_report,
)

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

FRAME = """<iframe src="report.html" style="width: WIDTHpx; height: 2000px; border: 0"></iframe><script>
document.querySelector("iframe").onload = event => {
  const page = event.target.contentDocument, root = page.documentElement, out = [];
  const scrolls = e => e !== page.body && (/auto|scroll/.test(page.defaultView.getComputedStyle(e).overflowX) ||
    (e.parentElement && scrolls(e.parentElement)));
  for (const e of page.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > root.clientWidth + 1 && !scrolls(e)) out.push(e.tagName + " is cut off");
    if (e.tagName === "FIGCAPTION" && scrolls(e)) out.push("a caption scrolls");
  }
  const wide = [...page.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth + 1).length;
  const letters = [...page.querySelectorAll("svg")].map(e => e.getBoundingClientRect().width / e.viewBox.baseVal.width);
  document.title = JSON.stringify({out, wide, page: root.scrollWidth, smallest: Math.min(...letters)});
};
</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    rows = [{f"a_rather_long_name_{n}": 1.5 * n for n in range(12)} | {"strategy": "vd-polynomial@tuned " * 4}]
    mask = ReportFigure(plots.mask_barcodes({"mask": np.arange(16) % 3 == 0}), "A caption. " * 20)
    blocks = [Paragraph("word" * 60), ReportTable(rows, "A caption. " * 20), mask, SideBySide([mask, mask])]
    sections = [Section("One " * 12, blocks), Section("Two", [Links({f"{'long' * 30}.csv": "what " * 30})])]
    write_report(folder / "report.html", "A title " * 9, {"a label": "a value " * 12, "b": "x" * 90}, sections)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; the structure is tested without one")
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off(report: Path, width: int) -> None:
    (report / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--window-size=1300,2000"]
    flags += [f"--user-data-dir={report / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    command = [str(BROWSER), *flags, (report / "frame.html").as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", ended.stdout)
    assert title, ended.stdout[-500:]
    seen = json.loads(unescape(title[1]))
    assert seen["out"] == [] and seen["page"] <= width
    assert seen["wide"] == 1  # the table is wider than either page, and scrolls by itself
    assert seen["smallest"] * 8 >= 7.5  # CSS pixels of letters of 8 points
