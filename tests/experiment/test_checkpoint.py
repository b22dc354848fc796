import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design.design.engine import DesignState
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.errors import InputError, UsageError
from mri_design.experiment.checkpoint import fingerprint, load_state, save_state
from mri_design.experiment.designing import run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.inference.base import WarmStart
from mri_design.model.mr_image import MRSlice
from mri_design.scan.io.atomic import write_npz

SCORES = np.array([np.nan, 4.0, 2.0, np.nan, 1.0])
STATE = DesignState(
    DesignTrace(
        "rule", 5, (2, 3), (DesignStep(1, SCORES, 1.5, 2.5, False, 17, 0.25), DesignStep(4, None), DesignStep(0))
    ),
    (1.25, 3.5),
    (
        WarmStart(np.full((5, 4), 1 + 2j, np.complex64), (np.float32(2.0), np.ones((2, 5, 4), np.float32))),
        WarmStart(
            np.zeros((5, 4), np.complex64),
            (np.full((5, 4), 3.0, np.float32),),
            np.arange(60, dtype=np.complex64).reshape(3, 5, 4),
        ),
    ),
)


def chosen(line: int, models: tuple[int, ...], energies: list[list[float]] | None) -> DesignStep:
    return DesignStep(line, models=models, model_energies=None if energies is None else np.array(energies))


CHOOSING = DesignState(
    DesignTrace(
        "rule",
        5,
        (2, 3),
        (
            chosen(1, (0, 0), None),  # no phase was seen yet
            chosen(4, (0, 0), [[1.0, 2.0], [3.0, np.nan]]),
            chosen(0, (1, 0), [[1.0, 2.0, 0.5], [3.0, np.nan, 4.0]]),
        ),
    ),
    STATE.signals,
    STATE.warm,
    ((STATE.warm[1], None, STATE.warm[0]), (None, None, STATE.warm[1])),
)


def assert_equal(a: DesignState, b: DesignState) -> None:
    assert a.trace.lines == b.trace.lines and a.trace.start == b.trace.start
    assert (a.trace.strategy, a.trace.n_lines, a.signals) == (b.trace.strategy, b.trace.n_lines, b.signals)
    for x, y in zip(a.trace.steps, b.trace.steps, strict=True):
        np.testing.assert_equal(x.__dict__, y.__dict__)
    for v, w in zip(a.warm, b.warm, strict=True):
        for p, q in zip((v.mean, *v.z), (w.mean, *w.z), strict=True):
            np.testing.assert_array_equal(p, q)
            assert np.asarray(p).dtype == np.asarray(q).dtype
        np.testing.assert_equal(v.samples, w.samples)
    for first, second in zip(a.rivals, b.rivals, strict=True):
        for v, w in zip(first, second, strict=True):
            np.testing.assert_equal(v and v.__dict__, w and w.__dict__)


@pytest.mark.parametrize(
    "state",
    [STATE, DesignState(DesignTrace("rule", 5, (2,)), (1.0,)), CHOOSING],
    ids=["full", "before the first line", "with rival models"],
)
def test_a_state_comes_back_as_it_was(tmp_path: Path, state: DesignState) -> None:
    save_state(tmp_path / "c.npz", state, "me")
    assert_equal(load_state(tmp_path / "c.npz", "me"), state)


def test_a_real_state_comes_back_bitwise(tmp_path: Path, one: MRSlice, small: Recipe) -> None:
    state = run_design([one], make_strategy("information-gain"), 7, small, seed=0, start=4)
    save_state(tmp_path / "c.npz", state, "me")
    assert_equal(load_state(tmp_path / "c.npz", "me"), state)


def test_equal_states_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save_state(tmp_path / name, STATE, "me")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_another_identity_is_refused(tmp_path: Path) -> None:
    save_state(tmp_path / "c.npz", STATE, "me")
    with pytest.raises(UsageError, match=r"c\.npz is the checkpoint of a design with another input, recipe"):
        load_state(tmp_path / "c.npz", "you")


def test_a_fingerprint_is_of_the_content_not_the_order() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert len(fingerprint({})) == 64


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_directory(content: bytes) -> bytes:
    return content[:-30]


def empty(content: bytes) -> bytes:
    return b""


def text(content: bytes) -> bytes:
    return b"not an archive at all"


@pytest.mark.parametrize("damage", [cut, without_directory, empty, text])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "c.npz"
    save_state(path, STATE, "me")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="an unreadable checkpoint") as caught:
        load_state(path, "me")
    assert caught.value.cure == "Delete it."


@pytest.mark.parametrize("seed", range(60))
def test_a_flipped_bit_gives_the_state_or_an_input_error(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "c.npz"
    save_state(path, STATE, "me")
    content = bytearray(path.read_bytes())
    position, bit = np.random.default_rng(seed).integers([len(content), 8])
    content[position] ^= 1 << bit
    path.write_bytes(content)
    try:
        found = load_state(path, "me")
    except InputError:
        return
    assert_equal(found, STATE)


def test_pickles_and_missing_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    np.savez(path, identity=np.array(["me", None], dtype=object))
    with pytest.raises(InputError, match="unreadable"):
        load_state(path, "me")
    write_npz(path, {"identity": np.array("me")})
    with pytest.raises(InputError, match="unreadable"):
        load_state(path, "me")


@pytest.mark.parametrize(
    ("member", "value"), [("line", [1, 1, 0]), ("line", [1, 4, 16]), ("start", [8, -1]), ("line", [8, 1, 2])]
)
def test_forged_lines_are_refused_before_they_are_measured(
    tmp_path: Path, one: MRSlice, small: Recipe, member: str, value: list[int]
) -> None:
    path = tmp_path / "c.npz"
    state = run_design([one], make_strategy("random"), 5, small, seed=0, start=2)
    save_state(path, state, "me")
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    write_npz(path, arrays | {member: np.asarray(value)})
    with pytest.raises(InputError, match="different line numbers from 0 to 15"):
        run_design([one], make_strategy("random"), 9, small, seed=0, start=2, checkpoint=path, identity="me")


def test_the_checkpoint_is_not_compressed(tmp_path: Path) -> None:
    """Reading one never unpacks more than its size."""
    save_state(tmp_path / "c.npz", STATE, "me")
    with zipfile.ZipFile(tmp_path / "c.npz") as archive:
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
