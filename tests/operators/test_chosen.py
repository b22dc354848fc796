"""Lines are named by number or by a mask, wherever they are named."""

import numpy as np
import pytest

import mri_design as md

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
    with pytest.raises(md.InputError) as refused:
        call(head)
    assert refused.value.field == "lines" and "(15,)" in refused.value.got


@pytest.mark.parametrize("dtype", [int, np.uint8, np.float32, complex, object])
def test_zeros_and_ones_of_any_type_are_a_mask(head: md.MRSlice, dtype: type) -> None:
    ones = MASK.astype(int).tolist() if dtype is object else MASK.astype(dtype)
    assert list(head.chosen(ones)) == CHOSEN
    assert md.cartesian(ones, (16, 16)).lines.tolist() == CHOSEN
    assert head.chosen(np.asarray(ones).reshape(1, 16)) == CHOSEN, "a row of MATLAB"
    np.testing.assert_array_equal(md.mr_image_model(head.kspace, ones).data, head.model(MASK).data)


def test_numbers_stay_numbers(head: md.MRSlice) -> None:
    assert list(head.chosen([0, 1])) == [0, 1] and list(head.chosen(np.array([1]))) == [1]
    assert head.chosen(np.arange(16)[::-1]) == list(range(15, -1, -1))
    assert head.chosen(np.array([3.0, 5.0])) == [3, 5]
    assert list(head.chosen([])) == []


@pytest.mark.parametrize(
    "given",
    [
        [0, 1, 1, 0, 1],  # a mask of another length
        np.repeat([0, 255], 8),  # values that are neither
        np.linspace(0, 1, 16)[[0, 0, *range(14)]],
        np.array([3.0, 5.5]),
        np.eye(5),
        ["a"],
        "abc",
        3,
        None,
    ],
)
def test_what_is_neither_mask_nor_numbers_is_refused(head: md.MRSlice, given: object) -> None:
    with pytest.raises(md.InputError) as refused:
        head.chosen(given)  # type: ignore[arg-type]
    assert refused.value.field == "lines"


def test_what_may_be_both_is_refused() -> None:
    for given in ([0, 1], np.array([1, 0])):
        with pytest.raises(md.InputError) as refused:
            md.cartesian(given, (2, 4))
        assert refused.value.field == "lines" and refused.value.cure
    both, ones = md.cartesian((0, 1), (2, 4)), np.ones((2, 4), complex)  # as a design of two keeps them
    assert both(ones).size == 8


def test_every_default_is_that_of_the_commands(head: md.MRSlice) -> None:
    recipe = md.Recipe()
    spelled = md.reconstruct(head, range(16), "mean", recipe, np.random.default_rng([0, 2]))
    np.testing.assert_array_equal(md.reconstruct(head).std, spelled.std)
    strategy = md.make_strategy("calibrated")
    start = strategy.default_start(head.candidates, 8)
    spelled_design = md.run_design([head], strategy, 8, recipe, seed=0, start=start)
    assert md.run_design([head], "calibrated", 8).trace.lines == spelled_design.trace.lines
