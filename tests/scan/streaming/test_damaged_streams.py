"""Streams with flipped bits, cut out parts and foreign bytes: refused or read, never anything else."""

import io
import json
from collections.abc import Callable

import ismrmrd
import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.streaming.messages import JsonLines, StreamProtocol
from mri_design.scan.streaming.mrd import MrdStream
from mri_design.scan.streaming.scanner import Arrivals
from tests.simulated_scanner import readout
from tests.slow_cases import slow_cases

STREAMS_PER_SEED = 60


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


def read_all(protocol: StreamProtocol, content: bytes) -> Arrivals:
    """Everything up to the end, or to what is refused."""
    arrivals, stream = Arrivals(), io.BytesIO(content)
    try:
        while (read := protocol.read(stream)) is not None:
            arrivals.take(read[1])
    except InputError:
        pass
    return arrivals


def look_at(arrivals: Arrivals) -> None:
    """What a design asks for first."""
    if arrivals.arrived.any():
        try:
            data = arrivals.data("scan")
        except InputError:
            return
        assert np.isfinite(data.kspace).all()
        assert data.kspace.nbytes < 2**31


@pytest.mark.parametrize("seed", [0, *slow_cases(1, 2, 3)])
def test_mrd(
    said: Callable[..., bytes], line: Callable[[int], ismrmrd.Acquisition], kspace: np.ndarray, seed: int
) -> None:
    noise = readout(kspace[:, 0], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    content = said("config", "header", noise, *(line(number) for number in (6, 5, 7, 2)), "text")
    assert read_all(MrdStream(), content).arrived.sum() == 4
    rng = np.random.default_rng(seed)
    for _ in range(STREAMS_PER_SEED):
        look_at(read_all(MrdStream(), damaged(content, rng)))


@pytest.mark.parametrize("seed", [0, *slow_cases(1, 2, 3)])
def test_json_lines(kspace: np.ndarray, seed: int) -> None:
    readouts = [
        {"line": n, "real": kspace[:, n].real.tolist(), "imag": kspace[:, n].imag.tolist()} for n in (6, 5, 7, 2)
    ]
    lines = [{"lines": 12, "samples": 16, "coils": 2, "noise_variance": 1.0}, *readouts]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert read_all(JsonLines(), content).arrived.sum() == 4
    rng = np.random.default_rng(seed)
    for _ in range(STREAMS_PER_SEED):
        look_at(read_all(JsonLines(), damaged(content, rng)))
