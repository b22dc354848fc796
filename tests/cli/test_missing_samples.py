"""Samples missing inside lines, as masks over two directions, shutters and partial echoes leave them."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, rows, settings

N = (32, 28)


def scattered() -> np.ndarray:
    """An eighth of the samples, and a centre."""
    mask = np.random.default_rng(0).random(N) < 0.12
    mask[12:20, 10:18] = True
    return mask


def shutter() -> np.ndarray:
    y, x = (np.linspace(-1, 1, n) for n in N)
    return np.asarray(np.hypot(y[:, None], x) < 1)


def echo() -> np.ndarray:
    mask = np.ones(N, dtype=bool)
    mask[:, :9] = False
    return mask


PATTERNS = {"scattered": scattered, "shutter": shutter, "echo": echo}


@pytest.fixture(scope="module", params=list(PATTERNS))
def holed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """k-space with holes, nothing said about them, and the true image beside it."""
    data = load_phantom("brain", shape=N, rng=np.random.default_rng(0))
    path = tmp_path_factory.mktemp("holes") / f"{request.param}.npz"
    mask = PATTERNS[request.param]()
    assert data.noise_variance is not None
    np.savez(path, kspace=data.kspace * mask, reference=data.reference, noise_variance=np.float64(data.noise_variance))
    np.save(path.with_suffix(".npy"), data.kspace * mask)
    return path


def test_info_says_what_is_there_per_direction(run: Run, holed: Path) -> None:
    text = run("info", holed).stdout
    mask = PATTERNS[holed.stem]()
    told = f"samples         {mask.sum()} of {mask.size}, {mask.mean():.1%} of the grid: "
    assert told + f"acceleration {mask.size / mask.sum():.3g}; along ky {mask.any(axis=1).mean():.1%}" in text
    assert f"along kx {mask.any(axis=0).mean():.1%} of the columns" in text
    assert "fully sampled   no: " in text
    said = {"echo": "a partial echo, columns 0-8 are empty"}.get(holed.stem, "samples are missing inside")
    assert said in text


def test_verbs_that_replay_lines_refuse_it_with_a_cure(run: Run, holed: Path, tmp_path: Path) -> None:
    given = holed.with_suffix(".npy")
    for verb, *words in (("design", given), ("compare", "phantom:brain", "--train", given)):
        result = run(verb, *words, "--lines", 12, "--recipe", "fast.toml", "--out", tmp_path / "out", code=3)
        assert holed.stem in result.stderr
        assert "whole" in result.stderr or "fully sampled" in result.stderr
        assert not (tmp_path / "out").exists()


def test_recon_takes_the_samples_that_are_there_for_data_and_no_others(run: Run, holed: Path, tmp_path: Path) -> None:
    """Errors are told where a true image stands beside them alone."""
    run("recon", holed.with_suffix(".npy"), "--recipe", "fast.toml", "--out", tmp_path / "real", code=0)
    assert {row["relative_l2"] for row in rows(tmp_path / "real" / "metrics.csv")} == {""}
    run("recon", holed, "--recipe", "quick.toml", "--out", tmp_path / "x", code=0)
    metrics = rows(tmp_path / "x" / "metrics.csv")
    error = {row["method"]: float(row["relative_l2"]) for row in metrics}
    assert error["mean"] < 0.9 * error["zero-filled"]
    with np.load(holed) as scan:
        measured = np.count_nonzero(scan["kspace"].any(axis=(0, 1)))
    assert float(metrics[0]["acceleration"]) == pytest.approx(N[0] * N[1] / measured, rel=1e-3)
    told = settings(tmp_path / "x")["missing_samples"]
    assert "columns" in told or "samples" in told
    assert np.load(tmp_path / "x" / "std.npy").shape == N


def test_recon_of_real_samples_prints_no_error_against_a_zero_filled_reference(
    run: Run, holed: Path, tmp_path: Path
) -> None:
    run("recon", holed.with_suffix(".npy"), "--recipe", "fast.toml", "--out", tmp_path / "x", code=0)
    assert {row["relative_l2"] for row in rows(tmp_path / "x" / "metrics.csv")} == {""}


def test_partial_fourier_is_not_fully_sampled(run: Run, tmp_path: Path) -> None:
    kspace = load_phantom("brain", shape=(48, 40), rng=np.random.default_rng(0)).kspace
    kspace[:, :, 36:] = 0
    np.save(tmp_path / "partial.npy", kspace)
    text = run("info", tmp_path / "partial.npy").stdout
    assert "measured lines  36 of 48, without lines 36-47" in text
    assert "fully sampled   no: partial Fourier, lines 36-47 are missing" in text
    result = run("compare", tmp_path / "partial.npy", "--lines", 16, "--out", tmp_path / "x", code=3)
    assert "partial Fourier" in result.stderr
