"""Reconstructions of several slices: each as alone, in any number of processes, kept when interrupted, and told of."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import Recipe, load_phantom
from mri_design.experiment import load_scan, opened_slices
from mri_design.runs.recon import run as recon_run
from tests.cli.folders import Run, manifest, rows
from tests.cli.test_design import PLAIN
from tests.interruptions import stopping

PLAIN_OF_COILS = f"{PLAIN}[coils]\ncalibration_lines = 12\n"
COUNT = 4


@pytest.fixture(scope="module")
def stack(work: Path) -> Path:
    """Four slices of one coil, all different, whose noise and truth are known."""
    scan = np.load(work / "scan.npz")
    parts = [scan["kspace"] * np.exp(0.3j * k) * (1 + k) for k in range(COUNT)]
    truths = [scan["reference"] * np.exp(0.3j * k) * (1 + k) for k in range(COUNT)]
    known = {"reference": np.concatenate(truths), "noise_variance": scan["noise_variance"]}
    np.savez(work / "four.npz", kspace=np.concatenate(parts), **known)
    return work / "four.npz"


@pytest.fixture(scope="module")
def volume_run(run: Run, stack: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All slices, with the most probable image."""
    out = tmp_path_factory.mktemp("volume") / "all"
    run("recon", stack, "--recipe", "quick.toml", "--jobs", 1, "--out", out, code=(0, 4))
    return out


def test_all_slices_are_reconstructed_and_each_is_the_image_that_it_is_alone(
    run: Run, stack: Path, volume_run: Path, tmp_path: Path
) -> None:
    images, stds = np.load(volume_run / "recon.npy"), np.load(volume_run / "std.npy")
    assert images.shape == (COUNT, 24, 20) and images.dtype == np.complex64
    assert stds.shape == images.shape and stds.dtype == np.float32
    table = rows(volume_run / "metrics.csv")
    assert [row["slice"] for row in table] == [*"00112233", "all", "all"]
    words = ("recon", stack, "--recipe", "quick.toml", "--no-report")
    run(*words, "--slice", "3,1", "--out", tmp_path / "two", code=(0, 4))
    np.testing.assert_array_equal(np.load(tmp_path / "two" / "recon.npy"), images[[3, 1]])
    assert manifest(tmp_path / "two")["settings"]["slice_numbers"] == [3, 1]
    for number in (0, COUNT - 1):
        alone = tmp_path / str(number)
        run(*words, "--slices", number, "--out", alone, code=(0, 4))
        np.testing.assert_array_equal(np.load(alone / "recon.npy"), images[number])
        np.testing.assert_array_equal(np.load(alone / "std.npy"), stds[number])
        own = [{name: row[name] for name in row if name != "slice"} for row in table if row["slice"] == str(number)]
        assert rows(alone / "metrics.csv") == own


def test_an_interrupted_volume_goes_on_with_the_slices_that_are_left(
    run: Run, stack: Path, volume_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("recon", stack, "--recipe", "quick.toml", "--jobs", 1, "--out", out)
    with stopping(recon_run, "slice_image", 2):
        run(*words, code=130)
    with stopping(recon_run, "slice_image") as made:
        run(*words, "--resume", code=(0, 4))
    assert [item.number for _, item in made] == [2, 3]
    for name in ("recon.npy", "std.npy", "metrics.csv", "mask.npy"):
        assert (out / name).read_bytes() == (volume_run / name).read_bytes()


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one(run: Run, stack: Path, volume_run: Path, tmp_path: Path) -> None:
    run("recon", stack, "--recipe", "quick.toml", "--jobs", 2, "--out", tmp_path / "two", code=(0, 4))
    for name in ("recon.npy", "std.npy", "metrics.csv"):
        assert (tmp_path / "two" / name).read_bytes() == (volume_run / name).read_bytes()


def test_a_slice_of_noise_is_told_and_one_of_zeros_refused(run: Run, stack: Path, tmp_path: Path) -> None:
    scan = dict(np.load(stack))
    rng, shape = np.random.default_rng(0), scan["kspace"].shape[1:]
    sd = float(np.sqrt(scan["noise_variance"]))
    scan["kspace"][1] = sd * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    np.savez(tmp_path / "noisy.npz", kspace=scan["kspace"], noise_variance=scan["noise_variance"])
    (tmp_path / "plain.toml").write_text(PLAIN)
    words = ("--recipe", tmp_path / "plain.toml", "--out", tmp_path / "noisy")
    run("recon", tmp_path / "noisy.npz", "--method", "map", *words, code=(0, 4))
    assert manifest(tmp_path / "noisy")["settings"]["slices_of_noise"] == [1]
    images = np.load(tmp_path / "noisy" / "recon.npy")
    assert np.isfinite(images).all() and (np.abs(images).max(axis=(1, 2)) > 0).all()
    scan["kspace"][2] = 0
    np.savez(tmp_path / "empty.npz", kspace=scan["kspace"], noise_variance=scan["noise_variance"])
    run("recon", tmp_path / "empty.npz", "--recipe", tmp_path / "plain.toml", "--out", tmp_path / "x", code=3)
    assert not (tmp_path / "x").exists()


def test_slices_of_several_coils_share_noise_and_phase(run: Run, tmp_path: Path) -> None:
    scan = load_phantom("brain", shape=(32, 32), n_coils=3, noise=0.02, rng=np.random.default_rng(1))
    rng, shape = np.random.default_rng(2), scan.kspace.shape
    noise = 0.02 * (rng.standard_normal((3, *shape[1:])) + 1j * rng.standard_normal((3, *shape[1:])))
    kspace = (scan.kspace + noise).astype(np.complex64)
    np.savez(tmp_path / "coils.npz", kspace=kspace)
    (tmp_path / "coils-plain.toml").write_text(PLAIN_OF_COILS)
    words = ("--recipe", tmp_path / "coils-plain.toml")
    run("recon", tmp_path / "coils.npz", *words, "--jobs", 1, "--out", tmp_path / "all", code=0)
    maps, images = np.load(tmp_path / "all" / "coil_maps.npy"), np.load(tmp_path / "all" / "recon.npy")
    assert maps.shape == (3, 3, 32, 32)
    assert "the median of 3 slices" in manifest(tmp_path / "all")["settings"]["noise_source"]
    # The same object in all slices: nothing but noise makes their phases differ.
    turned = np.sum(images[0].conj() * images[1]) / np.linalg.norm(images[0]) / np.linalg.norm(images[1])
    assert turned.real > 0.95
    # With the noise and the maps of the volume, a slice alone is the same image.
    known = tmp_path / "known.toml"
    known.write_text(f"{PLAIN_OF_COILS}[noise]\nvariance = 8e-4\n")
    for name, chosen in (("volume", ()), ("alone", ("--slices", 2))):
        given = ("--recipe", known, "--maps", tmp_path / "all" / "coil_maps.npy", "--jobs", 1, "--no-report")
        run("recon", tmp_path / "coils.npz", *given, *chosen, "--out", tmp_path / name, code=0)
    both = [np.load(tmp_path / name / "recon.npy") for name in ("volume", "alone")]
    np.testing.assert_array_equal(both[0][2], both[1])
    # Coils are combined slice by slice, and each says what it loses.
    fewer = ("--compress-coils", 2, "--jobs", 1, "--out", tmp_path / "fewer")
    run("recon", tmp_path / "coils.npz", "--recipe", known, *fewer, code=0)
    lost = manifest(tmp_path / "fewer")["settings"]["coil_compression_lost"]
    assert len(lost) == 3 and len(set(lost)) == 3


def test_slices_are_read_one_by_one_as_all_at_once(stack: Path) -> None:
    every = load_scan(stack, Recipe())
    with opened_slices(str(stack), Recipe()) as slices:
        assert slices.count == COUNT
        for number in (2, 0, 3):  # in any order
            one, same = slices.read(number), every.select_slice(number)
            np.testing.assert_array_equal(one.kspace, same.kspace)
            np.testing.assert_array_equal(one.reference, same.reference)
            assert (one.name, dict(one.header), one.noise_variance) == (
                same.name,
                dict(same.header),
                same.noise_variance,
            )
