"""The demo's page: what the program is for on its first screen, then the numbers, then a real scan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mri_design.evaluation.page import Paragraph, ReportTable
from mri_design.evaluation.reference_noise import noise_caption
from mri_design.runs.compare.run import ComparisonResult, StrategyErrors
from mri_design.runs.demo.overview import Content, FigureFiles, Part, TableFile, save_overview
from mri_design.runs.demo.run import DESIGN, RECIPE, STUDY
from mri_design.runs.design.run import DesignResult
from mri_design.runs.held_out.tables import FORMATS, paired_caption, where_behind
from mri_design.runs.image_sections import mask_sentence
from mri_design.runs.run import Ending, Run

DESIGNED = "calibrated"
"""The strategy whose masks are called designed."""

_WORDS = {
    "calibrated": "one after another while this head is measured, from the posterior over its image",
    "calibrated@train": "in the same way on another head, and then kept",
    "vd-polynomial@tuned": "at random, from a density that was tuned on another head",
    "fastmri-random": "at random around a full centre, as in fastMRI",
    "low-pass": "nearest to the centre",
}


def report_demo(run: Run, study: ComparisonResult, designed: DesignResult | Ending) -> Path:
    """Write the page over the comparison and the design of a real scan, once their folders are written.

    Of a design that was finished before, and is not computed again, mask and settings are read from its folder. Returns
    the page's path.
    """
    compared = run.folder.path / STUDY
    parts = [
        _pictures(compared, study),
        _numbers(compared, study.errors),
        _real_scan(run.folder.path / DESIGN, designed),
    ]
    return save_overview(run.folder, "mri-design demo: which lines to measure", parts)


def _pictures(folder: Path, study: ComparisonResult) -> Part:
    first = study.shown[0].mask
    shown, grid = int(first.sum()), len(first)
    look = (
        f"Look at the error maps, which share one scale: the darker, the better the {shown} of {grid} lines were "
        "chosen. The number of lines and the reconstruction are the same for all."
    )
    images = {
        "reconstructions": "The true image, and what each choice of lines gives.",
        "errors": "Errors of the magnitude. Of random masks the draw with the median error is shown.",
    }
    lines = {
        "masks": "The lines behind the images; the centre of k-space is marked.",
        "std": f"Error bars of {DESIGNED}, which are known without the truth, beside the actual error, on one scale.",
    }
    rows = [
        {
            "strategy": row["strategy"],
            "relative_l2": row["relative_l2"],
            "sd_draws": row["sd_draws"],
            "ssim": row["ssim"],
            "lines were chosen": _WORDS.get(str(row["strategy"])),
        }
        for row in study.errors.summary
        if row["lines"] == shown
    ]
    caption = (
        f"{shown} lines. relative l2 is the error of the magnitude (lower is better), for random masks its mean over "
        "all draws, with their standard deviation; higher SSIM is better."
    )
    truth = (
        "A 3 T magnitude image stands for the truth: k-space was simulated from it, with a smooth phase and noise "
        "added, so that errors are exact. One head with a synthetic phase proves little; the project's design study "
        "compares strategies on many images with the phase that a scanner left. Images of the comparison are made by "
        f"the recipe {RECIPE}, which is quicker than the default one; there all errors are smaller, and the three best "
        "strategies change places."
    )
    contents: list[Content] = [
        look,
        FigureFiles(images),
        FigureFiles(lines),
        ReportTable(rows, caption, FORMATS),
        Paragraph(truth),
    ]
    return Part("Random against designed", folder, contents)


def _numbers(folder: Path, errors: StrategyErrors) -> Part:
    others = [str(row["strategy"]) for row in errors.summary if row["strategy"] != DESIGNED]
    said = where_behind(errors.summary, DESIGNED, others)
    behind = f"No other mask is better than {DESIGNED} here, at any of these numbers of lines."
    if said:
        behind = f"Where other masks are better than {DESIGNED}:\n" + "\n".join(said)
    contents: list[Content] = [
        FigureFiles({"error-curves": "Error against lines; lower is better. Random masks: mean over all draws."}),
        behind,
        ReportTable(errors.paired, f"Designed masks. {paired_caption(errors.paired)}", FORMATS),
        ReportTable(errors.summary, "All strategies at all numbers of lines.", FORMATS),
    ]
    return Part("Fewer and more lines", folder, contents)


def _real_scan(scan: Path, designed: DesignResult | Ending) -> Part:
    if isinstance(designed, Ending):
        noise = json.loads((scan / "manifest.json").read_text(encoding="utf-8"))["settings"].get("reference_noise")
        mask = np.load(scan / "mask.npy", allow_pickle=False)
    else:
        noise, mask = designed.known.reference_noise, designed.trace.mask()
    text = (
        "The second scan comes from a scanner (0.055 T, gradient echo, one coil) and is replayed: lines are chosen and "
        "measured a few at a time. It has no noise-free truth, only the full scan to be held against."
    )
    images = {
        "images": "The full scan, the image from the chosen lines, and these lines without a model.",
        "std": "Error bars beside the difference to the full scan.",
    }
    course = {
        "mask-growth": f"The mask at every step, from top to bottom. {mask_sentence(mask)}",
        "calibration": "Each dot is a chosen line, predicted before it was measured; on the diagonal it was right.",
    }
    caption = "Errors of the magnitude." + noise_caption([noise])
    contents: list[Content] = [text, FigureFiles(images), TableFile("metrics.csv", caption), FigureFiles(course)]
    return Part("A real scan", scan, contents)
