"""Linear and logistic regression with a prior on every weight: means, standard deviations, predictions, evidence.

Small problems, by dense algebra: a `GeneralizedLinearModel` of one block of sites on the weights, its nearest Gaussian
(`VariationalGaussian` with exact variances), and what is not given learnt by the evidence (`learn_hyperparameters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike

from mri_design.brief import brief, briefly
from mri_design.errors import InputError, described, number_array, positive_number, require_choice, require_numbers
from mri_design.glm.labels import label_probability
from mri_design.glm.variational import VariationalGaussian
from mri_design.inference.evidence import Hyperparameters, learn_hyperparameters, log_evidence
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.elementary import Dense, Identity, SparseMatrix
from mri_design.operators.foreign import from_linop
from mri_design.registry import SITES, SiteMaker
from mri_design.sites.base import Site
from mri_design.sites.likelihoods import Logistic
from mri_design.sites.priors import Gaussian
from mri_design.status import Convergence
from mri_design.variances.base import Exact

ENGINE = VariationalGaussian(Exact(), tolerance=1e-5)
PRIORS: dict[str, SiteMaker] = {"gaussian": lambda rate: Gaussian(np.square(rate))}
"""Makers of sites by their rate, beside those of the registry."""
OF_CONSTANTS = 1e-3
"""The rate of an intercept over the rate of the other weights at first: its prior is nearly flat, and stays so."""
LEAST_RATE = 0.03
"""Of the rate at first: labels that let it fall below do not determine it (log odds of 30 and more)."""
ROUNDS = {"rounds": 100, "tolerance": 1e-3}
WEIGHTS = "weights"


@briefly
@dataclass(frozen=True)
class Estimate:
    """Numbers with their uncertainty.

    Parameters
    ----------
    mean, sd : arrays
        Mean and standard deviation of each.
    """

    mean: Array
    sd: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The central interval that holds each number with probability ``level``: lower and upper ends.

        Raises
        ------
        InputError
            For a level that is not between 0 and 1.
        """
        require_numbers(level=level, most=1.0)
        reach = float(scipy.special.ndtri(0.5 * (1 + level))) * self.sd
        return self.mean - reach, self.mean + reach


@dataclass(frozen=True)
class Regression(Estimate):
    """The weights of a regression: ``mean``, ``sd``, ``interval(level)``, ``predict(X_new)``, ``evidence``.

    Parameters
    ----------
    mean, sd : arrays
        Mean and standard deviation of each weight.
    posterior : GaussianPosterior
        The joint posterior of the weights.
    """

    posterior: GaussianPosterior

    def __repr__(self) -> str:
        noise = f", noise variance {self.noise_variance:.4g}" if self.posterior.model.measurement.out_size else ""
        ended = self.convergence.status.value
        return f"{type(self).__name__}({self.mean.size} weights, prior {brief(self.prior)}{noise}, {ended})"

    @property
    def noise_variance(self) -> float:
        """Of the data, given or learnt; 1 without Gaussian data."""
        return self.posterior.model.noise_variance

    @property
    def prior(self) -> Site:
        """The prior of a weight w, a function t(w), given or learnt."""
        (block,) = (block for block in self.posterior.model.blocks if block.name == WEIGHTS)
        return block.potential.rescaled(1 / np.sqrt(self.noise_variance))

    @cached_property
    def covariance(self) -> Array:
        """Covariance matrix of the weights."""
        return np.asarray(self.noise_variance * np.linalg.inv(self.posterior.precision.dense_real()))

    @cached_property
    def evidence(self) -> float:
        """log P(y) for the width and the noise at hand: exact for Gaussian priors and data, else a lower bound.

        If width or noise were learnt, it is the largest value over them.
        """
        return log_evidence(self.posterior).value

    @property
    def convergence(self) -> Convergence:
        """How inference ended."""
        return self.posterior.convergence

    def _projections(self, X_new: Any) -> Estimate:
        """X_new w."""
        rows = design_operator("X_new", X_new)
        if rows.in_shape != self.mean.shape:
            raise InputError("X_new", f"{rows.in_shape} columns", f"{self.mean.shape}, as X has")
        variances = Exact()(self.posterior.precision, [rows], np.random.default_rng(0), self.mean).values[0]
        return Estimate(rows(self.mean), np.sqrt(self.noise_variance * variances))


class LinearRegression(Regression):
    """The posterior of `linear_regression`."""

    def predict(self, X_new: Any, *, noise: bool = True) -> Estimate:
        """New data at the rows of ``X_new``: ``mean``, ``sd`` and ``interval(level)``.

        Parameters
        ----------
        X_new : array, sparse matrix or operator, (rows, weights)
            As X.
        noise : bool
            Whether ``sd`` is that of a new observation, or that of X_new w alone.

        Raises
        ------
        InputError
            For other columns than those of X.
        """
        found = self._projections(X_new)
        return Estimate(found.mean, np.sqrt(found.sd**2 + self.noise_variance)) if noise else found


class LogisticRegression(Regression):
    """The posterior of `logistic_regression`."""

    def predict(self, X_new: Any) -> Array:
        """Probability of label +1 at the rows of ``X_new``, averaged over the posterior of the weights.

        Raises
        ------
        InputError
            For other columns than those of X.
        """
        found = self._projections(X_new)
        return label_probability(found.mean, found.sd**2)


def linear_regression(
    X: Any, y: ArrayLike, *, prior: str | Site = "laplace", noise_variance: float | None = None
) -> LinearRegression:
    """Bayesian linear regression y = X w + noise, with a sparse or a Gaussian prior on the weights w.

    Parameters
    ----------
    X : array, SciPy sparse matrix, SciPy LinearOperator or operator of this package, (data, weights)
        Real. There is no intercept but a column of ones.
    y : array, (data,)
        Real data.
    prior : {"laplace", "gaussian", "student-t", "sech2"} or Site
        By name, its rate is learnt; a constant column of X has a nearly flat prior. A site is taken as it is, in units
        of the weights: ``Laplace(rate=2)`` is exp(-2 |w|), ``Gaussian(precision=4)`` is N(0, 1/4).
    noise_variance : float, optional
        Learnt from the data if left out, which takes more data than weights.

    Returns
    -------
    LinearRegression
        With ``mean``, ``sd``, ``interval(level)``, ``predict(X_new)`` and ``evidence``.

    Raises
    ------
    InputError
        Naming the argument: numbers that are not real and finite, shapes that do not fit, an unknown prior, noise that
        cannot be learnt, more than 9000 weights.

    Notes
    -----
    Exact for Gaussian priors. For others the posterior P is replaced by the Gaussian Q with the least KL(Q || P), and
    the evidence is a lower bound. What is learnt is plugged in: intervals do not contain its own uncertainty.
    """
    rows = design_operator("X", X)
    wanted = f"real numbers {rows.out_shape}, one for every row of X"
    data = number_array("y", y, wanted=wanted, shape=rows.out_shape, kind="real").astype(float)
    if noise_variance is None:
        if data.size <= int(np.prod(rows.in_shape)):
            got = f"nothing, with {data.size} data for {rows.in_shape} weights"
            raise InputError("noise_variance", got, "a number, or more data than weights")
        if not data.any():
            raise InputError("y", "only zeros", "data from which the noise can be learnt", "Give noise_variance.")
    variance = 0.5 * float(np.mean(data**2)) if noise_variance is None else noise_variance
    variance = positive_number("noise_variance", variance)
    power = max(float(np.sum(data**2)), variance)
    block = _weights(rows, prior, power, float(np.sqrt(variance)))
    model = GeneralizedLinearModel(rows, data, variance, (block,))
    return LinearRegression(*_inferred(model, noise=noise_variance is None, scales=isinstance(prior, str)))


def logistic_regression(X: Any, labels: ArrayLike, *, prior: str | Site = "laplace") -> LogisticRegression:
    """Bayesian logistic regression: P(label = +1) = 1 / (1 + exp(-X w)), with a prior on the weights w.

    Parameters
    ----------
    X : array, SciPy sparse matrix, SciPy LinearOperator or operator of this package, (data, weights)
        Real. There is no intercept but a column of ones.
    labels : array, (data,)
        -1 and +1, or 0 and 1, or false and true.
    prior : {"laplace", "gaussian", "student-t", "sech2"} or Site
        As in `linear_regression`.

    Returns
    -------
    LogisticRegression
        With ``mean``, ``sd``, ``interval(level)``, ``predict(X_new)`` and ``evidence``.

    Raises
    ------
    InputError
        Naming the argument, as in `linear_regression`; a prior by name where X separates the labels, whose rate is then
        not determined.

    Notes
    -----
    The posterior P is replaced by the Gaussian Q with the least KL(Q || P), and the evidence is a lower bound.
    """
    rows = design_operator("X", X)
    wanted = f"-1 and +1, or 0 and 1, one for every row of X: {rows.out_shape}"
    given = number_array("labels", labels, wanted=wanted, shape=rows.out_shape, kind="real").astype(float)
    signs = given if np.isin(given, (-1, 1)).all() else 2 * given - 1
    if not np.isin(signs, (-1, 1)).all():
        raise InputError("labels", "other numbers", wanted)
    blocks = SiteBlock("labels", rows, Logistic(signs)), _weights(rows, prior, float(signs.size), 1.0)
    return LogisticRegression(
        *_inferred(GeneralizedLinearModel.of_sites(blocks), noise=False, scales=isinstance(prior, str))
    )


def design_operator(field: str, X: Any) -> LinearOperator:
    """A matrix or an operator as a real `LinearOperator`.

    Raises
    ------
    InputError
        Naming ``field``: no matrix, numbers that are not real and finite, a complex operator, no row or column.
    """
    try:
        if isinstance(X, LinearOperator):
            rows = X
        elif scipy.sparse.issparse(X):
            rows = SparseMatrix(X)
        elif callable(getattr(X, "matvec", None)) or callable(getattr(X, "op", None)) or hasattr(X, "ishape"):
            rows = from_linop(X)
        else:
            rows = Dense(
                np.asarray(number_array(field, X, wanted="a matrix (data, weights)", kind="real"), dtype=float)
            )
    except InputError as error:
        raise error.about(field) from error
    if rows.in_complex or rows.out_complex or 0 in (rows.in_size, rows.out_size):
        raise InputError(field, described(X), "a real matrix (data, weights) of one row and one column or more")
    return rows


def _weights(rows: LinearOperator, prior: str | Site, power: float, noise_sd: float) -> SiteBlock:
    """The block of the prior; by name at first so wide that X w has the given power."""
    if not isinstance(prior, str | Site):
        raise InputError("prior", described(prior), "a name, as 'laplace', or a site, as Laplace(rate=2.0)")
    site = prior
    if isinstance(prior, str):
        makers = {**SITES, **PRIORS}
        require_choice(tuple(makers), prior=prior)
        matrix = rows.to_dense_real()
        gain = float(np.linalg.norm(matrix))
        if not gain:
            raise InputError("X", "only zeros", "columns that explain something")
        constant = np.ptp(matrix, axis=0) == 0
        mixed = constant.any() and not constant.all()
        factor = np.where(constant, OF_CONSTANTS, 1.0).reshape(rows.in_shape) if mixed else 1.0
        site = makers[prior](gain / np.sqrt(power) * factor)
    assert isinstance(site, Site)
    try:
        return SiteBlock(WEIGHTS, Identity(rows.in_shape, is_complex=False), site.rescaled(noise_sd), role="prior")
    except InputError as error:
        raise error.about("prior") from error


def _inferred(model: GeneralizedLinearModel, **learnt: bool) -> tuple[Array, Array, GaussianPosterior]:
    """Mean, standard deviations and posterior of a model, what is ``learnt`` of it included."""

    def refuse_vanishing(found: Hyperparameters) -> None:
        if not model.measurement.out_size and min(found.rates.values(), default=1.0) < LEAST_RATE:
            raise InputError(
                "prior",
                "labels that X separates, which leave its rate open",
                "a site with a rate of its own",
                "For example prior=mri_design.sites.Laplace(rate=1.0).",
            )

    rng = np.random.default_rng(0)  # variances are exact: nothing is drawn
    if any(learnt.values()):
        found = learn_hyperparameters(model, ENGINE, rng, callback=refuse_vanishing, **learnt, **ROUNDS)
        model = found.model
    posterior = ENGINE.infer(model, rng)
    return posterior.mean, np.sqrt(posterior.image_variances), posterior
