"""The README of part active-learning, written from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mri_design.evaluation.tables import Row, markdown_text

from .learning_curves import counts_of, curves, groups_of, paired, strategies_of
from .pool_runs import LAPLACE_RATE, ON_THE_MAP, PEER

INTRODUCTION = """Nickisch & Seeger 2009: Bernoulli likelihood, double loop, active learning over a pool.

## The bound and its time

Gaussian prior N(0, I) (X = I, y = 0), the first rows of a9a; exact variances from a cold start until z changes by less
than 1e-5, and Lanczos ones in at most five loops; the least of three calls, one thread. `CPU s` is what counts where
other work shares the cores (`wall s` then says little). glm-ie's numbers were measured once on a machine of the same
kind, not in this run. Lanczos variances are too small and log|A| with them, so that their value is
no bound (glm-ie's own default reports 385.386 and 1408.755).
"""
FORMATS = {"-log Z": ".6f", "glm-ie's bound": ".6f", "CPU s": ".3g", "wall s": ".3g", "times faster": ".3g"}
CURVES = """
## Test error against labels

Per seed a pool is drawn from the training file; its first cases are labelled, then a strategy asks one label at a time.
Whoever asked, the judge is the same: the double loop to convergence on the labels asked so far, its mean's sign on all
test cases. a9a is judged on the whole of a9a.t; w8a has no test file here and is judged on the cases outside the pool
(it gets a constant feature, since 4,203 of its 49,749 cases have no other).
S_CU, S_IG and BALD ask in blocks of K under the model of their column `prior`; the sparse prior is Laplace of rate
{rate:.3f} (unit variance). "{on_map}" is the plain peer: logistic regression with the
standard Gaussian prior, refitted after every label, nearest case to the boundary. "{peer}"
runs where that package is installed (margin sampling, scikit-learn's logistic regression, C = 1: the same fit). Both
ask the same whatever prior the judge has.

![Test error against labels](test-error.png)

Mean test error in per cent over seeds at so many labels, standard error of the last, CPU seconds of the queries.
"""
TESTS = """
## S_CU against the others, paired over seeds

Differences of the test error in points (per cent), negative where S_CU is better: at the last label, and averaged along
the curve from the start; one-sided p of Student's paired t (S_CU lower); seeds on which S_CU is lower at the last
label. A difference without a small p is none. Rows of fewer than ten seeds are there for orientation.
"""


def text_of(settings: Sequence[Any], bounds: Sequence[Row], rows: Sequence[Row]) -> str:
    """Everything after the title."""
    parts = [
        INTRODUCTION,
        markdown_text(bounds, None, FORMATS),
    ]
    parts.append(CURVES.format(rate=LAPLACE_RATE, on_map=ON_THE_MAP, peer=PEER))
    parts.append("\n".join(_sizes(setting) for setting in settings) + "\n")
    for data, prior in groups_of(rows):
        parts += [f"\n### {data}, {prior} prior\n", markdown_text(mean_rows(rows, data, prior), None)]
    parts += [TESTS, markdown_text(test_rows(rows), None, {"p": ".2g", "p along": ".2g"}), "", losses(rows)]
    return "\n".join(parts)


def _sizes(setting: Any) -> str:
    return (
        f"- {setting.data}: pools of {setting.pool}, {setting.first} labels to start, up to {setting.last}, "
        f"K = {setting.block}"
    )


def mean_rows(rows: Sequence[Row], data: str, prior: str) -> list[Row]:
    """One row per strategy."""
    found = []
    counts = counts_of(rows, data)
    for strategy in strategies_of(rows, data, prior):
        errors = 100 * np.array(list(curves(rows, data, prior, strategy).values()))
        chosen = [r for r in rows if (r["data"], r["prior"], r["strategy"]) == (data, prior, strategy)]
        row: dict[str, object] = {"strategy": strategy, "seeds": len(errors)}
        row |= {str(n): f"{value:.2f}" for n, value in zip(counts, errors.mean(axis=0), strict=True)}
        row["standard error"] = f"{errors[:, -1].std(ddof=1) / np.sqrt(len(errors)):.2f}" if len(errors) > 1 else None
        row["CPU s"] = f"{np.mean([float(str(r['CPU seconds'])) for r in chosen]):.1f}"
        found.append(row)
    return found


def test_rows(rows: Sequence[Row]) -> list[Row]:
    """S_CU against every other strategy of every group."""
    found = []
    for data, prior in groups_of(rows):
        for other in strategies_of(rows, data, prior):
            last = paired(rows, data, prior, "S_CU", other)
            along = paired(rows, data, prior, "S_CU", other, whole=True)
            if other == "S_CU" or last is None or along is None:
                continue
            found.append(
                {
                    "data": data,
                    "prior": prior,
                    "S_CU against": other,
                    "difference": f"{100 * last.difference:+.2f}",
                    "p": last.p,
                    "lower on": f"{last.wins} of {last.seeds}",
                    "along": f"{100 * along.difference:+.2f}",
                    "p along": along.p,
                }
            )
    return found


def losses(rows: Sequence[Row]) -> str:
    """Who beats S_CU in the mean at the last label."""
    lines = []
    for data, prior in groups_of(rows):
        for other in strategies_of(rows, data, prior):
            found = paired(rows, data, prior, "S_CU", other)
            if other != "S_CU" and found is not None and found.difference > 0:
                reverse = paired(rows, data, prior, other, "S_CU")
                p = "" if reverse is None else f", p = {reverse.p:.2g} for that side"
                lines.append(f"- {data}, {prior} prior: {other} by {100 * found.difference:.2f} points{p}.")
    return "## Where S_CU loses, in the mean at the last label\n\n" + ("\n".join(lines) or "Nowhere.") + "\n"
