"""What whole commands cost, all their processes together, and how far two processes get: this version and another.

    OMP_NUM_THREADS=1 python benchmarks/commands.py --against CHECKOUT

Processor seconds of whole commands with compiled loops at hand, both versions in turns, medians over turns. Two jobs
are measured by the longest chain of processor seconds, since a clock tells little on shared cores: until processes can
be copied (by the main process, or by the one that they are copied from, once the main process has begun it), the
busiest copy, and what the main process computes after the first copy, as if no copy worked meanwhile. That is compared
with the same command in one process. Writes commands.csv and jobs.csv, and both tables on the page.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from parts.pages import Kept, put_table

from mri_design import load_phantom
from mri_design.evaluation.tables import Row

OUT = Path(__file__).parents[1] / "results/speed"
RECON = "recon phantom:t2w -s input.matrix=64 --mask {folder}/mask.npy"
COMMANDS = {
    "help": "--help",
    "info of a phantom": "info phantom:t2w",
    "design of a grid, 64 of 256 lines": "design 256 --lines 64 --strategy vd-polynomial --out {out}",
    "recon of 32 of 64 lines, no report": RECON + " --no-report --out {out}",
    "recon of 32 of 64 lines": RECON + " --out {out}",
    "demo": "demo --out {out}",
}
PROTOCOL = "protocol {folder}/eight.npy --slices all --lines 32 --swaps 0 --no-report --quiet --out {out} --jobs {jobs}"
COMPILED = "compare phantom:t2w -s input.matrix=64 --lines 20 --seeds 1 --strategies calibrated,low-pass --out {out}"
POLL = 0.01
"""Seconds between two looks at processes."""
SUBREAPER = 36
"""Of prctl(2): processes whose parent has ended become children of this one, and count as such."""


def inputs(folder: Path) -> None:
    """A mask of 32 of 64 lines, and eight slices of a head, each with noise and a shift of its own."""
    mask = np.zeros(64, dtype=bool)
    mask[27:37] = mask[:63:3] = True
    mask[np.flatnonzero(~mask)[::3][: 32 - mask.sum()]] = True
    np.save(folder / "mask.npy", mask)
    rng = np.random.default_rng(0)
    turns = np.exp(2j * np.pi * np.outer(np.arange(8) % 5 - 2, np.arange(128)) / 128)
    heads = [load_phantom("t2w", shape=(128, 128), rng=rng).kspace[0] * turn[:, None] for turn in turns]
    np.save(folder / "eight.npy", np.array(heads, dtype=np.complex64))
    dims = '{"dims": ["slice", "coil", "ky", "kx"], "noise_variance": 4.9e-5}'
    (folder / "eight.json").write_text(dims, encoding="utf-8")


def begun(tree: Path, words: str, folder: Path, jobs: int = 1) -> subprocess.Popen[bytes]:
    """A command of the version in ``tree``, which keeps its compiled modules apart from those of others."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept |= {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(folder / "cache" / tree.name), "MPLBACKEND": "Agg"}
    out = tempfile.mkdtemp(dir=folder) + "/run"
    command = [sys.executable, "-m", "mri_design.cli.main", *words.format(folder=folder, out=out, jobs=jobs).split()]
    return subprocess.Popen(command, env=kept, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def in_all(tree: Path, words: str, folder: Path) -> float:
    """Processor seconds of all processes of a command, also of those that it has left to themselves."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = begun(tree, words, folder)
    if began.wait() not in {0, 4}:
        raise RuntimeError(f"mri-design {words} failed")
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chain(tree: Path, folder: Path, jobs: int) -> float:
    """The longest chain of processor seconds of a protocol, as the head of this file has it."""
    main = begun(tree, PROTOCOL, folder, jobs)
    spent, parents, at_start, ready = {main.pid: 0.0}, {main.pid: 0}, dict[int, float](), 0.0
    after = 0.0
    while main.poll() is None:
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
            with suppress(OSError):
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                if pid != main.pid and parent not in spent:
                    continue
                new = pid not in spent
                spent[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
                parents.setdefault(pid, parent)
                if new and parent == main.pid:
                    at_start[pid] = spent[main.pid]
                elif new and not after:
                    after = spent[main.pid]
                    ready = max(after, at_start.get(parent, 0.0) + spent[parent])
        time.sleep(POLL)
    copies = [seconds for pid, seconds in spent.items() if pid != main.pid and parents[pid] != main.pid]
    return ready + max(copies) + spent[main.pid] - after if copies else spent[main.pid]


def main() -> None:
    """Measure and write; rows that are not chosen stay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="checkout of the other version")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=[*COMMANDS, "jobs"], default=[*COMMANDS, "jobs"])
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    trees = {"here": Path(__file__).parents[1], "there": chosen.against.resolve()}
    commands, jobs = Kept.at(chosen.out / "commands.csv", "command"), Kept.at(chosen.out / "jobs.csv", "version")
    targets = Kept.at(chosen.out / "targets.csv", "what")

    def met(what: str, target: str, measured: float, unit: str, reached: bool) -> None:
        row: Row = {
            "what": what,
            "target": target,
            "measured": measured,
            "unit": unit,
            "met": "yes" if reached else "no",
        }
        targets.put(row)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs(folder)
        for tree in trees.values():  # modules, templates and loops are compiled before anything is measured
            in_all(tree, COMPILED, folder)
        for what in (one for one in COMMANDS if one in chosen.only):
            turns = [{v: in_all(t, COMMANDS[what], folder) for v, t in trees.items()} for _ in range(chosen.turns)]
            here, there = (statistics.median(turn[version] for turn in turns) for version in trees)
            ratio = statistics.median(turn["here"] / turn["there"] for turn in turns)
            commands.put(
                {"command": what, "here, s": here, "there, s": there, "here / there": ratio, "turns": chosen.turns}
            )
            if what == "demo":
                met("make demo, processor seconds, on shared cores", "<= 35", here, "s", here <= 35)
        for version, tree in trees.items() if "jobs" in chosen.only else ():
            found = [(chain(tree, folder, 1), chain(tree, folder, 2)) for _ in range(chosen.turns)]
            one, two = (statistics.median(turn[i] for turn in found) for i in range(2))
            gain = statistics.median(turn[0] / turn[1] for turn in found)
            jobs.put({"version": version, "one job, s": one, "two jobs, s": two, "times as fast": gain})
            if version == "here":
                what = "protocol of eight slices, two jobs against one, by the longest chain of processor seconds"
                met(what, ">= 1.7", gain, "times as fast", gain >= 1.7)
    put_table(chosen.out / "README.md", "Commands", list(commands.rows.values()))
    put_table(chosen.out / "README.md", "Two jobs", list(jobs.rows.values()))


if __name__ == "__main__":
    main()
