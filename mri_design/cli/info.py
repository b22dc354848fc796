"""``mri-design info``: what is in a file, and what the package would make of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from mri_design.cli.options import Input, RecipeFile
from mri_design.cli.terminal import DONE, exits, say

__all__ = ["info"]


@exits
def info(source: Input, recipe: RecipeFile = None) -> int:
    """Show shape, measured lines, noise, coils and provenance of INPUT."""
    import numpy as np

    from mri_design.experiment import load_input, load_recipe, prepare

    settings = load_recipe(recipe)
    data = load_input(source, settings)
    ky, kx = data.grid_shape
    say(f"name            {data.name}")
    say(f"grid            {ky} phase-encode lines x {kx} readout samples (ky, kx)")
    say(f"slices, coils   {data.n_slices}, {data.n_coils}")
    for label, text in sampling_rows(data):
        say(f"{label:15s} {text}")
    prepared = prepare(data, settings).data
    variance = prepared.noise_variance or 0.0
    peak = float(np.abs(prepared.kspace).max())
    whitened = ", after whitening" if data.n_coils > 1 and prepared.kspace is not data.kspace else ""
    origin = "given" if data.noise_variance or settings.noise.variance else "estimated"
    say(
        f"noise           sd {np.sqrt(variance):.4g} per real component ({origin}{whitened}); largest sample {peak:.4g}"
    )
    maps = "one coil" if data.n_coils == 1 else "given" if data.coil_maps is not None else "estimated from the centre"
    say(f"coil maps       {maps}")
    for key, value in data.card.items():
        say(f"{key:15s} {value}")
    return DONE
