"""What 1,000 slices would take on 1 to 100 machines, from sizes that were measured on one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.evaluation.tables import Row
from mri_design.runs.workers import Workers

NETWORK = 1e8
"""Bytes per second from the one who sends the slices, all machines together: a gigabit network."""


@dataclass(frozen=True)
class Sizes:
    """What one slice takes.

    Parameters
    ----------
    task : float
        Seconds that a worker computes for a slice.
    start : float
        Seconds until a worker is there and has imported the package.
    hand_out : float
        Seconds that the scheduler and the one who waits spend on one task.
    collect : float
        Seconds in which the one who waits writes a slice's result.
    slice_bytes : int
        That travel to the workers for one slice.
    """

    task: float
    start: float
    hand_out: float
    collect: float
    slice_bytes: int

    def seconds(self, slices: int, workers: int) -> float:
        """Until all is done: the workers' share, or what is done in one place, whichever takes longer."""
        rounds = -(-slices // workers)
        computed = self.start + rounds * self.task
        in_one_place = slices * (self.hand_out + self.collect + self.slice_bytes / NETWORK)
        return max(computed, self.start + in_one_place) + self.collect


def nothing(material: object, item: int) -> int:
    """A task that takes no time."""
    return item


def seconds_per_task(count: int) -> float:
    """Of a dask cluster of two workers on this machine, for tasks that take no time."""
    with Workers(None, 2, "dask") as workers:
        list(workers.map(nothing, range(8)))  # the workers are there
        began = time.perf_counter()
        list(workers.map(nothing, range(count)))
        return (time.perf_counter() - began) / count


def model_rows(sizes: Sizes, slices: int, workers: Sequence[int]) -> list[Row]:
    """Seconds, speed-up and efficiency by number of workers."""
    alone = sizes.seconds(slices, 1)
    rows: list[Row] = []
    for count in workers:
        seconds = sizes.seconds(slices, count)
        rows.append(
            {
                "workers": count,
                "hours": seconds / 3600,
                "times as fast": alone / seconds,
                "efficiency": alone / seconds / count,
            }
        )
    return rows


def most_workers(sizes: Sizes) -> float:
    """Workers beyond which what is done in one place takes longer than the work itself."""
    return sizes.task / (sizes.hand_out + sizes.collect + sizes.slice_bytes / NETWORK)
