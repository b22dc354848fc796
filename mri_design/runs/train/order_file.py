"""The file of a line order: whose it is, the beginning that an interrupted training left, and the finished order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mri_design.design.other_scans.trained_design import TrainedDesign
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.folder_lock import LOCK_NAME, FolderLock
from mri_design.evaluation.run_folder import require_same_run
from mri_design.evaluation.run_status import PROGRESS_NAME, ProgressFile
from mri_design.experiment.trained_file import load_trained, save_trained
from mri_design.runs.run import Ending
from mri_design.status import Status

UNFINISHED = ".unfinished"
"""Added to the name of the file while the order is being learnt."""


@dataclass(frozen=True)
class OrderFile:
    """Where an order goes.

    Parameters
    ----------
    path : Path
        The file; beside it stands NAME.unfinished until the order is complete.
    overwrite : bool
        Whether another file at ``path``, or the beginning of another training, may be replaced.
    command : sequence of str
        The arguments of the training, for those who look into the folder while it lasts.
    """

    path: Path
    overwrite: bool = False
    command: Sequence[str] = ()

    @property
    def beginning(self) -> Path:
        """The file that an interrupted training leaves."""
        return self.path.with_name(self.path.name + UNFINISHED)

    def finished(self, identity: str) -> TrainedDesign | None:
        """The order of this very training, where it is complete; None too where what is there may be overwritten.

        Raises
        ------
        UsageError
            For links, other people's files, and another training's order.
        """
        for file in (self.path, self.beginning):
            if file.is_symlink():
                raise UsageError(f"{file} is a symbolic link, and nothing is written through links; give another --out")
            if file.exists() and not self.overwrite:
                try:
                    load_trained(file)
                except InputError as error:
                    raise UsageError(
                        f"{file.name} is no trained design; give another --out, or add --overwrite"
                    ) from error
        if self.overwrite or not self.path.exists():
            return None
        design = load_trained(self.path)
        if design.settings.get("identity") != identity:
            raise UsageError(f"{self.path.name} holds another trained design; give another --out, or add --overwrite")
        return design

    @contextmanager
    def begun(self, say: Callable[[str], None]) -> Iterator[ProgressFile]:
        """Make the folder of the file, and begin anew where that was asked for; a finished order stays until the next.

        Entered once everything that can be refused has been. Within it no other training makes the same file; whoever
        held the file and fell silent is told to ``say``.

        Raises
        ------
        InputError
            Where another training is making the file.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(self.path.parent, f".{self.path.name}{LOCK_NAME}")
        try:
            if lock.taken_over:
                say(lock.taken_over)
            if self.overwrite:
                self.beginning.unlink(missing_ok=True)
            progress = ProgressFile(self.path.with_name(f".{self.path.name}{PROGRESS_NAME}"), self.command)
            try:
                yield progress
            except BaseException:
                progress.write()
                raise
            progress.remove()
        finally:
            lock.release()

    def unfinished(self, identity: str) -> TrainedDesign | None:
        """The beginning of this very training; None where there is none.

        Raises
        ------
        UsageError
            Where it is the beginning of another one.
        """
        if not self.beginning.exists():
            return None
        design = load_trained(self.beginning)
        stored = design.settings.get("identity")
        require_same_run(self.beginning, stored, identity, "the beginning of another training")
        return design

    def save_unfinished(self, design: TrainedDesign) -> None:
        """Keep the lines learnt so far."""
        save_trained(self.beginning, design)


def order_ending(design: TrainedDesign) -> Ending:
    """How the training of an order ended: converged, or how many of its reconstructions did not."""
    if not design.unconverged:
        return Ending(Status.CONVERGED.value, design.lines)
    said = f"{design.unconverged} of {design.reconstructions} reconstructions not converged"
    return Ending(said, design.lines)
