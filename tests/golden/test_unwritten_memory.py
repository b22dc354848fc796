"""Nothing depends on what new memory happens to hold: runs are the same where it is full of NaN."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.outcomes import carried_out, differences

pytestmark = pytest.mark.thorough

RUNS = ["design-calibrated", "design-calibrated-coils", "design-plane-gain", "design-spokes", "protocol"]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_does_not_read_memory_that_it_has_not_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("as it is", "full"):
        (tmp_path / folder).mkdir()
    expected = carried_out(name, tmp_path / "as it is")
    for maker in ("empty", "empty_like"):
        monkeypatch.setattr(np, maker, full_of_nan(getattr(np, maker)))
    assert not list(differences(expected, carried_out(name, tmp_path / "full")))


def full_of_nan(make: Any) -> Any:
    def made(*arguments: Any, **options: Any) -> Any:
        array = make(*arguments, **options)
        if array.dtype.kind in "fc":
            array[...] = np.nan
        return array

    return made
