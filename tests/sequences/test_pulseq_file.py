"""Files play exactly the lines that were designed; what no scanner could play is refused with what could be."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError
from mri_design.sequences import GridOrder, Scanner, SequenceSettings, SpokeOrder, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.refusals import refused
from tests.sequences.conftest import GRE, ORDER, TSE, Written, played

pytest.importorskip("pypulseq")


def test_lines_lie_where_they_were_designed(asked: SequenceSettings, written: Written) -> None:
    (x, y, z), _ = played(written(asked), asked)
    np.testing.assert_allclose(y, np.repeat(np.array(ORDER.numbers) - 8, 16).reshape(-1, 16), atol=1e-4)
    np.testing.assert_allclose(x, np.tile(np.arange(16) - 8, (8, 1)), atol=1e-4)
    np.testing.assert_allclose(z, 0, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_random_orders_and_geometries_come_back(seed: int) -> None:
    rng, scanner = np.random.default_rng(seed), load_scanner(("generic", "low-field")[seed % 2])
    n_lines, echoes = int(rng.integers(5, 40)), int(rng.integers(1, 5))
    lines = rng.permutation(n_lines)[: int(rng.integers(1, n_lines))].tolist()
    order = GridOrder.in_trains(lines, echoes, n_lines)
    settings = replace(
        (GRE, TSE)[seed % 2],
        field_of_view=tuple(rng.uniform(0.15, 0.4, 2)),
        samples=int(rng.integers(8, 48)),
        echo_time=0.02,
        repetition_time=0.2,
        slice_thickness=rng.uniform(0.003, 0.02),
        rf_spoiling=50.0,
    )
    found = pulseq_file(order, settings, scanner)[1]
    assert found.largest_error < 2e-4
    assert found.echo_time == pytest.approx(0.02, abs=1e-5)
    shape = tuple(int(side) for side in rng.integers(4, 40, 2))
    samples = GridOrder.in_trains(rng.permutation(shape[0] * shape[1])[:8].tolist(), 1, *shape)
    slab = replace(settings, kind="gre", flip_angle=15.0, slice_thickness=float(rng.uniform(0.03, 0.2)))
    assert pulseq_file(samples, slab, scanner)[1].largest_error < 3e-4
    whole = replace(slab, field_of_view=slab.field_of_view[:1] * 2)
    spokes = SpokeOrder(tuple(rng.uniform(0, 7, 8).tolist()))
    assert pulseq_file(spokes, whole, scanner)[1].largest_error < 3e-4


def test_the_same_request_gives_the_same_bytes(asked: SequenceSettings, generic: Scanner) -> None:
    first = pulseq_file(ORDER, asked, generic)
    assert first == pulseq_file(ORDER, asked, generic) and b"\nFOV 0.2 0.24 0.005 \n" in first[0]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (replace(GRE, echo_time=0.003), "echo time"),
        (replace(GRE, repetition_time=0.010), "repetition time"),
        (replace(GRE, repetition_time=50.0, dummies=100), "repetition time"),
        (replace(GRE, bandwidth=20000.0), "generic: max_gradient"),
        (replace(GRE, samples=1000, bandwidth=9000.0), "bandwidth"),
        (replace(TSE, echo_time=0.006), "echo time"),
        (replace(TSE, repetition_time=0.02), "repetition time"),
        (replace(GRE, samples=18), "samples of a readout"),
    ],
)
def test_what_cannot_be_played_is_refused(settings: SequenceSettings, field: str, generic: Scanner) -> None:
    scanner = replace(generic, samples_divisor=4) if settings.samples == 18 else generic
    with refused(field):
        pulseq_file(ORDER, settings, scanner)


@pytest.mark.parametrize(("settings", "field"), [(GRE, "echo time"), (TSE, "echo time"), (TSE, "repetition time")])
def test_the_least_time_that_is_named_is_really_enough(settings, field, generic):
    name = field.replace(" ", "_")
    with pytest.raises(InputError) as caught:
        pulseq_file(ORDER, replace(settings, **{name: 0.001}), generic)
    least = float(caught.value.wanted.split()[0])
    assert pulseq_file(ORDER, replace(settings, **{name: least}), generic)[1].seconds > 0
    with pytest.raises(InputError):
        pulseq_file(ORDER, replace(settings, **{name: least - 4e-5}), generic)


def test_a_weak_transmitter_gets_a_longer_pulse(generic: Scanner) -> None:
    weak = replace(generic, max_b1=5e-6)
    assert pulseq_file(ORDER, replace(TSE, echo_time=0.03, repetition_time=0.2), weak)[1].b1 <= 5e-6
    with refused("generic: max_b1"):
        pulseq_file(ORDER, TSE, replace(generic, max_b1=1e-6))


@pytest.mark.parametrize(
    "change", [{"bandwidth": 700.0}, {"bandwidth": 60.0, "slice_thickness": 0.003}], ids=["readout", "slice"]
)
def test_a_gradient_limit_that_is_too_small_is_named_with_one_that_is_enough(generic, change):
    weak, settings = replace(generic, max_gradient=0.001), replace(GRE, echo_time=0.06, repetition_time=0.2, **change)
    with refused("generic: max_gradient") as caught:
        pulseq_file(ORDER, settings, weak)
    enough = 1e-3 * float(caught.value.wanted.split()[2])
    assert pulseq_file(ORDER, settings, replace(generic, max_gradient=1.005 * enough))[1].gradient <= 1.01 * enough
    with refused("generic: max_gradient"):
        pulseq_file(ORDER, settings, replace(generic, max_gradient=0.98 * enough))
