"""Sites that cannot be, by the field that the error names; sites are held to what they claim."""

import numpy as np
import pytest

from mri_design import (
    BernoulliResponse,
    ExponentialPower,
    Gaussian,
    Generic,
    Hinge,
    Identity,
    Laplace,
    Logistic,
    Poisson,
    PoissonResponse,
    PositiveMixture,
    Sech2,
    ShiftedMixture,
    SiteBlock,
    StudentT,
    Tilted,
)
from mri_design.potentials import SuperGaussian, departure_from_super_gaussian, represented, require_offers
from mri_design.potentials.base import SMOOTH
from tests.refusals import refused
from tests.unfit_sites import Quartic


def own(g, dg, d2g, **more):
    return Generic(g, dg, d2g, name="my site", **more)


class Unsaid(Laplace):
    offers = Laplace.offers - {"bound"}


class Silent(Sech2):
    offers = Sech2.offers - SMOOTH


SCALED = {
    "Laplace scale": Laplace,
    "Gaussian precision": Gaussian,
    "Student-t scale": lambda s: StudentT(3.0, s),
    "Student-t degrees of freedom": lambda s: StudentT(s, 1.0),
    "Sech2 scale": Sech2,
    "Logistic scale": lambda s: Logistic(1.0, s),
    "exponential power scale": lambda s: ExponentialPower(1.0, s),
    "Hinge scale": lambda s: Hinge(1.0, s),
    "Poisson exposure": lambda s: Poisson(1, s),
}
BELL = Laplace(1.0)

REFUSED = [
    *((field, lambda make=make, s=s: make(s)) for field, make in SCALED.items() for s in (0.0, np.nan, np.inf)),
    *(("Laplace scale", lambda s=s: Laplace(s)) for s in ([1.0, -1.0], "x", 1 + 1j, [], None)),
    *(("Logistic labels", lambda c=c: Logistic(c)) for c in (0.0, [1, 0], np.nan)),
    ("Hinge labels", lambda: Hinge(np.array([0.0, 1.0]))),
    *(("exponential power", lambda p=p: ExponentialPower(p, 1.0)) for p in (0.0, -1.0, 2.1, np.nan, [1.0, 2.0])),
    ("Student-t degrees of freedom", lambda: StudentT([1.0, 2.0], 1.0)),
    *(("slope of a tilted site", lambda b=b: Tilted(BELL, b)) for b in (np.nan, "x", 1j)),
    ("mixture weights", lambda: PositiveMixture([1.0, -1.0], [BELL, Laplace(2.0)])),
    ("mixture weights", lambda: PositiveMixture([1.0, 1.0], [BELL])),
    ("site 1 of a mixture", lambda: PositiveMixture([1.0, 1.0], [BELL, Tilted(BELL, 0.1)])),
    ("site 0 of a mixture", lambda: PositiveMixture([1.0], [ShiftedMixture([1.0], [BELL], [2.0])])),
    ("mixture positions", lambda: ShiftedMixture([1.0], [BELL], [np.inf])),
    ("mixture positions", lambda: ShiftedMixture([1.0], [BELL], ["x"])),
    ("mixture weights", lambda: ShiftedMixture([], [], [])),
    *(("site", lambda s=s: represented(s)) for s in (ShiftedMixture([1.0], [BELL], [1.0]), Poisson(2), Hinge(1.0))),
    ("block 'counts'", lambda: SiteBlock("counts", Identity((3,)), Poisson(np.ones(3)))),
    ("block 'margins'", lambda: SiteBlock("margins", Identity((2,)), Hinge(np.array([1.0, -1.0])))),
    *(("Poisson counts", lambda y=y: PoissonResponse().site(y)) for y in (-1, 1.5)),
    ("Logistic labels", lambda: BernoulliResponse().site(0)),
    ("my site", lambda: own(lambda x: -(x**2), lambda x: -2 * x, lambda x: -2 + 0 * x)),
    ("my site", lambda: own(lambda x: x, lambda x: 1 + 0 * x, lambda x: 0 * x)),
    ("my site", lambda: own(lambda x: -np.sqrt(x), lambda x: -1 / np.sqrt(x), lambda x: 0.5 * x**-1.5)),
    ("my site", lambda: own(lambda x: -np.sqrt(x), lambda x: -0.5 / np.sqrt(x), lambda x: x**-1.5)),
    ("my site", lambda: own(lambda x: np.nan * x, lambda x: -1 + 0 * x, lambda x: 0 * x)),
    (
        "my site",
        lambda: own(lambda x: -np.log1p(x), lambda x: -1 / (1 + x), lambda x: (1 + x) ** -2.0, log_concave=True),
    ),
    ("my site", lambda: own(lambda x: -np.ones(3), lambda x: -x, lambda x: x)),
    ("my site: start_variance", lambda: own(lambda x: -x, lambda x: -1 + 0 * x, lambda x: 0 * x, start_variance=-1.0)),
    ("block 'a'", lambda: require_offers("block 'a'", Unsaid(1.0), {"bound"}, user="DoubleLoop")),
    ("block 'a'", lambda: require_offers("block 'a'", Silent(1.0), {"curvature"}, user="LaplaceFilter")),
]


@pytest.mark.parametrize(("field", "build"), REFUSED)
def test_sites_that_cannot_be_are_refused_by_their_field(field, build):
    with refused(field):
        build()


class Rising(Quartic):
    def dg(self, x):
        return np.ones_like(x)


class Undefined(Laplace):
    def dg(self, x):
        return np.nan * x


@pytest.mark.parametrize(
    ("site", "keeps"),
    [
        (Laplace(np.geomspace(1e-3, 1e3, 7)[:, None]), True),
        (Laplace(3.0), True),
        (Gaussian(2.0), True),
        (ExponentialPower(2.0, 1.0), True),
        (ExponentialPower(0.3, 1.0), True),
        (StudentT(0.5, 1e4), True),
        (Sech2(1e3), True),
        (Sech2(1e-3), True),
        (Logistic([1.0, -1.0]), True),
        (Tilted(Laplace(1.0), np.ones(2)), True),
        (PositiveMixture([1.0, 100.0], [Gaussian(1.0), Gaussian(1e4)]), True),
        (Quartic(1.0), False),
        (Rising(1.0), False),
        (Undefined(1.0), False),
        (Undefined([1, 2]), False),
    ],
)
def test_sites_are_held_to_their_claim_of_being_super_gaussian(site: SuperGaussian, keeps: bool):
    assert (departure_from_super_gaussian(site, (7, 2)) is None) == keeps
