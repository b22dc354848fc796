"""Pulseq files of random orders and geometries: exact round trips, and refusals of what cannot be.

    OMP_NUM_THREADS=1 python benchmarks/sequences.py

writes sequences.csv (every round trip), refusals.csv (every refusal), README.md and targets.csv into
results/interoperation; a few minutes. Every file is read back by pypulseq in the program itself, and here once more by
`parts/pulseq_text.py`, which shares no code with either. ``--quick`` is the same on a few small sequences.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence as Many
from pathlib import Path

import numpy as np
from parts.pulseq_text import played
from parts.random_sequences import IMPOSSIBLE, Sequence, random_sequence
from parts.random_shots import ENCODINGS, IMPOSSIBLE_SHOTS, random_shots

from mri_design.errors import MriDesignError
from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv_texts
from mri_design.scan.io.atomic import write_bytes, write_text
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import GAMMA
from mri_design.sequences.verification import LINE_TOLERANCE

OUT = Path(__file__).parents[1] / "results/interoperation"
COMMAND = "OMP_NUM_THREADS=1 python benchmarks/sequences.py"
TRIPS, REFUSALS, LARGEST, SEED = 200, 100, 256, 0
SHOT_TRIPS, SHOT_REFUSALS, LARGEST_SHOTS = 40, 40, 128
ROUNDING = 1e-5
"""Share of a limit that the six digits of a file may add."""


def round_trip(of: str, one: Sequence, folder: Path) -> Row:
    """Write one sequence and read it back; a row that says whether it is exact."""
    began = time.perf_counter()
    made = pulseq_file(one.order, one.settings, one.scanner)
    seconds = time.perf_counter() - began
    path = folder / "sequence.seq"
    write_bytes(path, made.content)
    found = played(path.read_text(encoding="utf-8"))
    along_y, along_x = one.settings.field_of_view
    cycles = found.places * [along_x, along_y, one.settings.slice_thickness]
    wanted = one.order.places(one.settings.samples).transpose(1, 2, 0)
    same = cycles.shape == wanted.shape
    error = float(np.abs(cycles - wanted).max()) if same else np.inf
    gradient = found.gradient / GAMMA / one.scanner.max_gradient
    slew = found.slew / GAMMA / one.scanner.max_slew
    within = max(gradient, slew) <= 1 + ROUNDING
    again = pulseq_file(one.order, one.settings, one.scanner).content == made.content
    labelled = {name: tuple(values) for name, values in found.labels.items()} == dict(one.order.labels)
    return {
        "of": of,
        "sequence": one.settings.kind,
        "scanner": one.scanner.name,
        "grid": " x ".join(str(side) for side in (*(one.order.matrix or ()), one.settings.samples) if side > 1),
        "readouts": one.order.count,
        "echoes": one.order.echoes if one.settings.kind == "tse" else 1,
        "blocks": made.verified.blocks,
        "error by pypulseq": made.verified.largest_error,
        "error by text": error,
        "share of the gradient": gradient,
        "share of the slew rate": slew,
        "seconds": seconds,
        "exact": same and error <= LINE_TOLERANCE and labelled and within and again,
    }


def refusal(of: str, kind: str, one: Sequence, rng: np.random.Generator, folder: Path) -> Row:
    """Ask for what cannot be; a row that says whether it was refused, with nothing written."""
    out, said = folder / "refused.seq", ""
    try:
        write_bytes(out, (IMPOSSIBLE if of == "lines" else IMPOSSIBLE_SHOTS)[kind](one, rng, folder))
    except MriDesignError as error:
        said = str(error)
    refused = bool(said) and not out.exists()
    out.unlink(missing_ok=True)
    return {"of": of, "what": kind, "sequence": one.settings.kind, "refused": refused, "message": said}


def targets(trips: Many[Row], refusals: Many[Row]) -> list[Row]:
    """The goals, of lines and of all other readouts, and what was found."""
    goals: list[Row] = []
    for of, lines in (("", True), (" of planes, spokes and spirals", False)):
        for name, every, good in (
            (f"Pulseq round trips{of} that are exact", trips, "exact"),
            (f"impossible sequences{of} that are refused", refusals, "refused"),
        ):
            rows = [row for row in every if (row["of"] == "lines") == lines]
            count = sum(bool(row[good]) for row in rows)
            found: Row = {"measured": count, "unit": f"of {len(rows)}", "met": count == len(rows)}
            goals.append({"name": name, "target": f">= {len(rows)}", **found})
    return goals


def page(trips: Many[Row], refusals: Many[Row], goals: Many[Row]) -> str:
    """README.md."""
    versions = installed_versions(("mri-design", "numpy", "pypulseq"))
    kinds: list[Row] = []
    for of, kind in (("lines", "gre"), ("lines", "tse"), *((encoding, "gre") for encoding in ENCODINGS)):
        rows = [row for row in trips if row["sequence"] == kind and row["of"] == of]
        if rows:
            kinds.append(
                {
                    "of": of,
                    "sequence": kind,
                    "files": len(rows),
                    "exact": sum(bool(row["exact"]) for row in rows),
                    "readouts": sum(int(str(row["readouts"])) for row in rows),
                    "largest error by pypulseq": max(float(str(row["error by pypulseq"])) for row in rows),
                    "largest error by text": max(float(str(row["error by text"])) for row in rows),
                    "median seconds": float(np.median([float(str(row["seconds"])) for row in rows])),
                }
            )
    reasons: list[Row] = []
    for lines in (True, False):
        of = "lines" if lines else "planes, spokes, spirals"
        for what in dict.fromkeys(str(row["what"]) for row in refusals if (row["of"] == "lines") == lines):
            rows = [row for row in refusals if row["what"] == what and (row["of"] == "lines") == lines]
            refused = sum(bool(row["refused"]) for row in rows)
            example = rows[-1]["message"]
            reasons.append({"of": of, "what": what, "tried": len(rows), "refused": refused, "for example": example})
    return "\n".join(
        [
            "# Interoperation: Pulseq",
            "",
            f"`{COMMAND}` makes everything here. Versions: "
            + ", ".join(f"{name} {version}" for name, version in versions.items())
            + f"; seed {SEED}.",
            "",
            "A designed mask, its data and maps lead BART and SigPy to [the same image](same-image.md), as the",
            "solvers of SciPy and PyLops with this package's operators.",
            "[Clients of other projects](clients.md) that stream MRD data lead `adapt` to the lines of `design`.",
            "[Other programs](bloch.md) read one file of each kind, whose Bloch simulation leads back to the phantom.",
            "",
            "The files of other programs and of scanners are [read as they are meant](foreign-files.md), "
            "a marker's place included.",
            "",
            "## Targets",
            "",
            markdown_text(goals),
            "## Round trips",
            "",
            "Sequences of random kind, matrix (4 to 256), field of view, lines, order, echo trains, times, flip angle,",
            "bandwidth, slice and scanner; then samples of planes (4 to 128 along ky and kz), spokes at any angles,",
            "and arms of spirals of any density, designed for other limits than the scanner's, at the largest",
            "bandwidth that it has, or at a half or a third of that.",
            "Bandwidths that the receiver cannot sample with are drawn again. A file is",
            f"exact where every sample lies within {LINE_TOLERANCE:g} cycles for each field of view (or slice) of its",
            "place, every label is its own, gradients and their slopes keep to the scanner's limits, and the same",
            "request gives the same bytes again. The program itself computes this from the file with pypulseq; the",
            "second error is computed from the file's text by `benchmarks/parts/pulseq_text.py`, without pypulseq. No",
            "scanner has played these files. Every file is in [sequences.csv](sequences.csv).",
            "",
            markdown_text(kinds, formats={"median seconds": ".2f"}),
            "## Refusals",
            "",
            "The same kind of sequences with one thing made impossible, or with one number of the written file",
            "changed. All messages are in [refusals.csv](refusals.csv).",
            "",
            markdown_text(reasons),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    n_trips, n_refusals, largest = (4, len(IMPOSSIBLE), 16) if chosen.quick else (TRIPS, REFUSALS, LARGEST)
    n_shots, n_impossible, largest_shots = (
        (3, len(IMPOSSIBLE_SHOTS), 16) if chosen.quick else (SHOT_TRIPS, SHOT_REFUSALS, LARGEST_SHOTS)
    )
    rng, other = np.random.default_rng(SEED), np.random.default_rng([SEED, 1])
    kinds, impossible, encodings = list(IMPOSSIBLE), list(IMPOSSIBLE_SHOTS), list(ENCODINGS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        trips = [round_trip("lines", random_sequence(rng, largest), place) for _ in range(n_trips)]
        for i in range(n_shots):
            of = encodings[i % len(encodings)]
            trips.append(round_trip(of, random_shots(of, other, largest_shots), place))
        refusals = [
            refusal("lines", kinds[i % len(kinds)], random_sequence(rng, min(largest, 64)), rng, place)
            for i in range(n_refusals)
        ]
        for i in range(n_impossible):
            of, kind = encodings[i % len(encodings)], impossible[i % len(impossible)]
            refusals.append(refusal(of, kind, random_shots(of, other, min(largest_shots, 64)), other, place))
    goals = targets(trips, refusals)
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / "targets.csv"
    others = read_csv_texts(file) if file.exists() else []
    own = {goal["name"] for goal in goals}
    write_text(file, csv_text([*(row for row in others if row["name"] not in own), *goals]))
    write_text(chosen.out / "sequences.csv", csv_text(trips))
    write_text(chosen.out / "refusals.csv", csv_text(refusals))
    write_text(chosen.out / "README.md", page(trips, refusals, goals))
    print(markdown_text(goals), end="")


if __name__ == "__main__":
    main()
