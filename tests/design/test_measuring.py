"""A scanner that measures line by line in the place of a scan that is replayed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from mri_design import Calibrated, DesignEngine, DesignState, DoubleLoop, MonteCarlo, MRSlice
from mri_design.design import DesignStep, RandomLines, Strategy

SliceMaker = Callable[..., MRSlice]
START = (8, 7, 9, 6)


@dataclass
class Scanner:
    """Fills a slice with the lines that it is asked for, and keeps what it was asked."""

    scan: MRSlice
    live: MRSlice
    asked: list[tuple[int, ...]]

    def __call__(self, steps: Sequence[DesignStep]) -> None:
        lines = [step.line for step in steps]
        assert all(np.isnan(step.outcome.actual_energy) for step in steps)
        self.asked.append(tuple(lines))
        self.live.kspace[:, lines] = self.scan.kspace[:, lines]


def live(scan: MRSlice) -> Scanner:
    empty = replace(scan, kspace=np.zeros_like(scan.kspace))
    empty.kspace[:, START] = scan.kspace[:, START]
    return Scanner(scan, empty, [])


def ran(one: MRSlice, strategy: Strategy, target: int, **settings: object) -> DesignState:
    stop = settings.pop("stop", None)
    loop = DoubleLoop(MonteCarlo(6, 0.1), outer_iterations=2)
    engine = DesignEngine(strategy, loop, **settings)  # type: ignore[arg-type]
    return engine.run([one], engine.begin([one], START), target, stop=stop)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("strategy", [Calibrated(draws=6), RandomLines()])
def test_a_scanner_and_its_replayed_scan_give_one_design(
    make_slice: SliceMaker, strategy: Strategy, block: int
) -> None:
    scan = make_slice()
    scanner = live(scan)
    replayed, measured = (
        ran(scan, strategy, 10, block=block).trace,
        ran(scanner.live, strategy, 10, block=block, measure=scanner).trace,
    )
    assert measured.lines == replayed.lines
    assert measured.innovation_energies == replayed.innovation_energies
    assert [len(lines) for lines in scanner.asked] == [block] * (6 // block)
    assert [line for lines in scanner.asked for line in lines] == list(measured.lines[4:])


def test_a_line_that_is_lost_ends_the_run_and_the_last_state_goes_on_without_it(make_slice: SliceMaker) -> None:
    scan = make_slice()
    expected = ran(scan, Calibrated(draws=6), 7).trace.lines
    scanner, states = live(scan), list[DesignState]()

    def losing(steps: Sequence[DesignStep]) -> None:
        if steps[0].line == expected[5]:
            raise TimeoutError
        scanner(steps)

    engine = DesignEngine(Calibrated(draws=6), DoubleLoop(MonteCarlo(6, 0.1), outer_iterations=2), measure=losing)
    with pytest.raises(TimeoutError):
        engine.run([scanner.live], engine.begin([scanner.live], START), 7, states.append)
    left = replace(scanner.live, measured=np.arange(16) != expected[5])
    ended = engine.run([left], states[-1], 7).trace
    assert ended.lines[:5] == expected[:5] and len(ended.lines) == 7 and expected[5] not in ended.lines
