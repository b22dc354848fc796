"""Workers give results in order, and a worker that is killed ends the work with a sentence."""

import os
import signal

import pytest

from mri_design.errors import MriDesignError
from mri_design.runs.workers import Workers


def product(material: int, item: int) -> int:
    return material * item


def killed(material: int, item: int) -> int:
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return material * item


def test_results_come_in_order_here() -> None:
    with Workers(3, 1) as workers:
        assert list(workers.map(product, [4, 1, 2])) == [12, 3, 6]


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_work_with_a_sentence() -> None:
    with Workers(3, 2) as workers, pytest.raises(MriDesignError, match="what is finished is kept"):
        list(workers.map(killed, [1, 2, 3]))
