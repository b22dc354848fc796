"""Repeats of one scan as what it is expected to show: errors, wrong companions, lesions, and motion found anew.

    OMP_NUM_THREADS=1 python benchmarks/repeats.py DATA PART [--seeds 3] [--heads 6A,6B,7A,7B]

DATA is the folder of raw scans and images, PART one of

errors
    The same head again, moved by up to 4 pixels and 5 degrees (`parts.exams.repeats`), at a quarter of the lines
    (moderate) and an eighth (strong): change of the error against the image without it, in per cent, whether it was
    taken as a repeat, and what was held back says of it. `off` is what the program's registration leaves apart, in
    pixels (root mean square around the middle); `off anew` that of a registration to the final image.
wrong
    Companions that are no repeats: another head, another contrast, a mirrored one; ones that are shifted by 2 pixels or
    turned by 3 degrees, without registration. `as repeat` says whether they were taken for one. Where not, the image is
    what it was before repeats were looked for.
lesions
    Discs as in lesions.py, in the scan alone or in the repeat alone, as the scan's own lines decide: contrast that the
    lesion adds to the image, over that which it adds to the truth, without the repeat and with it.
renewed
    The first of these at an eighth of the lines (`strong`): change of the error where the companion is registered once
    more to the image that it helped to make, in per cent of the image with the first registration, from a tenth of a
    pixel on (`renewed`, at most; empty where it stays); the program does so from `REPEAT_ANEW` on.

Every part has a table of its own, repeats-PART.csv; what it holds is not computed again. `tables` puts all of them on
the page repeats.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import numpy as np
from lesions import flat_places, planted, sets_of
from parts.exams import SUBJECTS, contrasts, random_lines, repeats
from parts.pages import put_table
from study.scans import NOISE, Scan, anew

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence import companion as choosing
from mri_design.evidence.companion import choose_companions
from mri_design.evidence.prediction import hold_back
from mri_design.evidence.registration import RigidMotion, register
from mri_design.experiment.recipe import CompanionRecipe, Recipe
from mri_design.experiment.reconstruction import Reconstruction, image_rng, reconstruct_prepared
from mri_design.model.companion import Companion
from mri_design.operators.base import Array

COUNTS = (32, 16)
STRENGTHS: tuple[Literal["moderate", "strong"], ...] = ("moderate", "strong")


def made(
    scan: Scan, lines: list[int], companion: Array | None, strength: str = "careful", still: bool = False
) -> Reconstruction:
    """The image, with a companion or without; one that lies ``still`` is not registered."""
    recipe = Recipe().replacing("companion", companion_strength=strength)
    beside = () if companion is None else (Companion("repeat", np.abs(companion), in_place=still),)
    one = replace(scan.prepared.slice_model(0, recipe), companions=beside)
    return reconstruct_prepared(one, lines, "mean", recipe, image_rng(0), with_std=False)


def is_repeat(result: Reconstruction) -> bool:
    """Whether the companion was taken as a repeat."""
    return result.companions is not None and result.companions.expected is not None


def apart(moved: RigidMotion, back: RigidMotion, side: int) -> float:
    """Root mean square of what two motions, one after the other, leave of the places around the middle, in pixels."""
    places = np.stack(np.meshgrid(*2 * [np.linspace(-side / 4, side / 4, 9)], indexing="ij")).reshape(2, -1)
    after = places
    for motion in (moved, back):
        turn = np.deg2rad(motion.angle)
        after = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ after
        after = after + np.array(motion.shift)[:, None]
    return float(np.sqrt(np.mean(np.sum((after - places) ** 2, axis=0))))


def motion_of(place: int, seed: int) -> RigidMotion:
    """How `parts.exams.repeats` has moved a head."""
    rng = np.random.default_rng([seed, 11])
    down, right, turn = rng.uniform(-1, 1, (place + 1, 3))[-1]
    return RigidMotion((4 * down, 4 * right), 5 * turn)


def errors(data: Path, seed: int, heads: list[str], have: set[tuple[str, ...]]) -> Iterator[Row]:
    """Right repeats."""
    for place, pair in enumerate(repeats(data, seed)):
        for count in COUNTS:
            if pair.name not in heads or (pair.name, str(count), str(seed)) in have:
                continue
            truth = pair.scan.reference
            lines = random_lines(pair.scan.prepared.slice_model(0, Recipe()), count, seed)
            error = relative_l2(made(pair.scan, lines, None).image, truth)
            strength = STRENGTHS[COUNTS.index(count)]
            result = made(pair.scan, lines, pair.companion, strength)
            assert result.companions is not None
            (offered,) = result.companions.offered
            assert offered.registration is not None
            again = register(result.image, np.abs(pair.companion)).motion
            yield {
                "head": pair.name,
                "lines": count,
                "seed": seed,
                "strength": strength,
                "error": round(error, 5),
                "with": round(100 * (relative_l2(result.image, truth) / error - 1), 2),
                "repeat": int(is_repeat(result)),
                "gain": round(result.companions.gain, 3),
                "off": round(apart(motion_of(place, seed), offered.registration.motion, truth.shape[0]), 3),
                "off anew": round(apart(motion_of(place, seed), again, truth.shape[0]), 3),
            }


def renewed(data: Path, seed: int, heads: list[str], have: set[tuple[str, ...]]) -> Iterator[Row]:
    """Right repeats, registered once and once more."""
    count, strength = COUNTS[-1], STRENGTHS[-1]
    for place, pair in enumerate(repeats(data, seed)):
        if pair.name not in heads or (pair.name, str(count), str(seed)) in have:
            continue
        lines = random_lines(pair.scan.prepared.slice_model(0, Recipe()), count, seed)
        row: dict[str, object] = {"head": pair.name, "lines": count, "seed": seed, "strength": strength}
        errors = []
        for way, least in (("first", np.inf), ("anew", 0.1)):
            with patch.object(choosing, "REPEAT_ANEW", least):
                result = made(pair.scan, lines, pair.companion, strength)
            assert result.companions is not None
            (offered,) = result.companions.offered
            assert offered.registration is not None
            errors.append(relative_l2(result.image, pair.scan.reference))
            row[f"gain {way}"] = round(result.companions.gain, 3)
            row[f"off {way}"] = round(
                apart(motion_of(place, seed), offered.registration.motion, pair.companion.shape[0]), 3
            )
        row["renewed"] = round(offered.renewed, 3) or ""
        yield row | {"error": round(errors[0], 5), "change": round(100 * (errors[1] / errors[0] - 1), 2)}


def wrong(data: Path, seed: int, heads: list[str], have: set[tuple[str, ...]]) -> Iterator[Row]:
    """Companions that are no repeats."""
    right, others = repeats(data, seed), contrasts(data, seed)
    for place, pair in enumerate(right):
        if pair.name not in heads:
            continue
        own = RigidMotion().applied(np.abs(right[place].scan.reference))
        kinds = {
            "other head": (right[(place + 1) % len(right)].companion, False),
            "other contrast": (others[place].companion, False),
            "mirrored": (pair.companion[:, ::-1], False),
            "shifted 2 px": (np.roll(own, 2, axis=0), True),
            "turned 3 degrees": (RigidMotion(angle=3.0).applied(own), True),
        }
        for count in COUNTS:
            if all((pair.name, str(count), str(seed), kind) in have for kind in kinds):
                continue
            one = pair.scan.prepared.slice_model(0, Recipe())
            lines = random_lines(one, count, seed)
            plain = made(pair.scan, lines, None)
            assert plain.phase_choice is not None
            one, engine = replace(one, phase=plain.phase_choice.phase), Recipe().inference.engine()
            judging = hold_back(one, lines, engine, seed)
            for kind, (companion, still) in kinds.items():
                row: dict[str, object] = {"head": pair.name, "lines": count, "seed": seed, "companion": kind}
                beside = replace(one, companions=(Companion(kind, np.abs(companion), in_place=still),))
                for strength in STRENGTHS:
                    asked = CompanionRecipe(companion_strength=strength)
                    choice = choose_companions(beside, lines, judging, asked, engine, plain.image)
                    row[f"{strength} as repeat"] = int(choice.expected is not None)
                    row[strength] = ""
                    if choice.expected is not None:
                        result = made(pair.scan, lines, companion, strength, still)
                        error = [relative_l2(image, pair.scan.reference) for image in (result.image, plain.image)]
                        row[strength] = round(100 * (error[0] / error[1] - 1), 2)
                yield row


def lesions(data: Path, seed: int, heads: list[str], have: set[tuple[str, ...]]) -> Iterator[Row]:
    """Lesions that the scan or the repeat has alone."""
    for pair in repeats(data, seed):
        truth = pair.scan.reference
        for count, strength in ((32, "moderate"),):
            if pair.name not in heads or (pair.name, str(count), str(seed)) in have:
                continue
            clean = anew(pair.name, truth[None], None, NOISE, seed)
            lines = random_lines(clean.prepared.slice_model(0, Recipe()), count, seed)
            before = {way: made(clean, lines, *given).image for way, given in _ways(pair.companion, strength)}
            back = register(truth, np.abs(pair.companion)).motion
            laid = back.applied(np.abs(pair.companion))
            for each in sets_of(flat_places(np.abs(truth)), seed):
                scan = anew(pair.name, planted(truth, each)[None], None, NOISE, seed)
                with_lesions = {way: made(scan, lines, *given) for way, given in _ways(pair.companion, strength)}
                shown = made(clean, lines, planted(laid, each), strength, still=True)
                unmarked = made(clean, lines, laid, strength, still=True)
                for lesion in each:
                    wanted = lesion.seen(scan.reference) - lesion.seen(truth)
                    without, beside = (
                        (lesion.seen(with_lesions[way].image) - lesion.seen(before[way])) / wanted
                        for way in ("without", "with")
                    )
                    false = (lesion.seen(shown.image) - lesion.seen(unmarked.image)) / wanted
                    yield {
                        "head": pair.name, "lines": count, "seed": seed, "strength": strength,
                        "radius": lesion.radius, "contrast": lesion.contrast,
                        "repeat": int(is_repeat(with_lesions["with"])), "marked repeat": int(is_repeat(shown)),
                        "without": round(without, 4), "with": round(beside, 4), "false": round(false, 4),
                    }  # fmt: skip


def _ways(companion: Array, strength: str) -> tuple[tuple[str, tuple[Array | None, str]], ...]:
    return ("without", (None, strength)), ("with", (companion, strength))


def put_tables(out: Path) -> None:
    """What the tables of all parts come to."""
    read = {part: read_csv_texts(out / f"repeats-{part}.csv") for part in PARTS}

    def of(part: str, name: str, **same: str) -> Array:
        rows = [row for row in read[part] if all(row[key] == value for key, value in same.items())]
        return np.array([float(row[name] or "nan") for row in rows])

    found: list[Row] = []
    for count, strength in zip(COUNTS, STRENGTHS, strict=True):
        here = {name: of("errors", name, lines=str(count)) for name in ("error", "with", "repeat", "off", "off anew")}
        row: dict[str, object] = {"lines of 128": count, "strength": strength, "cells": len(here["error"])}
        row |= {"error without": f"{here['error'].mean():.3f}", "taken as repeats": int(here["repeat"].sum())}
        row |= {"change, mean": f"{here['with'].mean():+.1f} %", "worst": f"{here['with'].max():+.1f} %"}
        for name in ("off", "off anew"):
            row[name] = f"{here[name].mean():.3f} ({here[name].max():.3f})"
        found.append(row)
    put_table(out / "repeats.md", "Errors", found)
    found = []
    for row in read["renewed"]:
        gains = " to ".join(row[f"gain {way}"] for way in ("first", "anew"))
        off = " to ".join(row[f"off {way}"] for way in ("first", "anew"))
        found.append({"head": row["head"], "seed": row["seed"], "registered once more by": row["renewed"] or "-"})
        found[-1] |= {"off": off, "gain": gains, "error with the first": row["error"]}
        found[-1] |= {"change": f"{float(row['change']):+.1f} %"}
    put_table(out / "repeats.md", "Registered once more", found)
    put_table(
        out / "repeats.md",
        "Companions that are no repeats",
        [
            {"companion": kind, "cases": len(of("wrong", "seed", companion=kind))}
            | {f"{way} as repeat": int(of("wrong", f"{way} as repeat", companion=kind).sum()) for way in STRENGTHS}
            for kind in dict.fromkeys(row["companion"] for row in read["wrong"])
        ],
    )
    found = []
    for head in dict.fromkeys(row["head"] for row in read["lesions"]):
        without, beside, false = (of("lesions", name, head=head) for name in ("without", "with", "false"))
        row = {
            "head": head,
            "lesions": len(without),
            "without": f"{without.mean():.3f}",
            "with": f"{beside.mean():.3f}",
        }
        row |= {"with over without": f"{beside.mean() / without.mean():.3f}"}
        found.append(row | {"false": f"{false.mean():+.3f}", "largest": f"{false.max():+.3f}"})
    put_table(out / "repeats.md", "Lesions", found)


PARTS = {"errors": errors, "renewed": renewed, "wrong": wrong, "lesions": lesions}


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("part", choices=(*PARTS, "tables"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--heads", default=",".join(SUBJECTS))
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    if given.part == "tables":
        return put_tables(given.out)
    path = given.out / f"repeats-{given.part}.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    keys = ("head", "lines", "seed", *(("companion",) if given.part == "wrong" else ()))
    have = {tuple(str(row[name]) for name in keys) for row in rows}
    for seed in range(given.seeds):
        for row in PARTS[given.part](given.data, seed, given.heads.split(","), have):
            rows.append(row)
            given.out.mkdir(parents=True, exist_ok=True)
            write_csv(path, rows)
            print(*row.values(), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
