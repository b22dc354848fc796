"""The report of a design over shots: how the trajectory grew, what the angles scored, and what a point becomes."""

from __future__ import annotations

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.output.page import Block, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.operators.base import Array
from mri_design.operators.encodings import ShotEncoding, count_text
from mri_design.runs.scan_facts import KnownScan
from mri_design.runs.sections.trajectories import curves_figure, point_spread_figure

PANELS = 4
"""Of the trajectory that grows."""
ABOUT_SHOTS = (
    "Errors are of the magnitude; acceleration is pixels of the image over samples. The gridded image compensates for "
    "the density of the samples and knows nothing else."
)
_HONESTLY = (
    "Measured on heads, angles chosen by information make worse images than as many spread evenly over half a turn, by "
    "7 to 24 %: the design is there to be compared with these sets (strategies half-turn, one-missing, golden)."
)


def save_shot_design(folder: RunFolder, trace: DesignTrace, known: KnownScan, shots: ShotEncoding) -> list[Section]:
    """Write shots.csv, mask.npy, trajectory.npz and figures; return the report's section about the design."""
    lines, unit = list(trace.lines), shots.unit
    folder.write_table("shots.csv", _rows(trace, shots))
    folder.write_mask(trace.mask())
    scale, model = known.scan.unit, known.slice_model
    arrays: dict[str, Array] = {
        "kspace": model.kspace[:, lines] * np.float32(scale),
        "trajectory": shots.shots[lines],
        "matrix": np.array(shots.grid),
        "noise_variance": np.array(model.noise_variance * scale**2),
    }
    if model.maps is not None:
        arrays["coil_maps"] = model.maps
    if known.reference is not None:
        arrays["reference"] = np.asarray(known.reference * scale, dtype=np.complex64)
    folder.write_archive("trajectory.npz", arrays)
    counts = sorted({round(count) for count in np.linspace(len(trace.start), len(lines), PANELS) if count >= 1})
    grown = {count_text(count, unit): shots.shots[lines[:count]] for count in counts}
    blocks: list[Block] = [
        curves_figure(
            folder,
            "trajectory",
            grown,
            shots.grid,
            unit,
            f"the first {unit} of the start",
            "Panels go from the start of the design to its end. " + (_HONESTLY if trace.steps else ""),
        )
    ]
    scored = [i for i, step in enumerate(trace.steps) if step.choice.scores is not None]
    if scored and shots.angles is not None:
        first = len(trace.start)
        shown = {
            f"{count_text(first + i, unit)} measured": i for i in (scored[0], scored[len(scored) // 2], scored[-1])
        }
        scores = {title: np.asarray(trace.steps[i].choice.scores) for title, i in shown.items()}
        flags = {title: trace.mask(first + i) for title, i in shown.items()}
        blocks.append(
            saved_figure(
                folder,
                "scores",
                lambda: plots.angle_scores(np.array(shots.angles), scores, flags),
                f"Score of every angle by {trace.strategy}, twice its information in nats, at the first, a middle and "
                "the last decision. Ticks below are the angles measured before it.",
            )
        )
    points = shots.shots[lines].reshape(-1, 2)
    blocks.append(point_spread_figure(folder, count_text(len(lines), unit), points, shots.grid, f"the chosen {unit}s"))
    return [Section("Design", blocks)]


def _rows(trace: DesignTrace, shots: ShotEncoding) -> list[dict[str, object]]:
    first, rows = len(trace.start), list[dict[str, object]]()
    for order, shot in enumerate(trace.lines):
        step = trace.steps[order - first] if order >= first else None
        angle = None if shots.angles is None else float(np.degrees(shots.angles[shot]))
        nats = float("nan") if step is None else step.information
        cost = {} if step is None else {"converged": step.cost.converged, "matvecs": step.cost.matvecs}
        row: dict[str, object] = {"order": order, "shot": shot, "angle_degrees": angle}
        rows.append({**row, "information_nats": nats if np.isfinite(nats) else None, **cost})
    return rows
