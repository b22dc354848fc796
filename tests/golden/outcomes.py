"""A golden run in a process, the arrays that it leaves, and how two versions of them differ."""

from __future__ import annotations

import csv
import importlib
import io
import os
import runpy
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mri_design.experiment import load_trained
from tests.simulated_scanner import stream_of
from tests.undrawn import undrawn

ROOT = Path(__file__).resolve().parents[2]
Outcome = dict[str, NDArray[Any]]
"""Arrays by name: the exit code, every stored array, the columns of every table, and zero for every other file."""
SECONDS = "processor seconds"
"""The name, among a run's arrays, of the least time over all turns."""


def carried_out(name: str, folder: Path, *more: str, tree: Path = ROOT) -> Outcome:
    """Make a run in this process, where ``folder/name`` is left by it, and return its outcome.

    Parameters
    ----------
    name : str
        A key of ``RUNS`` of the tree.
    folder : Path
        The folder of all runs, with the files that are made by earlier ones.
    *more : str
        Words that follow those of the run.
    tree : Path
        Repository whose package this process imports. Figures are written empty, as drawing would take most of the
        time.
    """
    runs = runs_of(tree)
    words, recipe = shlex.split(runs[name].words), runs[name].recipe
    _write_inputs(folder)
    with chdir(folder), undrawn():
        if words[0] == "python":
            Path(name).mkdir()
            with chdir(name), redirect_stderr(io.StringIO()):
                runpy.run_path(str(tree / "tests/golden" / words[1]))
            ended, printed = 0, ""
        else:
            Path(f"{name}.toml").write_text(recipe)
            out = f"{name}/order.npz" if {"train", "--rule"} & {*words} else name
            Path(out).parent.mkdir(exist_ok=True)
            ended, printed = _called(tree, [*words, "--recipe", f"{name}.toml", "--out", out, *more])
    if ended not in (0, 4):
        print(f"{name} ended with {ended}: {printed}", file=sys.stderr)
    return {"exit code": np.array(ended)} | _left(folder / name)


def runs_of(tree: Path) -> Mapping[str, Any]:
    """The runs of a tree, which may call an option otherwise than another tree does."""
    return runpy.run_path(str(tree / "tests/golden/runs.py"))["RUNS"]


def _called(tree: Path, words: list[str]) -> tuple[int, str]:
    """Exit code and printed text of the tree's program, called with these words."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["mri-design"].partition(":")
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with mock.patch.object(sys, "argv", ["mri-design", *words]), redirect_stdout(printed), redirect_stderr(printed):
        try:
            getattr(importlib.import_module(module), function)()
            ended = 0
        except SystemExit as end:
            ended = int(end.code or 0)
    printed.flush()
    return ended, printed.buffer.getvalue().decode()


@cache
def _write_inputs(folder: Path) -> None:
    """Write a scan of three coils as an array, and scans of one and three coils as a scanner would send them.

    They are made without the package, so that every version gets the same.
    """
    kspace, image = _scan((24, 40), coils=3)
    np.savez(folder / "not-square.npz", kspace=kspace, reference=image)
    for name, coils in (("readouts", 1), ("readouts-coils", 3)):
        (folder / f"{name}.mrd").write_bytes(stream_of(_scan((32, 32), coils)[0]))


VARIANCE = 1e-4  # of the noise, real and imaginary part together; the object has moduli up to 1


def _scan(shape: tuple[int, int], coils: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """K-space (coil, ky, kx), and image (y, x): ellipses of smooth phase, seen by coils around them."""
    rng = np.random.default_rng(0)
    y, x = (np.linspace(-1, 1, n).reshape(-1, *(1,) * after) for n, after in zip(shape, (1, 0), strict=True))
    image = 0.6 * ((x / 0.8) ** 2 + (y / 0.9) ** 2 < 1) + 0.4 * ((x + 0.3) ** 2 + (y - 0.2) ** 2 < 0.06)
    image = (image - 0.3 * (((x - 0.25) / 0.2) ** 2 + ((y + 0.3) / 0.35) ** 2 < 1)) * np.exp(0.8j * (x + y * y))
    angles = 2 * np.pi * np.arange(coils).reshape(-1, 1, 1) / coils
    maps = np.exp(-0.5 * ((x - np.cos(angles)) ** 2 + (y - np.sin(angles)) ** 2) + 1j * angles)
    maps = maps / np.sqrt((abs(maps) ** 2).sum(axis=0))
    shifted = np.fft.ifftshift(maps * image, axes=(1, 2))
    kspace = np.fft.fftshift(np.fft.fft2(shifted, norm="ortho"), axes=(1, 2))
    noise = rng.standard_normal((2, *kspace.shape)) * np.sqrt(VARIANCE / 2)
    return (kspace + noise[0] + 1j * noise[1]).astype(np.complex64), image


def _left(folder: Path) -> Outcome:
    """What a run has left: names of files, arrays, and columns of tables, but for times and texts in archives."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    found: Outcome = {}
    for name in files:
        if name.endswith(".npy"):
            found[name] = np.load(folder / name, allow_pickle=False)
        elif name == "order.npz":
            order = load_trained(folder / name)
            found |= {f"{name}:{key}": np.asarray(getattr(order, key)) for key in ("lines", "profile", "errors")}
        elif name.endswith(".npz"):
            with np.load(folder / name, allow_pickle=False) as stored:
                kept = {f"{name}:{key}": stored[key] for key in stored if "seconds" not in key}
                found |= {key: array for key, array in kept.items() if array.dtype != np.uint8}  # text, of versions
        elif name.endswith(".csv"):
            with (folder / name).open(newline="", encoding="utf-8") as stream:
                header, *rows = csv.reader(stream)
            columns = zip(header, zip(*rows, strict=True), strict=True) if rows else ((key, ()) for key in header)
            found |= {f"{name}:{key}": _column(cells) for key, cells in columns if "seconds" not in key}
        else:
            found[name] = np.array(0)
    return found


def _column(cells: tuple[str, ...]) -> NDArray[Any]:
    """A column of numbers, or of texts where one cell is neither empty nor a number."""
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.array(cells)


def differences(before: Outcome, now: Outcome, rounding: float = 0.0) -> Iterator[tuple[str, str]]:
    """Names of what differs, and by how much.

    Numbers are the same where all their bits are; with ``rounding``, where they differ by no more than this part of the
    array's largest modulus, which is how the difference is given. Whole numbers and texts must be the same.
    """
    for key in sorted((before.keys() | now.keys()) - {SECONDS}):
        if key not in now or key not in before:
            yield key, "is no longer there" if key in before else "is new"
            continue
        one, other = before[key], now[key]
        numbers = one.dtype.kind in "fc"
        if one.shape != other.shape or (one.dtype != other.dtype and (numbers or one.dtype.kind != other.dtype.kind)):
            yield key, f"{one.dtype} {one.shape} has become {other.dtype} {other.shape}"
        elif numbers and one.tobytes() != other.tobytes() and (not rounding or not _gap(one, other) <= rounding):
            yield key, f"{_gap(one, other):.1e}"
        elif not numbers and (one != other).any():
            yield key, f"{np.count_nonzero(one != other)} of {one.size} entries"


def _gap(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The largest difference over the largest modulus; infinite where only one is finite."""
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    finite = np.isfinite(one)
    return float(abs(one - other)[finite].max(initial=0) / abs(one)[finite].max(initial=np.finfo(float).tiny))


def make(tree: str, folder: str, *names: str) -> None:
    """Make these runs, and keep their outcomes next to their folders, with the seconds of worker processes, too."""
    for name in names:
        before = sum(os.times()[:4])
        outcome = carried_out(name, Path(folder), tree=Path(tree))
        outcome[SECONDS] = np.array(sum(os.times()[:4]) - before)
        np.savez(Path(folder, f"{name}.outcome.npz"), allow_pickle=False, **outcome)
