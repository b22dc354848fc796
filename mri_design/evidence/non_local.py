"""Images under a prior with non-local blocks, which is known from an image only: estimate, look, and estimate again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from mri_design.errors import InputError
from mri_design.estimation.map_estimate import MaximumAPosteriori
from mri_design.inference.base import StepInfo, WarmStart, pooled_variances
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, pooled_products
from mri_design.model.slice import SliceModel, non_locally_refined
from mri_design.model.sparsity import SparsityBlock, prior_blocks
from mri_design.operators.base import Array
from mri_design.variances.columns import ExactByColumns

LOOKS = 2
"""Times that similar patches are looked for."""
COLD = 2
"""Outer loops from a cold start."""


def is_non_local(slice_model: SliceModel) -> bool:
    """Whether the prior of a slice has non-local blocks."""
    return any(block.kind == "non-local" for block in prior_blocks(slice_model.prior))


@dataclass(frozen=True)
class LastStage:
    """Model and warm start of the last estimate.

    Parameters
    ----------
    model : GeneralizedLinearModel
        What is to be estimated: with the patches of the image so far, or without non-local blocks.
    start : WarmStart, optional
        From the stage before it.
    left_out : str
        Why non-local blocks are left out; empty where they are not.
    local : GaussianPosterior, optional
        The first stage's: without non-local blocks, the others as they are beside them.
    matvecs : int
        Products with A of the stages so far.
    """

    model: GeneralizedLinearModel
    start: WarmStart | None
    left_out: str = ""
    local: GaussianPosterior | None = None
    matvecs: int = 0


def mean_stages(
    slice_model: SliceModel,
    lines: Sequence[int],
    engine: DoubleLoop,
    seed: int,
    *,
    signal: float | None = None,
    warm_start: WarmStart | None = None,
    callback: Callable[[StepInfo], None] | None = None,
) -> LastStage:
    """All stages of a posterior mean but the last: without non-local blocks, then with those of the image so far.

    Each is one outer loop from where the one before it ended, or two from a cold start: patches are told apart long
    before the image has settled.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; patches it knows already are left out of the first stage.
    lines : sequence of int
        Measured lines.
    engine : DoubleLoop
        Who infers.
    seed : int
        Every stage draws from a generator made from it, so that draws of one may start those of the next.
    signal : float, optional
        As in `SliceModel.model`.
    warm_start : WarmStart, optional
        Of the model without non-local blocks.
    callback : callable, optional
        Called after every outer loop.
    """
    without = replace(slice_model, alike=None)
    if isinstance(engine.variances, ExactByColumns):
        return LastStage(without.model(lines, signal), warm_start, "exact variances by columns do not cover it")
    slice_model = _at_first_look(slice_model)
    usual = prior_blocks(slice_model.prior)
    start, local, matvecs = warm_start, None, 0
    for look in range(LOOKS):
        loops = COLD if look == 0 and warm_start is None else 1
        model = slice_model.model(lines, signal)
        posterior = engine.cut_short(loops).infer(
            model, np.random.default_rng(seed), warm_start=start, callback=callback
        )
        if local is None and slice_model.n_coils > 1:
            slice_model = _as_determined(slice_model, posterior)
        local = posterior if local is None else local
        slice_model = _reweighted(slice_model, usual, posterior.mean)
        matvecs += posterior.convergence.matvecs
        try:
            slice_model = non_locally_refined(slice_model, posterior.mean)
        except InputError as error:
            start = WarmStart.from_posterior(posterior)
            return LastStage(without.model(lines, signal), start, _refused(error), local, matvecs)
        model = slice_model.model(lines, signal)
        start = carried(posterior, model)
    return LastStage(model, start, local=local, matvecs=matvecs)


def loops_of_stages(slice_model: SliceModel) -> int:
    """Outer loops that `mean_stages` makes at most; none for a prior without non-local blocks."""
    return COLD + LOOKS - 1 if is_non_local(slice_model) else 0


def local_posterior(
    slice_model: SliceModel, lines: Sequence[int], engine: DoubleLoop, seed: int, signal: float | None = None
) -> GaussianPosterior:
    """The posterior without non-local blocks and without what limits the others beside them; see `mean_stages`.

    It is inferred anew: a loop from the first stage would keep too much of its larger variances.
    """
    model = replace(slice_model, alike=None).model(lines, signal)
    return engine.cut_short(COLD).infer(model, np.random.default_rng(seed))


def counting_on(callback: Callable[[StepInfo], None] | None) -> Callable[[StepInfo], None] | None:
    """Wrap a callback so that outer loops are numbered through all stages instead of from one in each."""
    if callback is None:
        return None
    numbers = count(1)

    def numbered(step: StepInfo) -> None:
        callback(replace(step, loop=next(numbers)))

    return numbered


def map_stages(
    slice_model: SliceModel,
    lines: Sequence[int],
    estimate: MaximumAPosteriori,
    *,
    signal: float | None = None,
    start: Array | None = None,
) -> tuple[GeneralizedLinearModel, Array | None, str]:
    """All stages of MAP but the last: its model, the image to start at, and why non-local blocks are left out."""
    without, image = replace(slice_model, alike=None), start
    slice_model = _at_first_look(slice_model)
    for _ in range(LOOKS):
        model = slice_model.model(lines, signal)
        image, _ = estimate(model, image)
        try:
            slice_model = non_locally_refined(slice_model, image)
        except InputError as error:
            return without.model(lines, signal), image, _refused(error)
    return slice_model.model(lines, signal), image, ""


def _at_first_look(slice_model: SliceModel) -> SliceModel:
    """The slice without non-local blocks, the others as they are beside them.

    Of noisy scans they then leave more noise in the image. That is what patches have to be compared in: where the
    other blocks had smoothed them, they would all seem to be alike.
    """
    prior = tuple(block.beside_non_local() for block in prior_blocks(slice_model.prior))
    return replace(slice_model, prior=prior, alike=None)


def _as_determined(slice_model: SliceModel, posterior: GaussianPosterior) -> SliceModel:
    """The slice with a prior that is as strong as what its lines leave open of the image, as a first posterior has it.

    One coil leaves half of the image open where it measures half of the lines; that is what its prior is made for.
    """
    variance = float(np.mean(posterior.image_variances)) / slice_model.noise_variance
    prior = tuple(block.where_determined(variance, posterior.mean) for block in prior_blocks(slice_model.prior))
    return replace(slice_model, prior=prior)


def _reweighted(slice_model: SliceModel, usual: Sequence[SparsityBlock], image: Array) -> SliceModel:
    """The slice with blocks that are to be reweighted as an image asks for, the others as they are."""
    pairs = zip(prior_blocks(slice_model.prior), usual, strict=True)
    prior = tuple(first.less_where_bright(image) if first.reweighted else block for block, first in pairs)
    return replace(slice_model, prior=prior)


def _refused(error: InputError) -> str:
    """Why a non-local block was refused, without the cure: that has just been done."""
    return f"{error.field}: got {error.got}; wanted {error.wanted}"


def carried(
    posterior: GaussianPosterior, model: GeneralizedLinearModel, others: Collection[str] = ("non-local",)
) -> WarmStart:
    """Warm start of another model of the same image: z of equal blocks, and from the draws of new ones and ``others``.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the first model.
    model : GeneralizedLinearModel
        The second one.
    others : collection of str
        Blocks that have the same name in both, but other coefficients.
    """
    names = [block.name for block in posterior.model.blocks]
    known = dict(zip(names, pooled_variances(posterior.model, posterior.marginals), strict=True))
    draws = posterior.marginals.samples
    z: list[Array] = []
    for block in model.blocks:
        if block.name in known and block.name not in others:
            z.append(known[block.name])
        elif draws is None:
            z.append(np.asarray(block.potential.start_variance, dtype=posterior.mean.real.dtype))
        else:
            power = np.mean([_power(block, draw) for draw in draws], axis=0)
            z.append(np.maximum(power, np.finfo(np.float32).tiny))
    return WarmStart(posterior.mean, tuple(z), draws)


def _power(block: SiteBlock, draw: Array) -> Array:
    """|s|^2 of every site of a block."""
    (products,) = pooled_products([block], draw, draw)
    return block.site_power(block.analysis(draw)) if products is None else products[1]
