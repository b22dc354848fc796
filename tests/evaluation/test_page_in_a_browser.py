"""The report in a browser: tables sort, steps and the values of curves are shown. Needs a Chromium."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design.evaluation import plots
from tests.evaluation.pages import write_parts
from tests.numbers_in_text import numbers_in

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

USED = """<iframe src="report.html" style="width: WIDTHpx; height: 2000px; border: 0"></iframe><script>
document.querySelector("iframe").onload = event => {
  const page = event.target.contentDocument, find = all => page.querySelector(all), seen = {};
  const column = () => [...page.querySelectorAll(".wide tbody tr")].map(row => row.cells[0].textContent);
  const says = () => find(".says").textContent, reads = () => find(".explorer .reads").textContent;
  seen.hidden = find("figure.explorer").hidden;
  seen.table = [column()];
  for (const _ of [1, 2]) { find(".wide th button").click(); seen.table.push(column()); }
  seen.sort = find(".wide th").getAttribute("aria-sort");
  seen.end = says();
  const slider = find("input[type=range]");
  slider.value = "1";
  slider.dispatchEvent(new event.target.contentWindow.Event("input"));
  seen.moved = says();
  find("button[data-by='1']").click();
  seen.next = says();
  seen.spoken = slider.getAttribute("aria-valuetext");
  seen.bars = ["measured", "newest", "open"].map(kind => page.querySelectorAll("rect." + kind).length);
  const key = new event.target.contentWindow.KeyboardEvent("keydown", {key: "ArrowLeft", cancelable: true});
  find(".explorer svg").dispatchEvent(key);
  seen.key = reads();
  const box = find(".explorer svg").getBoundingClientRect();
  const at = {clientX: box.left + box.width * 5.5 / 8, clientY: box.top + 5};
  find(".explorer svg").dispatchEvent(new event.target.contentWindow.PointerEvent("pointermove", at));
  seen.pointed = reads();
  const plot = find("figure.pointed svg"), curve = () => find("figure.pointed .reads").textContent;
  seen.curves = [curve()];
  const area = plot.getBoundingClientRect();
  const over = {clientX: area.left + area.width * 0.52, clientY: area.top + area.height * 0.5};
  plot.dispatchEvent(new event.target.contentWindow.PointerEvent("pointermove", over));
  seen.curves.push(curve());
  plot.dispatchEvent(new event.target.contentWindow.KeyboardEvent("keydown", {key: "ArrowRight", cancelable: true}));
  seen.curves.push(curve());
  plot.dispatchEvent(new event.target.contentWindow.PointerEvent("pointerleave", {}));
  seen.curves.push(curve());
  const boxes = [...page.querySelectorAll(".pictures div")];
  seen.pictures = boxes.map(e => !e.hidden && e.querySelector("img").src.slice(0, 14));
  seen.told = find(".pictures p").textContent;
  document.title = JSON.stringify(seen);
};
</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    png = plots.pixels_png(np.eye(8), 1.0, "ky-rows")
    scores = [np.where(np.arange(8) == 4, np.nan, np.arange(8.0)), None]
    steps = [{"line": 6, "scores": scores[0]}, {"line": 2, "scores": scores[1]}]
    images = [{"count": 2, "mean": png, "deviation": png, "difference": b"", "error": "25 % found"}]
    content = {"lines": 8, "start": (4,), "unit": "score", "steps": steps, "images": images}
    course = Figure(figsize=(4, 3))
    axes = course.add_axes((0.1, 0.2, 0.8, 0.7), xlim=(1, 100), xscale="log", xlabel="lines")
    axes.plot([1, 10, 100], [0.5, 0.25, -0.125], label="found")
    axes.plot([1, 100], [0.4, 0.2], label="predicted")
    rows = [{"number": number, "strategy": "low-pass"} for number in (9, 100, -20)]
    facts = {"text": "A title", "drawing": course, "rows": rows, "first": [], "summary": {}}
    write_parts(folder / "report.html", sliders={"steps": content}, **facts)
    return folder


def in_browser(report: Path, frame: str, width: int) -> tuple[dict[str, Any], str]:
    """What the frame's script leaves as title, and what the console says."""
    (report / "frame.html").write_text(frame.replace("WIDTH", str(width)), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--window-size=1300,2000"]
    flags += [f"--user-data-dir={report / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    flags += ["--enable-logging=stderr"]
    command = [str(BROWSER), *flags, (report / "frame.html").as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", ended.stdout)
    assert title, ended.stdout[-500:]
    console = [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(unescape(title[1])), "\n".join(console)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; the structure is tested without one")
def test_tables_sort_and_steps_are_shown(report: Path) -> None:
    seen, console = in_browser(report, USED, 1280)
    assert not console and not seen["hidden"]
    assert seen["table"] == [["9", "100", "-20"], ["-20", "9", "100"], ["100", "9", "-20"]]
    assert seen["sort"] == "descending"
    assert seen["end"] == seen["next"] == seen["spoken"] and seen["bars"] == [2, 1, 5]
    texts = [numbers_in(seen[name]) for name in ("end", "moved", "key", "pointed")]
    assert texts == [[3, 8, -2], [2, 8, 2], [-1, 3], [1, 5]]
    assert [numbers_in(text) for text in seen["curves"]] == [[], [10, 0.25], [100, -0.125, 0.2], []]
    assert seen["pictures"] == ["data:image/png", "data:image/png", False]
    assert numbers_in(seen["told"]) == [2, 25]
