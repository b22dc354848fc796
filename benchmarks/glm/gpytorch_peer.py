"""gpytorch's natural gradient on the digits, beside ours in the same run, where gpytorch is installed.

Inducing points are the training points, the likelihood is the logit under gpytorch's own 20-point Gauss-Hermite rule,
hyperparameters are held. Steps end once five of them change the bound by less than 1e-4. Every learning rate is run;
the fastest that comes within 1e-3 of the best bound of all counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from mri_design.evaluation.tables import Row

from .gaussian_bounds import ENGINES, NATURAL, Case
from .gaussian_process import classification, digits

RATES = (0.5, 0.3, 0.1)
STEPS, CHANGE, LOOK_BACK = 400, 1e-4, 5


def installed() -> bool:
    """Whether the peer can be run here."""
    return find_spec("gpytorch") is not None


def peer_rows(cases: Sequence[Case], data: Path | None) -> list[Row]:
    """Final negative bound, steps and CPU seconds of gpytorch at every rate, and of our natural gradient."""
    rows: list[Row] = []
    for case in cases:
        points, labels = digits(data, case.count)
        model = classification(points, labels, case.log_length, case.log_deviation)
        began = process_time()
        posterior = ENGINES[NATURAL]().infer(model, np.random.default_rng(0))
        ours = {"case": case.name, "engine": NATURAL, "rate": None, "steps": posterior.convergence.iterations}
        rows.append(ours | {"-log bound": f"{posterior.criterion[-1] / 2:.10g}", "CPU s": process_time() - began})
        for rate in RATES:
            trace, seconds = _gpytorch(points, (labels + 1) / 2, case, rate)
            row = {"case": case.name, "engine": "gpytorch", "rate": rate, "steps": len(trace)}
            rows.append(row | {"-log bound": f"{trace[-1]:.10g}", "CPU s": seconds})
    return rows


def times_as_long(rows: Sequence[Row], case: str) -> float | None:
    """CPU time of gpytorch at its best rate over ours; None where it was not measured."""
    here = [row for row in rows if row["case"] == case]
    ours = [float(str(row["CPU s"])) for row in here if row["engine"] == NATURAL]
    theirs = [(float(str(row["-log bound"])), float(str(row["CPU s"]))) for row in here if row["engine"] == "gpytorch"]
    if not ours or not theirs:
        return None
    best = min(bound for bound, _ in theirs)
    return min(seconds for bound, seconds in theirs if bound <= best + 1e-3) / ours[0]


def _gpytorch(points: Any, targets: Any, case: Case, rate: float) -> tuple[list[float], float]:
    import gpytorch
    import torch

    torch.set_num_threads(1)
    inputs, y = torch.tensor(points), torch.tensor(targets)

    class Logit(gpytorch.likelihoods.likelihood._OneDimensionalLikelihood):  # type: ignore[misc, name-defined]
        def forward(self, function_samples: Any, **_: Any) -> Any:
            return torch.distributions.Bernoulli(logits=function_samples)

    class Process(gpytorch.models.ApproximateGP):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            whole = gpytorch.variational.NaturalVariationalDistribution(len(inputs))
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, inputs, whole, learn_inducing_locations=False)
            )
            self.mean = gpytorch.means.ZeroMean()
            self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
            self.covariance.base_kernel.lengthscale = float(np.exp(case.log_length))
            self.covariance.outputscale = float(np.exp(2 * case.log_deviation))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))

    process = Process().double()
    objective = gpytorch.mlls.VariationalELBO(Logit(), process, num_data=len(y))
    steps = gpytorch.optim.NGD(process.variational_parameters(), num_data=len(y), lr=rate)
    process.train()
    trace: list[float] = []
    began = process_time()
    while len(trace) < STEPS:
        steps.zero_grad()
        loss = -objective(process(inputs), y)
        loss.backward()
        steps.step()
        trace.append(float(loss) * len(y))
        if len(trace) > LOOK_BACK and abs(trace[-1] - trace[-1 - LOOK_BACK]) < CHANGE:
            break
    return trace, process_time() - began
