"""A design of a scan that is being measured: every decision is sent to the scanner, whose readouts decide the next."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.design.engine import DesignState
from mri_design.design.trace import DesignStep
from mri_design.errors import InputError, MriDesignError, UsageError
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.page import Paragraph, ReportTable, Section
from mri_design.evaluation.run_folder import CHECKPOINT
from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment.calibration import PreparedScan, estimates_own_maps, prepare
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.design import DesignOptions, ImageErrors, run_design
from mri_design.experiment.extent import (
    calibration_for,
    centre_for_maps,
    lines_expected,
    require_lines,
    start_lines,
)
from mri_design.experiment.inputs import with_given_maps, with_recipe_noise
from mri_design.experiment.reconstruction import Reconstruction
from mri_design.experiment.stored_designs import Checkpoint, load_state
from mri_design.experiment.strategies import ORACLES, strategy_files
from mri_design.model.mr_image import MRSlice
from mri_design.readouts import readouts_named
from mri_design.runs.design.companions import SUCCESSIVE, OtherFrame, companions_within, frame_of_design, steering_image
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import Designed, DesignRequest, DesignResult, concluded
from mri_design.runs.run import Ending, Record, Run, require_resume
from mri_design.runs.scan_facts import tell_part, warn_of_maps, warn_of_noise
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.kspace_centre import Centre, find_centre, given_centre, strongest_of_lines
from mri_design.scan.sampling import gapless_run
from mri_design.scan.streaming.channel import Channel, Connection
from mri_design.scan.streaming.mrd import Journal, MrdStream, recorded
from mri_design.scan.streaming.scanner import Arrivals, Exchange, Patience, RepeatPolicy, Scanner

JOURNAL = "readouts.mrd"
"""File of everything that arrives."""
CONVERSATION = "messages.jsonl"
"""File of the messages to the scanner."""
LATENCY = "latency.csv"
"""How long every request took."""
NAME = "scan"
_PEAK = 1.5
"""The line at the centre of k-space has so many times the energy of those at both ends of the start, at least."""


class LinesLostError(MriDesignError):
    """Lines that were chosen did not come."""


@dataclass(frozen=True, kw_only=True)
class AdaptRequest:
    """Request for a design at the scanner.

    Parameters
    ----------
    design : DesignRequest
        The design, as of a file; its source is not read.
    repeated : {"first", "last"}
        Which readout of a line that comes again counts.
    patience : Patience
        How long readouts are waited for.

    Raises
    ------
    UsageError
        For an oracle, samples of a plane, or an order other than the one in which lines are chosen.
    """

    design: DesignRequest
    repeated: RepeatPolicy = "first"
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        chosen = self.design.recipe.design
        if chosen.strategy in ORACLES:
            raise UsageError(f"{chosen.strategy} knows the image, which is not there before it is measured")
        if chosen.encoding != "lines":
            raise UsageError("adapt chooses lines only: leave out --encoding")
        if self.design.around.slices:
            raise UsageError("--with slices: adapt chooses lines for one slice; give another one as a file")
        if self.design.around.frames:
            frame_of_design(self.design.recipe)
        if self.design.recipe.coils.compress_coils is not None:
            raise UsageError("adapt writes what every coil measured: leave compress_coils out of the recipe")
        if chosen.order != "as-chosen":
            raise UsageError("adapt measures lines in the order in which they are chosen: leave out --order")
        if self.repeated not in ("first", "last"):
            raise InputError(field="repeated", got=repr(self.repeated), wanted="first or last")

    @cached_property
    def beside(self) -> list[InputFile]:
        """Files that are read: coil maps, a strategy's, other images of the object."""
        design = self.design
        maps = [] if design.maps is None else [str(design.maps)]
        return InputFile.of_all([*maps, *strategy_files([design.recipe.design.strategy]), *design.companion_files])

    def record(self, run: Run) -> Record:
        """Inputs and settings for the manifest, before anything has arrived.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        design = self.design
        asked: dict[str, object] = {
            "slice": design.index,
            "lines": design.lines,
            "acceleration_wanted": design.acceleration,
            **design.named_companions,
        }
        choices = {"recipe": design.settings, "files": [file.sha256 for file in self.beside], **asked}
        policies = {"repeated": self.repeated, "timeout": self.patience.seconds, "requests": self.patience.requests}
        settings = {"slice": design.index, **policies, **design.named_companions, **design.settings}
        return Record(run.identity("adapt", {**choices, "repeated": self.repeated}), self.beside, settings)


@dataclass(frozen=True, kw_only=True)
class AdaptResult:
    """Result of a design at the scanner.

    Parameters
    ----------
    design : DesignResult
        The design and its image.
    scanner : Scanner
        With every exchange, and what else arrived.
    """

    design: DesignResult
    scanner: Scanner


def adapt_scan(request: AdaptRequest, run: Run, connections: Iterator[Connection]) -> AdaptResult | Ending:
    """Have a scanner measure one line after another, each chosen from those before; reconstruct from them.

    Everything that arrives is on the disk, in the run's folder, before it is looked at, and a checkpoint is written
    after every decision. Noise, coil maps and the image's brightness are from the start lines where noise readouts or
    the request do not say more. The lines are those that `design_scan` chooses from a complete file of the
    same scan, if it is given the same noise.

    Parameters
    ----------
    request : AdaptRequest
        Design and patience.
    run : Run
        Its folder.
    connections : iterator of Connection
        Whoever connects.

    Returns
    -------
    AdaptResult or Ending
        An `Ending` where the run's folder holds this very design, finished, and the run was to resume it.

    Raises
    ------
    UsageError
        For readouts in the folder without ``run.resume``, or another run's folder.
    InputError
        Where too little arrives to begin, or constraints contradict the grid.
    """
    record = request.record(run)
    before = run.finished(record.identity, checkpoint=CHECKPOINT, resumed="design")
    if before is not None:
        return before
    if run.folder.existing(JOURNAL) and not run.folder.overwrite:
        require_resume(run.folder.path.name, "readouts of an unfinished design", run.resume)
    companions = request.design.read_companions(run.seed)  # refused before anybody measures for them
    run.begin()
    path = run.folder.output_path(JOURNAL)
    protocol = MrdStream(request.design.index, request.design.recipe.input.counters)
    arrivals, kept = Arrivals(request.repeated), 0
    for end, message in recorded(path, protocol):
        arrivals.take(message)
        kept = end
    told = _Told(run)
    earlier = told.exchanges_before()
    journal = Journal(path, kept)
    channel = Channel(protocol, connections, journal.add)
    scanner = Scanner(channel, arrivals, request.patience, run.progress.say, told.add, earlier)
    try:
        live = _Live(request, run, scanner, told, record.identity, companions)
        state = live.designed()
        status = live.status(state)
        scanner.finish({"lines": list(state.trace.lines), "status": status or "enough"})
    except MriDesignError as error:
        channel.send({"kind": "refused", "why": str(error)})
        raise
    finally:
        channel.close()
        journal.close()
        told.close()
    image = live.image_of(state)
    data, scan, slice_model = live.measured(state)
    warn_of_noise(scan, run.progress)
    warn_of_maps(scan, run.progress)
    known = slice_model.calibrated(state.trace.lines)
    measured = {"measured": scan.data.measured}  # and the noise and the maps that the design knew, for the other verbs
    noise = float(known.noise_variance)
    write_npz(run.folder.output_path("kspace.npz"), {**measured, **scan.as_read(known.kspace, known.maps, noise)})
    frames = _frames_that_came(request, path, live.centre)
    within = companions_within({}, {0: (scan, slice_model)}, frames, state.trace.lines, live.recipe, run)
    designed = Designed(
        recipe=live.recipe,
        data=data,
        scan=scan,
        slices=[slice_model],
        state=state,
        most=live.most,
        companions=(*live.companions, *within),
        image=None if within else image,
        steered_by=live.steered_by,
    )
    record = replace(record, inputs=[InputFile.of(path), *record.inputs])
    result = concluded(request.design, record, designed, run)
    if status:
        run.progress.say(status)
        result = replace(result, ending=Ending(status, result.ending.lines))
    return AdaptResult(design=result, scanner=scanner)


def _frames_that_came(request: AdaptRequest, journal: Path, centre: Centre | None) -> list[OtherFrame]:
    """Frames around that of the design, as far as their readouts came in the same stream."""
    design, found = request.design, list[OtherFrame]()
    if not design.around.frames:
        return found
    axis, frame = frame_of_design(design.recipe)
    steps = range(1, design.around.frames + 1)
    for number in [frame - step for step in steps] + ([] if axis == SUCCESSIVE else [frame + step for step in steps]):
        arrivals = Arrivals(request.repeated)
        for _, message in recorded(journal, MrdStream(design.index, {axis: number})) if number >= 0 else ():
            arrivals.take(message)
        arrivals.settle()
        if centre is not None and arrivals.header is not None:
            arrivals.move(centre)
        if arrivals.arrived.any():
            data = _as_given(arrivals.data(NAME), design)
            found.append(OtherFrame(f"{axis} {number}", data, complete=axis == SUCCESSIVE))
    return found


def _as_given(data: KSpaceData, design: DesignRequest) -> KSpaceData:
    data, maps = with_recipe_noise(data, design.recipe), design.maps
    return data if maps is None or data.n_coils == 1 else with_given_maps(data, maps, design.recipe)


class _Told:
    """The messages to the scanner and how long its answers took, in two files that a resumed run goes on with.

    A resumed run reads there which lines were given up. Both files are on the disk before the next decision, so that
    nothing is missing from them where a process died.
    """

    def __init__(self, run: Run) -> None:
        self._folder = run.folder
        self._path = run.folder.output_path(CONVERSATION)
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (closed by `close`)

    def add(self, content: Mapping[str, object]) -> None:
        self._file.write(json.dumps(content).encode() + b"\n")

    def close(self) -> None:
        self._file.close()

    def lost_before(self) -> list[int]:
        return [line for lines in self._before("lost", "lines") for line in lines]

    def _before(self, kind: str, entry: str) -> Iterator[list[int]]:
        """An entry of all messages of a kind."""
        for line in self._path.read_bytes().splitlines():
            try:
                content = json.loads(line)
            except ValueError:  # cut off when the process died
                continue
            if content.get("kind") == kind:
                yield content[entry]

    def centre_before(self) -> tuple[int, int] | None:
        """Where the run that is resumed found the centre of k-space, by the scanner's numbers; None as expected."""
        return next(((line, sample) for line, sample in self._before("centre", "place")), None)

    def exchanged(self, exchanges: Sequence[Exchange]) -> None:
        self._folder.write_table(LATENCY, [exchange.as_row() for exchange in exchanges])

    def exchanges_before(self) -> list[Exchange]:
        path = self._folder.existing(LATENCY)
        if path is None:
            return []
        try:
            return [Exchange.of_row(row) for row in read_csv_texts(path)]
        except (ValueError, csv.Error) as error:
            wanted = "the table that adapt wrote"
            raise InputError(field=LATENCY, got=str(error)[:120], wanted=wanted, cure="Remove it.") from error


class _Live:
    """A slice that is filled while it is designed.

    Attributes
    ----------
    recipe : Recipe
        In force.
    most : int
        Lines that the design could have in the end, had none been lost.
    companions : tuple of Companion
        Other images of the object, laid over the slice.
    steered_by : str
        The other image of the object that has a say in the mask; empty where none has.
    centre : Centre or None
        Of k-space, where it is given or was found elsewhere than expected.
    """

    def __init__(
        self,
        request: AdaptRequest,
        run: Run,
        scanner: Scanner,
        told: _Told,
        identity: str,
        companions: Sequence[CompanionImages],
    ) -> None:
        self._request, self._run, self._scanner, self._arrivals = request, run, scanner, scanner.arrivals
        self._told = told
        self.recipe = request.design.recipe
        header = scanner.header()
        self._encoding = readouts_named("lines", header.shape)
        self._sought: tuple[int, ...] = ()
        given, found = self.recipe.input.centre, told.centre_before()
        self.centre = None if found is None else Centre(header.shape, found, "measured")
        if given is not None:
            self.centre = given_centre(header.shape, given)
        if self.centre is not None:
            self._arrivals.move(self.centre)
        self._lines = request.design.count(self._encoding.size)
        self._measurable: NDArray[np.bool_] = np.ones(self._encoding.size, dtype=bool)
        require_lines(self._measurable, self._lines, self.recipe)
        self._checkpoint = Checkpoint(run.folder.output_path(CHECKPOINT), identity)
        self._first = self._first_lines()
        self.most = self._reachable()
        self._give_up(told.lost_before())
        self._first = self._start()
        data = _as_given(self._arrivals.data(NAME, self._first), request.design)
        tell_part(data, self.recipe, run.progress)
        self.companions = companions_over(companions, data)
        self._looks = ImageErrors(self.recipe, run.seed, tuple(self.companions))
        grows = estimates_own_maps(data)
        calibrating = self._centre() if grows else calibration_for(self.recipe, self._lines)
        calibrated = prepare(data, self.recipe, calibration_lines=calibrating, ordinary=True, growing=grows)
        if not self._noise_is_known:
            run.progress.warn(
                f"{NAME}: its noise is {calibrated.noise_source}, of {len(self._first)} start lines alone, whose image "
                "is coarse and rings: it is often too large; better images need noise readouts, or --noise-sd"
            )
        self._scan: PreparedScan = calibrated
        model = calibrated.slice_model(0, self.recipe)
        self._slice = replace(model, kspace=model.kspace.copy(), measured=self._measurable, samples=None)
        self._arrivals.changed.update(np.flatnonzero(self._arrivals.arrived).tolist())
        self._fill()
        self._strategy, self.steered_by = request.design.strategy, ""
        if steered := steering_image(
            list(zip(companions, self.companions, strict=True)),
            [self._slice],
            [0],
            1,
            self._first,
            self.recipe,
            run.seed,
        ):
            self._strategy, self.steered_by = steered

    def _state(self) -> DesignState | None:
        return load_state(self._checkpoint) if self._checkpoint.path.exists() else None

    def _give_up(self, lost: Sequence[int]) -> None:
        """These lines cannot be measured; where one was missed and the scanner is gone, none can that has not arrived.

        A stream that has ended is no reason by itself: a file is often read to its end before the first decision, and
        the lines must not depend on how fast it is read.
        """
        self._measurable[list(lost)] = False
        if lost and self._scanner.ended:
            self._measurable &= self._arrivals.arrived
            if not self._measurable.any():
                raise InputError(field="stream", got=self._scanner.ended, wanted="the start lines")

    def _reachable(self) -> int:
        """Lines in the end, as far as they can be measured."""
        state = self._state()
        acquired = self._first if state is None else state.trace.lines
        most = self.recipe.constraints.rules(self._encoding).most_lines(self._measurable, acquired)
        return most if self._lines is None else min(self._lines, most)

    def _start(self) -> tuple[int, ...]:
        """The lines that the design begins with, measured."""
        state = self._state()
        if state is not None:
            self._arrivals.settle(state.trace.lines)
            return state.trace.start
        while True:
            first, coils = self._first_lines(), self._arrivals.coils
            wanted = [line for line in first if not self._arrivals.arrived[line]]
            if wanted:
                self._give_up(self._asked(wanted, {"rule": "start"}))
            elif self._arrivals.coils == coils and not self._seeks_centre(first):
                return first

    def _seeks_centre(self, first: Sequence[int]) -> bool:
        """Whether the start has to be looked at again, as its samples show the centre of k-space elsewhere.

        Where they show it, lines are numbered anew. Where no line stands out from those at both ends of the start, more
        are measured beyond the stronger end, at most a quarter of all.
        """
        if self.centre is not None:
            return False
        data = self._arrivals.data(NAME, [*first, *self._sought])
        centre = find_centre(data.kspace[0], data.samplings[0].samples)
        if centre.shift != (0, 0):
            self.centre = replace(centre, turned=False)
            self._told.add({"kind": "centre", "place": centre.place})
            self._arrivals.move(self.centre)
            self._measurable = np.roll(self._measurable, centre.shift[0])
            return True
        low, high = gapless_run(data.measured, len(data.measured) // 2)
        strongest = strongest_of_lines(data.kspace[0])
        if len(self._sought) >= len(strongest) // 4 or strongest.max() > _PEAK * max(strongest[low], strongest[high]):
            return False
        further = range(high + 1, high + 3) if strongest[high] > strongest[low] else range(low - 2, low)
        beyond = [line for line in further if 0 <= line < len(strongest) and self._measurable[line]]
        if not beyond:
            return False
        self._sought += tuple(beyond)
        self._give_up(self._asked(beyond, {"rule": "centre"}))
        return True

    def _first_lines(self) -> tuple[int, ...]:
        recipe, design, coils = self.recipe, self._request.design, self._arrivals.coils or 1
        allowed = self._measurable & recipe.constraints.rules().allowed(len(self._measurable))
        target = int(allowed.sum()) if self._lines is None else min(self._lines, int(allowed.sum()))
        count = self._centre() if coils > 1 and design.maps is None else 0
        return start_lines(self._measurable, design.strategy, target, recipe, count, coils)

    def _centre(self) -> int:
        """Centre lines to begin with where coil maps are estimated from the lines as they come.

        As many as calibration is usually done with where they have to tell the noise, too: few of them hold nothing but
        signal. That is known from the first line on, because noise readouts come before it.
        """
        wanted = centre_for_maps(self._request.design.strategy, self.recipe, self._lines)
        if self._arrivals.arrived.any() and not self._noise_is_known:
            wanted = max(wanted, calibration_for(self.recipe, self._lines) or self.recipe.coils.most_lines)
        return min(wanted, len(self._measurable))

    @property
    def _noise_is_known(self) -> bool:
        return self._arrivals.knows_noise or self.recipe.noise.given

    def _fill(self) -> None:
        lines = sorted(self._arrivals.changed)
        self._arrivals.changed.clear()
        if lines:
            self._slice.kspace[:, lines] = self._scan.as_prepared(self._arrivals.lines(lines))

    def designed(self) -> DesignState:
        """Choose and measure until there are enough lines, or the scanner gives no more."""
        show = self._run.progress.show
        options = DesignOptions(
            stop=self._request.design.stop,
            checkpoint=self._checkpoint,
            callback=lambda s: show(
                "designing",
                len(s.trace.lines) - len(self._first),
                lines_expected(s.trace, self._request.design.stop, self.most) - len(self._first),
            ),
            closing=True,
            measure=self._measure,
            image_error=self._looks,
        )
        while True:
            self._slice = replace(self._slice, measured=self._measurable.copy())
            try:
                return run_design(
                    [self._slice],
                    self._strategy,
                    self._reachable(),
                    self.recipe,
                    seed=self._run.seed,
                    start=self._first,
                    options=options,
                )
            except LinesLostError:
                continue  # from the checkpoint, without these lines

    def _measure(self, steps: Sequence[DesignStep]) -> None:
        lines, first = [step.line for step in steps], steps[0]
        known = {
            "scores": None if first.choice.scores is None else [_number(step.choice.score) for step in steps],
            "predicted_error": _number(first.predicted_error),
            "nats": _number(first.forecast.information),
        }
        about = {name: value for name, value in known.items() if value is not None}
        missing = self._asked(lines, {"rule": self._request.design.strategy.name, **about})
        self._fill()
        if missing:
            self._give_up(missing)
            raise LinesLostError(str(missing))

    def _asked(self, lines: Sequence[int], about: Mapping[str, object]) -> list[int]:
        """Have lines measured, and note how long it took; those that do not come."""
        missing = self._scanner.measure(lines, about)
        self._told.exchanged(self._scanner.exchanges)
        return missing

    def status(self, state: DesignState) -> str:
        """Why the design has fewer lines than it was to have; empty where it has them or a rule ended it."""
        if state.trace.declined is not None or len(state.trace.lines) >= self.most:
            return ""
        why = self._scanner.ended or "the others were lost"
        return f"{len(state.trace.lines)} of {self.most} lines measured: {why}"

    def image_of(self, state: DesignState) -> Reconstruction | None:
        """The image that the design ended by, unless readouts have come that it does not hold."""
        return None if self._arrivals.changed else self._looks.image_of(state.trace.lines)

    def measured(self, state: DesignState) -> tuple[KSpaceData, PreparedScan, MRSlice]:
        """Everything that was measured: as it came, calibrated, and as models take it; coil maps are the design's."""
        self._fill()
        data = self._arrivals.data(NAME)
        known = replace(self._scan.data, kspace=self._slice.kspace[np.newaxis], measured=data.measured)
        slice_model = replace(self._slice, measured=data.measured)
        scan = replace(self._scan, data=known).knowing(slice_model.map_estimate(state.trace.lines))
        return data, scan, slice_model


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


SHOWN = 20
"""Rows of the table on the page; latency.csv has all."""


def report_adapt(run: Run, result: AdaptResult | Ending) -> Ending:
    """Write everything about a design at the scanner; one that was finished before stays as it is."""
    if isinstance(result, Ending):
        return result
    exchanges = result.scanner.exchanges
    rows = [exchange.as_row() for exchange in exchanges]
    counts = {f"readouts {what}": count for what, count in result.scanner.arrivals.counts.items() if count}
    lost = sum(len(exchange.lost) for exchange in exchanges)
    again = sum(exchange.requests - 1 for exchange in exchanges)
    beside: dict[str, object] = {
        **counts,
        **({"lines lost": lost} if lost else {}),
        **({"requests repeated": again} if again else {}),
    }
    decided = [one.deciding for one in exchanges]
    if not rows:
        return report_design(run, result.design, beside=beside)
    median, most = float(np.median(decided)), max(decided)
    slowest = sorted(range(len(rows)), key=lambda i: -decided[i])[:SHOWN]
    section = Section(
        "At the scanner",
        [
            Paragraph(
                f"From the last readout of one request to the next request: {median:.3g} s in the median of "
                f"{len(rows)} requests, {most:.3g} s at most."
            ),
            ReportTable(
                [rows[i] for i in sorted(slowest)],
                f"The {len(slowest)} requests that took longest to decide. `deciding` is the time that the scanner "
                "waited for the design, `waiting` the time that the design waited for the scanner.",
            ),
        ],
    )
    beside["median seconds per decision"] = median
    return report_design(run, result.design, [section], beside)
