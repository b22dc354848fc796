"""MRD clients as other projects write them: they send a finished scan without waiting for an answer, then listen.

What differs is how strings are written. python-ismrmrd-server's client (`send_config_file`, `send_metadata`) and
Gadgetron's (`send_gadgetron_configuration_file`, `send_gadgetron_parameters`) end them with NUL, which the length
counts; the serializer of the ismrmrd package ends them with nothing. The first two are written out here, byte by byte;
the third is the package's own.
"""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import ismrmrd
import numpy as np
from ismrmrd.hdf5 import acquisition_header_dtype
from ismrmrd.serialization import ConfigFile, ConfigText, ProtocolDeserializer, ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

CONFIG_FILE, CONFIG_TEXT, HEADER, CLOSE, TEXT, ACQUISITION, WAVEFORM = 1, 2, 3, 4, 5, 1008, 1026
Data = Sequence["ismrmrd.Acquisition | ismrmrd.Waveform"]


def string(number: int, text: str) -> bytes:
    """A string as the streaming format has it: number, length, text, NUL, which the length counts."""
    content = text.encode() + b"\0"
    return struct.pack("<HI", number, len(content)) + content


def ending_with_nul(header: str, data: Data, config: str | None, name: str) -> bytes:
    """The bytes of python-ismrmrd-server's client and of Gadgetron's, which differ in the name of their files."""
    first = struct.pack("<H1024s", CONFIG_FILE, name.encode()) if config is None else string(CONFIG_TEXT, config)
    out = io.BytesIO()
    out.write(first + string(HEADER, header))
    for one in data:
        out.write(struct.pack("<H", ACQUISITION if isinstance(one, ismrmrd.Acquisition) else WAVEFORM))
        one.serialize_into(out.write)
    out.write(struct.pack("<H", CLOSE))
    return out.getvalue()


def serialized(header: str, data: Data, config: str | None) -> bytes:
    """The bytes of the ismrmrd package's own serializer."""
    stream = io.BytesIO()
    with ProtocolSerializer(stream) as out:
        out.serialize(ConfigFile("default.xml") if config is None else ConfigText(config))
        out.serialize(CreateFromDocument(header))
        for one in data:
            out.serialize(one)
    return stream.getvalue()


CLIENTS: dict[str, Callable[[str, Data, str | None], bytes]] = {
    "python-ismrmrd-server": lambda header, data, config: ending_with_nul(header, data, config, "invertcontrast"),
    "Gadgetron": lambda header, data, config: ending_with_nul(header, data, config, "default.xml"),
    "ismrmrd serializer": serialized,
}
"""(header, acquisitions and waveforms, text of a configuration or None for the name of a file) -> what is sent."""


def messages_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every message that a client sent."""
    at, dtype = 0, acquisition_header_dtype
    while at < len(content):
        (number,) = struct.unpack_from("<H", content, at)
        size = 2
        if number == CONFIG_FILE:
            size += 1024
        elif number in (CONFIG_TEXT, HEADER, TEXT):
            size += 4 + struct.unpack_from("<I", content, at + 2)[0]
        elif number == ACQUISITION:
            head = np.frombuffer(content, dtype, 1, at + 2)[0]
            samples = int(head["number_of_samples"])
            size += dtype.itemsize + 4 * samples * (
                int(head["trajectory_dimensions"]) + 2 * int(head["active_channels"])
            )
        elif number == WAVEFORM:
            *_, samples, channels = struct.unpack_from("<H6xQIIIHH", content, at + 2)
            size += 40 + 4 * samples * channels
        elif number != CLOSE:
            raise ValueError(f"message {number}")
        yield number, content[at : at + size]
        at += size


def with_waveforms(content: bytes) -> bytes:
    """The same messages with a waveform of four channels behind every third readout."""
    out, readouts = io.BytesIO(), 0
    for number, message in messages_of(content):
        out.write(message)
        readouts += number == ACQUISITION
        if number == ACQUISITION and readouts % 3 == 0:
            made = ismrmrd.Waveform.from_array(np.full((4, 50), readouts, np.uint32))
            out.write(struct.pack("<H", WAVEFORM))
            made.serialize_into(out.write)
    return out.getvalue()


def bytes_of(client: str, header: str, data: Data, *, config: str | None = None, waveforms: bool = False) -> bytes:
    """Everything that one of `CLIENTS` sends of a scan, the closing message included."""
    content = CLIENTS[client](header, data, config)
    return with_waveforms(content) if waveforms else content


class Heard(NamedTuple):
    """Text messages, up to a NUL as the other clients read them, images, and whether the closing message came."""

    texts: tuple[str, ...]
    closed: bool
    images: tuple[ismrmrd.Image, ...] = ()


def conversation(connection: socket.socket, parts: Iterable[bytes]) -> Heard:
    """Send everything while a thread listens until the other side closes, as these clients do."""
    texts, closed, images = list[str](), list[bool](), list[ismrmrd.Image]()

    def listen() -> None:
        try:
            for message in ProtocolDeserializer(connection.makefile("rb")).deserialize():
                if isinstance(message, ismrmrd.Image):
                    images.append(message)
                else:
                    texts.append(str(message).split("\0", 1)[0])
            closed.append(True)
        except (EOFError, OSError):
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        for part in parts:
            connection.sendall(part)
    except OSError:  # the other side has all that it wants
        pass
    listener.join(600)
    connection.close()
    return Heard(tuple(texts), bool(closed), tuple(images))
