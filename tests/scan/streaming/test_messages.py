""""""

import io
import json
from collections.abc import Callable
from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.streaming import messages as module
from mri_design.scan.streaming.messages import (
    Closed,
    CutShort,
    Journal,
    JsonLines,
    LeftOut,
    LineReadout,
    Message,
    NoiseReadout,
    ScanHeader,
    recorded,
)
from mri_design.scan.streaming.mrd import MrdStream

HEADER = {"lines": 8, "samples": 4}


def read(*lines: object) -> list[Message]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    protocol, source, found = JsonLines(), io.BytesIO(text.encode()), list[Message]()
    while (one := protocol.read(source)) is not None:
        found.append(one[1])
    return found


def test_header_readouts_noise_and_end() -> None:
    lists = {"real": [1, 2, 3, 4], "imag": [0.5, 0, 0, -1]}
    header, line, noise, closed = read(
        {**HEADER, "coils": 1, "noise_variance": 0.1}, {"line": 7, **lists}, {"noise": True, **lists}, {"close": True}
    )
    assert header == ScanHeader((8, 4), 1, 0.1) and closed == Closed()
    assert isinstance(line, LineReadout) and isinstance(noise, NoiseReadout)
    assert line.line == 7 and line.samples.dtype == np.complex64
    np.testing.assert_array_equal(line.samples, [[1 + 0.5j, 2, 3, 4 - 1j]])
    np.testing.assert_array_equal(noise.samples, line.samples)


def test_single_precision_comes_through_text_unchanged() -> None:
    samples = np.random.default_rng(0).standard_normal((3, 4, 2)).astype(np.float32).view(np.complex64)[..., 0]
    content = {"line": 1, "real": samples.real.tolist(), "imag": samples.imag.tolist()}
    (_, line) = read({"lines": 8, "samples": 4}, content)
    assert isinstance(line, LineReadout)
    np.testing.assert_array_equal(line.samples, samples)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{not json", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1, 2]", "no JSON object"),
        ({"line": 8, "real": [1, 2, 3, 4], "imag": [1, 2, 3, 4]}, "line"),
        ({"line": True, "real": [1, 2, 3, 4], "imag": [1, 2, 3, 4]}, "line"),
        ({"line": 1, "real": [1, 2], "imag": [1, 2]}, "2 samples"),
        ({"line": 1, "real": [1, 2, 3, 4]}, "readout"),
        ({"line": 1, "real": [[1, 2], [3]], "imag": [[1, 2], [3]]}, "readout"),
        ({"line": 1, "real": "x", "imag": "y"}, "readout"),
        ({"lines": 9, "samples": 4}, "another one than before"),
        ({"lines": 10**9, "samples": 4}, "lines"),
    ],
)
def test_what_cannot_be_read_is_left_out_and_the_next_line_is_read(content: object, why: str) -> None:
    _, bad, good = read(HEADER, content, {"line": 2, "real": [0] * 4, "imag": [0] * 4})
    assert isinstance(bad, LeftOut) and why in bad.why
    assert isinstance(good, LineReadout)


def test_a_line_without_end_is_refused() -> None:
    class Endless(io.RawIOBase):
        def readline(self, size: int | None = -1) -> bytes:
            assert size is not None and 0 < size < 2**25
            return b"x" * size

    with pytest.raises(InputError, match="at most"):
        JsonLines().read(Endless())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "last", ['{"line": 2, "real": [1, ', '{"line": 2, "real": [0, 0, 0, 0], "imag": [0, 0, 0, 0]}']
)
def test_a_last_line_without_its_newline_is_cut_short_and_said_so(last: str) -> None:
    protocol, source = JsonLines(), io.BytesIO(f"{json.dumps(HEADER)}\n{last}".encode())
    assert isinstance(protocol.read(source)[1], ScanHeader)  # type: ignore[index]
    raw, message = protocol.read(source) or (b"x", Closed())
    assert raw == b"" and isinstance(message, CutShort)
    assert f"{len(last)} bytes without the newline" in message.why and '{"line": 2' in message.why
    assert protocol.read(source) is None


def test_a_stream_that_ends_with_a_line_ends_without_a_word() -> None:
    assert read(HEADER, {"close": True})[-1] == Closed()
    assert JsonLines().read(io.BytesIO(b"")) is None


def lines_of(path: Path) -> tuple[list[int], int]:
    found = list(recorded(path, MrdStream()))
    end = found[-1][0] if found else 0
    return [message.line for _, message in found if isinstance(message, LineReadout)], end


def test_what_was_added_is_read_again_and_what_was_cut_off_is_not(
    tmp_path: Path, said: Callable[..., bytes], line: Callable[[int], ismrmrd.Acquisition]
) -> None:
    path = tmp_path / "readouts.mrd"
    assert lines_of(path) == ([], 0)
    journal = Journal(path)
    for message in ("header", line(3), line(5)):
        journal.add(said(message))
    assert lines_of(path)[0] == [3, 5]  # before it is closed
    journal.close()
    whole = path.read_bytes()
    last = len(said(line(5)))
    for cut in (1, 100, last - 1):
        path.write_bytes(whole[:-cut])
        kept, end = lines_of(path)
        assert kept == [3] and end == len(whole) - last
        again = Journal(path, end)
        again.add(said(line(7)))
        again.close()
        assert lines_of(path)[0] == [3, 7]


def test_a_journal_of_lines_that_ends_within_one_is_read_up_to_it(tmp_path: Path) -> None:
    path, header = tmp_path / "readouts.jsonl", b'{"lines": 8, "samples": 4}\n'
    path.write_bytes(header + b'{"line": 3, "real": [1, 2')
    assert list(recorded(path, JsonLines())) == [(len(header), ScanHeader((8, 4)))]


def test_a_stream_without_end_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mri_design import ReadLimits

    monkeypatch.setattr(module, "STREAM_LIMITS", ReadLimits(max_readouts=2))
    journal = Journal(tmp_path / "readouts")
    journal.add(b"a")
    journal.add(b"b")
    with pytest.raises(InputError, match="3 messages"):
        journal.add(b"c")
    journal.close()
