"""A reconstruction run from its input to its folder: image, error bars, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.mask_sentence import mask_sentence
from mri_design.evaluation.output.identity import finished_status
from mri_design.evaluation.output.manifest import InputFile, Manifest
from mri_design.evaluation.output.page import Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.reference_noise import reference_noise
from mri_design.experiment.checkpoint import fingerprint
from mri_design.experiment.inputs import PHANTOM_PREFIX, load_input, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, reconstruct
from mri_design.runs.scan_facts import (
    calibration_settings,
    calibration_summary,
    level_settings,
    level_summary,
    simulated_from,
    simulation_summary,
)
from mri_design.runs.sections.images import (
    NamedImage,
    image_sections,
    metric_rows,
    save_images,
    save_report,
    with_zero_filled,
)
from mri_design.scan.io.mask import read_mask

__all__ = ["reconstruct_into"]


def reconstruct_into(
    folder: RunFolder,
    source: str,
    recipe: Recipe,
    *,
    mask: Path | None = None,
    maps: Path | None = None,
    index: int = 0,
    seed: int = 0,
    command: Sequence[str] = (),
    show: Callable[[str, int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Reconstruct one slice and leave everything in ``folder``.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    source : str
        File or phantom.
    recipe : Recipe
        Method, prior, inference.
    mask : Path, optional
        ``.npy``, bool (ky,): the lines to use; all measured ones by default.
    maps : Path, optional
        File of coil maps.
    index, seed : int
        Slice, and seed of everything random.
    command : sequence of str
        For the manifest.
    show : callable
        Progress: what, done, of how many.
    say : callable
        Takes a line of text that people should see.

    Returns
    -------
    str
        "converged", or what did not.

    Raises
    ------
    UsageError
        Where the folder holds another run.
    InputError
        Where the input or the mask cannot be used.
    """
    began = time.perf_counter()
    method = recipe.reconstruction.method
    inputs = InputFile.of_all([source, *(str(path) for path in (mask, maps) if path is not None)])
    identity = fingerprint(
        {
            "run": "reconstruction",
            "recipe": recipe.as_settings(),
            "phantom": source if source.startswith(PHANTOM_PREFIX) else "",
            "inputs": [i.sha256 for i in inputs],
            "beside": [name for name, path in (("mask", mask), ("maps", maps)) if path is not None],
            "slice": index,
            "seed": seed,
        }
    )
    data = load_input(source, recipe, seed, maps).select_slice(index)
    flags = data.measured if mask is None else read_mask(mask, data.measured)
    lines = np.flatnonzero(flags).tolist()
    finished_status(folder, identity)  # the same reconstruction may be made again
    scan = prepare(data, recipe, measured=flags)
    one = scan.slice_model(0, recipe)
    signal = one.signal_level(lines)
    if simulated_from(data):
        say(f"simulated k-space {simulated_from(data)}")
    folder.begin()
    result = reconstruct(
        one,
        lines,
        method,
        recipe,
        np.random.default_rng([seed, 2]),
        signal=signal,
        callback=lambda s: show("outer loops", s.loop, recipe.inference.loops),
    )
    reference = scan.reference(0)
    images = with_zero_filled([NamedImage(method, result)], one, lines)
    rows = metric_rows(images, reference, len(lines), len(flags))
    noise = None if reference is None else reference_noise(scan.data, reference)
    sections = [
        *image_sections(folder, images, reference, data.orientation, rows, noise),
        Section(
            "Lines",
            [saved_figure(folder, "mask", plots.mask_barcodes({"measured lines": flags}), mask_sentence(flags))],
        ),
    ]
    folder.write_mask(flags)
    save_images(folder, result, rows, scan.unit)
    converged = result.convergence.converged
    manifest = Manifest(
        command=command,
        seed=seed,
        inputs=inputs,
        settings={
            "source": source,
            "slice": index,
            "identity": identity,
            **calibration_settings(scan),
            **({} if noise is None else {"reference_noise": noise}),
            **level_settings(one.noise_variance, signal, scan.unit),
            **recipe.as_settings(),
        },
        wall_seconds=time.perf_counter() - began,
        status="converged" if converged else f"not converged ({result.convergence.status.value})",
        lines=lines,
    )
    summary: dict[str, object] = {
        "method": method,
        "lines": f"{len(lines)} of {len(flags)}",
        **simulation_summary([simulated_from(data)]),
        **calibration_summary(scan),
        **level_summary(one.noise_variance, signal, scan.unit),
        **_learnt_summary(result),
        "multiplications with A": result.convergence.matvecs,
        "seconds": round(manifest.wall_seconds, 1),
        "status": manifest.status,
    }
    save_report(folder, f"Reconstruction: {data.name}", summary, sections, manifest)
    return manifest.status


def _learnt_summary(result: Reconstruction) -> dict[str, object]:
    """What was learnt, as factors on the recipe's rates."""
    if result.learnt is None:
        return {}
    rates = ", ".join(f"{name} x {rate:.2g}" for name, rate in result.learnt.rates.items())
    return {"learnt rates": rates, "learnt noise variance": f"{result.learnt.noise_variance:.3g}"}
