"""How far the Gaussian posterior is from the posterior itself, of which Gibbs sampling has exact draws on a small grid.

    OMP_NUM_THREADS=1 python benchmarks/gibbs.py [--side 16] [--sweeps 1000] [--seeds 3] [--out results/error-bars]

Phantoms of 16 x 16 pixels under the prior of the recipe `local` (Laplace sites on moduli of pixels and differences),
half or a quarter of the lines and four at the centre, new noise for each seed. `variances` is the sum of the exact
variances of all pixels over that of the Gaussian approximation (dense algebra), `region` the root mean square over
16 regions of 4 x 4 pixels of the exact standard deviation of their mean over the Gaussian one, `means apart` how far
both means are from each other, in units of the exact standard deviation (root of the sums of squares), and `errors` the
squared error of the Gaussian mean over the sum of the exact variances: what even exact draws do not explain.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from parts.gibbs import laplace_draws
from study.scans import simulated, simulating

from mri_design.evaluation.tables import Row, markdown_text, write_csv
from mri_design.experiment.recipe import load_recipe
from mri_design.inference.double_loop import DoubleLoop
from mri_design.operators.base import Array
from mri_design.scan.io.atomic import write_text
from mri_design.variances.exact import Exact

PHANTOMS, SHARES, CENTRE, BURN_IN, REGION = ("t2w", "t1w", "brain"), (2, 4), 4, 300, 4
OUT = Path(__file__).parents[1] / "results" / "error-bars"


def region_means(images: Array) -> Array:
    """Means of all squares of `REGION` pixels, (image, square)."""
    count, rows, columns = images.shape
    return images.reshape(count, rows // REGION, REGION, columns // REGION, REGION).mean(axis=(2, 4)).reshape(count, -1)


def measured(phantom: str, side: int, share: int, seed: int, sweeps: int) -> Row:
    """One image under both posteriors."""
    recipe = load_recipe("local").replacing("phase", model="modulus")
    (scan,) = simulated(f"phantom:{phantom}", [0], simulating(side, phase="smooth"), seed)
    one = scan.prepared.slice_model(0, recipe)
    middle = range(side // 2 - CENTRE // 2, side // 2 + CENTRE // 2)
    model = one.model(sorted({*range(seed % share, side, share), *middle}))
    posterior = DoubleLoop(Exact()).infer(model, np.random.default_rng(seed))
    drawn = laplace_draws(model, posterior.mean, sweeps, BURN_IN, np.random.default_rng([seed, 1]))
    mean = drawn.mean(axis=0)
    exact = float(np.mean(np.sum(np.abs(drawn - mean) ** 2, axis=(1, 2))))
    parts = np.linalg.inv(posterior.precision.dense_real())
    pixels = parts.shape[0] // 2
    covariance = model.noise_variance * (parts[:pixels, :pixels] + parts[pixels:, pixels:])
    weights = region_means(np.eye(pixels).reshape(pixels, side, side)).T
    gaussian = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
    found = np.std(region_means(drawn), axis=0)
    return {
        "phantom": phantom,
        "lines": f"1/{share}",
        "seed": seed,
        "variances": exact / float(np.trace(covariance)),
        "region": float(np.sqrt(np.mean((found / gaussian) ** 2))),
        "means apart": float(np.sqrt(np.sum(np.abs(mean - posterior.mean) ** 2) / exact)),
        "errors": float(np.sum(np.abs(posterior.mean - scan.reference) ** 2) / exact),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    rows = [
        measured(phantom, asked.side, share, seed, asked.sweeps)
        for phantom in PHANTOMS
        for share in SHARES
        for seed in range(1, asked.seeds + 1)
    ]
    names = ("variances", "region", "means apart", "errors")
    table: list[Row] = []
    for phantom in (*PHANTOMS, "all"):
        for share in SHARES:
            group = [r for r in rows if r["lines"] == f"1/{share}" and phantom in (r["phantom"], "all")]
            means = {name: float(np.mean([float(str(row[name])) for row in group])) for name in names}
            table.append({"phantom": phantom, "lines": f"1/{share}", "images": len(group), **means})
    formats = dict.fromkeys(names, ".2f")
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(asked.out / "gibbs.csv", table, formats=formats)
    write_text(asked.out / "gibbs.md", markdown_text(table, formats=formats))


if __name__ == "__main__":
    main()
