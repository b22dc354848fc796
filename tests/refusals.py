"""Refusals that tests expect: by type and field, whatever their words are."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mri_design import InputError


@contextmanager
def refused(field: str, kind: type[InputError] = InputError) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """What is done in the context raises ``kind`` about ``field``."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.field == field
