"""A scanner that is played: an MRD client that measures the lines of a complete scan as they are wanted."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.calibration import measure_noise
from mri_design.scan.data import KSpaceData
from mri_design.scan.streaming.mrd import ACQUISITION, HEADER
from mri_design.scan.writing import mrd_header, noise_with, readout_heads


class Player:
    """The messages of one slice of a scan, whose lines all hold data.

    Parameters
    ----------
    scan : KSpaceData
        Its noise, as it is known or as the complete scan shows it, is sent as a noise readout that has exactly it.
    slice_number : int
        The slice that is measured, from 0.
    pace : float
        Seconds that a line takes.

    Raises
    ------
    InputError
        For a slice whose lines are not all whole.
    """

    def __init__(self, scan: KSpaceData, slice_number: int = 0, pace: float = 0.0) -> None:
        if not scan.samplings[slice_number].samples.all():
            got, cure = "a scan that lacks samples", "Give one that is complete, as phantom:head-16ch."
            raise InputError("play", got, "a complete scan: whatever line is wanted has to be there", cure)
        self._kspace, self._pace = scan.kspace[slice_number], pace
        self._places = scan.geometry or (None,) * scan.n_slices
        self._shape, self._slice, self._covariance = scan.grid_shape, slice_number, _noise_of(scan)

    def beginning(self) -> bytes:
        """The header, and the noise."""
        text = mrd_header(self._shape, self._places).encode() + b"\0"
        header = struct.pack("<HI", HEADER, len(text)) + text
        return header + self._readout(noise_with(self._covariance), noise=True)

    def line(self, number: int) -> bytes:
        """The readout of a line."""
        return self._readout(self._kspace[:, number], number)

    def _readout(self, samples: NDArray[np.complexfloating], number: int = 0, *, noise: bool = False) -> bytes:
        lines = [(self._slice, number)]
        head = readout_heads(self._shape, self._places, lines, len(samples), noise=noise)
        head["number_of_samples"] = samples.shape[1]
        return struct.pack("<H", ACQUISITION) + head.tobytes() + np.ascontiguousarray(samples, np.complex64).tobytes()

    def play(self, client: socket.socket) -> None:
        """Measure what the other side wants, until it closes or has what it wants."""
        from ismrmrd.serialization import ProtocolDeserializer  # here: the import takes longer than the others

        client.sendall(self.beginning())
        with client.makefile("rb") as stream:
            for message in ProtocolDeserializer(stream).deserialize():
                wanted = json.loads(message.rstrip("\0")) if isinstance(message, str) else {}
                for line in wanted.get("lines", ()) if wanted.get("kind") == "measure" else ():
                    if line not in wanted.get("arrived", ()):
                        time.sleep(self._pace)
                        client.sendall(self.line(line))


def _noise_of(scan: KSpaceData) -> NDArray[np.complex128]:
    """Covariance of the coils' noise."""
    if scan.noise_covariance is not None:
        return scan.noise_covariance
    if scan.noise_variance is None:
        return measure_noise(scan).covariance
    return float(np.mean(scan.noise_variance)) * np.eye(scan.n_coils, dtype=np.complex128)


def play_at(player: Player, address: tuple[str, int]) -> None:
    """Have a player work in a thread of its own, at the address where somebody listens."""

    def work() -> None:
        with suppress(OSError, EOFError), socket.create_connection(address) as client:  # the other side may go first
            player.play(client)

    threading.Thread(target=work, name="player", daemon=True).start()
