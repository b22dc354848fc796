"""``mri-design adapt``: the design at the scanner, line after line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mri_design.cli import flags
from mri_design.cli.terminal import Destination, say, verb
from mri_design.errors import InputError, UsageError
from mri_design.experiment.recipe import Recipe

if TYPE_CHECKING:
    from mri_design.scan.streaming.scanner import Connection

_SCANNER = "The scanner"


@dataclass(frozen=True, kw_only=True)
class _Listening(Destination):
    """Where a run at the scanner goes.

    Parameters
    ----------
    resume : bool
        Go on from the run folder's readouts and checkpoint.
    """

    resume: bool = False


@verb
def adapt(
    to: _Listening,
    source: str | None = None,
    listen: Annotated[int | None, flags.Within(0, 65535), flags.Panel(_SCANNER)] = None,
    host: Annotated[str, flags.Panel(_SCANNER)] = "127.0.0.1",
    timeout: Annotated[float, flags.Panel(_SCANNER)] = 10.0,
    requests: Annotated[int, flags.Within(1), flags.Panel(_SCANNER)] = 3,
    repeated: Annotated[str, flags.Panel(_SCANNER)] = "first",
    lines: Annotated[int | None, flags.Within(1)] = None,
    strategy: str | None = None,
    index: int = 0,
    acceleration: float | None = None,
    companions: list[str] | None = None,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            f"design.start {flags.ENDS} {flags.CONSTRAINTS} design.block {flags.STREAMED} {flags.NOISE} "
            f"{flags.COMPANION}"
        ),
    ],
) -> int:
    """Decide LINES while the scanner measures them: readouts come in, the next lines go out.

    The scanner is an MRD client that connects to --listen PORT, sends the header and then every readout, and is told
    the next lines in text messages. Who sends them in a file or, with -, through a pipe is told in lines of JSON on
    stdout.

    Every readout is on the disk before anything is decided from it. Lines may come in any order; those that do not come
    are asked for again, and in the end done without. If the scanner goes away, the image is made from what there is.

    With --with FILE the image in the end knows another image of the object, as in recon, and a repeat steers the lines;
    it is read before the scanner is asked for anything. With --repetition 1 --with frames it is what came of the
    repetition before, in the same MRD stream; with --contrast and the like what came of those around it.

    Example: mri-design adapt --listen 9002 --lines 64 --out run; then connect an MRD client to port 9002

    Parameters
    ----------
    source : argument [READOUTS]
        File of the messages of an MRD stream, or - for such messages from stdin.
    listen : PORT
        Wait for an MRD client at this TCP port; 0 takes a free one.
    host : str
        Address to listen at. Others than 127.0.0.1 let other machines in, without a password.
    timeout : float
        Seconds to wait for a readout, and for the header of whoever connects.
    requests : N
        Times a line is asked for until it is given up.
    repeated : first|last
        Which readout of a line that comes again counts.
    lines : N
        Lines in the end, those at the start included.
    index : --slice N
        Slice index; negative counts from the end.
    """
    from mri_design.experiment.sources import SliceChoice
    from mri_design.runs.adapt import JOURNAL, AdaptRequest, run_adapt
    from mri_design.runs.design.run import DesignRequest
    from mri_design.scan.streaming.scanner import Patience

    if (source is None) == (listen is None):
        raise UsageError("where do readouts come from? Give a file or -, or --listen PORT")
    recipe, given = maps.applied(recipe.replacing("design", strategy=strategy))
    request = AdaptRequest(
        design=DesignRequest(
            "readouts",
            recipe,
            lines,
            slices=SliceChoice(str(index)),
            maps=given,
            acceleration=acceleration,
            companions=flags.check_with(companions, recipe),
        ),
        repeated=repeated,  # type: ignore[arg-type]
        patience=Patience(timeout, requests),
    )
    if source is not None and source != "-":
        _require_stream(Path(source))
    if source is not None and Path(source).resolve() == (to.out / JOURNAL).resolve():
        raise UsageError(f"{JOURNAL} of that folder is where this run writes what arrives; give another --out")
    with to.opened(JOURNAL, aloud=False) as run, _connections(source, host, listen, to.quiet) as connections:
        ended = run_adapt(connections, request, run)
    return to.ended(f"{len(ended.lines)} lines", ended, aloud=False)


def _require_stream(source: Path) -> None:
    """Refuse a finished scan where a stream of readouts is wanted."""
    from mri_design.scan.io.safe import check_file, is_hdf5

    check_file(source)
    if is_hdf5(source):
        raise InputError(
            str(source),
            "a file of a finished scan (HDF5)",
            "readouts as they come: an MRD stream",
            cure=f"To replay a finished scan: mri-design design {source}.",
        )


@contextmanager
def _connections(source: str | None, host: str, port: int | None, quiet: bool) -> Iterator[Iterator[Connection]]:
    """Connections that bring readouts: the standard input, a file, or clients."""
    from mri_design.scan.streaming.scanner import clients, listening, one_stream

    if source == "-":
        # Neither sys.stdin nor closed here: closing waits for the thread that may still wait for a line.
        yield one_stream(open(0, "rb", closefd=False))  # noqa: SIM115
    elif source is not None:
        with open(source, "rb") as stream:
            yield one_stream(stream)
    else:
        assert port is not None
        with listening(host, port) as server:
            say(f"listening at {host}:{server.getsockname()[1]}", quiet, sys.stderr)
            yield clients(server)
