from collections.abc import Callable
from pathlib import Path

import ismrmrd
import pytest

from mri_design import InputError
from mri_design.scan.streaming import messages as module
from mri_design.scan.streaming.messages import Journal, JsonLines, LineReadout, ScanHeader, recorded
from mri_design.scan.streaming.mrd import MrdStream


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
