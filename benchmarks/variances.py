"""How far sampled variances are off because their draws are solved to a tolerance, and what is stated of it.

    OMP_NUM_THREADS=1 python benchmarks/variances.py --out results/benchmarks

measures everything (a minute or two), prints the tables and writes variances.md and .csv; ``--quick`` is the same on a
few small cases in seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from parts.variance_bias import CASES, bias_rows, coverage_rows
from threadpoolctl import threadpool_limits

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.scan.io.atomic import write_text

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/variances.py"
SECTIONS = {
    "bias": """Bias of z relative to z, by the same 256 draws solved to the tolerance and solved tightly: of the sum
over all coefficients, of the sum over the largest sixteenth of them, and in root mean square over all. `products` are
those with A that eight draws take, `for the bias` how many of these only tell the bias. `stated / rms` is the root mean
square of the bias that the estimator states (`Variances.bias`, relative to z) as a multiple of the true one, smallest
to largest of three seeds; two to four is what it aims at. `of medians` is the same ratio for the medians over
coefficients: it is larger, since a few coefficients carry most of the bias, and which they are is known by their size
only. `covered` is the share of coefficients whose true bias is at most the stated one, in the worst of three seeds.""",
    "many draws": """Share of all coefficients whose exact value lies within three standard errors, and within three
standard errors and the bias, in the worst of three seeds. Normal errors alone would have 99.7 %. With many draws the
standard error vanishes beside the bias.""",
}


def tables(quick: bool) -> dict[str, Sequence[Row]]:
    """The rows of each table."""
    if quick:
        few = [replace(case, tolerances=case.tolerances[1:2]) for case in (CASES[1], CASES[5])]
        return {"bias": bias_rows(few, 64, (8,), (0,)), "many draws": coverage_rows(few, (256,), (0,))}
    return {"bias": bias_rows(), "many draws": coverage_rows()}


def document(rows: dict[str, Sequence[Row]], quick: bool) -> str:
    """The tables with what they mean, as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions(("numpy", "scipy")).items())
    parts = [
        "# Variances from draws that are solved to a tolerance\n",
        f"- command: `{COMMAND}{' --quick' if quick else ''}`\n- versions: {versions}\n"
        "- seed: 0 for the scan and its lines\n"
        "- data: phantom `t2w`, smooth phase, noise 0.007 of the signal per real component, a quarter of the lines, "
        "site precisions at the variational optimum; rates of `wavelet+differences`: 10 per unit of the signal\n",
    ]
    formats = {"tolerance": "g"} | dict.fromkeys(("bias of the sum", "of the largest"), "+.2%") | {"rms": ".2%"}
    for name, table in rows.items():
        shares = {column: ".1%" for row in table for column in row if "covered" in column or "std_error" in column}
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{SECTIONS[name]}\n")
        parts.append(markdown_text(table, formats=formats | shares))
    return "\n".join(parts)


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for the tables")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on small cases")
    chosen = arguments.parse_args()
    with threadpool_limits(1):
        rows = tables(chosen.quick)
    text = document(rows, chosen.quick)
    print(text)
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_text(chosen.out / "variances.md", text)
    write_text(chosen.out / "variances.csv", csv_text([{"table": n} | dict(r) for n, t in rows.items() for r in t]))


if __name__ == "__main__":
    main()
