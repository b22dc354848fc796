"""Lines are named by number or by a mask, wherever they are named."""

import numpy as np
import pytest

import mri_design as md
from mri_design.runs.scan_facts import with_zero_filled

CHOSEN = [3, 6, 7, 8, 9, 12]
MASK = np.isin(np.arange(16), CHOSEN)


@pytest.fixture(scope="module")
def head() -> md.MRSlice:
    return md.prepare(md.load_input("phantom:brain", md.Recipe.of({"simulation": {"matrix": 16}}))).slice_model()


def test_a_mask_gives_the_same_image_as_its_numbers(head: md.MRSlice) -> None:
    by_number = md.reconstruct(head, CHOSEN, with_std=False)
    for mask in (MASK, MASK.tolist()):
        np.testing.assert_array_equal(md.reconstruct(head, mask, with_std=False).image, by_number.image)


def test_a_mask_gives_the_same_measurement_data_and_levels(head: md.MRSlice) -> None:
    np.testing.assert_array_equal(head.acquire(MASK), head.acquire(CHOSEN))
    np.testing.assert_array_equal(head.plain_image(MASK), head.plain_image(CHOSEN))
    np.testing.assert_array_equal(head.model(MASK).data, head.model(CHOSEN).data)
    assert head.measurement(MASK).lines.tolist() == CHOSEN
    assert md.cartesian(MASK, (16, 16)).lines.tolist() == CHOSEN
    assert head.signal_level(MASK) == head.signal_level(CHOSEN)
    (image,) = with_zero_filled([], head, MASK)
    np.testing.assert_array_equal(image.reconstruction.image, head.plain_image(CHOSEN))


def test_a_design_begins_with_the_lines_of_a_mask(head: md.MRSlice) -> None:
    centre = np.isin(np.arange(16), [7, 8, 9])
    by_mask = md.run_design([head], "random", 6, start=centre)
    assert by_mask.trace.lines == md.run_design([head], md.make_strategy("random"), 6, start=[7, 8, 9]).trace.lines
    assert by_mask.trace.start == (7, 8, 9)


def test_a_mask_of_a_plane_names_its_samples() -> None:
    recipe = md.Recipe.of({"simulation": {"matrix": 16}, "design": {"encoding": "plane"}})
    plane = md.prepare(md.load_input("phantom:brain", recipe), recipe).slice_model(0, recipe)
    mask = np.zeros((16, 16), dtype=bool)
    mask[8, 8], mask[2, 5] = True, True
    np.testing.assert_array_equal(plane.acquire(mask), plane.acquire([2 * 16 + 5, 8 * 16 + 8]))


@pytest.mark.parametrize(
    "call",
    [
        lambda head: md.reconstruct(head, MASK[1:]),
        lambda head: head.model(MASK[1:]),
        lambda head: md.run_design([head], "random", 6, start=MASK[1:]),
    ],
)
def test_a_mask_of_another_length_is_refused_by_name(head: md.MRSlice, call) -> None:
    with pytest.raises(md.InputError, match=r"mask of lines: got bool \(15,\); wanted bool \(16,\)"):
        call(head)


def test_every_default_is_that_of_the_commands(head: md.MRSlice) -> None:
    recipe = md.Recipe()
    spelled = md.reconstruct(head, range(16), "mean", recipe, np.random.default_rng([0, 2]))
    np.testing.assert_array_equal(md.reconstruct(head).std, spelled.std)
    strategy = md.make_strategy("calibrated")
    start = strategy.default_start(head.candidates, 8)
    spelled_design = md.run_design([head], strategy, 8, recipe, seed=0, start=start)
    assert md.run_design([head], "calibrated", 8).trace.lines == spelled_design.trace.lines
