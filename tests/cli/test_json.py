"""Answers as JSON: one document on stdout, everything else on stderr, from a process of its own."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design.experiment.recipe import load_recipe, recipe_schema
from mri_design.runs.info import describe_images, measured_how
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry, SourceImage
from tests.cli.folders import Run, Spawn, order


def answer(spawn: Spawn, *words: object) -> dict[str, object]:
    process = spawn(*words)
    out, _ = process.communicate(timeout=600)
    assert process.returncode in (0, 4)
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("source", ["scan.npz", "24x20"])
def test_a_design_answers_with_its_lines_and_errors(spawn: Spawn, work: Path, tmp_path: Path, source: str) -> None:
    out, bare = tmp_path / "run", source != "scan.npz"
    words = ("--lines", 8, "--strategy", "low-pass", "--no-report", *(() if bare else ("--recipe", "fast.toml")))
    found = answer(spawn, "design", source, *words, "--out", out, "--json")
    assert (found["run"], found["report"], found["status"], found["converged"]) == (str(out), None, "converged", True)
    assert (found["encoding"], found["acceleration"]) == (("plane", 60) if bare else ("lines", 3))
    assert len(found["chosen"]) == 8  # type: ignore[arg-type]
    assert bare or found["chosen"] == order(out)
    assert bare or 0 < float(found["found_relative_error"]) < 1  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", [("design", "--lines", 12), ("recon",)])
def test_a_dry_run_tells_what_it_would_take_and_writes_nothing(
    run: Run, work: Path, tmp_path: Path, verb: tuple
) -> None:
    name, *options = verb
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, *work.rglob("*"))}
    for asked in ([], ["--json"]):
        told = run(
            name, "scan.npz", *options, "--recipe", "fast.toml", "--out", tmp_path / "run", "--dry-run", *asked, code=0
        )
        assert told.stdout
    assert json.loads(told.stdout)["mib"] > 0
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path, *work.rglob("*"))}
    run(name, "24x20", *options, "--out", tmp_path / "run", "--dry-run", code=(2, 3))


@pytest.mark.parametrize("more", [("--resume",), ("--png", "--no-report"), ("--executor", "none")])
def test_a_dry_run_refuses_what_the_run_would(run: Run, work: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mask.npy").write_text("mine")
    words = ("recon", "scan.npz", "--recipe", "fast.toml", "--dry-run")
    for out in ("foreign", "foreign/mask.npy", "missing/run"):
        run(*words, "--out", tmp_path / out, code=(2, 3))
    run(*words, "--out", tmp_path / "run", *more, code=2)
    run(*words, "--out", tmp_path / "foreign", "--overwrite", code=0)
    assert [path.name for path in tmp_path.rglob("*")] == ["foreign", "mask.npy"]


def test_a_reconstruction_and_its_regions_answer(spawn: Spawn, work: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "region.npy", np.eye(24, 20) > 0)
    words = ("--recipe", "quick-local.toml", "--draws", 4, "--jobs", 1, "--no-report", "--json")
    found = answer(spawn, "recon", "scan.npz", *words, "--out", tmp_path / "run")
    assert found["acceleration"] == 1.0 and found["method"] == "mean" and 0 < float(found["found_relative_error"]) < 1  # type: ignore[arg-type]
    words = ("--region", tmp_path / "region.npy", "--no-report", "--json")
    (region,) = answer(spawn, "measure", tmp_path / "run", *words)["regions"]  # type: ignore[misc]
    assert (region["region"], region["pixels"], region["draws"]) == ("region", 20, 4)
    low, high = region["interval_95"]
    assert low < region["mean"] < high and region["sd"] > 0


def test_info_answers_with_numbers_and_texts(spawn: Spawn, work: Path, tmp_path: Path) -> None:
    with np.load(work / "scan.npz") as stored:
        arrays = dict(stored)
    arrays["kspace"][:, :, ::3] = 0
    np.savez(tmp_path / "part.npz", **arrays)
    part = str(tmp_path / "part.npz")
    found = answer(spawn, "info", part, "--noise", 0.02, "--json")
    assert (found["input"], found["kind"], found["matrix"], found["slices"]) == (part, "scan", [24, 20], 1)
    assert found["lines"] == [line for line in range(24) if line % 3] and found["samples"] == 16 * 20
    assert (found["acceleration"], found["fully_sampled"], found["centre"]) == (1.5, False, [12, 10])
    assert (found["noise_sd"], found["noise_source"]) == (pytest.approx(0.02), "given")
    assert str(found["text"]["measured lines"]).startswith("16 of 24")  # type: ignore[index]
    np.save(tmp_path / "mask.npy", np.arange(24) % 4 == 0)
    mask = answer(spawn, "info", tmp_path / "mask.npy", "--json")
    assert (mask["kind"], mask["shape"], mask["chosen"]) == ("mask", [24], [0, 4, 8, 12, 16, 20])


def test_lengths_and_times_are_in_metres_and_seconds() -> None:
    place = SliceGeometry((2.0, 1.5), 5.0)
    stack = ImageStack(np.ones((1, 8, 6)), name="a", geometry=place)
    values = describe_images(stack, load_recipe()).values
    assert values["field_of_view_m"] == pytest.approx([0.016, 0.009]) and values["slice_thickness_m"] == 0.005
    source = SourceImage({"EchoTime": "20", "RepetitionTime": "3000", "FlipAngle": "15"}, image=False)
    assert list(measured_how(source).values.values()) == [0.02, 3.0, 15.0]


def test_the_schema_is_printed(spawn: Spawn, work: Path) -> None:
    assert answer(spawn, "recipe", "--schema") == json.loads(json.dumps(recipe_schema()))
