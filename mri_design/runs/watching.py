"""What is kept of a design while it runs, and shown to whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mri_design.design import Amount, DesignTrace, Frame, Moment, map_lines
from mri_design.design.frames import MEMBERS, arrays_of, frames_of, is_kept, with_frame
from mri_design.design.trace import StopRule, lines_expected
from mri_design.errors import InputError, UsageError
from mri_design.evaluation import plots
from mri_design.evaluation.page import worded
from mri_design.evaluation.plots.pictures import layout_of
from mri_design.evaluation.run_folder import AMOUNT, FRAMES
from mri_design.experiment.calibration import with_measured_maps
from mri_design.experiment.design import ImageErrors
from mri_design.experiment.extent import DesignEnd
from mri_design.model.slice import SliceModel
from mri_design.readouts import Readouts
from mri_design.runs.known_slice import KnownSlice, NamedImage, pixel_of
from mri_design.runs.live import Watched
from mri_design.runs.provenance import phrase
from mri_design.runs.work import Keep, Work
from mri_design.scan.data import KSpaceData, Scan


class DesignWatch:
    """What is kept of a design while it runs, so that a killed one goes on with it, and shown to whoever watches.

    Parameters
    ----------
    work, keep : Work, Keep
        The page, if any, and where to keep.
    most : int
        Lines that are wanted, unless the page had wanted others when the design was interrupted.
    looks : ImageErrors, optional
        Has the image where the design looked at it.

    Attributes
    ----------
    amount : Amount
        How many lines are wanted now.
    frames : tuple of Frame
        Evenly spread over the decisions so far, and all at which the design looked at its image (`with_frame`).
    """

    def __init__(self, work: Work, keep: Keep, most: int, looks: ImageErrors | None = None) -> None:
        self._live, self._keep, self._looks = work.live, keep, looks
        self.amount, self.frames = Amount(most), tuple[Frame, ...]()
        with suppress(InputError, KeyError, OSError):  # the design needs none of them
            self.frames = frames_of(keep.arrays(FRAMES, MEMBERS))
        with suppress(UsageError):  # that of another number of lines
            self.amount = keep.table(AMOUNT, "how many lines are wanted", _amount) or self.amount
        self._kept, self._maps_from = replace(self.amount), 0

    def begins(self, scan: KSpaceData, readouts: Readouts, rule: StopRule | None) -> None:
        """Show what is known of a calibrated scan before the first decision."""
        if self._live is not None:
            picture, facts = plots.Frame(layout_of(readouts, scan.orientation), pixel_of(scan)), facts_of(scan)
            self._live.begins(Watched(scan.name, readouts, picture, rule, self.amount, facts))
            self._scan = scan

    def __call__(self, moment: Moment) -> None:
        """Show a moment, and keep its frame if it is one of those that are kept."""
        whole = None if self._looks is None else self._looks.shown(moment.trace.lines)
        kept = not moment.steps or is_kept(moment.number) or whole is not None
        frame = moment.frame() if kept or self._live is not None else None
        if self._live is not None:
            self._live.show(moment, frame)
            rest_on = map_lines(len(moment.trace.start), len(moment.trace.lines))
            if frame is not None and rest_on != self._maps_from:  # the maps were made anew
                self._maps_from = rest_on
                self._live.learns(facts_of(with_measured_maps(self._scan, moment.where.coil_maps())))
        if kept and frame is not None:
            if whole is not None and whole.std is not None:
                image, deviation = whole.image.astype(np.complex64), whole.std.astype(np.float32)
                error = whole.predicted_error or float("nan")
                frame = replace(frame, image=image, deviation=deviation, predicted_error=error, whole=True)
            before = [one for one in self.frames if frame.lines[: len(one.lines)] == one.lines]
            self.frames = with_frame(before, frame)
            self._keep.keep_arrays(FRAMES, arrays_of(self.frames))
        if self.amount != self._kept:
            self._kept = replace(self.amount)
            self._keep.keep_table(AMOUNT, asdict(self._kept))

    def expected(self, trace: DesignTrace, rule: StopRule | None) -> int:
        """How many lines the design is expected to have in the end."""
        return lines_expected(trace, rule, self.amount.most, self.amount.least)

    def end_of(self, trace: DesignTrace, rule: StopRule | None, readouts: Readouts) -> DesignEnd:
        """How the finished design ended."""
        return DesignEnd.of(trace, rule, self.amount.most, readouts, by_hand=self.amount.enough)

    def ends(self, trace: DesignTrace, known: KnownSlice, made: NamedImage, *says: str) -> None:
        """Show the image that the design has come to, and what else is to be said of its end."""
        if self._live is not None:
            std = None if made.reconstruction.std is None else made.reconstruction.std.astype(np.float32)
            last = Frame(len(trace.steps), trace.lines, (), made.reconstruction.image.astype(np.complex64), std)
            words = [*says, worded("images", "errors_in_words", made.error)]
            self._live.learns(facts_of(known.scan))
            self._live.ends(last, ", ".join(filter(None, words)))


def with_phase_of_end(frames: Sequence[Frame], one: SliceModel, trace: DesignTrace) -> tuple[Frame, ...]:
    """The frames of a design as they are kept, with the phase that coil maps of all its lines give to an image.

    Maps that are estimated from lines leave the image a phase of their own, which differs between numbers of lines. The
    file of frames has each with its own: a run that is killed afterwards, or goes on to more lines, turns them again.
    """
    kept = frames_of(arrays_of(frames)) if frames else ()  # a design that was killed has no others
    if one.own_maps is None:
        return kept
    final, turned = one.calibrated(trace.lines).maps, list[Frame]()
    for frame in kept:
        count = len(frame.lines) if frame.whole else map_lines(len(trace.start), len(frame.lines))
        maps = one.calibrated(frame.lines[:count], rough=not frame.whole).maps
        assert final is not None and maps is not None
        between = np.exp(1j * np.angle(np.sum(final.conj() * maps, axis=0)))
        turned.append(replace(frame, image=(frame.image * between).astype(np.complex64)))
    return tuple(turned)


def _amount(stored: Mapping[str, Any]) -> Amount:
    return Amount(int(stored["most"]), int(stored["least"]), bool(stored["enough"]))


def facts_of(scan: Scan) -> dict[str, str]:
    """Where the noise and the coil maps of a scan are from, and how well maps predict coils that are held back."""
    return {"noise": phrase("noise", scan.provenance.noise), "coil maps": phrase("maps", scan.provenance.maps)}
