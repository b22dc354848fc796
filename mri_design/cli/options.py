"""Options that several verbs share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.experiment import METHODS, shipped_recipes, strategy_names

__all__ = ["Input", "MethodName", "Out", "Quiet", "RecipeFile", "Seed", "SliceIndex", "StrategyName"]

Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="k-space (.npy/.npz with optional JSON card, fastMRI or ISMRMRD HDF5), or phantom:NAME "
        "(shepp-logan, brain, t2w, t1w, lf-gre).",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Run folder; made if it does not exist.", show_default=False)]
SliceIndex = Annotated[int, typer.Option("--slice", help="Slice index; negative counts from the end.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no result lines.")]
RecipeFile = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="FILE.toml",
        help=f"Settings: a TOML file, or a shipped recipe ({', '.join(shipped_recipes())}).",
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help=f"One of: {', '.join(strategy_names())}. [default: the recipe's]"),
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help=f"One of: {', '.join(METHODS)}. [default: the recipe's]"),
]
