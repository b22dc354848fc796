"""Answers as JSON: one document on stdout, everything else on stderr, from a process of its own."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design.experiment.recipe import recipe_schema
from tests.cli.folders import Spawn, order

DESIGN = ("--lines", 8, "--recipe", "fast.toml", "--strategy", "low-pass", "--no-report")


def answer(spawn: Spawn, *words: object) -> dict[str, object]:
    process = spawn(*words)
    out, _ = process.communicate(timeout=600)
    assert process.returncode in (0, 4)
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("verb", "words"), [("design", DESIGN), ("design", ("24x20", *DESIGN[:2], *DESIGN[4:]))])
def test_a_design_answers_with_its_lines_and_errors(
    spawn: Spawn, work: Path, tmp_path: Path, verb: str, words: tuple[object, ...]
) -> None:
    out = tmp_path / "run"
    source = () if "x" in str(words[0]) else ("scan.npz",)
    found = answer(spawn, verb, *source, *words, "--out", out, "--json")
    assert (found["run"], found["report"], found["status"], found["converged"]) == (str(out), None, "converged", True)
    kind = "samples" if not source else "lines"
    assert found["encoding"] in ("lines", "plane") and len(found["chosen"]) == 8  # type: ignore[arg-type]
    assert kind != "lines" or found["chosen"] == order(out)
    errors = found["predicted_relative_error"], found["found_relative_error"]
    assert not source or (errors[1] is not None and 0 < float(errors[1]) < 1)  # type: ignore[arg-type]


def test_a_reconstruction_and_its_regions_answer(spawn: Spawn, work: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "region.npy", np.eye(24, 20) > 0)
    words = ("--recipe", "quick-local.toml", "--draws", 4, "--jobs", 1, "--no-report", "--json")
    found = answer(spawn, "recon", "scan.npz", *words, "--out", tmp_path / "run")
    assert found["method"] == "mean" and 0 < float(found["found_relative_error"]) < 1  # type: ignore[arg-type]
    words = ("--region", tmp_path / "region.npy", "--no-report", "--json")
    (region,) = answer(spawn, "measure", tmp_path / "run", *words)["regions"]  # type: ignore[misc]
    assert (region["region"], region["pixels"], region["draws"]) == ("region", 20, 4)
    low, high = region["interval_95"]
    assert low < region["mean"] < high and region["sd"] > 0


def test_info_answers_with_numbers_and_texts(spawn: Spawn, work: Path) -> None:
    found = answer(spawn, "info", "scan.npz", "--json")
    assert found["facts"]["measured lines"] == "24 of 24"  # type: ignore[index]
    assert answer(spawn, "recipe", "--schema") == json.loads(json.dumps(recipe_schema()))
