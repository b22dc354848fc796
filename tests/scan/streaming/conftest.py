"""A small scan as an MRD client sends it, message by message."""

import io
from collections.abc import Callable

import ismrmrd
import numpy as np
import pytest
from ismrmrd.serialization import ConfigText, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

from tests.simulated_scanner import header_text, readout


@pytest.fixture
def kspace() -> np.ndarray:
    """(2 coils, 12 ky, 16 kx), every sample different."""
    real, imaginary = np.random.default_rng(3).standard_normal((2, 2, 12, 16))
    return (real + 1j * imaginary).astype(np.complex64)


@pytest.fixture
def said(kspace: np.ndarray) -> Callable[..., bytes]:
    """(messages) -> their bytes, as the ismrmrd package writes them: "header", "config", "text" or an acquisition."""

    def written(*messages: object, header: str = "") -> bytes:
        stream = io.BytesIO()
        out = ProtocolSerializer(stream)
        known = {
            "header": CreateFromDocument(header or header_text(kspace)),
            "config": ConfigText("<c/>"),
            "text": "hello",
        }
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
