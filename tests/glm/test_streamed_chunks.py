"""Chunks may stay on disk: memory holds the square of the unknowns and one chunk."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import mri_design as md
from mri_design import Dense, Gaussian, Logistic
from mri_design.operators import RowsOnDisk

Q, N, CHUNK = 20_000, 40, 500


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """Rows in a file, and labels; the file is made without the whole matrix in memory too."""
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=(Q, N))
    weights = rng.standard_normal(N)
    labels = np.empty(Q)
    for first in range(0, Q, 1000):
        rows[first : first + 1000] = rng.standard_normal((1000, N)) / np.sqrt(N)
        chance = 1 / (1 + np.exp(-rows[first : first + 1000] @ weights))
        labels[first : first + 1000] = np.where(rng.random(1000) < chance, 1.0, -1.0)
    rows.flush()
    return path, labels


def model_of(analysis, labels):
    blocks = [
        md.SiteBlock("labels", analysis, Logistic(labels)),
        md.SiteBlock("weights", Dense(np.eye(N)), Gaussian(1.0)),
    ]
    return md.GeneralizedLinearModel.of_sites(blocks)


@pytest.mark.slow
@pytest.mark.thorough
def test_peak_memory_is_that_of_one_chunk_and_a_few_numbers_per_site(on_disk) -> None:
    path, labels = on_disk
    engine = md.LaplacePropagation(partition="random", chunk_size=CHUNK, max_sweeps=4)
    tracemalloc.start()
    found = engine.infer(model_of(RowsOnDisk(path, slab_rows=CHUNK), labels), np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numbers = 8 * (25 * Q + 10 * CHUNK * N + 20 * N**2)
    assert peak <= numbers  # 4 million bytes for the sites, 2 for the chunk
    assert peak <= 0.8 * 8 * Q * N  # the rows alone would take more
    whole = engine.infer(model_of(Dense(np.load(path)), labels), np.random.default_rng(0))
    np.testing.assert_array_equal(found.mean, whole.mean)
    rows = np.load(path)
    slope = rows.T @ (labels / (1 + np.exp(labels * (rows @ found.mean)))) - found.mean
    np.testing.assert_allclose(slope, 0, atol=1e-8)
