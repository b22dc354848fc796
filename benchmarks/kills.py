"""Every verb killed at random moments (kill -9) and called again: does it go on to identical results?

    OMP_NUM_THREADS=1 python benchmarks/kills.py

runs each verb twice without interruption on small scans, then again and again with SIGKILL for the whole process group
at a random moment of the time that it takes, each time going on as the verb says (`--resume`, `--overwrite`, or the
same command), until it comes to an end. Every file that it leaves is compared with those of the uninterrupted runs.
Writes results/reliability/kills.csv and the table of kills.md. The verb `demo`, which has no small size, is
killed where `--verbs` names it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from parts.pages import put_table

from mri_design.evaluation.tables import Row, write_csv
from mri_design.scan.simulation import load_phantom

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.simulated_scanner import stream_of

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results/reliability"
KILLS, MATRIX, LONGEST = 50, 32, 900
QUICK = """
[coils]
maps = "auto:8"
[phase]
model = "modulus"
[[prior]]
kind = "pixels"
rate = 100.0
[[prior]]
kind = "differences"
rate = 10.0
[inference]
samples = 6
loops = 4
[reconstruction]
band_factors = false
"""
TIMES = ("seconds", "duration")
"""Words in the names of columns and entries about time, which differ from run to run."""


@dataclass(frozen=True)
class Verb:
    """One call of the command line.

    Parameters
    ----------
    name : str
        For the table.
    words : tuple of str
        The verb and its arguments; `--out` and its folder or file come last.
    made : str
        Name of what stands behind `--out`.
    resume : tuple of str
        What is added to go on.
    records : tuple of str
        Files that say what happened, one after the other: after an interruption more has happened.
    """

    name: str
    words: tuple[str, ...]
    made: str = "run"
    resume: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


def verbs(matrix: int) -> list[Verb]:
    """The calls, all in a folder that `prepare` filled."""
    quick, again = ("--recipe", "quick.toml"), ("--resume",)
    half = str(matrix // 2)
    of_lines = ("--lines", half, *quick)
    return [
        Verb("design", ("design", "scan.npz", *of_lines), resume=again),
        Verb("design, four coils", ("design", "coils.npz", *of_lines), resume=again),
        Verb("design, plane", ("design", "scan.npz", "--encoding", "plane", "--lines", "96", *quick), resume=again),
        Verb("protocol", ("protocol", "stack.npz#all", "--test", "scan.npz", *of_lines, "--jobs", "1"), resume=again),
        Verb(
            "adapt",
            ("adapt", "readouts.mrd", *of_lines),
            resume=again,
            records=("readouts.mrd", "messages.jsonl", "latency.csv"),
        ),
        Verb(
            "compare",
            (
                *("compare", "stack.npz#all", "--train", "scan.npz", "--lines", f"8,{half}", "--seeds", "2"),
                *("--strategies", "calibrated,vd-polynomial,low-pass", "--jobs", "2", *quick),
            ),
            resume=again,
        ),
        Verb(
            "protocol --rule",
            ("protocol", "scan.npz", "stack.npz#all", "--rule", "residual-greedy", *of_lines, "--jobs", "1"),
            made="order.npz",
            resume=again,
        ),
        Verb("recon", ("recon", "coils.npz", *quick), resume=again),
        Verb("export of a scan", ("export", "coils.npz"), made="scan.cfl", resume=("--overwrite",)),
        Verb("export", ("export", "designed"), made="lines.csv", resume=("--overwrite",)),
    ]


def prepare(folder: Path, matrix: int) -> None:
    """Scans, readouts as an MRD client sends them, and a recipe of small settings."""
    (folder / "quick.toml").write_text(QUICK)
    scans = {
        name: load_phantom(phantom, shape=(matrix, matrix), n_coils=coils, rng=np.random.default_rng(7))
        for name, phantom, coils in (("scan", "brain", 1), ("head", "shepp-logan", 1), ("coils", "brain", 4))
    }
    for name, scan in scans.items():
        np.savez(
            folder / f"{name}.npz", kspace=scan.kspace, reference=scan.reference, noise_variance=scan.noise_variance
        )
    stack = [
        np.concatenate([getattr(scans[name], what) for name in ("scan", "head")]) for what in ("kspace", "reference")
    ]
    np.savez(folder / "stack.npz", kspace=stack[0], reference=stack[1], noise_variance=scans["scan"].noise_variance)
    kspace = scans["scan"].kspace[0]
    (folder / "readouts.mrd").write_bytes(stream_of(kspace))


def started(verb: Verb, folder: Path, out: Path, more: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """The verb in a process group of its own."""
    command = [sys.executable, "-m", "mri_design.cli.main", *verb.words, "--out", str(out), *more]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for a verb that has to succeed; runs that did not converge count as such."""
    _, said = process.communicate(timeout=LONGEST)
    if process.returncode not in (0, 4):
        raise RuntimeError(f"exit code {process.returncode}: {process.args!r}\n{said.decode()[-2000:]}")


def killed(process: subprocess.Popen[bytes], after: float) -> bool:
    """Whether the signal came before the end; if not, the verb has to have succeeded."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    ended(process)
    return False


def contents(out: Path, records: Sequence[str]) -> dict[str, object]:
    """Files that a verb left, by name, without what is about time; reports and records by name alone."""
    places = sorted(out.rglob("*")) if out.is_dir() else sorted(out.parent.glob(f"{out.stem}*"))
    return {
        str(place.relative_to(out if out.is_dir() else out.parent)): _content(place, records)
        for place in places
        if place.is_file()
    }


def _content(place: Path, records: Sequence[str]) -> object:
    if place.suffix == ".html" or place.name in records:
        return None
    if place.suffix == ".npz":
        with np.load(place) as archive:
            kept = {name: archive[name] for name in archive if not _of_time(name)}
        if set(kept) == {"text", "numbers"}:  # a dataclass as the program keeps it: JSON, and the bytes of its arrays
            return _timeless(json.loads(kept["text"].tobytes())), kept["numbers"].tobytes()
        return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in kept.items()}
    if place.suffix == ".csv":
        with place.open(newline="") as stream:
            return [{name: text for name, text in row.items() if not _of_time(name)} for row in csv.DictReader(stream)]
    if place.suffix == ".json":
        stored = json.loads(place.read_text())
        if place.name == "manifest.json":
            stored["inputs"] = [file for file in stored["inputs"] if file["name"] not in records]
            stored["settings"].pop("readouts_repeated", None)
        return _timeless(stored)
    return place.read_bytes()


def _of_time(name: str) -> bool:
    return any(word in name for word in TIMES)


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if not _of_time(name) and name != "command"}
    return [_timeless(part) for part in value] if isinstance(value, list) else value


def row_of(verb: Verb, kills: int, folder: Path, rng: np.random.Generator) -> Row:
    """Kill one verb so many times; each kill whose run went on to identical files counts."""

    def where(name: str) -> Path:
        place = folder / f"{verb.name} {name}"
        place.mkdir()
        return place / verb.made

    whole, twice = where("whole"), where("twice")
    began = time.perf_counter()
    ended(started(verb, folder, whole))
    seconds = time.perf_counter() - began
    ended(started(verb, folder, twice))
    reference, second = (contents(place, verb.records) for place in (whole, twice))
    unstable = sorted(name for name in reference if reference[name] != second.get(name))
    moments, done, identical, runs = list[float](), 0, 0, 0
    while done < kills:
        out, chain = where(f"killed-{runs}"), 0
        runs += 1
        more: Sequence[str] = ()
        while done + chain < kills:
            moment = float(rng.uniform(0, seconds))
            if not killed(started(verb, folder, out, more), moment):
                break
            moments.append(moment)
            chain, more = chain + 1, verb.resume
        else:
            ended(started(verb, folder, out, more))
        found = contents(out, verb.records)
        same = found.keys() == reference.keys()
        same = same and all(found[name] == reference[name] for name in reference if name not in unstable)
        done, identical = done + chain, identical + chain * same
    return {
        "verb": verb.name,
        "kills": done,
        "runs": runs,
        "identical": identical,
        "files": len(reference),
        "seconds uninterrupted": round(seconds, 1),
        "earliest and latest kill": f"{min(moments):.1f} to {max(moments):.1f} s",
        "not compared": ", ".join([*verb.records, *unstable]),
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS, help="of all verbs together, in turn")
    parser.add_argument("--matrix", type=int, default=MATRIX, help="lines, and samples of each")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--verbs", default="", help="those to kill, as recon,export; all but demo by default")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    options = parser.parse_args()
    known = [*verbs(options.matrix), Verb("demo", ("demo",))]
    asked = options.verbs.split(",") if options.verbs else [verb.name for verb in known[:-1]]
    draws = np.random.default_rng(options.seed).spawn(len(known))
    every = [(verb, rng) for verb, rng in zip(known, draws, strict=True) if verb.name in asked]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, options.matrix)
        ended(started(known[0], folder, folder / "designed", ("--no-report",)))  # compiles, and gives export a run
        rows = list[Row]()
        for n, (verb, rng) in enumerate(every):
            kills = options.kills // len(every) + (n < options.kills % len(every))
            rows.append(row_of(verb, kills, folder, rng))
            print(rows[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(options.out / "kills.csv", rows)
    put_table(options.out / "kills.md", "Killed runs", rows)


if __name__ == "__main__":
    main()
