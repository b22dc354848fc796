"""Refusals that tests expect: by type and field, whatever their words are."""

from collections.abc import Callable
from contextlib import contextmanager

import pytest

from mri_design import InputError


@contextmanager
def refused(field, cure="", kind=InputError):
    """What is done in the context raises ``kind`` about ``field``, which a file's path may precede, with this cure."""
    with pytest.raises(kind) as caught:
        yield caught
    found = caught.value.field
    assert found == field or found.endswith(tuple(mark + field for mark in (": ", "/", "."))), caught.value
    assert cure in caught.value.cure, caught.value


def refuses(field: str, call: Callable[..., object], /, *given: object, **named: object) -> None:
    """Calling something with these arguments raises an error about ``field``."""
    with refused(field):
        call(*given, **named)
