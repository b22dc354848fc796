"""What a 3-D sequence asks of the samples of its plane."""

import numpy as np

from mri_design import LineCandidates
from mri_design.design import PlaneConstraints
from mri_design.readouts import PlaneReadouts
from tests.refusals import refused

PLANE = PlaneReadouts((16, 12))
EVERY = np.ones(PLANE.size, dtype=bool)


def test_the_shutter_leaves_the_ellipse_that_touches_the_edges() -> None:
    allowed = PlaneConstraints(PLANE, shutter=True).allowed(PLANE.size).reshape(16, 12)
    assert allowed[8].all() and allowed[:, 6].all() and not allowed[0, 0] and not allowed[15, 11]
    assert abs(allowed.mean() - np.pi / 4) < 0.06


def test_partial_fourier_keeps_one_half_along_ky() -> None:
    allowed = PlaneConstraints(PLANE, partial_fourier=0.75).allowed(PLANE.size).reshape(16, 12)
    assert allowed[4:].all() and not allowed[:4].any()
    other = PlaneConstraints(PLANE, partial_fourier=0.75, whole_half="negative").allowed(PLANE.size).reshape(16, 12)
    assert other[:13].all() and not other[13:].any()


def test_the_calibration_region_comes_first() -> None:
    rules = PlaneConstraints(PLANE, calibration=4)
    start = rules.start(EVERY, 30)
    region = PLANE.mask(start)[6:10, 4:8]
    assert region.all() and len(start) == 30 and start[0] == PLANE.outwards[0]
    assert set(rules.start(EVERY, 3)) == set(np.flatnonzero(rules.calibration_region).tolist())
    LineCandidates(EVERY, start, 60, constraints=rules, readouts=PLANE)
    with refused("required lines"):
        LineCandidates(EVERY, start[5:], 60, constraints=rules, readouts=PLANE)


def test_what_cannot_be_is_refused() -> None:
    with refused("calibration region"):
        PlaneConstraints(PLANE, calibration=6, partial_fourier=0.5).start(EVERY, 10)
    with refused("start samples"):
        PlaneConstraints(PLANE).start(EVERY, 500)
