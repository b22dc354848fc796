"""Verbs about one scan: design and adapt decide which lines to measure, recon makes the image."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from mri_design.cli import options, terminal
from mri_design.cli.options import Calibration, Computation, Destination, Known, Settings, whole
from mri_design.errors import InputError, UsageError, require_numbers, whole_number

if TYPE_CHECKING:
    from mri_design.experiment.recipe import Recipe
    from mri_design.runs.adapt import AdaptRequest
    from mri_design.scan.streaming.player import Player
    from mri_design.scan.streaming.scanner import Connection

_SMALLEST, _LARGEST = 4, 4096
_GRID = re.compile(r"[0-9]{1,4}(x[0-9]{1,4})?")
_SCANNER = Group("The scanner", sort_key=1)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which lines are chosen, in which order, and when there are enough of them.

    Parameters
    ----------
    lines : int
        Lines, samples of a plane, or shots to measure, those at the start included.
    acceleration : float
        Instead of a number: measure one in R of the grid's lines, or samples; of shots one for R lines.
    until_error : float
        Stop as soon as the predicted relative error of the image is E or less, as 5% or 0.05; --lines is the most.
    strategy : str
        What decides: calibrated (the default), information-gain, a random mask such as vd-polynomial, or others, which
        --help-all lists.
    start : int
        Lines at the centre to begin with; of a plane the side of a square. [default: the strategy's]
    block : int
        Choose K lines after each inference: echo trains of K lines, or K samples of a plane.
    partial_fourier : float
        Measure within this fraction of k-space only, 0.5 to 1, the lines of positive ky among it.
    """

    lines: options.Lines = None
    acceleration: options.Acceleration = None
    until_error: Annotated[float | None, options.share("E")] = None
    strategy: options.Name = None
    start: Annotated[int | None, whole(0, group=options.LINES)] = None
    block: Annotated[int | None, whole(1, group=options.LINES, metavar="K")] = None
    partial_fourier: Annotated[float | None, options.share("P", group=options.LINES)] = None

    def recipe(self, settings: Settings, calibration: Calibration, **design: object) -> Recipe:
        """The recipe with the values of these options, of ``calibration`` and of ``design``."""
        chosen = {name: getattr(self, name) for name in ("until_error", "start", "block")}
        limits = {"partial_fourier": self.partial_fourier}
        return settings.made(design={**chosen, **design}, constraints=limits, **calibration.settings)


def design(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    *,
    to: Computation,
    choice: Choice = Choice(),
    known: Known = Known(),
    slices: options.Slices = "0",
    calibration: Calibration = Calibration(),
    companions: options.Companions = None,
    settings: Settings = Settings(),
    encoding: Annotated[str | None, Parameter(group=options.LINES, metavar="NAME")] = None,
    order: Annotated[str | None, Parameter(group=options.LINES, metavar="NAME")] = None,
    fit: Annotated[str | None, Parameter(group=options.REGIONS, metavar="MODEL")] = None,
    times: Annotated[tuple[str, str] | None, options.times(group=options.REGIONS)] = None,
    live: options.Page = None,
    as_json: options.Json = False,
    dry_run: options.DryRun = False,
) -> int:
    """Decide which lines of INPUT to measure, in order, and reconstruct the image from them.

    Give --lines, --acceleration or --until-error. INPUT is replayed as the scanner, so it must hold data in every line
    that may be chosen.

    Example: mri-design design scan.h5 --lines 64 --out run

    Parameters
    ----------
    source : str
        k-space, or images to simulate it from: a file, or phantom:NAME. A bare grid, as 256x180, is for strategies that
        look at no data: OUT gets their mask.
    slices : str
        Slices that share the mask, by number from 0, or middle; a negative number counts from the end. The image is
        that of the one in the middle.
    companions : list of str
        Another image of the object, of any contrast, format and grid: its prior then knows it. May be repeated. A
        repeat of the scan also steers the lines; slices are those above and below, frames are other contrasts, phases,
        sets or earlier repetitions of INPUT.
    encoding : str
        What is chosen one by one: lines, plane (samples (ky, kz) of 3-D scans), radial (spokes) or spiral (arms).
    order : str
        Order of measurement: as-chosen, ascending, centre-out (within each train), or interleaved (each train covers
        k-space); interleaved:4 measures the centre at the fourth echo.
    fit : str
        The regions are those of a map of what the echoes (contrasts) of INPUT show, which share the lines: T2, T2*,
        t1-inversion, t1-flip:TR, adc or water-fat:HZ, as for measure.
    times : str
        Times of the echoes in ms, as 10,20,30, or with a unit, as 0.01s,0.02s; or inversion times, flip angles in
        degrees, b values in s/mm2.
    live : str
        Show the design while it runs, as a page at this port; without a number at a free one.
    as_json : bool
        Print the result as one JSON document; everything else goes to stderr.
    dry_run : bool
        Print what the run would do, and about how long and how much memory it takes; nothing is written.

    Notes
    -----
    Input: {formats}; or phantom:NAME, one of {phantoms}.

    Strategies for lines: {lines}; trained:FILE or calibrated:FILE with an order from mri-design protocol --rule. For
    samples of a plane: {plane}. For spokes and arms: {shots}. Without data (INPUT a grid), lines: {masks_of_lines};
    samples: {masks_of_plane}; shots: {masks_of_shots}.

    Trains of eight lines, as many as are needed: mri-design design scan.h5 --until-error 0.05 --partial-fourier 0.75
    --block 8 --order interleaved --out run

    A mask: mri-design design 256x180 --strategy poisson-disc --acceleration 8 --start 24 --out mask
    """
    if _GRID.fullmatch(source) and not Path(source).exists():
        spare = {
            "--slices": slices not in (None, "0"),
            "--with": companions,
            "--maps": calibration.maps,
            "--live": live,
            "--region": known.region,
            "--difference": known.difference,
            "--fit": fit,
            "--dry-run": dry_run,
        }
        if given := [name for name, value in spare.items() if value]:
            raise UsageError(f"{given[0]}: INPUT is a grid, which has no images and no coils: leave it out")
        bare = replace(choice, start=None)  # of a mask it may be 0
        return _mask(source, to, choice, bare.recipe(settings, calibration, order=order), encoding, as_json=as_json)
    slices = slices or "0"
    if terminal.may_be_several(slices):
        terminal.load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import CHECKPOINT
    from mri_design.experiment.inputs import SliceChoice, require_no_slices
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.design import design_effort
    from mri_design.runs.design_report import design_in_folder
    from mri_design.runs.design_request import DesignRequest

    require_no_slices(source, "give {0} --slices {1}")
    recipe = choice.recipe(settings, calibration, encoding=encoding, order=order, **known.settings)
    recipe = recipe.with_strategy(choice.strategy)
    model, values = options.fitted(fit, times)
    request = DesignRequest(
        source,
        recipe,
        choice.lines,
        maps=calibration.of_one(),
        acceleration=choice.acceleration,
        slices=SliceChoice(slices),
        companions=options.check_with(companions, recipe),
        regions=replace(known.regions, fit=model, times=values or ""),
    )
    if dry_run:
        return options.foretold(to, partial(design_effort, request), as_json=as_json)
    with options.page_at(live) as page, to.opened(CHECKPOINT, aloud=not as_json) as run:
        ended = design_in_folder(request, options.watched(run, page))
    if as_json:
        terminal.print_json(options.result_of(to, ended))
    return to.ended(count_text(len(ended.chosen), KINDS[recipe.design.encoding].unit), ended, aloud=not as_json)


def _mask(
    grid: str, to: Computation, choice: Choice, recipe: Recipe, encoding: str | None, *, as_json: bool = False
) -> int:
    """Draw a mask on a grid, without a scan."""
    from mri_design.runs.mask import MaskRequest, mask_in_folder

    sides = tuple(map(int, grid.split("x")))
    if not all(_SMALLEST <= side <= _LARGEST for side in sides):
        raise UsageError(f"INPUT: got {grid}; wanted sides of {_SMALLEST} to {_LARGEST}, as 256 or 256x180")
    request = MaskRequest(
        choice.strategy or recipe.design.strategy,
        sides,
        recipe,
        encoding=encoding,
        count=choice.lines,
        acceleration=choice.acceleration,
        start=choice.start,
    )
    with to.opened("mask.npy", aloud=not as_json, resumed=False) as run:
        ended = mask_in_folder(request, run)
    if as_json:
        terminal.print_json(options.result_of(to, ended))
    return to.ended(ended.measured, ended, aloud=not as_json)


def recon(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    *,
    to: Computation,
    mask: Annotated[Path | None, Parameter(metavar="MASK")] = None,
    method: options.Name = None,
    slices: options.Slices = None,
    calibration: Calibration = Calibration(),
    companions: options.Companions = None,
    reference: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    draws: Annotated[int | None, whole(0, 64)] = None,
    settings: Settings = Settings(),
    calibrated_on: Annotated[Path | None, Parameter(metavar="FOLDER", group=options.SCAN)] = None,
    as_json: options.Json = False,
    dry_run: options.DryRun = False,
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars.

    All slices are reconstructed, or those of --slices, with one noise and one basis of coil maps.

    Example: mri-design recon scan.h5 --mask run/mask.npy --out recon

    Parameters
    ----------
    source : str
        k-space, or images to simulate it from: a file, or phantom:NAME.
    mask : Path
        Use only the lines of MASK: bool (ky,) or, of a plane, (ky, kz), in a .npy file, or a mask of BART (.cfl).
        [default: all measured]
    method : str
        mean (the default, with error bars), map, least-squares, zero-filled, l1-wavelet or total-variation.
    slices : str
        Slices by number from 0, or middle; a negative number counts from the end. [default: all]
    companions : list of str
        Another image of the object, of any contrast, format and grid, that the prior then knows; may be repeated.
        slices are those above and below each (slices:2: two such), frames the other contrasts, phases or repetitions of
        INPUT; with joint all of these share one prior.
    reference : Path
        Compare with the images of FILE (.npy/.npz as recon.npy, NIfTI, DICOM, .cfl), each scaled to fit. [default: the
        scan's own, where it knows one]
    draws : int
        Store N draws of the posterior, for errors of regions (mri-design measure).
    calibrated_on : Path
        Complete scans of other subjects, each reconstructed from the same lines: within how many standard deviations
        50, 80 and 95 % of their pixels are.
    as_json : bool
        Print the result as one JSON document; everything else goes to stderr.
    dry_run : bool
        Print what the run would do, and about how long and how much memory it takes; nothing is written.

    Notes
    -----
    Input: {formats}; or phantom:NAME, one of {phantoms}.

    --jobs slices are reconstructed at once. Finished slices are stored: --resume continues with the others.

    All repetitions, each after the one before: mri-design recon series.h5 -s input.series.repetition=all --out recon
    """
    if terminal.may_be_several(slices):
        terminal.load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import PROGRESS
    from mri_design.experiment.inputs import ALL_SLICES, SliceChoice, require_no_slices
    from mri_design.runs.recon import ReconRequest, recon_effort, reconstruct_in_folder

    recipe = settings.made(reconstruction={"method": method, "draws": draws}, **calibration.settings)
    wanted = recipe.reconstruction
    if wanted.noise_map and wanted.method not in ("mean", "least-squares"):
        raise UsageError(
            "only mean and least-squares have a map of noise: leave out reconstruction.noise_map, or "
            f"--method {wanted.method}"
        )
    require_no_slices(source, "give {0} --slices {1}")
    request = ReconRequest(
        source,
        recipe,
        mask,
        calibration.of_one(),
        slices=ALL_SLICES if slices is None else SliceChoice(slices),
        reference=reference,
        companions=options.check_with(companions, recipe),
        calibrated_on=calibrated_on,
    )
    if dry_run:
        return options.foretold(to, partial(recon_effort, request), as_json=as_json)
    with to.opened(PROGRESS, aloud=not as_json) as run:
        ended = reconstruct_in_folder(request, run)
    if as_json:
        terminal.print_json({"method": wanted.method, **options.result_of(to, ended)})
    return to.ended(wanted.method, ended, aloud=not as_json)


def adapt(
    source: Annotated[str | None, Parameter(name="READOUTS", allow_leading_hyphen=True)] = None,
    /,
    *,
    to: Destination,
    listen: Annotated[int | None, whole(0, 65535, metavar="PORT")] = None,
    play: Annotated[str | None, Parameter(metavar="INPUT")] = None,
    choice: Choice = Choice(),
    known: Known = Known(),
    slices: options.Slices = "0",
    calibration: Calibration = Calibration(),
    companions: options.Companions = None,
    settings: Settings = Settings(),
    live: options.Page = None,
    host: Annotated[str, Parameter(group=_SCANNER)] = "127.0.0.1",
    timeout: Annotated[float, Parameter(group=_SCANNER, metavar="S")] = 10.0,
    requests: Annotated[int, whole(1, group=_SCANNER)] = 3,
    repeated: Annotated[Literal["first", "last"], Parameter(group=_SCANNER)] = "first",
    pace: Annotated[float, Parameter(group=_SCANNER, metavar="S")] = 0.0,
) -> int:
    """Decide lines while the scanner measures them: readouts come in, the next lines go out.

    The scanner is an MRD client that connects to --listen PORT, sends the header and then every readout, and gets the
    next lines in text messages. For readouts from a file or, with -, from a pipe they are lines of JSON on stdout.

    Example: mri-design adapt --listen 9002 --lines 64 --out run; then connect an MRD client to port 9002

    Parameters
    ----------
    source : str
        File of the messages of an MRD stream, or - for such messages from stdin.
    listen : int
        Wait for an MRD client at this TCP port; 0 takes a free one.
    play : str
        Play a complete scan, a file or phantom:NAME, as if a scanner measured it.
    slices : str
        The slice, by number from 0; a negative number counts from the end.
    companions : list of str
        Another image of the object, read before any line is requested, that the prior then knows; a repeat
        also steers the lines. frames are what the same MRD stream measured before.
    live : str
        Show the image, its error bars and the lines while they come in, as a page at this port; without a number at a
        free one. The page of 127.0.0.1 is for this machine alone.
    host : str
        Address to listen at. Others than 127.0.0.1 let other machines in, without a password.
    timeout : float
        Seconds to wait for a readout, and for the header of a client that connects.
    requests : int
        Times a line is requested until it is given up.
    repeated : str
        Which readout of a line that comes again counts.
    pace : float
        With --play, seconds that a line takes. [default: 0]

    Notes
    -----
    Every readout is on the disk before anything is decided from it. Lines may come in any order; those that do not come
    are requested again, and in the end left out. If the scanner goes away, the image is made from what has come.
    --resume continues from the folder's readouts and checkpoint.

    Strategies: {lines}; trained:FILE or calibrated:FILE with an order from mri-design protocol --rule.
    """
    from mri_design.experiment.inputs import SliceChoice
    from mri_design.runs.adapt import JOURNAL, AdaptRequest, run_adapt

    if [source, listen, play].count(None) != 2:
        raise UsageError("where do readouts come from? Give a file or -, --listen PORT, or --play INPUT")
    require_numbers(pace=pace)
    slices = slices or "0"
    if whole_number(slices) is None:
        raise UsageError(f"--slices {slices}: adapt measures one slice, by its number")
    recipe = choice.recipe(settings, calibration, strategy=choice.strategy, **known.settings)
    request = AdaptRequest(
        recipe=recipe,
        lines=choice.lines,
        slices=SliceChoice(slices),
        maps=calibration.of_one(),
        acceleration=choice.acceleration,
        companions=options.check_with(companions, recipe),
        regions=known.regions,
        repeated=repeated,
        timeout=timeout,
        requests=requests,
    )
    if source is not None and source != "-":
        _require_stream(Path(source))
    if source is not None and Path(source).resolve() == (to.out / JOURNAL).resolve():
        raise UsageError(f"{JOURNAL} of that folder is where this run writes what arrives; give another --out")
    player = None if play is None else _player(play, request, to.seed, pace)
    with (
        options.page_at(live) as page,
        _connections(source, host, listen, player, to.quiet) as connections,
        to.opened(JOURNAL, aloud=False) as run,
    ):
        ended = run_adapt(connections, request, options.watched(run, page))
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


def _player(source: str, request: AdaptRequest, seed: int, pace: float) -> Player:
    """What plays a complete scan."""
    from mri_design.experiment.inputs import load_scan, require_grid_data
    from mri_design.scan.data import slice_number
    from mri_design.scan.streaming.player import Player

    scan = require_grid_data(load_scan(source, request.recipe, seed), source)
    return Player(scan, slice_number(request.index, scan.n_slices), pace)


@contextmanager
def _connections(
    source: str | None, host: str, port: int | None, player: Player | None, quiet: bool
) -> Iterator[Iterator[Connection]]:
    """Connections that bring readouts: the standard input, a file, a scan that is played, or clients."""
    from mri_design.scan.streaming.player import play_at
    from mri_design.scan.streaming.scanner import clients, listening, one_stream

    if source == "-":
        # Neither sys.stdin nor closed here: closing waits for the thread that may still wait for a line.
        yield one_stream(open(0, "rb", closefd=False))  # noqa: SIM115
    elif source is not None:
        with open(source, "rb") as stream:
            yield one_stream(stream)
    elif player is not None:
        with listening("127.0.0.1", 0) as server:
            play_at(player, server.getsockname())
            yield clients(server)
    else:
        assert port is not None
        with listening(host, port) as server:
            terminal.say(f"listening at {host}:{server.getsockname()[1]}", quiet, sys.stderr)
            yield clients(server)
