"""Folders as runs leave them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation.tables import write_csv
from mri_design.scan.geometry import SliceGeometry

LINES = [8, 3, 12, 9, 0]
TRAINS = [[3, 9], [0, 12], [8]]
PLACED = SliceGeometry((2.0, 2.5), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
IMAGE = (np.random.default_rng(0).standard_normal((16, 12)) + 1j).astype(np.complex64)
STD = np.random.default_rng(1).random((16, 12)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Make the folder of a run: with images unless told otherwise, with trains or a place where asked for."""

    def make(*, images: bool = True, trains: bool = False, place: SliceGeometry | None = None) -> Path:
        path = tmp_path / "run"
        path.mkdir()
        mask = np.zeros(16, dtype=bool)
        mask[LINES] = True
        np.save(path / "mask.npy", mask)
        settings = {"identity": "one of its kind"} | ({} if place is None else {"geometry": place.as_settings()})
        (path / "manifest.json").write_text(json.dumps({"lines": LINES, "settings": settings}))
        if images:
            np.save(path / "recon.npy", IMAGE)
            np.save(path / "std.npy", STD)
        if trains:
            places = [(shot, echo, line) for shot, train in enumerate(TRAINS) for echo, line in enumerate(train, 1)]
            rows = [
                {"order": i, "train": shot, "echo": echo, "line": line, "ky": line - 8}
                for i, (shot, echo, line) in enumerate(places)
            ]
            write_csv(path / "acquisition.csv", rows)
        return path

    return make
