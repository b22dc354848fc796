"""What MRD clients write is read, damaged or not, and nothing is allocated for what lies about its size."""

import ctypes
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import ismrmrd
import numpy as np
import pytest
from ismrmrd.acquisition import AcquisitionHeader
from ismrmrd.serialization import ProtocolDeserializer, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

from mri_design import InputError
from mri_design.scan import streaming as live
from mri_design.scan.io import read as read_file
from mri_design.scan.streaming.mrd import ACQUISITION_HEADER
from tests.mrd_clients import CLIENTS, bytes_of
from tests.refusals import refuses
from tests.simulated_scanner import counter_of, header_text, readout
from tests.slow_cases import slow_cases

Said = Callable[..., bytes]
Line = Callable[[int], ismrmrd.Acquisition]
CALIBRATION = ismrmrd.ACQ_IS_PARALLEL_CALIBRATION
MODE = "<trajectory>cartesian</trajectory><parallelImaging><accelerationFactor><kspace_encoding_step_1>2"
MODE += "</kspace_encoding_step_1><kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>"
MODE += "<calibrationMode>{}</calibrationMode></parallelImaging>"


def read(content: bytes, stream: live.MrdStream | None = None) -> list[live.Message]:
    protocol, source, found = stream or live.MrdStream(), io.BytesIO(content), list[live.Message]()
    raw = b""
    while (one := protocol.read(source)) is not None:
        raw += one[0]
        found.append(one[1])
    assert content.startswith(raw)
    return found


def arrived(messages: list[live.Message]) -> live.Arrivals:
    arrivals = live.Arrivals()
    for message in messages:
        if message is live.CLOSED:
            arrivals.settle()
        else:
            arrivals.take(message)
    return arrivals


def of_mode(kspace: np.ndarray, mode: str) -> str:
    """The header of a scan that says how calibration was acquired; nothing where ``mode`` is empty."""
    plain = header_text(kspace)
    return plain.replace("<trajectory>cartesian</trajectory>", MODE.format(mode)) if mode else plain


def accelerated(kspace: np.ndarray, first: str = "image", repeated: bool = False) -> list[ismrmrd.Acquisition]:
    """Every second line, and lines 4 to 8 for calibration: those between alone, or (``repeated``) all of them again."""
    image = [readout(kspace[:, line], counter_of(line)) for line in range(0, 12, 2)]
    between = range(4, 9) if repeated else (5, 7)
    strength = 5 if repeated else 1
    calibration = [readout(strength * kspace[:, line], counter_of(line), CALIBRATION) for line in between]
    return [*image, *calibration] if first == "image" else [*calibration, *image]


def test_the_header_of_a_readout_lies_as_in_the_ismrmrd_package() -> None:
    assert ACQUISITION_HEADER.itemsize == ctypes.sizeof(AcquisitionHeader) == 340
    for name, (_, offset, *_) in ACQUISITION_HEADER.fields.items():  # type: ignore[union-attr]
        assert getattr(AcquisitionHeader, name).offset == offset, name


@pytest.mark.parametrize("config", [None, "[input]\nmatrix = 64\n"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_every_client_sends_arrives_and_each_reads_its_answers(kspace, client, config):
    lines = [readout(kspace[:, line], counter_of(line)) for line in range(12)]
    protocol = live.MrdStream()
    found = read(bytes_of(client, header_text(kspace), lines, config=config, waveforms=config is None), protocol)
    arrivals = arrived(found)
    assert [message for message in found if isinstance(message, live.ScanHeader)] == [live.ScanHeader((12, 16), 2)]
    assert not [message for message in found if isinstance(message, str) and message]
    assert found[-1] == live.CLOSED and arrivals.arrived.all()
    np.testing.assert_array_equal(arrivals.lines(range(12)), kspace)
    assert protocol.address([0, 11]) == {"kspace_encode_step_1": [7, 18]}
    answer = protocol.text({"lines": [3]}) + protocol.closing()
    text = answer[6 : 6 + struct.unpack_from("<I", answer, 2)[0]]
    assert json.loads(text.decode().split("\0", 1)[0]) == {"lines": [3]}
    assert text.endswith(b"\0") == (client != "ismrmrd serializer")
    if client == "ismrmrd serializer":  # which would keep the NUL
        (heard,) = ProtocolDeserializer(io.BytesIO(answer)).deserialize()
        assert json.loads(str(heard)) == {"lines": [3]}


def test_noise_readouts_are_read_and_a_readout_before_the_header_is_left_out(kspace, said, line):
    noise = readout(kspace[:, 0], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    early, *_, again, quiet, late = read(said(line(1), "header", "header", noise, line(1)))
    assert isinstance(early, str) and early and again == ""
    assert isinstance(quiet, live.NoiseReadout) and isinstance(late, live.LineReadout)
    np.testing.assert_array_equal(quiet.samples, kspace[:, 0])


def test_reversed_readouts_are_turned_and_others_than_the_image_s_left_out(kspace, said, line):
    turned = readout(kspace[:, 4, ::-1], 4 + 7, ismrmrd.ACQ_IS_REVERSE)
    turned.center_sample = 15 - 8
    other_slice, other_set, navigator, outside, partial = (line(5) for _ in range(5))
    other_slice.idx.slice, other_set.idx.set = 1, 2
    navigator.set_flag(ismrmrd.ACQ_IS_NAVIGATION_DATA)
    outside.idx.kspace_encode_step_1 = 60
    partial.discard_pre = 3
    partial.center_sample = 8
    found = read(said("header", turned, other_slice, other_set, navigator, outside, partial))[1:]
    assert isinstance(found[0], live.LineReadout)
    np.testing.assert_array_equal(found[0].samples, kspace[:, 4])
    assert [isinstance(one, str) and bool(one) for one in found[1:]] == [False, True, True, True, True]


@pytest.mark.parametrize(("encoding", "centre"), [(0, counter_of(6)), (1, 6)])
def test_lines_are_addressed_by_the_centre_of_the_encoding_that_is_read(kspace, said, encoding, centre):
    header = header_text(kspace)
    begin, end = header.index("<encoding>"), header.index("</encoding>") + len("</encoding>")
    second = header[begin:end].replace(f"<center>{counter_of(6)}</center>", "<center>6</center>")
    both = header[:end] + second + header[end:]
    protocol, acquired = live.MrdStream(counters={"encoding": encoding}), readout(kspace[:, 3], centre - 3)
    acquired.encoding_space_ref = encoding
    *_, found = read(said("header", acquired, header=both), protocol)
    assert isinstance(found, live.LineReadout) and found.line == 3
    assert protocol.address([3]) == {"kspace_encode_step_1": [centre - 3]}


def test_the_contrast_that_was_asked_for_is_taken_and_others_are_passed_over(said: Said, line: Line) -> None:
    first, second = line(5), line(6)
    second.idx.contrast = 1
    taken = read(said("header", first, second), live.MrdStream(counters={"contrast": 1}))[1:]
    assert taken[0] == "" and isinstance(taken[1], live.LineReadout) and taken[1].line == 6
    refuses("contrast", live.MrdStream, counters={"contrast": -1})
    refuses("counters", live.MrdStream, counters={"average": 1})


@pytest.mark.parametrize("index", [3, -2])
def test_the_slice_that_is_taken_of_several_is_in_the_header(kspace: np.ndarray, line: Line, index: int) -> None:
    limits = "<slice><minimum>0</minimum><maximum>4</maximum><center>2</center></slice></encodingLimits>"
    written = io.BytesIO()
    out = ProtocolSerializer(written)
    out.serialize(CreateFromDocument(header_text(kspace).replace("</encodingLimits>", limits)))
    for number in range(5, 9):
        made = line(number)
        made.idx.slice = 3
        out.serialize(made)
    header, *readouts = read(written.getvalue(), live.MrdStream(index))
    assert isinstance(header, live.ScanHeader) and header.place == (3, 5)
    data = arrived([header, *readouts]).data("readouts")
    assert data.provenance.slice is not None
    refuses("slice", read, written.getvalue(), live.MrdStream(-6))


@pytest.mark.parametrize("first", ["image", "calibration"])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("mode", ["", "embedded", "other", "separate"])
def test_calibration_readouts_are_data_where_they_are_from_a_file(tmp_path, kspace, mode, repeated, first):
    header, data = of_mode(kspace, mode), accelerated(kspace, first, repeated)
    file = ismrmrd.Dataset(str(tmp_path / "scan.h5"), "dataset", mode="w")
    file.write_xml_header(header.encode())
    for one in data:
        file.append_acquisition(one)
    file.close()
    expected = read_file(tmp_path / "scan.h5")
    arrivals = arrived(read(bytes_of("Gadgetron", header, data)))
    np.testing.assert_array_equal(arrivals.arrived, expected.measured)
    got = arrivals.data("scan")
    np.testing.assert_array_equal(got.kspace, expected.kspace)
    assert ("calibration_lines" in got.provenance.read_as) == ("calibration_lines" in expected.provenance.read_as)


def test_calibration_that_may_be_of_another_scan_waits_until_all_is_known(kspace: np.ndarray) -> None:
    *messages, _ = read(bytes_of("Gadgetron", header_text(kspace), accelerated(kspace, "calibration", repeated=True)))
    arrivals = arrived(messages)
    assert not arrivals.arrived[5:8:2].any()
    arrivals.settle()
    assert np.flatnonzero(arrivals.arrived).tolist() == [0, 2, 4, 6, 8, 10]
    arrivals.settle([5])  # a decision was made with it, before the run that is resumed had died
    np.testing.assert_array_equal(arrivals.lines([5])[:, 0], 5 * kspace[:, 5])


def test_calibration_of_another_contrast_is_no_data(kspace: np.ndarray) -> None:
    data = accelerated(kspace)
    for one in data[-2:]:
        one.idx.contrast = 1
    arrivals = arrived(read(bytes_of("Gadgetron", of_mode(kspace, "embedded"), data)))
    assert np.flatnonzero(arrivals.arrived).tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("cut", [1, 2, 5, 60, -1])
def test_a_stream_that_ends_within_a_message_is_cut_short(said: Said, line: Line, cut: int) -> None:
    whole, torn = said("header", line(1)), said(line(2))[:cut]
    *before, last = read(whole + torn)
    assert len(before) == len(read(whole)) == 2
    assert isinstance(last, str) and str(len(torn)) in last


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (struct.pack("<H", 7), "message"),
        (struct.pack("<H", 1022) + bytes(400), "message"),
        *((struct.pack("<HI", number, 2**20 + 1), f"text of message {number}") for number in (2, 3, 5)),
        (struct.pack("<HI", 3, 6) + b"\xff\xfe<a/>", "header"),
        (struct.pack("<HI", 3, 60) + b"<!DOCTYPE a [<!ENTITY b 'c'>]><ismrmrdHeader></ismrmrdHeader>"[:60], "header"),
        (struct.pack("<HH6xQIIIHHfH2x", 1026, 0, 0, 0, 0, 0, 65535, 65535, 0.0, 0), "waveform"),
        (b"another header", "header"),
    ],
    ids=str,
)
def test_what_is_no_message_or_too_long_is_refused(said: Said, content: bytes, field: str) -> None:
    if content == b"another header":
        content = said("header") + said("header").replace(b"<x>16</x>", b"<x>18</x>")
    refuses(field, read, content + bytes(100))


def test_a_readout_that_declares_gigabytes_is_refused_before_it_is_read() -> None:
    head = np.zeros(1, ACQUISITION_HEADER)
    head["number_of_samples"], head["active_channels"] = 65535, 60000

    class Stream(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and size < 1000
            return super().read(size)

    content = struct.pack("<H", 1008) + head.tobytes()
    refuses("readout of 65535 samples in 60000 channels", live.MrdStream().read, Stream(content + bytes(500)))


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The stream with one to four accidents."""
    made = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(made)))
        kind = rng.integers(4)
        if kind == 0:
            made[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            made[at : at + int(rng.integers(1, 40))] = b""
        elif kind == 2:
            made[at:at] = rng.bytes(int(rng.integers(1, 40)))
        else:
            made[at : at + 8] = b"\xff" * 8
    return bytes(made)


@pytest.mark.parametrize("seed", [0, *slow_cases(1, 2, 3)])
def test_damaged_streams_are_refused_or_read(said: Said, line: Line, kspace: np.ndarray, seed: int) -> None:
    noise = readout(kspace[:, 0], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    content = said("config", "header", noise, *(line(number) for number in (6, 5, 7, 2)), "text")
    rng = np.random.default_rng(seed)
    for _ in range(60):
        protocol, stream, arrivals = live.MrdStream(), io.BytesIO(damaged(content, rng)), live.Arrivals()
        try:
            while (one := protocol.read(stream)) is not None:
                arrivals.take(one[1])
            data = arrivals.data("scan")
        except InputError:
            continue
        assert np.isfinite(data.kspace).all() and data.kspace.nbytes < 2**31


def lines_of(path: Path) -> tuple[list[int], int]:
    found = list(live.recorded(path, live.MrdStream()))
    end = found[-1][0] if found else 0
    return [message.line for _, message in found if isinstance(message, live.LineReadout)], end


def test_a_journal_that_was_cut_off_goes_on_behind_its_last_whole_message(tmp_path, said, line):
    path = tmp_path / "readouts.mrd"
    assert lines_of(path) == ([], 0)
    with open(path, "ab", buffering=0) as journal:
        for message in ("header", line(3), line(5)):
            live.append(journal, said(message))
        assert lines_of(path)[0] == [3, 5]  # before it is closed
    whole = path.read_bytes()
    last = len(said(line(5)))
    for cut in (1, 100, last - 1):
        path.write_bytes(whole[:-cut])
        kept, end = lines_of(path)
        assert kept == [3] and end == len(whole) - last
        with open(path, "ab", buffering=0) as again:
            again.truncate(end)
            live.append(again, said(line(7)))
        assert lines_of(path)[0] == [3, 7]
