"""[phase] in designs: candidates by recipe, interrupted designs, and the model that the image is made with."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import (
    Checkpoint,
    DesignOptions,
    DesignState,
    InferenceOptions,
    MRSlice,
    Recipe,
    WarmStart,
    make_strategy,
    reconstruct,
    run_design,
)
from mri_design.design.trace import DesignTrace
from mri_design.experiment.designing import NO_OPTIONS
from mri_design.experiment.phase_choice import candidate_models, final_models
from mri_design.model.phase import PhasePrior
from mri_design.operators.cartesian import CentredFFT
from tests.design_steps import design_step

N = (24, 16)


class PlugPulledError(Exception):
    """Somebody pulled the plug."""


@pytest.fixture
def phased() -> MRSlice:
    """Nothing but a smooth phase to predict it by."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    image = (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=N)) * np.exp(1j * (1.5 * y + 3 * x**2))
    noise = 0.005 * (rng.standard_normal(N) + 1j * rng.standard_normal(N))
    return MRSlice((CentredFFT(N)(image) + noise)[None].astype(np.complex64), np.ones(N[0], bool), 0.005**2)


def recipe(small: Recipe, model: str, **phase: object) -> Recipe:
    return small.replacing("phase", model=model, imaginary_ratios=(3.0,), **phase)


def design(one: MRSlice, settings: Recipe, options: DesignOptions = NO_OPTIONS) -> DesignState:
    return run_design([one], make_strategy("information-gain"), 18, settings, seed=0, start=8, options=options)


def test_a_recipe_names_its_candidates(phased: MRSlice, small: Recipe) -> None:
    image = phased.central_image(range(8, 16))
    assert candidate_models(recipe(small, "modulus")) is None
    both = candidate_models(recipe(small, "automatic"))
    alone = candidate_models(recipe(small, "aware"))
    assert both is not None and alone is not None
    assert [bool(v.phase) for v in both(phased, image)] == [False, True]
    aware = PhasePrior(None, 3.0)
    (refined,) = alone(MRSlice(phased.kspace, phased.measured, phased.noise_variance, phase=aware), image)
    assert refined.phase is not None and refined.phase.phase is not None
    names = [recipe(small, m).phase.names for m in ("modulus", "aware", "automatic")]
    assert names == [("modulus",), ("phase-aware 3",), ("modulus", "phase-aware 3")]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["automatic", "aware"])
def test_a_design_that_was_killed_chooses_the_same_models(
    tmp_path: Path, phased: MRSlice, small: Recipe, model: str
) -> None:
    settings = recipe(small, model)
    one = MRSlice(phased.kspace, phased.measured, phased.noise_variance, phase=settings.phase.prior())
    whole = design(one, settings)
    assert {s.forecast.models for s in whole.trace.steps} == ({(0,), (1,)} if model == "automatic" else {(0,)})
    kept = Checkpoint(tmp_path / "c.npz", "me")
    for stop in (10, 13, 17):

        def pull(state: DesignState, stop: int = stop) -> None:
            if len(state.trace.lines) == stop:
                raise PlugPulledError

        with pytest.raises(PlugPulledError):
            design(one, settings, DesignOptions(checkpoint=kept, callback=pull))
    again = design(one, settings, DesignOptions(checkpoint=kept))
    assert again.trace.lines == whole.trace.lines
    np.testing.assert_array_equal(again.warm[0].mean, whole.warm[0].mean)
    for a, b in zip(again.trace.steps, whole.trace.steps, strict=True):
        assert (a.forecast.models, a.cost.matvecs) == (b.forecast.models, b.cost.matvecs)
        assert a.outcome.actual_energy == b.outcome.actual_energy
        np.testing.assert_array_equal(a.outcome.model_energies, b.outcome.model_energies)


@pytest.mark.slow
def test_the_image_is_made_with_the_model_that_won(phased: MRSlice, small: Recipe) -> None:
    truth = CentredFFT(N).adjoint(phased.kspace[0])
    settings = recipe(small, "automatic")
    state = design(phased, settings)
    (final,) = final_models([phased], state, settings)
    assert final.number == 1 and final.slice_model.phase is not None and final.recipe.phase.model == "modulus"
    errors = []
    for one, with_recipe, warm in ((final.slice_model, final.recipe, final.warm), (phased, small, None)):
        options = InferenceOptions(warm_start=warm, signal=state.signals[0])
        rng = np.random.default_rng(0)
        image = reconstruct(one, state.trace.lines, "mean", with_recipe, rng, with_std=False, options=options).image
        errors.append(np.linalg.norm(image - truth))
    assert errors[0] < 0.8 * errors[1]


def test_the_last_line_has_a_say(phased: MRSlice, small: Recipe) -> None:
    """Three lines are no evidence; with the fourth there is, though no posterior has followed from it yet."""
    image = phased.central_image(range(8, 16))
    warm = WarmStart(image, ())
    steps = tuple(design_step(i, models=(0,), model_energies=np.array([[4.0, 1.0]])) for i in range(4))
    for count, number in ((3, 0), (4, 1)):
        trace = DesignTrace("rule", N[0], (12,), steps[:count])
        state = DesignState(trace, (1.0,), (warm,), ((None, WarmStart(image, ())),))
        (final,) = final_models([phased], state, recipe(small, "automatic"))
        assert final.number == number
        assert final.warm is (state.rivals[0][1] if number else warm)


def test_designs_without_posteriors_leave_the_choice_to_the_reconstruction(phased: MRSlice, small: Recipe) -> None:
    settings = recipe(small, "automatic")
    state = run_design([phased], make_strategy("random"), 12, settings, seed=0, start=4)
    (final,) = final_models([phased], state, settings)
    assert (final.slice_model, final.recipe, final.warm, final.number) == (phased, settings, None, None)
