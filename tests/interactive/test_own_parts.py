"""Blocks and strategies of one's own, from the script to the image: no registration, no file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Choice, DesignView, Strategy
from mri_design.operators import FiniteDifferences, Identity, LinearOperator
from mri_design.sites import Laplace, StudentT
from tests.interactive.conftest import RECIPE

LINES = [1, 4, 7, 9, *range(12, 20), 22, 24, 27, 30]


class RowSums(LinearOperator):
    """Image (ky, kx) -> sum of every row (ky,)."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(shape, shape[:1])

    def _apply(self, u: np.ndarray) -> np.ndarray:
        return u.sum(axis=-1)

    def _adjoint(self, v: np.ndarray) -> np.ndarray:
        return np.broadcast_to(v[..., None], (*v.shape, self.in_shape[1])).copy()


LOCAL = [md.SparsityBlock("pixels", 100.0, tau_limit=0.4), md.SparsityBlock("differences", 10.0)]
ROWS = md.SparsityBlock(RowSums((32, 32)), 0.5)


@pytest.fixture(scope="module")
def head() -> md.LoadedScan:
    return md.load("phantom:brain", matrix=32, recipe={"phase": {"model": "modulus"}})


def with_prior(scan: md.LoadedScan, *blocks: object) -> md.Recipe:
    return scan.recipe.replacing("prior", blocks=list(blocks))


def test_error_bars_of_an_own_block_are_scaled_to_what_lines_held_back_show(head: md.LoadedScan) -> None:
    image = head.reconstruct(LINES, recipe=with_prior(head, *LOCAL, ROWS))
    factor = image.reconstruction.std_factor
    assert factor.held_back >= 2
    found = np.sqrt(np.mean(np.abs(image.array - image.reference) ** 2))
    bars = np.sqrt(np.mean(image.std.astype(float) ** 2))
    plain = found / (bars / factor.factor)
    assert abs(np.log(found / bars)) < 0.7 * abs(np.log(plain)), (plain, found / bars)


def test_a_block_counts_as_it_does_by_its_name(head: md.LoadedScan) -> None:
    named = head.reconstruct(LINES, recipe=with_prior(head, *LOCAL)).array
    for blocks in (
        [replace(LOCAL[0], kind=Identity((32, 32))), replace(LOCAL[1], kind=FiniteDifferences((32, 32)))],
        [LOCAL[0], replace(LOCAL[1], kind=lambda block, image: FiniteDifferences(image.shape))],
        RECIPE["prior"],
    ):
        np.testing.assert_array_equal(head.reconstruct(LINES, recipe=with_prior(head, *blocks)).array, named)


def test_sites_as_they_are_take_the_tau_that_a_rate_would_have(head: md.LoadedScan) -> None:
    one = head.calibrated.slice_model(0, **with_prior(head, LOCAL[0], ROWS).slice_settings)
    signal, sigma = one.signal_level(LINES), np.sqrt(one.noise_variance)
    sites = md.SiteBlock("sums", RowSums((32, 32)), Laplace(0.5 * sigma / signal))
    given = replace(one, prior=(LOCAL[0], sites)).model(LINES)
    followed = one.model(LINES)
    np.testing.assert_allclose(given.blocks[1].potential.rate, followed.blocks[1].potential.rate)


def test_a_design_goes_by_own_blocks_and_says_so(head: md.LoadedScan) -> None:
    design = head.design(9, blocks=[*LOCAL, replace(ROWS, site=lambda tau: StudentT(3.0, tau**2))])
    assert len(design.lines) == 9 and design.trace.steps[0].choice.scores is not None
    names = [block.name for block in design.result.known.slice_model.model().blocks]
    assert names == ["pixels", "differences", "RowSums"]


@pytest.mark.parametrize("block", [3, Laplace(1.0), {"kind": "edges"}, md.SparsityBlock(RowSums((8, 8)), 1.0)])
def test_blocks_of_a_wrong_kind_are_refused(head: md.LoadedScan, block: object) -> None:
    with pytest.raises(md.InputError):
        head.reconstruct(LINES, recipe=head.recipe.replacing("prior", blocks=[block]))


@dataclass(frozen=True)
class Outermost(Strategy):
    """The line that is farthest from the centre of k-space."""

    name: str = "outermost-of-all"
    needs_posterior = False

    def default_start(self, readouts: object, target: int, n_coils: int = 1) -> int:
        return min(8, target)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        lines = np.flatnonzero(view.candidates.remaining)
        return Choice(int(lines[np.argmax(np.abs(lines - len(view.candidates.remaining) // 2))]))


def test_an_own_strategy_designs_as_an_object(head: md.LoadedScan) -> None:
    design = head.design(10, strategy=Outermost(), recipe=with_prior(head, LOCAL[0]))
    assert design.trace.strategy == "outermost-of-all" and 0 in design.lines
    with pytest.raises(md.InputError):
        head.design(10, strategy=Outermost(name="random"))


def test_own_strategies_are_compared_with_others(head: md.LoadedScan) -> None:
    recipe = with_prior(head, LOCAL[0]).replacing("reconstruction", method="zero-filled")
    compared = head.compare(["low-pass", Outermost()], lines=[12, 16], recipe=recipe)
    errors = compared.errors
    assert set(errors) == {"low-pass", "outermost-of-all"} and errors["low-pass"].keys() == {12, 16}
    assert errors["low-pass"][12] < errors["outermost-of-all"][12], "lines at the rim say nothing of an image"
    assert compared.plot().axes
