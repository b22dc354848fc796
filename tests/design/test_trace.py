import numpy as np

from mri_design.design.trace import DesignTrace
from tests.design_steps import design_step

SCORES = np.array([np.nan, 4.0, 2.0, np.nan])
TRACE = DesignTrace("rule", 4, (2,), (design_step(1, scores=SCORES), design_step(3)))


def test_lines_are_in_acquisition_order_start_first_and_a_mask_is_of_the_first() -> None:
    assert TRACE.lines == (2, 1, 3)
    assert TRACE.mask().tolist() == [False, True, True, True]
    assert TRACE.mask(2).tolist() == [False, True, True, False]
    assert TRACE.mask(0).tolist() == [False] * 4


def test_innovation_energies_are_of_the_lines_that_were_predicted() -> None:
    steps = (design_step(1, actual_energy=2.0), design_step(3), design_step(0, actual_energy=0.5))
    assert DesignTrace("rule", 4, (2,), steps).innovation_energies == {1: 2.0, 0: 0.5}
