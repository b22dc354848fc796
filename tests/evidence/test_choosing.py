"""Which of several models predicted lines best."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evidence.held_back import best_model


def test_the_first_model_is_kept_without_evidence():
    rng = np.random.default_rng(0)
    even = np.exp(rng.standard_normal((20, 1))) * np.exp(0.01 * rng.standard_normal((20, 3)))
    assert best_model(even, margin=3.0) == 0
    better = even * [1.0, 0.8, 0.5]
    assert best_model(better) == 2
    assert best_model(better * [1.0, 1.0, 10.0]) == 1
    assert best_model(better[:3]) == 0  # too few
    assert best_model(np.zeros((0, 2))) == 0


@pytest.mark.parametrize("energies", [[1.0, 2.0], [[1.0, 0.0]], [[1.0, np.nan]], np.ones((3, 0))])
def test_energies_that_are_no_table_of_positive_numbers_are_refused(energies):
    with pytest.raises(InputError, match="energies"):
        best_model(energies)
