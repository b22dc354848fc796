"""What a design sees when it looks at its image is what the run makes of its lines in the end."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import DesignState, StopRule
from mri_design.experiment import (
    MOST_SLICES,
    DesignOptions,
    ImageErrors,
    image_rng,
    load_scan,
    with_noise_samples,
)
from mri_design.experiment.regions import Regions
from mri_design.model import SliceModel


@pytest.fixture(scope="module")
def recipe() -> md.Recipe:
    return md.load_recipe("local").replacing("input", matrix=32)


@pytest.fixture(scope="module")
def one(recipe: md.Recipe) -> SliceModel:
    return md.calibrate(load_scan("phantom:t2w", recipe, 0).select_slice(0), recipe).slice_model(
        0, **recipe.slice_settings
    )


def designed(slices: list[SliceModel], recipe: md.Recipe, count: int = 14) -> DesignState:
    return md.run_design(slices, "calibrated", count, recipe, start=6)


def test_the_error_is_that_of_the_error_bars_of_the_final_image(one: SliceModel, recipe: md.Recipe) -> None:
    state = designed([one], recipe)
    found = ImageErrors(recipe, 3)([one], replace(state, warm=()))
    made = md.reconstruct(one, state.trace.lines, "mean", recipe, image_rng(3))
    assert made.std is not None
    error = float(np.linalg.norm(made.std))
    assert found == pytest.approx(error / np.hypot(error, np.linalg.norm(made.image)), rel=0.02)
    truth = md.reconstruct(one, None, "mean", recipe).image
    actual = np.linalg.norm(made.image - truth) / np.linalg.norm(truth)
    assert actual / 2 < found < 2 * actual
    warm = ImageErrors(recipe, 3)([one], state)
    assert warm == pytest.approx(found, rel=0.1)


def test_the_error_of_whitened_coils_is_that_of_the_image_in_the_units_of_the_file(recipe: md.Recipe) -> None:
    """As the run reports it: pixels near noisy coils count for more in whitened units."""
    scan = md.load_phantom("t2w", shape=(32, 32), noise=0.0, n_coils=4, rng=np.random.default_rng(0))
    parts = np.random.default_rng(1).standard_normal((2, 1, 4, 32, 32))
    loud = 0.005 * np.geomspace(1, 20, 4)[:, None, None]
    kspace = (scan.kspace + loud * (parts[0] + 1j * parts[1])).astype(np.complex64)
    silent = np.random.default_rng(2).standard_normal((2, 4, 4000))
    samples = loud[:, 0] * (silent[0] + 1j * silent[1])
    data = with_noise_samples(md.KSpaceData(kspace, np.ones(32, dtype=bool), name="head"), samples)
    coils = md.calibrate(replace(data, coil_maps=scan.coil_maps), recipe).slice_model(0, **recipe.slice_settings)
    state = designed([coils], recipe, 18)
    errors = ImageErrors(recipe, 3)
    found, made = errors([coils], state), errors.image_of(state.trace.lines)
    assert made is not None and made.predicted_error is not None
    assert found == pytest.approx(made.times(coils.image_unit).predicted_error, rel=1e-4)
    assert abs(made.predicted_error / found - 1) > 0.05


def test_slices_count_together_and_a_few_speak_for_many(one: SliceModel, recipe: md.Recipe) -> None:
    state = designed([one], recipe)
    half = replace(one, kspace=one.kspace / 2)
    both = replace(state, signals=(state.signals[0], state.signals[0] / 2), warm=())
    errors = ImageErrors(recipe, 0)
    alone = errors([one], replace(state, warm=()))
    assert errors([one, one], replace(both, signals=(state.signals[0],) * 2)) == pytest.approx(alone, rel=1e-3)
    assert errors([one, half], both) > alone  # whose noise has stayed as large
    called: list[int] = []

    class Counted(ImageErrors):
        def _energies(self, slices: object, state: object, place: int) -> tuple[float, float]:
            called.append(place)
            return 1.0, 3.0

    assert Counted(recipe, 0)([one] * 9, state) == 0.5 and called == [0, 3, 5, 8] and len(called) == MOST_SLICES


class Wanting(StopRule):
    """A rule that ends nothing, and wants to know the image's error where the engine leaves it no choice."""

    def needs_image_error(self, forecast: object, ratio: float) -> bool:
        return ratio == 0

    def __call__(self, forecast: object) -> bool:
        return False


@pytest.mark.parametrize(
    ("own_maps", "looked"),
    [(False, [16, 26]), (True, [9, 14, 21])],  # every tenth line; and maps of 6, 9, 14, 21 lines
    ids=["maps known", "maps of the lines measured"],
)
def test_designs_look_at_every_tenth_line_and_where_maps_are_new(
    recipe: md.Recipe, own_maps: bool, looked: list[int]
) -> None:
    coils = recipe.replacing("simulation", coils=4)
    data = load_scan("phantom:t2w", coils, 0).select_slice(0)
    one = md.calibrate(replace(data, coil_maps=None) if own_maps else data, coils, growing=own_maps).slice_model(
        0, **coils.slice_settings
    )
    assert (one.own_maps is not None) == own_maps
    counts: list[int] = []

    def image_error(slices: object, state: DesignState) -> float:
        counts.append(len(state.trace.lines))
        return 0.9

    options = DesignOptions(stop=Wanting(), image_error=image_error)
    md.run_design([one], "calibrated", 28, coils, start=6, options=options)
    assert counts == looked


def test_draws_of_slices_that_share_a_mask_are_independent(one: SliceModel, recipe: md.Recipe) -> None:
    state, drawing = designed([one], recipe), recipe.replacing("reconstruction", draws=64)
    both = replace(state, signals=(state.signals[0],) * 2, warm=())
    regions = Regions({"both": np.ones((2, *one.shape), dtype=bool)}, ("both",))
    images = ImageErrors(drawing, 0, (), regions).images([one, one], both)
    means = [images[place].draws.mean(axis=(1, 2)).real for place in (0, 1)]
    assert abs(np.corrcoef(*means)[0, 1]) < 0.5
