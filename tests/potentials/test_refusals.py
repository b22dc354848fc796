"""Sites that cannot be, by the field that the error names; sites are held to what they claim."""

import numpy as np
import pytest

import mri_design as md
from mri_design.potentials import SuperGaussian, departure_from_super_gaussian, represented, require_offers
from mri_design.potentials.base import SMOOTH
from tests.refusals import refused
from tests.unfit_sites import Quartic


def own(g, dg, d2g, **more):
    return md.Generic(g, dg, d2g, name="my site", **more)


class Unsaid(md.Laplace):
    offers = md.Laplace.offers - {"bound"}


class Silent(md.Sech2):
    offers = md.Sech2.offers - SMOOTH


SCALED = {
    "Laplace scale": md.Laplace,
    "Gaussian precision": md.Gaussian,
    "Student-t scale": lambda s: md.StudentT(3.0, s),
    "Student-t degrees of freedom": lambda s: md.StudentT(s, 1.0),
    "Sech2 scale": md.Sech2,
    "Logistic scale": lambda s: md.Logistic(1.0, s),
    "exponential power scale": lambda s: md.ExponentialPower(1.0, s),
    "Hinge scale": lambda s: md.Hinge(1.0, s),
    "Poisson exposure": lambda s: md.Poisson(1, s),
}
BELL = md.Laplace(1.0)

REFUSED = [
    *((field, lambda make=make, s=s: make(s)) for field, make in SCALED.items() for s in (0.0, np.nan, np.inf)),
    *(("Laplace scale", lambda s=s: md.Laplace(s)) for s in ([1.0, -1.0], "x", 1 + 1j, [], None)),
    *(("Logistic labels", lambda c=c: md.Logistic(c)) for c in (0.0, [1, 0], np.nan)),
    ("Hinge labels", lambda: md.Hinge(np.array([0.0, 1.0]))),
    *(("exponential power", lambda p=p: md.ExponentialPower(p, 1.0)) for p in (0.0, -1.0, 2.1, np.nan, [1.0, 2.0])),
    ("Student-t degrees of freedom", lambda: md.StudentT([1.0, 2.0], 1.0)),
    *(("slope of a tilted site", lambda b=b: md.Tilted(BELL, b)) for b in (np.nan, "x", 1j)),
    ("mixture weights", lambda: md.PositiveMixture([1.0, -1.0], [BELL, md.Laplace(2.0)])),
    ("mixture weights", lambda: md.PositiveMixture([1.0, 1.0], [BELL])),
    ("site 1 of a mixture", lambda: md.PositiveMixture([1.0, 1.0], [BELL, md.Tilted(BELL, 0.1)])),
    ("site 0 of a mixture", lambda: md.PositiveMixture([1.0], [md.ShiftedMixture([1.0], [BELL], [2.0])])),
    ("mixture positions", lambda: md.ShiftedMixture([1.0], [BELL], [np.inf])),
    ("mixture positions", lambda: md.ShiftedMixture([1.0], [BELL], ["x"])),
    ("mixture weights", lambda: md.ShiftedMixture([], [], [])),
    *(
        ("site", lambda s=s: represented(s))
        for s in (md.ShiftedMixture([1.0], [BELL], [1.0]), md.Poisson(2), md.Hinge(1.0))
    ),
    ("block 'counts'", lambda: md.SiteBlock("counts", md.Identity((3,)), md.Poisson(np.ones(3)))),
    ("block 'margins'", lambda: md.SiteBlock("margins", md.Identity((2,)), md.Hinge(np.array([1.0, -1.0])))),
    *(("Poisson counts", lambda y=y: md.PoissonResponse().site(y)) for y in (-1, 1.5)),
    ("Logistic labels", lambda: md.BernoulliResponse().site(0)),
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


class Undefined(md.Laplace):
    def dg(self, x):
        return np.nan * x


@pytest.mark.parametrize(
    ("site", "keeps"),
    [
        (md.Laplace(np.geomspace(1e-3, 1e3, 7)[:, None]), True),
        (md.Laplace(3.0), True),
        (md.Gaussian(2.0), True),
        (md.ExponentialPower(2.0, 1.0), True),
        (md.ExponentialPower(0.3, 1.0), True),
        (md.StudentT(0.5, 1e4), True),
        (md.Sech2(1e3), True),
        (md.Sech2(1e-3), True),
        (md.Logistic([1.0, -1.0]), True),
        (md.Tilted(md.Laplace(1.0), np.ones(2)), True),
        (md.PositiveMixture([1.0, 100.0], [md.Gaussian(1.0), md.Gaussian(1e4)]), True),
        (Quartic(1.0), False),
        (Rising(1.0), False),
        (Undefined(1.0), False),
        (Undefined([1, 2]), False),
    ],
)
def test_sites_are_held_to_their_claim_of_being_super_gaussian(site: SuperGaussian, keeps: bool):
    assert (departure_from_super_gaussian(site, (7, 2)) is None) == keeps
