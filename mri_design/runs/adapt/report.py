"""Report of a design at the scanner: that of a design, and how long decisions took."""

from __future__ import annotations

import numpy as np

from mri_design.evaluation.page import Paragraph, ReportTable, Section
from mri_design.runs.adapt.run import AdaptResult
from mri_design.runs.design.report import report_design
from mri_design.runs.run import Ending, Run

SHOWN = 20
"""Rows of the table on the page; latency.csv has all."""


def report_adapt(run: Run, result: AdaptResult | Ending) -> Ending:
    """Write everything about a design at the scanner; one that was finished before stays as it is."""
    if isinstance(result, Ending):
        return result
    exchanges = result.scanner.exchanges
    rows = [exchange.as_row() for exchange in exchanges]
    counts = {f"readouts {what}": count for what, count in result.scanner.arrivals.counts.items() if count}
    lost = sum(len(exchange.lost) for exchange in exchanges)
    again = sum(exchange.requests - 1 for exchange in exchanges)
    beside: dict[str, object] = {
        **counts,
        **({"lines lost": lost} if lost else {}),
        **({"requests repeated": again} if again else {}),
    }
    decided = [one.deciding for one in exchanges]
    if not rows:
        return report_design(run, result.design, beside=beside)
    median, most = float(np.median(decided)), max(decided)
    slowest = sorted(range(len(rows)), key=lambda i: -decided[i])[:SHOWN]
    section = Section(
        "At the scanner",
        [
            Paragraph(
                f"From the last readout of one request to the next request: {median:.3g} s in the median of "
                f"{len(rows)} requests, {most:.3g} s at most."
            ),
            ReportTable(
                [rows[i] for i in sorted(slowest)],
                f"The {len(slowest)} requests that took longest to decide. `deciding` is the time that the scanner "
                "waited for the design, `waiting` the time that the design waited for the scanner.",
            ),
        ],
    )
    beside["median seconds per decision"] = median
    return report_design(run, result.design, [section], beside)
