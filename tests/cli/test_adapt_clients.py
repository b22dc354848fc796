"""`adapt --listen` with clients that send a finished scan without waiting, as those of other projects do."""

import json
import threading
from pathlib import Path

import ismrmrd
import numpy as np
import pytest
from typer.testing import Result

from tests.cli.folders import Run, order
from tests.cli.test_adapt import free_port
from tests.mrd_clients import Heard, bytes_of, conversation, messages_of
from tests.scan.streaming.test_mrd import CALIBRATION, of_mode
from tests.simulated_scanner import connected, counter_of, header_text, readout

pytestmark = pytest.mark.slow
BLIND = ("--strategy", "low-pass", "--start", 4, "--recipe", "fast.toml")


def scan_of(work: Path, variant: str) -> tuple[str, list[ismrmrd.Acquisition]]:
    """A header and readouts: all lines, or every second and those between flagged as calibration near the centre."""
    kspace = np.load(work / "scan.npz")["kspace"][0]
    if variant != "calibration":
        return header_text(kspace), [readout(kspace[:, line], counter_of(line)) for line in range(24)]
    lines = [*range(0, 24, 2), *range(7, 18, 2)]
    flags = [None] * 12 + [CALIBRATION] * 6
    made = [readout(kspace[:, line], counter_of(line), flag) for line, flag in zip(lines, flags, strict=True)]
    return of_mode(kspace, "embedded"), made


def talk(run: Run, out: Path, content: bytes, *options: object) -> tuple[Result, Heard]:
    """Let a client send everything to `adapt --listen`."""
    port, heard = free_port(), list[Heard]()
    parts = [message for _, message in messages_of(content)]
    client = threading.Thread(target=lambda: heard.append(conversation(connected(port), parts)))
    client.start()
    result = run("adapt", "--listen", port, "--out", out, *options)
    client.join(60)
    return result, heard[0]


@pytest.mark.parametrize(("client", "variant"), [("Gadgetron", "calibration"), ("python-ismrmrd-server", "waveforms")])
def test_every_client_gives_the_lines_of_the_replayed_file(
    work: Path, run: Run, tmp_path: Path, client: str, variant: str
) -> None:
    header, data = scan_of(work, variant)
    file = ismrmrd.Dataset(str(tmp_path / "scan.h5"), "dataset", mode="w")
    file.write_xml_header(header.encode())
    for one in data:
        file.append_acquisition(one)
    file.close()
    options = (*BLIND, "--lines", 12)
    run("design", tmp_path / "scan.h5", *options, "--out", tmp_path / "replayed", code=0)
    content = bytes_of(client, header, data, waveforms=variant == "waveforms")
    result, heard = talk(run, tmp_path / "run", content, *options)
    assert result.exit_code == 0, result.output
    assert order(tmp_path / "run") == order(tmp_path / "replayed")
    last = json.loads(heard.texts[-1])
    assert heard.closed and last["kind"] == "done" and last["lines"] == order(tmp_path / "run")
    run("adapt", tmp_path / "run/readouts.mrd", *options, "--out", tmp_path / "again", code=0)
    assert order(tmp_path / "again") == order(tmp_path / "run")
