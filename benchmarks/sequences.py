"""Pulseq files of random orders and geometries: exact round trips, and refusals of what cannot be.

    OMP_NUM_THREADS=1 python benchmarks/sequences.py

writes sequences.csv (every round trip), refusals.csv (every refusal) and the tables of README.md into
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
from parts.pages import put_conditions, put_table
from parts.pulseq_text import played
from parts.random_sequences import ENCODINGS, IMPOSSIBLE, IMPOSSIBLE_SHOTS, Sequence, random_sequence, random_shots

from mri_design.errors import MriDesignError
from mri_design.evaluation.tables import Row, write_csv
from mri_design.scan.io.atomic import write_bytes
from mri_design.sequences.pulseq_file import LINE_TOLERANCE, pulseq_file
from mri_design.sequences.scanner import GAMMA

OUT = Path(__file__).parents[1] / "results/interoperation"
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
    write_bytes(path, made[0])
    found = played(path.read_text(encoding="utf-8"))
    along_y, along_x = one.settings.field_of_view
    cycles = found.places * [along_x, along_y, one.settings.slice_thickness]
    wanted = one.order.places(one.settings.samples).transpose(1, 2, 0)
    same = cycles.shape == wanted.shape
    error = float(np.abs(cycles - wanted).max()) if same else np.inf
    gradient = found.gradient / GAMMA / one.scanner.max_gradient
    slew = found.slew / GAMMA / one.scanner.max_slew
    within = max(gradient, slew) <= 1 + ROUNDING
    again = pulseq_file(one.order, one.settings, one.scanner)[0] == made[0]
    labelled = {name: tuple(values) for name, values in found.labels.items()} == dict(one.order.labels)
    return {
        "of": of,
        "sequence": one.settings.kind,
        "scanner": one.scanner.name,
        "grid": " x ".join(str(side) for side in (*(one.order.matrix or ()), one.settings.samples) if side > 1),
        "readouts": one.order.count,
        "echoes": one.order.echoes if one.settings.kind == "tse" else 1,
        "blocks": made[1].blocks,
        "error by pypulseq": made[1].largest_error,
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


def kinds_of(trips: Many[Row]) -> list[Row]:
    """Round trips by kind of readout and sequence."""
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
    return kinds


def reasons_of(refusals: Many[Row]) -> list[Row]:
    """Refusals by what was impossible."""
    reasons: list[Row] = []
    for lines in (True, False):
        of = "lines" if lines else "planes, spokes, spirals"
        for what in dict.fromkeys(str(row["what"]) for row in refusals if (row["of"] == "lines") == lines):
            rows = [row for row in refusals if row["what"] == what and (row["of"] == "lines") == lines]
            refused = sum(bool(row["refused"]) for row in rows)
            example = rows[-1]["message"]
            reasons.append({"of": of, "what": what, "tried": len(rows), "refused": refused, "for example": example})
    return reasons


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
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out / "sequences.csv", trips)
    write_csv(chosen.out / "refusals.csv", refusals)
    put_table(chosen.out / "README.md", "Round trips", kinds_of(trips), None, {"median seconds": ".2f"})
    put_table(chosen.out / "README.md", "Refusals", reasons_of(refusals))
    put_conditions(chosen.out / "README.md", "mri-design", "numpy", "pypulseq")
    for name, rows, good in (("exact", trips, "exact"), ("refused", refusals, "refused")):
        print(f"{sum(bool(row[good]) for row in rows)} of {len(rows)} {name}")


if __name__ == "__main__":
    main()
