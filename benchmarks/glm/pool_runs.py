"""One run of active learning: which cases a strategy asks, and the test error along the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import expit

from mri_design.active_learning.labels import LabelPool, PoolDesign
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.elementary import Identity
from mri_design.potentials.priors import Laplace
from mri_design.variances.exact import Exact

Numbers = NDArray[np.float64]
Order = NDArray[np.intp]

LAPLACE_RATE = float(np.sqrt(2))  # of unit variance, as the Gaussian prior is
JUDGE = DoubleLoop(Exact(), outer_iterations=20, tolerance=1e-3)
SCORES = {"S_CU": "uncertainty", "S_IG": "information_gain", "BALD": "bald", "random": "random"}
ON_THE_MAP = "uncertainty sampling on the MAP"
PEER = "uncertainty sampling, scikit-activeml"


@dataclass(frozen=True)
class Task:
    """A pool with hidden labels, and cases to be judged on."""

    pool: LabelPool
    labels: Numbers
    test: scipy.sparse.csr_array
    test_labels: Numbers


def prior_of(name: str, weights: int) -> tuple[SiteBlock, ...]:
    """Nothing for the standard Gaussian; Laplace sites of unit variance for the sparse one."""
    identity = Identity((weights,), is_complex=False)
    return () if name == "Gaussian" else (SiteBlock("weights", identity, Laplace(LAPLACE_RATE)),)


def asked(strategy: str, task: Task, first: int, last: int, block: int, seed: int) -> tuple[Order, float]:
    """Cases in the order of their labels, the first ones at random as the pool has them; CPU seconds."""
    began = process_time()
    if strategy == ON_THE_MAP:
        order = by_margin(task, first, last, map_weights)
    elif strategy == PEER:
        order = by_scikit_activeml(task, first, last, seed)
    else:
        rng = np.random.default_rng([seed, 1])
        design = PoolDesign(SCORES[strategy], last if strategy == "random" else block)
        state = design.begin(task.pool, np.arange(first), task.labels[:first], rng)
        order = design.ask(state, task.labels.__getitem__, last - first, rng).indices
    return order, process_time() - began


def errors_along(task: Task, order: Order, counts: list[int]) -> list[float]:
    """Test error of the converged posterior's mean after so many labels."""
    errors = []
    for count in counts:
        model = task.pool.model(order[:count], task.labels[order[:count]])
        mean = JUDGE.infer(model, np.random.default_rng(0)).mean
        errors.append(float(np.mean(np.where(task.test @ mean >= 0, 1.0, -1.0) != task.test_labels)))
    return errors


def by_margin(task: Task, first: int, last: int, fit: Callable[[Numbers, Numbers, Numbers], Numbers]) -> Order:
    """Plain uncertainty sampling: the unlabelled case nearest to the boundary of the current fit, one at a time."""
    rows = task.pool.rows
    order, is_open = list(range(first)), np.ones(task.pool.size, dtype=bool)
    is_open[:first] = False
    labelled = np.array([task.pool.row(i) for i in order])
    weights = np.zeros(rows.in_shape)
    while len(order) < last:
        weights = fit(labelled, task.labels[order], weights)
        distance = np.where(is_open, np.abs(rows(weights)), np.inf)
        chosen = int(np.argmin(distance))
        order.append(chosen)
        is_open[chosen] = False
        labelled = np.concatenate([labelled, task.pool.row(chosen)[None]])
    return np.array(order)


def map_weights(features: Numbers, labels: Numbers, start: Numbers) -> Numbers:
    """Logistic regression with the standard Gaussian prior, by Newton's method from ``start``."""
    weights = start
    for _ in range(50):
        p = expit(-labels * (features @ weights))
        gradient = weights - features.T @ (labels * p)
        hessian = np.eye(weights.size) + features.T @ ((p * (1 - p))[:, None] * features)
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def by_scikit_activeml(task: Task, first: int, last: int, seed: int) -> Order:
    """The peer's own loop: margin sampling, scikit-learn's logistic regression with C = 1."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling
    from skactiveml.utils import MISSING_LABEL
    from sklearn.linear_model import LogisticRegression

    features = task.pool.rows.matrix.toarray()
    known = np.full(task.pool.size, MISSING_LABEL)
    known[:first] = task.labels[:first]
    order = list(range(first))
    classifier = SklearnClassifier(LogisticRegression(fit_intercept=False), classes=[-1.0, 1.0], random_state=seed)
    sampler = UncertaintySampling(method="margin_sampling", random_state=seed)
    while len(order) < last:
        chosen = int(sampler.query(X=features, y=known, clf=classifier)[0])
        known[chosen] = task.labels[chosen]
        order.append(chosen)
    return np.array(order)
