"""The benchmark that learns what calibrated designs start from."""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design import FEATURES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def error_model(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("error_model", None)
    import error_model

    return error_model


def test_the_spread_between_heads_is_told_from_the_spread_within(error_model: ModuleType) -> None:
    """Heads whose weights are drawn around a mean: mean and covariance are found again."""
    rng = np.random.default_rng(0)
    n = len(FEATURES)
    mean, deviations = rng.standard_normal(n), np.where(np.arange(n) % 3 == 0, 0.6, 0.05)
    tables = []
    for _ in range(80):
        x = rng.standard_normal((3000, n))
        weights = mean + deviations * rng.standard_normal(n)
        tables.append((x, x @ weights + 0.3 * rng.standard_normal(3000)))
    found_mean, covariance, spread = error_model.fitted(tables)
    np.testing.assert_allclose(found_mean, mean, atol=0.25)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=0.3, atol=0.06)
    assert spread == pytest.approx(0.3, rel=0.05)


def test_a_head_is_kept_under_the_name_of_what_made_it(
    error_model: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(error_model, "SIDES", (24,))
    kind = error_model.KINDS[0]
    first = error_model.kept(tmp_path, kind, 3)
    (path,) = tmp_path.glob("*.npz")
    assert error_model.IDENTITY in path.name
    monkeypatch.setattr(error_model, "measured", None)  # read, not measured again
    again = error_model.kept(tmp_path, kind, 3)
    x, y = error_model.table(first)
    assert x.shape == (len(y), len(FEATURES)) and np.isfinite(x).all() and np.isfinite(y).all()
    np.testing.assert_array_equal(error_model.table(again)[0], x)


def test_models_are_written_a_row_to_a_line(error_model: ModuleType) -> None:
    models = {"one": {"features": ["a", "b"], "covariance": [[1.0, 2.0], [2.0, 5.0]], "spread": 0.5}}
    text = error_model.rows_on_lines(models)
    assert json.loads(text) == models
    assert "[1.0, 2.0]" in text
