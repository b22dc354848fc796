"""How much too small or too large the posterior mean is in every band of k-space, learnt from random heads.

    OMP_NUM_THREADS=1 python benchmarks/band_factors.py --jobs 2

draws heads, measures an eighth, a quarter and a half of the lines of each, by a design or by a random mask, and
compares the k-space of the posterior mean with the true one on the lines that were not measured. It writes
mri_design/evidence/spectral_correction.json and, with the error of the image before and after on heads
that took no part, results/benchmarks/band-factors.md. A few minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mri_design.design.fixed import VariableDensity
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import markdown_text
from mri_design.evidence.held_back import (
    KX_EDGES,
    KY_EDGES,
    MODELS,
    SHARES,
    ModelName,
    bands,
    unmeasured,
    with_band_factors,
)
from mri_design.experiment.design import run_design
from mri_design.experiment.extent import DesignPlan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_prepared
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.scan.data import ImageStack
from mri_design.scan.io.atomic import write_text
from mri_design.scan.scenes import random_head
from mri_design.scan.simulation import simulate_scan

Numbers = NDArray[np.float64]
SIDES = (128, 64)
NOISES = (0.004, 0.007, 0.015)
RECIPES = {
    name: Recipe().replacing("reconstruction", band_factors=False).replacing("phase", model=model)
    for name, model in zip(MODELS, ("modulus", "aware"), strict=True)
}
"""The default one under each model, without what is learnt here."""


@dataclass(frozen=True)
class Case:
    """One mask of one head under one model: sums over each band, relative to the energy of the head, and their origin.

    ``products`` are Re(mean* truth), ``powers`` |mean|^2 over the samples that were not measured.
    """

    model: ModelName
    share: float
    products: Numbers
    powers: Numbers
    slice_model: SliceModel
    lines: tuple[int, ...]
    image: NDArray[np.complexfloating]
    truth: NDArray[np.complexfloating]


def cases(seed: int) -> list[Case]:
    """Cases of one head: the masks of all fractions of lines."""
    with threadpool_limits(1):
        return list(_cases(seed))


def _cases(seed: int) -> Iterator[Case]:
    rng = np.random.default_rng([seed, 11])
    side = SIDES[seed % 2]
    stack = ImageStack(random_head(side, rng)[None], name=f"head {seed}")
    data = simulate_scan(stack, matrix=None, noise=float(rng.choice(NOISES)), phase="own", n_coils=1, rng=rng)
    assert data.reference is not None
    truth = data.reference[0]
    local = load_recipe("local")
    designed = seed % 4 < 2
    density = VariableDensity(family="polynomial", power=float(rng.uniform(2, 8)))
    strategy = make_strategy("calibrated") if designed else density
    plain = data.slice_model(prior=local.blocks())
    counts = [round(share * side) for share in SHARES]
    start = DesignPlan.of(strategy, local, plain.candidates).start_lines(plain.measured, counts[0])
    order = run_design([plain], strategy, counts[-1], local, seed=seed, start=start).trace.lines if designed else ()
    for share, count in zip(SHARES, counts, strict=True):
        if not designed:
            order = run_design([plain], density, count, local, seed=seed, start=start).trace.lines
        lines = tuple(sorted(order[:count]))
        for name, recipe in RECIPES.items():
            one = data.slice_model(prior=recipe.blocks(), phase=recipe.phase.prior())
            image = reconstruct_prepared(one, lines, "mean", recipe, np.random.default_rng(seed), with_std=False).image
            yield case(name, share, one, lines, image, truth)


def case(
    model: ModelName,
    share: float,
    one: SliceModel,
    lines: tuple[int, ...],
    image: NDArray[np.complexfloating],
    truth: NDArray[np.complexfloating],
) -> Case:
    """Sums over the bands of one image."""
    encoding, left, numbers = one.encoding(), unmeasured(one, lines), bands(one.shape)[unmeasured(one, lines)]
    mean, true = encoding(image)[0][left], encoding(truth.astype(np.complex64))[0][left]
    energy, most = float(np.sum(np.abs(truth) ** 2)), (len(KY_EDGES) - 1) * (len(KX_EDGES) - 1)
    products = np.bincount(numbers.ravel(), (mean.conj() * true).real.ravel() / energy, most)
    powers = np.bincount(numbers.ravel(), np.abs(mean).ravel() ** 2 / energy, most)
    return Case(model, share, products, powers, one, lines, image, truth)


def learnt(found: list[list[Case]], model: ModelName) -> Numbers:
    """Least-squares factors of every fraction of lines, all heads together, each of energy one."""
    rows = []
    for share in SHARES:
        those = [case for head in found for case in head if (case.model, case.share) == (model, share)]
        products = np.sum([case.products for case in those], axis=0)
        powers = np.sum([case.powers for case in those], axis=0)
        rows.append(np.where(powers > 0, products / np.maximum(powers, np.finfo(float).tiny), 1.0))
    return np.array(rows).reshape(len(SHARES), len(KY_EDGES) - 1, len(KX_EDGES) - 1).round(3)


def judged(found: list[list[Case]], model: ModelName) -> list[dict[str, object]]:
    """Change of the error on heads that the factors were not learnt from, in two halves."""
    changes: dict[float, list[float]] = {share: [] for share in SHARES}
    for half in (0, 1):
        factors = learnt([head for i, head in enumerate(found) if i // 4 % 2 != half], model)
        unseen = [case for i, head in enumerate(found) if i // 4 % 2 == half for case in head if case.model == model]
        for case in unseen:
            after = with_band_factors(factors, case.slice_model, case.lines, case.image, strength=1.0)
            pair = [measure(image, case.truth).relative_l2 for image in (case.image, after)]
            changes[case.share].append(100 * (pair[1] / pair[0] - 1))
    return [
        {"share of lines": share, "heads": len(of), "change, %": np.mean(of), "best": min(of), "worst": max(of)}
        for share, of in changes.items()
    ]


def document(factors: dict[ModelName, Numbers], rows: dict[ModelName, list[dict[str, object]]]) -> str:
    """The page."""
    text = [TEXT]
    for model, of_model in factors.items():
        text += [f"## Sites: {model}\n", markdown_text(rows[model]), ""]
        for share, table in zip(SHARES, of_model, strict=True):
            columns = [f"kx {low:g} to {high:g}" for low, high in pairwise(KX_EDGES)]
            named = [
                {"ky": f"{low:g} to {high:g}", **dict(zip(columns, row, strict=True))}
                for (low, high), row in zip(pairwise(KY_EDGES), table, strict=True)
            ]
            text += [f"Factors where {share:g} of the lines are measured:\n", markdown_text(named), ""]
    return "\n".join(text)


TEXT = """# Factors of k-space bands

`OMP_NUM_THREADS=1 python benchmarks/band_factors.py --jobs 2` made this page and
`mri_design/evidence/spectral_correction.json`, from random heads and nothing else. A factor is the
real number by
which the posterior mean of the default recipe, on lines that were not measured, comes nearest to the truth; ky and kx
are distances from the centre in units of half the grid. The change of the error below is that of heads which took no
part, with the factors in full; in use each scan says by held-back lines how much of them it takes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=Path, default=Path("mri_design/evidence/spectral_correction.json"))
    parser.add_argument("--report", type=Path, default=Path("results/benchmarks/band-factors.md"))
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        found = list(pool.map(cases, range(chosen.heads)))
    factors = {model: learnt(found, model) for model in MODELS}
    rows = [f'"{model}": {json.dumps(of.tolist())}' for model, of in factors.items()]
    write_text(chosen.table, "{" + ",\n ".join(rows) + "}\n")
    write_text(chosen.report, document(factors, {model: judged(found, model) for model in MODELS}))


if __name__ == "__main__":
    main()
