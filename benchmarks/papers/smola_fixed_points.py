"""Fixed points of Laplace propagation, and how fast it gets there.

Logistic regression on a9a with a Gaussian prior, cut into random chunks of some 500 cases: the distance of every sweep
from the mode that Newton's method finds on all cases, the worst of several partitions. Gaussian sites that get
messages like others; support vector machines without an offset on the rows of a kernel's factor, where the conditions
of Karush, Kuhn and Tucker for the dual of chunking, equation (12), are held against what the engine found. And lemma 1
where sites are not log-concave: Student-t sites on the line, the largest point of each product found on a grid.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import mri_design as md
from mri_design.glm import LaplacePropagation
from mri_design.inference import WarmStart
from mri_design.operators import Dense, RowsOnDisk
from mri_design.sites import Gaussian, Hinge, Tilted

from .chunks import UNSTATED, Trace, Values, cases_of, logistic_model, newton_on_all, traced
from .kernels import incomplete_cholesky
from .runner import Claim, Outcome

PLACE = "sections 2 and 4"
NEEDS = ("a9a",)
SIZES = {
    "tiny": {"cases": 400, "chunks": 4, "partitions": 2, "machine": 60, "lines": 20},
    "small": {"cases": 4000, "chunks": 8, "partitions": 2, "machine": 100, "lines": 200},
    "full": {"cases": 32_561, "chunks": 65, "partitions": 3, "machine": 500, "lines": 2000},
}
SWEEPS = (1, 4, 16, 64, 256)
"""Over the chunks of a machine."""
NU = 3.0
"""Degrees of freedom of the sites on the line."""


@dataclass(frozen=True)
class Chunked:
    """What sweeps over a9a did."""

    traces: dict[str, list[Trace]]
    agreement: float
    covariance: float
    moved: float
    peaks: tuple[float, float]


def sweeps_of(rows: Values, labels: Values, chunks: int, partitions: int) -> Chunked:
    """Schedules and damping, the covariance at the end, a sweep from the mode, and memory."""
    size = -(-len(labels) // chunks)
    model, whole = logistic_model(rows, labels), newton_on_all(rows, labels)
    plans = {"serial": (5, 1.0), "parallel": (7, 1.0), "serial, damped by half": (10, 0.5)}
    traces = {}
    for name, (sweeps, damping) in plans.items():
        engine = LaplacePropagation(
            chunk_size=size, schedule=name.split(",")[0], max_sweeps=sweeps, tolerance=0.0, damping=damping
        )
        traces[name] = [traced(model, whole.theta, engine, seed) for seed in range(partitions)]
    engine = LaplacePropagation(chunk_size=size, max_sweeps=8, tolerance=1e-10)
    posterior, _ = engine.propagate(model, np.random.default_rng(0))
    inverse = np.linalg.inv(whole.hessian)
    off = np.abs(np.linalg.inv(posterior.precision.dense_real()) - inverse).max() / np.abs(inverse).max()
    one = LaplacePropagation(chunk_size=size, max_sweeps=1)
    start = WarmStart(whole.theta, tuple(np.ones(block.site_shape) for block in model.blocks))
    again, sweeps = one.propagate(model, np.random.default_rng(1), warm_start=start)
    moved = float(np.abs(again.mean - whole.theta).max())
    agreement = max(
        float(np.abs(m - whole.theta[c]).max()) for m, c in zip(sweeps.modes, sweeps.coordinates, strict=True)
    )
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        for on_disk in (True, False):
            tracemalloc.start()
            operator = RowsOnDisk(Path(folder) / "rows.npy", slab_rows=size) if on_disk else Dense(np.array(rows))
            LaplacePropagation(chunk_size=size, max_sweeps=2).infer(
                logistic_model(operator, labels), np.random.default_rng(0)
            )
            peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()
    return Chunked(traces, agreement, float(off), moved, (peaks[0], peaks[1]))


def gaussian_error(rows: Values, rng: np.random.Generator) -> float:
    """Of the mean after one serial sweep over Gaussian sites that get messages, relative."""
    responses = rng.normal(size=len(rows))
    blocks = [
        md.SiteBlock("data", Dense(rows), Tilted(Gaussian(1.0), responses)),
        md.SiteBlock("weights", Dense(np.eye(rows.shape[1])), Gaussian(1.0)),
    ]
    model = md.GeneralizedLinearModel.of_sites(blocks)
    engine = LaplacePropagation(chunk_size=max(len(rows) // 8, 1), max_sweeps=1, exact=("weights",))
    wanted = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ responses)
    found = engine.infer(model, rng).mean
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@dataclass(frozen=True)
class Machines:
    """KKT violations of chunking's dual, and distances of one parallel sweep from sum and average."""

    last_chunk: float
    sweeps: list[float]
    to_sum: float
    to_average: float


def violation(H: Values, alpha: Values, price: float) -> float:
    """Largest change that a projected gradient step would make to alpha, in units of C."""
    gradient = H @ alpha - 1
    return float(np.abs(np.clip(alpha - gradient / np.diag(H), 0, price) - alpha).max() / price)


def machines_of(folder: Path | None, cases: int, price: float = 1.0, chunks: int = 5) -> Machines:
    """Serial sweeps over hinge sites against equation (12); one parallel sweep against equation (17)."""
    points, labels = cases_of(folder, "a9a", cases)
    F = incomplete_cholesky(points, cases)[0]
    weights = md.SiteBlock("weights", Dense(np.eye(F.shape[1])), Gaussian(1.0))
    model = md.GeneralizedLinearModel.of_sites([md.SiteBlock("labels", Dense(F), Hinge(labels, price)), weights])
    H = labels[:, None] * (F @ F.T) * labels

    def swept(count: int, schedule: str) -> tuple[list[Values], list[Values], Values]:
        """alpha after every sweep, the chunks, and the mean after the last."""
        engine = LaplacePropagation(chunk_size=-(-cases // chunks), newton_steps=200, schedule=schedule)
        state, alphas = engine.init(model, np.random.default_rng(0)), []
        for _ in range(count):
            state = engine.step(state)
            alphas.append(np.empty(cases))
            for (_, sites), message in zip(state.sweeps.chunks, state.sweeps.messages, strict=True):
                alphas[-1][sites] = message.slope[:, 0] * labels[sites]
        return alphas, [sites for _, sites in state.sweeps.chunks], state.sweeps.means[-1]

    alphas, parts, _ = swept(SWEEPS[-1], "serial")
    last = parts[-1]
    moved = np.clip(alphas[0] - (H @ alphas[0] - 1) / np.diag(H), 0, price) - alphas[0]
    sweeps = [violation(H, alphas[count - 1], price) for count in SWEEPS]
    (alpha,), parts, mean = swept(1, "parallel")
    alone = np.array([F[part].T @ (labels[part] * alpha[part]) for part in parts])
    scale = np.linalg.norm(mean)
    to_sum, to_average = (float(np.linalg.norm(mean - way) / scale) for way in (alone.sum(0), alone.mean(0)))
    return Machines(float(np.abs(moved[last]).max() / price), sweeps, to_sum, to_average)


def expansions(x: Values, centres: Values) -> tuple[Values, Values, Values]:
    """log t of Student-t sites on the line and its two derivatives, shape (sites, points)."""
    away = x - centres[:, None]
    inside = 1 + away**2 / NU
    return (
        -(NU + 1) / 2 * np.log(inside),
        -(NU + 1) / NU * away / inside,
        -(NU + 1) / NU * (1 - away**2 / NU) / inside**2,
    )


GRID = np.linspace(-40, 40, 8001)


def lemma_on_the_line(lines: int, prior: float = 0.05) -> dict[str, int]:
    """Counts: optima, those that algorithm 1 leaves in place, and what its fixed points are."""
    found = {"optima": 0, "stay": 0, "argmax elsewhere": 0, "fixed": 0, "fixed optima": 0, "no fixed point": 0}
    for seed in range(lines):
        rng = np.random.default_rng(seed)
        centres = rng.normal(scale=4, size=rng.integers(2, 6))
        at = expansions(GRID, centres)[0]
        total = at.sum(0) - prior * GRID**2 / 2
        for peak in np.flatnonzero((total[1:-1] > total[:-2]) & (total[1:-1] >= total[2:])) + 1:
            found["optima"] += 1
            modes = sweep_on_the_line(np.full(len(centres), GRID[peak]), centres, at, prior)[1]
            stays = np.abs(modes - GRID[peak]).max() < 0.05
            found["stay" if stays else "argmax elsewhere"] += 1
        points, modes = rng.normal(scale=4, size=len(centres)), np.zeros(len(centres))
        for _ in range(60):
            before = points.copy()
            points, modes = sweep_on_the_line(points, centres, at, prior, serial=True)
            if np.abs(points - before).max() == 0:
                break
        if np.ptp(points) > 0.05 or np.abs(points).max() > 39:
            found["no fixed point"] += 1
            continue
        found["fixed"] += 1
        k = int(np.argmin(np.abs(GRID - points.mean())))
        near = slice(max(k - 8, 0), k + 9)
        top = near.start + int(np.argmax(total[near]))
        found["fixed optima"] += bool(near.start < top < near.stop - 1)
    return found


def sweep_on_the_line(
    points: Values, centres: Values, at: Values, prior: float, serial: bool = False
) -> tuple[Values, Values]:
    """Modes of all products after a sweep, each site expanded at its own point, exactly also where it bends up."""
    points, modes = points.copy(), points.copy()
    for i in range(len(centres)):
        here = [expansions(points[[j]], centres[[j]]) for j in range(len(centres))]
        slope, bend = (np.array([one[k].item() for one in here]) for k in (1, 2))
        others = np.arange(len(centres)) != i
        P = prior - bend[others].sum()
        h = (slope - bend * points)[others].sum()
        modes[i] = GRID[np.argmax(at[i] - P * GRID**2 / 2 + h * GRID)]
        if serial:
            points[i] = modes[i]
    return points, modes


def run(data: Path | None, cases: int, chunks: int, partitions: int, machine: int, lines: int) -> Outcome:
    """Measure all of it."""
    points, labels = cases_of(data, "a9a", cases)
    rows = points.toarray()
    found = sweeps_of(rows, labels, chunks, partitions)
    worst = {
        name: [max(each.largest[k] for each in traces) for k in range(len(traces[0].largest))]
        for name, traces in found.traces.items()
    }
    quadratic = {name: worst[name][k + 1] / worst[name][k] ** 2 for name, k in (("serial", 1), ("parallel", 2))}
    halves = np.array(worst["serial, damped by half"])
    rate = float(np.median(halves[4:] / halves[3:-1]))
    gaussian = max(gaussian_error(rows[: 20 * chunks], np.random.default_rng(seed)) for seed in range(3))
    machines, line = machines_of(data, machine), lemma_on_the_line(lines)
    worse = "The engine's error is above 1e-8."
    check = Claim.checked
    claims = [
        check("lemma 1", "what sweeps converge to is the mode", "proved", f"largest error of a weight "
              f"{worst['serial'][-1]:.1e} serial, {worst['parallel'][-1]:.1e} parallel, {partitions} partitions",
              max(worst["serial"][-1], worst["parallel"][-1]) <= 1e-8, worse),
        check("lemma 1", "a sweep that starts at the mode stays there, and all chunks' modes agree", "proved",
              f"mean moves by {found.moved:.1e}, modes differ by {found.agreement:.1e}",
              max(found.moved, found.agreement) <= 1e-8, worse),
        check("equations (1), (2)", "the covariance at the fixed point is the inverse Hessian of -log p",
              "to second order", f"largest difference {found.covariance:.1e} of its largest entry",
              found.covariance <= 1e-8, worse),
        check("lemma 1", "every local optimum is a fixed point, also where sites are not log-concave", "proved",
              f"{line['stay']} of {line['optima']} optima of products of Student-t sites",
              line["stay"] == line["optima"],
              f"At {line['argmax elsewhere']} optima the product (4) has a larger point elsewhere, as other factors' "
              "expansions are flatter than they are or bend up; the lemma needs the mode nearby."),
        check("lemma 1", "every fixed point is a local optimum", "proved",
              f"{line['fixed optima']} of {line['fixed']} fixed points; no fixed point within 60 sweeps from "
              f"{line['no fixed point']} starts", line["fixed optima"] == line["fixed"],
              "A fixed point lies off every optimum of the grid."),
        check("section 2.1", "errors fall quadratically: expansions are exact to second order", "implied",
              f"error over the square of the last one: {quadratic['serial']:.2g} serial, "
              f"{quadratic['parallel']:.2g} parallel", max(quadratic.values()) < 50, "Errors fall more slowly."),
        Claim("section 5", "fewer than 3 serial iterations converge", "< 3, tolerance not given",
              f"largest error of a weight {worst['serial'][1]:.1e} after 2, {worst['serial'][2]:.1e} after 3", None,
              UNSTATED),
        Claim("section 5", "fewer than 6 parallel iterations converge", "< 6, tolerance not given",
              f"largest error of a weight {worst['parallel'][3]:.1e} after 4, {worst['parallel'][4]:.1e} after 5", None,
              UNSTATED),
        check("section 2.1", "messages are replaced whole, not averaged with old ones", "no damping",
              f"with half of each new message the error falls by {rate:.3f} a sweep, without it quadratically",
              abs(rate - 0.5) < 0.1, "Damping does not cost the order of convergence."),
        check("theorem 2", "with Gaussian sites one sweep is exact", "proved", f"relative error {gaussian:.1e}",
              gaussian <= 1e-10, worse),
        check("section 4.2, equation (15)", "a hinge subproblem is the dual of chunking (12), other alphas held",
              "proved", f"largest violation of its optimality conditions {machines.last_chunk:.1e} of C",
              machines.last_chunk <= 1e-8, "The conditions of (12) do not hold."),
        check("section 4.2", "serial sweeps lead to the machine on all cases", "as chunking does",
              f"violation of the whole dual after {SWEEPS} sweeps: " + ", ".join(f"{v:.1e}" for v in machines.sweeps),
              machines.sweeps[-1] <= 1e-3 * machines.sweeps[0],
              "The violation does not fall to a thousandth."),
        check("equation (17)", "one parallel sweep of hinge sites has the average of the single solutions "
              "as its minimiser", "the average", f"distance to the sum {machines.to_sum:.1e}, to the average "
              f"{machines.to_average:.2f}, relative", machines.to_average < 1e-6,
              "The minimiser of |theta|^2 / 2 plus all linear terms is the sum of their solutions; the average is the "
              "same direction, which is all that a sign without an offset asks for."),
        check("section 6", "chunks bound the memory", "an upper bound",
              f"peak {found.peaks[0]:.1f} MB with the rows in a file, {found.peaks[1]:.1f} MB with them in memory",
              found.peaks[0] < found.peaks[1], "So few cases need no bound."),
    ]  # fmt: skip
    table = [
        {"schedule": name, **{f"sweep {k + 1}": f"{error:.1e}" for k, error in enumerate(errors[:7])}}
        for name, errors in worst.items()
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, errors in worst.items():
            axes.semilogy(np.arange(1, len(errors) + 1), errors, "o-", label=name)
        axes.set(xlabel="sweep", ylabel="largest error of a weight", title=f"{cases} cases in {chunks} chunks")
        axes.legend()

    heading = f"Largest error of a weight, {'a9a' if data else 'simulated cases'}: {cases} cases in {chunks} chunks"
    return Outcome({heading: table, "Student-t sites on the line": [dict(line)]}, claims, draw)
