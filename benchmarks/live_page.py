"""The page of `mri-design adapt --live` in a browser: from a line to its picture, memory, and what the design pays.

    OMP_NUM_THREADS=1 python benchmarks/live_page.py [--axe axe.min.js]

A client of this process measures the lines of a head, 128 x 128 with four coils, and notes when it sends each. A
Chromium that playwright drives notes when a picture of so many lines has been drawn. The same design runs without a
page first. AXE is the script of axe-core, whose findings are counted. Writes results/interoperation/live.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from parts.pages import put_conditions, put_table

from mri_design.design import Amount, DesignTrace, Forecast, Frame, InferredSlices, Moment
from mri_design.evaluation import plots
from mri_design.evaluation.tables import Row
from mri_design.readouts import LineReadouts
from mri_design.runs.live import Watched, opened
from mri_design.scan.simulation import load_phantom
from mri_design.scan.streaming import Player

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "results/interoperation/live.md"
WATCH = """() => {
  window.drawn = [];
  const picture = document.querySelector("main");
  new MutationObserver(async () => {
    const image = document.querySelector(".pixels img");
    const count = parseInt(document.querySelector(".verdict").textContent);
    if (!image || isNaN(count)) return;
    await image.decode().catch(() => null);
    requestAnimationFrame(() => drawn.push([count, Date.now() / 1000]));
  }).observe(picture, {subtree: true, childList: true, attributes: true, characterData: true});
}"""

FINDINGS = "async () => (await axe.run()).violations.map(one => one.impact + ' ' + one.id)"


class Timed(Player):
    """A player that notes when it sends each line."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sent = dict[int, float]()

    def line(self, number: int) -> bytes:
        made = super().line(number)
        self.sent[number] = time.time()
        return made


@contextmanager
def adapting(lines: int, folder: Path, *live: object) -> Iterator[tuple[int, str, subprocess.Popen[str]]]:
    """`adapt` at work: port of its scanner, address of its page, process."""
    words = ("adapt", "--listen", 0, "--lines", lines, "--no-report", "--out", folder, *live)
    command = [sys.executable, "-m", "mri_design.cli.main", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url, port = "", 0
    for text in process.stderr:
        url = text.partition(": ")[2].strip() if text.startswith("live page") else url
        if found := re.search(r"listening at \S+:(\d+)", text):
            port = int(found[1])
            break
    try:
        yield port, url, process
        process.communicate(timeout=600)
    finally:
        process.kill()


def played(player: Timed, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        player.play(client)


def column(folder: Path, table: str, name: str) -> list[float]:
    with (folder / table).open(newline="") as stream:
        return [float(row[name]) for row in csv.DictReader(stream)]


def deciding(folder: Path) -> float:
    """Median seconds of a decision."""
    return float(np.median(column(folder, "latency.csv", "deciding_seconds")[1:]))


def latencies(folder: Path, sent: dict[int, float], drawn: dict[int, float]) -> list[float]:
    """Seconds from the newest line to the first picture that holds it, without lines that came before their choice."""
    times = [sent[int(line)] for line in column(folder, "lines.csv", "line")]
    return [drawn[n] - times[n - 1] for n in sorted(drawn) if times[n - 1] == max(times[:n])]


def memory_of(session: Any, browser: Any) -> tuple[float, int, float]:
    """JavaScript's heap in MB after its garbage is collected, nodes of the document, and MB of the page's process."""
    session.send("HeapProfiler.collectGarbage")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [Path(f"/proc/{one['id']}/statm").read_text() for one in processes if one["type"] == "renderer"]
    resident = max(int(text.split()[1]) for text in renderers) * os.sysconf("SC_PAGE_SIZE")
    return found["JSHeapUsedSize"] / 1e6, int(found["Nodes"]), resident / 1e6


def watched(chromium: Any, player: Timed, lines: int, folder: Path, axe: str) -> Row:
    """One design that a browser looks at."""
    with adapting(lines, folder, "--live", 0) as (port, url, _):
        tab = chromium.new_page(viewport={"width": 1200, "height": 900})
        session, browser = tab.context.new_cdp_session(tab), chromium.new_browser_cdp_session()
        session.send("Performance.enable")
        tab.goto(url)
        tab.evaluate(WATCH)
        scanner = threading.Thread(target=played, args=(player, port))
        scanner.start()
        memory, findings = list[tuple[float, int, float]](), None
        while scanner.is_alive():
            tab.wait_for_timeout(200)
            if 4 * len(player.sent) > lines * (len(memory) + 1):
                memory.append(memory_of(session, browser))
        drawn = dict(reversed(tab.evaluate("drawn")))  # of each number of lines the first picture
        memory.append(memory_of(session, browser))
        if axe:
            tab.evaluate(axe)
            findings = tab.evaluate(FINDINGS)
        tab.close()
    took = latencies(folder, player.sent, drawn)
    return {
        "seconds from a line to its picture, median": float(np.median(took)),
        "95 of 100 within": float(np.quantile(took, 0.95)),
        "pictures": len(took),
        "seconds a decision": deciding(folder),
        "MB of scripts": ", ".join(f"{scripts:.2f}" for scripts, _, _ in memory),
        "nodes": ", ".join(str(nodes) for _, nodes, _ in memory),
        "MB of the page's process": ", ".join(f"{resident:.0f}" for _, _, resident in memory),
        "axe": "not run" if findings is None else ", ".join(findings) or "no finding",
    }


def resident(profile: str) -> float:
    """MB of the page's process of the browser with this profile."""
    found = [0]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"--type=renderer" in command and profile.encode() in command:
                found.append(int((process / "statm").read_text().split()[1]))
    return max(found) * os.sysconf("SC_PAGE_SIZE") / 1e6


def long_look(path: str, states: int, matrix: int) -> Iterator[Row]:
    """A browser of its own, which nobody drives, looks at a page whose images are noise, other ones for each state."""
    readouts, rng, pixels = LineReadouts((matrix, matrix)), np.random.default_rng(0), (matrix, matrix)
    picture, trace = plots.Frame("ky-rows", None), DesignTrace("", matrix, tuple(range(10)))
    with opened("0") as page, tempfile.TemporaryDirectory() as profile:
        page.begins(Watched("noise", readouts, picture, None, Amount(matrix), {}))
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", page.url]
        browser = subprocess.Popen([path, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number in range(1, states + 1):
            magnitude = rng.random(pixels, dtype=np.float32)
            frame = Frame(number, trace.lines, (), magnitude, magnitude / 10, 0.1)
            page.show(Moment(trace, (), Forecast(), InferredSlices()), frame)
            time.sleep(0.06)
            if number % (states // 6) == 0:
                yield {"states": number, "MB of the page's process": resident(profile)}
        browser.terminate()
        browser.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--lines", type=int, default=128)
    parser.add_argument("--matrix", type=int, default=128)
    parser.add_argument("--coils", type=int, default=4)
    parser.add_argument("--states", type=int, default=1500, help="of the long look; 0 leaves it out")
    parser.add_argument("--paces", type=float, nargs="*", default=[0.0, 0.5])
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    from playwright.sync_api import sync_playwright

    scan = load_phantom("brain", shape=(given.matrix,) * 2, n_coils=given.coils, rng=np.random.default_rng(0))
    axe, rows = given.axe.read_text() if given.axe else "", list[Row]()
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        with adapting(given.lines, folder / "alone") as (port, _, _):
            played(Timed(scan), port)
        rows.append({"page": "none", "seconds between lines": 0.0, "seconds a decision": deciding(folder / "alone")})
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for pace in given.paces:
            row = watched(chromium, Timed(scan, 0, pace), given.lines, folder / f"pace-{pace}", axe)
            rows.append({"page": "a browser", "seconds between lines": pace, **row})
            print(row, flush=True)
        version = chromium.version
        chromium.close()
    heading = "A page that is looked at" + (f", {given.coils} coils" if given.coils != 4 else "")
    put_table(given.page, heading, rows, formats={name: ".2f" for name in rows[-1]})
    if not given.states:
        return
    kept = list(long_look(path, given.states, given.matrix))
    put_table(given.page, "A long look", kept, formats={"MB of the page's process": ".0f"})
    put_conditions(given.page, "numpy", also=f", Chromium {version} driven by playwright")


if __name__ == "__main__":
    main()
