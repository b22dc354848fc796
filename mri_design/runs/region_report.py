"""What a report says of regions that were to be known: their intervals at every look, and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from mri_design.design.trace import StopRule, lines_expected
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.design import DesignResult

FILE = "intervals.csv"
USUAL = 0.05
"""Relative error that one would ask of a whole image, to compare with."""


def region_facts(folder: RunFolder, result: DesignResult) -> dict[str, Any]:
    """Write intervals.csv, a row for every look and region; return what regions.html.j2 shows of them."""
    regions, within, trace = result.regions, result.request.recipe.design.within, result.trace
    if regions is None or within is None:
        folder.remove(FILE)
        return {"regions": None, "least_known": None}
    unit = "image units" if regions.fit is None else regions.fit.model.unit
    of_all = {0: (result.images[0].reconstruction, result.known.shown_reference), **result.around}
    images = {place: image for place, (image, _) in of_all.items()}
    means = regions.measured(images, {place: truth for place, (_, truth) in of_all.items()})
    shown = int(np.argmax(np.sum(list(regions.masks.values()), axis=(0, 2, 3))))
    steps = [*trace.steps, *([trace.declined] if trace.declined is not None else [])]
    forecasts = [(len(trace.start) + at, step.forecast) for at, step in enumerate(steps)]
    looks = {count: one.intervals for count, one in forecasts if one.intervals is not None}
    looks[len(trace.lines)] = last = regions.intervals(means)
    rows = [
        {
            "lines": count,
            "region": mean.name,
            "from": middle - half,
            "to": middle + half,
            "middle": middle,
            "half_of_length": half,
            "relative": half / brightness if brightness else None,
            **({} if mean.true is None else {"true": mean.true}),
            **({} if regions.fit is None else {"unit": unit}),
        }
        for count, look in looks.items()
        for mean, (middle, half, brightness) in zip(means, look.tolist(), strict=True)
        if np.isfinite(half)
    ]
    folder.write_table(FILE, rows)
    known = {count: look for count, look in looks.items() if np.isfinite(look).all()}
    middles, halves, _ = np.moveaxis(np.array(list(known.values())).reshape(-1, len(means), 3), 2, 0)
    place = int(np.argmax(within.lengths(last)))
    return {
        "regions": regions,
        "region_image": images[shown].image,
        "outlines": {name: inside[shown] for name, inside in regions.masks.items()},
        "within": within,
        "measured_regions": means,
        "looks": list(known),
        "region_unit": unit,
        "interval_ends": np.stack([middles - halves, middles + halves], axis=-1),
        "least_known": means[place],
        "whole_image": lines_expected(trace, StopRule(USUAL, by_image=True), trace.n_lines),
        "usual_error": USUAL,
    }
