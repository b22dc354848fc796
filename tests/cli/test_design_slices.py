"""One mask for several slices of a scan: chosen for all of them, told of, and refused where there is none."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, order, settings

PLAIN = '[reconstruction]\nmethod = "zero-filled"\n[inference]\nsamples = 2\nloops = 1\ntolerance = 0.5\n'
WORDS = ("--lines", 10, "--start", 6, "--jobs", 1, "--strategy", "information-gain")


@pytest.fixture(scope="module")
def stack(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two different heads around a slice of noise, noise and truth known; and a recipe that ends soon."""
    kinds = [np.load(work / name) for name in ("scan.npz", "head.npz")]
    variance, rng = float(kinds[0]["noise_variance"]), np.random.default_rng(0)
    drawn = rng.standard_normal((2, *kinds[0]["kspace"].shape)) * np.sqrt(variance)
    noise = (drawn[0] + 1j * drawn[1]).astype(np.complex64)
    kspace = np.concatenate([kinds[0]["kspace"], noise, kinds[1]["kspace"]])
    path = tmp_path_factory.mktemp("stack") / "stack.npz"
    np.savez(path, kspace=kspace, noise_variance=variance)
    (work / "plain.toml").write_text(PLAIN)
    return path


def test_several_slices_get_one_mask_that_is_another_than_that_of_each(
    run: Run, stack: Path, work: Path, tmp_path: Path
) -> None:
    chosen = {}
    for name, slices in (("both", "0,2"), ("first", "0"), ("second", 2)):
        words = (*WORDS, "--recipe", work / "plain.toml", "--slices", slices, "--out", tmp_path / name)
        run("design", stack, *words, code=(0, 4))
        chosen[name] = order(tmp_path / name)
    assert len({tuple(lines) for lines in chosen.values()}) > 1
    assert settings(tmp_path / "both")["slices_of_mask"] == [0, 2]
    assert np.load(tmp_path / "both" / "recon.npy").shape == (24, 20)


def test_a_slice_of_noise_has_no_say_in_the_mask_of_others(run: Run, stack: Path, work: Path, tmp_path: Path) -> None:
    for name, slices in (("without", "0,2"), ("with", "1,0,2")):
        words = (*WORDS, "--recipe", work / "plain.toml", "--slices", slices, "--out", tmp_path / name)
        run("design", stack, *words, code=(0, 4))
    orders = [set(order(tmp_path / name)) for name in ("without", "with")]
    assert orders[0] == orders[1]


def test_few_lines_begin_with_fewer_for_the_maps_than_these_take(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(48, 40), n_coils=3, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    words = ("--recipe", "fast.toml", "--strategy", "low-pass", "--acceleration", 2, "--no-report")
    run("design", tmp_path / "coils.npz", *words, "--out", tmp_path / "few", code=0)
    assert settings(tmp_path / "few")["start"] == 12 and len(order(tmp_path / "few")) == 24
