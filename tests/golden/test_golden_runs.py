"""What the golden runs leave on every processor: the first lines chosen, errors within 2 %, files and fields.

Whether a change keeps every bit is the question of ``make golden``, which compares two versions on one machine.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from tests.golden.outcomes import ROOT, SECONDS, Outcome, carried_out, differences
from tests.golden.record import compared, made
from tests.golden.runs import RUNS

FACTS = (
    ("design-calibrated", "16 15 17 14 18 13 19 12 10", ".1449 .1800"),
    ("recon-mean", "", ".1442 .1800"),
    ("recon-map", "", ".1596 .1800"),
    ("design-calibrated-coils", "16 15 17 14 20 12 18 24 10 22 27 8 29 5", ".0304 .1938"),
    ("recon-coils", "", ".0302 .1938"),
    ("design-aware-phase", "16 15 17 14 18 13 19 12 22", ".1607 .1864"),
    ("design-constrained", "9 13 14 15 16 17 18 25 26 21 19", ".1881 .3803"),
    ("design-information-gain", "16 15 17 14 18 13", ".0879 .1232"),
    ("design-lanczos", "16 15 17 14 18 13 19 12 21", ".1652 .1954"),
    ("design-plane", "", ".1005 .2278"),
    ("design-plane-coils", "", ".0597 .1862"),
    ("design-spokes", "0 8 16 24", ".1727 .2875"),
    ("recon-spokes", "", ".1733 .2875"),
    ("train", "16 15 17 14 18 13 19", ""),
    ("design-with", "16 15 17 14 18 13 19 12 10", ".0606 .1430"),
    ("recon-volume", "", ".1851 .3037 .2145 .3064 .1815 .3151"),
    ("adapt", "16 15 17 14 18 13 20 10 23", ""),
    ("adapt-coils", "16 15 17 14 18 13 19 12 20 11 23 26 9 21", ""),
    ("compare-posterior", "", ".1767 .1718 .1755 .1723 .2447 .2304"),
    ("protocol", "16 15 17 14 18 13 21 22 19 20", ".0653 .0983 .0919 .0985"),
)
"""Lines, or shots, chosen as long as the best score is 2 % above the next one; then relative errors of images."""
ORDERS = ("lines.csv:line", "shots.csv:shot", "order.npz:lines")
IMAGE = {"recon.npy", "manifest.json", "report.html", "metrics.csv:method", "metrics.csv:relative_l2"}
FIELDS = {
    "design": IMAGE | {"mask.npy", "std.npy"},
    "recon": IMAGE | {"mask.npy"},
    "adapt": IMAGE | {"mask.npy", "std.npy", "lines.csv:score"},
    "compare": {"manifest.json", "report.html", "masks.json", "summary.csv:strategy", "metrics.csv:relative_l2"},
    "protocol": {"manifest.json", "report.html", "mask.npy", "lines.csv:score", "metrics.csv:relative_l2"},
    "train": {"order.npz:lines", "order.npz:errors"},
}
"""Files and fields that a verb always leaves."""


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """Every run once, in one folder."""
    folder = tmp_path_factory.mktemp("golden")
    return cache(lambda name: carried_out(name, folder))


@pytest.mark.parametrize(("name", "first", "errors"), FACTS, ids=[fact[0] for fact in FACTS])
def test_what_a_run_leaves_on_every_processor(
    outcome_of: Callable[[str], Outcome], name: str, first: str, errors: str
) -> None:
    run = RUNS[name]
    if run.after:
        outcome_of(run.after)
    outcome = outcome_of(name)
    assert outcome["exit code"] == 0
    assert FIELDS["train" if "--rule" in run.words else run.words.split()[0]] - outcome.keys() == set()
    chosen = [outcome[order].astype(int).tolist() for order in ORDERS if order in outcome]
    lines = [int(line) for line in first.split()]
    assert not lines or chosen[0][: len(lines)] == lines
    if errors:
        expected = np.array(errors.split(), dtype=float)
        np.testing.assert_allclose(outcome["metrics.csv:relative_l2"][: expected.size], expected, rtol=0.02)


def test_python_gives_the_same_for_a_file_and_its_array(tmp_path: Path) -> None:
    outcome = carried_out("python", tmp_path)
    for key in ("lines", "mask", "image", "std", "least_squares"):
        assert outcome[f"file.npz:{key}"].tobytes() == outcome[f"array.npz:{key}"].tobytes()


def test_a_tree_in_a_process_of_its_own_gives_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = made([ROOT], ["train"], turns=1)[0]
    here = {"train": carried_out("train", tmp_path) | {SECONDS: np.array(1.0)}}
    assert compared(there, here, 0.0, timed=True)
    here["train"]["order.npz:errors"] = here["train"]["order.npz:errors"] + 1e-9
    assert not compared(there, here, 0.0, timed=False) and compared(there, here, 1e-6, timed=False)
    assert "order.npz:errors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "now", "bits", "rounding"),
    [
        (1.0, 1.0 + 1e-6, False, True),
        ([1.0, np.nan], [1.0, np.nan], True, True),
        (0.0, -0.0, False, True),
        (np.float32(1), np.float64(1), False, False),
        ([1, 2], [1, 2, 3], False, False),
        (["yes"], ["no"], False, False),
    ],
)
def test_what_counts_as_the_same(before: object, now: object, bits: bool, rounding: bool) -> None:
    one, other = {"array": np.array(before)}, {"array": np.array(now)}
    assert (list(differences(one, other)) == []) == bits
    assert (list(differences(one, other, 1e-4)) == []) == rounding
    assert list(differences(one, {})) and list(differences({}, other))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["design-calibrated", "design-calibrated-coils", "design-plane-gain", "design-spokes", "protocol"]
)
def test_nothing_depends_on_what_new_memory_happens_to_hold(name, tmp_path, monkeypatch):
    (there := tmp_path / "as it is").mkdir()
    (full := tmp_path / "full").mkdir()
    expected = carried_out(name, there)

    def full_of_nan(make, *arguments, **options):
        array = make(*arguments, **options)
        if array.dtype.kind in "fc":
            array[...] = np.nan
        return array

    for maker in ("empty", "empty_like"):
        monkeypatch.setattr(np, maker, partial(full_of_nan, getattr(np, maker)))
    assert not list(differences(expected, carried_out(name, full)))
