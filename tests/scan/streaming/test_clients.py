"""Streams as python-ismrmrd-server's client, Gadgetron's client and the ismrmrd package's serializer write them."""

import io
import json
import struct
from pathlib import Path

import ismrmrd
import numpy as np
import pytest
from ismrmrd.serialization import ProtocolDeserializer

from mri_design import read as read_file
from mri_design.scan.streaming.messages import Closed, LeftOut, LineReadout, Message, ScanHeader
from mri_design.scan.streaming.mrd import MrdStream
from mri_design.scan.streaming.scanner import Arrivals
from tests.mrd_clients import CLIENTS, bytes_of
from tests.simulated_scanner import counter_of, header_text, readout

RECORDED = Path(__file__).parents[4] / "shared/data/streams"
"""Bytes that python-ismrmrd-server's client sent; they are not part of the repository."""
CALIBRATION, BOTH = ismrmrd.ACQ_IS_PARALLEL_CALIBRATION, ismrmrd.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING
MODE = "<trajectory>cartesian</trajectory>{}<parallelImaging><accelerationFactor><kspace_encoding_step_1>2"
MODE += "</kspace_encoding_step_1><kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>"
MODE += "<calibrationMode>{}</calibrationMode></parallelImaging>"


def taken(content: bytes, protocol: MrdStream | None = None) -> tuple[list[Message], Arrivals]:
    """The messages, and what has arrived when they are over."""
    protocol, source, found, arrivals = protocol or MrdStream(), io.BytesIO(content), list[Message](), Arrivals()
    while (one := protocol.read(source)) is not None:
        found.append(one[1])
        if isinstance(one[1], Closed):
            arrivals.settle()
        else:
            arrivals.take(one[1])
    return found, arrivals


def of_mode(kspace: np.ndarray, mode: str) -> str:
    """The header of a scan that says how calibration was acquired; nothing where ``mode`` is empty."""
    plain = header_text(kspace)
    return plain.replace("<trajectory>cartesian</trajectory>", MODE.format("", mode)) if mode else plain


def accelerated(kspace: np.ndarray, first: str = "image", repeated: bool = False) -> list[ismrmrd.Acquisition]:
    """Every second line, and lines 4 to 8 for calibration: those between alone, or (``repeated``) all of them again."""
    image = [readout(kspace[:, line], counter_of(line)) for line in range(0, 12, 2)]
    between = range(4, 9) if repeated else (5, 7)
    strength = 5 if repeated else 1
    calibration = [readout(strength * kspace[:, line], counter_of(line), CALIBRATION) for line in between]
    return [*image, *calibration] if first == "image" else [*calibration, *image]


@pytest.mark.parametrize("waveforms", [False, True])
@pytest.mark.parametrize("config", [None, "[simulation]\nmatrix = 64\n"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_every_client_sends_arrives(kspace: np.ndarray, client: str, config: str | None, waveforms: bool) -> None:
    lines = [readout(kspace[:, line], counter_of(line)) for line in range(12)]
    content = bytes_of(client, header_text(kspace), lines, config=config, waveforms=waveforms)
    found, arrivals = taken(content)
    assert [message for message in found if isinstance(message, ScanHeader)] == [ScanHeader((12, 16), 2)]
    assert not [message for message in found if isinstance(message, LeftOut) and message.why]
    assert found[-1] == Closed() and arrivals.arrived.all()
    np.testing.assert_array_equal(arrivals.lines(range(12)), kspace)


@pytest.mark.parametrize("client", CLIENTS)
def test_answers_are_read_by_the_client_that_is_answered(kspace: np.ndarray, client: str) -> None:
    protocol = MrdStream()
    taken(bytes_of(client, header_text(kspace), []), protocol)
    answer = protocol.text({"lines": [3]}) + protocol.closing()
    length = struct.unpack_from("<I", answer, 2)[0]
    text = answer[6 : 6 + length]
    assert json.loads(text.decode().split("\0", 1)[0]) == {"lines": [3]}  # Connection.read_text
    assert json.loads((text + b"\0")[: (text + b"\0").index(b"\0")]) == {"lines": [3]}  # a string of C
    assert text.endswith(b"\0") == (client != "ismrmrd serializer")
    if client == "ismrmrd serializer":  # which would keep the NUL
        (heard,) = ProtocolDeserializer(io.BytesIO(answer)).deserialize()
        assert json.loads(str(heard)) == {"lines": [3]}


def test_before_anything_came_an_answer_ends_as_the_format_has_it() -> None:
    assert MrdStream().text({}) == struct.pack("<HI", 5, 3) + b"{}\0"


def test_a_header_with_and_without_nul_is_the_same(kspace: np.ndarray) -> None:
    one, other = (bytes_of(client, header_text(kspace), []) for client in ("Gadgetron", "python-ismrmrd-server"))
    without = struct.pack("<HI", 3, len(header_text(kspace))) + header_text(kspace).encode()
    found, _ = taken(one + other + without)
    assert sum(isinstance(message, ScanHeader) for message in found) == 1


@pytest.mark.parametrize("first", ["image", "calibration"])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("mode", ["", "embedded", "interleaved", "other", "separate", "external"])
def test_calibration_readouts_are_data_where_they_are_from_a_file(
    tmp_path: Path, kspace: np.ndarray, mode: str, repeated: bool, first: str
) -> None:
    header, data = of_mode(kspace, mode), accelerated(kspace, first, repeated)
    file = ismrmrd.Dataset(str(tmp_path / "scan.h5"), "dataset", mode="w")
    file.write_xml_header(header.encode())
    for one in data:
        file.append_acquisition(one)
    file.close()
    expected = read_file(tmp_path / "scan.h5")
    _, arrivals = taken(bytes_of("Gadgetron", header, data))
    np.testing.assert_array_equal(arrivals.arrived, expected.measured)
    got = arrivals.data("scan")
    np.testing.assert_array_equal(got.kspace, expected.kspace)
    assert got.header.get("calibration_lines", "")[:2] == expected.header.get("calibration_lines", "")[:2]


def test_calibration_that_may_be_of_another_scan_waits_until_all_is_known(kspace: np.ndarray) -> None:
    content = bytes_of("Gadgetron", header_text(kspace), accelerated(kspace, "calibration", repeated=True))
    protocol, arrivals, source = MrdStream(), Arrivals(), io.BytesIO(content)
    while not isinstance((one := protocol.read(source))[1], Closed):  # type: ignore[index]
        arrivals.take(one[1])  # type: ignore[index]
        assert not arrivals.arrived[5:8:2].any()
    arrivals.settle()
    assert np.flatnonzero(arrivals.arrived).tolist() == [0, 2, 4, 6, 8, 10]
    arrivals.settle([5])  # a decision was made with it, before the run that is resumed had died
    np.testing.assert_array_equal(arrivals.lines([5])[:, 0], 5 * kspace[:, 5])


def test_calibration_of_another_contrast_is_no_data(kspace: np.ndarray) -> None:
    data = accelerated(kspace)
    for one in data[-2:]:
        one.idx.contrast = 1
    _, arrivals = taken(bytes_of("Gadgetron", of_mode(kspace, "embedded"), data))
    assert np.flatnonzero(arrivals.arrived).tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded streams are not here")
@pytest.mark.parametrize(
    ("stream", "file"), [("sl", "generated_64"), ("config", "generated_64"), ("acs", "generated_64_acs")]
)
def test_the_recorded_client_brings_what_its_file_holds(stream: str, file: str) -> None:
    expected = read_file(RECORDED / f"{file}.h5")
    found, arrivals = taken((RECORDED / f"client_py_{stream}.bin").read_bytes())
    np.testing.assert_array_equal(arrivals.arrived, expected.measured)
    np.testing.assert_allclose(arrivals.data("scan").kspace, expected.kspace, atol=1e-5 * np.abs(expected.kspace).max())
    assert found[-1] == Closed() and sum(isinstance(message, LineReadout) for message in found) >= 40
