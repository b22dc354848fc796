"""What a newcomer meets in the first hour, against the targets: README, commands, reports, volumes, search, notebooks.

    make docs
    python -m benchmarks.first_hour              # results/first-hour/commands.csv
    python -m benchmarks.volumes                 # results/first-hour/volumes.csv
    python -m benchmarks.documents_search build/docs results/first-hour/search.csv
    python -m benchmarks.first_hour_targets      # results/first-hour/targets.csv, from these and what it measures

Reports of three verbs are made on embedded scans and opened in Chromium, which has to be on the path, at 1280 and 390
pixels: how far from the top their first picture is, how many clicks open it, and whether anything is wider than the
page.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

from mri_design.evaluation.tables import Row, read_csv, write_csv

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "first-hour"
MEASURED = ("phantom:lf-gre", "phantom:lf-fse", "phantom:head-16ch")
"""Embedded scans that come from scanners."""
REPORTS = {
    "design": "design phantom:lf-gre --lines 32 --block 8 --recipe local",
    "recon": "recon phantom:lf-fse --recipe local",
    "compare": "compare phantom:lf-gre --lines 32 --strategies low-pass,fastmri-equispaced --recipe local --seeds 1",
}
FRAME = """<iframe src="report.html" style="width: WIDTHpx; height: HEIGHTpx; border: 0"></iframe><script>
document.querySelector("iframe").onload = event => {
  const page = event.target.contentDocument;
  const shown = [...page.querySelectorAll("img, svg, canvas")].filter(e => e.getBoundingClientRect().height > 40);
  const top = shown.length ? Math.round(shown[0].getBoundingClientRect().top) : -1;
  const clicks = shown.length && !shown[0].closest("details:not([open])") ? 0 : 1;
  document.title = JSON.stringify({top, clicks, width: page.documentElement.scrollWidth});
};
</script>"""


def first_screen(folder: Path, width: int, height: int) -> dict[str, int]:
    """Pixels from the top to the first picture of a folder's report, clicks that open it, and the page's width."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)).replace("HEIGHT", str(height)), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    command += ["--disable-background-networking", f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000"]
    command += ["--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = re.search(r"<title>(.*?)</title>", seen)
    assert title, seen[-300:]
    found: dict[str, int] = json.loads(unescape(title[1]))
    return found


def screens() -> list[Row]:
    """First screens of the reports."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        for name, words in REPORTS.items():
            folder = Path(place) / name
            command = [sys.executable, "-m", "mri_design.cli.start", *words.split(), "--out", str(folder), "--quiet"]
            subprocess.run(command, check=True)
            for width, height in ((1280, 900), (390, 844)):
                rows.append({"report": name, "window": width, **first_screen(folder, width, height)})
    return rows


def target(what: str, found: float, wanted: str, *, least: bool = False) -> Row:
    """A row of the table: what was measured, its target (a number, at most or at ``least``), and whether it is met."""
    met = found >= float(wanted) if least else found <= float(wanted)
    return {"what": what, "target": f"{'>=' if least else '<='} {wanted}", "found": found, "met": met}


def main() -> None:
    """Write the table."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    opened = screens()
    write_csv(OUT / "first-screens.csv", opened)
    commands = {str(row["command"]): float(str(row["processor_s"])) for row in read_csv(OUT / "commands.csv")}
    masks = [seconds for command, seconds in commands.items() if " mask --kind" in command]
    volumes = read_csv(OUT / "volumes.csv")
    found = sum(str(row["right"]).lower() in ("true", "yes") for row in read_csv(OUT / "search.csv"))
    stories = [path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("[0-9]*.py")]
    real = sum(any(scan in story for scan in MEASURED) and "plot()" in story for story in stories)
    rows = [
        target("lines of the README", len(readme.splitlines()), "110"),
        target("words of the README", len(readme.split()), "1000"),
        target("mask with a picture, processor seconds, slowest kind", max(masks), "2"),
        target("info of a scan, processor seconds", commands["mri-design info scan.npy"], "2"),
        target("help, processor seconds", commands["mri-design --help"], "1"),
        target("clicks to the first picture of a report", max(int(str(row["clicks"])) for row in opened), "0"),
        target("pixels to the first picture of a report", max(int(str(row["top"])) for row in opened), "500"),
        target(
            "reports wider than their window",
            sum(int(str(row["width"])) > int(str(row["window"])) for row in opened),
            "0",
        ),
        target(
            "volume: seconds per slice over one slice", max(float(str(r["seconds_ratio"])) for r in volumes), "1.05"
        ),
        target("volume: memory over that of one slice", max(float(str(r["memory_ratio"])) for r in volumes), "1.3"),
        target("search words of fifteen that find their page first", found, "15", least=True),
        target("notebooks with pictures of real data", real, "3", least=True),
    ]
    write_csv(OUT / "targets.csv", rows)
    for row in rows:
        print(f"{row['what']:56s} {row['target']:8s} {row['found']:8.4g} {'' if row['met'] else 'MISSED'}")


if __name__ == "__main__":
    main()
