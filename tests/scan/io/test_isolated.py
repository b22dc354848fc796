"""Whatever the HDF5 library does to its process, the caller gets a scan or an error."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mri_design.formats import ReadLimits
from mri_design.scan.io import IsolatedSource, ReadOptions, isolated, opened, read
from mri_design.scan.writing import DicomLabels, dicom_bytes, nifti_bytes
from tests.command_line import called
from tests.refusals import refused, refuses
from tests.scan.io.twix_file import Measurement, write_twix


@pytest.fixture(scope="module", autouse=True)
def read_here() -> None:
    """Instead of the fixture of the package: these tests begin child processes."""


SERVE = "import time; from mri_design.scan.io import isolated; isolated.serve"


def test_verbs_ask_another_process(fastmri_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_CHILD", "import os; os.abort()")
    for words in (("info", fastmri_file), ("recon", fastmri_file, "--out", "nowhere")):
        ended = called(words)
        assert ended.exit_code == 3 and "SIGABRT" in ended.stderr


@pytest.mark.slow
def test_errors_limits_and_policies_reach_the_other_side(scan: np.ndarray, mrd: type) -> None:
    raw = mrd().add_scan(scan[:1], contrast=2)
    raw.add(scan[0, :, 5], kspace_encode_step_1=5, contrast=2)
    path, chosen = raw.add_scan(-scan[:1], contrast=1).write(), {"contrast": 2}
    with refused("dataset/data[12]: kspace_encode_step_1") as caught:
        read(path, counters=chosen)
    assert caught.value.field == f"{path}: dataset/data[12]: kspace_encode_step_1"
    assert "duplicates='average'" in caught.value.cure
    with IsolatedSource(path, ReadOptions(duplicates="last", counters=chosen)).slice_reader() as slices:
        assert slices.series["contrast"] == (1, 2)
    averaged = read(path, duplicates="average", counters=chosen)
    np.testing.assert_allclose(averaged.kspace, scan[:1], rtol=1e-6)
    refuses("dataset/data: shape", read, path, duplicates="average", limits=ReadLimits(max_bytes=8 * 3 * 12 * 16 - 1))


@pytest.mark.slow
def test_every_format_that_a_library_parses_is_read_by_a_child(tmp_path, fastmri_file, scan, mrd):
    pixels = np.abs(scan[0])
    (tmp_path / "x.nii").write_bytes(nifti_bytes(pixels, None, "", compressed=False))
    (tmp_path / "x.dcm").write_bytes(dicom_bytes(pixels[0], None, DicomLabels("magnitude", "", "")))
    write_twix(tmp_path / "x.dat", Measurement().add_scan(scan))
    paths = (tmp_path / "x.nii", tmp_path / "x.dcm", tmp_path / "x.dat", fastmri_file, mrd().add_scan(scan).write())
    for path in paths:
        with opened(path, ReadOptions()) as source:
            assert isinstance(source, IsolatedSource)
    np.testing.assert_allclose(read(paths[0]).images, pixels)
    np.testing.assert_allclose(read(paths[1]).images[0], pixels[0], atol=1e-4 * pixels.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("child", "got"),
    [
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import time; time.sleep(60)", " 1 s"),
        (f"{SERVE}(lambda *_, **__: time.sleep(60))", " 1 s"),
        (f"{SERVE}(lambda *_, **__: exec('while True: pass'))", " 1 s"),
        (f"print('{{', end='', flush=True); {SERVE}(lambda *_, **__: time.sleep(60))", " 1 s"),
    ],
)
def test_crashes_and_stalls_are_errors_with_the_path(fastmri_file, monkeypatch, child, got):
    monkeypatch.setattr(isolated, "_CHILD", child)
    monkeypatch.setattr(isolated, "_SECONDS", 1)
    with refused("volume.h5") as caught:
        IsolatedSource(fastmri_file, ReadOptions()).load()
    assert caught.value.field == str(fastmri_file)
    assert got in caught.value.got


@pytest.mark.slow
def test_computing_is_bounded_whatever_signals_are_blocked(fastmri_file, monkeypatch):
    blocked = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXCPU})"
    monkeypatch.setattr(isolated, "_CHILD", f"{blocked}; {SERVE}(lambda *_, **__: exec('while True: pass'))")
    monkeypatch.setattr(isolated, "_COMPUTING", 0)
    with refused("volume.h5") as caught:
        IsolatedSource(fastmri_file, ReadOptions()).load()
    assert " 1 s of computing" in caught.value.got


def test_half_a_scan_is_none(fastmri_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = '{"arrays": [["<f4", [2]]], "content": {"array": 0}}'
    half = f"print({reply!r}, flush=True); import os; os.write(1, b'1234'); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(isolated, "_CHILD", half)
    refuses("volume.h5", IsolatedSource(fastmri_file, ReadOptions()).load)


def test_a_defect_of_this_package_is_not_taken_for_a_bad_file(fastmri_file, monkeypatch):
    monkeypatch.setattr(isolated, "_CHILD", "raise TypeError('our own')")
    with pytest.raises(RuntimeError):
        IsolatedSource(fastmri_file, ReadOptions()).load()


@pytest.mark.slow
def test_nothing_is_imported_from_the_current_folder(fastmri_file, tmp_path, monkeypatch):
    (tmp_path / "h5py.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", "") + os.pathsep)
    assert read(fastmri_file).name == "volume"
