"""Folders of runs with few files, as a finished run leaves them; and what a folder gives back, part by part."""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.evaluation import RunFolder
from mri_design.runs.stored_run import FILES, StoredRun, write_result


def left(path: Path, run: StoredRun, **manifest: Any) -> Path:
    """The folder of a run: its arrays, what is read again, and a manifest."""
    with RunFolder(path, overwrite=True) as folder:
        folder.begin()
        for stem, part in FILES.items():
            if (array := getattr(run, part)) is not None:
                folder.write_array(f"{stem}.npy", array)
        write_result(folder, run)
        folder.write_text("manifest.json", json.dumps({"lines": run.chosen, "settings": {}, **manifest}))
    return path


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Paths of all that is not the same in two objects: types, plain values, and the bits of arrays."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if (one.dtype, one.shape, one.tobytes()) != (other.dtype, other.shape, other.tobytes()):
            yield path
    elif is_dataclass(one):
        for each in fields(one):
            if each.compare and each.name != "computation":
                yield from differences(getattr(one, each.name), getattr(other, each.name), f"{path}.{each.name}")
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key, value in one.items():
            yield from differences(value, other[key], f"{path}[{key}]")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{path}[{at}]")
    elif type(one) is not type(other) or (one != other and one == one):
        yield path
