"""An MR slice: the best free encoding of an energy beside the best phase-encode line and the best sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import mri_design as md
from mri_design.design.strategies.information_gain import exact_gains
from mri_design.evaluation.tables import Row


def encoding_rows(grid: int, counts: Sequence[int]) -> list[Row]:
    """Gains (twice the information, in nats) under the posterior of a phantom slice after so many lines."""
    recipe = md.load_recipe(None).replacing("simulation", matrix=grid)
    one = md.prepare(md.load_input("phantom:t2w", recipe), recipe).slice_model(0, recipe)
    rule = md.make_strategy("vd-polynomial:4")
    rows = []
    for count in counts:
        start = rule.default_start(one.candidates, count)
        lines = md.run_design([one], rule, count, recipe, seed=0, start=start).trace.lines
        posterior = md.DoubleLoop(md.Exact(), outer_iterations=6).infer(one.model(lines), np.random.default_rng(0))
        every = one.encoding()
        left = np.setdiff1d(np.arange(grid), lines)
        gains = exact_gains(posterior.precision, one.candidates)[left]
        encoding = every.to_dense_real()
        half = encoding.shape[0] // 2
        solved = np.linalg.solve(posterior.precision.dense_real(), encoding[:half].T)
        sample = float(np.einsum("ij,ji->i", encoding[:half], solved).max())
        rng = np.random.default_rng(0)
        one_unit, one_whole, whole = (
            md.best_free_encoding(posterior, rng, rows=k, energy=e)
            for k, e in ((1, 1.0), (1, float(grid)), (grid, float(grid)))
        )
        rows.append(
            {
                "lines measured": count,
                "best sample, energy 1": 2 * float(np.log1p(sample)),
                "best free vector, energy 1": one_unit.gain,
                "mean line": float(gains.mean()),
                "best line": float(gains.max()),
                "best free vector, a line's energy": one_whole.gain,
                "best free rows, a line's number and energy": whole.gain,
                "free / best line": whole.gain / float(gains.max()),
                "rows with energy": int(np.sum(whole.energies > 0)),
                "converged": one_unit.convergence.converged and whole.convergence.converged,
            }
        )
    return rows
