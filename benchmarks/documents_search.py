"""Which page the documents' search finds first for words that people of MRI type, opened as files in Chromium.

    make docs && python -m benchmarks.documents_search build/docs results/first-hour/search.csv

Needs Chromium on the path. The table has each word, the page that explains it, the page found first, and whether they
are the same.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from mri_design.evaluation.tables import write_csv

PAGES = {
    "sensitivity map": "coils",
    "GRAPPA": "coils",
    "SENSE": "coils",
    "ACS": "coils",
    "autocalibration": "coils",
    "g-factor": "coils",
    "prewhitening": "coils",
    "off-resonance": "coils",
    "undersampling": "masks",
    "Poisson disk": "masks",
    "k-t": "design-one-scan",
    "GPU": "install",
    "compressed sensing": "reconstruct",
    "T1w": "formats",
    "T2w": "formats",
}
"""Word to the page that should be found first."""


def found_first(site: Path, word: str) -> str:
    """Name of the page that the search lists first; empty where it lists none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    address = f"{(site / 'index.html').resolve().as_uri()}?q={word.replace(' ', '%20')}"
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        command += [
            "--no-first-run",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=30000",
            "--dump-dom",
            address,
        ]
        seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    links = re.findall(r'<a href="([^"]*)" class="md-search-result__link"', seen)
    return re.sub(r"\.html.*", "", links[0].removeprefix(site.resolve().as_uri() + "/")) if links else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("table", type=Path)
    given = parser.parse_args()
    rows = []
    for word, page in PAGES.items():
        first = found_first(given.site, word)
        rows.append({"word": word, "page": page, "found_first": first, "right": first == page})
        print(f"{word:18s} {first:40s} {'' if first == page else 'wanted ' + page}")
    write_csv(given.table, rows)
    print(f"{sum(bool(row['right']) for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    main()
