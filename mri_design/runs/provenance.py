"""Where the noise, coil maps and centre of a scan are from, and which part of a file it is, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mri_design.errors import option
from mri_design.experiment.calibration import causes_of_bad_maps
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import count_text
from mri_design.scan.data import ImageStack, Scan, ScanSummary
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import few_runs, index_runs, line_pattern
from mri_design.templates import environment

if TYPE_CHECKING:  # scans are loaded without
    from mri_design.experiment.reconstruction import Image
    from mri_design.readouts import Readouts
    from mri_design.runs.work import Progress

Described = Scan | ScanSummary | ImageStack


@cache
def words(name: str) -> Any:
    """The macros of a template of this package, which say in words what verbs about files found and made."""
    known = {"option": option, "count_text": count_text, "runs": index_runs, "few_runs": few_runs, "flat": _flat}
    macros = environment("mri_design.runs").get_template(f"{name}.txt.j2")
    return macros.make_module({**known, "line_pattern": line_pattern})


def phrase(fact: str, *about: object, template: str = "scan") -> str:
    """One fact of a scan or an image in words, by a macro of scan.txt.j2 or of another template of this package."""
    return _flat(getattr(words(template), fact)(*about))


def _flat(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())


def sentences(template: str, macro: str, /, *facts: object, **named: object) -> list[str]:
    """The lines that a macro of a template of this package makes of some facts, without those that are empty."""
    return [line for line in str(getattr(words(template), macro)(*facts, **named)).splitlines() if line]


def labelled(template: str, macro: str, /, *facts: object, **named: object) -> dict[str, str]:
    """Label and text of every line that a macro makes; those without a text are left out."""
    parts = (line.strip().partition(": ") for line in sentences(template, macro, *facts, **named))
    return {label: text for label, _, text in parts if text}


def account_of(image: Image) -> dict[str, str]:
    """Words for a summary and a manifest: choices that the scan made about its image, and what was left out."""
    return labelled("image", "account", image)


def across(scan: Described) -> str:
    """What the samples of a line are called: of planes of a volume partitions."""
    return "partition" if getattr(scan, "volume", False) else "sample"


def centre_words(scan: Described) -> str:
    """What a user has to know of the centre of k-space; empty where it was neither moved nor doubted."""
    found = scan.provenance.centre
    return phrase("centre", found, across(scan)) if found is not None and found.noticeable else ""


def left_out(scan: Described, asked: Collection[str] = ()) -> dict[str, str]:
    """What a reader left out of a scan or took otherwise than it seems meant, by name, but for series ``asked`` for.

    What was cut or filled by rule without a loss (the oversampling of readouts, the lines of a partial Fourier scan) is
    not among it.
    """
    notes = {code: phrase(code, *facts) for code, facts in scan.provenance.left_out.items()}
    series, lines = scan.provenance.series, scan.provenance.doubted_lines
    unread = {name: phrase("unread", taken) for name, taken in series.items() if name not in asked}
    doubted = index_runs(np.isin(np.arange(max(lines, default=0) + 1), lines))
    return {**notes, **unread, **({"lines_of_noise": phrase("doubted_lines", doubted)} if lines else {})}


def left_out_text(scan: Described, asked: Collection[str] = ()) -> str:
    """`left_out` as one line, behind which slice was taken where there are several; empty where nothing was."""
    parts = [f"{name.replace('_', ' ')}: {text}" for name, text in left_out(scan, asked).items()]
    taken = scan.provenance.slice
    return ". ".join([*([] if taken is None else [phrase("part", Provenance(slice=taken))]), *parts])


def part_of_scan(scan: Scan) -> str:
    """Which slice, and which contrast, repetition or volume a scan is; empty for all that its file holds."""
    return phrase("part", scan.provenance)


def simulated_from(data: Described) -> str:
    """The source of simulated k-space ("from images"); empty where it was not simulated."""
    source = data.provenance.simulated
    return phrase("simulated", source) if source else ""


def simulation_summary(origins: Iterable[str]) -> dict[str, object]:
    """One row for a report's table that says which k-space was simulated; none where no scan's was.

    Parameters
    ----------
    origins : iterable of str
        `simulated_from` of every scan.
    """
    every = list(origins)
    made = [origin for origin in every if origin]
    return {"k-space": phrase("simulated_of_all", list(dict.fromkeys(made)), len(made), len(every))} if made else {}


def tell_part(scan: Scan, recipe: Recipe, progress: Progress) -> None:
    """Report which part of a file a run is about: slice, series, whether it is simulated, and what was not read.

    `mri-design info DIR` shows the slice and the series of a run that is not finished, too.
    """
    progress.about(part_of_scan(scan))
    warn_of_left_out(scan, recipe, progress)
    if simulated_from(scan):
        progress.say(f"simulated k-space {simulated_from(scan)}")


def warn_of_left_out(scan: Scan, recipe: Recipe, progress: Progress) -> None:
    """Report in one line which parts of a scan's file were not read, other than series that the user chose."""
    if text := left_out_text(scan, recipe.input.counters):
        progress.warn(f"{scan.name}: {text}")
    if text := centre_words(scan):
        progress.warn(f"{scan.name}: its centre of k-space is {text}")


def warn_of_noise(scan: Scan, progress: Progress) -> None:
    """Report in one line why the noise of a scan is doubted, and in another which coils measured nothing.

    The noise had to be estimated, from samples that hold signal or despite noise readouts of other coils; or the scan
    contradicts the given one; or it was raised to the rounding of the samples.
    """
    for line in sentences("scan", "noise_warnings", scan.provenance):
        progress.warn(f"{scan.name}: {line}")


def warn_of_maps(scan: Scan, progress: Progress) -> None:
    """Report in one line why coil maps are doubted."""
    maps = scan.provenance.maps
    if maps.bad:
        progress.warn(f"{scan.name}: {phrase('bad_maps', maps, causes_of_bad_maps(scan))}")


def tell_calibration(
    calibration: int, count: int, recipe: Recipe, readouts: Readouts, progress: Progress, growing: str = ""
) -> None:
    """Say where coil maps have fewer centre lines than usual, so that some are left to choose, or most of the mask.

    Parameters
    ----------
    calibration : int
        Centre lines, or side of the square, that maps were estimated from; 0 is none.
    count : int
        Lines or samples in the end.
    recipe : Recipe
        In force.
    readouts : Readouts
        What is chosen from.
    progress : Progress
        Takes both sentences.
    growing : str
        Which lines coil maps are estimated from instead, where they grow with a mask; always reported.
    """
    few = recipe.design.start is None and readouts.kind.centre_first and 0 < calibration < recipe.coils.most_lines
    if growing or few:
        progress.say(phrase("calibration", growing, calibration, recipe.coils.most_lines, count))
    if most := mostly_calibration_words(calibration, count, readouts):
        progress.warn(most)


def mostly_calibration_words(calibration: int, count: int, readouts: Readouts) -> str:
    """A sentence about a mask of ``count`` most of which is there for the coil maps; empty about any other."""
    from mri_design.experiment.extent import mostly_calibration  # here: a scan is loaded without

    alone, square = mostly_calibration(calibration, count, readouts), readouts.kind.square
    return phrase("mostly_calibration", alone, count, readouts.unit, square, template="design") if alone else ""
