"""Noise of the coils from a file of samples without excitation."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design.errors import InputError
from mri_design.scan.io import IsolatedSource, ReadOptions, read_noise
from mri_design.scan.writing import pair_files
from tests.refusals import refused

COILS = 3
MIXING = 0.1 * (np.eye(COILS) + 0.3j * np.eye(COILS, k=1))
TRUTH = MIXING @ MIXING.conj().T


def samples(count: int = 20000) -> np.ndarray:
    """Noise (coil, sample) of covariance `TRUTH` per real component."""
    rng = np.random.default_rng(0)
    return MIXING @ (rng.standard_normal((COILS, count)) + 1j * rng.standard_normal((COILS, count)))


def written(folder: Path, form: str, noise: np.ndarray) -> Path:
    """The samples in a file, with the coils where each format has them."""
    path = folder / f"noise.{form.partition(' ')[0]}"
    if form.startswith("npy"):
        np.save(path, noise.T if form == "npy turned" else noise.reshape(COILS, -1, 50) if form == "npy 3" else noise)
    elif form == "npz":
        np.savez(path, any_name=noise)
    elif form == "cfl":
        for part, content in pair_files(path.with_suffix(""), noise.T.astype(np.complex64)[:, None, None]).items():
            part.write_bytes(content)
    return path


@pytest.mark.parametrize("form", ["npy", "npy turned", "npy 3", "npz", "cfl"])
def test_arrays_of_noise_have_the_covariance_of_the_coils(tmp_path: Path, form: str) -> None:
    found = read_noise(written(tmp_path, form, samples()), COILS)
    np.testing.assert_allclose(found.covariance, TRUTH, atol=0.03 * TRUTH[0, 0].real)
    assert found.samples == 20000 and found.dwell == 0


def test_noise_readouts_of_raw_data_without_an_image_are_enough(mrd: type) -> None:
    raw, noise = mrd(), samples(640).astype(np.complex64)
    for number in range(10):
        readout = raw.add(noise[:, 64 * number : 64 * number + 64], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
        readout.sample_time_us = 2.5
    raw.add(1e6 * np.ones((COILS, 64)))  # no noise
    path = raw.write()
    found = IsolatedSource(path, ReadOptions(only_noise=True)).noise()
    np.testing.assert_allclose(found.covariance, TRUTH, atol=0.2 * TRUTH[0, 0].real)
    assert found.samples == 640 and found.dwell == 2.5
    with refused(str(path)):
        read_noise(path, COILS + 1)


@pytest.mark.parametrize(
    "wrong",
    [
        samples(11),
        samples(100).real,
        samples(100)[:2],
        np.repeat(samples(100)[:1], COILS, axis=0),
        np.where(np.arange(100) == 7, np.nan, samples(100)),
        np.zeros((COILS, 100), complex),
        samples(0),
    ],
    ids=["few", "real", "two coils", "copies", "not finite", "silent", "empty"],
)
def test_what_is_no_noise_of_the_coils_is_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    path = tmp_path / "noise.npy"
    np.save(path, wrong)
    with refused("noise.npy" if wrong.size else "noise.npy: shape"):
        read_noise(path, COILS)


def test_files_that_hold_no_noise_are_refused(tmp_path: Path, mrd: type, scan: np.ndarray, fastmri_file: Path) -> None:
    two, missing = tmp_path / "two.npz", tmp_path / "missing.npy"
    np.savez(two, a=samples(100), b=samples(100))
    for path in (two, missing, mrd().add_scan(scan).write(), fastmri_file):
        with pytest.raises(InputError):
            read_noise(path, COILS)
