"""Where the noise, coil maps and centre of a scan are from, and which part of a file it is, in words."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from mri_design.errors import option
from mri_design.scan.data import ImageStack, Scan, ScanSummary
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import index_runs

Described = Scan | ScanSummary | ImageStack


@cache
def words(name: str) -> Any:
    """The macros of a template of this package, which say in words what verbs about files found and made."""
    from jinja2 import StrictUndefined, Template  # here: scans are described without

    text = resources.files("mri_design.runs").joinpath(f"{name}.txt.j2").read_text("utf-8")
    macros = Template(text, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return macros.make_module({"option": option})


def told(fact: str, *about: object) -> str:
    """One fact of a scan in words, by a macro of scan.txt.j2."""
    return " ".join(str(getattr(words("scan"), fact)(*about)).split())


def across(scan: Described) -> str:
    """What the samples of a line are called: of planes of a volume partitions."""
    return "partition" if getattr(scan, "volume", False) else "sample"


def centre_words(scan: Described) -> str:
    """What a user has to know of the centre of k-space; empty where it was neither moved nor doubted."""
    found = scan.provenance.centre
    return told("centre", found, across(scan)) if found is not None and found.noticeable else ""


def left_out(scan: Described, asked: Collection[str] = ()) -> dict[str, str]:
    """What a reader left out of a scan or took otherwise than it seems meant, by name, but for series ``asked`` for.

    What was cut or filled by rule without a loss (the oversampling of readouts, the lines of a partial Fourier scan) is
    not among it.
    """
    notes = {name: text for name, text in scan.header.items() if name in LEFT_OUT}
    series, lines = scan.provenance.series, scan.provenance.doubted_lines
    unread = {name: told("unread", taken) for name, taken in series.items() if name not in asked}
    doubted = index_runs(np.isin(np.arange(max(lines, default=0) + 1), lines))
    return {**notes, **unread, **({"lines_of_noise": told("doubted_lines", doubted)} if lines else {})}


LEFT_OUT = (
    *("coils_dropped", "readouts_skipped", "readouts_of_fewer_channels", "calibration_skipped", "axes"),
    *("coordinates_skipped", "members_not_read", "identifiers_left_out", "field_of_view_in_file", "impossible_sizes"),
    "centre_beyond_grid",
)
"""Entries of a header that readers write where they leave something out, or take it otherwise than it seems meant."""


def left_out_text(scan: Described, asked: Collection[str] = ()) -> str:
    """`left_out` as one line, behind which slice was taken where there are several; empty where nothing was."""
    parts = [f"{name.replace('_', ' ')}: {text}" for name, text in left_out(scan, asked).items()]
    taken = scan.provenance.slice
    return ". ".join([*([] if taken is None else [told("part", Provenance(slice=taken))]), *parts])


def part_of_scan(scan: Scan) -> str:
    """Which slice, and which contrast, repetition or volume a scan is; empty for all that its file holds."""
    return told("part", scan.provenance)


def simulated_from(data: Described) -> str:
    """The source of simulated k-space ("from images"); empty where it was not simulated."""
    source = data.provenance.simulated
    return told("simulated", source) if source else ""
