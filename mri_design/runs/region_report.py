"""What a report says of regions that were to be known: their intervals at every look, and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mri_design.design.trace import DesignTrace, StopRule, Within, lines_expected
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.reconstruction import Image
from mri_design.experiment.regions import Regions
from mri_design.operators.base import Array

FILE = "intervals.csv"
MOST_SHOWN = 6
"""Regions on a page, the least known of all; the table has all."""
USUAL = 0.05
"""Relative error that one would ask of a whole image, to compare with."""


def region_facts(
    folder: RunFolder,
    regions: Regions | None,
    within: Within | None,
    trace: DesignTrace,
    counted: str,
    of_all: Mapping[int, tuple[Image, Array | None]],
) -> dict[str, Any]:
    """Write intervals.csv, a row for every look and region; return what regions.html.j2 shows of them.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    regions, within : Regions, Within, optional
        What was to be known, and how well; None where nothing was.
    trace : DesignTrace
        The design.
    counted : str
        What was measured (`Kind.counted`): the column of the table that has their numbers.
    of_all : mapping of int to (Image, array or None)
        The images of its lines by `Regions.places`, and their truths.
    """
    if regions is None or within is None:
        folder.remove(FILE)
        return {"regions": None, "least_known": None}
    unit = "image units" if regions.fit is None else regions.fit.model.unit
    images = {place: image for place, (image, _) in of_all.items()}
    means = regions.measured(images, {place: truth for place, (_, truth) in of_all.items()})
    shown = int(np.argmax(np.sum(list(regions.masks.values()), axis=(0, 2, 3))))
    steps = [*trace.steps, *([trace.declined] if trace.declined is not None else [])]
    forecasts = [(len(trace.start) + at, step.forecast) for at, step in enumerate(steps)]
    looks = {count: one.intervals for count, one in forecasts if one.intervals is not None}
    looks[len(trace.lines)] = last = regions.intervals(means)
    rows = [
        {
            counted: count,
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
    longest = np.argsort(-within.lengths(last), kind="stable")
    listed = sorted(longest[:MOST_SHOWN].tolist())
    return {
        "regions": regions,
        "region_image": images[shown].image,
        "outlines": {name: inside[shown] for name, inside in regions.masks.items()},
        "within": within,
        "measured_regions": [means[one] for one in listed],
        "looks": list(known),
        "region_unit": unit,
        "interval_ends": np.stack([middles - halves, middles + halves], axis=-1)[:, listed],
        "least_known": means[longest[0]],
        "all_regions_known": bool(within.lengths(last).max() <= within.length),
        "whole_image": trace.found and lines_expected(trace, StopRule(USUAL, by_image=True), trace.n_lines),
        "usual_error": USUAL,
    }
