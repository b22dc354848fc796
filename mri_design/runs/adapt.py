"""A design of a scan that is being measured: every decision is sent to the scanner, whose readouts decide the next."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.design.engine import DesignState
from mri_design.design.trace import DesignStep
from mri_design.errors import (
    InputError,
    MriDesignError,
    UsageError,
    positive_number,
    require_choice,
    require_counts,
)
from mri_design.evaluation.run_folder import CHECKPOINT, InputFile, RunFolder
from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment.calibration import calibrate, estimates_own_maps, with_known_noise, with_measured_maps
from mri_design.experiment.companion_images import CompanionImages, companions_over
from mri_design.experiment.design import DesignOptions, ImageErrors, design_engine, design_lines
from mri_design.experiment.extent import (
    DesignPlan,
    calibration_for,
    centre_for_maps,
    design_seed,
    require_lines,
)
from mri_design.experiment.inputs import with_given
from mri_design.experiment.reconstruction import Image
from mri_design.experiment.stored_designs import load_state
from mri_design.experiment.strategies import ORACLES
from mri_design.kinds import KINDS
from mri_design.model.sparsity import Companion
from mri_design.readouts import LineReadouts
from mri_design.runs.companions import SUCCESSIVE, OtherFrame, companions_within, frame_of_design, steering_image
from mri_design.runs.design import DesignResult, concluded
from mri_design.runs.design_report import report_design
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.provenance import phrase, tell_part, warn_of_maps, warn_of_noise
from mri_design.runs.store import FolderKeep, Record, Report, Run, carry_out
from mri_design.runs.stored_run import Stored
from mri_design.runs.watching import DesignWatch, with_phase_of_end
from mri_design.runs.work import Work
from mri_design.runs.workers import LostPieceError
from mri_design.scan.calibration import find_centre, given_centre, strongest_of_lines
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.provenance import Centre
from mri_design.scan.sampling import gapless_run
from mri_design.scan.streaming.mrd import MrdStream, StreamedImage, append, recorded
from mri_design.scan.streaming.scanner import Arrivals, Connection, LineRequest, LiveScanner, RepeatPolicy

JOURNAL = "readouts.mrd"
"""File of everything that arrives."""
CONVERSATION = "messages.jsonl"
"""File of the messages to the scanner."""
LATENCY = "latency.csv"
"""How long every request took."""
NAME = "scan"
_PEAK = 1.5
"""The line at the centre of k-space has so many times the energy of those at both ends of the start, at least."""


@dataclass(frozen=True, kw_only=True)
class AdaptRequest(DesignRequest):
    """Request for a design at the scanner, as of a file whose name is not read.

    Parameters
    ----------
    repeated : {"first", "last"}
        Which readout of a line that comes again counts.
    timeout : float
        Seconds to wait for a readout, and for the header after a scanner has connected.
    requests : int
        How often a line is requested, until it counts as lost.

    Raises
    ------
    UsageError
        For an oracle, samples of a plane, or an order other than the one in which lines are chosen.
    InputError
        For no time or no request.
    """

    source: str = "readouts"
    repeated: RepeatPolicy = "first"
    timeout: float = 10.0
    requests: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = self.recipe.design
        if chosen.strategy in ORACLES:
            raise UsageError(f"{chosen.strategy} knows the image, which is not there before it is measured")
        if KINDS[chosen.encoding].axes != 1:
            raise UsageError("adapt chooses lines only: leave out --encoding")
        if self.regions.fit is not None:
            raise UsageError("adapt chooses lines for one image: design chooses those of echoes, from a complete scan")
        if self.around.slices:
            raise UsageError("--with slices: adapt chooses lines for one slice; give another one as a file")
        if self.around.frames:
            frame_of_design(self.recipe)
        if chosen.order != "as-chosen":
            raise UsageError("adapt measures lines in the order in which they are chosen: leave out --order")
        require_choice(("first", "last"), repeated=self.repeated)
        positive_number("timeout", self.timeout)
        require_counts(least=1, requests=self.requests)

    @property
    def index(self) -> int:
        """The slice by number; negative ones count from the end."""
        return int(self.slices.text)

    def record(self, work: Work) -> Record:
        """Inputs and settings for the manifest, before anything has arrived.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        files, asked = InputFile.of_all(self.files), {"repeated": self.repeated, **self.named_companions}
        asked |= self.regions.named
        choices = {
            "recipe": self.settings,
            "files": [file.sha256 for file in files],
            "slice": self.index,
            "lines": self.lines,
            "acceleration_wanted": self.acceleration,
            **asked,
        }
        patience = {"timeout": self.timeout, "requests": self.requests}
        settings = {"slice": self.index, **patience, **asked, **self.settings}
        return Record(work.identity("adapt", choices), files, settings)


def adapt_scan(
    connections: Iterator[Connection], request: AdaptRequest, work: Work, keep: FolderKeep
) -> tuple[DesignResult, LiveScanner]:
    """Have a scanner measure one line after another, each chosen from those before; reconstruct from them.

    Everything that arrives is on the disk before it is used, and a checkpoint is written after every decision.
    Noise, coil maps and the image's brightness are from the start lines where noise readouts or the request do not say
    more. The lines are those that `design_scan` chooses from a complete file of the same scan, if it is given the same
    noise.

    Parameters
    ----------
    connections : iterator of Connection
        Whoever connects.
    request : AdaptRequest
        Design and patience.
    work, keep : Work, FolderKeep
        How to compute, and the folder of what arrives.

    Returns
    -------
    (DesignResult, LiveScanner)
        The design, and the scanner with every exchange and what else arrived.

    Raises
    ------
    UsageError
        For readouts of an unfinished design that is not to be resumed.
    InputError
        Where too little arrives to begin, or constraints contradict the grid.
    """
    keep.require_resume(JOURNAL, "readouts of an unfinished design")
    companions = request.read_companions(work.seed)  # refused before anybody measures for them
    keep.begin()
    path, conversation = (keep.folder.output_path(name) for name in (JOURNAL, CONVERSATION))
    protocol = MrdStream(request.index, request.recipe.input.counters)
    arrivals, kept = Arrivals(request.repeated), 0
    for end, message in recorded(path, protocol):
        arrivals.take(message)
        kept = end
    sent, earlier = _messages(conversation), _exchanges_before(keep.folder.existing(LATENCY))
    with open(path, "ab", buffering=0) as journal, open(conversation, "ab", buffering=0) as messages:
        journal.truncate(kept)
        scanner = LiveScanner(
            protocol,
            connections,
            arrivals,
            keep=partial(append, journal),
            say=work.progress.say,
            note=lambda content: messages.write(json.dumps(content).encode() + b"\n"),
            patience=(request.timeout, request.requests),
        )
        scanner.exchanges.extend(earlier)
        with closing(scanner):
            try:
                live = _Live(request, work, keep, scanner, sent, companions)
                state = live.designed()
                status = live.status(state)
                scanner.finish({"lines": list(state.trace.lines), "status": status or "enough"})
                result = live.concluded(state, path)
                scanner.send_images(_going_back(result.images[0].reconstruction))
            except MriDesignError as error:
                scanner.send({"kind": "refused", "why": str(error)})
                raise
    if status:
        work.progress.say(status)
        result = replace(result, status=status)
    return result, scanner


def _going_back(image: Image) -> list[StreamedImage]:
    """What the scanner gets of an image: its magnitude, and its error bars as a second series."""
    series = [StreamedImage(np.abs(image.image), 0, "Image", "magnitude of the posterior mean")]
    if image.std is not None:
        series.append(StreamedImage(image.std, 1, "Quantitative", "standard deviation of each pixel"))
    return series


def run_adapt(connections: Iterator[Connection], request: AdaptRequest, run: Run) -> Stored:
    """Design at a scanner and report in a run's folder; see `carry_out`."""
    compute = partial(adapt_scan, connections, request, run)
    return carry_out(run, request.record(run), compute, report_adapt, checkpoint=CHECKPOINT, resumed="design")


def _messages(path: Path) -> list[dict[str, Any]]:
    """The messages to the scanner of the run that is resumed; they are on the disk before the next decision."""
    found = list[dict[str, Any]]()
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError):  # cut off when the process died
            found.append(json.loads(line))
    return found


def _exchanges_before(path: Path | None) -> list[LineRequest]:
    """How long the answers of the run that is resumed took."""
    try:
        return [] if path is None else [LineRequest.of_row(row) for row in read_csv_texts(path)]
    except (KeyError, ValueError, csv.Error) as error:
        wanted = "the table that adapt wrote"
        raise InputError(field=LATENCY, got=str(error)[:120], wanted=wanted, cure="Remove it.") from error


class _Live:
    """A slice that is filled while it is designed.

    ``sent`` are the messages of the run that is resumed: they state which lines were given up, and where the centre of
    k-space was found, by the scanner's numbers.
    """

    def __init__(
        self,
        request: AdaptRequest,
        work: Work,
        keep: FolderKeep,
        scanner: LiveScanner,
        sent: Sequence[Mapping[str, Any]],
        companions: Sequence[CompanionImages],
    ) -> None:
        self._request, self._work, self._scanner, self._arrivals = request, work, scanner, scanner.arrivals
        self._keep, self._recipe = keep, request.recipe
        header = scanner.header()
        self._encoding = LineReadouts(header.shape)
        self._sought: tuple[int, ...] = ()
        earlier = {kind: [message for message in sent if message.get("kind") == kind] for kind in ("centre", "lost")}
        found = [Centre(header.shape, tuple(message["place"]), "measured") for message in earlier["centre"]]
        self._moved_to = found[0] if found else None
        if self._recipe.input.centre is not None:
            self._moved_to = given_centre(header.shape, self._recipe.input.centre)
        if self._moved_to is not None:
            self._arrivals.move(self._moved_to)
        self._lines = request.count(self._encoding.size)
        self._measurable: NDArray[np.bool_] = np.ones(self._encoding.size, dtype=bool)
        self._plan = DesignPlan.of(request.strategy, self._recipe, self._encoding)
        require_lines(self._measurable, self._lines, self._plan.rules, self._encoding)
        self._checkpoint = keep.checkpoint({}, self._encoding.size, self._encoding.unit)
        self._first = self._first_lines()
        self._most = self._reachable()
        self._give_up([line for message in earlier["lost"] for line in message["lines"]])
        self._first = self._start()
        self._scan, self._companions = self._calibrated(companions)
        model = self._scan.slice_model(0, **self._recipe.slice_settings)
        self._regions = request.regions_of([self._scan], [model], self._first)
        self._looks = ImageErrors(self._recipe, work.seed, tuple(self._companions), self._regions)
        self._watch = DesignWatch(work, keep, self._most, self._looks)
        self._watch.begins(self._scan, self._encoding, request.stop)
        self._slice = replace(model, kspace=model.kspace.copy(), measured=self._measurable, samples=None)
        self._arrivals.changed.update(np.flatnonzero(self._arrivals.arrived).tolist())
        self._fill()
        offered = list(zip(companions, self._companions, strict=True))
        steered = steering_image(offered, [self._slice], [0], 1, self._first, self._recipe, work.seed)
        self._strategy, self._steered_by = steered or (request.strategy, "")

    def _calibrated(self, companions: Sequence[CompanionImages]) -> tuple[KSpaceData, tuple[Companion, ...]]:
        """The scan as its start lines show it, and the other images of the object over it."""
        data, maps = self._arrivals.data(NAME, self._first), self._request.maps
        data = with_given(data, self._recipe, maps if data.n_coils > 1 else None)
        tell_part(data, self._recipe, self._work.progress)
        grows = estimates_own_maps(data)
        calibrating = self._centre() if grows else calibration_for(self._recipe, self._lines)
        calibrated = calibrate(data, self._recipe, calibration_lines=calibrating, ordinary=True, growing=grows)
        self._white = with_known_noise(data, self._recipe, ordinary=True)
        if not self._noise_is_known:
            noise = phrase("noise_of_start", calibrated.provenance.noise, len(self._first))
            self._work.progress.warn(f"{NAME}: its noise is {noise}")
        return calibrated, companions_over(companions, data)

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
        most = self._plan.rules.most_lines(self._measurable, acquired)
        return most if self._lines is None else min(max(self._lines, len(acquired)), most)

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
                self._give_up(self._request_lines(wanted, {"rule": "start"}))
            elif self._arrivals.coils == coils and not self._seeks_centre(first):
                return first

    def _seeks_centre(self, first: Sequence[int]) -> bool:
        """Whether to calibrate the start again, because its samples show the centre of k-space elsewhere.

        Where they show it, lines are numbered anew. Where no line stands out from those at both ends of the start, more
        are measured beyond the stronger end, at most a quarter of all.
        """
        if self._moved_to is not None:
            return False
        data = self._arrivals.data(NAME, [*first, *self._sought])
        centre = find_centre(data.kspace[0], data.samplings[0].samples)
        if centre.shift != (0, 0):
            self._moved_to = replace(centre, turned=False)
            self._scanner.note({"kind": "centre", "place": centre.place})
            self._arrivals.move(self._moved_to)
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
        self._give_up(self._request_lines(beyond, {"rule": "centre"}))
        return True

    def _first_lines(self) -> tuple[int, ...]:
        design, coils = self._request, self._arrivals.coils or 1
        allowed = self._measurable & self._plan.rules.allowed(len(self._measurable))
        target = int(allowed.sum()) if self._lines is None else min(self._lines, int(allowed.sum()))
        count = self._centre() if coils > 1 and design.maps is None else 0
        return self._plan.start_lines(self._measurable, target, count, coils)

    def _centre(self) -> int:
        """Centre lines to begin with where coil maps are estimated from the lines as they come.

        The usual number of calibration lines where the noise is estimated from them, too: few of them hold nothing but
        signal. That is known from the first line on, because noise readouts come before it.
        """
        wanted = centre_for_maps(self._request.strategy, self._recipe, self._lines, n_coils=self._arrivals.coils or 1)
        if self._arrivals.arrived.any() and not self._noise_is_known:
            wanted = max(wanted, calibration_for(self._recipe, self._lines) or self._recipe.coils.most_lines)
        return min(wanted, len(self._measurable))

    @property
    def _noise_is_known(self) -> bool:
        return bool(self._arrivals.noise) or self._recipe.input.noise is not None

    def _fill(self) -> None:
        lines = sorted(self._arrivals.changed)
        self._arrivals.changed.clear()
        if lines:
            self._slice.kspace[:, lines] = self._scan.mixed(self._arrivals.lines(lines))

    def designed(self) -> DesignState:
        """Choose and measure until there are enough lines, or the scanner gives no more."""
        show = self._work.progress.show
        options = DesignOptions(
            stop=self._request.stop,
            checkpoint=self._checkpoint,
            callback=lambda s: show(
                "designing",
                len(s.trace.lines) - len(self._first),
                self._watch.expected(s.trace, self._request.stop) - len(self._first),
            ),
            closing=True,
            measure=self._measure,
            image_error=self._looks,
            intervals=self._looks.intervals if self._regions is not None else None,
            watch=self._watch,
            amount=self._watch.amount,
        )
        plan = replace(self._plan, strategy=self._strategy)
        engine = design_engine(plan, self._recipe, design_seed(self._work.seed))
        while True:
            self._slice = replace(self._slice, measured=self._measurable.copy())
            try:
                return design_lines(engine, [self._slice], self._first, self._reachable(), options)
            except LostPieceError:
                continue  # from the checkpoint, without these lines

    def _measure(self, steps: Sequence[DesignStep]) -> None:
        lines, first = [step.line for step in steps], steps[0]
        known = {
            "scores": None if first.choice.scores is None else [_number(step.choice.score) for step in steps],
            "predicted_error": _number(first.predicted_error),
            "nats": _number(first.forecast.information),
        }
        about = {name: value for name, value in known.items() if value is not None}
        missing = self._request_lines(lines, {"rule": self._request.strategy.name, **about})
        self._fill()
        if missing:
            self._give_up(missing)
            if self._work.live is not None:
                self._work.live.lose(tuple(missing))
            raise LostPieceError(str(missing))

    def _request_lines(self, lines: Sequence[int], about: Mapping[str, object]) -> list[int]:
        """Have the scanner measure lines, write the latencies, and return the lines that did not arrive."""
        missing = self._scanner.measure(lines, about)
        self._keep.folder.write_table(LATENCY, [exchange.as_row() for exchange in self._scanner.exchanges])
        return missing

    def status(self, state: DesignState) -> str:
        """Why the design has fewer lines than it was to have; empty where it has them or a rule ended it."""
        count, amount = len(state.trace.lines), self._watch.amount
        if state.trace.declined is not None or amount.enough or count >= min(self._most, amount.most):
            return ""
        why = self._scanner.ended or "the others were lost"
        return f"{count} of {self._most} lines measured: {why}"

    def concluded(self, state: DesignState, journal: Path) -> DesignResult:
        """The design and its image, with what was measured written for the other verbs.

        Coil maps are the design's. The image that it ended by is taken, unless readouts have come that it does not
        hold.
        """
        image, recipe, work = None, self._recipe, self._work
        if not self._arrivals.changed:
            image = self._looks.image_of(state.trace.lines)
        self._fill()
        data = self._arrivals.data(NAME)
        slice_model = replace(self._slice, measured=data.measured)
        measured = replace(self._scan, kspace=self._slice.kspace[np.newaxis], measured=data.measured)
        scan = with_measured_maps(measured, slice_model.coil_map_estimate(state.trace.lines))
        warn_of_noise(scan, work.progress)
        warn_of_maps(scan, work.progress)
        calibrated, white, maps = slice_model.calibrated(state.trace.lines), self._white, scan.maps_as_read
        assert white.noise_variance is not None
        samples = white.mixed(data.kspace[0])  # of all coils, which the image may combine into fewer
        maps = None if maps is None else white.mixed(maps[0])
        written = white.as_read(samples, maps, white.noise_variance)
        write_npz(self._keep.folder.output_path("kspace.npz"), {"measured": data.measured, **written})
        frames = self._frames_that_came(journal)
        within = companions_within({}, {0: slice_model}, frames, state.trace.lines, recipe, work)
        calibrated = replace(calibrated, companions=(*self._companions, *within))
        end = self._watch.end_of(state.trace, self._request.stop, self._encoding)
        result = concluded(self._request, state, end, scan, calibrated, work, None if within else image)
        self._watch.ends(state.trace, result.known, result.images[0], result.status, result.ended)
        along = self._watch.frames
        seen = with_phase_of_end(along, slice_model, state.trace)
        return replace(result, steered_by=self._steered_by, frames=along, in_phase=seen, regions=self._regions)

    def _frames_that_came(self, journal: Path) -> list[OtherFrame]:
        """Frames around that of the design, as far as their readouts came in the same stream."""
        design, found = self._request, list[OtherFrame]()
        if not design.around.frames:
            return found
        axis, frame = frame_of_design(design.recipe)
        steps = range(1, design.around.frames + 1)
        after = [] if axis == SUCCESSIVE else [frame + step for step in steps]
        for number in (*(frame - step for step in steps), *after):
            arrivals = Arrivals(self._request.repeated)
            for _, message in recorded(journal, MrdStream(self._request.index, {axis: number})) if number >= 0 else ():
                arrivals.take(message)
            arrivals.settle()
            if self._moved_to is not None and arrivals.header is not None:
                arrivals.move(self._moved_to)
            if arrivals.arrived.any():
                data = arrivals.data(NAME)
                data = with_given(data, design.recipe, design.maps if data.n_coils > 1 else None)
                found.append(OtherFrame(f"{axis} {number}", data, complete=axis == SUCCESSIVE))
        return found


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


SHOWN = 20
"""Rows of the table on the page; latency.csv has all."""


def report_adapt(folder: RunFolder, result: tuple[DesignResult, LiveScanner]) -> Report:
    """Write everything about a design at the scanner."""
    design, scanner = result
    exchanges, deciding = scanner.exchanges, [one.deciding_seconds for one in scanner.exchanges]
    median = float(np.median(deciding)) if deciding else 0.0
    counts = {
        **{f"readouts {what}": count for what, count in scanner.arrivals.counts.items()},
        "lines lost": sum(len(exchange.lost) for exchange in exchanges),
        "requests repeated": sum(exchange.requests - 1 for exchange in exchanges),
        "median seconds per decision": median,
    }
    extra: dict[str, object] = {what: count for what, count in counts.items() if count}
    slowest = sorted(sorted(range(len(exchanges)), key=lambda i: -deciding[i])[:SHOWN])
    latency = {"requests": len(exchanges), "median": median, "most": max(deciding, default=0.0)}
    rows = [exchanges[i].as_row() for i in slowest]
    report = report_design(folder, design, "adapt", extra, extensible=False, slowest=rows, **latency)
    return replace(report, inputs=[InputFile.of(folder.path / JOURNAL)])
