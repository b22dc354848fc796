"""Lines, samples and shots are chosen by number or by a mask, wherever they are named."""

import numpy as np
import pytest

import mri_design as md
from mri_design.experiment import load_input
from mri_design.operators import chosen_flags, chosen_numbers
from tests.refusals import refused

CHOSEN = [3, 6, 7, 8, 9, 12]
MASK = np.isin(np.arange(16), CHOSEN)


@pytest.fixture(scope="module")
def head() -> md.MRSlice:
    return md.prepare(load_input("phantom:brain", md.Recipe.of({"simulation": {"matrix": 16}}))).slice_model()


def test_a_mask_gives_the_same_image_design_and_model_as_its_numbers(head: md.MRSlice) -> None:
    by_number = md.reconstruct(head, CHOSEN, with_std=False)
    for mask in (MASK, MASK.tolist()):
        np.testing.assert_array_equal(md.reconstruct(head, mask, with_std=False).image, by_number.image)
    np.testing.assert_array_equal(head.acquire(MASK), head.acquire(CHOSEN))
    np.testing.assert_array_equal(head.model(MASK).data, head.model(CHOSEN).data)
    assert head.measurement(MASK).lines.tolist() == md.cartesian(MASK, (16, 16)).lines.tolist() == CHOSEN
    by_mask = md.run_design([head], "random", 6, start=np.isin(np.arange(16), [7, 8, 9]))
    assert by_mask.trace.lines == md.run_design([head], md.make_strategy("random"), 6, start=[7, 8, 9]).trace.lines
    assert by_mask.trace.start == (7, 8, 9)
    for call in (md.reconstruct, md.MRSlice.model, lambda one, mask: md.run_design([one], "random", 6, start=mask)):
        with refused("lines"):
            call(head, MASK[1:])


@pytest.mark.parametrize("dtype", [int, np.uint8, np.float32, complex, list])
def test_zeros_and_ones_of_any_type_are_a_mask(dtype: type) -> None:
    ones = MASK.astype(int).tolist() if dtype is list else MASK.astype(dtype)
    for given in (ones, np.asarray(ones).reshape(1, 16)):  # a row of MATLAB
        assert list(chosen_numbers(given, (16,), "line")) == CHOSEN
        np.testing.assert_array_equal(chosen_flags(given, (16,)), MASK)
    plane = np.zeros((4, 6), dtype=bool)
    plane[3, 1], plane[0, 2] = True, True
    assert chosen_numbers(plane, (4, 6), "sample") == [2, 19]


def test_numbers_stay_numbers() -> None:
    for given in ([0, 1], np.array([1]), np.arange(16)[::-1], np.array([3.0, 5.0]), []):
        assert list(chosen_numbers(given, (16,), "line")) == np.asarray(given, dtype=int).tolist()
    both = md.cartesian((0, 1), (2, 4))  # may be both: a tuple is a design of two lines
    assert both(np.ones((2, 4), complex)).size == 8


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ([0, 1, 1, 0, 1], 16),  # a mask of another length
        (np.repeat([0, 255], 8), 16),  # values that are neither
        (np.linspace(0, 1, 16)[[0, 0, *range(14)]], 16),
        (np.array([3.0, 5.5]), 16),
        (np.eye(5), 16),
        (["a"], 16),
        ("abc", 16),
        (3, 16),
        (None, 16),
        ([0, 1], 2),  # may be both
        (np.array([1, 0]), 2),
    ],
)
def test_what_is_neither_or_may_be_both_is_refused(given: object, lines: int) -> None:
    with refused("lines"):
        chosen_numbers(given, (lines,), "line")  # type: ignore[arg-type]
