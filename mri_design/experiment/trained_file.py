"""Trained designs on disk: plain arrays in an npz archive with a checksum, no pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.trained_design import TrainedDesign
from mri_design.errors import InputError
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.io.npy import read_npz_members
from mri_design.scan.io.safe import ReadLimits, check_file

FORMAT = "mri-design trained design 1"
_LIMITS = ReadLimits(max_bytes=2**28)
_NUMBERS = {
    "grid": (np.dtype(np.int64), 1),
    "lines": (np.dtype(np.int64), 1),
    "n_start": (np.dtype(np.int64), 0),
    "reconstructions": (np.dtype(np.int64), 0),
    "unconverged": (np.dtype(np.int64), 0),
    "profile": (np.dtype(np.float64), 2),
    "errors": (np.dtype(np.float64), 1),
}
"""Fields of a `TrainedDesign` that are arrays in the file: dtype and number of axes."""
_COUNTS = {"counts": (np.dtype(np.int64), 1)}
"""A further one where samples of a plane were chosen."""
_MEMBERS = _NUMBERS | {"text": (np.dtype(np.uint8), 1)}
"""All others are in ``text``, which is JSON in UTF-8."""


def save_trained(path: Path, design: TrainedDesign) -> None:
    """Write a design; an older file at ``path`` is replaced in one step or not at all."""
    text = {
        "format": FORMAT,
        "rule": design.rule,
        "training": list(design.training),
        "settings": dict(design.settings),
    }
    kept = _NUMBERS | (_COUNTS if design.counts else {})
    arrays = {name: np.array(getattr(design, name), dtype, order="C") for name, (dtype, _) in kept.items()}
    arrays["text"] = np.frombuffer(json.dumps(text, sort_keys=True).encode(), dtype=np.uint8)
    write_npz(path, arrays | {"checksum": np.frombuffer(_checksum(arrays), dtype=np.uint8)})


def load_trained(path: Path) -> TrainedDesign:
    """Read a design back.

    Raises
    ------
    InputError
        Where the file cannot be read, is none that training wrote, or was changed since.
    """
    try:
        check_file(path)
        arrays, present = read_npz_members(path, {*_MEMBERS, *_COUNTS, "checksum"}, _LIMITS)
    except OSError as error:
        raise InputError(
            field=f"trained design {path.name}",
            got=error.strerror or str(error),
            wanted="a file that mri-design train wrote",
        ) from error
    checksum = arrays.pop("checksum", None)
    kinds = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    wanted = _MEMBERS | (_COUNTS if "counts" in arrays else {})
    if checksum is None or kinds != wanted or len(present) != len(wanted) + 1:
        raise _damaged(path, "other arrays")
    if checksum.tobytes() != _checksum(arrays):
        raise _damaged(path, "a file that was changed after it was written")
    try:
        text = json.loads(arrays["text"].tobytes())
        known = text["format"] == FORMAT
        training = tuple(str(name) for name in text["training"])
        rule, settings = str(text["rule"]), dict(text["settings"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"an unreadable text ({error})") from error
    if not known:
        raise _damaged(path, f"format {text['format']!r}")
    grid = arrays["grid"].tolist()
    if len(grid) != 2:
        raise _damaged(path, f"a grid of {len(grid)} axes")
    return TrainedDesign(
        grid=(grid[0], grid[1]),
        lines=tuple(arrays["lines"].tolist()),
        n_start=int(arrays["n_start"]),
        profile=arrays["profile"],
        errors=arrays["errors"],
        rule=rule,
        reconstructions=int(arrays["reconstructions"]),
        unconverged=int(arrays["unconverged"]),
        training=training,
        counts=tuple(arrays["counts"].tolist()) if "counts" in arrays else (),
        settings=settings,
    )


def _checksum(arrays: Mapping[str, Any]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def _damaged(path: Path, got: str) -> InputError:
    return InputError(
        field=f"trained design {path.name}",
        got=got,
        wanted="a file as mri-design train wrote it",
        cure="Train again, or copy the file again.",
    )
