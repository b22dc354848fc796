"""A scan read in a process of its own, so that no defect of the HDF5 library can take this one down.

How many damaged files do that, and where in the library, is in results/reliability/fuzz.md.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData, ScanSummary, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.source import ReadOptions, SliceReader, Source
from mri_design.scan.provenance import Centre, MapsOrigin, NoiseOrigin, NoiseSamples, Provenance
from mri_design.scan.sampling import Sampling

_CHILD = "from mri_design.scan.io import formats, isolated; isolated.serve(formats.opened)"
_SECONDS, _COMPUTING, _BYTES_PER_SECOND = 30, 4, 5_000_000
"""For the smallest files the longest time, and of it the longest computing; and how many bytes add a second to both."""
_PASSES = 4
"""How often all slices may be read by one child."""
_KINDS = {
    kind.__name__: kind
    for kind in (
        *(KSpaceData, TrajectoryData, ScanSummary, Sampling, SliceGeometry, SourceImage),
        *(Provenance, NoiseOrigin, NoiseSamples, MapsOrigin, Centre),
    )
}
"""What the child may send; each checks itself when it is made anew."""
_ROOM = 2 * 2**30  # address space for the interpreter and its libraries


@dataclass(frozen=True)
class IsolatedSource(Source):
    """An HDF5 file that a child process opens anew for each question, with bounded memory and time.

    Parameters
    ----------
    path : Path
        The file; its format is recognised in the child.
    options : ReadOptions
        As for reading here; the child's address space is four times ``max_bytes`` and 2 GiB.

    Notes
    -----
    An answer takes half a minute at most, of which four seconds of computing, and for both a second more for every 5 MB
    of the file. Reading raises `InputError` as reading here would, and where the library crashes or does not end.
    """

    path: Path
    options: ReadOptions

    def load(self) -> Any:
        """All samples."""
        return self._answered("load")

    def summary(self) -> Any:
        """The samplings, and the samples of one slice."""
        return self._answered("summary")

    def _answered(self, question: str) -> Any:
        with self._asked(question) as answer:
            return answer()

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices, which one child sends one by one; it has the time of `load` for each, to compute for all."""
        with self._asked("slices") as answer:
            count, series = answer(), answer()
            yield SliceReader(count, answer, series={name: tuple(numbers) for name, numbers in series.items()})

    @contextmanager
    def _asked(self, question: str) -> Iterator[Callable[..., Any]]:
        """What a child process answers to a question: load, summary, or slices, one for each number.

        Raises
        ------
        InputError
            As reading here would, and where the child crashes or does not come to an end.
        """
        more = self.path.stat().st_size / _BYTES_PER_SECOND
        allowed = _SECONDS + more
        computing = math.ceil(min(allowed, _COMPUTING + more)) * (_PASSES if question == "slices" else 1)
        request = {"path": str(self.path), "question": question, "computing": computing}
        folders = [str(Path(__file__).parents[3]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(  # -P: nothing from the current folder
                [sys.executable, "-P", "-c", _CHILD, json.dumps({**request, "options": asdict(self.options)})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            )
            asks, answers = process.stdin, process.stdout
            assert asks is not None and answers is not None
            stalled = threading.Event()

            def stop() -> None:
                stalled.set()
                process.kill()

            def answer(number: int | None = None) -> Any:
                if number is not None:
                    with suppress(BrokenPipeError):  # it has ended, of which the answer tells
                        asks.write(b"%d\n" % number)
                        asks.flush()
                timer = threading.Timer(allowed, stop)
                timer.start()
                try:
                    told = _received(answers, self.options.limits)
                    if told is not None:
                        return told
                    status = process.wait()  # or it is stopped
                finally:
                    timer.cancel()
                if status >= 0:
                    complaints.seek(0)
                    said = complaints.read()[-2000:].decode(errors="replace")
                    raise RuntimeError(f"the reading process failed:\n{said}")
                got = f"a crash ({signal.Signals(-status).name})"
                if stalled.is_set():
                    got = f"no end of reading within {allowed:.0f} s"
                elif -status == signal.SIGXCPU:
                    got = f"no end of reading within {computing} s of computing"
                raise InputError(str(self.path), got, "an undamaged HDF5 file", "Copy or download the file again.")

            try:
                yield answer
            except BaseException:
                process.kill()
                raise
            finally:
                with suppress(BrokenPipeError):
                    asks.close()  # which ends a child that waits for the next question
                answers.close()
                process.wait()


def serve(opened: Callable[..., AbstractContextManager[Source]]) -> None:
    """The child's whole work: read what the command line asks for and write the scan to standard output.

    The system ends it (SIGXCPU) when its answers take more than ``computing`` seconds of the processor, whatever the
    library does; how long an answer is waited for is bounded by who asks.
    """
    request = json.loads(sys.argv[1])
    limits = ReadLimits(**request["options"].pop("limits"))
    _bound(resource.RLIMIT_AS, 4 * limits.max_bytes + _ROOM)
    _bound(resource.RLIMIT_CPU, request["computing"])
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGXCPU})  # of what started this process
    try:
        options = ReadOptions(limits=limits, **request["options"])
        with opened(request["path"], options, isolated=False) as source:
            if request["question"] == "slices":
                with source.slice_reader() as slices:
                    _send(slices.count)
                    _send(slices.series)
                    for line in sys.stdin:
                        _send(slices.read(int(line)))
            else:
                _send(source.load() if request["question"] == "load" else source.summary())
    except InputError as error:
        _put({"error": vars(error)})


def _bound(what: int, most: int) -> None:
    """Bound what this process may use, where it is not bounded more already."""
    inherited = resource.getrlimit(what)[1]
    if most < sys.maxsize and (inherited == resource.RLIM_INFINITY or most < inherited):
        resource.setrlimit(what, (most, inherited))


def _send(answer: object) -> None:
    arrays = list[NDArray[Any]]()
    told = _packed(answer, arrays)
    _put({"arrays": [(array.dtype.str, array.shape) for array in arrays], "told": told}, arrays)


def _put(reply: dict[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> None:
    stream = sys.stdout.buffer
    stream.write(json.dumps(reply).encode() + b"\n")
    for array in arrays:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def _packed(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value as JSON has it; its arrays go to a list of their own."""
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple):
        return [_packed(part, arrays) for part in value]
    if is_dataclass(value):
        known = {field.name: _packed(getattr(value, field.name), arrays) for field in fields(value)}
        return {"kind": type(value).__name__, "fields": known}
    if isinstance(value, Mapping):
        return {"entries": {name: _packed(part, arrays) for name, part in value.items()}}
    return value


def _unpacked(told: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    """The value that `_packed` was given."""
    if isinstance(told, list):
        return tuple(_unpacked(part, arrays) for part in told)
    if not isinstance(told, dict):
        return told
    if "kind" in told:
        return _KINDS[told["kind"]](**{name: _unpacked(part, arrays) for name, part in told["fields"].items()})
    if "array" in told:
        return arrays[told["array"]]
    return {name: _unpacked(part, arrays) for name, part in told["entries"].items()}


def _received(stream: IO[bytes], limits: ReadLimits) -> Any:
    """The scan or summary that the child sends; None where it ended before or sends something else."""
    try:
        reply = json.loads(stream.readline(2 * limits.max_text_bytes))
    except ValueError:
        return None
    if "error" in reply:
        raise InputError(**reply["error"])
    arrays = list[NDArray[Any]]()
    for described, shape in reply["arrays"]:
        check_declared_shape("array", shape, (dtype := np.dtype(described)).itemsize, limits)
        arrays.append(array := np.empty(shape, dtype if dtype.kind in "biufc" else None))
        if stream.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
            return None  # cut short: the child was killed
    return _unpacked(reply["told"], arrays)
