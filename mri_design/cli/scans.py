"""Verbs about one scan: design and adapt decide what to measure, recon makes the image."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mri_design.cli import flags
from mri_design.cli.terminal import Destination, Resumed, load_ahead, say
from mri_design.errors import InputError, UsageError, whole_number
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import TRAINING_RULES

if TYPE_CHECKING:
    from mri_design.scan.streaming.scanner import Connection

SETTINGS = (
    f"design.start {flags.ENDS} {flags.CONSTRAINTS} design.block design.order design.encoding {flags.PLANE} "
    f"{flags.SERIES} {flags.NOISE} {flags.COMPANION}"
)
STRATEGIES = f"Strategies for a plane: {flags.names_in_help('plane', TRAINING_RULES)}; {flags.SHOT_STRATEGIES}"


def design(
    source: str,
    to: Resumed,
    lines: flags.LineCount = None,
    *,
    strategy: str | None = None,
    slices: str = "0",
    maps: flags.Maps,
    companions: list[str] | None = None,
    recipe: Annotated[Recipe, flags.Override(SETTINGS, {"encoding": STRATEGIES})],
    acceleration: float | None = None,
    shots: Annotated[int | None, flags.Within(1), "Spokes and spirals"] = None,
) -> int:
    """Decide which LINES of INPUT to measure, in order, and reconstruct the image from them.

    With --encoding plane it decides which samples of the plane (ky, kz) to measure, and --block of them at once. With
    --encoding <kinds of shots> it chooses the angles of <shots>, whose data are made of INPUT by the non-uniform
    Fourier transform.

    Give --lines or --acceleration, or say when it is enough. A recipe can say all of this too, and more about
    constraints and trains.

    Of several slices (--slices 0-9) one mask is made, for all of them together; the image is that of the middle one.

    INPUT must hold data in every line that may be chosen: it is replayed as the scanner. --resume continues an
    interrupted run and gives the same lines as one that was not; a finished one is left as it is.

    With --with the image's prior knows another image of the object, whatever its contrast, and a repeat, which shows
    what the first lines show, steers the mask; either is corrected by everything that is measured.

    Example: mri-design design scan.h5 --lines 64 --out run. Trains of eight lines, as many as are needed:
    mri-design design scan.h5 --until-error 0.05 --partial-fourier 0.75 --block 8 --order interleaved --out run

    Parameters
    ----------
    shots : N
        Spokes or arms in the end, those at the start included.
    slices : --slices --slice 0,3-5|all
        <own slices> [default: 0]
    companions : --with FILE
        <another image> Of several --slices that share the mask: slices, the mean of those above and below that of the
        image; and frames: around --contrast, --phase or --set N what the same lines measure of others, before
        --repetition N the earlier.
    """
    if whole_number(slices.removeprefix("-")) is None:
        load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import CHECKPOINT
    from mri_design.experiment.inputs import SliceChoice, require_no_slices
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.design import DesignRequest
    from mri_design.runs.design_report import design_in_folder

    require_no_slices(source, "give {0} --slices {1}")
    kind = KINDS[recipe.design.encoding]
    if lines is not None and kind.shots:
        raise UsageError(f"--lines and --samples count other candidates than {kind.unit}s: give --shots {lines}")
    if shots is not None and not kind.shots:
        counted = f"{flags.NAMES['shots']} (--encoding {flags.NAMES['kinds of shots']})"
        raise UsageError(f"--shots counts {counted}: give --{kind.unit}s {shots}")
    recipe = recipe.with_strategy(strategy)
    recipe, given = maps.applied(recipe)
    request = DesignRequest(
        source,
        recipe,
        shots if kind.shots else lines,
        maps=given,
        acceleration=acceleration,
        slices=SliceChoice(slices),
        companions=flags.check_with(companions, recipe),
    )
    with to.opened(CHECKPOINT) as run:
        ended = design_in_folder(request, run)
    return to.ended(count_text(len(ended.chosen), kind.unit), ended)


def recon(
    source: str,
    to: Resumed,
    mask: Path | None = None,
    slices: str | None = None,
    reference: Path | None = None,
    companions: list[str] | None = None,
    calibrated_on: Path | None = None,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            "reconstruction.method reconstruction.noise_map reconstruction.draws coils.compress input.matrix "
            f"design.encoding {flags.SERIES} {flags.NOISE} {flags.COMPANION}"
        ),
    ],
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars.

    All slices are reconstructed, or those of --slices, with one noise and one basis of coil maps; --jobs slices at
    once. Slices that are finished are kept: --resume goes on with the others.

    Example: mri-design recon scan.h5 --mask run/mask.npy --out recon

    Parameters
    ----------
    mask : MASK
        bool (ky,) or, of a plane, (ky, kz), in a .npy file, or a mask of BART (.cfl): use only these. [default: all
        measured]
    reference : FILE
        Errors against the images of FILE (.npy/.npz as recon.npy, NIfTI, DICOM, .cfl), each scaled to fit. [default:
        the scan's own, where it knows one]
    calibrated_on : FOLDER
        Complete scans of other subjects, each reconstructed from the same lines: within how many standard deviations
        50, 80 and 95 % of their pixels are.
    encoding : NAME
        lines, or plane where rows and columns are ky and kz: then every sample counts by itself, those of MASK too.
        [default: lines, and plane where MASK or the scan has single samples]
    slices : --slices --slice 0,3-5|all
        <own slices> [default: all]
    companions : --with FILE
        <another image> Of INPUT itself: slices, the mean of those above and below each (slices:2: two such), or frames,
        the earlier and later ones with --contrast all and the like.
    """
    load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import PROGRESS
    from mri_design.experiment.inputs import ALL_SLICES, SliceChoice, require_no_slices
    from mri_design.runs.recon import ReconRequest, reconstruct_in_folder

    made = recipe.reconstruction
    if made.noise_map and made.method not in ("mean", "least-squares"):
        raise UsageError(
            f"only mean and least-squares have a map of noise: leave out --noise-map, or --method {made.method}"
        )
    require_no_slices(source, "give {0} --slices {1}")
    recipe, given = maps.applied(recipe)
    request = ReconRequest(
        source,
        recipe,
        mask,
        given,
        slices=ALL_SLICES if slices is None else SliceChoice(slices),
        reference=reference,
        companions=flags.check_with(companions, recipe),
        calibrated_on=calibrated_on,
    )
    with to.opened(PROGRESS) as run:
        ended = reconstruct_in_folder(request, run)
    return to.ended(recipe.reconstruction.method, ended)


_SCANNER = "The scanner"


def adapt(
    to: Destination,
    source: str | None = None,
    listen: Annotated[int | None, flags.Within(0, 65535), _SCANNER] = None,
    host: Annotated[str, _SCANNER] = "127.0.0.1",
    timeout: Annotated[float, _SCANNER] = 10.0,
    requests: Annotated[int, flags.Within(1), _SCANNER] = 3,
    repeated: Annotated[str, _SCANNER] = "first",
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

    The scanner is an MRD client that connects to --listen PORT, sends the header and then every readout, and gets
    the next lines in text messages. For readouts from a file or, with -, from a pipe they are lines of JSON on stdout.

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
        Seconds to wait for a readout, and for the header of a client that connects.
    requests : N
        Times a line is asked for until it is given up.
    repeated : first|last
        Which readout of a line that comes again counts.
    lines : N
        Lines in the end, those at the start included.
    index : --slice N
        Slice index; negative counts from the end.
    resume : bool
        Go on from the run folder's readouts and checkpoint.
    """
    from mri_design.experiment.inputs import SliceChoice
    from mri_design.runs.adapt import JOURNAL, AdaptRequest, run_adapt

    if (source is None) == (listen is None):
        raise UsageError("where do readouts come from? Give a file or -, or --listen PORT")
    recipe, given = maps.applied(recipe.replacing("design", strategy=strategy))
    request = AdaptRequest(
        recipe=recipe,
        lines=lines,
        slices=SliceChoice(str(index)),
        maps=given,
        acceleration=acceleration,
        companions=flags.check_with(companions, recipe),
        repeated=repeated,  # type: ignore[arg-type]
        timeout=timeout,
        requests=requests,
    )
    if source is not None and source != "-":
        _require_stream(Path(source))
    if source is not None and Path(source).resolve() == (to.out / JOURNAL).resolve():
        raise UsageError(f"{JOURNAL} of that folder is where this run writes what arrives; give another --out")
    with to.opened(JOURNAL, aloud=False) as run, _connections(source, host, listen, to.quiet) as connections:
        ended = run_adapt(connections, request, run)
    return to.ended(f"{len(ended.chosen)} lines", ended, aloud=False)


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
