"""``mri-design compare``: sampling strategies side by side on the same data."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import MethodName, Out, Quiet, RecipeFile, Seed
from mri_design.cli.terminal import DONE, NOT_CONVERGED, exits, progress, say
from mri_design.errors import InputError, UsageError
from mri_design.evaluation import InputFile, Manifest, RunFolder
from mri_design.evaluation.comparison import Comparison, TestImage
from mri_design.evaluation.comparison_progress import ComparisonProgress
from mri_design.evaluation.comparison_report import all_converged, save_comparison
from mri_design.experiment import (
    METHODS,
    Recipe,
    fingerprint,
    load_input,
    load_recipe,
    make_strategy,
    prepare,
    split_source,
)
from mri_design.kspace import Orientation

__all__ = ["compare", "compare_into"]


@exits
def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Test scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.",
            show_default=False,
        ),
    ],
    lines: Annotated[str, typer.Option("--lines", metavar="N,N,...", help="Line counts.", show_default=False)],
    out: Out,
    strategies: Annotated[
        str, typer.Option("--strategies", metavar="A,B,...", help="Names as for design.")
    ] = "information-gain,vd-polynomial,fastmri-random,low-pass",
    train: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            metavar="INPUT",
            help="Training scan, may be repeated: densities are tuned on them, and posterior strategies also design "
            "one fixed mask on them.",
        ),
    ] = None,
    slices: Annotated[
        str, typer.Option("--slices", metavar="0,3-5|middle|all", help="Slices of inputs that do not name their own.")
    ] = "middle",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Draws of every random strategy.")] = 5,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Threads; results do not depend on it.")] = max(
        1, min(4, os.cpu_count() or 1)
    ),
    quiet: Quiet = False,
) -> int:
    """Compare sampling strategies: same slices, same reconstruction, several line counts.

    Finished pieces are kept in the run folder: the same command in the same folder goes on where it stopped.
    """
    settings = load_recipe(recipe)
    if method is not None:
        if method not in METHODS:
            raise UsageError(f"unknown method {method!r}; known are: {', '.join(METHODS)}")
        settings = settings.model_copy(
            update={"reconstruction": settings.reconstruction.model_copy(update={"method": method})}
        )
    names = [name.strip() for name in strategies.split(",") if name.strip()]
    for name in names:
        make_strategy(name)
    with RunFolder(out) as folder, progress(quiet) as bar:
        converged = compare_into(
            folder, sources, train or [], names, _counts(lines), slices, seeds, settings, seed, jobs, bar.update
        )
    say(f"{'done' if converged else 'finished, but not converged'}: {out / 'report.html'}", quiet)
    return DONE if converged else NOT_CONVERGED


def compare_into(
    folder: RunFolder,
    sources: Sequence[str],
    train: Sequence[str],
    names: Sequence[str],
    counts: Sequence[int],
    slices: str,
    seeds: int,
    recipe: Recipe,
    seed: int,
    jobs: int,
    show: object,
) -> bool:
    """Run a comparison and leave everything in ``folder``; True where every reconstruction converged."""
    began = time.perf_counter()
    tests, orientation = _images(sources, slices, recipe, seed)
    training, _ = _images(train, slices, recipe, seed)
    both = {t.name for t in tests} & {t.name for t in training}
    if both:
        raise UsageError(f"{sorted(both)[0]} is both a test and a training image")
    comparison = Comparison(tests, names, counts, recipe, training, seeds, seed, jobs)
    inputs = InputFile.of_all(list(dict.fromkeys(split_source(s, slices)[0] for s in [*sources, *train])))
    choices = {
        "sources": [Path(s).name for s in sources],
        "train": [Path(s).name for s in train],
        "strategies": list(names),
        "lines": list(counts),
        "slices": slices,
        "seeds": seeds,
        "seed": seed,
        **recipe.as_settings(),
    }
    identity = fingerprint({**choices, "inputs": [i.sha256 for i in inputs]})
    state = ComparisonProgress.open(folder.output_path("progress.json"), identity)
    comparison.run(state, show if callable(show) else lambda *_: None)
    converged = all_converged(state)
    missed = sum(not bool(row["converged"]) for row in state.rows.values())
    status = "converged" if converged else f"{missed} of {len(state.rows)} reconstructions not converged"
    manifest = Manifest(
        command=sys.argv[1:],
        seed=seed,
        inputs=inputs,
        settings=choices,
        wall_seconds=time.perf_counter() - began,
        status=status,
        lines=[],
    )
    warnings = [] if converged else [status[0].upper() + status[1:] + "."]
    save_comparison(folder, comparison, state, manifest, orientation, warnings)
    return converged


def _images(sources: Sequence[str], slices: str, recipe: Recipe, seed: int) -> tuple[list[TestImage], Orientation]:
    images: list[TestImage] = []
    orientation: Orientation = "ky-rows"
    for source in sources:
        path, choice = split_source(source, slices)
        data = load_input(path, recipe, seed)
        orientation = data.orientation if not images else orientation
        for index in choice.indices(data.n_slices):
            scan = prepare(data.select_slice(index), recipe)
            reference = scan.reference(0)
            if reference is None:
                raise InputError(
                    field=path,
                    got="lines missing inside the acquired window",
                    wanted="a fully sampled scan to compare with",
                )
            one = scan.slice_model(0, recipe)
            images.append(TestImage(f"{data.name}[{index}]", one, reference, scan.calibration_lines))
    names = [image.name for image in images]
    if len(set(names)) < len(names):
        raise UsageError("two inputs have the same name and slice; rename one of the files")
    return images, orientation


def _counts(text: str) -> list[int]:
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1:
        raise UsageError(f"--lines {text!r}: give positive whole numbers, as 32,48,64")
    return counts
