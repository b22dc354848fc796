"""What the page's script is given: every number, nothing that could leave its element."""

import io
import json
from base64 import b64decode

import matplotlib.image
import numpy as np
import pytest

from mri_design.evaluation import plots
from mri_design.evaluation.page import MOST_NUMBERS, ExploredImage, ExploredStep, StepExplorer


def steps(count: int, lines: int) -> list[ExploredStep]:
    scores = np.arange(lines) / 7
    return [ExploredStep(n, np.where(np.arange(lines) == n, np.nan, scores), 0.5 / (n + 1)) for n in range(count)]


def test_all_steps_and_images_are_there() -> None:
    png = plots.pixels_png(np.eye(4), 1.0, "ky-rows")
    images = [ExploredImage(3, png, png, b"", 0.1234567)]
    told = json.loads(StepExplorer(8, (4, 5), steps(3, 8), "score", images).json)
    assert told["lines"] == 8 and told["start"] == [4, 5]
    assert [step["line"] for step in told["steps"]] == [0, 1, 2]
    assert told["steps"][1]["scores"] == [0, None, 0.286, 0.429, 0.571, 0.714, 0.857, 1.0]
    assert [step["predicted_error"] for step in told["steps"]] == [0.5, 0.25, 0.167]
    assert told["images"][0]["error"] == 0.123 and told["images"][0]["difference"] == ""
    assert b64decode(told["images"][0]["mean"].removeprefix("data:image/png;base64,")) == png


def test_rules_without_scores_have_none() -> None:
    told = json.loads(StepExplorer(8, (4,), [ExploredStep(1, None, None)], "score").json)
    assert told["steps"] == [{"line": 1, "scores": None, "predicted_error": None}] and told["images"] == []


def test_long_designs_have_scores_at_some_steps() -> None:
    told = json.loads(StepExplorer(512, (0,), steps(400, 512), "score").json)
    held = [number for number, step in enumerate(told["steps"]) if step["scores"]]
    assert len(told["steps"]) == 400 and held == list(range(0, 400, 4))
    assert len(held) * 512 <= MOST_NUMBERS


@pytest.mark.parametrize("unit", ["</script><script>alert(1)</script>", "<!--", "a & b"])
def test_nothing_leaves_its_element(unit: str) -> None:
    text = StepExplorer(8, (4,), [], unit).json
    assert not set("<>&") & set(text)
    assert json.loads(text)["unit"] == unit


def test_pictures_of_pixels_keep_their_values() -> None:
    pixels = np.linspace(0, 2, 12).reshape(3, 4)
    for error in (False, True):
        png = plots.pixels_png(pixels, 2.0, "ky-rows", error=error)
        assert png == plots.pixels_png(pixels, 2.0, "ky-rows", error=error)
    grey = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-rows")))
    np.testing.assert_allclose(grey * 2, pixels, atol=0.005)
    turned = matplotlib.image.imread(io.BytesIO(plots.pixels_png(pixels, 2.0, "ky-columns")))
    np.testing.assert_allclose(turned, grey.T)
    assert matplotlib.image.imread(io.BytesIO(plots.pixels_png(np.zeros((4, 4)), 0.0, "ky-rows"))).max() == 0
