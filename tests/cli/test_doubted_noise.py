"""Noise that had to be estimated from samples that hold signal is said by every verb, and kept with the results."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, page, settings

SAID = "the outermost samples hold signal"
VERBS = {
    "design": ("design", "--strategy", "low-pass", "--lines", 20),
    "protocol": ("protocol", "--strategy", "low-pass", "--lines", 20, "--swaps", 0, "--jobs", 1),
}


@pytest.fixture(scope="module")
def coarse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scan of low resolution, whose noise is not known; and beside it the same with its noise."""
    folder = tmp_path_factory.mktemp("coarse")
    data = load_phantom("t2w", shape=(128, 128), noise=0.001, rng=np.random.default_rng(0))
    kspace = data.kspace[:, :, 44:84, 44:84]
    np.savez(folder / "coarse.npz", kspace=kspace)
    np.savez(folder / "known.npz", kspace=kspace, noise_variance=np.float64(1e-6))
    (folder / "plain.toml").write_text('[reconstruction]\nmethod = "zero-filled"\n')
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_it_is_said_on_stderr_and_kept(run: Run, coarse: Path, tmp_path: Path, verb: str) -> None:
    first, *rest = VERBS[verb]
    ending = (*rest, "--recipe", coarse / "plain.toml")
    found = run(first, coarse / "coarse.npz", *ending, "--out", tmp_path / "a", code=0)
    lines = [line for line in found.stderr.splitlines() if SAID in line]
    assert len(lines) == 1
    assert lines[0].startswith("mri-design: coarse: its noise is estimated from the data")
    assert "variance under [noise] in a recipe" in lines[0]
    told = settings(tmp_path / "a")
    many = told.get("noise_sources", {}).get("coarse.npz")
    assert SAID in (many or told["noise_source"])
    assert bool(many) == (verb == "protocol")
    assert SAID in page(tmp_path / "a")
    quiet = run(first, coarse / "coarse.npz", *ending, "--quiet", "--out", tmp_path / "b")
    assert quiet.stderr == ""
    known = run(first, coarse / "known.npz", *ending, "--out", tmp_path / "c", code=0)
    assert "its noise is" not in known.stderr


def test_info_says_it(run: Run, coarse: Path) -> None:
    assert SAID in run("info", coarse / "coarse.npz").stdout
    assert SAID not in run("info", coarse / "known.npz").stdout


def test_noise_sd_overrules_what_the_scan_shows_and_what_its_file_says(run: Run, coarse: Path) -> None:
    with np.load(coarse / "known.npz") as known:
        np.savez(coarse / "unfit.npz", kspace=known["kspace"], noise_covariance=np.full((3, 2), np.nan))
    assert "noise_covariance: got shape (3, 2)" in run("info", coarse / "unfit.npz", code=3).stderr
    for name in ("coarse.npz", "known.npz", "unfit.npz"):
        said = run("info", coarse / name, "--noise-sd", 0.25).stdout
        assert "noise           sd 0.25 per real component, given (as a standard deviation, or by a recipe)" in said
        assert "noise by place  sd per real component: given 0.25, which counts; air in the image" in said
    assert "noise by place  sd per real component: air in the image" in run("info", coarse / "coarse.npz").stdout
    refused = run("info", coarse / "coarse.npz", "--noise-sd", -1, code=2)
    assert "--noise-sd -1: wanted a positive number" in refused.stderr


def test_noise_that_is_given_and_contradicts_every_place_is_said_and_used(
    run: Run, coarse: Path, tmp_path: Path
) -> None:
    """The scan has a standard deviation of .001."""
    ending = ("--lines", 20, "--strategy", "low-pass", "--recipe", coarse / "plain.toml")
    few = run("design", coarse / "known.npz", *ending, "--noise-sd", 0.002, "--out", tmp_path / "a", code=0)
    assert "its noise" not in few.stderr
    much = run("design", coarse / "known.npz", *ending, "--noise-sd", 1, "--out", tmp_path / "b")
    said = "given (as a standard deviation, or by a recipe), though no place in the scan shows more than"
    assert f"its noise is {said}" in much.stderr
    assert "compare its unit" in much.stderr
    assert settings(tmp_path / "b")["noise_source"].startswith(said)
    assert settings(tmp_path / "b")["noise_witnesses"].startswith("sd per real component: given 1, which counts; air")
    assert said in page(tmp_path / "b")
