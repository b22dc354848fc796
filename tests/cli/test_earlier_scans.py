"""`--with` in a design: a repeat steers the mask, another contrast informs the image alone, another object neither."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.folders import Run, manifest, order, rows, settings
from tests.quick_recipes import quickened
from tests.simulated_scanner import stream_of
from tests.two_contrasts import FIRST, OTHER, head, scanned

OPTIONS = ("--lines", 12, "--recipe", "quick.toml", "--no-report")
IN_A_PLANE = ("--encoding", "plane", "--samples", 160, "--block", 24, "--recipe", "quick.toml", "--no-report")


def weights(folder: Path, table: str = "steps.csv") -> list[float]:
    return [float(row["side_information_weight"] or 0) for row in rows(folder / table)]


@pytest.fixture(scope="module")
def exam(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scans of one head in two contrasts, one of them twice, and of another object; a design of the first alone."""
    folder = tmp_path_factory.mktemp("exam")
    images = {
        "scan": (head(FIRST), 0.007),
        "repeat": (head(FIRST), 0.01),
        "contrast": (head(OTHER), 0.007),
        "object": (np.roll(head("shepp-logan")[:, ::-1], 9, axis=0), 0.007),
    }
    for seed, (name, (image, sd)) in enumerate(images.items()):
        np.savez(folder / f"{name}.npz", kspace=scanned(image, sd, seed)[None, None], noise_variance=sd**2)
    np.save(folder / "image.npy", head(FIRST))
    (folder / "local.toml").write_text(quickened("local", "[inference]\nsamples = 2\nloops = 3\n"))
    run(*designing(folder), "--out", folder / "alone", code=(0, 4))
    return folder


def designing(exam: Path) -> tuple[object, ...]:
    return ("design", exam / "scan.npz", "--lines", 28, "--recipe", exam / "local.toml", "--no-report")


@pytest.mark.parametrize(
    ("other", "steers", "informs"),
    [
        ("repeat.npz", True, True),
        ("image.npy", False, True),  # an image, whatever it shows
        ("contrast.npz", False, True),
        ("object.npz", False, False),
        ("scan.npz", False, False),  # the scan itself
    ],
)
def test_the_first_lines_decide_what_another_image_may_do(
    run: Run, exam: Path, tmp_path: Path, other: str, steers: bool, informs: bool
) -> None:
    out, alone = tmp_path / "with", exam / "alone"
    run(*designing(exam), "--with", exam / other, "--out", out, code=(0, 4))
    assert (order(out) != order(alone)) == steers
    assert np.array_equal(np.load(out / "recon.npy"), np.load(alone / "recon.npy")) != informs
    told = settings(out)
    assert told["with"] == [other] and ("weight_of_earlier_scan" in told) == steers
    assert {entry["name"] for entry in manifest(out)["inputs"]} == {"scan.npz", other}
    assert ("side_information_weight" in rows(out / "steps.csv")[0]) == steers
    if steers:
        found = weights(out)
        assert told["weight_of_earlier_scan"] == pytest.approx(found[-1], rel=1e-4)
        assert all(0 < weight <= 1 for weight in found) and found[0] == pytest.approx(256 / 257, rel=1e-4)


@pytest.fixture(scope="module")
def repeat(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scan of the work folder once more, with other noise."""
    path = tmp_path_factory.mktemp("earlier") / "repeat.npz"
    with np.load(work / "scan.npz") as stored:
        rng, sd = np.random.default_rng(7), np.sqrt(float(stored["noise_variance"]))
        parts = rng.standard_normal((2, *stored["kspace"].shape)) * sd
        again = (stored["kspace"] + parts[0] + 1j * parts[1]).astype(np.complex64)
    np.savez(path, kspace=again, noise_variance=np.float64(2 * sd**2))
    return path


def test_what_a_prescan_did_not_measure_counts_as_unknown(run: Run, tmp_path: Path, repeat: Path) -> None:
    with np.load(repeat) as stored:
        again = {name: stored[name] for name in stored.files}
    kspace = again["kspace"].copy()
    kspace[..., :5, :] = kspace[..., 19:, :] = 0
    np.savez(tmp_path / "lines.npz", **again | {"kspace": kspace})
    words = ("--lines", 22, *OPTIONS[2:], "--with", tmp_path / "lines.npz")
    run("design", "scan.npz", *words, "--out", tmp_path / "run", code=(0, 4))
    mask = np.load(tmp_path / "run" / "mask.npy")
    assert settings(tmp_path / "run")["weight_of_earlier_scan"] > 0 and mask[:5].any() and mask[19:].any()
    keep = np.random.default_rng(0).random(kspace.shape[-2:]) < 0.4
    keep[6:18, 4:16] = True
    np.savez(tmp_path / "holes.npz", **again | {"kspace": again["kspace"] * keep})
    words = (*IN_A_PLANE, "--with", tmp_path / "holes.npz", "--out", tmp_path / "plane")
    run("design", "scan.npz", *words, code=(0, 4))
    chosen = np.load(tmp_path / "plane" / "mask.npy")
    assert chosen.sum() == 160 and (chosen & ~keep).any() and (chosen & keep).any()
    assert "weight_of_earlier_scan" in settings(tmp_path / "plane")


def test_it_steers_at_the_scanner_too(run: Run, work: Path, tmp_path: Path, repeat: Path) -> None:
    with np.load(work / "scan.npz") as stored:
        (tmp_path / "readouts.mrd").write_bytes(stream_of(stored["kspace"][0]))
        noise = ("--noise", float(np.sqrt(stored["noise_variance"])))
    words = (*OPTIONS, *noise, "--with", repeat)
    run("adapt", tmp_path / "readouts.mrd", *words, "--out", tmp_path / "adapt", code=(0, 4))
    run("design", "scan.npz", *words, "--out", tmp_path / "design", code=(0, 4))
    assert order(tmp_path / "adapt") == order(tmp_path / "design")
    assert settings(tmp_path / "adapt")["weight_of_earlier_scan"] > 0
