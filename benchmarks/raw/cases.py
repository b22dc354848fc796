"""One variant of an MRD file: how it is written, how it is read, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.errors import InputError
from mri_design.evaluation.tables import Row
from mri_design.operators.base import Array
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.formats import read

from .writing import RawFile

COLUMNS = ["variant", "kind", "expected", "outcome", "right", "largest difference", "what the reader says"]
SAME = 1e-5
"""Largest difference of a value from the known one, relative to the largest of the array, that is single precision."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Contents that must come out; None is not looked at.

    Parameters
    ----------
    kspace, calibration, trajectory, covariance : arrays
        As the scan has them.
    header : mapping of str to str
        What its header must say, by name: a part of the text.
    refused : str
        A part of the message, where the file must be refused; empty where it must be read.
    """

    kspace: Array | None = None
    calibration: Array | None = None
    trajectory: Array | None = None
    covariance: Array | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""


Writer = Callable[[RawFile, Path], None]
Build = Callable[[], tuple[RawFile, Expected]]


@dataclass(frozen=True)
class Case:
    """A variant.

    Parameters
    ----------
    build : callable
        The file, and what must come out of it; its docstring names the variant.
    kind : str
        "slices", "volume" or "trajectory".
    settings : mapping
        Of the reader: duplicates, counters.
    write : callable
        How the file comes onto the disk.
    """

    build: Build
    kind: str
    settings: Mapping[str, Any]
    write: Writer

    @property
    def name(self) -> str:
        """In words."""
        return (self.build.__doc__ or "").strip().rstrip(".")

    def outcome(self, folder: Path, number: int, *, isolated: bool) -> Row:
        """Write the file, read it, and compare; the file's bytes must not change."""
        file, expected = self.build()
        path = folder / f"variant-{number:02d}.h5"
        self.write(file, path)
        before = path.read_bytes()
        row: Row = {"variant": self.name, "kind": self.kind, "expected": "refused" if expected.refused else "read"}
        try:
            scan = read(path, isolated=isolated, **self.settings)
        except InputError as error:
            text = str(error).replace(f"{path}: ", "").replace(str(path), path.name)
            right = bool(expected.refused) and expected.refused in text
            found: Row = {"outcome": "refused", "right": right, "what the reader says": text}
        else:
            assert isinstance(scan, (KSpaceData, TrajectoryData))
            difference = largest_difference(scan, expected)
            said = all(text in scan.header.get(name, "") for name, text in expected.header.items())
            notes = "; ".join(f"{name}: {text}" for name, text in scan.header.items() if name not in ("file", "format"))
            right = not expected.refused and difference <= SAME and said
            found = {"outcome": "read", "right": right, "largest difference": difference, "what the reader says": notes}
        if path.read_bytes() != before:
            found["right"], found["what the reader says"] = False, "the file was changed"
        return row | found


def largest_difference(scan: KSpaceData | TrajectoryData, expected: Expected) -> float:
    """Largest difference of any array from what it must be, relative to its largest value; infinite for other shapes.

    The lines that count as measured must be those that hold something.
    """
    pairs = [
        (scan.kspace, expected.kspace),
        (scan.noise_covariance, expected.covariance),
        (getattr(scan, "calibration", None), expected.calibration),
        (getattr(scan, "trajectory", None), expected.trajectory),
    ]
    if isinstance(scan, KSpaceData) and expected.kspace is not None:
        pairs.append((1.0 * scan.measured, 1.0 * np.any(expected.kspace, axis=(0, 1, 3))))
    return max(_difference(found, known) for found, known in pairs)


def _difference(found: Array | None, known: Array | None) -> float:
    if known is None:
        return 0.0
    if found is None or found.shape != known.shape:
        return float("inf")
    return float(np.abs(found - known).max() / np.abs(known).max())


class Variants(list[Case]):
    """Variants in their order; a decorator puts a function into the list."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, write: Writer = RawFile.write, **settings: Any) -> Callable[[Build], Build]:
        """The decorator, for a way of writing and settings of the reader."""

        def listed(build: Build) -> Build:
            self.append(Case(build, self.kind, settings, write))
            return build

        return listed


by_hand: Writer = RawFile.write_by_hand
without_trajectories: Writer = partial(RawFile.write_by_hand, trajectories=False)
