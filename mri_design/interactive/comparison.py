"""Strategies side by side on one scan: how large the error is with each, at the same numbers of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.pictures import Drawing
from mri_design.evaluation.plots.panels import ErrorCurve
from mri_design.evaluation.tables import percent
from mri_design.interactive.running import Saved, Told
from mri_design.interactive.shown import facts_html, facts_text, image_png, mask_png
from mri_design.runs.compare import ComparisonResult, report_comparison
from mri_design.runs.image_sections import layout_of
from mri_design.runs.run import Ending, Run


@dataclass(frozen=True, repr=False, eq=False)
class StrategyComparison(Saved):
    """Strategies compared on one scan; `LoadedScan.compare` makes it.

    Parameters
    ----------
    result : ComparisonResult
        What ``mri-design compare`` computes.
    told : Told
        How it was computed.
    """

    result: ComparisonResult
    told: Told

    @property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Mean error and its spread for each strategy and number of lines, as summary.csv has them."""
        return self.result.errors.summary

    @property
    def methods(self) -> Sequence[Mapping[str, object]]:
        """Mean errors of every method on the masks of each strategy, as methods.csv has them; empty without methods."""
        return self.result.methods

    @property
    def errors(self) -> dict[str, dict[int, float]]:
        """Mean relative error by strategy and number of lines."""
        counts = sorted(self.result.study.lines)
        return {
            name: dict(zip(counts, np.mean(runs, axis=0).tolist(), strict=True))
            for name, runs in self.result.errors.runs.items()
        }

    def plot(self) -> Drawing:
        """Errors against the number of lines: a figure of matplotlib."""
        study = self.result.study
        counts = np.array(sorted(study.lines))
        curves = [ErrorCurve(name, counts, runs) for name, runs in self.result.errors.runs.items()]
        return plots.error_against_lines(curves, bands=False, unit=study.tests[0].slice_model.candidates.unit)

    @property
    def facts(self) -> dict[str, str]:
        """Errors in words, by strategy."""
        return {
            name: ", ".join(f"{percent(error, 3)} with {count}" for count, error in found.items()).replace("\xa0", " ")
            for name, found in self.errors.items()
        }

    @property
    def _title(self) -> str:
        study = self.result.study
        return f"StrategyComparison on {study.tests[0].name}, error by number of {study.counted}"

    def _write(self, run: Run) -> Ending:
        return report_comparison(run, self.result)

    def __repr__(self) -> str:
        facts = self.facts
        best = dict(sorted(facts.items(), key=lambda one: min(self.errors[one[0]].values()))[:4])
        more = {"...": f"{len(facts) - 4} more in .errors"} if len(facts) > 4 else {}
        return facts_text(self._title, best | more)

    def _repr_html_(self) -> str:
        pictures = list[tuple[str, bytes]]()
        for one in self.result.shown:
            layout = layout_of(one.readouts, self.result.orientation)
            if one.readouts.name in ("lines", "plane"):
                pictures.append((f"{one.strategy}: mask", mask_png(one.mask, layout)))
            pictures.append((f"{one.strategy}: image", image_png(one.reconstruction.image, layout)))
        return facts_html(self._title, self.facts, pictures)
