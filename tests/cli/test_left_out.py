"""What a file holds beyond what was read is said by every verb, and kept with the results."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest
from typer.testing import Result

from tests.cli.folders import Run, page, settings

COILS = "coils dropped: coil 1 holds zeros only; coil 3 repeats coil 0"
SERIES = (
    "contrast: 0, the first of 2 (0, 1); the others were not read",
    "repetition: 0, the first of 2 (0, 1); the others were not read",
)


@pytest.fixture(scope="module")
def raw(run: Run, work: Path) -> Path:
    """Raw data of two contrasts and two repetitions by four coils: one is dead, one a copy."""
    kspace = np.load(work / "scan.npz")["kspace"][0, 0]
    # Two coils of different maps and noise: calibration has something to do.
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, 2, *kspace.shape)) * 0.02 * np.abs(kspace).std()
    one, two = kspace + noise[0, 0] + 1j * noise[0, 1], (0.5 + 0.5j) * kspace + noise[1, 0] + 1j * noise[1, 1]
    coils = np.stack([one, 0 * one, two, one]).astype(np.complex64)
    np.savez(work / "coils.npz", kspace=coils[np.newaxis])
    (work / "coils.toml").write_text((work / "fast.toml").read_text() + "[coils]\ncalibration_lines = 12\n")
    path = work / "many.h5"
    run("convert", "coils.npz", path, code=0)
    with ismrmrd.Dataset(str(path), mode="r+") as file:
        count = file.number_of_acquisitions()
        for contrast, repetition in ((0, 1), (1, 0), (1, 1)):
            for number in range(count):
                again = file.read_acquisition(number)
                again.idx.contrast, again.idx.repetition = contrast, repetition
                file.append_acquisition(again)
    return path


def _warnings(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("mri-design: many")]


def test_a_conversion_says_in_one_line_what_was_not_read(run: Run, tmp_path: Path, raw: Path) -> None:
    result = run("convert", raw, tmp_path / "a.cfl", code=0)
    (line,) = _warnings(result)
    assert COILS in line and all(text in line for text in SERIES)
    assert COILS not in result.stdout
    assert _warnings(run("convert", raw, tmp_path / "b.cfl", "--quiet")) == []


def test_a_series_that_was_asked_for_is_no_news(run: Run, tmp_path: Path, raw: Path) -> None:
    (line,) = _warnings(run("convert", raw, tmp_path / "a.npz", "--contrast", 1, "--repetition", 1))
    assert COILS in line and "contrast" not in line and "repetition" not in line


def test_a_run_warns_and_keeps_it_in_manifest_and_report(run: Run, tmp_path: Path, raw: Path) -> None:
    words = ("recon", raw, "--recipe", "coils.toml", "--out", tmp_path / "run", "--overwrite")
    result = run(*words, code=(0, 4))
    (line,) = _warnings(result)
    assert COILS in line and all(text in line for text in SERIES)
    kept = settings(tmp_path / "run")["left_out_of_scan"]
    assert kept["coils_dropped"] == "coil 1 holds zeros only; coil 3 repeats coil 0"
    assert kept["contrast"].startswith("0, the first of 2") and kept["repetition"].startswith("0, the first of 2")
    assert "left out of the scan" in page(tmp_path / "run") and "coil 3 repeats coil 0" in page(tmp_path / "run")
    assert _warnings(run(*words, "--quiet")) == []


def test_verbs_of_many_scans_warn_once_for_a_file_and_keep_it(run: Run, tmp_path: Path, raw: Path) -> None:
    words = ("--lines", 14, "--strategies", "low-pass", "--recipe", "coils.toml")
    result = run("compare", raw, *words, "--jobs", 1, "--out", tmp_path / "run", code=(0, 4))
    assert len(_warnings(result)) == 1
    assert COILS in settings(tmp_path / "run")["left_out_of_scans"][raw.name]
    assert "left out of the scan" in page(tmp_path / "run")


def test_a_scan_that_was_read_as_a_whole_gives_no_warning(run: Run, tmp_path: Path) -> None:
    result = run("convert", "scan.npz", tmp_path / "whole.npz", code=0)
    assert result.stderr == ""
