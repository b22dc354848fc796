"""The Bayes committee machine, which is one parallel sweep, and what further sweeps add.

Logistic regression on a9a with a standard normal prior. The committee multiplies the Laplace approximations of
p(theta | Z_i), each found alone under the whole prior, and divides by p(theta)^(N - 1), equation (7). Distances are
from the mode of all cases; log losses are those of a9a.t (of cases held back, where simulated) at the mean. An average
is that of the members' own modes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mri_design.glm import LaplacePropagation

from .chunks import Values, cases_of, logistic_model, newton_on_all
from .data import data_set
from .runner import Claim, Outcome

PLACE = "section 3"
NEEDS = ("a9a", "a9a.t")
SIZES = {
    "tiny": {"cases": 400, "chunks": (2, 8), "seeds": 1},
    "small": {"cases": 3000, "chunks": (3, 10, 30), "seeds": 2},
    "full": {"cases": 32_561, "chunks": (5, 20, 65, 200), "seeds": 3},
}
SWEEPS = 4


def committee(rows: Values, labels: Values, parts: list[Values]) -> tuple[Values, Values, Values]:
    """Mean and precision of the product of equation (7), and the average of the members' modes."""
    n = rows.shape[1]
    P, h, modes = -(len(parts) - 1) * np.eye(n), np.zeros(n), []
    for part in parts:
        member = newton_on_all(rows[part], labels[part])
        P, h = P + member.hessian, h + member.hessian @ member.theta
        modes.append(member.theta)
    return np.linalg.solve(P, h), P, np.mean(modes, axis=0)


def gaussian_committee(rows: Values, parts: list[Values], rng: np.random.Generator) -> float:
    """Relative error of the committee's mean for Gaussian responses."""
    y, eye = rng.normal(size=len(rows)), np.eye(rows.shape[1])
    P, h = eye * (1 - len(parts)), np.zeros(len(eye))
    for part in parts:
        own = rows[part].T @ rows[part] + eye
        P, h = P + own, h + own @ np.linalg.solve(own, rows[part].T @ y[part])
    wanted = np.linalg.solve(rows.T @ rows + eye, rows.T @ y)
    return float(np.linalg.norm(np.linalg.solve(P, h) - wanted) / np.linalg.norm(wanted))


def run(data: Path | None, cases: int, chunks: tuple[int, ...], seeds: int) -> Outcome:
    """Committees of several sizes, and sweeps."""
    points, labels = cases_of(data, "a9a", cases if data else 2 * cases)
    if data:
        tests, answers = data_set(data, "a9a.t")
    else:
        tests, answers, points, labels = points[cases:], labels[cases:], points[:cases], labels[:cases]
    rows, held = points.toarray(), tests.toarray()
    whole, model = newton_on_all(rows, labels), logistic_model(rows, labels)
    scale = np.linalg.norm(whole.theta)

    def judged(theta: Values) -> tuple[float, float]:
        """Distance from the mode, and log loss."""
        return (
            float(np.linalg.norm(theta - whole.theta) / scale),
            float(np.mean(np.logaddexp(0, -answers * (held @ theta)))),
        )

    table, equal, gaussian = [], [], []
    for count in chunks:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            size = -(-len(labels) // count)
            for schedule in ("parallel", "serial"):
                engine = LaplacePropagation(chunk_size=size, schedule=schedule, tolerance=0.0)
                state = engine.init(model, np.random.default_rng(seed))
                for _ in range(SWEEPS if schedule == "parallel" else 1):
                    state = engine.step(state)
                for sweep, mean in enumerate(state.sweeps.means):
                    found.setdefault(f"{schedule}, sweep {sweep + 1}", []).append(judged(mean))
                if schedule == "parallel":
                    parts, first = [sites for _, sites in state.sweeps.chunks], state.sweeps.means[0]
            mean, _, average = committee(rows, labels, parts)
            equal.append(float(np.linalg.norm(mean - first) / np.linalg.norm(mean)))
            found.setdefault("average of modes", []).append(judged(average))
            gaussian.append(gaussian_committee(rows, parts, np.random.default_rng(seed)))
        for way, each in found.items():
            errors, losses = np.array(each).T
            table.append({
                "members": count, "way": "committee, " + way if way == "parallel, sweep 1" else way,
                "distance": errors.mean(), "worst": errors.max(), "log loss": losses.mean(),
                "above the mode's": losses.mean() - judged(whole.theta)[1],
            })  # fmt: skip

    def column(way: str, name: str) -> list[float]:
        return [row[name] for row in table if row["way"] == way]

    first, serial = column("committee, parallel, sweep 1", "distance"), column("serial, sweep 1", "distance")
    second = column("parallel, sweep 2", "distance")
    average = column("average of modes", "above the mode's")
    losses = column("committee, parallel, sweep 1", "above the mode's")
    check = Claim.checked
    said = f"of {chunks} members"
    claims = [
        check("section 3.2", "the committee is one parallel sweep from constant messages", "identical",
              f"means differ by {max(equal):.1e}, relative", max(equal) <= 1e-8, "They differ."),
        check("theorem 2", "for normal distributions the committee is exact", "proved",
              f"relative error {max(gaussian):.1e}", max(gaussian) <= 1e-8, "It is not."),
        check("section 3", "iterating the committee improves its precision", "improved",
              f"distance {said}: " + ", ".join(f"{a:.2g} to {b:.2g}" for a, b in zip(first, second, strict=True)),
              all(b < a for a, b in zip(first, second, strict=True)), "A second sweep is worse at some size."),
        check("section 3.2", "the committee is as good as its members are large", "a one-step approximation",
              f"distance {said}: " + ", ".join(f"{a:.2g}" for a in first), bool(np.all(np.diff(first) > 0)),
              "More members do not make it worse."),
        check("section 5", "one serial sweep beats one parallel sweep, as it uses what others have found", "better in "
              "general", f"distance {said}: " + ", ".join(f"{a:.2g}" for a in serial) + " serial",
              all(s < p for s, p in zip(serial, first, strict=True)), "Not at every size."),
        Claim("section 6", "simple averaging of machines trained on parts of the data works in practice", "works, said "
              "of SVMs", f"log loss above the mode's {said}: average " + ", ".join(f"{a:.4f}" for a in average)
              + "; committee " + ", ".join(f"{a:.4f}" for a in losses), None,
              "The paper says it of support vector machines; these are modes of logistic regression."),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for way in dict.fromkeys(row["way"] for row in table):
            axes.loglog(chunks, column(way, "distance"), "o-", label=way)
        axes.set(xlabel="members", ylabel="relative distance from the mode")
        axes.legend(fontsize=7)

    return Outcome({f"{'a9a' if data else 'Simulated cases'}: {cases} cases, {seeds} partitions": table}, claims, draw)
