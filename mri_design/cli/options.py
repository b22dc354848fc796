"""Options that several verbs share, described once.

Names are written out here instead of asked for: the numerics that know them take seconds to import, and ``--help``
should not wait for them. Verbs import them when they run. The tests hold the names against the real ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Input", "MethodName", "Out", "Quiet", "RecipeFile", "Seed", "SliceIndex", "StrategyName"]

PHANTOMS = ("shepp-logan", "brain", "t2w", "t1w", "lf-gre")
RECIPES = ("default", "fast", "lanczos", "tv-wavelet")
METHODS = ("mean", "map", "least-squares", "zero-filled")
STRATEGIES = (
    "information-gain",
    "information-gain-lanczos",
    "random",
    "fastmri-random",
    "fastmri-equispaced",
    "vd-polynomial",
    "vd-gaussian",
    "vd-jittered",
    "vd-systematic",
    "vd-golden",
    "regular",
    "low-pass",
    "golden-ratio",
    "oracle-residual",
    "oracle-greedy",
)

Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="k-space (.npy/.npz with optional JSON card, fastMRI or ISMRMRD HDF5), or phantom:NAME "
        f"({', '.join(PHANTOMS)}).",
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
        help=f"Settings: a TOML file, or a shipped recipe ({', '.join(RECIPES)}).",
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help=f"One of: {', '.join(STRATEGIES)}; trained:FILE or hybrid:FILE with a file of mri-design train. "
        "[default: the recipe's]",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help=f"One of: {', '.join(METHODS)}. [default: the recipe's]"),
]
