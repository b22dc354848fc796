"""The steps that a report lets its readers walk through are the design's own."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mri_design.evaluation.account import account_of
from mri_design.evaluation.predictions import PredictionCheck
from mri_design.runs.design_sections import step_explorer
from tests.evaluation.conftest import TRACE

IMAGE = np.outer(np.arange(8.0), np.ones(6)) * (1 + 1j)


def checks(with_images: bool) -> list[PredictionCheck]:
    made = [
        PredictionCheck(2 + i, np.ones(8), np.ones(8), TRACE.mask(2 + i), predicted_level=16.0, actual_level=16.0)
        for i in range(2)
    ]
    return [replace(each, mean=IMAGE, deviation=np.ones((8, 6))) for each in made] if with_images else made


def test_steps_scores_and_images_follow_the_trace() -> None:
    account = account_of(TRACE, checks(True))
    told = json.loads(step_explorer(account, "nats", 2 * IMAGE, "ky-rows").json)
    assert told["lines"] == TRACE.n_lines and tuple(told["start"]) == TRACE.start and told["unit"] == "nats"
    assert [step["line"] for step in told["steps"]] == [step.line for step in TRACE.steps]
    for step, made in zip(told["steps"], TRACE.steps, strict=True):
        scores = np.array(step["scores"], dtype=float)
        np.testing.assert_allclose(scores, made.choice.scores, rtol=5e-3)
    assert [image["count"] for image in told["images"]] == [2, 3]
    assert all(image["error"] == pytest.approx(0.5) and image["difference"] for image in told["images"])


@pytest.mark.parametrize("with_images", [True, False])
def test_without_a_reference_there_is_no_error(with_images: bool) -> None:
    images = json.loads(step_explorer(account_of(TRACE, checks(with_images)), "nats", None, "ky-columns").json)[
        "images"
    ]
    assert len(images) == 2 * with_images
    assert all(image["error"] is None and not image["difference"] and image["mean"] for image in images)
