"""Message passing on the graph of five nodes.

The density of section 2.2 factorises as p(1) p(2) p(3 | 1, 2) p(4 | 3) p(5 | 3). Nodes 1 and 2 are Gaussian here; the
other three depend on their parents linearly with logistic noise (`Sech2`); of node 4 a count was seen, of node 5 a
label. Every factor is a chunk, so that messages live on its clique. Beside Laplace propagation stand a general
optimiser on all five numbers, and the true marginals by quadrature along the tree.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.optimize
from matplotlib.figure import Figure
from numpy.typing import NDArray

import mri_design as md
from mri_design.glm import LaplacePropagation
from mri_design.inference import WarmStart
from mri_design.operators import Dense
from mri_design.sites import Gaussian, Logistic, Poisson, Sech2, Site

from .runner import Claim, Outcome

PLACE = "section 2.2, equations (5), (6)"
SIZES = {
    "tiny": {"graphs": 3, "points": 61},
    "small": {"graphs": 10, "points": 121},
    "full": {"graphs": 50, "points": 241},
}
Values = NDArray[np.float64]


def factors_of(rng: np.random.Generator, gaussian: bool = False) -> dict[str, tuple[Values, Site]]:
    """Name to row and site; "3 | 1, 2" is p(3 | 1, 2)."""
    a, b, c, d = rng.uniform(0.4, 1.2, 4) * rng.choice([-1, 1], 4)
    unit = np.eye(5)
    rates = iter(rng.uniform(1, 3, 3))

    def noise() -> Site:
        rate = next(rates)
        return Gaussian(2 * rate**2) if gaussian else Sech2(rate)

    seen = {
        "count of 4": (unit[3], Gaussian(1.0) if gaussian else Poisson(float(rng.poisson(3)))),
        "label of 5": (unit[4], Gaussian(0.25) if gaussian else Logistic(rng.choice([-1.0, 1.0]), 3.0)),
    }
    return {
        "1": (unit[0], Gaussian(1.0)),
        "2": (unit[1], Gaussian(1.0)),
        "3 | 1, 2": (unit[2] - a * unit[0] - b * unit[1], noise()),
        "4 | 3": (unit[3] - c * unit[2], noise()),
        "5 | 3": (unit[4] - d * unit[2], noise()),
        **seen,
    }


def model_of(factors: dict[str, tuple[Values, Site]]) -> md.GeneralizedLinearModel:
    """A block of one site for each factor."""
    return md.GeneralizedLinearModel.of_sites(
        [md.SiteBlock(name, Dense(row[None]), site) for name, (row, site) in factors.items()]
    )


def whole_mode(factors: dict[str, tuple[Values, Site]]) -> tuple[Values, Values]:
    """Mode and Hessian of -log p on all nodes at once, by Newton's method with a trust region."""
    rows = np.array([row for row, _ in factors.values()])
    sites = [site for _, site in factors.values()]

    def each(name: str, theta: Values) -> Values:
        return np.array(
            [np.asarray(getattr(site, name)(np.array([s]))).item() for site, s in zip(sites, rows @ theta, strict=True)]
        )

    def hessian(theta: Values) -> Values:
        return -(rows.T * each("d2log_t", theta)) @ rows

    found = scipy.optimize.minimize(
        lambda theta: -each("log_t", theta).sum(), np.zeros(5), jac=lambda theta: -rows.T @ each("dlog_t", theta),
        hess=hessian, method="trust-exact", options={"gtol": 1e-12},
    )  # fmt: skip
    theta = found.x
    for _ in range(3):
        theta = theta + np.linalg.solve(hessian(theta), rows.T @ each("dlog_t", theta))
    return theta, hessian(theta)


def node_three(factors: dict[str, tuple[Values, Site]], theta: Values) -> float:
    """Precision of node 3 by messages between the cliques' Gaussians: a Schur complement each."""
    cliques = {(0, 1, 2): ("1", "2", "3 | 1, 2"), (2, 3): ("4 | 3", "count of 4"), (2, 4): ("5 | 3", "label of 5")}
    total = 0.0
    for nodes, names in cliques.items():
        P = np.zeros((5, 5))
        for name in names:
            row, site = factors[name]
            P -= float(np.asarray(site.d2log_t(np.array([row @ theta]))).item()) * np.outer(row, row)
        rest = [k for k in nodes if k != 2]
        total += P[2, 2] - P[2, rest] @ np.linalg.solve(P[np.ix_(rest, rest)], P[rest, 2])
    return total


def true_marginal(factors: dict[str, tuple[Values, Site]], points: int) -> tuple[float, float]:
    """Mean and deviation of node 3 by quadrature from the leaves."""
    x = np.linspace(-9, 9, points)

    def density(name: str, s: Values) -> Values:
        return np.exp(factors[name][1].log_t(s))

    row = factors["3 | 1, 2"][0]
    up = (
        density("3 | 1, 2", row[2] * x[:, None, None] + row[0] * x[:, None] + row[1] * x)
        @ density("2", x)
        @ density("1", x)
    )
    for name, seen, leaf in (("4 | 3", "count of 4", 3), ("5 | 3", "label of 5", 4)):
        row = factors[name][0]
        up = up * (density(name, row[2] * x[:, None] + row[leaf] * x) @ density(seen, x))
    up /= up.sum()
    mean = float(up @ x)
    return mean, float(np.sqrt(up @ (x - mean) ** 2))


def run(data: Path | None, graphs: int, points: int) -> Outcome:
    """Random graphs of this shape: the whole, the messages, the truth."""
    rows, sweeps_needed = [], {"serial": [], "parallel": []}
    gaussian = []
    touched: dict[str, int] = {}
    for seed in range(graphs):
        factors = factors_of(np.random.default_rng(seed))
        theta, hessian = whole_mode(factors)
        model = model_of(factors)
        start = WarmStart(np.zeros(5), tuple(np.ones(1) for _ in factors))
        for schedule in sweeps_needed:
            engine = LaplacePropagation(partition="groups", schedule=schedule, tolerance=1e-9, max_sweeps=100)
            posterior, sweeps = engine.propagate(model, np.random.default_rng(0), warm_start=start)
            errors = [float(np.abs(mean - theta).max()) for mean in sweeps.means]
            sweeps_needed[schedule].append(1 + int(np.argmax(np.array(errors) <= 1e-6)))
        for (number, _), place in zip(sweeps.chunks, sweeps.coordinates, strict=True):
            touched[model.blocks[number].name] = 5 if isinstance(place, slice) else len(place)
        covariance = np.linalg.inv(posterior.precision.dense_real())
        mean, deviation = true_marginal(factors, points)
        rows.append({
            "graph": seed, "mode off": errors[-1],
            "covariance off": float(np.abs(covariance - np.linalg.inv(hessian)).max()),
            "precision of node 3 off": float(abs(node_three(factors, posterior.mean) * covariance[2, 2] - 1)),
            "mean of node 3": float(posterior.mean[2]), "true mean": mean,
            "deviation": float(np.sqrt(covariance[2, 2])), "true deviation": deviation,
        })  # fmt: skip
        normal = factors_of(np.random.default_rng(seed), gaussian=True)
        engine = LaplacePropagation(partition="groups", max_sweeps=1, exact=("1", "2"))
        once = engine.infer(model_of(normal), np.random.default_rng(0), warm_start=start)
        wanted = np.linalg.inv(whole_mode(normal)[1])
        gaussian.append(float(np.abs(np.linalg.inv(once.precision.dense_real()) - wanted).max()))
    off = {name: max(row[name] for row in rows) for name in ("mode off", "covariance off", "precision of node 3 off")}
    shifts = [abs(row["mean of node 3"] - row["true mean"]) / row["true deviation"] for row in rows]
    ratios = [row["deviation"] / row["true deviation"] for row in rows]
    check = Claim.checked
    claims = [
        check("section 2.2", "message passing on the cliques finds the mode of the whole", "drop-in replacement",
              f"largest error {off['mode off']:.1e} of {graphs} graphs", off["mode off"] <= 1e-8, "A mode is missed."),
        check("section 2.2", "the covariance of message passing is that of the Laplace approximation of the whole",
              "implied",
              f"largest error {off['covariance off']:.1e}", off["covariance off"] <= 1e-8, "A covariance is off."),
        check("equation (6)", "for terms with node 3 only what is upstream and downstream of it matters", "p(3 | 1, 2) "
              "and neighbours", f"three messages give its precision within {off['precision of node 3 off']:.1e}",
              off["precision of node 3 off"] <= 1e-8, "They do not."),
        check("equation (5)", "a term is approximated on the coordinates that it depends on", "C_i",
              ", ".join(f"{name}: {count}" for name, count in touched.items()), max(touched.values()) == 3,
              "A chunk works on coordinates that it does not touch."),
        check("abstract", "in the jointly normal case Laplace propagation is belief propagation, exact in one sweep",
              "coincides", f"largest error of a covariance {max(gaussian):.1e}", max(gaussian) <= 1e-8, "It is not."),
        check("section 1", "mean and variance of Laplace approximations stand for the true ones", "approximate",
              f"mean of node 3 off by {np.mean(shifts):.2f} (at most {max(shifts):.2f}) true deviations; its deviation "
              f"{np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) of the true one",
              max(shifts) < 0.5 and min(ratios) > 0.8 and max(ratios) < 1.25,
              "With heavier tails than a Gaussian's the mode's curvature understates the spread."),
    ]  # fmt: skip
    needed = {schedule: f"{np.mean(found):.1f}, at most {max(found)}" for schedule, found in sweeps_needed.items()}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.errorbar([r["true mean"] for r in rows], [r["mean of node 3"] for r in rows],
                      [r["deviation"] for r in rows], [r["true deviation"] for r in rows], "o", alpha=0.6)  # fmt: skip
        axes.axline((0, 0), slope=1, color="C7")
        axes.set(xlabel="true mean and deviation of node 3", ylabel="by Laplace propagation")

    return Outcome({"Sweeps to 1e-6 of the mode": [needed], "Graphs": rows[:10]}, claims, draw)
