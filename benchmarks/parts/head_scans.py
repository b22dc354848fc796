"""Simulated scans of heads and of a heart, with their truths and masks: some to learn on, others to judge by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parts.exams import contrast_at_3t, random_lines, with_phase
from skimage.transform import resize
from study.scans import NOISE, Scan, anew, denoised, echo, simulated, simulating

from mri_design.model.mr_image import MRSlice

SIDE = 96
LEARNT, JUDGED = ("6A", "6B"), ("7A", "7B")
"""Subjects to learn on, and others to judge by; the heart is another object, on which nothing is learnt."""
COUNTS = (24, 32)
"""Lines of `SIDE`, by a polynomial density that each seed draws anew."""


def scans(data: Path, seed: int, subjects: tuple[str, ...]) -> Iterator[tuple[str, Scan]]:
    """Scans by group: heads at 3 T, heads at low field, and beside those judged by a heart and a scan of 8 coils."""
    for place, subject in enumerate(subjects):
        for contrast in ("T2w", "T1w"):
            image = contrast_at_3t(data, subject, contrast)
            small = resize(image, (SIDE, SIDE), order=1, anti_aliasing=True)
            truth = with_phase(small, (place, len(contrast), ord(contrast[1])))
            yield "heads at 3 T", anew(f"{contrast} {subject}", truth[None], None, NOISE, seed)
        for contrast in ("fse", "flair"):
            yield "heads at low field", denoised(data / f"lf_{subject}_{contrast}.npy", 2, SIDE, seed)
    if subjects != LEARNT:
        for number in range(3):
            yield "heart", echo(data / "img_heart_complex.npz", number, SIDE, seed)
        for scan in simulated("phantom:t1w", [0], simulating(SIDE, coils=8), seed):
            yield "head, 8 coils", scan


def masks(one: MRSlice, seed: int) -> Iterator[list[int]]:
    """Random lines of every number in `COUNTS`."""
    for count in COUNTS:
        yield random_lines(one, count, seed)
