"""``mri-design recon``: an image with error bars from measured lines."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mri_design.cli.options import Input, MethodName, Out, Quiet, RecipeFile, Seed, SliceIndex
from mri_design.cli.terminal import DONE, NOT_CONVERGED, exits, progress, say
from mri_design.errors import UsageError
from mri_design.evaluation import InputFile, Manifest, RunFolder, plots
from mri_design.evaluation.report import ReportFigure, Section
from mri_design.evaluation.run_outputs import NamedImage, image_sections, metric_rows, save_report, with_zero_filled
from mri_design.experiment import METHODS, load_input, load_recipe, prepare, reconstruct
from mri_design.io.mask import read_mask

__all__ = ["recon"]


@exits
def recon(
    source: Input,
    out: Out,
    mask: Annotated[
        Path | None,
        typer.Option("--mask", metavar="MASK.npy", help="bool (ky,): use only these lines. [default: all measured]"),
    ] = None,
    method: MethodName = None,
    index: SliceIndex = 0,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    quiet: Quiet = False,
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars."""
    began = time.perf_counter()
    settings = load_recipe(recipe)
    chosen = method or settings.reconstruction.method
    if chosen not in METHODS:
        raise UsageError(f"unknown method {chosen!r}; known are: {', '.join(METHODS)}")
    data = load_input(source, settings, seed).select_slice(index)
    flags = data.measured if mask is None else read_mask(mask, data.measured)
    lines = np.flatnonzero(flags).tolist()
    scan = prepare(data, settings, measured=flags)
    with RunFolder(out) as folder, progress(quiet) as bar:
        one = scan.slice_model(0, settings)
        result = reconstruct(
            one,
            lines,
            chosen,
            settings,
            np.random.default_rng([seed, 2]),
            callback=lambda s: bar.update("outer loops", s.loop, settings.inference.loops),
        )
        images = with_zero_filled([NamedImage(chosen, result)], one, lines)
        reference = scan.reference(0)
        rows = metric_rows(images, reference, len(lines), len(flags))
        picture = folder.write_figure("mask", plots.mask_barcodes({"measured lines": flags}))
        sections = [
            *image_sections(folder, images, reference, data.orientation, rows),
            Section("Lines", [ReportFigure(picture.read_bytes(), "The lines the image was made from.")]),
        ]
        folder.write_mask(flags)
        folder.write_image("recon.npy", result.image)
        if result.std is not None:
            folder.write_std("std.npy", result.std)
        folder.write_metrics(rows)
        converged = result.convergence.converged
        status = "converged" if converged else f"not converged ({result.convergence.status.value})"
        manifest = Manifest(
            command=sys.argv[1:],
            seed=seed,
            inputs=InputFile.of_all([source] if mask is None else [source, str(mask)]),
            settings={"source": source, "slice": index, **settings.as_settings(), "method": chosen},
            wall_seconds=time.perf_counter() - began,
            status=status,
            lines=lines,
        )
        summary: dict[str, object] = {
            "method": chosen,
            "lines": len(lines),
            "of": len(flags),
            "multiplications with A": result.convergence.mvms,
            "seconds": round(manifest.wall_seconds, 1),
            "status": status,
        }
        warnings = [] if converged else [f"Not converged: {result.convergence.status.value}."]
        save_report(folder, f"Reconstruction: {data.name}", summary, sections, manifest, warnings)
    say(f"{chosen} from {len(lines)} lines, {status}: {out / 'report.html'}", quiet)
    return DONE if converged else NOT_CONVERGED
