"""Nothing depends on what new memory happens to hold: runs are the same where it is full of NaN."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.outcomes import EXPECTED, carried_out

pytestmark = pytest.mark.thorough

RUNS = ["design-calibrated", "design-calibrated-coils", "design-plane-gain", "design-spokes", "protocol"]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_does_not_read_memory_that_it_has_not_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for maker in ("empty", "empty_like"):
        monkeypatch.setattr(np, maker, full_of_nan(getattr(np, maker)))
    expected, found = json.loads(EXPECTED.read_text())[name], carried_out(name, tmp_path)
    assert found["exit_code"] == expected["exit_code"]
    assert found["mask"] == expected["mask"] and found["lines" if "lines" in found else "arrays"]
    assert all("nan" not in told for told in found["arrays"].values())


def full_of_nan(make: Any) -> Any:
    def made(*arguments: Any, **options: Any) -> Any:
        array = make(*arguments, **options)
        if array.dtype.kind in "fc":
            array[...] = np.nan
        return array

    return made
