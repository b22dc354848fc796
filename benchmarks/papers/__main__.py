"""Make the experiments of the five papers.

    make papers                                       # all at a small size: two minutes, build/papers/claims.md
    make papers PART=lewi_eigenvectors SIZE=full      # one of them as results/papers states it
    make papers PART=tr175 DATA=FOLDER                # all of one paper, with the data sets of a folder

DATA has ``a9a``, ``a9a.t``, ``w8a`` (LIBSVM text), ``usps_3v5.npz`` and ``img_3T_complex.npz``, itself or in folders
below it; ``real-sim`` and ``rcv1`` may be there as well. Without a folder simulated data of the same shape stand in for
them at small sizes; at full size what an experiment needs has to be there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mri_design.errors import InputError
from mri_design.evaluation.tables import read_csv_texts

from .runner import CLAIMS, SIZES, chosen, overview, run_all

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Measure what was asked for, and write the pages."""
    parser = argparse.ArgumentParser(prog="papers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", nargs="*", help="experiments or papers by name; all without")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--data", type=Path, help="folder of data sets")
    parser.add_argument("--out", type=Path, help="folder of the pages (full: results/papers, else build/papers)")
    parser.add_argument("--pages", action="store_true", help="write docs/papers.md from the claims that are kept")
    parser.add_argument("--list", action="store_true", help="names of the experiments, and what they show")
    words = parser.parse_args()
    try:
        parts = chosen(words.part)
        if words.data and not words.data.is_dir():
            raise InputError("DATA", str(words.data), "a folder")
        if words.list:
            print(*(f"{one.name}: {one.title} ({one.module.PLACE})" for one in parts), sep="\n")
            return 0
        tracked = ROOT / "results" / "papers"
        out = words.out or (tracked if words.size == "full" else ROOT / "build" / "papers")
        if words.pages:
            out = tracked
        else:
            run_all(parts, words.size, words.data, out)
    except InputError as error:
        print(f"papers: {error}", file=sys.stderr)
        return 2
    page, results = (ROOT / "docs" / "papers.md", "../results/papers") if out == tracked else (out / "claims.md", ".")
    overview(read_csv_texts(out / CLAIMS), page, results)
    print(f"All claims: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
