"""Scales, labels, powers, slopes, weights and positions that cannot be are refused by name."""

import numpy as np
import pytest

from mri_design import (
    ExponentialPower,
    Gaussian,
    InputError,
    Laplace,
    Logistic,
    PositiveMixture,
    Sech2,
    ShiftedMixture,
    StudentT,
    Tilted,
)
from mri_design.potentials.requirements import represented, require_offers


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf, [1.0, -1.0]])
def test_scales_that_are_not_positive_numbers_are_refused_by_name(scale):
    with pytest.raises(InputError, match=r"Laplace scale.*positive finite"):
        Laplace(scale)
    with pytest.raises(InputError, match=r"Gaussian precision.*positive finite"):
        Gaussian(scale)
    with pytest.raises(InputError, match=r"Student-t scale.*positive finite"):
        StudentT(3.0, scale)
    if np.ndim(scale) == 0:
        with pytest.raises(InputError, match=r"degrees of freedom.*positive finite"):
            StudentT(scale, 1.0)
    with pytest.raises(InputError, match=r"Sech2 scale.*positive finite"):
        Sech2(scale)
    with pytest.raises(InputError, match=r"Logistic scale.*positive finite"):
        Logistic(1.0, scale)
    with pytest.raises(InputError, match=r"exponential power scale.*positive finite"):
        ExponentialPower(1.0, scale)


def test_labels_powers_slopes_and_weights_that_cannot_be_are_refused():
    for labels in (0.0, [1, 0], np.nan):
        with pytest.raises(InputError, match=r"labels.*-1 or \+1"):
            Logistic(labels)
    for power in (0.0, -1.0, 2.1, np.nan):
        with pytest.raises(InputError, match=r"power.*\(0, 2\]"):
            ExponentialPower(power, 1.0)
    with pytest.raises(InputError, match=r"slope.*finite"):
        Tilted(Laplace(1.0), np.nan)
    with pytest.raises(InputError, match=r"weights.*positive"):
        PositiveMixture([1.0, -1.0], [Laplace(1.0), Laplace(2.0)])
    with pytest.raises(InputError, match="one for each of 1"):
        PositiveMixture([1.0, 1.0], [Laplace(1.0)])
    with pytest.raises(InputError, match=r"site 1 of a mixture.*even"):
        PositiveMixture([1.0, 1.0], [Laplace(1.0), Tilted(Laplace(1.0), 0.1)])
    with pytest.raises(InputError, match=r"positions.*finite"):
        ShiftedMixture([1.0], [Laplace(1.0)], [np.inf])
    with pytest.raises(InputError, match=r"no even representation.*DoubleLoop"):
        represented(ShiftedMixture([1.0], [Laplace(1.0)], [1.0]))


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: Laplace("x"), r"Laplace scale: got 'x'.*positive finite"),
        (lambda: Laplace(1 + 1j), r"Laplace scale: got \(1\+1j\)"),
        (lambda: Laplace([]), r"Laplace scale: got \[\]"),
        (lambda: Laplace(None), r"Laplace scale: got None"),
        (lambda: StudentT([1.0, 2.0], 1.0), r"degrees of freedom.*\(2,\).*one positive number"),
        (lambda: ExponentialPower([1.0, 2.0], 1.0), r"exponential power.*one number"),
        (lambda: Tilted(Laplace(1.0), "x"), "slope.*finite"),
        (lambda: Tilted(Laplace(1.0), 1j), "slope.*real"),
        (lambda: PositiveMixture([1.0], [ShiftedMixture([1.0], [Laplace(1.0)], [2.0])]), "site 0 of a mixture"),
        (lambda: ShiftedMixture([], [], []), "mixture weights.*positive"),
        (lambda: ShiftedMixture([1.0], [Laplace(1.0)], ["x"]), "mixture positions.*real"),
    ],
)
def test_scales_that_are_no_positive_numbers_are_refused(build, match):
    with pytest.raises(InputError, match=match):
        build()


def test_a_super_gaussian_site_that_does_not_say_so_is_told_to():
    class Unsaid(Laplace):
        offers = Laplace.offers - {"bound"}

    with pytest.raises(InputError, match=r'Unsaid, which does not say that it is super-Gaussian.*add "bound"'):
        require_offers("block 'a'", Unsaid(1.0), {"bound"}, user="DoubleLoop")
