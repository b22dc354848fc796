"""Reading in a child process, which bounds memory and time and may crash: for every format that a library parses.

h5py, twixtools, pydicom and nibabel run there. results/reliability/fuzz.md counts the damaged files that crash HDF5.
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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MissingPackageError
from mri_design.scan.data import ImageStack, KSpaceData, ScanSummary, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.source import ReadOptions, SliceReader, Source
from mri_design.scan.provenance import Centre, MapsOrigin, NoiseOrigin, NoiseSamples, Provenance
from mri_design.scan.sampling import Sampling

_CHILD = "from mri_design.scan.io import formats, isolated; isolated.serve(formats.opened)"
_SECONDS, _COMPUTING, _BYTES_PER_SECOND = 60, 4, 5_000_000
"""Seconds that an answer about the smallest file may take, and may compute; and the bytes that add a second to both."""
_PASSES = 4
"""How often one child may read all slices."""
_KINDS = {
    kind.__name__: kind
    for kind in (
        *(KSpaceData, TrajectoryData, ImageStack, ScanSummary, Sampling, SliceGeometry, SourceImage),
        *(Provenance, NoiseOrigin, NoiseSamples, MapsOrigin, Centre),
    )
}
"""Dataclasses that the child may send; each checks its fields again here."""
_ROOM = 2 * 2**30  # address space of the interpreter and its libraries


@dataclass(frozen=True)
class IsolatedSource(Source):
    """A file that a child process opens for each request, with bounded memory and time.

    Parameters
    ----------
    path : Path
        The file; the child recognises its format.
    options : ReadOptions
        As for reading in this process; the child's address space is four times ``max_bytes`` and 2 GiB.
    library : str
        Module that parses the file; the time that its import takes is not counted.

    Notes
    -----
    An answer takes at most a minute, four seconds of it computing; every 5 MB of the file add a second to both.
    Reading raises the errors that reading in this process raises, and `InputError` if the library crashes or hangs.
    """

    path: Path
    options: ReadOptions
    library: str = ""

    def load(self) -> Any:
        """All samples."""
        return self._answered("load")

    def summary(self) -> Any:
        """The samplings, and the samples of one slice."""
        return self._answered("summary")

    def _answered(self, question: str) -> Any:
        with self._child_answers(question) as answer:
            return answer()

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices, sent one by one by one child, which has the time of `load` for each."""
        with self._child_answers("slices") as answer:
            count, series = answer(), answer()
            yield SliceReader(count, answer, series={name: tuple(numbers) for name, numbers in series.items()})

    @contextmanager
    def _child_answers(self, question: str) -> Iterator[Callable[..., Any]]:
        """Start a child process on "load", "summary" or "slices"; yield a function that returns its next answer.

        Of "slices", the first two answers take no argument, and each of the others takes the number of a slice.

        Raises
        ------
        InputError, MissingPackageError
            As reading in this process, and if the child crashes or runs out of time.
        """
        more = self.path.stat().st_size / _BYTES_PER_SECOND
        allowed = _SECONDS + more
        computing = math.ceil(min(allowed, _COMPUTING + more)) * (_PASSES if question == "slices" else 1)
        request = {"path": str(self.path), "question": question, "computing": computing, "library": self.library}
        folders = [str(Path(__file__).parents[3]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(  # -P: nothing from the current folder
                [sys.executable, "-P", "-c", _CHILD, json.dumps({**request, "options": asdict(self.options)})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            )
            questions, answers = process.stdin, process.stdout
            assert questions is not None and answers is not None
            stalled = threading.Event()

            def stop() -> None:
                stalled.set()
                process.kill()

            def answer(number: int | None = None) -> Any:
                if number is not None:
                    with suppress(BrokenPipeError):  # it has ended, which the answer reports
                        questions.write(b"%d\n" % number)
                        questions.flush()
                timer = threading.Timer(allowed, stop)
                timer.start()
                try:
                    received = _received(answers, self.options.limits)
                    if received is not None:
                        return received
                    status = process.wait()  # or it is stopped
                finally:
                    timer.cancel()
                if status >= 0:
                    complaints.seek(0)
                    raise RuntimeError(f"reading failed:\n{complaints.read()[-2000:].decode(errors='replace')}")
                got = f"a crash ({signal.Signals(-status).name})"
                if stalled.is_set():
                    got = f"no end of reading within {allowed:.0f} s"
                elif -status == signal.SIGXCPU:
                    got = f"no end of reading within {computing} s of computing"
                raise InputError(str(self.path), got, "an undamaged file", "Copy or download the file again.")

            try:
                yield answer
            except BaseException:
                process.kill()
                raise
            finally:
                with suppress(BrokenPipeError):
                    questions.close()  # which ends a child that waits for the next question
                answers.close()
                process.wait()


def serve(opened: Callable[..., AbstractContextManager[Source]]) -> None:
    """The child's work: read the file that the command line names and write the scan to standard output.

    The system ends it (SIGXCPU) after ``computing`` seconds of processor time; the parent bounds the wall time.
    """
    request = json.loads(sys.argv[1])
    limits = ReadLimits(**request["options"].pop("limits"))
    _bound(resource.RLIMIT_AS, 4 * limits.max_bytes + _ROOM)
    if request["library"]:
        with suppress(ImportError):  # which the reader reports
            import_module(request["library"])
    _bound(resource.RLIMIT_CPU, math.ceil(time.process_time()) + request["computing"])
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGXCPU})  # it may have been blocked by the parent
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
    except MissingPackageError as error:
        _put({"missing": str(error)})


def _bound(what: int, most: int) -> None:
    """Bound a resource of this process, unless it has a tighter bound."""
    inherited = resource.getrlimit(what)[1]
    if most < sys.maxsize and (inherited == resource.RLIM_INFINITY or most < inherited):
        resource.setrlimit(what, (most, inherited))


def _send(answer: object) -> None:
    arrays = list[NDArray[Any]]()
    content = _packed(answer, arrays)
    _put({"arrays": [(array.dtype.str, array.shape) for array in arrays], "content": content}, arrays)


def _put(reply: dict[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> None:
    stream = sys.stdout.buffer
    stream.write(json.dumps(reply).encode() + b"\n")
    for array in arrays:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def _packed(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value in the types of JSON; its arrays are appended to ``arrays``."""
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


def _unpacked(content: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    """The value from which `_packed` made ``content``."""
    if isinstance(content, list):
        return tuple(_unpacked(part, arrays) for part in content)
    if not isinstance(content, dict):
        return content
    if "kind" in content:
        return _KINDS[content["kind"]](**{name: _unpacked(part, arrays) for name, part in content["fields"].items()})
    if "array" in content:
        return arrays[content["array"]]
    return {name: _unpacked(part, arrays) for name, part in content["entries"].items()}


def _received(stream: IO[bytes], limits: ReadLimits) -> Any:
    """The scan or summary that the child sends; None if it ended early or sent something else."""
    try:
        reply = json.loads(stream.readline(2 * limits.max_text_bytes))
    except ValueError:
        return None
    if "error" in reply:
        raise InputError(**reply["error"])
    if "missing" in reply:
        raise MissingPackageError(reply["missing"])
    arrays = list[NDArray[Any]]()
    for described, shape in reply["arrays"]:
        check_declared_shape("array", shape, (dtype := np.dtype(described)).itemsize, limits)
        arrays.append(array := np.empty(shape, dtype if dtype.kind in "biufc" else None))
        if stream.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
            return None  # cut short: the child was killed
    return _unpacked(reply["content"], arrays)
