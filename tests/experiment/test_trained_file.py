import zipfile
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, make_strategy
from mri_design.design import Calibrated, TrainedDesign, TrainedOrder
from mri_design.experiment import is_random, load_trained, save_trained, strategy_files, strategy_label
from tests.refusals import refused


@pytest.fixture
def learnt() -> TrainedDesign:
    rng = np.random.default_rng(0)
    return TrainedDesign(
        grid=(8, 6),
        lines=(4, 3, 5, 1, 7),
        n_start=3,
        profile=rng.uniform(0, 1, (3, 8)),
        errors=np.array([0.3, 0.2, 0.1]),
        rule="lbcs",
        reconstructions=42,
        unconverged=3,
        training=("head[3]", "t2w[0]"),
        settings={"method": "mean", "seed": 3, "inference": {"loops": 4}},
    )


@pytest.fixture
def file(tmp_path: Path, learnt: TrainedDesign) -> Path:
    path = tmp_path / "order.npz"
    save_trained(path, learnt)
    return path


def test_a_round_trip_keeps_everything(file: Path, learnt: TrainedDesign) -> None:
    again = load_trained(file)
    np.testing.assert_array_equal(again.profile, learnt.profile)
    np.testing.assert_array_equal(again.errors, learnt.errors)
    for name in ("grid", "lines", "n_start", "rule", "reconstructions", "unconverged", "training", "settings"):
        assert getattr(again, name) == getattr(learnt, name)


def test_flipped_and_missing_bytes_are_noticed(file: Path) -> None:
    whole = file.read_bytes()
    for place in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        file.write_bytes(damaged)
        try:
            again = load_trained(file)
        except InputError:
            continue
        assert again.lines == (4, 3, 5, 1, 7)  # dates of the archive may change
    for length in (0, 10, 500, len(whole) - 5):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_trained(file)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "arrays.npz", lines=np.arange(3))
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("../lines.npy", "x")
    for name in ("text.npz", "arrays.npz", "zip.npz", "nothing.npz", "."):
        with pytest.raises(InputError):
            load_trained(tmp_path / name)


def test_a_consistent_file_that_makes_no_sense_is_refused(tmp_path: Path, learnt: TrainedDesign) -> None:
    object.__setattr__(learnt, "lines", (4, 3, 5, 1, 9))
    save_trained(tmp_path / "bad.npz", learnt)
    with refused("trained design bad.npz"):
        load_trained(tmp_path / "bad.npz")


def test_it_is_a_strategy_by_name(file: Path) -> None:
    trained = make_strategy(f"trained:{file}")
    assert isinstance(trained, TrainedOrder) and trained.name == "trained:order.npz" and not trained.needs_posterior
    informed = make_strategy(f"calibrated:{file}")
    assert isinstance(informed, Calibrated) and informed.name == "calibrated:order.npz"
    assert [one.lines for one in informed.side_information] == [trained.design.lines]
    names = [f"trained:{file}", "calibrated", f"calibrated:{file}"]
    assert strategy_files(names) == [str(file)] and not any(map(is_random, names))
    assert strategy_label(f"trained:{file}") == "trained:order.npz"
    assert strategy_label("vd-polynomial:3") == "vd-polynomial:3"
