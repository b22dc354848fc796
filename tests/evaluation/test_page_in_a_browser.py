"""The report in a browser: tables sort, and steps are shown. Needs a Chromium."""

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
  const says = () => find(".says").textContent;
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
  const inspected = find("figure.inspector"), canvas = inspected.querySelector("canvas"), reads = [];
  const {KeyboardEvent} = event.target.contentWindow, says_now = () => inspected.querySelector(".reads").textContent;
  const keyed = key => canvas.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
  const probe = new OffscreenCanvas(4, 3).getContext("2d", {willReadFrequently: true});
  const shade = () => { probe.drawImage(canvas, 0, 0); return [...probe.getImageData(1, 2, 1, 1).data].slice(0, 3); };
  for (const key of ["ArrowUp", "ArrowLeft", "ArrowDown"]) { keyed(key); reads.push(says_now()); }
  seen.reads = reads;
  seen.shades = ["1", "2", "4"].map(key => { keyed(key); return shade(); });
  seen.pressed = [...inspected.querySelectorAll(".views button")].map(button => button.getAttribute("aria-pressed"));
  document.title = JSON.stringify(seen);
};
</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    scores = [np.where(np.arange(8) == 4, np.nan, np.arange(8.0)), None]
    steps = [{"line": 6, "scores": scores[0]}, {"line": 2, "scores": scores[1]}]
    content = {"lines": 8, "start": (4,), "unit": "score", "steps": steps, "images": []}
    rows = [{"number": number, "strategy": "low-pass"} for number in (9, 100, -20)]
    facts = {"text": "A title", "drawing": Figure(figsize=(4, 3)), "rows": rows, "first": [], "summary": {}}
    image = np.arange(12.0).reshape(4, 3)
    inspected = plots.pixel_values(plots.Frame("ky-columns"), image, 0.1 * image, {"reference": image[::-1] / 2})
    write_parts(folder / "report.html", sliders={"steps": content}, inspected=inspected, **facts)
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
    # pixels of arrays (4 x 3), on the page 3 x 4: index, value, two standard deviations, interval, per cent, reference
    assert [numbers_in(text)[:4] for text in seen["reads"]] == [[2, 0, 6, 1.2], [1, 0, 3, 0.6], [1, 1, 4, 0.8]]
    assert numbers_in(seen["reads"][0])[-2:] == [10, 1.5]
    assert seen["pressed"] == ["false", "false", "false", "true", "false"]
    image, spread, reference = seen["shades"]  # of array pixel [1, 2]: 5 of 11, and 8 / 2 of the reference
    assert len({*image}) == len({*reference}) == 1 and image[0] > reference[0] > 0 and len({*spread}) == 3
    assert [numbers_in(seen[name]) for name in ("end", "moved")] == [[3, 8, -2], [2, 8, 2]]
