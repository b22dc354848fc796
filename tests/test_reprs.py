"""Objects say what they are in a few lines: no arrays written out, no addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import mri_design as md
from mri_design.design import LineCandidates, StopRule
from mri_design.experiment import DesignOptions
from mri_design.operators import Dense, Identity
from mri_design.sites import Generic, Laplace
from mri_design.variances import MonteCarlo

WIDE = np.linspace(0.5, 1.5, 900)
CAUCHY = (lambda x: -np.log1p(x), lambda x: -1 / (1 + x), lambda x: 1 / (1 + x) ** 2)
SLICE = md.load("phantom:brain", recipe={"input": {"matrix": 32}}).calibrated.slice_model()
MADE: Mapping[str, Callable[[], object]] = {
    "CartesianLines": lambda: md.operators.cartesian(range(9), (32, 32), np.ones((2, 32, 32)) / np.sqrt(2)),
    "Dense": lambda: Dense(np.ones((40, 30))),
    "DesignOptions": lambda: DesignOptions(stop=StopRule(error=0.1), callback=lambda state: None),
    "DoubleLoop": md.DoubleLoop,
    "GaussianPosterior": lambda: md.DoubleLoop(MonteCarlo(2), outer_iterations=1).infer(
        SLICE.model(range(12, 20)), np.random.default_rng(0)
    ),
    "Generic": lambda: Generic(*CAUCHY, log_concave=False, name="own"),
    "ImageStack": lambda: md.ImageStack(np.ones((1, 256, 256), np.float32), header={"a": "b" * 900}),
    "Laplace": lambda: Laplace(WIDE),
    "LineCandidates": lambda: LineCandidates(np.ones(32, dtype=bool), (16, 15), 12),
    "SliceModel": lambda: SLICE,
    "Recipe": lambda: md.Recipe().replacing("input", matrix=32),
    "Image": lambda: md.reconstruct(SLICE, method="zero-filled"),
    "SiteBlock": lambda: md.SiteBlock("entries", Identity((900,)), Laplace(WIDE)),
    "SparsityBlock": lambda: md.SparsityBlock("wavelet", 3.0),
    "TrajectoryData": lambda: md.TrajectoryData(np.ones((1, 1, 64), np.complex64), np.zeros((64, 2)), (8, 8)),
}


@pytest.mark.parametrize("name", MADE)
def test_it_says_what_it_is_in_a_few_lines(name: str) -> None:
    text = repr(MADE[name]())
    assert len(text) <= 500 and len(text.splitlines()) <= 6, text
    assert " at 0x" not in text and "array(" not in text and name.lower()[:4] in text.lower(), text
