"""The interface of inference methods, warm starts, and the loop that most engines are.

`Engine` checks a model and hands it on, `LoopEngine` is the loop over `init`, `step`, `done` and `finish`; callbacks,
status and `Convergence` are made there and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    NumberKind,
    described,
    number_array,
    require_instance,
    require_random,
    require_working,
)
from mri_design.model.circulant import ONCE, circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_model
from mri_design.model.posterior import (
    GaussianPosterior,
    PosteriorPrecision,
    Variances,
    keep_freed_memory,
    require_posterior,
)
from mri_design.operators.base import Array, LinearOperator
from mri_design.sites.base import ENGINES
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator


def pooled_variances(model: GeneralizedLinearModel, marginals: Variances) -> tuple[Array, ...]:
    """z per site: variances summed over each site's group, kept away from zero."""
    floor = np.finfo(np.float32).tiny
    return tuple(
        np.maximum(block.pooled(values), floor) for block, values in zip(model.blocks, marginals.values, strict=True)
    )


@briefly
@dataclass(frozen=True)
class WarmStart:
    """A place to start an inference from: an image, pooled z per block, and draws to start new ones from.

    Parameters
    ----------
    mean : array
        Image to start the inner problem from.
    z : tuple of float arrays
        Per block, pooled over groups, in units of sigma^2.
    samples : array, shape (count, *image shape), optional
        Draws with nearly the covariance wanted, made from the same seed: where their solves may start.
    """

    mean: Array
    z: tuple[Array, ...]
    samples: Array | None = None

    @classmethod
    def from_posterior(cls, posterior: GaussianPosterior) -> WarmStart:
        """Warm start from a posterior: its mean, variances and samples."""
        require_posterior(posterior)
        marginals = posterior.marginals
        return cls(posterior.mean, pooled_variances(posterior.model, marginals), marginals.samples)


def require_engine(**settings: Any) -> None:
    """Refuse anything but an inference method, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(method="infer", wanted="an inference method, as DoubleLoop(Exact())", **settings)


def require_task(
    model: GeneralizedLinearModel,
    rng: np.random.Generator,
    warm_start: WarmStart | None = None,
    callback: Callback = None,
) -> None:
    """Refuse arguments with which no inference method can begin.

    Raises
    ------
    InputError
        For anything but a model, a generator, a warm start of this model and a callable.
    """
    require_model(model)
    require_random(rng)
    if warm_start is not None:
        require_fit(warm_start, model)
    if callback is not None:
        require_working(callback=callback, takes=1, wanted="a function of one StepInfo")


def require_fit(start: WarmStart, model: GeneralizedLinearModel) -> None:
    """Refuse a warm start that is not one of this model.

    Raises
    ------
    InputError
        For anything but a WarmStart, another number of z than blocks, other shapes, z that are not positive and finite,
        an image or draws that are not finite.
    """
    require_instance(
        WarmStart,
        wanted="a WarmStart",
        cure="Make one of a posterior: WarmStart.from_posterior(posterior).",
        warm_start=start,
    )
    shape = model.image_shape
    for name, image in (("mean", start.mean), ("samples", start.samples)):
        if image is None:
            continue
        wanted = f"finite{'' if model.measurement.in_complex else ' real'} images {shape}"
        whole = shape if name == "mean" else (None, *shape)
        kind: NumberKind = "finite" if model.measurement.in_complex else "real"
        number_array(f"warm start: {name}", image, wanted=wanted, shape=whole, kind=kind)
    if not isinstance(start.z, tuple | list):
        raise InputError("warm start: z", described(start.z), "a tuple of arrays, one per block")
    if len(start.z) != len(model.blocks):
        raise InputError("warm start: z", f"{len(start.z)} arrays", f"one for {len(model.blocks)} blocks")
    for block, z in zip(model.blocks, start.z, strict=True):
        named = f"warm start: z of block {block.name!r}"
        z = number_array(named, z, wanted="positive finite numbers", kind="positive")
        sizes = zip(reversed(np.shape(z)), reversed(block.site_shape), strict=False)
        if np.ndim(z) > len(block.site_shape) or any(n not in (1, wanted) for n, wanted in sizes):
            raise InputError(named, f"shape {np.shape(z)}", f"{block.site_shape}")


SELDOM = 0.1
"""Waves measured more seldom than that are taken to be measured so often: they hold noise."""


def cold_start(model: GeneralizedLinearModel) -> WarmStart:
    """u = X^H y and z from the sites' own scales.

    Where waves are measured more than once, as along a trajectory, X^H y is far too large in the middle of k-space:
    each wave is divided by how often it is measured.
    """
    mean = model.back_projection()
    real = mean.real.dtype
    often = model.measurement.circulant_spectrum()
    if often is not None and mean.ndim == 2 and often.max() > ONCE:
        mean = circulant_inverse(np.maximum(often, SELDOM))(mean)
    return WarmStart(mean, tuple(np.asarray(b.potential.start_variance, dtype=real) for b in model.blocks))


@dataclass(frozen=True)
class StepInfo:
    """A report on one outer loop, for progress displays.

    Parameters
    ----------
    loop : int
        Number of the outer loop, from 1.
    criterion : float or None
        phi, where log|A| was available.
    change : float
        Change that the stopping rule looks at.
    inner : Convergence
        Of the inner problem.
    variances : Convergence
        Of the variance estimation.
    """

    loop: int
    criterion: float | None
    change: float
    inner: Convergence
    variances: Convergence


Callback = Callable[[StepInfo], None] | None
"""Sees a report on every loop, if anything does."""


def non_gaussian_blocks(model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
    """The blocks of a model that are not Gaussian: all that matter to engines that take Gaussian blocks exactly."""
    return tuple(block for block in model.blocks if block.potential.gaussian_precision is None)


class Engine(ABC):
    """Base of the inference engines: a subclass declares in ``needs`` which capabilities of sites it requires.

    A new engine subclasses `LoopEngine`, or this class where its loop belongs to somebody else (an optimiser of SciPy),
    and says in ``needs`` which of the capabilities of `sites.base.Site` the sites of a model must offer. Making
    the class enters it among the engines that refusals name.
    """

    needs: frozenset[str] = frozenset()
    """Capabilities that every site must offer; settings may need more or less than the class."""
    relief: ClassVar[dict[str, str]] = {}
    """By what is needed, the setting with which the engine would do without, as an imperative sentence."""

    def __init_subclass__(cls, *, named: bool = True) -> None:
        """``named=False`` for classes that refusals do not name: bases of engines."""
        super().__init_subclass__()
        if named and isinstance(cls.needs, frozenset):
            ENGINES.setdefault(cls.__name__, cls.needs)

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callback = None,
    ) -> GaussianPosterior:
        """The posterior of a model.

        Parameters
        ----------
        model : GeneralizedLinearModel
            The model to infer.
        rng : numpy Generator
            The source of whatever is random in the engine: variances from draws, partitions. Engines without any leave
            it alone.
        warm_start : WarmStart, optional
            Image, z and draws of a neighbouring problem, where the engine begins. Without it the engine begins at
            X^H y and at the scales of the sites themselves. It is always held to the shapes of the model; engines that
            begin at the prior have no other use for it.
        callback : callable, optional
            Called with a `StepInfo` after every loop.

        Returns
        -------
        GaussianPosterior
            Its ``convergence`` says how the loop ended: ``iterations`` are loops, ``residual`` the last value of what
            the engine's tolerance is held against. ``criterion`` has a value for each loop, where it is known.

        Raises
        ------
        InputError
            For arguments of another kind, a warm start of another model, sites that do not offer what the engine needs
            (the message names block, site and the engines that take it), and the errors that the class lists.
        """
        self.check(model, rng, warm_start, callback)
        keep_freed_memory()
        return self.posterior(model, rng, warm_start, callback)

    def check(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        warm_start: WarmStart | None,
        callback: Callback,
    ) -> None:
        """Refuse arguments with which the engine cannot begin; see `infer`."""
        require_task(model, rng, warm_start, callback)
        for block in self.needing(model):
            for need in sorted(self.needs):
                block.require({need}, user=type(self).__name__, relief=self.relief.get(need, ""))

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """The blocks whose sites must have the capabilities in ``needs``; by default all."""
        return model.blocks

    @abstractmethod
    def posterior(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        warm_start: WarmStart | None,
        callback: Callback,
    ) -> GaussianPosterior:
        """The posterior of a model that was checked."""


@dataclass(frozen=True)
class LoopState:
    """The state that a loop carries from step to step; engines add their own.

    Parameters
    ----------
    loop : int
        Loops that were made.
    change : float
        The number that the tolerance is held against.
    matvecs : int
        Products with A spent.
    info : StepInfo or None
        Report on the last step; None where there is nothing to report (a trial step that was not taken).
    """

    loop: int = 0
    change: float = float("inf")
    matvecs: int = 0
    info: StepInfo | None = None


State = TypeVar("State", bound=LoopState)


class LoopEngine(Engine, Generic[State], named=False):
    """An engine that is a loop: it supplies `init`, `step`, `done` and `finish`; the loop itself stands here."""

    @abstractmethod
    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> State:
        """The state before the first loop."""

    @abstractmethod
    def step(self, state: State) -> State:
        """The state after one more loop."""

    @abstractmethod
    def done(self, state: State) -> Status | None:
        """How the loop ended, if it did; also called before the first step."""

    @abstractmethod
    def finish(self, state: State, convergence: Convergence) -> GaussianPosterior:
        """The posterior that a state stands for."""

    @property
    def most_loops(self) -> float:
        """After so many loops the engine stops whatever it has reached."""
        return float("inf")

    def iterate(self, state: State, callback: Callback = None) -> tuple[State, Convergence]:
        """Step until the engine is done, or to its limit."""
        status = self.done(state)
        while status is None and state.loop < self.most_loops:
            state = self.step(state)
            if callback is not None and state.info is not None:
                callback(state.info)
            status = self.done(state)
        status = status or Status.MAX_ITERATIONS
        advice = "" if status is Status.CONVERGED else self.advice(state, status)
        return state, Convergence(status, state.loop, float(state.change), state.matvecs, advice)

    def advice(self, state: State, status: Status) -> str:
        """Which setting to change so that a loop that ended like this converges; empty where none is known."""
        return ""

    def posterior(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        warm_start: WarmStart | None,
        callback: Callback,
    ) -> GaussianPosterior:
        return self.finish(*self.iterate(self.init(model, rng, warm_start), callback))


def with_unseen(
    posterior: GaussianPosterior, measurement: LinearOperator, estimator: VarianceEstimator, rng: np.random.Generator
) -> GaussianPosterior:
    """The posterior with the rows of further data in its precision: same mean, same widths, new draws.

    Under a Gaussian the covariance after a measurement does not depend on the measured values. The widths are those
    from before: they change with data.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    measurement : LinearOperator
        X of everything that is in its precision afterwards: what is measured, and what will be.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.

    Returns
    -------
    GaussianPosterior
        With marginals that hold no z of sites, only draws.
    """
    precision = PosteriorPrecision(measurement, posterior.precision.blocks, posterior.precision.site_precisions)
    marginals = estimator(precision, (), rng, posterior.mean, previous=posterior.marginals)
    return replace(posterior, precision=precision, marginals=marginals)
