"""`--with FILE`: another image of the object in the prior of images, of one slice, of a volume, and after a design."""

from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from tests.cli.folders import Run, manifest, page, settings
from tests.quick_recipes import quickened
from tests.two_contrasts import FIRST, OTHER, head, scanned, some_lines


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two contrasts of one head: k-space of one, an image of the other, and a mask."""
    folder = tmp_path_factory.mktemp("exam")
    t2, t1 = head(FIRST), head(OTHER).astype(np.float32)
    np.save(folder / "t2.npy", scanned(t2, 0.007))
    np.save(folder / "two.npy", np.stack([scanned(t2, 0.007, seed)[None] for seed in (0, 1)]))
    np.save(folder / "t1.npy", t1)
    np.save(folder / "t1-two.npy", np.stack([t1, t1]))
    (folder / "local.toml").write_text(quickened("local", "[inference]\nsamples = 2\nloops = 3\n"))
    np.save(folder / "mask.npy", np.isin(np.arange(64), some_lines(32)))
    return folder


def test_the_lines_decide_and_the_run_says_so(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("recon", exam / "t2.npy", "--mask", exam / "mask.npy", "--recipe", exam / "local.toml")
    run(*asked, "--with", exam / "t1.npy", "--out", tmp_path / "with")
    run(*asked, "--no-report", "--out", tmp_path / "without")
    told = settings(tmp_path / "with")["companions"]
    assert told.startswith("t1.npy is used, after 7 lines held back")
    assert "companions" not in settings(tmp_path / "without")
    assert told in page(tmp_path / "with").replace("&#39;", "'")
    assert [file["name"] for file in manifest(tmp_path / "with")["inputs"]] == ["t2.npy", "mask.npy", "t1.npy"]
    first, second = (np.load(tmp_path / name / "recon.npy") for name in ("with", "without"))
    truth = head(FIRST)
    assert np.linalg.norm(np.abs(first) - truth) < np.linalg.norm(np.abs(second) - truth)


def test_slices_of_a_volume_have_the_companion_of_their_number(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("recon", exam / "two.npy", "--mask", exam / "mask.npy", "--recipe", exam / "local.toml", "--no-report")
    run(*asked, "--with", exam / "t1-two.npy", "--out", tmp_path / "two")
    assert "t1-two.npy is used" in settings(tmp_path / "two")["companions"]
    np.save(tmp_path / "three.npy", np.stack([np.load(exam / "t1.npy")] * 3))
    refused = run(*asked, "--with", tmp_path / "three.npy", "--out", tmp_path / "three", code=3).stderr
    assert "3 slices" in refused and "2 slices" in refused


def test_a_design_ends_with_an_image_that_knows_it(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("design", exam / "t2.npy", "--lines", "20", "--start", "8", "--recipe", exam / "local.toml", "--no-report")
    run(*asked, "--with", exam / "t1.npy", "--trust-companion", "--out", tmp_path / "with")
    run(*asked, "--out", tmp_path / "without")
    assert "as the recipe asks" in settings(tmp_path / "with")["companions"]
    assert settings(tmp_path / "with")["with"] == ["t1.npy"]
    masks = [np.load(tmp_path / name / "mask.npy") for name in ("with", "without")]
    np.testing.assert_array_equal(*masks)
    assert not np.array_equal(*(np.load(tmp_path / name / "recon.npy") for name in ("with", "without")))


def test_methods_without_a_prior_and_files_that_show_nothing_are_refused(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("recon", exam / "t2.npy", "--recipe", exam / "local.toml", "--out", tmp_path / "run")
    refused = run(*asked, "--with", exam / "t1.npy", "--method", "least-squares", code=2).stderr
    assert "--with" in refused and "least-squares" in refused
    np.save(tmp_path / "nan.npy", np.full((64, 64), np.nan, np.float32))
    assert "nan.npy" in run(*asked, "--with", tmp_path / "nan.npy", code=3).stderr
    assert "missing.npy" in run(*asked, "--with", tmp_path / "missing.npy", code=3).stderr


def test_python_takes_them_too(exam: Path) -> None:
    scan = md.load(exam / "t2.npy", recipe=str(exam / "local.toml"))
    lines = np.load(exam / "mask.npy")
    made = scan.reconstruct(lines, companions=[exam / "t1.npy"])
    plain = scan.reconstruct(lines)
    assert not np.array_equal(made.array, plain.array)
