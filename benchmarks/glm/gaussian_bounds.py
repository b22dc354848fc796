"""The variational Gaussian bound against CPU time, for every engine that computes it; the double loop beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TypeVar

import numpy as np

import mri_design as md
from mri_design.evaluation.tables import Row
from mri_design.inference.base import InferenceMethod, StepInfo
from mri_design.inference.references import CholeskyGaussian, OpperArchambeau

from .gaussian_process import classification, digits

NATURAL, DOUBLE_LOOP = "natural gradient", "double loop (another, looser bound)"
ENGINES: dict[str, Callable[[], InferenceMethod]] = {
    NATURAL: lambda: md.VariationalGaussian(md.Exact(), tolerance=1e-4, iterations=300),
    "Cholesky, L-BFGS": lambda: CholeskyGaussian(iterations=5000, tolerance=1e-5),
    "decoupled (LCL)": lambda: md.DecoupledGaussian(tolerance=1e-4, iterations=60),
    "Opper-Archambeau, L-BFGS": lambda: OpperArchambeau(iterations=20_000, tolerance=1e-4),
    DOUBLE_LOOP: lambda: md.DoubleLoop(md.Exact(), outer_iterations=60, tolerance=1e-5),
}
LARGE = (NATURAL, "Cholesky, L-BFGS", DOUBLE_LOOP)
"""Engines run at every size; the others stop at ``Case.small``."""


@dataclass(frozen=True)
class Case:
    """One classification problem.

    Parameters
    ----------
    count : int
        N.
    log_length, log_deviation : float
        Of the kernel.
    """

    count: int
    log_length: float
    log_deviation: float

    @property
    def name(self) -> str:
        """For tables."""
        return f"N={self.count}, log ell={self.log_length:g}, log sigma={self.log_deviation:g}"


Step = TypeVar("Step")


class _OutOfTime(Exception):  # noqa: N818 (no error: a limit of ours)
    pass


def bound_rows(cases: Sequence[Case], small: int, limit: float, data: Path | None) -> list[Row]:
    """One row per step that an engine told of; ``limit`` is the CPU seconds given to each.

    Parameters
    ----------
    small : int
        N up to which every engine runs.
    """
    rows: list[Row] = []
    for case in cases:
        model = classification(*digits(data, case.count), case.log_length, case.log_deviation)
        for name, make in ENGINES.items():
            if case.count <= small or name in LARGE:
                rows += _timed(case, name, make(), model, limit)
    return rows


def _timed(case: Case, name: str, engine: InferenceMethod, model: md.GeneralizedLinearModel, limit: float) -> list[Row]:
    steps: list[tuple[float, float]] = []
    began = process_time()

    def note(info: StepInfo) -> None:
        if info.criterion is not None:
            steps.append((process_time() - began, info.criterion))
        if process_time() - began > limit:
            raise _OutOfTime

    try:
        posterior = engine.infer(model, np.random.default_rng(0), callback=note)
        status = posterior.convergence.status.name.lower().replace("_", " ")
        steps.append((process_time() - began, posterior.criterion[-1]))
    except _OutOfTime:
        status = f"stopped at {limit:g} s"
    return [
        {
            "case": case.name,
            "N": case.count,
            "engine": name,
            "step": number,
            "CPU s": seconds,
            "-log bound": f"{-md.evidence_bound(model, phi):.12g}",  # as text: tables keep six digits of numbers
            "ended": status,
        }
        for number, (seconds, phi) in kept(list(enumerate(steps, 1)))
    ]


def kept(steps: list[Step], most: int = 150) -> list[Step]:
    """At most so many of an engine's steps, first and last among them, spread over the logarithm of their number."""
    if len(steps) <= most:
        return steps
    chosen = np.unique(np.geomspace(1, len(steps), most).round().astype(int)) - 1
    return [steps[k] for k in chosen]


def summary(rows: Sequence[Row]) -> list[Row]:
    """Per case and engine: the last bound, how far above the best one it is, and the time to within 1e-3 of that."""
    found: list[Row] = []
    for case in dict.fromkeys(str(row["case"]) for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        best = min(float(str(row["-log bound"])) for row in of_case)
        for name in dict.fromkeys(str(row["engine"]) for row in of_case):
            trace = [row for row in of_case if row["engine"] == name]
            last = float(str(trace[-1]["-log bound"]))
            near = [float(str(row["CPU s"])) for row in trace if float(str(row["-log bound"])) <= best + 1e-3]
            found.append(
                {
                    "case": case,
                    "engine": name,
                    "-log bound": last,
                    "above the best, relative": (last - best) / abs(best),
                    "steps": trace[-1]["step"],
                    "CPU s": float(str(trace[-1]["CPU s"])),
                    "CPU s to 1e-3": near[0] if near else None,
                    "ended": trace[-1]["ended"],
                }
            )
    return found
