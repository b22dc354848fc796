"""A small scan as an MRD client sends it, message by message, and a channel without a network."""

import io
import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import ismrmrd
import numpy as np
import pytest
from ismrmrd.serialization import ConfigText, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

from mri_design.scan.streaming.channel import Connected, Event
from mri_design.scan.streaming.messages import JsonLines
from tests.read_here import read_here
from tests.simulated_scanner import header_text, readout

__all__ = ["read_here"]


@pytest.fixture
def kspace() -> np.ndarray:
    """(2 coils, 12 ky, 16 kx), every sample different."""
    real, imaginary = np.random.default_rng(3).standard_normal((2, 2, 12, 16))
    return (real + 1j * imaginary).astype(np.complex64)


@pytest.fixture
def said(kspace: np.ndarray) -> Callable[..., bytes]:
    """(messages) -> their bytes, as the ismrmrd package writes them: "header", "config", "text" or an acquisition."""

    def written(*messages: object) -> bytes:
        stream = io.BytesIO()
        out = ProtocolSerializer(stream)
        known = {"header": CreateFromDocument(header_text(kspace)), "config": ConfigText("<c/>"), "text": "hello"}
        for message in messages:
            if isinstance(message, ismrmrd.Waveform | ismrmrd.Acquisition):
                out.serialize(message)
            else:
                out.serialize(known[str(message)])
        return stream.getvalue()

    return written


@pytest.fixture
def line(kspace: np.ndarray) -> Callable[[int], ismrmrd.Acquisition]:
    """(line of the grid) -> its readout, with the scanner's own counter."""
    return lambda number: readout(kspace[:, number], number + 7)


@dataclass
class Recorded:
    """In the place of a channel: events that a test puts in, and what was sent."""

    protocol: JsonLines = field(default_factory=JsonLines)
    events: "queue.Queue[Event]" = field(default_factory=queue.Queue)
    sent: list[Mapping[str, object]] = field(default_factory=list)
    answer: Callable[[Mapping[str, object]], Iterator[Event]] | None = None

    def next(self, seconds: float | None) -> Event | None:
        try:
            return self.events.get(block=False)
        except queue.Empty:
            return None

    def send(self, content: Mapping[str, object]) -> bool:
        self.sent.append(content)
        for event in self.answer(content) if self.answer is not None else ():
            self.events.put(event)
        return True


@pytest.fixture
def channel() -> Recorded:
    """A channel to which somebody is connected."""
    made = Recorded()
    made.events.put(Connected())
    return made
