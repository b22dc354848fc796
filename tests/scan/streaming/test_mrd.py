"""Messages that the ismrmrd package writes are read, and nothing is allocated for what lies about its size."""

import ctypes
import io
import struct
from collections.abc import Callable

import ismrmrd
import numpy as np
import pytest
from ismrmrd.acquisition import AcquisitionHeader
from ismrmrd.serialization import ProtocolDeserializer, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

from mri_design import InputError
from mri_design.scan.data import part_of_scan
from mri_design.scan.streaming.messages import Closed, CutShort, LeftOut, LineReadout, Message, NoiseReadout, ScanHeader
from mri_design.scan.streaming.mrd import ACQUISITION_HEADER, MrdStream
from mri_design.scan.streaming.scanner import Arrivals
from tests.simulated_scanner import header_text, readout

Said = Callable[..., bytes]
Line = Callable[[int], ismrmrd.Acquisition]


def read(content: bytes, stream: MrdStream | None = None) -> list[Message]:
    protocol, source, found = stream or MrdStream(), io.BytesIO(content), list[Message]()
    raw = b""
    while (one := protocol.read(source)) is not None:
        raw += one[0]
        found.append(one[1])
    assert content.startswith(raw)
    return found


def test_the_header_of_a_readout_lies_as_in_the_ismrmrd_package() -> None:
    assert ACQUISITION_HEADER.itemsize == ctypes.sizeof(AcquisitionHeader) == 340
    for name, (_, offset, *_) in ACQUISITION_HEADER.fields.items():  # type: ignore[union-attr]
        assert getattr(AcquisitionHeader, name).offset == offset, name


def test_what_the_ismrmrd_package_writes_is_read(kspace: np.ndarray, said: Said, line: Line) -> None:
    noise = readout(kspace[:, 0], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    header, config, quiet, first, last = read(said("header", "config", noise, line(3), line(11)))
    assert header == ScanHeader((12, 16), 2) and config == LeftOut()
    assert isinstance(quiet, NoiseReadout) and isinstance(first, LineReadout) and isinstance(last, LineReadout)
    np.testing.assert_array_equal(quiet.samples, kspace[:, 0])
    assert (first.line, last.line) == (3, 11)
    np.testing.assert_array_equal(first.samples, kspace[:, 3])
    np.testing.assert_array_equal(last.samples, kspace[:, 11])


def test_reversed_readouts_are_turned_and_others_than_the_image_s_left_out(
    kspace: np.ndarray, said: Said, line: Line
) -> None:
    turned = readout(kspace[:, 4, ::-1], 4 + 7, ismrmrd.ACQ_IS_REVERSE)
    turned.center_sample = 15 - 8
    other_slice, other_set, navigator, outside, partial = (line(5) for _ in range(5))
    other_slice.idx.slice, other_set.idx.set = 1, 2
    navigator.set_flag(ismrmrd.ACQ_IS_NAVIGATION_DATA)
    outside.idx.kspace_encode_step_1 = 60
    partial.discard_pre = 3
    partial.center_sample = 8
    found = read(said("header", turned, other_slice, other_set, navigator, outside, partial))[1:]
    assert isinstance(found[0], LineReadout)
    np.testing.assert_array_equal(found[0].samples, kspace[:, 4])
    whys = [message.why for message in found[1:] if isinstance(message, LeftOut)]
    assert whys[0] == "" and len(whys) == 5
    for why, said_so in zip(whys[1:], ("another", "no imaging readout", "row 53", "partial echo"), strict=True):
        assert said_so in why


def test_waveforms_are_read_over(said: Said, line: Line) -> None:
    wave = ismrmrd.Waveform.from_array(np.zeros((2, 5), np.uint32))
    found = read(said("header", wave, line(2), "text"))
    assert [type(message) for message in found] == [ScanHeader, LeftOut, LineReadout, LeftOut]


def test_a_readout_before_the_header_is_left_out_and_the_same_header_may_come_again(said: Said, line: Line) -> None:
    early, *_, again, late = read(said(line(1), "header", "header", line(1)))
    assert early == LeftOut("a readout before the header") and again == LeftOut()
    assert isinstance(late, LineReadout)


def test_another_header_is_refused(said: Said) -> None:
    content = said("header")
    with pytest.raises(InputError, match="another one"):
        read(content + content.replace(b"<x>16</x>", b"<x>18</x>"))


def test_the_contrast_that_was_asked_for_is_taken_and_others_are_passed_over(
    kspace: np.ndarray, said: Said, line: Line
) -> None:
    first, second = line(5), line(6)
    second.idx.contrast = 1
    taken = read(said("header", first, second), MrdStream(counters={"contrast": 1}))[1:]
    assert taken[0] == LeftOut() and isinstance(taken[1], LineReadout) and taken[1].line == 6
    with pytest.raises(InputError, match="contrast"):
        MrdStream(counters={"contrast": -1})


@pytest.mark.parametrize("cut", [1, 2, 5, 60, -1])
def test_a_stream_that_ends_within_a_message_says_how_much_of_it_came(said: Said, line: Line, cut: int) -> None:
    whole, torn = said("header", line(1)), said(line(2))[:cut]
    *before, last = read(whole + torn)
    assert len(before) == len(read(whole)) == 2
    assert isinstance(last, CutShort) and f"{len(torn)} bytes had come" in last.why


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<H", 7),
        struct.pack("<H", 1022) + bytes(400),
        *(struct.pack("<HI", number, 2**20 + 1) for number in (2, 3, 5)),
        struct.pack("<HI", 3, 6) + b"\xff\xfe<a/>",
        struct.pack("<HI", 3, 60) + b"<!DOCTYPE a [<!ENTITY b 'c'>]><ismrmrdHeader></ismrmrdHeader>"[:60],
        struct.pack("<H6xQIIIHHfH2x", 0, 0, 0, 0, 0, 65535, 65535, 0.0, 0).join([struct.pack("<H", 1026), b""]),
    ],
)
def test_what_is_no_message_or_too_long_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        read(content + bytes(100))


def test_a_readout_that_declares_gigabytes_is_refused_before_it_is_read() -> None:
    head = np.zeros(1, ACQUISITION_HEADER)
    head["number_of_samples"], head["active_channels"] = 65535, 60000

    class Stream(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and size < 1000
            return super().read(size)

    content = struct.pack("<H", 1008) + head.tobytes()
    with pytest.raises(InputError, match="65535 samples in 60000 channels"):
        MrdStream().read(Stream(content + bytes(500)))


def test_answers_are_messages_that_the_ismrmrd_package_reads(said: Said) -> None:
    protocol = MrdStream()
    read(said("header"), protocol)
    assert protocol.address([0, 11]) == {"kspace_encode_step_1": [7, 18]}
    sent = io.BytesIO(protocol.text({"lines": [1, 2]}) + protocol.closing())
    assert list(ProtocolDeserializer(sent).deserialize()) == ['{"lines": [1, 2]}']
    assert read(protocol.closing()) == [Closed()]


def test_readout_oversampling_is_removed_as_from_a_file(kspace: np.ndarray, said: Said, line: Line) -> None:
    content = said("header", line(6))
    wide = content.replace(b"<x>200</x>", b"<x>400</x>", 1) if b"<x>200</x>" in content else content
    if wide == content:
        wide = content.replace(b"<x>200.0</x>", b"<x>400.0</x>", 1)
    header, found = read(wide)
    assert isinstance(header, ScanHeader) and header.shape == (12, 8)
    assert isinstance(found, LineReadout)
    profile = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(kspace[:, 6], axes=-1), norm="ortho"), axes=-1)
    got = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(found.samples, axes=-1), norm="ortho"), axes=-1)
    np.testing.assert_allclose(got, profile[:, 4:12], atol=1e-6)


@pytest.mark.parametrize("index", [3, -2])
def test_the_slice_that_is_taken_of_several_is_told(kspace: np.ndarray, line: Line, index: int) -> None:
    limits = "<slice><minimum>0</minimum><maximum>4</maximum><center>2</center></slice></encodingLimits>"
    written = io.BytesIO()
    out = ProtocolSerializer(written)
    out.serialize(CreateFromDocument(header_text(kspace).replace("</encodingLimits>", limits)))
    acquisitions = [line(number) for number in range(5, 9)]
    for each in acquisitions:
        each.idx.slice = 3
        out.serialize(each)
    header, *readouts = read(written.getvalue(), MrdStream(index))
    assert isinstance(header, ScanHeader) and header.place == (3, 5)
    arrivals = Arrivals()
    for message in (header, *readouts):
        arrivals.take(message)
    assert part_of_scan(arrivals.data("readouts").header) == "slice 3 of 5, numbered from 0"
    with pytest.raises(InputError) as refused:
        read(written.getvalue(), MrdStream(-6))
    assert refused.value.field == "slice"
