import numpy as np
import pytest

from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import centre_lines
from mri_design.design.strategies.baselines import RegularLines
from mri_design.design.strategy import DesignView
from mri_design.errors import InputError


def chosen(rule: RegularLines, n: int, target: int, start: int, seed: int = 0) -> list[int]:
    everything = np.ones(n, dtype=bool)
    candidates = LineCandidates(everything, centre_lines(everything, start), target, start)
    for step in range(target - start):
        candidates = candidates.after(rule.choose(DesignView(candidates), np.random.default_rng([seed, step])).line)
    return list(candidates.acquired[start:])


@pytest.mark.parametrize(("spacing", "n", "target", "start"), [(4, 64, 22, 8), (3, 63, 26, 6), (2, 48, 30, 12)])
def test_the_comb_runs_through_the_whole_grid_and_the_rest_widens_the_centre(
    spacing: int, n: int, target: int, start: int
) -> None:
    lines = chosen(RegularLines(spacing=spacing), n, target, start)
    offset = lines[0] % spacing
    mask = np.zeros(n, dtype=bool)
    mask[[*lines, *centre_lines(np.ones(n, dtype=bool), start)]] = True
    assert mask[offset::spacing].all()
    extra = [line for line in np.flatnonzero(mask) if line % spacing != offset]
    k = np.abs(np.array(extra) - n // 2)
    missing = [line for line in np.flatnonzero(~mask) if line % spacing != offset]
    assert k.max() <= np.abs(np.array(missing) - n // 2).min()


def test_too_few_lines_leave_out_the_outermost_teeth() -> None:
    lines = np.sort(chosen(RegularLines(spacing=4), 64, 12, 4))
    assert set(np.diff(lines)) <= {4, 8}  # a tooth in the centre was there already
    assert np.abs(lines - 32).max() <= 20


@pytest.mark.parametrize("target", [12, 16, 24, 40, 64])
def test_without_a_spacing_the_comb_fits_the_lines(target: int) -> None:
    lines = chosen(RegularLines(), 64, target, 4)
    everything = np.zeros(64, dtype=bool)
    everything[[*lines, *centre_lines(np.ones(64, dtype=bool), 4)]] = True
    gaps = np.diff(np.flatnonzero(everything))
    assert gaps.max() <= np.ceil(64 / (target - 4)) + 1
    assert everything.sum() == target


def test_offsets_follow_the_seed() -> None:
    assert len({chosen(RegularLines(spacing=4), 64, 20, 4, seed)[0] % 4 for seed in range(20)}) == 4


@pytest.mark.parametrize("spacing", [0, -2, 1.5])
def test_impossible_spacings_are_refused(spacing: float) -> None:
    with pytest.raises(InputError, match="line spacing"):
        RegularLines(spacing=spacing)  # type: ignore[arg-type]
