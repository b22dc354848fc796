"""The checks that refuse arguments: what they let through, and what they say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mri_design import InputError
from mri_design.errors import UnknownNameError, naming_options, number_array, option, require_choice
from tests.refusals import refused


def test_a_choice_is_one_of_the_words_and_the_nearest_one_is_named() -> None:
    require_choice(("none", "estimate"), criterion="none", other="estimate")
    for wrong, cure in (("estimat", "Did you mean estimate?"), (3, "")):
        with pytest.raises(InputError) as refused:
            require_choice(("none", "estimate"), criterion=wrong)
        assert (refused.value.field, refused.value.cure) == ("criterion", cure)


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({"shape": (None, 2)}, np.zeros((3, 4))),
        ({"shape": (None, 2)}, np.zeros(2)),
        ({"kind": "real"}, [1j]),
        ({"kind": "finite"}, [1.0, np.nan]),
        ({"kind": "positive"}, [1.0, 0.0]),
        ({"kind": "positive"}, [np.inf]),
        ({"kind": "positive"}, [1 + 0j]),
    ],
)
def test_an_array_is_as_asked_or_refused(asked: dict, value: object) -> None:
    with refused("k"):
        number_array("k", value, **asked)
    array = np.ones((3, 2))
    assert number_array("k", array, shape=(None, 2), kind="positive") is array


def test_an_error_survives_the_way_from_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(InputError("field", "got", "wanted", "Cure.")))
    assert (error.field, error.got, error.wanted, error.cure) == ("field", "got", "wanted", "Cure.")


def test_messages_name_options_on_the_command_line_and_arguments_in_python() -> None:
    named = {"maps": "FILE", "noise-sd": 0.1, "with": "slices", "overwrite": "", "lines": "", "input.contrast": "all"}
    assert [option(name, value) for name, value in named.items()] == [
        "coil_maps=FILE",
        "noise_sd=0.1",
        "companions=['slices']",
        "overwrite=True",
        "lines",
        "recipe={'input': {'contrast': 'all'}}",
    ]
    assert option("input.centre", "LINE,SAMPLE") == "recipe={'input': {'centre': [LINE, SAMPLE]}}"
    assert option("matrix", "16,12") == "matrix=[16, 12]"
    with naming_options():
        assert option("maps", "FILE") == "--maps FILE" and option("overwrite") == "--overwrite"
        with naming_options():
            pass
        assert option("noise-sd", 0.1) == "--noise-sd 0.1"
    assert option("maps") == "coil_maps"


def test_an_unknown_name_has_the_nearest_as_its_cure_wherever_it_was_raised() -> None:
    error = pickle.loads(pickle.dumps(UnknownNameError("strategy", "traned:order.npz", ["random", "trained:FILE"])))
    assert (error.what, error.known) == ("strategy", ("random", "trained:FILE")) and "trained?" in error.cure
    assert not UnknownNameError("rule", "xyz", ["lbcs"]).cure
