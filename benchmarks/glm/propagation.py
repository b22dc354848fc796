"""The part on Laplace propagation: sweeps to the MAP, Gaussian processes in chunks, head starts for SMO."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from glm.chunk_sweeps import SweepRun, SweepTrace, memory_rows, sweep_rows
from glm.kernel_sweeps import CHUNK, GOALS, RANK, kernel_rows, subset
from glm.libsvm_text import read_libsvm
from glm.part_folder import PartFolder
from glm.propagation_text import report
from glm.smo_seeds import seed_rows
from glm.targets import Target
from matplotlib.figure import Figure

from mri_design.errors import InputError
from mri_design.evaluation.tables import Row
from mri_design.operators.base import Array

SIZES = {
    "Adult1": 1605, "Adult2": 2265, "Adult3": 3185,
    "Web1": 2477, "Web2": 3470,
}  # fmt: skip
"""Cases of the smaller of the published subsets; ours of the same sizes are drawn with a seed."""
FEATURES = {"a9a": 123, "w8a": 300}
SEED_CHUNKS = {"Adult1": 5, "Web1": 5}
PRICES = (0.1, 0.5, 1.0, 5.0)
PARTITIONS = (0, 1, 2)
RUNS = (SweepRun("serial", "serial", 4), SweepRun("parallel", "parallel", 6))
DAMPED = SweepRun("serial, damped by half", "serial", 4, 0.5)
GOAL = 1e-8


def run(out: Path, data: Path | None, quick: bool) -> list[Target]:
    """Measure, write ``<out>/propagation``, return the targets.

    Raises
    ------
    InputError
        Where the full study finds no data.
    """
    folder = PartFolder(out, "propagation", quick)
    if quick:
        rows, labels = _toy(600, 12)
        cases, chunks, rank, chunk = {"toy": _toy(120, 8)}, {"toy": 3}, 30, 40
        prices: dict[str, Sequence[float]] = {"toy": (0.5,)}
        name, n_chunks, inputs = "toy", 10, []
    else:
        if data is None:
            raise InputError(field="data", got="no folder", wanted="a folder with a9a and w8a", cure="Give --data.")
        whole = {part: read_libsvm(data / part, width) for part, width in FEATURES.items()}
        dense = {part: (sparse.toarray(), labels) for part, (sparse, labels) in whole.items()}
        rows, labels = dense["a9a"]
        cases = {
            case: subset(*dense["a9a" if case.startswith("Adult") else "w8a"], size) for case, size in SIZES.items()
        }
        chunks, rank, chunk, prices = SEED_CHUNKS, RANK, CHUNK, dict.fromkeys(SEED_CHUNKS, PRICES)
        name, n_chunks, inputs = "a9a", 65, [data / part for part in FEATURES]
    table, traces = _all_partitions(name, rows, labels, n_chunks)
    with tempfile.TemporaryDirectory() as scratch:
        table += memory_rows(name, rows, labels, n_chunks, Path(scratch))
    table += kernel_rows(cases, rank, chunk)
    table += seed_rows({case: cases[case] for case in chunks}, prices, chunks, rank)
    folder.write(
        report(name, table, traces, GOALS),
        table,
        {"sweeps.png": _figure(name, traces, table)},
        settings={
            "chunks": n_chunks, "partition seeds": PARTITIONS, "subset seed": 0, "rank": rank,
            "chunk of the kernel": chunk,
            "C": prices, "chunks of the seeds": chunks, "prior precision": 1.0,
        },
        inputs=inputs,
    )  # fmt: skip
    return _targets(name, n_chunks, table, traces)


def _all_partitions(
    name: str, rows: Array, labels: Array, chunks: int
) -> tuple[list[Row], dict[str, list[SweepTrace]]]:
    table: list[Row] = []
    traces: dict[str, list[SweepTrace]] = {}
    for seed in PARTITIONS:
        runs = (*RUNS, DAMPED) if seed == PARTITIONS[0] else RUNS
        found, by_schedule = sweep_rows(name, rows, labels, chunks, runs, seed)
        table += found
        for schedule, trace in by_schedule.items():
            traces.setdefault(schedule, []).append(trace)
    return table, traces


def _toy(count: int, features: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(features)
    rows = (rng.random((count, features)) < 0.4).astype(float)
    score = rows @ rng.standard_normal(features) + rng.standard_normal(count)
    return rows, np.where(score > np.median(score), 1.0, -1.0)


def _targets(name: str, chunks: int, table: list[Row], traces: dict[str, list[SweepTrace]]) -> list[Target]:
    worst = {schedule: np.max([trace.largest for trace in found], axis=0) for schedule, found in traces.items()}
    targets = [
        Target(
            f"{name}, {chunks} chunks: largest error of a weight after {sweeps} {schedule} sweeps, "
            f"worst of {len(PARTITIONS)} partitions",
            GOAL, float(worst[schedule][sweeps - 1]), "1",
        )
        for schedule, sweeps in (("serial", 3), ("parallel", 6))
    ]  # fmt: skip
    covariance = max(trace.covariance_error for key in ("serial", "parallel") for trace in traces[key])
    targets.append(Target(f"{name}: covariance to the inverse Hessian, largest entry", GOAL, covariance, "1"))
    kernel = [row for row in table if row["section"] == "kernel"]
    for schedule in ("serial", "parallel"):
        needed = [row[f"sweeps to {GOALS[0]:g}"] for row in kernel if row["schedule"] == schedule]
        most = None if None in needed else max(int(str(n)) for n in needed)
        text = f"Gaussian processes: sweeps to {GOALS[0]:g} of the MAP, {schedule}, most of {len(needed)} data sets"
        targets.append(Target(text, None, most, "sweeps"))
    seeded = [row for row in table if row["section"] == "seeds" and row["schedule"] != "none"]
    for word, pick in (("most", max), ("least", min)):
        saved = pick(float(str(row["steps saved, times"])) for row in seeded)
        targets.append(Target(f"steps that a seed saves SMO, {word}", None, saved, "times"))
    for row in table:
        if row["section"] == "memory":
            text = (
                f"{name}, {chunks} chunks: peak with rows in {'a ' if row['rows in'] == 'file' else ''}{row['rows in']}"
            )
            targets.append(Target(text, None, float(str(row["peak MB"])), "MB"))
    return targets


def _figure(name: str, traces: dict[str, list[SweepTrace]], table: list[Row]) -> Figure:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (schedule, found), mark in zip(traces.items(), "os^", strict=True):
        for number, trace in enumerate(found):
            sweeps = np.arange(1, len(trace.largest) + 1)
            left.semilogy(sweeps, trace.largest, f"{mark}-", color=f"C{'os^'.index(mark)}", alpha=0.7,
                          label=schedule if number == 0 else None)  # fmt: skip
    left.axhline(GOAL, color="0.6", linewidth=0.8)
    left.set(xlabel="sweep", ylabel="largest error of a weight", title=f"{name}: distance from the MAP")
    left.legend()
    seeded = [row for row in table if row["section"] == "seeds" and row["schedule"] != "none"]
    for number, case in enumerate(dict.fromkeys(str(row["data"]) for row in seeded)):
        for schedule, style in (("serial", "-"), ("parallel", "--")):
            chosen = [
                r for r in seeded if r["data"] == case and r["schedule"] == schedule and r["pairs"] == "second order"
            ]
            right.semilogx(
                [float(str(row["C"])) for row in chosen], [float(str(row["steps saved, times"])) for row in chosen],
                f"o{style}", color=f"C{number}", label=f"{case}, {schedule}",
            )  # fmt: skip
    right.axhline(1, color="0.6", linewidth=0.8)
    right.set(xlabel="C", ylabel="SMO steps without / with a seed", title="Head start from one sweep")
    right.legend(fontsize=7)
    return figure
