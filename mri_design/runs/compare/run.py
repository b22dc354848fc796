"""A comparison from its inputs to its folder: images, masks, tables, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mri_design.errors import UsageError
from mri_design.evaluation.output.identity import PROGRESS, finished_status
from mri_design.evaluation.output.manifest import InputFile, Manifest
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.experiment.checkpoint import fingerprint
from mri_design.experiment.designing import require_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.strategy_names import strategy_files, strategy_label
from mri_design.runs.compare.report import save_comparison
from mri_design.runs.held_out.comparison import Comparison
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.scans import load_images

__all__ = ["compare_into"]


def compare_into(
    folder: RunFolder,
    sources: Sequence[ScanSource],
    recipe: Recipe,
    *,
    strategies: Sequence[str],
    lines: Sequence[int],
    train: Sequence[ScanSource] = (),
    seeds: int = 5,
    seed: int = 0,
    jobs: int = 1,
    command: Sequence[str] = (),
    show: Callable[[str, int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Run a comparison and leave everything in ``folder``; what is finished there is not done again.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    sources, train : sequence of ScanSource
        Test and training inputs.
    recipe : Recipe
        Inference and reconstruction.
    strategies, lines, seeds, seed, jobs
        See `Comparison`.
    command : sequence of str
        For the manifest.
    show : callable
        Progress: what, done, of how many.
    say : callable
        Takes a line of text that people should see.

    Returns
    -------
    str
        "converged", or how many reconstructions and masks did not.

    Raises
    ------
    UsageError
        Where the recipe ends designs early, an image is used for testing and training, two inputs have one name, or the
        folder holds another finished run.
    InputError
        Where an input cannot be used, or the folder holds another comparison's beginning.
    """
    began = time.perf_counter()
    if recipe.design.until_error is not None or recipe.design.until_gain is not None:
        raise UsageError("a comparison needs equal numbers of lines; take until_error and until_gain out of the recipe")
    inputs = InputFile.of_all(source_files([*sources, *train]))
    files = InputFile.of_all(strategy_files(strategies))
    choices = {
        "sources": [source.label for source in sources],
        "train": [source.label for source in train],
        "strategies": [strategy_label(name) for name in strategies],
        "lines": list(lines),
        "seeds": seeds,
        "seed": seed,
        **recipe.as_settings(),
    }
    identity = fingerprint({"run": "comparison", **choices, "inputs": [i.sha256 for i in (*inputs, *files)]})
    tests, orientation = load_images(sources, recipe, seed)
    training, _ = load_images(train, recipe, seed)
    both = {t.name for t in tests} & {t.name for t in training}
    if both:
        raise UsageError(f"{sorted(both)[0]} is both a test and a training image")
    for image in tests:
        require_lines(image.one.measured, max(lines), recipe)
    comparison = Comparison(tests, strategies, lines, recipe, training, seeds, seed, jobs)
    finished_status(folder, identity, own=PROGRESS)  # a finished one is written again from its pieces
    folder.begin()
    progress = ComparisonProgress.open(folder.output_path(PROGRESS), identity)
    for origin in dict.fromkeys(image.simulated for image in [*tests, *training] if image.simulated):
        say(f"simulated k-space {origin}")
    comparison.run(progress, show)
    manifest = Manifest(
        command=command,
        seed=seed,
        inputs=[*inputs, *files],
        settings={**choices, "identity": identity},
        wall_seconds=time.perf_counter() - began,
        status=progress.status,
        lines=[],
    )
    save_comparison(folder, comparison, progress, manifest, orientation)
    return manifest.status
