"""MRD clients of other projects and `mri-design adapt --listen`: are the lines those of the replayed file?

    OMP_NUM_THREADS=1 python benchmarks/stream_clients.py [STREAMS]

STREAMS is a folder with what python-ismrmrd-server's client sent over a socket (client_py_sl.bin, _acs.bin and
_config.bin) of two files (generated_64.h5, generated_64_acs.h5) that the ISMRMRD library's generator made. Without it
the same cases are made from a phantom, and that client's bytes are written as it writes them. The bytes of Gadgetron's
client are written so in any case, by tests/mrd_clients.py, and those of the ismrmrd package by its own serializer. Each
sends everything without waiting, closes, and listens. Writes results/interoperation/clients.csv and the table of
clients.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ismrmrd
import numpy as np
from parts.pages import put_conditions, put_table

from mri_design.evaluation.tables import Row, write_csv
from mri_design.scan.simulation import load_phantom

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results/interoperation"
sys.path.insert(0, str(ROOT))

from tests.mrd_clients import CLIENTS, Heard, bytes_of, conversation, messages_of, with_waveforms  # noqa: E402
from tests.simulated_scanner import (  # noqa: E402
    connected,
    counter_of,
    header_text,
    noise_readouts,
    readout,
)

STREAMS = {"plain": "sl", "calibration": "acs", "config text": "config", "waveforms": "sl"}
"""Streams that are sent, and the recorded stream that each is or is made from."""
RECORDED = "python-ismrmrd-server"
CONFIG = "[input]\nmatrix = 64\n"
MODE = """<trajectory>cartesian</trajectory>
<parallelImaging><accelerationFactor><kspace_encoding_step_1>2</kspace_encoding_step_1>
<kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>
<calibrationMode>interleaved</calibrationMode></parallelImaging>"""


@dataclass(frozen=True)
class Scan:
    """A file, and its header and readouts as a client sends them."""

    path: Path
    header: str
    data: list[ismrmrd.Acquisition]

    @classmethod
    def of(cls, path: Path) -> Scan:
        file = ismrmrd.Dataset(str(path), "dataset", mode="r")
        made = [file.read_acquisition(number) for number in range(file.number_of_acquisitions())]
        header = file.read_xml_header().decode()
        file.close()
        return cls(path, header, made)

    @classmethod
    def made(cls, path: Path, matrix: int, *, accelerated: bool) -> Scan:
        """A head with four coils: every line, or every second and those between for calibration near the centre."""
        data = load_phantom("brain", shape=(matrix, matrix), n_coils=4, rng=np.random.default_rng(0))
        kspace, header = data.kspace[0], header_text(data.kspace[0])
        made = noise_readouts(kspace, float(data.noise_variance or 0), 4)
        middle = range(matrix // 2 - matrix // 8, matrix // 2 + matrix // 8)
        for line in range(matrix):
            between = line % 2 == 1
            if not accelerated or not between or line in middle:
                flag = ismrmrd.ACQ_IS_PARALLEL_CALIBRATION if accelerated and between else None
                made.append(readout(kspace[:, line], counter_of(line), flag))
        if accelerated:
            header = header.replace("<trajectory>cartesian</trajectory>", MODE)
        file = ismrmrd.Dataset(str(path), "dataset", mode="w")
        file.write_xml_header(header.encode())
        for one in made:
            file.append_acquisition(one)
        file.close()
        return cls(path, header, made)


def scans(streams: Path | None, folder: Path, matrix: int) -> dict[str, Scan]:
    """The scans that are sent: a plain one, and an accelerated one with calibration lines."""
    if streams is None:
        return {name: Scan.made(folder / f"{name}.h5", matrix, accelerated=name == "acs") for name in ("sl", "acs")}
    return {"sl": Scan.of(streams / "generated_64.h5"), "acs": Scan.of(streams / "generated_64_acs.h5")}


def sent(client: str, what: str, scan: Scan, streams: Path | None) -> bytes:
    if client == RECORDED and streams is not None:
        content = (streams / f"client_py_{STREAMS[what]}.bin").read_bytes()
        return with_waveforms(content) if what == "waveforms" else content
    config = CONFIG if what == "config text" else None
    return bytes_of(client, scan.header, scan.data, config=config, waveforms=what == "waveforms")


def order_of(folder: Path) -> list[int]:
    with (folder / "lines.csv").open(newline="") as stream:
        return [int(row["line"]) for row in csv.DictReader(stream)]


def program(*words: object) -> list[str]:
    return [sys.executable, "-m", "mri_design.cli.main", *map(str, words)]


def designed(scan: Scan, options: tuple[object, ...], folder: Path) -> list[int]:
    subprocess.run(program("design", scan.path, *options, "--no-report", "--out", folder), check=True)
    return order_of(folder)


def adapted(content: bytes, options: tuple[object, ...], folder: Path) -> tuple[int, Heard]:
    """Exit code of `adapt`, to which everything is sent, and what the client was told."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    process = subprocess.Popen(program("adapt", "--listen", port, *options, "--out", folder))
    heard = conversation(connected(port, 120), (message for _, message in messages_of(content)))
    return process.wait(600), heard


def rows_of(streams: Path | None, matrix: int, lines: int, clients: int) -> Iterator[Row]:
    options = ("--lines", lines, "--recipe", "fast", "--seed", 0, "--quiet")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        held = scans(streams, folder, matrix)
        replayed = {which: designed(scan, options, folder / f"design-{which}") for which, scan in held.items()}
        for client in list(CLIENTS)[:clients]:
            for what, stream in STREAMS.items():
                which = "acs" if stream == "acs" else "sl"
                content, began = sent(client, what, held[which], streams), time.monotonic()
                out = folder / f"{client}-{what}".replace(" ", "-")
                code, heard = adapted(content, options, out)
                last = json.loads(heard.texts[-1]) if heard.texts else {}
                chosen = order_of(out) if code == 0 else []
                recorded = client == RECORDED and streams is not None
                yield {
                    "client": client,
                    "bytes": "recorded" + ", waveforms put in" * (what == "waveforms")
                    if recorded
                    else "its serializer's"
                    if client == "ismrmrd serializer"
                    else "as it writes them",
                    "sends": what,
                    "messages": sum(1 for _ in messages_of(content)),
                    "lines": len(chosen),
                    "same lines as design": "yes" if chosen == replayed[which] else "no",
                    "told that it is done, then closed": "yes" if heard.closed and last.get("kind") == "done" else "no",
                    "images back": len(heard.images),
                    "seconds": round(time.monotonic() - began, 1),
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", type=Path, nargs="?", help="folder with recorded streams and their files")
    parser.add_argument("--matrix", type=int, default=64, help="of the phantom, where there are none")
    parser.add_argument("--lines", type=int, default=34)
    parser.add_argument("--clients", type=int, default=len(CLIENTS), help="only the first so many")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    rows: list[Row] = []
    for row in rows_of(given.streams, given.matrix, given.lines, given.clients):
        rows.append(row)
        print(row, flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    write_csv(given.out / "clients.csv", rows)
    shown = [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
    put_table(given.out / "clients.md", "Clients of other projects at `adapt --listen`", shown)
    put_conditions(given.out / "clients.md", "numpy", "ismrmrd")


if __name__ == "__main__":
    main()
