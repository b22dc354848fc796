"""A scanner that replays a scan as an MRD client: it connects, sends a header, and measures the lines it is told.

It speaks through the ismrmrd package, not through this one, and can do what real scanners do wrong.

    python tests/simulated_scanner.py scan.npz 9002 --lose 12,30 --shuffle
"""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import time
from pathlib import Path

import numpy as np
from ismrmrd import ACQ_IS_NOISE_MEASUREMENT, Acquisition, Dataset
from ismrmrd.serialization import ConfigFile, ProtocolDeserializer, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

HEADER = """<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
 <acquisitionSystemInformation>{coils}</acquisitionSystemInformation>
 <experimentalConditions><H1resonanceFrequency_Hz>127000000</H1resonanceFrequency_Hz></experimentalConditions>
 <encoding>
  <encodedSpace><matrixSize><x>{nx}</x><y>{ny}</y><z>1</z></matrixSize>
   <fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></encodedSpace>
  <reconSpace><matrixSize><x>{nx}</x><y>{ny}</y><z>1</z></matrixSize>
   <fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></reconSpace>
  <encodingLimits><kspace_encoding_step_1><minimum>0</minimum><maximum>{last}</maximum><center>{centre}</center>
   </kspace_encoding_step_1></encodingLimits>
  <trajectory>cartesian</trajectory>
 </encoding>
</ismrmrdHeader>"""


def readout(samples: np.ndarray, counter: int = 0, flag: int | None = None) -> Acquisition:
    """One readout (coil, kx)."""
    made = Acquisition()
    made.resize(samples.shape[1], samples.shape[0])
    made.data[:] = samples
    made.idx.kspace_encode_step_1 = counter
    made.center_sample = samples.shape[1] // 2
    if flag is not None:
        made.set_flag(flag)
    return made


def header_text(kspace: np.ndarray) -> str:
    """The header of a scan (coil, ky, kx)."""
    coils, ny, nx = kspace.shape
    known = f"<receiverChannels>{coils}</receiverChannels>" if coils > 1 else ""
    return HEADER.format(nx=nx, ny=ny, last=counter_of(ny - 1), centre=counter_of(ny // 2), coils=known)


def counter_of(line: int) -> int:
    """What the scanner calls a line of the grid: another number, as with real ones."""
    return line + 7


def noise_readouts(kspace: np.ndarray, variance: float, count: int) -> list[Acquisition]:
    """Readouts without a signal; the coils are unequally loud, and the second hears the first."""
    rng = np.random.default_rng(0)
    coils, _, nx = kspace.shape
    mixed = np.diag(1 + 0.2 * np.arange(coils)) + 0.3 * np.eye(coils, k=-1)
    real, imaginary = np.sqrt(variance) * rng.standard_normal((2, count, coils, nx))
    return [readout((mixed @ one).astype(np.complex64), flag=ACQ_IS_NOISE_MEASUREMENT) for one in real + 1j * imaginary]


def write_file(path: Path, kspace: np.ndarray, noise: list[Acquisition]) -> None:
    """The whole scan as an MRD file."""
    file = Dataset(str(path), "dataset", mode="w")
    file.write_xml_header(header_text(kspace).encode())
    ny = kspace.shape[1]
    for made in [*noise, *(readout(kspace[:, line], counter_of(line)) for line in range(ny))]:
        file.append_acquisition(made)
    file.close()


def stream_of(kspace: np.ndarray, readouts: list[Acquisition] | None = None) -> bytes:
    """The messages of a scan (coil, ky, kx), without the closing one: its header, and every line or these readouts."""
    content = io.BytesIO()
    out = ProtocolSerializer(content)
    out.serialize(CreateFromDocument(header_text(kspace)))
    if readouts is None:
        readouts = [readout(kspace[:, line], counter_of(line)) for line in range(kspace.shape[1])]
    for made in readouts:
        out.serialize(made)
    return content.getvalue()


def connected(port: int, seconds: float = 60.0) -> socket.socket:
    """A connection, as soon as somebody listens."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def numbers(text: str) -> list[int]:
    """Line numbers of a list as it is typed."""
    return [int(word) for word in text.split(",") if word]


class GoneError(Exception):
    """The client went away in the middle of a scan."""


def main(words: list[str] | None = None) -> None:
    """Measure as the words of a command line say; `GoneError` after ``--die-after`` readouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scan", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--noise", type=int, default=0, help="noise readouts to begin with")
    parser.add_argument("--shuffle", action="store_true", help="answer the lines of a request in another order")
    parser.add_argument("--ahead", type=numbers, default=[], help="lines to send before anybody asks")
    parser.add_argument("--lose", type=numbers, default=[], help="lines to send only when they are asked for again")
    parser.add_argument("--never", type=numbers, default=[], help="lines never to send")
    parser.add_argument("--twice", action="store_true", help="send every readout twice, the second of another strength")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds before every readout")
    parser.add_argument("--die-after", type=int, default=-1, help="readouts after which the client is gone")
    parser.add_argument("--log", type=Path, help="file for the messages that came, as JSON lines")
    given = parser.parse_args(words)
    stored = np.load(given.scan)
    kspace = stored["kspace"][0]
    noises = noise_readouts(kspace, float(stored["noise_variance"]), given.noise)
    first = io.BytesIO()  # made before it connects: the header is awaited from then on
    begin = ProtocolSerializer(first)
    begin.serialize(ConfigFile("adaptive.xml"))
    begin.serialize(CreateFromDocument(header_text(kspace)))
    sent = 0
    with connected(given.port) as client, client.makefile("rwb") as stream:
        out, heard = ProtocolSerializer(stream), ProtocolDeserializer(stream)

        def send(made: Acquisition) -> None:
            nonlocal sent
            if sent == given.die_after:
                raise GoneError
            time.sleep(given.slow)
            out.serialize(made)
            stream.flush()
            sent += 1

        def measure(line: int) -> None:
            for strength in (1, 3) if given.twice else (1,):
                send(readout(strength * kspace[:, line], counter_of(line)))

        stream.write(first.getvalue())
        stream.flush()
        for noise in noises:
            send(noise)
        for line in given.ahead:
            measure(line)
        stream.flush()
        with open(given.log or os.devnull, "w", encoding="utf-8") as log:
            for text in heard.deserialize():
                message = json.loads(str(text))
                log.write(json.dumps(message) + "\n")
                log.flush()
                if message["kind"] == "done":
                    break
                if message["kind"] != "measure":
                    continue
                if "again" not in message:
                    counters = [counter_of(line) for line in message["lines"]]
                    assert counters == message["kspace_encode_step_1"], message
                asked = [line for line in message["lines"] if line not in message.get("arrived", [])]
                lost = {*given.never, *(() if "again" in message else given.lose)}
                for line in asked[::-1] if given.shuffle else asked:
                    if line not in lost:
                        measure(line)


if __name__ == "__main__":
    main()
