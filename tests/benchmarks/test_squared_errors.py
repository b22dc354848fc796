"""What is learnt of squared errors: the line and the pulls are the regression, and subjects left out teach nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from mri_design.evidence.squared_error import features, shipped_squared_error_model

Module = Callable[[str], ModuleType]


def test_line_and_images_alike_are_a_kernel_ridge_regression(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = module("error_bars")
    monkeypatch.setattr(bars, "HUBER", 1e9)  # no image is an outlier
    rows = bars.with_held(bars.read_rows())[::12]
    line, images = bars.fitted(rows)
    matrix = np.array([features(bars.evidence_of(row)) for row in rows])
    unit = np.where(matrix.std(axis=0) > 0, matrix.std(axis=0), 1.0)
    z = (matrix - matrix.mean(axis=0)) / unit
    apart = np.sum((z[:, None] - z[None]) ** 2, axis=-1)
    kernel = 1 + bars.STRAIGHT * z @ z.T + bars.CURVED * np.exp(-apart / (2 * bars.REACH**2))
    wanted = np.array([np.log(bars.squared_error_of(row) / float(row["variance"])) for row in rows])
    groups = [row["group"] for row in rows]
    usual = np.array([1 / np.sqrt(groups.count(group)) for group in groups])
    solved = np.linalg.solve(kernel + np.diag(bars.NUGGET * usual.mean() / usual), wanted - wanted.mean())
    found = [bars.log_ratio(bars.evidence_of(row), line, images) for row in rows]
    np.testing.assert_allclose(found, wanted.mean() + kernel @ solved, atol=1e-9)


def test_what_is_shipped_has_been_learnt_from_the_images_of_the_page(module: Module) -> None:
    bars, shipped = module("error_bars"), shipped_squared_error_model()
    rows = bars.with_held(bars.read_rows())
    np.testing.assert_allclose(shipped.images.features, [features(bars.evidence_of(row)) for row in rows], atol=6e-4)
    line, images = bars.fitted(rows)
    for row in rows[::80]:
        known = bars.evidence_of(row)
        learnt = known.variance * np.exp(bars.log_ratio(known, line, images))
        assert shipped.squared_error(known) == pytest.approx(learnt, rel=0.02)


def test_a_subject_is_predicted_by_what_the_others_teach(module: Module) -> None:
    bars = module("error_bars")
    rows = bars.with_held(bars.read_rows())[::16]
    before = bars.left_open(rows)
    changed = [
        {**row, "squared_error": str(9 * float(row["squared_error"]))} if row["group"] == "7A" else row for row in rows
    ]
    own = np.array([row["group"] == "7A" for row in rows])
    raised = bars.left_open(changed)
    np.testing.assert_allclose(before[own] - raised[own], np.log(9), atol=1e-9)
    assert np.abs(raised[~own] - before[~own]).max() > 0.05
