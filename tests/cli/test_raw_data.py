"""What a user says of raw data on the command line: repeated lines, encoding spaces, noise measured beside the scan."""

from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.cli.options import Settings
from mri_design.experiment import calibrate, with_noise_samples
from mri_design.scan.io import read
from tests.cli.folders import Run, settings
from tests.scan.io.conftest import MrdFile
from tests.scan.io.test_ismrmrd import SECOND

COILS, SD = 2, 0.02


@pytest.fixture(scope="module")
def kspace() -> np.ndarray:
    """One slice of two coils."""
    scan = md.load_phantom("brain", shape=(24, 16), n_coils=COILS, noise=SD, rng=np.random.default_rng(0))
    return scan.kspace


@pytest.fixture
def raw(tmp_path: Path, kspace: np.ndarray) -> Path:
    """A line that comes twice, the second time tripled; and another encoding space, of twice the samples."""
    file = MrdFile(tmp_path, nx=16, rx=16, ny=24, more=SECOND.format(200)).add_scan(kspace)
    file.add(3 * kspace[0, :, 5], kspace_encode_step_1=5)
    file.add_scan(np.ascontiguousarray(2 * kspace[:, :, 9:15, 4:12]), encoding_space_ref=1)
    for readout in file.readouts:
        readout.sample_time_us = 8.0
    return file.write()


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("noise") / "noise.npy"
    rng = np.random.default_rng(1)
    np.save(path, SD * np.array([[1], [3]]) * (rng.standard_normal((COILS, 4000)) + 1j * rng.standard_normal(4000)))
    return path


def test_repeated_lines_and_encoding_spaces_are_chosen_by_options(
    run: Run, raw: Path, kspace: np.ndarray, tmp_path: Path
) -> None:
    assert run("export", raw, tmp_path / "no.npy").exit_code == 3 and not (tmp_path / "no.npy").exists()
    for policy, factor in (("first", 1), ("average", 2), ("last", 3)):
        assert run("export", raw, tmp_path / f"{policy}.npy", "-s", f"input.duplicates={policy}").exit_code == 0
        np.testing.assert_allclose(np.load(tmp_path / f"{policy}.npy")[0, :, 5], factor * kspace[0, :, 5], rtol=1e-5)
    assert run("export", raw, tmp_path / "no.npy", "-s", "input.series.encoding=3").exit_code == 2
    assert run("export", raw, tmp_path / "one.npy", "-s", "input.series.encoding=1").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), 2 * kspace[:, :, 9:15, 4:12])
    np.testing.assert_array_equal(md.load(raw, encoding=1).data.kspace, 2 * kspace[:, :, 9:15, 4:12])
    assert run("recon", raw, "-s", "input.duplicates=never", "--out", tmp_path / "run").exit_code == 2


def test_options_of_a_section_count_together(tmp_path: Path) -> None:
    """A recipe cannot have all of two counters, which it had between the two options."""
    (tmp_path / "all.toml").write_text('[input.series]\nrepetition = "all"\n')
    given = Settings(
        recipe=str(tmp_path / "all.toml"), setting=["input.series.contrast=all", "input.series.repetition=0"]
    )
    found = given.made().input
    assert found.series == {"contrast": "all", "repetition": 0}


def test_noise_samples_are_the_noise_of_the_run(run: Run, raw: Path, noise: Path, work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["recon", raw, "-s", "input.duplicates=first", "--noise", noise, "--recipe", work / "quick.toml"]
    assert run(*words, "--out", folder, "--method", "zero-filled", "--no-report").exit_code == 0
    assert settings(folder)["input"]["noise"].partition(" ")[0] == "noise.npy"
    data = read(raw, duplicates="first")
    assert isinstance(data, md.KSpaceData)
    found = calibrate(with_noise_samples(data, noise))
    assert found.noise_variance == 1 and found.provenance.noise.measured.file == "noise.npy"
