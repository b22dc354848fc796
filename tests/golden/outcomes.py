"""Outcomes of golden runs, and when two of them count as the same."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from contextlib import chdir
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

import numpy as np

from mri_design import load_phantom
from tests.command_line import called
from tests.golden.runs import RUNS

EXPECTED = Path(__file__).with_name("expected.json")
"""The outcomes of all runs, by name."""
DIGITS = 4  # significant, so that the rounding is well below the tolerance
ABOUT = "~"  # before the numbers of multiplications, where an iteration more or less depends on last bits
ABOUT_TOLERANCE = 1e-2
LONG_TABLES = ("scores.csv", "prediction-lines.csv")  # a column or a row for every line of the grid
SHARES = ", shares "  # between the norm of an array and its shares along fixed directions
NUMBER = re.compile(r"(?<![\w.])([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w.]*[A-Za-z])")


def carried_out(name: str, folder: Path, *more: str) -> dict[str, Any]:
    """Call a run in ``folder``, where it leaves a folder of its name, and return what is kept of it.

    ``more`` words may follow those of the run.

    Figures are not drawn, which would take most of the time: their files are written with nothing in them.

    Raises
    ------
    RuntimeError
        Where the program failed in a way that it does not expect.
    """
    run = RUNS[name]
    (folder / f"{name}.toml").write_text(run.recipe)
    verb = run.words.split()[0]
    out = f"{name}/order.npz" if verb == "train" else name
    if verb == "adapt":
        _measured(folder / run.words.split()[1], coils=3 if "coils" in name else 1)
    if "not-square.npz" in run.words:
        scan = load_phantom("t2w", shape=(24, 40), n_coils=3, rng=np.random.default_rng(0))
        np.savez(folder / "not-square.npz", kspace=scan.kspace[0], reference=scan.reference[0])
    words = [*run.words.split(), "--recipe", f"{name}.toml", "--out", out, *more]
    with chdir(folder):
        result = called(words)
    if result.exit_code not in (0, 4):
        raise RuntimeError(f"{name} ended with {result.exit_code}: {result.output}") from result.exception
    said = {
        "command": run.words,
        "exit_code": result.exit_code,
        "stdout": [_timeless(line) for line in result.stdout.splitlines()],
    }
    return said | _left(folder / name)


def _measured(path: Path, coils: int) -> None:
    """Write a scan of the brain phantom as a scanner would send it: a header and every line, as JSON lines."""
    scan = load_phantom("brain", shape=(32, 32), n_coils=coils, rng=np.random.default_rng(0))
    header = {"lines": 32, "samples": 32, "coils": coils, "noise_variance": scan.noise_variance}
    lines = enumerate(scan.kspace[0].swapaxes(0, 1))  # (coil, kx) each
    readouts = ({"line": line, "real": one.real.tolist(), "imag": one.imag.tolist()} for line, one in lines)
    path.write_text("".join(json.dumps(message) + "\n" for message in (header, *readouts)))


def _timeless(said: str) -> str:
    """A message without the seconds that it took and what had come by then, its numbers rounded."""
    return _rounded(re.sub(r'"seconds": [^,]+, |, "arrived": [^]]+.', "", said)) if said.startswith("{") else said


def _left(folder: Path) -> dict[str, Any]:
    """Files, tables, arrays and headings of a run's folder."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    kept: dict[str, Any] = {
        "files": " ".join(name for name in names if "/" not in name),
        "figures": " ".join(name for name in names if "/" in name),
        "tables": {name: _table(folder / name) for name in names if name.endswith(".csv")},
        "arrays": {
            name: _array(np.load(folder / name)) for name in names if name.endswith(".npy") and name != "mask.npy"
        },
    }
    for table, key in (("lines.csv", "lines"), ("acquisition.csv", "acquisition")):
        if table in names:
            header, *rows = (folder / table).read_text().splitlines()
            column = header.split(",").index("line")
            kept[key] = " ".join(row.split(",")[column] for row in rows)
    if "mask.npy" in names:
        rows = np.atleast_2d(np.load(folder / "mask.npy"))
        kept["mask"] = " ".join("".join(".#"[int(measured)] for measured in row) for row in rows)
        kept["mask_sha256"] = hashlib.sha256((folder / "mask.npy").read_bytes()).hexdigest()
    if "masks.json" in names:
        kept["masks"] = [_one_line(mask) for mask in json.loads((folder / "masks.json").read_text())]
    if "manifest.json" in names:
        manifest = json.loads((folder / "manifest.json").read_text())
        kept["manifest"] = " ".join(sorted(manifest))
        kept["settings"] = " ".join(sorted(manifest["settings"]))
        kept["status"] = manifest["status"]
    if "report.html" in names:
        kept["headings"] = re.findall(r"<h[12][^>]*>\s*([^<]*?)\s*<", (folder / "report.html").read_text())
    if "order.npz" in names:
        with np.load(folder / "order.npz", allow_pickle=False) as stored:
            kept["arrays"] = {key: _array(stored[key]) for key in sorted(stored)}
    return kept


def _table(path: Path) -> list[str]:
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    timed = [name.endswith("_seconds") for name in header]
    rows = [[ABOUT * (name == "matvecs") + cell for name, cell in zip(header, row, strict=False)] for row in rows]
    header, *told = (",".join(compress(row, map(not_, timed))) for row in (header, *rows))
    if path.name in LONG_TABLES:
        told = [f"{len(told)} rows, the last one:", *told[-1:]]
    return [header, *map(_rounded, told)]


def _array(array: np.ndarray) -> str:
    """Type and shape, then all whole numbers, or a norm and the shares along two fixed directions of what is not."""
    what = f"{array.dtype} {'x'.join(map(str, array.shape)) or 'number'}"
    if array.dtype == np.uint8:  # text, and checksums of it, which name versions
        return "bytes"
    if array.dtype.kind in "bi":
        return f"{what}: {' '.join(str(int(entry)) for entry in array.ravel())}"
    norm = float(np.linalg.norm(array))
    directions = np.random.default_rng(0).standard_normal((2, *array.shape))
    shares = [complex(np.vdot(direction, array)) / norm for direction in directions]
    parts = [f"{part:+.3f}" for share in shares for part in (share.real, share.imag)]
    return f"{what}: norm {_shorter(str(norm))}{SHARES}{' '.join(parts if np.iscomplexobj(array) else parts[::2])}"


def _one_line(mask: dict[str, Any]) -> str:
    about = " ".join(f"{key} {value}" for key, value in sorted(mask.items()) if key != "order")
    return f"{about}: {' '.join(map(str, mask['order']))}"


def _rounded(text: str) -> str:
    return NUMBER.sub(lambda found: _shorter(found.group()), text)


def _shorter(number: str) -> str:
    """The number with at most so many digits; one that is not whole keeps its point, by which it can be told."""
    digits = number.partition("e")[0].replace(".", "").lstrip("+-0")
    if _whole(number) or len(digits) <= DIGITS:
        return number
    sign = "+" if number.startswith("+") else ""
    text = f"{float(number):{sign}#.{DIGITS}g}"
    return f"{text}0" if text.endswith(".") else text


def _whole(number: str) -> bool:
    return number.lstrip("+-").isdigit()


def differences(expected: Any, found: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Every place where two outcomes differ, with both values.

    Words, whole numbers, and what is there at all have to be the same; other numbers but for ``tolerance``, relative,
    or the last digit that was recorded.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from differences(expected.get(key), found.get(key), tolerance, f"{place}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, tolerance, f"{place}/{i}")
    elif isinstance(expected, str) and isinstance(found, str):
        if not _agree(expected, found, tolerance):
            yield f"{place}: was {expected!r}, is {found!r}"
    elif expected != found:
        yield f"{place}: was {expected!r}, is {found!r}"


def _agree(expected: str, found: str, tolerance: float) -> bool:
    """Whether two texts are the same but for small changes of the numbers in them.

    Shares are of an array's norm: where the array changes by a part of it, they change by as much, whatever they are.
    """
    (expected, _, shares), (found, _, others) = expected.partition(SHARES), found.partition(SHARES)
    pairs = [*_numbers(expected, found), *((one, other, SHARES) for one, other, _ in _numbers(shares, others))]
    same_words = NUMBER.sub("", expected + shares) == NUMBER.sub("", found + others)
    return same_words and all(_close(one, other, tolerance, before) for one, other, before in pairs)


def _numbers(expected: str, found: str) -> Iterator[tuple[str, str, str]]:
    """Pairs of numbers at the same places, and what stands before each."""
    pieces, others = NUMBER.split(expected), NUMBER.split(found)
    yield from zip(pieces[1::2], others[1::2], pieces[::2], strict=False)


def _close(one: str, other: str, tolerance: float, before: str) -> bool:
    if before.endswith(ABOUT):
        return math.isclose(float(one), float(other), rel_tol=max(ABOUT_TOLERANCE, tolerance))
    if _whole(one) and _whole(other):
        return int(one) == int(other)
    last_digit = 0.0 if "e" in one else 1.01 * 10.0 ** -len(one.partition(".")[2])
    if before == SHARES:
        return abs(float(one) - float(other)) <= max(tolerance, last_digit)
    return math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=last_digit)
