"""``mri-design status``: what runs, what is done, what is left, and how long that will take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mri_design.brief import duration_text
from mri_design.cli.terminal import DONE, command_to_go_on, say, verb

if TYPE_CHECKING:
    from mri_design.evaluation.run_status import RunProgress, RunStatus, Stage


@verb
def status(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run folder, or a folder of run folders.", show_default=False)
    ],
) -> int:
    """Say what runs in DIR and the folders in it, what is done there, what is left, and about how long that takes.

    Only looks: nothing is written, and no run is disturbed. Times are read off the pieces that were done so far.
    """
    from mri_design.evaluation.run_status import run_statuses

    found = run_statuses(folder)
    for run in found:
        name = run.path.relative_to(folder)
        say(f"{folder.name or folder.resolve().name if name == Path() else name}: {_sentence(run)}")
    if len(found) > 1:
        states = [run.state for run in found]
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        say(f"{len(found)} runs: {', '.join(counts)}")
    if not found:
        say(f"no run in {folder.name or folder.resolve().name}")
    return DONE


def _sentence(run: RunStatus) -> str:
    now = time.time()
    if run.state == "finished":
        took = "" if run.seconds is None else f", took {duration_text(run.seconds)}"
        return "; ".join(filter(None, [f"finished, {run.ended}{took}", run.about]))
    stages = "" if run.progress is None else _stages(run.progress, now if run.state == "running" else None)
    last = run.holder if run.state == "running" else _way_on(run)
    return "; ".join(filter(None, [run.state, stages, run.about, last]))


def _stages(progress: RunProgress, now: float | None) -> str:
    """The present stage and those to come; with the time that is left, unless the run was stopped."""
    if not progress.stages:
        return ""
    current = max(progress.stages, key=lambda stage: (stage.updated, stage.began))
    left = [stage for stage in progress.stages if stage.done < stage.total and stage is not current]
    words = [current.name if current.total == 1 else f"{current.name} {current.done} of {current.total}"]
    if now is None:
        words.append(f"{duration_text(time.time() - current.updated)} ago")
    else:
        words.append(_time_left(current, now))
    then = ", ".join(f"{stage.name}{f' ({stage.total - stage.done})' * (stage.total > 1)}" for stage in left)
    return ", ".join(filter(None, words)) + (f"; then {then}" if then else "")


def _time_left(stage: Stage, now: float) -> str:
    each, left = stage.seconds_a_piece, stage.seconds_left
    if each is None or left is None:
        return f"for {duration_text(now - stage.began)}"
    # what the present piece took already is part of what was left at the last update
    return (
        f"{duration_text(each)} each, about {duration_text(max(0.0, left - (now - stage.updated)))} left"
        if left
        else ""
    )


def _way_on(run: RunStatus) -> str:
    if run.progress is None or not run.progress.command:
        return f"{' and '.join(run.kept)} can be gone on from" if run.kept else "nothing to go on from"
    words = list(run.progress.command)
    command = command_to_go_on(["--resume"] * (words[0] != "demo" and bool(run.kept)), ["--overwrite"], words)
    return f"go on with: {command}" if run.kept else f"begin again with: {command}"
