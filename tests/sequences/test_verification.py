"""A file with one number changed is refused, and the block that is wrong is named."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import pytest

from mri_design.sequences import GridOrder, Scanner, SequenceError, SequenceSettings, verify
from tests.sequences.conftest import GRE, ORDER, TSE, Written

pytest.importorskip("pypulseq")

FIRST_READOUT = {"gre": 2 * 4 + 3, "tse": 1 * 15 + 5}
"""Blocks of the dummies, and those until the first readout; a train here has 2 + 3 x 4 + 1 blocks."""


def _row(section: str, row: int, column: int, change: Callable[[float], float]) -> Callable[[str], str]:
    """The text of a file with one number of a section's table changed."""

    def changed(text: str) -> str:
        begin = text.index(f"[{section}]\n") + len(section) + 3
        lines = text[begin:].split("\n")
        words = lines[row].split()
        words[column] = f"{change(float(words[column])):.6g}"
        lines[row] = " ".join(words)
        return text[:begin] + "\n".join(lines)

    return changed


MOVING = [*((GRE, row) for row in (0, 1, 3, 4)), *((TSE, row) for row in range(5))]
"""Rows of the table of gradients that select the slice, or move in k-space before the first readout."""


@pytest.mark.parametrize("factor", [1.0015, -1.0])
@pytest.mark.parametrize(("settings", "row"), MOVING, ids=lambda value: getattr(value, "kind", str(value)))
def test_a_changed_gradient_is_found(settings, row, factor, written, generic):
    path = written(settings, _row("TRAP", row, 1, lambda amplitude: factor * amplitude))
    with pytest.raises(SequenceError) as caught:
        verify(path, ORDER, settings, generic)
    assert caught.value.block is not None


def test_limits_are_held_on_the_waveform(asked: SequenceSettings, written: Written, generic: Scanner) -> None:
    path = written(asked)
    found = verify(path, ORDER, asked, generic)
    pulses = asked.dummies + (len(ORDER.numbers) if asked.kind == "gre" else len(ORDER.trains))
    assert found.seconds == pytest.approx(pulses * asked.repetition_time, abs=pulses * 1e-5)
    for limit, name in (("max_gradient", "gradient"), ("max_slew", "slew"), ("max_b1", "b1")):
        assert 0 < getattr(found, name) <= getattr(generic, limit)
        with pytest.raises(SequenceError) as caught:
            verify(path, ORDER, asked, replace(generic, **{limit: 0.99 * getattr(found, name)}))
        assert caught.value.block is not None


@pytest.mark.parametrize(
    ("section", "column", "change"),
    [
        ("BLOCKS", 1, lambda length: length + 5),
        ("BLOCKS", 1, lambda length: length - 5),
        ("RF", 1, lambda amplitude: 0.9 * amplitude),
        ("ADC", 2, lambda dwell: dwell + 3),
        ("ADC", 2, lambda dwell: dwell - 400),
        ("ADC", 3, lambda delay: delay + 1),
        ("ADC", 1, lambda samples: samples - 1),
        ("ADC", -2, lambda offset: 100.0),
    ],
)
def test_changed_events_are_found(section, column, change, asked, written, generic):
    path = written(asked, _row(section, 0, column, change))
    with pytest.raises(SequenceError):
        verify(path, ORDER, asked, generic)


def _without_last_readout(text: str) -> str:
    blocks = text[text.index("[BLOCKS]\n") :].split("\n\n")[0].split("\n")
    return text.replace("\n".join(blocks[-4:]), "\n".join(blocks[-4:-2]))


@pytest.mark.parametrize(
    ("settings", "change", "others", "first"),
    [
        *((one, lambda text: text.replace(" 8 LIN", " 9 LIN"), {}, True) for one in (GRE, TSE)),
        *((one, str, {"order": GridOrder(((3, 8, 12), (9, 0), (15, 7, 1)), 16)}, True) for one in (GRE, TSE)),
        *((one, str, {"order": GridOrder(ORDER.trains[:2], 16)}, False) for one in (GRE, TSE)),
        *((one, str, {"repetition_time": one.repetition_time + 1e-4}, True) for one in (GRE, TSE)),
        *((one, str, {"echo_time": one.echo_time + 1e-4}, False) for one in (GRE, TSE)),
        (GRE, str, {"rf_spoiling": 50.0}, False),
        (GRE, _without_last_readout, {}, False),
        (TSE, lambda text: re.sub(r" e\n", " r\n", text, count=1), {}, False),  # another use of a pulse
        *((GRE, lambda text, kept=kept: text[:kept], {}, False) for kept in (0, 300, 900)),
    ],
)
def test_a_file_that_plays_something_else_is_refused(settings, change, others, first, written, generic):
    """With the block of the first readout, where that is wrong."""
    path, order = written(settings, change), others.get("order", ORDER)
    wanted = replace(settings, **{name: value for name, value in others.items() if name != "order"})
    with warnings.catch_warnings(), pytest.raises(SequenceError) as caught:
        warnings.simplefilter("ignore")  # pypulseq's, about rasters that are not there
        verify(path, order, wanted, generic)
    assert not first or caught.value.block == FIRST_READOUT[settings.kind]


@pytest.mark.parametrize("dummies", [0, 2])
def test_labels_begin_with_zero_also_where_nothing_is_measured_at_first(asked, written, generic, dummies):
    asked = replace(asked, dummies=dummies)
    path = written(asked)
    sequence = pytest.importorskip("pypulseq").Sequence()
    sequence.read(str(path))
    (first,) = sequence.get_block(1).label.values()
    assert (first.label, first.value) == ("LIN", 0)
    named = [number for number in sequence.block_events if sequence.get_block(number).label]
    assert named[0] == 1 and len(named) == 1 + len(ORDER.numbers)
    before, extensions = path.read_text().split("[EXTENSIONS]")
    labels = extensions.index("LABELSET")
    changed = extensions[:labels] + extensions[labels:].replace(" 0 LIN", " 5 LIN", 1)
    path.write_text(f"{before}[EXTENSIONS]{changed}")
    with pytest.raises(SequenceError) as caught:
        verify(path, ORDER, asked, generic)
    assert caught.value.block == 1
