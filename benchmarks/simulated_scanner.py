"""A scanner that replays a scan as an MRD client: it connects, sends a header, and measures the lines it is told.

It speaks through the ismrmrd package, not through this one, and can do what real scanners do wrong.

    python benchmarks/simulated_scanner.py scan.npz 9002 --lose 12,30 --shuffle
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
from pathlib import Path

import numpy as np
from ismrmrd import ACQ_IS_NOISE_MEASUREMENT, Acquisition
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


def main() -> None:
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
    parser.add_argument("--die-after", type=int, default=-1, help="readouts after which the process is gone")
    parser.add_argument("--log", type=Path, help="file for the messages that came, as JSON lines")
    given = parser.parse_args()
    stored = np.load(given.scan)
    kspace = stored["kspace"][0]
    coils, ny, nx = kspace.shape
    centre = ny // 2 - 1  # another number than that of the grid's line, as scanners have it
    rng = np.random.default_rng(0)
    sent = 0
    with connected(given.port) as client, client.makefile("rwb") as stream:
        out, heard = ProtocolSerializer(stream), ProtocolDeserializer(stream)

        def send(made: Acquisition) -> None:
            nonlocal sent
            if sent == given.die_after:
                os._exit(9)
            time.sleep(given.slow)
            out.serialize(made)
            stream.flush()
            sent += 1

        def measure(line: int) -> None:
            for strength in (1, 3) if given.twice else (1,):
                send(readout(strength * kspace[:, line], line - ny // 2 + centre))

        known = f"<receiverChannels>{coils}</receiverChannels>"
        header = HEADER.format(nx=nx, ny=ny, last=ny - 1, centre=centre, coils=known if coils > 1 else "")
        out.serialize(ConfigFile("adaptive.xml"))
        out.serialize(CreateFromDocument(header))
        for _ in range(given.noise):
            noise = rng.standard_normal((2, coils, nx)) * np.sqrt(float(stored["noise_variance"]))
            send(readout((noise[0] + 1j * noise[1]).astype(np.complex64), flag=ACQ_IS_NOISE_MEASUREMENT))
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
                    counters = [line - ny // 2 + centre for line in message["lines"]]
                    assert counters == message["kspace_encode_step_1"], message
                asked = [line for line in message["lines"] if line not in message.get("arrived", [])]
                lost = {*given.never, *(() if "again" in message else given.lose)}
                for line in asked[::-1] if given.shuffle else asked:
                    if line not in lost:
                        measure(line)


if __name__ == "__main__":
    main()
