"""How seconds and products of a posterior grow with the image and with the coils, and a plot of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from parts.clock import median_seconds
from parts.problem import quarter_of_the_lines, recipe_for, scan_of

from mri_design.evaluation.tables import Row
from mri_design.model.posterior import GaussianPosterior

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def growth_rows(grids: Sequence[int], coils: Sequence[int], coil_grid: int, seed: int, runs: int = 3) -> list[Row]:
    """The default recipe's posterior on a quarter of the lines: one row per size, and one per number of coils.

    ``exponent`` is the slope of log seconds (log MVMs) against log n, or log coils, fitted to all rows of a kind.
    """
    rows = [_posterior_row("pixels", grid, 1, seed, runs) for grid in grids]
    rows += [_posterior_row("coils", coil_grid, count, seed, runs) for count in coils]
    fitted = {
        along: {what: fitted_exponent([r for r in rows if r["along"] == along], what) for what in ("s", "MVMs")}
        for along in ("pixels", "coils")
    }
    return [
        dict(row) | {f"exponent of {what}": fitted[str(row["along"])][what] for what in ("s", "MVMs")} for row in rows
    ]


def _posterior_row(along: str, grid: int, coils: int, seed: int, runs: int) -> Row:
    recipe = recipe_for(grid, coils)
    model = scan_of(grid, coils, seed, recipe).model(quarter_of_the_lines(grid, seed))
    engine = recipe.inference.engine()

    def infer() -> GaussianPosterior:
        return engine.infer(model, np.random.default_rng(seed))

    if grid * grid * coils <= 1 << 18:
        seconds, posterior = median_seconds(infer, runs if grid <= 128 else 1)
    else:  # too long for a warm-up, which hardly shows in it
        began = time.perf_counter()
        posterior = infer()
        seconds = time.perf_counter() - began
    return {
        "along": along,
        "grid": grid,
        "pixels": grid**2,
        "coils": coils,
        "s": seconds,
        "MVMs": posterior.convergence.matvecs,
        "ms per MVM": 1e3 * seconds / posterior.convergence.matvecs,
        "outer loops": posterior.convergence.iterations,
        "converged": posterior.convergence.converged,
    }


def fitted_exponent(rows: Sequence[Row], what: str) -> float:
    """Least-squares slope in log-log coordinates."""
    size = [float(row[str(row["along"])]) for row in rows]  # type: ignore[arg-type]
    cost = [float(row[what]) for row in rows]  # type: ignore[arg-type]
    return float(np.polyfit(np.log(size), np.log(cost), 1)[0]) if len(rows) > 1 else float("nan")


def plot_growth(rows: Sequence[Row], path: Path) -> None:
    """Both panels, seconds and products, with their fitted exponents in the legend."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axes, along in zip(panels, ("pixels", "coils"), strict=True):
        shown = [row for row in rows if row["along"] == along]
        size = np.array([float(row[along]) for row in shown])  # type: ignore[arg-type]
        for what, label, marker in (("s", "seconds", "o"), ("MVMs", "products with A", "s")):
            cost = np.array([float(row[what]) for row in shown])  # type: ignore[arg-type]
            exponent = float(shown[0][f"exponent of {what}"])  # type: ignore[arg-type]
            axes.loglog(
                size, cost, marker, color="C0" if what == "s" else "C1", label=f"{label} ~ {along}^{exponent:.2f}"
            )
            if len(size) > 1:
                line = np.exp(np.polyval(np.polyfit(np.log(size), np.log(cost), 1), np.log(size)))
                axes.loglog(size, line, "-", color="C0" if what == "s" else "C1", linewidth=1)
        others = "one coil" if along == "pixels" else f"{shown[0]['grid']} x {shown[0]['grid']}"
        axes.set(xlabel=f"{along} ({others})", title=f"Posterior against {along}")
        axes.legend(frameon=False)
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)
