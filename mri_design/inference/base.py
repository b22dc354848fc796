"""What every inference method offers: init, step, infer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mri_design.errors import InputError, described, number_array, require_instance, require_random, require_working
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.model.marginals import Variances
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array
from mri_design.status import Convergence

__all__ = [
    "InferenceMethod",
    "StepInfo",
    "WarmStart",
    "cold_start",
    "pooled_variances",
    "require_engine",
    "require_fit",
    "require_task",
]


def pooled_variances(model: GeneralizedLinearModel, marginals: Variances) -> tuple[Array, ...]:
    """z per site: variances summed over each site's group, kept away from zero."""
    floor = np.finfo(np.float32).tiny
    return tuple(
        np.maximum(block.pooled(values), floor) for block, values in zip(model.blocks, marginals.values, strict=True)
    )


@dataclass(frozen=True)
class WarmStart:
    """What one inference hands to the next: an image, pooled z per block, and draws to start new ones from.

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
        """Everything that a posterior can hand on."""
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
    callback: Callable[[StepInfo], None] | None = None,
) -> None:
    """Refuse what no inference method can begin with.

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
        image = number_array(f"warm start: {name}", image)
        found = np.shape(image) if name == "mean" else np.shape(image)[1:]
        if found != shape:
            raise InputError(field=f"warm start: {name}", got=f"images of shape {found}", wanted=f"{shape}")
        if np.iscomplexobj(image) and not model.measurement.in_complex:
            raise InputError(field=f"warm start: {name}", got="complex numbers", wanted="a real image")
        if not np.isfinite(image).all():
            raise InputError(field=f"warm start: {name}", got="NaN or infinite values", wanted="finite numbers")
    if not isinstance(start.z, tuple | list):
        raise InputError(field="warm start: z", got=described(start.z), wanted="a tuple of arrays, one per block")
    if len(start.z) != len(model.blocks):
        raise InputError(
            field="warm start: z", got=f"{len(start.z)} arrays", wanted=f"one for {len(model.blocks)} blocks"
        )
    for block, z in zip(model.blocks, start.z, strict=True):
        named = f"warm start: z of block {block.name!r}"
        z = number_array(named, z)
        sizes = zip(reversed(np.shape(z)), reversed(block.site_shape), strict=False)
        if np.ndim(z) > len(block.site_shape) or any(n not in (1, wanted) for n, wanted in sizes):
            raise InputError(field=named, got=f"shape {np.shape(z)}", wanted=f"{block.site_shape}")
        if np.iscomplexobj(z) or not (np.isfinite(z).all() and np.all(np.asarray(z) > 0)):
            raise InputError(field=named, got="zero, negative or NaN", wanted="positive finite numbers")


def cold_start(model: GeneralizedLinearModel) -> WarmStart:
    """u = X^H y and z from the sites' own scales."""
    mean = model.back_projection()
    real = mean.real.dtype
    return WarmStart(mean, tuple(np.asarray(b.potential.start_variance, dtype=real) for b in model.blocks))


@dataclass(frozen=True)
class StepInfo:
    """What one outer loop did, for progress displays.

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


class InferenceMethod(Protocol):
    """Frozen settings that turn a model into a Gaussian posterior."""

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> GaussianPosterior:
        """The posterior of ``model``."""
        ...
