import io
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mri_design as md
from mri_design.design import DesignState, DesignTrace
from mri_design.experiment import Checkpoint, DesignOptions, load_state, save_state, stored_designs
from mri_design.experiment.stored_designs import FORMAT
from mri_design.inference import WarmStart
from tests.design_steps import design_step
from tests.refusals import refused

SCORES = np.array([np.nan, 4.0, 2.0, np.nan, 1.0])
VALUES = {
    **{"scores": SCORES, "expected": np.arange(5.0), "corrected": np.ones(5), "information": 1.5, "pending": 2},
    **{"image_energy": 2.5, "least_error": 0.25, "recent_fall": 0.125, "image_error": 0.0625, "tested": 6.0},
    "intervals": np.array([[1.0, 0.5, 2.0]]),
    **{"side_information_weight": 0.875, "predicted_energy": 4.5, "actual_energy": 5.5, "converged": False},
    **{"matvecs": 7, "seconds": 8.5},
}
"""One that no default has, for every field of a decision but the line."""
STEPS = (design_step(1, **VALUES), design_step(4, scores=SCORES, image_energy=7.0), design_step(0))
STATE = DesignState(
    DesignTrace("rule", 5, (2, 3), STEPS),
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


def plain(record: object) -> object:
    """Of plain values: comparable by NumPy, NaN equal to NaN."""
    return {f.name: plain(getattr(record, f.name)) for f in fields(record)} if is_dataclass(record) else record


def assert_equal(a: DesignState, b: DesignState) -> None:
    assert a.trace.lines == b.trace.lines and a.trace.start == b.trace.start
    assert (a.trace.strategy, a.trace.n_lines, a.signals) == (b.trace.strategy, b.trace.n_lines, b.signals)
    for x, y in zip(a.trace.steps, b.trace.steps, strict=True):
        np.testing.assert_equal(plain(x), plain(y))
    for v, w in zip(a.warm, b.warm, strict=True):
        for p, q in zip((v.mean, *v.z), (w.mean, *w.z), strict=True):
            np.testing.assert_array_equal(p, q)
            assert np.asarray(p).dtype == np.asarray(q).dtype
        np.testing.assert_equal(v.samples, w.samples)


@pytest.mark.parametrize(
    "state",
    [STATE, DesignState(DesignTrace("rule", 5, (2,)), (1.0,))],
    ids=["full", "before the first line"],
)
def test_a_state_comes_back_as_it_was(tmp_path: Path, state: DesignState) -> None:
    save_state(Checkpoint(tmp_path / "c.npz", "me"), state)
    assert_equal(load_state(Checkpoint(tmp_path / "c.npz", "me")), state)


def test_another_identity_is_refused_and_none_reads_any(tmp_path: Path) -> None:
    save_state(Checkpoint(tmp_path / "c.npz", "me"), STATE)
    with pytest.raises(md.UsageError):
        load_state(Checkpoint(tmp_path / "c.npz", "you"))
    assert_equal(load_state(Checkpoint(tmp_path / "c.npz", None)), STATE)


def packed(save: Any = np.savez, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def forged(whole: bytes, old: str, new: str) -> bytes:
    stored = np.load(io.BytesIO(whole))
    text = stored["text"].tobytes().replace(old.encode(), new.encode())
    return packed(text=np.frombuffer(text, np.uint8), numbers=stored["numbers"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-30],
        lambda whole: b"",
        lambda whole: b"no archive",
        lambda whole: packed(identity=np.array("me"), line=np.array([1, 2])),
        lambda whole: packed(text=np.array(["me", None], dtype=object)),
        lambda whole: forged(whole, FORMAT, "mri-design checkpoint 0"),
        lambda whole: forged(whole, '"at": 1}', '"at": 1%s}' % ("0" * 30)),
        lambda whole: forged(whole, '"shape": [5], "at": 1}', '"shape": [99], "at": 1}'),
        lambda whole: packed(np.savez_compressed, **np.load(io.BytesIO(whole))),
    ],
    ids=[
        "cut",
        "without directory",
        "empty",
        "text",
        "other members",
        "pickle",
        "older",
        "overflow",
        "overlap",
        "compressed",
    ],
)
def test_a_file_that_is_no_checkpoint_of_this_program_is_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "c.npz"
    save_state(Checkpoint(path, "me"), STATE)
    path.write_bytes(damage(path.read_bytes()))
    with refused("c.npz"):
        load_state(Checkpoint(path, "me"))


def test_a_long_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(Checkpoint(tmp_path / "c.npz", "me"), STATE)
    monkeypatch.setattr(stored_designs, "LIMITS", replace(stored_designs.LIMITS, max_text_bytes=1000))
    with refused("c.npz"):
        load_state(Checkpoint(tmp_path / "c.npz", None))


@pytest.mark.parametrize("seed", range(60))
def test_a_flipped_bit_gives_the_state_or_an_input_error(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "c.npz"
    save_state(Checkpoint(path, "me"), STATE)
    content = bytearray(path.read_bytes())
    position, bit = np.random.default_rng(seed).integers([len(content), 8])
    content[position] ^= 1 << bit
    path.write_bytes(content)
    try:
        found = load_state(Checkpoint(path, "me"))
    except md.InputError:
        return
    assert_equal(found, STATE)


@pytest.mark.parametrize(
    ("start", "chosen"), [((2, 3), (1, 1, 0)), ((2, 3), (1, 4, 16)), ((8, -1), (1, 4, 0)), ((2, 3), (8, 1, 2))]
)
def test_forged_lines_are_refused_before_they_are_measured(
    tmp_path: Path, one: md.SliceModel, small: md.Recipe, start: tuple[int, ...], chosen: tuple[int, ...]
) -> None:
    kept = Checkpoint(tmp_path / "c.npz", "me")
    state = md.run_design([one], md.make_strategy("random"), 5, small, seed=0, start=2)
    trace = replace(state.trace, start=start, steps=tuple(map(design_step, chosen)))
    save_state(kept, replace(state, trace=trace))
    with refused("lines"):
        options = DesignOptions(checkpoint=kept)
        md.run_design([one], md.make_strategy("random"), 9, small, seed=0, start=2, options=options)
